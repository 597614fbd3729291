import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from memgui.gui.controls.buttons import Button, CheckBox, SectionHeader, ToolButton
from memgui.gui.controls.fields import NOTE_ROLE, ComboBox, LineEdit, SpinBox
from memgui.gui.controls.frames import FocusRing
from memgui.gui.controls.segmented import SegmentedSwitch
from memgui.gui.controls.slider import Slider
from memgui.gui.palette import DARK, LIGHT
from memgui.gui.theme import Look


def shown(qtbot: QtBot, *widgets: QWidget) -> QWidget:
    window = QWidget()
    window.setPalette(LIGHT.qpalette())
    layout = QVBoxLayout(window)
    for widget in widgets:
        layout.addWidget(widget)
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    return window


def wheel(widget: QWidget) -> QWheelEvent:
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)
    return event


def colours_in(widget: QWidget) -> set[str]:
    image = widget.grab().toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def test_slider_goes_where_it_is_pressed_and_dragged(qtbot: QtBot) -> None:
    slider = Slider()
    slider.setRange(0, 1000)
    _ = shown(qtbot, slider)
    middle = QPoint(slider.width() // 2, slider.height() // 2)
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=middle)
    assert slider.isSliderDown()
    assert slider.value() == pytest.approx(500, abs=20)
    QTest.mouseMove(slider, QPoint(slider.width() + 50, 5))
    assert slider.value() == 1000
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=middle)
    assert not slider.isSliderDown()
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Left)
    assert slider.value() == 999


def test_slider_shows_where_values_stop_to_fit(qtbot: QtBot) -> None:
    slider = Slider()
    slider.setRange(0, 100)
    _ = shown(qtbot, slider)
    assert LIGHT.bad.name() not in colours_in(slider)
    slider.set_limit(60)
    assert LIGHT.bad.name() in colours_in(slider)
    slider.set_limit(100)
    assert LIGHT.bad.name() not in colours_in(slider)


@pytest.mark.parametrize("kind", ["slider", "combo"])
def test_wheel_without_focus_is_for_the_scroll_area(qtbot: QtBot, kind: str) -> None:
    slider, combo = Slider(), ComboBox()
    for value in range(3):
        combo.add_choice(value, f"choice {value}")
    _ = shown(qtbot, slider, combo)
    widget = slider if kind == "slider" else combo
    widget.clearFocus()
    before = (slider.value(), combo.currentIndex())
    assert not wheel(widget).isAccepted()
    assert (slider.value(), combo.currentIndex()) == before


def test_choice_carries_value_and_note(qtbot: QtBot) -> None:
    combo = ComboBox()
    combo.add_choice("bf16", "bf16", "everything", "two bytes a number")
    combo.add_choice("fp32", "fp32")
    _ = shown(qtbot, combo)
    assert combo.currentData() == "bf16"
    assert combo.currentData(NOTE_ROLE) == "everything"
    QTest.keyClick(combo, Qt.Key.Key_Down)
    assert combo.currentData() == "fp32"
    combo.showPopup()
    assert combo.view().isVisible()
    combo.view().grab()
    combo.hidePopup()


@pytest.mark.parametrize("make", [SpinBox, ComboBox, LineEdit])
def test_fields_tell_their_states_apart(qtbot: QtBot, make: type[SpinBox | ComboBox | LineEdit]) -> None:
    field = make()
    _ = shown(qtbot, field, Slider())
    field.clearFocus()
    assert LIGHT.border.name() in colours_in(field)
    field.set_invalid(True)
    assert LIGHT.bad.name() in colours_in(field)
    field.set_invalid(False)
    field.setFocus()
    assert LIGHT.accent.name() in colours_in(field)
    field.setEnabled(False)
    assert LIGHT.border.name() not in colours_in(field)
    assert field.height() == Look.of(field).px(28)


def test_spin_box_keeps_its_line_beside_the_chevrons(qtbot: QtBot) -> None:
    box = SpinBox()
    _ = shown(qtbot, box)
    assert box.lineEdit().geometry().right() < box._buttons().left() + 1
    assert box.buttonSymbols() is QAbstractSpinBox.ButtonSymbols.UpDownArrows


