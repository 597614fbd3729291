"""Every key that decides anything, in every collected file: a value of another type is refused, not read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memgui.files.bounded import FileFault
from memgui.importers.families import FAMILIES
from memgui.importers.hf_config import import_config

SHARED = Path(os.environ.get("MEMGUI_SHARED", Path(__file__).parents[3] / "shared"))
CONFIGS = SHARED / "data" / "hf_configs"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the reference folder is not here")

TWO_TYPES = {"intermediate_size", "sliding_window_pattern", "mamba_d_head", "attn_pdrop"}
"""Keys that Transformers reads in two types: a number or a list, a number or letters, a number or "auto"."""
NEEDED = {"hidden_size", "n_embd", "num_hidden_layers", "n_layer", "vocab_size", "num_attention_heads"}
"""Keys without which there is no model; ``null`` in their place is refused too."""


def wrong(value: object) -> tuple[object, ...]:
    """Things of other types, among them what a lenient reader would take for ``value``."""
    match value:
        case bool():
            return (str(value).lower(), int(value), [value], {})
        case int():
            return (str(value), float(value), [value], {}, True)
        case float():
            return (str(value), [value], {}, True)
        case str():
            return (1, [value], {}, True)
        case list():
            return (json.dumps(value), {}, {"0": value}, 1, True)
        case dict():
            return ("x", [value], 1, True)
    return ({}, True)  # null


def understood(config: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """The object, the key and the whole path of each key that decided something."""
    for path in import_config(config).understood:
        *above, key = path.split(".")
        holder: Any = config
        for name in above:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and key in holder:
            yield holder, key, path


def files() -> Iterator[tuple[str, dict[str, Any]]]:
    for row in json.loads((CONFIGS / "INDEX.json").read_text("utf-8"))["configs"]:
        yield row["file"], json.loads((CONFIGS / row["file"]).read_text("utf-8"))


@needs_shared
def test_no_value_of_another_type_is_read_in_any_file() -> None:
    refused = 0
    for file, config in files():
        for holder, key, path in list(understood(config)):
            if key in TWO_TYPES:
                continue
            stated = holder[key]
            for holder[key] in wrong(stated):
                with pytest.raises(FileFault) as fault:
                    pytest.fail(f"{file}: {path} = {holder[key]!r} was read as {import_config(config).model}")
                assert str(fault.value).isprintable()
                refused += 1
            holder[key] = stated
    print(f"{refused} wrong values in {len(list(files()))} files, all refused")
    assert refused > 12_000


@needs_shared
def test_null_is_no_size_in_any_described_file() -> None:
    refused = 0
    for file, config in files():
        if import_config(config).model.model_type not in FAMILIES:
            continue
        for holder, key, path in list(understood(config)):
            if key not in NEEDED or (key == "num_hidden_layers" and config["model_type"] == "nemotron_h"):
                continue  # Nemotron-H's layers are counted in their pattern
            stated, holder[key] = holder[key], None
            with pytest.raises(FileFault, match=key):
                pytest.fail(f"{file}: {path} = null was read as {import_config(config).model}")
            holder[key] = stated
            refused += 1
    assert refused > 600


def test_null_that_an_unknown_author_writes_is_told() -> None:
    config = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
    found = import_config({**config, "model_type": "never_seen", "intermediate_size": None})
    assert found.model.intermediate_size == 256
    told = [message.text for message in found.assumed]
    assert "intermediate_size is null; it is taken as if it were not stated." in told
    with pytest.raises(FileFault, match="intermediate_size is null; a whole number"):
        import_config({**config, "model_type": "baichuan", "intermediate_size": None})


def test_a_wrong_type_is_refused_although_another_structure_would_not_ask() -> None:
    config = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
    sparse = {"model_type": "never_seen", "moe_intermediate_size": 32, "num_experts": 8}
    assert import_config({**config, **sparse, "num_experts_per_tok": 2}).model.num_experts == 8
    with pytest.raises(FileFault, match='num_experts_per_tok is "2"; a whole number'):
        import_config({**config, **sparse, "num_experts_per_tok": "2"})


@pytest.mark.parametrize("value", ["x", [], 3, True])
@pytest.mark.parametrize(("model_type", "key"), [("gemma4", "audio_config"), ("ministral3", "vision_config")])
def test_an_optional_tower_is_an_object(model_type: str, key: str, value: object) -> None:
    inner = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100}
    with pytest.raises(FileFault, match=f"{key} is .*; an object"):
        import_config({"model_type": model_type, "text_config": {**inner, "head_dim": 16}, key: value})


@pytest.mark.parametrize("pattern", ["", "6", "LLX"])
def test_a_pattern_of_windows_has_known_letters(pattern: str) -> None:
    config = {
        "model_type": "gemma3_text",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    with pytest.raises(FileFault, match="a pattern of L and G"):
        import_config({**config, "vocab_size": 100, "sliding_window_pattern": pattern})
