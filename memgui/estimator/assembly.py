"""Puts an estimate together: peak, components, overhead, verdict."""

from __future__ import annotations

from functools import cached_property, partial

from memgui import __version__
from memgui.estimator.breakdown import Breakdown, Listed
from memgui.estimator.loose import fragmented, stated
from memgui.estimator.modules.implementations import IMPLEMENTATIONS
from memgui.estimator.moments import Amount, Beside, Timeline, moment
from memgui.estimator.once import once
from memgui.estimator.options import OLD, capability
from memgui.estimator.overhead import (
    ALLOCATOR_SOURCE,
    CUBLAS_SOURCE,
    KERNELS_SOURCE,
    LOADED_SOURCE,
    SCRATCH_SOURCE,
    Range,
    context,
    cublas_workspace,
    fragmentation,
)
from memgui.estimator.result import COMPONENTS, Estimate, Moment, Node, Rank
from memgui.estimator.run import Found, Run
from memgui.estimator.verdict import verdict
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

VERSION = f"{IMPLEMENTATIONS['transformers'].version}, memgui {__version__}"
"""What the figures stand for, where nothing else is chosen."""


def version(scenario: Scenario) -> str:
    """The versions that the figures stand for."""
    if scenario.task != "training":
        return VERSION
    stated = IMPLEMENTATIONS[scenario.training.implementation].version
    if BY_PATH["training.torch_version"].applies(scenario):
        stated = stated.replace("PyTorch 2.13", f"PyTorch {scenario.training.torch_version}")
    return f"{stated}, memgui {__version__}"


