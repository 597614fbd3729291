"""Presets on the disk: saved, renamed, deleted, restored, and never overwritten behind somebody's back."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memgui.files.bounded import FileFault
from memgui.presets import share
from memgui.presets.codec import BadName, Preset, encode
from memgui.presets.entries import Entry, Layer, State
from memgui.presets.paths import AppPaths
from memgui.presets.store import NameTaken, NotWritable, PresetChanged, PresetStore, file_stem
from memgui.spec import ModelSpec, Scenario, replace
from tests.presets.conftest import MODEL, SCENARIO


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def edit(entry: Entry, **changes: object) -> None:
    """What another program does to a preset."""
    envelope = json.loads(entry.path.read_text("utf-8"))
    envelope.update(changes)
    entry.path.write_text(json.dumps(envelope), "utf-8")


def names(store: PresetStore) -> list[str]:
    return [entry.name for entry in store.entries()]


@pytest.mark.parametrize("content", [SCENARIO, MODEL], ids=["scenario", "model"])
def test_what_was_saved_is_loaded(store: PresetStore, content: Scenario | ModelSpec) -> None:
    saved = store.create("Mine", content, "a note", {"allocated": 12})
    loaded = PresetStore.load(store, saved)
    assert loaded.preset.content == content
    assert (loaded.preset.name, loaded.preset.notes, loaded.preset.measured) == (
        "Mine",
        "a note",
        {"allocated": 12},
    )
    assert loaded.issues == ()
    assert loaded.entry == saved
    assert store.entries() == (saved,)


@pytest.mark.parametrize(
    "name",
    [
        "Llama 3.1, 8 GPUs",
        "con",
        "NUL.txt",
        "a/b\\c:d*e?f",
        "..",
        "模型一",
        "🦙" * 100,
        "é",
        "x" * 200,
        "-",
        ".",
    ],
)
def test_name_of_any_characters(store: PresetStore, name: str) -> None:
    entry = store.create(name, SCENARIO)
    assert entry.path.parent == store.folder
    assert entry.path.name.isascii()
    assert len(entry.path.name) < 100
    assert names(store) == [name]
    assert PresetStore.load(store, entry).preset.name == name


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "half \ud83d"])
def test_name_that_no_preset_may_have(store: PresetStore, name: str) -> None:
    with pytest.raises(BadName):
        store.create(name, SCENARIO)
    assert store.entries() == ()


def test_names_that_file_systems_confuse_are_two_files() -> None:
    assert file_stem("Mine") != file_stem("mine")
    assert file_stem("Straße") != file_stem("Strasse")
    assert file_stem("e\u0301") == file_stem("\u00e9")  # one name in two normal forms


def test_name_is_taken_once(store: PresetStore) -> None:
    mine = store.create("Caf\u00e9", SCENARIO)
    with pytest.raises(NameTaken) as taken:
        store.create(" Cafe\u0301 ", MODEL)
    assert taken.value.entry == mine
    other = store.create("Other", MODEL)
    with pytest.raises(NameTaken):
        store.update(other, name="Caf\u00e9")
    assert store.update(mine, name="Caf\u00e9").name == "Caf\u00e9"


def test_renamed_preset_keeps_its_key_and_its_old_name_is_free(store: PresetStore) -> None:
    first = store.create("A", SCENARIO)
    renamed = store.update(first, name="B")
    assert renamed.key == first.key
    assert names(store) == ["B"]
    again = store.create("A", MODEL)
    assert again.path != renamed.path
    assert names(store) == ["A", "B"]
    assert store.find(first.key) == renamed


def test_update_keeps_what_is_not_given(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO, "note", {"reserved": 1})
    edit(entry, future={"x": 1})
    entry = store.load(store.entries()[0]).entry
    other = replace(SCENARIO, "task", "inference")
    preset = store.load(store.update(entry, content=other)).preset
    assert (preset.name, preset.notes, preset.measured) == ("A", "note", {"reserved": 1})
    assert preset.content == other
    assert preset.unknown == {"future": {"x": 1}}


def test_change_by_another_program_is_noticed(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO)
    edit(entry, notes="theirs")
    with pytest.raises(PresetChanged, match="changed by another program") as changed:
        store.update(entry, content=MODEL)
    now = store.load(entry)
    assert now.preset.notes == "theirs"
    assert changed.value.entry == now.entry
    theirs = entry.path.read_bytes()
    saved = store.update(entry, content=MODEL, overwrite=True)
    assert store.load(saved).preset.content == MODEL
    assert [path.read_bytes() for path in store.trash.iterdir()] == [theirs]


def test_change_within_the_clock_tick_is_noticed(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO, "12")
    status = entry.path.stat()
    entry.path.write_bytes(entry.path.read_bytes().replace(b'"12"', b'"21"'))
    os.utime(entry.path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(PresetChanged):
        store.update(entry, name="B")


def test_touched_file_is_not_changed(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO)
    os.utime(entry.path, (1, 1))
    assert store.update(entry, name="B").name == "B"


def test_preset_deleted_by_another_program(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO)
    entry.path.unlink()
    with pytest.raises(PresetChanged, match="deleted by another program") as changed:
        store.update(entry, content=MODEL)
    assert changed.value.entry is None
    saved = store.update(entry, content=MODEL, overwrite=True)
    assert store.load(saved).preset.content == MODEL


def test_deleted_preset_comes_back_exactly(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO)
    entry.path.chmod(0o640)
    os.utime(entry.path, ns=(5_000, 7_000))
    before, data = entry.path.stat(), entry.path.read_bytes()
    deleted = store.delete(entry)
    assert store.entries() == ()
    assert store.restore(deleted) == entry
    after = entry.path.stat()
    assert entry.path.read_bytes() == data
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (
        before.st_mode,
        before.st_mtime_ns,
        before.st_ino,
    )
    assert files(store.folder) == [entry.path.name]


def test_restore_beside_a_preset_that_took_the_place(store: PresetStore) -> None:
    deleted = store.delete(store.create("A", SCENARIO))
    store.create("A", MODEL)
    back = store.restore(deleted)
    assert store.load(back).preset.content == SCENARIO
    assert names(store) == ["A", "A (2)"]  # one name for one preset


def test_restore_after_the_trash_was_emptied(store: PresetStore) -> None:
    deleted = store.delete(store.create("A", SCENARIO))
    deleted.trashed.unlink()
    assert store.load(store.restore(deleted)).preset.content == SCENARIO


def test_what_was_deleted_is_listed_and_brought_back_by_a_later_run(paths: AppPaths) -> None:
    today = datetime(2025, 3, 31, tzinfo=UTC)
    for days, name in ((3, "Older"), (2, "Newer")):
        before = PresetStore(paths, now=lambda days=days: today - timedelta(days=days))  # type: ignore[misc]
        before.delete(before.create(name, SCENARIO))
    later = PresetStore(paths, now=lambda: today)
    (later.trash / "not ours.txt").write_text("x")
    (later.trash / "20250331T000000.broken.memgui.json").write_text("{")
    assert [one.entry.name for one in later.deleted()] == ["broken", "Newer", "Older"]
    _, newer, _ = later.deleted()
    back = later.restore(newer)
    assert (back.name, back.path.parent) == ("Newer", later.folder)
    assert later.load(back).preset.content == SCENARIO
    assert [one.entry.name for one in later.deleted()] == ["broken", "Older"]
    with pytest.raises(FileFault):
        later.restore(newer)  # it is not there any more
    assert names(later) == ["Newer"]


def test_trash_is_emptied_after_a_month(paths: AppPaths) -> None:
    today = datetime(2025, 3, 31, tzinfo=UTC)
    store = PresetStore(paths, now=lambda: today - timedelta(days=31))
    old = store.delete(store.create("Old", SCENARIO))
    store = PresetStore(paths, now=lambda: today)
    new = store.delete(store.create("New", SCENARIO))
    (store.trash / "not ours.txt").write_text("x")
    store.start()
    assert not old.trashed.exists()
    assert sorted(store.trash.iterdir()) == sorted([new.trashed, store.trash / "not ours.txt"])


def test_duplicates_are_numbered(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO, "note")
    assert store.duplicate(entry).name == "A (2)"
    assert store.duplicate(store.duplicate(entry)).name == "A (4)"
    copy = store.duplicate(entry, "B")
    assert store.load(copy).preset.notes == "note"


def test_newer_preset_is_listed_and_left_alone(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO)
    edit(entry, schema=99, scenario={"other": 1}, name="From the future")
    data = entry.path.read_bytes()
    assert store.start() == ()
    (newer,) = store.entries()
    assert (newer.name, newer.state, newer.writable) == ("From the future", State.NEWER, False)
    assert newer.message is not None
    assert "newer memgui" in newer.message.text
    with pytest.raises(FileFault, match="newer memgui"):
        store.load(newer)
    with pytest.raises(NotWritable, match="newer memgui"):
        store.update(newer, content=SCENARIO, overwrite=True)
    with pytest.raises(NotWritable, match="newer memgui"):
        store.update(entry, content=SCENARIO, overwrite=True)
    assert entry.path.read_bytes() == data


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"format": "memgui.preset"}', b"[" * 100_000, b'{"a":' * 5000, b"null"],
)
def test_damaged_preset_is_set_aside_and_told(store: PresetStore, data: bytes) -> None:
    good = store.create("Good", SCENARIO)
    bad = store.folder / "bad.memgui.json"
    bad.write_bytes(data)
    assert {entry.state for entry in store.entries()} == {State.OK, State.DAMAGED}
    (told,) = store.start()
    assert store.entries() == (good,)
    (aside,) = store.quarantine.iterdir()
    assert aside.read_bytes() == data
    assert str(aside) in told.text
    assert aside.name.startswith("bad.2")
    assert store.start() == ()


def test_what_is_no_file_is_listed_as_such(store: PresetStore) -> None:
    store.create("Good", SCENARIO)
    (store.folder / "dir.memgui.json").mkdir()
    os.mkfifo(store.folder / "pipe.memgui.json")
    (store.folder / "loop.memgui.json").symlink_to("loop.memgui.json")
    (store.folder / "big.memgui.json").write_bytes(b"{}" * 2**20)
    assert store.start() == ()
    states = {entry.name: entry.state for entry in store.entries()}
    assert states == {
        "Good": State.OK,
        "dir": State.UNREADABLE,
        "pipe": State.UNREADABLE,
        "loop": State.UNREADABLE,
        "big": State.UNREADABLE,
    }
    assert all(entry.message for entry in store.entries() if entry.state is not State.OK)


def test_site_presets_are_read_only(paths: AppPaths, store: PresetStore) -> None:
    site = paths.site_presets[0]
    site.mkdir(parents=True)
    data = encode(Preset(name="Lab", content=SCENARIO))
    (site / "lab.memgui.json").write_bytes(data)
    (site / "bad.memgui.json").write_bytes(b"{")
    store.start()
    lab = next(entry for entry in store.entries() if entry.name == "Lab")
    assert (lab.layer, lab.writable) == (Layer.SITE, False)
    for change in (lambda: store.update(lab, name="Mine"), lambda: store.delete(lab)):
        with pytest.raises(NotWritable, match="for everyone"):
            change()
    copy = store.duplicate(lab)
    assert (copy.name, copy.layer) == ("Lab", Layer.USER)
    assert files(site) == ["bad.memgui.json", "lab.memgui.json"]


def test_export_and_import_of_one_and_of_many(store: PresetStore, paths: AppPaths, tmp_path: Path) -> None:
    one = store.create("One", SCENARIO, "note")
    two = store.create("Two", MODEL)
    store.export([one], tmp_path / "one.memgui.json")
    assert (tmp_path / "one.memgui.json").read_bytes() == one.path.read_bytes()
    store.export([one, two], tmp_path / "both.memgui.json")
    other = PresetStore(AppPaths.default(home=tmp_path / "other"))
    found = other.import_file(tmp_path / "both.memgui.json")
    assert not any(isinstance(item, FileFault) for item in found)
    assert names(other) == ["One", "Two"]
    other.import_file(tmp_path / "one.memgui.json")
    assert names(other) == ["One", "One (2)", "Two"]
    assert other.load(other.entries()[1]).preset.notes == "note"


def test_import_of_many_takes_what_is_sound(store: PresetStore, tmp_path: Path) -> None:
    store.export([store.create("A", SCENARIO), store.create("B", MODEL)], tmp_path / "x.json")
    many = json.loads((tmp_path / "x.json").read_text("utf-8"))
    many["presets"][0]["scenario"] = 5
    many["presets"].append(7)
    (tmp_path / "x.json").write_text(json.dumps(many))
    first, second, third = store.import_file(tmp_path / "x.json")
    assert isinstance(first, FileFault)
    assert "x.json[0]: scenario is 5" in str(first)
    assert isinstance(third, FileFault)
    assert not isinstance(second, FileFault)
    assert names(store) == ["A", "B", "B (2)"]


def test_shared_text_pastes_back(store: PresetStore) -> None:
    preset = store.load(store.create("模型", SCENARIO, "note")).preset
    text = share.to_text(preset)
    assert text.isascii()
    loaded = store.import_text(f"> {text[:50]}\n> {text[50:]}\n")
    assert loaded.preset.name == "模型 (2)"
    assert loaded.preset.content == SCENARIO
    assert loaded.preset.notes == "note"


def test_unchanged_files_are_not_read_again(store: PresetStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        store.create(f"P{number}", SCENARIO)
    store.entries()
    opened: list[object] = []
    real = os.open

    def counting(path: str, *rest: int) -> int:
        opened.append(path)
        return real(path, *rest)

    monkeypatch.setattr("os.open", counting)
    store.entries()
    assert opened == []
    store.update(store.entries()[1], name="Changed")
    opened.clear()
    assert names(store) == ["Changed", "P0", "P2"]
    assert len(opened) == 1


def test_folder_that_cannot_be_read_is_told(store: PresetStore, paths: AppPaths) -> None:
    assert store.start() == ()
    paths.config.mkdir(parents=True)
    store.folder.symlink_to(store.folder)
    (told,) = store.start()
    assert told.text == "presets is a loop of links that leads to no file."
    assert store.entries() == ()
    with pytest.raises(FileFault, match="cannot be written"):
        store.create("A", SCENARIO)


def test_file_of_an_older_schema_is_kept_before_it_is_rewritten(
    store: PresetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = store.create("A", SCENARIO)
    data = entry.path.read_bytes()
    monkeypatch.setattr("memgui.presets.store.SCHEMA", 2)
    store.update(entry, name="B")
    assert [path.read_bytes() for path in store.trash.iterdir()] == [data]


def test_presets_that_cannot_be_read_are_kept_however_many_and_old(store: PresetStore) -> None:
    store.folder.mkdir(parents=True)
    for number in range(120):
        path = store.folder / f"bad-{number}.memgui.json"
        path.write_text("no preset")
        os.utime(path, (number, number))
    assert len(store.start()) == 120
    assert len(store.start()) == 0
    assert len(list(store.quarantine.iterdir())) == 120
    assert {path.read_text() for path in store.quarantine.iterdir()} == {"no preset"}
