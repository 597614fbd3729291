"""Megatron-LM's attention: its core, by heads or over all ranks of a ring, and the latent kind."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules import fused
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import inside_flash
from memgui.estimator.modules.parallel_linear import alone, column, row
from memgui.estimator.modules.ranks import gathered_tokens, in_ring
from memgui.estimator.tape import NEW, REPLACES, Dims, Tape, Tensor


def normed(t: Tape, c: Context, x: Tensor, name: str, width: Dims = ("h",), part: str = "norm") -> Tensor:
    """The model's norm as one kernel."""
    m, o = c.model, c.options
    before, t.part = t.part, part
    with t.within("layernorm" if part == "norm" else ""):
        if m.norm == "layer_norm":
            w = t.parameter(f"{name}.weight", width, o.width, o.base_trained)
            shift = t.parameter(f"{name}.bias", width, o.width, o.base_trained) if m.norm_bias else None
            y = op.layer_norm(t, x, w, shift, (*x.dims[: -len(width)], 1))
        else:
            y = fused.rms_norm(t, c, x, name, width)
    t.part = before
    return y


def core_attention(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of ``q`` over ``k`` and ``v``: Transformer Engine's kernel, or Megatron-LM's own."""
    with t.within("core_attn"):
        return _eager(t, c, q, k, v) if c.options.attention == "eager" else _fused(t, c, q, k, v)


def latent_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """DeepSeek's: latents of the tokens that a rank has, from which heads of all tokens are made.

    Rotated parts are new tensors, with which queries and keys are put together anew; values are copied.
    """
    m = c.model
    if m.q_lora_rank is None:
        q = column(t, c, x, "attention.q", "q", ("a", "d"), ("h",))
    else:
        narrow = alone(t, c, x, "attention.q_a", "query latent", ("lq",), ("h",))
        narrow = normed(t, c, narrow, "q_layernorm", ("lq",), "qk_norm")
        q = column(t, c, narrow, "attention.q_b", "q", ("a", "d"), ("lq",))
    own = x.dims[:-1]
    packed = alone(t, c, x, "attention.kv_a", "latent and key", ("lp",), ("h",))
    latent, key = op.split(t, packed, ("latent", "rotated key"), ((*own, "lk"), (*own, 1, "p")))
    key = gathered_tokens(t, c, key)
    latent = normed(t, c, latent, "kv_layernorm", ("lk",), "qk_norm")
    both = column(t, c, latent, "attention.kv_b", "keys and values", ("a", "nv"), ("lk",))
    unrotated, v = op.split(t, both, ("k", "v"), ((*c.rows, "a", "dp"), (*c.rows, "a", "dv")))
    plain, turned = op.split(t, q, ("q", "q"), ((*c.rows, "a", "dp"), (*c.rows, "a", "p")))
    q = _together(t, c, plain, fused.rope(t, turned), "q")
    k = _together(t, c, unrotated, fused.rope(t, key), "k")
    y = core_attention(t, c, q, k, op.clone(t, v))
    return row(t, c, y, "attention.o", "output", ("h",), ("a", "dv"))


def _together(t: Tape, c: Context, plain: Tensor, turned: Tensor, name: str) -> Tensor:
    out = t.tensor(name, (*c.rows, "a", "d"), plain.width, plain.grad or turned.grad)
    back = tuple([(one, NEW) for one in (plain, turned) if one.grad])
    return t.record("cat", (plain, turned), out, (), back)


def _fused(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    inner = inside_flash(t, c, q, k)
    if (
        c.options.split.context > 1
    ):  # keys and values go round the ranks, one rank's at a time beside one's own
        return in_ring(t, c, q, k, v, ("b", c.queries, 2, 2), inner)
    return op.flash_attention(t, q, k, v, ("b", "a", c.queries), (*c.rows, "a", v.dims[-1]), 16, inner)


def _eager(t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Scores of every pair of tokens: the softmax, its dropout's mask and what that leaves are kept."""
    o = c.options
    dims: Dims = ("b", "a", c.queries, c.queries)
    scores = t.tensor("scores", dims, q.width, q.grad or k.grad)
    t.record("baddbmm", (q, k), scores, *op.product(q, k))
    probabilities = t.tensor("probabilities", dims, q.width, scores.grad)
    t.record("scaled_masked_softmax", (scores,), probabilities, (probabilities,), ((scores, REPLACES),))
    dropped = op.dropout(t, probabilities, o.attention_dropout)
    y = t.tensor("attention output", (*c.rows, "a", v.dims[-1]), q.width, dropped.grad or v.grad)
    t.record("bmm", (dropped, v), y, *op.product(dropped, v))
    return op.clone(t, y, "attention output")
