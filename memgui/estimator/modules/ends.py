"""What stands before and after the layers: embeddings, final norm, head, loss."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import adapted, kept, low_rank
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.embedding import tokens
from memgui.estimator.modules.fused import linear_cross_entropy
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.ranks import gathered_logits, received
from memgui.estimator.modules.reach import alibi, masks, reaches
from memgui.estimator.modules.rotary import positions, tables
from memgui.estimator.tape import NEW, PARAMETER, Dims, Tape, Tensor

INT64 = 8
INT32 = 4
FP32 = 4
PAIR = 2
"""Classes where the configuration does not say how many (``num_labels``)."""


def stem(t: Tape, c: Context) -> Tensor:
    """Token and position embeddings, and the tensors that all layers share."""
    m, o = c.model, c.options
    t.part = t.module = "embedding"
    if not o.stage.first:
        x = received(t, c)
        _shared(t, c, x.width)
        return x
    x = tokens(t, c)
    if m.hidden_size_per_layer_input:
        from memgui.estimator.modules.gemma4 import embeddings_of_layers

        assert c.ids is not None
        embeddings_of_layers(t, c, c.ids, x)
    if m.altup_num_inputs:
        from memgui.estimator.modules.magnitudes import copies

        x = copies(t, c, x)
    if m.num_mem_blocks:
        c.entered = op.clone(t, x)
        t.hand_out(c.entered)
    if m.hc_count:
        from memgui.estimator.modules.gated_streams import streams as gated

        t.hold(x)
        x = gated(t, c, x)
    elif m.hc_mult:
        from memgui.estimator.modules.hyper import streams

        t.hold(x)
        x = streams(t, c, x)
    elif m.embedding_scaling != "normalizer":
        t.hold(x)  # the model's code refers to its embeddings until all layers are done
    if m.position_embedding == "learned":
        x = _positions(t, c, x)
    elif m.position_embedding == "sinusoidal_buffer":
        x = _fixed_positions(t, c, x)
    elif m.embedding_size:
        x = _project_in(t, c, x)
    before = x.width
    if m.embedding_norm:
        x = norm(t, c, x, "embedding_layernorm", part="embedding")
    _shared(t, c, x.width, before)
    t.module = c.names["embedding.dropout"]
    return op.dropout(t, x, o.embedding_dropout)


def _shared(t: Tape, c: Context, width: int, embedded: int = 0) -> None:
    """Positions and masks that all layers are given; BLOOM's mask takes the format of ``embedded`` tokens."""
    m = c.model
    if m.compress_rate_hca:
        from memgui.estimator.modules.turned import tables as pairs

        positions(t, c)
        pairs(t, c, width)
    elif m.position_embedding == "rope" and not m.rotary_in_layer:
        tables(t, c, width)
    elif m.position_embedding in ("rope", "none") and reaches(m):
        positions(t, c)
    elif m.position_embedding == "alibi":
        if m.score_masking == "filled":  # MPT: for every position there may be, in fp32
            alibi(t, c, ("a", "P"), FP32)
        else:
            alibi(t, c, ("b", "a", c.keys), width)
        if m.explicit_mask:  # Falcon makes rotary tables all the same
            tables(t, c, width)
            c.rotary.clear()
    if c.padding is None and "grouped_indexed_attention" in m.layer_types:  # whose indexer wants a mask
        c.padding = t.tensor("padding mask", c.rows, 1)
        t.run("ones", (), (c.padding,), (), ())
        t.hand_out(c.padding)
    if m.temperature_once:
        c.temperatures = t.tensor("attention scales", (1, c.queries, 1, 1), FP32)
        t.run("exp", (), (c.temperatures,), (), ())
        t.hand_out(c.temperatures)
    masks(t, c, embedded if embedded and m.position_embedding == "alibi" else width)


def _project_in(t: Tape, c: Context, x: Tensor) -> Tensor:
    t.part = "embedding_projection"
    y = projection(t, c, x, "project_in", "embedded tokens", ("h",), ("e",), cut="")
    t.part = "embedding"
    return y


def _fixed_positions(t: Tape, c: Context, x: Tensor) -> Tensor:
    """XGLM: rows of a buffer, the same for every sequence."""
    t.buffer("embed_positions", ("P", "h"), c.options.width)
    positions = t.tensor("position ids", (c.queries,), INT64)
    t.run("arange", (), (positions,), (), ())
    t.hold(positions)
    where = t.tensor("embedded positions", (c.queries, "h"), x.width)
    t.run("index_select", (positions,), (where,), (), ())
    return op.add_broadcast(t, x, where, "embedded")


