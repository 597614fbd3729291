import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication

from memgui import app
from memgui.app import load_translators
from memgui.document.view_settings import View
from memgui.gui.numbers import Numbers
from memgui.gui.texts import issue_text, label
from memgui.spec import Issue, ScenarioError, model, scenario
from memgui.spec.values import parse
from tests.linguist import lrelease, marked

ROOT = Path(__file__).parent.parent


def test_check_runs_an_edit_through_the_window_and_touches_no_home(home: Path) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")
    }
    run = subprocess.run(
        [sys.executable, "-c", "import sys; from memgui.app import check; sys.exit(check())"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "The window works." in run.stdout
    assert "PyTorch" in run.stdout
    assert sorted(path.name for path in home.iterdir()) == ["runtime"]


def test_the_start_loads_nothing_that_can_wait() -> None:
    """What is imported before the first picture; each of these costs a start that does not need it."""
    code = "import sys, json, memgui.app; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    modules = json.loads(run.stdout)
    waiting = (
        "pyqtgraph",
        "numpy",
        "hashlib",
        "logging.handlers",
        "memgui.document.answers",
        "memgui.document.pins",
        "memgui.estimator.engines.vllm",
        "memgui.estimator.methods",
        "memgui.estimator.modules.litgpt",
        "memgui.estimator.modules.mamba2",
        "memgui.importers",
        "memgui.gui.compare",
        "memgui.gui.help",
        "memgui.gui.model_picker",
        "memgui.gui.presets_dock",
        "memgui.gui.search_popup",
        "memgui.gui.ways",
        "memgui.gui.why.page",
        "memgui.planning.ways",
        "memgui.presets.logs",
    )
    assert [name for name in waiting if name in modules] == []


_FURNISHING = """
import json, sys, tempfile, threading
from importlib.machinery import PathFinder
from pathlib import Path
from memgui.app import Program
from memgui.presets.paths import AppPaths
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

threads = {}
read_at = {}
turns = []

class Watch:
    def find_spec(self, name, path, target=None):
        if name.startswith("memgui.gui."):
            threads[name] = threading.current_thread() is threading.main_thread()
            read_at.setdefault(len(turns), []).append(name)
        return None

sys.meta_path.insert(0, Watch())
app = QApplication(["memgui"])
program = Program(app, AppPaths.default(Path(tempfile.mkdtemp())))
timer = QTimer()
timer.timeout.connect(lambda: turns.append(True))
program.ready.connect(app.quit)
program.window.show()
timer.start(0)
QTimer.singleShot(20000, app.quit)
app.exec()
form = program.interior.form
print(json.dumps({
    "read elsewhere": [name for name, here in threads.items() if not here],
    "read": sorted(threads),
    "at once": max(map(len, read_at.values())),
    "turns": len(turns),
    "rows": sum(not row.isHidden() for row in form.rows()),
    "tab": program.interior.tabs.page("why") is not None,
    "presets": not program.interior.presets.isHidden(),
}))
program.close()
"""


def test_the_window_is_furnished_piece_by_piece(home: Path) -> None:
    """Between two pieces the loop has its turn, while modules are read and when something is made.

    None is read in a thread: PySide6's classes are not made twice at a time.
    """
    run = subprocess.run(
        [sys.executable, "-c", _FURNISHING],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["read elsewhere"] == []
    assert told["at once"] < len(told["read"]) / 2
    assert {"memgui.gui.interior", "memgui.gui.form.form", "memgui.gui.why.page"} <= set(told["read"])
    assert told["turns"] >= 24
    assert told["rows"] > 10
    assert told["tab"]
    assert told["presets"]


def test_the_annotations_of_a_scenario_are_not_postponed() -> None:
    """msgspec compiles each that is, when it reads the first scenario: 3 ms of a start."""
    postponed = [
        f"{kind.__name__}.{name}"
        for kind in vars(scenario).values()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        if kind.__module__ in (scenario.__name__, model.__name__)
        for name, annotation in kind.__annotations__.items()
        if isinstance(annotation, str)
    ]
    assert postponed == []


def test_what_has_no_qt_is_loaded_before_qt() -> None:
    """PySide6 reads the source of each module that is imported after it, and keeps it."""
    code = """
import json, os, sys
class Watch:
    def find_spec(self, name, path, target=None):
        if name == "PySide6":
            print(json.dumps(sorted(sys.modules)), flush=True)
            os._exit(0)
sys.meta_path.insert(0, Watch())
from memgui.cli import main
main([])
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    before = {"memgui.estimator.training", "memgui.presets.session", "memgui.spec.validate"}
    assert before <= set(json.loads(run.stdout))


@pytest.mark.parametrize("language", ["", "en", "xx_YY", "de_DE", "ar_EG"])
def test_a_language_without_translation_leaves_english(qapp: QApplication, language: str) -> None:
    QLocale.setDefault(QLocale("de_DE"))  # as on a German desktop
    assert load_translators(qapp, language) == []  # nor Qt's own: an Arabic one turns the window round
    assert Numbers.of(View()).sentence(84_642_685_677) == "78.8 GiB"  # as the words around it, and the boxes


def test_another_language_is_a_file_and_no_change_of_code(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "translations").mkdir()
    lrelease(tmp_path, "translations/memgui_zh_CN.qm")
    monkeypatch.setattr("memgui._resources.root", lambda: tmp_path)
    loaded = load_translators(qapp, "zh_CN")
    try:
        assert len(loaded) == 2  # Qt's own texts too
        assert QLocale().language() is QLocale.Language.Chinese
        assert label("training.micro_batch_size") == marked("Micro batch")
        assert issue_text(parse_issue("training.micro_batch_size", "0")).startswith("⟦⟦")
        assert Numbers.of(View()).sentence(84_642_685_677) == "78.8 GiB"
    finally:
        for translator in loaded:
            qapp.removeTranslator(translator)


def parse_issue(path: str, text: str) -> Issue:
    with pytest.raises(ScenarioError) as refused:
        parse(path, text)
    return refused.value.issue


def test_qt_messages_go_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    from PySide6.QtCore import QMessageLogContext, QtMsgType

    app._qt_message(QtMsgType.QtCriticalMsg, QMessageLogContext(), "broken")
    app._qt_message(QtMsgType.QtWarningMsg, QMessageLogContext(), "This plugin does not support raise()")
    assert [(record.name, record.levelname) for record in caplog.records if record.levelno > 10] == [
        ("qt", "ERROR")
    ]
