"""The command line: the contract on stdout, one line on stderr, Qt only where a window is asked for."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memgui import __version__
from memgui.catalog import Catalog
from memgui.cli import main
from memgui.estimator.estimate import unknown
from memgui.estimator.result import COMPONENTS
from memgui.planning.as_json import estimate_object
from memgui.planning.display import is_missing, no_qt
from memgui.presets.codec import Preset, encode
from memgui.spec import Message, replace
from memgui.spec.fields import FIELDS
from tests.planning.test_opening import LLAMA

NAME = Catalog().first_scenario().model.name


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), "utf-8")
    return path


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["estimate", *arguments, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    answer: dict[str, Any] = json.loads(said.out)
    return answer


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr of a wrong input."""
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("memgui: ")
    return said.err


def test_a_config_and_a_name_are_estimated(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    answer = answered(capsys, "--model", str(config))
    assert answer["parameters"]["total"] == 6_738_415_616
    assert [part["key"] for part in answer["device"]["components"]] == list(COMPONENTS)
    assert sum(part["bytes"] for part in answer["device"]["components"]) == answer["device"]["peak_bytes"]
    verdict = answer["verdict"]
    assert verdict["headroom_bytes"] == verdict["capacity_bytes"] - answer["device"]["peak_bytes"]
    assert f"memgui {__version__}" in answer["version"]
    named = answered(capsys, "--model", NAME.upper())
    assert named["scenario"]["model"]["name"] == NAME


def test_set_takes_what_people_write(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    sets = ("training.sequence_length=8k", "training.precision=bf16_mixed", "device.memory_bytes=24 GiB")
    answer = answered(capsys, "--model", str(config), *(part for text in sets for part in ("--set", text)))
    scenario = answer["scenario"]
    assert scenario["training"]["sequence_length"] == 8192
    assert scenario["training"]["precision"] == "bf16_mixed"
    assert answer["verdict"]["capacity_bytes"] == 24 * 2**30
    assert answer["verdict"]["kind"] == "does_not_fit"


@pytest.mark.parametrize(
    "split", [(), ("parallelism.pipeline=2", "device.count=2"), ("parallelism.data=2", "device.count=2")]
)
@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (
            ("training.method=lora", "training.lora.target_modules=foo"),
            "training.lora.target_modules cannot be foo: the model has no layers called so, and nothing "
            "would be trained. Allowed: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj, "
            "all-linear.",
        ),
        (
            ("training.method=lora", "training.lora.target_modules="),
            "training.lora.target_modules cannot be empty: nothing would be trained. Allowed: q_proj, ",
        ),
        (
            ("training.method=lora", "training.lora.modules_to_save=foo"),
            "training.lora.modules_to_save cannot be foo: the model has no foo that can be trained whole "
            "here. Allowed: embed_tokens, lm_head.",
        ),
        (
            ("training.method=frozen", "model.tie_word_embeddings=on"),
            "training.method cannot be frozen: the head is the embedding's weight, ",
        ),
    ],
)
def test_what_would_train_nothing_is_a_wrong_input(
    capsys: pytest.CaptureFixture[str], sets: tuple[str, ...], said: str, split: tuple[str, ...]
) -> None:
    arguments = [part for text in (*sets, *split) for part in ("--set", text)]
    assert refused(capsys, "estimate", "--model", NAME, *arguments).startswith(f"memgui: {said}")
    if not split:
        asked = ("solve", "--for", "training.micro_batch_size", "--model", NAME, *arguments)
        assert refused(capsys, *asked).startswith(f"memgui: {said}")


