"""Families that are another one under a new name, or but for a flag or two."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.encoder import bert, roberta
from memgui.importers.families.experts import by_sigmoids, first_dense, glm4_moe, granitemoe, olmoe, qwen3_moe
from memgui.importers.families.gpt import BIASES, gpt2, gptj, opt, with_layer_norm
from memgui.importers.families.latent import deepseek_v3, latent_attention
from memgui.importers.families.llama import granite, llama, olmo2, qwen3
from memgui.importers.families.parts import (
    activation,
    dropouts,
    experts,
    mixers,
    rotary,
    shared_experts,
    stated_layers,
    window_size,
)
from memgui.importers.families.registry import Fields, family


@family("internlm3", "iquestcoder", "exaone")
def another_llama(c: Config) -> Fields:
    """Llama, under their own names."""
    return llama(c)


@family("ernie4_5")
def ernie(c: Config) -> Fields:
    """Llama whose neighbours are rotated together, in fp32."""
    return {**llama(c), "rotary_style": "pairs_upcast", "dropouts": ()}


@family("helium")
def helium(c: Config) -> Fields:
    """Llama whose neighbours are rotated together; norms in fp32 throughout."""
    return {**llama(c), "rotary_style": "pairs", "norm": "rms_norm_fp32_copied"}


@family("cwm")
def cwm(c: Config) -> Fields:
    """Llama 3 with a window in three of four layers."""
    fields = llama(c)
    kinds = stated_layers(c, "layer_types", fields["num_hidden_layers"])
    return {**fields, **mixers(kinds), "sliding_window": c.count_or_none("sliding_window")}


@family("arcee", "jais2", "nemotron")
def without_gate(c: Config) -> Fields:
    """Llama whose feed-forward is squared ReLU without a gate; Jais 2 and Nemotron have LayerNorms."""
    fields = {**llama(c), "gated_mlp": False, "hidden_act": activation(c, "relu2")}
    if c.model_type == "arcee":
        return fields
    part = rotary(c, fields["head_dim"], 0.5) if c.model_type == "nemotron" else {}
    return {
        **fields,
        **part,
        "norm": "layer_norm",
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=False),
    }


@family("seed_oss")
def seed_oss(c: Config) -> Fields:
    """Llama with biases on query, key and value, and dropout behind each half."""
    c = c.renamed("hidden_dropout", "residual_dropout")
    return {
        **llama(c),
        **dropouts(c, "attention", "hidden"),
        "attention_output_bias": c.flag("attention_out_bias", default=False),
    }


@family("hunyuan_v1_dense")
def hunyuan(c: Config) -> Fields:
    """Llama with norms on each query and key head, after these are rotated."""
    return {**llama(c), "qk_norm": "head_rotated"}


@family("hunyuan_v1_moe")
def hunyuan_moe(c: Config) -> Fields:
    """The same with experts of ``intermediate_size`` and shared ones."""
    fields = hunyuan(c)
    width = fields["intermediate_size"]
    routed = {"router_in_fp32": True, "norm_topk_prob": True, "router_casts_back": True}
    return {**fields, **experts(c, width), **routed, **shared_experts(1, width)}


@family("granitemoeshared")
def granitemoeshared(c: Config) -> Fields:
    """Granite's experts, and one that every token goes through."""
    shared = shared_experts(1, c.count("shared_intermediate_size", default=0))
    return {**granitemoe(c), **shared, "fused_gate_up": True}


@family("granite_swa", "granitemoe_swa")
def granite_with_windows(c: Config) -> Fields:
    """Granite or its experts with windows in three of four layers; sinks multiply what attention gives."""
    sparse = c.model_type == "granitemoe_swa"
    shared = sparse and c.count("shared_intermediate_size", default=0)
    fields = granitemoeshared(c) if shared else granitemoe(c) if sparse else granite(c)
    layers = fields["num_hidden_layers"]
    computed = ["sliding_attention" if i % 4 else "full_attention" for i in range(layers)]
    kinds = stated_layers(c, "layer_types", layers) or computed
    stated = c.stated.value.get("layer_rope_theta")
    bases = (
        [one if isinstance(one, (int, float)) else 1 for one in stated] if isinstance(stated, list) else []
    )
    unrotated = {kind for kind, base in zip(kinds, bases, strict=False) if not base}
    if unrotated == {"full_attention"}:
        kinds = ["unrotated_attention" if kind == "full_attention" else kind for kind in kinds]
    return {
        **fields,
        **mixers(kinds),
        "sliding_window": window_size(c) or 128,
        "rotary_per_layer_type": len(set(bases) - {0}) > 1,
        "attention_sinks": True,
        "sink_factor": True,
        "sdpa": False,
    }


@family("flex_olmo")
def flex_olmo(c: Config) -> Fields:
    """OLMo 2 with OLMoE's experts."""
    fields = olmo2(c)
    same = ("norm_placement", "norm", "rotary_style")
    return {**olmoe(c), **{name: fields[name] for name in same}}


@family("mellum")
def mellum(c: Config) -> Fields:
    """Qwen 3's experts."""
    return qwen3_moe(c)


