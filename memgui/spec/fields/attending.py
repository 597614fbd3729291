"""Fields of the model: what attention is made of."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field
from memgui.spec.fields.parts import masked
from memgui.spec.fields.rows import choice, flag, size
from memgui.spec.messages import QT_TRANSLATE_NOOP

FIELDS: tuple[Field, ...] = (
    flag(
        "fused_qkv",
        QT_TRANSLATE_NOOP("fields", "Fused QKV"),
        QT_TRANSLATE_NOOP("fields", "Query, key and value come from one projection."),
    ),
    flag(
        "attention_bias",
        QT_TRANSLATE_NOOP("fields", "QKV bias"),
        QT_TRANSLATE_NOOP("fields", "Query, key and value projections have a bias."),
    ),
    flag(
        "key_bias",
        QT_TRANSLATE_NOOP("fields", "Key bias"),
        QT_TRANSLATE_NOOP("fields", "Where query and value have a bias, the key has one too."),
    ),
    flag(
        "attention_output_bias",
        QT_TRANSLATE_NOOP("fields", "Attention output bias"),
        QT_TRANSLATE_NOOP("fields", "The attention's output projection has a bias."),
    ),
    flag(
        "attention_output_gate",
        QT_TRANSLATE_NOOP("fields", "Attention gate"),
        QT_TRANSLATE_NOOP("fields", "The query projection also gives a gate on the attention's output."),
    ),
    choice(
        "attention_gate",
        QT_TRANSLATE_NOOP("fields", "Gate on attention"),
        QT_TRANSLATE_NOOP("fields", "A projection of its own gates what attention gives."),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        Choice("elementwise", QT_TRANSLATE_NOOP("fields", "each element, sigmoid (Trinity)")),
        Choice(
            "elementwise_biased", QT_TRANSLATE_NOOP("fields", "each element, a bias for each head (Beam)")
        ),
        Choice("per_head", QT_TRANSLATE_NOOP("fields", "each head, softplus (Laguna)")),
        Choice("per_head_sigmoid", QT_TRANSLATE_NOOP("fields", "each head, sigmoid (LFM3)")),
    ),
    flag(
        "dynamic_mask",
        QT_TRANSLATE_NOOP("fields", "Learned mask"),
        QT_TRANSLATE_NOOP("fields", "Attention has a mask that follows from the values (Doge)."),
    ),
    size(
        "keep_window_size",
        QT_TRANSLATE_NOOP("fields", "Tokens kept by it"),
        QT_TRANSLATE_NOOP("fields", "Beyond so many tokens a learned mask hides all but these."),
        applies=masked,
    ),
    flag(
        "differential",
        QT_TRANSLATE_NOOP("fields", "Attention as a difference"),
        QT_TRANSLATE_NOOP("fields", "Attention is the difference of two, each over half of the values."),
    ),
    flag(
        "attention_sinks",
        QT_TRANSLATE_NOOP("fields", "Attention sinks"),
        QT_TRANSLATE_NOOP("fields", "Each head has a learned logit that attends to nothing."),
    ),
    flag(
        "value_norm",
        QT_TRANSLATE_NOOP("fields", "Value norm"),
        QT_TRANSLATE_NOOP("fields", "Values go through a norm without weights (Gemma 4)."),
    ),
    flag(
        "keys_are_values",
        QT_TRANSLATE_NOOP("fields", "Keys are values"),
        QT_TRANSLATE_NOOP("fields", "Values are the keys before their norm; they have no projection."),
    ),
)
