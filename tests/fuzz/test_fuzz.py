import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.__main__ import write
from tests.fuzz.mutate import File, mutate
from tests.fuzz.targets import ROOT, make_targets

COUNT = 2_000  # a fiftieth of `python -m tests.fuzz --count 100000`


@pytest.mark.parametrize(
    "name", ["config", "safetensors", "index", "gguf", "gguf model", "safetensors model", "part", "preset"]
)
def test_damaged_files_are_read_or_refused_in_a_sentence(name: str) -> None:
    """In a process of its own, whose memory is not that of other tests."""
    command = [sys.executable, "-m", "tests.fuzz", "--count", str(COUNT), "--format", name]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(run.stdout)
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{name}: {COUNT:,} inputs" in run.stdout


def test_every_seed_is_read_whole(tmp_path: Path) -> None:
    for name, target in make_targets(tmp_path).items():
        assert target.seeds, name
        if name == "config":
            continue  # which configs open is for tests/importers/test_hf_config.py to say
        for seed in target.seeds:
            target.read(write(tmp_path / target.file_name, seed))


def test_damage_is_the_same_for_the_same_number() -> None:
    file = File(b'{"a": [1, 2, 3], "b": "text"}' * 3, 100)
    made = [mutate(file, (file,), Random(number), True, False) for number in range(200)]
    assert made == [mutate(file, (file,), Random(number), True, False) for number in range(200)]
    assert len({damaged.start for damaged in made}) > 150
    assert sum(damaged == file for damaged in made) < 10
