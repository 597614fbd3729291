"""A model compiled for one way of running it: blocks, layer kinds, how often each occurs.

What is compiled depends on the model and on :class:`~memgui.estimator.options.Options`, never on
micro batch or sequence length, and is remembered for the next call.  Layers of one kind are
written once; a run of equal layers is a count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from itertools import chain, groupby
from math import prod
from operator import attrgetter

import msgspec

from memgui.estimator.block import Block
from memgui.estimator.coverage import require_covered
from memgui.estimator.dimensions import model_values, own_values
from memgui.estimator.layer_runs import checkpointed, thawing
from memgui.estimator.lifetimes import ALONE, Role
from memgui.estimator.modules import layers
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.names import names
from memgui.estimator.modules.outline import StackPlan, block_label, outline
from memgui.estimator.modules.ranks import sent
from memgui.estimator.modules.reach import LENDING
from memgui.estimator.modules.taken_over import taken_over
from memgui.estimator.once import by_one, once
from memgui.estimator.options import OLD, Options
from memgui.estimator.roles import Cast, Place, Roles
from memgui.estimator.saved import first_to_save
from memgui.estimator.split import on_rank, within
from memgui.estimator.stacks import Kind, Stack, Stretch, Variant
from memgui.estimator.tape import AMBIENT, LINEAR, PARAMETER, Op, Parameter, Sizes, Tape, Tensor
from memgui.spec.model import ModelSpec
from memgui.spec.variants import changes
from memgui.spec.weights import TOWERS, said


class Program:
    """Stacks of layers, each behind the block that makes its input, and the tail."""

    def __init__(self, model: ModelSpec, options: Options) -> None:
        require_covered(model)
        self.model = model
        self.options = options
        rank = options.lora.rank if options.lora is not None else 0
        values = model_values(model, rank, options.virtual_tokens)
        self.sizes = sizes = Sizes(on_rank(values, options.split))
        self.context = context = Context.of(model, options, sizes, names(model.model_type))
        if model.layer_variants:
            self._vary(values)
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
        for one in (context, *[part.context for part in plan.stacks]):
            one.common.forget()
        self.beside = tuple(self._weights_beside())
        """weights that no operator uses, those that come together with how often they do"""
        self.inputs = tuple(context.inputs)
        """what a batch brings to the device"""
        self.blocks = self._blocks()
        """every block once, with how often it occurs"""
        self.pinning = tuple([(block, count) for block, count in self.blocks if block.tape.pinned])
        """blocks with tensors that the graph refers to until the loss dies, with how often each occurs"""

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
        ordered = bool(o.compiled or recomputed or o.layerwise or not o.training)
        tape = Tape(
            key,
            context.sizes,
            o.autocast,
            o.training,
            o.half,
            recomputed,
            o.implementation == OLD,
            pool=pool,
            compiled=o.compiled,
            ordered=ordered,
        )
        if before is None:
            x = tape.tensor("nothing", (0,), 0)
        else:
            x = tape.input(before.dims, before.width, before.grad)
        tape.out = write(tape, context, x)
        return Block(tape)

    def _vary(self, values: Mapping[str, int]) -> None:
        """Layers of other sizes get sizes of their own; ``values`` are those of the rest."""
        o = self.options
        alike: dict[tuple[tuple[str, int], ...], tuple[ModelSpec, Sizes]] = {}
        for mixer, changed in changes(self.model).items():
            what = tuple(changed.items())
            if what not in alike:
                own = msgspec.structs.replace(self.model, **changed)
                sizes = self.sizes.beside(on_rank({**values, **own_values(own)}, o.split))
                alike[what] = own, sizes
            self.context.variants[mixer] = alike[what]

    @once
    def letters(self) -> dict[str, dict[str, str]]:
        """Of blocks with other sizes what letters they have in place of the usual ones."""
        found: dict[str, dict[str, str]] = {}
        usual = self.sizes.values
        for mixer, (_, sizes) in self.context.variants.items():
            differing = [letter for letter, value in sizes.values.items() if usual[letter] != value]
            letters = {letter: f"{letter}_{LENDING.get(mixer, mixer)}" for letter in sorted(differing)}
            keys = (mixer, *(f"{feed}.{mixer}" for feed in layers.FEED_FORWARDS))
            found |= dict.fromkeys(keys, letters)
        return found

    @once
    def values(self) -> dict[str, int]:
        """What the letters of formulas are worth."""
        values = dict(self.sizes.values)
        for mixer, (_, sizes) in self.context.variants.items():
            values |= {name: sizes.values[letter] for letter, name in self.letters[mixer].items()}
        return values

    def _weights_beside(self) -> Iterator[tuple[list[Parameter], int]]:
        """Towers, which are not trained, and what only some layers have; they go with the embedding.

        Those in a row of which there are equally many are taken to be one layer of a tower.
        """
        o, sizes = self.options, self.sizes
        width, trained = o.width, o.base_trained and not o.by_layer
        known = map(said, self.model.other_weights if o.stage.first else ())
        for number, layer in groupby(known, key=attrgetter("number")):
            found: list[Parameter] = []
            for one in layer:
                part, shape = one.part, one.shape
                elements, grad = prod(shape), trained and part not in TOWERS
                found.append(
                    Parameter(
                        one.name,
                        shape,
                        width,
                        elements * width,
                        0,
                        grad,
                        PARAMETER,
                        "beside",
                        part,
                        sizes=sizes,
                        elements=elements,
                        role=LINEAR if one.is_linear else "",
                    )
                )
            yield found, number

    def _layers(self, stack: Stack, plan: StackPlan) -> Tensor:
        """Compile each kind once; a layer whose input differs (no gradient, another width) is another kind.

        Returns what the last layer hands on.
        """
        kinds: dict[tuple[str, bool, str, bool, int], Kind] = {}
        x = stack.frame.tape.out
        assert x is not None
        grad, width = x.grad, x.width
        runs = thawing(within(plan.layers, self.options.stage), self.options, first=not self.stacks)
        for layer, count, frozen, again in checkpointed(runs, self.options):
            while count:
                variant = layer.key, frozen, again, grad, width
                kind = kinds.get(variant)
                if kind is None:
                    handed = tuple(plan.context.handed)
                    blocks = self._halves(stack, plan.context, layer, x, frozen=frozen)
                    kind = kinds[variant] = Kind(layer.key, layer.label, blocks, handed, again)
                    stack.kinds.append(kind)
                x = kind.out
                alike = count
                if x.grad != grad or x.width != width:
                    alike, grad, width = 1, x.grad, x.width
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
            given = layer.weights, frozen, x.grad, x.width
            variant = name, given
            block = stack.blocks.get(variant)
            if block is None:
                tape = taken_over(name, context, partial(_written, stack.blocks, given))
                if tape is not None:
                    block = Block(tape, stack.blocks.get((LENDING.get(name, ""), given)))
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
        entered = () if context.entered is None else (context.entered,)
        return {one.root for one in (*context.masks.values(), *chain.from_iterable(tables), *entered)}

    # Whose turn it is in backward is asked of layers only where the peak may lie in one.

    @by_one
    def cast(self) -> Cast:
        """Gives each block its role in backward."""
        places: list[Place] = [((self.tail,), 1)]
        for stack in reversed(self.stacks):
            places += [(kind.blocks, count) for kind, count in reversed(stack.runs)]
            places.append(((stack.frame,), 1))
        return Cast(places, [*self.frames])

    @by_one
    def tail_role(self) -> Role:
        """The role of the block after the layers."""
        return _only(self.cast.roles(0))

    @by_one
    def back(self) -> dict[Stack, tuple[list[Stretch], Role]]:
        """The layers of each stack in the order of backward, and the role of the block before them."""
        _, cast = self.tail_role, self.cast  # whose turn comes first
        found: dict[Stack, tuple[list[Stretch], Role]] = {}
        index = 0
        for stack in reversed(self.stacks):
            if cast.alone(stack.blocks.values()):
                back: list[Stretch] = [(kind, (), count) for kind, count in reversed(stack.runs)]
                index += len(stack.runs)
            else:
                back = []
                for kind, _ in reversed(stack.runs):
                    index += 1
                    back += [(kind, roles, count) for roles, count in cast.roles(index)]
            index += 1
            found[stack] = back, _only(cast.roles(index))
        return found

    @once
    def booked(self) -> dict[Tensor, Op]:
        """Of all that autograd keeps the first operator that does, in the last of the blocks that keep it."""
        found: dict[Tensor, Op] = {}
        for stack in self.stacks:
            for block in (stack.frame, *stack.blocks.values()):
                found |= first_to_save(block.apart())
        return found | first_to_save(self.tail.apart())

    def block_label(self, key: str) -> str:
        """What the block called ``key`` is called in the breakdown (an English msgid)."""
        return block_label(key)

    def _blocks(self) -> tuple[tuple[Block, int], ...]:
        counts: dict[Block, int] = {}
        for kind in self.kinds:
            for block in kind.blocks:
                counts[block] = counts.get(block, 0) + kind.count
        frames = [(stack.frame, 1) for stack in self.stacks]
        return (*frames, *counts.items(), (self.tail, 1))

    def weights(self, *, alike: bool = False) -> Iterator[tuple[list[Parameter], int]]:
        """The weights of every block, and those beside, with how often each of them occurs.

        ``alike``: one may stand for those of several blocks.
        """
        for block, count in self.blocks:
            yield block.tape.listed if alike else block.tape.parameters, count
        yield from self.beside


def _written(blocks: Mapping[Variant, Block], given: tuple[str, bool, bool, int], name: str) -> Tape | None:
    """The tape of the block called ``name`` that is given the same."""
    found = blocks.get((name, given))
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
