"""Towers for images and sound are counted, shown as their own part, and never dropped in silence."""

from __future__ import annotations

from typing import Any

import pytest

from memgui.estimator import estimate
from memgui.estimator.estimate import parameters
from memgui.importers.hf_config import import_config
from memgui.importers.towers.registry import TOWERS
from memgui.spec import Scenario, replace
from memgui.spec.validate import validate
from memgui.spec.weights import Weights, weights
from tests.importers.parameters import count

TEXT: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32064,
}
CLIP = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "image_size": 336,
    "patch_size": 14,
}


def test_llava_is_llama_clip_and_a_projector() -> None:
    """Figures of Transformers 5.24's own modules: 7,063,427,072 in all."""
    found = import_config({"model_type": "llava", "text_config": TEXT, "vision_config": CLIP})
    parts = count(found.model)
    assert parts["vision"] == 324_487_168
    assert sum(parts.values()) == 7_063_427_072
    assert any("vision" in message.text and "324,487,168" in message.text for message in found.assumed)
    assert {"vision_config", "vision_config.hidden_size"} <= set(found.understood)
    assert not found.ignored


def test_the_estimate_holds_a_tower_and_does_not_train_it() -> None:
    model = import_config({"model_type": "llava", "text_config": TEXT, "vision_config": CLIP}).model
    scenario = Scenario(model=model)
    with_tower, without = estimate(scenario), estimate(replace(scenario, "model.other_weights", ()))
    assert with_tower.parameters.by_part["vision"] == 324_487_168
    assert with_tower.parameters.trainable == without.parameters.trainable
    part = next(node for node in with_tower.component("weights").children if node.key == "vision")
    assert part.bytes == 2 * 324_487_168
    for other in ("gradients", "optimizer_states", "activations"):
        assert with_tower.component(other).bytes == without.component(other).bytes


def test_what_only_some_layers_have_is_trained_with_the_rest() -> None:
    text = {
        **TEXT,
        "model_type": "gemma4_text",
        "hidden_size": 256,
        "num_hidden_layers": 12,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "intermediate_size": 512,
        "hidden_size_per_layer_input": 32,
        "vocab_size_per_layer_input": 1000,
        "global_head_dim": 128,
    }
    model = import_config({"model_type": "gemma4", "text_config": text, "vision_config": CLIP}).model
    found = estimate(Scenario(model=model))
    parts = found.parameters.by_part
    assert parts["per_layer"] > 1000 * 12 * 32
    assert found.parameters.trainable == found.parameters.total - parts["vision"]
    assert sum(part.bytes for part in found.components) == found.peak_bytes


def test_whisper_like_ears_and_gemma_3s_eyes() -> None:
    audio = {
        "model_type": "qwen2_audio_encoder",
        "num_mel_bins": 128,
        "encoder_layers": 32,
        "encoder_ffn_dim": 5120,
        "d_model": 1280,
        "max_source_positions": 1500,
    }
    text = {**TEXT, "model_type": "qwen2"}
    heard = import_config({"model_type": "qwen2_audio", "text_config": text, "audio_config": audio}).model
    assert count(heard)["audio"] == 642_215_936
    siglip = {
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "image_size": 896,
        "patch_size": 14,
    }
    text = {
        **TEXT,
        "model_type": "gemma3_text",
        "hidden_size": 5376,
        "head_dim": 128,
        "num_key_value_heads": 16,
    }
    seen = import_config({"model_type": "gemma3", "text_config": text, "vision_config": siglip}).model
    assert count(seen)["vision"] == 423_060_336


def test_a_tower_that_nobody_described_is_told() -> None:
    found = import_config({"model_type": "unheard", "text_config": TEXT, "vision_config": {"depth": 3}})
    assert found.model.other_weights == ()
    assert any(message.text.startswith("vision_config describes something") for message in found.assumed)


@pytest.mark.parametrize("model_type", sorted(TOWERS))
def test_every_tower_survives_nonsense_and_its_weights_are_written_rightly(model_type: str) -> None:
    from memgui.files.bounded import FileFault

    values: list[Any] = ["x", None, [], {}, -1, 0, 10**12, 1.5, True, [1]]
    keys = ("hidden_size", "depth", "num_hidden_layers", "patch_size", "image_size", "d_model", "embed_dim")
    blocks: list[Any] = [{key: value} for key in keys for value in values] + [{}, CLIP]
    for block in blocks:
        config = {
            **TEXT,
            "model_type": model_type,
            "text_config": TEXT,
            "vision_config": block,
            "visual": block,
            "audio_config": block,
        }
        try:
            found = import_config(config)
        except FileFault:
            continue
        assert all(weights(text) is not None for text in found.model.other_weights)


