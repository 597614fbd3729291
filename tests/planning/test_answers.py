"""An estimate as JSON, text, Markdown and CSV: the contract of the command line."""

from __future__ import annotations

import csv
import io
import json

from memgui.estimator.methods import estimate_by_method
from memgui.estimator.result import COMPONENTS, Estimate, Parameters
from memgui.planning.as_json import estimate_object, field_objects
from memgui.planning.as_text import as_csv, as_lines, as_markdown, field_lines, gib
from memgui.spec import Issue, Message, ModelSpec, Scenario, Training
from memgui.spec.fields import FIELDS

MODEL = ModelSpec(
    name="a | b",
    vocab_size=32000,
    hidden_size=5120,
    num_hidden_layers=40,
    num_attention_heads=40,
    num_key_value_heads=40,
    head_dim=128,
    intermediate_size=13824,
    nominal_parameters=13 * 10**9,
)
COUNTED = Parameters(total=13, trainable=13, active=13, by_part={"embedding": 13})


def found() -> Estimate:
    scenario = Scenario(model=MODEL, method="llama_guide", training=Training(sequence_length=1024))
    return estimate_by_method(scenario, COUNTED)


def test_the_object_has_the_contracts_keys() -> None:
    answer = estimate_object(found())
    assert list(answer) == [
        "scenario",
        "method",
        "version",
        "parameters",
        "device",
        "timeline",
        "ranks",
        "verdict",
        "issues",
        "assumptions",
    ]
    assert list(answer["parameters"]) == ["total", "trainable", "active", "by_part"]
    assert list(answer["device"]) == [
        "peak_bytes",
        "peak_moment",
        "low_bytes",
        "high_bytes",
        "allocated_bytes",
        "reserved_bytes",
        "components",
    ]
    assert list(answer["verdict"]) == ["kind", "capacity_bytes", "headroom_bytes", "reason"]
    assert [component["key"] for component in answer["device"]["components"]] == list(COMPONENTS)
    for component in answer["device"]["components"]:
        assert list(component) == ["key", "label", "bytes", "formula", "values", "source", "children"]
    assert list(answer["timeline"][0]) == ["moment", "bytes", "components"]
    assert list(answer["ranks"][0]) == ["rank", "peak_bytes"]


def test_the_object_is_plain_json_and_loses_nothing() -> None:
    answer = estimate_object(found())
    assert json.loads(json.dumps(answer)) == answer
    assert {
        f"{section}.{name}" for section in ("training", "device") for name in answer["scenario"][section]
    } > {
        "training.micro_batch_size",
        "device.memory_bytes",
    }
    assert sum(part["bytes"] for part in answer["device"]["components"]) == answer["device"]["peak_bytes"]
    for component in answer["device"]["components"]:
        if component["children"]:
            assert sum(child["bytes"] for child in component["children"]) == component["bytes"]


def test_issues_name_their_fields_and_are_not_said_twice() -> None:
    issue = Issue("note", "unusual", ("training.micro_batch_size",), Message("{n} is unusual.", {"n": 4097}))
    answer = estimate_object(found(), [issue], [Message("Taken from elsewhere.")])
    assert answer["issues"] == [
        {"severity": "note", "paths": ["training.micro_batch_size"], "text": "4,097 is unusual."}
    ]
    assert answer["assumptions"][0] == "Taken from elsewhere."


def test_gib_is_rounded_and_signed() -> None:
    assert gib(24 * 2**30) == "24.00 GiB"
    assert gib(2**30 + 2**29 + 2**22) == "1.50 GiB"
    assert gib(-(2**30)) == "-1.00 GiB"
    assert gib(2000 * 2**30) == "2,000.00 GiB"


def test_lines_show_every_component_and_the_total() -> None:
    text = as_lines(found())
    for label in COMPONENTS.values():
        assert label in text
    assert "223,539,896,320" in text
    assert text.startswith("a | b, training, on H100")


def test_markdown_is_one_sound_table() -> None:
    rows = [line for line in as_markdown(found()).splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}
    assert sum("**" in line for line in rows) == len(COMPONENTS) + 1
    assert any("Optimizer states · Momentum" in line for line in rows)


def test_csv_lists_every_node_by_its_path() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(found()))))
    assert {row["part"]: int(row["bytes"]) for row in rows}["optimizer_states/momentum"] == 52 * 10**9
    assert rows[-1]["part"] == "total"
    top = [row for row in rows if "/" not in row["part"] and row["part"] != "total"]
    assert sum(int(row["bytes"]) for row in top) == int(rows[-1]["bytes"])


def test_fields_are_all_listed_with_their_defaults() -> None:
    objects = field_objects(Scenario(model=MODEL))
    assert [entry["path"] for entry in objects] == [field.path for field in FIELDS]
    by_path = {entry["path"]: entry for entry in objects}
    assert by_path["training.sequence_length"]["default"] == 4096
    assert by_path["training.lora.target_modules"]["default"] == ["q_proj", "v_proj"]
    assert "adamw" in by_path["training.optimizer"]["choices"]
    assert by_path["device.memory_bytes"]["unit"]
    assert all(entry["meaning"] and entry["type"] for entry in objects)
    assert json.loads(json.dumps(objects)) == objects
    text = field_lines(objects)
    assert all(field.path in text for field in FIELDS)
    assert "range: 1 to 1,000,000,000" in text
