"""Layers of which some run several times, each time behind the norm of what it is given (Dory)."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.layers import LayerPlan, Writer
from memgui.estimator.modules.norm import norm
from memgui.estimator.tape import Tape, Tensor
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec

Runs = list[tuple[LayerPlan, int]]


def entered(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Before the first loop: the norm of the input's layers, which every loop is given, and the sum."""
    t.part = "norm"
    c.entered = norm(t, c, x, "norm")
    t.hand_out(c.entered)
    return _again(t, c, x)


def _again(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Before a loop: ``norm(x)`` and what the layers before all loops gave."""
    assert c.entered is not None
    t.part = "norm"
    return op.add(t, norm(t, c, x, "norm"), c.entered, "residual stream")


BETWEEN = QT_TRANSLATE_NOOP("estimator", "between loops")
FIRST = LayerPlan("loop.first", BETWEEN, (("loop.first", entered),), apart=True)
FURTHER = LayerPlan("loop", BETWEEN, (("loop", _again),), apart=True)


def looped(found: Runs, model: ModelSpec) -> Runs:
    """The layers of ``model``, of which some run several times: the first time they own their weights."""
    before, within, loops = model.n_input_layers, model.n_recurrent_layers, model.n_recurrent_loops
    once = model.recurrent_kv_cache_mode == "last_loop"
    each = [layer for layer, many in found for _ in range(many)]
    last = [(layer, 1) for layer in each[before + within :]]
    runs = [(layer, 1) for layer in each[:before]]
    for loop in range(loops):
        runs.append((FURTHER if loop else FIRST, 1))
        lends = once and loop < loops - 1
        runs += [(_run(layer, n, loop, lends), 1) for n, layer in enumerate(each[before : before + within])]
    return runs + last


def _run(layer: LayerPlan, number: int, loop: int, uncached: bool) -> LayerPlan:
    """A layer in a loop."""
    suffix = "" if loop else ".first"
    suffix = f".uncached{suffix}" if uncached else suffix
    blocks = [(f"{name}{suffix}", _uncached(write) if uncached else write) for name, write in layer.blocks]
    key = f"{layer.key}.{number}{suffix}"
    return layer._replace(key=key, blocks=tuple(blocks), weights=f"looped {number}")


def _uncached(write: Writer) -> Writer:
    return lambda t, c, x: write(t, c.uncached(), x)
