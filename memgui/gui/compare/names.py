"""What a set-up is called when it is pinned."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from memgui.document.document import Document
from memgui.document.pins import Pins
from memgui.gui.texts import label, value_text
from memgui.planning.changes import Change, differences
from memgui.spec import Scenario
from memgui.spec.fields import BY_PATH

translate = QCoreApplication.translate

_NAMED = 2
"""Up to this many differences from the baseline are a name."""
_FACTS = frozenset({"device.memory_bytes", "device.compute_capability"})


def pin_name(document: Document, pins: Pins) -> str:
    """The preset's name; else what sets it apart from the baseline; else model, method and device.

    Where another pin has that last name already, its first differences from the baseline are told too.
    """
    state = document.state
    if state.name and not document.is_modified:
        return state.name
    baseline = pins.baseline
    if baseline is not None:
        apart = [one for one in differences(baseline.scenario, state.scenario) if one.path not in _FACTS]
        if 0 < len(apart) <= _NAMED:
            return ", ".join(_brief(one) for one in apart)
        if apart and set_up_name(state.scenario) in {pin.name for pin in pins.all}:
            told = ", ".join(_brief(one) for one in apart[:_NAMED])
            return translate("Compare", "{told}, and {count} more").format(
                told=told, count=len(apart) - _NAMED
            )
    return set_up_name(state.scenario)


def set_up_name(scenario: Scenario) -> str:
    """``Llama-3.1-8B, full fine-tuning, H100``; for inference the engine in place of the method."""
    path = "training.method" if scenario.task == "training" else "inference.engine"
    owner = scenario.training.method if scenario.task == "training" else scenario.inference.engine
    device = scenario.device
    where = device.name if device.count == 1 else f"{device.count:,} × {device.name}"
    model = scenario.model.name or translate("Compare", "Unnamed model")
    return f"{model}, {value_text(BY_PATH[path], owner)}, {where}"


def _brief(one: Change) -> str:
    field = BY_PATH[one.path]
    value = value_text(field, one.new)
    return value if field.path == "device.name" else f"{label(one.path)} {value}"
