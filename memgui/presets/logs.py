"""The log, what a crash leaves for the next start, and the text a person copies into a report.

All of it is best effort: where nothing can be written memgui works as well without.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import platform
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Final

from memgui import __version__
from memgui.files.atomic import make_folder, write_atomic
from memgui.files.bounded import FileFault, open_bounded
from memgui.presets.paths import AppPaths

MAX_LOG_BYTES: Final = 2**20
LOGS_KEPT: Final = 3
MAX_REPORT_BYTES: Final = 256 * 1024
_PACKAGES: Final = ("PySide6-Essentials", "msgspec", "numpy", "platformdirs", "pyqtgraph", "nvidia-ml-py")


def start_logging(paths: AppPaths, level: int = logging.INFO) -> logging.Handler | None:
    """Send what is logged to a rotating file; ``None`` where there can be none."""
    try:
        make_folder(paths.log)
        handler = RotatingFileHandler(
            paths.log_file, maxBytes=MAX_LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8", errors="replace"
        )
    except (FileFault, OSError) as error:
        logging.getLogger(__name__).warning("there is no log file: %s", error)
        return None
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    handler.handleError = lambda record: None  # type: ignore[method-assign]  # a full disk is no crash
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(min(level, root.level or level))
    return handler


def keep_crash(
    paths: AppPaths,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> str:
    """Write the report of an exception nobody caught, for the next start; the report.  Raises nothing."""
    lines = traceback.format_exception(kind, error, trace)
    head = f"memgui {__version__}, {datetime.now(UTC).isoformat(timespec='seconds')}\n"
    report = head + _private("".join(lines))[-MAX_REPORT_BYTES // 2 :]
    with suppress(FileFault):
        make_folder(paths.crash_report.parent)
        write_atomic(paths.crash_report, report.encode("utf-8", "replace"))
    return report


def watch_for_faults(paths: AppPaths) -> None:
    """Have Python write its stacks to a file when the process dies in C++; the next start shows them."""
    with suppress(FileFault, OSError, ValueError):
        make_folder(_faults(paths).parent)
        faulthandler.enable(_faults(paths).open("ab", buffering=0))


def take_crash_report(paths: AppPaths) -> str:
    """What the last crash said, once: the files are put aside as ``….old``.  ``""`` where there was none."""
    parts = []
    for path in (paths.crash_report, _faults(paths)):
        text = _tail(path, MAX_REPORT_BYTES)
        if text.strip():
            parts.append(_private(text))
        with suppress(OSError):
            os.replace(path, path.with_name(path.name + ".old"))
    return "\n".join(parts)


def diagnostics(paths: AppPaths, more: Mapping[str, str] | None = None) -> str:
    """Versions, platform and paths, then the end of the log; ``more`` comes from above (Qt's platform, GPU).

    The home folder is written ``~``.  English in every language: it is for a report.
    """
    rows = {
        "memgui": __version__,
        "Python": f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
        **{name: _version(name) for name in _PACKAGES},
        "Platform": platform.platform(),
        "Locale": os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG", ""),
        "Config": str(paths.config),
        "Data": str(paths.data),
        "State": str(paths.state),
        "Log": str(paths.log),
        "Site": os.pathsep.join(map(str, paths.site_config)),
        **(more or {}),
    }
    width = max(map(len, rows))
    lines = [f"{name:<{width}}  {value}" for name, value in rows.items()]
    log = _tail(paths.log_file, 64 * 1024).splitlines()[-200:]
    return _private("\n".join([*lines, "", "Log:", *log])) + "\n"


def _faults(paths: AppPaths) -> Path:
    return paths.state / "fault.txt"


def _version(package: str) -> str:
    from importlib import metadata  # costs milliseconds at the start and is rarely asked for

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "-"


def _tail(path: Path, limit: int) -> str:
    try:
        with open_bounded(path) as file:
            start = max(0, file.size - limit)
            return file.read(start, file.size - start).decode("utf-8", "replace")
    except FileFault:
        return ""


def _private(text: str) -> str:
    home = os.path.expanduser("~")
    return text.replace(home, "~") if len(home) > 1 else text
