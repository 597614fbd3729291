"""Saving over a preset that another program changed: noticed, told, and done only when asked for."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from PySide6.QtWidgets import QApplication

from memgui.catalog import Catalog
from memgui.document.document import Document, State
from memgui.document.jobs import Jobs
from memgui.document.library import Library
from memgui.document.notice import Notice
from memgui.files.bounded import FileFault
from memgui.presets.entries import Entry
from memgui.presets.paths import AppPaths
from memgui.presets.settings import SettingsStore
from memgui.presets.store import PresetStore
from memgui.spec import QT_TRANSLATE_NOOP
from tests.document.fakes import Estimator, scenario


class Opened(NamedTuple):
    document: Document
    library: Library
    store: PresetStore
    told: list[Notice]
    paths: AppPaths

    def entry(self) -> Entry:
        (entry,) = self.library.presets()
        return entry

    def changed_by_another(self) -> None:
        envelope = json.loads(self.entry().path.read_text("utf-8"))
        self.entry().path.write_text(json.dumps({**envelope, "notes": "theirs"}), "utf-8")

    def notes(self) -> str:
        return self.store.load(self.entry()).preset.notes


@pytest.fixture
def opened(qapp: QApplication, tmp_path: Path) -> Iterator[Opened]:
    paths = AppPaths.default(home=tmp_path)
    first = scenario()
    document = Document(State(first, first.model), Estimator())
    jobs = Jobs()
    store = PresetStore(paths)
    library = Library(document, Catalog(), store, SettingsStore(paths.settings), jobs)
    told: list[Notice] = []
    library.told.connect(told.append)
    assert library.save_as("Mine")
    told.clear()
    yield Opened(document, library, store, told, paths)
    jobs.close()


def test_save_goes_over_what_this_window_wrote(opened: Opened) -> None:
    for length in (1024, 2048):
        opened.document.edit("training.sequence_length", length)
        assert opened.library.save()
        assert opened.store.load(opened.entry()).preset.content == opened.document.scenario


def test_change_by_another_program_is_told_and_overruled_only_when_asked(opened: Opened) -> None:
    opened.changed_by_another()
    opened.document.edit("training.sequence_length", 1024)
    assert opened.library.save()
    assert opened.notes() == "theirs"
    (notice,) = opened.told
    assert "changed by another program" in notice.message.text
    assert notice.action is not None
    notice.action()
    assert opened.store.load(opened.entry()).preset.content == opened.document.scenario


def test_change_is_still_noticed_after_the_list_was_read_and_the_preset_renamed(opened: Opened) -> None:
    opened.changed_by_another()
    assert opened.library.rename(opened.entry(), "Renamed")
    opened.library.save()
    assert opened.notes() == "theirs"
    opened.library.open_preset(opened.entry())
    opened.told.clear()
    opened.library.rename(opened.entry(), "Mine")
    opened.library.save()
    assert ["saved" in notice.message.text for notice in opened.told] == [True]


def test_change_between_two_runs_is_noticed(opened: Opened) -> None:
    key = opened.entry().key
    digest = opened.library.seen(key)
    opened.changed_by_another()
    opened.library.remember_seen(key, digest)
    opened.library.save()
    assert opened.notes() == "theirs"
    assert "changed by another program" in opened.told[0].message.text


def test_what_this_window_deleted_itself_is_nobody_elses_doing(opened: Opened) -> None:
    opened.library.look_again()
    opened.library.delete(opened.entry())
    (deleted,) = opened.told
    opened.library.look_again()
    assert opened.told == [deleted]
    assert deleted.action is not None
    deleted.action()
    opened.changed_by_another()
    opened.library.save()
    assert opened.notes() == "theirs"


def test_what_others_did_is_noticed_when_the_window_is_looked_at_again(opened: Opened) -> None:
    lists: list[None] = []
    opened.library.changed.connect(lambda: lists.append(None))
    opened.library.look_again()
    opened.library.look_again()
    assert (lists, opened.told) == ([], [])
    opened.changed_by_another()
    opened.document.edit("training.sequence_length", 1024)
    opened.library.look_again()
    opened.library.look_again()
    assert len(lists) == 1
    (notice,) = opened.told  # once
    assert "changed by another program" in notice.message.text
    assert notice.action is not None
    notice.action()
    assert opened.document.scenario.training.sequence_length != 1024
    opened.told.clear()
    opened.document.edit("training.sequence_length", 2048)
    opened.library.save()
    opened.library.look_again()
    assert ["saved" in notice.message.text for notice in opened.told] == [True]
    assert opened.notes() == "theirs"
    opened.told.clear()
    lists.clear()
    PresetStore(opened.paths).create("Another's", opened.document.scenario)
    opened.library.look_again()
    assert (len(lists), opened.told) == (1, [])
    opened.store.delete(next(entry for entry in opened.library.presets() if entry.name == "Mine"))
    opened.library.look_again()
    assert [notice.message.text for notice in opened.told] == [
        "“Mine” was deleted by another program since it was opened."
    ]
    opened.library.look_again()
    assert len(opened.told) == 1


def test_what_others_did_is_listed_at_the_first_look(opened: Opened) -> None:
    lists: list[int] = []
    opened.library.changed.connect(lambda: lists.append(len(opened.library.presets())))
    assert len(opened.library.presets()) == 1
    made = PresetStore(opened.paths).create("Another's", opened.document.scenario)
    opened.library.look_again()
    assert lists == [2]
    assert opened.library.save_as("One more")
    PresetStore(opened.paths).delete(made)
    opened.library.look_again()
    assert lists == [2, 3, 2]


def test_a_preset_never_goes_over_the_one_that_undo_passes(opened: Opened) -> None:
    """Ctrl+S saves what the person last saved to, however far they went back."""
    opened.document.edit("training.sequence_length", 1024)
    assert opened.library.save_as("Second")
    opened.document.undo_stack.undo()
    opened.document.edit("training.sequence_length", 2048)
    assert opened.library.save()
    lengths = {}
    for entry in opened.library.presets():
        kept = opened.library.scenario_of(entry)
        assert kept is not None
        lengths[entry.name] = kept.training.sequence_length
    assert lengths == {"Mine": 4096, "Second": 2048}


def test_what_another_window_kept_of_an_open_preset_tells_whether_it_is_changed(opened: Opened) -> None:
    """A start is told of the preset that was open: what is open may differ from it."""
    key, digest = opened.document.state.preset, opened.entry().digest
    edited = scenario(training__sequence_length=1024)
    document = Document(State(edited, edited.model, "Mine", key), Estimator())
    jobs = Jobs()
    library = Library(document, Catalog(), opened.store, SettingsStore(opened.paths.settings), jobs)
    marks = [document.is_modified]
    library.remember_seen(key, digest)
    marks.append(document.is_modified)
    document.edit("training.sequence_length", 4096)
    marks.append(document.is_modified)
    assert marks == [False, True, False]
    assert jobs.close()


def test_what_was_deleted_between_two_runs_is_open_no_more(opened: Opened) -> None:
    key, digest = opened.document.state.preset, opened.entry().digest
    opened.store.delete(opened.entry())
    document = Document(opened.document.state, Estimator())
    jobs = Jobs()
    library = Library(document, Catalog(), opened.store, SettingsStore(opened.paths.settings), jobs)
    assert document.state.name == "Mine"
    library.remember_seen(key, digest)
    assert (document.state.name, document.state.preset) == ("", "")
    assert document.scenario == opened.document.scenario
    assert jobs.close()


def test_deleted_presets_come_back_by_undo_whatever_was_said_since(opened: Opened) -> None:
    library, document = opened.library, opened.document

    def names() -> list[str]:
        return [entry.name for entry in library.presets()]

    document.edit("training.sequence_length", 1024)
    assert library.save_as("Second")
    for entry in library.presets():
        library.delete(entry)
    library.open_named("nothing of that name")
    assert names() == []
    document.undo_stack.undo()
    assert names() == ["Second"]
    document.undo_stack.undo()
    assert names() == ["Mine", "Second"]
    assert document.scenario.training.sequence_length == 1024
    assert library.open_entry() is not None  # still the open one, and saved over without a question
    assert library.save()
    assert "saved" in opened.told[-1].message.text
    document.undo_stack.redo()
    assert names() == ["Second"]
    document.undo_stack.undo()
    document.undo_stack.undo()
    assert document.scenario.training.sequence_length == 4096
    assert names() == ["Mine", "Second"]


def test_a_preset_that_is_deleted_is_open_no_more(opened: Opened) -> None:
    library, document = opened.library, opened.document

    def open_now() -> tuple[str, bool]:
        return document.state.name, bool(document.state.preset)

    heard: list[tuple[str, bool]] = []
    document.changed.connect(lambda: heard.append(open_now()))
    library.delete(opened.entry())
    assert heard[-1] == open_now() == ("", False)  # its title is the model's from now on
    marks = [document.is_modified]
    bring_back = opened.told[-1].action
    assert bring_back is not None
    bring_back()
    assert heard[-1] == open_now() == ("Mine", True)
    document.edit("training.sequence_length", 1024)
    marks.append(document.is_modified)
    assert marks == [False, True]
    document.undo_stack.undo()
    for _ in range(2):
        document.undo_stack.undo()
        document.undo_stack.redo()
        assert open_now() == ("", False)
        document.undo_stack.undo()
        assert open_now() == ("Mine", True)


def test_what_was_opened_since_stays_open_when_a_deleted_preset_comes_back(opened: Opened) -> None:
    document = opened.document
    library = opened.library
    library.delete(opened.entry())
    document.edit("training.sequence_length", 1024)
    assert library.save_as("Other")
    document.undo_stack.undo()
    document.undo_stack.undo()
    assert [entry.name for entry in library.presets()] == ["Mine", "Other"]
    assert document.state.name == "Other"
    document.undo_stack.redo()
    assert [entry.name for entry in library.presets()] == ["Other"]
    assert document.state.name == "Other"


def test_what_the_notice_brought_back_is_not_brought_back_twice(opened: Opened) -> None:
    opened.library.delete(opened.entry())
    bring_back = opened.told[-1].action
    assert bring_back is not None
    bring_back()
    assert opened.entry().name == "Mine"
    for _ in range(2):
        opened.document.undo_stack.undo()
        assert opened.entry().name == "Mine"
        opened.document.undo_stack.redo()
        assert opened.library.presets() == ()
    assert {notice.severity for notice in opened.told} == {"info"}


def test_what_a_full_disk_refuses_stays_open_and_is_tried_again(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened.document.edit("training.sequence_length", 2048)

    def full(*args: object, **more: object) -> None:
        raise FileFault("a", QT_TRANSLATE_NOOP("messages", "The disk is full."))

    with monkeypatch.context() as patch:
        patch.setattr("memgui.presets.store.write_atomic", full)
        assert opened.library.save()  # there is a preset to save over; that it failed is told
        assert not opened.library.save_as("Other")
    assert [one.message.text for one in opened.told] == [
        "“Mine” is not saved; the set-up stays open. The disk is full.",
        "“Other” is not saved; the set-up stays open. The disk is full.",
    ]
    assert opened.document.scenario.training.sequence_length == 2048
    for notice in tuple(opened.told):
        assert notice.action_text == "Try again"
        assert notice.action is not None
        notice.action()
    assert sorted(entry.name for entry in opened.library.presets()) == ["Mine", "Other"]
    assert opened.told[-1].message.text == "“Other” is saved."


def test_a_name_that_cannot_be_is_not_offered_again(opened: Opened) -> None:
    assert not opened.library.save_as(" ")
    assert opened.told[-1].action is None


def test_runs_that_cannot_be_read_are_told_when_their_preset_is_opened(opened: Opened) -> None:
    """They are kept, too: another version may have written them."""
    envelope = json.loads(opened.entry().path.read_text("utf-8"))
    runs = {"schema": 2, "measurements": [1]}
    opened.entry().path.write_text(json.dumps({**envelope, "measured": runs}), "utf-8")
    opened.library.open_preset(opened.entry())
    (notice,) = opened.told
    assert notice.severity == "warning"
    assert "What was measured cannot be read: measured.schema is not" in notice.details[-1].text
    assert opened.library.save()
    assert json.loads(opened.entry().path.read_text("utf-8"))["measured"] == runs
