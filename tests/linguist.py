"""A language that nobody speaks: what a person sees and is not in it cannot be translated."""

from __future__ import annotations

import re
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QAbstractItemModel, QAbstractListModel, QModelIndex, Qt, QTranslator
from PySide6.QtGui import QAccessible, QAccessibleInterface, QPainter
from PySide6.QtWidgets import QAbstractItemView, QApplication, QWidget

from memgui.gui.metrics import Metrics

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "memgui").rglob("*.py"))

_LATIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_OTHER = "ȦƁƇḒḖƑƓĦĪĴĶĿḾȠǾƤɊŘŞŦŬṼẆẊẎẐȧƀƈḓḗƒɠħīĵķŀḿƞǿƥɋřşŧŭṽẇẋẏẑ"
_ACCENTS = str.maketrans(_LATIN, _OTHER)
_KEPT = re.compile(r"\{\{|\}\}|\{\w*|</?[a-z][^<>]*>|&[a-z]+;")
"""Places for values, tags and entities: what a translator leaves as it is."""


def lupdate(folder: Path) -> dict[str, set[str]]:
    """``{context: texts}`` as Qt Linguist's tool finds them in memgui's sources."""
    file = folder / "memgui.ts"
    told = _run("pyside6-lupdate", *map(str, SOURCES), "-ts", str(file))
    assert "warning" not in told.lower(), told
    contexts = ElementTree.parse(file).getroot().iter("context")
    return {
        context.findtext("name", ""): {message.findtext("source", "") for message in context.iter("message")}
        for context in contexts
    }


def lrelease(folder: Path, name: str) -> Path:
    """A finished translation into the language, as a translator and Qt Linguist's tools would make it."""
    lupdate(folder)
    tree = ElementTree.parse(folder / "memgui.ts")
    for message in tree.getroot().iter("message"):
        translation = message.find("translation")
        assert translation is not None
        translation.attrib.pop("type", None)
        translation.text = marked(message.findtext("source", ""))
    tree.write(folder / "memgui.ts", encoding="utf-8", xml_declaration=True)
    file = folder / name
    _run("pyside6-lrelease", str(folder / "memgui.ts"), "-qm", str(file))
    return file


