"""A model compiled for one way of running it: blocks, layer kinds, how often each occurs.

What is compiled depends on the model and on :class:`~memgui.estimator.options.Options`, never on
micro batch or sequence length, and is remembered for the next call.  Layers of one kind are
written once; a run of equal layers is a count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from memgui.estimator.block import Block
from memgui.estimator.coverage import require_covered
from memgui.estimator.lifetimes import Group
from memgui.estimator.modules import layers
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.ends import stem, tail
from memgui.estimator.modules.names import names
from memgui.estimator.options import Options
from memgui.estimator.symbols import model_values
from memgui.estimator.tape import AMBIENT, Parameter, Sizes, Tape, Tensor
from memgui.spec.model import ModelSpec


class Kind:
    """One kind of layer: its blocks in order, and how many layers are of it."""

    def __init__(self, key: str, label: str, blocks: tuple[Block, ...]) -> None:
        self.key = key
        self.label = label
        self.blocks = blocks
        self.count = 0

    @property
    def parameters(self) -> Iterator[Parameter]:
        """Weights of one layer of this kind."""
        return (parameter for block in self.blocks for parameter in block.tape.parameters)


class Program:
    """Stem, layer kinds in runs, tail.  ``runs`` is a list of (kind, how many in a row)."""

    def __init__(self, model: ModelSpec, options: Options) -> None:
        require_covered(model)
        self.model = model
        self.options = options
        rank = options.lora.rank if options.lora is not None else 0
        self.sizes = sizes = Sizes(model_values(model, rank))
        self.context = context = Context(model, options, sizes, names(model.model_type))
        self.stem = self._block("stem", lambda t: stem(t, context))
        out = self.stem.tape.out
        assert out is not None
        _ = self.stem.running, self.stem.passing
        for tensor in self.stem.tape.held:
            tensor.origin = AMBIENT  # from here on it belongs to all layers
        self.kinds: list[Kind] = []
        self.runs: list[tuple[Kind, int]] = []
        grad = self._layers(out)
        self.tail = self._block("tail", lambda t: tail(t, context, t.input(out.dims, out.width, grad)))
        saved = {root for kind in self.kinds for block in kind.blocks for root in block.ambient}
        shared, held = self.stem.tape.handed_out, self.stem.tape.held
        kept = shared if options.checkpointing == "full" else [one for one in shared if one in saved]
        self.holds_embedding = out.root in held
        """whether the model's code refers to the first layer's input until all layers are done"""
        self.shared_kept = Group(kept)
        """what all layers share and autograd, or a checkpoint, keeps until they have run back"""
        self.locals = Group(one for one in held if one not in kept and one is not out.root)
        """what dies when the model has returned"""

    def _block(self, key: str, write: Callable[[Tape], Tensor]) -> Block:
        o = self.options
        tape = Tape(key, self.sizes, o.autocast, o.training)
        tape.out = write(tape)
        return Block(tape)

    def _layers(self, out: Tensor) -> bool:
        """Compile each kind once; a first layer whose input needs no gradient is a kind of its own.

        Returns whether the last layer's output needs a gradient.
        """
        compiled: dict[tuple[str, bool], Block] = {}
        kinds: dict[tuple[layers.LayerPlan, bool], Kind] = {}
        grad = out.grad
        for plan, count in layers.plans(self.model):
            left = count
            while left:
                before = grad
                blocks: list[Block] = []
                for name, write in plan.blocks:
                    block = compiled.get((name, grad))
                    if block is None:
                        block = compiled[name, grad] = self._half(name, write, out, grad)
                    blocks.append(block)
                    assert block.tape.out is not None
                    grad = block.tape.out.grad
                kind = kinds.get((plan, before))
                if kind is None:
                    kind = kinds[plan, before] = Kind(plan.key, plan.label, tuple(blocks))
                    self.kinds.append(kind)
                alike = left if grad == before else 1
                kind.count += alike
                self.runs.append((kind, alike))
                left -= alike
        return grad

    def _half(self, name: str, write: layers.Writer, out: Tensor, grad: bool) -> Block:
        return self._block(name, lambda t: write(t, self.context, t.input(out.dims, out.width, grad)))

    def block_label(self, key: str) -> str:
        """What the block called ``key`` is called in the breakdown (an English msgid)."""
        return layers.block_label(key)

    def blocks(self) -> Iterator[tuple[Block, int]]:
        """Every block once, with how often it occurs."""
        yield self.stem, 1
        counts: dict[Block, int] = {}
        for kind in self.kinds:
            for block in kind.blocks:
                counts[block] = counts.get(block, 0) + kind.count
        yield from counts.items()
        yield self.tail, 1


@lru_cache(maxsize=64)
def compiled(model: ModelSpec, options: Options) -> Program:
    """The program of ``model`` run as ``options`` say."""
    return Program(model, options)
