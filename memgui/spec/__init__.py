"""What a person can say: frozen types, one table of fields, validation.  No Qt, no files."""

from __future__ import annotations

from memgui.spec.import_report import NO_REPORT, ImportReport
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, ScenarioError, fault_issue, one_line
from memgui.spec.model import ModelSpec
from memgui.spec.scenario import (
    Device,
    Inference,
    Lora,
    Parallelism,
    Scenario,
    Training,
    get,
    replace,
    to_builtins,
)

__all__ = [
    "NO_REPORT",
    "QT_TRANSLATE_NOOP",
    "Device",
    "ImportReport",
    "Inference",
    "Issue",
    "Lora",
    "Message",
    "ModelSpec",
    "Parallelism",
    "Scenario",
    "ScenarioError",
    "Training",
    "fault_issue",
    "get",
    "one_line",
    "replace",
    "to_builtins",
]
