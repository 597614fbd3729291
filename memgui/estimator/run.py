"""What training and serving have in common: a program with its workload put in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from memgui.estimator.account import Account
from memgui.estimator.events import Thing
from memgui.estimator.measure import Bag, Bytes
from memgui.estimator.moments import Amount, Overhead
from memgui.estimator.points import Spot
from memgui.estimator.program import Program
from memgui.estimator.result import Moment
from memgui.estimator.state import State
from memgui.estimator.tape import MADE, Tensor
from memgui.spec.messages import Message
from memgui.spec.scenario import Scenario

Held = dict[str, list[tuple[Thing | State, int]]]
"""Things by component, each with how often."""

Floor = Mapping[str, int]
"""Bytes by component at a moment."""


class Found(msgspec.Struct, frozen=True):
    """The peak: its name, what stays (``base``), what is alive beside it (``amount``; ``bag()`` lists it)."""

    key: str
    stage: str
    template: str
    base: Amount
    amount: Amount
    bag: Callable[[], Bag]
    layer: int
    operator: str


class Run(ABC):
    """A scenario's program with numbers in place of its open symbols."""

    scenario: Scenario
    program: Program
    account: Account
    numbers: Bytes
    values: list[int]

    @abstractmethod
    def peak(self) -> Found:
        """Where most is alive."""

    @abstractmethod
    def moments(self, overhead: Overhead) -> Iterator[Moment]:
        """Every moment in order."""

    @abstractmethod
    def held(self, found: Found) -> Held:
        """The things that make up ``found.base``."""

    def scenario_of(self, found: Found) -> Scenario:
        """The scenario whose numbers the letters of ``found`` stand for."""
        return self.scenario

    def values_of(self, found: Found) -> Sequence[int]:
        """The values of the monomials of the things in ``found``."""
        return self.values

    def program_of(self, found: Found) -> Program:
        """The program that the things in ``found`` belong to."""
        return self.program

    @abstractmethod
    def persistent(self) -> int:
        """Bytes that lie still from step to step."""

    def segments_loaded(self) -> int:
        """Bytes of segments when the model is loaded, where loading leaves any unused; else 0."""
        return 0

    @abstractmethod
    def most(self) -> int:
        """Bytes of all things at the peak."""

    @abstractmethod
    def floors(self) -> tuple[Floor, ...]:
        """What is there at some moments, known without a walk: no more than at the peak."""

    def walks_as(self, other: Run) -> bool:
        """Whether all that is computed is the same; what lies beside may differ."""
        return False

    def assumptions(self) -> tuple[Message, ...]:
        """What the figures take for granted."""
        return ()

    def scratch(self) -> int:
        """Bytes that libraries keep for themselves beside what every run has."""
        return 0

    def extra(self) -> dict[str, int]:
        """Answers by stable key."""
        return {}

    def doubt(self, found: Found) -> int:
        """Bytes that another implementation of what is not measured would take more in ``found``."""
        return 0


def batch_input(program: Program, name: str, dims: tuple[int | str, ...], width: int = 8) -> Tensor:
    """A tensor that a batch brings to the device."""
    coefficient, monomial = program.sizes.of(dims)
    tensor = Tensor(name, dims, width, width * coefficient, monomial, False, MADE)
    tensor.part = "inputs"
    return tensor


def monomial_values(
    scenario: Scenario,
    program: Program,
    symbols: Mapping[str, tuple[str, str | None, Callable[[Scenario], int]]],
) -> list[int]:
    """The value of each of the program's monomials."""
    values: list[int] = []
    known: dict[str, int] = {}
    for monomial in program.sizes.monomials:
        product = 1
        for name in monomial:
            value = known.get(name)
            if value is None:
                value = known[name] = symbols[name][2](scenario)
            product *= value
        values.append(product)
    return values


def operator_at(spot: Spot, stop: int) -> str:
    """The operator that runs at the last of the first ``stop`` events of a spot."""
    if not stop:
        return ""
    place = spot.after(stop)
    name = place.events.operator(stop - 1).name
    return f"aten.{BACKWARD.get(name, name)}" if place.back else f"aten.{name}"


BACKWARD = {
    "_log_softmax": "_log_softmax_backward_data",
    "_safe_softmax": "_softmax_backward_data",
    "_scaled_dot_product_efficient_attention": "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention": "_scaled_dot_product_flash_attention_backward",
    "_softmax": "_softmax_backward_data",
    "addmm": "mm",
    "embedding": "embedding_dense_backward",
    "gelu": "gelu_backward",
    "native_dropout": "native_dropout_backward",
    "native_layer_norm": "native_layer_norm_backward",
    "nll_loss_forward": "nll_loss_backward",
    "relu": "threshold_backward",
    "silu": "silu_backward",
    "tanh": "tanh_backward",
}
"""What PyTorch runs to go back through an operator, where it is another one."""
