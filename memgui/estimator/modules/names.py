"""What a model's linear layers are called, by the role they play.

Adapters name the layers they attach to as the model's code calls them.  A role is
``attention.q``, ``attention.qkv``, ``mlp.up``, ...; a model whose code is not listed is called as
Llama's is.
"""

from __future__ import annotations

LLAMA: dict[str, str] = {
    "attention.q": "q_proj",
    "attention.k": "k_proj",
    "attention.v": "v_proj",
    "attention.qkv": "qkv_proj",
    "attention.o": "o_proj",
    "mlp.gate": "gate_proj",
    "mlp.up": "up_proj",
    "mlp.gate_up": "gate_up_proj",
    "mlp.down": "down_proj",
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

NAMES: dict[str, dict[str, str]] = {
    "gpt2": {
        **LLAMA,
        "attention.qkv": "c_attn",
        "attention.o": "c_proj",
        "mlp.up": "c_fc",
        "mlp.down": "c_proj",
    },
    "bert": BERT,
    "roberta": BERT,
    "opt": {**LLAMA, "attention.o": "out_proj", "mlp.up": "fc1", "mlp.down": "fc2"},
}


def names(model_type: str) -> dict[str, str]:
    """Role to name for models of ``model_type``."""
    return NAMES.get(model_type, LLAMA)