class Assembly:
    """Puts an estimate together: peak, components, overhead, verdict."""

    def __init__(self, scenario: Scenario, run: Run) -> None:
        self.scenario = scenario
        self.run = run
        self.training = scenario.task == "training"
        self.chip = capability(scenario.device.compute_capability)
        self.scratch = run.scratch()
        self.workspace = cublas_workspace(self.chip, training=self.training) + self.scratch
        old = self.training and scenario.training.implementation == OLD
        self.context = context(self.chip, old=old)
        self.persistent = run.persistent()
        training = scenario.training
        self.expandable = self.training and training.expandable_segments
        whole = training.activation_checkpointing == "full" and training.checkpoint_every == 1
        self.recomputed = self.training and whole
        self.segments_loaded = run.segments_loaded()

    def allocated(self, amount: Amount) -> int:
        """What ``torch.cuda.max_memory_allocated()`` would print."""
        return amount.bytes + self.excess(amount) + self.workspace

    def excess(self, amount: Amount) -> int:
        """What the allocator's blocks add to ``amount``: less than a thousandth where segments grow."""
        return 0 if self.expandable else amount.excess

    def fragmentation(self, amount: Amount) -> Range:
        """What is reserved beside what is allocated at ``amount``: no less than loading has left."""
        allocated = self.allocated(amount)
        found = fragmentation(
            allocated,
            self.persistent,
            training=self.training,
            recomputed=self.recomputed,
            expandable=self.expandable,
        )
        left = self.segments_loaded - allocated
        return found if left <= found.usual else Range(left, left, left, LOADED_SOURCE)

    def overhead(self, amount: Amount) -> Beside:
        """What is beside the tensors."""
        counted = self.excess(amount) + self.workspace + amount.components.get("overhead", 0)
        return Beside(counted + self.fragmentation(amount).usual + self.context.usual, counted)

    def at_least(self) -> int:
        """No more than the peak's bytes: those of all things, as if blocks added nothing to them."""
        bytes_ = self.run.most() + self.workspace
        loose = fragmentation(
            bytes_,
            self.persistent,
            training=self.training,
            recomputed=self.recomputed,
            expandable=self.expandable,
        )
        return bytes_ + loose.usual + self.context.usual

    @cached_property
    def found(self) -> Found:
        """The run's peak."""
        return self.run.peak()

    @cached_property
    def peak(self) -> Moment:
        """The moment of it."""
        found = self.found
        return moment(
            found.key, found.stage, found.template, self.whole, self.overhead, found.layer, found.operator
        )

    @once
    def whole(self) -> Amount:
        """What is alive then."""
        return self.found.base.plus(self.found.amount)

    @once
    def loose(self) -> Range:
        """What is reserved beside what is allocated then."""
        return self.fragmentation(self.whole)

    @cached_property
    def reach(self) -> tuple[int, int]:
        """The least and the most bytes that the peak may take."""
        allocated, loose = self.allocated(self.whole), self.loose
        doubt = self.run.doubt(self.found)
        return allocated + loose.low + self.context.low, allocated + loose.high + self.context.high + doubt

    def estimate(self, reach: tuple[int, int] | None = None) -> Estimate:
        """The estimate; ``reach`` is that of all devices where there are others."""
        scenario, run, found, peak, whole = self.scenario, self.run, self.found, self.peak, self.whole
        allocated, loose = self.allocated(whole), self.loose
        low, high = reach or self.reach
        components = (*self._components(found, whole), self._overhead(whole, loose))
        return Estimate(
            scenario=scenario,
            method="detailed",
            version=version(scenario),
            parameters=run.account.parameters,
            components=components,
            peak_bytes=peak.bytes,
            peak_moment=peak,
            low_bytes=low,
            high_bytes=high,
            allocated_bytes=allocated,
            reserved_bytes=allocated + loose.usual,
            timeline=Timeline(partial(run.moments, self.overhead)),
            ranks=(Rank("0", peak.bytes),),
            verdict=verdict(peak.bytes, self.least(allocated, low), high, scenario.device.memory_bytes),
            assumptions=run.assumptions(),
            extra=run.extra(),
        )

    def least(self, allocated: int, low: int) -> int:
        """Bytes with fewer of which it is certain to fail."""
        return low

    def _components(self, found: Found, whole: Amount) -> tuple[Node, ...]:
        breakdown = Breakdown(
            self.run.scenario_of(found), self.run.program_of(found), self.run.values_of(found)
        )

        def listed(key: str) -> list[Listed]:
            own: list[Listed] = list(self.run.held(found).get(key, ()))
            own.extend(
                (thing, count) for (thing, component), count in found.bag().items() if component == key
            )
            return own

        return tuple(
            breakdown.component(key, whole.components.get(key, 0), partial(listed, key))
            for key in COMPONENTS
            if key != "overhead"
        )

    def _overhead(self, whole: Amount, loose: Range) -> Node:
        chip = self.context
        parts = (
            stated(
                "block_rounding",
                QT_TRANSLATE_NOOP("estimator", "Block rounding"),
                self.excess(whole),
                ALLOCATOR_SOURCE,
                QT_TRANSLATE_NOOP(
                    "estimator",
                    "PyTorch's allocator gives blocks of whole 512 bytes, from 10 MiB on of whole 2 MiB.",
                ),
                depends=self._lengths(),
            ),
            stated(
                "workspaces",
                QT_TRANSLATE_NOOP("estimator", "Library workspaces"),
                self.workspace - self.scratch,
                CUBLAS_SOURCE,
                QT_TRANSLATE_NOOP(
                    "estimator", "cuBLAS keeps one workspace for each thread that multiplies matrices."
                ),
                depends=("device.compute_capability", "task"),
            ),
            stated(
                "kernels",
                QT_TRANSLATE_NOOP("estimator", "Inside kernels"),
                whole.components.get("overhead", 0),
                KERNELS_SOURCE,
                QT_TRANSLATE_NOOP(
                    "estimator",
                    "Allocated by the kernel that runs at the peak, beside its results.",
                ),
                depends=self._lengths(),
            ),
            fragmented(whole, loose, self.allocated(whole), self.persistent, self._decisive()),
            stated(
                "context",
                QT_TRANSLATE_NOOP("estimator", "CUDA context"),
                chip.usual,
                chip.source,
                QT_TRANSLATE_NOOP("estimator", "The driver's own memory for each process; known as a range."),
                chip,
                depends=("device.compute_capability",),
            ),
        )
        return Node("overhead", COMPONENTS["overhead"], 0, (*parts, *self._unpacked()))

    def _lengths(self) -> tuple[str, str]:
        """The fields that most sizes of tensors grow with."""
        if self.training:
            return "training.micro_batch_size", "training.sequence_length"
        return "inference.batch_size", "inference.prompt_tokens"

    def _decisive(self) -> tuple[str, ...]:
        """The fields that decide which share of what moves is lost."""
        if self.training:
            return "training.activation_checkpointing", "training.expandable_segments"
        return ("task",)

    def _unpacked(self) -> tuple[Node, ...]:
        if not self.scratch:
            return ()
        return (
            stated(
                "unpacked",
                QT_TRANSLATE_NOOP("estimator", "Unpacked weights"),
                self.scratch,
                SCRATCH_SOURCE,
                QT_TRANSLATE_NOOP(
                    "estimator", "AutoGPTQ's kernels keep room for the largest packed matrix in 16 bits."
                ),
                depends=("inference.weight_format",),
            ),
        )