def test_spin_box_keeps_its_line_beside_chevrons_of_a_large_font(qapp: QApplication, qtbot: QtBot) -> None:
    usual, large = qapp.font(), qapp.font()
    large.setPixelSize(26)
    qapp.setFont(large)
    try:
        box = SpinBox()
        other = LineEdit()
        _ = shown(qtbot, other, box)
        other.setFocus()
        box.lineEdit().hide()
        image = box.grab().toImage()
        middle, inside = range(box.height() // 4, 3 * box.height() // 4), range(8, box.width() - 6)
        inked = [x for x in inside if any(image.pixelColor(x, y).lightness() < 200 for y in middle)]
        assert box.lineEdit().geometry().right() < min(inked)  # of the chevrons
    finally:
        qapp.setFont(usual)


def test_switch_says_what_the_person_chose_only(qtbot: QtBot) -> None:
    switch = SegmentedSwitch("Task")
    switch.add("training", "Training")
    switch.add("inference", "Inference")
    _ = shown(qtbot, switch)
    with qtbot.assertNotEmitted(switch.chosen):
        switch.set_value("inference")
    assert switch.value() == "inference"
    with qtbot.waitSignal(switch.chosen) as sent:
        QTest.mouseClick(switch.segment("training"), Qt.MouseButton.LeftButton)
    assert sent.args == ["training"]
    switch.segment("training").setFocus()
    with qtbot.waitSignal(switch.chosen) as sent:
        QTest.keyClick(switch.segment("training"), Qt.Key.Key_Right)
    assert sent.args == ["inference"]
    with pytest.raises(ValueError, match="nothing"):
        switch.set_value("nothing")


def test_ring_shows_the_keyboards_focus_and_goes_with_it(qtbot: QtBot) -> None:
    first, second = Button("One"), Button("Two")
    window = shown(qtbot, first, second)
    second.setFocus(Qt.FocusReason.TabFocusReason)
    rings = [ring for ring in window.findChildren(FocusRing) if ring.isVisible()]
    assert len(rings) == 1
    assert rings[0].geometry().contains(second.geometry())
    first.setFocus(Qt.FocusReason.MouseFocusReason)
    assert not [ring for ring in window.findChildren(FocusRing) if ring.isVisible()]


def test_icon_button_has_a_name_without_its_text(qtbot: QtBot) -> None:
    button = ToolButton("undo", "&Undo")
    _ = shown(qtbot, button)
    narrow = button.sizeHint().width()
    assert button.accessibleName() == button.toolTip() == "Undo"
    button.set_wide(True)
    assert button.sizeHint().width() > narrow


def test_section_folds_and_says_what_is_in_it(qtbot: QtBot) -> None:
    header = SectionHeader("Model")
    _ = shown(qtbot, header)
    header.set_summary("8.03 B · 32 layers")
    assert header.accessibleDescription() == "8.03 B · 32 layers"
    QTest.mouseClick(header, Qt.MouseButton.LeftButton)
    assert not header.isChecked()
    header.set_summary("8.03 B", "2 changed")
    assert header.accessibleDescription() == "2 changed"
    header.grab()


def test_check_box_is_ticked_by_its_text_too(qtbot: QtBot) -> None:
    box = CheckBox("Padding mask")
    _ = shown(qtbot, box)
    QTest.mouseClick(
        box, Qt.MouseButton.LeftButton, pos=QPoint(box.sizeHint().width() - 5, box.height() // 2)
    )
    assert box.isChecked()
    assert LIGHT.accent.name() in colours_in(box)


def test_primary_button_is_filled(qtbot: QtBot) -> None:
    button = Button("Apply", primary=True)
    window = shown(qtbot, button)
    assert LIGHT.accent.name() in colours_in(button)
    window.setPalette(DARK.qpalette())
    assert DARK.accent.name() in colours_in(button)


def test_a_file_dropped_on_a_line_is_the_windows_and_a_text_is_the_lines(qtbot: QtBot) -> None:
    line = LineEdit("search")
    window = shown(qtbot, line)
    file, text = QMimeData(), QMimeData()
    file.setUrls([QUrl.fromLocalFile("/models/config.json")])
    text.setText("llama")
    taken = []
    for mime in (file, text):
        event = QDragEnterEvent(
            QPoint(5, 5),
            Qt.DropAction.CopyAction,
            mime,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
        QApplication.sendEvent(line, event)
        taken.append(event.isAccepted())
    assert taken == [False, True]
    window.close()
