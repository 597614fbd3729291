"""Files that say "my maker is alive": the system lets go of them when a process ends, however it ends.

POSIX: an exclusive ``flock`` on an open descriptor.  Windows needs none, for a file that is open there
cannot be removed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

if sys.platform != "win32":
    import fcntl

_YOUNG_S: Final = 3600.0


def hold(descriptor: int) -> bool:
    """Hold the open file until it is closed; no where somebody else does.

    On file systems without locks the answer is yes, and :func:`is_held` goes by the file's age.
    """
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def is_held(path: str | os.PathLike[str]) -> bool:
    """Whether a living process holds the regular file at ``path`` (on Windows: always no; try to remove it).

    Where the file system has no locks, a file touched within the last hour counts as held.
    """
    if sys.platform == "win32":
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return time.time() - os.fstat(descriptor).st_mtime < _YOUNG_S
    finally:
        os.close(descriptor)
    return False


@contextmanager
def in_turn(folder: str | os.PathLike[str], patience_s: float = 2.0) -> Iterator[None]:
    """One process at a time where all that change ``folder`` do so inside this.

    It is a courtesy, not a wall: without locks (Windows, some network folders), or with a holder that has
    not let go within ``patience_s`` seconds, the caller goes on all the same.
    """
    descriptor = -1
    if sys.platform != "win32":
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            pass  # no folder, nothing to take turns about
        else:
            until = time.monotonic() + patience_s
            while not hold(descriptor) and time.monotonic() < until:
                time.sleep(0.002)
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)
