"""Attention over heads: projections, rotary positions, and the implementation that computes it."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator import operators as op
from memgui.estimator.alike import alike, own
from memgui.estimator.mixing import softplus
from memgui.estimator.modules.cache import cached, counter, joined, prefixed
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.norm import WITHOUT_WEIGHT, norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import FULL, Reach
from memgui.estimator.modules.rotary import own_tables, rotate
from memgui.estimator.modules.scales import squared
from memgui.estimator.tape import BY_HEAD, Dims, Tape, Tensor

INT64 = 8
FP32 = 4
HEADS: Dims = ("a", "d")
SHARED: Dims = ("k", "d")
OWN_VALUES: Dims = ("k", "dv")


def attention(
    t: Tape,
    c: Context,
    x: Tensor,
    reach: Reach = FULL,
    prepare: Callable[[Tape, Context], None] | None = None,
) -> Tensor:
    """Self-attention as transformers writes it, up to and with the output projection.

    ``prepare`` comes before the scores.
    """
    m, o = c.model, c.options
    t.part = "attention"
    gate = opening = None
    if reach.borrows or _common(c):
        return _plain(t, c, x, reach)
    if m.fused_qkv:
        q, k, v = _fused(t, c, x)
        q, k = _normed(t, c, q, "q"), _normed(t, c, k, "k")
    else:
        q, gate = _query(t, c, x)
        k, v = _key_and_value(t, c, x)
        if m.clip_qkv:
            q, k, v = op.clamp_in_place(t, q), op.clamp_in_place(t, k), op.clamp_in_place(t, v)
        if m.attention_gate == "elementwise":
            opening = projection(t, c, x, "attention.gate", "gate", HEADS, ("h",))
        q, k, v = by_head(t, c, q), by_head(t, c, k), by_head(t, c, v)
    tables = own_tables(t, c, reach, v.width)
    q, k = rotate(t, c, reach, q, k)
    if m.qk_norm == "head_rotated":
        q, k = (norm(t, c, one, f"{name}_norm", part="qk_norm") for name, one in (("q", q), ("k", k)))
    if m.qk_norm == "plain" and reach.rotated:
        q = norm(t, c, q, "q_norm", part="qk_norm", kind="plain_rms_norm")
        k = norm(t, c, k, "k_norm", part="qk_norm", kind="plain_rms_norm")
    if m.channel_scales:
        q = op.mul(t, q, squared(t, c, "sqk", HEADS), "q", q.dims)
    if m.query_temperature and not reach.rotated:
        q = _tempered(t, c, q)
    elif m.query_temperature and "unrotated_attention" not in m.layer_types:
        scales = t.tensor("attention scales", (1, c.queries, 1, 1), FP32)
        t.run("log", (), (scales,), (), ())
        q = op.mul(t, q, op.cast(t, scales, q.width), "q", q.dims)
    if c.prefix is not None:
        k, v = prefixed(t, c, k), prefixed(t, c, v)
    elif o.cache:
        if reach.limited:
            counter(t, c)
        k, v = cached(t, c, k, reach), cached(t, c, v, reach)
    elif o.decode:
        k, v = joined(t, c, k, reach), joined(t, c, v, reach)
    t.keys_and_values = k, v
    if reach.lends:
        lend(t, c, reach, k, v)
    if prepare is not None:
        prepare(t, c)
    mask = None
    if m.dynamic_mask:
        from memgui.estimator.modules.dynamic import dynamic_mask

        mask = dynamic_mask(t, c, x, v, reach)
    elif reach.pooled:
        from memgui.estimator.modules.pooled import pooled_mask

        mask = pooled_mask(t, c, x, reach)
    elif reach.indexed:
        from memgui.estimator.modules.blocks import block_mask

        mask = block_mask(t, c, x, reach, q.width)
    if m.differential:
        from memgui.estimator.modules.differential import differential

        y = differential(t, c, q, k, v, reach)
    else:
        y = attend(t, c, q, k, v, reach, mask)
    if mask is not None:
        t.use(mask)
    if gate is not None:
        opened = op.pointwise(t, "sigmoid", gate, "gate", saves="output")
        y = op.mul(t, y, opened, "gated", y.dims)
        t.use(gate)
    if m.attention_gate == "elementwise":
        assert opening is not None
        scaled = opening
        if m.channel_scales:
            scaled = op.mul(t, opening, squared(t, c, "s_gate", HEADS), "gate", opening.dims)
        y = op.mul(t, y, op.pointwise(t, "sigmoid", scaled, "gate", saves="output"), "gated", y.dims)
        t.use(opening)
    elif m.attention_gate == "elementwise_biased":
        opening = projection(t, c, x, "attention.gate", "gate", HEADS, ("h",))
        bias = t.parameter("attention.gate_bias", ("a",), o.width, o.base_trained)
        opening = op.add_broadcast(t, opening, bias, "gate")
        y = op.mul(t, y, op.pointwise(t, "sigmoid", opening, "gate", saves="output"), "gated", y.dims)
        t.use(opening)
    elif m.attention_gate == "per_head":
        opened = op.cast(t, projection(t, c, x, "attention.gate", "gate", ("a",), ("h",)), FP32)
        opened = op.cast(t, softplus(t, opened), y.width)
        gated = op.mul(t, y, opened, "gated", y.dims)
        t.use(y, opened)
        y = gated
    elif m.attention_gate == "per_head_sigmoid":
        opened = projection(t, c, x, "attention.gate", "gate", ("a",), ("h",))
        y = op.mul(t, y, op.pointwise(t, "sigmoid", opened, "gate", saves="output"), "gated", y.dims)
    if m.inner_norms:
        y = norm(t, c, y, "attn_sub_norm", axes=2)
    seen = y
    wide: Dims = ("a", "dv") if m.v_head_dim else HEADS
    y = projection(t, c, y, "attention.o", "output", ("h",), wide, bias=m.attention_output_bias, cut="row")
    t.use(q, k, v, x, *tables, *c.named)
    c.named.clear()
    c.give(seen)
    drops = o.hidden_dropout and "feed_forward" not in m.dropouts
    return op.dropout(t, y, drops and not m.joined_branches)


def _tempered(t: Tape, c: Context, q: Tensor) -> Tensor:
    """Llama 4: queries scaled by a number for each position, made in the layer, in fp32.

    Beam's are made once for all layers.
    """
    if c.temperatures is not None:
        return op.cast(t, op.mul(t, op.cast(t, q, FP32), c.temperatures, "q", q.dims), q.width)
    scales = t.tensor("attention scales", (1, c.queries, 1, 1), FP32)
    t.run("log1p", (), (scales,), (), ())
    return op.cast(t, op.mul(t, q, scales, "q", q.dims), q.width)


# -- queries, keys and values ----------------------------------------------------------------------


def _query(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Queries, and with them the gate on attention's output where there is one."""
    m = c.model
    gate = None
    if m.attention_output_gate:
        both = projection(t, c, x, "attention.q", "q", ("a", 2, "d"), ("h",), bias=m.attention_bias)
        q, gate = op.split(t, both, ("q", "gate"), ((*c.rows, *HEADS), (*c.rows, *HEADS)))
        gate = op.clone(t, gate)
    else:
        q = projection(t, c, x, "attention.q", "q", HEADS, ("h",), bias=m.attention_bias)
    if m.query_scaling:
        q = op.scale(t, q)
    return _normed(t, c, q, "q"), gate


