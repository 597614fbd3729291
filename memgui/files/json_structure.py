"""What the brackets, digits and commas of a JSON text say, counted on its bytes before a parser sees them.

A parser builds what it reads, and some stop at nothing: nesting of a hundred thousand levels, integers of
ten thousand digits, a million empty lists.  None of that is in a real file, and it shows outside the
strings of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import Final, NoReturn

from memgui.files.bounded import FileFault
from memgui.spec.messages import QT_TRANSLATE_NOOP

MAX_DEPTH: Final = 64
"""Deepest nesting of lists and objects."""
MAX_DIGITS: Final = 40
"""Longest run of digits in a number."""

# A stretch outside strings (group 1), then the string that ends it.  Possessive, so nothing is tried twice;
# a string that never ends runs to the end of the data and is left for the parser to refuse.
_RUN: Final = re.compile(rb'([^"]{0,16384}+)(?:"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))?', re.DOTALL)
_PIECE: Final = 2**16
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))
_ZEROS: Final = b"0" * (MAX_DIGITS + 1)
_DIGITS_AS_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def check_structure(data: bytes, name: str, max_values: int) -> int:
    """Refuse ``data`` for its depth, long numbers or number of values, whatever the rest of it is.

    Takes little memory and time proportional to ``len(data)``, and stops at the first excess; the
    answer is the number of colons outside strings, in valid JSON the number of keys in all objects.
    """
    if data.count(b'"') // 4 > max_values:  # a value has two strings at most: its key and itself
        _refuse_values(name, max_values)
    keys = values = depth = 0
    tail = b""
    for outside in _outside_strings(data):
        keys += outside.count(b":")
        values += outside.count(b",") + outside.count(b"[") + outside.count(b"{")
        if values > max_values:
            _refuse_values(name, max_values)
        levels = list(
            accumulate(map(_STEP.__getitem__, outside.translate(None, _NOT_BRACKETS)), initial=depth)
        )
        depth = levels[-1]
        if max(levels) > MAX_DEPTH:
            raise FileFault(
                name,
                QT_TRANSLATE_NOOP("messages", "{file} is nested more than {limit} levels deep."),
                limit=MAX_DEPTH,
            )
        tail += outside.translate(_DIGITS_AS_ZEROS)
        if _ZEROS in tail:
            line, column = position(data, _LONG_NUMBER)
            raise FileFault(
                name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: the number at line {line}, column {column} is longer than {limit} digits.",
                ),
                where=f"{line}:{column}",
                line=line,
                column=column,
                limit=MAX_DIGITS,
            )
        tail = tail[-MAX_DIGITS:]
    return keys


def position(data: bytes, pattern: re.Pattern[bytes]) -> tuple[int, int]:
    """Line and column, from 1, of the first match of ``pattern`` outside strings (1, 1 if there is none)."""
    for run in _RUN.finditer(data):
        if found := pattern.search(data, run.start(1), run.end(1)):
            before = data[: found.start()]
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
            return before.count(b"\n") + 1, column
    return 1, 1


def _outside_strings(data: bytes) -> Iterator[bytes]:
    """What stands outside the strings of ``data``, a piece at a time."""
    if b"\\" in data:
        runs = _RUN.finditer(data)
        while batch := [run[1] for run in islice(runs, 256)]:
            yield b"".join(batch)
        return
    inside = 0  # without escapes every quote begins or ends a string, which is quicker to follow
    for start in range(0, len(data), _PIECE):
        pieces = data[start : start + _PIECE].split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= len(pieces) - 1 & 1


def _refuse_values(name: str, limit: int) -> NoReturn:
    raise FileFault(
        name,
        QT_TRANSLATE_NOOP(
            "messages", "{file} holds more than {limit} values, which no file of its kind does."
        ),
        limit=limit,
    )
