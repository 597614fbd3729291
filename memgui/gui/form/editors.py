"""From a field's kind to the widgets that show it."""

from __future__ import annotations

from typing import Any, Protocol

from PySide6.QtCore import SignalInstance
from PySide6.QtWidgets import QWidget

from memgui.gui.form.choice_box import ChoiceBox, FlagBox
from memgui.gui.form.log_slider import LogScale, LogSlider
from memgui.gui.form.number_box import NumberBox
from memgui.gui.form.text_box import TextBox
from memgui.spec.fields import Field, Kind


class Editor(Protocol):
    """What a row asks of the widget that holds its value; such a widget writes nothing itself."""

    @property
    def edited(self) -> SignalInstance:
        """``edited(value, held)``: the person changed it."""

    @property
    def finished(self) -> SignalInstance:
        """The gesture is over."""

    def value(self) -> Any:
        """The value shown."""

    def set_value(self, value: Any) -> None:
        """Show a value; says nothing back."""

    def set_invalid(self, invalid: bool) -> None:
        """Outline it as wrong."""


NUMBERS = (Kind.COUNT, Kind.TOKENS, Kind.BYTES, Kind.RATIO)


def slider_for(field: Field, parent: QWidget) -> LogSlider | None:
    """The slider beside the box, for whole numbers on a log scale that always have a value."""
    if field.kind not in (Kind.COUNT, Kind.TOKENS) or not field.log_scale or field.optional:
        return None
    high = field.usual_maximum if field.usual_maximum is not None else field.maximum
    if field.minimum is None or high is None:
        return None
    return LogSlider(LogScale(int(field.minimum), int(high)), parent)


def editor_for(field: Field, parent: QWidget) -> NumberBox | ChoiceBox | FlagBox | TextBox:
    """The widget that holds the exact value."""
    if field.kind in NUMBERS:
        return NumberBox(field, parent)
    if field.kind is Kind.CHOICE:
        return ChoiceBox(field, parent)
    if field.kind is Kind.FLAG:
        return FlagBox(field, parent)
    return TextBox(field, parent)
