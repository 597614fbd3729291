"""What a real run used, beside the estimate: read, compared, explained.

:func:`typed` and :func:`parse` make :class:`Measurement` records, :func:`to_plain` and
:func:`from_plain` keep them with a preset, :func:`beside` and :func:`counts_beside` set them against
an estimate figure by figure, :func:`explain` says what could account for the difference.
"""

from __future__ import annotations

from memgui.planning.measured.beside import Beside, Count, beside, counts_beside
from memgui.planning.measured.explain import explain
from memgui.planning.measured.parse import parse, typed
from memgui.planning.measured.records import (
    COUNTERS,
    ENTERED,
    HOST,
    PARTS,
    Counter,
    Figure,
    Measurement,
    from_plain,
    named_part,
    subject,
    to_plain,
)
from memgui.planning.measured.saying import Explanation

__all__ = [
    "COUNTERS",
    "ENTERED",
    "HOST",
    "PARTS",
    "Beside",
    "Count",
    "Counter",
    "Explanation",
    "Figure",
    "Measurement",
    "beside",
    "counts_beside",
    "explain",
    "from_plain",
    "named_part",
    "parse",
    "subject",
    "to_plain",
    "typed",
]
