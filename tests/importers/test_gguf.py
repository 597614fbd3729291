import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf as package
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgui.files.bounded import Cancelled, FileFault, FileMissing
from memgui.files.strict_json import JsonObject
from memgui.importers.gguf_cursor import MAX_ENTRIES, MAX_HEADER_BYTES, MAX_NAME_BYTES, MAX_STEPS
from memgui.importers.gguf_header import MAX_KEPT_ITEMS, MAX_KEPT_TEXT, Skipped
from memgui.importers.gguf_parts import read_gguf
from memgui.importers.tensors import GGML_TYPES, Packing, TensorInfo
from tests.importers.files import (
    count,
    entry,
    gguf,
    gguf_llama,
    number,
    sentence,
    sparse,
    tensor,
    text,
    words,
)


def refused(tmp_path: Path, content: bytes, size: int | None = None) -> str:
    """The sentence said of a file, which must come within a second and 64 MiB."""
    path = sparse(tmp_path / "m.gguf", content, size)
    said = sentence(lambda: read_gguf(path))
    assert said.startswith("m.gguf")
    return said


def metadata(tmp_path: Path, *entries: bytes) -> dict[str, object]:
    return read_gguf(sparse(tmp_path / "m.gguf", gguf(entries))).metadata


def write(path: Path, tokens: int = 50, merges: int = 0, **split: Any) -> dict[str, tuple[int, ...]]:
    """A small model as the gguf package writes it; the shapes of its tensors."""
    writer = package.GGUFWriter(path, "llama", **split)
    writer.add_block_count(2)
    writer.add_head_count_kv([8, 4])
    writer.add_rope_freq_base(10_000.0)
    writer.add_bool("general.flag", True)
    writer.add_name("ein Modell")
    writer.add_token_list([f"töken{index}" for index in range(tokens)])
    writer.add_token_scores([float(index) for index in range(tokens)])
    writer.add_token_types([1] * tokens)
    if merges:
        writer.add_token_merges([f"a{index} b{index}" for index in range(merges)])
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(2):
        writer.add_tensor(f"blk.{layer}.norm", np.zeros(64, np.float32))
        writer.add_tensor(f"blk.{layer}.half", np.zeros((3, 64), np.float16))
        raw = np.zeros((5, 36), np.uint8)
        writer.add_tensor(f"blk.{layer}.quantised", raw, raw_dtype=package.GGMLQuantizationType.Q4_0)
        shapes |= {
            f"blk.{layer}.norm": (64,),
            f"blk.{layer}.half": (3, 64),
            f"blk.{layer}.quantised": (5, 64),
        }
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return shapes


# as the gguf package writes and reads it


