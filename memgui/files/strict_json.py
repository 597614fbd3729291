"""JSON of strangers: read whole or refused in one sentence, never half understood.

Beyond the grammar this refuses what readers understand differently or what only an attack would
hold: duplicate keys, NaN, numbers that overflow, integers of thousands of digits, nesting hundreds
deep, more values than any real file has.  Depth, digits and counts are checked on the raw bytes,
before a parser sees them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Final, NoReturn

from memgui.files.bounded import EMPTY, FileFault, StrPath, display_name, printable, read_whole
from memgui.files.json_structure import check_structure, position
from memgui.spec.messages import QT_TRANSLATE_NOOP, Value

MAX_BYTES: Final = 4 * 2**20
"""Largest config.json that is read (bytes); the largest known real ones have some hundred thousand."""
MAX_VALUES: Final = 100_000
"""Most values (numbers, texts, lists, objects) of one config.json."""
MAX_INTEGER: Final = 10**12
"""Largest number a getter gives unless told otherwise; no count of a real model comes near it."""

_NO_JSON: Final = QT_TRANSLATE_NOOP("messages", "{file} is not valid JSON at line {line}, column {column}.")
_BROKEN: Final = {
    "Expecting value": QT_TRANSLATE_NOOP(
        "messages", "{file} is not valid JSON at line {line}, column {column}: a value is needed there."
    ),
    "Expecting property name": QT_TRANSLATE_NOOP(
        "messages",
        "{file} is not valid JSON at line {line}, column {column}: a key in double quotes is needed there.",
    ),
    "Expecting ':'": QT_TRANSLATE_NOOP(
        "messages", "{file} is not valid JSON at line {line}, column {column}: a colon is needed there."
    ),
    "Expecting ','": QT_TRANSLATE_NOOP(
        "messages",
        "{file} is not valid JSON at line {line}, column {column}: a comma or the end of the list or object "
        "is needed there.",
    ),
    "Illegal trailing comma": QT_TRANSLATE_NOOP(
        "messages",
        "{file} is not valid JSON at line {line}, column {column}: no comma is allowed after the last value.",
    ),
    "Extra data": QT_TRANSLATE_NOOP(
        "messages",
        "{file} is not valid JSON at line {line}, column {column}: nothing is allowed after the end of the "
        "object.",
    ),
    "Unterminated string": QT_TRANSLATE_NOOP(
        "messages",
        "{file} is not valid JSON at line {line}, column {column}: the text that begins there never ends.",
    ),
    "Invalid control character": QT_TRANSLATE_NOOP(
        "messages",
        "{file} is not valid JSON at line {line}, column {column}: a line break or control character is "
        "allowed in a text only as an escape.",
    ),
    "Invalid \\": QT_TRANSLATE_NOOP(
        "messages",
        "{file} is not valid JSON at line {line}, column {column}: the backslash there begins no escape "
        "that JSON has.",
    ),
}
"""How the complaints of Python's parser begin, and what is said in their place."""


def load_object(
    path: StrPath, limit_bytes: int = MAX_BYTES, max_values: int = MAX_VALUES, infinity: bool = False
) -> dict[str, object]:
    """The JSON object in the file at ``path``, of at most ``limit_bytes``; see :func:`parse_object`."""
    return parse_object(read_whole(path, limit_bytes), display_name(path), max_values, infinity)


def parse_object(
    data: bytes, name: str, max_values: int = MAX_VALUES, infinity: bool = False
) -> dict[str, object]:
    """The JSON object that ``data`` is, as plain Python values; ``name`` is the file's name for faults.

    ``infinity`` lets the word ``Infinity`` through as a float: not JSON, but what Transformers writes
    into real files (``time_step_limit`` of Mamba-like models).  NaN is refused always.

    Raises :class:`FileFault` with the place and what is allowed.
    """
    if not data.strip():
        raise FileFault(name, EMPTY)
    check_structure(data, name, max_values)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP("messages", "{file} is written in UTF-16 or UTF-32; JSON in UTF-8 is allowed.")
            if data.startswith((b"\xff\xfe", b"\xfe\xff"))
            else QT_TRANSLATE_NOOP(
                "messages", "{file}: byte {offset} is not UTF-8 text; only JSON in UTF-8 is allowed."
            ),
            where=f"byte {error.start}",
            offset=error.start,
        ) from None

    def constant(word: str) -> float:
        if infinity and word != "NaN":
            return float(word.replace("Infinity", "inf"))
        _refuse_number(name, data, word)

    def number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            _refuse_number(name, data, digits)
        return value

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        result = dict(pairs)
        if len(result) != len(pairs):
            _refuse_duplicate(name, pairs)
        return result

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=constant, parse_float=number)
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair cannot be encoded
    except json.JSONDecodeError as error:
        raise FileFault(
            name,
            next((said for start, said in _BROKEN.items() if error.msg.startswith(start)), _NO_JSON),
            where=f"{error.lineno}:{error.colno}",
            line=error.lineno,
            column=error.colno,
        ) from None
    except UnicodeEncodeError:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages", "{file} holds half of a \\u surrogate pair; whole characters are allowed."
            ),
        ) from None
    if not isinstance(value, dict):
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages", "{file} holds {value} at its top; a JSON object ({{…}}) is allowed there."
            ),
            value=shown(value),
        )
    return value


