"""Presets as bytes: exact when sound, one field lost for one bad field, refused in one sentence otherwise."""

import base64
import json
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.files.bounded import FileFault
from memgui.presets import share
from memgui.presets.codec import (
    FORMAT,
    MAX_BYTES,
    NewerSchema,
    Preset,
    decode,
    decode_many,
    encode,
    encode_many,
)
from memgui.presets.fields import _TYPICAL
from memgui.presets.migrate import SCHEMA, STEPS, Envelope, migrate
from memgui.spec import Inference, Lora, ModelSpec, Parallelism, Scenario, Training, get, one_line, replace
from memgui.spec.fields import FIELDS, Field, Kind
from tests.presets.conftest import MODEL, SCENARIO

FIXTURES = Path(__file__).parent / "fixtures"
NAME = "x.memgui.json"
SOUND = json.loads(encode(Preset(name="A", content=SCENARIO)))


def values(field: Field) -> st.SearchStrategy[Any]:
    """Every value that the field takes."""
    low, high = field.minimum or 0, field.maximum if field.maximum is not None else 10**12
    choices = [choice.value for choice in field.choices]
    found: st.SearchStrategy[Any]
    match field.kind:
        case Kind.FLAG:
            found = st.booleans()
        case Kind.CHOICE:
            found = st.sampled_from(choices)
        case Kind.CHOICES:
            found = st.lists(st.sampled_from(choices), max_size=5).map(tuple)
        case Kind.TEXT:
            found = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(one_line)
        case Kind.RATIO:
            found = st.floats(low, high)
        case _:
            found = st.integers(int(low), int(high))
    return st.none() | found if field.optional else found


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    scenario = SCENARIO
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=20, unique=True)):
        scenario = replace(scenario, field.path, draw(values(field)))
    return scenario


@given(
    scenarios(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200), st.booleans()
)
def test_what_is_encoded_is_decoded(scenario: Scenario, name: str, alone: bool) -> None:
    preset = Preset(
        name=name.strip() or "A", content=scenario.model if alone else scenario, app="0", saved="s"
    )
    decoded = decode(encode(preset), NAME)
    assert decoded.issues == ()
    assert decoded.preset == preset
    assert share.from_text(share.to_text(preset)) == decoded


def put(envelope: dict[str, Any], path: str, value: object) -> bytes:
    """The file of ``envelope`` with ``value`` in the field at ``path``."""
    envelope = json.loads(json.dumps(envelope))
    *folders, last = ["scenario", *path.split(".")]
    node = envelope
    for name in folders:
        node = node[name]
    node[last] = value
    return json.dumps(envelope).encode()


def outside(field: Field) -> list[object]:
    """Values of the right type that the field refuses."""
    if field.kind in (Kind.CHOICE, Kind.CHOICES) and not field.open_choices:
        return ["nonsense" if field.kind is Kind.CHOICE else ["nonsense"]]
    limits = [] if field.minimum is None else [field.minimum - 1]
    return [*limits, *([] if field.maximum is None else [field.maximum + 1])]


WRONG: dict[Kind, list[object]] = {
    Kind.FLAG: [1, "true", []],
    Kind.CHOICE: [1, {}, ["bf16"]],
    Kind.CHOICES: [1, "q_proj", [1], [None], {"a": 1}],
    Kind.TEXT: [1, [], {}],
    Kind.RATIO: ["0.5", True, [0.5]],
    Kind.COUNT: ["1", 1.5, 4.0, True, [1], {"a": 1}, 1e300],
    Kind.TOKENS: ["1k", 1.5, False],
    Kind.BYTES: ["24 GiB", 0.5],
}


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: str(field.path))
def test_bad_field_costs_that_field_only(field: Field) -> None:
    for value in (*WRONG[field.kind], *outside(field), *([] if field.optional else [None])):
        decoded = decode(put(SOUND, field.path, value), NAME)
        (issue,) = decoded.issues
        assert (issue.severity, issue.code, issue.paths) == ("warning", "bad_value", (field.path,))
        assert field.path in issue.text
        scenario = decoded.preset.content
        assert isinstance(scenario, Scenario)
        taken = get(scenario, field.path)
        assert scenario == replace(SCENARIO, field.path, taken)
        assert taken == instead(field)


