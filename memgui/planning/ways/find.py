"""Ways to fit: every single legal change that helps, and pairs where none is enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from memgui.catalog import DeviceEntry
from memgui.estimator.result import Estimate
from memgui.planning.ask import Asker, surely_fits
from memgui.planning.changes import Change, apply
from memgui.planning.devices import MACHINE, MOST
from memgui.planning.layout import COUNT
from memgui.planning.ways.cost import Cost, Disturbance
from memgui.planning.ways.costs import ACCUMULATED, ROUNDING, SAME, cost_of
from memgui.planning.ways.hardware import more_devices
from memgui.planning.ways.means import Means, Proposal, Rule
from memgui.planning.ways.rules import ALWAYS, LESSENING, REACHING, RULES
from memgui.planning.ways.titles import title_of
from memgui.planning.ways.together import Together
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP, Scenario
from memgui.spec.fields import BY_PATH

WORTH = 1000
"""A change is worth naming from one part in this many of the need, or where it changes the verdict."""

MANY = 8
"""A field with more choices than this is named with few of them: one for each cost."""

NEAREST = 3
"""Pairs that are named where not even a pair fits."""

MOST_PAIRS = 24

GENTLE_PAIRS = 3
"""With as many pairs that fit, no pairs are looked for that disturb more."""

_KINDS = ("fits", "tight", "does_not_fit")


@dataclass(frozen=True, slots=True)
class Way:
    """Changes to a scenario that make it need less, or give it more room.

    ``title`` names the change; ``costs`` say in plain words what is paid.  A pair has its two single
    changes in ``parts``, and no title of its own.  ``saves_bytes`` is negative where a device with
    more room is needed more of.
    """

    title: Said
    changes: tuple[Change, ...]
    scenario: Scenario
    estimate: Estimate
    saves_bytes: int
    disturbance: Disturbance
    costs: tuple[Said, ...]
    weight: int = 0
    parts: tuple[Way, ...] = ()

    @property
    def key(self) -> str:
        """Stable name: the fields and what becomes of them."""
        return key_of(self.changes)

    @property
    def kind(self) -> str:
        """Verdict with the change made."""
        return self.estimate.verdict.kind

    @property
    def headroom_bytes(self) -> int:
        """Room left with the change made; negative where it does not fit."""
        return self.estimate.verdict.headroom_bytes

    def gain(self, base: Estimate) -> int:
        """How much less is lacking than in ``base`` (bytes): by needing less, or by having more room."""
        return self.headroom_bytes - base.verdict.headroom_bytes

    @property
    def same_results(self) -> bool:
        """Whether what comes out stays the same, up to rounding."""
        return self.disturbance <= Disturbance.HARDWARE

    @property
    def order(self) -> tuple[int, int, bool, int, int]:
        """What fits first, then what disturbs least, one change before two."""
        kind = _KINDS.index(self.kind)
        return (kind, self.disturbance, bool(self.parts), self.weight, -self.saves_bytes)


def key_of(changes: Iterable[Change]) -> str:
    """A name for changes that stays the same."""
    return " ".join(f"{one.path}={one.new}" for one in changes)


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways from one scenario: what fits first, then what is gentlest.

    There are no pairs where one change is enough.
    """

    scenario: Scenario
    estimate: Estimate | None
    singles: tuple[Way, ...] = ()
    pairs: tuple[Way, ...] = ()

    @property
    def all(self) -> tuple[Way, ...]:
        """Single changes and pairs in one order."""
        return tuple(sorted((*self.singles, *self.pairs), key=lambda way: way.order))


def ways_to_fit(scenario: Scenario, devices: Sequence[DeviceEntry] = (), ask: Asker | None = None) -> Ways:
    """Every single change that is legal here and helps; pairs of them where none is enough.

    A change that asks for other hardware, or does less than the person set out to do (shorter
    sequences, fewer trained weights), is not enough in this sense: pairs are looked for all the same.
    Where the scenario fits as it is, other hardware is not named.
    ``devices`` are those on offer (see :func:`memgui.planning.devices.of_a_sort`).  Nothing is found
    where the scenario itself cannot be computed.
    """
    ask = Asker(remember=True) if ask is None else ask
    base = ask(scenario).estimate
    if base is None:
        return Ways(scenario, None)
    ask.begin_with_the_fullest(scenario)
    means = Means(ask, devices)
    by_rule = {rule: tuple(_singles(rule, scenario, base, means)) for rule in RULES}
    every = tuple(_once(way for ways in by_rule.values() for way in ways))
    singles = _few_of_each_field(every)
    if surely_fits(base):  # nobody needs other hardware for what fits
        return Ways(scenario, base, tuple(way for way in singles if way.disturbance != Disturbance.HARDWARE))
    enough = [way for way in singles if surely_fits(way.estimate)]
    if any(way.disturbance not in _ASKING_MUCH for way in enough):
        return Ways(scenario, base, singles)
    # what reaches the goal alone, or by doing less where something does, is none beside a first change
    met = {rule for rule, ways in by_rule.items() if any(way.kind == "fits" for way in ways)}
    if any(way.disturbance is Disturbance.LESS for way in enough):
        met |= set(LESSENING)
    most = MOST
    counts = [way.scenario.device.count for way in by_rule[more_devices] if way.kind == "fits"]
    if counts and min(counts) > MACHINE:
        most = min(counts) * 2 // 3
        met.discard(more_devices)  # fewer may do after another change
    rules = [rule for rule in RULES if rule not in REACHING or rule not in met]
    firsts = [way for way in singles if way.kind != "fits"]
    together = Together(scenario, ask)
    means = Means(ask, devices, _favoured(singles), together, most)
    pairs = _pairs(base, firsts, rules, means, together, {way.key: way for way in every})
    return Ways(scenario, base, singles, tuple(way for way in pairs if not enough or way.kind == "fits"))


