"""Multi-head latent attention: keys and values from a compressed, cached latent (DeepSeek and its likes)."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.experts import first_dense
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import experts, shared_experts
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP


def latent_attention(c: Config) -> Fields:
    """The sizes of the latent and of the heads made from it."""
    rotated = c.count("qk_rope_head_dim")
    unrotated = c.count("qk_nope_head_dim")
    return {
        "q_lora_rank": c.count_or_none("q_lora_rank"),
        "kv_lora_rank": c.count("kv_lora_rank"),
        "qk_nope_head_dim": unrotated,
        "qk_rope_head_dim": rotated,
        "v_head_dim": c.count("v_head_dim"),
        "head_dim": rotated + unrotated,
        "rotary_dim": rotated,
    }


@family("deepseek_v2")
def deepseek_v2(c: Config) -> Fields:
    """Latent attention; the first layers dense, then routed experts beside shared ones."""
    fields = llama(c)
    number = c.count_or_none("n_shared_experts") or 0
    return {
        **fields,
        **latent_attention(c),
        **experts(c),
        **shared_experts(number, c.count("moe_intermediate_size")),
        **first_dense(c, fields["num_hidden_layers"], c.count("first_k_dense_replace")),
    }


@family("deepseek_v3", "kimi_k2")
def deepseek_v3(c: Config) -> Fields:
    """DeepSeek-V2 with a balance in the router that is a buffer."""
    if c.count("num_nextn_predict_layers", "num_mtp_layers", default=0):
        c.assume(
            QT_TRANSLATE_NOOP(
                "messages",
                "The layers that predict further tokens are left out, as Transformers leaves them out.",
            )
        )
    return {**deepseek_v2(c), "router_correction_bias": True}