def instead(field: Field) -> object:
    """What stands in for a field of ``SOUND`` that is bad."""
    name = field.path.removeprefix("model.")
    if name in _TYPICAL:
        return _TYPICAL[name]
    if name in ("num_key_value_heads", "head_dim"):
        return {"num_key_value_heads": 32, "head_dim": 64}[name]
    return get(Scenario(model=ModelSpec(**_TYPICAL, num_key_value_heads=1, head_dim=1)), field.path)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: str(field.path))
def test_absent_field_has_its_default(field: Field) -> None:
    envelope = json.loads(json.dumps(SOUND))
    *folders, last = ["scenario", *field.path.split(".")]
    node = envelope
    for name in folders:
        node = node[name]
    del node[last]
    decoded = decode(json.dumps(envelope).encode(), NAME)
    needed = field.path in {f"model.{row.name}" for row in msgspec.structs.fields(ModelSpec) if row.required}
    assert [issue.code for issue in decoded.issues] == ["missing_value"] * needed
    content = decoded.preset.content
    assert isinstance(content, Scenario)
    assert content == replace(SCENARIO, field.path, get(content, field.path))


def test_every_dimension_without_default_has_something_to_stand_in() -> None:
    needed = {row.name for row in msgspec.structs.fields(ModelSpec) if row.required}
    assert needed == {*_TYPICAL, "num_key_value_heads", "head_dim"}


@pytest.mark.parametrize("part", ["training", "training.lora", "inference", "parallelism", "device"])
@pytest.mark.parametrize("value", [None, 1, "x", [1], [{}]])
def test_bad_group_costs_that_group_only(part: str, value: object) -> None:
    decoded = decode(put(SOUND, part, value), NAME)
    assert [issue.paths for issue in decoded.issues] == [(part,)]
    content = decoded.preset.content
    assert isinstance(content, Scenario)
    defaults = {
        "training": Training(),
        "training.lora": Lora(),
        "inference": Inference(),
        "parallelism": Parallelism(),
    }
    assert get(content, part) == defaults.get(part, SCENARIO.device)


def test_unknown_keys_are_told_kept_and_written_again() -> None:
    envelope = json.loads(json.dumps(SOUND))
    envelope["colour"] = {"red": [1, 2.5, None, True, "é"]}
    envelope["scenario"]["weather"] = "fine"
    envelope["scenario"]["training"]["lora"]["alpha"] = 16
    envelope["scenario"]["model"]["rope_theta"] = 1e6
    decoded = decode(json.dumps(envelope).encode(), NAME)
    assert decoded.preset.content == SCENARIO
    assert {issue.paths for issue in decoded.issues} == {
        ("colour",),
        ("weather",),
        ("training.lora.alpha",),
        ("model.rope_theta",),
    }
    assert {issue.severity for issue in decoded.issues} == {"note"}
    again = json.loads(encode(decoded.preset))
    assert again == envelope
    # A field that is known now wins over the same key kept from a time when it was not.
    moved = msgspec.structs.replace(
        decoded.preset, unknown={"scenario": {"task": "x", "model": {"head_dim": 1}}}
    )
    assert decode(encode(moved), NAME).preset.content == SCENARIO


