"""An encoder and a decoder: T5, BART, Whisper.  What stands before, between and after their layers."""

from __future__ import annotations

import msgspec

from memgui.estimator import operators as op
from memgui.estimator.mixing import convolution
from memgui.estimator.modules.adapters import kept
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.cross import biased_attention, cross_attention
from memgui.estimator.modules.encoders import head_weight, hidden_tokens
from memgui.estimator.modules.ends import cross_entropy
from memgui.estimator.modules.layers import LayerPlan, Module, Writer, attending, dense, residual
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.reach import masks
from memgui.estimator.tape import ALIAS, PARAMETER, Dims, Parameter, Tape, Tensor
from memgui.spec.messages import QT_TRANSLATE_NOOP

INT64 = 8
SCALED_OUTSIDE = ("pegasus", "marian", "mvp")
"""Models whose stacks multiply what their embedding returns; the others' embedding multiplies itself."""

LABELS = {
    "encoder.attention": QT_TRANSLATE_NOOP("estimator", "encoder, attention"),
    "encoder.dense": QT_TRANSLATE_NOOP("estimator", "encoder, feed-forward"),
    "decoder.attention": QT_TRANSLATE_NOOP("estimator", "decoder, attention"),
    "decoder.cross": QT_TRANSLATE_NOOP("estimator", "decoder, attention over the encoder"),
    "decoder.dense": QT_TRANSLATE_NOOP("estimator", "decoder, feed-forward"),
    "between": QT_TRANSLATE_NOOP("estimator", "between encoder and decoder"),
}
"""Labels of blocks, without ``.first``."""


def encoder_context(c: Context) -> Context:
    """The context of the encoder's layers; completes that of the decoder, ``c``."""
    m, o = c.model, c.options
    source, target = ("A", "s") if m.num_mel_bins else ("s", "u")
    if m.num_mel_bins:
        o = msgspec.structs.replace(o, masked=False)  # the sound is as long as the model hears
    bare = msgspec.structs.replace(m, explicit_mask=False)
    over = Context.of(bare, o, c.sizes, c.names)
    unpadded = msgspec.structs.replace(o, masked=False)
    encoder = Context.of(bare, msgspec.structs.replace(o, cache=False), c.sizes, c.names)
    encoder.queries = encoder.keys = source
    encoder.causal = over.causal = False
    over.queries, over.keys = (1 if o.decode else target), source
    c.options, c.over = unpadded, over
    encoder.inputs = over.inputs = c.inputs
    over.handed = c.handed
    if not o.decode:
        c.queries = c.keys = target
    elif not m.num_mel_bins:
        c.keys, c.before = "vt", "vt1"
    return encoder


# -- layers ------------------------------------------------------------------------------------------


def _layer(stack: str, mixer: Module, first: bool) -> LayerPlan:
    """One layer; the first of a stack with shared biases makes them."""
    suffix = ".first" if first else ""
    blocks: list[tuple[str, Writer]] = [
        (f"{stack}.attention{suffix}", residual(mixer, "self_attn_layer_norm", ""))
    ]
    if stack == "decoder":
        blocks.append((f"{stack}.cross{suffix}", residual(cross_attention, "encoder_attn_layer_norm", "")))
    blocks.append((f"{stack}.dense", residual(dense, "final_layer_norm", "")))
    if stack == "encoder" or mixer is biased_attention:
        bounded = len(blocks) if mixer is biased_attention else 1
        blocks[-bounded:] = [(name, _bounded(write)) for name, write in blocks[-bounded:]]
    return LayerPlan(f"{stack}{suffix}", LABELS[f"{stack}.attention"], tuple(blocks))


def _bounded(write: Writer) -> Writer:
    """What is fp16 throughout is held below infinity: T5's after each half, others' after a layer."""

    def bounded(t: Tape, c: Context, x: Tensor) -> Tensor:
        y = write(t, c, x)
        return op.clamp(t, y) if t.half == "fp16" and y.width == 2 else y

    return bounded


_PLAIN = {stack: _layer(stack, attending("full_attention"), False) for stack in ("encoder", "decoder")}
_BIASED = {
    (stack, first): _layer(stack, biased_attention, first)
    for stack in ("encoder", "decoder")
    for first in (True, False)
}