def _positions(t: Tape, c: Context, x: Tensor) -> Tensor:
    m, o = c.model, c.options
    counted = m.position_offset > 0  # OPT counts positions from the mask, one row per sequence
    rows = "b" if counted else 1
    if m.score_masking == "scaled":  # OpenAI's GPT takes a slice of a buffer
        t.buffer("position ids", ("P",), INT64)
        positions = t.tensor("position ids", (rows, c.queries), INT64, origin=PARAMETER)
    else:
        positions = t.tensor("position ids", (rows, c.queries), INT64)
        t.run("arange", (), (positions,), (), ())
        t.hand_out(positions)
    if counted:
        positions = op.shift(t, positions)
    table = t.parameter(
        "embed_positions.weight", ("P", "h"), o.width, o.base_trained, part="position_embedding"
    )
    if m.embedding_size:
        x = _project_in(t, c, x)
    where = op.embedding(t, positions, table, "embedded positions", (rows, c.queries, "h"))
    y = op.add(t, x, where, "embedded") if counted else op.add_broadcast(t, x, where, "embedded")
    t.hold(where)
    t.use(positions)
    return y


def tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Final norm, head and loss; in inference the logits of each sequence's last token."""
    m, o = c.model, c.options
    t.frees_input = t.final = True
    t.module = "final_norm"
    if m.altup_num_inputs:
        from memgui.estimator.modules.magnitudes import merged

        x = merged(t, c, x)
    if m.hc_mult:
        from memgui.estimator.modules.hyper import merged as collapsed

        x = collapsed(t, c, x)
    if m.hc_count:
        from memgui.estimator.modules.gated_streams import merged as gathered

        x = gathered(t, c, x)
    if m.final_norm:
        x = norm(t, c, x, "norm")
    t.part = t.module = "lm_head"
    before = [x]
    if m.head_input_scaling:
        x = op.scale(t, x)
        before.append(x)
    if m.residual_in_fp32:
        x = op.cast(t, x, o.width)
    if m.head_in_fp32:
        x = op.cast(t, x, FP32)
    if m.embedding_size:
        t.part = "embedding_projection"
        x = projection(t, c, x, "project_out", "narrowed", ("e",), ("h",), cut="")
        t.part = "lm_head"
    tokens = c.queries if o.training or o.whole_logits or m.head == "sequence" else 1
    if m.causal_head_transform:
        x = _transformed(t, c, x)
    if m.head == "sequence":
        y = last_token_classes(t, c, x)
        t.use(*before)
        return y
    called = c.names["head"]
    rows = "Vo" if m.output_vocab_size else "V" if o.split.vocabulary == 1 else "Vt"
    if m.tie_word_embeddings and c.table is not None:
        w = c.table
    else:  # the last stage of a pipeline has a copy of a tied one
        trained = o.base_trained or (o.training and o.trained == "frozen")
        narrow = "e" if m.embedding_size else "h"
        width = FP32 if m.head_in_fp32 else o.width
        w = t.parameter("lm_head.weight", (rows, narrow), width, trained, "vocabulary")
    shift = None
    if m.lm_head_bias:
        shift = t.parameter("lm_head.bias", (rows,), o.width, w.grad or o.base_trained, "vocabulary")
    if kept(c, called):
        w = t.parameter("lm_head.modules_to_save", w.dims, o.width, True, "vocabulary")
        if shift is not None:
            shift = t.parameter("lm_head.modules_to_save.bias", shift.dims, o.width, True, "vocabulary")
    t.loss = True
    if o.loss == "fused_linear":
        t.part = t.module = "loss"
        labels, padded = _shifted(t, c)
        y = linear_cross_entropy(t, c, x, w, labels)
        t.use(*before, padded)
        return y
    logits = op.linear(t, x, w, shift, "logits", ("b", tokens, rows), "mm" if shift is None else "addmm")
    if adapted(c, called):
        logits = low_rank(t, c, x, logits, called, "logits", (rows,), w.dims[1:], "column")
    logits = gathered_logits(t, c, logits)
    if m.channel_scales:
        scales = t.parameter("lm_head.logit_scale", (rows,), o.width, o.base_trained, "vocabulary")
        logits = op.cast(t, logits, FP32)
        logits = op.mul(t, logits, op.scale(t, op.copy_of_weight(t, scales, FP32)), "logits", logits.dims)
    t.module = "loss"
    if m.logit_scaling:
        logits = op.scale(t, logits)
    if m.cap_in_fp32:
        logits = op.cast(t, logits, FP32)
    if m.final_logit_softcapping is not None:
        logits = op.soft_cap(t, logits)
    if m.logits_in_fp32:
        logits = op.cast(t, logits, FP32)
    if not o.training:
        full = op.cast(t, logits, FP32) if logits.width != FP32 else op.clone(t, logits)
        t.use(*before, logits)
        return full
    t.part = t.module = "loss"
    y = _loss(t, c, logits)
    t.use(*before)
    t.hold(logits)
    return y


