"""What happens at a moment of the timeline, and how moments group into phases and steps.  No Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from memgui.estimator.result import Estimate, Moment
from memgui.planning.words import Said
from memgui.spec.messages import QT_TRANSLATE_NOOP

PHASES: dict[str, str] = {
    "load": QT_TRANSLATE_NOOP("why", "Load"),
    "start": QT_TRANSLATE_NOOP("why", "Start"),
    "forward": QT_TRANSLATE_NOOP("why", "Forward"),
    "loss": QT_TRANSLATE_NOOP("why", "Loss"),
    "backward": QT_TRANSLATE_NOOP("why", "Backward"),
    "optimizer": QT_TRANSLATE_NOOP("why", "Optimizer"),
    "profile": QT_TRANSLATE_NOOP("why", "Profile"),
    "prefill": QT_TRANSLATE_NOOP("why", "Prompt"),
    "decode": QT_TRANSLATE_NOOP("why", "Last token"),
    "total": QT_TRANSLATE_NOOP("why", "Total"),
}
"""What each phase is called."""


@dataclass(frozen=True, slots=True)
class Span:
    """Moments ``first`` to ``last`` (both included) and what they are together."""

    first: int
    last: int
    title: Said


@dataclass(frozen=True, slots=True)
class Spans:
    """Three ways to divide a timeline, from fine to coarse; the coarser are empty where they say nothing."""

    phases: tuple[Span, ...]
    batches: tuple[Span, ...]
    steps: tuple[Span, ...]


def spans_of(timeline: Sequence[Moment], micro_batches: int) -> Spans:
    """Phases, micro batches, steps of a timeline."""
    return _spans(tuple((moment.key, moment.phase) for moment in timeline), micro_batches)


@lru_cache(maxsize=16)
def _spans(moments: tuple[tuple[str, str], ...], micro_batches: int) -> Spans:
    """Of moments by key and phase: what an edit changes most of the time is their bytes alone."""
    phases = _runs([_phase_key(key, phase) for key, phase in moments])
    steps = _runs([_step_key(key) for key, _ in moments])
    batches = _runs([_batch_key(key, phase) for key, phase in moments])
    return Spans(
        phases=tuple(
            Span(first, last, Said(PHASES.get(key.rpartition(":")[2], key.rpartition(":")[2])))
            for key, first, last in phases
        ),
        batches=tuple(
            Span(first, last, title)
            for key, first, last in batches
            if micro_batches > 1 and (title := _batch_title(key, micro_batches)) is not None
        ),
        steps=tuple(Span(first, last, Said(_STEPS[key])) for key, first, last in steps if key in _STEPS),
    )


_STEPS = {
    "step1": QT_TRANSLATE_NOOP("why", "First step"),
    "step2": QT_TRANSLATE_NOOP("why", "Every further step"),
}


def _step_key(key: str) -> str:
    return key.partition(".")[0] if key.startswith("step") else ""


def _phase_key(key: str, phase: str) -> str:
    """Phases of different steps and micro batches are different runs; ``start`` belongs to forward."""
    if phase == "start":
        phase = "forward"
    if "after_forward" in key:
        phase = "loss"
    return f"{_step_key(key)}{'.micro2' if '.micro2' in key else ''}:{phase}"


def _batch_key(key: str, phase: str) -> str:
    step = _step_key(key)
    if not step:
        return ""
    if phase == "optimizer":
        return f"{step}:update"
    return f"{step}:further" if ".micro2" in key else f"{step}:first"


def _batch_title(key: str, micro_batches: int) -> Said | None:
    kind = key.partition(":")[2]
    if kind == "first":
        return Said(QT_TRANSLATE_NOOP("why", "Micro batch 1"))
    if kind == "further":
        if micro_batches == 2:
            return Said(QT_TRANSLATE_NOOP("why", "Micro batch 2"))
        return Said(
            QT_TRANSLATE_NOOP("why", "Micro batches 2 to {count}, alike"), counts={"count": micro_batches}
        )
    return Said(QT_TRANSLATE_NOOP("why", "Update")) if kind == "update" else None


def _runs(keys: Sequence[str]) -> list[tuple[str, int, int]]:
    """Runs of equal keys: key, first, last."""
    found: list[tuple[str, int, int]] = []
    for index, key in enumerate(keys):
        if found and found[-1][0] == key:
            found[-1] = (key, found[-1][1], index)
        else:
            found.append((key, index, index))
    return found


def peak_index(estimate: Estimate) -> int:
    """Where in the timeline the peak is; the highest moment where its key is not in it."""
    timeline = estimate.timeline
    for index, moment in enumerate(timeline):
        if moment.key == estimate.peak_moment.key and moment.bytes == estimate.peak_moment.bytes:
            return index
    return max(range(len(timeline)), key=lambda index: timeline[index].bytes) if len(timeline) else -1


def first_step_peak(estimate: Estimate) -> int | None:
    """The highest moment of the first step's forward and backward, if the peak is not in it.

    The first step makes the optimizer's states only at its end, so until then it needs less.
    """
    timeline = estimate.timeline
    peak = peak_index(estimate)
    if peak < 0 or _step_key(timeline[peak].key) == "step1":
        return None
    own = [
        index
        for index, moment in enumerate(timeline)
        if _step_key(moment.key) == "step1" and moment.phase != "optimizer"
    ]
    return max(own, key=lambda index: timeline[index].bytes) if own else None


_HERE: dict[str, str] = {
    "load": QT_TRANSLATE_NOOP("why", "Only the model is here."),
    "start": QT_TRANSLATE_NOOP("why", "What stays from step to step is here; nothing has been computed yet."),
    "forward": QT_TRANSLATE_NOOP("why", "Each layer adds what it will need on the way back."),
    "loss": QT_TRANSLATE_NOOP(
        "why",
        "All that the layers kept is still here, and the loss holds a score for every word and token.",
    ),
    "backward": QT_TRANSLATE_NOOP(
        "why", "Layer by layer the activations are used up and freed, and gradients take their place."
    ),
    "prefill": QT_TRANSLATE_NOOP(
        "why", "The whole prompt goes through a layer at once, so the work space is that of all its tokens."
    ),
    "decode": QT_TRANSLATE_NOOP(
        "why", "One token of each sequence at a time: little work space, but the cache is at its longest."
    ),
    "total": QT_TRANSLATE_NOOP("why", "A rule of thumb knows one moment only: its total."),
}

_LEFT: dict[tuple[bool, ...], str] = {
    (True, True): QT_TRANSLATE_NOOP(
        "why", "The activations are gone; all gradients and the optimizer's states are here."
    ),
    (True, False): QT_TRANSLATE_NOOP("why", "The activations are gone; all gradients are here."),
    (False, True): QT_TRANSLATE_NOOP(
        "why", "Activations and gradients are gone; the optimizer's states are here."
    ),
    (False, False): QT_TRANSLATE_NOOP("why", "Activations and gradients are gone."),
}
"""What is there when a step has run back: by whether there are gradients, and states of the optimizer."""


def why_here(estimate: Estimate, index: int) -> tuple[Said, ...]:
    """What is going on at a moment, and why it needs what it needs."""
    timeline = estimate.timeline
    moment = timeline[index]
    said = []
    if moment.phase in _HERE:
        said.append(Said(_HERE[moment.phase]))
    elif moment.phase == "optimizer":
        there = tuple(moment.components.get(key, 0) > 0 for key in ("gradients", "optimizer_states"))
        said.append(Said(_LEFT[there]))
    if ".micro2" in moment.key and moment.components.get("gradients", 0):
        said.append(Said(QT_TRANSLATE_NOOP("why", "Gradients of the micro batches before are waiting too.")))
    before = moment.key.startswith("step1.") and moment.phase != "optimizer"
    first = first_step_peak(estimate) if before else None
    if first is not None:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "In the first step the optimizer has no states yet: until it takes its step {first} are "
                    "enough, from the second step on {peak} are needed.",
                ),
                sizes={"first": timeline[first].bytes, "peak": estimate.peak_bytes},
            )
        )
    if moment.operator:
        said.append(
            Said(
                QT_TRANSLATE_NOOP("why", "Highest within it: the operator {operator}."),
                words={"operator": moment.operator},
            )
        )
    return tuple(said)
