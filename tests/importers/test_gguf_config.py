"""A GGUF file says what its model is: each built-in model, written as llama.cpp's converter writes it."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf as package
import pytest
from msgspec.structs import replace

from memgui.catalog import Catalog, ModelEntry
from memgui.files.bounded import FileFault
from memgui.importers.gguf_config import MODEL_TYPES
from memgui.importers.gguf_parts import read_gguf
from memgui.importers.hf_config import Imported, import_weights
from memgui.spec import ModelSpec
from memgui.spec.model import pattern_at
from tests.importers.files import entry, gguf, gguf_llama, number, sparse, tensor, text, words
from tests.importers.parameters import count

K = package.Keys

SAME = (
    "llama qwen qwen2 qwen3 gemma gemma2 phi3 phimoe gpt2 gptj falcon starcoder2 stablelm mpt cohere2 olmo "
    "olmo2 olmoe granite granitemoe glm4 chatglm baichuan internlm2 orion smollm3 exaone4 mamba mamba2 "
)
SAME += "deepseek minicpm mistral4 bloom"
ARCHITECTURES = {model_type: name for name, model_type in MODEL_TYPES.items()}
ARCHITECTURES |= {name: name for name in SAME.split()}
ARCHITECTURES |= {
    "mixtral": "llama",
    "mistral": "llama",
    "yi": "llama",
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "kimi_k2": "deepseek2",
    "ministral3": "mistral3",
    "lfm2": "lfm2",
    "jamba": "jamba",
}
NOT_WRITTEN = {
    "mimo_v2_flash",
    "gemma4_text",
    "mistral4",
    "granitemoehybrid",
    "nemotron_h",
    "kimi_linear",
    "glm_moe_dsa",
    "falcon_h1",
    "jamba",
}
"""Kinds whose metadata this writer does not write."""


def written(m: ModelSpec, architecture: str) -> bytes:
    """The header of a GGUF file with the metadata and the telling tensors of ``m``."""

    def key(name: str) -> str:
        return name.format(arch=architecture)

    numbers = {
        K.LLM.BLOCK_COUNT: m.num_hidden_layers,
        K.LLM.EMBEDDING_LENGTH: m.hidden_size,
        K.LLM.CONTEXT_LENGTH: m.max_position_embeddings or 2048,
        K.LLM.VOCAB_SIZE: m.vocab_size,
    }
    if m.mamba_d_ssm:
        numbers |= {
            K.SSM.CONV_KERNEL: m.mamba_d_conv,
            K.SSM.INNER_SIZE: m.mamba_d_ssm,
            K.SSM.STATE_SIZE: m.mamba_d_state,
            K.SSM.TIME_STEP_RANK: m.mamba_n_heads or m.mamba_dt_rank,
            K.SSM.GROUP_COUNT: m.mamba_n_groups,
        }
    else:
        numbers |= {
            K.LLM.FEED_FORWARD_LENGTH: m.intermediate_size * (2 if m.model_type == "qwen" else 1),
            K.Attention.HEAD_COUNT: m.num_attention_heads,
            K.Attention.HEAD_COUNT_KV: m.num_key_value_heads,
            K.Attention.KEY_LENGTH: m.head_dim,
            K.Attention.VALUE_LENGTH: m.head_dim,
            K.Rope.DIMENSION_COUNT: m.rotary_dim or m.head_dim,
        }
    if m.sliding_window:
        numbers[K.Attention.SLIDING_WINDOW] = m.sliding_window
    if m.num_experts:
        numbers |= {
            K.LLM.EXPERT_COUNT: m.num_experts,
            K.LLM.EXPERT_USED_COUNT: m.num_experts_per_tok,
            K.LLM.EXPERT_FEED_FORWARD_LENGTH: m.moe_intermediate_size,
            K.LLM.EXPERT_SHARED_COUNT: m.n_shared_experts,
            K.LLM.EXPERT_SHARED_FEED_FORWARD_LENGTH: m.shared_expert_intermediate_size,
        }
        if architecture == "llama":
            numbers[K.LLM.FEED_FORWARD_LENGTH] = m.moe_intermediate_size
        dense = [pattern_at(m.mlp_layer_types, i, "sparse") == "dense" for i in range(m.num_hidden_layers)]
        numbers[K.LLM.LEADING_DENSE_BLOCK_COUNT] = sum(dense)
        if architecture == "llama4":
            numbers["{arch}.interleave_moe_layer_step"] = 2 if any(dense) else 1
    if m.kv_lora_rank:
        numbers |= {
            K.Attention.KV_LORA_RANK: m.kv_lora_rank,
            **({K.Attention.Q_LORA_RANK: m.q_lora_rank} if m.q_lora_rank else {}),
            K.Attention.HEAD_COUNT_KV: 1,
            K.Attention.KEY_LENGTH: m.kv_lora_rank + m.qk_rope_head_dim,
            K.Attention.VALUE_LENGTH: m.kv_lora_rank,
            K.Attention.KEY_LENGTH_MLA: m.qk_rope_head_dim + m.qk_nope_head_dim,
            K.Attention.VALUE_LENGTH_MLA: m.v_head_dim,
            K.Rope.DIMENSION_COUNT: m.qk_rope_head_dim,
            K.LLM.EXPERT_GATING_FUNC: 2 if m.router_scoring == "sigmoid" else 1,
        }
    if m.linear_num_key_heads:
        numbers |= {
            K.SSM.CONV_KERNEL: m.linear_conv_kernel_dim,
            K.SSM.STATE_SIZE: m.linear_key_head_dim,
            K.SSM.GROUP_COUNT: m.linear_num_key_heads,
            K.SSM.TIME_STEP_RANK: m.linear_num_value_heads,
            K.SSM.INNER_SIZE: m.linear_num_value_heads * m.linear_value_head_dim,
        }
    if m.conv1d_width:
        numbers[K.ShortConv.L_CACHE] = m.conv1d_width
    entries = [entry("general.architecture", 8, text(architecture))]
    if m.layer_types and "short_conv" in m.layer_types:  # a number of heads for each layer
        del numbers[K.Attention.HEAD_COUNT_KV]
        kinds = [pattern_at(m.layer_types, i, "") for i in range(m.num_hidden_layers)]
        per_layer = [m.num_key_value_heads if kind == "full_attention" else 0 for kind in kinds]
        packed = struct.pack(f"<IQ{len(per_layer)}i", 5, len(per_layer), *per_layer)
        entries.append(entry(key(K.Attention.HEAD_COUNT_KV), 9, packed))
    entries += [number(key(name), value) for name, value in numbers.items() if value]
    if architecture == "gptneox":
        parallel = struct.pack("<B", m.parallel_block != "none")
        entries.append(entry(key(K.LLM.USE_PARALLEL_RESIDUAL), 7, parallel))
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (m.vocab_size, m.hidden_size)}
    shapes |= {} if m.tie_word_embeddings else {"output.weight": (m.vocab_size, m.hidden_size)}
    fused = "qkv" if m.fused_qkv else "q"
    width = m.num_attention_heads * m.head_dim
    shapes |= {f"blk.0.attn_{fused}.bias": (width,)} if m.attention_bias else {}
    shapes |= {"output.bias": (m.vocab_size,)} if m.lm_head_bias else {}
    shapes |= {"blk.0.ffn_up.bias": (m.intermediate_size,)} if m.mlp_bias else {}
    shapes |= {"blk.0.attn_q_norm.weight": (m.head_dim,)} if m.qk_norm not in ("none", "plain") else {}
    if m.model_type == "falcon" and m.cached_key_value_heads:
        shapes["blk.0.attn_norm_2.weight"] = (m.hidden_size,)
    if m.model_type == "qwen":
        shapes["blk.0.ffn_up.weight"] = (m.intermediate_size, m.hidden_size)
    return _whole(entries, shapes)


def _whole(entries: list[bytes], shapes: dict[str, tuple[int, ...]]) -> bytes:
    tensors, offset = [], 0
    for name, shape in shapes.items():
        tensors.append(tensor(name, shape, 1, offset))
        elements = shape[0] * (shape[1] if len(shape) > 1 else 1)
        offset += -(-2 * elements // 32) * 32
    header = gguf(entries, tensors)
    return header + struct.pack("<Q", offset)


def imported(path: Path, header: bytes) -> Imported:
    size = struct.unpack("<Q", header[-8:])[0]
    start = header[:-8]
    table = read_gguf(sparse(path, start, len(start) + 32 + size))
    return import_weights(table, path.name, "m")


def refused(path: Path, *entries: bytes) -> str:
    with pytest.raises(FileFault) as caught:
        imported(path, _whole(list(entries), {}))
    return str(caught.value)


def _entries() -> list[ModelEntry]:
    return [
        entry
        for entry in Catalog().models
        if entry.spec.model_type in ARCHITECTURES and entry.spec.model_type not in NOT_WRITTEN
    ]


def test_every_built_in_model_comes_back(tmp_path: Path) -> None:
    entries = _entries()
    kinds = {entry.spec.model_type for entry in entries}
    assert len(kinds) >= 35, sorted(kinds)
    wrong = []
    for built_in in entries:
        model = replace(built_in.spec, other_weights=())  # towers lie in a file of their own
        found = imported(tmp_path / "m.gguf", written(model, ARCHITECTURES[model.model_type])).model
        found = replace(found, other_weights=())
        counted, meant = sum(count(found).values()), sum(count(model).values())
        names = ("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim")
        differing = [name for name in names if getattr(found, name) != getattr(model, name)]
        if counted != meant or differing:
            wrong.append((built_in.name, model.model_type, counted - meant, differing))
    assert not wrong, wrong


def test_what_a_hybrid_says_of_each_layer(tmp_path: Path) -> None:
    """Numbers of key/value heads, 0 where a layer has no attention: Jamba, Nemotron-H, Granite 4."""
    plain = [number(f"jamba.{name}", value) for name, value in JAMBA.items()]
    kv = struct.pack("<IQ8i", 5, 8, 0, 0, 0, 0, 8, 0, 0, 0)
    header = [entry("general.architecture", 8, text("jamba")), *plain]
    found = imported(
        tmp_path / "m.gguf", _whole([*header, entry("jamba.attention.head_count_kv", 9, kv)], {})
    )
    kinds = [pattern_at(found.model.layer_types, i, "") for i in range(8)]
    assert kinds == ["mamba"] * 4 + ["full_attention"] + ["mamba"] * 3
    assert found.model.num_key_value_heads == 8


JAMBA = {
    "block_count": 8,
    "embedding_length": 4096,
    "feed_forward_length": 14336,
    "attention.head_count": 32,
    "vocab_size": 65536,
    "context_length": 262144,
    "ssm.conv_kernel": 4,
    "ssm.state_size": 16,
    "ssm.time_step_rank": 256,
    "expert_count": 16,
    "expert_used_count": 2,
}


def test_what_cannot_be_a_model_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    assert "general.architecture" in refused(path)
    assert "mmproj" in refused(path, entry("general.architecture", 8, text("clip")))
    named = entry("general.architecture", 8, text("llama"))
    assert "neither a width" in refused(path, named)
    layers = number("llama.block_count", 4)
    unequal = entry("llama.attention.head_count_kv", 9, struct.pack("<IQ2i", 5, 2, 4, 8))
    assert "differs from layer to layer" in refused(path, named, layers, unequal)
    wrong = entry("llama.embedding_length", 8, text("4096"))
    assert "a whole number" in refused(path, named, layers, wrong)


def test_an_architecture_that_nobody_described_opens_as_the_nearest(tmp_path: Path) -> None:
    numbers = {
        "block_count": 4,
        "embedding_length": 512,
        "feed_forward_length": 2048,
        "attention.head_count": 8,
    }
    entries = [number(f"unheard.{name}", value) for name, value in numbers.items()]
    header = _whole(
        [entry("general.architecture", 8, text("unheard")), *entries, words("tokenizer.ggml.tokens", "abc")],
        {},
    )
    found = imported(tmp_path / "m.gguf", header)
    assert (found.model.hidden_size, found.model.vocab_size) == (512, 3)
    assert any("unheard is not described" in message.text for message in found.assumed)


def test_a_name_that_breaks_its_line_is_written_out(tmp_path: Path) -> None:
    more = [
        number("llama.attention.head_count", 8),
        number("llama.feed_forward_length", 512),
        entry("general.name", 8, text("a\nb\u202ec")),
    ]
    header, size = gguf_llama(2, 256, 512, 40, more=more)
    table = read_gguf(sparse(tmp_path / "m.gguf", header, size))
    assert import_weights(table, "m.gguf").model.name == "a\\nb\\u202ec"
