"""A stretch of the model on one tape, with its lifetimes: the stem, half a layer, the tail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container
from functools import partial

from memgui.estimator.backward import Back, backward
from memgui.estimator.bounds import born_back, born_forward, summed
from memgui.estimator.events import (
    NONE,
    Events,
    Gradient,
    Group,
    Inner,
    Pairs,
    Thing,
    Until,
    gradient_of,
    group,
)
from memgui.estimator.lifetimes import ALONE, Consumer, Role, forward, left_forward
from memgui.estimator.once import TURN, once
from memgui.estimator.op import Stretch
from memgui.estimator.outcome import Outcome, Reading, outcome, read_back
from memgui.estimator.saved import FREED, behind, copies_made, saved_roots, staying_in
from memgui.estimator.state import State
from memgui.estimator.tape import AMBIENT, CARRIED, MADE, PARAMETER, Tape, Tensor

SPARED = frozenset(
    (
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_flash_attention",
        "_flash_attention_forward",
    )
)
"""Operators whose results checkpointing by operator keeps, beside every second matrix product."""


class Sparing:
    """A block that is checkpointed by operator: some results are kept, the rest is computed again.

    ``kept`` are those results; ``passing`` and ``running`` the first and the second time it runs.
    After the second time ``made`` is there besides, and ``gone`` of what was kept is not needed any
    more (``gone_early``: where it stops once the last tensor that is saved is there again).
    """

    def __init__(self, block: Block, before: int) -> None:
        spared: dict[Tensor, None] = {}
        tape = block.apart()
        wanted = _wanted(block) if tape.compiled else None
        product = before
        for op in tape.written:
            product += op.name == "mm"
            if op.name in SPARED or (op.name == "mm" and product % 2):
                made = [out.root for out in op.outs]
                spared.update((root, None) for root in made if wanted is None or root in wanted)
        self.spared: Collection[Thing] = spared
        self.kept = group(spared)
        self.passing = forward(tape, spared)
        self.running = forward(tape, block.saved, spared)
        self.made = group([root for root in block.made.things if root not in spared])
        self.gone = group([root for root in spared if root not in block.saved])
        dead = set(self.running.things[: self.running.stop])
        self.gone_early = group([root for root in self.gone.tensors if root in dead])


def _apart(tape: Tape, saved: dict[Tensor, int]) -> None:
    """Write a tape out; all that it saves is its own from here on."""
    tape.apart()
    if tape.training:
        own = saved_roots(tape)
        saved.clear()
        saved.update(own)


def _kept(tape: Tape, saved: dict[Tensor, int]) -> tuple[Tensor, ...]:
    """What is kept of what a tape saves."""
    kept = [root for root in tuple(saved) if root.origin != AMBIENT]
    return tuple([root for root in kept if root not in tape.pinned] if tape.pinned else kept)


def _kept_apart(tape: Tape, saved: dict[Tensor, int]) -> tuple[Tensor, ...]:
    """The same, with nothing that stands for its own."""
    with TURN:
        if tape.folded:
            _apart(tape, saved)
    return _kept(tape, saved)


def _wanted(block: Block) -> set[Tensor]:
    """What anything that is saved is made of; a compiler keeps nothing else, whatever it was asked to."""
    wanted = set(block.saved)
    for op in reversed(block.tape.ops):
        if any(out.root in wanted for out in op.outs):
            wanted.update(tensor.root for tensor in op.ins)
    return wanted


class Block:
    """What a tape allocates, forward with and without saving and backward, each made when asked for.

    The ``sort_`` methods say to which component a thing alive inside the block belongs, in each
    way of running it.  It may be ``like`` another one, which does the same and lends nothing.
    """

    def __init__(self, tape: Tape, like: Block | None = None) -> None:
        self.tape = tape
        self.like = like
        self.saved = saved_roots(tape) if tape.training else {}
        self._folded = tape.folded
        carried, out = tape.carried, tape.out
        self.carried = carried is not None and carried in self.saved
        """whether the block saves its own input"""
        self.entering: Pairs = () if carried is None else ((carried.coefficient, carried.monomial),)
        """the bytes of its input"""
        self.starting: Pairs = () if out is None else ((out.coefficient, out.monomial),)
        """the bytes of the gradient with which its backward begins"""
        self.sort_running: Callable[[Thing], str] = partial(_saved_or_not, self.saved, "gradients")
        """autograd keeps what it saves; new gradients are gradients"""
        self._sparing: dict[int, Sparing] = {}
        self._backs: dict[tuple[bool, bool, bool, Consumer | None, Role], Back] = {}
        self._outcomes: dict[tuple[bool, bool, Role], Outcome] = {}
        self._readings: dict[tuple[Tensor, ...], Reading] = {}

    def apart(self) -> Tape:
        """The tape, written out."""
        if self._folded:
            with TURN:
                if self._folded:
                    _apart(self.tape, self.saved)
                    self._folded = False
        return self.tape

    @once
    def ambient(self) -> list[Tensor]:
        """What it saves of the tensors that other blocks made."""
        return [root for root in tuple(self.saved) if root.origin == AMBIENT]

    @once
    def running(self) -> Events:
        """Forward with everything saved that autograd saves."""
        return forward(self.apart(), self.saved)

    @once
    def left_running(self) -> tuple[Group, Group]:
        """What that leaves and was not there before, and what it takes away; no events are gone through."""
        return left_forward(self.apart(), self.saved)

    @once
    def left_passing(self) -> tuple[Group, Group]:
        """The same where nothing is saved."""
        return left_forward(self.apart(), {})

    @once
    def passing(self) -> Events:
        """Forward without saving: inference, or the first pass of a checkpointed layer."""
        return forward(self.apart(), {})

    @once
    def start(self) -> Group:
        """The gradient of its output, with which its backward begins."""
        assert self.tape.out is not None
        return group((gradient_of(self.tape.out),))

    def back(
        self,
        role: Role = ALONE,
        *,
        accumulate: bool = False,
        keep_input: bool = False,
        repeated: bool = False,
        consumer: Consumer | None = None,
        until: Until | None = None,
    ) -> Back:
        """Backward, or as much of it as is wanted; see :func:`memgui.estimator.backward.backward`."""
        key = accumulate, keep_input, repeated, consumer, role
        found = self._backs.get(key)
        if found is None or not (found.whole or (until is not None and until(found.events))):
            (start,) = self.start.things
            assert isinstance(start, Gradient)
            with TURN:  # gradients that blocks share count who waits for them
                found = self._backs[key] = backward(
                    self.apart(),
                    start,
                    self.saved,
                    role,
                    accumulate=accumulate,
                    keep_input=keep_input,
                    repeated=repeated,
                    consumer=consumer,
                    until=until,
                )
        return found

    def freed(self, *, repeated: bool) -> Group:
        """What was saved and is not any more when it has run back."""
        if not repeated:
            return group([*self.kept.things, *self.last_used.things]) if self.tape.handed_out else self.kept
        staying, again = staying_in(self.apart(), keep_input=False, repeated=repeated), self.tape.handed_out
        mortal = [root for root in self.saved if root.origin in FREED or root in again]
        return group([root for root in mortal if root not in staying])

    @once
    def last_used(self) -> Group:
        """Copies of weights that it made for all layers: when it runs back, all others have."""
        return group([one for one in copies_made(self.tape) if one in self.saved])

    def outcome(self, role: Role = ALONE, *, accumulate: bool = False, brief: bool = False) -> Outcome:
        """What its backward leaves; see :func:`memgui.estimator.outcome.outcome`.

        ``brief``: new gradients are there for a moment only.
        """
        found = self._outcomes.get((accumulate, brief, role))
        if found is None:
            component = "temporary" if brief else "gradients"
            found = outcome(self.reading(role), role, accumulate=accumulate, component=component)
            self._outcomes[accumulate, brief, role] = found
        return found

    def reading(self, role: Role = ALONE) -> Reading:
        """The tape read back; gradients of what the block handed out wait for it, or do not."""
        handed_out = self.tape.handed_out
        waiting = tuple([one for one in handed_out if one in role.waiting]) if handed_out else ()
        found = self._readings.get(waiting)
        if found is None:
            found = self._readings[waiting] = read_back(self.apart(), waiting)
        return found

    @once
    def products(self) -> int:
        """How many matrix products it runs."""
        return sum(op.name == "mm" for op in self.tape.written)

    def sparing(self, before: int) -> Sparing:
        """The block checkpointed by operator, with ``before`` matrix products before it in its layer."""
        found = self._sparing.get(before % 2)
        if found is None:
            found = self._sparing[before % 2] = Sparing(self, before % 2)
        return found

    # -- bounds -----------------------------------------------------------------------------------

    @once
    def most_forward(self) -> Pairs:
        """A bound on what is alive beyond the start while it runs."""
        return born_forward(self.tape) if self.like is None else self.like.most_forward

    def most_back(self, role: Role = ALONE) -> Pairs:
        """The same while it runs back."""
        return self.reading(role).born

    @once
    def most_back_in_any(self) -> Pairs:
        """The same, whatever its role."""
        if self.like is not None:
            return self.like.most_back_in_any
        tape = self.tape
        born = born_back(tape, [one for one in tape.handed_out if one.grad])
        # What is computed again is born again.
        return summed(born, self.most_forward) if tape.regions else born

    @once
    def most_left(self) -> tuple[Pairs, ...]:
        """A bound on what stays when it has run back: gradients of its weights, what is cached."""
        gradients = sum([one.coefficient for one in self.tape.listed if one.grad])
        return ((gradients, 0),), self.cache_kept.pairs if self.tape.cached else ()

    # -- groups ---------------------------------------------------------------------------------

    def _unsaved(self, tensors: Collection[Tensor]) -> Group:
        """What of ``tensors`` autograd does not keep."""
        return group([one for one in tensors if one not in self.saved]) if tensors else NONE

    @once
    def kept(self) -> Group:
        """What autograd keeps because of this block: its own tensors, its input, copies of weights."""
        if self._folded and self.tape.training:
            with TURN:
                if self._folded:
                    return self._kept_with_others()
        kept = group(_kept(self.tape, self.saved))
        if kept is not NONE and not self.tape.final:  # where all the loss is
            kept.component = "activations"
        return kept

    def _kept_with_others(self) -> Group:
        """The same before the tape is written out: its own, and what stretches of several tapes keep."""
        own = Group(_kept(self.tape, self.saved), "activations")
        stretches = [op.kept for op in self.tape.written if type(op) is Stretch]
        make = partial(_kept_apart, self.tape, self.saved)
        return Group((), "activations", make=make, within=(own, *stretches))

    @once
    def pinned(self) -> Group:
        """What the graph refers to until the loss dies, whether or not it is saved."""
        return group(dict.fromkeys(root for root in self.tape.pinned if root.origin == MADE))

    @once
    def made(self) -> Group:
        """What it saves and made itself, be it for all layers."""
        own, others = self.apart().handed_out, (AMBIENT, CARRIED)
        return group([root for root in self.saved if root in own or root.origin not in others])

    @once
    def returned(self) -> Group:
        """What Python holds until the block returns and autograd does not keep."""
        return self._unsaved(self.tape.held)

    @once
    def held(self) -> Group:
        """The same in a recomputation, whose graph holds what is pinned as well."""
        return self._unsaved(dict.fromkeys((*self.tape.held, *self.tape.pinned)))

    @once
    def held_passing(self) -> Group:
        """The same where nothing is kept."""
        return group(self.tape.held)

    @once
    def copies(self) -> Group:
        """Autocast's copies of weights that autograd does not keep: they live to the end of forward."""
        return self._unsaved(self.tape.cast_cache)

    @once
    def copies_passing(self) -> Group:
        """The same where nothing is kept."""
        return group(self.tape.cast_cache)

    @once
    def behind(self) -> Group:
        """What stays of a recomputation because the module refers to one of its results."""
        return group(behind(self.apart()) if self.tape.referred else ())

    @once
    def cache(self) -> Group:
        """What the block puts into the cache and autograd does not keep anyway."""
        return self._unsaved(self.tape.cached)

    @once
    def cache_kept(self) -> Group:
        """The rest of what it puts there: who refers to the cache keeps it longer than autograd."""
        cached = self.tape.cached
        return group([tensor for tensor in cached if tensor in self.saved]) if cached else NONE

    @once
    def replaced(self) -> Group:
        """What the cache held before and the block replaces."""
        return group(self.tape.replaced)

    @once
    def input(self) -> Group:
        """The block's input."""
        return group((self.tape.carried,) if self.tape.carried is not None else ())

    @once
    def output(self) -> Group:
        """The block's output."""
        return group((self.tape.out,) if self.tape.out is not None else ())

    # -- components -----------------------------------------------------------------------------

    @once
    def sort_adding(self) -> Callable[[Thing], str]:
        """As running, but a new gradient is only added to one that exists."""
        return partial(_saved_or_not, self.saved, "temporary")

    @staticmethod
    def sort_passing(thing: Thing) -> str:
        """Nothing stays: all of it is a working set."""
        return _component("gradients", thing)

    @staticmethod
    def sort_repeated(thing: Thing) -> str:
        """Recomputed for a moment, beside gradients that exist."""
        return _component("temporary", thing)

    @staticmethod
    def sort_pinned(thing: Thing) -> str:
        """The graph refers to it until the loss dies."""
        return "activations"

    @staticmethod
    def sort_input(thing: Thing) -> str:
        """A checkpoint keeps the layer's input."""
        return "activations"


def _saved_or_not(saved: Container[Thing], new_gradients: str, thing: Thing) -> str:
    if thing in saved and isinstance(thing, Tensor):
        return "loss" if thing.loss else "activations"
    return _component(new_gradients, thing)


def _component(new_gradients: str, thing: Thing) -> str:
    """Of what autograd does not keep."""
    if isinstance(thing, Gradient):
        of = thing.of
        return new_gradients if of.origin == PARAMETER else "loss" if of.loss else "temporary"
    if isinstance(thing, Tensor):
        return "loss" if thing.loss else "kv_cache" if thing.cached else "temporary"
    if isinstance(thing, State):
        return "optimizer_states"
    if isinstance(thing, Inner):
        return "overhead"
    return "loss" if thing.of.loss else "temporary"
