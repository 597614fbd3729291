"""From process start to the first picture, and what the process holds then, over a bare window's own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5

_BARE = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMainWindow
from tests.benchmarks.starting import report

class Window(QMainWindow):
    def paintEvent(self, event):
        super().paintEvent(event)
        QTimer.singleShot(0, painted)

def painted():
    report()
    app.quit()

app = QApplication(sys.argv)
window = Window()
window.resize(1280, 800)
window.show()
app.exec()
"""


_MEMGUI = """
import sys
from importlib.machinery import PathFinder
from tests.benchmarks.starting import report

class Watch:
    # Puts itself into the donut's painting when the program loads it, and changes nothing of how it starts.
    def find_spec(self, name, path, target=None):
        if name != "memgui.gui.donut.widget":
            return None
        sys.meta_path.remove(self)
        found = PathFinder.find_spec(name, path)
        load = found.loader.exec_module
        def exec_module(module):
            load(module)
            watch(module.Donut)
        found.loader.exec_module = exec_module
        return found

def watch(Donut):
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication
    paint = Donut.paintEvent

    def first_paint(self, event):
        paint(self, event)
        Donut.paintEvent = paint
        QTimer.singleShot(0, painted)

    def painted():
        report()
        QApplication.closeAllWindows()

    Donut.paintEvent = first_paint

sys.meta_path.insert(0, Watch())
from memgui.cli import main
raise SystemExit(main([]))
"""


_FURNISHED = """
import sys, time
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from memgui.gui.main_window import MainWindow
from tests.benchmarks.starting import FURNISHED_MS

class Beat:
    # A timer that is due at every turn of the loop: what lies between two is the longest anybody waits.
    def __init__(self):
        self.last, self.longest = time.thread_time(), 0.0
        self.timer = QTimer()
        self.timer.timeout.connect(self.turn)
        self.timer.start(0)
        QTimer.singleShot(FURNISHED_MS, self.end)

    def turn(self):
        now = time.thread_time()
        self.longest, self.last = max(self.longest, now - self.last), now

    def end(self):
        print(1000 * self.longest, flush=True)
        QApplication.closeAllWindows()

paint = MainWindow.paintEvent

def first_paint(self, event):
    paint(self, event)
    MainWindow.paintEvent = paint
    QTimer.singleShot(0, lambda: setattr(self, "beat", Beat()))

MainWindow.paintEvent = first_paint
from memgui.cli import main
raise SystemExit(main([]))
"""

FURNISHED_MS = 1500
"""After the first picture all stands, the first questions are answered, and more is read ahead."""


def report() -> None:
    """Print, in the child, when its first picture stood and the bytes it holds then."""
    print(time.monotonic(), resident_bytes(), flush=True)


def resident_bytes() -> int:
    """Resident memory of this process; the most it ever had where the system tells no more."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text("ascii").splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


_SCREEN = {"name": "screen", "x": 0, "y": 0, "width": 1920, "height": 1080}
_SCREEN |= {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}


def environment(folder: str) -> dict[str, str]:
    """A home of its own, a screen that is not there but has room for 1280x800 (Qt's own has 800x800, into
    which a window that was open before is squeezed), and compiled modules as an installed program has them.
    """
    screen = Path(folder, "screen.json")
    screen.write_text(json.dumps({"screens": [_SCREEN]}), encoding="ascii")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        "QT_QPA_PLATFORM": f"offscreen:configfile={screen}",
        "MEMGUI_HOME": f"{folder}/home",
        "PYTHONPYCACHEPREFIX": f"{folder}/compiled",
    }


def started(code: str, folder: str) -> tuple[float, int]:
    """Seconds from the start of a process to its first picture, and its resident bytes then."""
    start = time.monotonic()
    painted, held = _printed(code, folder).split()
    return float(painted) - start, int(held)


def _printed(code: str, folder: str) -> str:
    """The first line that a program prints."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if ran.returncode != 0 or not ran.stdout.split():
        raise RuntimeError(ran.stderr or f"no picture came; exit status {ran.returncode}")
    return ran.stdout.splitlines()[0]


def starting(rounds: int = ROUNDS) -> dict[str, float]:
    """``start_ratio`` and ``memory_ratio``: memgui over a bare window, turn by turn in the same run.

    ``start_block_ms``: the longest that the event loop then works without a turn (CPU of its thread).
    """
    bare, ours = [], []
    with tempfile.TemporaryDirectory(prefix="memgui-benchmark-") as folder:
        for code in (_BARE, _MEMGUI):
            started(code, folder)
        for _ in range(rounds):
            bare.append(started(_BARE, folder))
            ours.append(started(_MEMGUI, folder))
        _printed(_FURNISHED, folder)  # compiles what an installed program has compiled
        block = float(_printed(_FURNISHED, folder))
    bare_seconds = statistics.median(seconds for seconds, _ in bare)
    our_seconds = statistics.median(seconds for seconds, _ in ours)
    bare_held = statistics.median(held for _, held in bare)
    our_held = statistics.median(held for _, held in ours)
    return {
        "start_seconds": our_seconds,
        "start_ratio": our_seconds / bare_seconds,
        "memory_mib": our_held / 2**20,
        "memory_ratio": our_held / bare_held,
        "start_block_ms": block,
    }
