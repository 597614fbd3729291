"""Older files made into what this version reads, one schema at a time.

A step is a pure function from the envelope of one schema to that of the next; step ``n - 1`` leads from
schema ``n`` to ``n + 1``.  A change of a field's name, unit or meaning raises the schema and adds a step,
with a fixture of the schema it leaves; a new field that has a default does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

Envelope = dict[str, Any]
Step = Callable[[Envelope], Envelope]

STEPS: Final[tuple[Step, ...]] = ()
"""The steps from schema 1 to the newest, in order."""

SCHEMA: Final = len(STEPS) + 1
"""The schema that is written."""


def migrate(envelope: Envelope, schema: int, steps: Sequence[Step] = STEPS) -> Envelope:
    """``envelope``, of ``schema``, as one of the newest schema; the argument is left as it was.

    ``schema`` lies between 1 and ``len(steps) + 1``.
    """
    for step in steps[schema - 1 :]:
        envelope = step(envelope)
    return envelope
