"""What is open is saved to presets, and they are kept in order.

Every fault becomes a :class:`Notice`; the open scenario is then as it was.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QCoreApplication, QObject

from memgui.catalog import Catalog
from memgui.document.document import Document, State
from memgui.document.jobs import Jobs
from memgui.document.opening import Opening
from memgui.files.bounded import FileFault, display_name
from memgui.presets import entries, share
from memgui.presets.codec import BadName, Preset
from memgui.presets.entries import Entry, Layer
from memgui.presets.settings import SettingsStore
from memgui.presets.store import NameTaken, NotWritable, PresetChanged, PresetStore
from memgui.presets.trash import Deleted
from memgui.spec import QT_TRANSLATE_NOOP, Message, ModelSpec, Scenario, one_line


class Library(Opening):
    """Opens, saves and keeps in order."""

    def __init__(
        self,
        document: Document,
        catalog: Catalog,
        presets: PresetStore,
        settings: SettingsStore,
        jobs: Jobs,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(document, catalog, settings, jobs, parent)
        self._presets = presets
        self._seen: dict[str, Entry] = {}
        self._listed: dict[str, tuple[str, str]] | None = None
        self._warned_of = ""

    def start(self) -> tuple[Message, ...]:
        """Clear up after earlier runs; a sentence for each preset that had to be set aside."""
        return self._presets.start()

    # -- lists ---------------------------------------------------------------------------------

    def presets(self) -> tuple[Entry, ...]:
        """The person's presets and everyone's, by name."""
        found = self._presets.entries()
        self._listed = _said_of(found)
        return found

    def look_again(self) -> None:
        """Notice what other windows and programs did to the presets while this window was not looked at.

        The list is another one then, and of the open preset it is told once, with a way to what is there now.
        """
        before = self._listed
        found = {entry.key: entry for entry in self.presets()}
        if before is not None and before != self._listed:
            self.changed.emit()
        old = self._seen.get(self._document.state.preset)
        if old is None:
            return
        entry = found.get(old.key)
        now = f"{old.key}\n{entry.digest if entry is not None else ''}"
        if (entry is not None and entry.digest == old.digest) or now == self._warned_of:
            return
        self._warned_of = now
        message = PresetChanged(old, entry).message
        if entry is None or entry.state is not entries.State.OK:
            self._tell(message, severity="warning")
        else:
            opened = entry
            self._tell(
                message,
                severity="warning",
                action_text=QT_TRANSLATE_NOOP("messages", "Open what is there now"),
                action=lambda: self.open_preset(opened),
            )

    def scenario_of(self, entry: Entry) -> Scenario | None:
        """The scenario of a preset; ``None`` where it has none or cannot be read now."""
        with suppress(FileFault):
            content = self._presets.load(entry).preset.content
            return content if isinstance(content, Scenario) else None
        return None

    # -- opening -------------------------------------------------------------------------------

    def open_preset(self, entry: Entry) -> None:
        """Open a preset: a whole scenario, or a model profile into the open one."""
        from memgui.planning.opening import unread_runs

        loaded = self._try(lambda: self._presets.load(entry), of_opening=True)
        if loaded is None:
            return
        self._seen[entry.key] = loaded.entry
        preset = loaded.preset
        content = preset.content
        name = one_line(preset.name)
        if isinstance(content, Scenario):
            self._load(State(content, content.model, name, entry.key, preset.measured, preset.report), name)
            told: tuple[Message, ...] = ()
        else:
            told = self._put(content, None, preset.report)
        self._say_open(name, told, (*loaded.issues, *unread_runs(preset.measured)))

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
        """Take from an earlier run what :meth:`seen` said, so that a change since then is noticed.

        What that run left open is told from what the preset holds, too; one that is gone is open no more.
        """
        if not (key and digest):
            return
        entry = self._presets.find(key)
        if entry is None:
            self._document.let_go(key)
            return
        self._seen[key] = msgspec.structs.replace(entry, digest=digest)
        with suppress(FileFault):
            preset = self._presets.load(entry).preset
            if isinstance(preset.content, Scenario):
                self._document.keep(key, one_line(preset.name), preset.content, preset.measured)

    def save_as(self, name: str, *, model_only: bool = False, notes: str = "") -> bool:
        """Keep the open scenario (or its model alone) under a new name; whether it was kept."""
        scenario = self._document.scenario
        content: Scenario | ModelSpec = scenario.model if model_only else scenario
        try:
            report = self._document.state.report
            entry = self._presets.create(name, content, notes, self._measured(content), report)
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
            self._not_saved(name, fault, lambda: self.save_as(name, model_only=model_only, notes=notes))
            return False
        self._saved(entry, content)
        return True

    def _replace(self, entry: Entry, content: Scenario | ModelSpec, *, overwrite: bool = False) -> None:
        try:
            saved = self._presets.update(
                entry,
                content=content,
                measured=self._measured(content),
                report=self._document.state.report,
                overwrite=overwrite,
            )
        except PresetChanged as changed:
            self._tell(
                changed.message,
                severity="warning",
                action_text=QT_TRANSLATE_NOOP("messages", "Save all the same"),
                action=lambda: self._replace(entry, content, overwrite=True),
            )
        except FileFault as fault:
            self._not_saved(entry.name, fault, lambda: self._replace(entry, content, overwrite=overwrite))
        else:
            self._saved(saved, content)

    def _not_saved(self, name: str, fault: FileFault, again: Callable[[], object]) -> None:
        """Say so; what a disk refused may be tried again, a name or a preset that cannot be had may not."""
        if isinstance(fault, (BadName, NotWritable)):
            self._failed(fault)
            return
        text = QT_TRANSLATE_NOOP("messages", "“{name}” is not saved; the set-up stays open. {reason}")
        self._tell(
            Message(text, {"name": name, "reason": fault.message}),
            severity="error",
            action_text=QT_TRANSLATE_NOOP("messages", "Try again"),
            action=again,
        )

    def _measured(self, content: Scenario | ModelSpec) -> Mapping[str, Any] | None:
        """What is kept beside ``content``: runs were of the whole set-up, a model alone has none."""
        return self._document.state.measured if isinstance(content, Scenario) else None

    def _saved(self, entry: Entry, content: Scenario | ModelSpec) -> None:
        self._seen[entry.key] = entry
        if content == self._document.scenario:
            self._document.saved_as(one_line(entry.name), entry.key)
        elif isinstance(content, Scenario):
            measured = self._document.state.measured
            self._document.keep(entry.key, one_line(entry.name), content, measured)
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
        self._document.renamed(entry.key, one_line(renamed.name))
        self.changed.emit()
        return True

    def duplicate(self, entry: Entry) -> Entry | None:
        """A copy under a name with a number."""
        copy = self._try(lambda: self._presets.duplicate(entry))
        if copy is not None:
            self.changed.emit()
        return copy

    def delete(self, entry: Entry) -> None:
        """Take a preset away, as an undo step; the notice has a button that brings it back, too."""
        deletion = _Deletion(self, self._presets, entry)
        if not deletion.do():
            return
        text = QCoreApplication.translate("Library", "Delete “{name}”").format(name=one_line(entry.name))
        self._document.beside(text, deletion.step)
        self._tell(
            Message(QT_TRANSLATE_NOOP("messages", "“{name}” is deleted."), {"name": entry.name}),
            action_text=QT_TRANSLATE_NOOP("messages", "Bring it back"),
            action=deletion.undo,
        )

    def deleted(self) -> tuple[Deleted, ...]:
        """What was thrown away in the last month and can be brought back."""
        return self._presets.deleted()

    def bring_back(self, deleted: Deleted) -> Entry | None:
        """Take a preset out of the trash."""
        back = self._try(lambda: self._presets.restore(deleted))
        if back is not None:
            self.changed.emit()
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "“{name}” is back."), {"name": back.name}))
        return back

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
                report=state.report,
            )
        )

    def is_own(self, entry: Entry) -> bool:
        """Whether a preset is the person's and not everyone's."""
        return entry.layer is Layer.USER


class _Deletion:
    """A preset that is taken away or brought back, whichever was asked for last."""

    def __init__(self, library: Library, store: PresetStore, entry: Entry) -> None:
        # Weakly: a cycle through Qt's stack would be taken apart by the collector, in the wrong order.
        self._library: Library = weakref.proxy(library)
        self._store, self._entry = store, entry
        self._gone: Deleted | None = None
        self._seen: Entry | None = None
        self._was_open = False

    def step(self, on: bool) -> None:
        """What the undo stack does."""
        if on:
            self.do()
        else:
            self.undo()

    def do(self) -> bool:
        """Take it away; whether it is."""
        if self._gone is None:
            self._gone = self._library._try(lambda: self._store.delete(self._entry))
            if self._gone is not None:
                self._seen = self._library._seen.pop(self._entry.key, None)  # no other program did it
                self._was_open = self._library._document.let_go(self._entry.key)
                self._library.changed.emit()
        return self._gone is not None

    def undo(self) -> None:
        """Bring it back, where that was not done otherwise."""
        back = self._library.bring_back(self._gone) if self._gone is not None else None
        if back is not None:
            same = self._entry.key == back.key  # its file may be called otherwise now
            self._gone, self._entry = None, back
            if self._seen is not None and same:
                self._library._seen[back.key] = self._seen
            if self._was_open and same:
                self._library._document.take_up(back.key, one_line(back.name))


def _said_of(found: Sequence[Entry]) -> dict[str, tuple[str, str]]:
    """What a list says of each preset, by key."""
    return {entry.key: (entry.name, entry.digest) for entry in found}
