"""What a module knows besides its input: the model, how it runs, and what all layers share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import msgspec

from memgui.estimator.alike import Common
from memgui.estimator.op import copy
from memgui.estimator.options import Options
from memgui.estimator.tape import AMBIENT, Dims, Parameter, Sizes, Tape, Tensor
from memgui.spec.model import ModelSpec

_AS_SAID: Final = nullcontext()


class Context(msgspec.Struct, eq=False):
    """Model, options and the tensors made once per step outside the layers.

    ``queries`` and ``keys`` are the lengths that attention sees: the sequence, or in decoding one
    token against the cache.  ``masks`` and ``rotary`` hold masks and rotary tables by the reach of
    the layers that use them (:class:`~memgui.estimator.modules.reach.Reach`).
    """

    model: ModelSpec
    options: Options
    sizes: Sizes
    names: dict[str, str]
    queries: int | str = "s"
    keys: str = "s"
    prefix: Tensor | None = None
    """trained keys and values of all layers"""
    ids: Tensor | None = None
    inputs: list[Tensor] = []
    labels: Tensor | None = None
    alibi: Tensor | None = None
    masks: dict[str, Tensor] = {}
    rotary: dict[str, tuple[Tensor, ...]] = {}
    table: Parameter | None = None
    before: str = "t1"
    """length of the cache before a token is appended"""
    causal: bool = True
    """a token sees only those before it"""
    bias: Tensor | None = None
    """added to the scores of every layer"""
    distances: tuple[Tensor, Tensor] | None = None
    """of every pair of tokens, and what each distance means"""
    padding: Tensor | None = None
    """which tokens count, as the batch says it"""
    over: Context | None = None
    """of the attention over an encoder's states"""
    states: Tensor | None = None
    """an encoder's states"""
    lent: dict[str, tuple[Tensor, Tensor]] = {}
    """keys and values that later layers use, by reach"""
    temperatures: Tensor | None = None
    """what queries of layers without rotation are scaled by, of each position"""
    variants: dict[str, tuple[ModelSpec, Sizes]] = {}
    """layers of other sizes, by mixer"""
    own: Tensor | None = None
    """embeddings that each layer has of its own, of all layers"""
    entered: Tensor | None = None
    """what the layers before all loops gave, or what is embedded, for layers that read it again"""
    named: list[Tensor] = []
    """what the code of the module that is being written refers to until it returns"""
    names_given: bool = False
    """the code of a half refers to what its last linear layer is given until it returns (BERT)"""
    common: Common = msgspec.field(default_factory=Common)
    """what kinds of layers have in common"""
    handed: list[Tensor] = []
    """what layers are given beside their input in a way that checkpointing sees"""

    @classmethod
    def of(cls, model: ModelSpec, options: Options, sizes: Sizes, names: dict[str, str]) -> Context:
        """That of a model which runs so."""
        made = cls(model, options, sizes, names)
        length = "P" if model.image_size else "s"
        made.queries = 1 if options.decode else length
        made.keys = "t" if options.decode or options.static else length
        if options.trained == "prefix":
            made.keys = "sv"
        made.names_given = model.norm_placement == "post" and _like_bert(model)
        return made

    def give(self, x: Tensor) -> None:
        """``x`` is what the last linear layer of a half is given; see ``names_given``."""
        if self.names_given:
            self.named.append(x)

    def frozen(self) -> Context:
        """The same where nothing is trained; what all layers share is shared."""
        other = copy(self)
        other.options = msgspec.structs.replace(self.options, trained="none", lora=None)
        return other

    def uncached(self) -> Context:
        """The same for a layer that keeps nothing, though it may look at what another run of it keeps."""
        other = copy(self)
        other.options = msgspec.structs.replace(self.options, cache=False)
        return other

    def varied(self, mixer: str) -> Context:
        """The same for layers with ``mixer``, whose sizes are their own."""
        other = copy(self)
        other.model, other.sizes = self.variants[mixer]
        return other

    def looking_at(self, keys: str) -> Context:
        """The same for attention over so many keys."""
        other = copy(self)
        other.keys = keys
        return other

    def trained(self, as_said: bool) -> AbstractContextManager[None]:
        """Within, the model's own weights are trained as the options say, or not at all."""
        return _AS_SAID if as_said else self._untrained()

    @contextmanager
    def _untrained(self) -> Iterator[None]:
        before = self.options
        self.options = msgspec.structs.replace(before, trained="none")
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
