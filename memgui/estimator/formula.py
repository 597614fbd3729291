"""The formula of a group of tensors, in symbols, and the values that make it come out.

A tensor alive ``n`` times is a product: ``n``, the symbols of its shape, bytes per element.  Equal
products are summed, what all share is put in front: ``L*b*s*(8*f + 2*h)``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm, prod
from typing import Final

from memgui.estimator.events import Gradient, Scratch, Thing
from memgui.estimator.result import Symbol
from memgui.estimator.state import State
from memgui.estimator.symbols import symbol
from memgui.estimator.tape import Dims, Parameter, Tensor
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario
from memgui.spec.weights import TOWERS

Counted = Iterable[tuple[Thing | State, int]]

_LAYERS = QT_TRANSLATE_NOOP("symbols", "layers")
_SOME = QT_TRANSLATE_NOOP("symbols", "layers that have it")
_TIMES = QT_TRANSLATE_NOOP("symbols", "how often")
_RANKS = QT_TRANSLATE_NOOP("symbols", "ranks that share it out")
SHARING: Final = "dp"
"""The letter of what data parallel ranks share out evenly."""


def described(thing: Thing | State) -> tuple[Dims, int, int]:
    """Shape, bytes per element (as numerator and denominator) of a thing."""
    if isinstance(thing, Gradient):
        return thing.of.dims, thing.of.width, 1
    if isinstance(thing, State):
        return thing.dims, thing.width, thing.denominator
    if isinstance(thing, Scratch):
        # A whole number of times, or a part of, the tensor it stands beside.
        return thing.of.dims, thing.of.width * thing.coefficient, max(thing.of.coefficient, 1)
    return thing.dims, thing.width, 1


def _weight(thing: Thing | State) -> Tensor | Parameter:
    return thing.of if isinstance(thing, Gradient | Scratch | State) else thing


def _block(thing: Thing | State) -> str:
    return _weight(thing).block


ENCODER: Final = "model.num_encoder_layers"
OTHER: Final = "model.other_weights"


def _counted_by(scenario: Scenario, thing: Thing | State) -> str:
    """The path of the field that says how many of ``thing`` there are."""
    model, block = scenario.model, _block(thing)
    if _weight(thing).part in TOWERS:
        return OTHER
    if block.startswith("encoder."):
        return ENCODER
    for name in ("layer_types", "mlp_layer_types"):
        kinds = set(getattr(model, name))
        if len(kinds) > 1 and kinds.intersection(block.split(".")):
            return f"model.{name}"
    return "model.num_hidden_layers"


def unlettered(
    things: Counted, scenario: Scenario, values: Mapping[str, int], kept_by: Collection[str] = ()
) -> tuple[str, ...]:
    """Fields that the numbers in a formula of ``things`` follow from where no letter says it.

    ``kept_by``: fields that say what is kept beside a weight or in its place.
    """
    found: dict[str, None] = {}
    sizes: set[int] = set()
    for thing, _ in things:
        sizes.update(dim for dim in _weight(thing).dims if isinstance(dim, int) and dim >= _SMALL)
        if _weight(thing).part in TOWERS:
            found[OTHER] = None
        if isinstance(thing, State):
            found.update(dict.fromkeys(kept_by))
            if thing.dims != thing.of.dims:
                paths = [symbol(scenario, dim, values).path for dim in thing.of.dims if isinstance(dim, str)]
                found.update(dict.fromkeys(path for path in paths if path))
                if scenario.parallelism.data > 1:
                    found["parallelism.data"] = None
    if max(sizes, default=0) >= scenario.model.vocab_size > 0:  # padded
        found["model.vocab_size"] = None
    found.update((f"model.{name}", None) for name in _UNLETTERED if getattr(scenario.model, name) in sizes)
    return tuple(found)


_SMALL: Final = 8
"""Less than this may be any number."""
_UNLETTERED: Final = (
    "max_position_embeddings",
    "altup_num_inputs",
    "laurel_rank",
    "hc_lowrank",
    "mamba_dt_rank",
    "spatial_positions",
    "head_embedding_size",
    "bottleneck_size",
    "position_buckets",
    "image_size",
    "patch_size",
    "encoder_ffn_dim",
    "encoder_attention_heads",
    "relative_attention_num_buckets",
    "num_mel_bins",
    "num_labels",
)
"""Sizes of the model that have no letter."""


def formula(
    things: Counted,
    scenario: Scenario,
    values: Mapping[str, int],
    letters: Mapping[str, Mapping[str, str]] | None = None,
    monomials: Sequence[Dims] = (),
) -> tuple[str, dict[str, Symbol]]:
    """The formula of ``things`` and its symbols; evaluated, it gives their bytes exactly.

    ``letters``: of blocks whose layers have other sizes, the letters that they have instead.
    ``monomials``: the products of lengths that things may grow with other than the tensor beside them.
    """
    terms: dict[tuple[str, ...], Fraction] = {}
    shared: dict[tuple[str, ...], Fraction] = {}
    rest = 0
    used: dict[str, Symbol] = {}
    counts: dict[int, tuple[str, str]] = {}
    ranks = scenario.parallelism.data
    for thing, count in things:
        dims, numerator, denominator = described(thing)
        found = terms
        if ranks > 1 and isinstance(thing, State) and (times := _shards(thing, ranks)):
            dims, count, found = thing.of.dims, count * times, shared
        if isinstance(thing, Scratch) and thing.monomial != thing.of.monomial and monomials:
            dims, numerator, denominator = monomials[thing.monomial], thing.coefficient, 1
        if not count or not numerator:
            continue
        factor = numerator
        names: list[str] = []
        own = letters.get(_block(thing)) if letters else None
        for dim in dims:
            if isinstance(dim, int):
                factor *= dim
            else:
                names.append(dim if own is None else own.get(dim, dim))
        if factor % denominator and not isinstance(thing, State) and not thing.monomial:
            rest += thing.coefficient * count
            continue
        if abs(count) > 1:
            known = counts.get(abs(count))
            if known is None:
                name = f"L{len(counts)}" if counts else "L"
                known = counts[abs(count)] = name, _counted_by(scenario, thing)
            names.append(known[0])
            factor = factor if count > 0 else -factor
        else:
            factor *= count
        key = tuple(sorted(names, key=_order))
        found[key] = found.get(key, Fraction(0)) + Fraction(factor, denominator)
    for count, (name, path) in counts.items():
        layers = scenario.model.num_encoder_layers if path == ENCODER else scenario.model.num_hidden_layers
        label = _LAYERS if count == layers else _SOME if count < layers and path != OTHER else _TIMES
        used[name] = Symbol(count, label, path)
    terms = {key: factor for key, factor in terms.items() if factor}
    for key in (*terms, *shared):
        for name in key:
            if name not in used:
                used[name] = symbol(scenario, name, values)
    text = _divided(terms, rest)
    if shared:
        used[SHARING] = Symbol(ranks, _RANKS, "parallelism.data")
        part = _divided(shared, 0, SHARING)
        text = f"{text} + {part}" if terms or rest else part
    return text, {name: used[name] for name in sorted(used, key=_order) if _mentions(text, name)}


def _shards(state: State, ranks: int) -> int:
    """How many whole weights one rank's shard is an equal part of, ``ranks`` having one each; else 0."""
    own = state.dims == state.of.dims or not all(isinstance(dim, int) for dim in state.dims)
    if own or not state.of.elements:
        return 0
    whole, left = divmod(prod(dim for dim in state.dims if isinstance(dim, int)) * ranks, state.of.elements)
    return 0 if left else whole