def _key_and_value(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor]:
    m = c.model
    made = projection(t, c, x, "attention.k", "k", SHARED, ("h",), bias=m.attention_bias and m.key_bias)
    v = made if m.keys_are_values else None
    k = _normed(t, c, made, "k")
    if m.mup_scaling:
        k = op.scale(t, k)
    if v is None:
        values = OWN_VALUES if m.v_head_dim else SHARED
        v = projection(t, c, x, "attention.v", "v", values, ("h",), bias=m.attention_bias)
    if m.value_scaling:
        v = op.scale(t, v)
    if m.value_norm:
        v = norm(t, c, v, "v_norm", part="qk_norm", kind=WITHOUT_WEIGHT[m.norm])
    return k, v


def lend(t: Tape, c: Context, reach: Reach, k: Tensor, v: Tensor) -> None:
    """Keep keys and values for later layers."""
    c.lent[reach.name] = k, v
    t.hand_out(k, v)
    c.handed += k, v
    t.refer(k, passing=True)
    t.refer(v, passing=True)


def _common(c: Context) -> bool:
    """Whether many kinds of layers have attention in common, and it is queries, keys and values alone."""
    m, o = c.model, c.options
    if not m.altup_num_inputs or not o.training:
        return False
    plain = m.rotary_style == "half" and m.qk_norm in ("none", "head") and m.attention_gate == "none"
    more = m.fused_qkv or m.clip_qkv or m.attention_output_gate or m.heads_in_order or m.inner_norms
    more = more or m.rotary_in_layer or m.query_temperature or c.prefix is not None or c.names_given
    return plain and not (more or o.cache or o.hidden_dropout)


