import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

from memgui.files.bounded import Cancelled, FileFault, FileMissing
from memgui.importers.safetensors_header import MAX_HEADER_BYTES
from memgui.importers.safetensors_shards import find_weights, read_files, read_index
from memgui.importers.tensors import SAFETENSORS_DTYPES, TensorTable
from tests.importers.files import (
    framed,
    llama,
    safetensors_header,
    sentence,
    sparse,
    write_safetensors,
    write_shards,
)


def read(path: Path) -> TensorTable:
    return read_files([path])


def refused(tmp_path: Path, content: bytes, size: int | None = None) -> str:
    path = sparse(tmp_path / "m.safetensors", content, size)
    said = sentence(lambda: read(path))
    assert said.startswith("m.safetensors")
    return said


def header(**tensors: object) -> bytes:
    return framed(json.dumps(tensors).encode())


def one(dtype: object = "U8", shape: object = (4,), data_offsets: object = (0, 4), **more: object) -> bytes:
    return header(a={"dtype": dtype, "shape": shape, "data_offsets": data_offsets, **more})


# as the safetensors package writes it


def package_reads(path: Path) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """Dtype, shape and bytes of each tensor, as the safetensors package finds them."""
    entries = safetensors.deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    return {name: (entry["dtype"], tuple(entry["shape"]), len(entry["data"])) for name, entry in entries}


def test_what_the_package_writes_is_read_as_it_was_meant(tmp_path: Path) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "a.weight": np.zeros((3, 5), np.float32),
        "b": np.zeros((), np.int64),
        "leer": np.zeros((0, 7), np.float16),
        "ü" * 40: np.ones((2, 1, 1, 3), np.uint8),
        "flag": np.ones(9, np.bool_),
    }
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(arrays, path, {"format": "np", "weiß": "\n"})
    table = read(path)
    assert {tensor.name: tensor.shape for tensor in table.tensors} == {
        name: array.shape for name, array in arrays.items()
    }
    assert {tensor.name: tensor.bytes for tensor in table.tensors} == {
        name: array.nbytes for name, array in arrays.items()
    }
    assert table.total_bytes == sum(array.nbytes for array in arrays.values())
    assert table.elements == sum(array.size for array in arrays.values())
    assert table.bytes_by_format == {"F32": 60, "BOOL": 9, "I64": 8, "U8": 6, "F16": 0}
    assert table.metadata == {"format": "np", "weiß": "\n"}
    assert table.container == "safetensors"
    assert table.sources == (os.fspath(path),)
    assert table.missing == ()
    assert table.notes == ()


@pytest.mark.parametrize("dtype", SAFETENSORS_DTYPES)
def test_every_dtype_takes_what_the_package_takes(tmp_path: Path, dtype: str) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {"x": (dtype, (8, 3))}, {})
    assert package_reads(path) == {"x": (dtype, (8, 3), read(path).total_bytes)}


TENSORS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
        lambda name: name != "__metadata__"
    ),
    st.tuples(
        st.sampled_from(list(SAFETENSORS_DTYPES)),
        st.lists(st.integers(0, 6).map(lambda n: 4 * n), max_size=3),
    ),
    max_size=6,
)


