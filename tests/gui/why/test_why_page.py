from collections.abc import Callable, Iterator

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from memgui.document.result import Result
from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.estimator import estimate
from memgui.gui.metrics import broken
from memgui.gui.numbers import Numbers
from memgui.gui.palette import LIGHT
from memgui.gui.theme import Look
from memgui.gui.verdict.sentence import assumptions_text
from memgui.gui.why import WhyPage
from memgui.gui.why.flow import flow_of
from memgui.gui.why.qt_words import QtWords
from memgui.planning.why import explain
from memgui.planning.words import Words
from memgui.spec import ImportReport, Message
from tests.gui import fakes

Make = Callable[..., tuple[WhyPage, Selection, ViewSettings]]


@pytest.fixture
def make(qtbot: QtBot) -> Iterator[Make]:
    kept: list[object] = []

    def page(width: int = 768, height: int = 260) -> tuple[WhyPage, Selection, ViewSettings]:
        selection, view = Selection(), ViewSettings(View(reduced_motion=True))
        made = WhyPage(selection, view)
        made.setPalette(LIGHT.qpalette())
        made.resize(width, height)
        qtbot.addWidget(made)
        with qtbot.waitExposed(made):
            made.show()
        kept.extend((made, selection, view))
        return made, selection, view

    yield page
    kept.clear()


def texts(page: WhyPage) -> list[str]:
    flow = page.view._made()
    assert flow is not None
    return [piece.text for piece in flow.pieces]


def names(page: WhyPage) -> list[str]:
    return [line.name for line in page.parts.lines]


def test_explains_what_is_selected_with_its_numbers(make: Make) -> None:
    page, selection, view = make()
    page.set_result(fakes.training())
    selection.select(("activations", "mlp"))
    shown = texts(page)
    assert {"L", "b", "s", "f", "h"} <= set(shown)
    assert {"32", "4,096", "14,336", "layers", "FFN width"} <= set(shown)
    assert "16,106,127,360 bytes" in shown
    assert "15.00 GiB" in shown
    assert names(page) == [
        "Parts",
        "gate_proj output",
        "silu(gate)",
        "up_proj output",
        "product, into down_proj",
        "shared input",
        "Sum",
    ]
    view.change(units="GB")
    assert "16.11 GB" in texts(page)


def test_numbers_lead_to_their_fields(make: Make, qtbot: QtBot) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    selection.select(("activations", "mlp"))
    links = page.view.links()
    assert [link.path for link in links] == [
        "model.num_hidden_layers",
        "training.micro_batch_size",
        "training.sequence_length",
        "model.intermediate_size",
        "model.hidden_size",
    ]
    middle = links[2].rect.center().toPoint()
    hovered: list[str] = []
    selection.field_hovered.connect(hovered.append)
    QTest.mouseMove(page.view, middle)
    with qtbot.waitSignal(selection.field_requested) as asked:
        QTest.mouseClick(page.view, Qt.MouseButton.LeftButton, pos=middle)
    assert asked.args == ["training.sequence_length"]
    QTest.mouseMove(page.view, QPoint(3, 3))
    assert hovered == ["training.sequence_length", ""]
    assert not [
        one for one in links for other in links if one is not other and one.rect.intersects(other.rect)
    ]


def test_keyboard_goes_through_the_numbers(make: Make, qtbot: QtBot) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    selection.select(("activations", "mlp"))
    view = page.view
    page.parts.setFocus()
    view.setFocus(Qt.FocusReason.TabFocusReason)
    assert selection.field == "model.num_hidden_layers"
    QTest.keyClick(view, Qt.Key.Key_Tab)
    assert selection.field == "training.micro_batch_size"
    QTest.keyClick(view, Qt.Key.Key_Right)
    with qtbot.waitSignal(selection.field_requested) as asked:
        QTest.keyClick(view, Qt.Key.Key_Return)
    assert asked.args == ["training.sequence_length"]
    # An edit through that field keeps the focus on its number.
    page.set_result(fakes.training())
    assert view.accessible_items()[2].selected
    QTest.keyClick(view, Qt.Key.Key_Backtab)
    assert selection.field == "training.micro_batch_size"
    for _ in range(4):
        QTest.keyClick(view, Qt.Key.Key_Tab)
    assert not view.hasFocus()
    assert selection.field == ""
    page.grab()


