"""What can be opened into the document: models, files, shared texts.

Every fault becomes a :class:`Notice`; the open scenario is then as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from memgui.files.bounded import FileFault, told_name
from memgui.presets import share
from memgui.presets.codec import Decoded
from memgui.presets.recent import with_recent, without_recent
from memgui.presets.settings import Settings, SettingsStore
from memgui.spec import (
    NO_REPORT,
    QT_TRANSLATE_NOOP,
    ImportReport,
    Issue,
    Message,
    ModelSpec,
    Scenario,
    get,
)

if TYPE_CHECKING:
    from memgui.importers.quantization import Quantization
    from memgui.planning.opening import Opened

_LEFT = QT_TRANSLATE_NOOP("messages", "{file} was left as it is: one file is open at a time.")

# What reads other programs' files is imported where it is used: a start that opens none is quicker.


class Opening(Telling):
    """Opens.  ``changed``: the list of presets or recent files is another one."""

    changed = Signal()
    opened_quietly = Signal()
    """Something is open of which there is nothing to say; what was said of opening before it is old."""

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
        self._say_open(model.name, self._put(model, quantization, report))

    def _put(
        self, model: ModelSpec, quantization: Quantization | None, report: ImportReport
    ) -> tuple[Message, ...]:
        """Put a model into the open scenario; what had to change with it."""
        from memgui.planning.opening import FOLLOWING, mattering, starting_scenario

        self._stop_reading()
        asked = self._document.state.as_asked()
        scenario, told = starting_scenario(asked, model, quantization)
        fitted = {
            path: (get(asked, path), get(scenario, path))
            for path in FOLLOWING
            if get(asked, path) != get(scenario, path)
        }
        text = QCoreApplication.translate("Library", "Model {name}").format(name=model.name)
        self._document.use_model(scenario, text, fitted, report)
        return mattering(told, scenario)

    def use_entry(self, entry: ModelEntry) -> None:
        """Put a built-in model into the open scenario."""
        self.use_model(entry.model)

    def open_path(self, path: Path) -> None:
        """Open a config.json, a folder with a model, weights or a preset; the reading is done aside."""
        self.open_first((path,))

    def open_first(self, paths: Sequence[Path], others: tuple[Message, ...] = ()) -> None:
        """Open the first of ``paths`` that can be opened, and say why none of the rest is.

        ``others`` say so of more that came with them.
        """
        from memgui.planning.opening import opened_path

        def read(job: Job) -> tuple[Opened | None, tuple[Message, ...]]:
            def progress(done: int, total: int) -> bool:
                reading.report(done, total)
                return not job.cancelled

            faults: list[Message] = []
            for number, path in enumerate(paths, 1):
                reading.name = told_name(path)
                try:
                    found = opened_path(path, progress)
                except FileFault as fault:
                    faults.append(fault.message)
                else:
                    left = [Message(_LEFT, {"file": told_name(path)}) for path in paths[number:]]
                    return found, (*faults, *left, *others)
            return None, (*faults, *others)

        def opened(answer: tuple[Opened | None, tuple[Message, ...]]) -> None:
            was_said = reading.end()
            found, beside = answer
            if found is not None:
                self.show(found, beside, was_said=was_said)
            elif len(beside) == 1:
                self._tell(beside[0], severity="error", of_opening=True)
            else:
                text = QT_TRANSLATE_NOOP("messages", "Nothing of it can be opened: {count} files.")
                self._tell(Message(text, {"count": len(beside)}), beside, severity="error", of_opening=True)

        def failed(error: Exception) -> None:
            reading.end()
            self._failed(error, of_opening=True)

        self._stop_reading()
        reading = self._reading = Reading(
            told_name(paths[0]), self.told.emit, lambda: self._jobs.cancel("open"), self
        )
        self._jobs.run("open", read, opened, failed, asked=True)

    def show(self, found: Opened, beside: tuple[Message, ...] = (), *, was_said: bool = False) -> None:
        """Open what was read, here or elsewhere (the command line); a file is remembered.

        ``beside`` says what became of files that came with it, ``was_said`` that the reading was spoken of.
        """
        self._take(found, beside, was_said=was_said)
        if found.path is not None:
            self._remember(found.path)

    def _take(self, found: Opened, beside: tuple[Message, ...] = (), *, was_said: bool = False) -> None:
        content, report = found.content, found.report
        name = found.name or (found.model.name if found.path is None else told_name(found.path))
        told: tuple[Message, ...] = ()
        if isinstance(content, Scenario):
            self._load(State(content, content.model, name, measured=found.measured, report=report), name)
        else:
            told = self._put(content, found.quantization, report)
        counted = not found.is_preset and bool(report)
        self._say_open(name, told, found.issues, report if counted else NO_REPORT, beside, was_said=was_said)

    def _say_open(
        self,
        name: str,
        told: tuple[Message, ...],
        issues: tuple[Issue, ...] = (),
        report: ImportReport = NO_REPORT,
        beside: tuple[Message, ...] = (),
        *,
        was_said: bool = False,
    ) -> None:
        """Say once that ``name`` is open, where there is more to say of it."""
        text, severity = QT_TRANSLATE_NOOP("messages", "{name} is open."), "info"
        counts: dict[str, int] = {}
        details = (*told[1:], *(issue.message for issue in issues), *report.lines)
        if beside:
            text, severity = QT_TRANSLATE_NOOP("messages", "{name} is open; not opened: {count}."), "warning"
            counts, details = {"count": len(beside)}, (*beside, *details)
        elif issues:
            text = QT_TRANSLATE_NOOP("messages", "{name} is open; wrong or unknown in it: {count}.")
            counts, severity = {"count": len(issues)}, "warning"
        elif report:
            text = QT_TRANSLATE_NOOP(
                "messages",
                "{name} is open. Keys understood: {understood}, assumed: {assumed}, ignored: {ignored}.",
            )
            counts = {
                "understood": len(report.understood),
                "assumed": len(report.assumed),
                "ignored": len(report.ignored) + report.unnamed,
            }
        said = Message(text, {"name": name, **counts})
        if told:  # the set-up is another one now: that is not for whoever looks into the details alone
            text = QT_TRANSLATE_NOOP("messages", "{said} {changed}")
            said = Message(text, {"said": said, "changed": told[0]})
        if details or was_said or counts or told:
            self._tell(said, details, severity=severity, of_opening=True)
        else:
            self.opened_quietly.emit()

    def open_text(self, text: str) -> bool:
        """Open a preset shared as text; false where the text claims to be none."""
        from memgui.planning.opening import of_preset

        if not share.is_text(text):
            return False
        decoded: Decoded | None = self._try(lambda: share.from_text(text), of_opening=True)
        if decoded is not None:
            self._take(of_preset(decoded))
        return True

    def open_named(self, name: str) -> None:
        """Put the built-in model called ``name``, or another version of it, into the open scenario."""
        from memgui.planning.opening import named

        try:
            found = named(name, self.catalog)
        except UnknownName as unknown:
            self._tell(unknown.message, severity="error", of_opening=True)
            return
        told = self._put(found.model, None, found.report)
        self._say_open(found.model.name, (*found.report.assumed, *told))

    def _stop_reading(self) -> None:
        """What was asked for last is opened: a file that is read still comes too late."""
        if self._reading is not None:
            self._reading.end()
            self._reading = None
            self._jobs.cancel("open")

    def _load(self, state: State, name: str) -> None:
        self._stop_reading()
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
