"""One row of a search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """One row: ``title``, a secondary ``note`` at its right, ``details`` shown beside the list.

    ``group`` is a heading shown before the first row of each group.
    """

    title: str
    note: str = ""
    details: str = ""
    value: Any = None
    group: str = ""
