"""What a model consists of: stacks of layers, what stands before each of them, and the tail."""

from __future__ import annotations

from typing import NamedTuple

from memgui.estimator.modules.context import Context
from memgui.estimator.modules.encoders import encoder_tail, image_stem, text_stem
from memgui.estimator.modules.ends import stem, tail
from memgui.estimator.modules.layers import LayerPlan, Writer, plans


class StackPlan(NamedTuple):
    """One stack: its name, the block that makes its input (key and writer), its layers in runs.

    The writer is given what the stack before handed on; the first one is given an empty tensor.
    """

    name: str
    frame: str
    write: Writer
    context: Context
    layers: list[tuple[LayerPlan, int]]


class Outline(NamedTuple):
    """All stacks in order, and what stands after the last."""

    stacks: list[StackPlan]
    tail: Writer


def outline(c: Context) -> Outline:
    """The outline of the context's model."""
    m = c.model
    if m.is_decoder:
        return Outline([StackPlan("layers", "stem", lambda t, c, _: stem(t, c), c, plans(m))], tail)
    first = image_stem if m.image_size else text_stem
    return Outline([StackPlan("layers", "stem", first, c, plans(m))], encoder_tail)
