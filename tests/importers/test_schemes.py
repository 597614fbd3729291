"""Quantisation blocks as weight formats: those of real checkpoints, in the words of each library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memgui.importers.hf_config import import_config
from memgui.importers.schemes import Scheme, scheme_of

SHARED = Path(os.environ.get("MEMGUI_SHARED", Path(__file__).parents[3] / "shared"))

CONFIG = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
}
GROUP = {"num_bits": 4, "type": "float", "group_size": 16}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3"}
INT4 = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group"}
ATTENTION = [f"model.layers.{layer}.self_attn*" for layer in range(4)]
BEYOND = ("mlp", "experts", "shared_experts", "mixer")


@pytest.mark.parametrize(
    ("block", "scheme"),
    [
        ({**FP8, "weight_block_size": [128, 128]}, Scheme("fp8_block_128x128")),
        ({**FP8, "weight_block_size": None}, Scheme("fp8_per_tensor")),
        ({**FP8, "activation_scheme": "static"}, Scheme("fp8_static")),
        (
            {
                **FP8,
                "weight_block_size": [128, 128],
                "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate"],
            },
            Scheme("fp8_block_128x128"),
        ),
        ({"quant_method": "fbgemm_fp8"}, Scheme("fp8_per_channel", BEYOND)),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "NVFP4",
                "config_groups": {"group_0": {"weights": GROUP}},
            },
            Scheme("nvfp4"),
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ATTENTION}, Scheme("nvfp4", BEYOND)),
        ({"quant_algo": "FP8", "producer": {"name": "modelopt", "version": "0.31.0"}}, Scheme("fp8_static")),
        (
            {
                "quant_method": "fp8",
                "quant_algo": "MIXED_PRECISION",
                "moe_quant_algo": "NVFP4",
                "quantized_layers": {"layers.0.ffn.experts": {"quant_algo": "NVFP4"}},
            },
            Scheme("nvfp4", ("experts",)),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": INT4}},
                "ignore": ["lm_head", "re:.*self_attn.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*"],
            },
            Scheme("compressed_tensors_int4_g32_sym", ("experts", "shared_experts", "mixer")),
        ),
        ({"quant_method": "mxfp4"}, Scheme("mxfp4")),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, Scheme("gptq_int4_g128")),
        ({"quant_method": "gptq", "bits": 3, "group_size": -1}, Scheme("gptq_int3_g-1")),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, Scheme("awq_int4_g128")),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, Scheme("int8")),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            Scheme("nf4"),
        ),
        ({"group_size": 64, "bits": 4}, Scheme("mlx_4bit_g64")),
        ({"quant_method": "made-up", "bits": 4}, None),
    ],
)
def test_block(block: dict[str, Any], scheme: Scheme | None) -> None:
    found = import_config({**CONFIG, "quantization_config": block})
    assert found.quantization is not None
    assert scheme_of(found.quantization, found.model) == scheme


def test_dense_layers_left_alone_as_a_whole_leave_the_dense_part_alone() -> None:
    first = {**CONFIG, "mlp_only_layers": [0], "decoder_sparse_step": 1}
    block = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["model.layers.0*"]}
    found = import_config({**first, "quantization_config": block})
    assert found.quantization is not None
    parts = ("attention", "experts", "shared_experts", "mixer")
    assert scheme_of(found.quantization, found.model) == Scheme("nvfp4", parts)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the reference folder is not here")
def test_every_block_of_the_shared_configs_has_a_format() -> None:
    blocks = 0
    for path in sorted((SHARED / "data" / "hf_configs").glob("*__*.json")):
        found = import_config(path)
        if found.quantization is not None:
            blocks += 1
            assert scheme_of(found.quantization, found.model) is not None, path.name
    assert blocks >= 40
