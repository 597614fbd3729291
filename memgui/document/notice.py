"""Something to tell the person without stopping them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from memgui.spec import Message


class Notice(msgspec.Struct, frozen=True):
    """One line of the window's notice bar.

    ``severity``: ``info``, ``warning``, ``error``.  ``details`` are shown when asked for.
    ``action`` is done by a button called ``action_text`` (an msgid, context ``"messages"``).
    ``of_opening``: it says how opening something went, which is old once something else is open.
    """

    message: Message
    severity: str = "info"
    details: tuple[Message, ...] = ()
    action_text: str = ""
    action: Callable[[], object] | None = None
    of_opening: bool = False
