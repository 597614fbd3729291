"""Geometry, splitters and open sections of the window, kept in an ini file that may be lost."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSettings
from PySide6.QtWidgets import QMainWindow, QSplitter


class WindowState:
    """Reads and writes one ini file; whatever is wrong in it counts as not there."""

    def __init__(self, path: Path) -> None:
        with suppress(OSError):  # a home that cannot be written forgets the layout, no more
            path.parent.mkdir(parents=True, exist_ok=True)
        self._file = QSettings(str(path), QSettings.Format.IniFormat)

    def flag(self, key: str, default: bool) -> bool:
        """An on or off kept under ``key``."""
        value = str(self._file.value(key, "")).lower()
        return value == "true" if value in ("true", "false") else default

    def names(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """Names kept under ``key``."""
        if not self._file.contains(key):
            return default
        return tuple(part for part in str(self._file.value(key)).split(" ") if part)

    def put(self, key: str, value: bool | str | tuple[str, ...]) -> None:
        """Keep a value under ``key``."""
        if isinstance(value, bool):
            self._file.setValue(key, "true" if value else "false")
        else:
            self._file.setValue(key, value if isinstance(value, str) else " ".join(value))

    def restore_window(self, window: QMainWindow) -> bool:
        """Put the window where it was; false where that is not known."""
        held = self._bytes("geometry")
        return held is not None and window.restoreGeometry(held)

    def restore_splitter(self, key: str, splitter: QSplitter) -> bool:
        """Put a splitter's handles where they were; false where that is not known."""
        held = self._bytes(f"splitter/{key}")
        return held is not None and splitter.restoreState(held)

    def keep(self, window: QMainWindow, splitters: dict[str, QSplitter]) -> None:
        """Write where everything is."""
        self._file.setValue("geometry", window.saveGeometry())
        for key, splitter in splitters.items():
            self._file.setValue(f"splitter/{key}", splitter.saveState())
        self._file.sync()

    def _bytes(self, key: str) -> QByteArray | None:
        value: Any = self._file.value(key)
        return value if isinstance(value, QByteArray) else None
