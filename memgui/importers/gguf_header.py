"""Headers of GGUF files: metadata and true tensors, without the data.

The format (ggml-org/ggml, docs/gguf.md), little endian: magic, version, number of tensors, number of
metadata entries; the entries (key, type, value); the tensors (name, dimensions with the innermost
first, type, offset); then, aligned, the data.  Lengths and counts have 8 bytes, in version 1 four.

A header carries the tokenizer: hundreds of thousands of texts that nobody here needs.  Long lists
are stepped over and only their type and length are kept, as :class:`Skipped`.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, NoReturn

import msgspec

from memgui.files.bounded import FileFault, StrPath, open_bounded, printable
from memgui.files.strict_json import shown
from memgui.importers.gguf_cursor import Cursor
from memgui.importers.tensors import GGML_TYPES, Packing, TensorInfo, product
from memgui.spec.messages import QT_TRANSLATE_NOOP

MAX_KEPT_TEXT: Final = 2**16
"""Longest text that is kept (bytes); a chat template has some ten thousand."""
MAX_KEPT_ITEMS: Final = 1_024
"""Longest list that is kept: one value for each layer is, a vocabulary is not."""
MAX_KEPT_BYTES: Final = 16 * 2**20
"""Most bytes of keys, texts and lists kept of one header."""

_SCALARS: Final = {
    0: ("uint8", "B"),
    1: ("int8", "b"),
    2: ("uint16", "H"),
    3: ("int16", "h"),
    4: ("uint32", "I"),
    5: ("int32", "i"),
    6: ("float32", "f"),
    7: ("bool", "B"),
    10: ("uint64", "Q"),
    11: ("int64", "q"),
    12: ("float64", "d"),
}
_BOOL: Final = 7
_STRING: Final = 8
_ARRAY: Final = 9
_MAX_NESTING: Final = 4


class Skipped(msgspec.Struct, frozen=True):
    """A metadata value too long to keep: a list of ``length`` values of ``type``, or a text of bytes."""

    type: str
    length: int

    def __str__(self) -> str:
        return f"{self.type}[{self.length}]"


class GgufPart(NamedTuple):
    """What one GGUF file holds; ``metadata`` has numbers, bools, texts, short lists and Skipped."""

    version: int
    metadata: dict[str, object]
    tensors: list[TensorInfo]


def read_part(path: StrPath) -> GgufPart:
    """The header of the one GGUF file at ``path``.

    Raises :class:`FileFault` where it is no GGUF file, is cut short, or states what cannot be.
    """
    with open_bounded(path) as file:
        cursor = Cursor(file)
        tensor_count = cursor.count()
        entry_count = cursor.count()
        cursor.demand(
            entry_count,
            cursor.length_bytes + 5,
            QT_TRANSLATE_NOOP(
                "messages", "{file} states {count} metadata entries; at most {limit} are possible here."
            ),
        )
        cursor.demand(
            tensor_count,
            cursor.length_bytes + 16,
            QT_TRANSLATE_NOOP(
                "messages", "{file} states {count} tensors; at most {limit} are possible here."
            ),
        )
        metadata = _Metadata(cursor).read(entry_count)
        tensors = _read_tensors(cursor, tensor_count, metadata)
    return GgufPart(cursor.version, metadata, tensors)


class _Metadata:
    """Reads the entries, keeps what is short and accounts for it."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._room = MAX_KEPT_BYTES

    def read(self, count: int) -> dict[str, object]:
        entries: dict[str, object] = {}
        for _ in range(count):
            key = self._cursor.name()
            if key in entries:
                self._refuse(
                    key,
                    QT_TRANSLATE_NOOP(
                        "messages", "{file}: the metadata key {where} stands twice; once is allowed."
                    ),
                )
            self._keep(key, len(key))
            entries[key] = self._value(key, self._cursor.integer("I"), 0)
        return entries

    def _value(self, key: str, kind: int, depth: int) -> object:
        if kind == _STRING:
            return self._text(key)
        if kind == _ARRAY:
            return self._array(key, depth)
        return self._numbers(key, kind, 1)[0]

    def _text(self, key: str) -> str | Skipped:
        length = self._cursor.count()
        if length > MAX_KEPT_TEXT:
            self._cursor.skip(length)
            return Skipped("string", length)
        self._keep(key, length)
        return self._cursor.take(length).decode(errors="replace")  # a text for people: shown, never matched

    def _array(self, key: str, depth: int) -> list[object] | Skipped:
        kind = self._cursor.integer("I")
        count = self._cursor.count()
        if kind in _SCALARS:
            name, code = _SCALARS[kind]
            if count <= MAX_KEPT_ITEMS:
                return self._numbers(key, kind, count)
            self._cursor.skip(count * struct.calcsize("<" + code))
            return Skipped(name, count)
        self._cursor.account(count)
        if kind == _STRING and count > MAX_KEPT_ITEMS:
            self._cursor.skip_texts(count)
            return Skipped("string", count)
        if kind == _ARRAY and (depth >= _MAX_NESTING or count > MAX_KEPT_ITEMS):
            self._refuse(
                key,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: the metadata entry {where} is a list of lists, longer or deeper than allowed.",
                ),
            )
        return [self._value(key, kind, depth + 1) for _ in range(count)]

    def _numbers(self, key: str, kind: int, count: int) -> list[object]:
        if kind not in _SCALARS:
            self._refuse(
                key,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: the metadata entry {where} has the type {value}; 0 to 12 are allowed.",
                ),
                value=str(kind),
            )
        self._keep(key, 32 * count)
        layout = f"<{count}{_SCALARS[kind][1]}"
        values: list[object] = list(struct.unpack(layout, self._cursor.take(struct.calcsize(layout))))
        if kind != _BOOL:
            return values
        if not {0, 1}.issuperset(values):
            self._refuse(
                key,
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: the metadata entry {where} is {value}; a bool is 0 or 1."
                ),
                value=shown(values),
            )
        return [value == 1 for value in values]

    def _keep(self, key: str, size: int) -> None:
        self._room -= size + 64
        if self._room < 0:
            self._refuse(
                key,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: its metadata up to {where} takes more than {limit} bytes; none is so long.",
                ),
                limit=MAX_KEPT_BYTES,
            )

    def _refuse(self, key: str, template: str, **args: str | int) -> NoReturn:
        raise FileFault(self._cursor.file.name, template, where=printable(key), **args)


