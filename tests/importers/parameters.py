"""A second, independent count of a description's parameters, by the formula of each kind of layer.

It shares nothing with the estimator, so that either finds the other's slips, and shows that a
description is complete: every weight of the model follows from its fields.
"""

from __future__ import annotations

from collections import Counter
from math import prod

from memgui.spec import ModelSpec
from memgui.spec.model import pattern_at
from memgui.spec.variants import varied

Parts = Counter[str]


def count(m: ModelSpec) -> dict[str, int]:
    """Parameters (elements) by part, named as in the truth tables; tied weights once."""
    parts: Parts = Counter()
    _inputs(m, parts)
    if m.bottleneck_size:
        _narrow(m, parts)
        return {part: number for part, number in parts.items() if number}
    for i in range(m.num_hidden_groups or m.num_hidden_layers):
        mixer = pattern_at(m.layer_types, i, "full_attention")
        feed_forward = pattern_at(m.mlp_layer_types, i, "sparse" if m.num_experts else "dense")
        own = varied(m, mixer)
        _mixer(own, mixer, parts, own.num_attention_heads, own.num_key_value_heads)
        if m.num_encoder_layers:
            _attention(m, parts, m.num_attention_heads, m.num_key_value_heads)
        _feed_forward(own, feed_forward, parts)
        norms = (mixer != "none") + (feed_forward != "none")
        norms *= 2 if m.norm_placement == "sandwich" else 1
        norms = {"none": norms, "one_norm": 1, "two_norms": 2}[m.parallel_block]
        norms += (m.num_encoder_layers > 0) - (i == 0 and not m.first_norm)
        norms += 3 * (feed_forward == "dense_sparse") + (m.hidden_size_per_layer_input > 0)
        parts["norm"] += norms * _norm(m, m.hidden_size)
    _encoder(m, parts)
    if m.final_norm:
        parts["norm"] += _norm(m, m.hidden_size)
    _head(m, parts)
    for text in m.other_weights:
        name, _, sizes = text.partition(":")
        parts[name.partition(".")[0]] += prod(map(int, sizes.split("x")))
    return {part: number for part, number in parts.items() if number}


def _narrow(m: ModelSpec, parts: Parts) -> None:
    """MobileBERT: layers with a narrow middle, and a head beside the embedding."""
    h, mid, f = m.hidden_size, m.bottleneck_size, m.intermediate_size
    narrow, feeds = m.embedding_size or h, m.num_feedforward_networks
    q = m.num_attention_heads * m.head_dim
    each = 2 * (h * mid + mid) + 2 * (mid * q + q) + h * q + q + q * mid + mid
    parts["attention"] += m.num_hidden_layers * each
    parts["mlp"] += m.num_hidden_layers * (feeds * (2 * mid * f + mid + f) + mid * h + h)
    parts["norm"] += m.num_hidden_layers * 2 * ((3 + feeds) * mid + h)
    if m.head == "masked":
        parts["lm_head"] += h * h + 3 * h + (h - narrow) * m.vocab_size + m.vocab_size
    if m.pooler:
        parts["lm_head"] += h * h + h


def _norm(m: ModelSpec, width: int) -> int:
    if m.norm in ("plain_layer_norm", "plain_rms_norm"):
        return 0
    if m.norm in ("deberta_layer_norm", "no_norm"):
        return 2 * width
    return width * (2 if m.norm == "layer_norm" and m.norm_bias else 1)


