"""The report of a model's file lasts as long as the model: in presets, shared texts and sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from memgui.presets import share
from memgui.presets.codec import Preset, decode, encode
from memgui.presets.reports import report_of
from memgui.presets.session import Session, SessionKeeper
from memgui.presets.store import PresetStore
from memgui.spec import NO_REPORT, ImportReport, Message
from tests.presets.conftest import MODEL, SCENARIO

REPORT = ImportReport(
    "config.json",
    ("hidden_size", "text_config.vocab_size"),
    (Message("{key} is not stated; {value} is assumed.", {"key": "head_dim", "value": 64}),),
    ("unheard_of",),
)
NESTED = ImportReport(
    assumed=(Message("{reason} It goes on.", {"reason": Message("{n} is odd.", {"n": 3})}),)
)
PRESET = Preset(name="A", content=SCENARIO, report=REPORT)


def test_a_report_says_all_of_it_line_by_line() -> None:
    assert [line.text for line in REPORT.lines] == [
        "Understood: hidden_size, text_config.vocab_size",
        "Assumed:",
        "head_dim is not stated; 64 is assumed.",
        "Ignored, because nothing here reads it: unheard_of",
    ]
    assert REPORT
    assert not NO_REPORT
    assert NO_REPORT.lines == ()


def test_presets_and_shared_texts_keep_it() -> None:
    assert decode(encode(PRESET), "a").preset.report == REPORT
    assert share.from_text(share.to_text(PRESET)).preset.report == REPORT
    again = decode(encode(Preset(name="A", content=SCENARIO, report=NESTED)), "a").preset.report
    assert again == NESTED
    assert again.assumed[0].text == "3 is odd. It goes on."
    assert "import_report" not in json.loads(encode(Preset(name="A", content=MODEL)))


def test_a_store_keeps_it_until_other_content_comes_with_another(store: PresetStore) -> None:
    entry = store.create("A", SCENARIO, report=REPORT)
    assert store.load(entry).preset.report == REPORT
    entry = store.update(entry, name="B")
    assert store.load(entry).preset.report == REPORT
    assert store.load(store.duplicate(entry)).preset.report == REPORT
    entry = store.update(entry, content=SCENARIO, report=NO_REPORT)
    assert store.load(entry).preset.report == NO_REPORT


def test_a_session_keeps_it(tmp_path: Path) -> None:
    for end in ("close", "crash"):
        keeper = SessionKeeper(tmp_path / end)
        keeper.start()
        keeper.write(Session(scenario=SCENARIO, report=REPORT))
        if end == "close":
            keeper.close(Session(scenario=SCENARIO, report=REPORT))
        else:
            assert keeper._lock is not None
            keeper._lock.close()
        later = SessionKeeper(tmp_path / end)
        found = later.start()
        later.close()
        assert found.session is not None
        assert found.session.report == REPORT
        assert found.issues == ()


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        "text",
        [],
        {"file": 1},
        {"file": "x" * 20_000},
        {"understood": "hidden_size"},
        {"understood": ["x" * 20_000]},
        {"unnamed": -1},
        {"understood": ["x"] * 2000},
        {"assumed": [1]},
        {"assumed": [{"args": {}}]},
        {"assumed": [{"template": "{x}", "args": {"x": [1]}}]},
        {"assumed": [{"template": "{x}"}]},
        {"assumed": [{"template": "{x:1000000000}", "args": {"x": 1}}]},
        {"assumed": [{"template": "{x!r}", "args": {"x": 1}}]},
        {"assumed": [{"template": "{x.__class__.__mro__}", "args": {"x": 1}}]},
        {"assumed": [{"template": "{x.y}", "args": {"x.y": 1}}]},
        {"assumed": [{"template": "{0}", "args": {"0": 1}}]},
        {"assumed": [{"template": "{x", "args": {"x": 1}}]},
        {"assumed": [{"template": "}", "args": {}}]},
        {"assumed": [{"template": "{x}{x}", "args": {"x": "a" * 10_000}}]},
        {"assumed": [{"template": "{x}", "args": {"x": {"template": "{y:9999}", "args": {"y": 1}}}}]},
        {"assumed": [{"template": "{x}", "args": {"x": {"args": {}}}}]},
    ],
)
def test_a_report_that_is_none_costs_only_itself(wrong: Any) -> None:
    envelope = json.loads(encode(PRESET)) | {"import_report": wrong}
    decoded = decode(json.dumps(envelope).encode(), "a.memgui.json")
    assert decoded.preset.report == NO_REPORT
    assert decoded.preset.content == SCENARIO
    assert [issue.paths for issue in decoded.issues] == [("import_report",)]
    assert "is not as memgui writes it and is left out" in decoded.issues[0].text
    assert decoded.issues[0].text.isprintable()


def test_what_a_stranger_says_stays_on_its_line() -> None:
    sent = {
        "file": "a\nb",
        "ignored": ["\u202ex"],
        "assumed": [{"template": "a\nb {x}", "args": {"x": "c\nd"}}],
    }
    report = report_of(sent)
    assert report.file == "a\\nb"
    assert all("\n" not in line.text and "\u202e" not in line.text for line in report.lines)
