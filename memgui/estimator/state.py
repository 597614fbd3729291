"""What stands beside a weight, or in its place: optimizer states, master copies, pieces of packed weights."""

from __future__ import annotations

import msgspec

from memgui.estimator.tape import Dims, Parameter


class State(msgspec.Struct, eq=False, gc=False):
    """A tensor that belongs to a weight: ``width`` over ``denominator`` bytes for each element of ``dims``.

    Made by :func:`state_of`.
    """

    name: str
    of: Parameter
    width: int
    dims: Dims
    coefficient: int
    denominator: int = 1
    monomial: int = 0


def state_of(
    name: str, of: Parameter, width: int, dims: Dims | None = None, elements: int = 1, denominator: int = 1
) -> State:
    """A state with the shape of its weight, or with ``dims``, whose elements are ``elements``."""
    if dims is None:
        return State(name, of, width, of.dims, width * of.elements // denominator, denominator)
    return State(name, of, width, dims, width * elements // denominator, denominator)
