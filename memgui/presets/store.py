"""The person's presets: one file each in one folder, which other programs and processes may change too.

Nothing is overwritten that somebody else changed, nothing is deleted for good: what is deleted or
overruled lies in ``trash`` for a month, what cannot be read in ``quarantine`` for ever.  A preset keeps
its file name for life; its name is inside.

Decided here: no ``.bak`` beside a preset.  A replacement is one step, so the old content is never at
risk, and the folder holds presets and nothing else.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from memgui import __version__
from memgui.files.atomic import AlreadyThere, make_folder, move_into, sweep, write_atomic
from memgui.files.bounded import FileFault, StrPath, display_name, list_folder, read_whole
from memgui.files.held import in_turn
from memgui.presets import share
from memgui.presets.codec import (
    MAX_BYTES,
    MAX_MANY_BYTES,
    MAX_NAME,
    SUFFIX,
    Decoded,
    Preset,
    check_name,
    decode,
    decode_many,
    encode,
    encode_many,
)
from memgui.presets.entries import Entry, Folder, Layer, State, digest, entry_of
from memgui.presets.migrate import SCHEMA
from memgui.presets.paths import AppPaths
from memgui.presets.trash import Deleted, Trash
from memgui.spec import NO_REPORT, QT_TRANSLATE_NOOP, ImportReport, Issue, Message, ModelSpec, Scenario

_STAMP: Final = "%Y%m%dT%H%M%S"


class NameTaken(FileFault):
    """Another preset of the person's has that name; :attr:`entry` is it."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(
            entry.path.name,
            QT_TRANSLATE_NOOP("messages", "There is a preset called “{name}” already."),
            name=entry.name,
        )
        self.entry = entry


class PresetChanged(FileFault):
    """The file is not as it was when the entry was read; :attr:`entry` is it now, ``None`` if it is gone."""

    def __init__(self, old: Entry, entry: Entry | None) -> None:
        super().__init__(
            old.path.name,
            QT_TRANSLATE_NOOP(
                "messages",
                "“{name}” was changed by another program since it was opened; nothing was overwritten.",
            )
            if entry is not None
            else QT_TRANSLATE_NOOP(
                "messages", "“{name}” was deleted by another program since it was opened."
            ),
            name=old.name,
        )
        self.entry = entry


class NotWritable(FileFault):
    """A preset that this memgui must leave alone: everyone's, or one that it cannot read whole."""


class Loaded(msgspec.Struct, frozen=True):
    """A preset with the entry it came from, and what was wrong or unknown in it."""

    entry: Entry
    preset: Preset
    issues: tuple[Issue, ...] = ()


