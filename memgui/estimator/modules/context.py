"""What a module knows besides its input: the model, how it runs, and what all layers share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from memgui.estimator.alike import Met
from memgui.estimator.options import Options
from memgui.estimator.tape import AMBIENT, Dims, Parameter, Sizes, Tape, Tensor
from memgui.spec.model import ModelSpec

_AS_SAID: Final = nullcontext()


class Context:
    """Model, options and the tensors made once per step outside the layers.

    ``queries`` and ``keys`` are the lengths that attention sees: the sequence, or in decoding one
    token against the cache.  ``masks`` and ``rotary`` hold masks and rotary tables by the reach of
    the layers that use them (:class:`~memgui.estimator.modules.reach.Reach`).
    """

    __slots__ = (
        "alibi",
        "before",
        "bias",
        "causal",
        "distances",
        "entered",
        "handed",
        "ids",
        "inputs",
        "keys",
        "labels",
        "lent",
        "masks",
        "met",
        "model",
        "named",
        "names",
        "names_given",
        "options",
        "over",
        "own",
        "padding",
        "prefix",
        "queries",
        "rotary",
        "sizes",
        "states",
        "table",
        "temperatures",
        "variants",
    )

    def __init__(self, model: ModelSpec, options: Options, sizes: Sizes, names: dict[str, str]) -> None:
        self.model = model
        self.options = options
        self.sizes = sizes
        self.names = names
        length = "P" if model.image_size else "s"
        self.queries: int | str = 1 if options.decode else length
        self.keys: str = "t" if options.decode or options.static else length
        if options.trained == "prefix":
            self.keys = "sv"
        self.prefix: Tensor | None = None
        """trained keys and values of all layers"""
        self.ids: Tensor | None = None
        self.inputs: list[Tensor] = []
        self.labels: Tensor | None = None
        self.alibi: Tensor | None = None
        self.masks: dict[str, Tensor] = {}
        self.rotary: dict[str, tuple[Tensor, ...]] = {}
        self.table: Parameter | None = None
        self.before = "t1"
        """length of the cache before a token is appended"""
        self.causal = True
        """a token sees only those before it"""
        self.bias: Tensor | None = None
        """added to the scores of every layer"""
        self.distances: tuple[Tensor, Tensor] | None = None
        """of every pair of tokens, and what each distance means"""
        self.padding: Tensor | None = None
        """which tokens count, as the batch says it"""
        self.over: Context | None = None
        """of the attention over an encoder's states"""
        self.states: Tensor | None = None
        """an encoder's states"""
        self.lent: dict[str, tuple[Tensor, Tensor]] = {}
        """keys and values that later layers use, by reach"""
        self.temperatures: Tensor | None = None
        """what queries of layers without rotation are scaled by, of each position"""
        self.variants: dict[str, tuple[ModelSpec, Sizes]] = {}
        """layers of other sizes, by mixer"""
        self.own: Tensor | None = None
        """embeddings that each layer has of its own, of all layers"""
        self.entered: Tensor | None = None
        """what the layers before all loops gave, or what is embedded, for layers that read it again"""
        self.named: list[Tensor] = []
        """what the code of the module that is being written refers to until it returns"""
        self.names_given = model.norm_placement == "post" and _like_bert(model)
        """the code of a half refers to what its last linear layer is given until it returns (BERT)"""
        self.met: dict[object, Met] = {}
        """what kinds of layers have in common"""
        self.handed: list[Tensor] = []
        """what layers are given beside their input in a way that checkpointing sees"""

    def give(self, x: Tensor) -> None:
        """``x`` is what the last linear layer of a half is given; see ``names_given``."""
        if self.names_given:
            self.named.append(x)

    def _copy(self) -> Context:
        other = object.__new__(Context)
        for name in Context.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def frozen(self) -> Context:
        """The same where nothing is trained; what all layers share is shared."""
        other = self._copy()
        other.options = self.options._replace(trained="none", lora=None)
        return other

    def uncached(self) -> Context:
        """The same for a layer that keeps nothing, though it may look at what another run of it keeps."""
        other = self._copy()
        other.options = self.options._replace(cache=False)
        return other

    def varied(self, mixer: str) -> Context:
        """The same for layers with ``mixer``, whose sizes are their own."""
        other = self._copy()
        other.model, other.sizes = self.variants[mixer]
        return other

    def looking_at(self, keys: str) -> Context:
        """The same for attention over so many keys."""
        other = self._copy()
        other.keys = keys
        return other

    def trained(self, as_said: bool) -> AbstractContextManager[None]:
        """Within, the model's own weights are trained as the options say, or not at all."""
        return _AS_SAID if as_said else self._untrained()

    @contextmanager
    def _untrained(self) -> Iterator[None]:
        before = self.options
        self.options = before._replace(trained="none")
        yield
        self.options = before

    def given(self, t: Tape, name: str, dims: Dims, width: int) -> Tensor:
        """A tensor that the batch brings to the device."""
        made = t.tensor(name, dims, width, origin=AMBIENT)
        self.inputs.append(made)
        return made

    def rounded(self, length: int | str, step: int) -> int | str:
        """``length`` rounded up to whole steps: a number, or the symbol of one that is open.

        A cache's length stays as it is: its mask is a view of a longer one.
        """
        value = self.sizes.values.get(length) if isinstance(length, str) else length
        if value is not None:
            return -(-value // step) * step
        return f"{length}{step}" if length in ("s", "u", "sv") else length

    def is_ragged(self, length: int | str) -> bool:
        """Whether ``length`` is no multiple of 8, so that SDPA pads a mask of so many keys."""
        value = self.sizes.values.get(length) if isinstance(length, str) else length
        return bool(value % 8) if value is not None else length in self.options.ragged

    @property
    def rows(self) -> Dims:
        """One element per token (of the queries)."""
        return ("b", self.queries)

    @property
    def hidden(self) -> Dims:
        """The residual stream."""
        return ("b", self.queries, "h")

    @property
    def residual(self) -> Dims:
        """The residual stream on one rank, which may have only some of the tokens."""
        return ("b", "sr", "h") if self.options.split.sequence else self.hidden


def _like_bert(model: ModelSpec) -> bool:
    """Whether an encoder's layers are BERT's, and not DistilBERT's, ALBERT's or MobileBERT's."""
    if model.is_decoder or model.num_encoder_layers or model.gated_mlp or model.bottleneck_size:
        return False
    return not {"feed_forward", "attention_output"}.intersection(model.dropouts)
