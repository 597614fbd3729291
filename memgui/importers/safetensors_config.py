"""What the names and shapes of a checkpoint's tensors say of the model, where no config.json is beside it.

Shapes give every width.  How many heads share a projection they give only where something is as wide as
one head: a norm on queries and keys, or the rotary frequencies that older checkpoints store.  What cannot
be told is asked for, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from memgui.files.bounded import FileFault
from memgui.importers.tensors import TensorTable
from memgui.spec.messages import QT_TRANSLATE_NOOP

_LAYER: Final = re.compile(r"(?P<before>.*?)(?:layers|blocks|h)\.(?P<index>\d{1,5})\.(?P<name>.*)")
_PACKED: Final = (".qweight", ".weight_packed", ".weight.absmax", ".weight.quant_map", ".trellis")

Shapes = Mapping[str, tuple[int, ...]]


def config_of_shapes(table: TensorTable, name: str) -> dict[str, object]:
    """The configuration that the tensors of a Llama-like checkpoint leave no doubt about.

    Raises :class:`FileFault` with what is missing where anything is in doubt.
    """
    shapes = {tensor.name: tensor.shape for tensor in table.tensors}
    layers, one = _layers(shapes)
    embedding = next(
        (shape for key, shape in shapes.items() if key.endswith("embed_tokens.weight") and len(shape) == 2),
        None,
    )
    if embedding is None or not layers:
        _refuse(name, "model_type, hidden_size, num_hidden_layers")
    vocabulary, hidden = embedding
    if any(key.endswith(_PACKED) for key in shapes):
        _refuse(name, "quantization_config")
    missing = []
    if any(".experts." in key for key in one):
        missing.append("num_experts_per_tok")
    if "self_attn.kv_b_proj.weight" in one:
        missing.append("qk_rope_head_dim")
    if any(key.startswith(("mixer.", "mamba.", "linear_attn.")) for key in one):
        missing.append("layer_types")
    if "pre_feedforward_layernorm.weight" in one:
        missing.append("sliding_window")
    query, key = (_width(one, f"self_attn.{which}_proj.weight", hidden) for which in "qk")
    head = _head_dim(one)
    if not query or not key:
        missing.append("num_attention_heads")
    elif not head or query % head or key % head:
        missing.append("head_dim")
    inner = _width(one, "mlp.gate_proj.weight", hidden)
    if not inner and not missing:
        missing.append("model_type")
    if missing:
        _refuse(name, ", ".join(missing))
    assert head is not None
    biased = "self_attn.q_proj.bias" in one
    normed = "self_attn.q_norm.weight" in one
    return {
        "model_type": "qwen3" if normed else "qwen2" if biased else "llama",
        "hidden_size": hidden,
        "vocab_size": vocabulary,
        "num_hidden_layers": layers,
        "num_attention_heads": query // head,
        "num_key_value_heads": key // head,
        "head_dim": head,
        "intermediate_size": inner,
        "attention_bias": biased,
        "tie_word_embeddings": not any(key.endswith("lm_head.weight") for key in shapes),
    }


def _layers(shapes: Shapes) -> tuple[int, Shapes]:
    """How many layers the longest stack has, and the tensors of its first layer."""
    stacks: dict[str, set[int]] = {}
    first: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, shape in shapes.items():
        found = _LAYER.fullmatch(name)
        if found is None:
            continue
        stacks.setdefault(found["before"], set()).add(int(found["index"]))
        if int(found["index"]) == 0:
            first.setdefault(found["before"], {})[found["name"]] = shape
    language = {before: indexes for before, indexes in stacks.items() if not _other_sense(before)}
    if not language:
        return 0, {}
    longest = max(language, key=lambda before: len(language[before]))
    indexes = language[longest]
    return (len(indexes) if max(indexes) + 1 == len(indexes) else 0), first.get(longest, {})


def _other_sense(prefix: str) -> bool:
    return any(word in prefix for word in ("visual", "vision", "audio", "image"))


def _width(one: Shapes, name: str, hidden: int) -> int:
    """The rows of a projection that reads the hidden size; 0 where there is no such matrix."""
    shape = one.get(name, ())
    return shape[0] if len(shape) == 2 and shape[1] == hidden else 0


def _head_dim(one: Shapes) -> int | None:
    norm = one.get("self_attn.q_norm.weight")
    if norm is not None and len(norm) == 1:
        query = one.get("self_attn.q_proj.weight", (0,))
        return norm[0] if norm[0] < query[0] else None  # as wide as all heads: OLMo, which is another family
    frequencies = one.get("self_attn.rotary_emb.inv_freq")
    return 2 * frequencies[0] if frequencies is not None and len(frequencies) == 1 else None


def _refuse(name: str, missing: str) -> NoReturn:
    raise FileFault(
        name,
        QT_TRANSLATE_NOOP(
            "messages",
            "{file} has weights but no config.json beside it, and its tensors do not say: {missing}.",
        ),
        missing=missing,
    )
