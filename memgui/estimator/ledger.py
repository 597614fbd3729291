"""The tensors behind an estimate, as tables: what tests compare and views list.

Nothing here contains overhead.  See :mod:`memgui.estimator` for the figures and their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from memgui.estimator.estimate import run_of
from memgui.estimator.inference import InferenceRun
from memgui.estimator.points import Point
from memgui.estimator.program import Program
from memgui.estimator.result import Parameters
from memgui.estimator.run import Run, operator_at
from memgui.estimator.search import Heights
from memgui.estimator.steps import CLIP
from memgui.estimator.tape import Tensor
from memgui.estimator.training import TrainingRun
from memgui.spec.scenario import Scenario


class Entry(msgspec.Struct, frozen=True):
    """One tensor: ``kind`` is ``parameter``, ``saved``, ``weight_copy`` or ``cache``.

    ``layers`` says how many layers have it, ``bytes`` what one of them is.
    """

    kind: str
    name: str
    part: str
    block: str
    layers: int
    shape: tuple[int | str, ...]
    width: int
    bytes: int


class StepFigures(msgspec.Struct, frozen=True):
    """One optimizer step: bytes alive at its named moments, and each phase's peak with its operator."""

    start: int
    after_forward: int
    after_backward: int
    grad_bytes: int
    after_step: int
    optimizer_state_bytes: int
    after_zero_grad: int
    phases: Mapping[str, int]
    operators: Mapping[str, str]


class CacheFigures(msgspec.Struct, frozen=True):
    """What the cache object holds after the prompt, and after one more token."""

    after_prompt: int
    after_one_more: int


class Ledger:
    """The tensors of a scenario under the detailed method."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._run: Run = run_of(scenario, whole=False)
        self._program: Program = self._run.program

    @property
    def parameters(self) -> Parameters:
        """Counts of parameters."""
        return self._run.account.parameters

    def _bytes(self, tensors: Iterable[Tensor]) -> int:
        of = self._run.numbers.of
        return sum(of(tensor) for tensor in tensors)

    # -- what autograd saves -----------------------------------------------------------------------

    def saved_by_layer(self) -> dict[str, tuple[int, ...]]:
        """Bytes saved by each layer; what all layers share is booked to the first that saves it."""
        booked: set[Tensor] = set()
        stacks: dict[str, tuple[int, ...]] = {}
        for stack in self._program.stacks:
            layers: list[int] = []
            for kind, count in stack.runs:
                if kind.recomputed:
                    offloaded = self._program.options.checkpoint_offload
                    own = 0 if offloaded else self._bytes(kind.blocks[0].input.tensors)
                    own += sum(self._bytes(sparing.kept.tensors) for sparing in kind.sparing)
                    shared = [root for root in kind.handed if root not in booked]
                else:
                    own = sum(self._bytes(_saved(block.kept.tensors)) for block in kind.blocks)
                    saved = _saved(root for block in kind.blocks for root in block.ambient)
                    shared = [root for root in saved if root not in booked]
                booked.update(shared)
                layers += [own + self._bytes(shared), *[own] * (count - 1)]
            stacks[stack.name] = tuple(layers)
        return stacks

    def saved_by_part(self) -> dict[str, int]:
        """Bytes saved outside the layers: ``embedding``, ``final_norm``, ``lm_head``, ``loss``."""
        parts: dict[str, int] = {}
        booked = self._program.booked
        for block in self._program.frames:
            for tensor in (*_saved(block.kept.tensors), *block.ambient):
                module = booked.get(tensor, tensor).module
                parts[module] = parts.get(module, 0) + self._bytes((tensor,))
        return {part: size for part, size in parts.items() if size}

    @property
    def saved_total(self) -> int:
        """All that is saved, weight copies apart."""
        return sum(sum(layers) for layers in self.saved_by_layer().values()) + sum(
            self.saved_by_part().values()
        )

    @property
    def saved_weight_casts(self) -> int:
        """Autocast's copies of weights that autograd keeps."""
        blocks = [(block, 1) for block in self._program.frames]
        for kind in self._program.kinds:
            if not kind.recomputed:
                blocks += [(block, kind.count) for block in kind.blocks]
        copies = ((tensor, count) for block, count in blocks for tensor in block.kept.tensors)
        total = sum(self._bytes((tensor,)) * count for tensor, count in copies if tensor.weight_copy)
        for stack in self._program.stacks:  # of weights that layers share
            total += self._bytes(tensor for tensor in stack.shared_kept.tensors if tensor.weight_copy)
        return total

    # -- steps ---------------------------------------------------------------------------------------

    @cached_property
    def steps(self) -> tuple[StepFigures, StepFigures]:
        """The first optimizer step and every later one; ``TypeError`` where nothing is trained."""
        run = self._run
        if not isinstance(run, TrainingRun):
            raise TypeError("only training has steps")
        return _step(run, states=False), _step(run, states=True)

    @cached_property
    def cache(self) -> CacheFigures:
        """The cache of a serving scenario; ``TypeError`` in training."""
        run = self._run
        if not isinstance(run, InferenceRun):
            raise TypeError("only serving has a cache")
        return CacheFigures(run.prefill.cached(), run.one_more().cached())

    # -- tensors -------------------------------------------------------------------------------------

    def tensors(self) -> Iterator[Entry]:
        """Every parameter, saved tensor and cache tensor."""
        for block, count in self._program.blocks:
            for parameter in block.tape.parameters:
                yield self._entry("parameter", parameter, block.tape.key, count)
            for tensor in block.saved:
                yield self._entry(
                    "weight_copy" if tensor.weight_copy else "saved", tensor, block.tape.key, count
                )
            for tensor in block.tape.cached:
                if tensor not in block.saved:
                    yield self._entry("cache", tensor, block.tape.key, count)
        for weights, count in self._program.beside:
            for parameter in weights:
                yield self._entry("parameter", parameter, parameter.block, count)

    def _entry(self, kind: str, tensor: Tensor, block: str, count: int) -> Entry:
        size = self._bytes((tensor,))
        part = self._program.booked.get(tensor, tensor).part
        return Entry(kind, tensor.name, part, block, count, tensor.dims, tensor.width, size)