def test_what_the_package_writes_is_read_as_it_was_meant(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    shapes = write(path, tokens=2_000)
    table = read_gguf(path)
    assert {info.name: info.shape for info in table.tensors} == shapes
    reader = package.GGUFReader(path)
    assert {
        item.name: (item.tensor_type.name, int(item.n_bytes), tuple(map(int, reversed(item.shape))))
        for item in reader.tensors
    } == {info.name: (info.format, info.bytes, info.shape) for info in table.tensors}
    assert set(table.metadata) == {key for key in reader.fields if not key.startswith("GGUF.")}
    assert table.bytes_by_format == {"F16": 768, "F32": 512, "Q4_0": 360}
    assert table.container == "gguf"
    assert table.sources == (os.fspath(path),)
    assert table.metadata["tokenizer.ggml.tokens"] == Skipped("string", 2_000)
    assert table.metadata["tokenizer.ggml.scores"] == Skipped("float32", 2_000)
    stated = JsonObject(table.metadata, "model.gguf")
    assert stated.string("general.architecture") == "llama"
    assert stated.integer("llama.block_count") == 2
    assert stated.integers("llama.attention.head_count_kv") == (8, 4)
    assert stated.number("llama.rope.freq_base") == 10_000.0
    assert stated.boolean("general.flag") is True
    assert stated.string("general.name") == "ein Modell"
    with pytest.raises(FileFault, match=r'tokens is "string\[2000\]"; a list'):
        stated.array("tokenizer.ggml.tokens")


def test_block_sizes_are_the_packages() -> None:
    for kind, (block, block_bytes) in package.GGML_QUANT_SIZES.items():
        assert GGML_TYPES[int(kind)] == Packing(kind.name, block, block_bytes)


@pytest.mark.parametrize("kind", [int(kind) for kind in package.GGML_QUANT_SIZES])
def test_every_type_takes_what_the_package_takes(tmp_path: Path, kind: int) -> None:
    packing = GGML_TYPES[kind]
    header = gguf([], [tensor("x", (3, 512), kind, 0)])
    size = -(-len(header) // 32) * 32 + 3 * 512 // packing.block * packing.block_bytes
    path = sparse(tmp_path / "m.gguf", header, size)
    assert read_gguf(path).tensors == (
        TensorInfo("x", (3, 512), packing.name, size - -(-len(header) // 32) * 32),
    )
    item = package.GGUFReader(path).tensors[0]
    assert (item.tensor_type.name, int(item.n_bytes)) == (packing.name, read_gguf(path).total_bytes)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_all_versions_are_read(tmp_path: Path, version: int) -> None:
    header = gguf(
        [
            number("general.alignment", 64, version),
            words("words", ["a", "b"] * 1_000, version),
            words("few", ["a", ""], version),
            entry("general.name", 8, text("é", version), version),
        ],
        [tensor("x", (2, 3), 0, 0, version), tensor("y", (), 24, 64, version)],
        version,
    )
    path = sparse(tmp_path / "m.gguf", header, -(-len(header) // 64) * 64 + 65)
    table = read_gguf(path)
    assert table.tensors == (TensorInfo("x", (2, 3), "F32", 24), TensorInfo("y", (), "I8", 1))
    assert table.metadata == {
        "general.alignment": 64,
        "words": Skipped("string", 2_000),
        "few": ["a", ""],
        "general.name": "é",
    }


VALUES: dict[str, tuple[int, str, st.SearchStrategy[Any]]] = {
    "uint8": (0, "B", st.integers(0, 2**8 - 1)),
    "int8": (1, "b", st.integers(-(2**7), 2**7 - 1)),
    "uint16": (2, "H", st.integers(0, 2**16 - 1)),
    "int16": (3, "h", st.integers(-(2**15), 2**15 - 1)),
    "uint32": (4, "I", st.integers(0, 2**32 - 1)),
    "int32": (5, "i", st.integers(-(2**31), 2**31 - 1)),
    "float32": (6, "f", st.floats(width=32, allow_nan=False)),
    "bool": (7, "?", st.booleans()),
    "uint64": (10, "Q", st.integers(0, 2**64 - 1)),
    "int64": (11, "q", st.integers(-(2**63), 2**63 - 1)),
    "float64": (12, "d", st.floats(allow_nan=False)),
}


@given(st.data())
def test_every_type_of_value_is_read(make_path: Callable[[], Path], data: st.DataObject) -> None:
    entries = []
    expected: dict[str, object] = {}
    for name, (kind, code, values) in VALUES.items():
        value = data.draw(values)
        entries.append(entry(name, kind, struct.pack("<" + code, value)))
        items = data.draw(st.lists(values, max_size=5))
        packed = struct.pack("<I", kind) + count(len(items)) + struct.pack(f"<{len(items)}{code}", *items)
        entries.append(entry(f"{name}s", 9, packed))
        expected |= {name: value, f"{name}s": items}
    nested = struct.pack("<I", 9) + count(2) + (struct.pack("<I", 0) + count(1) + b"\7") * 2
    entries.append(entry("nested", 9, nested))
    words_kept = data.draw(
        st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=4)
    )
    entries.append(words("words", words_kept))
    found = read_gguf(sparse(make_path(), gguf(entries))).metadata
    assert found == expected | {"nested": [[7], [7]], "words": words_kept}
    assert all(type(found[name]) is type(value) for name, value in expected.items())


@given(st.binary(max_size=200), st.integers(0, 400))
def test_any_bytes_are_a_table_or_a_sentence(make_path: Callable[[], Path], junk: bytes, size: int) -> None:
    start = b"GGUF" + struct.pack("<I", 3)
    for content in (junk, b"GGUF" + junk, start + junk, gguf([junk]), gguf([], [junk])):
        try:
            table = read_gguf(sparse(make_path(), content, max(size, len(content))))
        except FileFault as fault:
            said = str(fault)
        else:
            said = "table"
            assert table.total_bytes <= max(size, len(content))
        assert said.isprintable()


def test_long_texts_and_lists_are_stepped_over_and_short_ones_kept(tmp_path: Path) -> None:
    found = metadata(
        tmp_path,
        entry("kept", 8, text("x" * MAX_KEPT_TEXT)),
        entry("long", 8, text("x" * (MAX_KEPT_TEXT + 1))),
        words("kept list", "x" * MAX_KEPT_ITEMS),
        words("long list", ["x" * 1_000] * (MAX_KEPT_ITEMS + 1)),
        words("long words", ["x" * 2_500_000, "", "y" * 3_000_000, "z"]),
        entry("broken", 8, text(b"\xff\xfea")),
        number("last", 7),
    )
    assert found == {
        "kept": "x" * MAX_KEPT_TEXT,
        "long": Skipped("string", MAX_KEPT_TEXT + 1),
        "kept list": ["x"] * MAX_KEPT_ITEMS,
        "long list": Skipped("string", MAX_KEPT_ITEMS + 1),
        "long words": [Skipped("string", 2_500_000), "", Skipped("string", 3_000_000), "z"],
        "broken": "\ufffd\ufffda",
        "last": 7,
    }


@settings(max_examples=20)
@given(
    st.lists(st.integers(0, 40), min_size=MAX_KEPT_ITEMS + 1, max_size=MAX_KEPT_ITEMS + 300),
    st.integers(30, 70),
)
def test_texts_are_stepped_over_wherever_the_window_ends(
    make_path: Callable[[], Path], lengths: list[int], window: int
) -> None:
    entries = [words("words", ["x" * length for length in lengths]), number("after", 7)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memgui.importers.gguf_cursor._WINDOW", window)
        found = read_gguf(sparse(make_path(), gguf(entries))).metadata
    assert found == {"words": Skipped("string", len(lengths)), "after": 7}


# what cannot be


def test_a_file_that_is_missing_or_no_gguf(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        read_gguf(tmp_path / "m.gguf")
    for content in (b"", b"GGU", b"GGUF", b"GGUX\3\0\0\0" + bytes(100), b"ggml" + bytes(100), b"\0" * 100):
        assert "is no GGUF file" in refused(tmp_path, content)


@pytest.mark.parametrize(("version", "told"), [
    (0, "of version 0; versions 1 to 3"), (4, "of version 4"), (2**31 + 1, "of version 2,147,483,649"),
    (3 << 24, "big-endian"), (2 << 24, "big-endian"),
])  # fmt: skip
def test_a_version_that_cannot_be_read(tmp_path: Path, version: int, told: str) -> None:
    assert told in refused(tmp_path, b"GGUF" + struct.pack("<I", version) + bytes(100))


@pytest.mark.parametrize("number_of", [2**40, 2**63, 2**64 - 1, 2**63 - 1, 2**32, MAX_ENTRIES + 1, 100])
def test_counts_beyond_the_file(tmp_path: Path, number_of: int) -> None:
    assert f"states {number_of:,} tensors; at most 3 are" in refused(
        tmp_path, gguf(tensor_count=number_of), 100
    )
    assert f"states {number_of:,} metadata entries; at most 5 are" in refused(
        tmp_path, gguf(entry_count=number_of), 100
    )


def test_counts_within_a_huge_file(tmp_path: Path) -> None:
    limit = f"at most {MAX_ENTRIES:,}"
    assert limit in refused(tmp_path, gguf(tensor_count=2**40), 2**42)
    assert limit in refused(tmp_path, gguf(entry_count=2**40), 2**42)
    assert "holds the tensor  twice" in refused(tmp_path, gguf(tensor_count=MAX_ENTRIES), 2**42)
    assert "the metadata key  stands twice" in refused(tmp_path, gguf(entry_count=MAX_ENTRIES), 2**42)


LENGTHS = [2**32, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 9, 2**63 - 40]


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths_beyond_the_file(tmp_path: Path, length: int) -> None:
    told = "has only 300 bytes in all"
    assert told in refused(tmp_path, gguf([count(length)], entry_count=1), 300)
    assert told in refused(tmp_path, gguf([entry("a", 8, count(length))]), 300)
    assert told in refused(tmp_path, gguf([], [count(length)]), 300)
    for kind in (0, 4, 7, 8, 9, 12):
        assert told in refused(tmp_path, gguf([entry("a", 9, struct.pack("<I", kind) + count(length))]), 300)
    one_long = struct.pack("<I", 8) + count(1) + count(length)
    assert told in refused(tmp_path, gguf([entry("a", 9, one_long)]), 300)
    many = struct.pack("<I", 8) + count(MAX_KEPT_ITEMS + 1) + count(0) * MAX_KEPT_ITEMS + count(length)
    assert "bytes in all" in refused(tmp_path, gguf([entry("a", 9, many)]), 10_000)


@pytest.mark.parametrize("length", [2**32, MAX_HEADER_BYTES])
def test_lengths_within_a_huge_file(tmp_path: Path, length: int) -> None:
    too_long = f"a header of more than {MAX_HEADER_BYTES:,} bytes"
    assert too_long in refused(tmp_path, gguf([entry("a", 8, count(length))]), 2**42)
    assert too_long in refused(tmp_path, gguf([entry("a", 9, struct.pack("<I", 12) + count(length))]), 2**42)
    assert "at most 256" in refused(tmp_path, gguf([], [count(length)]), 2**42)
    assert f"more than {MAX_STEPS:,} texts" in refused(
        tmp_path, gguf([entry("a", 9, struct.pack("<I", 8) + count(length))]), 2**42
    )


def test_the_most_texts_that_are_gone_through_are_gone_through_fast(tmp_path: Path) -> None:
    half = entry("a", 9, struct.pack("<I", 8) + count(MAX_STEPS)) + bytes(8 * MAX_STEPS)
    again = entry("b", 9, struct.pack("<I", 8) + count(MAX_STEPS)) + bytes(8 * MAX_STEPS)
    assert f"more than {MAX_STEPS:,} texts" in refused(tmp_path, gguf([half, again]))


def test_many_lists_of_lists(tmp_path: Path) -> None:
    def nested(depth: int, width: int) -> bytes:
        return struct.pack("<I", 9) + count(width) + (nested(depth - 1, width) * width if depth else b"")

    assert "longer or deeper than allowed" in refused(tmp_path, gguf([entry("a", 9, nested(20, 1))]), 10_000)
    assert "longer or deeper" in refused(
        tmp_path, gguf([entry("a", 9, struct.pack("<I", 9) + count(2_000))]), 10**6
    )
    assert refused(tmp_path, gguf([entry("a", 9, nested(3, 60))]), 2**26)


def test_more_metadata_than_is_kept(tmp_path: Path) -> None:
    entries = [entry(f"{index}", 8, text("x" * MAX_KEPT_TEXT)) for index in range(300)]
    assert "takes more than 16,777,216 bytes" in refused(tmp_path, gguf(entries))
    entries = [entry(f"{index:0200}", 0, b"\0") for index in range(MAX_ENTRIES)]
    assert "takes more than 16,777,216 bytes" in refused(tmp_path, gguf(entries))


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([entry("a", 13, b"")], "the metadata entry a has the type 13; 0 to 12"),
        ([entry("a", 2**32 - 1, b"")], "the metadata entry a has the type 4294967295"),
        ([entry("a", 9, struct.pack("<I", 13) + count(1))], "a has the type 13"),
        ([entry("a", 7, b"\2")], "the metadata entry a is [2]; a bool is 0 or 1"),
        ([entry("a", 9, struct.pack("<I", 7) + count(2) + b"\1\xff")], "a is [1, 255]"),
        ([number("a", 1), number("a", 1)], "the metadata key a stands twice"),
        ([entry("a" * (MAX_NAME_BYTES + 1), 0, b"\0")], "a name of 257 bytes at byte 24; at most 256"),
        ([text(b"\xff\xfe") + bytes(5)], "a name at byte 24 that is not UTF-8"),
        ([number("general.alignment", 0)], "general.alignment is 0; a power of two"),
        ([number("general.alignment", 24)], "general.alignment is 24"),
        ([entry("general.alignment", 5, struct.pack("<i", -32))], "general.alignment is -32"),
        ([entry("general.alignment", 8, text("32"))], 'general.alignment is "32"'),
        ([entry("general.alignment", 7, b"\1")], "general.alignment is true"),
        ([entry("general.alignment", 6, struct.pack("<f", 32))], "general.alignment is 32.0"),
    ],
)
def test_metadata_that_cannot_be(tmp_path: Path, entries: list[bytes], told: str) -> None:
    header = gguf(entries)
    assert told in refused(tmp_path, header, len(header) + 200)


@pytest.mark.parametrize(
    ("tensors", "told"),
    [
        ([tensor("x", (1,), 4, 0)], "tensor x has the unknown number format 4; known are 0 (F32), 1 (F16)"),
        ([tensor("x", (1,), 2**32 - 1, 0)], "the unknown number format 4294967295"),
        ([tensor("x\n", (1,) * 5, 0, 0)], "tensor x\\n has 5 dimensions"),
        ([text("x") + struct.pack("<I", 2**32 - 1)], "has 4,294,967,295 dimensions"),
        ([tensor("x", (2**63,), 24, 0)], "of shape [9223372036854775808] cannot be stored in I8"),
        ([tensor("x", (2**64 - 1,), 24, 0)], "cannot be stored in I8"),  # a dimension of -1
        ([tensor("x", (2**32, 2**32), 24, 0)], "cannot be stored in I8"),
        ([tensor("x", (2**62, 2**62, 2**62, 2**62), 24, 0)], "cannot be stored in I8"),
        ([tensor("x", (2**40,), 24, 0)], "ends at byte 1,099,511,627,776 of the data, but the file has only"),
        ([tensor("x", (2**63 - 1,), 0, 0)], "ends at byte 36,893,488,147,419,103,228 of the data"),
        ([tensor("x", (1,), 0, 2**63)], "ends at byte 9,223,372,036,854,775,812"),
        ([tensor("x", (1,), 0, 2**64 - 32)], "ends at byte 18,446,744,073,709,551,588"),
        (
            [tensor("x", (2, 48), 2, 0)],
            "of shape [2, 48] cannot be stored in Q4_0; rows of whole blocks of 32",
        ),
        ([tensor("x", (), 2, 0)], "cannot be stored in Q4_0"),
        ([tensor("x", (1,), 0, 4)], "begins at byte 4 of the data; multiples of 32"),
        ([tensor("x", (1,), 0, 0), tensor("x", (1,), 0, 32)], "holds the tensor x twice"),
        (
            [tensor("x", (16,), 0, 0), tensor("y", (1,), 0, 32)],
            "y begins at byte 32 of the data, within one that",
        ),
        (
            [tensor("y", (1,), 0, 32), tensor("x", (16,), 0, 0)],
            "y begins at byte 32 of the data, within one that",
        ),
        (
            [tensor("x", (1,), 0, 0), tensor("y", (1,), 0, 0)],
            "y begins at byte 0 of the data, within one that",
        ),
        ([tensor(b"\xff", (1,), 0, 0)], "a name at byte 24 that is not UTF-8"),
        ([tensor("x" * 257, (1,), 0, 0)], "a name of 257 bytes"),
    ],
)
def test_tensors_that_cannot_be(tmp_path: Path, tensors: list[bytes], told: str) -> None:
    assert told in refused(tmp_path, gguf([], tensors), 500)


def test_a_cut_file(tmp_path: Path) -> None:
    header, size = gguf_llama(layers=2, hidden=256, inner=512, vocabulary=100)
    path = sparse(tmp_path / "m.gguf", header, size)
    assert len(read_gguf(path).tensors) == 11
    assert "it is cut short or damaged" in refused(tmp_path, header, size - 2**16)
    for length in range(8, len(header), 37):
        assert refused(tmp_path, header[:length])


def test_a_file_that_shrinks_while_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sparse(tmp_path / "m.gguf", *gguf_llama(2, 256, 512, 100))
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        status = real(descriptor)
        os.truncate(path, 100)
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(FileFault, match="became shorter while it was read"):
        read_gguf(path)


# several parts


def test_parts_are_one_model_whichever_is_opened(tmp_path: Path) -> None:
    shapes = write(tmp_path / "model.gguf", split_max_tensors=2)
    paths = sorted(tmp_path.glob("*.gguf"))
    assert [path.name for path in paths] == [f"model-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    for path in paths:
        seen: list[tuple[int, int]] = []
        table = read_gguf(path, lambda done, total, seen=seen: seen.append((done, total)) or True)  # type: ignore[misc]
        assert {info.name: info.shape for info in table.tensors} == shapes
        assert table.sources == tuple(map(os.fspath, paths))
        assert table.metadata["general.name"] == "ein Modell"
        assert table.missing == ()
        assert table.notes == ()
        assert seen[-4:] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    with pytest.raises(Cancelled):
        read_gguf(paths[0], lambda done, total: done < 2)


def test_missing_parts_are_reported(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", split_max_tensors=2)
    first, second, third = sorted(tmp_path.glob("*.gguf"))
    second.unlink()
    table = read_gguf(third)
    assert table.missing == (second.name,)
    assert len(table.tensors) == 4
    assert [str(note) for note in table.notes] == [
        "1 of 3 weight files is not there (first: model-00002-of-00003.gguf); its tensors are not counted."
    ]
    first.unlink()
    with pytest.raises(FileMissing, match=r"^model-00001-of-00003\.gguf is not there"):
        read_gguf(third)


def part(path: Path, index: int, parts: int, name: str, **more: int) -> Path:
    entries = [
        entry("split.no", 2, struct.pack("<H", index)),
        entry("split.count", 2, struct.pack("<H", parts)),
    ]
    entries += [entry(key.replace("_", "."), 5, struct.pack("<i", value)) for key, value in more.items()]
    header = gguf(entries, [tensor(name, (1,), 0, 0)])
    return sparse(path, header, -(-len(header) // 32) * 32 + 4)


def test_parts_that_do_not_belong_together(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    part(first, 0, 2, "a", split_tensors_count=3)
    part(second, 1, 2, "b")
    assert [str(note) for note in read_gguf(second).notes] == []
    assert [str(note) for note in read_gguf(first).notes] == [
        "m-00001-of-00002.gguf states 3 tensors for all parts; they hold 2."
    ]
    part(second, 1, 2, "a")
    with pytest.raises(FileFault, match="holds the tensor a, which another part holds too"):
        read_gguf(first)
    part(second, 0, 2, "b")
    with pytest.raises(FileFault, match=r"split\.no is 0; a whole number from 1 to 1 is allowed"):
        read_gguf(first)
    part(second, 1, 3, "b")
    with pytest.raises(FileFault, match=r"split\.count is 3; a whole number from 2 to 2 is allowed"):
        read_gguf(first)
    for name in ("m.gguf", "m-00002-of-00002.gguf", "m-00001-of-00003.gguf"):
        with pytest.raises(FileFault, match=r"its name does not end in -00001-of-00002\.gguf"):
            read_gguf(part(tmp_path / name, 0, 2, "a"))
    with pytest.raises(FileFault, match=r"split\.count is 65535; a whole number from 1 to 1,024 is allowed"):
        read_gguf(part(first, 0, 2**16 - 1, "a"))
    with pytest.raises(FileFault, match=r"split\.no is 2; a whole number from 0 to 1 is allowed"):
        read_gguf(part(first, 2, 2, "a"))
