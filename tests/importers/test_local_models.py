import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from memgui.importers import local_models as module
from memgui.importers.local_models import HUGGING_FACE, LM_STUDIO, OLLAMA, LocalModel, local_models
from memgui.importers.model_folder import Kind, detect
from tests.importers.files import gguf
from tests.importers.test_model_folder import repository

DIGEST = "sha256:" + "ab" * 32


def listed(home: Path, environ: Mapping[str, str] | None = None) -> list[LocalModel]:
    return [
        model for model in local_models(environ or {}, home) if model.path.is_relative_to(home)
    ]  # Ollama's service may be on the machine under test


def manifest(store: Path, name: str, content: object, blob: str | None = "sha256-" + "ab" * 32) -> None:
    path = store / "manifests" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    (store / "blobs").mkdir(exist_ok=True)
    if blob is not None:
        (store / "blobs" / blob).write_bytes(gguf())


def layers(digest: object = DIGEST) -> dict[str, object]:
    return {
        "schemaVersion": 2,
        "layers": [
            {"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:" + "00" * 32, "size": 1},
            {"mediaType": "application/vnd.ollama.image.model", "digest": digest, "size": 1},
        ],
    }


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert listed(tmp_path) == []
    assert listed(tmp_path / "no home") == []


def test_all_programs_are_listed_lazily_and_each_model_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = tmp_path / ".cache/huggingface/hub"
    repository(hub / "models--meta--llama", "0" * 40, main="0" * 40)
    repository(hub / "models--gpt2", "1" * 40)
    repository(hub / "datasets--a--b", "1" * 40)
    (hub / "models--empty--one").mkdir()
    (hub / "version.txt").touch()
    manifest(tmp_path / ".ollama/models", "registry.ollama.ai/library/llama3/8b", layers())
    manifest(tmp_path / ".ollama/models", "hf.co/someone/model/Q4_K_M", layers())
    studio = tmp_path / ".lmstudio/models"
    for name in (
        "one/only/m.gguf",
        "one/two/a.gguf",
        "one/two/b.gguf",
        "one/two/mmproj.gguf",
        "one/mlx/config.json",
    ):
        (studio / name).parent.mkdir(parents=True, exist_ok=True)
        (studio / name).write_bytes(gguf() if name.endswith(".gguf") else b"{}")
    old = tmp_path / ".cache/lm-studio/models"
    old.parent.mkdir()
    old.symlink_to(studio)
    found = listed(tmp_path)
    blob = tmp_path / ".ollama/models/blobs" / ("sha256-" + "ab" * 32)
    assert found == [
        LocalModel(HUGGING_FACE, "gpt2", hub / "models--gpt2/snapshots" / ("1" * 40)),
        LocalModel(HUGGING_FACE, "meta/llama", hub / "models--meta--llama/snapshots" / ("0" * 40)),
        LocalModel(OLLAMA, "someone/model:Q4_K_M", blob),
        LocalModel(OLLAMA, "llama3:8b", blob),
        LocalModel(LM_STUDIO, "one/mlx", studio / "one/mlx"),
        LocalModel(LM_STUDIO, "one/only", studio / "one/only/m.gguf"),
        LocalModel(LM_STUDIO, "one/two/a.gguf", studio / "one/two/a.gguf"),
        LocalModel(LM_STUDIO, "one/two/b.gguf", studio / "one/two/b.gguf"),
    ]
    assert {detect(model.path).kind for model in found} == {Kind.FOLDER, Kind.GGUF}
    monkeypatch.setattr(module, "_ollama", None)  # nothing is looked at before it is asked for
    lazy = local_models({}, tmp_path)
    assert [next(lazy).name, next(lazy).name] == ["gpt2", "meta/llama"]


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("HF_HUB_CACHE", "here", "here"),
        ("HUGGINGFACE_HUB_CACHE", "here", "here"),
        ("HF_HOME", "here", "here/hub"),
        ("XDG_CACHE_HOME", "here", "here/huggingface/hub"),
    ],
)
def test_the_hub_is_where_huggingface_hub_is_told(tmp_path: Path, name: str, value: str, place: str) -> None:
    repository(tmp_path / place / "models--a--b", "0" * 40)
    assert [model.name for model in listed(tmp_path, {name: os.fspath(tmp_path / value)})] == ["a/b"]
    assert [model.name for model in listed(tmp_path, {name: f"~/{value}"})] == ["a/b"]
    assert listed(tmp_path, {name: ""}) == []


def test_ollama_is_where_it_is_told(tmp_path: Path) -> None:
    manifest(tmp_path / "here", "r/library/m/t", layers())
    manifest(tmp_path / ".ollama/models", "r/library/elsewhere/t", layers())
    assert [model.name for model in listed(tmp_path, {"OLLAMA_MODELS": os.fspath(tmp_path / "here")})] == [
        "m:t"
    ]


def test_older_ollama_blobs(tmp_path: Path) -> None:
    manifest(tmp_path / ".ollama/models", "r/library/m/t", layers(), DIGEST)
    assert [model.path.name for model in listed(tmp_path)] == [DIGEST]


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{", "[" * 100_000, {}, {"layers": {}}, {"layers": [1]}, {"layers": []}, layers(1),
        layers(None), layers("sha256:../../../../etc/passwd"), layers("sha256:" + "AB" * 32),
        layers("sha256:" + "ac" * 32),
        "x" * 100_000,
    ],
)  # fmt: skip
def test_manifests_that_cannot_be_are_left_out(tmp_path: Path, content: object) -> None:
    manifest(tmp_path / ".ollama/models", "r/library/a/broken", content)
    manifest(tmp_path / ".ollama/models", "r/library/b/whole", layers())
    assert [model.name for model in listed(tmp_path)] == ["b:whole"]


def test_hostile_things_in_the_folders_are_left_out(tmp_path: Path) -> None:
    hub = tmp_path / ".cache/huggingface/hub"
    repository(hub / "models--a--b", "0" * 40)
    (hub / "models--loop").symlink_to("models--loop")
    (hub / "models--refs" / "refs").mkdir(parents=True)
    os.mkfifo(hub / "models--refs" / "refs" / "main")
    os.mkfifo(hub / "models--pipe")
    store = tmp_path / ".ollama/models"
    manifest(store, "r/library/m/t", layers())
    os.mkfifo(store / "manifests/r/library/m/pipe")
    (store / "manifests/r/library/m/folder").mkdir()
    (store / "manifests/loop").symlink_to("loop")
    (tmp_path / ".lmstudio/models").mkdir(parents=True)
    (tmp_path / ".lmstudio/models/self").symlink_to(".")
    assert [model.name for model in listed(tmp_path)] == ["a/b", "m:t"]


def test_no_more_than_the_most_models_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_MODELS", 3)
    for number in range(5):
        repository(tmp_path / ".cache/huggingface/hub" / f"models--a--{number}", "0" * 40)
    assert [model.name for model in listed(tmp_path)] == ["a/0", "a/1", "a/2"]


def test_the_process_s_own_home_is_looked_at_by_default(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", os.fspath(home))
    repository(home / ".cache/huggingface/hub/models--a--b", "0" * 40)
    assert next(local_models()).name == "a/b"
