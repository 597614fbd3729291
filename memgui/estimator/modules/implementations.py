"""Whose code runs a model: Transformers', or another library's, with what that library can run.

Another library's outline stands in for the one that Transformers' code gives the model.  Figures
hold for the version named beside each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memgui.estimator.modules import litgpt
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.layers import LayerPlan, Writer
from memgui.spec.model import ModelSpec


class Implementation(NamedTuple):
    """A library's code: what stands before the layers, the layers, what stands after them.

    ``methods`` are those it is written for here; ``lacks`` names the first field of a model that it
    cannot run, or is empty.  ``version`` is what the figures hold for.
    """

    version: str
    stem: Writer
    plans: Callable[[Context], list[tuple[LayerPlan, int]]]
    tail: Writer
    methods: tuple[str, ...]
    lacks: Callable[[ModelSpec], str]


def _lacks_in_litgpt(m: ModelSpec) -> str:
    for name, allowed in (
        ("is_decoder", (True,)),
        ("norm", ("rms_norm", "layer_norm")),
        ("norm_placement", ("pre",)),
        ("qk_norm", ("none",)),
        ("position_embedding", ("rope",)),
        ("num_experts", (0,)),
        ("kv_lora_rank", (None,)),
        ("mamba_d_ssm", (0,)),
        ("tie_word_embeddings", (False,)),
        ("attn_logit_softcapping", (None,)),
    ):
        if getattr(m, name) not in allowed:
            return name
    if any(kind not in ("full_attention", "sliding_attention") for kind in m.layer_types):
        return "layer_types"
    return ""


IMPLEMENTATIONS: dict[str, Implementation] = {
    "litgpt": Implementation(
        "LitGPT of October 2023, bitsandbytes 0.41",
        litgpt.stem,
        litgpt.plans,
        litgpt.tail,
        ("lora",),
        _lacks_in_litgpt,
    ),
}
"""By ``training.implementation``; Transformers itself is not among them."""
