"""The letters of recurrences and compressors, which work on chunks of tokens or look back over a few."""

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


def _entries(length: Length) -> tuple[Length, Length]:
    """How many entries stand for so many tokens: of those an indexer chooses from, and of heavier ones."""
    return (
        lambda s: length(s) // (s.model.compress_rate_csa or 1),
        lambda s: length(s) // (s.model.compress_rate_hca or 1),
    )


def compressed_symbols(length: Length) -> dict[str, tuple[str, str | None, Length]]:
    """Symbols of entries that stand for several tokens each, of a sequence of so many."""
    sparse, heavy = _entries(length)

    def blocks(s: Scenario) -> int:
        return -(-length(s) // (s.model.index_block_size or 1))

    return {
        "nb": (QT_TRANSLATE_NOOP("symbols", "blocks of keys"), None, blocks),
        "nb1": (QT_TRANSLATE_NOOP("symbols", "blocks of keys plus one"), None, lambda s: blocks(s) + 1),
        "nbt": (
            QT_TRANSLATE_NOOP("symbols", "tokens of all blocks of keys"),
            None,
            lambda s: blocks(s) * s.model.index_block_size,
        ),
        "itb": (
            QT_TRANSLATE_NOOP("symbols", "blocks that the indexer chooses"),
            "model.index_topk_blocks",
            lambda s: min(s.model.index_topk_blocks, blocks(s)),
        ),
        "wc": (QT_TRANSLATE_NOOP("symbols", "compressed entries"), None, sparse),
        "wc1": (QT_TRANSLATE_NOOP("symbols", "compressed entries plus one"), None, lambda s: sparse(s) + 1),
        "wh": (QT_TRANSLATE_NOOP("symbols", "heavily compressed entries"), None, heavy),
        "swc": (_BOTH, None, lambda s: length(s) + sparse(s)),
        "swh": (_BOTH, None, lambda s: length(s) + heavy(s)),
        "swc1": (_BOTH_AND_ONE, None, lambda s: length(s) + sparse(s) + 1),
        "swh1": (_BOTH_AND_ONE, None, lambda s: length(s) + heavy(s) + 1),
        "itc": (
            QT_TRANSLATE_NOOP("symbols", "entries that the indexer chooses"),
            "model.index_topk",
            lambda s: min(s.model.index_topk, sparse(s)),
        ),
    }


def cached_entries(held: Length, near: Length) -> dict[str, tuple[str, str | None, Length]]:
    """Symbols of the entries of so many tokens in a cache, of which so many are in the window."""
    sparse, heavy = _entries(held)

    return {
        "tws": (
            QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a window holds, plus one"),
            None,
            lambda s: near(s) + 1,
        ),
        "tc": (_CACHED, None, sparse),
        "tc1": (
            QT_TRANSLATE_NOOP("symbols", "entries in the cache, plus one"),
            None,
            lambda s: sparse(s) + 1,
        ),
        "th": (QT_TRANSLATE_NOOP("symbols", "heavily compressed entries in the cache"), None, heavy),
        "twc": (_NEAR, None, lambda s: near(s) + sparse(s)),
        "twh": (_NEAR, None, lambda s: near(s) + heavy(s)),
        "twc1": (_NEAR_AND_ONE, None, lambda s: near(s) + sparse(s) + 1),
        "twh1": (_NEAR_AND_ONE, None, lambda s: near(s) + heavy(s) + 1),
    }


_CACHED = QT_TRANSLATE_NOOP("symbols", "compressed entries in the cache")
_NEAR = QT_TRANSLATE_NOOP("symbols", "tokens of a window and entries in the cache")
_NEAR_AND_ONE = QT_TRANSLATE_NOOP("symbols", "tokens of a window and entries in the cache, plus one")
_BOTH = QT_TRANSLATE_NOOP("symbols", "tokens of a sequence and its entries")
_BOTH_AND_ONE = QT_TRANSLATE_NOOP("symbols", "tokens of a sequence and its entries, plus one")
