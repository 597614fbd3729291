"""``estimate(scenario)``: the answer, from the ledger or from a published method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial

import msgspec

from memgui import __version__
from memgui.estimator.account import account
from memgui.estimator.breakdown import Breakdown, Listed
from memgui.estimator.coverage import NotCovered, not_with, require_covered_run
from memgui.estimator.engines import account_of
from memgui.estimator.inference import InferenceRun
from memgui.estimator.loose import fragmented, stated
from memgui.estimator.modules.implementations import IMPLEMENTATIONS
from memgui.estimator.moments import Amount, Beside, Timeline, moment
from memgui.estimator.options import OLD, capability, options
from memgui.estimator.overhead import (
    ALLOCATOR_SOURCE,
    CUBLAS_SOURCE,
    KERNELS_SOURCE,
    SCRATCH_SOURCE,
    Range,
    context,
    cublas_workspace,
    fragmentation,
)
from memgui.estimator.program import Program, compiled
from memgui.estimator.quantisation import scheme_of
from memgui.estimator.result import (
    COMPONENTS,
    Estimate,
    Moment,
    Node,
    Parameters,
    Rank,
    Verdict,
)
from memgui.estimator.run import Found, Run
from memgui.estimator.split import Stage
from memgui.estimator.stages import is_spread, narrowed, placed, rank_of, require_spreadable
from memgui.estimator.training import TrainingRun
from memgui.estimator.training_ranks import is_split, layers_of, stage_runs
from memgui.estimator.verdict import verdict
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

VERSION = f"{IMPLEMENTATIONS['transformers'].version}, memgui {__version__}"
"""What the figures stand for, where nothing else is chosen."""


def version(scenario: Scenario) -> str:
    """The versions that the figures stand for."""
    if scenario.task != "training":
        return VERSION
    return f"{IMPLEMENTATIONS[scenario.training.implementation].version}, memgui {__version__}"


def estimate(scenario: Scenario) -> Estimate:
    """Which bytes are on one device at the worst moment, and why.

    The scenario must be one that ``memgui.spec.validate`` finds no error in.
    """
    try:
        if scenario.method != "detailed":
            from memgui.estimator.methods import estimate_by_method  # what few ask for waits until they do

            return estimate_by_method(scenario, parameters(scenario))
        serve = account_of(scenario.inference.engine) if scenario.task == "inference" else None
        if serve is not None:
            return serve(scenario)
        if is_spread(scenario):
            return _spread(scenario)
        if is_split(scenario):
            return _staged(scenario)
        return Assembly(scenario, run_of(scenario)).estimate()
    except NotCovered as fault:
        return unknown(scenario, fault.message)


def unknown(scenario: Scenario, reason: Message) -> Estimate:
    """The answer where there is none: everything 0, and the verdict says why."""
    nothing = moment("unknown", "unknown", "", Amount({}, 0), lambda amount: Beside(0, 0))
    return Estimate(
        scenario=scenario,
        method=scenario.method,
        version=VERSION,
        parameters=Parameters(0, 0, 0, {}),
        components=tuple(Node(key, label) for key, label in COMPONENTS.items()),
        peak_bytes=0,
        peak_moment=nothing,
        low_bytes=0,
        high_bytes=0,
        allocated_bytes=0,
        reserved_bytes=0,
        timeline=(),
        ranks=(),
        verdict=Verdict("unknown", scenario.device.memory_bytes, 0, reason),
    )


def parameters(scenario: Scenario) -> Parameters:
    """The model's parameters, counted, with adapters where there are any."""
    program = compiled(scenario.model, options(scenario))
    return account(program).parameters


def run_of(scenario: Scenario, *, whole: bool = True) -> Run:
    """The scenario's program with its workload put in; raises :class:`NotCovered`.

    ``whole``: what kernels allocate themselves counts; a tracer of tensors does not see it.
    """
    require_covered_run(scenario)
    if is_spread(scenario):
        return max(_runs(scenario), key=lambda run: Assembly(scenario, run).peak.bytes)
    if is_split(scenario):
        stages = (run for _, run in stage_runs(scenario, whole=whole))
        return max(stages, key=lambda run: Assembly(scenario, run).peak.bytes)
    program = compiled(scenario.model, options(scenario))
    if scenario.task != "training":
        return InferenceRun(scenario, program)
    run = TrainingRun(scenario, program, whole=whole)
    if not run.account.parameters.trainable:
        raise NotCovered(_nothing_trained(scenario))
    if scenario.training.method == "lora" and scenario.training.lora.modules_to_save:
        _require_saved_modules(scenario, program)
    return run


def _require_saved_modules(scenario: Scenario, program: Program) -> None:
    """Raise :class:`NotCovered` where a module that shall be trained whole is none that is known to be."""
    made = {parameter.name for weights, _ in program.weights() for parameter in weights}
    called = program.context.names
    for name in scenario.training.lora.modules_to_save:
        name_here = {"embed_tokens": called["embedding"], called["head"]: "lm_head"}.get(name, name)
        if f"{name_here}.modules_to_save" not in made:
            text = QT_TRANSLATE_NOOP("messages", "The model has no {module} that can be trained whole here.")
            raise NotCovered(Message(text, {"module": name}))


