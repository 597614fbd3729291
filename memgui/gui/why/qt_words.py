"""The window's language and figures for explanations."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from memgui.gui.numbers import Numbers
from memgui.gui.texts import message_text
from memgui.spec import Message
from memgui.spec.messages import Count


class QtWords:
    """Implements :class:`memgui.planning.words.Words`."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers

    def translate(self, context: str, text: str) -> str:
        """The text in the program's language."""
        return QCoreApplication.translate(context, text)

    def message(self, message: Message) -> str:
        """The message in the program's language."""
        return message_text(message)

    def size(self, size: int) -> str:
        """In the chosen unit."""
        return self.numbers.tip(size)

    def exact(self, size: int) -> str:
        """Every byte."""
        return self.numbers.exact(size)

    def count(self, number: int) -> Count:
        """Every digit."""
        return self.numbers.count(number)

    def share(self, part: int, whole: int) -> str:
        """One decimal."""
        return self.numbers.share(part, whole)
