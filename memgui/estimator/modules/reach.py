"""What a layer's attention sees: all tokens before, a window or a chunk; masks for it."""

from __future__ import annotations

import msgspec

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import ALIAS, BY_HEAD, NEW, Dims, Tape, Tensor
from memgui.spec.model import ModelSpec

FLASH_2 = "flash_attention_2"
FLEX = "flex_attention"


class Reach(msgspec.Struct, frozen=True):
    """``name`` finds the layer's mask and rotary tables; ``rotated``: it has rotary positions at all.

    ``indexed``: only chosen tokens are looked at; ``indexer``: the layer itself chooses them, ``by_head`` for
    each head, with no mask of all layers beside, ``pooled`` in blocks for all heads together,
    ``grouped`` in blocks by the keys that these have.
    ``lends``: later layers with this reach, which ``borrows`` is true of, use the layer's keys and values.
    """

    name: str
    rotated: bool = True
    indexed: bool = False
    indexer: bool = False
    by_head: bool = False
    pooled: bool = False
    grouped: bool = False
    lends: bool = False
    borrows: bool = False

    @property
    def limited(self) -> bool:
        """It ends before the first token, so that only as much is cached."""
        return self.name != "full"


FULL = Reach("full")
SLIDING = Reach("sliding")
CHUNKED = Reach("chunked")
UNROTATED = Reach("full", rotated=False)

REACHES = {
    "full_attention": FULL,
    "sliding_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "unrotated_attention": UNROTATED,
    "windowed_attention": SLIDING,
    "compressed_sparse_attention": SLIDING,
    "heavily_compressed_attention": SLIDING,
    "attention_mamba2": FULL,
    "shared_mamba2": FULL,
    "indexed_attention": Reach("full", indexed=True, indexer=True),
    "shared_indexed_attention": Reach("full", indexed=True),
    "unrotated_indexed_attention": Reach("full", rotated=False, indexed=True, indexer=True),
    "unrotated_shared_indexed_attention": Reach("full", rotated=False, indexed=True),
    "pooled_indexed_attention": Reach("full", indexed=True, indexer=True, pooled=True),
    "grouped_indexed_attention": Reach("full", rotated=False, indexed=True, indexer=True, grouped=True),
    "block_indexed_attention": Reach("full", indexed=True, indexer=True, by_head=True),
    "lending_attention": Reach("full", lends=True),
    "borrowing_attention": Reach("full", borrows=True),
    "lending_sliding_attention": Reach("sliding", lends=True),
    "borrowing_sliding_attention": Reach("sliding", borrows=True),
}
"""The reach of each mixer that has attention."""

LENDING = {"lending_attention": "full_attention", "lending_sliding_attention": "sliding_attention"}
"""What those are like in all else whose keys and values later layers use."""


def reaches(model: ModelSpec) -> dict[str, Reach]:
    """The reaches that ``model`` has, by name."""
    found: dict[str, Reach] = {}
    for mixer in dict.fromkeys(model.layer_types or ("full_attention",)):
        reach = REACHES.get(mixer)
        if reach is not None and (reach.name not in found or reach.rotated):
            found[reach.name] = reach
    return found


def is_masked(c: Context, reach: Reach) -> bool:
    """Whether SDPA is given a mask: one for padding, one for a limit that is reached, one in any case."""
    o = c.options
    if o.attention == FLASH_2:  # is told a window instead, and padding is taken out before
        return False
    given = o.masked or o.static or c.model.explicit_mask or reach.indexed or c.bias is not None
    given = given or c.keys == "sv"  # more keys than queries
    return given or (o.windowed and reach.limited)


def masks(t: Tape, c: Context, width: int) -> None:
    """The masks of a prompt: additive ones for eager attention, boolean ones for SDPA where it needs one."""
    o = c.options
    eager = o.attention == "eager" and not o.decode
    rows = "b" if eager or o.masked else 1  # a boolean mask without padding is one for all sequences
    dims: Dims = (rows, c.queries, c.keys)
    for name, reach in reaches(c.model).items():
        if eager or (is_masked(c, reach) and (o.masked or not reach.by_head)):
            additive = eager and c.model.score_masking != "filled"
            mask = t.tensor("mask", dims, width if additive else 1)
            t.run("mask", (), (mask,), (), ())
            if c.alibi is not None and c.model.explicit_mask:
                mask = _with_alibi(t, c, mask, c.alibi)
            t.hand_out(mask)
            c.masks[name] = mask


