"""Rotary positions: their tables, and how each family's code turns queries and keys by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memgui.estimator import operators as op
from memgui.estimator.modules import fused
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.reach import REACHES, Reach, reaches
from memgui.estimator.modules.shorts import in_short
from memgui.estimator.tape import NEW, Dims, Tape, Tensor

FP32 = 4
COMPLEX64 = 8
INT64 = 8

ALONE = ("cohere_compass_text", "dory", "qwen4_exp_text")
"""Models whose layers are not handed the positions beside tables and masks."""

Tables = tuple[Tensor, ...]
Turn = Callable[[Tape, Context, Tensor, Tables], Tensor]


class Rotation(NamedTuple):
    """``turn`` rotates a tensor of heads by tables ``width`` wide.

    ``exact``: the tables are in fp32 whatever the model is in; ``single``: there is one, of complex
    numbers; ``written_out``: each layer makes wider tables of them first; ``looked_up``: they are rows
    of a buffer for every position there may be, or of a ``table`` among the weights; ``once``: frequencies
    are kept once, not beside a copy.
    """

    turn: Turn
    width: int | str = "p"
    exact: bool = False
    single: bool = False
    written_out: bool = False
    looked_up: bool = False
    table: bool = False
    once: bool = False


# -- in the stem ----------------------------------------------------------------------------------


def tables(t: Tape, c: Context, width: int, *, given: bool = True) -> None:
    """Tables of cosines and sines, once per step (in some models once for each reach).

    ``given``: the layers are handed the positions beside them.
    """
    rotation = ROTATIONS[c.model.rotary_style]
    where = positions(t, c, given=given)
    made: Tables = ()
    if c.model.sink_factor:  # Granite with windows keeps frequencies that no layer reads beside its own
        t.buffer("inv_freq", ("p",), FP32)
    for name, reach in reaches(c.model).items():
        if not reach.rotated:
            continue
        if c.variants:
            rotation = rotation._replace(width=_own_width(c, name, ROTATIONS[c.model.rotary_style].width))
        if not made or c.model.rotary_per_layer_type:
            made = (_looked_up if rotation.looked_up else _made)(t, c, rotation, where, width)
            t.hand_out(*dict.fromkeys(one.root for one in made))
        c.rotary[name] = made


def _own_width(c: Context, name: str, letter: int | str) -> int | str:
    """How wide the tables of layers with this reach are, where these have sizes of their own."""
    for mixer, (_, sizes) in c.variants.items():
        if REACHES[mixer].name == name:
            return sizes.values[str(letter)]
    return letter


def own_tables(t: Tape, c: Context, reach: Reach, width: int) -> Tables:
    """Tables that a layer makes for itself (RecurrentGemma), in the format of its values; else nothing."""
    if not c.model.rotary_in_layer or not reach.rotated:
        return ()
    where = t.tensor("position ids", (0,), INT64)
    made = c.rotary[reach.name] = _made(t, c, ROTATIONS[c.model.rotary_style], where, width)
    return made


def positions(t: Tape, c: Context, *, given: bool = True) -> Tensor:
    """The number of each token, which the model makes whether it is read or not."""
    made = t.tensor("position ids", (c.queries,), INT64)
    t.run("arange", (), (made,), (), ())
    (t.hand_out if given and c.model.model_type not in ALONE else t.hold)(made)
    return made


def _looked_up(t: Tape, c: Context, rotation: Rotation, positions: Tensor, width: int) -> Tables:
    """GPT-J: sines and cosines lie side by side."""
    if rotation.table:
        own = c.options.width
        t.parameter("embed_positions.weight", ("P", "p"), own, False, part="position_embedding")
    else:
        own = FP32
        t.buffer("embed_positions", ("P", "p"), own)
    rows = t.tensor("rotary sin and cos", (c.queries, "p"), own)
    t.run("index", (positions,), (rows,), (), ())
    rows = rows if rotation.exact else op.cast(t, rows, width)
    half: Dims = (c.queries, "p2")
    return op.split(t, rows, ("rotary cos", "rotary sin"), (half, half))


def _made(t: Tape, c: Context, rotation: Rotation, positions: Tensor, width: int) -> Tables:
    for _ in range(1 if rotation.once else 2):  # inv_freq, and the copy that schemes with scaling start from
        t.buffer("inv_freq", (rotation.width if c.variants else "p",), FP32 // 2)
    dims: Dims = (c.queries, rotation.width)
    if c.model.rotary_per_sequence:
        dims = ("b", *dims)
    angles = t.tensor("angles", dims, FP32)
    if c.model.rotary_learned:
        _learned(t, c, positions, angles)
    else:
        t.run("cat", (positions,), (angles,), (), ())
    if rotation.single:
        turns = t.tensor("rotary turns", dims, FP32)
        t.run("polar", (angles,), (turns,), (), ())
        scaled = t.tensor(turns.name, dims, FP32)
        t.run("mul", (turns,), (scaled,), (), ())
        t.use(angles)
        return (scaled,)
    made = tuple([_table(t, angles, name, FP32 if rotation.exact else width) for name in ("cos", "sin")])
    t.use(angles)
    return made


def _learned(t: Tape, c: Context, positions: Tensor, angles: Tensor) -> None:
    """Mistral Large 4: every frequency is multiplied by the exponential of a weight."""
    before, t.module = t.module, "rope"
    w = t.parameter("rotary_emb.alpha", ("p2",), FP32, c.options.base_trained, part="position_embedding")
    factors = op.pointwise(t, "exp", w, "factors", saves="output")
    frequencies = op.scale(t, factors, "frequencies")
    where = t.tensor("positions", (c.queries, 1), FP32)
    t.run("_to_copy", (positions,), (where,), (), ())
    half = op.mul(t, where, frequencies, "angles", (c.queries, "p2"))
    angles.grad = half.grad
    t.record("cat", (half,), angles, (), ((half, NEW),))
    t.module = before


def _table(t: Tape, angles: Tensor, name: str, width: int) -> Tensor:
    if angles.grad:
        before, t.module = t.module, "rope"
        made = op.cast(t, op.scale(t, op.pointwise(t, name, angles, f"rotary {name}", saves="input")), width)
        t.module = before
        return made
    exact = t.tensor(f"rotary {name}", angles.dims, FP32)
    t.run(name, (angles,), (exact,), (), ())
    scaled = t.tensor(exact.name, angles.dims, FP32)
    t.run("mul", (exact,), (scaled,), (), ())
    return op.cast(t, scaled, width)


# -- in a layer -----------------------------------------------------------------------------------


def rotate(t: Tape, c: Context, reach: Reach, *tensors: Tensor, detached: bool = False) -> tuple[Tensor, ...]:
    """Queries and keys (or what of them is rotated), turned as the model's code does it.

    ``detached``: no gradient goes back to the tables.
    """
    found = c.rotary.get(reach.name)
    if found is None or not reach.rotated:
        return tensors
    if detached and c.model.rotary_learned:
        found = tuple([t.view(one, one.name, one.dims) for one in found])
        for one in found:
            one.grad = False
    if c.options.fused:
        return tuple([_in_place(t, c, x, found) for x in tensors])
    rotation = ROTATIONS[c.model.rotary_style]
    turn, values = rotation.turn, c.sizes.values
    if rotation.written_out:
        found = tuple([_written_out(t, table) for table in found])
    if turn is _half and tensors[0].dims[-1] == "d" and values["p"] != values["d"]:
        turn = _part
    return tuple([turn(t, c, x, found) for x in tensors])


def _in_place(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """Liger's kernel; eager attention and heads that are repeated hand gradients back by heads."""
    o, sizes = c.options, c.sizes.values
    repeated = sizes[str(x.dims[-2])] != sizes["a"] and o.masked
    copied = o.attention == "eager" or repeated
    return fused.rope_in_place(t, x, found, copied=copied, sliced=c.model.fused_qkv)


