"""The rows of the presets panel: the person's presets, files opened lately, built-in models by family."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel

from memgui.catalog import ModelEntry
from memgui.document.library import Library
from memgui.files.bounded import told_name
from memgui.gui.texts import message_text
from memgui.gui.tips import plain
from memgui.presets.entries import State
from memgui.spec import one_line

translate = QCoreApplication.translate

KIND = Qt.ItemDataRole.UserRole + 1
VALUE = Qt.ItemDataRole.UserRole + 2
COUNT = Qt.ItemDataRole.UserRole + 3
VERDICT = Qt.ItemDataRole.UserRole + 4
KEY = Qt.ItemDataRole.UserRole + 5
"""What the row is called from one filling to the next, to keep open what was open."""

MANY = 5
"""Families with fewer models than this stand together under "More families"."""


Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


class Row(Enum):
    """What a row is."""

    HEADING = "heading"
    FAMILY = "family"
    PRESET = "preset"
    FILE = "file"
    LOCAL = "local"
    MODEL = "model"
    DELETED = "deleted"
    HINT = "hint"


class PresetsModel(QStandardItemModel):
    """Filled anew when something changed; the models of a family when it is first opened."""

    def hasChildren(self, parent: Index = _ROOT) -> bool:
        return super().hasChildren(parent) or self.canFetchMore(parent)

    def canFetchMore(self, parent: Index) -> bool:
        return parent.data(KIND) is Row.FAMILY and not self.rowCount(parent)

    def fetchMore(self, parent: Index) -> None:
        row = self.itemFromIndex(parent)
        row.appendRows([_model(entry) for entry in parent.data(VALUE)])

    def fill(self, library: Library, text: str) -> None:
        """Show what answers ``text``; everything where it is empty."""
        words = text.casefold().split()
        self.clear()
        self._presets(library, words)
        self._files(library, words)
        self._nearby(library, words)
        self._models(library, text)
        self._deleted(library, words)

    def _presets(self, library: Library, words: list[str]) -> None:
        entries = [entry for entry in library.presets() if _has(words, entry.name, entry.notes)]
        heading = self._heading("presets", translate("Presets", "My presets"), len(entries))
        for entry in entries:
            row = _row(Row.PRESET, one_line(entry.name), entry, f"preset/{entry.key}")
            row.setEditable(entry.writable)
            row.setEnabled(entry.state is State.OK)
            tip = entry.notes if entry.message is None else message_text(entry.message)
            row.setToolTip(plain(tip or one_line(entry.name)))
            heading.appendRow(row)
        if not entries and not words:
            heading.appendRow(_hint(translate("Presets", "None yet. Ctrl+S keeps the set-up you see.")))
        self._append(heading, keep=not words)

    def _files(self, library: Library, words: list[str]) -> None:
        files = [path for path in library.recent_files() if _has(words, path)]
        heading = self._heading("files", translate("Presets", "Recent files"), len(files))
        for path in files:
            row = _row(Row.FILE, told_name(path), Path(path), f"file/{path}")
            row.setToolTip(plain(path))
            heading.appendRow(row)
        if not files and not words:
            heading.appendRow(_hint(translate("Presets", "Files you open or drop appear here.")))
        self._append(heading, keep=not words)

    def _nearby(self, library: Library, words: list[str]) -> None:
        """Models that other programs keep on this machine, where there are any."""
        found = [model for model in library.nearby.models if _has(words, model.name, model.program)]
        heading = self._heading("nearby", translate("Presets", "On this machine"), len(found))
        for model in found:
            row = _row(Row.LOCAL, model.name, model.path, f"nearby/{model.path}")
            row.setToolTip(plain(f"{model.program}\n{one_line(str(model.path))}"))
            heading.appendRow(row)
        self._append(heading, keep=False)

    def _models(self, library: Library, text: str) -> None:
        found = library.catalog.search(text, limit=1000) if text else library.catalog.models
        heading = self._heading("models", translate("Presets", "Built-in models"), len(found))
        if text:
            for entry in found:
                heading.appendRow(_model(entry))
        else:
            _by_family(heading, found)
        self._append(heading, keep=not text)

    def _deleted(self, library: Library, words: list[str]) -> None:
        """What can be brought back, where there is anything; shut at first."""
        found = [one for one in library.deleted() if _has(words, one.entry.name)]
        heading = self._heading("deleted", translate("Presets", "Deleted"), len(found))
        tip = translate("Presets", "Bring it back; it is kept for a month.")
        for one in found:
            row = _row(Row.DELETED, one_line(one.entry.name), one, f"deleted/{one.trashed.name}")
            row.setToolTip(tip)
            heading.appendRow(row)
        self._append(heading, keep=False)

    def _heading(self, key: str, text: str, count: int) -> QStandardItem:
        row = _row(Row.HEADING, text, None, f"heading/{key}")
        row.setData(count or None, COUNT)
        row.setData(f"{text}, {count}", Qt.ItemDataRole.AccessibleTextRole)
        row.setSelectable(False)
        return row

    def _append(self, heading: QStandardItem, *, keep: bool) -> None:
        if keep or heading.rowCount():
            self.appendRow(heading)

    def items(self) -> Iterable[QStandardItem]:
        """Every row, parents before children."""
        waiting = [self.invisibleRootItem()]
        while waiting:
            parent = waiting.pop(0)
            for place in range(parent.rowCount()):
                child = parent.child(place)
                yield child
                waiting.append(child)


def _by_family(heading: QStandardItem, models: Iterable[ModelEntry]) -> None:
    families: dict[str, list[ModelEntry]] = {}
    for entry in models:
        families.setdefault(entry.family, []).append(entry)
    more = [entry for entries in families.values() if len(entries) < MANY for entry in entries]
    for family, entries in families.items():
        if len(entries) >= MANY:
            heading.appendRow(_family(family, entries))
    if more:
        heading.appendRow(_family(translate("Presets", "More families"), more))


def _family(name: str, models: list[ModelEntry]) -> QStandardItem:
    row = _row(Row.FAMILY, name, models, f"family/{name}")
    row.setData(len(models), COUNT)
    row.setData(f"{name}, {len(models)}", Qt.ItemDataRole.AccessibleTextRole)
    row.setSelectable(False)
    return row


def _model(entry: ModelEntry) -> QStandardItem:
    row = _row(Row.MODEL, entry.title, entry, f"model/{entry.name}")
    row.setToolTip(entry.name)
    return row


def _hint(text: str) -> QStandardItem:
    row = _row(Row.HINT, text, None, "")
    row.setSelectable(False)
    row.setFlags(Qt.ItemFlag.ItemIsEnabled)
    return row


def _row(kind: Row, text: str, value: Any, key: str) -> QStandardItem:
    row = QStandardItem(text)
    row.setEditable(False)
    row.setData(kind, KIND)
    row.setData(value, VALUE)
    row.setData(key, KEY)
    return row


def _has(words: list[str], *texts: str) -> bool:
    joined = " ".join(texts).casefold()
    return all(word in joined for word in words)
