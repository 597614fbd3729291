"""Bombs by name, through the command that people meet them with: one line each, soon, in little memory."""

from __future__ import annotations

import json
import os
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from memgui.cli import main
from tests.importers.files import count, entry, framed, gguf, sparse, tensor, text
from tests.planning.test_opening import LLAMA

MAX_SECONDS = 1.0
MAX_GROWTH = 64 * 2**20


def config(**change: object) -> bytes:
    return json.dumps({**LLAMA, **change}).encode()


def header(**tensors: object) -> bytes:
    return framed(json.dumps(tensors).encode())


def u8(begin: int, end: int, shape: list[int]) -> dict[str, object]:
    return {"dtype": "U8", "shape": shape, "data_offsets": [begin, end]}


NESTED = entry("k", 9, struct.pack("<IQ", 9, 1) * 1_000)
BOMBS: dict[str, tuple[str, bytes, int | None]] = {
    "nested lists": ("config.json", b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
    "nested objects": ("config.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, None),
    "nothing but brackets": ("config.json", b"[" * 100_000, None),
    "10,000 digits": ("config.json", b'{"hidden_size":' + b"9" * 10_000 + b"}", None),
    "NaN": ("config.json", b'{"hidden_size":NaN}', None),
    "duplicate keys": ("config.json", b'{"hidden_size":1,"hidden_size":2}', None),
    "half a character": ("config.json", b'{"a":"\\ud800"}', None),
    "nothing": ("config.json", b"", None),
    "zeros": ("config.json", b"\0" * 4096, None),
    "a sparse file of 10 GiB": ("config.json", b"{", 10 * 2**30),
    "200,000 values": ("config.json", b'{"a":[' + b"0," * 200_000 + b"0]}", None),
    "a web page": ("config.json", b"<!DOCTYPE html><html>Access denied</html>", None),
    "negative": ("config.json", config(hidden_size=-1), None),
    "a text for a number": ("config.json", config(hidden_size="4096"), None),
    "null": ("config.json", config(hidden_size=None), None),
    "a list": ("config.json", config(hidden_size=[4096]), None),
    "neither width nor depth": ("config.json", b'{"model_type":"llama","vocab_size":5}', None),
    "a pickle": ("x.pt", b"\x80\x02}q\x00.", None),
    "a zip": ("pytorch_model.bin", b"PK\x03\x04" + bytes(100), None),
    "2^63 of header": ("model.safetensors", struct.pack("<Q", 2**63) + b"{}", None),
    "2^63 - 1 of header": ("model.safetensors", struct.pack("<Q", 2**63 - 1) + b"{}", None),
    "2^24 + 1 of header": ("model.safetensors", struct.pack("<Q", 2**24 + 1) + b"{", 2**40),
    "overlaps": ("model.safetensors", header(a=u8(0, 4, [4]), b=u8(2, 6, [4])), 500),
    "negative shape": ("model.safetensors", header(a=u8(0, 4, [-4])), 100),
    "half a million entries": (
        "model.safetensors",
        framed(b"{" + b",".join(b'"%06x":{}' % i for i in range(500_000)) + b"}"),
        None,
    ),
    "an index out of its folder": ("m.safetensors.index.json", b'{"weight_map":{"a":"/etc/passwd"}}', None),
    "an index of nothing": (
        "m.safetensors.index.json",
        json.dumps({"weight_map": {f"t{i}": f"s{i % 4000}.safetensors" for i in range(50_000)}}).encode(),
        None,
    ),
    "2^40 tensors": ("m.gguf", gguf(tensor_count=2**40), 2**20),
    "2^40 entries": ("m.gguf", gguf(entry_count=2**40), 2**20),
    "a text of 4 GiB": ("m.gguf", gguf([entry("k", 8, count(2**32))]), None),
    "a text of 4 GiB that is there": ("m.gguf", gguf([entry("k", 8, count(2**32))]), 6 * 2**30),
    "2^40 texts": ("m.gguf", gguf([entry("k", 9, struct.pack("<I", 8) + count(2**40))]), 2**40),
    "lists of lists": ("m.gguf", gguf([NESTED]), 2**20),
    "a tensor of 2^64": ("m.gguf", gguf(tensors=[tensor("t", (2, 2**63 - 1), 0, 0)]), 2**20),
    "overlapping tensors": (
        "m.gguf",
        gguf(tensors=[tensor("a", (64,), 0, 0), tensor("b", (64,), 0, 32)]),
        2**20,
    ),
    "a newer preset": ("a.memgui.json", b'{"format":"memgui.preset","schema":99}', None),
    "a preset of nothing": ("a.memgui.json", b'{"format":"memgui.preset","schema":1,"model":{}}', None),
}


def told(capsys: pytest.CaptureFixture[str], path: Path) -> str:
    """The one line that the command says of the file; within a second and 64 MiB."""
    start = time.process_time()
    assert main(["estimate", "--model", str(path)]) == 2
    took = time.process_time() - start
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("memgui: --model ")
    assert said.err.endswith(".\n")
    line = said.err[:-1]
    assert line.isprintable()
    assert took < MAX_SECONDS
    tracemalloc.start()
    try:
        main(["estimate", "--model", str(path)])
        assert tracemalloc.get_traced_memory()[1] < MAX_GROWTH
    finally:
        tracemalloc.stop()
    capsys.readouterr()
    return line


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    file, start, size = BOMBS[name]
    path = sparse(tmp_path / file, start, size)
    assert path.name in told(capsys, path)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
@pytest.mark.parametrize("make", [os.mkfifo, _loop, _to_zeros, Path.mkdir], ids=lambda make: make.__name__)
@pytest.mark.parametrize("whole_folder", [False, True])
def test_what_is_no_file_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, make: Callable[[Path], None], whole_folder: bool
) -> None:
    make(tmp_path / "config.json")
    assert "config.json" in told(capsys, tmp_path if whole_folder else tmp_path / "config.json")


def test_what_is_as_large_as_can_be_is_answered_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    largest = {"hidden_size": 10**6, "num_hidden_layers": 10**5, "intermediate_size": 10**9}
    path.write_bytes(config(**largest, num_attention_heads=32, vocab_size=10**9))
    start = time.process_time()
    assert main(["estimate", "--model", str(path)]) == 0
    assert time.process_time() - start < MAX_SECONDS
    assert "does not fit" in capsys.readouterr().out


def test_text_of_a_stranger_stays_on_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = sparse(tmp_path / "config.json", config(model_type="a\n\x1b[31mb\u202ec", **{"key\nof it": 1}))
    for form in ([], ["--markdown"]):
        assert main(["estimate", "--model", str(path), *form]) == 0
        said = capsys.readouterr().out
        assert all(line.isprintable() for line in said.split("\n"))
        assert "a\\n\\x1b[31mb\\u202ec" in said
        assert "key\\nof it" in said


def test_a_name_of_a_gguf_model_stays_on_its_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf([entry("general.architecture", 8, text("a\nb"))]))
    assert "m.gguf" in told(capsys, path)