_ASKING_MUCH = (Disturbance.HARDWARE, Disturbance.LESS)


def _once(ways: Iterable[Way]) -> Iterator[Way]:
    seen: set[Scenario] = set()
    for way in ways:
        if way.scenario not in seen:
            seen.add(way.scenario)
            yield way


def _singles(rule: Rule, scenario: Scenario, base: Estimate, means: Means) -> Iterator[Way]:
    for proposal in rule(scenario, means):
        changed = apply(scenario, proposal.changes)
        if not means.ask.needs(changed, _of_no_help(base, changed)):
            way = _way(base, changed, proposal, means.ask)
            if way is not None:
                yield way


def _of_no_help(base: Estimate, changed: Scenario) -> int:
    """Bytes with which ``changed``, where it does not fit, gains next to nothing (see :data:`WORTH`)."""
    more = changed.device.memory_bytes - base.scenario.device.memory_bytes
    return base.peak_bytes + more - base.peak_bytes // WORTH + 1


def _few_of_each_field(ways: Iterable[Way]) -> tuple[Way, ...]:
    """All ways in order; of a field's many values that cost alike, the first."""
    alike: dict[tuple[object, ...], Way] = {}
    for way in sorted(ways, key=lambda way: way.order):
        if len(way.changes) > 1 or len(BY_PATH[way.changes[0].path].choices) <= MANY:
            key: tuple[object, ...] = (way.key,)
        else:
            key = (way.changes[0].path, *(said.template for said in way.costs))
        alike.setdefault(key, way)
    return tuple(alike.values())


def _favoured(singles: Iterable[Way]) -> dict[str, frozenset[object]]:
    """Of fields with many choices the values that are named alone: pairs try no others."""
    named: dict[str, set[object]] = {
        path: set() for path, field in BY_PATH.items() if len(field.choices) > MANY
    }
    for way in singles:
        for one in way.changes:
            if one.path in named:
                named[one.path].add(one.new)
    return {path: frozenset(values) for path, values in named.items() if values}


class Far(NamedTuple):
    """Two changes after which so many bytes still lack, at the least; ``number`` tells equals apart."""

    lacks: int
    number: int
    first: Way
    proposal: Proposal


def _pairs(
    base: Estimate,
    firsts: Iterable[Way],
    rules: Iterable[Rule],
    means: Means,
    together: Together,
    alone: Mapping[str, Way],
) -> tuple[Way, ...]:
    """Two changes that together reach what neither does; the second may only make sense after the first.

    ``alone`` are all single changes that help, by their keys.  Where more devices are enough, nobody does
    less as well to need fewer of them.
    """
    worth_more = Disturbance.TUNING if means.most < MOST else Disturbance.LESS
    seen: set[Scenario] = set()
    found: list[Way] = []
    far: list[Far] = []
    for first in sorted(firsts, key=lambda way: way.order[1:]):
        gentler = [way for way in found if way.kind == "fits" and way.disturbance < first.disturbance]
        if len([way for way in gentler if not _takes_more(way)]) >= GENTLE_PAIRS:
            break
        paths = {one.path for one in first.changes}
        for rule in rules:
            if ALWAYS.get(rule) in paths or (rule is more_devices and first.disturbance > worth_more):
                continue
            for proposal in rule(first.scenario, means):
                if rule not in REACHING and _is_hopeless(base, first, proposal, alone):
                    continue
                if paths & {one.path for one in proposal.changes}:
                    continue
                lacks = together.lacks(first.scenario, proposal.changes)
                if lacks is not None:
                    far.append(Far(lacks, len(far), first, proposal))
                    continue
                changed = apply(first.scenario, proposal.changes)
                if changed in seen:
                    continue
                seen.add(changed)
                lacks = means.ask.lacks(changed)
                if lacks is not None:
                    far.append(Far(lacks, len(far), first, proposal))
                    continue
                second = _way(first.estimate, changed, proposal, means.ask)
                if second is not None:
                    found.append(_pair(base, first, second))
    found.sort(key=lambda way: way.order)
    if not found or found[0].kind == "does_not_fit":
        return _nearest(base, found, far, means.ask)
    kept: dict[frozenset[object], Way] = {}
    for way in found:
        if way.kind == found[0].kind:
            kept.setdefault(_alike(way), way)
    return tuple(kept.values())[:MOST_PAIRS]