def _with_alibi(t: Tape, c: Context, mask: Tensor, alibi: Tensor) -> Tensor:
    """Falcon: ALiBi put into the mask, which is additive then and one for each head."""
    scaled = op.scale(t, alibi)
    both = t.tensor("mask", ("b", "a", c.queries, c.keys), alibi.width)
    t.run("masked_fill", (scaled, mask), (both,), (), ())
    return both


def biased_mask(t: Tape, c: Context, hidden: Tensor | None) -> Tensor | None:
    """A bias by distance as the mask: put in order by heads, with what is hidden set to the least number.

    Without a bias the mask stays what it is.
    """
    bias = c.bias
    if bias is None:
        return hidden
    dims: Dims = ("a", c.queries, c.keys)
    if hidden is None and c.causal and not c.options.decode:
        hidden = t.tensor("causal mask", (c.queries, c.keys), 1)
        t.run("ge", (), (hidden,), (), ())
    mask = bias
    if hidden is not None:
        dims = ("b", *dims) if hidden.dims[0] == "b" else dims
        mask = t.tensor("position bias, masked", dims, bias.width, bias.grad)
        mask.layout = bias.layout
        t.record("where", (hidden, bias), mask, (hidden,), ((bias, NEW),))
    return mask if mask.layout == BY_HEAD else op.clone(t, mask, "mask in every layer", dims, BY_HEAD)


def converted_mask(t: Tape, c: Context, given: Tensor | None, width: int) -> Tensor:
    """The boolean mask as the additive one that a kernel wants, made anew in every layer.

    One that is additive already is taken as it is.
    """
    if given is not None and given.width > 1:
        return op.cast(t, given, width)
    mask = t.tensor("mask in every layer", ("b", c.queries, c.keys), width)
    return t.record("mask", (given,) if given is not None else (), mask, (), ())


def aligned_mask(t: Tape, c: Context, mask: Tensor) -> Tensor:
    """``mask`` as the memory-efficient kernel takes it: every row begins at a multiple of 8 elements.

    Where the number of keys is none, PyTorch 2.13 (``pad_bias``) pads the mask, in any format, and the
    kernel sees a piece of the copy.  It makes the gradient in rows of whole 16 elements.
    """
    if c.is_ragged(c.keys):
        padded = t.tensor(mask.name, (*mask.dims[:-1], c.rounded(c.keys, 8)), mask.width, mask.grad)
        t.record("constant_pad_nd", (mask,), padded, (), ((mask, NEW),))
        mask = op.piece(t, padded, mask.name, mask.dims)
    return spread_mask(t, c, mask, c.rounded(c.keys, 16) if mask.grad else c.keys)


def spread_mask(t: Tape, c: Context, mask: Tensor, keys: int | str = "") -> Tensor:
    """A bias for all sequences as one for each, whose gradient has rows of ``keys``."""
    whole = mask.dims[0] == "b" or c.bias is None
    if whole and not mask.grad:
        return mask
    dims: Dims = (*(mask.dims if whole else ("b", *mask.dims))[:-1], keys or c.keys)
    wide = t.view(mask, "mask in every layer", dims)
    kept = whole or c.options.one_sequence
    t.run("expand", (mask,), (wide,), (), ((mask, ALIAS if kept else NEW),) if mask.grad else ())
    return wide


def alibi(t: Tape, c: Context, dims: Dims, width: int) -> None:
    """ALiBi's slopes times positions, made once for all layers."""
    slopes = t.tensor("slopes", dims, op.FP32)
    t.run("mul", (), (slopes,), (), ())
    c.alibi = op.cast(t, slopes, width)
    t.hand_out(c.alibi)
