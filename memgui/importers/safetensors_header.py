"""Headers of safetensors files: true names, shapes, number formats and bytes, without the data.

The format (huggingface/safetensors, README "Format"): 8 bytes, little endian, state the length of a
JSON object that follows; it maps each tensor's name to its dtype, shape and the stretch it takes in
the data behind the header.  The data has no holes and no overlaps, so a header that disagrees with
the file's size belongs to another file or to half of one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final, NamedTuple, NoReturn

import msgspec

from memgui.files.bounded import (
    BoundedFile,
    FileFault,
    StrPath,
    open_bounded,
    printable,
)
from memgui.files.json_structure import check_structure
from memgui.files.strict_json import parse_object, shown
from memgui.importers.tensors import SAFETENSORS_DTYPES, TensorInfo, product
from memgui.spec.messages import QT_TRANSLATE_NOOP

MAX_HEADER_BYTES: Final = 16 * 2**20
"""Longest header read (bytes); the format itself stops at 100 MB."""
MAX_TENSORS: Final = 65_536
"""Most tensors of one file; real ones have some ten thousand."""
MAX_TEXTS: Final = 65_536
"""Most texts in the metadata of one header; real ones have a handful."""
MAX_VALUES: Final = 1_000_000
"""Most values of one header, some eight a tensor, or of an index, one a tensor."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Entry(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    dtype: str
    shape: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=64)]
    data_offsets: tuple[_Count, _Count]


class _Lenient(msgspec.Struct, gc=False):
    """An entry, or the metadata that stands among them: one decoder for both.

    What is not stated is what no tensor can have.
    """

    dtype: str = ""
    shape: Annotated[tuple[_Count, ...], msgspec.Meta(max_length=64)] = (2**63, 2**63)
    data_offsets: tuple[_Count, _Count] = (1, 0)


class _Metadata(msgspec.Struct):
    texts: dict[str, str] = msgspec.field(default_factory=dict, name="__metadata__")


_HEADER = msgspec.json.Decoder(dict[str, _Lenient])
_METADATA = msgspec.json.Decoder(_Metadata)
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)
_TEXTS = msgspec.json.Decoder(dict[str, str])


class Part(NamedTuple):
    """What one file holds."""

    tensors: list[TensorInfo]
    metadata: dict[str, str]


def read_part(path: StrPath) -> Part:
    """What the one safetensors file at ``path`` holds.

    Raises :class:`FileFault` where the header is not what the format allows or does not belong to
    a file of this size.
    """
    with open_bounded(path) as file:
        length = int.from_bytes(file.read(0, 8), "little")
        if length > file.size - 8:
            raise FileFault(
                file.name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file} states a header of {length} bytes, but only {rest} "
                    "{rest:byte follows|bytes follow}: it is no safetensors file or is cut short.",
                ),
                where="byte 0",
                length=length,
                rest=file.size - 8,
            )
        if length > MAX_HEADER_BYTES:
            raise FileFault(
                file.name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file} states a header of {length} bytes; at most {limit} are allowed."
                ),
                where="byte 0",
                length=length,
                limit=MAX_HEADER_BYTES,
            )
        header = file.read(8, length)
    if not header.startswith(b"{"):
        raise FileFault(
            file.name,
            QT_TRANSLATE_NOOP(
                "messages", "{file} is no safetensors file: its header does not begin with a JSON object."
            ),
            where="byte 8",
        )
    return _parse_header(header, file)


def _parse_header(header: bytes, file: BoundedFile) -> Part:
    _check_counts(header, file.name)
    try:
        entries = _HEADER.decode(header)
        metadata = _METADATA.decode(header).texts
    except (msgspec.MsgspecError, ValueError, RecursionError):
        _look_closely(header, file.name)
        raise FileFault(
            file.name,
            QT_TRANSLATE_NOOP("messages", "{file} has a header that is not valid JSON."),
        ) from None
    texts = [*entries, *metadata, *metadata.values()]
    keys = 4 * len(entries)  # one for the tensor, three within
    if entries.pop("__metadata__", None) is not None:
        keys += len(metadata) - 3
    if b"\\" in header or header.count(b":") != keys + "".join(texts).count(":"):
        _look_closely(header, file.name)  # a key may stand twice, or be unknown
    tensors = []
    for name, entry in entries.items():
        begin, end = entry.data_offsets
        if end - begin != _bytes(entry.dtype, entry.shape):
            _refuse_tensor(header, name, entry, file.name)
        tensors.append(TensorInfo(name, entry.shape, entry.dtype, end - begin))
    ends = [0]
    begins = []
    for begin, end in sorted([entry.data_offsets for entry in entries.values()]):
        begins.append(begin)
        ends.append(end)
    if begins != ends[:-1] or ends[-1] != file.size - 8 - len(header):
        _refuse_layout(entries, len(header), file)
    return Part(tensors, metadata)


