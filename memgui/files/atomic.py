"""Write a file whole or not at all, and clear away what killed writers left.

The new content goes to a temporary file in the same folder, is flushed to the disk and then takes
the target's name in one step, so that at any moment the name leads to the old content or the new
one.  The temporary file is held (:mod:`memgui.files.held`) while its writer lives, so that
:func:`sweep` tells leftovers from files still being written.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from memgui.files.bounded import FileFault, StrPath, display_name, printable
from memgui.files.held import hold, is_held
from memgui.spec.messages import QT_TRANSLATE_NOOP

TEMPORARY: Final = re.compile(r"\.memgui-[0-9a-f]{16}\.tmp")
"""Names of our temporary files; nobody else's are ever removed."""
_ATTEMPTS: Final = 10


class AlreadyThere(FileFault):
    """A file that was to be made new has a namesake."""


def write_atomic(path: StrPath, data: bytes, *, new: bool = False) -> None:
    """Make ``data`` the content of the file at ``path``, or raise :class:`FileFault` and change nothing.

    A symlink is followed, so the file it leads to is written; an existing file keeps its mode.  One that
    nobody may write is refused, and so is what is no regular file.  With ``new`` an existing file is left
    as it is and :class:`AlreadyThere` raised, also when another process makes it in the same moment.
    """
    try:
        target = os.path.realpath(path)
        for _ in range(_ATTEMPTS):
            if _write_once(target, data, new):
                return
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
    except FileExistsError:
        raise AlreadyThere(
            display_name(path), QT_TRANSLATE_NOOP("messages", "{file} is there already; nothing was written.")
        ) from None
    except (OSError, ValueError) as error:
        raise write_fault(path, error) from error


def make_folder(path: StrPath) -> None:
    """The folder ``path`` and those above it, where they are missing; only the owner may enter new ones."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError:  # a file stands in the way
        raise write_fault(path, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))) from None
    except (OSError, ValueError) as error:
        raise write_fault(path, error) from error


def sweep(folder: StrPath) -> int:
    """Remove the temporary files that writers no longer alive left in ``folder``; how many there were."""
    removed = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not TEMPORARY.fullmatch(entry.name) or is_held(entry.path):
                continue
            with suppress(OSError):
                os.unlink(entry.path)
                removed += 1
    return removed


def keep_newest(folder: StrPath, count: int) -> int:
    """Remove all but the ``count`` files of ``folder`` that were written last; how many there were."""
    found: list[tuple[int, str]] = []
    removed = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    for _, path in sorted(found, reverse=True)[count:]:
        with suppress(OSError):
            os.unlink(path)
            removed += 1
    return removed


def move_into(path: StrPath, folder: StrPath, name: str) -> Path:
    """Move the file at ``path`` into ``folder`` (of the same file system) as ``name``, replacing nothing.

    Where the name is taken a number goes before its suffixes: ``a-2.memgui.json``.
    """
    make_folder(folder)
    stem, dot, suffix = name.partition(".")
    for number in range(1, 10_000):
        place = Path(folder) / (name if number == 1 else f"{stem}-{number}{dot}{suffix}")
        try:
            _rename_new(os.fspath(path), os.fspath(place))
        except FileExistsError:
            continue
        except (OSError, ValueError) as error:
            raise write_fault(path, error) from error
        return place
    raise write_fault(path, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))


def _write_once(target: str, data: bytes, new: bool) -> bool:
    """Whether it worked; no where a sweep took the temporary file for a leftover (before it was held)."""
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".memgui-{os.urandom(8).hex()}.tmp")
    mode = _mode(target)
    if mode is not None:
        if new:
            raise FileExistsError
        if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(temporary, flags, 0o666), "wb") as file:
            if not hold(file.fileno()):
                return False
            if mode is not None and sys.platform != "win32":
                with suppress(OSError):  # file systems without modes
                    os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":  # Windows moves no open file
                _take_name(temporary, target, new)
        if sys.platform == "win32":
            _take_name(temporary, target, new)
    except FileNotFoundError:
        if os.path.isdir(folder):
            return False
        raise
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    _sync_folder(folder)
    return True


def _take_name(temporary: str, target: str, new: bool) -> None:
    if new:
        _rename_new(temporary, target)
    else:
        os.replace(temporary, target)


def _rename_new(source: str, target: str) -> None:
    """Rename that never replaces: ``FileExistsError`` instead, even in a race where links are possible."""
    if sys.platform == "win32":
        os.rename(source, target)
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(source, target)
        return
    os.unlink(source)


def _mode(target: str) -> int | None:
    """The mode of the file at ``target``, ``None`` where there is none; a pipe or device is not replaced."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        text = QT_TRANSLATE_NOOP(
            "messages", "{file} is a pipe, socket or device; only a regular file can be written."
        )
        raise FileFault(display_name(target), text)
    return stat.S_IMODE(mode)


def _sync_folder(folder: str) -> None:
    """Have the new name survive a loss of power; file systems that cannot are left alone."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_REASONS = {
    errno.ENOSPC: QT_TRANSLATE_NOOP("messages", "{file} cannot be written in {folder}: the disk is full."),
    errno.EDQUOT: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: your share of the disk is used up."
    ),
    errno.EFBIG: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: it is larger than files may be there."
    ),
    errno.EROFS: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: that file system is read-only."
    ),
    errno.EACCES: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: permission denied, it is read-only for you."
    ),
    errno.EPERM: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: permission denied, it is read-only for you."
    ),
    errno.ENOENT: QT_TRANSLATE_NOOP("messages", "{file} cannot be written: the folder {folder} is gone."),
    errno.ENOTDIR: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: something on that path is not a folder."
    ),
    errno.EISDIR: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: a folder of that name is there."
    ),
    errno.ENAMETOOLONG: QT_TRANSLATE_NOOP(
        "messages", "{file} cannot be written in {folder}: the name is longer than the file system allows."
    ),
}


def write_fault(path: StrPath, error: OSError | ValueError) -> FileFault:
    """The fault that says why ``path`` could not be written."""
    text = os.fspath(path)
    name, folder = display_name(text), printable(os.path.dirname(text) or os.curdir)
    number = error.errno or 0 if isinstance(error, OSError) else 0
    if number in _REASONS:
        return FileFault(name, _REASONS[number], folder=folder)
    reason = (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
    return FileFault(
        name,
        QT_TRANSLATE_NOOP("messages", "{file} cannot be written in {folder}: the system says “{reason}”."),
        folder=folder,
        reason=printable(reason),
    )
