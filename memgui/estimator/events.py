"""Things that are born and die: tensors, gradients, what operators hold for a moment; in order, as events.

Sizes stay open in micro batch and sequence length; nothing is evaluated here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from operator import ge, itemgetter

import msgspec

from memgui.estimator.once import TURN, once
from memgui.estimator.state import State
from memgui.estimator.tape import Op, Tensor


class Gradient(msgspec.Struct, eq=False, gc=False):
    """Storage of a gradient; ``refs`` counts who waits for it.  Made by :func:`gradient_of`."""

    of: Tensor
    coefficient: int
    monomial: int
    refs: int = 1


def gradient_of(tensor: Tensor) -> Gradient:
    """The gradient of ``tensor``."""
    return Gradient(tensor, tensor.coefficient, tensor.monomial)


class Scratch(msgspec.Struct, eq=False, gc=False):
    """What an operator holds beside its results."""

    of: Tensor
    coefficient: int
    monomial: int


class Inner(Scratch, eq=False, gc=False):
    """What a kernel allocates itself: the allocator counts it, a tracer of tensors does not see it."""


Thing = Tensor | Gradient | Scratch | State

Pairs = tuple[tuple[int, int], ...]
"""Bytes as (coefficient, monomial) pairs."""


class Table:
    """What is alive, alike things together: component, coefficient, monomial, how many."""

    def __init__(self, rows: Iterable[tuple[str, int, int, int]]) -> None:
        self.rows = tuple(rows)

    @once
    def components(self) -> tuple[tuple[str, Pairs], ...]:
        """The bytes of each component."""
        found: dict[str, dict[int, int]] = {}
        for component, coefficient, monomial, many in self.rows:
            total = found.setdefault(component, {})
            total[monomial] = total.get(monomial, 0) + coefficient * many
        return tuple(
            [
                (component, tuple([(coefficient, monomial) for monomial, coefficient in total.items()]))
                for component, total in found.items()
            ]
        )

    @once
    def sizes(self) -> tuple[tuple[int, int, int], ...]:
        """Coefficient and monomial of each size, and how many things have it."""
        found: dict[tuple[int, int], int] = {}
        for _, coefficient, monomial, many in self.rows:
            size = coefficient, monomial
            found[size] = found.get(size, 0) + many
        return tuple([(*size, many) for size, many in found.items()])


Tops = tuple[tuple[Pairs, int], ...]
"""What is alive after so many events."""


class Group(msgspec.Struct, eq=False, gc=False):
    """Things that live and die together; ``pairs`` are their bytes, summed when asked for.

    Made by :func:`group`.  ``component``: what who sorts them says of each, where that is known.  What they
    are may be made only when someone looks (``make``): those that are ``alike`` stand for them, or groups
    ``within``, which others may have, too.
    """

    alike: tuple[Thing, ...]
    component: str = ""
    summed: Pairs | None = None
    tables: dict[object, Table] | None = None
    make: Callable[[], tuple[Thing, ...]] | None = None
    made: tuple[Thing, ...] | None = None
    within: tuple[Group, ...] = ()

    @property
    def things(self) -> tuple[Thing, ...]:
        """The things themselves."""
        if self.make is None:
            return self.alike
        if self.made is None:
            with TURN:
                if self.made is None:
                    self.made = self.make()
        return self.made

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.alike) + sum([one.size for one in self.within])

    @property
    def pairs(self) -> Pairs:
        """Their bytes."""
        if self.summed is None:
            if len(self.alike) == 1:
                (thing,) = self.alike
                self.summed = ((thing.coefficient, thing.monomial),)
            else:
                total: dict[int, int] = {}
                for thing in self.alike:
                    total[thing.monomial] = total.get(thing.monomial, 0) + thing.coefficient
                for one in self.within:
                    for coefficient, monomial in one.pairs:
                        total[monomial] = total.get(monomial, 0) + coefficient
                self.summed = tuple([(coefficient, monomial) for monomial, coefficient in total.items()])
        return self.summed

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Those of the things that are tensors."""
        return tuple([thing for thing in self.things if isinstance(thing, Tensor)])


NONE = Group(())
"""Nothing at all."""


def group(things: Collection[Thing]) -> Group:
    """The group of ``things``; one for all that are empty."""
    return Group(tuple(things)) if things else NONE


