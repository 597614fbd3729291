"""How the sizes that engines reckon with come about: of a token in a layer, of a block, of a state."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from memgui.estimator.engines.cache import Keys, State
from memgui.estimator.engines.settings import cells, length, streams
from memgui.estimator.engines.sheet import Factor
from memgui.estimator.result import Derivation, Symbol
from memgui.spec.formats import CacheFormat
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.model import ModelSpec
from memgui.spec.scenario import Scenario


def symbols(factors: Iterable[Factor]) -> dict[str, Symbol]:
    """The factors as the symbols of a formula."""
    return {one.name: one.symbol for one in factors}


def layers(count: int, scenario: Scenario) -> Factor:
    """So many layers keep the same."""
    several = len(set(scenario.model.layer_types)) > 1
    path = "model.layer_types" if several else "model.num_hidden_layers"
    label = QT_TRANSLATE_NOOP("symbols", "layers that have it")
    if count == scenario.model.num_hidden_layers:
        label = QT_TRANSLATE_NOOP("symbols", "layers")
    return Factor("L", count, label, path)


def predicted(model: ModelSpec) -> Factor:
    """Tokens that the head predicts."""
    if model.output_vocab_size:
        label = QT_TRANSLATE_NOOP("symbols", "vocabulary of the head")
        return Factor("Vo", model.output_vocab_size, label, "model.output_vocab_size")
    return Factor("V", model.vocab_size, QT_TRANSLATE_NOOP("symbols", "vocabulary"), "model.vocab_size")


def token(
    scenario: Scenario, layer: Keys, keys: CacheFormat, values: CacheFormat, degree: int = 1, name: str = "B"
) -> Factor:
    """Bytes of a token in a layer of this kind, on one of ``degree`` tensor parallel ranks."""
    size = layer.bytes_for(keys, values, degree)
    label = QT_TRANSLATE_NOOP("symbols", "bytes of a token in a layer")
    return Factor(name, size, label, told=partial(_token, scenario, layer, keys, values, degree, size))


def _token(
    scenario: Scenario, layer: Keys, keys: CacheFormat, values: CacheFormat, degree: int, size: int
) -> Derivation:
    model = scenario.model
    formats = ["inference.kv_cache_format"]
    if scenario.inference.kv_cache_format_v is not None:
        formats.append("inference.kv_cache_format_v")
    if degree > 1:
        formats.append("parallelism.tensor")
    if layer.latent and keys.block == 1 and not keys.latent_only and not keys.head_bytes:
        return _compressed(layer, keys, tuple(formats))
    if layer.latent:
        names = ["kv_lora_rank", "qk_rope_head_dim", *(["index_head_dim"] if layer.indexer else [])]
        return Derivation(str(size), {}, depends=(*(f"model.{name}" for name in names), *formats))
    heads = max(1, layer.heads // degree)
    own = layer.heads == model.num_key_value_heads and layer.key == model.head_dim
    if not own:  # layers of other sizes, latents that an old engine spread out
        names = ["layer_variants"] if model.layer_variants else ["num_attention_heads"]
        return Derivation(str(size), {}, depends=(*(f"model.{name}" for name in names), *formats))
    k = Factor("k", heads, _heads(degree), "model.num_key_value_heads")
    d = Factor("d", layer.key, QT_TRANSLATE_NOOP("symbols", "head size"), "model.head_dim")
    v = Factor("dv", layer.value, QT_TRANSLATE_NOOP("symbols", "value head size"), "model.v_head_dim")
    if layer.value == layer.key:
        v = d
    if keys == values and v is d:
        formula = f"2*{_packed(keys, k, d)}"
    else:
        formula = f"{_packed(keys, k, d)} + {_packed(values, k, v)}"
    return Derivation(formula, symbols((k, d, v)), depends=tuple(formats))


def _compressed(layer: Keys, keys: CacheFormat, formats: tuple[str, ...]) -> Derivation:
    """A latent and the rotated part of a key, and what an indexer keeps beside them."""
    latent = layer.key - layer.rotary
    used = [
        Factor("lk", latent, QT_TRANSLATE_NOOP("symbols", "KV latent size"), "model.kv_lora_rank"),
        Factor("lr", layer.rotary, QT_TRANSLATE_NOOP("symbols", "rotated key"), "model.qk_rope_head_dim"),
    ]
    if layer.indexer:
        label = QT_TRANSLATE_NOOP("symbols", "indexer head size")
        used.append(Factor("id", layer.indexer, label, "model.index_head_dim"))
    formula = f"({' + '.join(one.name for one in used)})*{keys.block_bytes}"
    return Derivation(formula, symbols(used), depends=formats)


def _heads(degree: int) -> str:
    if degree > 1:
        return QT_TRANSLATE_NOOP("symbols", "key/value heads on a rank")
    return QT_TRANSLATE_NOOP("symbols", "key/value heads")


def _packed(kept: CacheFormat, heads: Factor, size: Factor) -> str:
    """The formula of a token's keys or values in a format."""
    product = f"{heads.name}*{size.name}"
    if kept.block == 1:
        return (
            f"{heads.name}*({size.name}*{kept.block_bytes} + {kept.head_bytes})"
            if kept.head_bytes
            else (f"{product}*{kept.block_bytes}")
        )
    if heads.value * size.value % kept.block:
        product = f"({product} + {kept.block - 1})"
    packed = f"{product}//{kept.block}*{kept.block_bytes}"
    return f"({packed} + {heads.name}*{kept.head_bytes})" if kept.head_bytes else f"({packed})"