def _half(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """Llama: ``x * cos + rotate_half(x) * sin``; said in short where all is in one format."""
    cos, sin = found
    if t.ordered or not x.grad or cos.grad or x.width != cos.width:
        return _rotated(t, c, x, cos, sin)
    y = t.tensor(x.name, x.dims, x.width, True)
    y.layout = x.layout
    size = y.coefficient
    # Both products, what is crossed and half of it; backward what comes to that, and a whole of each slice.
    return in_short(
        t, c, _rotated, (x, cos, sin), (), (y,), (cos, sin), ((x, NEW), (x, NEW)), 7 * size // 2, 2 * size
    )


def _rotated(t: Tape, c: Context, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The same, operator by operator."""
    straight = op.mul(t, x, cos, x.name, x.dims)
    crossed = op.mul(t, op.rotate_half(t, x), sin, x.name, x.dims)
    return op.add(t, straight, crossed, x.name)


def _half_in_fp32(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """OLMo: the tables are in fp32, and so is what they are multiplied with."""
    return op.cast(t, _half(t, c, x, found), x.width)


def _half_upcast(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """ModernBERT: as Llama, of what has been cast to fp32 twice."""
    cos, sin = found
    straight = op.mul(t, op.cast(t, x, FP32), cos, x.name, x.dims)
    crossed = op.mul(t, op.rotate_half(t, op.cast(t, x, FP32)), sin, x.name, x.dims)
    return op.cast(t, op.add(t, straight, crossed, x.name), x.width)


def _part(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """NeoX, Phi 3: the first part of each head as Llama does, then both parts put together again."""
    turned = op.piece(t, x, x.name, (*x.dims[:-1], "p"))
    rest = op.piece(t, x, x.name, (*x.dims[:-1], "dp"))
    return op.cat(t, (_half(t, c, turned, found), rest), x.name, x.dims)


def _part_in_layer(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """Phi, StableLM: attention's own code does the same, and refers to both parts until it returns."""
    y = _part(t, c, x, found)
    c.named += t.written[-1].ins
    return y


def _part_by_token(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """GPT-J: neighbours are turned together, before heads and tokens trade places; tables for each."""
    y = _part_in_layer(t, c, x, tuple([_written_out(t, table) for table in found]))
    y.layout = x.layout
    return y


def _part_in_fp32(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """CodeGen: as GPT-J, by tables in fp32; then back to the format of the values."""
    return op.cast(t, _part_by_token(t, c, x, found), x.width)


def _written_out(t: Tape, table: Tensor) -> Tensor:
    out = t.tensor(table.name, (*table.dims[:-1], "p"), table.width)
    return t.record("repeat_interleave", (table,), out, (), ())


def _pairs_upcast(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """ERNIE 4.5: neighbours are turned together, cast to fp32 once as they are and once crossed."""
    cos, sin = found
    straight = op.mul(t, op.cast(t, x, FP32), cos, x.name, x.dims)
    crossed = op.mul(t, op.cast(t, op.rotate_half(t, x), FP32), sin, x.name, x.dims)
    return op.cast(t, op.add(t, straight, crossed, x.name), x.width)


def _pairs_in_fp32(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """Cohere: neighbours are turned together, in fp32."""
    return op.cast(t, _half(t, c, op.cast(t, x, FP32), found), x.width)


def _quarters(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """gpt-oss: four products of half a head each, put together."""
    half = (*x.dims[:-1], "p2")
    return _of_quarters(t, x, op.split(t, x, (x.name, x.name), (half, half)), found)


def _quarters_of_pairs(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """DeepSeek-V3: the same, of every second element each."""
    half = (*x.dims[:-1], "p2")
    return _of_quarters(t, x, (op.piece(t, x, x.name, half), op.piece(t, x, x.name, half)), found)


def _of_quarters(t: Tape, x: Tensor, halves: tuple[Tensor, ...], found: Tables) -> Tensor:
    (first, second), (cos, sin) = halves, found
    half = first.dims
    one = op.minus(t, op.mul(t, first, cos, x.name, half), op.mul(t, second, sin, x.name, half))
    other = op.add(t, op.mul(t, second, cos, x.name, half), op.mul(t, first, sin, x.name, half), x.name)
    return op.cat(t, (one, other), x.name, x.dims)


def _complex(t: Tape, c: Context, x: Tensor, found: Tables) -> Tensor:
    """DeepSeek-V2, Llama 4: neighbours are one complex number, in fp32."""
    x32 = op.cast(t, x, FP32)
    y32 = op.mul(t, x32, found[0], x.name, x.dims)
    return op.cast(t, y32, x.width)


ROTATIONS = {
    "half": Rotation(_half),
    "half_fp32": Rotation(_half_in_fp32, exact=True),
    "half_upcast": Rotation(_half_upcast),
    "half_upcast_once": Rotation(_half_upcast, once=True),
    "part": Rotation(_part),
    "part_in_layer": Rotation(_part_in_layer),
    "pairs": Rotation(_half, written_out=True),
    "pairs_upcast": Rotation(_pairs_upcast, exact=True, written_out=True),
    "pairs_part": Rotation(_part, written_out=True),
    "pairs_part_by_token": Rotation(_part_by_token, looked_up=True),
    "pairs_part_fp32": Rotation(_part_in_fp32, exact=True, looked_up=True),
    "pairs_of_table": Rotation(_half, written_out=True, looked_up=True, table=True),
    "pairs_fp32": Rotation(_pairs_in_fp32),
    "quarters": Rotation(_quarters, "p2"),
    "pairs_quarters": Rotation(_quarters_of_pairs),
    "complex": Rotation(_complex, exact=True, single=True),
}
"""How rotations are written, by ``rotary_style``."""
