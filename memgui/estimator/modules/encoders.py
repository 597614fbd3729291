"""What stands before and after the layers of an encoder: BERT and its likes, the vision transformer."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.mixing import convolution, join
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.cross import bias_of_distances
from memgui.estimator.modules.disentangled import distances
from memgui.estimator.modules.ends import PAIR, cross_entropy
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.mobilebert import embedded
from memgui.estimator.modules.mobilebert import logits as logits_of_both
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import reaches
from memgui.estimator.modules.rotary import ROTATIONS, tables
from memgui.estimator.tape import NEW, PARAMETER, PROMOTED, Dims, Parameter, Tape, Tensor

INT64 = 8
FP32 = 4


def text_stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """Embeddings of tokens, segments and positions, summed and normed."""
    m, o = c.model, c.options
    t.part = t.module = "embedding"
    ids = c.given(t, "token ids", c.rows, INT64)
    narrow: Dims = ("e",) if m.embedding_size else ("h",)
    table = c.table = t.parameter(
        "word_embeddings.weight", ("V", *narrow), o.width, o.base_trained, "vocabulary"
    )
    table.tied = m.tie_word_embeddings and m.head == "masked" and table.grad
    x = op.embedding(t, ids, table, "embedded tokens", (*c.rows, *narrow))
    if o.input_leaf:
        t.make_leaf(x)
    if m.bottleneck_size:
        x = embedded(t, c, x)
        t.hold(x)
        hidden_tokens(t, c, x.width)
        return x
    if m.position_embedding == "learned":
        x = _segments_and_positions(t, c, x, narrow)
    elif m.position_embedding == "rope":
        x = _rotated_later(t, c, ids, x, narrow)
    if m.embedding_norm:
        x = norm(t, c, x, "embeddings.LayerNorm", part="embedding")
    if m.position_embedding == "disentangled":
        return distances(t, c, x)
    x = op.dropout(t, x, o.embedding_dropout)
    t.hold(x)
    width = x.width
    if m.relative_attention_num_buckets:
        bias_of_distances(t, c)
    if m.embedding_size:
        t.part = "embedding_projection"
        x = projection(t, c, x, "embedding.projection", "embedded tokens", ("h",), ("e",), bias=True, cut="")
        t.part = "embedding"
    hidden_tokens(t, c, width)
    if m.position_embedding == "rope":
        # EuroBERT and Nomic hand positions to their layers, as Llama does
        tables(t, c, x.width, given=not m.head_transform or m.head_transform_bias)
    return x


def hidden_tokens(t: Tape, c: Context, width: int) -> None:
    """Masks that hide padding and what is far off: additive for eager attention, else boolean."""
    o = c.options
    if o.masked:
        c.given(t, "attention mask", c.rows, INT64)
    eager = o.attention == "eager"
    for name, reach in reaches(c.model).items():
        if o.masked or c.model.explicit_mask or (o.windowed and reach.limited):
            rows = "b" if eager or o.masked or c.model.explicit_mask else 1
            dims: Dims = (rows, c.queries, c.keys)
            if c.model.spatial_positions:  # LayoutLM adds one row for all queries
                dims, eager = ("b", c.keys), True
            mask = t.tensor("mask", dims, width if eager else 1)
            t.run("mask", (), (mask,), (), ())
            t.hand_out(mask)
            c.masks[name] = mask


def _segments_and_positions(t: Tape, c: Context, x: Tensor, narrow: Dims) -> Tensor:
    """RoBERTa counts positions from the ids, one row per sequence; BERT has them at hand."""
    m, o = c.model, c.options
    counted = m.position_offset > 0
    rows: Dims = ("b" if counted else 1, c.queries)
    t.buffer("position ids", ("P",), INT64)
    if counted:
        positions = t.tensor("position ids", rows, INT64)
        t.run("cumsum", (), (positions,), (), ())
    else:
        positions = t.tensor("position ids", rows, INT64, origin=PARAMETER)  # a slice of the buffer
    if m.spatial_positions:
        return _in_boxes(t, c, x, positions, narrow)
    table = t.parameter(
        "position_embeddings.weight", ("P", *narrow), o.width, o.base_trained, part="position_embedding"
    )
    if m.type_vocab_size and m.segments_given:
        x = _segments(t, c, x, narrow, c.rows)
    elif m.type_vocab_size:
        t.buffer("token type ids", ("P",), INT64)
        x = _segments(t, c, x, narrow, rows)
    where = op.embedding(t, positions, table, "embedded positions", (*rows, *narrow))
    return op.add(t, x, where, "embedded") if counted else op.add_broadcast(t, x, where, "embedded")


def _in_boxes(t: Tape, c: Context, x: Tensor, positions: Tensor, narrow: Dims) -> Tensor:
    """LayoutLM: each token has a box on the page, whose corners and sides are looked up as its number is."""
    m, o = c.model, c.options
    boxes = t.tensor("boxes", (*c.rows, 4), INT64)
    t.run("zeros", (), (boxes,), (), ())
    types = t.tensor("token type ids", c.rows, INT64)
    t.run("zeros", (), (types,), (), ())
    found: list[Tensor] = []

    def look_up(name: str, rows: int | str, at: Tensor, part: str = "position_embedding") -> Parameter:
        dims: Dims = (rows, *narrow)
        table = t.parameter(f"{name}_embeddings.weight", dims, o.width, o.base_trained, part=part)
        found.append(op.embedding(t, at, table, "embedded positions", (*at.dims, *narrow)))
        return table

    look_up("position", "P", positions)
    corner = [t.view(boxes, "corner", c.rows) for _ in range(4)]
    tables = [look_up(f"{axis}_position", m.spatial_positions, corner[i]) for i, axis in enumerate("xy")]
    t.use_again(tables)
    for i in (2, 3):
        look_up("corner", m.spatial_positions, corner[i])
    for axis in "hw":
        side = t.tensor("sides of boxes", c.rows, INT64)
        t.run("sub", (boxes,), (side,), (), ())
        look_up(f"{axis}_position", m.spatial_positions, side)
    look_up("token_type", m.type_vocab_size, types, "token_type_embedding")
    y = op.add_broadcast(t, x, found[0], "embedded")
    for one in found[1:]:
        y = op.add(t, y, one, "embedded")
    t.use(boxes, types, *found)
    return y


def _rotated_later(t: Tape, c: Context, ids: Tensor, x: Tensor, narrow: Dims) -> Tensor:
    """Tokens whose places the layers tell by rotation; numbers of them are a buffer all the same."""
    m = c.model
    if m.type_vocab_size and ROTATIONS[m.rotary_style].table:
        return _segments(t, c, x, narrow, c.rows)
    if m.type_vocab_size:
        t.buffer("position ids", ("P",), INT64)
        t.buffer("token type ids", ("P",), INT64)
        return _segments(t, c, x, narrow, c.rows)
    if m.embedding_scaling == "unmasked":
        t.buffer("position ids", ("P",), INT64)
        return _without_masked(t, c, ids, x)
    return x


def _segments(t: Tape, c: Context, x: Tensor, narrow: Dims, rows: Dims) -> Tensor:
    """An embedding of each token's segment added; whose ids are zeros where none are given."""
    m, o = c.model, c.options
    types = t.tensor("token type ids", rows, INT64)
    t.run("gather", (), (types,), (), ())
    segments = t.parameter(
        "token_type_embeddings.weight",
        (m.type_vocab_size, *narrow),
        o.width,
        o.base_trained,
        part="token_type_embedding",
    )
    return op.add(t, x, op.embedding(t, types, segments, "embedded segments", x.dims), "embedded")


