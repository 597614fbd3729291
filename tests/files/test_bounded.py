import contextlib
import os
import socket
from pathlib import Path

import pytest

from memgui.files.bounded import (
    Cancelled,
    FileFault,
    FileMissing,
    display_name,
    list_folder,
    open_bounded,
    printable,
    read_whole,
    report,
)


def sentence(path: str | Path, limit: int = 100) -> str:
    with pytest.raises(FileFault) as fault:
        read_whole(path, limit)
    text = str(fault.value)
    assert text.isprintable()
    assert text.endswith(".")
    return text


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no FIFOs")
    path = tmp_path / "pipe.json"
    os.mkfifo(path)
    return path


@pytest.fixture
def device() -> Path:
    path = Path("/dev/zero")
    if not path.exists():
        pytest.skip("this system has no /dev/zero")
    return path


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 100)
    assert read_whole(path, 100) == b"x" * 100
    path.write_bytes(b"x" * 101)
    assert sentence(path) == "a.json has 101 bytes; at most 100 are allowed for a file of this kind."


def test_a_huge_sparse_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(2**31)
    assert "2,147,483,648 bytes" in sentence(path)


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch()
    assert read_whole(path, 0) == b""


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileMissing, match=r"^a\.json is not there"):
        read_whole(tmp_path / "a.json", 1)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FileMissing, match=r"^link is not there"):
        read_whole(tmp_path / "link", 1)
    (tmp_path / "file").touch()
    assert "not a folder" in sentence(tmp_path / "file" / "a.json")


def test_a_folder(tmp_path: Path) -> None:
    assert "is a folder" in sentence(tmp_path)


def test_a_fifo_neither_hangs_nor_is_opened(pipe: Path) -> None:
    assert "pipe, socket or device" in sentence(pipe)


def test_a_fifo_put_in_between_does_not_hang(
    pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regular = tmp_path / "regular"
    regular.touch()
    status = os.stat(regular)
    monkeypatch.setattr(os, "stat", lambda path: status)
    assert "pipe, socket or device" in sentence(pipe)


def test_a_socket_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert "pipe, socket or device" in sentence("s")


def test_a_device(device: Path) -> None:
    assert "pipe, socket or device" in sentence(device)


def test_a_symlink_to_a_file_is_followed_and_a_loop_is_not(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"{}")
    (tmp_path / "config.json").symlink_to("blob")
    assert read_whole(tmp_path / "config.json", 2) == b"{}"
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "loop of links" in sentence(tmp_path / "a")


def test_a_symlink_to_what_is_no_file(tmp_path: Path, pipe: Path, device: Path) -> None:
    for target in (tmp_path, pipe, device):
        link = tmp_path / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        sentence(link)


def test_a_file_of_proc_has_no_size_and_gives_nothing() -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("this system has no /proc")
    assert read_whole("/proc/self/maps", 10) == b""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch(mode=0)
    assert "permission" in sentence(path)


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 300, "x/" * 3_000])
def test_a_path_that_cannot_be(path: str) -> None:
    sentence(path)


def test_a_file_that_shrinks_while_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 100)
    with open_bounded(path) as file:
        assert file.read(10, 20) == b"x" * 20
        os.truncate(path, 50)
        assert file.read(0, 50) == b"x" * 50
        with pytest.raises(FileFault, match=r"a\.bin became shorter while it was read: 10 of 20 bytes"):
            file.read(40, 20)


def test_a_file_that_grows_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x")
    with open_bounded(path) as file:
        path.write_bytes(b"xy")
        with pytest.raises(FileFault, match="has only 1 byte in all"):
            file.read(0, 2)


@pytest.mark.parametrize(("offset", "length"), [(0, 101), (100, 1), (2**63, 1), (0, 2**63), (-1, 1), (0, -1)])
def test_no_read_goes_beyond_the_file(tmp_path: Path, offset: int, length: int) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"x" * 100)
    with open_bounded(path) as file, pytest.raises(FileFault, match="has only 100 bytes in all"):
        file.read(offset, length)


def test_nothing_stays_open(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("this system has no /proc")
    (tmp_path / "a").touch()
    before = len(list(folder.iterdir()))
    for path in (tmp_path, tmp_path / "a", tmp_path / "b"):
        with contextlib.suppress(FileFault):
            read_whole(path, 1)
    assert len(list(folder.iterdir())) == before


def test_a_folder_is_listed_in_order_and_up_to_the_limit(tmp_path: Path) -> None:
    for name in "bac":
        (tmp_path / name).touch()
    assert [path.name for path in list_folder(tmp_path, 3)] == ["a", "b", "c"]
    with pytest.raises(FileFault, match="more than 2 files"):
        list_folder(tmp_path, 2)
    with pytest.raises(FileMissing):
        list_folder(tmp_path / "d")
    with pytest.raises(FileFault):
        list_folder(tmp_path / "a")


def test_names_are_shown_on_one_line() -> None:
    assert display_name("/a/b.json") == "b.json"
    assert display_name("/a/b/") == "b"
    assert display_name("/") == "/"
    assert display_name("a\nb\u202e\udcff") == "a\\nb\\u202e\\udcff"
    assert printable("x" * 200) == "x" * 120 + "…"


def test_a_fault_is_one_line_whatever_stands_in_the_file() -> None:
    fault = FileFault(
        "a\n", "{file}: {where} is {value} of {count}.", where="\u202e", value="x\0y", count=1_000
    )
    assert str(fault) == "a\\n: \\u202e is x\\x00y of 1,000."
    assert fault.message.text == str(fault)
    assert (fault.file, fault.where) == ("a\n", "\u202e")


def test_a_report_cancels() -> None:
    report(None, 1, 2)
    seen = []

    def progress(done: int, total: int) -> bool:
        seen.append((done, total))
        return done < 2

    report(progress, 1, 2)
    with pytest.raises(Cancelled):
        report(progress, 2, 2)
    assert seen == [(1, 2), (2, 2)]
