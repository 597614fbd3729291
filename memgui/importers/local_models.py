"""Models already on this machine: the folders of Hugging Face, Ollama and LM Studio.

They are listed one at a time as someone looks, read only and never followed to the network.  What
cannot be read, or is not there any more, is left out: this list offers, it does not judge.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from memgui.files.bounded import FileFault, display_name, list_folder, printable
from memgui.files.strict_json import JsonObject, load_object
from memgui.importers.model_folder import gguf_models, snapshot

HUGGING_FACE: Final = "Hugging Face"
OLLAMA: Final = "Ollama"
LM_STUDIO: Final = "LM Studio"

MAX_MODELS: Final = 5_000
"""Most models listed of one program."""
_MAX_MANIFEST_BYTES: Final = 2**16
_OLLAMA_MODEL: Final = "application/vnd.ollama.image.model"
_DIGEST: Final = re.compile(r"sha256[:-]([0-9a-f]{64})")


class LocalModel(msgspec.Struct, frozen=True):
    """A model that ``program`` keeps at ``path``: a folder or a GGUF file, as ``detect`` takes it."""

    program: str
    name: str
    path: Path


def local_models(environ: Mapping[str, str] | None = None, home: Path | None = None) -> Iterator[LocalModel]:
    """Every model found, program by program and in order of name; each step reads a few small files.

    ``environ`` and ``home`` are where the programs' folders are looked up: by default the process's.
    """
    environ = os.environ if environ is None else environ
    home = Path(os.path.expanduser("~")) if home is None else home
    for hub in hugging_face_folders(environ, home):
        yield from islice(_hugging_face(hub), MAX_MODELS)
    for store in ollama_folders(environ, home):
        yield from islice(_ollama(store), MAX_MODELS)
    for store in lm_studio_folders(home):
        yield from islice(_lm_studio(store), MAX_MODELS)


def hugging_face_folders(environ: Mapping[str, str], home: Path) -> list[Path]:
    """The hub cache, where huggingface_hub looks for it."""
    cache = _setting(environ, "XDG_CACHE_HOME", home) or home / ".cache"
    base = _setting(environ, "HF_HOME", home) or cache / "huggingface"
    hub = (
        _setting(environ, "HF_HUB_CACHE", home)
        or _setting(environ, "HUGGINGFACE_HUB_CACHE", home)
        or base / "hub"
    )
    return _existing(hub)


def ollama_folders(environ: Mapping[str, str], home: Path) -> list[Path]:
    """Ollama's stores: the one it is told to use, else the person's and the Linux service's."""
    told = _setting(environ, "OLLAMA_MODELS", home)
    return (
        _existing(told)
        if told
        else _existing(home / ".ollama/models", Path("/usr/share/ollama/.ollama/models"))
    )


def lm_studio_folders(home: Path) -> list[Path]:
    """LM Studio's stores, of today and of before 2025."""
    return _existing(home / ".lmstudio/models", home / ".cache/lm-studio/models")


def _setting(environ: Mapping[str, str], name: str, home: Path) -> Path | None:
    value = environ.get(name)
    if not value:
        return None
    return home / value[2:] if value.startswith("~/") else Path(value)


def _existing(*folders: Path) -> list[Path]:
    """Those of ``folders`` that are there, each once: one may be a link to another."""
    found = {os.path.realpath(folder): folder for folder in reversed(folders) if os.path.isdir(folder)}
    return list(reversed(found.values()))


def _entries(folder: Path) -> list[Path]:
    try:
        return list_folder(folder)
    except FileFault:
        return []


def _hugging_face(hub: Path) -> Iterator[LocalModel]:
    for repository in _entries(hub):
        if not repository.name.startswith("models--"):
            continue
        revision = snapshot(repository)
        if revision is not None and _holds_model(_entries(revision)):
            name = repository.name.removeprefix("models--").replace("--", "/")
            yield LocalModel(HUGGING_FACE, printable(name), revision)


def _ollama(store: Path) -> Iterator[LocalModel]:
    """Manifests lie at ``manifests/<registry>/<owner>/<model>/<tag>`` and name a GGUF file in ``blobs``."""
    for registry in _entries(store / "manifests"):
        for owner in _entries(registry):
            for model in _entries(owner):
                for manifest in _entries(model):
                    blob = _ollama_blob(store, manifest)
                    if blob is not None:
                        prefix = "" if owner.name == "library" else f"{owner.name}/"
                        yield LocalModel(OLLAMA, printable(f"{prefix}{model.name}:{manifest.name}"), blob)


def _ollama_blob(store: Path, manifest: Path) -> Path | None:
    try:
        layers = JsonObject(load_object(manifest, _MAX_MANIFEST_BYTES), manifest.name).children("layers")
        for layer in layers:
            if layer.string_or_none("mediaType") == _OLLAMA_MODEL:
                digest = _DIGEST.fullmatch(layer.string("digest"))
                blobs = [store / "blobs" / f"sha256{mark}{digest[1]}" for mark in "-:"] if digest else []
                return next((blob for blob in blobs if os.path.isfile(blob)), None)
    except FileFault:
        pass
    return None


def _lm_studio(store: Path) -> Iterator[LocalModel]:
    """Models lie at ``<publisher>/<repository>``: GGUF files, or a folder as on the Hub (MLX)."""
    for publisher in _entries(store):
        for repository in _entries(publisher):
            entries = _entries(repository)
            name = printable(f"{publisher.name}/{repository.name}")
            models = [path for path in gguf_models(entries) if "mmproj" not in path.name.lower()]
            for path in models:
                yield LocalModel(
                    LM_STUDIO, name if len(models) == 1 else f"{name}/{display_name(path)}", path
                )
            if not models and _holds_model(entries):
                yield LocalModel(LM_STUDIO, name, repository)


def _holds_model(entries: list[Path]) -> bool:
    return any(
        entry.name == "config.json" or entry.name.endswith((".gguf", ".safetensors")) for entry in entries
    )