def _inputs(m: ModelSpec, parts: Parts) -> None:
    h, width = m.hidden_size, m.embedding_size or m.hidden_size
    if m.patch_size:
        parts["embedding"] += m.patch_size**2 * m.num_channels * h + 2 * h
    else:
        parts["embedding"] += m.vocab_size * width
    if m.position_embedding == "learned" and not m.num_encoder_layers:
        at = h if m.is_decoder or m.bottleneck_size else width
        parts["position_embedding"] += (m.max_position_embeddings + m.position_offset) * at
    if m.position_embedding == "disentangled":
        parts["position_embedding"] += 2 * m.position_buckets * h
        parts["norm"] += 0 if m.fused_qkv else _norm(m, h)
    if m.rotary_style == "pairs_of_table":
        parts["position_embedding"] += m.max_position_embeddings * m.head_dim
    parts["position_embedding"] += 4 * m.spatial_positions * h
    if m.relative_attention_num_buckets and not m.num_encoder_layers:
        parts["position_embedding"] += m.relative_attention_num_buckets * m.num_attention_heads
    if m.hidden_size_per_layer_input:
        width, layers = m.hidden_size_per_layer_input, m.num_hidden_layers
        parts["per_layer"] += layers * width * (m.vocab_size_per_layer_input + 3 * h) + width
    n, rank = m.altup_num_inputs, m.laurel_rank
    if n:
        each = n * n + n**3 + (n + 1) * h + 2 * rank * h
        parts["streams"] += m.num_hidden_layers * each + 2 * (n - 1) * h * h
        parts["norm"] += 2 * m.num_hidden_layers * h
    if m.hc_mult:
        parts["streams"] += m.hc_mult * (m.hc_mult * h + 1) + 1
    if m.embedding_size:
        three = 3 if m.bottleneck_size else 1
        parts["embedding_projection"] += 2 * width * h if m.is_decoder else three * width * h + h
    wide = h if m.bottleneck_size else width
    parts["token_type_embedding"] += m.type_vocab_size * wide
    if m.embedding_norm and not m.num_encoder_layers:
        parts["embedding"] += _norm(m, h if m.is_decoder else wide)


