"""Round values of a field over a range: the ticks of an axis, the columns and rows of a heat map."""

from __future__ import annotations

import math
from fractions import Fraction

from memgui.planning.solve import WHOLE
from memgui.planning.sweep import Scale
from memgui.spec.fields import BY_PATH

_PARTS = (4, 2, 1)
"""Into how many equal steps an octave is cut, the finest that leaves few enough values."""


def round_values(
    path: str, low: int | float, high: int | float, most: int, scale: Scale = Scale.LOG
) -> tuple[int | float, ...]:
    """At most ``most`` round values of the field at ``path`` from ``low`` to ``high``, ascending.

    Logarithmic: powers of two and equal steps between them, as many as there is room for.  Linear:
    multiples of a power of two, which divides lengths, heads and batches; of 1, 2 or 5 times a power of
    ten in a field of fractions.  Every whole number where there are few.
    """
    if BY_PATH[path].kind not in WHOLE:
        return _fractions(float(low), float(high), most)
    first, last = int(low), int(high)
    if last - first < most:
        return tuple(range(first, last + 1))
    if scale is Scale.LOG:
        return _octaves(first, last, most)
    step = 1
    while last // step - -(-first // step) + 1 > most:
        step *= 2
    return tuple(range(-(-first // step) * step, last + 1, step))


def _octaves(first: int, last: int, most: int) -> tuple[int, ...]:
    powers = range(max(first, 1).bit_length() - 1, last.bit_length())
    for parts in _PARTS:
        found = sorted(
            {
                (1 << power) * (parts + part) // parts
                for power in powers
                for part in range(parts)
                if (1 << power) * (parts + part) % parts == 0
            }
        )
        inside = tuple(value for value in found if first <= value <= last)
        if len(inside) <= most:
            return inside
    every = -(-len(inside) // max(most, 1))
    return inside[::-1][::every][::-1]


def _fractions(low: float, high: float, most: int) -> tuple[float, ...]:
    if not math.isfinite(high - low) or high <= low:
        return ()
    power = Fraction(10) ** math.floor(math.log10((high - low) / max(most, 1)))
    for factor in (1, 2, 5, 10, 20):
        step = power * factor
        start, end = math.ceil(Fraction(low) / step), math.floor(Fraction(high) / step)
        if end - start + 1 <= most:
            return tuple(float(step * index) for index in range(start, end + 1))
    return ()
