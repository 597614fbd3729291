import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.library import Library
from memgui.document.notice import Notice
from memgui.planning import opening
from memgui.presets import share
from memgui.presets.codec import Preset
from memgui.presets.paths import AppPaths
from memgui.presets.settings import SettingsStore
from memgui.presets.store import PresetStore
from tests.document.fakes import LLAMA, Estimator, scenario

LENGTH = "training.sequence_length"
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128_256,
    "max_position_embeddings": 131_072,
    "tie_word_embeddings": True,
}


class House(NamedTuple):
    document: Document
    library: Library
    told: list[Notice]
    jobs: Jobs


@pytest.fixture
def paths(tmp_path: Path) -> AppPaths:
    return AppPaths.default(home=tmp_path / "home")


def make(paths: AppPaths) -> House:
    document = Document(scenario(), Estimator())
    jobs = Jobs()
    library = Library(document, Catalog(), PresetStore(paths), SettingsStore(paths.settings), jobs)
    told: list[Notice] = []
    library.told.connect(told.append)
    return House(document, library, told, jobs)


@pytest.fixture
def house(qapp: QApplication, paths: AppPaths) -> Iterator[House]:
    made = make(paths)
    yield made
    made.document.settle()
    assert made.jobs.close()


def config(folder: Path, **more: object) -> Path:
    path = folder / "Small-1B" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**CONFIG, **more}), "utf-8")
    return path


