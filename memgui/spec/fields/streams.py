"""Fields of models with several residual streams that connections mix, and entries of several tokens."""

from __future__ import annotations

from memgui.spec.fields.field import Field
from memgui.spec.fields.parts import connected, in_blocks
from memgui.spec.fields.rows import size
from memgui.spec.messages import QT_TRANSLATE_NOOP

FIELDS: tuple[Field, ...] = (
    size(
        "index_block_size",
        QT_TRANSLATE_NOOP("fields", "Indexed block"),
        QT_TRANSLATE_NOOP("fields", "Keys of one block, of which an indexer picks some for each query."),
        applies=in_blocks,
    ),
    size(
        "index_topk_blocks",
        QT_TRANSLATE_NOOP("fields", "Indexed blocks"),
        QT_TRANSLATE_NOOP("fields", "Blocks of keys that the indexer picks for each query."),
        applies=in_blocks,
    ),
    size(
        "compress_rate_csa",
        QT_TRANSLATE_NOOP("fields", "Tokens of an entry"),
        QT_TRANSLATE_NOOP("fields", "How many tokens become one entry, of which an indexer chooses some."),
        applies=connected,
    ),
    size(
        "compress_rate_hca",
        QT_TRANSLATE_NOOP("fields", "Tokens of a heavy entry"),
        QT_TRANSLATE_NOOP("fields", "How many tokens become one entry where all entries are looked at."),
        applies=connected,
    ),
    size(
        "o_groups",
        QT_TRANSLATE_NOOP("fields", "Output groups"),
        QT_TRANSLATE_NOOP("fields", "Groups of heads, each with an output projection of its own."),
        applies=connected,
    ),
    size(
        "o_lora_rank",
        QT_TRANSLATE_NOOP("fields", "Output latent size"),
        QT_TRANSLATE_NOOP("fields", "Width that each group of heads is projected to."),
        applies=connected,
    ),
    size(
        "hc_mult",
        QT_TRANSLATE_NOOP("fields", "Residual streams"),
        QT_TRANSLATE_NOOP("fields", "Residual streams that learned connections mix; 0 where there is one."),
    ),
    size(
        "num_hash_layers",
        QT_TRANSLATE_NOOP("fields", "Hash layers"),
        QT_TRANSLATE_NOOP("fields", "Layers that look up the experts of each token id in a table."),
        applies=connected,
    ),
    size(
        "hc_sinkhorn_iters",
        QT_TRANSLATE_NOOP("fields", "Mixing steps"),
        QT_TRANSLATE_NOOP("fields", "How often the weights that mix streams are balanced."),
        applies=connected,
    ),
)
