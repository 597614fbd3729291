"""How explanations are put into words without Qt: whoever shows them brings language and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from memgui.planning.as_text import exact_text, size_text
from memgui.spec.messages import Count, Message, counted


class Words(Protocol):
    """Language and figures of whoever shows an explanation."""

    def translate(self, context: str, text: str) -> str:
        """A marked text in the person's language."""

    def message(self, message: Message) -> str:
        """A message in the person's language, its values put in."""

    def size(self, size: int) -> str:
        """Bytes in the chosen unit, with it: ``24.64 GiB``."""

    def exact(self, size: int) -> str:
        """Every byte: ``26,460,864,512 bytes``."""

    def count(self, number: int) -> Count:
        """Every digit, grouped."""

    def share(self, part: int, whole: int) -> str:
        """``16.0 %``."""


class English:
    """The words of a terminal."""

    def translate(self, context: str, text: str) -> str:
        """The text itself."""
        return text

    def message(self, message: Message) -> str:
        """The English sentence."""
        return message.text

    def size(self, size: int) -> str:
        """In GiB with two decimals; under a tenth of one in MiB, KiB or bytes."""
        return size_text(size)

    def exact(self, size: int) -> str:
        """Grouped by commas."""
        return exact_text(size)

    def count(self, number: int) -> Count:
        """Grouped by commas."""
        return counted(number)

    def share(self, part: int, whole: int) -> str:
        """One decimal, half up."""
        tenths = (2000 * part + whole) // (2 * whole) if whole else 0
        return f"{tenths // 10}.{tenths % 10} %"


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence with the person's own numbers in it; ``template`` is translated in ``context``.

    ``sizes`` are bytes, ``counts`` whole numbers (which choose words: :class:`Count`), ``words`` ready
    texts or ``(context, msgid)``, ``messages`` sentences of their own.
    """

    template: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, str | tuple[str, str]] = field(default_factory=dict)
    messages: Mapping[str, Message] = field(default_factory=dict)
    context: str = "why"

    def text(self, words: Words) -> str:
        """The sentence."""
        values: dict[str, str] = {name: words.size(size) for name, size in self.sizes.items()}
        values |= {name: words.count(number) for name, number in self.counts.items()}
        values |= {name: words.message(message) for name, message in self.messages.items()}
        values |= {
            name: word if isinstance(word, str) else words.translate(*word)
            for name, word in self.words.items()
        }
        return words.translate(self.context, self.template).format_map(values)
