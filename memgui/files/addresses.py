"""Addresses in a network, which are told from paths and names, and opened by nobody here."""

from __future__ import annotations

import re
from typing import Final

from memgui.spec.messages import QT_TRANSLATE_NOOP, Message, one_line

_ADDRESS: Final = r"(?!file:)[a-z][a-z0-9+.-]*://"


def is_address(text: str) -> bool:
    """Whether ``text`` begins as an address in a network does."""
    return re.match(_ADDRESS, text, re.IGNORECASE) is not None


def from_network(address: str) -> Message:
    """Why what lies at an address is not opened."""
    text = QT_TRANSLATE_NOOP(
        "messages", "memgui opens files of this computer and fetches nothing from a network: {address}"
    )
    return Message(text, {"address": one_line(address[:200])})
