"""Families whose code comes with the checkpoint, or only the language half of a model of several senses.

Structure as their published code has it; what Transformers does not know has no class defaults.
"""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.experts import glm4_moe, qwen3_moe
from memgui.importers.families.hybrid import minimax
from memgui.importers.families.llama import glm4, llama, qwen2, qwen3
from memgui.importers.families.parts import dimensions, dropouts, experts, rotary
from memgui.importers.families.registry import Fields, family


@family("qwen")
def qwen(c: Config) -> Fields:
    """Qwen 1: ``intermediate_size`` counts gate and up together; biases on query, key and value."""
    fields = llama(c)
    return {
        **fields,
        "intermediate_size": fields["intermediate_size"] // 2,
        "attention_bias": True,
        "attention_output_bias": False,
        "mlp_bias": not c.flag("no_bias", default=True),
        "fused_qkv": True,
    }


@family("mimo")
def mimo(c: Config) -> Fields:
    """Qwen 2 with layers that predict further tokens, which are left out here."""
    return qwen2(c)


@family("chatglm")
def chatglm(c: Config) -> Fields:
    """One projection for query, key and value and one for gate and up; half of each head rotated."""
    fields = dimensions(c)
    heads = fields["num_attention_heads"]
    grouped = c.flag("multi_query_attention", default=False)
    bias = c.flag("add_bias_linear", default=False)
    return {
        **fields,
        **dropouts(c, "attention", "hidden"),
        **rotary(c, fields["head_dim"], 0.5),
        "num_key_value_heads": fields["num_key_value_heads"] if grouped else heads,
        "intermediate_size": c.count("intermediate_size"),
        "norm": "rms_norm" if c.flag("rmsnorm", default=True) else "layer_norm",
        "final_norm": c.flag("post_layer_norm", default=True),
        "fused_qkv": True,
        "fused_gate_up": True,
        "attention_bias": c.flag("add_qkv_bias", default=False) or bias,
        "attention_output_bias": bias,
        "mlp_bias": bias,
    }


@family("baichuan")
def baichuan(c: Config) -> Fields:
    """Llama with one projection for query, key and value; the 13B has ALiBi."""
    fields = {**llama(c), "fused_qkv": True}
    return {**fields, "position_embedding": "alibi"} if fields["num_hidden_layers"] == 40 else fields


@family("internlm2")
def internlm2(c: Config) -> Fields:
    """Llama with one projection for query, key and value; ``bias`` speaks for attention."""
    return {**llama(c), "fused_qkv": True}


@family("orion")
def orion(c: Config) -> Fields:
    """Llama with LayerNorms."""
    return {**llama(c), "norm": "layer_norm"}


@family("minicpm")
def minicpm(c: Config) -> Fields:
    """Llama with fixed factors; experts where there are any."""
    fields = {**llama(c), "tie_word_embeddings": c.flag("tie_word_embeddings", default=True)}
    if not c.states("num_experts"):
        return fields
    return {**fields, **experts(c, fields["intermediate_size"])}


@family("minimax_m1")
def minimax_m1(c: Config) -> Fields:
    """MiniMax-Text-01; ``attn_type_list`` marks full attention with 1; the router is kept in fp32."""
    fields = minimax(c)
    marks = c.counts("attn_type_list")
    kinds = ["full_attention" if mark else "lightning_attention" for mark in marks]
    part = c.count_or_none("rotary_dim")
    return {
        **fields,
        **({"layer_types": tuple(kinds)} if kinds else {}),
        "rotary_dim": part,
        "router_in_fp32": True,
    }


@family("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text", "qwen2_vl", "qwen2_5_vl", "minicpmv")
def qwen2_of_several_senses(c: Config) -> Fields:
    """The language half is Qwen 2."""
    return qwen2(c)


@family("qwen3_vl_text")
def qwen3_of_several_senses(c: Config) -> Fields:
    """The language half is Qwen 3."""
    return qwen3(c)


@family("qwen3_vl_moe_text")
def qwen3_moe_of_several_senses(c: Config) -> Fields:
    """The language half is Qwen 3's mixture of experts."""
    return qwen3_moe(c)


@family("glm4v_text", "glm4v")
def glm4v(c: Config) -> Fields:
    """The language half is GLM 4, with biases on query, key and value."""
    return {**glm4(c), "attention_bias": True}


@family("glm4v_moe_text")
def glm4v_moe(c: Config) -> Fields:
    """The language half is GLM 4.5."""
    return glm4_moe(c)
