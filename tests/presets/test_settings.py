"""Settings: only what differs is written, only what is bad is lost, two processes keep each other's."""

import json
from pathlib import Path

import msgspec
import pytest

from memgui.files.bounded import FileFault
from memgui.presets.settings import Settings, SettingsStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "settings.json"


def test_nothing_is_written_before_something_is_chosen(path: Path) -> None:
    assert SettingsStore(path).load() == (Settings(), ())
    assert not path.parent.exists()


def test_only_what_differs_is_written(path: Path) -> None:
    store = SettingsStore(path)
    store.load()
    store.save(Settings(units="GB", recent_files=("/a", "/b")))
    assert json.loads(path.read_text()) == {"units": "GB", "recent_files": ["/a", "/b"]}
    assert SettingsStore(path).load() == (Settings(units="GB", recent_files=("/a", "/b")), ())
    store.save(Settings())
    assert json.loads(path.read_text()) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("units", "gb"),
        ("units", 1),
        ("theme", None),
        ("language", "x" * 33),
        ("reduced_motion", 0),
        ("recent_files", "/a"),
        ("recent_files", ["/a", 1]),
        ("recent_files", ["/a"] * 51),
        ("folder", ["x"]),
    ],
)
def test_bad_value_costs_that_setting_only(path: Path, key: str, value: object) -> None:
    path.parent.mkdir()
    sound = Settings(units="GB", theme="dark", language="zh_CN", recent_files=("/a",), folder="/f")
    path.write_text(json.dumps({**msgspec.to_builtins(sound), key: value}))
    settings, issues = SettingsStore(path).load()
    assert settings == msgspec.structs.replace(sound, **{key: getattr(Settings(), key)})
    assert [issue.paths for issue in issues] == [(key,)]
    assert key in issues[0].text


def test_unknown_settings_are_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_text('{"future": {"a": [1]}, "units": "GB"}')
    store = SettingsStore(path)
    settings, issues = store.load()
    assert issues == ()
    store.save(msgspec.structs.replace(settings, theme="dark"))
    assert json.loads(path.read_text()) == {"future": {"a": [1]}, "units": "GB", "theme": "dark"}


def test_two_processes_keep_what_the_other_chose(path: Path) -> None:
    one, other = SettingsStore(path), SettingsStore(path)
    mine, theirs = one.load()[0], other.load()[0]
    one.save(msgspec.structs.replace(mine, units="GB"))
    other.save(msgspec.structs.replace(theirs, theme="dark"))
    assert SettingsStore(path).load()[0] == Settings(units="GB", theme="dark")


@pytest.mark.parametrize("data", [b"", b"[1]", b"{", b"\xff", b'{"a": 1, "a": 2}', b"[" * 10_000])
def test_file_that_holds_no_settings_is_set_aside(path: Path, data: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(data)
    store = SettingsStore(path)
    settings, (issue,) = store.load()
    assert settings == Settings()
    (aside,) = (path.parent / "quarantine").iterdir()
    assert aside.read_bytes() == data
    assert str(aside) in issue.text
    store.save(Settings(units="GB"))
    assert SettingsStore(path).load() == (Settings(units="GB"), ())


def test_file_that_cannot_be_read_stays_and_is_not_overwritten(path: Path) -> None:
    path.mkdir(parents=True)
    store = SettingsStore(path)
    settings, (issue,) = store.load()
    assert settings == Settings()
    assert "is a folder" in issue.text
    with pytest.raises(FileFault, match="is a folder"):
        store.save(Settings(units="GB"))
    assert path.is_dir()


def test_place_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = SettingsStore(tmp_path / "file" / "settings.json")
    assert store.load()[0] == Settings()
    with pytest.raises(FileFault, match="is not a folder"):
        store.save(Settings(units="GB"))