class PresetStore:
    """All presets there are.  Every method may raise :class:`FileFault`; then nothing was changed.

    Not thread-safe; any number of stores in any number of processes may work on the same folder.
    """

    def __init__(self, paths: AppPaths, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.folder = paths.presets
        self.trash = self.folder / "trash"
        self._trash = Trash(self.trash, now)
        self.quarantine = self.folder / "quarantine"
        self._now = now
        self._user = Folder(self.folder, Layer.USER)
        self._site = [Folder(folder, Layer.SITE) for folder in paths.site_presets]

    def start(self) -> tuple[Message, ...]:
        """Clear up after earlier runs; say what was set aside, and that a folder cannot be read.

        Removes temporary files of writers that were killed and what has lain in the trash for a month,
        and moves files of which no preset can be made into ``quarantine``, where they stay until the person
        takes them away: a preset that cannot be read is never deleted.  Raises nothing.
        """
        sweep(self.folder)
        self._trash.empty()
        told: list[Message] = []
        found = self._user.entries()
        if not found and os.path.lexists(self.folder):
            try:
                list_folder(self.folder)
            except FileFault as fault:
                told.append(fault.message)
        for entry in found:
            if entry.state is State.DAMAGED and entry.message is not None:
                told.append(self._set_aside(entry, entry.message))
        return tuple(told)

    def entries(self) -> tuple[Entry, ...]:
        """Every preset there is now, the person's and everyone's, in order of name."""
        found = self._user.entries()
        for folder in self._site:
            found += folder.entries()
        return tuple(sorted(found, key=lambda entry: (entry.name.casefold(), entry.name, entry.key)))

    def find(self, key: str) -> Entry | None:
        """The preset with this :attr:`Entry.key`, if there is one."""
        return next((entry for entry in self.entries() if entry.key == key), None)

    def load(self, entry: Entry) -> Loaded:
        """The preset as it is on the disk now; take its entry along for saving over it."""
        data = read_whole(entry.path, MAX_BYTES)
        decoded = decode(data, entry.path.name)
        return Loaded(entry_of(data, entry.path, entry.layer), decoded.preset, decoded.issues)

    def create(
        self,
        name: str,
        content: Scenario | ModelSpec,
        notes: str = "",
        measured: Mapping[str, Any] | None = None,
        report: ImportReport = NO_REPORT,
    ) -> Entry:
        """Save a new preset; :class:`NameTaken` where the person has one of that name."""
        return self._add(
            Preset(name=name, content=content, notes=notes, measured=measured or {}, report=report)
        )

    def update(
        self,
        entry: Entry,
        *,
        content: Scenario | ModelSpec | None = None,
        name: str | None = None,
        notes: str | None = None,
        measured: Mapping[str, Any] | None = None,
        report: ImportReport | None = None,
        overwrite: bool = False,
    ) -> Entry:
        """Save over a preset, rename it (``name``) or both; what is not given stays, unknown keys too.

        :class:`PresetChanged` where the file is no longer what ``entry`` says; with ``overwrite`` what
        stands there goes to the trash and the preset is written all the same.
        """
        self._demand_writable(entry)
        if name is not None:
            name = check_name(name)
            self._demand_free(name, entry)
        with in_turn(self.folder):
            base = self._base(entry, overwrite, content)
            given = {
                "content": content,
                "name": name,
                "notes": notes,
                "measured": measured,
                "report": report,
            }
            changes = {key: value for key, value in given.items() if value is not None}
            return self._write(msgspec.structs.replace(base, **changes), entry.path)

    def duplicate(self, entry: Entry, name: str | None = None) -> Entry:
        """A copy of a preset (also of everyone's) under ``name``, or under its own with a number."""
        preset = self.load(entry).preset
        name = self.free_name(preset.name) if name is None else name
        return self._add(msgspec.structs.replace(preset, name=name))

    def delete(self, entry: Entry) -> Deleted:
        """Take a preset of the person's away, into the trash; :meth:`restore` undoes it."""
        if entry.layer is not Layer.USER:
            self._refuse_site(entry)
        data = b""
        with suppress(FileFault):  # what cannot be read can be deleted all the same
            data = read_whole(entry.path, MAX_BYTES)
        return Deleted(entry, self._trash.take(entry.path), data)

    def deleted(self) -> tuple[Deleted, ...]:
        """What was thrown away in the last month, by this run or an earlier one, the newest first."""
        return self._trash.listed(self.folder)

    def restore(self, deleted: Deleted) -> Entry:
        """Put a deleted preset back as it was: same file, bytes, mode and time.

        Where another one has taken its name meanwhile, it gets a number.
        """
        path = deleted.entry.path
        try:
            path = move_into(deleted.trashed, self.folder, path.name)
        except FileFault:
            if deleted.trashed.exists() or not deleted.data:
                raise
            make_folder(self.folder)
            write_atomic(path, deleted.data, new=True)
        entry = entry_of(deleted.data or read_whole(path, MAX_BYTES), path, Layer.USER)
        others = (one for one in self._user.entries() if one.path != path)
        if entry.writable and _folded(entry.name) in {_folded(one.name) for one in others}:
            with suppress(FileFault):  # it is back all the same
                return self.update(entry, name=self.free_name(entry.name))
        return entry

    def import_file(self, path: StrPath) -> tuple[Loaded | FileFault, ...]:
        """Take the presets in a file (one or several) among the person's, under names that are free."""
        found = decode_many(read_whole(path, MAX_MANY_BYTES), display_name(path))
        taken = self._taken()
        return tuple(self._import(item, taken) for item in found)

    def import_text(self, text: str) -> Loaded:
        """Take the preset in a shared text among the person's, under a name that is free."""
        return self._take(share.from_text(text), self._taken())

    def export(self, entries: Sequence[Entry], path: StrPath) -> None:
        """Write presets into one file: a single one just as it is saved, several as a collection."""
        presets = [self.load(entry).preset for entry in entries]
        write_atomic(path, encode(presets[0]) if len(presets) == 1 else encode_many(presets))

    def free_name(self, name: str) -> str:
        """``name``, or that with a number after it where the person has a preset of that name."""
        return _numbered(check_name(name), self._taken())

    def _taken(self) -> set[str]:
        return {_folded(entry.name) for entry in self._user.entries()}

    def _import(self, item: Decoded | FileFault, taken: set[str]) -> Loaded | FileFault:
        if isinstance(item, FileFault):
            return item
        try:
            return self._take(item, taken)
        except FileFault as fault:
            return fault

    def _take(self, decoded: Decoded, taken: set[str]) -> Loaded:
        """Add a preset under a name not yet in ``taken``, and put that name there."""
        name = _numbered(check_name(decoded.preset.name), taken)
        preset = msgspec.structs.replace(decoded.preset, name=name)
        entry = self._add(preset, taken)
        taken.add(_folded(name))
        return Loaded(entry, preset, decoded.issues)

    def _add(self, preset: Preset, taken: set[str] | None = None) -> Entry:
        """Write a new file; where ``taken`` is given the name is known not to be in it."""
        preset = msgspec.structs.replace(preset, name=check_name(preset.name))
        make_folder(self.folder)
        with in_turn(self.folder):
            if taken is None:
                self._demand_free(preset.name, None)
            stem = file_stem(preset.name)
            for number in range(1, 1000):
                path = self.folder / (f"{stem}{SUFFIX}" if number == 1 else f"{stem}-{number}{SUFFIX}")
                with suppress(AlreadyThere):
                    return self._write(preset, path, new=True)
        raise AlreadyThere(
            preset.name, QT_TRANSLATE_NOOP("messages", "{file} is there already; nothing was written.")
        )

    def _write(self, preset: Preset, path: Path, *, new: bool = False) -> Entry:
        saved = self._now().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        data = encode(msgspec.structs.replace(preset, saved=saved, app=__version__))
        make_folder(self.folder)
        write_atomic(path, data, new=new)
        return entry_of(data, path, Layer.USER)

    def _base(self, entry: Entry, overwrite: bool, content: Scenario | ModelSpec | None) -> Preset:
        """What :meth:`update` changes: the preset on the disk."""
        try:
            data = read_whole(entry.path, MAX_BYTES)
        except FileFault:
            if os.path.lexists(entry.path):
                raise
            if not overwrite or content is None:
                raise PresetChanged(entry, None) from None
            return Preset(name=entry.name, content=content, notes=entry.notes)
        found = entry_of(data, entry.path, Layer.USER)
        if found.digest != entry.digest and not overwrite:
            raise PresetChanged(entry, found)
        if found.state is State.DAMAGED and content is not None:
            self._trash.keep(entry.path, data)
            return Preset(name=entry.name, content=content, notes=entry.notes)
        self._demand_writable(found)
        decoded = decode(data, entry.path.name)
        if found.digest != entry.digest or decoded.schema != SCHEMA:
            self._trash.keep(entry.path, data)
        return decoded.preset

    def _set_aside(self, entry: Entry, reason: Message) -> Message:
        stem = entry.path.name[: -len(SUFFIX)]
        name = f"{stem}.{self._now().astimezone(UTC).strftime(_STAMP)}.json"
        try:
            place = move_into(entry.path, self.quarantine, name)
        except FileFault as fault:
            return fault.message
        return Message(
            QT_TRANSLATE_NOOP("messages", "A preset cannot be read and was set aside as {place}. {reason}"),
            {"place": str(place), "reason": reason},
        )

    def _demand_writable(self, entry: Entry) -> None:
        if entry.layer is not Layer.USER:
            self._refuse_site(entry)
        if not entry.writable:
            raise NotWritable(
                entry.path.name,
                QT_TRANSLATE_NOOP("messages", "“{name}” is left as it is: {reason}"),
                name=entry.name,
                reason=entry.message or "",
            )

    def _refuse_site(self, entry: Entry) -> None:
        raise NotWritable(
            entry.path.name,
            QT_TRANSLATE_NOOP(
                "messages",
                "“{name}” is for everyone on this machine and cannot be changed here; a copy of it can.",
            ),
            name=entry.name,
        )

    def _demand_free(self, name: str, but: Entry | None) -> None:
        for entry in self._user.entries():
            if _same(entry.name, name) and (but is None or entry.path != but.path):
                raise NameTaken(entry)


def file_stem(name: str) -> str:
    """A file name for the preset called ``name`` that any file system takes: letters, digits, a hash."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain)[:40].strip("-") or "preset"
    mark = digest(_folded(name).encode())[:8]
    return f"{slug}-{mark}"


def _numbered(name: str, taken: set[str]) -> str:
    stem = re.sub(r" \(\d+\)$", "", name)[: MAX_NAME - 8]
    number = 1
    while _folded(name) in taken:
        number += 1
        name = f"{stem} ({number})"
    return name


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip())


def _same(one: str, other: str) -> bool:
    return _folded(one) == _folded(other)