def _read_tensors(cursor: Cursor, count: int, metadata: dict[str, object]) -> list[TensorInfo]:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
        raise FileFault(
            cursor.file.name,
            QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; a power of two is allowed."),
            where="general.alignment",
            value=shown(alignment),
        )
    tensors: dict[str, TensorInfo] = {}
    spans: list[tuple[int, int, str]] = []
    size_code = "I" if cursor.version == 1 else "Q"
    for _ in range(count):
        name = cursor.name()
        if name in tensors:
            _refuse_tensor(
                cursor,
                name,
                QT_TRANSLATE_NOOP("messages", "{file} holds the tensor {where} twice; once is allowed."),
            )
        dimensions = cursor.integer("I")
        if dimensions > 4:
            _refuse_tensor(
                cursor,
                name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: tensor {where} has {count} dimensions; at most 4 are allowed."
                ),
                count=dimensions,
            )
        shape = tuple(cursor.integer(size_code) for _ in range(dimensions))[::-1]
        kind = cursor.integer("I")
        offset = cursor.integer("Q")
        packing = GGML_TYPES.get(kind)
        if packing is None:
            _refuse_tensor(
                cursor,
                name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: tensor {where} has the unknown number format {value}; known are {allowed}.",
                ),
                value=str(kind),
                allowed=", ".join(f"{number} ({known.name})" for number, known in GGML_TYPES.items()),
            )
        size = _bytes(shape, packing)
        if size is None:
            _refuse_tensor(
                cursor,
                name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: tensor {where} of shape {shape} cannot be stored in {format}; rows of whole "
                    "blocks of {block} are allowed.",
                ),
                shape=shown(shape),
                format=packing.name,
                block=packing.block,
            )
        if offset % alignment:
            _refuse_tensor(
                cursor,
                name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: tensor {where} begins at byte {offset} of the data; multiples of {alignment} "
                    "are allowed.",
                ),
                offset=offset,
                alignment=alignment,
            )
        tensors[name] = TensorInfo(name, shape, packing.name, size)
        spans.append((offset, offset + size, name))
    _check_layout(spans, -(-cursor.position // alignment) * alignment, cursor)
    return list(tensors.values())


def _bytes(shape: tuple[int, ...], packing: Packing) -> int | None:
    elements = product(shape)
    if elements is None or (shape[-1] if shape else 1) % packing.block:
        return None
    return elements // packing.block * packing.block_bytes


def _check_layout(spans: list[tuple[int, int, str]], data_start: int, cursor: Cursor) -> None:
    """The tensors must lie within the file and apart from one another."""
    room = cursor.file.size - data_start
    position = 0
    for begin, end, name in sorted(spans):
        if begin < position:
            _refuse_tensor(
                cursor,
                name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: tensor {where} begins at byte {begin} of the data, within one that ends at "
                    "{end}; no overlaps are allowed.",
                ),
                begin=begin,
                end=position,
            )
        if end > room:
            _refuse_tensor(
                cursor,
                name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: tensor {where} ends at byte {end} of the data, but the file has only {room}: "
                    "it is cut short or damaged.",
                ),
                end=end,
                room=max(room, 0),
            )
        position = end


def _refuse_tensor(cursor: Cursor, name: str, template: str, **args: str | int) -> NoReturn:
    raise FileFault(cursor.file.name, template, where=printable(name), **args)
