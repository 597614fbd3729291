"""What a model's linear layers are called, by the role they play.

Adapters name the layers they attach to as the model's code calls them.  A role is
``attention.q``, ``attention.qkv``, ``mlp.up``, ...; a model whose code is not listed is called as
Llama's is.  ``embedding.dropout`` is the part of the model that the dropout on embeddings is a
module of: NeoX has it beside its embedding.
"""

from __future__ import annotations

from functools import lru_cache

LLAMA: dict[str, str] = {
    "embedding": "embed_tokens",
    "embedding.dropout": "embedding",
    "head": "lm_head",
    "attention.q": "q_proj",
    "attention.k": "k_proj",
    "attention.v": "v_proj",
    "attention.qkv": "qkv_proj",
    "attention.o": "o_proj",
    "attention.gate": "gate_proj",
    "attention.dt": "dt_proj",
    "attention.q_a": "q_a_proj",
    "attention.q_b": "q_b_proj",
    "attention.kv_a": "kv_a_proj_with_mqa",
    "attention.kv_b": "kv_b_proj",
    "attention.q_gate": "q_gate_proj",
    "norm.gate_in": "fc1",
    "norm.gate_out": "fc2",
    "mlp.gate": "gate_proj",
    "mlp.up": "up_proj",
    "mlp.gate_up": "gate_up_proj",
    "mlp.down": "down_proj",
    "mamba.in": "in_proj",
    "mamba.x": "x_proj",
    "mamba.out": "out_proj",
    "delta.qkv": "in_proj_qkv",
    "delta.q": "q_proj",
    "delta.k": "k_proj",
    "delta.v": "v_proj",
    "delta.z": "in_proj_z",
    "delta.b": "in_proj_b",
    "delta.a": "in_proj_a",
    "delta.qkvz": "in_proj_qkvz",
    "delta.ba": "in_proj_ba",
    "delta.out": "out_proj",
    "kda.b": "b_proj",
    "kda.f_a": "f_a_proj",
    "kda.f_b": "f_b_proj",
    "kda.g_a": "g_a_proj",
    "kda.g_b": "g_b_proj",
    "lightning.gate": "output_gate",
    "lightning.out": "out_proj",
    "lru.y": "linear_y",
    "lru.x": "linear_x",
    "lru.out": "linear_out",
    "conv.in": "in_proj",
    "conv.out": "out_proj",
    "per_layer.model": "per_layer_model_projection",
    "per_layer.gate": "per_layer_input_gate",
    "per_layer.projection": "per_layer_projection",
    "shared.linear": "linear",
    "shared.down": "0",
    "shared.up": "1",
    "streams.down": "input_mix_weight_down",
    "streams.up": "input_mix_weight_up",
    "streams.inject": "block_inject_weight",
    "streams.prediction": "prediction_coefs",
    "streams.router": "modality_router",
    "bottleneck.input": "dense",
    "bottleneck.attention": "dense",
    "bottleneck.output": "dense",
    "laurel.left": "linear_left",
    "laurel.right": "linear_right",
}

BERT = {
    **LLAMA,
    "attention.q": "query",
    "attention.k": "key",
    "attention.v": "value",
    "attention.o": "dense",
    "mlp.up": "dense",
    "mlp.down": "dense",
    "head.transform": "dense",
    "pooler": "dense",
}

FUSED = {**LLAMA, "embedding": "word_embeddings", "attention.qkv": "query_key_value", "attention.o": "dense"}
FOUR_H = {**FUSED, "mlp.up": "dense_h_to_4h", "mlp.down": "dense_4h_to_h"}
GPT2 = {
    **LLAMA,
    "embedding": "wte",
    "attention.qkv": "c_attn",
    "attention.o": "c_proj",
    "mlp.up": "c_fc",
    "mlp.down": "c_proj",
}

T5 = {
    **LLAMA,
    "attention.q": "q",
    "attention.k": "k",
    "attention.v": "v",
    "attention.o": "o",
    "mlp.gate": "wi_0",
    "mlp.up": "wi",
    "mlp.down": "wo",
}
BART = {**LLAMA, "attention.o": "out_proj", "mlp.up": "fc1", "mlp.down": "fc2"}
LFM2 = {**LLAMA, "attention.o": "out_proj", "mlp.gate": "w1", "mlp.up": "w3", "mlp.down": "w2"}

GRANITE_MOE = {**LLAMA, "mlp.gate_up": "input_linear", "mlp.down": "output_linear"}
GPT_J = {**LLAMA, "embedding": "wte", "attention.o": "out_proj", "mlp.up": "fc_in", "mlp.down": "fc_out"}

