"""What Transformers' configuration classes say of a key that a config.json leaves out.

The table is made by ``python -m tests.importers.make_class_defaults`` from the classes' declared
defaults; it holds facts only, one line per ``model_type``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from memgui._resources import root


class ClassDefaults(msgspec.Struct, frozen=True):
    """One configuration class.

    ``nullable`` keys may be ``null`` although their default is not, ``lists`` may be a list with one
    entry for each layer although it is a number; ``names`` says under which of its own names the class
    keeps common attributes.
    """

    defaults: dict[str, Any] = {}
    nullable: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    names: dict[str, str] = {}
    null_is_absent: bool = False
    """Nobody here knows the class: what it does with ``null`` is not for us to refuse."""

    def knows(self, key: str) -> bool:
        """Whether the class has such a key."""
        return key in self.defaults or key in self.nullable

    def may_be_null(self, key: str) -> bool:
        """Whether the class lets ``key``, which it knows, be ``null``."""
        return key in self.nullable or self.defaults.get(key) is None


@cache
def _rows() -> dict[str, msgspec.Raw]:
    text = (root() / "catalog" / "class_defaults.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


def source() -> str:
    """Which version of Transformers the table was made from."""
    return msgspec.json.decode(_rows()["source"], type=str)


def known_types() -> tuple[str, ...]:
    """Every ``model_type`` in the table."""
    return tuple(key for key in _rows() if key != "source")


def class_defaults(model_type: str) -> ClassDefaults | None:
    """The row of ``model_type``, or ``None`` where Transformers has no such class."""
    row = _rows().get(model_type) if model_type != "source" else None
    return None if row is None else msgspec.json.decode(row, type=ClassDefaults)
