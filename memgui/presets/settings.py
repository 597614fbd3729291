"""The person's settings: a small JSON file that holds only what differs from the defaults.

    {"units": "GB", "theme": "dark", "recent_files": ["…"]}

Keys of other versions are kept; a bad value costs that setting only.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from memgui.files.atomic import keep_newest, make_folder, move_into, sweep, write_atomic
from memgui.files.bounded import FileFault, read_whole
from memgui.files.held import in_turn
from memgui.files.strict_json import parse_object, shown
from memgui.presets.codec import dump, plain
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message

MAX_BYTES: Final = 2**20
MAX_KEPT: Final = 50
"""Unreadable settings kept in ``quarantine``: the newest."""
_Text = Annotated[str, msgspec.Meta(max_length=4096)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What a person chose once for every window.  Geometry is not here but in Qt's own file."""

    units: Literal["GiB", "GB"] = "GiB"
    theme: Literal["system", "light", "dark"] = "system"
    language: Annotated[str, msgspec.Meta(max_length=32)] = ""
    """A locale name (``en``, ``zh_CN``); empty: the system's."""
    reduced_motion: bool = False
    recent_files: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=50)] = ()
    """Absolute paths, newest first."""
    folder: _Text = ""
    """Where a file was last opened or saved."""


class SettingsStore:
    """Reads and writes one settings file that several windows and processes share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = Settings()

    def load(self) -> tuple[Settings, tuple[Issue, ...]]:
        """The settings, and what was wrong with the file.

        A file that cannot be read leaves the defaults and stays where it is; one that holds no settings
        is moved into ``quarantine`` beside it.  Raises nothing.
        """
        sweep(self.path.parent)
        issues: list[Issue] = []
        try:
            held = self._read(issues)
        except FileFault as fault:
            held = {}
            issues.append(Issue("warning", "settings_unreadable", (), fault.message))
        self._known = _settings(held, issues)
        return self._known, tuple(issues)

    def save(self, settings: Settings) -> None:
        """Write what this process changed since it last read or wrote; the rest of the file stays.

        Raises :class:`FileFault`; the file is then as it was.
        """
        make_folder(self.path.parent)
        with in_turn(self.path.parent):
            held = self._read([])
            for name in Settings.__struct_fields__:
                value = plain(getattr(settings, name))
                if value == plain(getattr(self._known, name)):
                    continue
                held[name] = value
                if value == plain(getattr(Settings(), name)):
                    del held[name]
            write_atomic(self.path, dump(self.path.name, held, MAX_BYTES))
        self._known = settings

    def _read(self, issues: list[Issue]) -> dict[str, Any]:
        """What the file holds; nothing where there is none or it had to be set aside."""
        if not self.path.exists():
            return {}
        data = read_whole(self.path, MAX_BYTES)
        try:
            return parse_object(data, self.path.name)
        except FileFault as fault:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            name = f"{self.path.stem}.{stamp}{self.path.suffix}"
            place = move_into(self.path, self.path.parent / "quarantine", name)
            keep_newest(place.parent, MAX_KEPT)
            message = Message(
                QT_TRANSLATE_NOOP(
                    "messages", "The settings cannot be read and were set aside as {place}. {reason}"
                ),
                {"place": str(place), "reason": fault.message},
            )
            issues.append(Issue("warning", "settings_set_aside", (), message))
            return {}


def _settings(held: dict[str, Any], issues: list[Issue]) -> Settings:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(Settings):
        if field.name not in held:
            continue
        try:
            values[field.name] = msgspec.convert(held[field.name], field.type, strict=True)
        except msgspec.ValidationError:
            from memgui.spec.types import allowed_type  # where something is wrong, not at each start

            message = Message(
                QT_TRANSLATE_NOOP("messages", "The setting {path} cannot be {value}. {allowed}"),
                {
                    "path": field.name,
                    "value": shown(held[field.name]),
                    "allowed": allowed_type(field.type),
                },
            )
            issues.append(Issue("warning", "bad_setting", (field.name,), message))
    return Settings(**values)
