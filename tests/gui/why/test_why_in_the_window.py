"""Why through the window: what a chosen row explains is the estimator's, its numbers lead to the form."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.gui.interior import Interior
from memgui.gui.numbers import Numbers
from memgui.gui.why.page import WhyPage
from memgui.planning.formula import value_of
from memgui.spec import Scenario, get, replace
from tests.gui.house import House

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
MODELS = {entry.name.rpartition("/")[2]: entry.model for entry in CATALOG.models}
SCENARIOS = {
    "8B, training": FIRST,
    "8B, vLLM": replace(replace(FIRST, "task", "inference"), "inference.engine", "vllm"),
    "tiny, inference": replace(
        replace(replace(FIRST, "model", MODELS["gpt2"]), "task", "inference"), "inference.prompt_tokens", 256
    ),
    "DeepSeek-V3, training": replace(FIRST, "model", MODELS["DeepSeek-V3"]),
}


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> House:
    """A house with the real estimator."""
    return House(tmp_path / "home", estimate)


def show(inside: Interior, scenario: Scenario) -> WhyPage:
    inside.context.document.use_model(scenario, "test")
    inside.context.document.settle()
    inside.window.resize(1280, 800)
    inside.tabs.show_tab("why")
    page = inside.tabs.page("why")
    assert isinstance(page, WhyPage)
    return page


def copied(page: WhyPage, markdown: bool) -> str:
    QGuiApplication.clipboard().clear()
    if markdown:
        page.copy_markdown()
    else:
        page.view.setFocus()
        QTest.keyClick(page, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    return QGuiApplication.clipboard().text()


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_every_row_explains_the_estimators_bytes(inside: Interior, scenario: Scenario) -> None:
    page = show(inside, scenario)
    found = estimate(scenario)
    numbers = Numbers.of(inside.context.view.view)
    for node in found.components:
        for path in ((node.key,), *((node.key, child.key) for child in node.children)):
            inside.context.selection.select(path)
            explained = page.explanation()
            assert explained is not None
            size = node.bytes if len(path) == 1 else node.child(path[1]).bytes
            assert (explained.path, explained.bytes) == (path, size)
            if explained.tokens:
                assert value_of(explained.tokens) == size
            given = {one.path for step in explained.steps for one in step.given}
            given.update(one.path for one in explained.given)
            for link in page.view.links():
                if link.component:
                    assert found.component(link.component).bytes
                elif link.path not in given:
                    value = get(scenario, link.path)
                    assert value is None or isinstance(value, int | tuple)
            if len(path) == 1:
                assert f"{size:,}" in copied(page, markdown=False)
                assert f"{size:,}" in copied(page, markdown=True)
                assert numbers.tip(size).partition(" ")[0] in copied(page, markdown=False)


def test_a_number_leads_to_its_field_by_key_and_mouse(inside: Interior, qtbot: QtBot) -> None:
    page = show(inside, FIRST)
    inside.context.selection.select(("activations", "mlp"))
    paths = [link.path for link in page.view.links()]
    assert {"training.micro_batch_size", "training.sequence_length"} <= set(paths)
    wanted = paths.index("training.sequence_length")
    box = inside.form.sections["workload"].rows["training.sequence_length"].box
    QTest.mouseClick(
        page.view, Qt.MouseButton.LeftButton, pos=page.view.links()[wanted].rect.center().toPoint()
    )
    assert box.hasFocus()
    page.view.setFocus(Qt.FocusReason.TabFocusReason)
    for _ in range(wanted):
        QTest.keyClick(page.view, Qt.Key.Key_Tab)
    assert not box.hasFocus()
    QTest.keyClick(page.view, Qt.Key.Key_Return)
    assert box.hasFocus()


def test_a_number_that_is_a_component_leads_into_it(inside: Interior) -> None:
    page = show(inside, FIRST)
    inside.context.selection.select(("overhead", "fragmentation"))
    assert page.view.links()
    assert not any(item.selected for item in page.view.accessible_items())
    wanted = next(at for at, link in enumerate(page.view.links()) if link.component == "activations")
    page.view.setFocus(Qt.FocusReason.TabFocusReason)
    for _ in range(wanted):
        QTest.keyClick(page.view, Qt.Key.Key_Right)
    QTest.keyClick(page.view, Qt.Key.Key_Return)
    assert inside.context.selection.component == ("activations",)
    inside.context.selection.select(("overhead", "fragmentation"))
    rect = page.view.links()[wanted].rect
    QTest.mouseClick(page.view, Qt.MouseButton.LeftButton, pos=rect.center().toPoint())
    assert inside.context.selection.component == ("activations",)


def test_bytes_of_a_block_lead_to_the_fields_that_they_follow_from(inside: Interior) -> None:
    page = show(inside, SCENARIOS["8B, vLLM"])
    inside.context.selection.select(("kv_cache",))
    paths = {link.path for link in page.view.links()}
    assert {"inference.block_size", "model.num_key_value_heads", "inference.kv_cache_format"} <= paths
    at = next(at for at, link in enumerate(page.view.links()) if link.path == "inference.kv_cache_format")
    rect = page.view.links()[at].rect
    QTest.mouseClick(page.view, Qt.MouseButton.LeftButton, pos=rect.center().toPoint())
    row = inside.form.sections["precision"].rows["inference.kv_cache_format"]
    focused = QApplication.focusWidget()
    assert focused is not None
    assert row.isAncestorOf(focused)