def test_a_device_name_brings_its_memory(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    device = next(entry for entry in Catalog().devices if entry.compute_capability == "7.5")
    answer = answered(capsys, "--model", str(config), "--set", f"device.name={device.name.lower()}")
    assert answer["scenario"]["device"] == {
        "name": device.name,
        "memory_bytes": device.memory_bytes,
        "count": 1,
        "compute_capability": "7.5",
    }
    kept = answered(
        capsys,
        "--model",
        str(config),
        "--set",
        "device.memory_bytes=10GB",
        "--set",
        f"device.name={device.name}",
    )
    assert kept["scenario"]["device"]["memory_bytes"] == 10**10


def test_a_preset_is_the_start_and_a_model_replaces_its_model(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, config: Path
) -> None:
    scenario = replace(Catalog().first_scenario(), "training.micro_batch_size", 3)
    preset = tmp_path / "mine.memgui.json"
    preset.write_bytes(encode(Preset(name="mine", content=scenario)))
    alone = answered(capsys, "--preset", str(preset))
    assert alone["scenario"]["training"]["micro_batch_size"] == 3
    both = answered(
        capsys, "--preset", str(preset), "--model", str(config), "--set", "training.micro_batch_size=5"
    )
    assert both["scenario"]["training"]["micro_batch_size"] == 5
    assert both["scenario"]["model"]["intermediate_size"] == 11008


def test_the_printed_object_is_the_estimators_own(capsys: pytest.CaptureFixture[str]) -> None:
    from memgui.estimator import estimate
    from memgui.spec.validate import validate

    scenario = Catalog().first_scenario()
    expected = estimate_object(estimate(scenario), validate(scenario))
    assert answered(capsys, "--model", scenario.model.name) == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("method", "total"), [("gpt_article", None), ("llama_guide", 223_539_896_320), ("megatron_paper", None)]
)
def test_the_articles_methods(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, method: str, total: int
) -> None:
    thirteen = {
        **LLAMA,
        "hidden_size": 5120,
        "intermediate_size": 13824,
        "num_hidden_layers": 40,
        "num_attention_heads": 40,
        "num_key_value_heads": 40,
    }
    (tmp_path / "13b.json").write_text(json.dumps(thirteen), "utf-8")
    sets = (f"method={method}", "training.sequence_length=1024", "model.nominal_parameters=13B")
    answer = answered(
        capsys, "--model", str(tmp_path / "13b.json"), *(part for text in sets for part in ("--set", text))
    )
    assert answer["method"] == method
    if total is not None:
        assert answer["device"]["peak_bytes"] == total
    assert answer["assumptions"]


def test_a_device_that_does_nothing_changes_no_figure_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (answered(capsys, "--model", NAME, "--set", f"device.count={count}") for count in (1, 2))
    assert (two["device"], two["verdict"]) == (one["device"], one["verdict"])
    assert [issue["severity"] for issue in two["issues"]] == ["warning"]
    assert "the rest do nothing: parallelism.data = 2 would use all" in two["issues"][0]["text"]
    assert main(["estimate", "--model", NAME, "--set", "device.count=2"]) == 0
    assert ", on 1 of 2 × " in capsys.readouterr().out
    used = ("--set", "device.count=2", "--set", "parallelism.data=2")
    assert not answered(capsys, "--model", NAME, *used)["issues"]


def test_what_has_no_effect_is_noted(capsys: pytest.CaptureFixture[str], config: Path) -> None:
    answer = answered(capsys, "--model", str(config), "--set", "inference.batch_size=4")
    notes = [issue for issue in answer["issues"] if issue["paths"] == ["inference.batch_size"]]
    assert [note["severity"] for note in notes] == ["note"]