def _mixer(m: ModelSpec, kind: str, parts: Parts, heads: int, shared: int) -> None:
    h = m.hidden_size
    if kind.endswith("attention") and kind != "lightning_attention":
        _attention(m, parts, heads, shared, kind.startswith("borrowing"))
        _entries(m, kind, parts)
        if kind == "block_indexed_attention":
            parts["attention"] += (m.index_n_heads + 1) * m.index_head_dim * h
            parts["qk_norm"] += 2 * m.index_head_dim
        if kind == "indexed_attention":
            parts["attention"] += m.index_n_heads * ((m.q_lora_rank or h) * m.index_head_dim + h)
            parts["attention"] += m.index_head_dim * (h + 2)
    elif kind == "lightning_attention":
        q = heads * m.head_dim
        parts["attention"] += 5 * q * h
        parts["norm"] += q
    elif kind == "mamba":
        width, state, rank = m.mamba_d_ssm, m.mamba_d_state, m.mamba_dt_rank
        parts["mixer"] += 3 * width * h + width * (m.mamba_d_conv + m.mamba_conv_bias)
        parts["mixer"] += width * (rank + 2 * state) + width * (rank + 1) + width * (state + 1)
        parts["mixer"] += (2 * width + h) * m.mamba_proj_bias
        parts["mixer"] += (rank + 2 * state) * (m.mamba_inner_norm == "selection")
    elif kind in ("mamba2", "attention_mamba2"):
        mixed = m.mamba_d_ssm + 2 * m.mamba_n_groups * m.mamba_d_state
        into = m.mamba_d_ssm + mixed + m.mamba_n_heads
        parts["mixer"] += into * h + m.mamba_d_ssm * h + mixed * (m.mamba_d_conv + m.mamba_conv_bias)
        parts["mixer"] += 3 * m.mamba_n_heads + (into + h) * m.mamba_proj_bias
        parts["mixer"] += m.mamba_d_ssm * (m.mamba_inner_norm in ("gated", "norm_gated"))
        if kind == "attention_mamba2":
            _attention(m, parts, heads, shared)
    elif kind in ("gated_delta_net", "kda"):
        k = m.linear_num_key_heads * m.linear_key_head_dim
        v = m.linear_num_value_heads * m.linear_value_head_dim
        many = m.linear_num_value_heads
        parts["mixer"] += (
            h * (2 * k + 2 * v) + (2 * k + v) * m.linear_conv_kernel_dim + m.linear_value_head_dim
        )
        if kind == "gated_delta_net":
            parts["mixer"] += h * (v + 2 * many) + 2 * many
        else:  # decay and output gate go through a narrow middle
            narrow = m.linear_key_head_dim
            parts["mixer"] += h * many + 2 * h * narrow + narrow * (k + v) + many + k
    elif kind == "rg_lru":
        wide = m.lru_width
        parts["mixer"] += 3 * h * wide + 2 * wide + h + wide * (m.conv1d_width + 1)
        parts["mixer"] += wide + 2 * (wide * (wide // heads) + wide)
    elif kind == "short_conv":
        parts["mixer"] += 4 * h * h + h * m.conv1d_width


def _attention(m: ModelSpec, parts: Parts, heads: int, shared: int, borrowed: bool = False) -> None:
    h, q, k = m.hidden_size, heads * m.head_dim, shared * m.head_dim
    if borrowed:
        parts["attention"] += 2 * q * h
        parts["qk_norm"] += m.head_dim * (m.qk_norm == "head")
        return
    if m.hc_mult:
        _connected(m, parts)
        return
    if m.kv_lora_rank:
        queries = heads * (m.qk_nope_head_dim + m.qk_rope_head_dim)
        if m.q_lora_rank:
            parts["attention"] += m.q_lora_rank * (h + queries)
            parts["qk_norm"] += m.q_lora_rank
        else:
            parts["attention"] += h * queries
        parts["attention"] += h * (m.kv_lora_rank + m.qk_rope_head_dim + heads * m.v_head_dim)
        parts["attention"] += m.kv_lora_rank * heads * (m.qk_nope_head_dim + m.v_head_dim)
        parts["qk_norm"] += m.kv_lora_rank
        return
    if m.position_embedding == "disentangled" and m.fused_qkv:  # DeBERTa's first: biases, and distances' own
        parts["attention"] += 6 * h * q + 4 * q
        return
    size = m.v_head_dim or m.head_dim
    v = shared * size
    keys = k + v * (not m.keys_are_values)
    parts["attention"] += h * (q * (2 if m.attention_output_gate else 1) + keys) + heads * size * h
    parts["attention"] += (q + v + k * m.key_bias) * m.attention_bias + h * m.attention_output_bias
    parts["attention"] += heads * m.attention_sinks
    parts["attention"] += h * {"none": 0, "elementwise": q}.get(m.attention_gate, heads)
    parts["norm"] += q * m.inner_norms
    each, whole = 2 * m.head_dim, q + k
    weights = {"head": each, "head_rotated": each, "full": whole, "per_head": whole}.get(m.qk_norm, 0)
    parts["qk_norm"] += weights * (2 if m.qk_norm_bias else 1)


def _connected(m: ModelSpec, parts: Parts) -> None:
    """DeepSeek V4's attention without compressors, and the connections of both halves of a layer."""
    h, heads, head, rank = m.hidden_size, m.num_attention_heads, m.head_dim, m.q_lora_rank or 0
    groups, low, n = m.o_groups, m.o_lora_rank, m.hc_mult
    parts["attention"] += h * (rank + head) + rank * heads * head + heads
    parts["attention"] += low * heads * head + h * groups * low
    parts["qk_norm"] += rank + head
    parts["streams"] += 2 * ((2 * n + n * n) * (n * h + 1) + 3)


def _entries(m: ModelSpec, mixer: str, parts: Parts) -> None:
    """DeepSeek V4's compressors and indexers."""
    h, rank, many, wide = m.hidden_size, m.q_lora_rank or 0, m.index_n_heads, m.index_head_dim
    if mixer == "heavily_compressed_attention":
        parts["attention"] += m.head_dim * (2 * h + m.compress_rate_hca)
        parts["qk_norm"] += m.head_dim
    elif mixer == "compressed_sparse_attention":
        parts["attention"] += 2 * (m.head_dim + wide) * (2 * h + m.compress_rate_csa)
        parts["attention"] += many * (wide * rank + h)
        parts["qk_norm"] += m.head_dim + wide


def _feed_forward(m: ModelSpec, kind: str, parts: Parts) -> None:
    if kind == "dense_sparse":
        _feed_forward(m, "dense", parts)
        _feed_forward(m, "sparse", parts)
        parts["router"] += m.hidden_size + m.num_experts
    elif kind in ("dense", "dense_few"):
        parts["mlp"] += _mlp(m, m.intermediate_size) + 2 * (m.hidden_act == "xielu")
        parts["norm"] += m.intermediate_size * m.inner_norms
    elif kind == "sparse":
        latent = m.moe_latent_size
        parts["experts"] += m.num_experts * _mlp(m, m.moe_intermediate_size, latent, m.expert_bias)
        parts["experts"] += 2 * m.hidden_size * latent
        parts["router"] += m.num_experts * (m.hidden_size + m.router_bias)
        parts["router"] += m.num_experts * (m.router_scoring == "softmax_clamped")
        parts["router"] += m.num_experts * (m.router_balance != "none")
        if m.n_shared_experts:
            parts["shared_experts"] += _mlp(m, m.n_shared_experts * m.shared_expert_intermediate_size)
            parts["router"] += m.hidden_size * m.shared_expert_gate


def _mlp(m: ModelSpec, width: int, reads: int = 0, bias: bool | None = None) -> int:
    into, h = 2 if m.gated_mlp else 1, reads or m.hidden_size
    biased = m.mlp_bias if bias is None else bias
    inner = width * into * (m.gate_bias or not m.gated_mlp)
    return h * width * (into + 1) + (inner + h) * biased


def _encoder(m: ModelSpec, parts: Parts) -> None:
    if not m.num_encoder_layers:
        return
    h = m.hidden_size
    for _ in range(m.num_encoder_layers):
        _attention(m, parts, m.encoder_attention_heads, m.encoder_attention_heads)
        parts["mlp"] += _mlp(m, m.encoder_ffn_dim)
        parts["norm"] += 2 * _norm(m, h)
    if m.final_norm:
        parts["norm"] += _norm(m, h)
    if m.embedding_norm:
        parts["norm"] += 2 * _norm(m, h)
    if m.position_embedding in ("learned", "sinusoidal"):
        rows = (m.max_source_positions or m.max_position_embeddings) + m.max_position_embeddings
        parts["position_embedding"] += (rows + 2 * m.position_offset) * h
    if m.position_embedding == "relative":
        heads = m.num_attention_heads + m.encoder_attention_heads
        if not m.relative_attention_shared:
            heads = m.num_hidden_layers * m.num_attention_heads
            heads += m.num_encoder_layers * m.encoder_attention_heads
        parts["position_embedding"] += m.relative_attention_num_buckets * heads
    if m.num_mel_bins:
        parts["stem"] += 3 * h * (m.num_mel_bins + h) + 2 * h


def _head(m: ModelSpec, parts: Parts) -> None:
    h, width = m.hidden_size, m.head_embedding_size or m.embedding_size or m.hidden_size
    own = 0 if m.tie_word_embeddings else m.vocab_size * width
    if m.head == "masked" and not m.head_transform:
        parts["lm_head"] += 0 if m.tie_word_embeddings else m.vocab_size * m.hidden_size
    elif m.head == "masked":
        parts["lm_head"] += h * width + width * (m.mlp_bias or m.head_transform_bias) + _norm(m, width) + own
        parts["lm_head"] += m.vocab_size * m.lm_head_bias
    elif m.head == "image":
        parts["lm_head"] += (h + 1) * m.num_labels
    elif m.head != "base":
        parts["lm_head"] += own + m.vocab_size * m.lm_head_bias
        parts["lm_head"] += (h * h + _norm(m, h)) * m.causal_head_transform
    if m.pooler:
        parts["lm_head"] += h * h + h