def shown(value: object, limit: int = 60) -> str:
    """``value`` as the start of its JSON text, on one line, for the sentence of a fault."""
    text = ""
    for chunk in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
        text += chunk[: limit + 1]
        if len(text) > limit:
            break
    return printable(text, limit)


class WrongType(FileFault):
    """A value of another type than belongs in its place; ``null`` is a fault, but not this one."""


class JsonObject:
    """One object of a parsed file, read by typed getters: the wrong type is refused, never coerced.

    Each getter ``x(key)`` demands the key; ``x_or_none(key)`` answers ``None`` where the key is absent,
    and for ``null`` too, but only with ``null=True`` (``null`` where a number belongs is a fault, save
    where the format's own writers put it).  A bool is no number, ``4096.0`` no integer.

    What was asked for is remembered, so that :meth:`unread` can say what nobody looked at.
    """

    __slots__ = ("_read", "name", "path", "value")

    def __init__(
        self, value: dict[str, object], name: str, path: str = "", read: set[str] | None = None
    ) -> None:
        self.value = value
        self.name = name
        self.path = path
        self._read = set() if read is None else read

    def __contains__(self, key: object) -> bool:
        return key in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def at(self, key: str) -> str:
        """The full path of ``key``: ``text_config.hidden_size``."""
        return f"{self.path}.{printable(key)}" if self.path else printable(key)

    def integer(self, key: str, minimum: int = 0, maximum: int = MAX_INTEGER) -> int:
        """A whole number from ``minimum`` to ``maximum``."""
        return self._integer(self.at(key), self._demand(key), minimum, maximum)

    def integer_or_none(
        self, key: str, minimum: int = 0, maximum: int = MAX_INTEGER, null: bool = False
    ) -> int | None:
        return self.integer(key, minimum, maximum) if self._present(key, null) else None

    def number(self, key: str, minimum: float = -MAX_INTEGER, maximum: float = MAX_INTEGER) -> float:
        """A finite number from ``minimum`` to ``maximum``, written with or without a point."""
        value = self._demand(key)
        right = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(value, int | float) or not right or not minimum <= value <= maximum:  # NaN neither
            self._refuse(
                self.at(key),
                value,
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: {where} is {value}; a number from {low} to {high} is allowed."
                ),
                FileFault if right else WrongType,
                low=minimum,
                high=maximum,
            )
        return float(value)

    def number_or_none(
        self, key: str, minimum: float = -MAX_INTEGER, maximum: float = MAX_INTEGER, null: bool = False
    ) -> float | None:
        return self.number(key, minimum, maximum) if self._present(key, null) else None

    def boolean(self, key: str) -> bool:
        """``true`` or ``false``; 0, 1 and texts are refused."""
        value = self._demand(key)
        if not isinstance(value, bool):
            self._refuse(
                self.at(key),
                value,
                QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; true or false is allowed."),
            )
        return value

    def boolean_or_none(self, key: str, null: bool = False) -> bool | None:
        return self.boolean(key) if self._present(key, null) else None

    def string(self, key: str) -> str:
        """A text."""
        return self._string(self.at(key), self._demand(key))

    def string_or_none(self, key: str, null: bool = False) -> str | None:
        return self.string(key) if self._present(key, null) else None

    def child(self, key: str) -> JsonObject:
        """The object under ``key``; it shares this one's memory of what was read."""
        return self._child(self.at(key), self._demand(key))

    def child_or_none(self, key: str, null: bool = False) -> JsonObject | None:
        return self.child(key) if self._present(key, null) else None

    def array(self, key: str, limit: int = MAX_VALUES) -> list[object]:
        """A list of at most ``limit`` values of any type."""
        value = self._demand(key)
        if not isinstance(value, list) or len(value) > limit:
            self._refuse(
                self.at(key),
                value,
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: {where} is {value}; a list of at most {limit} values is allowed."
                ),
                FileFault if isinstance(value, list) else WrongType,
                limit=limit,
            )
        return value

    def array_or_none(self, key: str, limit: int = MAX_VALUES, null: bool = False) -> list[object] | None:
        return self.array(key, limit) if self._present(key, null) else None

    def integers(self, key: str, minimum: int = 0, maximum: int = MAX_INTEGER) -> tuple[int, ...]:
        """A list of whole numbers, each from ``minimum`` to ``maximum``."""
        return tuple(self._integer(at, value, minimum, maximum) for at, value in self._items(key))

    def strings(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._string(at, value) for at, value in self._items(key))

    def children(self, key: str) -> tuple[JsonObject, ...]:
        """A list of objects."""
        return tuple(self._child(at, value) for at, value in self._items(key))

    def refuse(self, key: str, template: str, **args: Value) -> NoReturn:
        """Raise a fault about ``key``; the template's ``{file}``, ``{where}``, ``{value}`` are filled in."""
        self._refuse(self.at(key), self.value.get(key), template, FileFault, **args)

    def note_read(self, *keys: str) -> None:
        """Count ``keys`` as looked at: known to carry nothing for this program."""
        self._read.update(map(self.at, keys))

    def unread(self) -> tuple[str, ...]:
        """Full paths of the keys nobody asked for, in the file's order, within opened objects too."""
        paths: list[str] = []
        for key, value in self.value.items():
            if self.at(key) not in self._read:
                paths.append(self.at(key))
            elif isinstance(value, dict):
                paths.extend(JsonObject(value, self.name, self.at(key), self._read).unread())
        return tuple(paths)

    def _present(self, key: str, null: bool) -> bool:
        self._read.add(self.at(key))
        return key in self.value and not (null and self.value[key] is None)

    def _demand(self, key: str) -> object:
        self._read.add(self.at(key))
        if key not in self.value:
            raise FileFault(
                self.name,
                QT_TRANSLATE_NOOP("messages", "{file} does not state {where}, which is needed."),
                where=self.at(key),
            )
        return self.value[key]

    def _items(self, key: str) -> Iterator[tuple[str, object]]:
        return ((f"{self.at(key)}[{index}]", value) for index, value in enumerate(self.array(key)))

    def _integer(self, where: str, value: object, minimum: int, maximum: int) -> int:
        right = isinstance(value, int) and not isinstance(value, bool)
        if not isinstance(value, int) or not right or not minimum <= value <= maximum:
            self._refuse(
                where,
                value,
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: {where} is {value}; a whole number from {low} to {high} is allowed."
                ),
                FileFault if right else WrongType,
                low=minimum,
                high=maximum,
            )
        return value

    def _string(self, where: str, value: object) -> str:
        if not isinstance(value, str):
            self._refuse(
                where,
                value,
                QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; a text is allowed."),
            )
        return value

    def _child(self, where: str, value: object) -> JsonObject:
        if not isinstance(value, dict):
            self._refuse(
                where,
                value,
                QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; an object ({{…}}) is allowed."),
            )
        return JsonObject(value, self.name, where, self._read)

    def _refuse(
        self,
        where: str,
        value: object,
        template: str,
        fault: type[FileFault] = WrongType,
        **args: Value,
    ) -> NoReturn:
        if value is None:
            fault = FileFault
        raise fault(self.name, template, where, value=shown(value), **args)


def _refuse_number(name: str, data: bytes, word: str) -> NoReturn:
    line, column = position(data, re.compile(re.escape(word.encode())))
    raise FileFault(
        name,
        QT_TRANSLATE_NOOP(
            "messages",
            "{file}: {value} at line {line}, column {column} is no finite number; only such are allowed.",
        ),
        where=f"{line}:{column}",
        value=printable(word, 60),
        line=line,
        column=column,
    )


def _refuse_duplicate(name: str, pairs: list[tuple[str, object]]) -> NoReturn:
    seen: set[str] = set()
    double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    raise FileFault(
        name,
        QT_TRANSLATE_NOOP("messages", "{file}: the key {where} stands twice in one object; once is allowed."),
        where=shown(double),
    )
