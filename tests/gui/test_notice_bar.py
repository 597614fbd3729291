from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea
from pytestqt.qtbot import QtBot

from memgui.document.notice import Notice
from memgui.gui.interior import Interior
from memgui.gui.notice_bar import NoticeBar
from memgui.spec import Message


def bar(qtbot: QtBot) -> NoticeBar:
    made = NoticeBar()
    qtbot.addWidget(made)
    return made


def test_what_is_wrong_stays_until_it_is_closed(qtbot: QtBot) -> None:
    made = bar(qtbot)
    made.show_notice(Notice(Message("{file} has vanished.", {"file": "a.json"}), "error"))
    assert made.isVisible()
    assert made.text == "a.json has vanished."
    assert made.accessibleName() == made.text
    assert not made._timer.isActive()
    QTest.keyClick(made, Qt.Key.Key_Escape)
    assert not made.isVisible()
    assert made.notice is None


def test_news_go_by_themselves(qtbot: QtBot) -> None:
    made = bar(qtbot)
    made._timer.setInterval(1)
    made.show_notice(Notice(Message("Copied.")))
    qtbot.waitUntil(lambda: not made.isVisible())


def test_a_way_back_is_one_press(qtbot: QtBot) -> None:
    made = bar(qtbot)
    done: list[str] = []
    made.show_notice(Notice(Message("Deleted."), "info", (), "Bring it back", lambda: done.append("back")))
    QTest.mouseClick(made.action_button, Qt.MouseButton.LeftButton)
    assert done == ["back"]
    assert not made.isVisible()


def test_details_are_shown_when_asked_for(qtbot: QtBot) -> None:
    made = bar(qtbot)
    made.show_notice(Notice(Message("Open."), "warning", (Message("One."), Message("Two."))))
    assert made.details == ""
    QTest.mouseClick(made._details_button, Qt.MouseButton.LeftButton)
    assert made.details == "One.\nTwo."
    made.show_notice(Notice(Message("Next."), "error"))
    assert made.details == ""
    assert not made._details_button.isVisible()


def test_details_take_the_height_that_they_need(qtbot: QtBot) -> None:
    made = bar(qtbot)
    made.resize(600, 43)
    heights = []
    for count in (1, 3, 200):
        made.show_notice(Notice(Message("Open."), "warning", (Message("A line."),) * count))
        QTest.mouseClick(made._details_button, Qt.MouseButton.LeftButton)
        heights.append(made.height())
    one, three, many = heights
    line = made.fontMetrics().lineSpacing()
    assert 1.9 * line < three - one < 2.1 * line + 2
    assert three < many < 200


def test_markup_in_a_file_name_is_text(qtbot: QtBot) -> None:
    made = bar(qtbot)
    made.show_notice(Notice(Message("{file}", {"file": "<b>x</b>"}), "error"))
    assert made._text.textFormat() is Qt.TextFormat.PlainText
    assert made.text == "<b>x</b>"


def test_details_that_are_wrapped_are_seen_whole(inside: Interior) -> None:
    inside.window.resize(1280, 800)
    wide = Message("Understood: {keys}", {"keys": ", ".join(f"key_number_{number}" for number in range(20))})
    inside.notices.show_notice(Notice(Message("Open."), details=(wide, Message("Assumed:"), wide)))
    inside.notices._details_button.setChecked(True)
    shown = inside.notices._details
    assert shown is not None
    QApplication.processEvents()
    assert shown.document().size().height() > 3  # lines, and there are three texts
    assert shown.verticalScrollBar().maximum() == 0


def test_a_long_sentence_takes_the_height_it_needs_and_no_scroll_bar(inside: Interior) -> None:
    window = inside.window
    window.resize(1280, 800)
    scroll = window.centralWidget()
    assert isinstance(scroll, QScrollArea)
    inside.notices.show_notice(Notice(Message("Short."), "error"))
    low = inside.notices.height()
    inside.notices.show_notice(Notice(Message("Many words. " * 40), "error"))
    assert inside.notices.height() > low
    QApplication.processEvents()
    assert not scroll.verticalScrollBar().isVisible()


def test_message_and_details_can_be_copied(qtbot: QtBot) -> None:
    made = bar(qtbot)
    made.show_notice(Notice(Message("Open."), details=(Message("Understood: a"), Message("Ignored: b"))))
    assert not made._copy.isVisible()
    made._details_button.setChecked(True)
    QTest.mouseClick(made._copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Open.\nUnderstood: a\nIgnored: b\n"


def test_the_first_notice_stands_inside_its_line(inside: Interior) -> None:
    inside.window.resize(2560, 1440)
    long = Message(
        "There is no built-in model called {name}; there are others of nearly that name.", {"name": "x"}
    )
    inside.context.library.told.emit(Notice(long, "error"))
    QApplication.processEvents()
    made = inside.notices
    assert made.rect().contains(made._text.geometry())
    assert made.height() < 2 * made._text.height()
