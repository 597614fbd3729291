"""Things that are born and die: tensors, gradients, what operators hold for a moment; in order, as events.

Sizes stay open in micro batch and sequence length; nothing is evaluated here.
"""

from __future__ import annotations

from collections.abc import Iterable

from memgui.estimator.tape import Op, Tensor


class Gradient:
    """Storage of a gradient; ``refs`` counts who waits for it."""

    __slots__ = ("coefficient", "monomial", "of", "refs")

    def __init__(self, of: Tensor) -> None:
        self.of = of
        self.coefficient = of.coefficient
        self.monomial = of.monomial
        self.refs = 1


class Scratch:
    """What an operator holds beside its results."""

    __slots__ = ("coefficient", "monomial", "of")

    def __init__(self, of: Tensor, size: tuple[int, int]) -> None:
        self.of = of
        self.coefficient, self.monomial = size


class Inner(Scratch):
    """What a kernel allocates itself: the allocator counts it, a tracer of tensors does not see it."""

    __slots__ = ()


Thing = Tensor | Gradient | Scratch


class Group:
    """Things that live and die together, and their bytes as (coefficient, monomial) pairs."""

    __slots__ = ("pairs", "things")

    def __init__(self, things: Iterable[Thing]) -> None:
        self.things = tuple(things)
        total: dict[int, int] = {}
        for thing in self.things:
            total[thing.monomial] = total.get(thing.monomial, 0) + thing.coefficient
        self.pairs = tuple((coefficient, monomial) for monomial, coefficient in total.items())

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those of the things that are tensors."""
        return tuple(thing for thing in self.things if isinstance(thing, Tensor))


class Events:
    """Births and deaths in order: ``coefficients[i]`` (signed) times ``monomials[i]`` bytes of ``things[i]``.

    ``operators[i]`` is the operator at whose run it happened.  ``whole`` are the coefficients with
    what kernels allocate themselves; in ``coefficients`` these are 0.
    """

    __slots__ = ("coefficients", "monomials", "operators", "stop", "things", "whole")

    def __init__(self) -> None:
        self.coefficients: list[int] = []
        self.monomials: list[int] = []
        self.things: list[Thing] = []
        self.operators: list[Op] = []
        self.whole = self.coefficients
        self.stop = 0

    def inside(self, thing: Inner, op: Op) -> None:
        """``thing`` is allocated and freed by a kernel."""
        if self.whole is self.coefficients:
            self.whole = list(self.coefficients)
        for coefficient in (thing.coefficient, -thing.coefficient):
            self.coefficients.append(0)
            self.whole.append(coefficient)
            self.monomials.append(thing.monomial)
            self.things.append(thing)
            self.operators.append(op)

    def born(self, thing: Thing, op: Op) -> None:
        """``thing`` is allocated."""
        self._add(thing, thing.coefficient, op)

    def dead(self, thing: Thing, op: Op) -> None:
        """``thing`` is freed."""
        self._add(thing, -thing.coefficient, op)

    def _add(self, thing: Thing, coefficient: int, op: Op) -> None:
        self.coefficients.append(coefficient)
        if self.whole is not self.coefficients:
            self.whole.append(coefficient)
        self.monomials.append(thing.monomial)
        self.things.append(thing)
        self.operators.append(op)
