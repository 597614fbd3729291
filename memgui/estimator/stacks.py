"""Kinds of layers, and stacks of them behind the block that makes their input."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from memgui.estimator.block import Block, Sparing
from memgui.estimator.events import NONE, Group, gradient_of, group
from memgui.estimator.fetched import staying_here
from memgui.estimator.op import unfolded
from memgui.estimator.roles import Roles
from memgui.estimator.tape import AMBIENT, Parameter, Tensor


class Kind:
    """One kind of layer: its blocks in order, and how many layers are of it."""

    def __init__(
        self,
        key: str,
        label: str,
        blocks: tuple[Block, ...],
        handed: tuple[Tensor, ...] = (),
        recompute: str = "none",
    ) -> None:
        self.key = key
        self.label = label
        self.blocks = blocks
        self.handed = handed
        """what a checkpoint keeps of each such layer beside its input"""
        self.recomputed = recompute != "none"
        """whether such a layer as a whole is computed again in backward"""
        self.sparing = _sparing(blocks) if recompute == "selective_op" else ()
        """of a layer that is checkpointed by operator, what of each block is kept"""
        self.count = 0
        self.fetched, self.fetched_unsaved = NONE, NONE
        """what others made and it fetches from the computer's memory, and what of that it does not save"""
        shared: list[Tensor] = []
        passed: list[Tensor] = []
        trailing: list[Tensor] = []
        for block in blocks:
            tape = block.tape
            if tape.handed_out:
                shared += [one for one in tape.handed_out if not (self.recomputed and one.weight_copy)]
            passed += tape.passed
            if tape.trailing:
                trailing += [one for one in tape.trailing if self.recomputed or one not in block.saved]
        self.shared = group(shared)
        """what a layer of this kind hands to those that follow; copies of weights are made again"""
        self.passed = group(passed)
        """what it hands to the next layer alone, whose checkpoint keeps it"""
        self.trailing = group(trailing if self.recomputed else [*trailing, *passed])
        """what the model's code refers to until the next layer returns, and nobody keeps"""

        out = blocks[-1].tape.out
        assert out is not None
        self.out = out
        """what such a layer hands on"""

    @property
    def leaf(self) -> Tensor | None:
        """What such a layer made to require a gradient."""
        return next((block.tape.leaf for block in self.blocks if block.tape.leaf is not None), None)

    @property
    def differentiable(self) -> bool:
        """Whether anything in such a layer, or before it, is trained."""
        return self.out.grad

    def used(self, chosen: Collection[Tensor]) -> list[Tensor]:
        """What of ``chosen``, which others made, such a layer is handed or saves."""
        if self.recomputed:
            read = {one.root for one in _read(self.blocks)}
        else:
            read = {one for block in self.blocks for one in block.ambient}
        return [one for one in chosen if one in read]

    def reads(self, chosen: Collection[Tensor]) -> bool:
        """Whether such a layer reads any of ``chosen``."""
        return any(one.root in chosen for one in _read(self.blocks))

    @property
    def parameters(self) -> Iterator[Parameter]:
        """Weights of one layer of this kind."""
        return (parameter for block in self.blocks for parameter in block.tape.parameters)


def _read(blocks: Iterable[Block]) -> Iterator[Tensor]:
    """What operators of the blocks read; what others made is the same for all that have them in common."""
    return (one for block in blocks for op in unfolded(block.tape.written) for one in op.ins)


def _sparing(blocks: tuple[Block, ...]) -> tuple[Sparing, ...]:
    found: list[Sparing] = []
    before = 0
    for block in blocks:
        found.append(block.sparing(before))
        before += block.products
    return tuple(found)


Stretch = tuple[Kind, Roles, int]
"""Equal layers in a row, in the order of backward, with the role of each of their blocks, and how many."""


FRAME_KEYS = {"stem": "embedding", "between": "between"}
LAYER_KEYS = {"layers": "layer", "encoder": "encoder.layer", "decoder": "layer"}
"""What moments are called: of the block before a stack's layers, and of its layers."""


Variant = tuple[str, tuple[str, bool, bool, int]]
"""Of a block: its name; the weights it shares, whether it is frozen, gradient and width of its input."""


