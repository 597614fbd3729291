"""What the estimator answers: which bytes are on one device, at which moment, and why.

Everything here is plain data.  A :class:`Node`'s bytes are an ``int``; an inner node's are the sum
of its children by construction.  Derivations (formula, values, source) are made when someone looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import msgspec

from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message
from memgui.spec.scenario import Scenario

COMPONENTS: dict[str, str] = {
    "weights": QT_TRANSLATE_NOOP("estimator", "Weights"),
    "gradients": QT_TRANSLATE_NOOP("estimator", "Gradients"),
    "optimizer_states": QT_TRANSLATE_NOOP("estimator", "Optimizer states"),
    "activations": QT_TRANSLATE_NOOP("estimator", "Activations"),
    "loss": QT_TRANSLATE_NOOP("estimator", "Loss"),
    "kv_cache": QT_TRANSLATE_NOOP("estimator", "KV cache"),
    "temporary": QT_TRANSLATE_NOOP("estimator", "Temporary"),
    "overhead": QT_TRANSLATE_NOOP("estimator", "Overhead"),
}
"""The eight top-level components, in the order of the file format, and their labels."""


class Symbol(msgspec.Struct, frozen=True):
    """One letter of a formula: its value, what it means, and the field it comes from, if any.

    A letter that no field holds says by a ``derivation`` of its own how its value comes about, or
    is the size of a top-level ``component``.
    """

    value: int
    label: str
    path: str | None = None
    derivation: Derivation | None = None
    component: str = ""


class Derivation(msgspec.Struct, frozen=True):
    """Why a number is what it is.

    ``formula`` is an expression of integers and symbols joined by ``+ - * // ( )`` which, with
    ``symbols`` put in, evaluates to the node's bytes exactly.  ``text`` says in one or two
    sentences what the bytes are; ``source`` where the formula comes from (paper, code, measurement).
    ``depends``: paths of fields that numbers in it follow from which have no letter.
    """

    formula: str
    symbols: Mapping[str, Symbol]
    source: str = ""
    text: str = ""
    assumptions: tuple[Message, ...] = ()
    depends: tuple[str, ...] = ()


class Node:
    """One part of the breakdown.

    ``key`` is unique among siblings and stable; ``label`` is an English msgid (context
    ``"estimator"``).  A leaf is given its bytes; an inner node sums its children.  Children may be
    given as a function that makes them on first look; then their bytes are given beside it, and
    they add up to it.
    """

    __slots__ = ("__dict__", "_children", "_derive", "_make", "bytes", "key", "label")

    def __init__(
        self,
        key: str,
        label: str,
        size: int = 0,
        children: tuple[Node, ...] | Callable[[], tuple[Node, ...]] = (),
        derive: Callable[[Node], Derivation] | None = None,
    ) -> None:
        self.key = key
        self.label = label
        self._derive = derive
        self._make: Callable[[], tuple[Node, ...]] | None = None
        self._children: tuple[Node, ...] = ()
        self.bytes = size
        if callable(children):
            self._make = children
        elif children:
            self._children = children
            self.bytes = sum(child.bytes for child in children)

    @property
    def children(self) -> tuple[Node, ...]:
        """The parts of this node; none where it is a leaf."""
        make = self._make
        if make is not None:  # in another thread it may be done by now
            self._children, self._make = make(), None
        return self._children

    @cached_property
    def derivation(self) -> Derivation:
        """The formula, its values and its source, made on first look."""
        if self._derive is not None:
            return self._derive(self)
        names = {child.symbol: Symbol(child.bytes, child.label) for child in self.children}
        formula = " + ".join(names) if names else str(self.bytes)
        return Derivation(formula, names, QT_TRANSLATE_NOOP("estimator", "Sum of its parts"))

    @property
    def symbol(self) -> str:
        """The key as it stands in a formula: one word, that any reader of formulas can compute it."""
        return self.key.replace(".", "_")

    def child(self, key: str) -> Node:
        """The child called ``key``; ``KeyError`` where there is none."""
        for child in self.children:
            if child.key == key:
                return child
        raise KeyError(key)

    def __repr__(self) -> str:
        return f"Node({self.key!r}, {self.bytes:,})"


class Moment(msgspec.Struct, frozen=True):
    """Live bytes at a named moment of a step: ``components`` add up to ``bytes``.

    ``allocated`` is what PyTorch's allocator counts of them, 0 where there is none.
    ``key`` is stable (``"backward.layer.3"``), ``label`` what a person reads; ``phase`` is
    ``load``, ``forward``, ``loss``, ``backward``, ``optimizer``, ``prefill``, ``decode``, …
    """

    key: str
    label: Message
    phase: str
    bytes: int
    components: Mapping[str, int]
    operator: str = ""
    allocated: int = 0


class Rank(msgspec.Struct, frozen=True):
    """One device of the layout and its peak; of a training stage also what the allocator counts of it."""

    rank: str
    peak_bytes: int
    allocated_bytes: int = 0


class Parameters(msgspec.Struct, frozen=True):
    """Parameter counts (elements, a tied tensor once)."""

    total: int
    trainable: int
    active: int
    by_part: Mapping[str, int]
    added: int = 0
    """Of ``total``, what fine-tuning puts beside the model: adapters, and copies that are trained."""
    added_active: int = 0
    """Of ``active``, likewise."""

    @property
    def own(self) -> int:
        """The model's own, whatever is trained of it."""
        return self.total - self.added

    @property
    def own_active(self) -> int:
        """The model's own that a token passes through."""
        return self.active - self.added_active


class Verdict(msgspec.Struct, frozen=True):
    """``kind``: fits, tight (the range crosses the limit), does_not_fit, unknown."""

    kind: str
    capacity_bytes: int
    headroom_bytes: int
    reason: Message


class Estimate(msgspec.Struct, frozen=True):
    """The answer for one scenario, on the worst rank.

    ``components`` holds the eight top-level nodes, always all, in :data:`COMPONENTS` order, with
    what is alive at ``peak_moment``; they add up to ``peak_bytes``.  ``timeline`` holds every moment
    in order, made on first look.  All sizes are bytes.
    """

    scenario: Scenario
    method: str
    version: str
    parameters: Parameters
    components: tuple[Node, ...]
    peak_bytes: int
    peak_moment: Moment
    low_bytes: int
    high_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    timeline: Sequence[Moment]
    ranks: tuple[Rank, ...]
    verdict: Verdict
    issues: tuple[Issue, ...] = ()
    assumptions: tuple[Message, ...] = ()
    extra: Mapping[str, int] = {}
    """Further exact figures of a method or engine (tokens a pool holds, …) by stable key."""

    def component(self, key: str) -> Node:
        """The top-level node called ``key`` (one of :data:`COMPONENTS`)."""
        return next(node for node in self.components if node.key == key)
