"""The halves that layers are made of: mixers and feed-forwards, norms and the residual stream around each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memgui.estimator import operators as op
from memgui.estimator.modules.attention import attention
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import mlp
from memgui.estimator.modules.moe import sparse
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.ranks import enter, leave
from memgui.estimator.modules.reach import REACHES
from memgui.estimator.modules.scales import towards
from memgui.estimator.tape import Tape, Tensor
from memgui.spec.messages import QT_TRANSLATE_NOOP

Module = Callable[[Tape, Context, Tensor], Tensor]
Writer = Callable[[Tape, Context, Tensor], Tensor]


def attending(mixer: str) -> Module:
    """Attention as far as the layers called ``mixer`` look: of heads, of a latent, or disentangled."""
    reach = REACHES[mixer]

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        if c.distances is not None and c.model.fused_qkv:
            from memgui.estimator.modules.deberta import first_disentangled_attention

            return first_disentangled_attention(t, c, x)
        if c.distances is not None:
            from memgui.estimator.modules.disentangled import disentangled_attention

            return disentangled_attention(t, c, x)
        if c.model.kv_lora_rank is not None:
            from memgui.estimator.modules.latent import latent_attention

            return latent_attention(t, c, _gated(t, c, x, "input_layernorm"), reach)
        return attention(t, c, x, reach)

    return write


def dense(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The dense feed-forward and its dropout."""
    m = c.model
    drops = c.options.hidden_dropout and "attention_output" not in m.dropouts
    with t.within("mlp"):
        return op.dropout(t, mlp(t, c, x), drops and not m.joined_branches)