class Events:
    """Births and deaths in order: ``sizes[i]`` (signed) times the monomial of ``things[i]`` bytes.

    What happens while one operator runs is closed by :meth:`over`.  What kernels allocate themselves
    (:class:`Inner`) counts in ``sizes``, and is 0 in ``coefficients``.
    """

    __slots__ = (
        *("_coefficients", "_monomials", "_nets", "_tops"),
        *("ends", "operators", "sizes", "stop", "things"),
    )

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.things: list[Thing] = []
        self.stop = 0
        self.ends: list[int] = []
        self.operators: list[Op] = []
        self._coefficients: list[int] | None = None
        self._monomials: list[int] | None = None
        self._nets: dict[tuple[int | None, bool], tuple[Group, Group]] = {}
        self._tops: dict[tuple[int | None, bool], Tops] = {}

    def born(self, thing: Thing) -> None:
        """``thing`` is allocated."""
        self.things.append(thing)
        self.sizes.append(thing.coefficient)

    def dead(self, thing: Thing) -> None:
        """``thing`` is freed."""
        self.things.append(thing)
        self.sizes.append(-thing.coefficient)

    def over(self, op: Op) -> None:
        """What happened since the last call happened while ``op`` ran."""
        self.ends.append(len(self.things))
        self.operators.append(op)

    def operator(self, index: int) -> Op:
        """The operator at whose run event ``index`` happened."""
        return self.operators[bisect_right(self.ends, index)]

    def after(self, operators: int) -> int:
        """How many events have happened when so many operators have run."""
        return self.ends[operators - 1] if operators else 0

    def net(self, stop: int | None = None, *, whole: bool = True) -> tuple[Group, Group]:
        """What is there after the first ``stop`` events and was not before, and what has gone.

        ``whole``: what kernels allocate themselves is there too.
        """
        found = self._nets.get((stop, whole))
        if found is None:
            count: dict[Thing, int] = {}
            sizes = self.sizes if whole else self.coefficients
            for thing, size in zip(self.things[:stop], sizes, strict=False):
                if size:
                    count[thing] = count.get(thing, 0) + (1 if size > 0 else -1)
            born = [thing for thing, times in count.items() for _ in range(times)]
            gone = [thing for thing, times in count.items() for _ in range(-times)]
            found = self._nets[stop, whole] = group(born), group(gone)
        return found

    def tops(self, stop: int | None = None, *, whole: bool = True) -> Tops:
        """After which of the first ``stop`` events most may be alive, whatever numbers monomials stand for.

        The numbers are positive: where several hold as much it is the first of them.
        """
        found = self._tops.get((stop, whole))
        if found is None:
            sizes = self.sizes if whole else self.coefficients
            found = self._tops[stop, whole] = _tops(sizes[:stop], self.monomials)
        return found

    def copy(self) -> Events:
        """The same, to go on from."""
        copy = Events()
        copy.sizes, copy.things, copy.stop = [*self.sizes], [*self.things], self.stop
        copy.ends, copy.operators = [*self.ends], [*self.operators]
        return copy

    @property
    def monomials(self) -> list[int]:
        """What each of ``sizes`` is multiplied by."""
        if self._monomials is None or len(self._monomials) != len(self.things):
            self._monomials = [thing.monomial for thing in self.things]
        return self._monomials

    @property
    def coefficients(self) -> list[int]:
        """``sizes`` as a tracer of tensors sees them: without what kernels allocate themselves."""
        if self._coefficients is None:
            pairs = zip(self.sizes, self.things, strict=True)
            self._coefficients = [0 if isinstance(thing, Inner) else size for size, thing in pairs]
        return self._coefficients


Until = Callable[[Events], bool]
"""Says of the first of some events whether further ones are not wanted."""


def _tops(sizes: Iterable[int], monomials: Iterable[int]) -> Tops:
    """The ends after which no other one has as much of every monomial (more of one, where it is later)."""
    order = [*dict.fromkeys(monomials)]
    at = {monomial: index for index, monomial in enumerate(order)}
    live = [0] * len(order)
    ends: list[tuple[int, int, tuple[int, ...]]] = []
    rising, number = True, 0
    for size, monomial in zip(sizes, monomials, strict=False):
        if rising and size <= 0:
            ends.append((-sum(live), number, tuple(live)))
        rising = size > 0
        live[at[monomial]] += size
        number += 1
    if rising:
        ends.append((-sum(live), number, tuple(live)))
    ends.sort()  # who has as much of every monomial comes before
    highest: list[tuple[int, tuple[int, ...]]] = []
    for _, number, there in ends:
        if not any(all(map(ge, other, there)) for _, other in highest):
            highest.append((number, there))
    highest.sort(key=itemgetter(0))
    return tuple(
        [
            (tuple([(size, monomial) for size, monomial in zip(there, order, strict=True) if size]), number)
            for number, there in highest
        ]
    )
