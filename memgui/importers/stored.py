"""The true bytes of a model's tensors, by part and layer, from the headers of its files."""

from __future__ import annotations

import re
from typing import Final

from memgui.importers.tensors import TensorTable
from memgui.spec.model import ModelSpec
from memgui.spec.stored import MOST, written

_LAYER: Final = re.compile(r"(?:^|\.)(?:layers?|blocks?|blk|h)\.(\d{1,5})\.")

# The first pattern found in a name tells its part; GGUF's words and those of checkpoints.
_INSIDE: Final = (
    (r"(q|k)_?(layer)?norm|attn_[qk]_norm", "qk_norm"),
    (r"norm|ln_|layer_scale", "norm"),
    (r"shared_expert|_shexp|shared_mlp", "shared_experts"),
    (r"mlp\.gate\.|router|gate_inp|moe\.gate\.|ffn\.gate\.|e_score|exp_probs_b", "router"),
    (r"experts|_exps", "experts"),
    (r"linear_attn|ssm_|mamba|mixer|conv|recurrent|rg_lru|temporal|attn_gate", "mixer"),
    (r"attn|attention|self_attn", "attention"),
    (r"", "mlp"),
)
_OUTSIDE: Final = (
    (r"vision|visual|image|multi_modal|(^|\.)mm[._]|^v\.", "vision"),
    (r"audio|speech", "audio"),
    (r"lm_head|^output\.weight|output_layer|embed_out", "lm_head"),
    (r"position|wpe", "position_embedding"),
    (r"token_types?|token_type", "token_type_embedding"),
    (r"embed|wte|tok_embeddings|token_embd|word_emb", "embedding"),
    (r"norm|ln_f|rope_freqs|inv_freq", "norm"),
)


def stored_weights(table: TensorTable, model: ModelSpec) -> tuple[str, ...]:
    """``model.stored_weights``: nothing where the files are not whole or have tensors nobody knows.

    Layers behind the model's last one (for predicting several tokens) are not loaded by engines; a head
    that is tied is loaded once.
    """
    if table.missing:
        return ()
    sizes: dict[tuple[str, int], int] = {}
    for tensor in table.tensors:
        found = _place(tensor.name)
        if found is None:
            return ()
        part, layer = found
        if layer >= model.num_hidden_layers or (part == "lm_head" and model.tie_word_embeddings):
            continue
        sizes[part, layer] = sizes.get((part, layer), 0) + tensor.bytes
    texts = tuple(written(sizes))
    return texts if len(texts) <= MOST else ()


def _place(name: str) -> tuple[str, int] | None:
    """The part of the model that a tensor is of, and its layer (-1: none)."""
    beside = next((part for pattern, part in _OUTSIDE[:2] if re.search(pattern, name)), None)
    if beside is not None:
        return beside, -1
    at = _LAYER.search(name)
    patterns = _INSIDE if at else _OUTSIDE
    part = next((part for pattern, part in patterns if re.search(pattern, name)), None)
    if part is None:
        return None
    return part, int(at[1]) if at else -1