def _nearest(base: Estimate, found: list[Way], far: list[Far], ask: Asker) -> tuple[Way, ...]:
    """Where no pair fits, those that lack least; of the ones ``far`` off only as many are asked about."""
    nearest = sorted(found, key=lambda way: -way.headroom_bytes)[:NEAREST]
    seen: set[Scenario] = set()
    heapify(far)
    while far:
        one = heappop(far)
        if len(nearest) == NEAREST and one.lacks > -nearest[-1].headroom_bytes:
            break
        changed = apply(one.first.scenario, one.proposal.changes)
        lacks = ask.lacks(changed)
        if lacks is not None and lacks > one.lacks:  # it was guessed from what each change does alone
            heappush(far, one._replace(lacks=lacks))
            continue
        if changed in seen:
            continue
        misses = ask.misses(changed)
        if misses > one.lacks:
            heappush(far, one._replace(lacks=misses))
            continue
        seen.add(changed)
        second = _way(one.first.estimate, changed, one.proposal, ask)
        if second is not None:
            nearest.append(_pair(base, one.first, second))
            nearest.sort(key=lambda way: (-way.headroom_bytes, way.order))
            del nearest[NEAREST:]
    return tuple(nearest)


def _takes_more(way: Way) -> bool:
    """Whether further devices are part of it."""
    return any(one.path == COUNT for one in way.changes)


def _is_hopeless(base: Estimate, first: Way, second: Proposal, alone: Mapping[str, Way]) -> bool:
    """Whether a second change needs no asking: it is enough alone, or both are far from enough.

    After the first change the second may save more than alone, where it was not at the peak before;
    so they are given up only where alone they add up to less than half of what is lacking.  What the
    second does is not known where its field had no effect before.
    """
    known = alone.get(key_of(second.changes))
    if known is None and not all(BY_PATH[one.path].applies(base.scenario) for one in second.changes):
        return False
    if known is not None and known.kind == "fits":
        return True
    gains = first.gain(base) + (known.gain(base) if known is not None else 0)
    return 2 * gains < base.low_bytes - base.verdict.capacity_bytes


def _alike(way: Way) -> frozenset[object]:
    """The same for pairs that differ in a number alone."""
    return frozenset((one.path, one.new if isinstance(one.new, str | bool) else None) for one in way.changes)


def _pair(base: Estimate, first: Way, second: Way) -> Way:
    changes = (*first.changes, *second.changes)
    cost = _cost(changes, second.estimate)
    return Way(
        title=Said(QT_TRANSLATE_NOOP("ways", "Two changes"), context="ways"),
        changes=changes,
        scenario=second.scenario,
        estimate=second.estimate,
        saves_bytes=base.peak_bytes - second.estimate.peak_bytes,
        disturbance=cost.disturbance,
        costs=cost.sentences,
        weight=cost.weight,
        parts=(first, second),
    )


def _way(base: Estimate, changed: Scenario, proposal: Proposal, ask: Asker) -> Way | None:
    """The way that ``proposal`` is; ``None`` where it is not legal or of no help."""
    found = ask(changed).estimate
    if found is None or not _helps(base, found):
        return None
    cost = _cost(proposal.changes, found)
    return Way(
        title=proposal.title or title_of(proposal.changes[0]),
        changes=proposal.changes,
        scenario=changed,
        estimate=found,
        saves_bytes=base.peak_bytes - found.peak_bytes,
        disturbance=cost.disturbance,
        costs=cost.sentences,
        weight=cost.weight,
    )


def _helps(base: Estimate, found: Estimate) -> bool:
    gain = found.verdict.headroom_bytes - base.verdict.headroom_bytes
    better = _KINDS.index(found.verdict.kind) < _KINDS.index(base.verdict.kind)
    return gain > 0 and (better or gain * WORTH >= base.peak_bytes)


def _cost(changes: Iterable[Change], after: Estimate) -> Cost:
    """The cost of changes made together: all that is said of them, and the worst of it."""
    listed = {one.path: one for one in changes if one.path not in _FACTS}
    costs: list[Cost] = []
    if listed.keys() >= _ACCUMULATION:
        costs.append(ACCUMULATED)
        listed = {path: one for path, one in listed.items() if path not in _ACCUMULATION}
    costs += (cost_of(one, after) for one in listed.values())
    worst = max(cost.disturbance for cost in costs)
    said: list[Said] = []
    for cost in costs:
        said += [sentence for sentence in cost.sentences if sentence not in said]
    same = next((sentence for sentence in (ROUNDING, SAME) if sentence in said), None)  # the weaker holds
    said = [sentence for sentence in said if sentence not in (SAME, ROUNDING)]
    if same is not None and (len(costs) == 1 or worst <= Disturbance.HARDWARE):
        said.append(same)  # what is lost comes before what is not
    return Cost(worst, tuple(said), sum(cost.weight for cost in costs))


_ACCUMULATION = frozenset({"training.micro_batch_size", "training.gradient_accumulation_steps"})
_FACTS = frozenset({"device.name", "device.compute_capability", "parallelism.data"})
"""Fields that follow from another change and cost nothing themselves."""
