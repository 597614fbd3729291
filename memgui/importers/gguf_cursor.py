"""A bounded way through the header of a GGUF file: lengths and counts checked before they are believed."""

from __future__ import annotations

import struct
from typing import Final

from memgui.files.bounded import BoundedFile, FileFault
from memgui.spec.messages import QT_TRANSLATE_NOOP

MAGIC: Final = b"GGUF"
MAX_HEADER_BYTES: Final = 2**28
"""Longest header (bytes) that is gone through; real ones have up to some ten million."""
MAX_ENTRIES: Final = 65_536
"""Most metadata entries, and most tensors, of one file; real ones have some hundred and some thousand."""
MAX_STEPS: Final = 2**21
"""Most texts that are stepped over in one header; the longest real tokenizers have 0.8 million."""
MAX_NAME_BYTES: Final = 256
"""Longest key or tensor name (bytes); ggml itself stops at 64 for tensors."""

_WINDOW: Final = 2**20


class Cursor:
    """A position in the header of ``file``, over a window of it that moves along."""

    def __init__(self, file: BoundedFile) -> None:
        self.file = file
        self.position = 0
        self.length_bytes = 8
        self._steps = MAX_STEPS
        self._window = b""
        self._window_start = 0
        self.version = self._begin()
        if self.version == 1:
            self.length_bytes = 4

    def take(self, length: int) -> bytes:
        """The next ``length`` bytes, which are held in memory: for short things."""
        begin = self._at(length)
        self.position += length
        return self._window[begin : begin + length]

    def skip(self, length: int) -> None:
        """Step over ``length`` bytes."""
        self.file.require(self.position, length)
        self.position += length
        if self.position > MAX_HEADER_BYTES:
            raise FileFault(
                self.file.name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file} has a header of more than {limit} bytes, which no model needs."
                ),
                where=f"byte {self.position}",
                limit=MAX_HEADER_BYTES,
            )

    def integer(self, code: str) -> int:
        """The next integer, laid out as ``struct`` calls ``code``."""
        layout = "<" + code
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def count(self) -> int:
        """The next length or count."""
        return int.from_bytes(self.take(self.length_bytes), "little")

    def name(self) -> str:
        """The next text, as a key or a tensor's name."""
        start = self.position
        length = self.count()
        self.file.require(self.position, length)
        if length > MAX_NAME_BYTES:
            raise FileFault(
                self.file.name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file} has a name of {length} bytes at byte {offset}; at most {limit} are allowed.",
                ),
                where=f"byte {start}",
                length=length,
                offset=start,
                limit=MAX_NAME_BYTES,
            )
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise FileFault(
                self.file.name,
                QT_TRANSLATE_NOOP("messages", "{file} has a name at byte {offset} that is not UTF-8 text."),
                where=f"byte {start}",
                offset=start,
            ) from None

    def demand(self, count: int, least_bytes: int, template: str) -> None:
        """Refuse ``count`` things of ``least_bytes`` each that the rest of the file cannot hold."""
        limit = min(MAX_ENTRIES, (self.file.size - self.position) // least_bytes)
        if count > limit:
            raise FileFault(self.file.name, template, where=f"byte {self.position}", count=count, limit=limit)

    def account(self, count: int) -> None:
        """Refuse ``count`` texts or lists to come that the file cannot hold, or that take too many steps."""
        self.file.require(self.position, count * self.length_bytes)
        self._steps -= count
        if self._steps < 0:
            raise FileFault(
                self.file.name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file} has more than {limit} texts in its metadata, which no model needs."
                ),
                where=f"byte {self.position}",
                limit=MAX_STEPS,
            )

    def skip_texts(self, count: int) -> None:
        """Step over ``count`` texts without making any of them."""
        width = self.length_bytes
        length_at = struct.Struct("<I" if width == 4 else "<Q").unpack_from
        while count:
            begin = at = self._at(width)
            window = self._window
            last = len(window) - width
            for left in range(count - 1, -1, -1):
                at += width + length_at(window, at)[0]
                if at > last:
                    count = left
                    break
            else:
                count = 0
            self.skip(at - begin)

    def _at(self, length: int) -> int:
        """Where in the window the position is, with ``length`` bytes from there on in it."""
        at = self.position - self._window_start
        if at + length > len(self._window):
            self.file.require(self.position, length)
            self._window_start = self.position
            self._window = self.file.read(
                self.position, min(max(length, _WINDOW), self.file.size - self.position)
            )
            at = 0
        return at

    def _begin(self) -> int:
        """Check the magic; the version."""
        if self.file.size < 8 or self.take(4) != MAGIC:
            raise FileFault(
                self.file.name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file} is no GGUF file: it does not begin with the letters GGUF."
                ),
                where="byte 0",
            )
        version = self.integer("I")
        if version and not version & 0xFFFF:
            raise FileFault(
                self.file.name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file} is a big-endian GGUF file; only little-endian ones can be read."
                ),
                where="byte 4",
            )
        if version not in (1, 2, 3):
            raise FileFault(
                self.file.name,
                QT_TRANSLATE_NOOP(
                    "messages", "{file} is a GGUF file of version {version}; versions 1 to 3 can be read."
                ),
                where="byte 4",
                version=version,
            )
        return version
