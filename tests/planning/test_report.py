"""The report: one page in the person's words, whose figures are the estimate's, safe in every form."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.result import COMPONENTS
from memgui.planning.measured import Counter, from_plain, parse, typed
from memgui.planning.report import Picture, as_csv, as_json, html, markdown, page, verdict_line
from memgui.planning.words import English
from memgui.spec import Issue, Message, Scenario, replace

FIRST = Catalog().first_scenario()
SERVING = replace(FIRST, "task", "inference")
LORA = replace(replace(FIRST, "training.method", "lora"), "training.padding_mask", True)
NASTY = '<script>alert("x")</script> | `a` *b* [c](d) & \n# e'
SVG = Picture(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "svg", 'Pie "of" <8B>')


class Pseudo(English):
    """A language in which every translated text stands in brackets."""

    def translate(self, context: str, text: str) -> str:
        return f"«{text}»"

    def message(self, message: Message) -> str:
        return f"«{message.text}»"


class Reader(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize("scenario", [FIRST, SERVING, LORA], ids=["training", "inference", "lora"])
def test_the_breakdown_is_the_estimates(scenario: Scenario) -> None:
    found = estimate(scenario)
    made = page(found, English())
    top = [line for line in made.breakdown if len(line.path) == 1]
    assert [line.path[0] for line in top] == list(COMPONENTS)
    assert sum(line.bytes for line in top) == found.peak_bytes == made.total.bytes
    for line in top:
        assert line.bytes == found.component(line.path[0]).bytes
        below = [one for one in made.breakdown if one.path[:-1] == line.path]
        if below:
            assert sum(one.bytes for one in below) == line.bytes
    assert made.total.exact == f"{found.peak_bytes:,}"


def test_inputs_are_those_that_matter_and_are_unusual() -> None:
    listed = {fact.path for section in page(estimate(LORA), English()).inputs for fact in section.facts}
    assert {"training.method", "training.lora.rank", "training.padding_mask", "device.memory_bytes"} <= listed
    assert not {"inference.batch_size", "training.use_cache", "training.gradient_clipping"} & listed
    plain = {fact.path for section in page(estimate(FIRST), English()).inputs for fact in section.facts}
    assert "training.padding_mask" not in plain
    assert "training.lora.rank" not in plain


def test_every_text_is_in_the_persons_words() -> None:
    made = page(estimate(FIRST), Pseudo(), issues=[Issue("note", "x", (), Message("Odd."))])
    texts = [made.inputs_title, made.breakdown_title, made.measured_title, made.total.label, made.verdict]
    texts += [*made.heads, *made.measured_heads, *(listed.title for listed in made.lists)]
    texts += [fact.label for fact in made.facts]
    texts += [line.label for line in made.breakdown]
    texts += [sentence for listed in made.lists for sentence in listed.sentences]
    for section in made.inputs:
        texts += [section.title, *(fact.label for fact in section.facts)]
    assert [text for text in texts if "«" not in text] == []


def test_the_verdict_is_one_honest_line() -> None:
    found = estimate(FIRST)
    line = verdict_line(found, English())
    assert "\n" not in line
    for figure in (found.peak_bytes, found.low_bytes, found.high_bytes, found.verdict.capacity_bytes):
        assert English().size(figure) in line
    assert found.version in line
    assert FIRST.device.name in line
    assert FIRST.model.name in line
    tight = replace(FIRST, "training.sequence_length", 8192)
    assert "does not fit" in verdict_line(estimate(tight), English())
    assert " fits: " in verdict_line(estimate(SERVING), English())
    many = replace(SERVING, "inference.batch_size", 7)
    assert "7 × (4,096 + 512) tokens" in verdict_line(estimate(many), English())


def test_a_run_that_failed_needed_at_least_what_it_had() -> None:
    (failed,) = parse(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity "
        "of 79.19 GiB of which 1.05 GiB is free. Process 1 has 78.13 GiB memory in use. Of the "
        "allocated memory 75.02 GiB is allocated by PyTorch, and 2.55 GiB is reserved but unallocated."
    )
    made = page(estimate(FIRST), English(), measured=[failed])
    told = {line.label: line.measured for line in made.measured}
    assert told["Allocated"] == "≥ 75.02 GiB"
    assert told["Device"] == "79.19 GiB"
    assert "≥ 75.02 GiB" in markdown(made)


def test_notes_and_measurements_stand_on_the_page() -> None:
    found = estimate(FIRST)
    measured = [typed("80.00 GiB", Counter.RESERVED)]
    made = page(found, English(), notes="Ran on Monday.", measured=measured, made="memgui, today")
    (line,) = made.measured
    assert line.estimated_bytes == found.reserved_bytes
    assert line.measured_bytes == 80 * 2**30
    assert line.gap.startswith("+")
    for text in (markdown(made), html(made), as_csv(made)):
        assert "Ran on Monday." in text
        assert "80.00 GiB" in text
    assert "memgui, today" in html(made)
    answer = json.loads(as_json(found, name="A", measured=measured))
    assert from_plain(answer["measured"]) == tuple(measured)
    assert answer["device"]["peak_bytes"] == found.peak_bytes


def test_html_holds_everything_and_runs_nothing() -> None:
    scenario = replace(replace(FIRST, "model.name", NASTY), "device.name", NASTY)
    text = html(page(estimate(scenario), English(), name=NASTY, notes=NASTY, made=NASTY), SVG, "zh-CN")
    read = Reader(text)
    assert read.open == []
    assert not {"script", "iframe", "link", "object", "form"} & set(read.tags)
    assert read.handlers == []
    assert [address.partition(",")[0] for address in read.addresses] == ["data:image/svg+xml;base64"]
    assert '<html lang="zh-CN">' in text
    assert "default-src 'none'" in text
    assert sum(NASTY in one for one in read.texts) >= 3


def test_markdown_is_sound_whatever_is_named() -> None:
    scenario = replace(replace(FIRST, "model.name", NASTY), "device.name", NASTY)
    text = markdown(page(estimate(scenario), English(), name=NASTY, notes=NASTY))
    assert "<script" not in text
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}


def test_csv_is_read_back_and_starts_no_formula() -> None:
    found = estimate(FIRST)
    made = page(found, English(), name="=1+1", notes="@SUM(A1)")
    rows = list(csv.DictReader(io.StringIO(as_csv(made))))
    assert (
        sum(int(row["bytes"]) for row in rows if row["kind"] == "part" and "/" not in row["key"])
        == found.peak_bytes
    )
    assert next(row for row in rows if row["kind"] == "total")["bytes"] == str(found.peak_bytes)
    assert {row["key"] for row in rows if row["kind"] == "input"} >= {
        "training.sequence_length",
        "device.name",
    }
    for row in rows:
        for cell in row.values():
            assert cell[:1] not in ("=", "+", "-", "@")


def test_what_is_unknown_is_said() -> None:
    found = estimate(replace(replace(FIRST, "method", "detailed"), "model.layer_types", ("no_such_mixer",)))
    assert found.verdict.kind == "unknown"
    made = page(found, English())
    assert "unknown" in made.verdict
    assert html(made)
    assert markdown(made)
    assert as_csv(made)


@pytest.mark.parametrize("scenario", [FIRST, SERVING, LORA], ids=["training", "inference", "lora"])
def test_every_letter_of_its_formulas_is_explained(scenario: Scenario) -> None:
    made = page(estimate(scenario), English())
    (symbols,) = (listed.sentences for listed in made.lists if listed.title == "Symbols")
    explained = {sentence.partition(" = ")[0] for sentence in symbols}
    used = {name for line in made.breakdown for name in re.findall(r"[A-Za-z_]\w*", line.formula)}
    assert used
    assert used <= explained
    layers = f"L = {scenario.model.num_hidden_layers}: layers"
    assert any(one.startswith(layers) for one in symbols)


def test_a_letter_without_a_field_says_how_it_comes_about() -> None:
    made = page(estimate(replace(SERVING, "inference.engine", "vllm")), English())
    (symbols,) = (listed.sentences for listed in made.lists if listed.title == "Symbols")
    assert any(one.startswith("B = L·bs·K = ") for one in symbols)
    assert any(one.startswith("K = 2·k·d·2 = ") for one in symbols)


def test_a_letter_that_stands_for_several_says_where() -> None:
    entry = next(one for one in Catalog().models if one.name.endswith("DeepSeek-V3"))
    made = page(estimate(replace(SERVING, "model", entry.model)), English())
    (symbols,) = (listed.sentences for listed in made.lists if listed.title == "Symbols")
    layers = [one for one in symbols if one.startswith("L = ")]
    assert len(layers) > 1
    assert all(one.endswith(")") for one in layers)
    assert any("Feed-forward" in one for one in layers)


def test_without_assumptions_that_is_said() -> None:
    lists = {listed.title: listed.sentences for listed in page(estimate(FIRST), English()).lists}
    assert lists["Assumed"] == ("Nothing beyond the inputs above.",)