def test_short_models_are_estimated_without_being_asked_twice(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(capsys, "--model", "gpt2")
    assert answer["scenario"]["training"]["sequence_length"] == 1024
    assert any("training.sequence_length" in text for text in answer["assumptions"])
    assert "1,024" in refused(capsys, "estimate", "--model", "gpt2", "--set", "training.sequence_length=2048")


def test_adapters_without_a_place_go_on_layers_that_there_are_and_it_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lora = ("--model", "DeepSeek-V3", "--set", "training.method=lora")
    answer = answered(capsys, *lora)
    assert answer["verdict"]["kind"] != "unknown"
    assert "kv_b_proj" in answer["scenario"]["training"]["lora"]["target_modules"]
    assert any(text.startswith("training.lora.target_modules is q_a_proj") for text in answer["assumptions"])
    said = refused(capsys, "estimate", *lora, "--set", "training.lora.target_modules=q_proj,v_proj")
    assert "cannot be q_proj, v_proj" in said
    assert "Allowed: q_a_proj, q_b_proj" in said


def test_a_model_that_is_not_modelled_is_unknown_and_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, config: Path
) -> None:
    reason = Message("model.num_experts = 8 is not modelled yet.")
    monkeypatch.setattr("memgui.cli.commands.estimate", lambda scenario: unknown(scenario, reason))
    verdict = answered(capsys, "--model", str(config))["verdict"]
    assert (verdict["kind"], verdict["reason"]) == ("unknown", reason.text)
    for form in ([], ["--markdown"]):
        assert main(["estimate", "--model", str(config), *form]) == 0
        said = capsys.readouterr().out
        assert reason.text in said
        assert said.count("unknown") == 1
        assert "GiB" not in said
    assert main(["estimate", "--model", str(config), "--csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["part"], row["bytes"]) == ("unknown", "")  # 0 would be an answer
    assert reason.text in row["label"]


def test_what_became_of_the_file_is_in_every_form_that_has_room(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "unheard_of": 3}), "utf-8")
    said = answered(capsys, "--model", str(path))["assumptions"]
    assumed, ignored = said[0], said[-1]
    assert ignored == "Ignored, because nothing here reads it: unheard_of"
    for form in (["--markdown"], []):
        assert main(["estimate", "--model", str(path), *form]) == 0
        said = capsys.readouterr().out
        assert assumed in said
        assert "Ignored, because nothing here reads it: unheard_of" in said


@pytest.mark.parametrize("form", ["--markdown", "--csv", None])
def test_other_forms(capsys: pytest.CaptureFixture[str], config: Path, form: str | None) -> None:
    assert main(["estimate", "--model", str(config), *([form] if form else [])]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "Optimizer states" in said.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--model", ""], ["--model", "empty", "a path or the name"]),
        (["--model", "https://host/a"], ["fetches nothing from a network", "https://host/a"]),
        (["--model", "/" + "a/" * 3000 + "config.json"], ["/a/a", "config.json", "longer name"]),
        (["--preset", " "], ["--preset", "empty", "a path or the name"]),
        (
            ["--model", "{config}", "--set", "model.name=a\x1b[31mb"],
            ["model.name", "a\\x1b[31mb", "characters that break a line"],
        ),
        (
            ["--model", "{config}", "--set", "training.micro_batch_size=0"],
            ["training.micro_batch_size", "0", "1"],
        ),
        (
            ["--model", "{config}", "--set", "training.micro_batch_size=many"],
            ["training.micro_batch_size", "many"],
        ),
        (["--model", "{config}", "--set", "training.precision=int7"], ["training.precision", "int7", "bf16"]),
        (
            ["--model", "{config}", "--set", "training.sequence_lenght=1"],
            ["sequence_lenght", "training.sequence_length"],
        ),
        (
            ["--model", "{config}", "--set", "training.micro_batch_size"],
            ["training.micro_batch_size", "VALUE"],
        ),
        (
            ["--model", "{config}", "--set", "model.num_key_value_heads=3"],
            ["model.num_attention_heads", "model.num_key_value_heads", "3", "1, 2, 4, 8, 16, 32"],
        ),
        (
            ["--model", "{config}", "--set", "device.name=Voodoo 2"],
            ["device.name", "Voodoo 2", "device.memory_bytes"],
        ),
        (["--model", "no-such-model"], ["--model", "no-such-model"]),
        (["--model", "{folder}/nothing.json"], ["--model", "nothing.json"]),
        (["--model", "{folder}"], ["--model", "config.json"]),
        (["--preset", "{config}x"], ["--preset"]),
        ([], ["--model"]),
        (["--model", "{config}", "--method"], ["--method"]),
        (["--model", "{config}", "--json", "--csv"], ["--csv", "--json"]),
        (
            ["--model", "{config}", "--set", "method=gpt_article", "--set", "method_variant=exact"],
            ["method_variant", "exact", "derived, printed, long_sequence"],
        ),
    ],
)
def test_wrong_input_is_one_line_that_names_what_is_allowed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, config: Path, arguments: list[str], named: list[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    filled = [text.replace("{config}", str(config)).replace("{folder}", str(empty)) for text in arguments]
    line = refused(capsys, "estimate", *filled)
    for word in named:
        assert word in line


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"{}", b"\xff\xfe", b'{"model_type": "llama", "hidden_size": "big"}']
)
def test_a_bad_file_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    assert "bad.json" in refused(capsys, "estimate", "--model", str(bad))
    assert "bad.json" in refused(capsys, str(bad))


