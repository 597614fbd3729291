"""Whether bytes fit into a device."""

from __future__ import annotations

from memgui.estimator.result import Verdict
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message


def verdict(peak: int, low: int, high: int, capacity: int) -> Verdict:
    """Whether a range of bytes fits into ``capacity``: tight where the range crosses it."""
    headroom = capacity - peak
    if capacity > high:
        kind = "fits"
        reason = Message(
            QT_TRANSLATE_NOOP("messages", "{bytes} {bytes:byte remains|bytes remain} free."),
            {"bytes": headroom},
        )
    elif capacity <= low:
        kind = "does_not_fit"
        reason = Message(
            QT_TRANSLATE_NOOP("messages", "{bytes} {bytes:byte is|bytes are} missing."), {"bytes": -headroom}
        )
    else:
        kind = "tight"
        reason = Message(
            QT_TRANSLATE_NOOP("messages", "It takes between {low} and {high} bytes; {capacity} are there."),
            {"low": low, "high": high, "capacity": capacity},
        )
    return Verdict(kind, capacity, headroom, reason)