def test_what_other_weights_may_say() -> None:
    assert weights("vision.mlp.up:27x4304x1152") == Weights("vision.mlp.up", 27, (4304, 1152))
    assert str(weights("a.b:1x5")) == "a.b:1x5"
    for text in (
        "",
        "vision",
        "vision:3",
        "vision:0x3",
        "Vision:1x3",
        "vision:1x-3",
        "v:9999999x1",
        "v:1" + "x9" * 9,
    ):
        assert weights(text) is None, text
    model = import_config(TEXT).model
    scenario = replace(Scenario(model=model), "model.other_weights", ("vision:oops",))
    issue = next(issue for issue in validate(scenario) if issue.severity == "error")
    assert issue.paths == ("model.other_weights",)
    assert "vision:oops" in issue.text


def test_fuyu_reads_colours_through_one_layer() -> None:
    """Fuyu-8B by Transformers 5.24's own module: 9,408,238,592, of which 11,063,296 read patches."""
    text = {
        "model_type": "persimmon",
        "hidden_size": 4096,
        "intermediate_size": 16384,
        "num_hidden_layers": 36,
        "num_attention_heads": 64,
        "vocab_size": 262144,
    }
    parts = count(import_config({"model_type": "fuyu", "text_config": text}).model)
    assert parts["vision"] == 11_063_296
    assert sum(parts.values()) == 9_408_238_592


def test_deepseek_ocr_2_sees_through_sam_and_a_small_qwen() -> None:
    """Transformers 5.24's own modules: 453,235,840 in the tower, 1,149,440 between it and the text."""
    vision = {
        "model_name": "deepencoderv2",
        "width": {
            "qwen2-0-5b": {"dim": 896},
            "sam_vit_b": {"global_attn_indexes": [2, 5, 8, 11], "heads": 12, "layers": 12, "width": 768},
        },
    }
    text = {**TEXT, "hidden_size": 1280, "num_attention_heads": 10}
    found = import_config({"model_type": "deepseek_vl_v2", "language_config": text, "vision_config": vision})
    assert count(found.model)["vision"] == 453_235_840 + 1_149_440


def test_the_outer_object_says_whether_the_head_is_tied() -> None:
    """Transformers 5.24's CohereCompassForConditionalGeneration: 32,947,311,856 with a head of its own."""
    text = {
        "model_type": "cohere_compass_text",
        "hidden_size": 8192,
        "num_hidden_layers": 40,
        "vocab_size": 256000,
        "num_key_value_heads": 8,
    }
    file = {"model_type": "cohere_compass", "text_config": text, "vision_config": {}}
    assert sum(count(import_config(file).model).values()) == 32_947_311_856
    tied = import_config({**file, "tie_word_embeddings": True})
    assert sum(count(tied.model).values()) == 32_947_311_856 - 256_000 * 8192
    assert "tie_word_embeddings" not in tied.ignored


def test_tables_of_n_grams_have_as_many_rows_as_primes() -> None:
    """Transformers 5.24's Qwen4ExpForCausalLM at these sizes: 6,084,856."""
    text = {
        "model_type": "qwen4_exp_text",
        "vocab_size": 512,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "rope_parameters": {"partial_rotary_factor": 0.25},
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "moe_intermediate_size": 96,
        "shared_expert_intermediate_size": 160,
        "num_experts_per_tok": 2,
        "num_experts": 8,
        "hc_lowrank": 32,
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 32,
        "indexer_budget": 32,
        "indexer_compress_ratio": 8,
        "ple_layer_ids": [1, 3],
        "ple_embed_dim": 128,
        "ngram_vocab_size_base": 5000,
    }
    found = import_config(text)
    assert estimate(Scenario(model=found.model)).parameters.total == 6_084_856
    assert any("n-grams" in message.text for message in found.assumed)


WHOLE = {
    "mistral_large4": ("mistral_large4_text", 204800, 6144, 72, 1_051_822_421_536, 1_704_218_624),
    "glm5_next": ("glm5_next_text", 154880, 4096, 45, 313_786_889_214, 460_072_448),
    "hy_v4_vl": ("hy_v4_vl_text", 120832, 6144, 78, 771_142_515_869, 1_235_126_784),
}
"""By model: text model, vocabulary, width, layers; elements in Transformers 5.24, and of the tower."""


@pytest.mark.parametrize("name", WHOLE)
def test_a_model_by_its_class_s_own_sizes_is_counted_whole(name: str) -> None:
    text, vocabulary, width, layers, total, tower = WHOLE[name]
    sizes = {"vocab_size": vocabulary, "hidden_size": width, "num_hidden_layers": layers}
    inner = {} if name != "glm5_next" else {"vision_config": {"model_type": "glm5_next_vision"}}
    found = import_config({"model_type": name, "text_config": {"model_type": text, **sizes}, **inner})
    counted = parameters(Scenario(model=found.model))
    assert counted.by_part["vision"] == tower
    assert counted.total == total
