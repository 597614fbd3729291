"""Open a path that a stranger named, and read no more of it than was asked for.

A path may be a directory, a FIFO that never answers, a device, a loop of symlinks, or vanish
between two calls; a file may shrink while it is read.  Each ends in one :class:`FileFault`,
never in a hang and never in a traceback.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memgui.spec.messages import QT_TRANSLATE_NOOP, Message, Value

Progress = Callable[[int, int], bool]
"""``progress(done, total)`` of a long reading; an answer of ``False`` cancels it."""

StrPath = str | os.PathLike[str]


EMPTY = QT_TRANSLATE_NOOP(
    "messages", "{file} is empty: nothing was written into it, or its download broke off."
)


class FileFault(Exception):
    """A file that cannot be read as what it claims to be, or cannot be written.

    ``str()`` is one sentence that names the file, the place, the value found and what is allowed;
    :attr:`message` is the same for translation.  :attr:`where` is a key path or a byte offset, ``""``
    where the whole file is meant.
    """

    def __init__(self, file: str, template: str, where: str = "", **args: Value) -> None:
        self.file = file
        self.where = where
        shown = {
            "file": file,
            "where": where,
            **args,
        }  # names and values of strangers: escaped, whoever raises
        self.message = Message(
            template,
            {key: escaped(value) if isinstance(value, str) else value for key, value in shown.items()},
        )
        super().__init__(self.message.text)


class FileMissing(FileFault):
    """Nothing is at the path; a part of a model may be missing while the rest can be read."""


class Cancelled(Exception):
    """The ``progress`` callback of a long reading answered ``False``; nothing was kept."""


def report(progress: Progress | None, done: int, total: int) -> None:
    """Tell ``progress`` how far a reading is; raise :class:`Cancelled` if it answers ``False``."""
    if progress is not None and progress(done, total) is False:
        raise Cancelled


def display_name(path: StrPath) -> str:
    """The last part of ``path``, fit to be shown: what cannot be encoded or printed is escaped."""
    text = os.path.basename(os.path.normpath(os.fspath(path))) or os.fspath(path)
    return printable(text)


def told_name(path: StrPath) -> str:
    """:func:`display_name`; a ``config.json`` is told from others by its folder's."""
    folder, name = os.path.split(os.path.abspath(path))
    above = os.path.basename(folder)
    return f"{printable(above)}/{name}" if above and name == "config.json" else display_name(path)


def printable(text: str, limit: int = 120) -> str:
    """``text`` escaped and cut at ``limit`` characters."""
    return escaped(text if len(text) <= limit else text[:limit] + "…")


def escaped(text: str) -> str:
    """``text`` on one line: control characters, text directions and lone surrogates as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class BoundedFile:
    """An open regular file that gives exactly the bytes it is asked for.

    ``size`` (bytes) is the size when it was opened: lengths and counts found inside are checked
    against it before they are believed.
    """

    def __init__(self, raw: io.FileIO, name: str, size: int) -> None:
        self._raw = raw
        self.name = name
        self.size = size

    def require(self, offset: int, length: int) -> None:
        """Refuse a stretch of ``length`` bytes at ``offset`` that the file does not hold."""
        if offset < 0 or length < 0 or offset + length > self.size:
            raise FileFault(
                self.name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file} promises {length} bytes at byte {offset}, but has only {size} {size:byte|bytes} "
                    "in all: it is cut short or damaged.",
                ),
                where=f"byte {offset}",
                offset=offset,
                length=length,
                size=self.size,
            )

    def read(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset`` on."""
        self.require(offset, length)
        parts = []
        missing = length
        try:
            self._raw.seek(offset)
            while missing:
                part = self._raw.read(missing)
                if not part:
                    raise FileFault(
                        self.name,
                        QT_TRANSLATE_NOOP(
                            "messages",
                            "{file} became shorter while it was read: {missing} of {length} bytes from byte "
                            "{offset} on are gone; try again when nothing writes to it.",
                        ),
                        where=f"byte {offset}",
                        offset=offset,
                        length=length,
                        missing=missing,
                    )
                parts.append(part)
                missing -= len(part)
        except OSError as error:
            raise _os_fault(self.name, error) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)


