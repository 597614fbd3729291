import json
import os
from pathlib import Path

import pytest

from memgui.files.bounded import FileFault, FileMissing
from memgui.importers.hf_config import import_config
from memgui.importers.model_folder import Kind, ModelSource, detect, gguf_models, read_weights, snapshot
from tests.importers.files import (
    framed,
    gguf,
    gguf_llama,
    llama,
    sparse,
    tensor,
    write_safetensors,
    write_shards,
)

SMALL = llama(layers=2, hidden=64, inner=128, kv=16, vocabulary=100)


def weights(path: Path) -> int:
    table = read_weights(detect(path))
    assert table is not None
    return table.total_bytes


def refused(path: Path) -> str:
    with pytest.raises(FileFault) as fault:
        detect(path)
    said = str(fault.value)
    assert said.isprintable()
    assert said.startswith(path.name)
    return said


# one file


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("config.json", b"{}", Kind.CONFIG),
        ("anything", b' \n{"hidden_size": 1}', Kind.CONFIG),
        ("notepad.json", b'\xef\xbb\xbf{"hidden_size": 1}', Kind.CONFIG),
        ("model.safetensors.index.json", b"{}", Kind.SAFETENSORS_INDEX),
        ("renamed.json", b'{"metadata": {}, "weight_map": {}}', Kind.SAFETENSORS_INDEX),
        ("mine.memgui.json", b"{}", Kind.PRESET),
        ("Mine.MEMGUI.JSON", b"{}", Kind.PRESET),
        ("renamed.json", b'{"format" : "memgui preset"}', Kind.PRESET),
        ("model.safetensors", framed(b"{}"), Kind.SAFETENSORS),
        ("renamed.bin", framed(b"{}"), Kind.SAFETENSORS),
        ("sha256-ab", gguf(), Kind.GGUF),
    ],
)
def test_a_file_is_what_it_holds(tmp_path: Path, name: str, content: bytes, kind: Kind) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    source = detect(path)
    assert source.kind is kind
    assert source.path == path
    is_config = kind is Kind.CONFIG
    assert source.config == (path if is_config else None)
    assert source.weights == (() if is_config or kind is Kind.PRESET else (path,))


