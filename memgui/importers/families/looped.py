"""Layers that run several times, on states with a length of one: Dory."""

from __future__ import annotations

from memgui.importers.config_reader import Config
from memgui.importers.families.llama import llama
from memgui.importers.families.parts import ATTENTION, every, mixers, stated_layers, window_size
from memgui.importers.families.registry import Fields, family

BLOCKS = {**ATTENTION, "mlp": "mlp"}
"""What released files name: each layer's attention, and its feed-forward as another."""


@family("dory")
def dory(c: Config) -> Fields:
    """NGPT's layers, of which those in the middle run in loops; windows in three of four."""
    fields = llama(c)
    blocks = fields["num_hidden_layers"]
    stated = stated_layers(c, "layer_types", blocks, kinds=BLOCKS)
    each = 2 if "mlp" in stated else 1
    layers = blocks // each
    computed = ["full_attention" if last else "sliding_attention" for last in every(4, layers)]
    first, last = (c.count(f"n_{name}_layers", default=8) // each for name in ("input", "output"))
    looped = c.count_or_none("n_recurrent_layers")
    return {
        **fields,
        **mixers(stated[::each] or computed),
        "num_hidden_layers": layers,
        "sliding_window": window_size(c),
        "norm": "plain_l2_norm",
        "norm_placement": "towards",
        "qk_norm": "head",
        "inner_norms": True,
        "attention_gate": "elementwise",
        "channel_scales": True,
        "rotary_per_layer_type": True,
        "n_input_layers": first,
        "n_recurrent_layers": max(layers - first - last, 0) if looped is None else looped // each,
        "n_recurrent_loops": c.count("n_recurrent_loops", default=2),
        "recurrent_kv_cache_mode": c.text("recurrent_kv_cache_mode", default="per_loop"),
    }
