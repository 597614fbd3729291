"""Files opened lately: a list without doubles, and which of them are there, asked without waiting."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from typing import Final

MOST: Final = 12
"""Longest list of recent files."""


def with_recent(files: tuple[str, ...], path: str | os.PathLike[str]) -> tuple[str, ...]:
    """``files`` with ``path`` (made absolute) before the others; a path that is no text is not remembered."""
    newest = os.path.abspath(path)
    if not newest.isprintable():
        return files
    return (newest, *(file for file in files if not _same(file, newest)))[:MOST]


def without_recent(files: tuple[str, ...], path: str | os.PathLike[str]) -> tuple[str, ...]:
    """``files`` without ``path``."""
    gone = os.path.abspath(path)
    return tuple(file for file in files if not _same(file, gone))


def missing(files: Iterable[str], patience_s: float = 0.2) -> frozenset[str]:
    """Those of ``files`` that are known not to be there.

    A network folder that does not answer within ``patience_s`` seconds (for all together) does not make
    the caller wait: its files count as present.
    """
    gone: set[str] = set()

    def look(file: str) -> None:
        try:
            os.stat(file)
        except FileNotFoundError:
            gone.add(file)
        except (OSError, ValueError):
            pass

    threads = [threading.Thread(target=look, args=(file,), daemon=True) for file in files]
    for thread in threads:
        thread.start()
    until = time.monotonic() + patience_s
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return frozenset(tuple(gone))


def _same(one: str, other: str) -> bool:
    return os.path.normcase(one) == os.path.normcase(other)
