"""Scenario and model from the plain values of a file, field by field.

A field of the wrong type or (where asked) outside its range costs that field only: its default is
taken and an :class:`~memgui.spec.Issue` says so.  Keys nobody knows are handed back, to be written
again.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

import msgspec

from memgui.files.bounded import FileFault, printable
from memgui.files.strict_json import shown
from memgui.presets.reports import report_of
from memgui.spec import (
    NO_REPORT,
    QT_TRANSLATE_NOOP,
    ImportReport,
    Issue,
    Message,
    ModelSpec,
    Scenario,
    one_line,
)
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import Value
from memgui.spec.values import check

Plain = dict[str, Any]
REPORT: Final = "import_report"
"""Where files keep what became of the file that a model was read from."""
_MOST_ISSUES: Final = 50
_T = TypeVar("_T", bound=msgspec.Struct)

_TYPICAL: Final[Plain] = {
    "vocab_size": 128_256,
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 14_336,
}
"""What stands in for a model's dimension that has no default (Llama-3.1-8B's, as at the first start)."""


class Reader:
    """Reads one file's values; collects what it found wrong."""

    def __init__(self, file: str, *, ranges: bool = True) -> None:
        """``file`` is the name for faults; with ``ranges`` a value outside its field's range is wrong too."""
        self._file = file
        self._ranges = ranges
        self._issues: list[Issue] = []
        self._more = 0

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What was wrong or unknown, at most a screenful and a count of the rest."""
        if not self._more:
            return tuple(self._issues)
        message = Message(
            QT_TRANSLATE_NOOP(
                "messages", "{count} more {count:key or value was|keys or values were} wrong or unknown."
            ),
            {"count": self._more},
        )
        return (*self._issues, Issue("warning", "more_issues", (), message))

    def scenario(self, value: object) -> tuple[Scenario, Plain]:
        """The scenario that ``value`` states, and its unknown keys; ``FileFault`` where it has no model."""
        return self._struct(Scenario, self._object("scenario", value), "", required=("model",))

    def model(self, value: object) -> tuple[ModelSpec, Plain]:
        """The model that ``value`` states, and its unknown keys.

        ``FileFault`` where it states neither its width nor its depth.
        """
        return self._model(self._object("model", value))

    def text(self, plain: Plain, key: str, default: str, longest: int, *, empty: bool = True) -> str:
        """The text under ``key`` of an envelope."""
        if key not in plain:
            return default
        value = plain[key]
        if isinstance(value, str) and len(value) <= longest and (empty or value.strip()):
            return value
        self._add(
            "warning",
            "bad_value",
            key,
            QT_TRANSLATE_NOOP(
                "messages",
                "{path} is {value}; a text of at most {longest} characters is allowed. "
                "“{default}” was taken.",
            ),
            value=shown(value),
            longest=longest,
            default=default,
        )
        return default

    def report(self, plain: Plain) -> ImportReport:
        """The report of the file that the model came from; an empty one where it is missing or wrong."""
        try:
            return report_of(plain.get(REPORT, {}))
        except ValueError:  # of msgspec too
            self._add(
                "warning",
                "bad_value",
                REPORT,
                QT_TRANSLATE_NOOP("messages", "{path} is not as memgui writes it and is left out."),
            )
            return NO_REPORT

    def unknown(self, path: str) -> None:
        """Report a key that nobody knows."""
        self._add(
            "note",
            "unknown_key",
            path,
            QT_TRANSLATE_NOOP("messages", "{path} is not known to this version of memgui; it is kept."),
        )

    def _object(self, where: str, value: object) -> Plain:
        if not isinstance(value, dict):
            raise FileFault(
                self._file,
                QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; an object ({{…}}) is allowed."),
                where,
                value=shown(value),
            )
        return value

    def _model(self, plain: Plain) -> tuple[ModelSpec, Plain]:
        if not any(isinstance(plain.get(key), int) for key in ("hidden_size", "num_hidden_layers")):
            raise FileFault(
                self._file,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file} states neither model.hidden_size nor model.num_hidden_layers: "
                    "there is no model in it.",
                ),
                "model",
            )
        return self._struct(ModelSpec, plain, "model.")

    def _struct(
        self, kind: type[_T], plain: Plain, prefix: str, required: tuple[str, ...] = ()
    ) -> tuple[_T, Plain]:
        values: Plain = {}
        kept: Plain = {}
        for field in _fields(kind):
            path = prefix + field.name
            if field.name not in plain and not field.required:
                continue
            part = _struct_type(field.type)
            value = plain.get(field.name)
            if field.name not in plain and part is None:
                values[field.name] = self._instead(path, values, field.default)
                self._add_missing(path, values[field.name])
            elif part is None:
                values[field.name] = self._leaf(path, field, value, values)
            elif isinstance(value, dict) or field.name in required:
                inner = self._object(path, value)
                values[field.name], unknown = (
                    self._model(inner) if part is ModelSpec else self._struct(part, inner, path + ".")
                )
                if unknown:
                    kept[field.name] = unknown
            elif value is None and type(None) in get_args(field.type):
                values[field.name] = None
            else:
                self._add(
                    "warning",
                    "bad_value",
                    path,
                    QT_TRANSLATE_NOOP(
                        "messages", "{path} is {value}; an object is allowed. Its defaults were taken."
                    ),
                    value=shown(value),
                )
        for key in plain:
            if key not in kind.__struct_fields__:
                kept[key] = plain[key]
                self.unknown(prefix + printable(key))
        return kind(**values), kept

    def _leaf(self, path: str, field: msgspec.structs.FieldInfo, value: Any, before: Plain) -> Any:
        try:
            # A third of the fields are plain numbers and texts, which a start need not have looked at twice.
            plain = type(value) is field.type
            converted = value if plain else msgspec.convert(value, field.type, strict=True)
        except msgspec.ValidationError:
            from memgui.spec.types import allowed_type  # where something is wrong, not at each start

            allowed = allowed_type(field.type)
        else:
            row = BY_PATH.get(path)
            issue = check(row, converted) if row is not None and self._ranges else None
            if issue is None:
                return self._plain(path, converted)
            allowed = issue.allowed if issue.allowed is not None else issue.message
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        instead = self._instead(path, before, default)
        self._add_wrong(path, value, allowed, instead)
        return instead

    def _plain(self, path: str, value: Any) -> Any:
        """A text without what would break the lines it stands in, wherever it is shown."""
        if not isinstance(value, str) or value == one_line(value):
            return value
        self._add(
            "warning",
            "bad_value",
            path,
            QT_TRANSLATE_NOOP(
                "messages",
                "{path} is {value}; characters that break a line or turn its direction were written out.",
            ),
            value=shown(value),
        )
        return one_line(value)

    def _instead(self, path: str, before: Plain, default: Any) -> Any:
        """What is taken for a field that cannot be read; ``before`` are the fields read so far."""
        if default is not msgspec.NODEFAULT:
            return default
        name = path.rpartition(".")[2]
        if name == "num_key_value_heads":
            return before["num_attention_heads"]
        if name == "head_dim":
            return max(1, before["hidden_size"] // max(1, before["num_attention_heads"]))
        return _TYPICAL[name]

    def _add_wrong(self, path: str, value: object, allowed: Message, instead: object) -> None:
        self._add(
            "warning",
            "bad_value",
            path,
            QT_TRANSLATE_NOOP("messages", "{path} cannot be {value}; {instead} was taken. {allowed}"),
            value=shown(value),
            allowed=allowed,
            instead=shown(instead),
        )

    def _add_missing(self, path: str, instead: object) -> None:
        self._add(
            "warning",
            "missing_value",
            path,
            QT_TRANSLATE_NOOP("messages", "{path} is not stated; {instead} was taken."),
            instead=shown(instead),
        )

    def _add(self, severity: str, code: str, path: str, template: str, **args: Value) -> None:
        if len(self._issues) >= _MOST_ISSUES:
            self._more += 1
            return
        self._issues.append(Issue(severity, code, (path,), Message(template, {"path": path, **args})))


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


@cache
def _struct_type(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that a field of this type holds, whether or not it may be ``None``."""
    for part in get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None