@pytest.mark.parametrize("by", ["name", "preset", "text"])
def test_what_was_asked_for_last_is_open_and_no_file_that_took_longer(
    house: House, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    library, document = house.library, house.document
    assert library.save_as("Mine")
    (entry,) = library.presets()
    shared = library.shared_text()
    begun, go_on = threading.Event(), threading.Event()

    path = config(tmp_path)
    real = opening.opened_path

    def slow(*asked: Any) -> opening.Opened:
        begun.set()
        go_on.wait(5)
        return real(*asked)

    with monkeypatch.context() as patch:
        patch.setattr(opening, "opened_path", slow)
        library.open_path(path)
        assert begun.wait(5)
        if by == "name":
            library.open_named("gpt2")
        elif by == "preset":
            library.open_preset(entry)
        else:
            library.open_text(shared)
        model = document.scenario.model.name
        go_on.set()
        qtbot.wait(100)
    assert document.scenario.model.name == model != "Small-1B"
    library.open_path(path)  # the next one is read as ever
    qtbot.waitUntil(lambda: document.scenario.model.name == "Small-1B")


def test_a_config_is_opened_aside_and_can_be_undone(house: House, tmp_path: Path, qtbot: QtBot) -> None:
    path = config(tmp_path)
    house.library.open_path(path)
    assert house.document.scenario.model == LLAMA
    qtbot.waitUntil(lambda: house.document.scenario.model.hidden_size == 2048)
    assert house.document.scenario.model.name == "Small-1B"
    assert house.library.recent_files() == (str(path),)
    assert not house.document.is_changed("model.hidden_size")
    house.document.undo_stack.undo()
    assert house.document.scenario == scenario()


def test_the_report_of_a_file_stays_with_its_model(house: House, tmp_path: Path, qtbot: QtBot) -> None:
    document, library = house.document, house.library
    assert not document.settle().report
    library.open_path(config(tmp_path, unheard_of=3))
    qtbot.waitUntil(lambda: document.scenario.model.hidden_size == 2048)
    report = document.settle().report
    assert report.file == "config.json"
    assert "hidden_size" in report.understood
    assert report.ignored == ("unheard_of",)
    assert any("attention_bias is not stated" in line.text for line in report.assumed)
    document.edit(LENGTH, 77)
    document.edit("model.hidden_size", 4096)  # the person's own change of what was read
    assert document.settle().report == report
    assert library.save_as("Mine")
    library.use_entry(library.catalog.models[0])
    assert not document.settle().report
    document.undo_stack.undo()
    assert document.settle().report == report
    document.undo_stack.redo()
    library.open_preset(library.presets()[0])
    assert document.settle().report == report
    library.use_entry(library.catalog.models[0])
    library.save()
    library.open_preset(library.presets()[0])
    assert not document.settle().report  # the preset is of another model now
    assert library.open_text(share.to_text(Preset(name="A", content=document.scenario.model, report=report)))
    assert document.settle().report == report


@pytest.mark.parametrize("kind", ["missing", "folder", "broken", "absurd", "no object"])
def test_a_bad_file_is_one_sentence_and_changes_nothing(
    house: House, tmp_path: Path, qtbot: QtBot, kind: str
) -> None:
    path = config(tmp_path, **({"hidden_size": -1} if kind == "absurd" else {}))
    if kind == "missing":
        path.unlink()
    elif kind == "folder":
        path = tmp_path / "empty"
        path.mkdir()
    elif kind in ("broken", "no object"):
        path.write_text("{" if kind == "broken" else "[1]", "utf-8")
    house.library.open_path(path)
    qtbot.waitUntil(lambda: len(house.told) == 1)
    (notice,) = house.told
    assert notice.severity == "error"
    assert len(notice.message.text.splitlines()) == 1
    assert path.name in notice.message.text
    assert house.document.scenario == scenario()
    assert house.document.undo_stack.count() == 0
    assert house.library.recent_files() == ()


def test_a_preset_is_saved_reopened_renamed_deleted_and_brought_back(house: House) -> None:
    house.document.edit(LENGTH, 8192)
    assert not house.library.save()  # there is none to save over
    assert house.library.save_as("Long")
    assert not house.document.is_modified
    assert house.document.state.name == "Long"
    house.document.edit(LENGTH, 1)
    (entry,) = house.library.presets()
    house.library.open_preset(entry)
    assert house.document.scenario.training.sequence_length == 8192
    assert house.library.rename(entry, "Longer")
    (entry,) = house.library.presets()
    assert (entry.name, house.document.state.name) == ("Longer", "Longer")
    copy = house.library.duplicate(entry)
    assert copy is not None
    house.library.delete(entry)
    assert [one.name for one in house.library.presets()] == [copy.name]
    undo = house.told[-1].action
    assert undo is not None
    undo()
    assert {one.name for one in house.library.presets()} == {"Longer", copy.name}


def test_a_name_that_is_taken_offers_to_replace(house: House) -> None:
    assert house.library.save_as("Mine")
    house.document.edit(LENGTH, 8)
    assert not house.library.save_as("Mine")
    replace = house.told[-1].action
    assert replace is not None
    replace()
    (entry,) = house.library.presets()
    house.document.edit(LENGTH, 16)
    house.library.open_preset(entry)
    assert house.document.scenario.training.sequence_length == 8


def test_a_model_profile_goes_into_the_open_set_up(house: House) -> None:
    assert house.library.save_as("My model", model_only=True)
    assert house.document.state.preset == ""
    house.document.edit(LENGTH, 8)
    house.document.edit("model.hidden_size", 8192)
    (entry,) = house.library.presets()
    house.library.open_preset(entry)
    assert house.document.scenario.model == LLAMA
    assert house.document.scenario.training.sequence_length == 8


def test_a_built_in_model_is_taken_by_any_case_of_its_name(house: House) -> None:
    entry = house.library.catalog.search("qwen2.5-7b")[0]
    house.library.open_named(entry.title.upper())
    assert house.document.scenario.model == entry.model
    house.library.open_named("no such model at all")
    assert house.told[-1].severity == "error"
    house.library.open_named("google/gemma-2-9b-it")
    assert house.document.scenario.model.name == "gemma-2-9b"
    assert house.told[-1].severity == "info"
    assert "google/gemma-2-9b-it is not built in: google/gemma-2-9b is taken" in house.told[-1].message.text


def test_a_shared_text_opens_what_was_copied(house: House) -> None:
    house.document.edit(LENGTH, 12_345)
    text = house.library.shared_text()
    house.document.undo_stack.undo()
    assert house.library.open_text(text)
    assert house.document.scenario.training.sequence_length == 12_345
    assert not house.library.open_text("just words")
    assert house.library.open_text(text[:-20])
    assert house.told[-1].severity == "error"


def test_presets_go_out_and_in(house: House, tmp_path: Path) -> None:
    assert house.library.save_as("Mine")
    (entry,) = house.library.presets()
    file = tmp_path / "out.memgui.json"
    house.library.export([entry], file)
    house.library.import_file(file)
    assert len(house.library.presets()) == 2
    house.library.import_file(tmp_path / "nothing.json")
    assert house.told[-1].severity == "error"


def test_a_read_only_folder_loses_nothing(house: House, paths: AppPaths) -> None:
    paths.presets.parent.mkdir(parents=True)
    paths.presets.write_text("a file where the folder should be", "utf-8")
    house.document.edit(LENGTH, 8)
    assert not house.library.save_as("Mine")
    assert house.told[-1].severity == "error"
    assert house.document.scenario.training.sequence_length == 8
    assert house.document.undo_stack.canUndo()


def test_settings_and_recent_files_survive(
    house: House, paths: AppPaths, tmp_path: Path, qtbot: QtBot
) -> None:
    path = config(tmp_path)
    house.library.change_settings(units="GB", theme="dark")
    house.library.open_path(path)
    qtbot.waitUntil(lambda: house.library.recent_files() != ())
    again = make(paths)
    assert (again.library.settings.units, again.library.settings.theme) == ("GB", "dark")
    assert again.library.recent_files() == (str(path),)
    again.library.forget(str(path))
    assert make(paths).library.recent_files() == ()


def test_a_length_cut_for_one_model_comes_back_with_the_next(house: House) -> None:
    house.document.edit("training.sequence_length", 4096)
    house.library.open_named("gpt2")
    assert house.document.scenario.training.sequence_length == 1024
    house.library.open_named("llama-3.1-8b")
    assert house.document.scenario.training.sequence_length == 4096
    house.document.undo_stack.undo()
    assert house.document.scenario.training.sequence_length == 1024
    house.document.edit("training.sequence_length", 512)  # chosen for this model: it stays
    house.library.open_named("llama-3.1-8b")
    assert house.document.scenario.training.sequence_length == 512


def test_adapters_go_on_layers_of_the_open_model_in_the_step_that_opens_it(house: House) -> None:
    document, path = house.document, "training.lora.target_modules"
    document.edit("training.method", "lora")
    house.library.open_named("deepseek-v3")
    latent = document.scenario.training.lora.target_modules
    assert "kv_b_proj" in latent
    assert "v_proj" not in latent
    assert path in house.told[-1].message.text  # in the sentence: the set-up is another one
    assert house.told[-1].details == ()
    assert (document.default(path), document.is_changed(path)) == (latent, False)
    document.undo_stack.undo()
    assert document.scenario == scenario(training__method="lora")
    document.edit(path, ("o_proj",))  # chosen: it stays
    house.library.open_named("deepseek-v3")
    assert document.scenario.training.lora.target_modules == ("o_proj",)
    assert (document.default(path), document.is_changed(path)) == (latent, True)


def test_a_length_that_was_cut_is_said_in_the_sentence_itself(house: House) -> None:
    house.document.edit("training.sequence_length", 4096)
    house.library.open_named("gpt2")
    (notice,) = house.told
    assert notice.message.text.endswith(
        "is open. training.sequence_length is 1,024: the model has positions for 1,024 tokens only."
    )


def test_a_folder_whose_name_is_no_text_is_opened_and_not_remembered(
    house: House, tmp_path: Path, qtbot: QtBot
) -> None:
    name = os.fsdecode(b"not\xff text\n")
    try:
        (tmp_path / name).mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    path = tmp_path / name / "config.json"
    path.write_text(json.dumps(CONFIG), "utf-8")
    house.library.open_path(path)
    qtbot.waitUntil(lambda: house.document.scenario.model.hidden_size == 2048)
    assert [notice.severity for notice in house.told] == ["info"]
    assert house.document.scenario.model.name == "not\\udcff text\\n"
    assert house.library.recent_files() == ()
    assert house.library.settings.folder == ""


def test_a_format_that_came_with_a_file_goes_with_its_model(
    house: House, tmp_path: Path, qtbot: QtBot
) -> None:
    block = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    file = tmp_path / "Packed" / "config.json"
    file.parent.mkdir()
    file.write_text(json.dumps({**CONFIG, "quantization_config": block}), "utf-8")

    def formats() -> tuple[str, str]:
        scenario = house.document.scenario
        return scenario.inference.weight_format, scenario.training.base_format

    asked = formats()
    house.library.open_path(file)
    qtbot.waitUntil(lambda: formats() == ("int8", "int8"))
    house.library.open_named("qwen3-8b")
    assert formats() == asked
    house.document.undo_stack.undo()
    assert formats() == ("int8", "int8")
    house.document.edit("training.base_format", "nf4")
    house.library.open_named("qwen3-8b")
    assert formats() == (asked[0], "nf4")
