"""Inside the blocks and layers of a walk: where the peak may lie, and what one leaves that has run back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from memgui.estimator.backward import Back
from memgui.estimator.between import Between
from memgui.estimator.block import Block
from memgui.estimator.events import NONE, Group, Pairs, Until
from memgui.estimator.events import group as together
from memgui.estimator.lifetimes import ALONE, Consumer, Role
from memgui.estimator.outcome import Outcome
from memgui.estimator.points import Layer, Outside, Place, Spot
from memgui.estimator.roles import Roles
from memgui.estimator.stacks import Kind
from memgui.estimator.stock import Sorter, Stock


class Inside(Between):
    """What is inside the blocks and layers of a walk; see :class:`memgui.estimator.walk.Walk`."""

    traced: bool
    consumer: Consumer | None
    adds: bool
    """whether a new gradient is added where it is made"""
    brief: bool
    """whether it is there for a moment only"""

    def spots(self, inside: Layer | Outside) -> tuple[Spot, ...]:
        """Where the peak inside may lie."""
        if not inside.spots:
            assert isinstance(inside, Layer)
            kind, roles = inside.kind, inside.roles
            found = (
                self.inside_forward(kind) if roles is None else self.inside_backward(kind, roles, inside.end)
            )
            inside.spots = tuple(found)
        return inside.spots

    def loose(self, layer: Layer) -> tuple[Pairs, ...]:
        """A looser bound than that on each spot, without a look at what dies; none where that is hard."""
        kind, roles = layer.kind, layer.roles
        found: list[Pairs] = []
        if roles is None:
            found.append(kind.shared.pairs)
            for block in kind.blocks:
                found += block.entering, block.most_forward
        elif not kind.recomputed:
            for block in kind.blocks:
                found.append(block.starting)
                found += self._most_back(block, role_of(kind, roles, block))
        return tuple(found)

    def bounds_forward(self, kind: Kind) -> list[tuple[Stock, tuple[Pairs, ...]]]:
        """Bounds on what is alive inside each block of a layer run forward, without going through events.

        Before a block there is no more than what those before it keep, hold or hand on, and their outputs.
        """
        found: list[tuple[Stock, tuple[Pairs, ...]]] = []
        before = Stock()
        before.add(kind.shared, kind.blocks[0].sort_running)
        for block in kind.blocks:
            sort = block.sort_running
            before.add(block.input, sort)
            found.append((before, (block.most_forward,)))
            before = Stock(before)
            held = (
                (block.held_passing, block.copies_passing)
                if kind.recomputed
                else (block.kept, block.returned, block.copies)
            )
            for group in (*held, block.pinned, block.cache, block.output):
                before.add(group, sort)
            for sparing in kind.sparing:
                before.add(sparing.kept, sort)
        return found

    def inside_forward(self, kind: Kind) -> Iterator[Spot]:
        """Where a layer's peak may lie on the way forward."""
        passing = kind.recomputed
        first, last = kind.blocks[0], len(kind.blocks) - 1
        rel = Stock()
        rel.add(first.input, first.sort_input if passing else first.sort_running)
        for index, block in enumerate(kind.blocks):
            sort: Sorter = block.sort_passing if passing else block.sort_running
            place = partial(_place_forward, kind, index)
            if index:
                rel.add(block.input, sort)
            most = (block.most_forward,)
            if self.ran and block.tape.referred and not block.tape.passing:
                events = place().events
                yield Spot(rel, sort, partial(Place, events, events.after(block.tape.forgets)), most)
                rel = Stock(rel)
                rel.add(block.behind, block.sort_pinned, -1)
            yield Spot(rel, sort, place, most)
            if index == last:
                break
            rel = Stock(rel)
            if self.traced or kind.sparing:
                rel.happen(place().events, sort)
            else:
                rel.exchange(block.left_passing if passing else block.left_running, sort)
            rel.add(block.output, sort, -1)
            if index and (passing or not block.carried):
                rel.add(block.input, sort, -1)

    def sort_back(self, block: Block) -> Sorter:
        """To which component things in a backward belong."""
        return block.sort_adding if self.brief else block.sort_running

    def _over(
        self,
        live: Stock,
        block: Block,
        role: Role,
        sort: Sorter,
        kind: Kind | None = None,
    ) -> Stock:
        """What of ``live`` and of its own a block leaves that has run back, but for its input's gradient."""
        live = Stock(live)
        outcome = self.outcome(block, role)
        if self.traced or not outcome.whole:
            over = self.back(block, role, kind)
            live.happen(over.events, sort)
            live.add(over.finish, sort, -1)
            return live
        live.add(outcome.left, sort)
        if role is not ALONE:
            live.add(outcome.waiting, sort)
            live.add(outcome.taken, sort, -1)
        if self.consumer is not None:
            live.add(self.made(block, role), sort)
        live.add(block.freed(repeated=kind is not None and kind.recomputed), sort, -1)
        if not block.tape.final:
            live.add(block.start, sort, -1)
        return live

    def _spot_back(
        self, before: Stock, block: Block, role: Role, sort: Sorter, kind: Kind | None = None
    ) -> Spot:
        """A block run back, with ``before`` there: its work, and gradients that begin to wait for others'."""
        place = partial(_place_back, self._way(block, role, kind))
        return Spot(before, sort, place, self._most_back(block, role), place)

    def _most_back(self, block: Block, role: Role) -> tuple[Pairs, ...]:
        """What a block that is run back allocates at most."""
        most = [block.most_back(role)]
        if self.consumer is not None:
            work = self.consumer.work
            most.append(((sum([work.get(one, 0) for one in block.tape.parameters]), 0),))
            most.append(self.made(block, role).pairs)
        if role.starts:
            most.append(tuple([(one.coefficient, one.monomial) for one in role.starts.values()]))
        return tuple(most)

    def inside_backward(self, kind: Kind, roles: Roles, end: str) -> Iterator[Spot]:
        """Where a layer's peak may lie on the way back."""
        blocks = kind.blocks
        first, last = blocks[0], blocks[-1]
        rel = Stock()
        fetched = first.input if kind.recomputed and self.offloads else NONE
        rel.add(fetched, first.sort_input)
        rel.add(kind.fetched, first.sort_input)
        rel.add(last.start, self.sort_back(last))
        if kind.recomputed:
            again, rel = self._again(kind, roles, rel)
            yield from again
            if self.lets_go and not first.carried:  # only what runs again was given it
                rel.add(fetched, first.sort_input, -1)
            rel.add(kind.fetched_unsaved, first.sort_input, -1)
        for block in reversed(blocks):
            sort = self._sort_again(kind, block) if kind.recomputed else self.sort_back(block)
            if block is not last:
                rel.add(block.start, sort)
            role = role_of(kind, roles, block)
            yield self._spot_back(rel, block, role, sort, kind)
            if block is first:
                break
            rel = self._over(rel, block, role, sort, kind)

    def _again(self, kind: Kind, roles: Roles, rel: Stock) -> tuple[list[Spot], Stock]:
        """The layer runs forward again, up to the last tensor that is saved; what is alive then."""
        blocks = kind.blocks
        spots: list[Spot] = []
        held = Stock()
        early = self.back(blocks[-1], role_of(kind, roles, blocks[-1]), kind).early()
        sort = self._sort_again(kind, blocks[-1])
        for passing in (rel, held):
            passing.exchange(early, sort)
        for index, block in enumerate(blocks):
            sort = self._sort_again(kind, block)
            events, made = block.running, block.made
            if kind.sparing:
                events, made = kind.sparing[index].running, kind.sparing[index].made
            if index:
                rel.add(block.input, sort)
            last = index == len(blocks) - 1
            stop = events.stop if last else None
            spots.append(Spot(rel, sort, partial(Place, events, stop), (block.most_forward,)))
            rel = Stock(rel)
            rel.add(made, sort)
            if kind.sparing:
                spared = kind.sparing[index]
                rel.add(spared.gone_early if last else spared.gone, sort, -1)
            if not last:
                for group in (block.held, block.copies):
                    rel.add(group, sort)
                    held.add(group, sort)
            if index and not block.carried:
                rel.add(block.input, sort, -1)
        rel.include(held, -1)
        return spots, rel

    def _sort_again(self, kind: Kind, block: Block) -> Sorter:
        """Computed again, it is a working set; what was kept through the checkpoint is not."""
        sort = block.sort_repeated if self.brief else block.sort_passing
        if not kind.sparing:
            return sort
        spared = kind.sparing[kind.blocks.index(block)].spared
        return lambda thing: "activations" if thing in spared else sort(thing)

    def back(self, block: Block, role: Role, kind: Kind | None = None) -> Back:
        """The backward of a block, which may be one of a layer of some ``kind``."""
        return self._way(block, role, kind)()

    def _way(self, block: Block, role: Role, kind: Kind | None) -> partial[Back]:
        way = partial(block.back, role, accumulate=self.adds, consumer=self.consumer)
        if kind is None or not kind.recomputed:
            return way
        return partial(way, keep_input=block is kind.blocks[0] and not self.lets_go, repeated=True)

    def made(self, block: Block, role: Role) -> Group:
        """The states that an optimizer which steps in the backward pass makes while a block runs back."""
        if self.consumer is None or not self.consumer.made:
            return NONE
        made = self.consumer.made
        others = {*role.starts, *role.waiting}.difference(role.ends)
        weights = [one for one in dict.fromkeys(block.reading(role).reached) if one not in others]
        return together([state for weight in weights for state in made.get(weight, ())])

    def outcome(self, block: Block, role: Role) -> Outcome:
        """What a block's backward leaves to others."""
        return block.outcome(role, accumulate=self.adds, brief=self.brief)


def role_of(kind: Kind, roles: Roles, block: Block) -> Role:
    """The role of one of a layer's blocks."""
    return roles[kind.blocks.index(block)] if roles else ALONE


def _place_forward(kind: Kind, index: int) -> Place:
    block = kind.blocks[index]
    if kind.sparing:
        return Place(kind.sparing[index].passing)
    return Place(block.passing if kind.recomputed else block.running)


def _place_back(way: partial[Back], until: Until | None = None) -> Place:
    return Place(way(until=until).events, None, True)
