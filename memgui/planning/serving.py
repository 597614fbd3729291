"""What people ask of a set-up that serves: the best weights that fit, the peaks of prompt and decoding."""

from __future__ import annotations

from dataclasses import dataclass

from memgui.estimator.result import Estimate
from memgui.planning.ask import Answer, Asker, surely_fits
from memgui.planning.changes import Change, apply
from memgui.planning.ways.costs import bits_of
from memgui.planning.ways.rules import other_choices
from memgui.spec import Scenario
from memgui.spec.fields import BY_PATH


@dataclass(frozen=True, slots=True)
class Format:
    """A weight format in which a serving scenario surely fits."""

    change: Change
    answer: Answer
    bits: float


def best_weight_format(scenario: Scenario, ask: Asker | None = None) -> Format | None:
    """Of the formats that the engine loads the one with most bits in which ``scenario`` surely fits.

    Of equal ones the first of the field's table.  ``None`` where there is none, and in training.
    """
    ask = Asker() if ask is None else ask
    field = BY_PATH["inference.weight_format"]
    if not field.applies(scenario):
        return None
    present = scenario.inference.weight_format
    changes = [Change(field.path, present, present), *other_choices(scenario, field)]
    known = [(bits, one) for one in changes if (bits := bits_of(str(one.new))) is not None]
    for bits, one in sorted(known, key=lambda pair: -pair[0]):
        answer = ask(apply(scenario, (one,)))
        if answer.estimate is not None and surely_fits(answer.estimate):
            return Format(one, answer, bits)
    return None


def phase_peaks(estimate: Estimate) -> dict[str, int]:
    """The most bytes of each phase of the timeline (``forward``, ``backward``, ``prefill``, …)."""
    peaks: dict[str, int] = {}
    for moment in estimate.timeline:
        phase = moment.phase.partition(".")[0]
        peaks[phase] = max(peaks.get(phase, 0), moment.bytes)
    return peaks
