"""Finds entries while a person types: prefixes first, then words, then parts, then near misses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Generic, TypeVar

T = TypeVar("T")

_TOKEN = re.compile(r"[a-z0-9.]+")
_PART = re.compile(r"[a-z]+|[0-9.]+[a-z]?\b|[0-9.]+")


def key(name: str) -> str:
    """``name`` as it is compared: lower case, nothing but letters, digits and points."""
    return re.sub(r"[^a-z0-9.]+", "", name.casefold())


def tokens(text: str) -> tuple[str, ...]:
    """What stands between spaces and dashes: ``Qwen2.5-7B`` has ``qwen2.5`` and ``7b``."""
    return tuple(_TOKEN.findall(text.casefold()))


def words(text: str) -> tuple[str, ...]:
    """Tokens and what they are made of: ``Qwen2.5-7B`` has ``qwen`` and ``2.5`` besides."""
    return tuple(part for token in tokens(text) for part in (token, *_PART.findall(token)))


TUNED = frozenset(("instruct", "chat", "it", "base", "hf", "pt", "thinking"))
"""What names say of how a model was trained on: its layers are the same."""
_DATE = r"2[3-9](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])[0-3][0-9]"
"""And when: ``2507`` is a year and a month, ``0528`` a month and a day."""
_SIZE = re.compile(r"[0-9.x]+[bm]")


def kin(name: str, *, dates: bool = True) -> str:
    """What base and tuned versions of one model have in common, ``Qwen2.5-7B``, as it is compared.

    Empty for a name without a size: there ``base`` is one.  Without ``dates`` those of a later training
    have it in common, too.
    """
    said = tokens(name.rpartition("/")[2])
    if not any(_SIZE.fullmatch(word) for word in said):
        return ""
    return "".join(word for word in said if word not in TUNED and (dates or not re.fullmatch(_DATE, word)))


def _says_tuned(word: str) -> bool:
    """Also of a word that is still being typed."""
    return any(one.startswith(word) for one in TUNED) or re.fullmatch(_DATE, word) is not None


class Index(Generic[T]):
    """Entries by name, and in order of how well they answer what was typed so far."""

    def __init__(self, entries: Iterable[tuple[T, Sequence[str], Sequence[str]]]) -> None:
        """Each entry comes with its names (any of which finds it) and with further words."""
        self._rows: list[tuple[T, tuple[str, ...], tuple[str, ...]]] = []
        self._by_key: dict[str, T] = {}
        self._names: dict[str, str] = {}
        for entry, names, more in entries:
            keys = tuple(map(key, names))
            said = tuple(dict.fromkeys(word for text in (*names, *more) for word in words(text)))
            self._rows.append((entry, keys, said))
            for one, name in zip(keys, names, strict=True):
                self._by_key.setdefault(one, entry)
                self._names.setdefault(one, name)

    def get(self, name: str) -> T | None:
        """The entry that has ``name``, in any case and with any spaces or dashes."""
        return self._by_key.get(key(name))

    def near(self, name: str, most: int = 3) -> tuple[str, ...]:
        """Names that ``name`` may have been meant for."""
        asked = key(name)
        found = get_close_matches(asked, self._names, most, 0.6)
        found += [one for one in self._names if asked and asked in one and one not in found]
        return tuple(self._names[one] for one in found[:most]) or tuple(
            self._names[keys[0]] for _, keys in self._alike(name, most)
        )

    def alike(self, text: str, most: int = 3) -> list[T]:
        """Entries that have the most of the words of ``text``, two at the least, where none has them all."""
        return [entry for entry, _ in self._alike(text, most)]

    def _alike(self, text: str, most: int) -> list[tuple[T, tuple[str, ...]]]:
        typed = tokens(text)
        shared = [
            (sum(word in said for word in typed), min(map(len, keys)), place)
            for place, (_, keys, said) in enumerate(self._rows)
        ]
        best = max((count for count, _, _ in shared), default=0)
        found = sorted((size, place) for count, size, place in shared if count == best >= 2)
        return [self._rows[place][:2] for _, place in found[:most]]

    def search(self, text: str, limit: int = 50) -> list[T]:
        """Entries that answer ``text``, best first; all of them, in order, where it is empty.

        Every word typed has to be found, at the start of a word or inside a name.  Where nothing has
        them all, what says how a model was trained on need not be, else words much like those typed are
        looked for.
        """
        typed = tokens(text)
        if not typed:
            return [entry for entry, _, _ in self._rows[:limit]]
        found = self._ranked(key(text), [(word,) for word in typed])
        needed: list[tuple[str, ...]] = [(word,) for word in typed if not _says_tuned(word)]
        if not found and needed:
            found = self._ranked("", needed)
        if not found:
            found = self._ranked("", [self._like(word) for word in typed])
        return [entry for _, _, entry in found[:limit]]

    def _ranked(self, asked: str, typed: list[tuple[str, ...]]) -> list[tuple[tuple[int, int], int, T]]:
        ranked = []
        for place, (entry, keys, said) in enumerate(self._rows):
            score = _score(asked, typed, keys, said)
            if score is not None:
                ranked.append((score, place, entry))
        ranked.sort(key=lambda row: row[:2])
        return ranked

    def _like(self, word: str) -> tuple[str, ...]:
        known = {one: None for _, _, said in self._rows for one in said}
        return (word, *get_close_matches(word, known, 3, 0.72)) if len(word) >= 4 else (word,)


def _score(
    asked: str, typed: list[tuple[str, ...]], keys: tuple[str, ...], said: tuple[str, ...]
) -> tuple[int, int] | None:
    """Rank of an entry (less is better), or ``None`` where a word typed is not in it.

    ``typed`` holds, for each word, the spellings that count.
    """
    shortest = min(map(len, keys))
    if asked in keys:
        return 0, shortest
    if asked and any(one.startswith(asked) for one in keys):
        return 1, shortest
    worst = 0
    for spellings in typed:
        ranks = [_word_rank(word, keys, said) for word in spellings]
        best = min((rank for rank in ranks if rank is not None), default=None)
        if best is None:
            return None
        worst = max(worst, best)
    return 2 + worst, shortest


def _word_rank(word: str, keys: tuple[str, ...], said: tuple[str, ...]) -> int | None:
    if word in said:
        return 0
    if any(one.startswith(word) for one in said):
        return 1
    return 2 if any(word in one for one in keys) else None
