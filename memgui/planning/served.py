"""What is said of a set-up that serves: room left, tokens in all, how far it goes, peaks of phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgui.estimator.result import Estimate
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP, Scenario
from memgui.spec.fields import BY_PATH

if TYPE_CHECKING:
    from memgui.planning.serving import Limits


def phase_peaks(estimate: Estimate) -> dict[str, int]:
    """The most bytes of each phase of the timeline (``forward``, ``backward``, ``prefill``, …)."""
    peaks: dict[str, int] = {}
    for moment in estimate.timeline:
        phase = moment.phase.partition(".")[0]
        peaks[phase] = max(peaks.get(phase, 0), moment.bytes)
    return peaks


def length(scenario: Scenario) -> int:
    """Tokens of each sequence when all are generated."""
    return scenario.inference.prompt_tokens + scenario.inference.generated_tokens


def told(estimate: Estimate) -> tuple[Said, ...]:
    """What an estimate of a set-up that serves says at once: room left, tokens of a pool."""
    if estimate.scenario.task != "inference" or estimate.verdict.kind == "unknown":
        return ()
    said: list[Said] = []
    room = estimate.verdict.headroom_bytes
    if room >= 0:
        said.append(Said(QT_TRANSLATE_NOOP("why", "{size} stay free."), sizes={"size": room}))
    tokens = estimate.extra.get("pool_tokens")
    if tokens:  # none where only states are kept
        text = QT_TRANSLATE_NOOP(
            "why", "{tokens} {tokens:token fits|tokens fit} in all, of all sequences together."
        )
        said.append(Said(text, counts={"tokens": tokens}))
    return tuple(said)


_PHASES = (
    ("prefill", QT_TRANSLATE_NOOP("why", "The prompt needs {first} at its peak, decoding {decode}.")),
    ("profile", QT_TRANSLATE_NOOP("why", "The profile run needs {first} at its peak, serving {decode}.")),
)


def found(estimate: Estimate, far: Limits) -> tuple[Said, ...]:
    """The phases, which takes a look at the whole timeline, and the limits in words."""
    scenario = estimate.scenario
    sequences = scenario.inference.batch_size
    said: list[Said] = []
    peaks = phase_peaks(estimate)
    for first, text in _PHASES:
        if first in peaks and "decode" in peaks:
            said.append(Said(text, sizes={"first": peaks[first], "decode": peaks["decode"]}))
    if far.context is not None:
        counts = {"tokens": far.context, "count": sequences, "all": far.context * sequences}
        text = QT_TRANSLATE_NOOP("why", "Context: up to {tokens} {tokens:token|tokens}.")
        if sequences > 1:
            text = QT_TRANSLATE_NOOP(
                "why",
                "Context: up to {tokens} {tokens:token|tokens} for each of {count} sequences, {all} in all.",
            )
        said.append(Said(text, counts=counts))
    if far.sequences is not None:
        text = QT_TRANSLATE_NOOP(
            "why",
            "At once: up to {count} {count:sequence|sequences} of {tokens} {tokens:token|tokens}.",
        )
        said.append(Said(text, counts={"count": far.sequences, "tokens": length(scenario)}))
    if far.format is not None:
        choice = BY_PATH[far.format.change.path].choice(far.format.change.new)
        label = choice.label if choice is not None else str(far.format.change.new)
        text = QT_TRANSLATE_NOOP("why", "Best weights that surely fit: {format}.")
        said.append(Said(text, words={"format": ("fields", label)}))
    return tuple(said)
