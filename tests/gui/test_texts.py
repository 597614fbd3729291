from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QApplication

from memgui.gui.texts import breakable, message_text, value_text
from memgui.spec import Message
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import Named, allowed


def test_a_word_too_long_for_a_line_goes_on_in_the_next(qapp: QApplication) -> None:
    metrics = QFontMetricsF(qapp.font())
    narrow = QRectF(0, 0, metrics.horizontalAdvance("m" * 20), 10_000)
    text = "github owner/name@" + "0123456789abcdef" * 3 + ":config.json"
    assert metrics.boundingRect(narrow, Qt.TextFlag.TextWordWrap, text).width() > narrow.width()
    assert metrics.boundingRect(narrow, Qt.TextFlag.TextWordWrap, breakable(text)).width() <= narrow.width()
    assert breakable(text).replace("\N{ZERO WIDTH SPACE}", "") == text


def test_a_field_s_name_stays_whole() -> None:
    name = "activation_checkpointing is not stated"
    assert breakable(name) == name


def test_the_window_calls_fields_and_their_values_by_their_labels() -> None:
    path = "training.activation_checkpointing"
    said = allowed(path, "none", "full")
    assert said.text == "Allowed: none, full."
    assert message_text(said) == "Allowed: None, Every layer."
    needs = Message("It needs {needed}. {allowed}", {"needed": Named("device.count"), "allowed": said})
    assert needs.text == "It needs device.count. Allowed: none, full."
    assert message_text(needs) == "It needs Count. Allowed: None, Every layer."
    assert message_text(allowed("training.compile", False)) == "Allowed: off."


def test_a_share_is_written_as_numbers_are() -> None:
    field = BY_PATH["training.offload_optimizer"]
    assert [value_text(field, share) for share in (0.0, 0.25, 1.0)] == ["0", "0.25", "1"]
