"""What lies in a folder of presets: one row for each file, without reading any of them twice."""

from __future__ import annotations

import os
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from memgui.files.bounded import FileFault, read_whole
from memgui.presets.codec import MAX_BYTES, MAX_NAME, SUFFIX, NewerSchema, decode
from memgui.presets.migrate import SCHEMA
from memgui.spec import Message, ModelSpec, Scenario


class Layer(StrEnum):
    """Whose a preset is."""

    USER = "user"
    SITE = "site"  # everyone's on this machine; read only


class State(StrEnum):
    """What can be done with a preset."""

    OK = "ok"
    NEWER = "newer"  # a newer memgui wrote it: listed, left alone
    DAMAGED = "damaged"  # no preset can be made of what was read
    UNREADABLE = "unreadable"  # the file itself cannot be read now


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of presets as it was when it was looked at.

    ``digest`` (SHA-256 of the content) is what a later writer compares, so that a change made by
    somebody else is noticed.  ``message`` says why a preset that is not ``OK`` cannot be used.
    """

    path: Path
    layer: Layer
    state: State
    name: str
    kind: str = ""
    notes: str = ""
    saved: str = ""
    digest: str = ""
    message: Message | None = None

    @property
    def key(self) -> str:
        """Names the preset for as long as it exists, renamed or not."""
        return f"{self.layer}/{self.path.name}"

    @property
    def writable(self) -> bool:
        """Whether it can be saved over and renamed."""
        return self.layer is Layer.USER and self.state is State.OK


class _Head(msgspec.Struct, frozen=True):
    """A file in which nothing is wrong or unknown; whatever does not fit is read by the codec."""

    format: str
    schema: int
    name: str
    kind: str
    notes: str = ""
    saved: str = ""
    scenario: Scenario | None = None
    model: ModelSpec | None = None

    @property
    def sound(self) -> bool:
        content = self.scenario if self.kind == "scenario" else self.model if self.kind == "model" else None
        return (
            self.format == "memgui.preset"
            and self.schema == SCHEMA
            and content is not None
            and 0 < len(self.name.strip()) <= MAX_NAME
        )


class _Name(msgspec.Struct, frozen=True):
    """What a file of any schema is called."""

    name: str


_HEAD = msgspec.json.Decoder(_Head, strict=True)


def digest(data: bytes) -> str:
    """What tells one content from another."""
    import hashlib  # loads OpenSSL, 4 MB that a start without presets need not hold

    return hashlib.sha256(data).hexdigest()


def read_entry(path: Path, layer: Layer) -> Entry:
    """The row of the file at ``path``, whatever is in it."""
    stem = path.name[: -len(SUFFIX)] or path.name
    try:
        data = read_whole(path, MAX_BYTES)
    except FileFault as fault:
        return Entry(path=path, layer=layer, state=State.UNREADABLE, name=stem, message=fault.message)
    return entry_of(data, path, layer)


def entry_of(data: bytes, path: Path, layer: Layer) -> Entry:
    """The row of a file at ``path`` with the content ``data``."""
    stem, mark = path.name[: -len(SUFFIX)] or path.name, digest(data)
    try:
        head = _HEAD.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        head = None
    if head is not None and head.sound:
        return Entry(
            path=path,
            layer=layer,
            state=State.OK,
            name=head.name.strip(),
            kind=head.kind,
            notes=head.notes,
            saved=head.saved,
            digest=mark,
        )
    try:
        preset = decode(data, path.name).preset
    except FileFault as fault:
        state = State.DAMAGED
        if isinstance(fault, NewerSchema):
            state = State.NEWER
            with suppress(msgspec.MsgspecError, RecursionError):
                stem = msgspec.json.decode(data, type=_Name).name[:MAX_NAME].strip() or stem
        return Entry(path=path, layer=layer, state=state, name=stem, digest=mark, message=fault.message)
    return Entry(
        path=path,
        layer=layer,
        state=State.OK,
        name=preset.name,
        kind=preset.kind,
        notes=preset.notes,
        saved=preset.saved,
        digest=mark,
    )


class Folder:
    """A folder of presets; what has not changed since it was last looked at is not read again."""

    def __init__(self, path: Path, layer: Layer) -> None:
        self.path = path
        self.layer = layer
        self._seen: dict[str, tuple[tuple[int, ...], Entry]] = {}

    def entries(self) -> list[Entry]:
        """A row for each ``*.memgui.json`` there is; none where the folder does not exist."""
        seen: dict[str, tuple[tuple[int, ...], Entry]] = {}
        try:
            with os.scandir(self.path) as found:
                for item in found:
                    if item.name.lower().endswith(SUFFIX):
                        seen[item.name] = self._look(item)
        except OSError:
            seen = {}
        self._seen = seen
        return [entry for _, entry in seen.values()]

    def forget(self) -> None:
        """Read every file again next time."""
        self._seen = {}

    def _look(self, item: os.DirEntry[str]) -> tuple[tuple[int, ...], Entry]:
        mark: tuple[int, ...] = ()
        with suppress(OSError):
            status = item.stat()
            mark = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        known = self._seen.get(item.name)
        if known is not None and mark and known[0] == mark:
            return known
        return mark, read_entry(Path(item.path), self.layer)
