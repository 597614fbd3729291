"""The weights of a safetensors model in several files: by its index, by its shards, by its folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from memgui.files.bounded import (
    FileFault,
    FileMissing,
    Progress,
    StrPath,
    display_name,
    printable,
    read_whole,
    report,
)
from memgui.files.json_structure import check_structure
from memgui.files.strict_json import JsonObject, parse_object
from memgui.importers.safetensors_header import MAX_VALUES, Part, read_part
from memgui.importers.tensors import TensorInfo, TensorTable
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message

MAX_INDEX_BYTES: Final = 2**27
"""Longest index read: the 750,000 expert tensors of Kimi-K3 take some 90 MB of names."""
MAX_SHARDS: Final = 4_096

_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors")


def read_index(path: StrPath, progress: Progress | None = None) -> TensorTable:
    """The tensors of all shards that an ``*.index.json`` names; the shards lie beside it.

    Shards that are not there are named in the table's ``missing``; where index and shards disagree,
    a note says so.  ``progress`` counts shards.  Raises :class:`FileFault`, also where no shard is
    there at all.
    """
    name = display_name(path)
    index = JsonObject(_parse_index(read_whole(path, MAX_INDEX_BYTES), name), name)
    weight_map = index.child("weight_map")
    placed = _shards(weight_map)
    if not 1 <= len(placed) <= MAX_SHARDS:
        index.refuse(
            "weight_map",
            QT_TRANSLATE_NOOP(
                "messages", "{file}: {where} names {count} files; from 1 to {limit} are allowed."
            ),
            count=len(placed),
            limit=MAX_SHARDS,
        )
    folder = Path(path).parent
    table = read_files([folder / shard for shard in sorted(placed)], progress)
    return msgspec.structs.replace(table, notes=table.notes + _compare(index, table))


class _Index(msgspec.Struct):
    """An index of the usual kind: nothing in it but these, flat."""

    weight_map: dict[str, str]
    metadata: dict[str, str | int | float | bool | None] | None = None


_INDEX = msgspec.json.Decoder(_Index)


def _parse_index(data: bytes, name: str) -> dict[str, object]:
    """The object that an index is; one of the usual kind needs no more than a third of the time."""
    keys = check_structure(data, name, MAX_VALUES)
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        index = _INDEX.decode(data)
        metadata = {} if index.metadata is None else {"metadata": index.metadata}
        flat = len(index.weight_map) + len(index.metadata or ())
        if keys == 1 + len(metadata) + flat:  # nothing else is in it, and nothing twice
            return {"weight_map": index.weight_map, **metadata}
    return parse_object(data, name, MAX_VALUES)


def _shards(weight_map: JsonObject) -> set[str]:
    """The files that an index names, each of which must lie beside it."""
    stated = weight_map.value
    texts = {shard for shard in stated.values() if isinstance(shard, str)}
    beside = {shard for shard in texts if _is_plain_name(shard)}
    wrong = (key for key, shard in stated.items() if not isinstance(shard, str) or shard not in beside)
    for key in wrong:
        weight_map.refuse(
            key,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file}: {where} lies in {value}; only a .safetensors file beside the index is allowed.",
            ),
        )
    return beside


def read_files(paths: Iterable[Path], progress: Progress | None = None) -> TensorTable:
    """The tensors of the file or files of one model, which must not hold the same tensor twice.

    Of several files some may be missing: the table's ``missing`` names them.  ``progress`` counts
    files.  Raises :class:`FileFault`.
    """
    paths = list(paths)
    tensors: list[TensorInfo] = []
    metadata: dict[str, object] = {}
    missing: list[str] = []
    sources: list[str] = []
    names: set[str] = set()
    for done, path in enumerate(paths):
        report(progress, done, len(paths))
        try:
            part = read_part(path)
        except FileMissing:
            if len(paths) == 1:
                raise
            missing.append(display_name(path))
            continue
        before = len(names)
        names.update([tensor.name for tensor in part.tensors])
        if len(names) != before + len(part.tensors):
            _refuse_twice(path, part, sources)
        tensors += part.tensors
        metadata.update(part.metadata)
        sources.append(os.fspath(path))
    report(progress, len(paths), len(paths))
    if not sources:
        raise FileFault(
            display_name(paths[0].parent),
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} has none of the {count} weight files of the model (first: {where}).",
            ),
            where=missing[0],
            count=len(paths),
        )
    return TensorTable(
        container="safetensors",
        sources=tuple(sources),
        tensors=tuple(tensors),
        metadata=metadata,
        missing=tuple(missing),
        notes=_missing_note(missing, len(paths)),
    )


def _refuse_twice(path: Path, part: Part, before: Iterable[str]) -> NoReturn:
    """Say which tensor of ``part`` another of the files ``before`` holds too."""
    own = {tensor.name for tensor in part.tensors}
    for other in before:
        for name in sorted(own & {tensor.name for tensor in read_part(other).tensors}):
            raise FileFault(
                display_name(path),
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file} holds the tensor {where}, which {other} holds too; only once is allowed.",
                ),
                where=printable(name),
                other=display_name(other),
            )
    raise FileFault(
        display_name(path),
        QT_TRANSLATE_NOOP("messages", "{file} was changed while the files of its model were read."),
    )


def find_weights(entries: Iterable[Path]) -> tuple[Path, ...]:
    """The weights that Transformers would load of a folder: an index alone, else the files of one model.

    Shards that the names of the others promise (``-00001-of-00005``) are listed whether they are
    there or not.  Empty where the folder has no safetensors files; raises :class:`FileFault` for
    a number of parts that cannot be.
    """
    names = {entry.name: entry for entry in entries}
    if "model.safetensors" in names:
        return (names["model.safetensors"],)
    for ending in (".safetensors.index.json", ".safetensors"):
        found = [name for name in names if name.endswith(ending)]
        if found:
            break
    else:
        return ()
    chosen = names[min(found, key=lambda name: (not name.startswith("model"), name))]
    shard = _SHARD.fullmatch(chosen.name)
    if shard is None:
        return (chosen,)
    count = int(shard["count"])
    if not 1 <= count <= MAX_SHARDS or not 1 <= int(shard["number"]) <= count:
        raise FileFault(
            display_name(chosen),
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} is named as part {number} of {count}; from 1 to {limit} parts are allowed.",
            ),
            number=int(shard["number"]),
            count=count,
            limit=MAX_SHARDS,
        )
    stem = shard["stem"]
    return tuple(
        chosen.with_name(f"{stem}-{number:05}-of-{count:05}.safetensors") for number in range(1, count + 1)
    )


def _is_plain_name(shard: str) -> bool:
    return (
        shard.endswith(".safetensors")
        and len(shard) <= 255
        and not any(mark in shard for mark in ("/", "\\", ":", "\0"))
    )


def _missing_note(missing: list[str], count: int) -> tuple[Message, ...]:
    if not missing:
        return ()
    template = QT_TRANSLATE_NOOP(
        "messages",
        "{missing} of {count} weight files are not there (first: {name}); their tensors are not counted.",
    )
    return (Message(template, {"missing": len(missing), "count": count, "name": missing[0]}),)


def _compare(index: JsonObject, table: TensorTable) -> tuple[Message, ...]:
    """Notes on what the index says and the shards do not, or the other way round."""
    notes = []
    weight_map = index.child("weight_map").value
    found = {tensor.name for tensor in table.tensors}
    absent = set(table.missing)
    unfound = weight_map.keys() - found
    lacking = sorted(name for name in unfound if weight_map[name] not in absent)
    if lacking:
        template = QT_TRANSLATE_NOOP(
            "messages", "{file} lists {count} {count:tensor|tensors} that no shard holds (first: {where})."
        )
        notes.append(_note(index.name, template, lacking))
    unlisted = len(found) + len(unfound) - len(weight_map)
    if unlisted:
        template = QT_TRANSLATE_NOOP(
            "messages",
            "The shards hold {count} {count:tensor|tensors} that {file} does not list (first: {where}); "
            "{count:it is|they are} counted.",
        )
        notes.append(_note(index.name, template, sorted(found - weight_map.keys())))
    metadata = index.child_or_none("metadata", null=True)
    stated = metadata.number_or_none("total_size", 0, 2**63) if metadata is not None else None
    if stated is not None and not table.missing and int(stated) != table.total_bytes:
        template = QT_TRANSLATE_NOOP(
            "messages", "{file} states a total size of {stated} bytes; the tensors have {found} bytes."
        )
        notes.append(
            Message(template, {"file": index.name, "stated": int(stated), "found": table.total_bytes})
        )
    return tuple(notes)


def _note(file: str, template: str, names: list[str]) -> Message:
    return Message(template, {"file": file, "count": len(names), "where": printable(names[0])})