@given(TENSORS, st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
def test_any_header_agrees_with_the_package(
    make_path: Callable[[], Path], tensors: dict[str, tuple[str, list[int]]], metadata: dict[str, str] | None
) -> None:
    tensors = {name: (dtype, shape or [4]) for name, (dtype, shape) in tensors.items()}
    path = write_safetensors(make_path(), tensors, metadata)
    table = read(path)
    assert {
        tensor.name: (tensor.format, tensor.shape, tensor.bytes) for tensor in table.tensors
    } == package_reads(path)
    assert table.metadata == (metadata or {})


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_are_a_table_or_a_sentence(make_path: Callable[[], Path], junk: bytes, size: int) -> None:
    for content in (junk, framed(junk), framed(b'{"a":' + junk)):
        path = sparse(make_path(), content, max(size, len(content)))
        try:
            table = read(path)
        except FileFault as fault:
            said = str(fault)
        else:
            said = "table"
            assert table.total_bytes <= path.stat().st_size
        assert said.isprintable()


# what cannot be


def test_a_file_that_is_missing_empty_or_short(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        read(tmp_path / "m.safetensors")
    for length in range(8):
        assert "promises 8 bytes at byte 0" in refused(tmp_path, b"\x05" * length)
    assert "states a header of 2 bytes, but only 1 byte follows" in refused(tmp_path, framed(b"{}")[:-1])


@pytest.mark.parametrize("length", [2**63, 2**63 - 1, 2**64 - 1, 2**63 - 8, 2**62, 2**40, 3])
def test_a_header_length_beyond_the_file(tmp_path: Path, length: int) -> None:
    said = refused(tmp_path, struct.pack("<Q", length) + b"{}")
    assert f"states a header of {length:,} bytes, but only 2 bytes follow" in said


def test_a_header_too_long_to_be_read(tmp_path: Path) -> None:
    length = MAX_HEADER_BYTES + 1
    said = refused(tmp_path, struct.pack("<Q", length) + b"{}", 2**40)
    assert f"a header of {length:,} bytes; at most {MAX_HEADER_BYTES:,}" in said


@pytest.mark.parametrize("filler", [b"[", b"{}", b'"', b'"a":1,', b'{"":', b" ", b"1", b'{"a":{},"'])
def test_a_header_of_the_longest_length_is_refused_fast(tmp_path: Path, filler: bytes) -> None:
    refused(tmp_path, framed(b"{" + filler * (MAX_HEADER_BYTES // len(filler) - 1)))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'"%06x":{}', "describes more than 65,536 tensors"),
        (b'"%06x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}', "describes more than 65,536 tensors"),
        (b'"%06x":""', "has more than 65,536 texts in its metadata"),
    ],
)
def test_a_header_of_many_small_things_takes_no_room(tmp_path: Path, content: bytes, told: str) -> None:
    many = b",".join(content % number for number in range(200_000))
    header = b'{"__metadata__":{%s}}' % many if content.endswith(b'""') else b"{%s}" % many
    assert told in refused(tmp_path, framed(header))


@pytest.mark.parametrize("name", ["a:b", "a:b:c{", 'q"', "back\\slash", "é\n"])
def test_a_name_may_hold_what_has_a_meaning_outside(tmp_path: Path, name: str) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {name: ("U8", (4,))}, {"k:": "v:{,"})
    table = read(path)
    assert ([tensor.name for tensor in table.tensors], table.metadata) == ([name], {"k:": "v:{,"})
    text = b'{"\\u003a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
    assert [tensor.name for tensor in read(sparse(path, framed(text), 8 + len(text) + 4)).tensors] == [":"]


def test_a_cut_or_grown_file(tmp_path: Path) -> None:
    start, data = safetensors_header({"a": ("F32", (4, 4))})
    assert "describes 64 bytes of tensors, but 63 bytes follow" in refused(
        tmp_path, start, len(start) + data - 1
    )
    assert "describes 64 bytes of tensors, but 65 bytes follow" in refused(
        tmp_path, start, len(start) + data + 1
    )
    assert "describes 64 bytes of tensors, but 0 bytes follow" in refused(tmp_path, start)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (framed(b""), "does not begin with a JSON object"),
        (framed(b"   {}"), "does not begin with a JSON object"),
        (framed(b"[]"), "does not begin with a JSON object"),
        (framed(b"{"), "not valid JSON at line 1, column 2"),
        (framed(b'{"a"}'), "not valid JSON at line 1, column 5"),
        (framed(b"{}{}"), "nothing is allowed after the end"),
        (framed(b'{"a":\xff}'), "not UTF-8"),
        (framed(b'{"a":' * 60_000), "nested more than 64 levels"),
        (framed(b'{"a":' * 100_000), "describes more than 65,536 tensors"),
        (framed(b'{"a":' + b"[" * 100_000), "nested more than 64 levels"),
        (framed(b'{"a":' + b"9" * 10_000 + b"}"), "longer than 40 digits"),
        (header(a=1), "tensor a is 1; allowed are a dtype"),
        (header(a=None), "tensor a is null"),
        (header(a={}), "tensor a is {}"),
        (header(**{"a\n": []}), "tensor a\\n is []"),
        (header(__metadata__={"a": 1}), '__metadata__ is {"a": 1}; an object of texts'),
        (header(__metadata__=[]), "__metadata__ is []"),
        (one(extra=1), "tensor a is"),
        (one(dtype=None), "tensor a is"),
        (one(dtype="F3"), 'has the dtype "F3"; allowed are BOOL, F4'),
        (one(dtype="\u202e"), 'has the dtype "\\u202e"'),
        (one(shape=[-4]), "tensor a is"),
        (one(shape=[2, -2]), "tensor a is"),
        (one(shape=["4"]), "tensor a is"),
        (one(shape=[4.0]), "tensor a is"),
        (one(shape=[True]), "tensor a is"),
        (one(shape=4), "tensor a is"),
        (one(shape=[1] * 65), "tensor a is"),
        (one(shape=[2**63]), "tensor a is"),
        (one(shape=[2**62, 2**62]), "cannot take bytes 0 to 4"),
        (one(shape=[2**32, 2**32]), "cannot take bytes 0 to 4"),
        (one(shape=[2**63 - 1] * 64), "cannot take bytes 0 to 4"),
        (one(shape=[5]), "of shape [5] in U8 cannot take bytes 0 to 4"),
        (one(dtype="F4", shape=[7]), "cannot take bytes 0 to 4"),
        (one(data_offsets=[4, 0]), "cannot take bytes 4 to 0"),
        (one(data_offsets=[0, 4, 8]), "tensor a is"),
        (one(data_offsets=[-4, 0]), "tensor a is"),
        (one(data_offsets=[0]), "tensor a is"),
        (one(data_offsets=[1, 5]), "begins at byte 1 of the data, the one before ends at 0"),
        (one(data_offsets=[2**63 - 5, 2**63 - 1]), "begins at byte 9,223,372,036,854,775,803"),
        (framed(b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],'
                b'"data_offsets":[0,4]}}'), 'the key "a" stands twice'),
        (framed(b'{"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}'), '"dtype" stands'),
        (framed(b'{"a":{"dtype":"U8","shape":[4],"\\u0073hape":[4],"data_offsets":[0,4]}}'),
         'the key "shape" stands twice'),
        (framed(b'{"__metadata__":{},"__metadata__":{}}'), '"__metadata__" stands twice'),
        (framed(b'{"__metadata__":{"a":"","a":""}}'), 'the key "a" stands twice'),
        (framed(b'{"__metadata__":{"a":"","a":"","\\u003a":""}}'), 'the key "a" stands twice'),
        (framed(b'{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3],"x":1},"b":{"dtype":"U8",'
                b'"data_offsets":[3,4]}}'), 'tensor a is {"dtype":"U8"'),
        (framed(b'{"b":{"dtype":"U8","data_offsets":[3,4]},"a":{"dtype":"U8","shape":[3],'
                b'"data_offsets":[0,3],"x":1}}'), 'tensor b is {"dtype":"U8"'),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be(tmp_path: Path, content: bytes, told: str) -> None:
    assert told in refused(tmp_path, content, len(content) + 4)


@pytest.mark.parametrize(
    ("first", "second"), [((0, 4), (3, 7)), ((0, 4), (0, 4)), ((0, 4), (5, 9)), ((4, 8), (4, 8))]
)
def test_tensors_that_overlap_or_leave_gaps(
    tmp_path: Path, first: tuple[int, int], second: tuple[int, int]
) -> None:
    entries = {
        name: {"dtype": "U8", "shape": [4], "data_offsets": span}
        for name, span in (("a", first), ("b", second))
    }
    content = header(**entries)
    assert "neither gaps nor overlaps" in refused(tmp_path, content, len(content) + max(first[1], second[1]))


def test_a_file_that_shrinks_while_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, data = safetensors_header({"a": ("F32", (4, 4))})
    path = sparse(tmp_path / "m.safetensors", start, len(start) + data)
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        os.truncate(path, 20)
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(FileFault, match="became shorter while it was read"):
        read(path)


# several files


def test_an_index_and_its_shards_are_one_table(tmp_path: Path) -> None:
    tensors = llama(layers=4, hidden=64, inner=128, kv=16, vocabulary=100)
    index = write_shards(tmp_path, tensors, 7)
    table = read_index(index)
    assert {tensor.name: (tensor.format, tensor.shape) for tensor in table.tensors} == tensors
    assert table.total_bytes == json.loads(index.read_text())["metadata"]["total_size"]
    assert len(table.sources) == 7
    assert table.missing == ()
    assert table.notes == ()


def test_missing_shards_are_reported(tmp_path: Path) -> None:
    index = write_shards(tmp_path, llama(4, 64, 128, 16, 100), 4)
    whole = read_index(index)
    (tmp_path / "model-00002-of-00004.safetensors").unlink()
    link = tmp_path / "model-00004-of-00004.safetensors"
    link.unlink()
    link.symlink_to("../../blobs/not-downloaded")  # as in the Hugging Face cache
    table = read_index(index)
    assert table.missing == ("model-00002-of-00004.safetensors", "model-00004-of-00004.safetensors")
    assert 0 < table.total_bytes < whole.total_bytes
    assert [str(note) for note in table.notes] == [
        "2 of 4 weight files are not there (first: model-00002-of-00004.safetensors); "
        "their tensors are not counted."
    ]
    for path in tmp_path.glob("*.safetensors"):
        path.unlink()
    with pytest.raises(FileFault, match=r"has none of the 4 weight files"):
        read_index(index)


def test_an_index_that_disagrees_with_its_shards_is_noted(tmp_path: Path) -> None:
    index = write_shards(tmp_path, {"a": ("F32", (2,)), "b": ("F32", (2,))}, 2)
    content = json.loads(index.read_text())
    del content["weight_map"]["a"]
    content["weight_map"]["c"] = "model-00001-of-00002.safetensors"
    content["metadata"]["total_size"] = 17.0
    index.write_text(json.dumps(content))
    assert [str(note) for note in read_index(index).notes] == [
        "model.safetensors.index.json lists 1 tensor that no shard holds (first: c).",
        "The shards hold 1 tensor that model.safetensors.index.json does not list (first: a); it is counted.",
        "model.safetensors.index.json states a total size of 17 bytes; the tensors have 16 bytes.",
    ]


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    paths = [write_safetensors(tmp_path / f"{name}.safetensors", {"x": ("U8", (1,))}) for name in "ab"]
    with pytest.raises(FileFault, match=r"b\.safetensors holds the tensor x, which a\.safetensors holds too"):
        read_files(paths)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{}", "does not state weight_map"),
        (b'{"weight_map": []}', "weight_map is []; an object"),
        (b'{"weight_map": {}}', "weight_map names 0 files"),
        (b'{"weight_map": {"a": 1}}', "weight_map.a lies in 1; only a .safetensors file beside"),
        (b'{"weight_map": {"a": "/etc/passwd"}}', 'lies in "/etc/passwd"'),
        (b'{"weight_map": {"a": "../x.safetensors"}}', "only a .safetensors file beside"),
        (b'{"weight_map": {"a": "..\\\\x.safetensors"}}', "only a .safetensors file beside"),
        (b'{"weight_map": {"a": "C:x.safetensors"}}', "only a .safetensors file beside"),
        (b'{"weight_map": {"a": "x\\u0000.safetensors"}}', "only a .safetensors file beside"),
        (b'{"weight_map": {"a": "pytorch_model.bin"}}', "only a .safetensors file beside"),
        (b'{"weight_map": {"a": "' + b"x" * 300 + b'.safetensors"}}', "only a .safetensors file beside"),
        (b'{"weight_map": {"a": "x.safetensors", "a": "x.safetensors"}}', 'the key "a" stands twice'),
        (b'{"weight_map": {"a": "m.safetensors"}, "metadata": {"total_size": "4"}}', 'total_size is "4"'),
        (b'{"weight_map": {"a": "m.safetensors"}, "metadata": 4}', "metadata is 4"),
        (b'{"weight_map": {' + b",".join(b'"%d":"%d.safetensors"' % (i, i) for i in range(5_000)) + b"}}",
         "names 5,000 files; from 1 to 4,096"),
    ],
)  # fmt: skip
def test_an_index_that_cannot_be(tmp_path: Path, content: bytes, told: str) -> None:
    write_safetensors(tmp_path / "m.safetensors", {"a": ("U8", (4,))})
    path = tmp_path / "model.safetensors.index.json"
    path.write_bytes(content)
    with pytest.raises(FileFault) as fault:
        read_index(path)
    assert told in str(fault.value)
    assert str(fault.value).startswith("model.safetensors.index.json")


