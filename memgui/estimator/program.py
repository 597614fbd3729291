"""A model compiled for one way of running it: blocks, layer kinds, how often each occurs.

What is compiled depends on the model and on :class:`~memgui.estimator.options.Options`, never on
micro batch or sequence length, and is remembered for the next call.  Layers of one kind are
written once; a run of equal layers is a count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain, groupby
from math import prod
from operator import attrgetter

import msgspec

from memgui.estimator.block import Block, Sparing
from memgui.estimator.coverage import require_covered
from memgui.estimator.dimensions import model_values
from memgui.estimator.events import NONE, gradient_of, group
from memgui.estimator.fetched import staying_here
from memgui.estimator.layer_runs import checkpointed, thawing
from memgui.estimator.lifetimes import ALONE, Role
from memgui.estimator.modules import layers
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.names import names
from memgui.estimator.modules.outline import StackPlan, block_label, outline
from memgui.estimator.modules.ranks import sent
from memgui.estimator.modules.reach import LENDING
from memgui.estimator.modules.taken_over import taken_over
from memgui.estimator.options import OLD, Options
from memgui.estimator.roles import Cast, Place, Roles
from memgui.estimator.split import on_rank, within
from memgui.estimator.tape import AMBIENT, LINEAR, PARAMETER, Parameter, Sizes, Tape, Tensor
from memgui.spec.model import ModelSpec
from memgui.spec.variants import changes
from memgui.spec.weights import TOWERS, weights


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
        self.shared = group([tensor for block in blocks for tensor in block.tape.handed_out])
        """what a layer of this kind hands to those that follow"""
        self.passed = group([tensor for block in blocks for tensor in block.tape.passed])
        """what it hands to the next layer alone, whose checkpoint keeps it"""
        named = [(one, one in block.saved) for block in blocks for one in block.tape.trailing]
        trailing = [one for one, saved in named if self.recomputed or not saved]
        self.trailing = group([*trailing, *(() if self.recomputed else self.passed.things)])
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

    @property
    def parameters(self) -> Iterator[Parameter]:
        """Weights of one layer of this kind."""
        return (parameter for block in self.blocks for parameter in block.tape.parameters)


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


Variant = tuple[str, str, bool, bool, int]
"""Of a block: name, the weights it shares, whether it is frozen, gradient and width of its input."""


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
        self.back: list[Stretch] = []
        self.role = ALONE

    def close(
        self, chosen: Collection[Tensor] = (), *, offloads: bool = False, fetches: bool = False
    ) -> None:
        """All layers are there; ``offloads``: checkpoints keep none of their inputs on the device.

        ``fetches``: nor what all layers are given (by position, as encoders' states are).

        What is ``chosen`` is handed to those layers alone that use it.
        """
        checkpointing = any(kind.recomputed for kind in self.kinds)
        saved = {root for block in (self.frame, *self.blocks.values()) for root in block.ambient}
        tape = self.frame.tape
        out = tape.out
        assert out is not None
        giving = {kind for kind in self.kinds if kind.shared.things}
        runs = self.runs if giving else ()
        given = [tensor for kind, _ in runs if kind in giving for tensor in kind.shared.tensors]
        shared, held = [*tape.handed_out, *given], dict.fromkeys((*tape.held, *given))
        given_up = self._unseen(chosen) if checkpointing and chosen else set()
        kept = [one for one in held if one in saved or (checkpointing and one in shared)]
        kept = [one for one in kept if one in saved or one not in given_up]
        if fetches and checkpointing:
            kept = staying_here(self.frame, self.kinds, kept, shared)
        self.holds_input = out.root in held
        """whether the model's code refers to the first layer's input until all layers are done"""
        leaves = [kind.leaf.root for kind in giving if kind.leaf is not None]
        self.given_leaves = group(leaves)
        """what a layer gave to all that requires a gradient: the graph refers to it until the loss dies"""
        self.given_leaf_gradients = group([gradient_of(leaf) for leaf in leaves])
        self.shared_kept = group([one for one in kept if one not in leaves])
        """what all layers share and autograd, or a checkpoint, keeps until they have run back"""
        makers = [block for kind in giving if not kind.recomputed for block in kind.blocks]
        early = {one for block in makers for one in block.last_used.tensors}
        self.shared_last = group([one for one in self.shared_kept.tensors if one not in early])
        """of that, what does not go as the layer runs back that made it"""
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
        again = [kind for kind, _ in self.runs if kind.recomputed]
        self.passed_last = again[-1].passed if first.recomputed else NONE
        """what nobody keeps: a checkpoint keeps what its layer was passed, which is nothing for the first"""
        trailing = [kind.trailing for kind in self.kinds]
        self.passed_forward = trailing[0] if all(group.things for group in trailing) else NONE
        """what the model's code refers to until the next layer has its own, and nobody keeps"""
        self.trails = not self.passed_forward.things and any(group.things for group in trailing)
        """whether that is so of what some of the layers leave, while others keep it anyway"""
        self.holds_input_outside = out.root in tape.outside
        """whether the first layer's input is referred to until the loss is there"""
        self.results = group([one for one in tape.results if one not in kept])
        """what the model returns and autograd does not keep anyway"""
        self.results_kept = group([one for one in tape.results if one in kept])
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
        tapes = [block.tape for kind in self.kinds if kind.recomputed for block in kind.blocks]
        return {*chosen}.difference(tensor.root for tape in tapes for op in tape.written for tensor in op.ins)


class Program:
    """Stacks of layers, each behind the block that makes its input, and the tail."""

    def __init__(self, model: ModelSpec, options: Options) -> None:
        require_covered(model)
        self.model = model
        self.options = options
        rank = options.lora.rank if options.lora is not None else 0
        values = model_values(model, rank, options.virtual_tokens)
        self.sizes = sizes = Sizes(on_rank(values, options.split))
        self.context = context = Context(model, options, sizes, names(model.model_type))
        self.values = sizes.values
        """what the letters of formulas are worth"""
        self.letters: dict[str, dict[str, str]] = {}
        """of blocks with other sizes: what letters they have in place of the usual ones"""
        if model.layer_variants:
            self._vary(rank)
        self.kinds: list[Kind] = []
        self.stacks: list[Stack] = []
        plan = outline(context)
        out: Tensor | None = None
        for part in plan.stacks:
            with part.context.trained(not options.frozen_layers and not options.by_layer):
                frame = self._block(part.frame, part.write, part.context, out)
            _publish(frame)
            stack = Stack(part.name, frame)
            out = self._layers(stack, part)
            offloads = options.checkpoint_offload
            fetches = offloads and model.num_encoder_layers > 0
            stack.close(self._chosen(part.context), offloads=offloads, fetches=fetches)
            self.stacks.append(stack)
        tail = plan.tail if options.stage.last else sent
        with context.trained(not options.by_layer):
            self.tail = self._block("tail", tail, context, out)
        self.beside = tuple(self._weights_beside())
        """weights that no operator uses, those that come together with how often they do"""
        self.inputs = tuple(context.inputs)
        """what a batch brings to the device"""
        self.pinning = tuple((block, count) for block, count in self.blocks() if block.tape.pinned)
        """blocks with tensors that the graph refers to until the loss dies, with how often each occurs"""
        self._cast()

    @property
    def runs(self) -> Iterator[tuple[Kind, int]]:
        """The layers of all stacks in order, as runs of equal ones."""
        return chain.from_iterable([stack.runs for stack in self.stacks])

    @property
    def frames(self) -> Iterator[Block]:
        """The blocks outside the layers."""
        yield from (stack.frame for stack in self.stacks)
        yield self.tail

    def _block(
        self,
        key: str,
        write: layers.Writer,
        context: Context,
        before: Tensor | None,
        pool: list[Parameter] | None = None,
        recomputed: tuple[str, ...] = (),
    ) -> Block:
        """A block; one that shares its weights takes them from ``pool``, or fills it where it is empty."""
        o = self.options
        tape = Tape(key, context.sizes, o.autocast, o.training, o.half, recomputed)
        tape.old = o.implementation == OLD
        tape.pool = pool
        tape.compiled = o.compiled
        if before is None:
            x = tape.tensor("nothing", (0,), 0)
        else:
            x = tape.input(before.dims, before.width, before.grad)
        tape.out = write(tape, context, x)
        return Block(tape)

    def _vary(self, rank: int) -> None:
        """Layers of other sizes get sizes of their own; letters that differ are called after their mixer."""
        o = self.options
        values = dict(self.values)
        usual = self.sizes.values
        alike: dict[tuple[tuple[str, int], ...], tuple[ModelSpec, Sizes]] = {}
        for mixer, changed in changes(self.model).items():
            what = tuple(changed.items())
            if what not in alike:
                own = msgspec.structs.replace(self.model, **changed)
                sizes = self.sizes.beside(on_rank(model_values(own, rank, o.virtual_tokens), o.split))
                alike[what] = own, sizes
            self.context.variants[mixer] = _, sizes = alike[what]
            differing = [letter for letter, value in sizes.values.items() if usual[letter] != value]
            letters = {letter: f"{letter}_{LENDING.get(mixer, mixer)}" for letter in sorted(differing)}
            values |= {name: sizes.values[letter] for letter, name in letters.items()}
            keys = (mixer, *(f"{feed}.{mixer}" for feed in layers.FEED_FORWARDS))
            self.letters |= dict.fromkeys(keys, letters)
        self.values = values

    def _weights_beside(self) -> Iterator[tuple[list[Parameter], int]]:
        """Towers, which are not trained, and what only some layers have.

        Those in a row of which there are equally many are taken to be one layer of a tower.
        """
        o, sizes = self.options, self.sizes
        width, trained = o.width, o.base_trained and not o.by_layer
        known = [one for one in map(weights, self.model.other_weights) if one is not None]
        for number, layer in groupby(known, key=attrgetter("number")):
            found: list[Parameter] = []
            for one in layer:
                part, elements = one.part, prod(one.shape)
                grad = trained and part not in TOWERS
                fixed = one.name, one.shape, width, elements * width, 0, grad, PARAMETER, "beside", part
                role = LINEAR if one.is_linear else ""
                found.append(Parameter(*fixed, sizes=sizes, elements=elements, role=role))
            yield found, number

    def _layers(self, stack: Stack, plan: StackPlan) -> Tensor:
        """Compile each kind once; a layer whose input differs (no gradient, another width) is another kind.

        Returns what the last layer hands on.
        """
        kinds: dict[tuple[layers.LayerPlan, bool, str, bool, int], Kind] = {}
        x = stack.frame.tape.out
        assert x is not None
        runs = thawing(within(plan.layers, self.options.stage), self.options, first=not self.stacks)
        for layer, count, frozen, again in checkpointed(runs, self.options):
            while count:
                variant = layer, frozen, again, x.grad, x.width
                kind = kinds.get(variant)
                if kind is None:
                    handed = tuple(plan.context.handed)
                    blocks = self._halves(stack, plan.context, layer, x, frozen=frozen)
                    kind = kinds[variant] = Kind(layer.key, layer.label, blocks, handed, again)
                    stack.kinds.append(kind)
                out = kind.out
                alike = count if out.grad == x.grad and out.width == x.width else 1
                x = out
                kind.count += alike
                stack.runs.append((kind, alike))
                count -= alike
        self.kinds += stack.kinds
        return x

    def _halves(
        self, stack: Stack, shared: Context, layer: layers.LayerPlan, x: Tensor, *, frozen: bool
    ) -> tuple[Block, ...]:
        """The blocks of a layer whose input is like ``x``, each written once."""
        context = shared.frozen() if frozen else shared
        if layer.variant:
            context = context.varied(layer.variant)
        blocks: list[Block] = []
        for name, write in layer.blocks:
            variant = name, layer.weights, frozen, x.grad, x.width
            block = stack.blocks.get(variant)
            if block is None:
                tape = taken_over(name, context, partial(_written, stack.blocks, variant))
                if tape is not None:
                    block = Block(tape)
                else:
                    pool = stack.pools.setdefault((layer.weights, len(blocks)), []) if layer.weights else None
                    block = self._block(name, write, context, x, pool, self.options.recomputed)
                stack.blocks[variant] = block
                _publish(block)
                shared.bias = context.bias  # what a frozen first layer makes is for all
            blocks.append(block)
            assert block.tape.out is not None
            x = block.tape.out
        return tuple(blocks)

    def _chosen(self, context: Context) -> set[Tensor]:
        """Masks and rotary tables that layers are handed as far as they look."""
        tables = context.rotary.values() if self.model.rotary_per_layer_type else ()
        return {one.root for one in (*context.masks.values(), *chain.from_iterable(tables))}

    def _cast(self) -> None:
        """Give each block its role in backward."""
        places: list[Place] = [((self.tail,), 1)]
        for stack in reversed(self.stacks):
            places += [(kind.blocks, count) for kind, count in reversed(stack.runs)]
            places.append(((stack.frame,), 1))
        cast = Cast(places)
        self.tail_role = _only(cast.roles(0))
        index = 0
        for stack in reversed(self.stacks):
            if cast.alone(stack.blocks.values()):
                stack.back = [(kind, (), count) for kind, count in reversed(stack.runs)]
                index += len(stack.runs)
            else:
                for kind, _ in reversed(stack.runs):
                    index += 1
                    for roles, count in cast.roles(index):
                        stack.back.append((kind, roles, count))
            index += 1
            stack.role = _only(cast.roles(index))

    def block_label(self, key: str) -> str:
        """What the block called ``key`` is called in the breakdown (an English msgid)."""
        return block_label(key)

    def blocks(self) -> Iterator[tuple[Block, int]]:
        """Every block once, with how often it occurs."""
        counts: dict[Block, int] = {}
        for kind in self.kinds:
            for block in kind.blocks:
                counts[block] = counts.get(block, 0) + kind.count
        for stack in self.stacks:
            yield stack.frame, 1
        yield from counts.items()
        yield self.tail, 1

    def weights(self) -> Iterator[tuple[list[Parameter], int]]:
        """The weights of every block, and those beside, with how often each of them occurs."""
        for block, count in self.blocks():
            yield block.tape.parameters, count
        yield from self.beside


def _written(blocks: Mapping[Variant, Block], variant: Variant, name: str) -> Tape | None:
    """The tape of another block of the same variant."""
    found = blocks.get((name, *variant[1:]))
    return None if found is None else found.tape


def _publish(block: Block) -> None:
    """What the block hands on belongs to all that follow from here on."""
    tape = block.tape
    given = tape.handed_out if tape.carried is not None and not tape.frees_input else tape.held
    for tensor in given:
        tensor.origin = AMBIENT


def _only(roles: list[tuple[Roles, int]]) -> Role:
    found = roles[0][0]
    return found[0] if found else ALONE


@lru_cache(maxsize=64)
def compiled(model: ModelSpec, options: Options) -> Program:
    """The program of ``model`` run as ``options`` say."""
    return Program(model, options)