NAMES: dict[str, dict[str, str]] = {
    "gpt2": GPT2,
    "gpt_bigcode": GPT2,
    "openai-gpt": GPT2,
    "codegen": GPT_J,
    "gpt_neo": {
        **LLAMA,
        "embedding": "wte",
        "attention.o": "out_proj",
        "mlp.up": "c_fc",
        "mlp.down": "c_proj",
    },
    "gptj": GPT_J,
    "gpt_neox": {**FOUR_H, "embedding": "embed_in", "embedding.dropout": "model", "head": "embed_out"},
    "bloom": FOUR_H,
    "persimmon": {**FOUR_H, "embedding": "embed_tokens"},
    **dict.fromkeys(("granitemoehybrid", "granitemoeshared", "granitemoe_swa"), GRANITE_MOE),
    "falcon": FOUR_H,
    "bart": BART,
    **dict.fromkeys(
        (
            *("bert", "roberta", "xlm-roberta", "camembert", "roformer", "rembert", "ernie", "megatron-bert"),
            *("data2vec-text", "xlm-roberta-xl", "roberta-prelayernorm", "esm", "ibert"),
        ),
        BERT,
    ),
    "mpnet": {**BERT, "attention.q": "q", "attention.k": "k", "attention.v": "v", "attention.o": "o"},
    "nomic_bert": {**LLAMA, "head.transform": "dense", "pooler": "dense"},
    "deberta-v2": {
        **BERT,
        "attention.q": "query_proj",
        "attention.k": "key_proj",
        "attention.v": "value_proj",
    },
    "deberta": {
        **BERT,
        "attention.qkv": "in_proj",
        "attention.pos_k": "pos_proj",
        "attention.pos_q": "pos_q_proj",
    },
    "electra": {**BERT, "embedding.projection": "embeddings_project"},
    "albert": {
        **BERT,
        "embedding.projection": "embedding_hidden_mapping_in",
        "mlp.up": "ffn",
        "mlp.down": "ffn_output",
    },
    "distilbert": {
        **LLAMA,
        "attention.q": "q_lin",
        "attention.k": "k_lin",
        "attention.v": "v_lin",
        "attention.o": "out_lin",
        "mlp.up": "lin1",
        "mlp.down": "lin2",
        "head.transform": "vocab_transform",
    },
    "modernbert": {
        **LLAMA,
        "attention.qkv": "Wqkv",
        "attention.o": "Wo",
        "mlp.gate_up": "Wi",
        "mlp.down": "Wo",
        "head.transform": "dense",
    },
    "deepseek_v4": {
        **LLAMA,
        "attention.kv": "kv_proj",
        "attention.o_a": "o_a_proj",
        "attention.o": "o_b_proj",
        "compressor.kv": "kv_proj",
        "compressor.gate": "gate_proj",
        "indexer.kv": "kv_proj",
        "indexer.gate": "gate_proj",
        "indexer.q_b": "q_b_proj",
        "indexer.weights": "weights_proj",
    },
    "olmo_hybrid": {
        **LLAMA,
        "delta.z": "g_proj",
        "delta.b": "b_proj",
        "delta.a": "a_proj",
        "delta.out": "o_proj",
    },
    "modernbert-decoder": {
        **LLAMA,
        "attention.o": "Wo",
        "mlp.gate_up": "Wi",
        "mlp.down": "Wo",
        "head": "decoder",
    },
    **dict.fromkeys(("mbart", "marian", "m2m_100", "blenderbot", "blenderbot-small", "plbart", "mvp"), BART),
    "pegasus": BART,
    "t5": T5,
    "mt5": T5,
    "umt5": T5,
    "longt5": T5,
    "vit": {**LLAMA, "mlp.up": "fc1", "mlp.down": "fc2"},
    "whisper": {**BART, "head": "proj_out"},
    "mobilebert": {**BERT, "embedding.projection": "embedding_transformation"},
    "lfm2": LFM2,
    "lfm2_moe": LFM2,
    "lfm3": {**LLAMA, "attention.gate": "g_proj", "mlp.gate": "w1", "mlp.up": "w3", "mlp.down": "w2"},
    "mpt": {**LLAMA, "embedding": "wte", "attention.qkv": "Wqkv", "attention.o": "out_proj"},
    "dbrx": {**LLAMA, "embedding": "wte", "attention.qkv": "Wqkv", "attention.o": "out_proj"},
    "xglm": BART,
    "opt": BART,
    "biogpt": {**BART, "head": "output_projection"},
    "nanochat": {**LLAMA, "mlp.up": "fc1", "mlp.down": "fc2"},
    "phi": {**LLAMA, "attention.o": "dense", "mlp.up": "fc1", "mlp.down": "fc2"},
    "starcoder2": {**LLAMA, "embedding.dropout": "model", "mlp.up": "c_fc", "mlp.down": "c_proj"},
}


