"""Fields of weights that are known by their shapes or bytes alone."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

OTHER = Field(
    "model.other_weights",
    Kind.CHOICES,
    QT_TRANSLATE_NOOP("fields", "Other weights"),
    QT_TRANSLATE_NOOP(
        "fields",
        "Weights beside the layers, such as a vision tower, as part.name:number x shape.",
    ),
    section="model",
    empty_label=QT_TRANSLATE_NOOP("fields", "none"),
    choices=(Choice("vision.projector:1x4096x1024", QT_TRANSLATE_NOOP("fields", "a projector")),),
    open_choices=True,
    advanced=True,
)


VARIANTS = Field(
    "model.layer_variants",
    Kind.CHOICES,
    QT_TRANSLATE_NOOP("fields", "Layers of other sizes"),
    QT_TRANSLATE_NOOP(
        "fields",
        "Sizes that layers with one mixer have where the rest has others, as mixer:field=number.",
    ),
    section="model",
    empty_label=QT_TRANSLATE_NOOP("fields", "none"),
    choices=(Choice("full_attention:head_dim=512", QT_TRANSLATE_NOOP("fields", "wide heads")),),
    open_choices=True,
    advanced=True,
)


def _from_a_file(scenario: Scenario) -> bool:
    return bool(scenario.model.stored_weights)


STORED = Field(
    "model.stored_weights",
    Kind.CHOICES,
    QT_TRANSLATE_NOOP("fields", "Bytes in the file"),
    QT_TRANSLATE_NOOP(
        "fields",
        "What the model's files hold, as part:bytes or part@first-last:bytes of each layer; "
        "another change of the model drops it.",
    ),
    section="model",
    empty_label=QT_TRANSLATE_NOOP("fields", "not from a file"),
    choices=(Choice("embedding:1050673152", QT_TRANSLATE_NOOP("fields", "an embedding")),),
    open_choices=True,
    advanced=True,
    applies=_from_a_file,
)

FIELDS: tuple[Field, ...] = (VARIANTS, OTHER, STORED)
