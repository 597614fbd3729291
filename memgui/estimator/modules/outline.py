"""What a model consists of: stacks of layers, what stands before each of them, and the tail."""

from __future__ import annotations

from typing import Final

import msgspec

from memgui.estimator.modules.context import Context
from memgui.estimator.modules.ends import stem, tail
from memgui.estimator.modules.implementations import IMPLEMENTATIONS
from memgui.estimator.modules.layers import LayerPlan, Writer
from memgui.estimator.modules.plans import block_label as layer_label
from memgui.estimator.modules.plans import plans
from memgui.estimator.tape import Tape, Tensor

STACKED: Final = ("encoder", "decoder", "between")
"""What the blocks of models with an encoder and a decoder are called, or begin with."""


# What stands around encoders, and two stacks, is loaded when the first such model is written: a start need
# not wait for it.


class StackPlan(msgspec.Struct, frozen=True):
    """One stack: its name, the block that makes its input (key and writer), its layers in runs.

    The writer is given what the stack before handed on; the first one is given an empty tensor.
    """

    name: str
    frame: str
    write: Writer
    context: Context
    layers: list[tuple[LayerPlan, int]]


class Outline(msgspec.Struct, frozen=True):
    """All stacks in order, and what stands after the last."""

    stacks: list[StackPlan]
    tail: Writer


def outline(c: Context) -> Outline:
    """The outline of the context's model."""
    m = c.model
    load = IMPLEMENTATIONS[c.options.implementation].code
    if load is not None:
        code = load()
        return Outline([StackPlan("layers", "stem", code.stem, c, code.plans(c))], code.tail)
    if m.num_encoder_layers:
        return _two_stacks(c)
    if m.is_decoder:
        return Outline([StackPlan("layers", "stem", lambda t, c, _: stem(t, c), c, plans(m))], tail)
    from memgui.estimator.modules.encoders import encoder_tail, image_stem, text_stem

    first = image_stem if m.image_size else text_stem
    return Outline([StackPlan("layers", "stem", first, c, plans(m))], encoder_tail)


def block_label(key: str) -> str:
    """The label of a block (an English msgid)."""
    if not key.startswith(STACKED):
        return layer_label(key)
    from memgui.estimator.modules.two_stacks import LABELS

    return LABELS.get(key.removesuffix(".first")) or layer_label(key)


def _two_stacks(c: Context) -> Outline:
    """Encoder and decoder; once the prompt has been read, the decoder alone."""
    from memgui.estimator.modules.two_stacks import (
        between,
        encoder_context,
        source_stem,
        stack_plans,
        target_stem,
        target_tail,
    )

    m = c.model
    encoder = encoder_context(c)
    decoder = stack_plans(c, "decoder", m.num_hidden_layers)
    if c.options.decode:
        return Outline([StackPlan("decoder", "stem", target_stem, c, decoder)], target_tail)

    def bridge(t: Tape, own: Context, x: Tensor) -> Tensor:
        own.table = encoder.table
        return between(t, encoder, own, x)

    return Outline(
        [
            StackPlan(
                "encoder", "stem", source_stem, encoder, stack_plans(c, "encoder", m.num_encoder_layers)
            ),
            StackPlan("decoder", "between", bridge, c, decoder),
        ],
        target_tail,
    )
