"""What became of the file that a model was read from: told when it is opened, kept while the model is."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from memgui.spec.messages import QT_TRANSLATE_NOOP, Message

MOST: Final = 500
"""Most keys that are named of each kind; a stranger's file may hold a hundred thousand."""


class ImportReport(msgspec.Struct, frozen=True):
    """An account of one reading; empty for a model that was read from no file.

    ``file`` is the file's or folder's name.  ``understood`` and ``ignored`` are keys of the file: those
    that decided something, and those that nobody here reads.  ``assumed`` says what the file left open, what
    was taken instead and why.
    """

    file: str = ""
    understood: tuple[str, ...] = ()
    assumed: tuple[Message, ...] = ()
    ignored: tuple[str, ...] = ()
    unnamed: int = 0
    """Ignored keys beyond the :data:`MOST` that are named."""

    def __bool__(self) -> bool:
        return bool(self.understood or self.assumed or self.ignored)

    @property
    def not_read(self) -> tuple[Message, ...]:
        """What was ignored, in one sentence; nothing where nothing was."""
        if not self.ignored:
            return ()
        keys = ", ".join(self.ignored)
        if self.unnamed:
            template = QT_TRANSLATE_NOOP(
                "messages", "Ignored, because nothing here reads it: {keys}, and {count} more."
            )
            return (Message(template, {"keys": keys, "count": self.unnamed}),)
        template = QT_TRANSLATE_NOOP("messages", "Ignored, because nothing here reads it: {keys}")
        return (Message(template, {"keys": keys}),)

    @property
    def lines(self) -> tuple[Message, ...]:
        """All of it, line by line."""
        lines = []
        if self.understood:
            template = QT_TRANSLATE_NOOP("messages", "Understood: {keys}")
            lines.append(Message(template, {"keys": ", ".join(self.understood)}))
        if self.assumed:
            lines += [Message(QT_TRANSLATE_NOOP("messages", "Assumed:")), *self.assumed]
        return (*lines, *self.not_read)

    def to_object(self) -> dict[str, Any]:
        """It as plain values in English, for programs that read them."""
        return {
            "file": self.file,
            "understood": list(self.understood),
            "assumed": [message.text for message in self.assumed],
            "ignored": list(self.ignored),
            "ignored_count": len(self.ignored) + self.unnamed,
        }


NO_REPORT: Final = ImportReport()
"""Of a model that was read from no file."""