@lru_cache(1024)
def _bytes(dtype: str, shape: tuple[int, ...]) -> int | None:
    """What a tensor takes, ``None`` where it cannot be stored so; many tensors share few shapes."""
    packing = SAFETENSORS_DTYPES.get(dtype)
    elements = product(shape)
    if packing is None or elements is None or elements % packing.block:
        return None
    return elements // packing.block * packing.block_bytes


def _check_counts(header: bytes, file_name: str) -> None:
    """Refuse a header for how much there is in it, before anything is made of it."""
    tensors = header.count(b"{")
    if tensors > MAX_TENSORS:
        raise FileFault(
            file_name,
            QT_TRANSLATE_NOOP(
                "messages", "{file} describes more than {limit} tensors, which no file of its kind does."
            ),
            limit=MAX_TENSORS,
        )
    if header.count(b",") > MAX_VALUES or header.count(b":") > 4 * tensors + MAX_TEXTS:
        keys = check_structure(header, file_name, MAX_VALUES)  # what stands in names does not count
        if keys > 4 * tensors + MAX_TEXTS:
            raise FileFault(
                file_name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file} has more than {limit} texts in its metadata, which no model needs."
                ),
                limit=MAX_TEXTS,
            )


def _look_closely(header: bytes, file_name: str) -> None:
    """Refuse a header for what is no JSON, or no tensor, or said twice; say nothing where all is well."""
    parse_object(header, file_name, MAX_VALUES)
    try:
        raw = _RAW.decode(header)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    for name, value in raw.items():
        try:
            (_TEXTS if name == "__metadata__" else _ENTRY).decode(value)
        except (msgspec.MsgspecError, ValueError):
            template = (
                QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; an object of texts is allowed.")
                if name == "__metadata__"
                else QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: tensor {where} is {value}; allowed are a dtype (text), a shape (whole numbers "
                    "from 0) and data_offsets (begin and end).",
                )
            )
            raise FileFault(file_name, template, where=printable(name), value=_excerpt(value)) from None


def _refuse_tensor(header: bytes, name: str, entry: _Lenient, file_name: str) -> NoReturn:
    """Say what is wrong with a tensor whose number format, shape and stretch do not go together."""
    _look_closely(header, file_name)
    if entry.dtype not in SAFETENSORS_DTYPES:
        raise FileFault(
            file_name,
            QT_TRANSLATE_NOOP(
                "messages", "{file}: tensor {where} has the dtype {value}; allowed are {allowed}."
            ),
            where=printable(name),
            value=shown(entry.dtype),
            allowed=", ".join(SAFETENSORS_DTYPES),
        )
    raise FileFault(
        file_name,
        QT_TRANSLATE_NOOP(
            "messages",
            "{file}: tensor {where} of shape {shape} in {dtype} cannot take bytes {begin} to {end}.",
        ),
        where=printable(name),
        shape=shown(entry.shape),
        dtype=entry.dtype,
        begin=entry.data_offsets[0],
        end=entry.data_offsets[1],
    )


def _refuse_layout(entries: dict[str, _Lenient], header_bytes: int, file: BoundedFile) -> NoReturn:
    """The tensors must fill the data behind the header from its start to its end, each byte once."""
    position = 0
    for (begin, end), name in sorted((entry.data_offsets, name) for name, entry in entries.items()):
        if begin != position:
            raise FileFault(
                file.name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: tensor {where} begins at byte {begin} of the data, the one before ends at "
                    "{end}; neither gaps nor overlaps are allowed.",
                ),
                where=printable(name),
                begin=begin,
                end=position,
            )
        position = end
    raise FileFault(
        file.name,
        QT_TRANSLATE_NOOP(
            "messages",
            "{file} describes {described} bytes of tensors, but {rest} {rest:byte follows|bytes follow} its "
            "header: it is cut short or damaged.",
        ),
        described=position,
        rest=file.size - 8 - header_bytes,
    )


def _excerpt(raw: msgspec.Raw) -> str:
    return printable(bytes(raw)[:200].decode("utf-8", "replace"), 60)
