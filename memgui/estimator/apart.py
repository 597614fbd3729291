"""The most that PyTorch's allocator reserves in a training step, told from sizes alone.

Segments are kept, and what one kind of thing leaves free serves another only where it is large enough.  So
as much is counted as if nothing served another kind: weights, states, gradients, what waits for the backward
pass, what the optimizer's step holds, and what is there for a moment.  The last comes inside the loss, there
and back, or inside layers: these run back in what the loss has left.  So do gradients come, where each fits
into a block that the loss had.

Three things make it more.  A small block that comes to lie in the largest free one keeps that from the next
as large, which gets a segment of its own: the largest gradient, and what the loss keeps until it runs back,
count once more.  Gradients that are there while a further micro batch runs lie where the one before had what
it kept: such a block is cut as often as a gradient goes into it, and less than half of it is left over.  (So
do states that an optimizer makes in the first backward pass; it uses up each gradient at once, the
embedding's after those of all layers.)  And of the last segment of each pool hardly anything may be in use.

Segments that grow seldom need as much, but nothing closer holds: what lies between two blocks that stay is
lost to larger ones there too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memgui.estimator.overhead import LARGE_SEGMENT, SEGMENT_STEP
from memgui.estimator.points import Layer, Point, Row, Rows
from memgui.estimator.search import Heights
from memgui.estimator.stock import NOTHING

if TYPE_CHECKING:
    from memgui.estimator.moments import Amount
    from memgui.estimator.training import TrainingRun


def reserved_at_most(run: TrainingRun, base: Amount, heights: Heights, *, in_loss: bool) -> int:
    """Bytes of all segments, of which ``base`` is what stays through a micro batch.

    ``in_loss``: that is where the peak is.
    """
    a, walk, size = run.account, heights.walk, run.numbers.bytes
    ahead, behind = walk.way_forward.rows[-1], walk.loss_back
    assert isinstance(ahead, Point)
    before, after = size(ahead.live), size(behind.live)
    loss = heights.bound(ahead) - before + heights.bound(behind) - after
    layers = _in_layers(heights, in_loss=in_loss)
    waits = max(before, after)
    most = base.bytes + base.excess + run.loaded.unused + waits + a.step_bytes + a.largest
    if run.accumulates:
        most += size(run.named(walk))
    gradients = a.gradient_bytes + a.gradient_excess
    if base.components["gradients"] > a.buckets.bytes:
        most -= gradients
    if a.consumer is not None:
        most += min(waits // 2, a.state_bytes) + _before_layers(heights)
    if run.gradients_met:
        most += gradients + min(waits // 2, a.gradient_bytes)
    elif a.largest <= after - before:
        layers += gradients
    else:
        most += gradients
    return most + max(loss, layers) + LARGE_SEGMENT + SEGMENT_STEP


def _in_layers(heights: Heights, *, in_loss: bool) -> int:
    """What comes and goes inside layers, there and back, as if none of it served another."""
    walk, size = heights.walk, heights.numbers.bytes
    ahead = _layers(walk.way_forward.rows)
    forward = max([_inside(heights, one) - max(size(one.slope), 0) for one in ahead], default=0)
    beside = walk.beside_loss if in_loss else None
    if beside is not None:  # without a look at whose turn it is
        return forward + heights.back_inside(beside)
    behind = _layers(walk.way_backward.rows)
    return forward + max([_inside(heights, one) for one in behind], default=0)


def _before_layers(heights: Heights) -> int:
    """What comes while blocks before the layers run back."""
    points = [row for row in heights.walk.way_backward.rows[1:] if isinstance(row, Point)]
    return sum([heights.bound(point) - heights.numbers.bytes(point.live) for point in points])


def _layers(rows: Rows) -> Iterable[Layer]:
    """The layers in rows, each of those that are alike once."""
    return dict.fromkeys([layer for row in rows if isinstance(row, Row) for layer, _, _ in row.layers])


def _inside(heights: Heights, layer: Layer) -> int:
    """No less than is ever alive inside a layer."""
    loose = heights.loose(layer)
    return heights.bound(Point("", NOTHING, layer)) if loose is None else loose
