"""What descriptions have in common: dimensions, windows, patterns of layers, experts, dropouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memgui.files.strict_json import shown
from memgui.importers.config_reader import Config
from memgui.importers.families.registry import Fields
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import QT_TRANSLATE_NOOP

ACTIVATIONS = {
    "swish": "silu",
    "gelu_fast": "gelu_new",
    "gelu_python": "gelu",
    "gelu_tanh": "gelu_pytorch_tanh",
    "gelu_pytorch": "gelu",
    "gelu_accurate": "gelu_new",
}
"""Other names of activations."""

ATTENTION = {
    "full_attention": "full_attention",
    "sliding_attention": "sliding_attention",
    "chunked_attention": "chunked_attention",
    "attention": "full_attention",
    "global": "full_attention",
    "local": "sliding_attention",
}
"""Names that configurations give to layers with attention."""


def dimensions(c: Config) -> Fields:
    """The sizes every model states.  ``head_dim`` defaults to an even share of the hidden size."""
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


def without_attention(c: Config) -> Fields:
    """Sizes of a model that has no attention at all: one head as wide as the model stands for it."""
    hidden = c.count("hidden_size")
    return {
        "vocab_size": c.count("vocab_size"),
        "hidden_size": hidden,
        "num_hidden_layers": c.count("num_hidden_layers"),
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": hidden,
        "intermediate_size": 0,
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
        "position_embedding": "none",
        "mlp_layer_types": ("none",),
        "dropouts": (),
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
    return c.width("intermediate_size") or 4 * int(fields["hidden_size"])


def activation(c: Config, default: str = "silu") -> str:
    """The feed-forward layer's activation by its common name."""
    stated = c.text("hidden_act", default=default)
    name = ACTIVATIONS.get(stated, stated)
    if BY_PATH["model.hidden_act"].choice(name) is not None:
        return name
    c.assume(
        QT_TRANSLATE_NOOP("messages", "The activation {stated} is not known here; {taken} is taken."),
        stated=shown(stated, 40),
        taken=default,
    )
    return default


def dropouts(c: Config, *places: str) -> Fields:
    """The places where the family's code has a dropout, and the model's own probabilities there."""
    return {
        "dropouts": places,
        **{
            f"{place}_dropout": c.ratio(f"{place}_dropout")
            for place in ("hidden", "attention", "embedding")
            if place in places
        },
    }


def rotary(c: Config, head_dim: int, default: float = 1.0) -> Fields:
    """The part of each head that is rotated, where it is not the whole."""
    part = c.number_or_none("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_percent")
    if part is None:
        part = c.within("rope_parameters").number_or_none("partial_rotary_factor")
    part = default if part is None else part
    if not 0 <= part <= 1:
        c.refuse(
            "partial_rotary_factor",
            QT_TRANSLATE_NOOP("messages", "{file}: {where} is {value}; a number from 0 to 1 is allowed."),
        )
    return {} if part == 1 else {"rotary_dim": int(head_dim * part)}


def rhythm(layers: Sequence[str]) -> tuple[str, ...]:
    """The shortest pattern that repeats to ``layers``: (a, b, a, b, a) is (a, b)."""
    for length in range(1, len(layers) // 2 + 1):
        if all(layers[i] == layers[i % length] for i in range(length, len(layers))):
            return tuple(layers[:length])
    return tuple(layers)


def stated_layers(
    c: Config, key: str, layers: int, *synonyms: str, kinds: Mapping[str, str] = ATTENTION
) -> tuple[str, ...]:
    """A list with one entry for each layer, in our names, or nothing.

    Entries beyond the last layer are left out; a kind that nobody described is refused.
    """
    found = c.texts(key, *synonyms)
    if found and len(found) < layers:
        c.refuse(
            key,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file}: {where} names {count} {count:layer|layers}, the model has {layers}; one entry for "
                "each is needed.",
            ),
            count=len(found),
            layers=layers,
        )
    for kind in found:
        if kind not in kinds:
            c.refuse(
                key,
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: {where} holds the layer kind {kind}; known here are {known}."
                ),
                kind=kind[:40],
                known=", ".join(kinds),
            )
    return tuple(kinds[kind] for kind in found[:layers])