OLD_EXPERTS = {"router": "gate", "experts.gate_up": "gate_proj", "experts.down": "down_proj"}
OLD_MIXTRAL = {"router": "gate", "experts.gate_up": "w1", "experts.down": "w2"}

WRAPPED: dict[str, dict[str, str]] = {
    **dict.fromkeys(("mixtral", "minimax", "minimax_m2"), OLD_MIXTRAL),
    "longcat_flash": {"experts.gate_up": "gate_proj", "experts.down": "down_proj"},
    **dict.fromkeys(
        (
            *("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm4_moe", "glm_moe_dsa"),
            *("qwen3_moe", "qwen3_next", "olmoe", "flex_olmo", "dots1", "ernie4_5_moe", "hunyuan_v1_moe"),
            *("glm4_moe_lite", "glm4v_moe_text", "afmoe", "cohere2_moe", "exaone_moe", "mellum"),
            *("sarvam_mla", "solar_open", "beam"),
        ),
        OLD_EXPERTS,
    ),
}
"""Models whose stacked experts and routers PEFT wraps when it is asked for the linear layers of old.

Source: PEFT 0.21's ``transformers_weight_conversion`` and Transformers 5.24's ``conversion_mapping``.
"""


HALVES: dict[str, tuple[str, str]] = {
    model_type: ("w1", "w3") if old is OLD_MIXTRAL else ("gate_proj", "up_proj")
    for model_type, old in WRAPPED.items()
}
"""What gate and up projection of their experts were called: one weight now, which PEFT wraps for both or not
at all."""


def names(model_type: str) -> dict[str, str]:
    """Role to name for models of ``model_type``."""
    return NAMES.get(model_type, LLAMA) | WRAPPED.get(model_type, {})


USUALLY_SCALED = ("attention.k", "attention.v", "attention.qkv", "mlp.down")
_QUERIES_AND_VALUES = ("attention.q", "attention.v", "attention.qkv", "mlp.down")
SCALED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("gptj", "gpt_neo", "bart", "phi", "qwen2", "qwen3"), _QUERIES_AND_VALUES),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text", "llama4_text"), _QUERIES_AND_VALUES),
    "opt": ("attention.q", "attention.k", "mlp.down"),
    **dict.fromkeys(
        ("bert", "roberta", "deberta-v2"), ("attention.k", "attention.v", "attention.o", "mlp.down")
    ),
}
"""Layers that (IA)³ scales where these are not the usual ones.

Source: PEFT 0.21's ``TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING``.
"""

TAKEN: dict[str, tuple[str, ...]] = {
    "phi": ("q_proj", "v_proj", "fc1", "fc2"),
    "nemotron_h": ("q_proj", "k_proj", "v_proj", "o_proj"),
}
"""Layers that low-rank adapters go on where nobody says which and they are not queries and values.

Source: PEFT 0.21's ``TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING``.
"""

UNTAKEN: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("falcon_h1", "mamba", "mamba2", "falcon_mamba", "nemotron_h"), ("out_proj", "conv1d")
)
"""Layers that PEFT refuses to put low-rank adapters on: a fused kernel takes their weights.

Source: PEFT 0.21's ``_check_lora_target_modules_mamba``.
"""

MEANT: dict[str, str] = {
    LLAMA[role]: role
    for role in (
        *("attention.q", "attention.k", "attention.v", "attention.o"),
        *("mlp.gate", "mlp.up", "mlp.down"),
    )
}
"""The roles that Llama's names stand for where a model calls its layers otherwise."""


@lru_cache(maxsize=64)
def targets(
    model_type: str, asked: tuple[str, ...], *, fused_qkv: bool, fused_gate_up: bool, gated: bool
) -> tuple[str, ...]:
    """The layers that adapters ``asked`` for by Llama's names go on, as the model calls them.

    One projection may stand for several, and a feed-forward without a gate has its first layer for
    both.  Other names stay as they are.
    """
    called = names(model_type)
    halves = HALVES.get(model_type)
    found: dict[str, None] = {}
    for name in asked:
        if halves and name in halves:
            found[halves[0]] = None
            continue
        role = MEANT.get(name, "")
        if fused_qkv and role in ("attention.q", "attention.k", "attention.v"):
            role = "attention.qkv"
        elif role in ("mlp.gate", "mlp.up") and not gated:
            role = "mlp.up"
        elif role in ("mlp.gate", "mlp.up") and fused_gate_up:
            role = "mlp.gate_up"
        found[called.get(role, name)] = None
    return tuple(found)