def test_an_index_too_long_to_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileFault, match="2,147,483,648 bytes"):
        read_index(sparse(tmp_path / "i.index.json", b"{", 2**31))


def test_reading_shards_tells_how_far_it_is_and_stops_when_told(tmp_path: Path) -> None:
    index = write_shards(tmp_path, llama(2, 64, 128, 16, 100), 5)
    seen = []

    def progress(done: int, total: int) -> bool:
        seen.append((done, total))
        return len(seen) < limit

    limit = 100
    read_index(index, progress)
    assert seen == [(done, 5) for done in range(6)]
    limit = len(seen) + 3
    with pytest.raises(Cancelled):
        read_index(index, progress)
    assert len(seen) == limit


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], []),
        (["config.json", "x.gguf"], []),
        (["a.safetensors"], ["a.safetensors"]),
        (["adapter.safetensors", "model.safetensors"], ["model.safetensors"]),
        (["model.safetensors", "model.safetensors.index.json"], ["model.safetensors"]),
        (["consolidated.safetensors", "model-00001-of-00001.safetensors", "model.safetensors.index.json"],
         ["model.safetensors.index.json"]),
        (["consolidated.safetensors.index.json", "model.safetensors.index.json"],
         ["model.safetensors.index.json"]),
        (["model-00002-of-00003.safetensors"],
         [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]),
    ],
)  # fmt: skip
def test_what_transformers_would_load_is_found(names: list[str], expected: list[str]) -> None:
    assert [path.name for path in find_weights([Path("m", name) for name in names])] == expected


@pytest.mark.parametrize(
    "name", ["m-00001-of-99999.safetensors", "m-00004-of-00003.safetensors", "m-00000-of-00000.safetensors"]
)
def test_a_part_number_that_cannot_be(name: str) -> None:
    with pytest.raises(FileFault, match="is named as part"):
        find_weights([Path(name)])
