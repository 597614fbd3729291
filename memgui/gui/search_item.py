"""One row of a search."""

from __future__ import annotations

from typing import Any

import msgspec


class Item(msgspec.Struct, frozen=True):
    """One row: ``title``, a secondary ``note`` at its right, ``details`` shown beside the list.

    ``group`` is a heading shown before the first row of each group.
    """

    title: str
    note: str = ""
    details: str = ""
    value: Any = None
    group: str = ""
