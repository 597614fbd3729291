"""A config.json becomes a complete model, or one clear sentence."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memgui.files.bounded import FileFault
from memgui.importers.config_reader import CLASS_DEFAULT, NOT_STATED
from memgui.importers.families import FAMILIES
from memgui.importers.hf_config import import_config, model_from_config
from memgui.spec import ModelSpec, Scenario, Training
from memgui.spec.validate import validate
from tests.importers.parameters import count

SHARED = Path(os.environ.get("MEMGUI_SHARED", Path(__file__).parents[3] / "shared"))
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the reference folder is not here")

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
}


def load(*parts: str) -> Any:
    return json.loads(SHARED.joinpath(*parts).read_text("utf-8"))


def errors(model: ModelSpec) -> list[str]:
    length = min(1024, model.max_position_embeddings or 1024)
    scenario = Scenario(model=model, training=Training(sequence_length=length))
    return [issue.text for issue in validate(scenario) if issue.severity == "error"]


@needs_shared
def test_every_truth_model_is_described_to_the_last_weight() -> None:
    configs = load("truth", "configs.json")
    rows = load("truth", "params.json")["models"]
    for name, row in rows.items():
        entry = configs[name]
        model = model_from_config(entry["config"], entry["head"], entry["own_lm_head"], name)
        parts = count(model)
        assert parts == row["by_category"], name
        assert sum(parts.values()) == row["total_params"], name


@needs_shared
def test_every_truth_model_is_valid_and_nothing_in_it_is_unknown() -> None:
    for name, entry in load("truth", "configs.json").items():
        found = import_config(entry["config"], name)
        assert found.model.model_type in FAMILIES, name
        assert not errors(found.model), name
        for message in found.assumed:
            assert "layers" in message.text or "num_labels" in message.text, (name, message.text)


@needs_shared
def test_collected_files_agree_with_the_modules_of_transformers() -> None:
    """Text models whose family is described; the count is exact for each of them."""
    checked = 0
    for row in load("data", "hf_configs", "INDEX.json")["configs"]:
        if "module_params" not in row or row["model_type"] not in FAMILIES:
            continue
        model = import_config(SHARED / "data" / "hf_configs" / row["file"]).model
        assert sum(count(model).values()) == row["module_params"], row["file"]
        assert not errors(model), row["file"]
        checked += 1
    assert checked >= 125


@needs_shared
def test_every_collected_file_opens() -> None:
    rows = load("data", "hf_configs", "INDEX.json")["configs"]
    for row in rows:
        found = import_config(SHARED / "data" / "hf_configs" / row["file"])
        assert not errors(found.model), row["file"]
        described = found.model.model_type in FAMILIES
        told = any("taken to be written as" in message.text for message in found.assumed)
        assert described is not told, row["file"]
    assert len(rows) == 199


@needs_shared
def test_collected_files_open_quickly() -> None:
    """Loose on purpose: machines differ; the benchmark prints the figure itself."""
    files = sorted((SHARED / "data" / "hf_configs").glob("meta-llama*.json"))
    import_config(files[0])
    start = time.process_time()
    for file in files:
        import_config(file)
    assert (time.process_time() - start) / len(files) < 0.1


def test_stated_values_are_understood_and_absent_ones_assumed() -> None:
    found = import_config({**LLAMA, "unheard_of": 3, "rope_theta": 5e5, "torch_dtype": "bfloat16"}, "mine")
    assert found.model.name == "mine"
    assert found.model.head_dim == 128
    assert {"hidden_size", "num_key_value_heads"} <= set(found.understood)
    assert found.ignored == ("unheard_of",)
    assert found.torch_dtype == "bfloat16"
    texts = [message.text for message in found.assumed]
    assert any(
        text.startswith("tie_word_embeddings is not stated; false is the default of llama") for text in texts
    )


def test_layers_that_predict_further_tokens_are_told() -> None:
    for key in ("num_nextn_predict_layers", "num_mtp_modules"):
        found = import_config({**LLAMA, key: 2})
        assert found.model == import_config(LLAMA).model
        assert any(message.text.startswith(f"{key} is 2: what predicts further") for message in found.assumed)
        assert not any("further" in message.text for message in import_config({**LLAMA, key: 0}).assumed)
        with pytest.raises(FileFault, match=f'{key} is "2"; a whole number'):
            import_config({**LLAMA, key: "2"})


def test_one_thing_is_assumed_of_a_key() -> None:
    for model_type in FAMILIES:
        with contextlib.suppress(FileFault):
            found = import_config({**LLAMA, "model_type": model_type})
            keys = [one.args["key"] for one in found.assumed if one.template in (CLASS_DEFAULT, NOT_STATED)]
            assert len(keys) == len(set(keys)), model_type


def test_class_defaults_differ_by_model_type() -> None:
    for model_type, tied in (("llama", False), ("gemma", True), ("cohere", True), ("smollm3", True)):
        config = {key: value for key, value in LLAMA.items() if key != "model_type"}
        model = import_config({**config, "model_type": model_type}).model
        assert model.tie_word_embeddings is tied, model_type


def test_old_names_mean_the_same() -> None:
    old = {
        "model_type": "gpt2",
        "vocab_size": 50257,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_positions": 1024,
        "n_inner": None,
    }
    new = {
        "model_type": "gpt2",
        "vocab_size": 50257,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "max_position_embeddings": 1024,
    }
    assert import_config(old).model == import_config(new).model


def test_unknown_model_type_opens_as_the_nearest_and_says_so() -> None:
    found = import_config({**LLAMA, "model_type": "never_seen"})
    assert found.model.intermediate_size == 14336
    assert any("never_seen is not described" in message.text for message in found.assumed)
    nameless = {key: value for key, value in LLAMA.items() if key != "model_type"}
    assert any("names no model_type" in message.text for message in import_config(nameless).assumed)


LATENT = {
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
ROUTED = {
    "n_routed_experts": 64,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1,
}


@pytest.mark.parametrize(
    ("model_type", "keys", "nearest"),
    [
        ("never_seen", {}, "llama"),
        ("llava_qwen", {"use_sliding_window": False}, "qwen2"),
        ("never_seen", {**LATENT, **ROUTED}, "deepseek_v3"),
        (
            "glm9_text",
            {**LATENT, **ROUTED},
            "deepseek_v3",
        ),  # its name is like GLM-4's, whose attention has no latents
        (
            "never_seen",
            {**LATENT, **ROUTED, "index_topk": 2048, "index_n_heads": 64, "index_head_dim": 128},
            "glm_moe_dsa",
        ),
    ],
)
def test_the_nearest_is_what_reads_most_of_the_file(
    model_type: str, keys: dict[str, Any], nearest: str
) -> None:
    found = import_config({**LLAMA, **keys, "model_type": model_type})
    assert any(f"written as {nearest}'s" in message.text for message in found.assumed)


@pytest.mark.parametrize(
    "depth",
    [
        {"num_encoder_layers": 12, "num_decoder_layers": 4},  # ProphetNet
        {"encoder_layers": 10, "decoder_layers": 6},
        {"block_sizes": [4, 4, 8]},  # Funnel
        {"attn_layers": ["local", "lsh"] * 8},  # Reformer
    ],
)
def test_unknown_model_that_states_its_depth_otherwise_opens_too(depth: dict[str, Any]) -> None:
    config = {key: value for key, value in LLAMA.items() if key != "num_hidden_layers"}
    found = import_config({**config, **depth, "model_type": "never_seen"})
    assert found.model.num_hidden_layers == 16
    told = [message.text for message in found.assumed]
    assert any(text.startswith("The file states no num_hidden_layers; 16 are assumed") for text in told)
    key = next(iter(depth))
    with pytest.raises(FileFault, match=key):
        import_config({**config, **depth, key: "16", "model_type": "never_seen"})


def test_nested_language_model_is_found() -> None:
    inner = {**LLAMA, "model_type": "mistral"}
    for outer in (
        {"model_type": "llava", "text_config": inner},
        {"llm_config": inner},
        {"thinker_config": {"text_config": inner}},
    ):
        found = import_config(outer)
        assert found.model.model_type == "mistral"
        assert found.model.hidden_size == 4096


@pytest.mark.parametrize(
    ("change", "where", "allowed"),
    [
        ({"hidden_size": "4096"}, "hidden_size", "a whole number"),
        ({"hidden_size": None}, "hidden_size", "a whole number"),
        ({"hidden_size": 4096.0}, "hidden_size", "a whole number"),
        ({"hidden_size": [4096]}, "hidden_size", "a whole number"),
        ({"hidden_size": True}, "hidden_size", "a whole number"),
        ({"hidden_size": -1}, "hidden_size", "from 1 to"),
        ({"hidden_size": 10**30}, "hidden_size", "from 1 to"),
        ({"hidden_size": 4097}, "hidden_size", "head_dim"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers", "100,000"),
        ({"num_attention_heads": 0}, "num_attention_heads", "from 1"),
        ({"num_key_value_heads": "8"}, "num_key_value_heads", "a whole number"),
        ({"num_key_value_heads": 7}, "num_key_value_heads", "1, 2, 4, 8"),
        ({"vocab_size": {}}, "vocab_size", "a whole number"),
        ({"tie_word_embeddings": 0}, "tie_word_embeddings", "true or false"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings", "true or false"),
        ({"tie_word_embeddings": None}, "tie_word_embeddings", "true or false"),
        ({"hidden_act": 3}, "hidden_act", "a text"),
        ({"hidden_act": None}, "hidden_act", "a text"),
        ({"attention_dropout": "0"}, "attention_dropout", "a number"),
        ({"attention_dropout": 2}, "attention_dropout", "from 0"),
        ({"model_type": 7}, "model_type", "a text"),
        ({"torch_dtype": 7}, "torch_dtype", "a text"),
        ({"partial_rotary_factor": 3}, "partial_rotary_factor", "from 0 to 1"),
        ({"quantization_config": []}, "quantization_config", "an object"),
        ({"model_type": "mistral", "sliding_window": "4k"}, "sliding_window", "a whole number"),
        ({"model_type": "gemma2", "layer_types": ["full_attention"]}, "layer_types", "one entry for each"),
        ({"model_type": "gemma2", "layer_types": ["warp"] * 32}, "layer_types", "known here"),
        ({"model_type": "gemma2", "layer_types": "full"}, "layer_types", "a list"),
        ({"model_type": "mixtral", "num_local_experts": None}, "num_local_experts", "a whole number"),
    ],
)
def test_wrong_type_or_absurd_value_is_refused(change: dict[str, Any], where: str, allowed: str) -> None:
    with pytest.raises(FileFault) as caught:
        import_config({**LLAMA, **change}, "strange.json")
    said = str(caught.value)
    assert said.startswith("strange.json")
    assert where in said
    assert allowed in said


def test_nested_language_model_may_rest_on_class_defaults() -> None:
    found = import_config(
        {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}}
    )
    assert (found.model.hidden_size, found.model.num_hidden_layers, found.model.vocab_size) == (
        4096,
        32,
        32064,
    )
    assert any(message.text.startswith("text_config.hidden_size is not stated") for message in found.assumed)


@pytest.mark.parametrize("config", [{}, {"model_type": "llama"}, {"vocab_size": 5, "num_attention_heads": 4}])
def test_neither_width_nor_depth_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(FileFault, match="neither a width"):
        import_config(config)


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size"])
def test_a_file_that_lost_a_size_is_refused_whatever_its_class_would_take(key: str) -> None:
    damaged = {name: value for name, value in LLAMA.items() if name != key}
    with pytest.raises(FileFault, match=f"does not state {key}, which is needed"):
        import_config(damaged)


def test_missing_width_of_an_unknown_type_is_named() -> None:
    with pytest.raises(FileFault, match=r"does not state hidden_size"):
        import_config({"num_hidden_layers": 3, "model_type": "never_seen"})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"hidden_size": NaN}',
        b'{"hidden_size": 1, "hidden_size": 2}',
        b"\xff\xfe{}",
        b'{"a":' * 100_000,
        b'{"hidden_size": ' + b"9" * 10_000 + b"}",
    ],
)
def test_hostile_files_end_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(FileFault) as caught:
        import_config(file)
    assert "\n" not in str(caught.value)
    assert "config.json" in str(caught.value)


def test_directory_and_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFault, match="is a folder"):
        import_config(tmp_path)
    with pytest.raises(FileFault, match="not there"):
        import_config(tmp_path / "config.json")


def test_every_key_of_every_family_may_be_of_the_wrong_type_without_a_traceback() -> None:
    """Whatever stands where: a model or one sentence, nothing else."""
    values: list[Any] = ["x", "", None, [], [[]], {}, -1, 0, 10**50, 1.5, True, ["x"], [1]]
    for model_type in FAMILIES:
        base: dict[str, Any] = {**LLAMA, "model_type": model_type}
        names = {"layer_types", "attn_config", "ffn_config", "block_types", "rope_parameters", *base}
        names |= {
            "attention_types",
            "attn_layer_indices",
            "architectures",
            "id2label",
            "sliding_window_pattern",
        }
        for name in names - {"model_type"}:
            for value in values:
                with contextlib.suppress(FileFault):
                    assert isinstance(import_config({**base, name: value}).model, ModelSpec)


def test_quantisation_blocks_are_parsed() -> None:
    nf4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    found = import_config(
        {**LLAMA, "quantization_config": {**nf4, "bnb_4bit_use_double_quant": True}}
    ).quantization
    assert found is not None
    assert (found.method, found.bits, found.number_type, found.double_quant) == (
        "bitsandbytes",
        4,
        "nf4",
        True,
    )
    gptq = import_config(
        {**LLAMA, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    ).quantization
    assert gptq is not None
    assert (gptq.bits, gptq.group_size) == (4, 128)
    mlx = import_config({**LLAMA, "quantization": {"bits": 4, "group_size": 64}}).quantization
    assert mlx is not None
    assert mlx.method == "mlx"
    assert import_config(LLAMA).quantization is None


def test_fields_of_a_description_are_fields_of_the_model() -> None:
    known = set(ModelSpec.__struct_fields__)
    for model_type, describe in FAMILIES.items():
        assert describe.__doc__, model_type
        try:
            model = import_config({**LLAMA, "model_type": model_type}).model
        except FileFault:
            continue
        assert set(msgspec.structs.asdict(model)) == known


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "longt5", "encoder_attention_type": "transient-global"}, "encoder_attention_type is"),
        ({"model_type": "deberta", "relative_attention": False}, "relative_attention is"),
        ({"model_type": "deberta", "relative_attention": True, "position_biased_input": False}, ""),
    ],
)
def test_attention_that_is_taken_for_another_is_told(changes: dict[str, Any], told: str) -> None:
    sizes = {"num_layers": 2, "d_kv": 16, "d_ff": 64, "d_model": 64, "num_heads": 4}
    found = import_config({**sizes, "vocab_size": 100, "num_hidden_layers": 2, **changes}, "a model")
    said = [message.text for message in found.assumed if "not known here" in message.text]
    assert [told in text for text in said] == ([True] if told else [])