def stack_plans(c: Context, stack: str, count: int) -> list[tuple[LayerPlan, int]]:
    """The layers of a stack, as runs of equal ones."""
    m = c.model
    if m.position_embedding != "relative":
        return [(_PLAIN[stack], count)]
    if not m.relative_attention_shared:
        return [(_BIASED[stack, True], count)]
    rest = [(_BIASED[stack, False], count - 1)] if count > 1 else []
    return [(_BIASED[stack, True], 1), *rest]


# -- what stands before and between the layers -----------------------------------------------------------


def source_stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """The source's tokens embedded, or a spectrogram through two convolutions."""
    t.part = t.module = "embedding"
    if c.model.num_mel_bins:
        return _spectrogram(t, c)
    ids = c.given(t, "token ids", c.rows, INT64)
    table = _shared_table(t, c)
    x = _embedded(t, c, ids, table, counted=True)
    hidden_tokens(t, c, c.options.width)
    return x


def _shared_table(t: Tape, c: Context) -> Parameter:
    """The embedding that both stacks use, and the head too where it is tied."""
    o = c.options
    table = c.table = t.parameter("shared.weight", ("V", "h"), o.width, o.base_trained, "vocabulary")
    table.tied = table.grad and (c.model.tie_word_embeddings or not c.model.num_mel_bins)
    return table


def _embedded(t: Tape, c: Context, ids: Tensor, table: Parameter, *, counted: bool) -> Tensor:
    """Embedded tokens, with positions and a norm where the model has them."""
    m, o = c.model, c.options
    x = op.embedding(t, ids, table, "embedded tokens", c.hidden)
    outside = m.model_type in SCALED_OUTSIDE
    if o.input_leaf and outside:
        t.make_leaf(x)
    if m.embedding_scaling != "none":
        x = op.scale(t, x)
    if o.input_leaf and not outside:
        t.make_leaf(x)
    t.hold(x)
    if m.position_embedding == "sinusoidal_buffer":
        x = _fixed_positions(t, c, x)
    elif m.position_embedding in ("learned", "sinusoidal"):
        own = m.position_offset > 0 or m.num_mel_bins > 0  # Blenderbot has one row for all sequences
        rowwise = (counted or m.model_type == "mvp") and own and m.position_embedding == "learned"
        x = _positions(t, c, x, counted=rowwise)
    if m.embedding_norm:
        x = norm(t, c, x, "layernorm_embedding", part="embedding")
    t.module = "embedding" if m.position_embedding == "relative" else "model"
    x = op.dropout(t, x, o.embedding_dropout)
    t.module = "embedding"
    return x


def _positions(t: Tape, c: Context, x: Tensor, *, counted: bool) -> Tensor:
    """Learned positions, one row per sequence (``counted``) or one for all."""
    m, o = c.model, c.options
    rows: Dims = ("b" if counted else 1, c.queries)
    trained = o.base_trained and m.position_embedding == "learned"
    table = t.parameter("embed_positions.weight", ("P", "h"), o.width, trained, part="position_embedding")
    positions = t.tensor("position ids", rows, INT64)
    t.run("add", (), (positions,), (), ())
    where = op.embedding(t, positions, table, "embedded positions", (*rows, "h"))
    t.hold(where)
    return op.add(t, x, where, "embedded") if counted else op.add_broadcast(t, x, where, "embedded")


def _fixed_positions(t: Tape, c: Context, x: Tensor) -> Tensor:
    """M2M-100: rows of a buffer for every token of every sequence."""
    t.buffer("embed_positions", ("P", "h"), c.options.width)
    positions = t.tensor("position ids", ("b", c.queries), INT64)
    t.run("add", (), (positions,), (), ())
    where = t.tensor("embedded positions", ("b", c.queries, "h"), x.width)
    t.run("index_select", (positions,), (where,), (), ())
    t.hold(where)
    return op.add(t, x, where, "embedded")


