"""One table of fields, from which form, command line, presets and docs are made.

Sections stand in the order in which the form shows them; rows of a section in table order.
"""

from __future__ import annotations

from memgui.spec.fields import (
    architecture,
    engines,
    gates,
    inference,
    layers,
    model,
    parallelism,
    run,
    stored,
    streams,
    training,
    written,
)
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP

SECTIONS: dict[str, str] = {
    "task": QT_TRANSLATE_NOOP("fields", "Task"),
    "model": QT_TRANSLATE_NOOP("fields", "Model"),
    "workload": QT_TRANSLATE_NOOP("fields", "Workload"),
    "precision": QT_TRANSLATE_NOOP("fields", "Precision and memory"),
    "engine": QT_TRANSLATE_NOOP("fields", "Engine"),
    "parallelism": QT_TRANSLATE_NOOP("fields", "Parallelism"),
    "device": QT_TRANSLATE_NOOP("fields", "Device"),
    "method": QT_TRANSLATE_NOOP("fields", "Estimation method"),
}
"""Title of each section by its key."""

FIELDS: tuple[Field, ...] = (
    *run.TASK,
    *model.FIELDS,
    *layers.FIELDS,
    *architecture.FIELDS,
    *streams.FIELDS,
    *gates.FIELDS,
    *stored.FIELDS,
    *written.FIELDS,
    *training.FIELDS,
    *inference.FIELDS,
    *engines.FIELDS,
    *parallelism.FIELDS,
    *run.DEVICE,
)
"""Every field of a scenario."""

BY_PATH: dict[str, Field] = {field.path: field for field in FIELDS}
"""Every field by its path."""

__all__ = ["BY_PATH", "FIELDS", "SECTIONS", "Choice", "Field", "Kind"]