def test_thousands_of_unknown_keys_are_a_screenful_of_issues() -> None:
    envelope = {**SOUND, **{f"k{number}": number for number in range(5000)}}
    decoded = decode(json.dumps(envelope).encode(), NAME)
    assert len(decoded.issues) == 51
    assert "4,950 more" in decoded.issues[-1].text
    assert len(decoded.preset.unknown) == 5000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "memgui.session"}, 'no preset of memgui: format is "memgui.session"'),
        ({"format": None}, "no preset of memgui"),
        ({"schema": "1"}, 'schema is "1"; a whole number from 1'),
        ({"schema": True}, "schema is true"),
        ({"schema": 1.0}, "schema is 1.0"),
        ({"schema": 0}, "schema is 0"),
        ({"kind": "both"}, 'kind is "both"; allowed: scenario, model'),
        ({"kind": ["model"]}, "kind is"),
        ({"kind": "model"}, "model is null; an object"),
        ({"scenario": []}, "scenario is []; an object"),
        ({"scenario": {}}, "model is null; an object"),
        ({"scenario": {"model": 3}}, "model is 3; an object"),
        ({"scenario": {"model": {}}}, "neither model.hidden_size nor model.num_hidden_layers"),
        ({"scenario": {"model": {"hidden_size": "1"}}}, "neither model.hidden_size"),
    ],
)
def test_what_is_no_preset_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(FileFault) as fault:
        decode(json.dumps({**SOUND, **change}).encode(), NAME)
    assert NAME in str(fault.value)
    assert said in str(fault.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"[" * 10_000, "nested"),
        (b'{"format": "memgui.preset", "schema": NaN}', "no finite number"),
        (b'{"format": "memgui.preset", "format": "memgui.preset"}', "stands twice"),
        (b'{"schema": ' + b"9" * 10_000 + b"}", "digits"),
        (b" " * (MAX_BYTES + 1), "at most 1,048,576"),
        (b"[" + b"1," * 400_000 + b"1]", "values"),
        (b'"' + b"\xff" * 10 + b'"', "not UTF-8"),
        (b"\x1f\x8b\x08", "not UTF-8"),
        (b"1", "at its top"),
    ],
)
def test_bytes_that_are_no_preset(data: bytes, said: str) -> None:
    with pytest.raises(FileFault, match=said):
        decode(data, NAME)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"name": 5}, "x"), ({"name": " "}, "x"), ({"name": "x" * 201}, "x"), ({"name": None}, "x")],
)
def test_bad_name_costs_the_name_only(change: dict[str, object], name: str) -> None:
    decoded = decode(json.dumps({**SOUND, **change}).encode(), NAME)
    assert (decoded.preset.name, decoded.preset.content) == (name, SCENARIO)
    assert [issue.paths for issue in decoded.issues] == [("name",)]


def test_newer_schema_is_refused_by_its_own_fault() -> None:
    with pytest.raises(NewerSchema, match=f"schema {SCHEMA + 1}, this one reads up to {SCHEMA}"):
        decode(json.dumps({**SOUND, "schema": SCHEMA + 1, "scenario": 5}).encode(), NAME)


@pytest.mark.parametrize("schema", range(1, SCHEMA + 1))
def test_every_schema_is_still_read(schema: int) -> None:
    """Fixtures of a schema that was released are never changed: a migration is added instead."""
    fixtures = sorted((FIXTURES / f"schema{schema}").glob("*.memgui.json"))
    assert fixtures
    for path in fixtures:
        decoded = decode(path.read_bytes(), path.name)
        assert decoded.issues == ()
        assert decoded.schema == schema
        envelope = migrate(json.loads(path.read_bytes()), schema)
        written = json.loads(encode(decoded.preset))
        assert contains(written, {**envelope, "schema": SCHEMA}), path


def contains(whole: object, part: object) -> bool:
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and contains(whole[key], part[key]) for key in part)
    return whole == part


def from_first(envelope: Envelope) -> Envelope:
    """Schema 1 of this test called the micro batch ``batch`` and stood it beside the task."""
    scenario = dict(envelope["scenario"])
    batch = scenario.pop("batch")
    return {**envelope, "scenario": {**scenario, "training": {"micro_batch_size": batch}}}


def from_second(envelope: Envelope) -> Envelope:
    return {**envelope, "notes": envelope["notes"] + "!"}


def test_older_schemas_go_through_every_step_from_theirs_on() -> None:
    steps = (from_first, from_second)
    scenario = {"model": SOUND["scenario"]["model"], "batch": 7}
    first = {"format": FORMAT, "schema": 1, "name": "A", "notes": "n", "scenario": scenario}
    decoded = decode(json.dumps(first).encode(), NAME, steps)
    assert isinstance(decoded.preset.content, Scenario)
    assert decoded.preset.content.training.micro_batch_size == 7
    assert (decoded.preset.notes, decoded.schema, decoded.issues) == ("n!", 1, ())
    assert first["scenario"] == {"model": SOUND["scenario"]["model"], "batch": 7}
    second = {**SOUND, "schema": 2, "notes": "n"}
    assert decode(json.dumps(second).encode(), NAME, steps).preset.notes == "n!"
    third = {**SOUND, "schema": 3, "notes": "n"}
    assert decode(json.dumps(third).encode(), NAME, steps).preset.notes == "n"
    with pytest.raises(NewerSchema):
        decode(json.dumps({**SOUND, "schema": 4}).encode(), NAME, steps)
    assert len(STEPS) + 1 == SCHEMA


