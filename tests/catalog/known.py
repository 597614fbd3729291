"""Popular models that no collected file is of: the numbers of their published config.json."""

from __future__ import annotations

from typing import Any

SOURCE = "hyper-parameters in the config.json published with the model"

COMPLETED_BY = "its parameters are then those published, to the last one"
_HYBRID = ["attention" if layer % 10 == 5 else "mamba" for layer in range(40)]
COMPLETED: dict[str, dict[str, Any]] = {
    "ibm-granite/granite-4.0-h-1b": {
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "num_local_experts": 0,
        "num_experts_per_tok": 0,
        "shared_intermediate_size": 4096,
        "tie_word_embeddings": True,
    },
    "ibm-granite/granite-4.0-h-small": {"layer_types": _HYBRID, "max_position_embeddings": 131072},
}
"""What trimmed files of the collection leave out, where defaults would make another model of it."""

_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
_ESM = {
    "model_type": "esm",
    "architectures": ["EsmForMaskedLM"],
    "vocab_size": 33,
    "max_position_embeddings": 1026,
    "position_embedding_type": "rotary",
    "emb_layer_norm_before": False,
    "token_dropout": True,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "num_attention_heads": 20,
}
_XGLM = {"model_type": "xglm", "vocab_size": 256008, "max_position_embeddings": 2048, "dropout": 0.1}


def _esm(hidden: int, layers: int) -> dict[str, Any]:
    return {**_ESM, "hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": 4 * hidden}


def _xglm(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {**_XGLM, "d_model": hidden, "num_layers": layers, "attention_heads": heads, "ffn_dim": 4 * hidden}


KNOWN: dict[str, dict[str, Any]] = {
    "sentence-transformers/all-mpnet-base-v2": {
        **_BASE,
        "model_type": "mpnet",
        "architectures": ["MPNetModel"],
        "vocab_size": 30527,
        "max_position_embeddings": 514,
    },
    "nomic-ai/nomic-embed-text-v1.5": {
        **_BASE,
        "model_type": "nomic_bert",
        "architectures": ["NomicBertModel"],
        "vocab_size": 30528,
        "max_position_embeddings": 8192,
        "type_vocab_size": 2,
    },
    "google/mobilebert-uncased": {
        "model_type": "mobilebert",
        "architectures": ["MobileBertModel"],
        "vocab_size": 30522,
        "hidden_size": 512,
        "embedding_size": 128,
        "intra_bottleneck_size": 128,
        "num_hidden_layers": 24,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "num_feedforward_networks": 4,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
        "hidden_act": "relu",
    },
    "Alibaba-NLP/gte-multilingual-base": {
        **_BASE,
        "model_type": "gte",
        "architectures": ["GteModel"],
        "vocab_size": 250048,
        "max_position_embeddings": 8192,
        "type_vocab_size": 1,
    },
    "facebook/esm2_t12_35M_UR50D": _esm(480, 12),
    "facebook/esm2_t30_150M_UR50D": _esm(640, 30),
    "facebook/esm2_t33_650M_UR50D": _esm(1280, 33),
    "microsoft/deberta-base": {
        **_BASE,
        "model_type": "deberta",
        "architectures": ["DebertaModel"],
        "vocab_size": 50265,
        "max_position_embeddings": 512,
        "type_vocab_size": 0,
        "relative_attention": True,
        "max_relative_positions": -1,
        "position_biased_input": False,
        "pos_att_type": ["c2p", "p2c"],
    },
    "microsoft/layoutlm-base-uncased": {
        **_BASE,
        "model_type": "layoutlm",
        "architectures": ["LayoutLMModel"],
        "vocab_size": 30522,
        "max_position_embeddings": 512,
        "max_2d_position_embeddings": 1024,
        "type_vocab_size": 2,
    },
    "facebook/xglm-564M": _xglm(1024, 24, 16),
    "facebook/xglm-1.7B": _xglm(2048, 24, 16),
    "facebook/xglm-7.5B": _xglm(4096, 32, 32),
}
"""Configurations by the name on the hub."""

PLAIN: dict[str, str] = {"google/gemma-4-31B-it": "nvidia__Gemma-4-31B-IT-NVFP4.json"}
"""Models of which a packed copy's file was collected."""