def _spectrogram(t: Tape, c: Context) -> Tensor:
    """Whisper's ears: two convolutions over time, the second of which halves it; fixed positions."""
    m, o = c.model, c.options
    frames = 2 * m.max_source_positions
    x = c.given(t, "spectrogram", ("b", m.num_mel_bins, frames), o.width)
    t.part, before = "stem", t.part
    sizes: tuple[Dims, ...] = ((m.num_mel_bins, frames), ("h", c.queries))
    for number, (channels, length) in enumerate(sizes, 1):
        dims: Dims = ("h", channels, 3)
        w = t.parameter(f"conv{number}.weight", dims, o.width, o.base_trained, role="convolution")
        bias = t.parameter(f"conv{number}.bias", ("h",), o.width, o.base_trained)
        x = convolution(t, x, w, bias, "convolved", ("b", "h", length))
        if o.input_leaf and number == 1:
            t.make_leaf(x)
        x = op.pointwise(t, "gelu", x, "convolved", saves="input")
    t.part = before
    heard = t.view(x, "heard", c.hidden)
    t.run("permute", (x,), (heard,), (), ((x, ALIAS),) if x.grad else ())
    t.hold(heard)
    table = t.parameter("embed_positions.weight", ("A", "h"), o.width, False, part="position_embedding")
    positions = t.tensor("position ids", (c.queries,), INT64)
    t.run("arange", (), (positions,), (), ())
    where = op.embedding(t, positions, table, "embedded positions", (c.queries, "h"))
    return op.dropout(t, op.add_broadcast(t, heard, where, "embedded"), o.embedding_dropout)


def between(t: Tape, encoder: Context, c: Context, x: Tensor) -> Tensor:
    """The encoder's end (norm and dropout where the model has them), then the decoder's input."""
    t.frees_input = True
    assert c.over is not None
    states = _end(t, encoder, x)
    c.over.states = states
    t.return_(states)
    c.handed.append(states)
    return target_stem(t, c, states)


def _end(t: Tape, c: Context, x: Tensor) -> Tensor:
    m, o = c.model, c.options
    if m.final_norm:
        t.module = "final_norm"
        x = norm(t, c, x, "final_layer_norm")
    t.module = "embedding"
    return op.dropout(t, x, o.final_dropout)


def target_stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """The target's tokens, shifted by one, embedded."""
    m, o = c.model, c.options
    t.part = t.module = "embedding"
    if o.training:
        c.labels = c.given(t, "labels", c.rows, INT64)
        ids = t.tensor("target ids", c.rows, INT64)
        t.run("new_zeros", (), (ids,), (), ())
        t.hold_outside(ids)
    else:
        ids = c.given(t, "target ids", c.rows, INT64)
    table = c.table or _shared_table(t, c)
    x = _embedded(t, c, ids, table, counted=m.num_mel_bins > 0)
    if m.explicit_mask and o.attention != "eager":
        _mask(t, c, 1)
    else:
        masks(t, c, o.width)  # as what is embedded, before a norm
        c.handed += c.masks.values()
    if c.over is not None and c.over.options.masked:
        _mask(t, c.over, o.width if o.attention == "eager" else 1)
    return x


def _mask(t: Tape, c: Context, width: int) -> None:
    """A mask of each sequence's own."""
    mask = c.masks["full"] = t.tensor("mask", ("b", c.queries, c.keys), width)
    t.run("mask", (), (mask,), (), ())
    t.hand_out(mask)
    c.handed.append(mask)


# -- what stands after them ----------------------------------------------------------------------------------


def target_tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The decoder's end, the head and the loss of each target token."""
    m, o = c.model, c.options
    t.frees_input = t.final = True
    x = _end(t, c, x)
    t.part = t.module = "lm_head"
    before = x
    if m.head_input_scaling:
        x = op.scale(t, x, "scaled")
    assert c.table is not None
    w = c.table if m.tie_word_embeddings else head_weight(t, c, "lm_head.weight", c.table.dims)
    if kept(c, c.names["head"]):
        w = t.parameter("lm_head.modules_to_save", w.dims, o.width, True, "vocabulary")
    t.loss = True
    rows: Dims = c.rows if o.training else ("b", 1)
    logits = op.linear(t, x, w, None, "logits", (*rows, "V"))
    if m.logits_buffer:
        t.buffer("final_logits_bias", ("V",), o.width)
        bias = t.tensor("final_logits_bias", ("V",), o.width, origin=PARAMETER)
        logits = op.add_broadcast(t, logits, bias, "logits")
    y = cross_entropy(t, c, logits, rows, c.labels)
    t.use(before, x)
    return y
