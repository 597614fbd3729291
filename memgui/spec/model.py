"""What a model is: dimensions and structure, named as in a Hugging Face ``config.json``.

A model is described, not named: its ``model_type`` is only where the description came from.
Each layer has a *mixer* (``layer_types``) and a *feed-forward* (``mlp_layer_types``); the other
structural fields say how this model's layers write their norms, projections and activations.  The
estimator reads nothing but this description, so a hybrid, an alternating window or a first dense
layer is a pattern in a tuple and no special case.
"""

# Annotations are not postponed: msgspec would compile each of them when it first reads a scenario.

import msgspec


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One transformer (or state-space) model.  Widths are elements, lengths are tokens.

    ``layer_types`` and ``mlp_layer_types`` are patterns: layer *i* takes entry ``i % len(pattern)``,
    so that changing ``num_hidden_layers`` keeps the rhythm; an empty pattern means every layer is
    ``full_attention`` / ``dense`` (``sparse`` where ``num_experts`` is set).
    """

    # where the description comes from
    name: str = ""
    model_type: str = ""
    source: str = ""
    head: str = "causal"

    # dimensions
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int
    max_position_embeddings: int = 0
    tie_word_embeddings: bool = False
    output_vocab_size: int = 0
    nominal_parameters: int | None = None

    # how a layer is written
    layer_types: tuple[str, ...] = ()
    mlp_layer_types: tuple[str, ...] = ()
    layer_variants: tuple[str, ...] = ()
    norm: str = "rms_norm"
    norm_bias: bool = True
    norm_placement: str = "pre"
    first_norm: bool = True
    parallel_block: str = "none"
    qk_norm: str = "none"
    qk_norm_bias: bool = False
    inner_norms: bool = False
    gated_norm_rank: int = 0
    hidden_act: str = "silu"
    gated_mlp: bool = True
    position_embedding: str = "rope"
    position_offset: int = 0
    rotary_dim: int | None = None
    rotary_style: str = "half"
    rotary_per_layer_type: bool = False
    rotary_per_sequence: bool = False
    rotary_in_layer: bool = False
    rotary_learned: bool = False
    fused_qkv: bool = False
    fused_qkv_split: str = "split"
    fused_gate_up: bool = False
    attention_bias: bool = False
    key_bias: bool = True
    attention_output_bias: bool = False
    attention_output_gate: bool = False
    attention_gate: str = "none"
    differential: bool = False
    dynamic_mask: bool = False
    keep_window_size: int = 0
    attention_sinks: bool = False
    sink_factor: bool = False
    value_norm: bool = False
    keys_are_values: bool = False
    clip_qkv: bool = False
    mlp_bias: bool = False
    gate_bias: bool = True
    bias_added: bool = False
    lm_head_bias: bool = False
    head_bias_added: bool = False
    head_transform: bool = True
    classifier: str = "pooled"
    head_transform_bias: bool = False
    causal_head_transform: bool = False
    embedding_size: int | None = None
    embedding_norm: bool = False
    embedding_scaling: str = "none"
    residual_scaling: bool = False
    stream_scaling: bool = False
    layer_scalar: bool = False
    channel_scales: bool = False
    mup_scaling: bool = False
    logit_scaling: bool = False
    head_input_scaling: bool = False
    logits_buffer: bool = False
    mask_buffer: bool = False
    mlp_in_weight_format: bool = False
    joined_branches: bool = False
    residual_first: bool = False
    branch_held: str = "none"
    final_norm: bool = True
    attn_logit_softcapping: float | None = None
    final_logit_softcapping: float | None = None
    cached_key_value_heads: int | None = None

    # how attention is written
    sdpa: bool = True
    explicit_mask: bool = False
    repeats_key_values: bool = True
    softmax_in_fp32: bool = True
    scores_in_fp32: bool = False
    score_scaling: str = "after"
    score_masking: str = "added"
    query_scaling: bool = False
    value_scaling: bool = False
    query_temperature: bool = False
    head_temperature: bool = False
    temperature_once: bool = False
    heads_in_order: bool = False

    # windows
    sliding_window: int | None = None
    attention_chunk_size: int | None = None

    # which dropouts the model's code has, and the model's own probabilities
    dropouts: tuple[str, ...] = ("attention",)
    hidden_dropout: float = 0.0
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0
    activation_dropout: float = 0.0
    final_dropout: float = 0.0

    # experts (``sparse`` layers)
    num_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    moe_latent_size: int = 0
    n_shared_experts: int = 0
    shared_expert_intermediate_size: int = 0
    shared_expert_gate: bool = False
    shared_experts_first: bool = False
    experts_summed_in_fp32: bool = False
    experts_norm: bool = False
    zero_expert_num: int = 0
    shortcut_experts: bool = False
    experts_scaled: bool = False
    experts_clamped: bool = False
    router_bias: bool = False
    router_correction_bias: bool = False
    router_balance: str = "none"
    router_in_fp32: bool = False
    router_scoring: str = "softmax"
    norm_topk_prob: bool = False
    routed_scaling: bool = False
    router_casts_back: bool = False
    router_upcast: bool = False
    expert_layout: str = "grouped"
    expert_bias: bool = False

    # latent attention (MLA), where ``kv_lora_rank`` is set
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    index_n_heads: int = 0
    index_head_dim: int = 0
    index_topk: int = 0
    indexer_in_fp32: bool = False
    index_block_size: int = 0
    index_topk_blocks: int = 0
    query_gate: bool = False
    latent_scaling: bool = False
    o_groups: int = 0
    o_lora_rank: int = 0
    compress_rate_csa: int = 0
    compress_rate_hca: int = 0

    # state space layers (``mamba``, ``mamba2``)
    mamba_d_ssm: int = 0
    mamba_d_state: int = 0
    mamba_d_conv: int = 0
    mamba_dt_rank: int = 0
    mamba_n_heads: int = 0
    mamba_d_head: int = 0
    mamba_n_groups: int = 0
    mamba_chunk_size: int = 0
    mamba_conv_bias: bool = True
    mamba_proj_bias: bool = False
    mamba_inner_norm: str = "none"
    residual_in_fp32: bool = False
    logits_in_fp32: bool = False
    head_in_fp32: bool = False
    cap_in_fp32: bool = False
    loss_in_fp32: bool = False

    # linear attention (``gated_delta_net``, ``kda``) and recurrences (``rg_lru``, ``short_conv``)
    linear_num_key_heads: int = 0
    linear_num_value_heads: int = 0
    linear_key_head_dim: int = 0
    linear_value_head_dim: int = 0
    linear_conv_kernel_dim: int = 0
    linear_chunk_size: int = 0
    linear_fused: bool = False
    linear_separate: bool = False
    linear_doubled: bool = False
    linear_sigmoid: bool = False
    linear_bounded: bool = False
    linear_exact: bool = False
    lru_width: int = 0
    conv1d_width: int = 0

    # encoders: what they read, and what is shared
    is_decoder: bool = True
    pooler: bool = False
    type_vocab_size: int = 0
    segments_given: bool = False
    spatial_positions: int = 0
    head_embedding_size: int = 0
    bottleneck_size: int = 0
    num_feedforward_networks: int = 1
    num_hidden_groups: int = 0
    position_buckets: int = 0
    image_size: int = 0
    patch_size: int = 0
    num_channels: int = 0
    num_labels: int = 0

    # an encoder before the decoder, where ``num_encoder_layers`` is set
    num_encoder_layers: int = 0
    encoder_attention_heads: int = 0
    encoder_ffn_dim: int = 0
    relative_attention_num_buckets: int = 0
    relative_attention_shared: bool = True
    num_mel_bins: int = 0
    max_source_positions: int = 0

    # embeddings of each layer's own
    hidden_size_per_layer_input: int = 0
    vocab_size_per_layer_input: int = 0

    # a transformer that layers share (Zamba 2)
    num_mem_blocks: int = 0
    adapter_rank: int = 0
    shared_attention_adapter: bool = False

    # several residual streams that gates open (Qwen 4)
    hc_count: int = 0
    hc_lowrank: int = 0

    # layers that run several times (Dory)
    n_input_layers: int = 0
    n_recurrent_layers: int = 0
    n_recurrent_loops: int = 1
    recurrent_kv_cache_mode: str = "per_loop"

    # several copies of the residual stream (Gemma 3n)
    altup_num_inputs: int = 0
    laurel_rank: int = 0

    # several residual streams that connections mix (DeepSeek V4)
    hc_mult: int = 0
    hc_sinkhorn_iters: int = 0
    hc_upcast: bool = False
    hc_averaged: bool = False
    num_hash_layers: int = 0

    # beside the layers: towers for images and sound, per-layer embeddings (``memgui.spec.weights``)
    other_weights: tuple[str, ...] = ()

    # what the model's files hold, where they were opened (``memgui.spec.stored``)
    stored_weights: tuple[str, ...] = ()


def pattern_at(pattern: tuple[str, ...], index: int, default: str) -> str:
    """Entry of a layer pattern for layer ``index``; ``default`` where the pattern is empty."""
    return pattern[index % len(pattern)] if pattern else default
