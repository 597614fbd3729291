"""The part of weights, gradients and states that lies on one of the ranks that share them out.

All figures are of the rank that has most.  FSDP2 cuts each weight by its first dimension; DeepSpeed
and Megatron cut what lies in a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Final

from memgui.estimator.keeping import Keeping
from memgui.estimator.layout import Layout
from memgui.estimator.optimizers import Trained
from memgui.estimator.program import Program
from memgui.estimator.state import State, state_of
from memgui.estimator.tape import Parameter, Tensor
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message

PERSISTENT: Final = 100_000
"""Weights up to this many numbers DeepSpeed keeps gathered (``param_persistence_threshold``)."""

REUSED: Final = 1_000_000_000
"""Weights that are used again within so many numbers stay gathered (``max_reuse_distance``)."""

PARAMETERS: Final = ("packed values", "values", "W_q")
"""Pieces of packed weights that are parameters, which is what ranks share out.

Scales and code books are attributes of the weight and its layer, whole on each rank (bitsandbytes'
nn/modules.py: ``QuantState``, ``fix_4bit_weight_quant_state_from_module``; hqq's core/quantize.py:
``meta``).  Weights that GPT-QModel packed are buffers, which nothing shares out.  FSDP takes parameters of
floating formats: bitsandbytes' ``bnb_4bit_quant_storage`` says which; where they are uint8, Accelerate
leaves all to each rank (utils/fsdp_utils.py).
"""

Shape = tuple[int, ...]
Listed = tuple[tuple[State, int], ...]


def shape_of(parameter: Parameter) -> Shape:
    """The shape of a weight as PyTorch holds it: what it makes, what it reads; experts stacked.

    A convolution keeps its dimensions apart, and so does a stack of matrices that are no layers.
    """
    values = parameter.sizes.values
    counts = [dim if isinstance(dim, int) else values[dim] for dim in parameter.dims]
    if parameter.apart:
        return tuple(counts)
    if parameter.name.endswith("bias") or len(counts) == 1:
        return (counts[0], prod(counts[1:])) if parameter.cut == "expert" else (prod(counts),)
    stacked = counts[:1] if parameter.cut == "expert" else []
    rest = counts[len(stacked) :]
    made, read = rest[: -parameter.inputs], rest[-parameter.inputs :]
    return (*stacked, prod(made), prod(read)) if made else (*stacked, prod(read))


def ranks_of(parameter: Parameter, layout: Layout) -> int:
    """How many ranks share the weight out."""
    return layout.expert_replicas if parameter.cut == "expert" else layout.replicas


def shard(parameter: Parameter, count: int, layout: Layout) -> tuple[Shape, int]:
    """The shape of a weight's shard, and how often it lies on a rank; ``count`` layers have the weight."""
    shape = shape_of(parameter)
    ranks = ranks_of(parameter, layout)
    if layout.fsdp:
        return (-(-shape[0] // ranks), *shape[1:]), count
    return (-(-prod(shape) * count // ranks),), 1


def is_shared(piece: State, layout: Layout) -> bool:
    """Whether ranks share out this piece of a packed weight."""
    return layout.shares_scales or piece.name in PARAMETERS


def sharing_of(base: str, layout: Layout) -> Iterator[Message]:
    """What it takes to share out a base that the library called ``base`` runs, or that nothing does."""
    if not layout.shares_weights or layout.shares_scales:
        return
    if base.startswith("4bit") and layout.fsdp:
        yield Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "Packed weights are shared out as bnb_4bit_quant_storage=bfloat16 has them, their scales are "
                "whole on each rank; stored as uint8, the usual, the weights are whole on each rank too.",
            )
        )
    elif base in ("gptq", "awq"):
        yield Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "GPT-QModel's packed weights are buffers, not parameters: they are whole on each rank.",
            )
        )


def _shards(
    parameters: Iterable[tuple[Parameter, int]], name: str, width: int, layout: Layout
) -> Iterator[tuple[State, int]]:
    for parameter, count in parameters:
        shape, often = shard(parameter, count, layout)
        yield state_of(name, parameter, width or parameter.width, shape, prod(shape)), often


