"""The controls of the form and the bars, painted as STYLE draws them; Qt's own behaviour beneath."""

from memgui.gui.controls.buttons import Button, CheckBox, SectionHeader, ToolButton
from memgui.gui.controls.fields import NOTE_ROLE, ComboBox, LineEdit, SpinBox
from memgui.gui.controls.scrolling import ScrollBar, Splitter, slim
from memgui.gui.controls.segmented import SegmentedSwitch
from memgui.gui.controls.slider import Slider

__all__ = [
    "NOTE_ROLE",
    "Button",
    "CheckBox",
    "ComboBox",
    "LineEdit",
    "ScrollBar",
    "SectionHeader",
    "SegmentedSwitch",
    "Slider",
    "SpinBox",
    "Splitter",
    "ToolButton",
    "slim",
]
