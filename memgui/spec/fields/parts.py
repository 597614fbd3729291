"""What parts a model has: a field of a part applies where the model has that part."""

from __future__ import annotations

from memgui.spec.scenario import Scenario


def experts(scenario: Scenario) -> bool:
    """Whether layers have experts."""
    return scenario.model.num_experts > 0


def latent(scenario: Scenario) -> bool:
    """Whether keys and values are compressed (multi-head latent attention)."""
    return scenario.model.kv_lora_rank is not None


def values_apart(scenario: Scenario) -> bool:
    """Whether heads for values have a size of their own."""
    return scenario.model.kv_lora_rank is not None or scenario.model.v_head_dim > 0


def rotates_apart(scenario: Scenario) -> bool:
    """Whether heads have a part of their own that is rotated, as those of latent attention do."""
    return scenario.model.kv_lora_rank is not None or scenario.model.qk_rope_head_dim > 0


def has(scenario: Scenario, *kinds: str) -> bool:
    """Whether any layer has one of these mixers."""
    return any(kind in scenario.model.layer_types for kind in kinds)


def indexed(scenario: Scenario) -> bool:
    """Whether an indexer picks the tokens that attention reads."""
    return in_blocks(scenario) or any(
        "indexed" in kind or kind == "compressed_sparse_attention" for kind in scenario.model.layer_types
    )


def in_blocks(scenario: Scenario) -> bool:
    """Whether an indexer picks blocks of keys."""
    return has(scenario, "block_indexed_attention", "pooled_indexed_attention")


def shared(scenario: Scenario) -> bool:
    """Whether layers share a transformer."""
    return scenario.model.num_mem_blocks > 0


def opened(scenario: Scenario) -> bool:
    """Whether several residual streams are opened by gates."""
    return scenario.model.hc_count > 0


def looping(scenario: Scenario) -> bool:
    """Whether some layers run several times."""
    return scenario.model.n_recurrent_layers > 0


def masked(scenario: Scenario) -> bool:
    """Whether attention has a mask that follows from the values."""
    return scenario.model.dynamic_mask


def connected(scenario: Scenario) -> bool:
    """Whether several residual streams are mixed by learned connections."""
    return scenario.model.hc_mult > 0


def mamba(scenario: Scenario) -> bool:
    """Whether there are Mamba layers of any kind."""
    return has(scenario, "mamba", "mamba2", "attention_mamba2", "shared_mamba2")


def mamba2(scenario: Scenario) -> bool:
    """Whether there are Mamba-2 layers."""
    return has(scenario, "mamba2", "attention_mamba2", "shared_mamba2")


def linear(scenario: Scenario) -> bool:
    """Whether there is linear attention with keys and values of its own sizes."""
    return has(scenario, "gated_delta_net", "kda")


def in_chunks(scenario: Scenario) -> bool:
    """Whether layers work on chunks of tokens."""
    return has(scenario, "gated_delta_net", "kda", "lightning_attention")


def convolution(scenario: Scenario) -> bool:
    """Whether layers look back over a few tokens by a convolution of their own."""
    return has(scenario, "rg_lru", "short_conv")


def encoder(scenario: Scenario) -> bool:
    """Whether tokens see those after them too."""
    return not scenario.model.is_decoder


def image(scenario: Scenario) -> bool:
    """Whether the model reads an image, which is cut into patches."""
    model = scenario.model
    return not model.is_decoder and max(model.image_size, model.patch_size, model.num_channels) > 0


def two_stacks(scenario: Scenario) -> bool:
    """Whether an encoder stands before the decoder."""
    return scenario.model.num_encoder_layers > 0


def looks_up(scenario: Scenario) -> bool:
    """Whether layers have embeddings of their own."""
    return max(scenario.model.hidden_size_per_layer_input, scenario.model.vocab_size_per_layer_input) > 0


def streams(scenario: Scenario) -> bool:
    """Whether a model's layers are written for several copies of the residual stream."""
    return max(scenario.model.altup_num_inputs, scenario.model.laurel_rank) > 0
