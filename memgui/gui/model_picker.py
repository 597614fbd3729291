"""Searches models as one types: the person's profiles, files opened lately, the built-in ones."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from memgui.catalog import ModelEntry
from memgui.document.library import Library
from memgui.files.bounded import told_name
from memgui.gui.numbers import Numbers
from memgui.gui.search_item import Item
from memgui.gui.search_popup import SearchPopup
from memgui.presets.entries import Entry, State
from memgui.spec import one_line

translate = QCoreApplication.translate


class ModelPicker:
    """Opens a :class:`SearchPopup` over a field and hands what is taken to the library."""

    def __init__(self, library: Library, numbers: Numbers, parent: QWidget) -> None:
        self._library = library
        self._numbers = numbers
        prompt = translate("ModelPicker", "Search models by name, family or size")
        self.popup = SearchPopup(self.items, prompt, parent)
        self.popup.chosen.connect(self._take)
        library.nearby.models_found.connect(self.popup.refresh)

    def items(self, text: str) -> list[Item]:
        """What answers ``text``, best first within each group."""
        self._library.nearby.look_for_models()
        file = _file(text)
        if file is not None:
            return [Item(told_name(file), "", str(file), file, translate("ModelPicker", "Open a file"))]
        words = text.casefold().split()
        mine = translate("ModelPicker", "My presets")
        recent = translate("ModelPicker", "Recent files")
        found = [
            Item(one_line(entry.name), self._kind(entry), entry.notes, entry, mine)
            for entry in self._library.presets()
            if entry.state is State.OK and all(word in entry.name.casefold() for word in words)
        ]
        found += [
            Item(told_name(path), "", path, Path(path), recent)
            for path in self._library.recent_files()
            if all(word in path.casefold() for word in words)
        ]
        found += [
            Item(model.name, "", str(model.path), model.path, model.program)
            for model in self._library.nearby.models
            if all(word in model.name.casefold() for word in words)
        ]
        group = translate("ModelPicker", "Built-in models")
        found += [self._model(entry, group) for entry in self._library.catalog.search(text, limit=500)]
        if not found:
            group = translate("ModelPicker", "Nothing is called so; near it")
            found = [self._model(entry, group) for entry in self._library.catalog.alike(text)]
        return found

    def _kind(self, entry: Entry) -> str:
        if entry.kind == "model":
            return translate("ModelPicker", "model profile")
        return translate("ModelPicker", "set-up")

    def _model(self, entry: ModelEntry, group: str) -> Item:
        model, numbers = entry.spec, self._numbers
        facts = [
            entry.name,
            "",
            translate("ModelPicker", "{count} parameters").format(count=numbers.grouped(entry.parameters)),
            translate("ModelPicker", "{layers} {layers:layer|layers}, width {width}").format(
                layers=numbers.count(model.num_hidden_layers), width=numbers.grouped(model.hidden_size)
            ),
            translate("ModelPicker", "{heads} {heads:head|heads}, {shared} for keys and values").format(
                heads=numbers.count(model.num_attention_heads), shared=model.num_key_value_heads
            ),
            translate("ModelPicker", "vocabulary {size}").format(size=numbers.grouped(model.vocab_size)),
        ]
        if model.max_position_embeddings:
            longest = numbers.grouped(model.max_position_embeddings)
            facts.append(translate("ModelPicker", "up to {tokens} tokens").format(tokens=longest))
        source = translate("catalog", entry.source)
        facts += ["", translate("ModelPicker", "Source: {source}").format(source=source)]
        return Item(entry.title, numbers.parameters(entry.parameters), "\n".join(facts), entry, group)

    def _take(self, value: object) -> None:
        if isinstance(value, ModelEntry):
            self._library.use_entry(value)
        elif isinstance(value, Entry):
            self._library.open_preset(value)
        elif isinstance(value, Path):
            self._library.open_path(value)


def _file(text: str) -> Path | None:
    """The file or folder that a whole path means, pasted with or without quotes.

    Whether it is there shows when it is opened, aside: a folder in a network may not answer.
    """
    path = Path(os.path.expanduser(text.strip().strip("\"'")))
    return path if path.is_absolute() and "\0" not in text else None
