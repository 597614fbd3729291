"""Several processes at one folder, and disks that fail under it: told, and nothing lost."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memgui.files.bounded import FileFault
from memgui.presets.paths import AppPaths
from memgui.presets.store import PresetChanged, PresetStore
from memgui.spec import Scenario, get
from tests.presets.conftest import MODEL, SCENARIO

BATCH = "training.micro_batch_size"


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def together(processes: list[subprocess.Popen[str]]) -> list[str]:
    """Let all of them go at once; what each printed."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    answers = [""] * len(processes)

    def wait(number: int) -> None:
        answers[number], errors = processes[number].communicate("go\n", timeout=120)
        assert errors == ""

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(len(processes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.returncode for process in processes] == [0] * len(processes)
    return answers


def test_a_fiftieth_of_the_kills() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.presets.kill", "--count", "20"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert (report["kills"], report["lost"]) == (20, [])


COUNTING = """
import sys
from pathlib import Path
from memgui.presets.paths import AppPaths
from memgui.presets.store import PresetChanged, PresetStore
from memgui.spec import get, replace
path = "training.micro_batch_size"
store = PresetStore(AppPaths.default(home=Path(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
retries = 0
for _ in range(25):
    while True:
        loaded = store.load(store.entries()[0])
        more = replace(loaded.preset.content, path, get(loaded.preset.content, path) + 1)
        try:
            store.update(loaded.entry, content=more)
            break
        except PresetChanged:
            retries += 1
print(retries)
"""


def test_two_processes_that_save_one_preset_lose_no_turn(store: PresetStore, paths: AppPaths) -> None:
    store.create("Counter", SCENARIO)
    together([start(COUNTING, paths.config.parent) for _ in range(3)])
    content = store.load(store.entries()[0]).preset.content
    assert isinstance(content, Scenario)
    assert get(content, BATCH) == get(SCENARIO, BATCH) + 75


CREATING = """
import sys
from pathlib import Path
from memgui.presets.paths import AppPaths
from memgui.presets.store import NameTaken, PresetStore
from tests.presets.conftest import SCENARIO
store = PresetStore(AppPaths.default(home=Path(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
won = 0
for number in range(30):
    try:
        store.create(f"Preset {number}", SCENARIO, sys.argv[2])
        won += 1
    except NameTaken:
        pass
print(won)
"""


def test_two_processes_that_save_under_one_name_make_one_preset(store: PresetStore, paths: AppPaths) -> None:
    won = together([start(CREATING, paths.config.parent, number) for number in range(2)])
    assert sum(map(int, won)) == 30
    assert sorted(entry.name for entry in store.entries()) == sorted(f"Preset {n}" for n in range(30))
    assert all(path.suffix == ".json" for path in store.folder.iterdir())


LIMITED = """
import resource, sys
from pathlib import Path
from memgui.files.bounded import FileFault
from memgui.presets.paths import AppPaths
from memgui.presets.session import Session, SessionKeeper
from memgui.presets.settings import Settings, SettingsStore
from memgui.presets.store import PresetStore
from tests.presets.conftest import SCENARIO
paths = AppPaths.default(home=Path(sys.argv[1]))
store = PresetStore(paths)
keeper = SessionKeeper(paths.sessions)
keeper.start()
(entry,) = store.entries()
print("ready", flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
for action in (
    lambda: store.create("New", SCENARIO),
    lambda: store.update(entry, notes="x"),
    lambda: store.duplicate(entry),
    lambda: SettingsStore(paths.settings).save(Settings(folder="/x" * 1000)),
    lambda: keeper.write(Session(scenario=SCENARIO)),
    lambda: store.export([entry], paths.data),
):
    try:
        action()
    except FileFault as fault:
        print("larger than files may be there" in str(fault))
deleted = store.delete(entry)
print(store.restore(deleted) == entry)
"""


def test_real_limit_of_the_file_size_is_told_and_nothing_is_lost(store: PresetStore, paths: AppPaths) -> None:
    entry = store.create("Kept", SCENARIO)
    (said,) = together([start(LIMITED, paths.config.parent)])
    assert said.split() == ["True"] * 7
    assert store.entries() == (entry,)
    left = sorted(path.name for path in paths.config.parent.rglob("*") if path.is_file())
    assert left == sorted([entry.path.name, *(name for name in left if name.endswith(".lock"))])


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "file system is read-only")]
)
def test_disk_that_takes_nothing(
    store: PresetStore, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    entry = store.create("Kept", SCENARIO)
    data = entry.path.read_bytes()
    real = os.open

    def reading_only(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(number, os.strerror(number))
        return real(path, flags, mode)

    def nothing(*args: object, **more: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", reading_only)
        for name in ("link", "rename", "replace", "unlink", "mkdir", "makedirs"):
            patch.setattr(os, name, nothing)
        assert store.start() == ()
        for change in (
            lambda: store.create("New", MODEL),
            lambda: store.update(entry, content=MODEL),
            lambda: store.update(entry, name="Renamed"),
            lambda: store.duplicate(entry),
            lambda: store.delete(entry),
        ):
            with pytest.raises(FileFault, match=said):
                change()
        assert store.load(entry).preset.content == SCENARIO
    assert store.entries() == (entry,)
    assert entry.path.read_bytes() == data
    assert [path.name for path in store.folder.iterdir()] == [entry.path.name]


def test_damaged_preset_on_a_disk_that_takes_nothing_is_told(
    store: PresetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("Kept", SCENARIO)
    bad = store.folder / "bad.memgui.json"
    bad.write_bytes(b"{")

    def nothing(*args: object, **more: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(os, "makedirs", nothing)
        (told,) = store.start()
    assert "read-only" in told.text
    assert bad.read_bytes() == b"{"


def test_folder_deleted_while_running(store: PresetStore) -> None:
    entry = store.create("Kept", SCENARIO)
    loaded = store.load(entry)
    trashed = store.delete(store.create("Trashed", MODEL))
    shutil.rmtree(store.folder)
    assert store.entries() == ()
    with pytest.raises(FileFault, match="not there"):
        store.load(entry)
    with pytest.raises(PresetChanged, match="deleted by another program"):
        store.update(loaded.entry, content=loaded.preset.content)
    again = store.update(loaded.entry, content=loaded.preset.content, overwrite=True)
    assert store.load(again).preset.content == SCENARIO
    store.create("New", MODEL)
    store.restore(trashed)
    assert [item.name for item in store.entries()] == ["Kept", "New", "Trashed"]


def test_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = PresetStore(AppPaths.default(home=tmp_path / "file"))
    assert store.start() == ()
    assert store.entries() == ()
    with pytest.raises(FileFault, match="is not a folder"):
        store.create("A", SCENARIO)
