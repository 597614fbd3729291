"""A file is written whole or not at all, whatever the disk says."""

import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memgui.files import atomic
from memgui.files.atomic import AlreadyThere, move_into, sweep, write_atomic
from memgui.files.bounded import FileFault
from memgui.files.held import hold, in_turn, is_held


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_content_is_replaced_and_nothing_else_stays(target: Path) -> None:
    write_atomic(target, b"new")
    assert target.read_bytes() == b"new"
    write_atomic(target.with_name("b.json"), b"")
    assert names(target.parent) == ["a.json", "b.json"]


def test_mode_of_the_old_file_stays_and_that_of_a_new_one_is_the_usual(target: Path) -> None:
    target.chmod(0o640)
    write_atomic(target, b"new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    fresh = target.with_name("fresh")
    write_atomic(fresh, b"")
    usual = target.with_name("usual")
    usual.touch()
    assert fresh.stat().st_mode == usual.stat().st_mode


def test_symlink_stays_and_what_it_leads_to_is_written(target: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.json"
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_new_file_replaces_nothing(target: Path) -> None:
    with pytest.raises(AlreadyThere, match=r"a\.json is there already"):
        write_atomic(target, b"new", new=True)
    assert target.read_bytes() == b"old"
    write_atomic(target.with_name("b"), b"new", new=True)
    assert names(target.parent) == ["a.json", "b"]


def test_new_file_that_appears_while_it_is_written(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = target.with_name("b")
    real = os.fsync

    def meanwhile(descriptor: int) -> None:
        other.write_bytes(b"theirs")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(AlreadyThere):
        write_atomic(other, b"new", new=True)
    assert other.read_bytes() == b"theirs"
    assert names(target.parent) == ["a.json", "b"]


def test_new_file_where_there_are_no_hard_links(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*args: object, **more: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    write_atomic(target.with_name("b"), b"new", new=True)
    assert target.with_name("b").read_bytes() == b"new"
    with pytest.raises(FileExistsError):
        atomic._rename_new(str(target.with_name("b")), str(target))
    assert names(target.parent) == ["a.json", "b"]


@pytest.mark.parametrize("function", ["open", "fsync", "replace", "fchmod"])
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "your share of the disk is used up"),
        (errno.EROFS, "that file system is read-only"),
        (errno.EACCES, "permission denied"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_fault_of_the_disk_is_told_and_the_old_file_stays(
    target: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int, said: str
) -> None:
    calls: list[object] = []

    def failing(*args: object, **more: object) -> None:
        calls.append(args)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, function, failing)
        if function == "fchmod":  # a file system without modes is no reason not to save
            write_atomic(target, b"new")
        else:
            with pytest.raises(FileFault, match=said) as told:
                write_atomic(target, b"new")
            assert str(told.value).startswith(f"a.json cannot be written in {target.parent}")
    assert calls
    assert target.read_bytes() == (b"new" if function == "fchmod" else b"old")
    assert names(target.parent) == ["a.json"]


def test_interruption_leaves_nothing(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(target, b"new")
    assert names(target.parent) == ["a.json"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("gone/a.json", "the folder .*gone is gone"),
        ("a.json/b.json", "something on that path is not a folder"),
        ("x" * 300, "the name is longer than the file system allows"),
        ("folder", "a folder of that name is there"),
        ("nul\0", "cannot be written"),
    ],
)
def test_place_where_no_file_can_be(target: Path, path: str, said: str) -> None:
    (target.parent / "folder").mkdir()
    with pytest.raises(FileFault, match=said):
        write_atomic(f"{target.parent}/{path}", b"new")
    assert names(target.parent) == ["a.json", "folder"]


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    """Nor is a device, which the owner of the machine could: /dev/null would be a report from then on."""
    if sys.platform == "win32":
        pytest.skip("Windows has no FIFOs in folders")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for new in (False, True):
        with pytest.raises(FileFault, match="pipe is a pipe, socket or device"):
            write_atomic(pipe, b"new", new=new)
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


def test_file_that_nobody_may_write_is_left_alone(target: Path) -> None:
    target.chmod(0o444)
    with pytest.raises(FileFault, match="read-only for you"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"


LIMITED = """
import resource, sys
from memgui.files.atomic import write_atomic
from memgui.files.bounded import FileFault
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
try:
    write_atomic(sys.argv[1], b"x" * 6000)
except FileFault as fault:
    print(fault)
write_atomic(sys.argv[1] + ".small", b"x" * 4000)
"""


def test_real_limit_of_the_file_size(target: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, target], capture_output=True, text=True, check=True, timeout=60
    )
    assert "a.json cannot be written" in run.stdout
    assert "larger than files may be there" in run.stdout
    assert target.read_bytes() == b"old"
    assert names(target.parent) == ["a.json", "a.json.small"]


def test_real_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small file system can be made here: {error}")
    if mounted.returncode:
        pytest.skip(f"no small file system can be made here: {mounted.stderr.strip()}")
    try:
        path = disk / "a.json"
        write_atomic(path, b"old" * 1000)
        with pytest.raises(FileFault, match="the disk is full"):
            write_atomic(path, b"new" * 30_000)
        assert path.read_bytes() == b"old" * 1000
        assert names(disk) == ["a.json"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_sweep_takes_only_our_dead(target: Path) -> None:
    folder = target.parent
    dead, alive = folder / f".memgui-{'0' * 16}.tmp", folder / f".memgui-{'1' * 16}.tmp"
    strangers = [
        ".memgui-1.tmp",
        ".memgui-0123456789abcdef.tmp.json",
        "x.tmp",
        ".memgui-0123456789ABCDEF.tmp",
    ]
    for path in (dead, alive, *(folder / name for name in strangers)):
        path.touch()
    with alive.open("r+b") as file:
        assert hold(file.fileno())
        assert is_held(alive)
        assert sweep(folder) == 1
        assert names(folder) == sorted([target.name, alive.name, *strangers])
    assert sweep(folder) == 1
    assert sweep(folder / "missing") == 0


def test_writer_whose_file_was_swept_writes_again(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between making and holding its file a writer looks dead to a sweep."""
    swept: list[int] = []

    def late(descriptor: int) -> bool:
        if len(swept) < 2:
            swept.append(sweep(target.parent))
        return hold(descriptor)

    monkeypatch.setattr("memgui.files.atomic.hold", late)
    write_atomic(target, b"new")
    assert swept == [1, 1]
    assert target.read_bytes() == b"new"
    assert names(target.parent) == ["a.json"]


def test_where_files_cannot_be_held_young_ones_stay(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*args: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    left = target.parent / f".memgui-{'0' * 16}.tmp"
    left.touch()
    assert sweep(target.parent) == 0
    os.utime(left, (time.time() - 7200,) * 2)
    assert sweep(target.parent) == 1
    write_atomic(target, b"new")
    assert target.read_bytes() == b"new"


def test_move_numbers_what_is_taken(target: Path, tmp_path: Path) -> None:
    places = []
    for number in range(3):
        target.write_text(str(number))
        places.append(move_into(target, tmp_path / "aside", "a.memgui.json").name)
    assert places == ["a.memgui.json", "a-2.memgui.json", "a-3.memgui.json"]
    assert [path.read_text() for path in sorted((tmp_path / "aside").iterdir())] == ["1", "2", "0"]
    assert not target.exists()
    with pytest.raises(FileFault, match="gone"):
        move_into(target, tmp_path / "aside", "b")


def test_turns_are_taken_but_nobody_waits_for_ever(tmp_path: Path) -> None:
    with in_turn(tmp_path):
        started = time.monotonic()
        with in_turn(tmp_path, patience_s=0.1):
            waited = time.monotonic() - started
    assert 0.1 <= waited < 5
    started = time.monotonic()
    with in_turn(tmp_path, patience_s=5), in_turn(tmp_path / "missing", patience_s=5):
        pass
    assert time.monotonic() - started < 4
