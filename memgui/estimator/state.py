"""What stands beside a weight, or in its place: optimizer states, master copies, pieces of packed weights."""

from __future__ import annotations

from memgui.estimator.tape import Dims, Parameter


class State:
    """A tensor that belongs to a weight: ``width`` over ``denominator`` bytes for each element of ``dims``.

    ``elements`` is the number of elements of ``dims``, those of the weight itself unless said otherwise.
    """

    __slots__ = ("coefficient", "denominator", "dims", "monomial", "name", "of", "width")

    def __init__(
        self,
        name: str,
        of: Parameter,
        width: int,
        dims: Dims | None = None,
        elements: int = 1,
        denominator: int = 1,
    ) -> None:
        self.name = name
        self.of = of
        self.width = width
        self.denominator = denominator
        self.dims = of.dims if dims is None else dims
        self.coefficient = width * (of.elements if dims is None else elements) // denominator
        self.monomial = 0