_CARRIED = {
    "mamba_d_ssm": ("mamba_d_ssm", "mamba_d_state", "mamba_d_conv", "mamba_n_groups"),
    "linear_num_value_heads": (
        "linear_num_key_heads",
        "linear_num_value_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
    ),
    "lru_width": ("lru_width", "conv1d_width"),
    "conv1d_width": ("hidden_size", "conv1d_width"),
}
"""The sizes of a recurrent layer's state, by the field that such models have."""


def state_fields(model: ModelSpec) -> tuple[str, ...]:
    """Paths of the fields that a recurrent layer's state follows from."""
    names = next((names for own, names in _CARRIED.items() if getattr(model, own)), ("num_attention_heads",))
    return tuple(f"model.{name}" for name in names)


def stated_by(size: int, *paths: str) -> Derivation:
    """A number that fields decide by a rule that is no formula."""
    return Derivation(str(size), {}, depends=paths)


def state_factors(scenario: Scenario, layer: State) -> tuple[Factor, Factor, Factor]:
    """Channels and columns of a state's convolution, and the elements that it carries on."""
    of = state_fields(scenario.model)
    columns = max(layer.kernel - 1, 0)
    return (
        _told("C", layer.channels, QT_TRANSLATE_NOOP("symbols", "channels of the convolution"), of),
        _told("w", columns, QT_TRANSLATE_NOOP("symbols", "columns of the convolution that are kept"), of),
        _told("R", layer.state, QT_TRANSLATE_NOOP("symbols", "elements that the recurrence carries"), of),
    )


def _told(name: str, size: int, label: str, paths: tuple[str, ...]) -> Factor:
    return Factor(name, size, label, told=partial(stated_by, size, *paths))


def sequence(scenario: Scenario) -> tuple[Factor, Factor]:
    """The tokens of a sequence: of its prompt, and generated."""
    inference = scenario.inference
    return (
        Factor(
            "s",
            inference.prompt_tokens,
            QT_TRANSLATE_NOOP("symbols", "prompt tokens"),
            "inference.prompt_tokens",
        ),
        Factor(
            "tg",
            inference.generated_tokens,
            QT_TRANSLATE_NOOP("symbols", "tokens generated"),
            "inference.generated_tokens",
        ),
    )


def tokens(scenario: Scenario, name: str = "t") -> Factor:
    """Tokens of each sequence at its full length."""
    label = QT_TRANSLATE_NOOP("symbols", "tokens of each sequence in the cache")
    return Factor(
        name, length(scenario), label, told=lambda: Derivation("s + tg", symbols(sequence(scenario)))
    )


def routed(model: ModelSpec) -> tuple[Factor, Factor]:
    """How many experts there are, and how many of them see a token."""
    label = QT_TRANSLATE_NOOP("symbols", "experts per token")
    return (
        Factor("E", model.num_experts, QT_TRANSLATE_NOOP("symbols", "experts"), "model.num_experts"),
        Factor("T", model.num_experts_per_tok, label, "model.num_experts_per_tok"),
    )


def sequences(scenario: Scenario) -> Factor:
    """How many sequences there are."""
    label = QT_TRANSLATE_NOOP("symbols", "sequences")
    return Factor("b", scenario.inference.batch_size, label, "inference.batch_size")


def all_cells(scenario: Scenario, step: int, *, whole: bool = True) -> Factor:
    """Cells of llama.cpp's cache; ``whole``: of all caches that it holds side by side, else of one."""
    size = cells(scenario) if whole else cells(scenario) // streams(scenario)
    label = QT_TRANSLATE_NOOP("symbols", "cells of the cache")
    return Factor("c", size, label, told=partial(_cells, scenario, step, whole))


def _cells(scenario: Scenario, step: int, whole: bool) -> Derivation:
    rounded = f"+ {step - 1})//{step}*{step}"
    if streams(scenario) == 1:
        formula = f"(b*(s + tg) {rounded}"
    else:
        formula = f"b*((s + tg {rounded})" if whole else f"(s + tg {rounded}"
    used = symbols((sequences(scenario), *sequence(scenario)))
    if "b" not in formula:
        del used["b"]
    return Derivation(formula, used)


def windows(scenario: Scenario, size: int, label: str) -> Factor:
    """Cells of llama.cpp's cache of layers with a window."""
    paths = ["model.sliding_window" if scenario.model.sliding_window else "model.attention_chunk_size"]
    paths += ["inference.batch_size", "inference.n_ubatch", "inference.swa_full"]
    return Factor("w", size, label, told=partial(stated_by, size, *paths))