def _nothing_trained(scenario: Scenario) -> Message:
    training = scenario.training
    if training.method == "lora":
        from memgui.estimator.targets import EVERY, adaptable  # what few ask for waits until they do

        asked, there = ", ".join(training.lora.target_modules), ", ".join(adaptable(scenario))
        if not asked:
            text = QT_TRANSLATE_NOOP(
                "messages",
                "No target modules are chosen: nothing would be trained. The model has {there}; {every} "
                "means all of them.",
            )
            return Message(text, {"there": there, "every": EVERY})
        text = QT_TRANSLATE_NOOP(
            "messages",
            "The model has no layers called {targets}: nothing would be trained. It has {there}; {every} "
            "means all of them.",
        )
        return Message(text, {"targets": asked, "there": there, "every": EVERY})
    if training.method == "frozen":
        text = QT_TRANSLATE_NOOP(
            "messages", "The head is the embedding's weight, which is frozen: nothing would be trained."
        )
        return Message(text)
    return not_with("training.method", training.method, scenario.model.model_type)


def _runs(scenario: Scenario) -> list[InferenceRun]:
    """What each device runs of a model that Transformers spreads; of ranks that are alike the first."""
    require_covered_run(scenario)
    require_spreadable(scenario)
    narrow = narrowed(scenario)
    program = compiled(narrow.model, options(narrow))
    if scenario.parallelism.tensor > 1:
        return [InferenceRun(narrow, program, rank_of(narrow))]
    alike: dict[object, InferenceRun] = {}  # devices with layers that are alike run the same
    found: list[InferenceRun] = []
    scheme = scheme_of(scenario)
    by_place = scheme is not None and bool(scheme.mix or scheme.table)  # each layer is stored in its own way
    for share in placed(scenario, program, scheme):
        span = Stage(share.stem, share.tail, ((share.start, (share.stop or 0) - share.start),))
        key = share if by_place else layers_of(program, span)
        if key not in alike:
            alike[key] = InferenceRun(scenario, program, share)
        found.append(alike[key])
    return found


def _spread(scenario: Scenario) -> Estimate:
    """The estimate of the fullest device, with every device's peak; devices do not run at once."""
    devices = _assembled(scenario, _runs(scenario))
    worst = max(devices, key=lambda device: device.peak.bytes)
    peaks = [device.peak.bytes for device in devices] * scenario.parallelism.tensor
    ranks = tuple(Rank(str(index), peak) for index, peak in enumerate(peaks))
    return msgspec.structs.replace(worst.estimate(), ranks=ranks, parameters=parameters(scenario))


def _staged(scenario: Scenario) -> Estimate:
    require_covered_run(scenario)
    return of_stages(scenario, stage_runs(scenario))


def of_stages(scenario: Scenario, runs: Iterable[tuple[str, Run]]) -> Estimate:
    """The estimate of the fullest pipeline stage of a training step, with every stage's peak."""
    names, each = zip(*runs, strict=True)
    stages = _assembled(scenario, each)
    worst = max(stages, key=lambda stage: stage.peak.bytes)
    peaks = [stage.peak for stage in stages]
    ranks = [Rank(name, peak.bytes, peak.allocated) for name, peak in zip(names, peaks, strict=True)]
    every = {id(stage): stage.reach for stage in stages}.values()  # where one stage fails, all do
    reach = max(low for low, _ in every), max(high for _, high in every)
    return msgspec.structs.replace(worst.estimate(reach), ranks=tuple(ranks))


def _assembled(scenario: Scenario, runs: Sequence[Run]) -> list[Assembly]:
    """One for each device; those that run the same have the same one."""
    known = {run: Assembly(scenario, run) for run in dict.fromkeys(runs)}
    return [known[run] for run in runs]


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

    def allocated(self, amount: Amount) -> int:
        """What ``torch.cuda.max_memory_allocated()`` would print."""
        return amount.bytes + self.excess(amount) + self.workspace

    def excess(self, amount: Amount) -> int:
        """What the allocator's blocks add to ``amount``: less than a thousandth where segments grow."""
        return 0 if self.expandable else amount.excess

    def fragmentation(self, amount: Amount) -> Range:
        """What is reserved beside what is allocated at ``amount``."""
        allocated = self.allocated(amount)
        return fragmentation(
            allocated,
            self.persistent,
            training=self.training,
            recomputed=self.recomputed,
            expandable=self.expandable,
        )

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
        whole = found.base.plus(found.amount)
        return moment(
            found.key, found.stage, found.template, whole, self.overhead, found.layer, found.operator
        )

    @cached_property
    def reach(self) -> tuple[int, int]:
        """The least and the most bytes that the peak may take."""
        whole = self.found.base.plus(self.found.amount)
        allocated, loose = self.allocated(whole), self.fragmentation(whole)
        doubt = self.run.doubt(self.found)
        return allocated + loose.low + self.context.low, allocated + loose.high + self.context.high + doubt

    def estimate(self, reach: tuple[int, int] | None = None) -> Estimate:
        """The estimate; ``reach`` is that of all devices where there are others."""
        scenario, run, found, peak = self.scenario, self.run, self.found, self.peak
        whole = found.base.plus(found.amount)
        allocated = self.allocated(whole)
        loose = self.fragmentation(whole)
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
        breakdown = Breakdown(self.run.scenario, self.run.program_of(found), self.run.values_of(found))

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
