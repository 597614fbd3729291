"""Where things lie on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec


class AppPaths(msgspec.Struct, frozen=True):
    """The folders memgui uses; none is made before something is written into it.

    ``site_config`` are folders that an administrator fills for everyone (first one first), only read.
    """

    config: Path
    data: Path
    state: Path
    log: Path
    site_config: tuple[Path, ...] = ()

    @classmethod
    def default(cls, home: Path | None = None, environ: Mapping[str, str] = os.environ) -> AppPaths:
        """The platform's folders; all of them under ``home`` or ``MEMGUI_HOME`` where one is given."""
        if home is None and environ.get("MEMGUI_HOME"):
            home = Path(os.path.expanduser(environ["MEMGUI_HOME"])).absolute()
        if home is not None:
            return cls(home / "config", home / "data", home / "state", home / "log", (home / "site",))
        from platformdirs import PlatformDirs

        dirs = PlatformDirs("memgui", appauthor=False)
        site = PlatformDirs("memgui", appauthor=False, multipath=True).site_config_dir
        return cls(
            dirs.user_config_path,
            dirs.user_data_path,
            dirs.user_state_path,
            dirs.user_log_path,
            tuple(Path(folder) for folder in site.split(os.pathsep)),
        )

    @property
    def presets(self) -> Path:
        """The person's presets."""
        return self.config / "presets"

    @property
    def site_presets(self) -> tuple[Path, ...]:
        """Presets for everyone on this machine."""
        return tuple(folder / "presets" for folder in self.site_config)

    @property
    def settings(self) -> Path:
        """The person's settings (JSON)."""
        return self.config / "settings.json"

    @property
    def window(self) -> Path:
        """Geometry and splitters of the window (an ini file of Qt's), worth nothing if lost."""
        return self.state / "window.ini"

    @property
    def sessions(self) -> Path:
        """What is open in each running memgui."""
        return self.state / "sessions"

    @property
    def log_file(self) -> Path:
        """The newest log; older ones stand beside it."""
        return self.log / "memgui.log"

    @property
    def crash_report(self) -> Path:
        """What the last crash said, until somebody has read it."""
        return self.state / "crash.txt"