def test_fields_lists_every_path(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fields", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["path"] for entry in listed] == [field.path for field in FIELDS]
    assert main(["fields"]) == 0
    text = capsys.readouterr().out
    assert all(field.path in text for field in FIELDS)


def test_help_and_version_answer(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["estimate", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as leaving:
            main(arguments)
        assert leaving.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_without_a_display_one_line_says_how_to_get_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgui.planning.display.is_missing", lambda: True)
    monkeypatch.setattr("memgui.cli.commands.is_missing", lambda: True)
    line = refused(capsys)
    assert "xvfb-run" in line
    assert "ssh -X" in line


@pytest.mark.parametrize(
    ("environ", "platform", "missing"),
    [
        ({}, "linux", True),
        ({"DISPLAY": ":0"}, "linux", False),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", False),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", False),
        ({"DISPLAY": ""}, "linux", True),
        ({}, "darwin", False),
        ({}, "win32", False),
    ],
)
def test_a_missing_display_is_known_before_qt_aborts(
    environ: dict[str, str], platform: str, missing: bool
) -> None:
    assert is_missing(environ, platform) is missing


def test_qt_that_finds_no_display_leaves_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "no-such-platform")
    ran = run_memgui()
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1
    assert "xvfb-run" in ran.stderr


def test_libraries_that_qt_misses_are_named() -> None:
    error = ImportError("libEGL.so.1: cannot open shared object file: No such file or directory")
    assert "libEGL.so.1" in no_qt(error)
    assert "apt-get install" in no_qt(error)


def run_memgui(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memgui", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_command_imports_no_qt_and_prints_nothing_else(config: Path) -> None:
    code = (
        "import sys; from memgui.cli import main; main(['estimate', '--model', sys.argv[1], '--json']); "
        "sys.exit(any(name.startswith('PySide6') for name in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(config)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["device"]["peak_bytes"] > 0


@pytest.mark.parametrize("asked", [("estimate", "--model", NAME, "--json"), ("--help",), ("check",)])
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_said_in_one_line(asked: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        ran = run_memgui(*asked, stdout=full.fileno())
    assert ran.returncode == 2
    assert ran.stderr.startswith("memgui: the answer cannot be written: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
def test_where_nothing_can_be_complained_the_status_still_says_it(redirected: str) -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m memgui estimate --model none {redirected}', sys.executable],
        stdout=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    assert (ran.returncode, ran.stdout) == (2, b"")


def test_a_closed_pipe_is_no_fault() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = run_memgui("fields", stdout=writing)
    finally:
        os.close(writing)
    assert ran.returncode == 0
    assert ran.stderr == ""


def test_a_start_reads_no_source_and_leaves_imports_as_they_were() -> None:
    code = (
        "import builtins, linecache, sys; plain = builtins.__import__; from memgui.cli import _program; "
        "run = _program(); from memgui.app import run as real; "
        "assert run is real; "
        "assert builtins.__import__ is not plain; "  # what PySide6 puts there stays
        "ours = sys.modules['memgui'].__file__.removesuffix('__init__.py'); "
        "read = [name for name in linecache.cache if name.startswith(ours)]; "
        "assert len(read) <= 1, read"  # the line above has it look at memgui.app
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