def weight_shards(kept: Iterable[tuple[Parameter | State, int]], layout: Layout, keeping: Keeping) -> Listed:
    """Shards of all weights; of those that FSDP trains, in the format that the optimizer updates."""
    found: list[tuple[State, int]] = []
    for thing, count in kept:
        if isinstance(thing, State):  # packed
            if not is_shared(thing, layout):
                found.append((thing, count))
                continue
            ranks = ranks_of(thing.of, layout)
            size = -(-thing.coefficient * count // ranks)
            found.append((state_of(thing.name, thing.of, 1, (size,), size), 1))
            continue
        width = keeping.master if layout.fsdp and thing.grad else 0
        found += _shards([(thing, count)], "weight shard", width, layout)
        if not layout.fsdp and thing.elements <= PERSISTENT:
            found.append((state_of("weight, gathered", thing, thing.width), count))
    return tuple(found)


def whole_on_each(shards: Iterable[tuple[Parameter | State, int]], layout: Layout) -> Listed:
    """Of the weights of a rank what is no shard, and so stays where it is when shards wait on the CPU.

    (FSDP2's ``CPUOffloadPolicy`` and DeepSpeed's ``offload_param`` move parameters that they cut.)
    """
    return tuple(
        [
            (one, count)
            for one, count in shards
            if isinstance(one, State) and one.name not in _SHARDS and not is_shared(one, layout)
        ]
    )


_SHARDS: Final = ("weight shard",)


def gradient_shards(trained: Iterable[tuple[Parameter, int]], layout: Layout, keeping: Keeping) -> Listed:
    """Shards of gradients: FSDP's are of the format of its weights' shards."""
    width = keeping.gradient_width or (keeping.master if layout.fsdp else 0)
    return tuple(_shards(trained, "gradient shard", width, layout))


def buckets(trained: Iterable[tuple[Parameter, int]], layout: Layout) -> Listed:
    """DDP's buckets, where gradients are not views of them."""
    if not layout.buckets or layout.views:
        return ()
    return tuple([(state_of("bucket", parameter, parameter.width), count) for parameter, count in trained])


def lasting_buffers(trained: Sequence[tuple[Parameter, int]], layout: Layout) -> Listed:
    """The bucket that DeepSpeed's stage 3 keeps from step to step."""
    if layout.library == "deepspeed" and layout.sharding == "zero3" and trained:
        return (_bucket(trained, layout.bucket),)
    return ()


def backward_buffers(trained: Sequence[tuple[Parameter, int]], layout: Layout) -> Listed:
    """What DeepSpeed allocates for a backward pass: buckets to reduce gradients from, two that take turns."""
    if layout.library != "deepspeed" or layout.sharding == "none" or not trained:
        return ()
    bucket, _ = _bucket(trained, layout.bucket)
    return ((bucket, 1 if layout.sharding == "zero3" else 2),)


def _bucket(trained: Sequence[tuple[Parameter, int]], elements: int) -> tuple[State, int]:
    largest = max((parameter for parameter, _ in trained), key=lambda parameter: parameter.elements)
    return state_of("bucket", largest, largest.width, (elements,), elements), 1


def gathered_window(program: Program, layout: Layout) -> Listed:
    """What DeepSpeed's stage 3 has gathered while a step runs.

    A layer, what is fetched ahead (nine tenths of a bucket), and what backward needs again soon: half of
    the distance of reuse lies before the turn, half behind it.
    """
    if layout.library != "deepspeed" or layout.sharding != "zero3":
        return ()
    layers = [sum(one.elements for one in kind.parameters) for kind in program.kinds]
    whole = sum(one.elements * count for weights, count in program.weights() for one in weights)
    window = min(whole, REUSED // 2 + max(layers, default=0) + layout.bucket * 9 // 10)
    parameters = (parameter for weights, _ in program.weights() for parameter in weights)
    largest = max(parameters, key=lambda parameter: parameter.elements)
    return ((state_of("weights, gathered", largest, largest.width, (window,), window), 1),)


def gathered_stage(kept: Iterable[tuple[Parameter | State, int]], layout: Layout, keeping: Keeping) -> Listed:
    """What FSDP2 holds on a pipeline stage from its first micro batch to its last.

    Whole weights, and whole gradients that are reduced when all micro batches have run back
    (torch.distributed.pipelining: ``set_requires_gradient_sync(False)`` until the last one).
    """
    if not layout.fsdp or layout.pipeline == 1:
        return ()
    found: list[tuple[State, int]] = []
    for thing, count in kept:
        if isinstance(thing, State):
            if is_shared(thing, layout):
                found.append((thing, count))
            continue
        found.append((state_of("weight, gathered", thing, thing.width), count))
        if thing.grad:
            width = keeping.master or thing.width
            found.append((state_of("gradient, not reduced", thing, width), count))
    return tuple(found)


def whole_gradients(trained: Iterable[tuple[Parameter, int]], layout: Layout, keeping: Keeping) -> Listed:
    """Gradients that wait for the last micro batch of a step, in the format that they are reduced in.

    FSDP2 keeps them so where ``set_requires_gradient_sync(False)`` was called, which Accelerate's and
    Fabric's loops do until the last one (fsdp_param.py, ``to_accumulated_grad_if_needed``).
    """
    if not layout.whole_gradients:
        return ()
    master = layout.reduce_width or keeping.master
    return tuple(
        [(state_of("gradient, not reduced", one, master or one.width), count) for one, count in trained]
    )


def saved_whole(program: Program, layout: Layout, keeping: Keeping) -> Listed:
    """What FSDP holds at the end of making a whole state dict: copies of all weights.

    Beside them the root is gathered all the time, and the layer whose copies are made.
    """
    if not (layout.saves_whole and layout.fsdp):
        return ()
    root = [(one, 1) for block in program.frames for one in block.tape.parameters]
    layers = [(one, kind.count) for kind in program.kinds for one in kind.parameters]
    last = [(one, 1) for one in program.kinds[-1].parameters] if program.kinds else []
    found: list[tuple[State, int]] = []
    for name, weights in (("weight, to save", [*root, *layers]), ("weight, gathered", [*root, *last])):
        for one, count in weights:
            width = (keeping.master if one.grad else 0) or one.width
            found.append((state_of(name, one, width), count))
    return tuple(found)


SUB_GROUP: Final = 1_000_000_000
"""Numbers that stage 3 updates at once (``sub_group_size``)."""

FLATTEN: Final = "aten.cat"


def flattens(layout: Layout) -> bool:
    """Whether gradients are put in a row before the optimizer's step, as DeepSpeed does."""
    return layout.library == "deepspeed" and layout.sharding != "none"


def flattened(trained: Trained, keeping: Keeping) -> Listed:
    """What DeepSpeed's step holds: a rank's gradients in a row, and the same in the master copies' format.

    Stage 3 goes from sub group to sub group.  (stage_1_and_2.py and stage3.py, DeepSpeed 0.18.)
    """
    layout = keeping.layout
    if not flattens(layout) or not keeping.master or not trained:
        return ()
    numbers = sum(weight.elements * count for weight, count in trained)
    if layout.sharding == "zero3":
        numbers = min(numbers, SUB_GROUP)
    one = max((weight.of for weight, _ in trained), key=lambda of: of.elements)
    width = keeping.gradient_width or one.width
    made = [state_of("gradients in a row", one, width, (numbers,), numbers)]
    if width != keeping.master:
        made.append(state_of("gradients in fp32", one, keeping.master, (numbers,), numbers))
    return tuple([(state, 1) for state in made])


def sized(things: Iterable[tuple[Tensor | State, int]]) -> int:
    """Bytes of all."""
    return sum(thing.coefficient * count for thing, count in things)