def _plain(t: Tape, c: Context, x: Tensor, reach: Reach) -> Tensor:
    """Attention whose stretches kinds of layers have in common, of keys and values of its own or borrowed."""
    tables = c.rotary.get(reach.name, ()) if reach.rotated else ()
    if reach.borrows:
        (q,), _ = alike(t, c.common, "queries", lambda: rotate(t, c, reach, _query(t, c, x)[0]), x, *tables)
        k, v = c.lent[reach.name]
    else:
        made, _ = alike(t, c.common, "queries, keys and values", lambda: _turned(t, c, x, reach), x, *tables)
        q, k, v = made
        t.keys_and_values = k, v
        if reach.lends:
            lend(t, c, reach, own(t, k), own(t, v))

    def seen() -> tuple[Tensor, ...]:
        y = attend(t, c, q, k, v, reach)
        bias = c.model.attention_output_bias
        y = projection(t, c, y, "attention.o", "output", ("h",), HEADS, bias=bias, cut="row")
        t.use(q, k, v, x)
        return (y,)

    (y,), _ = alike(t, c.common, "attention", seen, x, q, k, v, variant=reach.name)
    return y


def _turned(t: Tape, c: Context, x: Tensor, reach: Reach) -> tuple[Tensor, ...]:
    """Queries, keys and values, rotated."""
    q, _ = _query(t, c, x)
    k, v = _key_and_value(t, c, x)
    return (*rotate(t, c, reach, q, k), v)


def by_head(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Queries, keys or values put in order by heads, where the family's code does it."""
    return op.clone(t, x, layout=BY_HEAD) if c.model.heads_in_order else x


def _normed(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    """Queries or keys after their norm: of each head (with weights shared or its own) or of all together."""
    m, called = c.model, f"{name}_norm"
    match m.qk_norm:
        case "head":
            return norm(t, c, x, called, part="qk_norm", bias=m.qk_norm_bias)
        case "per_head":
            y = norm(t, c, x, called, part="qk_norm", own=1, bias=m.qk_norm_bias)
            if m.norm == "layer_norm":  # StableLM has a norm module for each head, and joins their outputs
                y = op.clone(t, y, layout=BY_HEAD)
            return y
        case "full":
            return norm(t, c, x, called, part="qk_norm", axes=2, bias=m.qk_norm_bias)
    return x


def _fused(t: Tape, c: Context, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One projection, taken apart as the family's code does it."""
    m = c.model
    qkv = projection(t, c, x, "attention.qkv", "qkv", ("g", "d"), ("h",), bias=m.attention_bias)
    if m.clip_qkv:
        qkv = op.clamp(t, qkv)
    q, k, v = ((*c.rows, *HEADS), (*c.rows, *SHARED), (*c.rows, *SHARED))
    if m.fused_qkv_split in ("split", "copied"):
        queries, keys, values = op.split(t, qkv, ("q", "k", "v"), (q, k, v))
        if m.fused_qkv_split == "copied":  # CodeGen's heads lie in pieces of the projection
            return op.clone(t, queries), op.clone(t, keys), op.clone(t, values)
        return queries, keys, values
    if m.fused_qkv_split == "slices":
        return op.piece(t, qkv, "q", q), op.piece(t, qkv, "k", k), op.piece(t, qkv, "v", v)
    queries = op.piece(t, qkv, "q", q)
    c.named.append(qkv)
    keys, values = _chosen(t, qkv, "k", k), _chosen(t, qkv, "v", v)
    if m.cached_key_value_heads is not None:  # Falcon's new decoder: one head for each query head
        queries = op.clone(t, queries)  # flattened
        keys, values = (op.clone(t, one, one.name, q) for one in (keys, values))
    return queries, keys, values


def _chosen(t: Tape, qkv: Tensor, name: str, dims: Dims) -> Tensor:
    """``qkv[..., [i], :]``: a list as index becomes a tensor, and the result a copy."""
    at = t.tensor("index", (1,), INT64)
    t.run("_to_copy", (), (at,), (), ())
    return op.index(t, qkv, at, name, dims)
