"""The tree that is shown: component, part, and where a part has several kinds of layers, the kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from memgui.estimator.events import Gradient, Scratch, Thing
from memgui.estimator.formula import formula, unlettered
from memgui.estimator.modules.reach import LENDING
from memgui.estimator.optimizers import OPTIMIZERS
from memgui.estimator.program import Program
from memgui.estimator.result import COMPONENTS, Derivation, Node
from memgui.estimator.state import State
from memgui.estimator.tape import Op, Tensor
from memgui.spec.formats.schemes import AS_IN_FILE
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

PARTS: dict[str, str] = {
    "embedding": QT_TRANSLATE_NOOP("estimator", "Embedding"),
    "position_embedding": QT_TRANSLATE_NOOP("estimator", "Position embedding"),
    "token_type_embedding": QT_TRANSLATE_NOOP("estimator", "Token type embedding"),
    "embedding_projection": QT_TRANSLATE_NOOP("estimator", "Embedding projection"),
    "stem": QT_TRANSLATE_NOOP("estimator", "Stem"),
    "attention": QT_TRANSLATE_NOOP("estimator", "Attention"),
    "qk_norm": QT_TRANSLATE_NOOP("estimator", "Query/key norms"),
    "mixer": QT_TRANSLATE_NOOP("estimator", "Mixer"),
    "mlp": QT_TRANSLATE_NOOP("estimator", "Feed-forward"),
    "experts": QT_TRANSLATE_NOOP("estimator", "Experts"),
    "shared_experts": QT_TRANSLATE_NOOP("estimator", "Shared experts"),
    "router": QT_TRANSLATE_NOOP("estimator", "Router"),
    "norm": QT_TRANSLATE_NOOP("estimator", "Norms"),
    "residual": QT_TRANSLATE_NOOP("estimator", "Residual stream"),
    "adapter": QT_TRANSLATE_NOOP("estimator", "Adapters"),
    "lm_head": QT_TRANSLATE_NOOP("estimator", "Head"),
    "streams": QT_TRANSLATE_NOOP("estimator", "Residual streams"),
    "per_layer": QT_TRANSLATE_NOOP("estimator", "Per-layer embeddings"),
    "vision": QT_TRANSLATE_NOOP("estimator", "Vision tower"),
    "audio": QT_TRANSLATE_NOOP("estimator", "Audio tower"),
    "speech": QT_TRANSLATE_NOOP("estimator", "Speech output"),
    "projection": QT_TRANSLATE_NOOP("estimator", "Projection"),
    "contacts": QT_TRANSLATE_NOOP("estimator", "Contact map"),
    "rotary": QT_TRANSLATE_NOOP("estimator", "Rotary tables"),
    "loss": QT_TRANSLATE_NOOP("estimator", "Loss"),
    "inputs": QT_TRANSLATE_NOOP("estimator", "Inputs"),
    "weight_copies": QT_TRANSLATE_NOOP("estimator", "Copies of weights"),
    "checkpoints": QT_TRANSLATE_NOOP("estimator", "Layer inputs"),
    "optimizer": QT_TRANSLATE_NOOP("estimator", "Optimizer"),
}
"""Label of each part, in the order of a model."""

_BETWEEN = "residual"
"""Part of what stands between two modules."""

_ORDER = {key: index for index, key in enumerate(PARTS)}

MEASURED = QT_TRANSLATE_NOOP(
    "sources", "PyTorch 2.13's autograd rules on the operators of Transformers 5.24; measured on real models"
)
COUNTED = QT_TRANSLATE_NOOP("sources", "Shapes of the model's weights in Transformers 5.24")

IN_FILE = QT_TRANSLATE_NOOP("sources", "The tensors in the model's files")

TEXTS: dict[str, str] = {
    "weights": QT_TRANSLATE_NOOP("estimator", "The model's weights and buffers."),
    "gradients": QT_TRANSLATE_NOOP("estimator", "Gradients of trained weights, as far as they lie here."),
    "optimizer_states": QT_TRANSLATE_NOOP(
        "estimator", "What the optimizer keeps of trained weights, as far as it lies here."
    ),
    "activations": QT_TRANSLATE_NOOP(
        "estimator", "Tensors that autograd saved and backward has not used yet."
    ),
    "loss": QT_TRANSLATE_NOOP(
        "estimator", "What is held of logits, of what the loss makes of them, and of their gradients."
    ),
    "kv_cache": QT_TRANSLATE_NOOP(
        "estimator", "Keys and values of tokens, or the states that are kept in their place."
    ),
    "temporary": QT_TRANSLATE_NOOP("estimator", "Working set of the operator that runs at this moment."),
}

Listed = tuple[Thing | State, int]


def part_of(thing: Thing | State, booked: Mapping[Tensor, Op]) -> str:
    """The part of the model that a thing is shown under; ``booked``: see :attr:`Program.booked`."""
    if isinstance(thing, Tensor):
        if thing.weight_copy:
            return "weight_copies"
        return booked.get(thing, thing).part or _BETWEEN
    return booked.get(thing.of, thing.of).part or _BETWEEN


def block_of(thing: Thing | State) -> str:
    """The block that a thing belongs to; what is like others in all but one thing is shown with them."""
    block = thing.of.block if isinstance(thing, Gradient | Scratch | State) else thing.block
    return LENDING.get(block) or block.removesuffix(".first")


class Breakdown:
    """Makes the nodes of a component from the things alive in it, when someone looks."""

    def __init__(self, scenario: Scenario, program: Program, values: Sequence[int]) -> None:
        self.scenario = scenario
        self.program = program
        self.values = values

    def component(self, key: str, total: int, listed: Callable[[], Iterable[Listed]]) -> Node:
        """The top-level node of ``key`` with ``total`` bytes; ``listed`` gives what makes them up."""
        source = COUNTED if key in ("weights", "gradients") else MEASURED
        if key == "weights" and self.scenario.inference.weight_format == AS_IN_FILE:
            source = IN_FILE if self.scenario.task == "inference" else COUNTED
        if key == "optimizer_states":
            source = OPTIMIZERS[self.scenario.training.optimizer].source
        return Node(key, COMPONENTS[key], total, partial(self._parts, listed, source, key))

    def _parts(self, listed: Callable[[], Iterable[Listed]], source: str, component: str) -> tuple[Node, ...]:
        booked = self.program.booked
        parts: dict[str, dict[str, list[Listed]]] = {}
        counts: dict[Thing | State, int] = {}
        for thing, count in listed():
            counts[thing] = counts.get(thing, 0) + count
        for thing, count in counts.items():
            if count:
                blocks = parts.setdefault(part_of(thing, booked), {})
                blocks.setdefault(block_of(thing), []).append((thing, count))
        nodes: list[Node] = []
        for part in sorted(parts, key=lambda name: _ORDER.get(name, 99)):
            blocks = parts[part]
            label = PARTS.get(part, part)
            if len(blocks) == 1:
                (things,) = blocks.values()
                nodes.append(self._leaf(part, label, things, source, component))
            else:
                leaves = tuple(
                    self._leaf(block, self.program.block_label(block), things, source, component)
                    for block, things in blocks.items()
                )
                nodes.append(Node(part, label, 0, leaves))
        return tuple(node for node in nodes if node.bytes)

    def _leaf(self, key: str, label: str, things: list[Listed], source: str, component: str) -> Node:
        values = self.values
        size = sum(thing.coefficient * values[thing.monomial] * count for thing, count in things)
        return Node(key, label, size, (), partial(self._derive, things, source, component))

    def _derive(self, things: list[Listed], source: str, component: str, node: Node) -> Derivation:
        p = self.program
        written, symbols = formula(things, self.scenario, p.values, p.letters, p.sizes.monomials)
        depends = unlettered(things, self.scenario, p.values, _kept_by(self.scenario, component))
        if component == "kv_cache" and self.scenario.task == "inference":
            depends = (*depends, "inference.kv_cache_format")
        return Derivation(written, symbols, source, TEXTS[component], depends=depends)


def _kept_by(scenario: Scenario, component: str) -> tuple[str, ...]:
    """Fields that say what is kept of a weight beside it, or in its place."""
    if component == "optimizer_states":
        return ("training.optimizer",)
    if component != "weights":
        return ()
    return ("inference.weight_format" if scenario.task == "inference" else "training.base_format",)
