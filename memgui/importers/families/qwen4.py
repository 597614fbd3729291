"""Qwen 4 (experimental): residual streams that gates open, attention to chosen blocks, hashed n-grams."""

from __future__ import annotations

from math import isqrt

from memgui.importers.config_reader import Config
from memgui.importers.families.experts import cast_back
from memgui.importers.families.further import beside, unequal
from memgui.importers.families.hybrid import delta_net
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import experts, rotary, shared_experts
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.weights import Weights

POOLED = {
    "linear_attention": "gated_delta_net",
    "full_attention": "pooled_indexed_attention",
    "indexed_attention": "pooled_indexed_attention",
}
MOST_TABLES = 1024
"""More tables of n-grams than any model has."""


@family("qwen4_exp_text")
def qwen4_exp(c: Config) -> Fields:
    """Qwen 3.5's experts and delta nets among streams; embeddings of n-grams are weights beside."""
    fields = llama(c.with_default("intermediate_size", 0))
    act = c.stated.value.get("output_gate_type") or fields["hidden_act"]
    return {
        **fields,
        **delta_net(c, fields, POOLED),
        **experts(c),
        **shared_experts(1, c.count("shared_expert_intermediate_size"), gate=True),
        **cast_back(c),
        "rotary_per_sequence": True,
        "norm_topk_prob": c.flag("norm_topk_prob", default=True),
        "rotary_dim": rotary(c, fields["head_dim"], 1.0).get("rotary_dim"),
        "norm_placement": "gated_streams",
        "final_norm": False,
        "explicit_mask": True,
        "hc_count": c.count("hc_count", default=4),
        "hc_lowrank": c.count("hc_lowrank", default=320),
        "linear_sigmoid": act == "sigmoid",
        "index_n_heads": c.count_or_none("indexer_n_heads") or 0,
        "index_head_dim": c.count_or_none("indexer_head_dim") or 0,
        "index_topk": c.count_or_none("indexer_budget") or 0,
        "index_block_size": c.count_or_none("indexer_compress_ratio") or 0,
        **_ngrams(c, fields),
    }


def _ngrams(c: Config, fields: Fields) -> Fields:
    """What the layers of ``ple_layer_ids`` have besides: tables of hashed n-grams, and how they are read."""
    layers = len(set(c.counts("ple_layer_ids")))
    hidden, streams = fields["hidden_size"], c.count("hc_count", default=4)
    width = c.count_or_none("ple_embed_dim") or hidden
    heads = (c.count("ngram_size", default=3) - 1) * c.count("heads_per_ngram", default=8)
    base, step = c.count("ngram_vocab_size_base"), c.count("make_ngram_vocab_size_divisible_by", default=128)
    kernel = c.count("ple_conv_kernel_size", default=4)
    if not layers:
        return {}
    if not 0 < heads * layers <= MOST_TABLES or not step:
        c.refuse(
            "heads_per_ngram",
            QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; up to {most} tables are allowed."),
            most=MOST_TABLES,
        )
    unequal(c, QT_TRANSLATE_NOOP("messages", "some look up n-grams of their own"))
    sizes = _primes(base, heads * layers)
    tables = [-(-sum(sizes[i * heads : (i + 1) * heads]) // step) * step for i in range(layers)]
    all_streams = streams * hidden
    return beside(
        *[Weights(f"per_layer.ngrams_{i}", 1, (rows, width // heads)) for i, rows in enumerate(tables)],
        Weights("per_layer.key", layers, (all_streams, width)),
        Weights("per_layer.value", layers, (hidden, width)),
        Weights("per_layer.norms", 3 * layers, (all_streams,)),
        Weights("per_layer.convolution", layers, (all_streams, 1, kernel)),
    )


def _primes(start: int, many: int) -> list[int]:
    """So many primes from ``start`` on: of each table how many rows it has."""
    found: list[int] = []
    number = max(start, 2)
    while len(found) < many:
        if all(number % divisor for divisor in range(2, isqrt(number) + 1)):
            found.append(number)
        number += 1
    return found