def test_list_leads_into_parts_and_backspace_out(make: Make) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    seen: list[object] = []
    selection.selected.connect(seen.append)
    page.parts.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(page.parts, Qt.Key.Key_Down)
    QTest.keyClick(page.parts, Qt.Key.Key_Return)
    high = Look.of(page).px(24)
    assert seen == [(page.explanation().path[0],)]  # type: ignore[union-attr]
    selection.select(("activations",))
    at = names(page).index("MLP")
    QTest.mouseClick(page.parts, Qt.MouseButton.LeftButton, pos=QPoint(20, round((at + 0.5) * high)))
    assert list(seen[-1]) == ["activations", "mlp"]  # type: ignore[call-overload]
    QTest.keyClick(page.parts, Qt.Key.Key_Backspace)
    assert seen[-1] == ("activations",)
    # Headings and sums lead nowhere.
    QTest.mouseClick(page.parts, Qt.MouseButton.LeftButton, pos=QPoint(20, high // 2))
    assert seen[-1] == ("activations",)


def test_copies_as_text_and_markdown(make: Make) -> None:
    page, selection, _ = make()
    page.copy_text()
    page.set_result(fakes.training())
    selection.select(("activations", "mlp"))
    page.copy_text()
    text = QGuiApplication.clipboard().text()
    assert "L·b·s·(8·f + 2·h)" in text
    assert "= 32·1·4,096·(8·14,336 + 2·4,096)" in text
    page.copy_markdown()
    markdown = QGuiApplication.clipboard().text()
    assert markdown.startswith("### Activations › MLP: 15.00 GiB")
    assert "| gate_proj output | 3.50 GiB | 3,758,096,384 bytes |" in markdown
    QGuiApplication.clipboard().clear()
    QTest.keySequence(page.view, "Ctrl+C")
    assert QGuiApplication.clipboard().text() == text


def test_node_that_is_gone_gives_way_to_what_it_was_in(make: Make) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    selection.select(("activations", "mlp", "gate"))
    explanation = page.explanation()
    assert explanation is not None
    assert explanation.path == ("activations", "mlp", "gate")
    page.set_result(fakes.serving())
    explanation = page.explanation()
    assert explanation is not None
    assert explanation.path == ("activations",)
    assert selection.component == ("activations", "mlp", "gate")
    selection.select(())
    explanation = page.explanation()
    assert explanation is not None
    assert explanation.path == ()


def test_hidden_page_explains_nothing_until_it_is_seen(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    page.hide()
    asked: list[object] = []
    monkeypatch.setattr("memgui.gui.why.page.explain", lambda *args: asked.append(args))
    page.set_result(fakes.serving())
    selection.select(("kv_cache",))
    assert asked == []
    monkeypatch.undo()
    page.show()
    assert "KV cache" in names(page) or "4.00 GiB" in texts(page)


def test_screen_reader_hears_the_links_and_the_parts(make: Make) -> None:
    page, selection, _ = make()
    page.set_result(fakes.training())
    selection.select(("activations", "mlp"))
    interface = QAccessible.queryAccessibleInterface(page.view)
    assert interface.role() is QAccessible.Role.Document
    said = [interface.child(index).text(QAccessible.Text.Name) for index in range(interface.childCount())]
    assert said[2] == "sequence 4,096"
    assert interface.child(2).role() is QAccessible.Role.Link
    parts = QAccessible.queryAccessibleInterface(page.parts)
    assert parts.child(1).text(QAccessible.Text.Name) == "gate_proj output 3.50"


def test_method_shows_what_it_leaves_out(make: Make) -> None:
    page, selection, _ = make(768, 500)
    scenario = msgspec.structs.replace(fakes.training().scenario, method="gpt_article")
    answer = estimate(scenario)
    page.set_result(Result(scenario, answer, last_good=answer))
    shown = " ".join(texts(page))
    assert "The method leaves out" in shown
    assert "Assumed" in shown
    assert page._foot()[0] == assumptions_text(len(answer.assumptions)), "as many as the verdict says"
    selection.select(("activations",))
    assert {"R", "B", "N", "S", "D"} <= set(texts(page))
    page.grab()


@pytest.mark.parametrize("width", [200, 320, 600, 900])
@pytest.mark.parametrize("path", [("activations", "mlp"), ("weights",), ("kv_cache",), ()])
def test_flow_stays_inside_its_width(qtbot: QtBot, width: int, path: tuple[str, ...]) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    for result in (fakes.training(), fakes.serving()):
        assert result.estimate is not None
        explanation = explain(result.estimate, path)
        if explanation is None:
            continue
        words: Words = QtWords(Numbers.of(View()))
        flow = flow_of(explanation, words, Look.of(widget), width)
        assert all(piece.rect.left() >= 0 for piece in flow.pieces)
        assert all(piece.rect.right() <= width + 8 for piece in flow.pieces)
        assert max(piece.rect.bottom() for piece in flow.pieces) <= flow.height + 6


def test_text_breaks_where_its_language_does(qtbot: QtBot) -> None:
    widget = QWidget()
    qtbot.addWidget(widget)
    font = Look.of(widget).font()
    english = "What each layer computed on the way forward is needed again on the way back."
    lines = broken(english, font, 150)
    assert len(lines) > 2
    assert " ".join(lines) == english
    chinese = "每一层在前向传播中计算出来的结果在反向传播时还要用到所以必须保留下来"
    lines = broken(chinese, font, 150)
    assert len(lines) > 1
    assert "".join(lines) == chinese


def test_words_are_the_windows(qtbot: QtBot) -> None:
    words = QtWords(Numbers.of(View(units="GB")))
    assert words.size(10**9) == "1.00 GB"
    assert words.share(1, 8) == "12.5\u2009%"
    assert words.message(Message("layer {layer}", {"layer": 3})) == "layer 3"
    assert words.translate("estimator", "Weights") == "Weights"


def test_paints_every_case(make: Make) -> None:
    page, selection, _ = make()
    page.grab()
    for width, height in ((200, 120), (420, 200), (768, 260), (1600, 700)):
        page.resize(width, height)
        for result in (fakes.training(), fakes.serving(), fakes.huge(), fakes.tiny(), fakes.unknown()):
            page.set_result(result)
            for path in ((), ("weights",), ("activations", "mlp"), ("overhead",)):
                selection.select(path)
                page.grab()


def test_the_report_of_the_models_file_lasts(make: Make) -> None:
    page, selection, _ = make(height=900)
    said = Message("{key} is not stated; {value} is assumed.", {"key": "head_dim", "value": 64})
    report = ImportReport("config.json", ("hidden_size",), (said,), ("unheard_of",))
    result = fakes.training()
    page.set_result(result)
    assert "unheard_of" not in texts(page)
    page.set_result(msgspec.structs.replace(result, report=report))  # the same estimate of another file
    selection.select(())
    for line in (
        "Assumed of the model, because config.json does not say it:",
        "head_dim is not stated; 64 is assumed.",
        "In config.json, but nothing here reads it:",
        "unheard_of",
        "Read in config.json:",
        "hidden_size",
    ):
        assert line in texts(page), line
    page.copy_markdown()
    assert "- head_dim is not stated; 64 is assumed." in QGuiApplication.clipboard().text()
    selection.select(("weights",))
    assert "unheard_of" in texts(page)
    selection.select(("gradients",))
    assert "unheard_of" not in texts(page)
