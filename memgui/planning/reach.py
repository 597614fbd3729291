"""How far a set-up goes: the longest sequences, the most of them, the smallest device, the best format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memgui.estimator.result import Estimate
from memgui.planning.ask import Answer, Asker, surely_fits
from memgui.planning.changes import Change, apply
from memgui.planning.devices import OnDevice, smallest_device
from memgui.planning.ladder import length_path
from memgui.planning.solve import Solution, solve
from memgui.planning.ways.costs import bits_of
from memgui.planning.ways.rules import other_choices
from memgui.spec import Device, Scenario
from memgui.spec.fields import BY_PATH


@dataclass(frozen=True, slots=True)
class Reach:
    """All else as it stands: the longest sequence, the most sequences, the least device.

    Lengths are those of :func:`memgui.planning.ladder.length_path`: of prompts where the scenario
    serves.  ``device`` is ``None`` where none of those offered is enough.
    """

    length: Solution
    batch: Solution
    device: OnDevice | None


def batch_path(scenario: Scenario) -> str:
    """The field that takes more sequences at once."""
    return "training.micro_batch_size" if scenario.task == "training" else "inference.batch_size"


def reach(scenario: Scenario, devices: Iterable[Device] = (), ask: Asker | None = None) -> Reach:
    """How far ``scenario`` goes in each direction alone."""
    ask = Asker(remember=True) if ask is None else ask
    return Reach(
        solve(scenario, length_path(scenario), ask),
        solve(scenario, batch_path(scenario), ask),
        smallest_device(scenario, devices, ask),
    )


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
