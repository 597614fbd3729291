"""What a cost is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from memgui.planning.words import Said


class Disturbance(IntEnum):
    """How far a change is from what the person set out to do; the gentlest first."""

    NONE = 0  # nothing is lost
    SLOWER = 1  # the same results, later
    HARDWARE = 2  # the same results, on other or more devices
    ACCURACY = 3  # results may differ a little
    TUNING = 4  # settings must be found again
    LESS = 5  # less is done: shorter sequences, fewer weights trained


@dataclass(frozen=True, slots=True)
class Cost:
    """``sentences`` say what is paid; ``weight`` orders costs of one kind, the lighter first."""

    disturbance: Disturbance
    sentences: tuple[Said, ...]
    weight: int = 0


def say(template: str) -> Said:
    """A sentence of this room."""
    return Said(template, context="ways")