def test_many_in_one_file() -> None:
    presets = [Preset(name="A", content=SCENARIO, app="0"), Preset(name="B", content=MODEL, app="0")]
    found = decode_many(encode_many(presets), NAME)
    assert [item.preset for item in found if not isinstance(item, FileFault)] == presets
    with pytest.raises(FileFault, match="holds several presets: File, Import presets takes it"):
        decode(encode_many(presets), NAME)
    (alone,) = decode_many(encode(presets[0]), NAME)
    assert not isinstance(alone, FileFault)
    assert alone.preset == presets[0]
    with pytest.raises(FileFault, match="at most 1,000 values"):
        decode_many(
            json.dumps({"format": "memgui.presets", "schema": 1, "presets": [1] * 1001}).encode(), NAME
        )


def test_value_that_json_has_not_is_refused_when_saved() -> None:
    broken = replace(SCENARIO, "inference.gpu_memory_utilization", float("nan"))
    with pytest.raises(FileFault, match="cannot be saved"):
        encode(Preset(name="A", content=broken))


def bomb(size: int) -> str:
    packed = zlib.compress(b'{"a": "' + b" " * size + b'"}', 9)
    return share.PREFIX + base64.urlsafe_b64encode(packed).decode()


TEXT = share.to_text(Preset(name="A", content=SCENARIO))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no shared preset"),
        ("memgui2:" + TEXT[8:], "no shared preset"),
        ("memgui1:", "damaged"),
        (TEXT[:-1], "damaged"),
        (TEXT[:100], "damaged"),
        (TEXT[:60] + ("B" if TEXT[60] == "A" else "A") + TEXT[61:], "damaged"),
        (TEXT + "AAAA", "damaged"),
        (TEXT.replace("memgui1:", "memgui1:é"), "damaged"),
        ("memgui1:" + "A" * 600_000, "has 600,008 characters"),
        (bomb(2**20), "at most 1,048,576"),
        (bomb(2**28), "at most 1,048,576"),
        (bomb(100), "no preset of memgui"),
    ],
    ids=range(12),
)
def test_text_that_is_no_shared_preset(text: str, said: str) -> None:
    with pytest.raises(FileFault, match=said):
        share.from_text(text)


@pytest.mark.parametrize("wrap", ["{}", " {}\n", "> {}", '"{}"', "<{}>", "`{}`"])
def test_shared_text_in_the_wrappings_of_chats_and_mails(wrap: str) -> None:
    wrapped = wrap.format(TEXT[:40] + "\r\n" + TEXT[40:])
    assert share.is_text(wrapped)
    assert share.from_text(wrapped).preset.content == SCENARIO


def test_texts_that_break_their_line_are_written_out_and_told() -> None:
    envelope = json.loads(json.dumps(SOUND))
    envelope["scenario"]["model"]["name"] = "a\nb\u202ec"
    envelope["scenario"]["device"]["name"] = "\x1b[31mred"
    decoded = decode(json.dumps(envelope).encode(), NAME)
    assert isinstance(decoded.preset.content, Scenario)
    assert decoded.preset.content.model.name == "a\\nb\\u202ec"
    assert decoded.preset.content.device.name == "\\x1b[31mred"
    assert {issue.paths for issue in decoded.issues} == {("model.name",), ("device.name",)}
    assert all("were written out" in issue.text and issue.text.isprintable() for issue in decoded.issues)


@pytest.mark.parametrize("item", [b'{"a":{}}', b'{"abcdefghij%d":1}', b"[[]]", b'"%d"'])
def test_a_collection_of_much_of_nothing_takes_no_room(item: bytes) -> None:
    items = b",".join(item % number if b"%" in item else item for number in range(390_000))
    data = b'{"format":"memgui.presets","schema":1,"presets":[%s]}' % items
    tracemalloc.start()
    try:
        with pytest.raises(FileFault, match="x "):
            decode_many(data, "x ")
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()


def test_a_thousand_presets_go_into_one_file() -> None:
    many = [Preset(name=f"{number}", content=SCENARIO) for number in range(1_000)]
    assert len(decode_many(encode_many(many), "many")) == 1_000


def test_a_config_that_is_taken_for_a_preset_is_told_from_one_of_another_format() -> None:
    with pytest.raises(FileFault, match="it states no format"):
        decode(b'{"hidden_size": 4096}', "config.json")
    with pytest.raises(FileFault, match="format is null; allowed"):
        decode(b'{"format": null}', "a.memgui.json")
