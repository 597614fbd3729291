"""What is open comes back: after an end, after a crash, and beside other running memguis."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from memgui.files.bounded import FileFault
from memgui.presets.session import MAX_KEPT, Pinned, Recovery, Session, SessionKeeper
from memgui.spec import replace
from tests.presets.conftest import MODEL, SCENARIO

SESSION = Session(
    scenario=SCENARIO,
    origin=MODEL,
    name="Mine",
    preset="user/x",
    digest="d",
    pinned=(Pinned("before", SCENARIO),),
    asked={"training.sequence_length": 4096, "inference.quantised_parts": ("mlp",)},
)
OTHER = msgspec.structs.replace(SESSION, name="Other")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "sessions"


def crash(keeper: SessionKeeper) -> None:
    """What is left of a process that was killed: its files, but no longer held."""
    assert keeper._lock is not None
    keeper._lock.close()


def look(folder: Path) -> Recovery:
    """What a start would find."""
    keeper = SessionKeeper(folder)
    found = keeper.start()
    keeper.close()
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.rglob("*") if path.is_file())


def test_first_start_finds_nothing(folder: Path) -> None:
    keeper = SessionKeeper(folder)
    assert keeper.start() == Recovery()
    keeper.close()
    assert names(folder) == []


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        (
            {"training.sequence_length": "x", "inference.prompt_tokens": 7, "no.field": 1},
            {"inference.prompt_tokens": 7},
        ),
        ([], {}),
        ({"training": 1, "training.lora": {}}, {}),
    ],
)
def test_what_was_asked_is_read_as_far_as_fields_can_hold_it(
    folder: Path, stated: object, read: object
) -> None:
    keeper = SessionKeeper(folder)
    keeper.start()
    keeper.close(SESSION)
    (file,) = folder.glob("*.json")
    content = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**content, "asked": stated}), "utf-8")
    found = look(folder)
    assert found.issues == ()
    assert found.session is not None
    assert found.session == msgspec.structs.replace(SESSION, asked=read)


def test_the_last_picture_is_no_loss(folder: Path) -> None:
    wrong = replace(SCENARIO, "training.micro_batch_size", 0)
    keeper = SessionKeeper(folder)
    keeper.start()
    keeper.close(msgspec.structs.replace(SESSION, scenario=wrong, computed=SCENARIO))
    (file,) = folder.glob("*.json")
    content = file.read_text("utf-8")
    found = look(folder).session
    assert found is not None
    assert (found.scenario, found.computed) == (wrong, SCENARIO)
    file.write_text(json.dumps({**json.loads(content), "computed": {"model": 3}}), "utf-8")
    found = look(folder).session
    assert found is not None
    assert (found.scenario, found.computed) == (wrong, None)


def test_session_comes_back_after_a_proper_end(folder: Path) -> None:
    first = SessionKeeper(folder)
    first.start()
    first.write(OTHER)
    first.close(SESSION)
    assert names(folder) == [".json"]
    second = SessionKeeper(folder)
    assert second.start() == Recovery(session=SESSION)
    second.close(SESSION)
    assert names(folder) == [".json"]


def test_session_comes_back_after_a_crash_and_says_so(folder: Path) -> None:
    first = SessionKeeper(folder)
    first.start()
    first.write(SESSION)
    crash(first)
    second = SessionKeeper(folder)
    assert second.start() == Recovery(session=SESSION, crashed=True)
    crash(second)  # before it wrote anything itself
    third = SessionKeeper(folder)
    assert third.start() == Recovery(session=SESSION, crashed=True)
    third.close(SESSION)
    assert look(folder) == Recovery(session=SESSION)


def test_value_out_of_range_comes_back_as_it_was(folder: Path) -> None:
    broken = msgspec.structs.replace(
        SESSION, scenario=replace(replace(SCENARIO, "training.micro_batch_size", 0), "task", "juggling")
    )
    keeper = SessionKeeper(folder)
    keeper.start()
    keeper.close(broken)
    assert look(folder) == Recovery(session=broken)


def test_session_that_crashes_at_every_start_is_held_back_and_kept(folder: Path) -> None:
    keeper = SessionKeeper(folder)
    keeper.start()
    keeper.close(SESSION)
    for _ in range(2):
        keeper = SessionKeeper(folder)
        assert keeper.start().session == SESSION
        crash(keeper)
    keeper = SessionKeeper(folder)
    assert keeper.start() == Recovery(crashed=True, held_back=SESSION)
    (kept,) = (folder / "recovered").iterdir()
    assert json.loads(kept.read_text())["name"] == "Mine"
    keeper.close(OTHER)
    assert look(folder) == Recovery(session=OTHER)


def test_session_that_lived_long_enough_to_be_written_is_not_held_back(folder: Path) -> None:
    for _ in range(5):
        keeper = SessionKeeper(folder)
        keeper.start()
        keeper.write(SESSION)
        crash(keeper)
    assert look(folder) == Recovery(session=SESSION, crashed=True)


def test_running_memguis_leave_each_other_alone(folder: Path) -> None:
    first, second = SessionKeeper(folder), SessionKeeper(folder)
    first.start()
    first.write(SESSION)
    assert second.start() == Recovery()
    second.write(OTHER)
    second.close(OTHER)
    third = SessionKeeper(folder)
    assert third.start() == Recovery(session=OTHER)
    first.write(SESSION)
    third.close()
    first.close(SESSION)
    assert look(folder) == Recovery(session=SESSION)


def test_all_that_crashed_are_offered(folder: Path) -> None:
    keepers = [SessionKeeper(folder) for _ in range(3)]
    for number, keeper in enumerate(keepers):
        keeper.start()
        keeper.write(msgspec.structs.replace(SESSION, name=str(number)))
        os.utime(keeper._path, (number, number))
    for keeper in keepers:
        crash(keeper)
    found = look(folder)
    assert found.session is not None
    assert found.session.name == "2"
    assert [session.name for session in found.others] == ["1", "0"]
    assert len(list((folder / "recovered").iterdir())) == 2


CRASHING = """
import os, sys
from pathlib import Path
from memgui.presets.session import Session, SessionKeeper
from tests.presets.conftest import SCENARIO
keeper = SessionKeeper(Path(sys.argv[1]))
keeper.start()
keeper.write(Session(scenario=SCENARIO, name="killed"))
print("written", flush=True)
sys.stdin.read()
"""


def test_killed_process_is_told_from_a_living_one(folder: Path) -> None:
    command = [sys.executable, "-c", CRASHING, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        keeper = SessionKeeper(folder)
        assert keeper.start() == Recovery()
        keeper.close()
        process.kill()
    found = look(folder)
    assert found.crashed
    assert found.session == Session(scenario=SCENARIO, name="killed")


@pytest.mark.parametrize("data", [b"", b"{}", b"[" * 10_000, b'{"format": "memgui.session", "schema": 99}'])
def test_what_cannot_be_read_is_set_aside(folder: Path, data: bytes) -> None:
    keeper = SessionKeeper(folder)
    keeper.start()
    keeper.close(SESSION)
    bad = folder / f"{'0' * 16}.json"
    bad.write_bytes(data)
    found = look(folder)
    assert found.session == SESSION
    (issue,) = found.issues
    (aside,) = (folder / "quarantine").iterdir()
    assert str(aside) in issue.text
    assert aside.read_bytes() == data


def test_bad_field_costs_that_field_only(folder: Path) -> None:
    keeper = SessionKeeper(folder)
    keeper.start()
    keeper.close(SESSION)
    (path,) = folder.glob("*.json")
    envelope = json.loads(path.read_text())
    envelope["scenario"]["training"]["precision"] = 7
    path.write_text(json.dumps(envelope))
    found = look(folder)
    assert found.session == msgspec.structs.replace(
        SESSION, scenario=replace(SCENARIO, "training.precision", "bf16")
    )
    assert [issue.paths for issue in found.issues] == [("training.precision",)]


def test_where_nothing_can_be_written_memgui_starts_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    keeper = SessionKeeper(tmp_path / "file" / "sessions")
    found = keeper.start()
    assert found.session is None
    (issue,) = found.issues
    assert "sessions cannot be written" in issue.text  # the folder, not the lock in it
    assert "something on that path is not a folder" in issue.text
    with pytest.raises(FileFault):
        keeper.write(SESSION)
    with pytest.raises(FileFault):
        keeper.close(SESSION)
    keeper.close()


def test_full_disk_at_the_start_loses_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = SessionKeeper(folder)
    first.start()
    first.write(SESSION)
    crash(first)

    def full(*args: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        second = SessionKeeper(folder)
        assert second.start().session == SESSION
        crash(second)
    assert look(folder) == Recovery(session=SESSION, crashed=True)


def test_folder_that_was_deleted_while_running_is_made_again(folder: Path) -> None:
    keeper = SessionKeeper(folder)
    keeper.start()
    keeper.write(SESSION)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    keeper.close(OTHER)
    assert look(folder) == Recovery(session=OTHER)


def test_start_among_many_dead_is_quick(folder: Path) -> None:
    keepers: list[SessionKeeper] = []
    for _ in range(20):
        keeper = SessionKeeper(folder)
        keepers.append(keeper)
        keeper.start()
        keeper.write(SESSION)
    for keeper in keepers:
        crash(keeper)
    started = time.monotonic()
    assert len(look(folder).others) == 19
    assert time.monotonic() - started < 5


def test_what_crashed_and_what_cannot_be_read_do_not_pile_up(folder: Path) -> None:
    """Fifty of each stay, the newest; all of them where nobody wrote since."""
    for name in ("recovered", "quarantine"):
        (folder / name / "more").mkdir(parents=True)
        for number in range(MAX_KEPT + 30):
            path = folder / name / f"{number:016x}.json"
            path.write_text("{}")
            os.utime(path, (number, number))
    look(folder)
    for name in ("recovered", "quarantine"):
        kept = sorted(path.name for path in (folder / name).iterdir() if path.is_file())
        assert kept == [f"{number:016x}.json" for number in range(30, MAX_KEPT + 30)]
        assert (folder / name / "more").is_dir()


def test_the_newest_of_what_piles_up_is_what_was_just_set_aside(folder: Path) -> None:
    for number in range(MAX_KEPT + 5):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:016x}.json").write_text("no session")
        look(folder)
    assert len(list((folder / "quarantine").iterdir())) == MAX_KEPT
    assert (folder / "quarantine" / f"{MAX_KEPT + 4:016x}.json").exists()
