"""What is open, kept while it is open: restored at the next start, whether memgui ended or was killed.

Each running memgui owns one slot: ``<token>.json`` with the session and ``<token>.lock``, held while the
process lives, by which a later start tells the dead from the living.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from memgui import __version__
from memgui.files.atomic import keep_newest, make_folder, move_into, sweep, write_atomic, write_fault
from memgui.files.bounded import FileFault, read_whole
from memgui.files.held import hold, in_turn, is_held
from memgui.files.strict_json import parse_object
from memgui.presets.codec import MAX_VALUES, dump, plain
from memgui.presets.fields import REPORT, Reader
from memgui.presets.migrate import SCHEMA, STEPS, migrate
from memgui.spec import NO_REPORT, QT_TRANSLATE_NOOP, ImportReport, Issue, Message, ModelSpec, Scenario, get
from memgui.spec.fields import BY_PATH

FORMAT: Final = "memgui.session"
MAX_BYTES: Final = 4 * 2**20
MAX_PINNED: Final = 50
MAX_ASKED: Final = 50
MAX_STARTS: Final = 2
"""A session whose restoring ended in a crash this often is kept, but not restored by itself again."""
MAX_KEPT: Final = 50
"""Sessions kept in ``recovered``, and in ``quarantine``: the newest.  Presets are never cleared away so."""
_SLOT: Final = re.compile(r"([0-9a-f]{16})\.(json|lock)")


class Pinned(msgspec.Struct, frozen=True):
    """A set-up pinned for comparison."""

    name: str
    scenario: Scenario


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What is open in one memgui.

    ``origin`` is the model as it was loaded, ``name`` that of the preset or file the scenario came from,
    ``preset`` the key of that preset (``""``: of none) and ``digest`` its content's, as it was last seen;
    ``report`` is of the file that the model was read from.  ``asked``: of fields that follow the open model
    what was asked, by path.  ``computed``: where ``scenario`` cannot be computed, the
    newest that could.
    """

    scenario: Scenario
    origin: ModelSpec | None = None
    name: str = ""
    preset: str = ""
    digest: str = ""
    pinned: tuple[Pinned, ...] = ()
    measured: Mapping[str, Any] = {}
    report: ImportReport = NO_REPORT
    asked: Mapping[str, Any] = {}
    computed: Scenario | None = None


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What the last memgui left.

    ``session`` is to be opened now.  ``others`` are sessions of further memguis that crashed, newest
    first, worth offering.  ``crashed`` says that ``session`` was not closed properly.  ``held_back``
    is a session that is not opened by itself, because doing so crashed memgui before.
    """

    session: Session | None = None
    crashed: bool = False
    others: tuple[Session, ...] = ()
    held_back: Session | None = None
    issues: tuple[Issue, ...] = ()


class _Slot(msgspec.Struct, frozen=True):
    """A session found on the disk."""

    path: Path
    time_ns: int
    session: Session
    closed: bool
    starts: int
    issues: tuple[Issue, ...]


class SessionKeeper:
    """This process's slot.  Nothing is written before :meth:`start`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        token = os.urandom(8).hex()
        self._path = folder / f"{token}.json"
        self._lock_path = folder / f"{token}.lock"
        self._lock: BinaryIO | None = None
        self._starts = 0

    def start(self) -> Recovery:
        """Take a slot of one's own and what ended memguis left in theirs.  Raises nothing.

        Where the folder cannot be written, what is there is recovered all the same; an issue says so.
        """
        issues: list[Issue] = []
        try:
            make_folder(self.folder)
            can_write = True
        except FileFault as fault:
            issues.append(Issue("warning", "session_not_kept", (), fault.message))
            can_write = False
        with in_turn(self.folder):
            if can_write:
                self._take_slot(issues)
            sweep(self.folder)
            found = sorted(self._left(issues), key=lambda slot: slot.time_ns, reverse=True)
            recovery = self._choose(found, issues)
            if self._lock is not None:
                self._adopt(recovery, found, issues)
                for name in ("recovered", "quarantine"):
                    keep_newest(self.folder / name, MAX_KEPT)
        return recovery

    def write(self, session: Session, *, closed: bool = False) -> None:
        """Keep ``session``; raises :class:`FileFault`, then the one written before is still kept."""
        make_folder(self.folder)
        self._starts = 0  # memgui lives long enough to write: opening the session does not crash it
        self._write(session, closed=closed)

    def close(self, session: Session | None = None) -> None:
        """End properly: keep ``session`` for the next start (``None``: nothing) and let go of the slot."""
        try:
            if session is not None:
                self.write(session, closed=True)
            else:
                with suppress(OSError):
                    self._path.unlink()
        finally:
            if self._lock is not None:
                self._lock.close()
                self._lock = None
            with suppress(OSError):
                self._lock_path.unlink()

    def _take_slot(self, issues: list[Issue]) -> None:
        try:
            self._lock = open(self._lock_path, "wb")  # noqa: SIM115 - held until close()
        except OSError as error:
            fault = write_fault(self._lock_path, error)
            issues.append(Issue("warning", "session_not_kept", (), fault.message))
        else:
            hold(self._lock.fileno())

    def _left(self, issues: list[Issue]) -> list[_Slot]:
        """The slots of memguis that are no more."""
        slots: list[_Slot] = []
        names = set()
        with suppress(OSError), os.scandir(self.folder) as found:
            names = {match[1] for item in found if (match := _SLOT.fullmatch(item.name))}
        for token in names - {self._path.stem}:
            lock, path = self.folder / f"{token}.lock", self.folder / f"{token}.json"
            if lock.exists():
                if is_held(lock):
                    continue
                try:
                    lock.unlink()
                except PermissionError:  # Windows: its owner lives
                    continue
                except OSError:
                    pass
            if path.exists():
                try:
                    slots.append(_read(path))
                except FileFault as fault:
                    issues.append(_set_aside(path, fault))
        return slots

    def _choose(self, found: list[_Slot], issues: list[Issue]) -> Recovery:
        if not found:
            return Recovery(issues=tuple(issues))
        newest = found[0]
        issues += newest.issues
        others = tuple(slot.session for slot in found[1:] if not slot.closed)
        if not newest.closed and newest.starts >= MAX_STARTS:
            return Recovery(crashed=True, held_back=newest.session, others=others, issues=tuple(issues))
        self._starts = 0 if newest.closed else newest.starts
        return Recovery(
            session=newest.session, crashed=not newest.closed, others=others, issues=tuple(issues)
        )

    def _adopt(self, recovery: Recovery, found: list[_Slot], issues: list[Issue]) -> None:
        """Keep in one's own slot what is restored, then clear the slots it came from."""
        try:
            if recovery.session is not None:
                self._starts += 1
                self._write(recovery.session, closed=False)
        except FileFault:
            return  # everything stays where it is, for a start when there is room again
        kept = (recovery.held_back, *recovery.others)
        for slot in found:
            with suppress(FileFault, OSError):
                if slot.session in kept:
                    move_into(slot.path, self.folder / "recovered", slot.path.name)
                else:
                    slot.path.unlink()

    def _write(self, session: Session, *, closed: bool) -> None:
        envelope = {
            "format": FORMAT,
            "schema": SCHEMA,
            "app": __version__,
            "closed": closed,
            "starts": self._starts,
            "scenario": plain(session.scenario),
            "origin": plain(session.origin),
            "name": session.name,
            "preset": session.preset,
            "digest": session.digest,
            "pinned": plain(session.pinned),
            "measured": dict(session.measured),
            REPORT: plain(session.report),
            "asked": {path: plain(value) for path, value in session.asked.items()},
            "computed": plain(session.computed),
        }
        write_atomic(self._path, dump(self._path.name, envelope, MAX_BYTES, indent=None))


