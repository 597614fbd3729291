"""The weights of one device, as lines of a sheet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from memgui.estimator.account import account
from memgui.estimator.breakdown import Breakdown
from memgui.estimator.options import options
from memgui.estimator.overhead import block_bytes
from memgui.estimator.program import Program, compiled
from memgui.estimator.quantisation import Share, Weights, scheme_of, stored
from memgui.estimator.result import Node, Parameters
from memgui.estimator.state import State
from memgui.estimator.tape import Parameter, Tensor
from memgui.spec.formats import weight_scheme
from memgui.spec.scenario import Scenario


class Model(NamedTuple):
    """A scenario's model, counted: the program that names its weights, and its parameters."""

    program: Program
    parameters: Parameters


def model_of(scenario: Scenario) -> Model:
    """The scenario's model; raises ``NotCovered`` where its weights are not written."""
    program = compiled(scenario.model, options(scenario))
    return Model(program, account(program).parameters)


class Loaded(NamedTuple):
    """Weights on a device: what they are, their bytes, and what PyTorch's blocks add to them."""

    things: Weights
    bytes: int
    excess: int


def loaded(scenario: Scenario, program: Program, share: Share) -> Loaded:
    """The part of the weights that ``share`` says, in the scenario's format."""
    inference = scenario.inference
    scheme = scheme_of(scenario) or weight_scheme(inference.weight_format, inference.engine)
    things = stored(program, scheme, share)
    return Loaded(things, *_sums(things))


@lru_cache(maxsize=64)
def _sums(things: Weights) -> tuple[int, int]:
    size = sum(thing.coefficient * count for thing, count in things)
    excess = sum((block_bytes(thing.coefficient) - thing.coefficient) * count for thing, count in things)
    return size, excess


Listed = tuple[Parameter | State | Tensor, int]


def weights_node(scenario: Scenario, program: Program, listed: Sequence[Listed]) -> Node:
    """The node of weights (and buffers beside them), part by part."""
    total = sum(thing.coefficient * count for thing, count in listed)
    return Breakdown(scenario, program, (1,)).component("weights", total, lambda: listed)
