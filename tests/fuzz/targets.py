"""What is damaged, who reads it, and what must hold of every answer."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import safetensors.numpy

from memgui.catalog import Catalog
from memgui.files.bounded import FileFault, read_whole
from memgui.importers.gguf_parts import read_gguf
from memgui.importers.hf_config import import_config, import_weights
from memgui.importers.safetensors_shards import read_files, read_index
from memgui.importers.tensors import TensorTable
from memgui.presets.codec import MAX_MANY_BYTES, decode_many
from tests.fuzz.mutate import File
from tests.importers.files import gguf_llama, llama, safetensors_header, write_shards
from tests.importers.test_gguf_config import ARCHITECTURES, written

ROOT = Path(__file__).parents[2]
PART = "m-00001-of-00002.gguf"
SHARED = Path(os.environ.get("MEMGUI_SHARED", ROOT.parent / "shared"))


@dataclass(frozen=True)
class Target:
    """A format: whole files of it, and ``read``, which answers with a value or raises a FileFault."""

    file_name: str
    seeds: tuple[File, ...]
    read: Callable[[Path], object]
    is_json: bool = False
    is_framed: bool = False


def make_targets(folder: Path) -> dict[str, Target]:
    """The targets by name; ``folder`` is where the mutated files will lie, with what belongs beside them."""
    return {
        "config": Target("config.json", config_files(), import_config, is_json=True),
        "safetensors": Target(
            "m.safetensors", _safetensors(folder), lambda path: _within(path, read_files([path])), True, True
        ),
        "index": Target("m.safetensors.index.json", _indexes(folder), read_index, is_json=True),
        "gguf": Target("m.gguf", _gguf(folder), lambda path: _within(path, read_gguf(path))),
        "gguf model": Target(
            "m.gguf", _gguf_models(), lambda path: import_weights(read_gguf(path), "m.gguf")
        ),
        "safetensors model": Target(
            "m.safetensors",
            _safetensors_models(),
            lambda path: import_weights(read_files([path]), "m.safetensors"),
            True,
            True,
        ),
        "part": Target(PART, _gguf_part(folder), read_gguf),
        "preset": Target("p.memgui.json", _presets(), _read_presets, is_json=True),
    }


def _within(path: Path, table: TensorTable) -> TensorTable:
    size = path.stat().st_size
    assert table.total_bytes <= size
    assert all(0 <= tensor.bytes <= size and min(tensor.shape, default=0) >= 0 for tensor in table.tensors)
    return table


def _read_presets(path: Path) -> object:
    found = decode_many(read_whole(path, MAX_MANY_BYTES), path.name)
    for part in found:
        if isinstance(part, FileFault):
            raise part
    return found


def config_files() -> tuple[File, ...]:
    """Configs of each kind of nesting; and, where they are at hand, the real ones."""
    dense: dict[str, object] = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "hidden_act": "silu",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "max_position_embeddings": 131072,
        "model_type": "llama",
        "num_attention_heads": 32,
        "num_hidden_layers": 16,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-05,
        "rope_scaling": {"factor": 32.0, "rope_type": "llama3"},
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "vocab_size": 128256,
    }
    gpt2 = {
        "model_type": "gpt2",
        "n_embd": 768,
        "n_head": 12,
        "n_layer": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
    }
    sparse = dense | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    nested = {"model_type": "llava", "text_config": dense, "vision_config": {"hidden_size": 1024}}
    quantised = dense | {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    made = [json.dumps(config, indent=2).encode() for config in (dense, gpt2, sparse, nested, quantised)]
    real = [path.read_bytes() for path in sorted((SHARED / "data" / "hf_configs").glob("*__*.json"))]
    return tuple(map(File, made + real))


def _safetensors(folder: Path) -> tuple[File, ...]:
    """One as the package writes it; real headers of 150 tensors and of none, over data of nothing."""
    path = folder / "written.safetensors"
    safetensors.numpy.save_file(
        {"a": np.zeros((3, 4), np.float32), "b.weight": np.zeros(5, np.float16), "c": np.zeros((), np.int8)},
        path,
        {"format": "np"},
    )
    made = [
        safetensors_header(llama(16, 2048, 8192, 512, 128_256), {"format": "pt"}),
        safetensors_header({"x": ("F8_E4M3", (4, 8)), "x_scale": ("F32", (1,)), "y": ("F4", (6, 2))}, {}),
        safetensors_header({}),
    ]
    return (File(path.read_bytes()), *(File(*header) for header in made))


def _safetensors_models() -> tuple[File, ...]:
    """Checkpoints whose shapes leave no doubt: norms on heads, or stored rotary frequencies."""
    plain = llama(4, 64, 128, 16, 100)
    layers = [f"model.layers.{layer}.self_attn" for layer in range(4)]
    norms = {f"{layer}.{one}_norm.weight": ("BF16", (8,)) for layer in layers for one in "qk"}
    tables = {f"{layer}.rotary_emb.inv_freq": ("F32", (4,)) for layer in layers}
    return tuple(File(*safetensors_header({**plain, **more})) for more in (norms, tables))


def _indexes(folder: Path) -> tuple[File, ...]:
    return (File(write_shards(folder, llama(2, 64, 128, 16, 100), 3).read_bytes()),)


def _gguf(folder: Path) -> tuple[File, ...]:
    """One as the package writes it, with every kind of value; real sizes and a tokenizer over nothing."""
    path = folder / "written.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_head_count_kv([8, 4])
    writer.add_rope_freq_base(10_000.0)
    writer.add_bool("general.flag", True)
    writer.add_int8("tiny", -1)
    writer.add_uint64("large", 2**40)
    writer.add_token_list([f"token{index}" for index in range(1_100)])
    writer.add_token_types([1] * 1_100)
    writer.add_tensor("a", np.zeros((3, 64), np.float16))
    writer.add_tensor("b", np.zeros((5, 36), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    _finish(writer)
    made = (gguf_llama(2, 256, 512, 40), gguf_llama(16, 2048, 8192, 1_500))
    return (File(path.read_bytes()), *(File(header, size - len(header)) for header, size in made))


def _gguf_models() -> tuple[File, ...]:
    """Built-in models of several kinds, as llama.cpp's converter describes them."""
    kinds = ("llama", "mixtral", "gemma2", "deepseek_v3", "mamba2", "lfm2", "gpt_oss", "qwen3_next", "falcon")
    first = {entry.spec.model_type: entry.spec for entry in Catalog().models}
    made = []
    for model in (first[kind] for kind in kinds if kind in first):
        header = written(model, ARCHITECTURES[model.model_type])
        made.append(File(header[:-8], 32 + int.from_bytes(header[-8:], "little")))
    return tuple(made)


def _gguf_part(folder: Path) -> tuple[File, ...]:
    """The first part of a model of two, whose second lies beside it."""
    writer = gguf.GGUFWriter(folder / "m.gguf", "llama", split_max_tensors=1)
    for name in "ab":
        writer.add_tensor(name, np.zeros(8, np.float32))
    _finish(writer)
    return (File((folder / PART).read_bytes()),)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _presets() -> tuple[File, ...]:
    return tuple(
        File(path.read_bytes()) for path in sorted((ROOT / "tests/presets/fixtures").rglob("*.json"))
    )
