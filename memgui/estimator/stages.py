"""Several devices under ``transformers``: layers in turn (``device_map="auto"``), or matrices split.

Layers in turn: each device holds some of the layers with their caches and runs them alone, while the
others wait; what attends to all layers (masks, rotary tables) is copied along.  Placed as Transformers
5.24 places them (integrations/accelerate.py): each device but the last takes its even share and a
quarter more than the largest module; the first keeps room for the largest module.

Matrices split (``tp_plan``): a rank runs a narrower model (heads and feed-forward widths divided), with the
embedding whole and the head's columns divided, whose logits are gathered.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from memgui.estimator.account import Account
from memgui.estimator.overhead import block_bytes
from memgui.estimator.points import Point
from memgui.estimator.program import Program
from memgui.estimator.quantisation import Share, places, plain, stored
from memgui.estimator.refusals import NotCovered
from memgui.estimator.skyline import Way
from memgui.estimator.stacks import Kind
from memgui.estimator.stock import Stock
from memgui.estimator.walk import Walk
from memgui.spec.formats import WeightScheme
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message, Named
from memgui.spec.scenario import Scenario
from memgui.spec.variants import variant, written

SPLIT_HEAD: Final = ("lm_head",)
"""What a tensor parallel rank has a part of beside the layers that are narrower there."""

_DIVIDED: Final = (
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "encoder_attention_heads",
    "encoder_ffn_dim",
)


def is_spread(scenario: Scenario) -> bool:
    """Whether a model that is served is spread over devices; degrees mean nothing on a single one."""
    split = scenario.parallelism
    several = scenario.task == "inference" and scenario.device.count > 1
    return several and (split.pipeline > 1 or split.tensor > 1)


def narrowed(scenario: Scenario) -> Scenario:
    """The scenario as a tensor parallel rank runs it; raises ``NotCovered`` where it does not divide."""
    degree, model = scenario.parallelism.tensor, scenario.model
    if degree == 1:
        return scenario
    attends = all(one.endswith("attention") for one in model.layer_types)
    changes: dict[str, Any] = {}
    for name in _DIVIDED:
        whole: int = getattr(model, name)
        if whole % degree or not attends:
            raise NotCovered(_not_divided(scenario))
        changes[name] = whole // degree
    if model.layer_variants:
        changes["layer_variants"] = tuple(_narrower(scenario, text, degree) for text in model.layer_variants)
    return msgspec.structs.replace(scenario, model=msgspec.structs.replace(model, **changes))


def _narrower(scenario: Scenario, text: str, degree: int) -> str:
    """What layers of other sizes have on a rank."""
    found = variant(text)
    if found is None:
        return text
    mixer, sizes = found
    for name in _DIVIDED:
        if sizes.get(name, 0) % degree:
            raise NotCovered(_not_divided(scenario))
        if name in sizes:
            sizes[name] //= degree
    return written(mixer, **sizes)


def rank_of(narrow: Scenario) -> Share:
    """What a tensor parallel rank has of its narrower model: everything, and a part of the head."""
    return Share(
        narrow.parallelism.tensor,
        stop=narrow.model.num_hidden_layers + narrow.model.num_encoder_layers,
        split_parts=SPLIT_HEAD,
    )


def _not_divided(scenario: Scenario) -> Message:
    return Message(
        QT_TRANSLATE_NOOP("messages", "Transformers cannot split this model's layers by {degree}."),
        {"degree": scenario.parallelism.tensor},
    )


class Placed(NamedTuple):
    """Bytes of the modules that are placed: before the layers, of each kind of layer, behind them."""

    stem: int
    layers: list[int]
    tail: tuple[int, int]

    @property
    def largest(self) -> int:
        """The largest module that is not split."""
        return max(self.stem, *self.layers, *self.tail)

    @property
    def whole(self) -> int:
        """All together."""
        return self.stem + sum(self.layers) + sum(self.tail)


def placed(scenario: Scenario, program: Program, scheme: WeightScheme | None) -> list[Share]:
    """Which layers each device gets (``device_map="auto"``)."""
    devices, memory = scenario.parallelism.pipeline, scenario.device.memory_bytes
    modules = _modules(program, plain(scheme))
    room = min(memory, modules.whole // devices + modules.largest * 5 // 4)
    limits = [room - modules.largest, *[room] * (devices - 2), modules.whole]
    sizes = [modules.stem, *modules.layers, *modules.tail]
    cuts: list[int] = []
    device = used = 0
    for index, size in enumerate(sizes):
        while used + size > limits[device] and device < devices - 1:
            device, used = device + 1, 0
            cuts.append(index)
        used += size
    cuts += [len(sizes)] * (devices - 1 - len(cuts))
    count = len(modules.layers)
    bounds = [0, *(min(max(cut - 1, 0), count) for cut in cuts), count]
    last = max(index for index in range(devices) if bounds[index + 1] > bounds[index] or index == 0)
    return [
        Share(start=bounds[index], stop=bounds[index + 1], stem=index == 0, tail=index == last)
        for index in range(devices)
    ]


def _modules(program: Program, scheme: WeightScheme) -> Placed:
    def size(share: Share, *parts: str) -> int:
        things = stored(program, scheme, share)
        return sum(thing.coefficient * count for thing, count in things if not parts or _part(thing) in parts)

    layers: list[int] = []
    known: dict[Kind, int] = {}
    for kind, count in program.runs:
        if kind not in known:
            start = len(layers)
            known[kind] = size(Share(start=start, stop=start + 1, stem=False, tail=False))
        layers += [known[kind]] * count
    behind = Share(stop=0, stem=False)
    head = size(behind, "lm_head")
    return Placed(size(Share(stop=0, tail=False)), layers, (size(behind) - head, head))


def _part(thing: object) -> str:
    return str(getattr(getattr(thing, "of", thing), "part", ""))


def on_stage(account: Account, program: Program, scheme: WeightScheme | None, share: Share) -> Account:
    """The account of one device: its weights and buffers only."""
    weights = stored(program, plain(scheme), share)
    buffers = []
    for block, layers, times in places(program):
        here = len(share.of(layers))
        outside = share.tail if block is program.tail else share.stem
        count = here if layers else times * outside
        buffers += [(buffer, count) for buffer in block.tape.buffers if count]
    held = [*weights, *buffers]
    return msgspec.structs.replace(
        account,
        weights=weights,
        buffers=tuple(buffers),
        weight_bytes=sum(thing.coefficient * count for thing, count in held),
        weight_excess=sum(
            (block_bytes(thing.coefficient) - thing.coefficient) * count for thing, count in held
        ),
    )


@lru_cache(maxsize=256)
def way(walk: Walk, share: Share) -> Way:
    """The points of a pass on one device, without what layers on other devices leave there."""
    return Way(_points(walk, share))


def _points(walk: Walk, share: Share) -> Iterator[Point]:
    stop = share.stop or 0
    elsewhere = Stock()
    for point in walk.forward():
        live = Stock(point.live)
        if point.start < 0:
            if share.tail if point.key == "loss" else share.stem:
                live.include(elsewhere, -1)
                yield point.moved(live, point.start, point.count)
            continue
        slope = point.inside.slope
        end = point.start + point.count
        first, last = max(point.start, share.start), min(end, stop)
        before = min(end, share.start) - point.start
        if before > 0:
            elsewhere = Stock(elsewhere)
            elsewhere.include(slope, before)
        if first < last:
            live.include(slope, first - point.start)
            live.include(elsewhere, -1)
            yield point.moved(live, first, last - first)


@lru_cache(maxsize=256)
def cached(walk: Walk, share: Share, *, before: bool = False) -> Stock:
    """What the caches of one device's layers hold after a pass, or ``before`` it."""
    held = Stock()
    index = 0
    for kind, count in walk.program.runs:
        here = min(index + count, share.stop or 0) - max(index, share.start)
        index += count
        if here > 0:
            for block in kind.blocks:
                held.add(block.replaced if before else block.cache, block.sort_running, here)
    return held


def require_spreadable(scenario: Scenario) -> None:
    """Raise ``NotCovered`` where the engine does not spread the model in this way."""
    split = scenario.parallelism
    both = split.pipeline > 1 and split.tensor > 1
    towers = split.pipeline > 1 and scenario.model.num_encoder_layers > 0
    if both or towers or scenario.inference.engine != "transformers":
        raise NotCovered(
            Message(
                QT_TRANSLATE_NOOP("messages", "{path} = {value} is not modelled yet for {engine}."),
                {
                    "path": "parallelism.pipeline" if split.pipeline > 1 else "parallelism.tensor",
                    "value": str(split.pipeline if split.pipeline > 1 else split.tensor),
                    "engine": Named("inference.engine", (scenario.inference.engine,)),
                },
            )
        )
