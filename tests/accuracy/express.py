"""From a row's words to a Scenario, or to the reason why memgui cannot say it yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from memgui.catalog import Catalog, UnknownName
from memgui.estimator import Ledger, estimate, ledger
from memgui.estimator.result import Estimate
from memgui.files.bounded import FileFault
from memgui.importers.families import FAMILIES
from memgui.importers.hf_config import model_from_config
from memgui.spec import ModelSpec, Scenario, ScenarioError, replace
from memgui.spec.validate import validate

Answer = TypeVar("Answer")


class Inexpressible(Exception):
    """A row that memgui cannot express; the text is the reason it is counted under."""


# keys of a config.json that say how many layers a row was built with
_LAYER_KEYS = {"num_hidden_layers", "n_layer", "num_layers", "encoder_layers"}


class Models:
    """Models by the truth's names: read from ``configs.json`` where it has them, else memgui's own."""

    def __init__(self, configs: Mapping[str, Any], catalog: Catalog) -> None:
        self._configs = configs
        self._catalog = catalog
        self._known: dict[str, ModelSpec] = {}

    def __call__(self, name: str, changes: Mapping[str, Any] | None = None) -> ModelSpec:
        """The model called ``name`` with ``changes`` to its config, or :class:`Inexpressible`."""
        key = f"{name} {changes or ''}"
        if key not in self._known:
            load = self._read if name in self._configs else self._built_in
            self._known[key] = load(name, changes or {})
        return self._known[key]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the file."""
        return tuple(self._configs)

    def _read(self, name: str, changes: Mapping[str, Any]) -> ModelSpec:
        entry = self._configs[name]
        if entry["model_type"] not in FAMILIES:
            raise Inexpressible(f"model_type {entry['model_type']} is not read yet")
        config = {"model_type": entry["model_type"], **entry["config"], **changes}
        try:
            return model_from_config(config, entry["head"], entry["own_lm_head"], name)
        except FileFault as error:
            raise Inexpressible(_without_values(f"model: {error}")) from error

    def _built_in(self, name: str, changes: Mapping[str, Any]) -> ModelSpec:
        try:
            model = self._catalog.model(name).model
        except UnknownName:
            raise Inexpressible("the model is not in the catalog") from None
        layers = next(
            (value for key, value in changes.items() if key in _LAYER_KEYS), model.num_hidden_layers
        )
        kinds = tuple(changes.get("layer_types") or model.layer_types)
        return msgspec.structs.replace(model, num_hidden_layers=layers, layer_types=kinds)


def _without_values(text: str) -> str:
    """A reason that equal faults share: no values of the row in it, one line, not too long."""
    line = text.splitlines()[0]
    return re.sub(r"\d[\d,.]{4,}", "…", re.sub(r"(model\.\w+) = \S+", r"\1", line))[:110]


def scenario_with(
    model: ModelSpec, settings: Mapping[str, Any], tolerated: frozenset[str] = frozenset()
) -> Scenario:
    """A valid scenario with ``settings`` (path to value); the fields at fault are the reason otherwise.

    ``tolerated`` are codes of errors that do not keep a row from being computed.
    """
    scenario = Scenario(model=model)
    for path, value in settings.items():
        try:
            scenario = replace(scenario, path, value)
        except KeyError:
            raise Inexpressible(f"no field {path}") from None
        except ScenarioError as error:
            raise Inexpressible(_without_values(str(error))) from error
    for issue in validate(scenario):
        if issue.severity == "error" and issue.code not in tolerated:
            raise Inexpressible(_without_values(issue.message.text))
    return scenario


def answer(scenario: Scenario) -> Estimate:
    """The estimate; what the estimator refuses is the reason."""
    found = _asked(estimate, scenario)
    if found.verdict.kind == "unknown":
        raise Inexpressible(_without_values(found.verdict.reason.text))
    return found


def ledger_of(scenario: Scenario) -> Ledger:
    """The tensors behind the estimate; what the estimator refuses is the reason."""
    return _asked(ledger, scenario)


def _asked(question: Callable[[Scenario], Answer], scenario: Scenario) -> Answer:
    try:
        return question(scenario)
    except (ScenarioError, NotImplementedError) as error:
        raise Inexpressible(_without_values(str(error))) from error
