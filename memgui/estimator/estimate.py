"""``estimate(scenario)``: the answer, from the ledger or from a published method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from memgui.estimator.account import account
from memgui.estimator.assembly import VERSION, Assembly
from memgui.estimator.engines import account_of
from memgui.estimator.inference import InferenceRun
from memgui.estimator.moments import Amount, Beside, moment
from memgui.estimator.options import options
from memgui.estimator.program import Program, compiled
from memgui.estimator.quantisation import scheme_of
from memgui.estimator.refusals import NotCovered, Refused, not_with
from memgui.estimator.result import (
    COMPONENTS,
    Estimate,
    Node,
    Parameters,
    Rank,
    Verdict,
)
from memgui.estimator.run import Run
from memgui.estimator.run_coverage import require_covered_run
from memgui.estimator.split import Stage
from memgui.estimator.stages import is_spread, narrowed, placed, rank_of, require_spreadable
from memgui.estimator.training import TrainingRun
from memgui.estimator.training_ranks import is_split, layers_of, stage_runs
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, allowed
from memgui.spec.scenario import Scenario


def estimate(scenario: Scenario) -> Estimate:
    """Which bytes are on one device at the worst moment, and why.

    The scenario must be one that ``memgui.spec.validate`` finds no error in.
    """
    try:
        if scenario.method != "detailed":
            from memgui.estimator.methods import estimate_by_method  # what few ask for waits until they do

            # they know of no adapters, and of no code that runs a model
            return estimate_by_method(scenario, parameters(Scenario(model=scenario.model)))
        serve = account_of(scenario.inference.engine) if scenario.task == "inference" else None
        if serve is not None:
            return serve(scenario)
        if is_spread(scenario):
            return _spread(scenario)
        if is_split(scenario):
            return _staged(scenario)
        return Assembly(scenario, run_of(scenario)).estimate()
    except NotCovered as fault:
        return unknown(scenario, fault.message, fault.issues)


def unknown(scenario: Scenario, reason: Message, issues: tuple[Issue, ...] = ()) -> Estimate:
    """The answer where there is none: everything 0, and the verdict says why.

    ``issues`` are errors where that is what was chosen, and not what memgui models.
    """
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
        issues=issues,
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
        stages = (run for _, run in each_stage(scenario, whole=whole))
        return max(stages, key=lambda run: Assembly(scenario, run).peak.bytes)
    program = compiled(scenario.model, options(scenario))
    if scenario.task != "training":
        return InferenceRun(scenario, program)
    run = TrainingRun(scenario, program, whole=whole)
    _require_trained(scenario, run)
    return run


def each_stage(
    scenario: Scenario, *, whole: bool = True, backward: bool = False
) -> Iterator[tuple[str, TrainingRun]]:
    """The run of each pipeline stage (:func:`stage_runs`); raises :class:`NotCovered`."""
    require_covered_run(scenario)
    looked_at = False
    for name, run in stage_runs(scenario, whole=whole, backward=backward):
        if not looked_at:  # each counts the whole model
            _require_trained(scenario, run)
            looked_at = True
        yield name, run


def _require_trained(scenario: Scenario, run: TrainingRun) -> None:
    """Raise where the step would train nothing, or not what was chosen."""
    training = scenario.training
    if not run.account.parameters.trainable:
        raise _nothing_trained(scenario)
    if training.method != "lora":
        return
    from memgui.estimator.targets import TARGETS, halved  # what few ask for waits until they do

    half = halved(scenario)
    if half is not None:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{path} cannot be {value} without {other}: the experts have both in one weight, and PEFT adapts "
            "all of it or nothing.",
        )
        raise _refusal(TARGETS, text, half[:1], other=half[1])
    if training.lora.modules_to_save:
        _require_saved_modules(scenario, compiled(scenario.model, options(scenario)))


def _require_saved_modules(scenario: Scenario, program: Program) -> None:
    """Raise where a module that shall be trained whole is none that is known to be."""
    made = {parameter.name for weights, _ in program.weights() for parameter in weights}
    called = program.context.names
    path = "training.lora.modules_to_save"
    for name in scenario.training.lora.modules_to_save:
        name_here = {"embed_tokens": called["embedding"], called["head"]: "lm_head"}.get(name, name)
        if f"{name_here}.modules_to_save" not in made:
            text = QT_TRANSLATE_NOOP(
                "messages",
                "{path} cannot be {value}: the model has no {value} that can be trained whole here.",
            )
            raise _refusal(path, text, (name,), (choice.value for choice in BY_PATH[path].choices))


def _nothing_trained(scenario: Scenario) -> NotCovered:
    training = scenario.training
    if training.method == "lora":
        from memgui.estimator.targets import EVERY, TARGETS, adaptable  # what few ask for waits until they do

        asked = training.lora.target_modules
        if asked:
            text = QT_TRANSLATE_NOOP(
                "messages",
                "{path} cannot be {value}: the model has no layers called so, and nothing would be trained.",
            )
        else:
            text = QT_TRANSLATE_NOOP("messages", "{path} cannot be empty: nothing would be trained.")
        return _refusal(TARGETS, text, asked, (*adaptable(scenario), EVERY))
    if training.method == "frozen":
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{path} cannot be {value}: the head is the embedding's weight, which is frozen, and nothing "
            "would be trained.",
        )
        return _refusal("training.method", text, (training.method,))
    return NotCovered(not_with("training.method", training.method, scenario.model.model_type))


def _refusal(path: str, text: str, values: Iterable[str], may_be: Iterable[str] = (), **more: str) -> Refused:
    said = Message(text, {"path": path, "value": Named(path, tuple(values)), **more})
    may = tuple(may_be)
    return Refused(Issue("error", "not_trained", (path,), said, allowed(path, *may) if may else None))


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
    return of_stages(scenario, each_stage(scenario))


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
