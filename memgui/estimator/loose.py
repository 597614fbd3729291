"""Parts that no tensor makes up: stated by their source, or a share of what comes and goes."""

from __future__ import annotations

from memgui.estimator.moments import Amount
from memgui.estimator.overhead import Range
from memgui.estimator.result import COMPONENTS, Derivation, Node, Symbol
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message


def stated(
    key: str,
    label: str,
    size: int,
    source: str,
    text: str,
    known: Range | None = None,
    depends: tuple[str, ...] = (),
) -> Node:
    """A part that is stated, not derived from symbols; ``known`` is its range.

    ``depends``: paths of the fields that decide its size.
    """
    said = () if known is None else (_between(known),)

    def derive(node: Node) -> Derivation:
        return Derivation(str(node.bytes), {}, source, text, said, depends)

    return Node(key, label, size, (), derive)


def _between(known: Range) -> Message:
    return Message(
        QT_TRANSLATE_NOOP("messages", "Between {low} and {high} bytes."),
        {"low": known.low, "high": known.high},
    )


def fragmented(amount: Amount, loose: Range, allocated: int, still: int, depends: tuple[str, ...]) -> Node:
    """Fragmentation: ``loose.percent`` of what is ``allocated`` and does not lie ``still`` (bytes).

    Where the run was played on the allocator there is no share: what it left unused is stated.
    """
    text = QT_TRANSLATE_NOOP(
        "estimator", "Reserved by PyTorch but of no use to the next tensor; known as a range only."
    )
    label = QT_TRANSLATE_NOOP("estimator", "Fragmentation")
    if not loose.percent or allocated <= still:
        return stated("fragmentation", label, loose.usual, loose.source, text, loose, depends)

    def derive(_: Node) -> Derivation:
        symbols = {
            "A": Symbol(
                allocated,
                QT_TRANSLATE_NOOP("symbols", "allocated at the peak"),
                derivation=_allocated(amount, allocated),
            ),
            "P": _still(amount, still),
        }
        said = (_between(loose),)
        return Derivation(f"(A - P)*{loose.percent}//100", symbols, loose.source, text, said, depends)

    return Node("fragmentation", label, loose.usual, (), derive)


def _allocated(amount: Amount, allocated: int) -> Derivation:
    """What is allocated at the peak, component by component."""
    parts = _parts(amount, tuple(key for key in COMPONENTS if key != "overhead"))
    beside = allocated - sum(part.value for part in parts.values())
    label = QT_TRANSLATE_NOOP("symbols", "block rounding and workspaces")
    parts["overhead"] = Symbol(beside, label, component="overhead")
    return Derivation(" + ".join(parts), parts)


def _still(amount: Amount, still: int) -> Symbol:
    """What lies there from step to step: weights and what the optimizer keeps, if that is all."""
    label = QT_TRANSLATE_NOOP("symbols", "there from step to step")
    for keys in (("weights", "optimizer_states"), ("weights", "kv_cache")):
        parts = _parts(amount, keys)
        if len(parts) > 1 and sum(part.value for part in parts.values()) == still:
            return Symbol(still, label, derivation=Derivation(" + ".join(parts), parts))
    return Symbol(still, label, component="weights")


def _parts(amount: Amount, keys: tuple[str, ...]) -> dict[str, Symbol]:
    sizes = {key: amount.components.get(key, 0) for key in keys}
    return {key: Symbol(size, COMPONENTS[key], component=key) for key, size in sizes.items() if size}
