"""Damaged settings, sessions and shared texts: never a traceback, never deleted.  (Presets: tests/fuzz.)"""

import base64
import json
import zlib
from contextlib import suppress
from pathlib import Path
from random import Random

from memgui.files.bounded import FileFault
from memgui.presets import share
from memgui.presets.codec import Preset, encode
from memgui.presets.session import Pinned, Session, SessionKeeper
from memgui.presets.settings import Settings, SettingsStore
from tests.fuzz.mutate import File, mutate
from tests.presets.conftest import MODEL, SCENARIO

ROUNDS = 300


def damaged(data: bytes, number: int) -> bytes:
    seed = File(data)
    return mutate(seed, (seed,), Random(number), True, False).start


def kept(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_settings(tmp_path: Path) -> None:
    text = json.dumps({"units": "GB", "theme": "dark", "recent_files": ["/a", "/b"], "future": {"x": [1]}})
    for number in range(ROUNDS):
        path = tmp_path / str(number) / "settings.json"
        path.parent.mkdir()
        path.write_bytes(data := damaged(text.encode(), number))
        store = SettingsStore(path)
        settings, _ = store.load()
        assert data in kept(path.parent)
        store.save(Settings(folder="/new"))
        assert SettingsStore(path).load()[0].folder == "/new"
        assert settings.units in ("GiB", "GB")


def test_session(tmp_path: Path) -> None:
    keeper = SessionKeeper(tmp_path / "first")
    keeper.start()
    keeper.close(Session(scenario=SCENARIO, origin=MODEL, name="A", pinned=(Pinned("B", SCENARIO),)))
    (whole,) = (tmp_path / "first").iterdir()
    opened = 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / f"{'0' * 16}.json").write_bytes(data := damaged(whole.read_bytes(), number))
        keeper = SessionKeeper(folder)
        recovery = keeper.start()
        opened += recovery.session is not None
        assert recovery.session is not None or data in kept(folder)
        assert recovery.session is not None or recovery.issues
        keeper.close(recovery.session)
        again = SessionKeeper(folder)
        assert again.start().session == recovery.session
        again.close()
    assert 20 < opened < ROUNDS


def test_shared_text() -> None:
    preset = Preset(name="A", content=SCENARIO)
    text = share.to_text(preset).encode()
    for number in range(ROUNDS):
        inside = zlib.compress(damaged(encode(preset), number))
        for shared in (
            damaged(text, number).decode("latin-1"),
            share.PREFIX + base64.urlsafe_b64encode(damaged(zlib.compress(encode(preset)), number)).decode(),
            share.PREFIX + base64.urlsafe_b64encode(inside).decode(),
        ):
            with suppress(FileFault):
                share.from_text(shared)
