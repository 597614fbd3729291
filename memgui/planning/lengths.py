"""How a part of a training step grows with the length of its sequences, by its own formulas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from memgui.estimator.dimensions import MODEL
from memgui.estimator.layout import layout_of
from memgui.estimator.result import Derivation, Estimate, Node
from memgui.estimator.split import Place, places
from memgui.estimator.symbols import TRAINING
from memgui.planning.formula import tokens_of, value_of
from memgui.spec.scenario import Scenario


class Growth(NamedTuple):
    """Bytes of a part: as they are, with sequences twice as long, and those for pairs of tokens."""

    now: int
    twice: int
    pairs: int

    @property
    def linear(self) -> bool:
        """Whether sequences twice as long take twice the memory, within a hundredth."""
        return abs(self.twice - 2 * self.now) * 100 <= self.now


def growth(estimate: Estimate, component: str) -> Growth:
    """How a component of a training step, as it is at the peak, grows with the length.

    What is in proportion to the length, to its square, and the rest, come out of three lengths.
    """
    node = estimate.component(component)
    one, two, four = (_at(estimate.scenario, node, times) for times in (1, 2, 4))
    return Growth(one, two, max(0, (four - two - 2 * (two - one)) // 6))


def _at(scenario: Scenario, node: Node, times: int) -> int:
    """A node's bytes with sequences so many times as long."""
    training = scenario.training
    target = None if training.target_length is None else training.target_length * times
    training = msgspec.structs.replace(
        training, sequence_length=training.sequence_length * times, target_length=target
    )
    longer = msgspec.structs.replace(scenario, training=training)
    return sum(_value(leaf.derivation, longer) for leaf in _leaves(node))


def _value(derivation: Derivation, longer: Scenario) -> int:
    symbols = {
        name: msgspec.structs.replace(symbol, value=TRAINING[name][2](longer))
        if name in TRAINING and name not in MODEL
        else symbol
        for name, symbol in derivation.symbols.items()
    }
    return value_of(tokens_of(msgspec.structs.replace(derivation, symbols=symbols)))


def _leaves(node: Node) -> Iterator[Node]:
    if not node.children:
        yield node
    for child in node.children:
        yield from _leaves(child)


def sequence_tokens(scenario: Scenario) -> int:
    """Tokens of a training sequence on one device; a prompt that is trained stands before them."""
    return TRAINING["s"][2](scenario)


def target_tokens(scenario: Scenario) -> int:
    """Tokens of a target sequence, of a decoder beside an encoder."""
    return TRAINING["u"][2](scenario)


def fullest_stage(estimate: Estimate) -> Place:
    """The pipeline stage that a training step's estimate is of."""
    found = places(estimate.scenario, layout_of(estimate.scenario))
    if len(found) == 1 or not estimate.ranks:  # or nothing is known
        return found[0]
    fullest = max(estimate.ranks, key=lambda rank: rank.peak_bytes)
    return next(place for place in found if place.name == fullest.rank)


def layers_here(estimate: Estimate) -> int:
    """Layers that a training step's device runs, those of an encoder too."""
    stage = fullest_stage(estimate).stage
    model = estimate.scenario.model
    return sum(count for _, count in stage.spans) or model.num_hidden_layers + model.num_encoder_layers