def last_token_classes(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``…ForSequenceClassification`` of decoders: classes of every token, of which each last one counts."""
    m, o = c.model, c.options
    classes = m.num_labels or PAIR
    trained = o.base_trained or (o.training and o.trained == "frozen")
    w = t.parameter("score.weight", (classes, "h"), o.width, trained)
    if kept(c, "score"):
        w = t.parameter("score.modules_to_save", w.dims, o.width, True)
    t.loss = True
    logits = op.linear(t, x, w, None, "logits", (*c.rows, classes))
    counted = t.tensor("tokens that are no padding", c.rows, INT32)
    t.run("_to_copy", (), (counted,), (), ())
    places = t.tensor("places of tokens", (c.queries,), INT32)
    t.run("arange", (), (places,), (), ())
    product = t.tensor("places of tokens", c.rows, INT32)
    t.run("mul", (counted, places), (product,), (), ())
    at = t.tensor("last tokens", ("b",), INT64)
    t.run("argmax", (product,), (at,), (), ())
    rows = t.tensor("sequences", ("b",), INT64)
    t.run("arange", (), (rows,), (), ())
    pooled = t.tensor("logits", ("b", classes), logits.width, logits.grad)
    t.record("index", (logits, rows, at), pooled, (rows, at), ((logits, NEW),))
    y = cross_entropy(t, c, pooled, ("b",))
    t.use(logits, at, counted, places)
    return y


def _transformed(t: Tape, c: Context, x: Tensor) -> Tensor:
    """A linear layer, an activation and a norm before the table, of the tokens whose logits are wanted."""
    y = projection(t, c, x, "head.transform", "transformed", ("h",), ("h",))
    return norm(t, c, ACTIVATIONS[c.model.hidden_act](t, y), "head.norm", part="lm_head")


def _shifted(t: Tape, c: Context) -> tuple[Tensor, Tensor]:
    """Labels shifted by one, and with one more in the end, which those are a view of."""
    t.loss = False
    given = c.labels or c.given(t, "labels", ("b", "s"), INT64)
    padded = t.tensor("padded labels", ("b", "s1"), INT64)
    t.run("constant_pad_nd", (given,), (padded,), (), ())
    shifted = t.view(padded, "shifted labels", ("b", "s"))
    if not c.options.one_sequence:
        shifted = op.clone(t, shifted, "shifted labels")
    t.loss = True
    return shifted, padded


def _loss(t: Tape, c: Context, logits: Tensor) -> Tensor:
    """Cross-entropy of fp32 logits against the labels shifted by one."""
    shifted, padded = _shifted(t, c)
    full = op.cast(t, logits, 4)
    full.name = "logits"
    y = op.nll_loss(t, op.log_softmax(t, full), shifted)
    t.use(full, padded)
    t.loss = False
    return y


def cross_entropy(t: Tape, c: Context, logits: Tensor, rows: Dims, labels: Tensor | None = None) -> Tensor:
    """Cross-entropy of logits in their own format; in inference the logits."""
    if not c.options.training:
        return logits
    t.part = t.module = "loss"
    t.loss = False
    if labels is None:
        labels = c.given(t, "labels", rows, INT64)
    t.loss = True
    t.hold(logits)
    if c.model.loss_in_fp32:
        logits = op.cast(t, logits, FP32)
    y = op.nll_loss(t, op.log_softmax(t, logits), labels)
    t.use(logits)
    t.loss = False
    return y
