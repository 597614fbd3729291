"""What a path is that a person opened: a config, weights, a preset, or a folder that holds a model.

The content decides, the name only where contents look alike; no more than the first kilobytes of a
file and the names in a folder are read.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from memgui.files.bounded import (
    EMPTY,
    FileFault,
    Progress,
    StrPath,
    display_name,
    list_folder,
    open_bounded,
    read_whole,
)
from memgui.importers.gguf_cursor import MAGIC
from memgui.importers.gguf_parts import PART_NAME, read_gguf
from memgui.importers.safetensors_shards import find_weights, read_files, read_index
from memgui.importers.tensors import TensorTable
from memgui.spec.messages import QT_TRANSLATE_NOOP

_PEEK: Final = 4_096
_PRESET_ENDING: Final = ".memgui.json"
_PRESET_MARK: Final = re.compile(rb'"format"\s*:\s*"memgui')
_REVISION: Final = re.compile(r"[0-9A-Za-z_-][0-9A-Za-z._-]{0,127}")


class Kind(Enum):
    """What a path turned out to be."""

    CONFIG = "config"
    SAFETENSORS = "safetensors"
    SAFETENSORS_INDEX = "safetensors index"
    GGUF = "gguf"
    PRESET = "preset"
    FOLDER = "folder"


class ModelSource(msgspec.Struct, frozen=True, kw_only=True):
    """A path that can be opened, and what lies there.

    ``config`` is the config.json that describes the model: the file itself, or the one beside the
    weights.  ``weights`` are the files that :func:`read_weights` reads, all of ``weights_kind``.
    ``choices`` are the GGUF models of a folder, often the same model in several formats; ``weights``
    has the first of them where the folder has nothing else.
    """

    kind: Kind
    path: Path
    config: Path | None = None
    weights: tuple[Path, ...] = ()
    weights_kind: Kind | None = None
    choices: tuple[Path, ...] = ()


def detect(path: StrPath) -> ModelSource:
    """What ``path`` is.

    Raises :class:`FileFault` where it is nothing that can be opened, with what can be.
    """
    path = Path(path)
    if os.path.isdir(path):
        return _folder(path)
    kind = _file_kind(path)
    if kind is Kind.CONFIG:
        return ModelSource(kind=kind, path=path, config=path)
    if kind is Kind.PRESET:
        return ModelSource(kind=kind, path=path)
    beside = path.with_name("config.json")
    return ModelSource(
        kind=kind,
        path=path,
        config=beside if os.path.isfile(beside) else None,
        weights=(path,),
        weights_kind=kind,
    )


def read_weights(source: ModelSource, progress: Progress | None = None) -> TensorTable | None:
    """The tensors of ``source``; ``None`` where it has no weights, only a description.

    ``progress`` counts files.  Raises :class:`FileFault`.
    """
    match source.weights_kind:
        case Kind.GGUF:
            return read_gguf(source.weights[0], progress)
        case Kind.SAFETENSORS_INDEX:
            return read_index(source.weights[0], progress)
        case Kind.SAFETENSORS:
            return read_files(source.weights, progress)
    return None


def snapshot(repository: Path) -> Path | None:
    """The folder of the current revision of a model in the Hugging Face cache, if it is there.

    ``repository`` is a folder ``models--owner--name`` with ``refs/main`` and ``snapshots/<revision>``.
    """
    try:
        revision = read_whole(repository / "refs" / "main", 256).decode("ascii", "replace").strip()
        if _REVISION.fullmatch(revision) and os.path.isdir(repository / "snapshots" / revision):
            return repository / "snapshots" / revision
    except FileFault:
        pass  # downloaded by revision: there is no branch to follow
    try:
        revisions = [entry for entry in list_folder(repository / "snapshots", 1_000) if os.path.isdir(entry)]
        return max(revisions, key=os.path.getmtime, default=None)
    except (FileFault, OSError):
        return None


def gguf_models(entries: list[Path]) -> tuple[Path, ...]:
    """The GGUF models among the entries of a folder: of parts the first there is, projectors last."""
    models: dict[str, Path] = {}
    for entry in entries:
        if entry.name.lower().endswith(".gguf"):
            part = PART_NAME.fullmatch(entry.name)
            models.setdefault(part["stem"] + part["count"] if part else entry.name, entry)
    return tuple(sorted(models.values(), key=lambda entry: ("mmproj" in entry.name.lower(), entry.name)))


def _folder(path: Path) -> ModelSource:
    entries = list_folder(path)
    names = {entry.name for entry in entries}
    if "snapshots" in names and (revision := snapshot(path)) is not None:
        return _folder_of_model(revision, list_folder(revision))
    return _folder_of_model(path, entries)


def _folder_of_model(path: Path, entries: list[Path]) -> ModelSource:
    config = next((entry for entry in entries if entry.name == "config.json"), None)
    choices = gguf_models(entries)
    if weights := find_weights(entries):
        is_index = weights[0].name.endswith(".index.json")
        weights_kind = Kind.SAFETENSORS_INDEX if is_index else Kind.SAFETENSORS
    else:
        weights = choices[:1]
        weights_kind = Kind.GGUF
    if config is None and not weights:
        raise FileFault(
            display_name(path),
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} is a folder without a model: it needs a config.json, a .safetensors or a .gguf file.",
            ),
        )
    return ModelSource(
        kind=Kind.FOLDER,
        path=path,
        config=config,
        weights=weights,
        weights_kind=weights_kind if weights else None,
        choices=choices,
    )


def _file_kind(path: Path) -> Kind:
    with open_bounded(path) as file:
        size = file.size
        start = file.read(0, min(size, _PEEK))
    name = display_name(path)
    lower = path.name.lower()
    if not size:
        raise FileFault(name, EMPTY)
    if start.startswith(b"version https://git-lfs"):
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} is not the file itself but Git LFS's pointer to it: 'git lfs pull' gets the file.",
            ),
        )
    if start.startswith(MAGIC) or lower.endswith(".gguf"):
        return Kind.GGUF
    if lower.endswith(".safetensors") or (
        start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= size - 8
    ):
        return Kind.SAFETENSORS
    if start.startswith((b"PK\x03\x04", b"\x80\x02")):
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} is a PyTorch checkpoint, which can hold code and is never opened; the model's "
                "config.json, .safetensors or .gguf file can be.",
            ),
        )
    if lower.endswith(".json") or start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        return _json_kind(lower, start)  # what is called JSON and is none, its reader names
    raise FileFault(
        name,
        QT_TRANSLATE_NOOP(
            "messages",
            "{file} is nothing that can be opened; a config.json, a model folder, a .safetensors, .gguf or "
            ".memgui.json file can be.",
        ),
    )


def _json_kind(lower: str, start: bytes) -> Kind:
    if lower.endswith(_PRESET_ENDING) or _PRESET_MARK.search(start):
        return Kind.PRESET
    if lower.endswith(".index.json") or b'"weight_map"' in start:
        return Kind.SAFETENSORS_INDEX
    return Kind.CONFIG
