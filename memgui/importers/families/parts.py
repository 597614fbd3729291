"""What descriptions have in common: dimensions, windows, patterns of layers, activations."""

from __future__ import annotations

from collections.abc import Sequence

from memgui.importers.config_reader import Config
from memgui.importers.families.registry import Fields
from memgui.spec.messages import QT_TRANSLATE_NOOP

MOST_LAYERS = 100_000

ACTIVATIONS = {
    "swish": "silu",
    "gelu_fast": "gelu_new",
    "gelu_python": "gelu",
    "gelu_tanh": "gelu_pytorch_tanh",
}
"""Other names of activations."""


def dimensions(c: Config) -> Fields:
    """The sizes every decoder states.  ``head_dim`` defaults to an even share of the hidden size."""
    hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
    return {
        "vocab_size": c.count("vocab_size"),
        "hidden_size": hidden,
        "num_hidden_layers": c.count("num_hidden_layers"),
        "num_attention_heads": heads,
        "num_key_value_heads": c.count_or_none("num_key_value_heads") or heads,
        "head_dim": c.count_or_none("head_dim") or share(c, hidden, heads),
        "max_position_embeddings": c.count("max_position_embeddings", default=0),
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=False),
    }


def share(c: Config, hidden: int, heads: int) -> int:
    """The hidden size of one head, where it has to come out even."""
    if hidden % heads:
        c.refuse(
            "hidden_size",
            QT_TRANSLATE_NOOP(
                "messages",
                "{file}: {where} is {value}, which {heads} heads cannot share evenly; "
                "a head_dim has to be stated then.",
            ),
            heads=heads,
        )
    return hidden // heads


def ffn_width(c: Config, fields: Fields) -> int:
    """The feed-forward width; four times the hidden size where the file leaves it open."""
    return c.count_or_none("intermediate_size") or 4 * int(fields["hidden_size"])


def activation(c: Config) -> str:
    """The feed-forward layer's activation by its common name."""
    name = c.text("hidden_act", default="silu")
    return ACTIVATIONS.get(name, name)


def dropouts(c: Config) -> Fields:
    """The model's own dropout probabilities."""
    return {
        "hidden_dropout": c.ratio("hidden_dropout"),
        "attention_dropout": c.ratio("attention_dropout"),
        "embedding_dropout": c.ratio("embedding_dropout"),
    }


def rhythm(layers: Sequence[str]) -> tuple[str, ...]:
    """The shortest pattern that repeats to ``layers``: (a, b, a, b, a) is (a, b)."""
    for length in range(1, len(layers) // 2 + 1):
        if all(layers[i] == layers[i % length] for i in range(length, len(layers))):
            return tuple(layers[:length])
    return tuple(layers)


def stated_layers(c: Config, key: str, layers: int, *synonyms: str) -> tuple[str, ...]:
    """A list with one entry for each layer, or nothing; entries beyond the last layer are left out."""
    found = c.texts(key, *synonyms)
    if found and len(found) < layers:
        c.refuse(
            key,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file}: {where} names {count} layers, the model has {layers}; one entry for each is needed.",
            ),
            count=len(found),
            layers=layers,
        )
    return found[:layers]


def mixers(layers: Sequence[str]) -> Fields:
    """The pattern of mixers; nothing where every layer has full attention."""
    pattern = rhythm(layers)
    return {} if pattern in ((), ("full_attention",)) else {"layer_types": pattern}


def window_everywhere(c: Config) -> Fields:
    """A ``sliding_window`` that, where stated, every layer has (Mistral, Phi-3)."""
    window = c.count_or_none("sliding_window")
    return {"sliding_window": window, "layer_types": ("sliding_attention",)} if window else {}


def window_behind_switch(c: Config, layers: int) -> Fields:
    """Qwen 2 and 3: ``use_sliding_window`` turns windows on, for the layers from ``max_window_layers`` on."""
    window = c.count_or_none("sliding_window") if c.flag("use_sliding_window", default=False) else None
    stated = stated_layers(c, "layer_types", layers)
    if not window:
        return {}
    first = c.count("max_window_layers", default=layers)
    computed = ["full_attention" if i < first else "sliding_attention" for i in range(layers)]
    return {"sliding_window": window, **mixers(stated or computed)}