def test_weights_are_described_by_the_config_beside_them(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "model.safetensors", SMALL)
    (tmp_path / "config.json").write_text("{}")
    assert detect(path).config == tmp_path / "config.json"
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").mkdir()
    assert detect(path).config is None


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.json", b"", "is empty: nothing was written into it"),
        ("model.safetensors", b"", "is empty"),
        ("model.gguf", b"", "is empty"),
        ("mine.memgui.json", b"", "is empty"),
        ("a.txt", b"hello", "is nothing that can be opened"),
        (
            "a.bin",
            b"PK\x03\x04" + bytes(100),
            "a PyTorch checkpoint, which can hold code and is never opened",
        ),
        ("a.pt", b"\x80\x02}q" + bytes(100), "a PyTorch checkpoint"),
        ("a.safetensors", b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS's pointer"),
        ("a.gguf", b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS's pointer"),
        ("model", b"ggjt" + bytes(100), "is nothing that can be opened"),
        ("a", b"\x7fELF" + bytes(100), "is nothing that can be opened"),
    ],
)
def test_what_cannot_be_opened_is_said(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert told in refused(path)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[1, 2]", "holds [1, 2] at its top"),
        (b"hello", "line 1, column 1"),
        ('{"hidden_size": 1}'.encode("utf-16"), "UTF-8"),
    ],
)
def test_what_is_called_json_and_is_none_is_told_by_its_reader(
    tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert detect(path).kind is Kind.CONFIG
    with pytest.raises(FileFault) as caught:
        import_config(path)
    assert told in str(caught.value)
    assert "config.json" in str(caught.value)


def test_a_huge_json_file_is_told_by_its_size(tmp_path: Path) -> None:
    path = sparse(tmp_path / "config.json", b" ", 2**31)
    with pytest.raises(FileFault, match="2,147,483,648 bytes"):
        import_config(detect(path).path)


def test_hostile_paths(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        detect(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    assert "pipe" in refused(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    assert "loop of links" in refused(tmp_path / "loop")
    for path in ("a\0b", "\ud800", "x" * 300):
        with pytest.raises(FileFault):
            detect(path)
    huge = sparse(tmp_path / "huge", b" " * 5_000, 2**40)
    assert "nothing that can be opened" in refused(huge)


def test_weights_of_one_file_are_read(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "renamed", SMALL)
    expected = weights(path)
    assert expected == path.stat().st_size - int.from_bytes(path.read_bytes()[:8], "little") - 8
    assert weights(write_shards(tmp_path, SMALL, 3)) == expected
    assert weights(sparse(tmp_path / "blob", *gguf_llama(2, 256, 512, 100))) > 0
    for name in ("config.json", "a.memgui.json"):
        (tmp_path / name).write_text("{}")
        assert read_weights(detect(tmp_path / name)) is None


# folders


def test_a_model_folder_is_opened_as_a_whole(tmp_path: Path) -> None:
    index = write_shards(tmp_path, SMALL, 3)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    assert detect(tmp_path) == ModelSource(
        kind=Kind.FOLDER,
        path=tmp_path,
        config=tmp_path / "config.json",
        weights=(index,),
        weights_kind=Kind.SAFETENSORS_INDEX,
    )
    total = weights(tmp_path)
    index.unlink()
    assert weights(tmp_path) == total
    (tmp_path / "model-00001-of-00003.safetensors").unlink()
    table = read_weights(detect(tmp_path))
    assert table is not None
    assert table.missing == ("model-00001-of-00003.safetensors",)


def test_a_folder_of_a_config_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    source = detect(tmp_path)
    assert (source.kind, source.config, source.weights) == (Kind.FOLDER, tmp_path / "config.json", ())
    assert read_weights(source) is None


def test_a_folder_of_gguf_files_offers_each_model_once(tmp_path: Path) -> None:
    for name in ("m-Q8_0.gguf", "m-Q4_K-00002-of-00002.gguf", "m-Q4_K-00001-of-00002.gguf", "mmproj-a.gguf"):
        header = gguf([], [tensor("x", (1,), 0, 0)])
        sparse(tmp_path / name, header, -(-len(header) // 32) * 32 + 4)
    source = detect(tmp_path)
    assert [path.name for path in source.choices] == [
        "m-Q4_K-00001-of-00002.gguf",
        "m-Q8_0.gguf",
        "mmproj-a.gguf",
    ]
    assert source.weights == source.choices[:1]
    assert weights(tmp_path) == 4
    assert gguf_models([tmp_path / "m-00002-of-00003.gguf"]) == (tmp_path / "m-00002-of-00003.gguf",)


def test_safetensors_go_before_gguf(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "model.safetensors", SMALL)
    (tmp_path / "a.gguf").touch()
    source = detect(tmp_path)
    assert source.weights == (path,)
    assert source.choices == (tmp_path / "a.gguf",)


def test_folders_without_a_model(tmp_path: Path) -> None:
    assert "is a folder without a model: it needs a config.json" in refused(tmp_path)
    (tmp_path / "README.md").touch()
    assert "without a model" in refused(tmp_path)
    (tmp_path / "m-00009-of-00003.safetensors").touch()
    with pytest.raises(FileFault, match="is named as part 9 of 3"):
        detect(tmp_path)


def test_a_folder_of_a_hundred_thousand_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgui.files.bounded.list_folder.__defaults__", (5,))
    for number in range(6):
        (tmp_path / str(number)).touch()
    assert "more than 5 files" in refused(tmp_path)


def repository(folder: Path, *revisions: str, main: str | None = None) -> Path:
    for age, revision in enumerate(revisions):
        place = folder / "snapshots" / revision
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps({"revision": revision}))
        os.utime(place, (1_000 + age, 1_000 + age))
    if main is not None:
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "main").write_text(main)
    return folder


def test_a_repository_of_the_hugging_face_cache_is_its_current_snapshot(tmp_path: Path) -> None:
    folder = repository(tmp_path / "models--a--b", "0" * 40, "1" * 40, main="0" * 40)
    assert detect(folder).config == folder / "snapshots" / ("0" * 40) / "config.json"
    assert detect(folder).path == folder / "snapshots" / ("0" * 40)


@pytest.mark.parametrize("main", [None, "", "../../..", "/etc", ".", "a/b", "gone", "x" * 1_000, "\0"])
def test_a_revision_is_a_name_and_nothing_else(tmp_path: Path, main: str | None) -> None:
    folder = repository(tmp_path / "m", "1" * 40, "0" * 40, main=main)
    assert snapshot(folder) == folder / "snapshots" / ("0" * 40)  # the newest


def test_a_repository_without_snapshots(tmp_path: Path) -> None:
    assert snapshot(tmp_path) is None
    (tmp_path / "snapshots").mkdir()
    assert snapshot(tmp_path) is None
    assert "without a model" in refused(tmp_path)
