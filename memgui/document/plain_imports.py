"""Imports that PySide6 does not stand between.

What it puts into ``builtins.__import__`` reads the source of every module imported from then on, looking
for a switch (``from __feature__ import ...``) that nothing of ours asks for.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager

_PLAIN = builtins.__import__


@contextmanager
def plain_imports() -> Iterator[None]:
    """Have Python alone do the imports of this block.  To be imported before PySide6 is."""
    import PySide6.QtCore  # noqa: F401

    reading, builtins.__import__ = builtins.__import__, _PLAIN
    try:
        yield
    finally:
        builtins.__import__ = reading