def _divided(terms: Mapping[tuple[str, ...], Fraction], rest: int, by: str = "") -> str:
    """The sum of the terms, over ``by`` where that is given."""
    parts = lcm(*(factor.denominator for factor in terms.values()))
    text = _joined({key: int(factor * parts) for key, factor in terms.items()}, rest * parts)
    if by:
        return f"({text})//({by}*{parts})" if parts > 1 else f"({text})//{by}"
    return f"({text})//{parts}" if parts > 1 else text


def _order(name: str) -> tuple[int, str]:
    """Layers first, then batch and sequence, then the rest by name."""
    if name.startswith("L"):
        return 0, name
    return (_OPEN.index(name) + 1, name) if name in _OPEN else (len(_OPEN) + 1, name)


_OPEN = ("b", "s", "sr", "sa", "s1", "s8", "s32", "cc", "cn", "cm", "u", "u8", "u32", "t", "tw")


def _mentions(text: str, name: str) -> bool:
    spaced = "".join(character if character.isalnum() or character == "_" else " " for character in text)
    return name in spaced.split()


def _joined(terms: dict[tuple[str, ...], int], rest: int) -> str:
    if not terms:
        return str(rest)
    if len(terms) == 1:
        ((key, factor),) = terms.items()
        product = "*".join([*key, str(factor)])
        return f"{product} + {rest}" if rest else product
    shared = Counter(next(iter(terms)))
    for key in terms:
        shared &= Counter(key)
    front = sorted(shared.elements(), key=_order)
    inner = []
    for key, factor in sorted(terms.items(), key=lambda item: -item[1]):
        left = Counter(key)
        left.subtract(shared)
        names = sorted(left.elements(), key=_order)
        inner.append("*".join([str(factor), *names]))
    body = " + ".join(inner).replace("+ -", "- ")
    product = f"{'*'.join(front)}*({body})" if front else body
    return f"{product} + {rest}" if rest else product
