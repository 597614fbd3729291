"""Kills memgui's writers at random moments and looks at what is left.

    python -m tests.presets.kill --count 1000

Each round a process saves presets, settings and the session over and over and is killed (SIGKILL) after a
random while.  Then: every file is the old one or the new one, complete; after the next start there is
nothing else in the folders.  One JSON object is printed; the exit status is 1 where anything was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec

from memgui.presets.entries import State
from memgui.presets.paths import AppPaths
from memgui.presets.session import Session, SessionKeeper
from memgui.presets.settings import Settings, SettingsStore
from memgui.presets.store import PresetStore
from memgui.spec import Scenario, get, replace
from tests.presets.conftest import SCENARIO

LONGEST_S = 0.03
PATH = "training.micro_batch_size"


def generation(number: int) -> tuple[Scenario, str]:
    """What is saved in the ``number``-th turn; files of very different sizes follow each other."""
    return replace(SCENARIO, PATH, number), "x" * (number % 3 * 20_000)


def save_for_ever(paths: AppPaths, first: int, told: int) -> None:
    """Save one turn after another; ``told`` (a pipe) gets each turn's number once it is saved."""
    store, settings, keeper = PresetStore(paths), SettingsStore(paths.settings), SessionKeeper(paths.sessions)
    keeper.start()
    settings.load()
    entry = next(entry for entry in store.entries() if entry.name == "Kept")
    for number in range(first, sys.maxsize):
        scenario, notes = generation(number)
        entry = store.update(entry, content=scenario, notes=notes)
        settings.save(Settings(recent_files=(str(number),), folder=notes[:4000]))
        keeper.write(Session(scenario=scenario, name=str(number)))
        passing = store.create("Passing", scenario, notes)
        store.restore(store.delete(passing))
        store.update(store.entries()[-1], name="Passed")
        store.delete(store.entries()[-1])
        os.write(told, number.to_bytes(8, "big"))


def run_and_kill(paths: AppPaths, first: int, seconds: float) -> int:
    """The last turn that was saved whole, as far as the process could still say; 0 where it could not."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            save_for_ever(paths, first, writing)
        finally:
            os._exit(3)  # it ends by itself only where something failed
    os.close(writing)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise RuntimeError("the writer ended by itself")
    return int.from_bytes(said[-8:], "big")


def files(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir() if item.is_file()}


class Found(NamedTuple):
    """The turns found in the preset, the settings and the session."""

    preset: int
    settings: int
    session: int


def look(paths: AppPaths, before: Found, last: int, counts: Counter[str]) -> Found:
    """Judge what is left, given what was there before and the last turn known to be saved whole."""
    counts["temporary_files"] += sum(name.startswith(".memgui-") for name in files(paths.presets))
    store, settings, keeper = PresetStore(paths), SettingsStore(paths.settings), SessionKeeper(paths.sessions)
    found, kept = store.entries(), 0
    told = store.start()
    assert not told, told
    assert all(entry.state is State.OK for entry in found), found
    assert {entry.name for entry in found} <= {"Kept", "Passing", "Passed"}, found
    assert files(paths.presets) == {entry.path.name for entry in found}, files(paths.presets)
    for entry in found:
        preset = store.load(entry).preset
        assert isinstance(preset.content, Scenario)
        number = int(get(preset.content, PATH))
        assert (preset.content, preset.notes) == generation(number)
        if entry.name == "Kept":
            old = max(last, before.preset)
            assert number in (old, old + 1), (number, old)
            counts["new" if number > old else "old"] += 1
            kept = number
        else:
            store.delete(entry)
    held, issues = settings.load()
    assert issues == ()
    in_settings = int(held.recent_files[0]) if held.recent_files else 0
    assert max(last, before.settings) <= in_settings <= kept
    recovery = keeper.start()
    assert recovery.issues == ()
    in_session = int(recovery.session.name) if recovery.session else 0
    assert max(last, before.session) <= in_session <= kept
    assert recovery.session is None or recovery.session.scenario == generation(in_session)[0]
    keeper.close(recovery.session)
    assert files(paths.config) == {"settings.json"} or not held.recent_files, files(paths.config)
    assert len(files(paths.sessions)) == int(recovery.session is not None), files(paths.sessions)
    for trashed in store.trash.glob("*") if store.trash.exists() else ():
        trashed.unlink()
    return Found(kept, in_settings, in_session)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.presets.kill", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many processes are killed")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(arguments)
    seed = random.randrange(2**32) if options.seed is None else options.seed
    chance = random.Random(seed)
    counts: Counter[str] = Counter(old=0, new=0, temporary_files=0)
    lost: list[str] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        paths = AppPaths.default(home=Path(folder))
        PresetStore(paths).create("Kept", *generation(1))
        found = Found(1, 0, 0)
        for round_number in range(options.count):
            try:
                last = run_and_kill(paths, found.preset + 1, chance.uniform(0, LONGEST_S))
                found = look(paths, found, last, counts)
            except (AssertionError, RuntimeError, msgspec.MsgspecError) as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                lost.append(f"round {round_number}: {type(error).__name__} {error}: {where.line}"[:500])
                break
    report = {
        "kills": sum((counts["old"], counts["new"])),
        **counts,
        "turns": found.preset,
        "lost": lost,
        "seed": seed,
        "seconds": round(time.monotonic() - started, 1),
    }
    print(json.dumps(report))
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
