"""What numbers in fewer bits cost."""

from __future__ import annotations

from memgui.planning.ways.cost import Cost, Disturbance, say
from memgui.spec import QT_TRANSLATE_NOOP
from memgui.spec.formats import CACHE_FORMATS, FORMATS, SCHEMES, WEIGHT_FORMATS


def bits_of(name: str) -> float | None:
    """Bits of a number in the format or scheme called ``name``, scales included; ``None`` where unknown."""
    scheme = SCHEMES.get(name)
    if scheme is not None and scheme.linear in WEIGHT_FORMATS:
        return WEIGHT_FORMATS[scheme.linear].bits
    known = CACHE_FORMATS.get(name) or FORMATS.get(name)
    return None if known is None else known.bits


_USUAL = (
    "bf16",
    "fp16",
    "fp8_per_tensor",
    "fp8",
    "q8_0",
    "nf4",
    "awq_int4_g128",
    "q4_k_m",
    "q4_0",
    "quantized_int4",
    "gptq_int2_g128",
    "q2_k",
)
"""Of the formats of one width those that people take, so that they are named before their like."""

_HARDLY = say(QT_TRANSLATE_NOOP("ways", "Hardly any difference."))
_LITTLE = say(QT_TRANSLATE_NOOP("ways", "Quality suffers little."))
_SOME = say(QT_TRANSLATE_NOOP("ways", "Some quality is lost, more in small models."))
_CLEARLY = say(QT_TRANSLATE_NOOP("ways", "Quality suffers clearly."))


def rounded(name: str) -> Cost:
    """The cost of a number format by its width: 16 bits, down to 5.5, down to 3.9, fewer."""
    bits = bits_of(name)
    rest = 0 if name in _USUAL else 1
    if bits is not None and bits >= 16:
        return Cost(Disturbance.ACCURACY, (_HARDLY,), rest)
    if bits is not None and bits >= 5.5:
        return Cost(Disturbance.ACCURACY, (_LITTLE,), 2 + rest)
    if bits is None or bits >= 3.9:
        return Cost(Disturbance.ACCURACY, (_SOME,), 4 + rest)
    return Cost(Disturbance.LESS, (_CLEARLY,), 6 + rest)
