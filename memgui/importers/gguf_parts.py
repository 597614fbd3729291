"""A GGUF model in one file or in several parts (``-00001-of-00005.gguf``, llama.cpp's gguf-split)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from memgui.files.bounded import FileFault, FileMissing, Progress, StrPath, display_name, printable, report
from memgui.files.strict_json import JsonObject
from memgui.importers.gguf_header import GgufPart, read_part
from memgui.importers.tensors import TensorInfo, TensorTable
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message

MAX_PARTS: Final = 1_024
"""Most parts of one model; real ones have some dozen."""

PART_NAME: Final = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


def read_gguf(path: StrPath, progress: Progress | None = None) -> TensorTable:
    """The tensors of the GGUF model that ``path`` is, or is a part of; the other parts lie beside it.

    The metadata is that of the first part, which describes the model; the table's ``missing`` names
    the other parts that are not there.  ``progress`` counts parts.  Raises :class:`FileFault`.
    """
    path = Path(path)
    report(progress, 0, 1)
    part = read_part(path)
    split = JsonObject(part.metadata, display_name(path))
    count = split.integer_or_none("split.count", 1, MAX_PARTS) or 1
    if count == 1:
        report(progress, 1, 1)
        return _table((path,), (part,), (), ())
    number = split.integer("split.no", 0, count - 1)
    name = PART_NAME.fullmatch(path.name)
    if name is None or int(name["count"]) != count or int(name["number"]) != number + 1:
        raise FileFault(
            display_name(path),
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} is part {number} of {count} of a model, but its name does not end in {where}: "
                "the other parts cannot be found.",
            ),
            where=_ending(number, count),
            number=number + 1,
            count=count,
        )
    parts: dict[Path, GgufPart] = {}
    missing = []
    for index in range(count):
        report(progress, index, count)
        sibling = path.with_name(name["stem"] + _ending(index, count))
        try:
            parts[sibling] = part if index == number else _read_sibling(sibling, index, count)
        except FileMissing:
            if index == 0:
                raise
            missing.append(display_name(sibling))
    report(progress, count, count)
    return _table(tuple(parts), tuple(parts.values()), tuple(missing), _notes(split, parts, missing))


def _ending(index: int, count: int) -> str:
    return f"-{index + 1:05}-of-{count:05}.gguf"


def _read_sibling(path: Path, index: int, count: int) -> GgufPart:
    part = read_part(path)
    split = JsonObject(part.metadata, display_name(path))
    split.integer("split.count", count, count)
    split.integer("split.no", index, index)
    return part


def _notes(split: JsonObject, parts: dict[Path, GgufPart], missing: list[str]) -> tuple[Message, ...]:
    if missing:
        template = QT_TRANSLATE_NOOP(
            "messages",
            "{missing} of {count} weight {count:file|files} {missing:is|are} not there (first: {name}); "
            "{missing:its|their} tensors are not counted.",
        )
        count = len(parts) + len(missing)
        return (Message(template, {"missing": len(missing), "count": count, "name": missing[0]}),)
    stated = split.integer_or_none("split.tensors.count")
    found = sum(len(part.tensors) for part in parts.values())
    if stated is None or stated == found:
        return ()
    template = QT_TRANSLATE_NOOP(
        "messages", "{file} states {stated} tensors for all parts; they hold {found}."
    )
    return (Message(template, {"file": split.name, "stated": stated, "found": found}),)


def _table(
    paths: tuple[Path, ...], parts: tuple[GgufPart, ...], missing: tuple[str, ...], notes: tuple[Message, ...]
) -> TensorTable:
    tensors: dict[str, TensorInfo] = {}
    for path, part in zip(paths, parts, strict=True):
        for tensor in part.tensors:
            if tensor.name in tensors:
                raise FileFault(
                    display_name(path),
                    QT_TRANSLATE_NOOP(
                        "messages", "{file} holds the tensor {where}, which another part holds too."
                    ),
                    where=printable(tensor.name),
                )
            tensors[tensor.name] = tensor
    return TensorTable(
        container="gguf",
        sources=tuple(os.fspath(path) for path in paths),
        tensors=tuple(tensors.values()),
        metadata=parts[0].metadata,
        missing=missing,
        notes=notes,
    )
