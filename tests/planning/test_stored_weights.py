"""The true bytes of a model's files take the place of computed ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.importers.stored import stored_weights
from memgui.importers.tensors import TensorInfo, TensorTable
from memgui.planning.opening import Opened, opened, starting_scenario
from memgui.spec import Scenario, replace
from memgui.spec.stored import Stored, read, stored, written
from memgui.spec.validate import validate
from tests.estimator.models import LLAMA_3_1B
from tests.importers.files import gguf_llama, llama, number, sparse, write_safetensors
from tests.planning.test_opening import LLAMA


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


def served(found: Opened, catalog: Catalog, engine: str | None = None) -> Scenario:
    scenario, _ = starting_scenario(catalog.first_scenario(), found.model, found.quantization)
    scenario = replace(scenario, "task", "inference")
    return scenario if engine is None else replace(scenario, "inference.engine", engine)


def tiny_gguf(folder: Path, catalog: Catalog) -> Opened:
    more = [number("llama.attention.head_count", 8), number("llama.feed_forward_length", 512)]
    header, size = gguf_llama(4, 256, 512, 40, more=more)
    return opened(str(sparse(folder / "tiny.gguf", header, size)), catalog)


def packed_folder(folder: Path, catalog: Catalog) -> Opened:
    """A checkpoint whose linear layers are packed by a scheme of their own."""
    folder.mkdir()
    block = {"quant_method": "awq", "bits": 4, "group_size": 128}
    (folder / "config.json").write_text(json.dumps({**LLAMA, "quantization_config": block}), "utf-8")
    tensors: dict[str, tuple[str, Sequence[int]]] = {}
    for name, (kind, shape) in llama(32, 4096, 11008, 4096, 32000).items():
        if "_proj" in name:
            stem, (rows, columns) = name.removesuffix("weight"), shape
            tensors[f"{stem}qweight"] = ("I32", (columns, rows // 8))
            tensors[f"{stem}scales"] = ("F16", (columns // 128, rows))
        else:
            tensors[name] = (kind, shape)
    write_safetensors(folder / "model.safetensors", tensors)
    return opened(str(folder), catalog)


def test_a_gguf_is_served_by_llama_cpp_with_its_own_bytes(tmp_path: Path, catalog: Catalog) -> None:
    found = tiny_gguf(tmp_path, catalog)
    scenario = served(found, catalog)
    assert scenario.inference.engine == "llama.cpp"
    assert scenario.inference.weight_format == "as_in_file"
    assert not [issue for issue in validate(scenario) if issue.severity == "error"]
    answer = estimate(scenario)
    assert found.weights is not None
    assert answer.component("weights").bytes + answer.extra["host_bytes"] == found.weights.total_bytes
    embedding = next(one.bytes for one in found.weights.tensors if one.name == "token_embd.weight")
    assert answer.extra["host_bytes"] == embedding
    half = estimate(replace(scenario, "inference.n_gpu_layers", 3))
    each = sum(one.bytes for one in found.weights.tensors if one.name.startswith("blk.0."))
    assert half.component("weights").bytes == answer.component("weights").bytes - 2 * each
    for node in answer.component("weights").children:
        assert node.derivation.source == "The tensors in the model's files"


def test_a_packed_checkpoint_weighs_what_its_tensors_do(tmp_path: Path, catalog: Catalog) -> None:
    found = packed_folder(tmp_path / "awq", catalog)
    assert found.weights is not None
    for engine in ("transformers", "vllm", "sglang"):
        scenario = served(found, catalog, engine)
        assert scenario.inference.weight_format == "as_in_file"
        weights = estimate(scenario).component("weights")
        tables = sum(node.bytes for node in weights.children if node.key == "rotary")
        assert abs(weights.bytes - tables - found.weights.total_bytes) <= 512, engine
    two = replace(replace(served(found, catalog, "vllm"), "device.count", 2), "parallelism.tensor", 2)
    halved = estimate(two).component("weights").bytes
    assert 0.5 < halved / estimate(served(found, catalog, "vllm")).component("weights").bytes < 0.51


def test_the_quantisation_block_decides_where_there_are_no_weights(tmp_path: Path, catalog: Catalog) -> None:
    folder = tmp_path / "config-alone"
    folder.mkdir()
    block = {"quant_method": "awq", "bits": 4, "group_size": 128}
    (folder / "config.json").write_text(json.dumps({**LLAMA, "quantization_config": block}), "utf-8")
    scenario = served(opened(str(folder), catalog), catalog)
    assert scenario.inference.weight_format == "awq_int4_g128"
    other = starting_scenario(scenario, catalog.models[0].model)[0]
    assert other.inference.weight_format == "awq_int4_g128", "what nobody opened is not changed"


def test_a_changed_model_is_not_the_one_in_the_file(tmp_path: Path, catalog: Catalog) -> None:
    scenario = served(tiny_gguf(tmp_path, catalog), catalog)
    assert replace(scenario, "model.name", "mine").model.stored_weights
    assert replace(scenario, "device.count", 2).model.stored_weights
    changed = replace(scenario, "model.hidden_size", 512)
    assert changed.model.stored_weights == ()
    assert [issue.code for issue in validate(changed) if issue.severity == "error"] == ["no_file"]
    another, _ = starting_scenario(scenario, catalog.models[0].model)
    assert another.inference.weight_format == "bf16"


def test_files_that_are_not_whole_or_not_understood_give_nothing(tmp_path: Path, catalog: Catalog) -> None:
    found = tiny_gguf(tmp_path, catalog)
    assert found.weights is not None
    gone = msgspec.structs.replace(found.weights, missing=("tiny-00002-of-00002.gguf",))
    assert stored_weights(gone, found.model) == ()
    odd = msgspec.structs.replace(found.weights.tensors[0], name="something.odd")
    assert stored_weights(msgspec.structs.replace(found.weights, tensors=(odd,)), found.model) == ()


@pytest.mark.parametrize(
    ("name", "part", "layer"),
    [
        ("model.layers.3.self_attn.q_proj.weight_scale_inv", "attention", 3),
        ("model.layers.3.self_attn.q_norm.weight", "qk_norm", 3),
        ("model.layers.3.post_attention_layernorm.weight", "norm", 3),
        ("model.layers.3.mlp.gate.weight", "router", 3),
        ("model.layers.3.mlp.gate_proj.weight", "mlp", 3),
        ("model.layers.3.mlp.experts.7.down_proj.weight", "experts", 3),
        ("model.layers.3.mlp.shared_experts.down_proj.weight", "shared_experts", 3),
        ("model.layers.3.linear_attn.conv1d.weight", "mixer", 3),
        ("backbone.layers.3.mixer.in_proj.weight", "mixer", 3),
        ("transformer.h.3.attn.c_attn.weight", "attention", 3),
        ("transformer.wpe.weight", "position_embedding", -1),
        ("transformer.ln_f.weight", "norm", -1),
        ("lm_head.weight", "lm_head", -1),
        ("model.visual.blocks.3.attn.qkv.weight", "vision", -1),
        ("blk.3.attn_v.weight", "attention", 3),
        ("blk.3.attn_norm.weight", "norm", 3),
        ("blk.3.attn_q_norm.weight", "qk_norm", 3),
        ("blk.3.ffn_gate_inp.weight", "router", 3),
        ("blk.3.ffn_down_exps.weight", "experts", 3),
        ("blk.3.ffn_down_shexp.weight", "shared_experts", 3),
        ("blk.3.ssm_in.weight", "mixer", 3),
        ("token_embd.weight", "embedding", -1),
        ("output.weight", "lm_head", -1),
        ("output_norm.weight", "norm", -1),
    ],
)
def test_names_tell_part_and_layer(name: str, part: str, layer: int) -> None:
    model = msgspec.structs.replace(LLAMA_3_1B, num_hidden_layers=8, tie_word_embeddings=False)
    table = TensorTable(container="any", sources=(), tensors=(TensorInfo(name, (4, 2), "BF16", 16),))
    assert read(stored_weights(table, model)) == (Stored(part, 16, layer, layer),)


def test_texts_are_read_as_they_are_written() -> None:
    sizes = {("norm", -1): 5, ("mlp", 0): 7, ("mlp", 1): 7, ("mlp", 2): 9, ("mlp", 4): 9}
    texts = tuple(written(sizes))
    assert texts == ("norm:5", "mlp@0-1:7", "mlp@2-2:9", "mlp@4-4:9")
    assert [str(one) for one in read(texts)] == list(texts)
    for wrong in ("", "mlp", "mlp:-1", "mlp@2-1:5", "mlp@1:5", "MLP:5", "mlp:1e3", "mlp:9" + "0" * 20):
        assert stored(wrong) is None
