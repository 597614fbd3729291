"""A preset as a line of text that survives chats and mails: ``memgui1:`` and base64url of deflated JSON."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from typing import Final, NoReturn

from memgui.files.bounded import FileFault
from memgui.presets.codec import MAX_BYTES, Decoded, Preset, decode, encode_compact
from memgui.spec import QT_TRANSLATE_NOOP

PREFIX: Final = "memgui1:"
MAX_TEXT: Final = 2**19
"""Longest text that is taken (characters)."""
_BODY: Final = re.compile(r"[A-Za-z0-9_-]+")
_NAME: Final = "memgui1:…"


def to_text(preset: Preset) -> str:
    """``preset`` on one line; :func:`from_text` reads it."""
    packed = zlib.compress(encode_compact(preset), 9)
    return PREFIX + base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def is_text(text: str) -> bool:
    """Whether ``text`` (of a clipboard, a drop) claims to be a preset."""
    return text.lstrip(" \t\r\n<\"'`>")[: len(PREFIX)].lower() == PREFIX


def from_text(text: str) -> Decoded:
    """The preset in ``text``, which may be quoted, indented or broken into lines.

    Raises :class:`FileFault` where it is none, is cut short, or unpacks to more than a preset may have.
    """
    if len(text) > MAX_TEXT:
        raise FileFault(
            _NAME,
            QT_TRANSLATE_NOOP(
                "messages", "The text has {length} characters; a shared preset has at most {limit}."
            ),
            length=len(text),
            limit=MAX_TEXT,
        )
    if not is_text(text):
        raise FileFault(
            _NAME, QT_TRANSLATE_NOOP("messages", "The text is no shared preset: such begin with memgui1:")
        )
    body = re.sub(r"[\s<>\"'`]", "", text)[len(PREFIX) :].rstrip("=")
    if not _BODY.fullmatch(body):
        _refuse()
    unpack = zlib.decompressobj()
    try:
        data = unpack.decompress(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), MAX_BYTES + 1)
    except (binascii.Error, zlib.error):
        _refuse()
    if len(data) <= MAX_BYTES and (not unpack.eof or unpack.unused_data):
        _refuse()
    return decode(data, _NAME)


def _refuse() -> NoReturn:
    raise FileFault(
        _NAME,
        QT_TRANSLATE_NOOP(
            "messages", "The shared preset is damaged: part of its text is missing or changed."
        ),
    )
