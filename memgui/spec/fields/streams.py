"""Fields of models with several residual streams that connections mix, and entries of several tokens."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field
from memgui.spec.fields.parts import connected, in_blocks, looping, opened, shared
from memgui.spec.fields.rows import choice, flag, size
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
        "num_mem_blocks",
        QT_TRANSLATE_NOOP("fields", "Shared transformers"),
        QT_TRANSLATE_NOOP("fields", "Transformers that layers share in turn (Zamba 2); 0: there is none."),
    ),
    size(
        "adapter_rank",
        QT_TRANSLATE_NOOP("fields", "Rank beside shared weights"),
        QT_TRANSLATE_NOOP("fields", "Width of what each layer has of its own beside shared weights."),
        applies=shared,
    ),
    flag(
        "shared_attention_adapter",
        QT_TRANSLATE_NOOP("fields", "Own beside attention"),
        QT_TRANSLATE_NOOP("fields", "Queries, keys and values have such, too."),
        applies=shared,
    ),
    size(
        "hc_count",
        QT_TRANSLATE_NOOP("fields", "Gated streams"),
        QT_TRANSLATE_NOOP("fields", "Residual streams that low-rank gates open (Qwen 4); 0: there is one."),
    ),
    size(
        "hc_lowrank",
        QT_TRANSLATE_NOOP("fields", "Rank of streams"),
        QT_TRANSLATE_NOOP("fields", "Width that the gates of streams are made through."),
        applies=opened,
    ),
    size(
        "n_recurrent_layers",
        QT_TRANSLATE_NOOP("fields", "Layers in loops"),
        QT_TRANSLATE_NOOP("fields", "Layers that run several times, one after the other; 0: none does."),
    ),
    size(
        "n_input_layers",
        QT_TRANSLATE_NOOP("fields", "Layers before loops"),
        QT_TRANSLATE_NOOP("fields", "Layers that run once before the first loop."),
        applies=looping,
    ),
    size(
        "n_recurrent_loops",
        QT_TRANSLATE_NOOP("fields", "Loops"),
        QT_TRANSLATE_NOOP("fields", "How often these layers run; their weights are the same each time."),
        applies=looping,
    ),
    choice(
        "recurrent_kv_cache_mode",
        QT_TRANSLATE_NOOP("fields", "Cache of loops"),
        QT_TRANSLATE_NOOP("fields", "Whether each loop keeps keys and values of its own, or only the last."),
        Choice("per_loop", QT_TRANSLATE_NOOP("fields", "of each loop")),
        Choice("last_loop", QT_TRANSLATE_NOOP("fields", "of the last loop")),
        applies=looping,
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