def mixers(layers: Sequence[str]) -> Fields:
    """The pattern of mixers; nothing where every layer has full attention."""
    pattern = rhythm(layers)
    return {} if pattern in ((), ("full_attention",)) else {"layer_types": pattern}


def feed_forwards(sparse: Sequence[bool]) -> Fields:
    """The pattern of feed-forward kinds; nothing where every layer has experts."""
    if all(sparse):
        return {}
    return {"mlp_layer_types": rhythm(["sparse" if one else "dense" for one in sparse])}


def every(period: int, layers: int) -> list[bool]:
    """Whether each layer is the last of its period: of period 4, layers 3 and 7."""
    return [period > 0 and (i + 1) % period == 0 for i in range(layers)]


def window_size(c: Config, key: str = "sliding_window") -> int | None:
    """A window in tokens, or ``None`` where there is none (absent, ``null``, 0 or negative)."""
    window = c.integer_or_none(key)
    return window if window and window > 0 else None


def window_everywhere(c: Config) -> Fields:
    """A ``sliding_window`` that, where stated, every layer has (Mistral, Phi-3)."""
    window = window_size(c)
    return {"sliding_window": window, "layer_types": ("sliding_attention",)} if window else {}


def window_by_layers(c: Config, layers: int, period: int) -> Fields:
    """A ``sliding_window`` in the layers that ``layer_types`` names, else in all but each ``period``-th.

    ``sliding_window_pattern`` is a period, or (EXAONE) letters of it: ``LLLG``.
    """
    window = window_size(c)
    stated = stated_layers(c, "layer_types", layers)
    if c.states_text("sliding_window_pattern"):
        letters = c.text("sliding_window_pattern")
        if not letters or set(letters) - set("LG"):
            c.refuse(
                "sliding_window_pattern",
                QT_TRANSLATE_NOOP(
                    "messages", "{file}: {where} is {value}; a number or a pattern of L and G is allowed."
                ),
            )
        full_ones = [letters[i % len(letters)] == "G" for i in range(layers)]
    else:
        full_ones = every(c.count_or_none("sliding_window_pattern") or period, layers)
    computed = ["full_attention" if full else "sliding_attention" for full in full_ones]
    return {"sliding_window": window, **mixers(stated or computed)} if window else {}


def unrotated_beyond_windows(fields: Fields) -> Fields:
    """Layers without a window have no rotary positions either."""
    kinds = fields.get("layer_types", ())
    unrotated = tuple("unrotated_attention" if kind == "full_attention" else kind for kind in kinds)
    return {**fields, "layer_types": unrotated} if kinds else fields


def window_behind_switch(c: Config, layers: int) -> Fields:
    """Qwen 2 and 3: ``use_sliding_window`` turns windows on, for the layers from ``max_window_layers`` on."""
    on = c.flag("use_sliding_window", default=False)
    window = window_size(c)
    stated = stated_layers(c, "layer_types", layers)
    first = c.count("max_window_layers", default=layers)
    if not on or not window:
        return {}
    computed = ["full_attention" if i < first else "sliding_attention" for i in range(layers)]
    return {"sliding_window": window, **mixers(stated or computed)}


def experts(c: Config, width: int | None = None) -> Fields:
    """Routed experts; ``width`` is their inner width where ``moe_intermediate_size`` does not say it."""
    return {
        "num_experts": c.count("num_experts"),
        "num_experts_per_tok": c.count("num_experts_per_tok"),
        "moe_intermediate_size": c.count("moe_intermediate_size") if width is None else width,
    }


def shared_experts(number: int, width: int, gate: bool = False) -> Fields:
    """Experts that every token goes through."""
    if not number or not width:
        return {}
    return {
        "n_shared_experts": number,
        "shared_expert_intermediate_size": width,
        **({"shared_expert_gate": True} if gate else {}),
    }


CLASSIFYING = "ForSequenceClassification"
"""How classes of Transformers end that tell sequences apart."""


def labels(c: Config) -> int:
    """How many classes the file says there are; 0 where it does not."""
    return c.count_or_none("num_labels") or len(c.within("id2label").stated.value)
