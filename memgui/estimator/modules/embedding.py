"""What becomes of token ids before the layers: the embedding, its adapters, prompts put in front."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import adapted, embedded, kept
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.ranks import leave
from memgui.estimator.tape import NEW, PARAMETER, Tape, Tensor

INT64 = 8
FP32 = 4
BF16 = 2
SCALED_INSIDE = ("xglm", "biogpt")
"""Models whose embedding is a module that multiplies by a number; so do all with a buffer of it."""


def tokens(t: Tape, c: Context) -> Tensor:
    """Embedded tokens, ``c.table`` and ``c.ids`` made on the way."""
    m, o = c.model, c.options
    given = "s0" if o.trained == "prompt" else c.queries
    ids = c.ids = c.given(t, "token ids", ("b", given), INT64)
    if o.masked:
        c.padding = c.given(t, "attention mask", ("b", given), INT64)
    if m.mask_buffer:
        t.buffer("bias", ("P", "P"), 1)
    narrow = "e" if m.embedding_size else "h"
    called = c.names["embedding"]
    shared = o.split.vocabulary > 1
    rows = "Vt" if shared else "V"
    table = c.table = t.parameter(f"{called}.weight", (rows, narrow), o.width, o.base_trained, "vocabulary")
    table.tied = m.tie_word_embeddings and m.head == "causal" and table.grad
    used = table
    if kept(c, called):
        used = t.parameter(f"{called}.modules_to_save", table.dims, o.width, True, "vocabulary")
    x = op.embedding(t, ids, used, "embedded tokens", ("b", given, narrow))
    if shared:  # each rank looks up the rows that it has
        x = leave(t, c, x)
    if adapted(c, called):
        x = embedded(t, c, ids, x, called, narrow)
    buffered = m.embedding_scaling in ("buffer", "whole_buffer")
    inside = buffered or m.model_type in SCALED_INSIDE
    if o.input_leaf and not inside:
        t.make_leaf(x)
    if m.embedding_scaling == "normalizer":
        return _normalised(t, c, x)
    if m.embedding_scaling == "whole_buffer":
        x = _multiplied(t, x, o.width)
    elif m.embedding_scaling != "none":
        x = op.scale(t, x)
        if buffered:
            t.buffer("embed_scale", (), o.width)
    if o.input_leaf and inside:
        t.make_leaf(x)
    if o.trained == "prefix":
        _prefix(t, c, x.width)
    return _after_prompt(t, c, x, narrow) if o.trained == "prompt" else x


def _prefix(t: Tape, c: Context, width: int) -> None:
    """Prefix tuning: an embedding whose rows are the keys and values of all layers, in the base's format."""
    part, t.part = t.part, "adapter"
    where = t.tensor("prefix ids", ("b", "v"), INT64)
    t.run("_to_copy", (), (where,), (), ())
    every = (2 * c.model.num_hidden_layers, "k", "d")
    w = t.parameter("prefix_encoder.weight", ("v", *every), FP32, role="embedding", inputs=len(every))
    c.prefix = op.cast(t, op.embedding(t, where, w, "prefix", ("b", "v", *every)), width)
    t.hold(c.prefix)
    t.part = part


def _multiplied(t: Tape, x: Tensor, width: int) -> Tensor:
    """MiniCPM 3: times a whole number on the device, which is cast to the embeddings' format each time."""
    t.buffer("embed_scale", (), INT64)
    factor = t.tensor("embed_scale", (), width)
    t.run("_to_copy", (), (factor,), (), ())
    out = t.tensor("embedded", x.dims, x.width, x.grad)
    return t.record("mul", (x, factor), out, (factor,), ((x, NEW),))


def _normalised(t: Tape, c: Context, x: Tensor) -> Tensor:
    """RecurrentGemma: times a bf16 buffer, cast to the embeddings' format; these are referred to on."""
    from memgui.estimator.modules.rg_lru import kept_states  # what few models have waits until one comes

    t.buffer("normalizer", (), BF16)
    kept_states(t, c)
    t.hold(x)
    factor = t.tensor("normalizer", (), BF16, origin=PARAMETER)
    t.module = "model"
    return op.mul(t, x, op.cast(t, factor, x.width), x.name, x.dims)


def _after_prompt(t: Tape, c: Context, x: Tensor, narrow: str) -> Tensor:
    """Prompt tuning: prompts in front of the tokens, labels that are ignored in front of those given.

    PEFT's own forward refers to all of these until the loss is there.
    """
    given = c.given(t, "labels", ("b", "s0"), INT64)
    ignored = t.tensor("labels of the prompt", ("b", "v"), INT64)
    t.run("full", (), (ignored,), (), ())
    c.labels = t.tensor("labels", ("b", "s"), INT64)
    t.run("cat", (ignored, given), (c.labels,), (), ())
    t.hold_outside(ignored, c.labels)
    t.part = "adapter"
    where = t.tensor("prompt ids", ("b", "v"), INT64)
    t.run("_to_copy", (), (where,), (), ())
    w = t.parameter("prompt_embeddings.weight", ("v", narrow), FP32, role="embedding")
    prompts = op.cast(t, op.embedding(t, where, w, "prompts", ("b", "v", narrow)), x.width)
    t.part = "embedding"
    both = t.tensor("embedded tokens", ("b", c.queries, narrow), x.width, True)
    t.record("cat", (prompts, x), both, (), tuple([(one, NEW) for one in (prompts, x) if one.grad]))
    t.hold_outside(prompts, both)
    return both
