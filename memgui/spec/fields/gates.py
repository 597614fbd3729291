"""Fields of gates and norms beside attention and experts, which few models have."""

from __future__ import annotations

from memgui.spec.fields.field import Field
from memgui.spec.fields.parts import connected, experts, indexed, latent, linear
from memgui.spec.fields.rows import flag, size
from memgui.spec.messages import QT_TRANSLATE_NOOP

FIELDS: tuple[Field, ...] = (
    size(
        "gated_norm_rank",
        QT_TRANSLATE_NOOP("fields", "Norm gate rank"),
        QT_TRANSLATE_NOOP(
            "fields", "Inner width of the gate on the input of attention and experts; 0 where there is none."
        ),
    ),
    flag(
        "query_gate",
        QT_TRANSLATE_NOOP("fields", "Gate beside queries"),
        QT_TRANSLATE_NOOP(
            "fields", "Queries and a gate on attention's output are one projection of the query latent."
        ),
        applies=latent,
    ),
    flag(
        "head_temperature",
        QT_TRANSLATE_NOOP("fields", "Queries scaled by head"),
        QT_TRANSLATE_NOOP(
            "fields", "Queries are scaled by the logarithm of their position, as each head learns."
        ),
        applies=latent,
    ),
    flag(
        "temperature_once",
        QT_TRANSLATE_NOOP("fields", "Query scales made once"),
        QT_TRANSLATE_NOOP(
            "fields", "What scales queries of layers without rotation is made once, and multiplied in fp32."
        ),
    ),
    flag(
        "stream_scaling",
        QT_TRANSLATE_NOOP("fields", "Residual stream scaled"),
        QT_TRANSLATE_NOOP(
            "fields", "Branch and residual stream are both multiplied by a number of the layer."
        ),
    ),
    flag(
        "linear_bounded",
        QT_TRANSLATE_NOOP("fields", "Forgetting bounded"),
        QT_TRANSLATE_NOOP("fields", "What Kimi delta attention forgets has a bound, by a sigmoid."),
        applies=linear,
    ),
    flag(
        "linear_exact",
        QT_TRANSLATE_NOOP("fields", "Convolution in fp32"),
        QT_TRANSLATE_NOOP("fields", "The convolution and the rates of forgetting are fp32."),
        applies=linear,
    ),
    flag(
        "hc_upcast",
        QT_TRANSLATE_NOOP("fields", "Connections cast to fp32"),
        QT_TRANSLATE_NOOP("fields", "The matrices that mix streams are cast to fp32 each time."),
        applies=connected,
    ),
    flag(
        "hc_averaged",
        QT_TRANSLATE_NOOP("fields", "Streams averaged"),
        QT_TRANSLATE_NOOP("fields", "After the layers the mean of the streams is taken."),
        applies=connected,
    ),
    flag(
        "cap_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Cap in fp32"),
        QT_TRANSLATE_NOOP("fields", "Logits are cast to fp32 before they are capped."),
    ),
    flag(
        "rotary_learned",
        QT_TRANSLATE_NOOP("fields", "Learned frequencies"),
        QT_TRANSLATE_NOOP("fields", "The rotation's frequencies have weights that are trained."),
    ),
    flag(
        "experts_norm",
        QT_TRANSLATE_NOOP("fields", "Norm behind experts"),
        QT_TRANSLATE_NOOP("fields", "What the experts give together goes through a norm."),
        applies=experts,
    ),
    flag(
        "experts_scaled",
        QT_TRANSLATE_NOOP("fields", "Experts scaled"),
        QT_TRANSLATE_NOOP("fields", "What the routed experts give is multiplied by a number."),
        applies=experts,
    ),
    flag(
        "experts_clamped",
        QT_TRANSLATE_NOOP("fields", "Experts clamped"),
        QT_TRANSLATE_NOOP("fields", "Gate and up of the routed experts are clamped before the activation."),
        applies=experts,
    ),
    flag(
        "head_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Head in fp32"),
        QT_TRANSLATE_NOOP("fields", "The head's weight and its input are fp32 whatever the model is in."),
    ),
    flag(
        "indexer_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Indexer's weights in fp32"),
        QT_TRANSLATE_NOOP("fields", "The indexer's norm and the weights of its heads are fp32."),
        applies=indexed,
    ),
    size(
        "zero_expert_num",
        QT_TRANSLATE_NOOP("fields", "Experts without weights"),
        QT_TRANSLATE_NOOP("fields", "Experts that give back what they are given, beside those with weights."),
        applies=experts,
    ),
    flag(
        "shortcut_experts",
        QT_TRANSLATE_NOOP("fields", "Experts on a shortcut"),
        QT_TRANSLATE_NOOP(
            "fields", "Each layer has attention and a feed-forward twice; experts run beside the second half."
        ),
        applies=experts,
    ),
    flag(
        "latent_scaling",
        QT_TRANSLATE_NOOP("fields", "Scaled latents"),
        QT_TRANSLATE_NOOP("fields", "Queries and the latent of keys and values are multiplied by numbers."),
        applies=latent,
    ),
    flag(
        "router_upcast",
        QT_TRANSLATE_NOOP("fields", "Router cast to fp32"),
        QT_TRANSLATE_NOOP("fields", "The router's weight and its input are cast to fp32 for their product."),
        applies=experts,
    ),
)
