"""Which linear layers adapters can go on in a model, and on which they usually do."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from memgui.estimator.modules.names import HALVES, LLAMA, TAKEN, UNTAKEN, names, targets
from memgui.estimator.options import options
from memgui.estimator.program import Program, compiled
from memgui.estimator.refusals import NotCovered
from memgui.spec.model import ModelSpec
from memgui.spec.scenario import Lora, Scenario, Training, get, replace
from memgui.spec.validate import validate

TARGETS: Final = "training.lora.target_modules"
"""The path of what this module answers."""
EVERY: Final = "all-linear"

_OF_EXPERTS = {
    "router": "router",
    "experts.gate_up": "experts.gate_up_proj",
    "experts.down": "experts.down_proj",
}
"""Weights that adapters are folded into, by the roles under which they are asked for."""
_ATTENTION = tuple(f"attention.{name}" for name in ("q", "k", "v", "qkv", "q_a", "q_b", "kv_a", "kv_b", "o"))
_MIXERS = tuple(role for role in LLAMA if role.split(".")[0] in ("mamba", "delta", "lru", "conv"))


def adaptable(scenario: Scenario) -> tuple[str, ...]:
    """The names under which adapters may be asked for in the scenario's model, in the model's order.

    Raises :class:`NotCovered` for a model that no module writes.
    """
    every = replace(scenario, TARGETS, (EVERY,))
    return _found(compiled(every.model, options(every)))


def offered(scenario: Scenario, usual: Iterable[str]) -> tuple[str, ...]:
    """The names to choose targets from: of the ``usual`` ones those that mean something, the model's own.

    All usual ones where nothing is known of the model.
    """
    if _is_wrong(scenario):
        return tuple(usual)
    try:
        there = adaptable(scenario)
    except NotCovered:
        return tuple(usual)
    known = [name for name in usual if name == EVERY or set(_meant(scenario.model, (name,))) <= set(there)]
    return tuple(dict.fromkeys((*known, *there)))


def unfound(scenario: Scenario, program: Program) -> tuple[str, ...]:
    """Of the targets that are asked for those that no layer of ``program`` is called.

    PEFT leaves them out without a word where any other is found.
    """
    asked, there = scenario.training.lora.target_modules, _adapted(program)
    return tuple(
        name for name in asked if name != EVERY and not there.intersection(_meant(scenario.model, (name,)))
    )


def halved(scenario: Scenario) -> tuple[str, str] | None:
    """A target that is asked for without the other half of the weight it lies in, and that half.

    PEFT 0.21's ``_convert_peft_config_moe`` refuses it.
    """
    halves, asked = HALVES.get(scenario.model.model_type), scenario.training.lora.target_modules
    if halves is None or EVERY in asked:
        return None
    first, second = halves
    if (first in asked) == (second in asked):
        return None
    return (first, second) if first in asked else (second, first)


@lru_cache(maxsize=8)
def _adapted(program: Program) -> frozenset[str]:
    """The names of all that has an adapter, embeddings too."""
    weights = (parameter.name for weights, _ in program.weights() for parameter in weights)
    return frozenset((*(name.partition(".lora_")[0] for name in weights), *_found(program)))


def _is_wrong(scenario: Scenario) -> bool:
    """Whether the model cannot be one."""
    errors = (one for one in validate(scenario) if one.severity == "error")
    return any(all(path.startswith("model.") for path in one.paths) for one in errors)


def _meant(model: ModelSpec, asked: tuple[str, ...]) -> tuple[str, ...]:
    return targets(
        model.model_type,
        asked,
        fused_qkv=model.fused_qkv,
        fused_gate_up=model.fused_gate_up,
        gated=model.gated_mlp,
    )


def _found(program: Program) -> tuple[str, ...]:
    called = program.context.names
    asked = {f"{name}.weight": called[role] for role, name in _OF_EXPERTS.items() if role in called}
    halves = HALVES.get(program.model.model_type, ())
    found: dict[str, None] = {}
    for weights, _ in program.weights():
        for parameter in weights:
            name, adapter, _ = parameter.name.rpartition(".lora_A")
            if adapter:
                called_so = asked.get(name, name)
                found.update(dict.fromkeys(halves if called_so in halves else (called_so,)))
    refused = UNTAKEN.get(program.model.model_type, ())
    return tuple(name for name in found if "." not in name and name not in refused)


@lru_cache(maxsize=64)
def usual_targets(model: ModelSpec) -> tuple[str, ...]:
    """The layers that adapters go on where nobody says which.

    PEFT's own choice for the ``model_type`` where it has one, which mostly is queries and values; in a
    model that has no layers of these names every projection of its attention, or else of its mixers.
    """
    usual = Lora().target_modules
    taken = TAKEN.get(model.model_type)
    if taken is not None or (model.kv_lora_rank is None and not model.layer_types):
        return taken or usual
    scenario = Scenario(model=model, training=Training(method="lora", lora=Lora(target_modules=(EVERY,))))
    if _is_wrong(scenario):
        return usual
    try:
        there = _found(Program(model, options(scenario)))
    except NotCovered:
        return usual
    if there and not set(_meant(model, usual)) <= set(there):
        called = names(model.model_type)
        for roles in (_ATTENTION, _MIXERS):
            own = {called[role] for role in roles}
            found = tuple(name for name in there if name in own)
            if found:
                return found
        return (EVERY,)
    return usual


def with_usual_targets(scenario: Scenario, before: ModelSpec) -> Scenario:
    """``scenario`` with the usual targets of its model, where it has those of the model ``before`` it."""
    if get(scenario, TARGETS) != usual_targets(before):
        return scenario  # somebody chose them
    return replace(scenario, TARGETS, usual_targets(scenario.model))
