"""The timeline of training: the model loaded, the first step, every further one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from memgui.estimator.moments import FIRST, FURTHER, LOAD, STEADY, Amount, Overhead, amount_of, moment
from memgui.estimator.points import Point
from memgui.estimator.result import Moment
from memgui.estimator.run import operator_at
from memgui.estimator.search import Heights

if TYPE_CHECKING:
    from memgui.estimator.training import TrainingRun

CLIP = "aten.linalg_vector_norm"


def steps(run: TrainingRun, overhead: Overhead) -> Iterator[Moment]:
    """Every moment of loading and of two steps, in order."""
    load = run.base(states=False, gradients=run.main_gradients, inputs=False)
    yield moment("load", "load", LOAD, load, overhead)
    for step, labels in (("step1", FIRST), ("step2", STEADY)):
        yield from _step(run, step, labels, overhead)


def _step(run: TrainingRun, step: str, labels: dict[str, str], overhead: Overhead) -> Iterator[Moment]:
    states = step == "step2"
    stay = run.gradients_before(steady=states)
    make = partial(moment, overhead=overhead)
    start = run.base(states=states, gradients=stay)
    referred = run.referred()
    yield make(f"{step}.start", "start", labels["start"], start.plus(referred) if states else start)
    micro_batch = partial(_micro_batch, run, overhead=overhead, steady=states, stay=stay)
    yield from micro_batch(step, labels, start)
    made = states or run.account.consumer is not None
    between, full = run.between(states=made, stay=stay), run.base(states=made, gradients=True)
    left = amount_of(run.left(run.walk(accumulate=stay)), run.tensors)
    done = full.plus(left)
    yield make(f"{step}.after_backward", "after_backward", labels["after_backward"], between.plus(left))
    if run.accumulates:
        yield from micro_batch(f"{step}.micro2", FURTHER, between, further=True)
        key = f"{step}.micro2.after_backward"
        yield make(key, "after_backward", FURTHER["after_backward"], done)
    if run.scenario.training.gradient_clipping:
        clipping = done.plus(Amount({"temporary": run.account.clip_bytes}, 0))
        yield make(f"{step}.clip", "clip", labels["clip"], clipping, operator=CLIP)
    stepping = run.base(states=True, gradients=True).plus(left)
    temporary = Amount({"temporary": run.account.step_bytes}, 0)
    stage = "optimizer"
    yield make(f"{step}.{stage}", stage, labels[stage], stepping.plus(temporary), operator=run.stepper())
    yield make(f"{step}.after_step", "after_step", labels["after_step"], stepping)
    rest = run.base(states=True, gradients=run.gradients_stay).plus(referred)
    yield make(f"{step}.after_zero_grad", "after_zero_grad", labels["after_zero_grad"], rest)
    saving = run.account.saving
    if saving.things:
        whole = rest.plus(Amount({"temporary": saving.bytes}, saving.excess))
        yield make(f"{step}.save", "save", labels["save"], whole)


def _micro_batch(
    run: TrainingRun,
    prefix: str,
    labels: dict[str, str],
    base: Amount,
    *,
    overhead: Overhead,
    steady: bool,
    stay: bool,
    further: bool = False,
) -> Iterator[Moment]:
    walk = run.micro_batch(steady=steady, stay=stay, further=further)
    heights = run.heights(walk)
    busy = run.busy(base, back=False)
    before = busy.plus(amount_of(run.named(walk), run.tensors)) if further else busy
    for point in walk.forward():
        yield from _stretch(run, f"{prefix}.forward", "forward", labels, before, overhead, heights, point)
    after = busy.plus(amount_of(walk.after_forward(), run.tensors))
    yield moment(f"{prefix}.after_forward", "after_forward", labels["after_forward"], after, overhead)
    busy = run.busy(base, back=True)
    for point in walk.backward():
        yield from _stretch(run, f"{prefix}.backward", "backward", labels, busy, overhead, heights, point)


def _stretch(
    run: TrainingRun,
    prefix: str,
    side: str,
    labels: dict[str, str],
    base: Amount,
    overhead: Overhead,
    heights: Heights,
    point: Point,
) -> Iterator[Moment]:
    amount = base.plus(amount_of(heights.whole(point), run.tensors))
    slope = amount_of(point.inside.slope, run.tensors)
    operator = operator_at(*heights.top(point))
    stage = f"{side}.{point.key}"
    for offset in range(point.count):
        layer = point.start + offset * point.step if point.start >= 0 else -1
        key = f"{prefix}.{point.key}" + (f".{layer}" if layer >= 0 else "")
        yield moment(key, stage, labels[stage], amount.plus(slope, offset), overhead, layer, operator)
