"""What can be opened into the document and what it is saved to: models, presets, files.

Every fault becomes a :class:`Notice`; the open scenario is then as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from PySide6.QtCore import QCoreApplication, QObject, Signal

from memgui.catalog import Catalog, ModelEntry, UnknownName
from memgui.document.document import Document, State
from memgui.document.jobs import Job, Jobs
from memgui.document.nearby import Nearby
from memgui.document.notice import Notice
from memgui.document.reading import Reading
from memgui.files.bounded import FileFault, display_name
from memgui.presets import share
from memgui.presets.codec import Decoded, Preset
from memgui.presets.entries import Entry, Layer
from memgui.presets.recent import with_recent, without_recent
from memgui.presets.settings import Settings, SettingsStore
from memgui.presets.store import Deleted, NameTaken, PresetChanged, PresetStore
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message, ModelSpec, Scenario, get, one_line

if TYPE_CHECKING:
    from memgui.importers.quantization import Quantization
    from memgui.planning.opening import Opened

# What reads other programs' files is imported where it is used: a start that opens none is quicker.

T = TypeVar("T")


class Library(QObject):
    """Opens and saves.  ``changed``: the list of presets or recent files is another one."""

    changed = Signal()
    told = Signal(object)
    """A :class:`Notice`."""

    def __init__(
        self,
        document: Document,
        catalog: Catalog,
        presets: PresetStore,
        settings: SettingsStore,
        jobs: Jobs,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._document = document
        self.catalog = catalog
        self._presets = presets
        self._settings = settings
        self._jobs = jobs
        self.nearby = Nearby(jobs, self)
        self._reading: Reading | None = None
        self._held = settings.load()[0]
        self._seen: dict[str, Entry] = {}

    def start(self) -> tuple[Message, ...]:
        """Clear up after earlier runs; a sentence for each preset that had to be set aside."""
        return self._presets.start()

    # -- lists ---------------------------------------------------------------------------------

    def presets(self) -> tuple[Entry, ...]:
        """The person's presets and everyone's, by name."""
        return self._presets.entries()

    def scenario_of(self, entry: Entry) -> Scenario | None:
        """The scenario of a preset; ``None`` where it has none or cannot be read now."""
        with suppress(FileFault):
            content = self._presets.load(entry).preset.content
            return content if isinstance(content, Scenario) else None
        return None

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

    # -- opening -------------------------------------------------------------------------------

    def use_model(self, model: ModelSpec, quantization: Quantization | None = None) -> None:
        """Put a model into the open scenario, its weights as they are stored where that is known."""
        told = self._put(model, quantization)
        if told:
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "{name} is open."), {"name": model.name}), told)

    def _put(self, model: ModelSpec, quantization: Quantization | None) -> tuple[Message, ...]:
        """Put a model into the open scenario; what had to change with it."""
        from memgui.planning.opening import LENGTHS, starting_scenario

        asked = self._document.state.as_asked()
        scenario, told = starting_scenario(asked, model, quantization)
        shortened = {
            path: (get(asked, path), get(scenario, path))
            for path in LENGTHS
            if get(asked, path) != get(scenario, path)
        }
        text = QCoreApplication.translate("Library", "Model {name}").format(name=model.name)
        self._document.use_model(scenario, text, shortened)
        return told

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
            self._opened(path, found)

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

    def _opened(self, path: Path, found: Opened) -> None:
        name = display_name(path)
        self._take(found, name)
        self._remember(path)

    def show(self, found: Opened, name: str) -> None:
        """Open what was read elsewhere (the command line)."""
        self._take(found, name)

    def _take(self, found: Opened, name: str) -> None:
        if isinstance(found.content, Scenario):
            self._load(State(found.content, found.content.model, name, measured=found.measured), name)
            self._tell_issues(name, found.issues)
            return
        if not found.understood:
            self.use_model(found.content, found.quantization)
            self._tell_issues(name, found.issues)
        else:
            told = self._put(found.content, found.quantization)
            counts = {
                "understood": len(found.understood),
                "assumed": len(found.assumed),
                "ignored": len(found.ignored),
            }
            template = QT_TRANSLATE_NOOP(
                "messages",
                "{name} is open: {understood} keys understood, {assumed} assumed, {ignored} ignored.",
            )
            self._tell(Message(template, {"name": name, **counts}), (*told, *found.report))

    def open_preset(self, entry: Entry) -> None:
        """Open a preset: a whole scenario, or a model profile into the open one."""
        loaded = self._try(lambda: self._presets.load(entry))
        if loaded is None:
            return
        self._seen[entry.key] = loaded.entry
        content = loaded.preset.content
        if isinstance(content, Scenario):
            name = one_line(loaded.preset.name)
            self._load(State(content, content.model, name, entry.key, loaded.preset.measured), name)
        else:
            self.use_model(content)
        self._tell_issues(loaded.preset.name, loaded.issues)

    def open_text(self, text: str) -> bool:
        """Open a preset shared as text; false where the text claims to be none."""
        from memgui.planning.opening import Opened

        if not share.is_text(text):
            return False
        decoded: Decoded | None = self._try(lambda: share.from_text(text))
        if decoded is not None:
            preset = decoded.preset
            found = Opened(preset.content, issues=decoded.issues, measured=preset.measured)
            self._take(found, one_line(preset.name))
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

    # -- saving --------------------------------------------------------------------------------

    def open_entry(self) -> Entry | None:
        """The preset of the person's that is open, if it still exists and may be written."""
        key = self._document.state.preset
        entry = self._presets.find(key) if key else None
        return entry if entry is not None and entry.writable else None

    def save(self) -> bool:
        """Save over the open preset; false where there is none (then ask for a name)."""
        entry = self.open_entry()
        if entry is None:
            return False
        self._replace(self._seen.get(entry.key, entry), self._document.scenario)
        return True

    def seen(self, key: str) -> str:
        """The digest of a preset as this window last read or wrote it, empty where it did neither."""
        entry = self._seen.get(key)
        return entry.digest if entry is not None else ""

    def remember_seen(self, key: str, digest: str) -> None:
        """Take from an earlier run what :meth:`seen` said, so that a change since then is noticed."""
        entry = self._presets.find(key) if key and digest else None
        if entry is not None:
            self._seen[key] = msgspec.structs.replace(entry, digest=digest)

    def save_as(self, name: str, *, model_only: bool = False, notes: str = "") -> bool:
        """Keep the open scenario (or its model alone) under a new name; whether it was kept."""
        scenario = self._document.scenario
        content: Scenario | ModelSpec = scenario.model if model_only else scenario
        try:
            entry = self._presets.create(name, content, notes, self._measured(content))
        except NameTaken as taken:
            other = taken.entry
            self._tell(
                taken.message,
                severity="warning",
                action_text=QT_TRANSLATE_NOOP("messages", "Replace it"),
                action=lambda: self._replace(other, content),
            )
            return False
        except FileFault as fault:
            self._failed(fault)
            return False
        self._saved(entry, content)
        return True

    def _replace(self, entry: Entry, content: Scenario | ModelSpec, *, overwrite: bool = False) -> None:
        try:
            measured = self._measured(content)
            saved = self._presets.update(entry, content=content, measured=measured, overwrite=overwrite)
        except PresetChanged as changed:
            self._tell(
                changed.message,
                severity="warning",
                action_text=QT_TRANSLATE_NOOP("messages", "Save all the same"),
                action=lambda: self._replace(entry, content, overwrite=True),
            )
        except FileFault as fault:
            self._failed(fault)
        else:
            self._saved(saved, content)

    def _measured(self, content: Scenario | ModelSpec) -> Mapping[str, Any] | None:
        """What is kept beside ``content``: runs were of the whole set-up, a model alone has none."""
        return self._document.state.measured if isinstance(content, Scenario) else None

    def _saved(self, entry: Entry, content: Scenario | ModelSpec) -> None:
        self._seen[entry.key] = entry
        if content == self._document.scenario:
            self._document.saved_as(one_line(entry.name), entry.key)
        self.changed.emit()
        self._tell(Message(QT_TRANSLATE_NOOP("messages", "“{name}” is saved."), {"name": entry.name}))

    # -- keeping order -------------------------------------------------------------------------

    def rename(self, entry: Entry, name: str) -> bool:
        """Call a preset otherwise; whether it is called so now."""
        renamed = self._try(lambda: self._presets.update(entry, name=name))
        if renamed is None:
            return False
        if self.seen(entry.key) == entry.digest:  # else what another program wrote is still to be noticed
            self._seen[entry.key] = renamed
        if self._document.state.preset == entry.key:
            self._document.renamed(one_line(renamed.name))
        self.changed.emit()
        return True

    def duplicate(self, entry: Entry) -> Entry | None:
        """A copy under a name with a number."""
        copy = self._try(lambda: self._presets.duplicate(entry))
        if copy is not None:
            self.changed.emit()
        return copy

    def delete(self, entry: Entry) -> None:
        """Take a preset away; the notice has a button that brings it back."""
        deleted = self._try(lambda: self._presets.delete(entry))
        if deleted is None:
            return
        self.changed.emit()
        self._tell(
            Message(QT_TRANSLATE_NOOP("messages", "“{name}” is deleted."), {"name": entry.name}),
            action_text=QT_TRANSLATE_NOOP("messages", "Bring it back"),
            action=lambda: self._restore(deleted),
        )

    def _restore(self, deleted: Deleted) -> None:
        if self._try(lambda: self._presets.restore(deleted)) is not None:
            self.changed.emit()

    def import_file(self, path: Path) -> None:
        """Take the presets in a file among the person's."""
        found = self._try(lambda: self._presets.import_file(path))
        if found is None:
            return
        self.changed.emit()
        faults = tuple(item.message for item in found if isinstance(item, FileFault))
        issues = tuple(
            issue.message for item in found if not isinstance(item, FileFault) for issue in item.issues
        )
        self._tell(
            Message(
                QT_TRANSLATE_NOOP("messages", "Presets taken from {file}: {count}."),
                {"file": display_name(path), "count": len(found) - len(faults)},
            ),
            (*faults, *issues),
            severity="warning" if faults else "info",
        )

    def export(self, entries: Sequence[Entry], path: Path) -> None:
        """Write presets into one file for others."""

        def write() -> bool:
            self._presets.export(entries, path)
            return True

        if self._try(write):
            self._tell(
                Message(QT_TRANSLATE_NOOP("messages", "{file} is written."), {"file": display_name(path)})
            )

    def shared_text(self) -> str:
        """The open scenario as one line of text that memgui opens again."""
        state = self._document.state
        return share.to_text(
            Preset(
                name=state.name or state.scenario.model.name or "-",
                content=state.scenario,
                measured=state.measured,
            )
        )

    def is_own(self, entry: Entry) -> bool:
        """Whether a preset is the person's and not everyone's."""
        return entry.layer is Layer.USER

    # -- telling -------------------------------------------------------------------------------

    def _remember(self, path: Path) -> None:
        self.change_settings(
            recent_files=with_recent(self._held.recent_files, path), folder=str(path.absolute().parent)
        )
        self.changed.emit()

    def forget(self, path: str) -> None:
        """Take a path off the recent files."""
        self.change_settings(recent_files=without_recent(self._held.recent_files, path))
        self.changed.emit()

    def _try(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except FileFault as fault:
            self._failed(fault)
            return None

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, FileFault):
            raise error
        self._tell(error.message, severity="error")

    def _tell_issues(self, name: str, issues: tuple[Issue, ...]) -> None:
        if issues:
            message = Message(
                QT_TRANSLATE_NOOP("messages", "{name} is open; wrong or unknown in it: {count}."),
                {"name": name, "count": len(issues)},
            )
            self._tell(message, tuple(issue.message for issue in issues), severity="warning")

    def _tell(
        self,
        message: Message,
        details: tuple[Message, ...] = (),
        *,
        severity: str = "info",
        action_text: str = "",
        action: Callable[[], None] | None = None,
    ) -> None:
        self.told.emit(Notice(message, severity, details, action_text, action))
