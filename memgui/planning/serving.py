"""What people ask of a set-up that serves and has to be looked for: how far it goes, the best weights."""

from __future__ import annotations

from dataclasses import dataclass

from memgui.planning.ask import Answer, Asker, surely_fits
from memgui.planning.changes import Change, apply
from memgui.planning.ladder import length_path
from memgui.planning.reach import batch_path
from memgui.planning.served import length
from memgui.planning.solve import solve
from memgui.planning.ways.rounding import bits_of
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


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a set-up that serves goes, all else as it is.

    ``context`` is tokens of each sequence, generated ones included; ``sequences`` how many of the
    present length.  ``None`` where not even the least fits, or no format.
    """

    context: int | None
    sequences: int | None
    format: Format | None


def limits(scenario: Scenario, ask: Asker | None = None) -> Limits | None:
    """The limits of a scenario that serves; nothing in training."""
    if scenario.task != "inference" or not scenario.model.is_decoder:
        return None
    ask = Asker() if ask is None else ask
    prompt = solve(scenario, length_path(scenario), ask).largest
    longest = scenario.model.max_position_embeddings
    context = None if prompt is None else prompt + scenario.inference.generated_tokens
    if context is not None and longest:
        context = min(context, max(longest, length(scenario)))
    sequences = solve(scenario, batch_path(scenario), ask).largest
    return Limits(context, sequences, best_weight_format(scenario, ask))
