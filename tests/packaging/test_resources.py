from pathlib import Path

import pytest

from memgui import _resources


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def test_packaged_folder_comes_first(tmp_path: Path) -> None:
    packaged = folder(tmp_path / "memgui" / "resources")
    folder(tmp_path / "resources")
    (tmp_path / "pyproject.toml").touch()
    assert _resources.root(tmp_path / "memgui") == packaged


def test_checkout_has_it_beside_the_project_file(tmp_path: Path) -> None:
    folder(tmp_path / "memgui")
    beside = folder(tmp_path / "resources")
    (tmp_path / "pyproject.toml").touch()
    assert _resources.root(tmp_path / "memgui") == beside


def test_folder_without_project_file_is_a_strangers(tmp_path: Path) -> None:
    package = folder(tmp_path / "memgui")
    folder(tmp_path / "resources")
    with pytest.raises(FileNotFoundError) as caught:
        _resources.root(package)
    assert str(package / "resources") in str(caught.value)
    assert str(tmp_path / "resources") in str(caught.value)


def test_the_running_memgui_has_its_resources() -> None:
    names = {path.name for path in _resources.root().iterdir()}
    assert {"catalog", "desktop", "icons", "translations"} <= names