def _read(path: Path) -> _Slot:
    data = read_whole(path, MAX_BYTES)
    plain_values = parse_object(data, path.name, MAX_VALUES)
    schema = plain_values.get("schema")
    if plain_values.get("format") != FORMAT or type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise FileFault(path.name, QT_TRANSLATE_NOOP("messages", "{file} is no session of this memgui."))
    envelope: dict[str, Any] = migrate(plain_values, schema, STEPS)
    # What was open is opened again as it was, out of range or not: validation speaks of it beside the field.
    reader = Reader(path.name, ranges=False)
    stated, before = envelope.get("scenario"), envelope.get("origin")
    scenario = reader.scenario(stated)[0]
    if isinstance(stated, dict) and before == stated.get("model"):
        origin: ModelSpec | None = scenario.model
    else:
        origin = None if before is None else reader.model(before)[0]
    pinned: list[Pinned] = []
    listed = envelope.get("pinned")
    for item in listed[:MAX_PINNED] if isinstance(listed, list) else []:
        if isinstance(item, dict):
            pinned.append(
                Pinned(reader.text(item, "name", "", 1000), reader.scenario(item.get("scenario"))[0])
            )
    measured = envelope.get("measured")
    starts = envelope.get("starts")
    return _Slot(
        path,
        path.stat().st_mtime_ns,
        Session(
            scenario=scenario,
            origin=origin,
            name=reader.text(envelope, "name", "", 1000),
            preset=reader.text(envelope, "preset", "", 1000),
            digest=reader.text(envelope, "digest", "", 1000),
            pinned=tuple(pinned),
            measured=measured if isinstance(measured, dict) else {},
            report=reader.report(envelope),
            asked=_asked(path.name, stated, envelope.get("asked")),
            computed=_computed(path.name, envelope.get("computed")),
        ),
        closed=envelope.get("closed") is True,
        starts=starts if type(starts) is int else 0,
        issues=reader.issues,
    )


def _asked(file: str, stated: object, values: object) -> dict[str, Any]:
    """What was asked of fields that the model cannot have so, as far as they can hold it."""
    if not isinstance(stated, dict) or not isinstance(values, dict):
        return {}
    paths = [path for path in islice(values, MAX_ASKED) if path in BY_PATH]
    if not paths:
        return {}
    other: dict[str, Any] = stated
    for path in paths:
        other = _with(other, path.split("."), values[path])
    reader = Reader(file, ranges=False)
    scenario = reader.scenario(other)[0]
    wrong = {path for issue in reader.issues for path in issue.paths}
    return {path: get(scenario, path) for path in paths if path not in wrong}


def _computed(file: str, value: object) -> Scenario | None:
    """A picture is no loss: where the set-up it was of cannot be read there is none."""
    with suppress(FileFault):
        return None if value is None else Reader(file).scenario(value)[0]
    return None


def _with(plain_values: dict[str, Any], keys: list[str], value: object) -> dict[str, Any]:
    """A copy of nested objects with ``value`` under ``keys``."""
    first, *rest = keys
    inner = plain_values.get(first)
    new = _with(inner if isinstance(inner, dict) else {}, rest, value) if rest else value
    return {**plain_values, first: new}


def _set_aside(path: Path, fault: FileFault) -> Issue:
    place = path
    with suppress(FileFault):
        place = move_into(path, path.parent / "quarantine", path.name)
    message = Message(
        QT_TRANSLATE_NOOP("messages", "What was open cannot be read and was set aside as {place}. {reason}"),
        {"place": str(place), "reason": fault.message},
    )
    return Issue("warning", "session_set_aside", (), message)
