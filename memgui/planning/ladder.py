"""The context ladder: what each usual length needs, with the longest that fits at its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memgui.planning.ask import Answer, Asker
from memgui.planning.changes import Change, apply, change
from memgui.planning.solve import solve
from memgui.spec import Scenario, get

FIRST = 4096
UNLIMITED = 2**20
"""Where the ladder ends for a model without a longest sequence (tokens)."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One length (tokens of one sequence, generated ones included) and what it needs.

    ``changes`` lead there from the scenario that was asked about; none on the present rung.
    """

    tokens: int
    answer: Answer
    changes: tuple[Change, ...]
    is_largest: bool = False

    @property
    def is_present(self) -> bool:
        """Whether this is the length as it stands."""
        return not self.changes


def length_path(scenario: Scenario) -> str:
    """The field that makes a sequence longer."""
    return "training.sequence_length" if scenario.task == "training" else "inference.prompt_tokens"


def _generated(scenario: Scenario) -> int:
    return 0 if scenario.task == "training" else scenario.inference.generated_tokens


def lengths(scenario: Scenario, most: int = 8) -> tuple[int, ...]:
    """The usual lengths: 4k, 8k, … and the model's limit; the last ``most`` of them, and the present one."""
    limit = scenario.model.max_position_embeddings or UNLIMITED
    usual: list[int] = []
    length = min(FIRST, limit)
    while length < limit:
        usual.append(length)
        length *= 2
    usual.append(limit)
    generated = _generated(scenario)
    present: int = get(scenario, length_path(scenario)) + generated
    return tuple(sorted({*(one for one in usual[-most:] if one > generated), present}))


def ladder(scenario: Scenario, ask: Asker | None = None, most: int = 8) -> Iterator[Rung]:
    """The rungs as they are found: first every usual length, then the longest that fits.

    The longest is left out where nothing fits, where it is a rung already, and where it lies beyond
    what the model was made for.  :func:`climbed` gives all of them in order.
    """
    ask = Asker() if ask is None else ask
    path, generated = length_path(scenario), _generated(scenario)

    def rung(tokens: int, *, is_largest: bool = False) -> Rung:
        one = change(scenario, path, tokens - generated)
        changes = (one,) if one.new != one.old else ()
        return Rung(tokens, ask(apply(scenario, changes)), changes, is_largest)

    usual = lengths(scenario, most)
    for tokens in usual:
        yield rung(tokens)
    solution = solve(scenario, path, ask)
    if solution.largest is None:
        return
    longest = solution.largest + generated
    if longest not in usual and longest < max(usual):
        yield rung(longest, is_largest=True)


def climbed(scenario: Scenario, ask: Asker | None = None, most: int = 8) -> tuple[Rung, ...]:
    """All rungs, shortest first."""
    return tuple(sorted(ladder(scenario, ask, most), key=lambda rung: rung.tokens))
