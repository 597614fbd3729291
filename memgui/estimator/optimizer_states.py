"""What an optimizer keeps of every trained weight, and what its step holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from math import prod
from typing import Final, TypeVar, overload

from memgui.estimator.keeping import Keeping
from memgui.estimator.layout import Layout
from memgui.estimator.lifetimes import Consumer
from memgui.estimator.optimizers import OPTIMIZERS, Kept, Step, Trained, Weight
from memgui.estimator.program import Program
from memgui.estimator.shards import FLATTEN, flattened, flattens, shape_of, shard
from memgui.estimator.state import State, state_of
from memgui.estimator.tape import Tensor
from memgui.estimator.weights import counted

PAGED_FROM = 100_000
"""Numbers from which on bitsandbytes puts a weight's states into managed memory."""

T = TypeVar("T")


class Listed(Sequence[tuple[T, int]]):
    """Things, each with how often it is there: listed when someone looks at them."""

    __slots__ = ("_listed", "_make")

    def __init__(self, make: Callable[[], Iterable[tuple[T, int]]]) -> None:
        self._make = make
        self._listed: tuple[tuple[T, int], ...] | None = None

    def _things(self) -> tuple[tuple[T, int], ...]:
        if self._listed is None:
            self._listed = tuple(self._make())
        return self._listed

    def __iter__(self) -> Iterator[tuple[T, int]]:
        return iter(self._things())

    def __len__(self) -> int:
        return len(self._things())

    @overload
    def __getitem__(self, index: int) -> tuple[T, int]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[T, int], ...]: ...
    def __getitem__(self, index: int | slice) -> tuple[T, int] | tuple[tuple[T, int], ...]:
        return self._things()[index]


