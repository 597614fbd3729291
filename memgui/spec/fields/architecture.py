"""Fields of a model's parts that not every model has: experts, latent attention, recurrences, encoders."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field
from memgui.spec.fields.parts import (
    convolution,
    encoder,
    experts,
    image,
    in_chunks,
    indexed,
    latent,
    linear,
    mamba,
    mamba2,
    rotates_apart,
    two_stacks,
    values_apart,
)
from memgui.spec.fields.rows import choice, count, flag, size
from memgui.spec.messages import QT_TRANSLATE_NOOP

EXPERTS: tuple[Field, ...] = (
    size(
        "num_experts",
        QT_TRANSLATE_NOOP("fields", "Experts"),
        QT_TRANSLATE_NOOP("fields", "Routed experts of each sparse layer; 0 for a dense model."),
    ),
    size(
        "num_experts_per_tok",
        QT_TRANSLATE_NOOP("fields", "Experts per token"),
        QT_TRANSLATE_NOOP("fields", "Routed experts that each token goes through."),
        applies=experts,
    ),
    size(
        "moe_intermediate_size",
        QT_TRANSLATE_NOOP("fields", "Expert width"),
        QT_TRANSLATE_NOOP("fields", "Inner width of one routed expert."),
        applies=experts,
    ),
    size(
        "moe_latent_size",
        QT_TRANSLATE_NOOP("fields", "Expert latent size"),
        QT_TRANSLATE_NOOP("fields", "Width that routed experts read and write; 0: the hidden size."),
        applies=experts,
    ),
    size(
        "n_shared_experts",
        QT_TRANSLATE_NOOP("fields", "Shared experts"),
        QT_TRANSLATE_NOOP("fields", "Experts that every token goes through; they are written as one."),
        applies=experts,
    ),
    size(
        "shared_expert_intermediate_size",
        QT_TRANSLATE_NOOP("fields", "Shared expert width"),
        QT_TRANSLATE_NOOP("fields", "Inner width of one shared expert."),
        applies=experts,
    ),
    flag(
        "shared_expert_gate",
        QT_TRANSLATE_NOOP("fields", "Shared expert gate"),
        QT_TRANSLATE_NOOP("fields", "A learned gate weighs the shared expert."),
        applies=experts,
    ),
    flag(
        "router_bias",
        QT_TRANSLATE_NOOP("fields", "Router bias"),
        QT_TRANSLATE_NOOP("fields", "The router has a trained bias."),
        applies=experts,
    ),
    flag(
        "router_correction_bias",
        QT_TRANSLATE_NOOP("fields", "Router correction"),
        QT_TRANSLATE_NOOP("fields", "The router has a bias that balances the load: a buffer, no parameter."),
        applies=experts,
    ),
)

LATENT: tuple[Field, ...] = (
    count(
        "kv_lora_rank",
        QT_TRANSLATE_NOOP("fields", "KV latent size"),
        QT_TRANSLATE_NOOP(
            "fields", "Width that keys and values are compressed to (multi-head latent attention)."
        ),
        advanced=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "no latent attention"),
        applies=rotates_apart,
    ),
    count(
        "q_lora_rank",
        QT_TRANSLATE_NOOP("fields", "Query latent size"),
        QT_TRANSLATE_NOOP("fields", "Width that queries are compressed to."),
        advanced=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "not compressed"),
        applies=latent,
    ),
    size(
        "qk_nope_head_dim",
        QT_TRANSLATE_NOOP("fields", "Unrotated head size"),
        QT_TRANSLATE_NOOP("fields", "Part of each query and key head without rotary positions."),
        applies=latent,
    ),
    size(
        "qk_rope_head_dim",
        QT_TRANSLATE_NOOP("fields", "Rotated head size"),
        QT_TRANSLATE_NOOP("fields", "Part of each query head with rotary positions; keys share one."),
        applies=latent,
    ),
    size(
        "v_head_dim",
        QT_TRANSLATE_NOOP("fields", "Value head size"),
        QT_TRANSLATE_NOOP("fields", "Width of one value head."),
        applies=values_apart,
    ),
    size(
        "index_n_heads",
        QT_TRANSLATE_NOOP("fields", "Indexer heads"),
        QT_TRANSLATE_NOOP("fields", "Heads of the indexer that picks the tokens attention reads."),
        applies=indexed,
    ),
    size(
        "index_head_dim",
        QT_TRANSLATE_NOOP("fields", "Indexer head size"),
        QT_TRANSLATE_NOOP("fields", "Width of one indexer head; its keys are cached beside the latent."),
        applies=indexed,
    ),
    size(
        "index_topk",
        QT_TRANSLATE_NOOP("fields", "Indexed tokens"),
        QT_TRANSLATE_NOOP("fields", "Tokens that the indexer picks for each query."),
        applies=indexed,
    ),
)

STATE_SPACE: tuple[Field, ...] = (
    size(
        "mamba_d_ssm",
        QT_TRANSLATE_NOOP("fields", "Mamba width"),
        QT_TRANSLATE_NOOP("fields", "Inner width of a Mamba layer."),
        applies=mamba,
    ),
    size(
        "mamba_d_state",
        QT_TRANSLATE_NOOP("fields", "State size"),
        QT_TRANSLATE_NOOP("fields", "Elements of the state for each channel."),
        applies=mamba,
    ),
    size(
        "mamba_d_conv",
        QT_TRANSLATE_NOOP("fields", "Mamba convolution"),
        QT_TRANSLATE_NOOP("fields", "Tokens that the short convolution before the scan reads."),
        applies=mamba,
    ),
    size(
        "mamba_dt_rank",
        QT_TRANSLATE_NOOP("fields", "Time step rank"),
        QT_TRANSLATE_NOOP("fields", "Width that Mamba-1's time step is projected from."),
        applies=mamba,
    ),
    size(
        "mamba_n_heads",
        QT_TRANSLATE_NOOP("fields", "Mamba heads"),
        QT_TRANSLATE_NOOP("fields", "Heads of a Mamba-2 layer."),
        applies=mamba2,
    ),
    size(
        "mamba_d_head",
        QT_TRANSLATE_NOOP("fields", "Mamba head size"),
        QT_TRANSLATE_NOOP("fields", "Width of one Mamba-2 head."),
        applies=mamba2,
    ),
    size(
        "mamba_n_groups",
        QT_TRANSLATE_NOOP("fields", "Mamba groups"),
        QT_TRANSLATE_NOOP("fields", "Groups of heads that share their input and output maps."),
        applies=mamba2,
    ),
    size(
        "mamba_chunk_size",
        QT_TRANSLATE_NOOP("fields", "Scan chunk"),
        QT_TRANSLATE_NOOP("fields", "Tokens that Mamba-2's scan handles at once."),
        applies=mamba2,
    ),
    flag(
        "mamba_conv_bias",
        QT_TRANSLATE_NOOP("fields", "Mamba convolution bias"),
        QT_TRANSLATE_NOOP("fields", "The short convolution has a bias."),
        applies=mamba,
    ),
    flag(
        "mamba_proj_bias",
        QT_TRANSLATE_NOOP("fields", "Mamba projection bias"),
        QT_TRANSLATE_NOOP("fields", "The projections in and out have a bias."),
        applies=mamba,
    ),
    flag(
        "residual_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Residual in fp32"),
        QT_TRANSLATE_NOOP("fields", "The residual stream is kept in fp32, whatever the weights' format."),
        applies=mamba,
    ),
    flag(
        "logits_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Logits in fp32"),
        QT_TRANSLATE_NOOP("fields", "The model's own code turns its logits to fp32."),
        applies=mamba,
    ),
    choice(
        "mamba_inner_norm",
        QT_TRANSLATE_NOOP("fields", "Mamba inner norm"),
        QT_TRANSLATE_NOOP("fields", "Norms inside a Mamba layer."),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        Choice("gated", QT_TRANSLATE_NOOP("fields", "gated, on the output")),
        Choice("norm_gated", QT_TRANSLATE_NOOP("fields", "on the output, then gated")),
        Choice("selection", QT_TRANSLATE_NOOP("fields", "on time step, input and output maps")),
        Choice("plain_selection", QT_TRANSLATE_NOOP("fields", "on the same, without weights")),
        applies=mamba,
    ),
)

RECURRENT: tuple[Field, ...] = (
    size(
        "linear_num_key_heads",
        QT_TRANSLATE_NOOP("fields", "Linear key heads"),
        QT_TRANSLATE_NOOP("fields", "Query and key heads of linear attention."),
        applies=linear,
    ),
    size(
        "linear_num_value_heads",
        QT_TRANSLATE_NOOP("fields", "Linear value heads"),
        QT_TRANSLATE_NOOP("fields", "Value heads of linear attention; each keeps a state of its own."),
        applies=linear,
    ),
    size(
        "linear_key_head_dim",
        QT_TRANSLATE_NOOP("fields", "Linear key size"),
        QT_TRANSLATE_NOOP("fields", "Width of one query or key head of linear attention."),
        applies=linear,
    ),
    size(
        "linear_value_head_dim",
        QT_TRANSLATE_NOOP("fields", "Linear value size"),
        QT_TRANSLATE_NOOP("fields", "Width of one value head of linear attention."),
        applies=linear,
    ),
    size(
        "linear_conv_kernel_dim",
        QT_TRANSLATE_NOOP("fields", "Linear convolution"),
        QT_TRANSLATE_NOOP("fields", "Tokens that the short convolution before linear attention reads."),
        applies=linear,
    ),
    size(
        "linear_chunk_size",
        QT_TRANSLATE_NOOP("fields", "Linear chunk"),
        QT_TRANSLATE_NOOP("fields", "Tokens that linear attention works on together."),
        applies=in_chunks,
    ),
    size(
        "lru_width",
        QT_TRANSLATE_NOOP("fields", "Recurrence width"),
        QT_TRANSLATE_NOOP("fields", "Width of the gated linear recurrence."),
        applies=convolution,
    ),
    size(
        "conv1d_width",
        QT_TRANSLATE_NOOP("fields", "Convolution width"),
        QT_TRANSLATE_NOOP("fields", "Tokens that the layer's short convolution reads."),
        applies=convolution,
    ),
)

ENCODER: tuple[Field, ...] = (
    flag(
        "is_decoder",
        QT_TRANSLATE_NOOP("fields", "Decoder"),
        QT_TRANSLATE_NOOP("fields", "Tokens see only those before them, and a cache can be kept."),
    ),
    flag(
        "pooler",
        QT_TRANSLATE_NOOP("fields", "Pooler"),
        QT_TRANSLATE_NOOP("fields", "A dense layer over the first token stands on top of the layers."),
        applies=encoder,
    ),
    size(
        "type_vocab_size",
        QT_TRANSLATE_NOOP("fields", "Segment types"),
        QT_TRANSLATE_NOOP("fields", "Rows of the embedding of segments."),
        applies=encoder,
    ),
    flag(
        "segments_given",
        QT_TRANSLATE_NOOP("fields", "Segments per token"),
        QT_TRANSLATE_NOOP(
            "fields", "The code makes a segment for every token of every sequence, not one row."
        ),
        applies=encoder,
    ),
    size(
        "spatial_positions",
        QT_TRANSLATE_NOOP("fields", "Places on a page"),
        QT_TRANSLATE_NOOP("fields", "Rows of the embeddings of a token's box (LayoutLM); 0: there are none."),
        applies=encoder,
    ),
    size(
        "head_embedding_size",
        QT_TRANSLATE_NOOP("fields", "Head width"),
        QT_TRANSLATE_NOOP("fields", "Width that the head's table has of its own; 0: as the embedding."),
        applies=encoder,
    ),
    size(
        "bottleneck_size",
        QT_TRANSLATE_NOOP("fields", "Narrow middle"),
        QT_TRANSLATE_NOOP("fields", "Width within layers where it is less than between them (MobileBERT)."),
        applies=encoder,
    ),
    size(
        "num_feedforward_networks",
        QT_TRANSLATE_NOOP("fields", "Feed-forwards"),
        QT_TRANSLATE_NOOP("fields", "Feed-forwards of each layer, one after the other (MobileBERT)."),
        applies=encoder,
    ),
    size(
        "num_hidden_groups",
        QT_TRANSLATE_NOOP("fields", "Layer groups"),
        QT_TRANSLATE_NOOP("fields", "Groups of layers that share their weights; 0: each has its own."),
        applies=encoder,
    ),
    size(
        "position_buckets",
        QT_TRANSLATE_NOOP("fields", "Position buckets"),
        QT_TRANSLATE_NOOP("fields", "Buckets of distances to one side in disentangled attention."),
        applies=encoder,
    ),
    flag(
        "loss_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Loss in fp32"),
        QT_TRANSLATE_NOOP("fields", "The encoder's logits are turned to fp32 for the loss."),
        applies=encoder,
    ),
    size(
        "image_size",
        QT_TRANSLATE_NOOP("fields", "Image size"),
        QT_TRANSLATE_NOOP("fields", "Pixels of one side of the image."),
        applies=image,
    ),
    size(
        "patch_size",
        QT_TRANSLATE_NOOP("fields", "Patch size"),
        QT_TRANSLATE_NOOP("fields", "Pixels of one side of a patch, which becomes one token."),
        applies=image,
    ),
    size(
        "num_channels",
        QT_TRANSLATE_NOOP("fields", "Channels"),
        QT_TRANSLATE_NOOP("fields", "Colour channels of the image."),
        applies=image,
    ),
)

TWO_STACKS: tuple[Field, ...] = (
    size(
        "num_encoder_layers",
        QT_TRANSLATE_NOOP("fields", "Encoder layers"),
        QT_TRANSLATE_NOOP("fields", "Layers of an encoder before the decoder; 0 where there is none."),
    ),
    size(
        "encoder_attention_heads",
        QT_TRANSLATE_NOOP("fields", "Encoder heads"),
        QT_TRANSLATE_NOOP("fields", "Attention heads of each encoder layer."),
        applies=two_stacks,
    ),
    size(
        "encoder_ffn_dim",
        QT_TRANSLATE_NOOP("fields", "Encoder FFN width"),
        QT_TRANSLATE_NOOP("fields", "Inner width of the encoder's feed-forward layer."),
        applies=two_stacks,
    ),
    size(
        "relative_attention_num_buckets",
        QT_TRANSLATE_NOOP("fields", "Distance buckets"),
        QT_TRANSLATE_NOOP("fields", "Buckets of distances that share a learned bias."),
        applies=two_stacks,
    ),
    flag(
        "relative_attention_shared",
        QT_TRANSLATE_NOOP("fields", "Distance bias shared"),
        QT_TRANSLATE_NOOP("fields", "The first layer's bias by distance serves all layers of its stack."),
        applies=two_stacks,
    ),
    size(
        "num_mel_bins",
        QT_TRANSLATE_NOOP("fields", "Mel bins"),
        QT_TRANSLATE_NOOP("fields", "Channels of the spectrogram that the encoder reads."),
        applies=two_stacks,
    ),
    size(
        "max_source_positions",
        QT_TRANSLATE_NOOP("fields", "Longest source"),
        QT_TRANSLATE_NOOP("fields", "Positions of the encoder, where they are not the decoder's."),
        applies=two_stacks,
    ),
)

FIELDS: tuple[Field, ...] = (
    *EXPERTS,
    *LATENT,
    *STATE_SPACE,
    *RECURRENT,
    *ENCODER,
    *TWO_STACKS,
)
