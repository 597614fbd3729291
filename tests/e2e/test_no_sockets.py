"""No socket is ever opened: the kernel would end the process."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.no_sockets import SOCKET

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in SOCKET, reason="the filter is Linux's"
)


def run(argument: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.e2e.no_sockets", argument]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_days_work_opens_no_socket(tmp_path: Path) -> None:
    done = run(str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "no socket was opened" in done.stdout


def test_the_filter_bites() -> None:
    assert run("--prove").returncode == -31, "SIGSYS"
