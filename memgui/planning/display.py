"""Whether a window can be shown here, and what to do where it cannot.  No Qt."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

HOW_TO_GET_ONE = (
    "connect with 'ssh -X', run 'xvfb-run memgui', or set DISPLAY; "
    "'memgui estimate' and 'memgui check' need none"
)
QT_LIBRARIES = "libegl1 libgl1 libxkbcommon-x11-0 libxcb-cursor0 libdbus-1-3 libfontconfig1"
"""Debian's packages that Qt's own need."""


def is_missing(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Whether there is surely no display: Qt would abort over it."""
    if platform in ("win32", "darwin") or environ.get("QT_QPA_PLATFORM"):
        return False
    return not environ.get("DISPLAY") and not environ.get("WAYLAND_DISPLAY")


def no_display(why: str = "") -> str:
    """One line that says so (``why`` is what Qt says) and how to get one."""
    return f"no display to open a window on{f' ({why})' if why else ''}: {HOW_TO_GET_ONE}"


def no_qt(error: ImportError) -> str:
    """One line for a machine on which Qt's libraries cannot be loaded."""
    return f"Qt cannot be loaded: {error}; on Debian, 'apt-get install {QT_LIBRARIES}' brings what it needs"
