"""The models that rows describe by dimensions and name, found among those memgui has."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from memgui.catalog import Catalog, UnknownName
from memgui.importers.class_defaults import class_defaults
from memgui.importers.families import FAMILIES
from memgui.importers.hf_config import model_from_config
from memgui.spec import ModelSpec
from tests.accuracy.express import Inexpressible, Models

# a row's word, the field of ModelSpec
_DIMENSIONS = (
    ("layers", "num_hidden_layers"),
    ("hidden", "hidden_size"),
    ("heads", "num_attention_heads"),
    ("kv_heads", "num_key_value_heads"),
    ("head_dim", "head_dim"),
    ("ffn", "intermediate_size"),
)
_ENCODER = (
    ("num_encoder_layers", "num_hidden_layers"),
    ("encoder_attention_heads", "num_attention_heads"),
    ("encoder_ffn_dim", "intermediate_size"),
)
"""Fields of an encoder as large as its decoder."""

_EXPERTS = (
    ("experts", "num_experts"),
    ("experts_per_token", "num_experts_per_tok"),
    ("top_k", "num_experts_per_tok"),
    ("moe_ffn", "moe_intermediate_size"),
)
_SIZE = re.compile(r"[-_ ]?\b(a?\d+(\.\d+)?[bm])\b.*")

_ALIKE = {
    "qwen3.6-27b": "Qwen3.5-27B-Text",
    "qwen3.8-27b": "Qwen3.5-27B-Text",
    "qwen3.6-35b-a3b": "Qwen3.5-MoE-Class-Default-Text",
    "whisper-large": "whisper-large-v2",
    "qwen3.5-35b-a3b": "Qwen3.5-MoE-Class-Default-Text",
}
"""Names of models that have the structure of another."""

_PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "roberta-large": {
        "model_type": "roberta",
        "vocab_size": 50265,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "max_position_embeddings": 514,
    },
}
"""Dimensions that a row names only."""

Known = tuple[str, ModelSpec]


class Subjects:
    """Finds the model that a row means.

    Structure comes from a model that memgui has with the same dimensions (of several, the one called
    most alike), else from a sibling of the same name but for the size, with the row's dimensions put
    in.  Vocabulary and tying are the row's own.  A row without dimensions is found by name.
    """

    def __init__(self, catalog: Catalog, models: Models) -> None:
        self._catalog = catalog
        self._known: list[Known] = [(entry.name, entry.model) for entry in catalog.models]
        for name in models.names:
            try:
                self._known.append((name, models(name)))
            except Inexpressible:
                continue

    def find(self, name: str, dimensions: Mapping[str, Any] | None) -> ModelSpec:
        """The model of a row; :class:`Inexpressible` where memgui has none like it."""
        dimensions = dimensions or {}
        stated = {field: dimensions[word] for word, field in _DIMENSIONS if _is_count(dimensions.get(word))}
        if "num_hidden_layers" not in stated or "hidden_size" not in stated:
            return self._by_name(name)
        if dimensions.get("arch") == "encoder-decoder":  # layers are those of both stacks
            stated["num_hidden_layers"] //= 2
            stated |= {one: stated[other] for one, other in _ENCODER if other in stated}
        experts = {field: dimensions[word] for word, field in _EXPERTS if _is_count(dimensions.get(word))}
        if experts:
            stated.pop("intermediate_size", None)  # a dense layer's, an expert's or a shared expert's
        if dimensions.get("kv_lora_rank") or dimensions.get("kv_latent") or dimensions.get("mla"):
            for field in ("num_key_value_heads", "head_dim"):
                stated.pop(field, None)  # latent attention has neither in the usual sense
        vocabulary = dimensions.get("vocab")
        alike = [known for known in self._known if _has(known[1], {**stated, **experts})]
        alike = [known for known in alike if bool(known[1].num_experts) == bool(experts)] or alike
        if alike:
            found, changes = _most_alike(name, vocabulary, alike), {}
        else:
            found, changes = self._sibling(name, bool(experts)), {**stated, **experts}
        if vocabulary:
            changes["vocab_size"] = vocabulary
        tied = dimensions.get("tied_embeddings", dimensions.get("tied"))
        if tied is not None:
            changes["tie_word_embeddings"] = bool(tied)
        return msgspec.structs.replace(found, **changes, name=name)

    def _sibling(self, name: str, experts: bool) -> ModelSpec:
        family = _family(name)
        alike = [
            known
            for known in self._known
            if _family(known[0]) == family
            and bool(known[1].num_experts) == experts
            and not known[1].other_weights  # towers are that one model's, not its family's
        ]
        architecture = _architecture(name)
        if not alike and architecture in FAMILIES:  # as its class builds it where nothing else is said
            known = class_defaults(architecture)
            words = known.defaults["vocab_size"] if known is not None else 0
            # All three are replaced by the row's own, where it has them.
            size = {"hidden_size": 4096, "num_hidden_layers": 1, "vocab_size": words}
            return model_from_config({"model_type": architecture, **size}, "causal", False, name)
        if not alike:
            raise Inexpressible("the model's structure is not known")
        return _most_alike(name, None, alike)

    def _by_name(self, name: str) -> ModelSpec:
        plain = _plain(name)
        first = plain.partition(" ")[0]
        for spelling in (name, plain, first, _ALIKE.get(first.lower().removesuffix("-fp8"), first)):
            try:
                return self._catalog.model(spelling).model
            except UnknownName:
                continue
        if first.lower() in _PUBLISHED:
            return model_from_config(_PUBLISHED[first.lower()], "masked", False, name)
        raise Inexpressible("the model's dimensions are not stated and its name is not known")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _plain(name: str) -> str:
    """A name without its owner and what stands in parentheses."""
    return re.sub(r"\(.*?\)", "", name).rpartition("/")[2].strip()


def _family(name: str) -> str:
    """A name without its size and what follows it: ``Llama-3.2-3B-Instruct`` is ``llama-3.2``."""
    return _SIZE.sub("", _plain(name).lower()).removeprefix("meta-")


def _architecture(name: str) -> str:
    """The architecture that a name states behind it: ``stablelm (GPT-NeoX arch)`` is ``gpt_neox``."""
    stated = re.search(r"\(([\w-]+) arch\)", name)
    return stated.group(1).lower().replace("-", "_") if stated else ""


def _has(model: ModelSpec, stated: Mapping[str, Any]) -> bool:
    return all(getattr(model, field) == value for field, value in stated.items())


def _most_alike(name: str, vocabulary: int | None, alike: Sequence[Known]) -> ModelSpec:
    def likeness(known: Known) -> tuple[bool, float]:
        mine, theirs = (_plain(one).lower().removeprefix("meta-") for one in (name, known[0]))
        ratio = difflib.SequenceMatcher(None, mine, theirs).ratio()
        return known[1].vocab_size == vocabulary, ratio

    return max(alike, key=likeness)[1]