class Stack:
    """Layers in runs (kind, how many), and the block before them that makes their input (``frame``)."""

    def __init__(self, name: str, frame: Block) -> None:
        self.name = name
        self.frame = frame
        self.frame_key, self.layer_key = FRAME_KEYS[frame.tape.key], LAYER_KEYS[name]
        self.runs: list[tuple[Kind, int]] = []
        self.kinds: list[Kind] = []
        self.blocks: dict[Variant, Block] = {}
        self.pools: dict[tuple[str, int], list[Parameter]] = {}
        """weights that layers share, by their name and the number of the block"""

    def close(
        self, chosen: Collection[Tensor] = (), *, offloads: bool = False, fetches: bool = False
    ) -> None:
        """All layers are there; ``offloads``: checkpoints keep none of their inputs on the device.

        ``fetches``: nor what all layers are given (by position, as encoders' states are).

        What is ``chosen`` is handed to those layers alone that use it.
        """
        checkpointing = any(kind.recomputed for kind in self.kinds)
        tape = self.frame.tape
        out = tape.out
        assert out is not None
        giving = {kind for kind in self.kinds if kind.shared.alike}
        runs = self.runs if giving else ()
        given = [tensor for kind, _ in runs if kind in giving for tensor in kind.shared.tensors]
        shared, held = [*tape.handed_out, *given], dict.fromkeys((*tape.held, *given))
        ambient = {one for one in held if one.origin == AMBIENT}
        saved: set[Tensor] = set()
        if ambient:
            for block in (self.frame, *self.blocks.values()):
                saved |= block.saved.keys() & ambient
        given_up = self._unseen(chosen) if checkpointing and chosen else set()
        kept = [one for one in held if one in saved or (checkpointing and one in shared)]
        if given_up:
            kept = [one for one in kept if one in saved or one not in given_up]
        if fetches and checkpointing:
            kept = staying_here(self.frame, self.kinds, kept, shared)
        self.holds_input = out.root in held
        """whether the model's code refers to the first layer's input until all layers are done"""
        leaves = [kind.leaf.root for kind in giving if kind.leaf is not None]
        self.given_leaves = group(leaves)
        """what a layer gave to all that requires a gradient: the graph refers to it until the loss dies"""
        self.given_leaf_gradients = group([gradient_of(leaf) for leaf in leaves])
        self.shared_kept = group([one for one in kept if one not in leaves] if leaves else kept)
        """what all layers share and autograd, or a checkpoint, keeps until they have run back"""
        makers = [block for kind in giving if not kind.recomputed for block in kind.blocks]
        early = {one for block in makers if block.tape.handed_out for one in block.last_used.tensors}
        self.shared_last = self.shared_kept
        if early:
            self.shared_last = group([one for one in self.shared_kept.tensors if one not in early])
        """of that, what does not go as the layer runs back that made it"""
        self.going_early: list[tuple[int, Group]] = []
        """of what is chosen, what goes before the first layer runs back: once the one of this number has"""
        several = checkpointing and chosen and len(self.kinds) > 1
        if several and (len(chosen) > 1 or not self.kinds[0].reads(chosen)):
            self._let_go_early(chosen)
        self.made_again = {
            kind: group([one for one in kind.shared.tensors if one in kept and one not in leaves])
            for kind in giving
            if kind.recomputed
        }
        """of that, what a layer gave to all and makes again before it runs back: the first has gone then"""
        leaf = None if tape.leaf is None else tape.leaf.root
        staying = {out.root, leaf, *kept, *tape.outside, *tape.results}
        self.locals = group([one for one in held if one not in staying])
        """what dies when the stack has returned"""
        first = self.runs[0][0]
        self.passed_last = NONE
        if first.recomputed:
            self.passed_last = [kind for kind, _ in self.runs if kind.recomputed][-1].passed
        """what nobody keeps: a checkpoint keeps what its layer was passed, which is nothing for the first"""
        trailing = {bool(kind.trailing.alike) for kind in self.kinds}
        self.passed_forward = NONE if False in trailing else self.kinds[0].trailing
        """what the model's code refers to until the next layer has its own, and nobody keeps"""
        self.trails = len(trailing) > 1
        """whether that is so of what some of the layers leave, while others keep it anyway"""
        self.holds_input_outside = out.root in tape.outside
        """whether the first layer's input is referred to until the loss is there"""
        results = tape.results
        self.results = group([one for one in results if one not in kept]) if results else NONE
        """what the model returns and autograd does not keep anyway"""
        self.results_kept = group([one for one in results if one in kept]) if results else NONE
        """what it returns of what autograd keeps: who refers to the outputs keeps it longer"""
        self.leaf = group((leaf,) if leaf is not None else ())
        """what was made to require a gradient: the graph refers to it until the loss dies"""
        stays = not offloads if first.recomputed else first.blocks[0].carried
        self.leaf_is_input = leaf is out.root and stays
        """whether it is the layers' input, which these keep as long as they need it"""
        self.leaf_is_kept = self.leaf_is_input or leaf in self.frame.saved
        """whether autograd, or a checkpoint, keeps it anyway"""
        self.leaf_lies = leaf is out.root and not stays
        """whether it is that input, and only the graph keeps it"""
        self.leaf_gradient = group((gradient_of(leaf),) if leaf is not None else ())

    def _unseen(self, chosen: Collection[Tensor]) -> set[Tensor]:
        """What of ``chosen`` no layer that is checkpointed is handed."""
        blocks = [block for kind in self.kinds if kind.recomputed for block in kind.blocks]
        return {*chosen}.difference(one.root for one in _read(blocks))

    def _let_go_early(self, chosen: Collection[Tensor]) -> None:
        """Find what goes before all layers have run back, as the first of them do not use it."""
        left = [one for one in self.shared_last.tensors if one in chosen]
        seen: set[Kind] = set()
        index = 0
        for kind, count in self.runs:
            if not left:
                break
            if kind not in seen:
                seen.add(kind)
                used = kind.used(left)
                if used and index:
                    self.going_early.insert(0, (index, group(used)))
                left = [one for one in left if one not in used]
            index += count
        early = {one for _, going in self.going_early for one in going.tensors}
        if early:
            self.shared_last = group([one for one in self.shared_last.tensors if one not in early])