def ledger(scenario: Scenario) -> Ledger:
    """The tensors of ``scenario``, which must be one that validation finds no error in."""
    return Ledger(scenario)


def _saved(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [tensor for tensor in tensors if not tensor.weight_copy]


def _step(run: TrainingRun, *, states: bool) -> StepFigures:
    a = run.account
    stay = run.gradients_before(steady=states)
    referred = run.referred().bytes
    first = run.base(states=states, gradients=stay)
    done = run.base(states=True, gradients=True).bytes
    phases: dict[str, int] = {}
    operators: dict[str, str] = {}
    for further in (False, True) if run.accumulates else (False,):
        suffix = "2" if further else ""
        walk = run.micro_batch(steady=states, stay=stay, further=further)
        before = run.between(states=states, stay=stay) if further else first
        for phase, points in (("forward", walk.forward()), ("backward", walk.backward())):
            busy = run.busy(before, back=phase == "backward").bytes
            if further and phase == "forward":
                busy += run.numbers.bytes(run.named(walk))
            phases[phase + suffix], operators[phase + suffix] = _highest(run.heights(walk), busy, points)
    numbers = run.numbers
    left = numbers.bytes(run.left(run.walk(accumulate=stay)))
    if run.scenario.training.gradient_clipping:
        full = run.base(states=states, gradients=True).bytes
        phases["clip"], operators["clip"] = full + left + a.clip_bytes, CLIP
    phases["optimizer"], operators["optimizer"] = done + left + a.step_bytes, run.stepper()
    return StepFigures(
        start=first.bytes + (referred if states else 0),
        after_forward=run.busy(first, back=False).bytes
        + numbers.bytes(run.walk(accumulate=stay).after_forward()),
        after_backward=run.between(states=states or a.consumer is not None, stay=stay).bytes + left,
        grad_bytes=a.gradient_bytes,
        after_step=done + referred,
        optimizer_state_bytes=a.state_bytes,
        after_zero_grad=done + referred - (0 if run.gradients_stay else a.gradient_bytes),
        phases=phases,
        operators=operators,
    )


def _highest(heights: Heights, base: int, points: Iterable[Point]) -> tuple[int, str]:
    best, operator = -1, ""
    for point in points:
        most, _ = heights.highest(point)
        if most > best:
            best, operator = most, operator_at(*heights.top(point))
    return base + best, operator