@contextmanager
def open_bounded(path: StrPath) -> Iterator[BoundedFile]:
    """Open the regular file at ``path``; symlinks are followed, what they lead to is checked.

    The kind is looked at before the file is opened (opening a device can act on it) and again on the
    open descriptor (the path may lead elsewhere by then); ``O_NONBLOCK`` keeps a FIFO that slipped in
    between from hanging the program.
    """
    name = display_name(path)
    flags = os.O_RDONLY
    for extra in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY"):
        flags |= getattr(os, extra, 0)
    try:
        _require_regular(name, os.stat(path))
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:  # ValueError: a NUL or a lone surrogate in the path
        raise _os_fault(name, error) from error
    with io.FileIO(descriptor, "rb") as raw:
        status = os.fstat(descriptor)
        _require_regular(name, status)
        yield BoundedFile(raw, name, status.st_size)


def read_whole(path: StrPath, limit: int) -> bytes:
    """All bytes of the regular file at ``path``, which may have ``limit`` bytes at most."""
    with open_bounded(path) as file:
        require_limit(file.name, file.size, limit)
        return file.read(0, file.size)


def require_limit(name: str, size: int, limit: int) -> None:
    """Refuse a file or block of more than ``limit`` bytes."""
    if size > limit:
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages", "{file} has {size} bytes; at most {limit} are allowed for a file of this kind."
            ),
            size=size,
            limit=limit,
        )


def list_folder(path: StrPath, limit: int = 20_000) -> list[Path]:
    """The entries of the folder ``path`` in order of name; more than ``limit`` of them are refused."""
    name = display_name(path)
    entries: list[Path] = []
    try:
        with os.scandir(path) as found:
            for entry in found:
                if len(entries) == limit:
                    raise FileFault(
                        name,
                        QT_TRANSLATE_NOOP(
                            "messages",
                            "{file} is a folder of more than {limit} files; no model folder has so many.",
                        ),
                        limit=limit,
                    )
                entries.append(Path(entry.path))
    except (OSError, ValueError) as error:
        raise _os_fault(name, error) from error
    return sorted(entries)


def _require_regular(name: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    if stat.S_ISDIR(status.st_mode):
        raise FileFault(name, QT_TRANSLATE_NOOP("messages", "{file} is a folder; a file is needed here."))
    raise FileFault(
        name,
        QT_TRANSLATE_NOOP("messages", "{file} is a pipe, socket or device; only a regular file can be read."),
    )


_REASONS = {
    errno.ENOTDIR: QT_TRANSLATE_NOOP("messages", "{file} is not there: a part of its path is not a folder."),
    errno.ELOOP: QT_TRANSLATE_NOOP("messages", "{file} is a loop of links that leads to no file."),
    errno.EACCES: QT_TRANSLATE_NOOP("messages", "{file} may not be read by you: permission denied."),
    errno.EPERM: QT_TRANSLATE_NOOP("messages", "{file} may not be read by you: permission denied."),
    errno.ENAMETOOLONG: QT_TRANSLATE_NOOP(
        "messages", "{file} has a longer name than the file system allows."
    ),
}


def _os_fault(name: str, error: OSError | ValueError) -> FileFault:
    if isinstance(error, OSError):
        if isinstance(error, FileNotFoundError):
            return FileMissing(name, QT_TRANSLATE_NOOP("messages", "{file} is not there (any more)."))
        known = _REASONS.get(error.errno or 0)
        if known is not None:
            return FileFault(name, known)
        reason = error.strerror or type(error).__name__
        return FileFault(
            name,
            QT_TRANSLATE_NOOP("messages", "{file} cannot be read: the system says “{reason}”."),
            reason=printable(reason),
        )
    return FileFault(name, QT_TRANSLATE_NOOP("messages", "{file} is no path that the file system can hold."))