def experts(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The experts that each token is sent to."""
    x = _gated(t, c, x, "post_attention_layernorm")
    with t.within("moe"):
        return sparse(t, c, x)


def _gated(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    """A norm's output through its gate, where the model's norms have one (A.X K2)."""
    if not c.model.gated_norm_rank:
        return x
    from memgui.estimator.modules.latent import through_gate

    return through_gate(t, c, x, name)


# What few models have is loaded when the first of them is written: a start need not wait for it.


def _compressed(mixer: str) -> Module:
    """DeepSeek V4's attention."""

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        from memgui.estimator.modules.compressed import compressed_attention

        return compressed_attention(t, c, x, mixer)

    return write


def _gated_delta_net(t: Tape, c: Context, x: Tensor) -> Tensor:
    from memgui.estimator.modules.delta import gated_delta_net

    return gated_delta_net(t, c, x)


def _kimi_delta_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    from memgui.estimator.modules.kda import kimi_delta_attention

    return kimi_delta_attention(t, c, x)


def _lightning_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    from memgui.estimator.modules.lightning import lightning_attention

    return lightning_attention(t, c, x)


def _mamba(t: Tape, c: Context, x: Tensor) -> Tensor:
    from memgui.estimator.modules.mamba import mamba

    return mamba(t, c, x)


def _mamba2(t: Tape, c: Context, x: Tensor) -> Tensor:
    from memgui.estimator.modules.mamba2 import mamba2

    return mamba2(t, c, x)


def _rg_lru(t: Tape, c: Context, x: Tensor) -> Tensor:
    from memgui.estimator.modules.rg_lru import rg_lru

    return rg_lru(t, c, x)


def _short_conv(t: Tape, c: Context, x: Tensor) -> Tensor:
    from memgui.estimator.modules.short_conv import short_conv

    return short_conv(t, c, x)


def _side_by_side(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Falcon-H1: Mamba-2 and attention of the same input, summed."""
    scaled = c.model.mup_scaling
    scanned = _mamba2(t, c, x)
    scanned = op.scale(t, scanned) if scaled else scanned
    seen = op.scale(t, x) if scaled else x
    attended = attention(t, c, seen)
    attended = op.scale(t, attended) if scaled else attended
    y = op.add(t, scanned, attended, "mixed")
    t.use(x, scanned, attended)
    return y


def _dense_beside_experts(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Gemma 4: with all its norms and the sum."""
    from memgui.estimator.modules.gemma4 import dense_beside_experts

    return dense_beside_experts(t, c, x)


def _shared_mamba2(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Zamba 2: with all its norms and sums."""
    from memgui.estimator.modules.shared_transformer import hybrid

    return hybrid(t, c, x)


MIXERS: dict[str, tuple[str, Module]] = {
    "full_attention": (QT_TRANSLATE_NOOP("estimator", "full attention"), attending("full_attention")),
    "sliding_attention": (
        QT_TRANSLATE_NOOP("estimator", "sliding attention"),
        attending("sliding_attention"),
    ),
    "chunked_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention in chunks"),
        attending("chunked_attention"),
    ),
    "indexed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to chosen tokens"),
        attending("indexed_attention"),
    ),
    "shared_indexed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to tokens chosen before"),
        attending("shared_indexed_attention"),
    ),
    "grouped_indexed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to chosen groups of tokens"),
        attending("grouped_indexed_attention"),
    ),
    "unrotated_indexed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to chosen tokens without positions"),
        attending("unrotated_indexed_attention"),
    ),
    "unrotated_shared_indexed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention without positions to tokens chosen before"),
        attending("unrotated_shared_indexed_attention"),
    ),
    "unrotated_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention without positions"),
        attending("unrotated_attention"),
    ),
    "lending_attention": (
        QT_TRANSLATE_NOOP("estimator", "full attention, keys lent"),
        attending("lending_attention"),
    ),
    "borrowing_attention": (
        QT_TRANSLATE_NOOP("estimator", "full attention, keys borrowed"),
        attending("borrowing_attention"),
    ),
    "lending_sliding_attention": (
        QT_TRANSLATE_NOOP("estimator", "sliding attention, keys lent"),
        attending("lending_sliding_attention"),
    ),
    "borrowing_sliding_attention": (
        QT_TRANSLATE_NOOP("estimator", "sliding attention, keys borrowed"),
        attending("borrowing_sliding_attention"),
    ),
    "pooled_indexed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to blocks of tokens"),
        attending("pooled_indexed_attention"),
    ),
    "block_indexed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to chosen blocks"),
        attending("block_indexed_attention"),
    ),
    "windowed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to a window"),
        _compressed("windowed_attention"),
    ),
    "compressed_sparse_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to chosen entries"),
        _compressed("compressed_sparse_attention"),
    ),
    "heavily_compressed_attention": (
        QT_TRANSLATE_NOOP("estimator", "attention to entries"),
        _compressed("heavily_compressed_attention"),
    ),
    "mamba": ("Mamba", _mamba),
    "mamba2": ("Mamba-2", _mamba2),
    "gated_delta_net": (QT_TRANSLATE_NOOP("estimator", "gated delta net"), _gated_delta_net),
    "kda": (QT_TRANSLATE_NOOP("estimator", "Kimi delta attention"), _kimi_delta_attention),
    "lightning_attention": (QT_TRANSLATE_NOOP("estimator", "lightning attention"), _lightning_attention),
    "rg_lru": (QT_TRANSLATE_NOOP("estimator", "gated linear recurrence"), _rg_lru),
    "short_conv": (QT_TRANSLATE_NOOP("estimator", "short convolution"), _short_conv),
    "shared_mamba2": (QT_TRANSLATE_NOOP("estimator", "shared transformer, then Mamba-2"), _shared_mamba2),
    "attention_mamba2": (QT_TRANSLATE_NOOP("estimator", "attention beside Mamba-2"), _side_by_side),
}
"""What may stand in ``layer_types``: its label and the module that writes it."""

FEED_FORWARDS: dict[str, tuple[str, Module]] = {
    "dense": (QT_TRANSLATE_NOOP("estimator", "dense"), dense),
    "sparse": (QT_TRANSLATE_NOOP("estimator", "experts"), experts),
    "dense_few": (QT_TRANSLATE_NOOP("estimator", "dense, few let through"), dense),
    "dense_sparse": (QT_TRANSLATE_NOOP("estimator", "dense beside experts"), _dense_beside_experts),
}
"""What may stand in ``mlp_layer_types``."""
WHOLE = ("dense_sparse", "shared_mamba2")
"""Halves that are written with their norms and their sum."""


class LayerPlan(NamedTuple):
    """A kind of layer: a stable key, a label, and its blocks by name.

    Layers with the same ``weights`` share them; the first of these owns them.  ``variant`` is the mixer whose
    layers have sizes of their own.  What is ``apart`` stands between layers and is none: no checkpoint.
    """

    key: str
    label: str
    blocks: tuple[tuple[str, Writer], ...]
    weights: str = ""
    variant: str = ""
    apart: bool = False


# -- how a block joins the residual stream ---------------------------------------------------------


def residual(module: Module, before: str, after: str, placement: str = "") -> Writer:
    """``x`` and a module's output, with norms called ``before`` and ``after`` where the model has them.

    They stand as the model's do if no ``placement`` is given.
    """

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        inner = module if c.options.split.tensor == 1 else shared_out(module)
        return PLACEMENTS[placement or c.model.norm_placement](t, c, x, inner, before, after)

    return write


def shared_out(module: Module) -> Module:
    """A module whose matrices tensor parallel ranks share."""
    return lambda t, c, x: leave(t, c, module(t, c, enter(t, c, x)))


def _branch(t: Tape, c: Context, y: Tensor) -> Tensor:
    return op.scale(t, y) if c.model.residual_scaling else y


def _pre(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """``x + module(norm(x))``."""
    if c.model.hc_mult:
        from memgui.estimator.modules.hyper import connected

        return connected(t, c, x, module, before)
    if c.model.residual_in_fp32:
        y = norm(t, c, op.cast(t, x, c.options.width), before)
        x = op.cast(t, x, op.FP32)
    else:
        y = norm(t, c, x, before)
    return op.add(t, x, _branch(t, c, _held(t, c, module, y)), "residual stream")


def _held(t: Tape, c: Context, module: Module, x: Tensor) -> Tensor:
    """A module's output, to which the layer's code may refer until it returns."""
    y = module(t, c, x)
    if c.model.branch_held == "both":
        t.hold(x)
    if c.model.branch_held != "none":
        t.hold(y)
    return y


def _post(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """``norm(x + module(x))``."""
    y = _held(t, c, module, x)
    out = norm(t, c, op.add(t, x, y, "residual stream"), before)
    if not c.model.is_decoder:
        t.use(y, *c.named)
        c.named.clear()
    return out


def _post_branch(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """``x + norm(module(x))``."""
    y = module(t, c, x)
    return op.add(t, x, norm(t, c, y, after), "residual stream")


def _sandwich(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """``x + norm(module(norm(x)))``."""
    y = module(t, c, norm(t, c, x, before))
    normed = norm(t, c, y, after)
    t.use(y)
    if c.model.stream_scaling:  # Beam, by how deep the layer is
        out = op.add(t, op.scale(t, normed), op.scale(t, x, "residual stream"), "residual stream")
        t.use(x, normed)
        return out
    return op.add(t, x, _branch(t, c, normed), "residual stream")


def _normed(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """``a * norm(x) + b * module(norm(x))`` (MiniMax); after its norm, the first half's result is let go."""
    t.frees_input = before != "input_layernorm"
    y = norm(t, c, x, before)
    mixed = module(t, c, y)
    return op.add(t, op.scale(t, y, "residual stream"), op.scale(t, mixed), "residual stream")


def _towards(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """From ``norm(x)`` some way towards ``norm(module(norm(x)))`` (nGPT)."""
    y = norm(t, c, x, before)
    z = norm(t, c, module(t, c, y), after)
    t.hold(z)
    return towards(t, c, y, z, f"{before}.rate")


def _weighed(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """``weight * x + module(norm(x))`` (Doge)."""
    o = c.options
    y = module(t, c, norm(t, c, x, before))
    before_part, t.part = t.part, "norm"
    w = t.parameter(f"{before}.residual", ("h",), o.width, o.base_trained)
    t.part = before_part
    return op.add(t, op.mul(t, x, w, "weighed", x.dims), y, "residual stream")


def _streams(t: Tape, c: Context, x: Tensor, module: Module, before: str, after: str) -> Tensor:
    """Several streams, of which a layer reads one and writes to all (Qwen 4)."""
    from memgui.estimator.modules.gated_streams import connected

    return connected(t, c, x, module, before)


PLACEMENTS: dict[str, Callable[[Tape, Context, Tensor, Module, str, str], Tensor]] = {
    "pre": _pre,
    "post": _post,
    "post_branch": _post_branch,
    "post_branch_attention": _post_branch,
    "normed": _normed,
    "sandwich": _sandwich,
    "towards": _towards,
    "gated_streams": _streams,
    "weighed": _weighed,
}
"""Where norms stand, by ``norm_placement``."""


def parallel(mixer: Module, feed_forward: Module) -> Writer:
    """``x + mixer(norm(x)) + feed_forward(norm(x))``, with one norm or one each."""

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        m = c.model
        split = c.options.split.tensor > 1
        mix, feed = (shared_out(mixer), shared_out(feed_forward)) if split else (mixer, feed_forward)
        first = second = norm(t, c, x, "input_layernorm")
        one = m.parallel_block == "one_norm"
        if m.joined_branches and not one:  # Falcon has both norms before attention
            second = norm(t, c, x, "post_attention_layernorm")
        mixed = mix(t, c, first)
        if not (m.joined_branches or one):
            second = norm(t, c, x, "post_attention_layernorm")
        fed = feed(t, c, second)
        if m.joined_branches:
            joined = op.dropout(t, op.add_in_place(t, fed, mixed), c.options.hidden_dropout)
            out = op.add(t, x, joined, "residual stream")
        elif m.residual_first:
            out = op.add(t, op.add(t, x, mixed, "residual stream"), fed, "residual stream")
        else:
            out = op.add(t, op.add(t, fed, mixed), x, "residual stream")
        named = (first, second) if one or m.joined_branches else ()  # NeoX hands its norms' results on
        t.use(*named, mixed, fed)
        return out

    return write


def without_norm(module: Module) -> Writer:
    """``x + module(x)``."""
    return lambda t, c, x: op.add(t, x, _held(t, c, module, x), "residual stream")