@family("sarvam_moe")
def sarvam_moe(c: Config) -> Fields:
    """GLM 4.5, whose heads are rotated as a whole."""
    fields = glm4_moe(c)
    return {**fields, "rotary_dim": rotary(c, fields["head_dim"], 1.0).get("rotary_dim")}


@family("dots1", "solar_open")
def dots1(c: Config) -> Fields:
    """GLM 4.5's experts; dots.llm1 has norms on each query and key head."""
    fields = glm4_moe(c)
    return {
        **fields,
        "rotary_dim": rotary(c, fields["head_dim"], 1.0).get("rotary_dim"),
        "qk_norm": "head" if c.model_type == "dots1" else "none",
        "rotary_style": "half",
    }


@family("glm4_moe_lite", "sarvam_mla", "youtu")
def another_deepseek(c: Config) -> Fields:
    """DeepSeek-V3; Youtu has no experts."""
    if c.model_type != "youtu":
        return deepseek_v3(c)
    latent = latent_attention(c)
    return {**llama(c.with_default("head_dim", latent["head_dim"])), **latent}


@family("ernie4_5_moe")
def ernie_moe(c: Config) -> Fields:
    """Llama's attention, DeepSeek's experts: the first layers dense, some shared."""
    fields = llama(c)
    width = c.count("moe_intermediate_size")
    plan = first_dense(c, fields["num_hidden_layers"], c.count("moe_layer_start_index", default=1))
    return {
        **fields,
        **experts(c),
        **shared_experts(c.count("moe_num_shared_experts", default=0), width),
        **plan,
        **by_sigmoids(c),
        "router_scoring": "softmax_clamped",
        "router_correction_bias": False,
        "rotary_style": "pairs_upcast",
        "dropouts": (),
    }


@family("codegen")
def codegen(c: Config) -> Fields:
    """GPT-J with one projection for query, key and value, taken apart by copies; rotated in fp32."""
    return {
        **gptj(c),
        "fused_qkv": True,
        "fused_qkv_split": "copied",
        "rotary_style": "pairs_part_fp32",
    }


@family("openai-gpt")
def gpt1(c: Config) -> Fields:
    """GPT-2 with norms after each sum; scores are multiplied by a buffer."""
    return {
        **gpt2(c),
        "norm_placement": "post",
        "final_norm": False,
        "sdpa": False,
        "score_masking": "scaled",
    }


@family("biogpt")
def biogpt(c: Config) -> Fields:
    """OPT with a factor on its embeddings."""
    c = c.renamed("embedding_size", "hidden_size")
    fields = opt(c.with_default("word_embed_proj_dim", c.count("hidden_size")))
    return {
        **fields,
        **BIASES,
        "dropouts": ("attention", "hidden", "embedding", "activation"),
        "embedding_dropout": fields["hidden_dropout"],
        "activation_dropout": c.ratio("activation_dropout"),
        "embedding_scaling": "number",
        "explicit_mask": True,
        "softmax_in_fp32": False,
    }


@family("persimmon")
def persimmon(c: Config) -> Fields:
    """LayerNorms, a squared ReLU, norms with biases on heads, half of each head rotated."""
    fields = with_layer_norm(c)
    normed = c.flag("qk_layernorm", default=True)
    return {
        **fields,
        **rotary(c, fields["head_dim"], 0.5),
        **({"qk_norm": "head", "qk_norm_bias": True} if normed else {}),
        "rotary_style": "part_in_layer",
        "fused_qkv": True,
    }


@family("ernie", "megatron-bert", "data2vec-text", "ibert", "xlm-roberta-xl", "roberta-prelayernorm")
def another_bert(c: Config) -> Fields:
    """BERT; the later three have norms before each half and one behind the last layer."""
    padded = ("data2vec-text", "roberta-prelayernorm", "xlm-roberta-xl", "ibert")
    fields = (roberta if c.model_type in padded else bert)(c)
    if c.model_type in ("roberta-prelayernorm", "xlm-roberta-xl", "megatron-bert"):
        megatron = c.model_type == "megatron-bert"
        fields |= {
            "norm_placement": "pre",
            "final_norm": True,
            "embedding_norm": c.model_type == "roberta-prelayernorm",
            **({"segments_given": True, "sdpa": False, "explicit_mask": True} if megatron else {}),
        }
    if c.model_type == "xlm-roberta-xl":  # nothing is dropped behind the feed-forward
        fields["dropouts"] = ("attention", "attention_output", "embedding")
    return fields


@family("apertus", "apertus1p5_text")
def apertus(c: Config) -> Fields:
    """Llama with norms on heads and an activation without gate that has two weights of its own.

    Apertus 1.5 reads tokens of pictures and sounds too, which its head may not predict.
    """
    fields = qwen3(c)
    stated = c.stated.value.get("output_vocab_size") is not None
    rows = c.count("output_vocab_size") if stated else 0
    whole = not rows or rows == fields["vocab_size"]
    return {
        **fields,
        "gated_mlp": False,
        "hidden_act": activation(c, "xielu"),
        **({} if whole else {"output_vocab_size": rows, "tie_word_embeddings": False}),
    }
