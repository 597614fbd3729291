"""The letters of recurrences, which work on chunks of tokens or look back over a few."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.dimensions import chunk_tokens, convolution_tokens
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

Length = Callable[[Scenario], int]


def recurrent_symbols(length: Length, path: str) -> dict[str, tuple[str, str | None, Length]]:
    """Symbols that follow from the ``length`` of a sequence, which ``path`` says: label, field, value."""

    def chunks(s: Scenario) -> int:
        return -(-length(s) // chunk_tokens(s.model))

    return {
        "sp": (QT_TRANSLATE_NOOP("symbols", "tokens of a sequence less one"), None, lambda s: length(s) - 1),
        "sc": (
            QT_TRANSLATE_NOOP("symbols", "tokens of a sequence and the convolution's padding"),
            None,
            lambda s: length(s) + convolution_tokens(s.model) - 1,
        ),
        "cc": (QT_TRANSLATE_NOOP("symbols", "chunks"), None, chunks),
        "cn": (QT_TRANSLATE_NOOP("symbols", "chunks plus one"), None, lambda s: chunks(s) + 1),
        "cm": (QT_TRANSLATE_NOOP("symbols", "chunks less one"), None, lambda s: chunks(s) - 1),
        "cw": (
            QT_TRANSLATE_NOOP("symbols", "chunks less the first and the last"),
            path,
            lambda s: max(chunks(s) - 2, 0),
        ),
        "cl": (
            QT_TRANSLATE_NOOP("symbols", "tokens of the last chunk"),
            None,
            lambda s: (length(s) - 1) % chunk_tokens(s.model) + 1,
        ),
        "sf": (
            QT_TRANSLATE_NOOP("symbols", "tokens after the first chunk"),
            path,
            lambda s: max(length(s) - chunk_tokens(s.model), 0),
        ),
    }