def _without_masked(t: Tape, c: Context, ids: Tensor, x: Tensor) -> Tensor:
    """ESM: tokens that are masked become zeros, and the rest of each sequence as much larger, in fp32."""
    masked = t.tensor("masked tokens", (*c.rows, 1), 1)
    t.run("eq", (ids,), (masked,), (), ())
    out = t.tensor("embedded", x.dims, x.width, x.grad)
    x = t.record("masked_fill", (x, masked), out, (masked,), ((x, NEW),))
    x = op.scale(t, x)
    shares = t.tensor("share of tokens that are not masked", ("b", 1, 1), FP32)
    t.run("rsub", (), (shares,), (), ())
    scaled = t.tensor("embedded", x.dims, FP32, x.grad)
    t.record("div", (x, shares), scaled, (shares,), ((x, NEW if x.width == FP32 else PROMOTED),))
    return op.cast(t, scaled, c.options.width)


def image_stem(t: Tape, c: Context, _: Tensor) -> Tensor:
    """An image cut into patches, each a token, behind one token for the whole; positions are added."""
    m, o = c.model, c.options
    t.part = t.module = "embedding"
    side, patch, channels = m.image_size, m.patch_size, m.num_channels
    image = c.given(t, "image", ("b", channels, side, side), FP32)
    pixels = op.cast(t, image, o.width)
    if pixels is not image:
        t.hold(pixels)  # by the name of what was given
    dims: Dims = ("h", channels, patch, patch)
    w = t.parameter("patch_embeddings.weight", dims, o.width, o.base_trained, role="convolution")
    bias = t.parameter("patch_embeddings.bias", ("h",), o.width, o.base_trained)
    patches = convolution(t, pixels, w, bias, "patches", ("b", "h", (side // patch) ** 2))
    if o.input_leaf:
        t.make_leaf(patches)
    whole = t.parameter("cls_token", (1, "h"), o.width, o.base_trained)
    x = join(t, (whole, patches), "tokens", c.hidden)
    table = t.parameter("position_embeddings", ("P", "h"), o.width, o.base_trained, part="position_embedding")
    x = op.dropout(t, op.add_broadcast(t, x, table, "embedded"), o.embedding_dropout)
    t.hold(x)
    return x


def encoder_tail(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Final norm where there is one, then the head that the model has."""
    t.frees_input = t.final = True
    t.module = "final_norm"
    if c.model.final_norm:
        x = norm(t, c, x, "layernorm")
    t.part = t.module = "lm_head"
    if c.model.pooler:
        with c.trained(c.model.head == "base"):  # else nothing comes of what it gives
            _pooler(t, c, x)
    y = HEADS[c.model.head](t, c, x)
    t.use(x)
    return y


def _pooler(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The first token through a linear layer and tanh."""
    return _dense(t, c, x, "tanh")


def _first_token(t: Tape, x: Tensor) -> Tensor:
    """``x[:, 0]``: a view; its backward is a tensor of zeros around the gradient."""
    first = t.view(x, "first token", ("b", "h"))
    t.run("select", (x,), (first,), (), ((x, NEW),) if x.grad else ())
    return first


def masked_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """A linear layer, activation and norm (where the head has them), then the table and a bias."""
    m, o = c.model, c.options
    narrow: Dims = ("e",) if m.embedding_size else ("h",)
    if m.bottleneck_size:
        narrow = ("h",)
    if m.head_embedding_size:
        narrow = (m.head_embedding_size,)
    y = x
    if m.head_transform:
        bias = m.mlp_bias or m.head_transform_bias
        y = projection(t, c, x, "head.transform", "transformed", narrow, ("h",), bias=bias)
        y = ACTIVATIONS[m.hidden_act](t, y)
        kind = "layer_norm" if m.norm in ("deberta_layer_norm", "no_norm") else ""
        y = norm(t, c, y, "transform.LayerNorm", part="lm_head", kind=kind)
    assert c.table is not None
    if m.bottleneck_size:
        t.loss = True
        return cross_entropy(t, c, logits_of_both(t, c, y), c.rows)
    w = c.table if m.tie_word_embeddings else head_weight(t, c, "decoder.weight", ("V", *narrow))
    shift = None
    if m.lm_head_bias:
        shift = t.parameter("decoder.bias", ("V",), o.width, w.grad or o.base_trained, "vocabulary")
    t.loss = True
    dims: Dims = (*c.rows, "V")
    if shift is not None and m.head_bias_added:
        logits = op.add_broadcast(t, op.linear(t, y, w, None, "logits", dims), shift, "logits")
    else:
        logits = op.linear(t, y, w, shift, "logits", dims, "mm" if shift is None else "addmm")
    return cross_entropy(t, c, logits, c.rows)


def head_weight(t: Tape, c: Context, name: str, dims: Dims) -> Parameter:
    """The weight of an output layer, which stays trained where only the head is."""
    o = c.options
    trained = o.base_trained or (o.training and o.trained == "frozen")
    return t.parameter(name, dims, o.width, trained, "vocabulary")


def image_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """A linear layer on the first token, one output per class."""
    first = _first_token(t, x)
    t.loss = True
    logits = projection(t, c, first, "head.classifier", "logits", ("V",), ("h",), bias=True)
    return cross_entropy(t, c, logits, ("b",))


def sequence_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``…ForSequenceClassification``: the first token through what the family puts before a linear layer."""
    y = op.dropout(t, CLASSIFIERS[c.model.classifier](t, c, x), c.options.hidden_dropout)
    t.loss = True
    classes = c.model.num_labels or PAIR
    logits = projection(t, c, y, "head.classifier", "logits", (classes,), ("h",), bias=True)
    return cross_entropy(t, c, logits, ("b",))


def _dense(
    t: Tape, c: Context, x: Tensor, activation: str, *, drops: bool = False, bias: bool = True
) -> Tensor:
    """The first token, dropped out first in some families, through a linear layer and an activation."""
    first = op.dropout(t, _first_token(t, x), drops and c.options.hidden_dropout)
    y = projection(t, c, first, "pooler", "pooled", ("h",), ("h",), bias=bias)
    saves = "output" if activation in ("tanh", "relu") else "input"
    return op.pointwise(t, activation, y, "pooled", saves=saves)


def _normed(t: Tape, c: Context, x: Tensor) -> Tensor:
    return norm(t, c, _dense(t, c, x, "gelu", bias=False), "head.norm", part="lm_head")


CLASSIFIERS: dict[str, Callable[[Tape, Context, Tensor], Tensor]] = {
    "pooled": _pooler,
    "dropped": lambda t, c, x: _dense(t, c, x, "tanh", drops=True),
    "dropped_gelu": lambda t, c, x: _dense(t, c, x, "gelu", drops=True),
    "relu": lambda t, c, x: _dense(t, c, x, "relu"),
    "normed": _normed,
}
"""What stands before the classifier, by ``classifier``."""


def no_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """The encoder's states themselves; what is trained on them is not the model's."""
    if not c.options.training:
        return x
    t.part = t.module = "loss"
    t.hold(x)
    return op.mean(t, x, ())


HEADS = {"masked": masked_head, "sequence": sequence_head, "image": image_head, "base": no_head}
"""What may stand on an encoder."""