class States:
    """What the optimizer keeps of every trained weight, and what its step holds.

    ``sizes``: how many states there are of each size in bytes; alike weights have alike ones.  ``uniform``:
    how many each weight of so many bytes per number has beside, in so many bytes for each of its numbers.
    """

    def __init__(self, program: Program | None, keeping: Keeping | None) -> None:
        self.sizes: dict[int, int] = {}
        self.uniform: dict[tuple[int, int], int] = {}
        self.step: list[tuple[State, int]] = []
        self.paged = self.host = self.doubt = 0
        self.stepper = ""
        self.consumer: Consumer | None = None
        self.listed: Callable[[], Iterable[tuple[State, int]]] = tuple
        if program is None or keeping is None:
            return
        layout = keeping.layout
        trained = Listed(partial(trained_weights, program, keeping.master, layout))
        here = self._offload(trained, keeping)
        apart = keeping.offloaded or layout.shares_states
        rule = OPTIMIZERS[keeping.settings.name]
        kept_of: Callable[[Weight], tuple[Kept, ...]]
        if rule.uniform and not apart:
            kept_of = self._uniform(program, keeping)
        else:
            kept = {_kind(weight): self._keep(weight, count, keeping) for weight, count in _alike(here)}
            kept_of = lambda weight: kept[_kind(weight)]  # noqa: E731
        self.listed = partial(_listed, here, kept_of)
        tables = rule.tables
        if tables and here:
            self.sizes[tables] = self.sizes.get(tables, 0) + 1
            table = state_of("tables", here[0][0].of, tables, ())
            self.listed = lambda: (*_listed(here, kept_of), (table, 1))
        if keeping.consumes:
            steps = {weight.of: _step(((weight, 1),), keeping) for weight, _ in trained}
            operator = next((step.operator for step in steps.values()), "")
            work: dict[Tensor, int] = {weight: step.bytes for weight, step in steps.items()}
            self.consumer = Consumer(work, operator.removeprefix("aten."), self.listed)
        else:
            settings = keeping.settings
            looping = settings.name == "adamw" and settings.implementation == "forloop"
            if looping or settings.name in ("adafactor", "muon"):  # from weight to weight, in order
                before = _TABLES if settings.name == "muon" else _BEFORE
                here = _as_defined(here, before.get(program.model.model_type))
            step = _step(here, keeping)
            self.step = [(_state(weight, one), count) for weight, one, count in step.held]
            self.step += flattened(here, keeping)
            self.stepper = step.operator or (FLATTEN if self.step else "")

    def _keep(self, weight: Weight, count: int, keeping: Keeping) -> tuple[Kept, ...]:
        """What lies beside each of ``count`` alike weights; what is elsewhere or in doubt is added up."""
        settings = keeping.settings
        rule = OPTIMIZERS[settings.name]
        kept = rule.states(weight, settings)
        elements, sizes = weight.elements, self.sizes
        if rule.paged and elements >= PAGED_FROM:
            self.paged += sum([one.width * elements for one in kept if one.shape is None]) * count
            kept = tuple([one for one in kept if one.shape is not None])
        if rule.wide_elsewhere and not settings.state_width:
            narrow = [one for one in kept if one.width < 4]
            self.doubt += sum([one.bytes(weight) // one.width * (4 - one.width) for one in narrow]) * count
        kept = (*_copied(keeping), *kept)
        for one in kept:
            size = one.width * elements if one.shape is None else one.bytes(weight)
            sizes[size] = sizes.get(size, 0) + count
        return kept

    def _uniform(self, program: Program, keeping: Keeping) -> Callable[[Weight], tuple[Kept, ...]]:
        """As :meth:`_keep`, for all weights; it says what lies beside one.

        The rule keeps of all weights of a format the same, whatever their shapes.
        """
        settings = keeping.settings
        rule = OPTIMIZERS[settings.name]
        copied = _copied(keeping)
        known: dict[int, tuple[Kept, ...]] = {}
        sizes, uniform = self.sizes, self.uniform
        for own, alike in counted(program).trained.items():
            width = keeping.master or own
            kept = known.get(width)
            if kept is None:
                every = (one for weights, _ in program.weights() for one in weights)
                first = next(one for one in every if one.grad and one.width == own)
                weight = Weight(first, shape_of(first), width, width)
                kept = known[width] = (*copied, *rule.states(weight, settings))
            for one in kept:
                if one.shape is None:
                    uniform[own, one.width] = uniform.get((own, one.width), 0) + 1
                else:
                    size = one.width * prod(one.shape)
                    sizes[size] = sizes.get(size, 0) + sum(alike.values())
        return lambda weight: known[weight.width]

    def _offload(self, trained: Trained, keeping: Keeping) -> Trained:
        """The weights whose states stay on the device: the last ones, the share of the first has left."""
        if not keeping.offloaded:
            return trained
        rule = OPTIMIZERS[keeping.settings.name]
        copied = 0 if keeping.layout.fsdp else keeping.master  # its shards are the master copies
        goal = sum(weight.elements * count for weight, count in trained) * keeping.offloaded
        here: list[tuple[Weight, int]] = []
        gone = 0
        for weight, count in trained:
            room = max(0, goal - gone)
            leaving = min(count, -(-room // (weight.elements * 1000))) if weight.elements else 0
            gone += weight.elements * 1000 * leaving
            size = sum(one.bytes(weight) for one in rule.states(weight, keeping.settings))
            self.host += (size + weight.elements * copied) * leaving
            if count > leaving:
                here.append((weight, count - leaving))
        return here


NO_STATES = States(None, None)


def _copied(keeping: Keeping) -> tuple[Kept, ...]:
    """The master copy of each weight, where there is one; FSDP's shards of weights are theirs."""
    return (Kept("master copy", keeping.master),) if keeping.master and not keeping.layout.fsdp else ()


def _kind(weight: Weight) -> tuple[object, ...]:
    """Weights of one kind have the same states."""
    return weight.shape, weight.width, weight.whole, weight.of.part


def _alike(trained: Iterable[tuple[Weight, int]]) -> Iterable[tuple[Weight, int]]:
    """One weight of each kind, with how many there are."""
    found: dict[tuple[object, ...], tuple[Weight, int]] = {}
    for one in trained:
        kind = _kind(one[0])
        known = found.get(kind)
        found[kind] = one if known is None else (known[0], known[1] + one[1])
    return found.values()


def _listed(trained: Trained, kept_of: Callable[[Weight], tuple[Kept, ...]]) -> Iterator[tuple[State, int]]:
    return ((_state(weight, one), count) for weight, count in trained for one in kept_of(weight))


def _step(trained: Trained, keeping: Keeping) -> Step:
    """The step's working set; an fp32 copy of a weight needs an fp32 copy of its gradient."""
    settings = keeping.settings
    step = OPTIMIZERS[settings.name].step(trained, settings)
    layout = keeping.layout
    copied = keeping.master and keeping.gradient_width != keeping.master
    copied = copied and not OPTIMIZERS[settings.name].by_layer  # whose step says so itself
    if not copied or layout.fsdp or flattens(layout):
        return step
    copies = [(weight, Kept("gradient in fp32", keeping.master), count) for weight, count in trained]
    return Step((*copies, *step.held), step.operator)


def _as_defined(trained: Trained, widest: tuple[str, str] | None) -> Trained:
    """Weights with the widest behind the one that the model's code defines before it.

    There a step holds most, and with it what the update before leaves.  In these models that is a matrix
    of the attention: the norm or router that runs between them is defined later, and the norms of heads.
    """
    if widest is None:
        return trained
    found = {weight.of.name: (weight, count) for weight, count in trained}
    if not {*widest} <= found.keys() or "q_norm.weight" in found:
        return trained
    others = [(weight, count) for weight, count in trained if weight.of.name != widest[1]]
    return (*others, *[found[name] for name in widest])


_FUSED: Final = ("o_proj.weight", "gate_up_proj.weight")
_EXPERTS: Final = ("o_proj.weight", "experts.gate_up_proj.weight")
_BEFORE: Final = {
    "llama4_text": ("o_proj.weight", "experts.gate_up_proj"),
    "phi3": ("qkv_proj.weight", "gate_up_proj.weight"),
    **dict.fromkeys(("glm", "glm4"), _FUSED),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe", "glm_moe_dsa"), _EXPERTS),
    **dict.fromkeys(("dots1", "solar_open", "longcat_flash", "mistral4"), _EXPERTS),
}
"""By type of model: the widest weight of a layer, and what is defined before it (Transformers 5.24)."""
_TABLES: Final = {"mixtral": ("embed_tokens.weight", "experts.gate_up_proj.weight")}
"""The same of what Muon leaves to AdamW, where no vector of the attention runs between."""


@lru_cache(maxsize=64)
def trained_weights(program: Program, master: int, layout: Layout) -> tuple[tuple[Weight, int], ...]:
    """The trained weights as the optimizer meets them, in the model's order, with how often each occurs.

    ``master``: bytes per number of what is updated where that is a copy, else 0.
    """
    found: list[tuple[Weight, int]] = []
    shapes: dict[tuple[object, ...], tuple[int, ...]] = {}
    for weights, count in program.weights():
        for parameter in weights:
            if parameter.grad:
                width = gradient = master or parameter.width
                if layout.shares_states:
                    shape, often = shard(parameter, count, layout)
                    found.append((Weight(parameter, shape, width, gradient, whole=False), often))
                    continue
                alike = parameter.sizes, parameter.dims, parameter.cut, parameter.inputs, parameter.name[-6:]
                known = shapes.get(alike)
                if known is None:
                    known = shapes[alike] = shape_of(parameter)
                found.append((Weight(parameter, known, width, gradient), count))
    return tuple(found)


def _state(weight: Weight, kept: Kept) -> State:
    if kept.shape is None and weight.whole:
        return state_of(kept.name, weight.of, kept.width)
    shape = weight.shape if kept.shape is None else kept.shape
    return state_of(kept.name, weight.of, kept.width, shape, prod(shape))
