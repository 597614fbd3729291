"""Damage to files: bits, lengths, counts, JSON values; the same damage for the same random numbers."""

import re
import struct
from dataclasses import dataclass, replace
from random import Random

# Where lengths, counts and offsets go wrong: at the ends of their types and beyond any file.
EDGES = (
    *(0, 1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 1_024, 65_535, 65_536, 2**20, 2**24 + 1, 2**31 - 1, 2**31),
    *(2**32 - 1, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 9, 2**64 - 1),
)
JSON_VALUES = (
    *(
        "0",
        "1",
        "-1",
        "-0",
        "4096.0",
        "1e3",
        "1e999",
        "-1e400",
        "NaN",
        "Infinity",
        "-Infinity",
        "null",
        "true",
    ),
    *("false", '""', '"4096"', '"\\ud800"', '"\\u0000"', '"x"', "[]", "{}", "[1]", '["a"]', "[[]]", "[null]"),
    *('{"a":1}', "9223372036854775807", "9223372036854775808", "18446744073709551615", "1" * 10_000),
    *(
        "[" * 100_000,
        '{"a":' * 1_000,
        "[" + "0," * 200_000,
        '"' + "x" * 100_000 + '"',
        '"é\u202e"',
        "tru",
        "",
    ),
)
_TOKEN = re.compile(rb'"[^"\\]{0,200}"|-?\d[\d.eE+-]*|true|false|null|[\[\]{}:,]')


@dataclass(frozen=True)
class File:
    """A file that begins with ``start`` and has ``rest`` more bytes of nothing."""

    start: bytes
    rest: int = 0


def mutate(file: File, others: tuple[File, ...], random: Random, is_json: bool, is_framed: bool) -> File:
    """``file`` with one to six faults; a ``is_framed`` header keeps its length told rightly, mostly."""
    start = file.start
    frame = b""
    if is_framed and random.random() < 0.8:
        frame, start = start[:8], start[8:]
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        if is_json and random.random() < 0.6:
            start = _mutate_json(start, random)
        else:
            start = random.choice(_OPERATIONS)(start, random)
        if random.random() < 0.02:
            other = random.choice(others).start
            start = start[: random.randrange(len(start) + 1)] + other[random.randrange(len(other) + 1) :]
    if frame:
        start = struct.pack("<Q", len(start)) + start
    rest = file.rest
    if random.random() < 0.1:
        rest = max(0, random.choice((rest - 1, rest + 1, rest // 2, 0, rest + random.choice(EDGES[:22]))))
    return replace(file, start=start, rest=min(rest, 2**40))


def _mutate_json(data: bytes, random: Random) -> bytes:
    """One token of ``data`` for a value that does not belong there, or an item twice."""
    if not data:
        return data
    token = _TOKEN.search(data, random.randrange(len(data))) or _TOKEN.search(data)
    if token is None:
        return data
    begin, end = token.span()
    match random.randrange(4):
        case 0:  # the same again: a duplicate key, item or bracket
            stop = min(len(data), end + random.randrange(60))
            return data[:stop] + data[begin:stop] + data[stop:]
        case 1:  # gone
            return data[:begin] + data[end:]
        case 2 if token[0][:1].isdigit():
            return data[:begin] + str(random.choice((-1, 1)) * random.choice(EDGES)).encode() + data[end:]
    return data[:begin] + random.choice(JSON_VALUES).encode() + data[end:]


def _flip(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + bytes(byte ^ 1 << random.randrange(8) for byte in data[at : at + 1]) + data[at + 1 :]


def _byte(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice((b"\0", b"\xff", b"\x7f", b"\x80", random.randbytes(1))) + data[at + 1 :]


def _integer(data: bytes, random: Random) -> bytes:
    """An integer of 4 or 8 bytes at a place where a small one stands: mostly a length, count or type."""
    width = random.choice((4, 8, 8))
    for _ in range(40):
        at = random.randrange(max(1, len(data) - width))
        if not any(data[at + 3 : at + width]) and any(data[at : at + 3]):
            break
    else:
        at = random.randrange(max(1, len(data) - width))
    old = int.from_bytes(data[at : at + width], "little")
    new = random.choice((random.choice(EDGES), old + 1, old - 1, old ^ 1 << random.randrange(8 * width)))
    return data[:at] + (new % (1 << 8 * width)).to_bytes(width, "little") + data[at + width :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _remove(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + data[at + random.choice((1, 4, 8, random.randrange(64))) :]


def _insert(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.randbytes(random.choice((1, 4, 8, random.randrange(64)))) + data[at:]


def _repeat(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    piece = data[at : at + random.randrange(200)]
    return data[:at] + piece * random.choice((2, 2, 3, 100)) + data[at + len(piece) :]


_OPERATIONS = (_flip, _byte, _integer, _integer, _cut, _remove, _insert, _repeat)
