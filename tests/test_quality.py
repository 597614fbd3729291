"""Style and types are part of what a test run answers, so that nobody has to remember them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("tool", ["ruff check", "ruff format --check", "mypy"])
def test_tool_has_nothing_to_say(tool: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *tool.split()], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, f"{tool}:\n{run.stdout}{run.stderr}"
