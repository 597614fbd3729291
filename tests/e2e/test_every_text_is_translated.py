"""The window in a language that nobody speaks: whatever a person sees or hears is in it, or is a name."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QAccessible, QAccessibleInterface, QGuiApplication, QHelpEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from memgui.app import Program
from memgui.catalog import Catalog
from memgui.document.document import State
from memgui.document.notice import Notice
from memgui.files.bounded import FileFault
from memgui.files.strict_json import parse_object
from memgui.gui.controls.fields import ComboBox
from memgui.gui.crash_dialog import CrashDialog
from memgui.gui.device_items import device_search
from memgui.gui.interior import Interior
from memgui.gui.numbers import Numbers
from memgui.gui.texts import message_text
from memgui.importers.hf_config import import_config
from memgui.presets.codec import Preset, decode, encode
from memgui.presets.paths import AppPaths
from memgui.spec import Message, replace
from memgui.spec.fields import FIELDS
from tests.document.test_library import CONFIG
from tests.e2e.program import started
from tests.linguist import Pseudo, Seen, foreign, lupdate
from tests.presets.conftest import SCENARIO

SERVED = {"task": "inference"}
SPLIT = {"device.count": 8, "parallelism.data": 2, "parallelism.tensor": 4, "parallelism.sharding": "zero3"}
SET_UPS: tuple[dict[str, Any], ...] = (
    {},
    {"training.method": "lora", "training.base_format": "nf4_dq", "device.memory_bytes": 24 * 2**30},
    {"method": "llama_guide"},
    SPLIT,
    {**SERVED, "inference.engine": "vllm", "inference.weight_format": "gptq_int4_g-1"},
    {**SERVED, "inference.engine": "llama.cpp", "inference.weight_format": "q4_k_m"},
    {"parallelism.tensor": 3, "device.count": 4},
)
ALL_TABS = (SET_UPS[0], SET_UPS[4])
LOG = (
    "INFO model weights take 14.99GiB; non_torch_memory takes 0.15GiB; PyTorch activation peak memory takes "
    "1.26GiB; the rest of the memory reserved for KV Cache is 54.80GiB."
)
BROKEN = (
    *("", "[]", "{", "{'a': 1}", '{"a" 1}', '{"a": 1 2}', '{"a": tru}', '{"a": "b', '{"a": "\n"}', "{} {}"),
    *('{"a": NaN}', '{"a": 1, "a": 2}', '{"a": "\\ud800"}', '{"a": "\\x"}', "[" * 99, '{"a": ' + "1" * 50),
)
WRONG: tuple[dict[str, Any], ...] = (
    {"hidden_size": "model"},
    {"hidden_size": None},
    {"num_attention_heads": 7},
    {"num_hidden_layers": 10**9},
    {"tie_word_embeddings": 1},
    {"model_type": []},
    {"num_nextn_predict_layers": 1, "mlp_bias": None},
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    return lupdate(tmp_path_factory.mktemp("lupdate"))


@pytest.fixture
def pseudo(qapp: QApplication, known: dict[str, set[str]]) -> Iterator[Pseudo]:
    made = Pseudo(known)
    qapp.installTranslator(made)
    yield made
    qapp.removeTranslator(made)


@pytest.fixture
def names() -> set[str]:
    """What is called so in every language: models, devices, and values as files write them."""
    catalog = Catalog()
    found = {part for model in catalog.models for part in (model.name, model.family, model.spec.model_type)}
    found |= {device.name for device in catalog.devices}
    found |= {word for field in FIELDS for word in (*field.path.split("."), *field.name.split("_"))}
    found |= {choice.value for field in FIELDS for choice in field.choices}
    return found | {source for model in catalog.models for source in (model.source,) if "@" in source}


class Visit:
    """Somebody who goes through the window and takes down what it says."""

    def __init__(self, program: Program, seen: Seen, qtbot: QtBot) -> None:
        assert program.interior is not None
        self.program, self.seen, self.qtbot = program, seen, qtbot
        self.inside: Interior = program.interior
        program.context.library.told.connect(self.hear)

    def hear(self, notice: Notice) -> None:
        for message in (notice.message, *notice.details):
            self.seen.add(message_text(message), "notice")

    def rest(self) -> None:
        """Wait for what is computed aside."""
        jobs = self.program.context.jobs
        for _ in range(2):
            self.qtbot.wait(20)
            self.qtbot.waitUntil(lambda: not jobs._current, timeout=20_000)

    def set(self, values: dict[str, Any]) -> None:
        scenario = Catalog().first_scenario()
        for path, value in values.items():
            scenario = replace(scenario, path, value)
        self.program.document.load(State(scenario, scenario.model), "x")
        self.program.document.settle()

    def tabs(self, *keys: str) -> None:
        for key in keys or self.inside.tabs.keys:
            self.inside.tabs.show_tab(key)
            self.rest()
            self.seen.look()

    def tips(self, *widgets: QWidget) -> None:
        """Point at places of widgets that say something of each."""
        for widget in widgets:
            for across in (0.1, 0.3, 0.5, 0.7):
                for down in (0.1, 0.3, 0.5, 0.8):
                    at = QPoint(int(widget.width() * across), int(widget.height() * down))
                    QApplication.sendEvent(
                        widget, QHelpEvent(QEvent.Type.ToolTip, at, widget.mapToGlobal(at))
                    )
                    self.seen.add(QToolTip.text(), f"tip over {type(widget).__name__}")
        QToolTip.hideText()


@pytest.fixture
def visit(
    qapp: QApplication, qtbot: QtBot, tmp_path: Path, pseudo: Pseudo, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Visit]:
    with started(qapp, qtbot, AppPaths.default(home=tmp_path / "home")) as program:
        program.window.resize(1400, 900)
        yield Visit(program, Seen(monkeypatch), qtbot)


def test_every_text_of_the_window(visit: Visit, names: set[str]) -> None:
    for section in visit.inside.form.sections.values():
        section.set_open(True)
        section.more.setChecked(True)
    for values in SET_UPS:
        visit.set(values)
        visit.tabs(*(() if values in ALL_TABS else ("why", "timeline", "ways")))
    visit.set({})
    window = visit.program.window
    visit.tips(window.donut, window.verdict, window.legend)
    visit.tabs("timeline")
    visit.tips(*visit.inside.tabs.findChildren(QWidget)[-8:])
    assert len(visit.seen.where) > 1500  # else it was not looked at
    assert list(visit.seen.foreign(names)) == []


def test_everything_that_can_be_used_has_a_name(visit: Visit) -> None:
    """A screen reader calls a thing by its name; a choice, which Qt calls by what is chosen, by both."""
    for section in visit.inside.form.sections.values():
        section.set_open(True)
        section.more.setChecked(True)
    nameless: set[str] = set()
    for key in visit.inside.tabs.keys:
        visit.inside.tabs.show_tab(key)
        visit.rest()
        for thing in described(QAccessible.queryAccessibleInterface(visit.program.window)):
            state, told = thing.state(), thing.text(QAccessible.Text.Name)
            if state.focusable and not state.invisible and not told.strip():
                nameless.add(f"{thing.role().name} {type(thing.object()).__name__} in {key}")
            chosen = thing.object()
            if isinstance(chosen, ComboBox) and chosen.isVisible():
                said = f"{told} {thing.text(QAccessible.Text.Description)}"
                assert chosen.accessibleName(), said
                assert chosen.accessibleName() in said
    assert nameless == set()


def described(thing: QAccessibleInterface | None) -> Iterator[QAccessibleInterface]:
    """A thing and all that is in it."""
    if thing is not None and thing.isValid():
        yield thing
        for index in range(min(thing.childCount(), 300)):
            yield from described(thing.child(index))


def test_every_text_that_comes_and_goes(visit: Visit, names: set[str], tmp_path: Path) -> None:
    inside, seen, window = visit.inside, visit.seen, visit.program.window
    library = visit.program.context.library
    library.save_as("model")
    library.save_as("model")  # the name is taken
    own = [entry for entry in library.presets() if library.is_own(entry)]
    library.duplicate(own[0])
    library.export(own, tmp_path / "model.memgui.json")
    library.import_file(tmp_path / "model.memgui.json")
    library.export(own, tmp_path / "model" / "model.json")
    seen.look()
    library.delete(own[0])
    seen.look()
    for text in ("memgui1:broken", "http://model.json", "", "model", "/model.json"):
        inside.files.open_text(text)
    for act in (inside.files.ask_save_as, inside.show_shortcuts, inside.show_about, inside.open_model_picker):
        act()
        visit.rest()
        seen.look()
    inside.picker.popup.hide()
    dialog = CrashDialog("", window)
    dialog.open()
    seen.look()
    dialog.close()
    for ask in (inside.files.ask_open, inside.files.ask_import, inside.reports.ask_export):
        ask()
        for shown in window.findChildren(QFileDialog):
            for text in (shown.windowTitle(), *shown.nameFilters()):
                seen.add(text.partition("*")[0], "file dialog")
            shown.close()
        visit.rest()  # it is gone then
    for menu in (*(action.menu() for action in window.menuBar().actions()), *inside.toolbar.menus()):
        assert isinstance(menu, QMenu)
        menu.popup(QPoint(50, 50))
        seen.look()
        menu.close()
    context = visit.program.context
    search = device_search(context.catalog, context.library.nearby, lambda: Numbers.of(context.view.view))
    for item in search(""):
        seen.add(item.details, "device")
    visit.rest()
    assert list(seen.foreign({*names, "json", "broken", *map(str, tmp_path.parts)})) == []


def test_every_text_of_a_run_that_was_measured(visit: Visit, names: set[str]) -> None:
    visit.tabs("measured")
    page: Any = visit.inside.tabs.page("measured")
    for text in ("model", "23.4 GiB", "-3"):
        page.figure.setText(text)
        page.enter_figure()
        visit.rest()
        visit.seen.look()
    for text in ("model", LOG):
        page.read(text)
        visit.rest()
        visit.seen.look()
    estimate = visit.program.document.last_result.estimate
    assert estimate is not None
    for line in visit.inside.reports.data(estimate, "md").decode().splitlines():
        visit.seen.add(line, "report")
    visit.inside.reports.copy_verdict()
    visit.seen.add(QGuiApplication.clipboard().text(), "verdict")
    visit.inside.actions.pin.trigger()
    visit.program.document.edit("training.micro_batch_size", 2)
    visit.tabs("compare", "measured")
    day = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
    month = "January February March April May June July August September October November December"
    formulas = "weights activations loss overhead gradients"  # components are called so in formulas
    assert list(visit.seen.foreign({*names, *f"{day} {month} {formulas}".split()})) == []


def test_every_text_of_a_bad_file(pseudo: Pseudo, names: set[str]) -> None:
    said: list[str] = []

    def hear(*messages: Message) -> None:
        said.extend(map(message_text, messages))

    for text in BROKEN:
        with pytest.raises(FileFault) as fault:
            parse_object(text.encode(), "a.json")
        hear(fault.value.message)
    for wrong in WRONG:
        try:
            hear(*import_config(CONFIG | wrong, "a").assumed)
        except FileFault as refused:
            hear(refused.message)
    envelope = json.loads(encode(Preset(name="a", content=SCENARIO)))
    for key, value in (("format", "model"), ("schema", 0), ("schema", 99), ("kind", 1), ("scenario", None)):
        with pytest.raises(FileFault) as fault:
            decode(json.dumps(envelope | {key: value}).encode(), "a.json")
        hear(fault.value.message)
    scenario = envelope["scenario"]
    scenario["training"] |= {"micro_batch_size": "model", "precision": 1, "compile": "x", "lora": 1}
    scenario["model"] |= {"hidden_size": -1, "layer_types": 1, "unheard_of": 1}
    scenario["parallelism"] |= {"sharding": "model", "data": None}
    wrong = envelope | {"name": 1, "notes": [], "import_report": 1, "measured": [], "x": 1}
    hear(*(issue.whole for issue in decode(json.dumps(wrong).encode(), "a.json").issues))
    assert len(said) > 35
    keys = {*names, "schema", "kind", "scenario", "notes", "measured"}
    assert [text for text in said if "⟦" not in text or any(foreign(text, keys))] == []
