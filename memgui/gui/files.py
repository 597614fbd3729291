"""What the window does with files, names and the clipboard: it asks, the library does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from memgui.document.jobs import Job
from memgui.document.notice import Notice
from memgui.files.addresses import from_network, is_address
from memgui.gui.context import AppContext
from memgui.presets.codec import SUFFIX
from memgui.presets.entries import Entry, State
from memgui.spec import QT_TRANSLATE_NOOP, Message

AskName = Callable[[str, str, Callable[[str], bool]], None]
"""Asks a question with a name to begin with; the last argument takes the answer and says whether it did."""


class Files(QObject):
    """File dialogs (never modal to the program's own code), save names, copies."""

    def __init__(self, context: AppContext, ask_name: AskName, window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._ask_name = ask_name
        self._window = window

    # -- opening and saving --------------------------------------------------------------------

    def ask_open(self) -> None:
        """Let the person choose a model's file or a preset."""
        self._ask(
            self.tr("Open a model or a preset"),
            self.tr("Models and presets (*.json *.gguf *.safetensors);;All files (*)"),
            self._context.library.open_path,
        )

    def ask_import(self) -> None:
        """Let the person choose a file of presets."""
        self._ask(
            self.tr("Import presets"),
            self.tr("Presets (*.memgui.json *.json)"),
            self._context.library.import_file,
        )

    def ask_export(self) -> None:
        """Let the person choose where the open preset is written for others."""
        entry = self._context.library.open_entry()
        if entry is None:
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "Save the set-up as a preset first.")))
            return
        self._ask_where([entry], self.tr("Export the open preset"), entry.path.name)

    def ask_export_all(self) -> None:
        """Let the person choose where all presets of their own are written for others, in one file."""
        library = self._context.library
        own = [entry for entry in library.presets() if library.is_own(entry) and entry.state is State.OK]
        if not own:
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "There is no preset of your own yet.")))
            return
        self._ask_where(
            own, self.tr("Export all presets"), f"{self.tr('presets')}.{SUFFIX.removeprefix('.')}"
        )

    def _ask_where(self, entries: list[Entry], title: str, name: str) -> None:
        dialog = self._dialog(title, self.tr("Presets (*.memgui.json)"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setDefaultSuffix(SUFFIX.removeprefix("."))
        dialog.selectFile(name)
        dialog.fileSelected.connect(lambda path: self._context.library.export(entries, Path(path)))
        dialog.open()

    def save(self) -> None:
        """Save over the open preset, or ask for a name."""
        if not self._context.library.save():
            self.ask_save_as()

    def ask_save_as(self) -> None:
        """Ask for the name of a new preset."""
        state = self._context.document.state
        self._ask_name(
            self.tr("Save preset as"), state.name or state.scenario.model.name, self._context.library.save_as
        )

    def ask_save_model(self) -> None:
        """Ask for the name of a model profile."""
        self._ask_name(
            self.tr("Save model profile as"),
            self._context.document.scenario.model.name,
            lambda name: self._context.library.save_as(name, model_only=True),
        )

    def open_text(self, text: str) -> None:
        """Open a shared preset, a path, or a built-in model by name."""
        text = text.strip().strip("\"'")
        if not text:
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "There is no file and no text to open.")))
        elif is_address(text):
            self._tell(from_network(text))
        elif not self._context.library.open_text(text):
            # Not Path.expanduser(): it raises where there is no such person.
            named = QUrl(text).toLocalFile() if text.startswith("file://") else os.path.expanduser(text)
            if len(text) < 4096 and "\n" not in text and (os.path.isabs(named) or text.startswith("~")):
                self._context.library.open_path(Path(named))
            else:
                self._context.library.open_named(text[:200])

    def _ask(self, title: str, filters: str, take: Callable[[Path], None]) -> None:
        dialog = self._dialog(title, filters)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(lambda path: take(Path(path)))
        dialog.open()

    def _dialog(self, title: str, filters: str) -> QFileDialog:
        folder = self._context.library.settings.folder
        dialog = QFileDialog(self._window, title, folder, filters)
        dialog.finished.connect(dialog.deleteLater)
        return dialog

    # -- copying -------------------------------------------------------------------------------

    def copy_share(self) -> None:
        """The set-up as a line of text that memgui opens again."""
        self._copy(self._context.library.shared_text())

    def show_diagnostics(self) -> None:
        """Versions, platform, paths, the GPUs here and the log's end, to read and to copy into a report."""
        screen = self._window.screen()
        more = {
            "Qt platform": QGuiApplication.platformName(),
            "Screen": f"{screen.size().width()}x{screen.size().height()} at {screen.devicePixelRatio():g}",
        }
        paths = self._context.paths

        def gather(job: Job) -> str:
            from memgui.presets.hardware import this_machine
            from memgui.presets.logs import diagnostics

            here = this_machine()
            gpus = ", ".join(
                f"{gpu.name} {gpu.used_bytes:,} of {gpu.total_bytes:,} bytes" for gpu in here.gpus
            )
            return diagnostics(paths, {**more, "GPU": gpus or (here.reason.text if here.reason else "-")})

        def show(text: str) -> None:
            from memgui.gui.help import Diagnostics

            Diagnostics(text, self._copy, self._window)

        self._context.jobs.run("diagnostics", gather, show)

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self._tell(Message(QT_TRANSLATE_NOOP("messages", "Copied.")))

    def _tell(self, message: Message) -> None:
        self._context.library.told.emit(Notice(message))
