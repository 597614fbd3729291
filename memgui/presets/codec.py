"""A preset as the bytes of its file, and back.

    {"format": "memgui.preset", "schema": 1, "app": "0.1.0", "kind": "scenario" | "model", "name": …,
     "notes": …, "saved": ISO 8601 time in UTC, "scenario" | "model": {every field}, "measured": {…},
     "import_report": {…}}

Every field is written, so that a preset means the same after a default has changed.  Keys this version
does not know are kept in :attr:`Preset.unknown` and written again.  Several presets in one file are
``{"format": "memgui.presets", "schema": 1, "presets": [envelope, …]}``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import msgspec

from memgui import __version__
from memgui.files.bounded import FileFault, printable, require_limit
from memgui.files.strict_json import parse_object, shown
from memgui.presets.fields import REPORT, Plain, Reader
from memgui.presets.migrate import SCHEMA, STEPS, Step, migrate
from memgui.spec import NO_REPORT, QT_TRANSLATE_NOOP, ImportReport, Issue, ModelSpec, Scenario

FORMAT: Final = "memgui.preset"
FORMAT_MANY: Final = "memgui.presets"
SUFFIX: Final = ".memgui.json"
MAX_BYTES: Final = 2**20
"""Largest file of one preset (bytes)."""
MAX_VALUES: Final = 50_000
MAX_NAME: Final = 200
"""Longest name (characters)."""
MAX_NOTES: Final = 100_000
MAX_MANY: Final = 1000
"""Most presets in one file."""
MAX_MANY_BYTES: Final = 16 * 2**20
MAX_MANY_VALUES: Final = 400_000
"""A thousand presets have some 300,000."""

_KNOWN: Final = ("format", "schema", "app", "kind", "name", "notes", "saved", REPORT)


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """What a person saved: a whole scenario, or a model alone, under a name of any characters."""

    name: str
    content: Scenario | ModelSpec
    notes: str = ""
    measured: Mapping[str, Any] = {}
    """What was measured in a real run, as plain JSON values."""
    report: ImportReport = NO_REPORT
    """What became of the file that the model was read from."""
    saved: str = ""
    app: str = ""
    unknown: Mapping[str, Any] = {}
    """Keys that this version does not know, nested as in the file."""

    @property
    def kind(self) -> str:
        """``"scenario"`` or ``"model"``."""
        return "scenario" if isinstance(self.content, Scenario) else "model"


class Decoded(msgspec.Struct, frozen=True):
    """A preset read from a file; ``issues`` say what was wrong or unknown in it, ``schema`` what it was."""

    preset: Preset
    issues: tuple[Issue, ...] = ()
    schema: int = SCHEMA


class NewerSchema(FileFault):
    """Written by a newer memgui than this one; left as it is."""


class BadName(FileFault):
    """A name that no preset may have."""


def check_name(name: str) -> str:
    """``name`` without the spaces around it, or :class:`BadName`: it may not be empty or too long."""
    stripped = name.strip()
    if not stripped or len(stripped) > MAX_NAME:
        raise BadName(
            name,
            QT_TRANSLATE_NOOP("messages", "A name has 1 to {longest} characters; this one has {length}."),
            longest=MAX_NAME,
            length=len(stripped),
        )
    try:
        stripped.encode()
    except UnicodeEncodeError:
        raise BadName(
            ascii(name),
            QT_TRANSLATE_NOOP("messages", "{file} is no name: it holds half a character."),
        ) from None
    return stripped


def encode(preset: Preset) -> bytes:
    """The file of ``preset``: JSON in UTF-8, indented, every field stated."""
    return dump(preset.name, _envelope(preset), MAX_BYTES)


def encode_many(presets: Sequence[Preset]) -> bytes:
    """One file of several presets; :func:`decode_many` reads it."""
    return dump(
        FORMAT_MANY,
        {"format": FORMAT_MANY, "schema": SCHEMA, "app": __version__, "presets": [*map(_envelope, presets)]},
        MAX_MANY_BYTES,
    )


def encode_compact(preset: Preset) -> bytes:
    """As :func:`encode`, on one line."""
    return json.dumps(_envelope(preset), ensure_ascii=False, separators=(",", ":")).encode()


def decode(data: bytes, name: str, steps: Sequence[Step] = STEPS) -> Decoded:
    """The preset in the file ``data``; ``name`` is the file's, for faults and where it states no name.

    Raises:
        NewerSchema: a newer memgui wrote it.
        FileFault: it is no preset; the text says what is wrong, where, what is allowed.
    """
    require_limit(name, len(data), MAX_BYTES)
    envelope = parse_object(data, name, MAX_VALUES)
    if envelope.get("format") == FORMAT_MANY:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} holds several presets: File, Import presets takes it; a file with one can be opened.",
            ),
        )
    return _decode(envelope, name, steps)


def decode_many(data: bytes, name: str, steps: Sequence[Step] = STEPS) -> tuple[Decoded | FileFault, ...]:
    """The presets in the file ``data``, one or several; a fault in the place of each that is none."""
    require_limit(name, len(data), MAX_MANY_BYTES)
    envelope = parse_object(data, name, MAX_MANY_VALUES)
    if envelope.get("format") != FORMAT_MANY:
        require_limit(name, len(data), MAX_BYTES)
        return (_decode(envelope, name, steps),)
    _schema(envelope, name, len(steps) + 1)
    presets = envelope.get("presets")
    if not isinstance(presets, list) or len(presets) > MAX_MANY:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages", "{file}: {where} is {value}; a list of at most {limit} values is allowed."
            ),
            "presets",
            value=shown(presets),
            limit=MAX_MANY,
        )
    return tuple(_decode_part(part, f"{name}[{index}]", steps) for index, part in enumerate(presets))


def _decode_part(part: object, name: str, steps: Sequence[Step]) -> Decoded | FileFault:
    try:
        if not isinstance(part, dict):
            _refuse_format(name, part)
        return _decode(part, name, steps)
    except FileFault as fault:
        return fault


def _decode(envelope: Plain, name: str, steps: Sequence[Step]) -> Decoded:
    if "format" not in envelope:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP("messages", "{file} is no preset of memgui: it states no {where}."),
            "format",
        )
    if envelope["format"] != FORMAT:
        _refuse_format(name, envelope["format"])
    schema = _schema(envelope, name, len(steps) + 1)
    envelope = migrate(envelope, schema, steps)
    kind = envelope.get("kind", "scenario" if "scenario" in envelope else "model")
    if kind not in ("scenario", "model"):
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; allowed: scenario, model."),
            "kind",
            value=shown(kind),
        )
    reader = Reader(name)
    content, unknown = (reader.scenario if kind == "scenario" else reader.model)(envelope.get(kind))
    kept: Plain = {kind: unknown} if unknown else {}
    measured = envelope.get("measured", {})
    for key in envelope:
        if key not in (*_KNOWN, kind) and (key != "measured" or not isinstance(measured, dict)):
            kept[key] = envelope[key]
            reader.unknown(printable(key))
    preset = Preset(
        name=reader.text(envelope, "name", name.removesuffix(SUFFIX) or name, MAX_NAME, empty=False).strip(),
        content=content,
        notes=reader.text(envelope, "notes", "", MAX_NOTES),
        measured=measured if isinstance(measured, dict) else {},
        report=reader.report(envelope),
        saved=reader.text(envelope, "saved", "", 64),
        app=reader.text(envelope, "app", "", 64),
        unknown=kept,
    )
    return Decoded(preset, reader.issues, schema)


def _schema(envelope: Plain, name: str, newest: int) -> int:
    schema = envelope.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages", "{file}: {where} is {value}; a whole number from 1 to {newest} is allowed."
            ),
            "schema",
            value=shown(schema),
            newest=newest,
        )
    if schema > newest:
        raise NewerSchema(
            name,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} was made by a newer memgui (schema {schema}, this one reads up to {newest}); "
                "it is left as it is.",
            ),
            "schema",
            schema=schema,
            newest=newest,
        )
    return schema


def _refuse_format(name: str, found: object) -> NoReturn:
    raise FileFault(
        name,
        QT_TRANSLATE_NOOP(
            "messages",
            "{file} is no preset of memgui: {where} is {value}; allowed: “memgui.preset”, “memgui.presets”.",
        ),
        "format",
        value=shown(found),
    )


def _envelope(preset: Preset) -> Plain:
    known: Plain = {
        "format": FORMAT,
        "schema": SCHEMA,
        "app": preset.app or __version__,
        "kind": preset.kind,
        "name": preset.name,
        "notes": preset.notes,
        "saved": preset.saved,
        preset.kind: plain(preset.content),
    }
    if preset.report:
        known[REPORT] = plain(preset.report)
    if preset.measured:
        known["measured"] = dict(preset.measured)
    _put_back(known, preset.unknown)
    return known


def plain(value: Any) -> Any:
    """Structs as dicts with every field, tuples as lists: what JSON can hold."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def _put_back(known: Plain, unknown: Mapping[str, Any]) -> None:
    for key, value in unknown.items():
        if key not in known:
            known[key] = value
        elif isinstance(known[key], dict) and isinstance(value, dict):
            _put_back(known[key], value)


def dump(name: str, envelope: Plain, limit: int, indent: int | None = 2) -> bytes:
    """``envelope`` as a JSON file of at most ``limit`` bytes; ``name`` is for faults.

    It is indented for those who read it; without (``None``) it is written five times as fast.
    """
    try:
        data = (json.dumps(envelope, ensure_ascii=False, indent=indent, allow_nan=False) + "\n").encode()
    except UnicodeEncodeError:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP("messages", "{file} cannot be saved: it holds half a character."),
        ) from None
    except ValueError:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP("messages", "{file} cannot be saved: a number in it is not finite."),
        ) from None
    require_limit(name, len(data), limit)
    return data
