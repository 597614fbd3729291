"""The models that rows describe by dimensions and name, found among those memgui has."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from memgui.catalog import Catalog, UnknownName
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


class Subjects:
    """Finds the model that a row means.

    Structure comes from a model that memgui has with the same dimensions (of several, the one called
    most alike); vocabulary and tying are then the row's own.  A row without dimensions is found by name.
    """

    def __init__(self, catalog: Catalog, models: Models) -> None:
        self._catalog = catalog
        self._known = [(entry.name, entry.model) for entry in catalog.models]
        for name in models.names:
            try:
                self._known.append((name, models(name)))
            except Inexpressible:
                continue

    def find(self, name: str, dimensions: Mapping[str, Any] | None) -> ModelSpec:
        """The model of a row; :class:`Inexpressible` where memgui has none like it."""
        dimensions = dimensions or {}
        stated = {field: dimensions[word] for word, field in _DIMENSIONS if dimensions.get(word)}
        if "num_hidden_layers" not in stated or "hidden_size" not in stated:
            return self._by_name(name)
        if dimensions.get("experts"):
            stated.pop("intermediate_size", None)  # a dense layer's, an expert's or a shared expert's
        alike = [known for known in self._known if _has(known[1], stated)]
        if not alike:
            raise Inexpressible("the model's structure is not known")
        vocabulary = dimensions.get("vocab")
        tied = dimensions.get("tied_embeddings", dimensions.get("tied"))
        found = _most_alike(name, vocabulary, alike)
        changes: dict[str, Any] = {"name": name}
        if vocabulary and vocabulary != found.vocab_size:
            changes["vocab_size"] = vocabulary
        if tied is not None:
            changes["tie_word_embeddings"] = bool(tied)
        return msgspec.structs.replace(found, **changes)

    def _by_name(self, name: str) -> ModelSpec:
        plain = re.sub(r"\(.*?\)", "", name).strip()
        for spelling in (name, plain, plain.rpartition("/")[2]):
            try:
                return self._catalog.model(spelling).model
            except UnknownName:
                continue
        raise Inexpressible("the model's dimensions are not stated and its name is not known")


def _has(model: ModelSpec, stated: Mapping[str, Any]) -> bool:
    return all(getattr(model, field) == value for field, value in stated.items())


def _most_alike(name: str, vocabulary: int | None, alike: Iterable[tuple[str, ModelSpec]]) -> ModelSpec:
    def likeness(known: tuple[str, ModelSpec]) -> tuple[bool, float]:
        title = known[0].rpartition("/")[2].lower()
        plain = re.sub(r"\(.*?\)", "", name).rpartition("/")[2].strip().lower()
        same = known[1].vocab_size == vocabulary
        return same, difflib.SequenceMatcher(None, plain, title).ratio()

    return max(alike, key=likeness)[1]
