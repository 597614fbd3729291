"""What can be opened into the document: models, files, shared texts.

Every fault becomes a :class:`Notice`; the open scenario is then as it was.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, Signal

from memgui.catalog import Catalog, ModelEntry, UnknownName
from memgui.document.document import Document, State
from memgui.document.jobs import Job, Jobs
from memgui.document.nearby import Nearby
from memgui.document.reading import Reading
from memgui.document.telling import Telling
from memgui.files.bounded import display_name
from memgui.presets import share
from memgui.presets.codec import Decoded
from memgui.presets.recent import with_recent, without_recent
from memgui.presets.settings import Settings, SettingsStore
from memgui.spec import (
    NO_REPORT,
    QT_TRANSLATE_NOOP,
    ImportReport,
    Message,
    ModelSpec,
    Scenario,
    get,
    one_line,
)

if TYPE_CHECKING:
    from memgui.importers.quantization import Quantization
    from memgui.planning.opening import Opened

# What reads other programs' files is imported where it is used: a start that opens none is quicker.


class Opening(Telling):
    """Opens.  ``changed``: the list of presets or recent files is another one."""

    changed = Signal()

    def __init__(
        self,
        document: Document,
        catalog: Catalog,
        settings: SettingsStore,
        jobs: Jobs,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self.catalog = catalog
        self._settings = settings
        self._jobs = jobs
        self.nearby = Nearby(jobs, self)
        self._reading: Reading | None = None
        self._held = settings.load()[0]

    def recent_files(self) -> tuple[str, ...]:
        """Paths opened lately, newest first."""
        return self._held.recent_files

    @property
    def settings(self) -> Settings:
        """What the person chose once for every window."""
        return self._held

    def change_settings(self, **values: object) -> None:
        """Set some of :class:`Settings`' values and keep them on the disk."""
        new = msgspec.structs.replace(self._held, **values)
        if new != self._held:
            self._held = new
            self._try(lambda: self._settings.save(new))

    def use_model(
        self, model: ModelSpec, quantization: Quantization | None = None, report: ImportReport = NO_REPORT
    ) -> None:
        """Put a model into the open scenario, its weights as they are stored where that is known."""
        told = self._put(model, quantization, report)
        if told:
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "{name} is open."), {"name": model.name}), told)

    def _put(
        self, model: ModelSpec, quantization: Quantization | None, report: ImportReport
    ) -> tuple[Message, ...]:
        """Put a model into the open scenario; what had to change with it."""
        from memgui.planning.opening import LENGTHS, mattering, starting_scenario

        asked = self._document.state.as_asked()
        scenario, told = starting_scenario(asked, model, quantization)
        shortened = {
            path: (get(asked, path), get(scenario, path))
            for path in LENGTHS
            if get(asked, path) != get(scenario, path)
        }
        text = QCoreApplication.translate("Library", "Model {name}").format(name=model.name)
        self._document.use_model(scenario, text, shortened, report)
        return mattering(told, scenario)

    def use_entry(self, entry: ModelEntry) -> None:
        """Put a built-in model into the open scenario."""
        self.use_model(entry.model)

    def open_path(self, path: Path) -> None:
        """Open a config.json, a folder with a model, weights or a preset; the reading is done aside."""
        from memgui.planning.opening import opened_path

        def read(job: Job) -> Opened:
            def progress(done: int, total: int) -> bool:
                reading.report(done, total)
                return not job.cancelled

            return opened_path(path, progress)

        def opened(found: Opened) -> None:
            if reading.end():
                self._tell(Message(QT_TRANSLATE_NOOP("messages", "{name} is open."), {"name": reading.name}))
            self.show(found)

        def failed(error: Exception) -> None:
            reading.end()
            self._failed(error)

        if self._reading is not None:
            self._reading.end()
        reading = self._reading = Reading(
            display_name(path), self.told.emit, lambda: self._jobs.cancel("open"), self
        )
        self._jobs.run(
            "open",
            read,
            opened,
            failed,
            asked=True,
        )

    def show(self, found: Opened) -> None:
        """Open what was read, here or elsewhere (the command line); a file is remembered."""
        self._take(found, found.model.name if found.path is None else display_name(found.path))
        if found.path is not None:
            self._remember(found.path)

    def _take(self, found: Opened, name: str) -> None:
        content, report = found.content, found.report
        if isinstance(content, Scenario):
            self._load(State(content, content.model, name, measured=found.measured, report=report), name)
            self._tell_issues(name, found.issues)
        elif found.is_preset or not report:
            self.use_model(content, found.quantization, report)
            self._tell_issues(name, found.issues)
        else:
            told = self._put(content, found.quantization, report)
            counts = {
                "understood": len(report.understood),
                "assumed": len(report.assumed),
                "ignored": len(report.ignored) + report.unnamed,
            }
            template = QT_TRANSLATE_NOOP(
                "messages",
                "{name} is open: {understood} keys understood, {assumed} assumed, {ignored} ignored.",
            )
            self._tell(Message(template, {"name": name, **counts}), (*told, *report.lines))

    def open_text(self, text: str) -> bool:
        """Open a preset shared as text; false where the text claims to be none."""
        from memgui.planning.opening import of_preset

        if not share.is_text(text):
            return False
        decoded: Decoded | None = self._try(lambda: share.from_text(text))
        if decoded is not None:
            self._take(of_preset(decoded), one_line(decoded.preset.name))
        return True

    def open_named(self, name: str) -> None:
        """Put the built-in model called ``name`` into the open scenario."""
        try:
            self.use_entry(self.catalog.model(name))
        except UnknownName as unknown:
            self._tell(unknown.message, severity="error")

    def _load(self, state: State, name: str) -> None:
        text = QCoreApplication.translate("Library", "Open {name}").format(name=name)
        self._document.load(state, text)

    def _remember(self, path: Path) -> None:
        folder = str(path.absolute().parent)
        self.change_settings(
            recent_files=with_recent(self._held.recent_files, path),
            folder=folder
            if folder.isprintable()
            else self._held.folder,  # a path that is no text is not kept
        )
        self.changed.emit()

    def forget(self, path: str) -> None:
        """Take a path off the recent files."""
        self.change_settings(recent_files=without_recent(self._held.recent_files, path))
        self.changed.emit()
