"""Parts of a model that are nothing without others: sizes that its structure needs, and does not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, Value
from memgui.spec.model import ModelSpec

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "kv_lora_rank": ("qk_rope_head_dim", "v_head_dim"),
    "image_size": ("patch_size", "num_channels"),
    "patch_size": ("image_size",),
    "hidden_size_per_layer_input": ("vocab_size_per_layer_input",),
    "hc_sinkhorn_iters": ("hc_mult",),
    "altup_num_inputs": ("laurel_rank", "hidden_size_per_layer_input", "layer_types"),
}
"""What a part needs beside itself, where it is there."""

_MAMBA: Final = ("mamba_d_ssm", "mamba_d_state", "mamba_d_conv")
_MAMBA_2: Final = (*_MAMBA, "mamba_n_heads", "mamba_d_head", "mamba_n_groups", "mamba_chunk_size")
_LINEAR: Final = (
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "linear_chunk_size",
)
_INDEXED: Final = ("index_n_heads", "index_head_dim", "index_topk")
_CONNECTED: Final = ("hc_mult", "hc_sinkhorn_iters", "o_groups", "o_lora_rank", "q_lora_rank")
_LAYERS: Final[Mapping[str, tuple[str, ...]]] = {
    "mamba": (*_MAMBA, "mamba_dt_rank"),
    "mamba2": _MAMBA_2,
    "attention_mamba2": _MAMBA_2,
    "shared_mamba2": (*_MAMBA_2, "num_mem_blocks", "adapter_rank"),
    "gated_delta_net": _LINEAR,
    "kda": _LINEAR,
    "lightning_attention": ("linear_chunk_size",),
    "rg_lru": ("lru_width", "conv1d_width"),
    "short_conv": ("conv1d_width",),
    "indexed_attention": _INDEXED,
    "shared_indexed_attention": ("index_topk",),
    "unrotated_indexed_attention": _INDEXED,
    "grouped_indexed_attention": (*_INDEXED, "compress_rate_csa"),
    "unrotated_shared_indexed_attention": ("index_topk",),
    "pooled_indexed_attention": (*_INDEXED, "index_block_size"),
    "block_indexed_attention": ("index_n_heads", "index_head_dim", "index_block_size", "index_topk_blocks"),
    "windowed_attention": _CONNECTED,
    "compressed_sparse_attention": (*_CONNECTED, *_INDEXED, "compress_rate_csa"),
    "heavily_compressed_attention": (*_CONNECTED, "compress_rate_hca"),
}
"""What layers of a kind need."""


def parts(model: ModelSpec) -> Iterator[Issue]:
    """Parts of ``model`` without what they need."""
    for name, needs in _PARTS.items():
        value = getattr(model, name)
        if value:
            for needed in needs:
                rotates = needed != "qk_rope_head_dim" or model.position_embedding != "none"
                if rotates and not getattr(model, needed):
                    yield _missing(f"model.{name}", value, needed)
    if model.layer_types:
        for kind in {*model.layer_types} & _LAYERS.keys():
            for needed in _LAYERS[kind]:
                if not getattr(model, needed):
                    yield _missing("model.layer_types", kind, needed)


def _missing(path: str, value: object, needed: str) -> Issue:
    text = QT_TRANSLATE_NOOP("messages", "{path} = {value} needs {needed}, which the model does not have.")
    values: dict[str, Value] = {
        "path": path,
        "value": Named(path, (value,)),
        "needed": Named(f"model.{needed}"),
    }
    return Issue("error", "part_missing", (f"model.{needed}", path), Message(text, values))
