"""What a module knows besides its input: the model, how it runs, and what all layers share."""

from __future__ import annotations

from memgui.estimator.options import Options
from memgui.estimator.tape import Dims, Parameter, Sizes, Tensor
from memgui.spec.model import ModelSpec


class Context:
    """Model, options and the tensors made once per step outside the layers.

    ``queries`` and ``keys`` are the lengths that attention sees: the sequence, or in decoding one
    token against the cache.
    """

    __slots__ = (
        "cos",
        "ids",
        "keys",
        "labels",
        "mask",
        "model",
        "names",
        "options",
        "queries",
        "sin",
        "sizes",
        "table",
    )

    def __init__(self, model: ModelSpec, options: Options, sizes: Sizes, names: dict[str, str]) -> None:
        self.model = model
        self.options = options
        self.sizes = sizes
        self.names = names
        self.queries: int | str = 1 if options.decode else "s"
        self.keys: str = "t" if options.decode else "s"
        self.ids: Tensor | None = None
        self.labels: Tensor | None = None
        self.cos: Tensor | None = None
        self.sin: Tensor | None = None
        self.mask: Tensor | None = None
        self.table: Parameter | None = None

    @property
    def rows(self) -> Dims:
        """One element per token (of the queries)."""
        return ("b", self.queries)

    @property
    def hidden(self) -> Dims:
        """The residual stream."""
        return ("b", self.queries, "h")
