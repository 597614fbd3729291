"""Where things lie: the platform's folders, or all under one."""

import sys
from pathlib import Path

import pytest

from memgui.presets.paths import AppPaths


def test_home_by_argument_and_by_environment(tmp_path: Path) -> None:
    expected = AppPaths(
        tmp_path / "config", tmp_path / "data", tmp_path / "state", tmp_path / "log", (tmp_path / "site",)
    )
    assert AppPaths.default(home=tmp_path) == expected
    assert AppPaths.default(environ={"MEMGUI_HOME": str(tmp_path)}) == expected
    assert AppPaths.default(home=tmp_path, environ={"MEMGUI_HOME": "/elsewhere"}) == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the names are those of XDG")
def test_platform_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_DIRS", "/lab:/etc/xdg")
    paths = AppPaths.default(environ={})
    assert paths.presets == home / "config" / "memgui" / "presets"
    assert paths.settings == home / "config" / "memgui" / "settings.json"
    assert paths.data == home / "data" / "memgui"
    assert paths.state == home / "state" / "memgui"
    assert paths.log_file == home / "state" / "memgui" / "log" / "memgui.log"
    assert paths.site_presets == (Path("/lab/memgui/presets"), Path("/etc/xdg/memgui/presets"))