def _run(name: str, *arguments: str) -> str:
    tool = Path(sys.executable).with_name(name)
    if not tool.exists():
        pytest.skip(f"{name} is not beside this Python")
    run = subprocess.run([str(tool), *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stderr


def marked(text: str) -> str:
    """``text`` in the language: ``⟦Ŧḗẋŧ⟧``, its places as they are."""
    pieces = []
    at = 0
    for kept in _KEPT.finditer(text):
        pieces += [text[at : kept.start()].translate(_ACCENTS), kept[0]]
        at = kept.end()
    return f"⟦{''.join(pieces)}{text[at:].translate(_ACCENTS)}⟧"


class Pseudo(QTranslator):
    """Knows the language for the texts that lupdate found; Qt's own stay English."""

    def __init__(self, known: Mapping[str, set[str]]) -> None:
        super().__init__()
        self._known = known

    def isEmpty(self) -> bool:
        return False

    def translate(
        self, context: str, text: str, disambiguation: str | None = None, n: int = -1
    ) -> str | None:
        return marked(text) if text in self._known.get(context, ()) else None


class Seen:
    """Every text that a person could see or hear, with where it was met first."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.where: dict[str, str] = {}
        self._catch(patch, QPainter, "drawText")
        self._catch(patch, Metrics, "write")

    def _catch(self, patch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        original = getattr(owner, name)

        def caught(self_: Any, *args: Any) -> Any:
            for text in args:
                if isinstance(text, str) and text not in self.where:
                    frames = traceback.extract_stack(limit=4)[:-1]
                    place = " < ".join(f"{Path(one.filename).stem}:{one.lineno}" for one in reversed(frames))
                    self.where[text] = f"painted by {place}"
            return original(self_, *args)

        patch.setattr(owner, name, caught)

    def add(self, text: str | None, where: str) -> None:
        if text:
            self.where.setdefault(text, where)

    def look(self) -> None:
        """Take down what every window there is says now, painted texts too."""
        for window in QApplication.topLevelWidgets():
            if not window.isVisible():
                continue
            window.grab()
            self.hear(QAccessible.queryAccessibleInterface(window))
            for widget in (window, *window.findChildren(QWidget)):
                self._widget(widget)

    def hear(self, thing: QAccessibleInterface | None, depth: int = 0) -> None:
        """What a screen reader says of a thing and all in it."""
        if thing is None or not thing.isValid() or depth > 40:
            return
        where = f"{thing.role().name} of {type(thing.object()).__name__}"
        for kind in (QAccessible.Text.Name, QAccessible.Text.Description, QAccessible.Text.Help):
            self.add(thing.text(kind), f"{kind.name} of {where}")
        for index in range(min(thing.childCount(), 300)):
            self.hear(thing.child(index), depth + 1)

    def _widget(self, widget: QWidget) -> None:
        if widget.isVisible():
            for name in ("toolTip", "whatsThis", "statusTip", "windowTitle", "accessibleName"):
                self.add(getattr(widget, name)(), f"{name} of {type(widget).__name__}")
            for name in ("text", "placeholderText", "title", "toPlainText"):
                told = getattr(widget, name, None)
                text = told() if callable(told) else ""
                self.add(text if isinstance(text, str) else "", f"{name} of {type(widget).__name__}")
            self.add(widget.accessibleDescription(), f"description of {type(widget).__name__}")
            for action in widget.actions():
                for name in ("text", "toolTip", "statusTip"):
                    self.add(getattr(action, name)(), f"{name} of action")
        if isinstance(widget, QAbstractItemView) and widget.model() is not None:
            self._model(widget.model(), QModelIndex(), f"row of {type(widget).__name__}")

    def _model(self, model: QAbstractItemModel, parent: QModelIndex, where: str, depth: int = 0) -> None:
        roles = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole)
        for row in range(min(model.rowCount(parent), 60)):
            for column in range(1 if isinstance(model, QAbstractListModel) else model.columnCount(parent)):
                index = model.index(row, column, parent)
                for role in roles:
                    text = model.data(index, role)
                    self.add(text if isinstance(text, str) else "", f"{role.name} in {where}")
                if column == 0 and depth < 8:
                    self._model(model, index, where, depth + 1)

    def foreign(self, names: Iterable[str]) -> Iterator[str]:
        """What is not in the language and no name: a line for each text."""
        known = set(names)
        for text, where in sorted(self.where.items()):
            left = list(foreign(text, known))
            if left:
                yield f"{', '.join(left)}: {text[:200]!r} ({where})"


NAMES = (
    *("GiB", "MiB", "KiB", "Ctrl", "Shift", "Alt", "Del", "Esc", "bit", "bpw", "memgui"),
    *("true", "false", "null", "NaN", "Infinity", "architectures", "format", "verbatim"),
    *("NVIDIA", "GeForce", "Tesla", "Quadro", "PyTorch", "Transformers", "torchtune", "vLLM", "SGLang"),
    *("Ollama", "torchao", "quanto", "HQQ", "GPTQ", "AWQ", "AQLM", "KIVI", "MLX", "TurboQuant", "LLM.int8"),
    *("QuantizedCache", "FlashAttention", "FlexAttention", "gpt-fast", "compressed-tensors", "GPT-QModel"),
    *("bitsandbytes", "GGUF", "Megatron-LM", "github", "Liger", "core", "DDP"),
    *("Scroll", "Left", "Right"),  # of Qt's own tab bar, which has translations of its own
)
"""Units, keys and values of JSON, and products: called so in every language."""


def foreign(text: str, names: Iterable[str] = ()) -> Iterator[str]:
    """Words of ``text`` in Latin letters that are no names; nor are units, and what has digits in it."""
    known = _lowered(frozenset((*NAMES, *names)))
    yield from (word for word in _words(text) if word.lower() not in known)


@lru_cache
def _lowered(names: frozenset[str]) -> frozenset[str]:
    return frozenset(word.lower() for name in names for word in _words(name))


def _words(text: str) -> list[str]:
    text = re.sub(r"<[^<>]*>|&[a-z]+;|https?://\S+", " ", text)
    found = re.findall(r"[^\s,;:()/\[\]{}|“”\"'=+×·−–⟦⟧…]+", text)
    found = [word.strip(".!?*&") for word in found]
    return [word for word in found if re.fullmatch(r"[A-Za-z][A-Za-z\-]{2,}", word)]
