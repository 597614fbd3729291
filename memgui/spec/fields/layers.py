"""Fields of the kinds of layers that a model has, and of dropouts in them."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.fields.rows import ratio
from memgui.spec.messages import QT_TRANSLATE_NOOP

FIELDS: tuple[Field, ...] = (
    Field(
        "model.layer_types",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Layer types"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The pattern of mixers over the layers, repeated; empty means full attention everywhere.",
        ),
        section="model",
        empty_label=QT_TRANSLATE_NOOP("fields", "full attention"),
        choices=(
            Choice("full_attention", QT_TRANSLATE_NOOP("fields", "full attention")),
            Choice("sliding_attention", QT_TRANSLATE_NOOP("fields", "sliding window")),
            Choice("chunked_attention", QT_TRANSLATE_NOOP("fields", "attention in chunks")),
            Choice("unrotated_attention", QT_TRANSLATE_NOOP("fields", "full attention, not rotated")),
            Choice("indexed_attention", QT_TRANSLATE_NOOP("fields", "attention with an indexer")),
            Choice("shared_indexed_attention", QT_TRANSLATE_NOOP("fields", "attention, indexer shared")),
            Choice("grouped_indexed_attention", QT_TRANSLATE_NOOP("fields", "attention to chosen groups")),
            Choice(
                "unrotated_indexed_attention",
                QT_TRANSLATE_NOOP("fields", "attention with an indexer, no positions"),
            ),
            Choice(
                "unrotated_shared_indexed_attention",
                QT_TRANSLATE_NOOP("fields", "attention, indexer shared, no positions"),
            ),
            Choice("pooled_indexed_attention", QT_TRANSLATE_NOOP("fields", "attention to blocks of tokens")),
            Choice("block_indexed_attention", QT_TRANSLATE_NOOP("fields", "attention to chosen blocks")),
            Choice("windowed_attention", QT_TRANSLATE_NOOP("fields", "window, keys are values")),
            Choice("compressed_sparse_attention", QT_TRANSLATE_NOOP("fields", "window and chosen entries")),
            Choice("heavily_compressed_attention", QT_TRANSLATE_NOOP("fields", "window and entries")),
            Choice("mamba", "Mamba"),
            Choice("mamba2", "Mamba-2"),
            Choice("attention_mamba2", QT_TRANSLATE_NOOP("fields", "attention beside Mamba-2")),
            Choice("gated_delta_net", QT_TRANSLATE_NOOP("fields", "gated delta net")),
            Choice("kda", QT_TRANSLATE_NOOP("fields", "Kimi delta attention")),
            Choice("lightning_attention", QT_TRANSLATE_NOOP("fields", "lightning attention")),
            Choice("rg_lru", QT_TRANSLATE_NOOP("fields", "gated linear recurrence")),
            Choice("short_conv", QT_TRANSLATE_NOOP("fields", "short convolution")),
            Choice("lending_attention", QT_TRANSLATE_NOOP("fields", "full attention, keys lent")),
            Choice("borrowing_attention", QT_TRANSLATE_NOOP("fields", "full attention, keys borrowed")),
            Choice("lending_sliding_attention", QT_TRANSLATE_NOOP("fields", "window, keys lent")),
            Choice("borrowing_sliding_attention", QT_TRANSLATE_NOOP("fields", "window, keys borrowed")),
            Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        ),
        advanced=True,
    ),
    Field(
        "model.mlp_layer_types",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "FFN types"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The pattern of feed-forward kinds over the layers, repeated; empty means experts where there "
            "are any, else dense.",
        ),
        section="model",
        empty_label=QT_TRANSLATE_NOOP("fields", "experts, else dense"),
        choices=(
            Choice("dense", QT_TRANSLATE_NOOP("fields", "dense")),
            Choice("sparse", QT_TRANSLATE_NOOP("fields", "experts")),
            Choice("dense_few", QT_TRANSLATE_NOOP("fields", "dense, few let through")),
            Choice("dense_sparse", QT_TRANSLATE_NOOP("fields", "dense beside experts")),
            Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        ),
        advanced=True,
    ),
    Field(
        "model.sliding_window",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Sliding window"),
        QT_TRANSLATE_NOOP("fields", "Tokens that a sliding-window layer looks back on."),
        section="model",
        minimum=1,
        maximum=10**9,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "no window"),
        advanced=True,
    ),
    Field(
        "model.attention_chunk_size",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Attention chunk"),
        QT_TRANSLATE_NOOP("fields", "Tokens of one chunk in chunked attention."),
        section="model",
        minimum=1,
        maximum=10**9,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "no chunks"),
        advanced=True,
    ),
    Field(
        "model.dropouts",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Dropouts"),
        QT_TRANSLATE_NOOP("fields", "The places where the model's code has a dropout at all."),
        section="model",
        empty_label=QT_TRANSLATE_NOOP("fields", "none"),
        choices=(
            Choice("attention", QT_TRANSLATE_NOOP("fields", "attention probabilities")),
            Choice("hidden", QT_TRANSLATE_NOOP("fields", "residual branches")),
            Choice("feed_forward", QT_TRANSLATE_NOOP("fields", "feed-forward branch only")),
            Choice("attention_output", QT_TRANSLATE_NOOP("fields", "attention branch only")),
            Choice("embedding", QT_TRANSLATE_NOOP("fields", "embeddings")),
            Choice("activation", QT_TRANSLATE_NOOP("fields", "inside the feed-forward layer")),
            Choice("final", QT_TRANSLATE_NOOP("fields", "behind the final norm")),
        ),
        advanced=True,
    ),
    ratio(
        "hidden_dropout",
        QT_TRANSLATE_NOOP("fields", "Hidden dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on residual branches."),
    ),
    ratio(
        "attention_dropout",
        QT_TRANSLATE_NOOP("fields", "Attention dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on attention probabilities."),
    ),
    ratio(
        "embedding_dropout",
        QT_TRANSLATE_NOOP("fields", "Embedding dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout on the embeddings."),
    ),
    ratio(
        "activation_dropout",
        QT_TRANSLATE_NOOP("fields", "Activation dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout inside the feed-forward layer."),
    ),
    ratio(
        "final_dropout",
        QT_TRANSLATE_NOOP("fields", "Final dropout"),
        QT_TRANSLATE_NOOP("fields", "The model's own dropout behind the final norm."),
    ),
)
