"""How long a stranger's files take to open: a config.json, a GGUF header, the shards of an index."""

from __future__ import annotations

import contextlib
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memgui.files.bounded import FileFault
from memgui.importers.gguf_parts import read_gguf
from memgui.importers.hf_config import import_config
from memgui.importers.safetensors_shards import read_index
from tests.fuzz.targets import config_files
from tests.importers.files import Shape, count, entry, gguf_llama, llama, sparse, write_shards

TOKENS = 256_000
SHARDS = 200


def reading() -> dict[str, float]:
    """Milliseconds: of all configs at hand the slowest; medians of the others."""
    with tempfile.TemporaryDirectory(prefix="memgui-reading-") as name:
        folder = Path(name)
        configs = []
        for number, config in enumerate(config_files()):
            path = sparse(folder / f"{number}.json", config.start)
            configs.append(_median(lambda path=path: _open(path), 3))  # type: ignore[misc]
        # The largest tokenizers in use: 256,000 tokens with scores and types, and twice as many merges.
        merges = struct.pack("<I", 8) + count(2 * TOKENS) + (count(11) + b"token merge") * (2 * TOKENS)
        more = [entry("tokenizer.ggml.merges", 9, merges)]
        header, size = gguf_llama(32, 4096, 14336, TOKENS, more=more)
        model = sparse(folder / "m.gguf", header, size)
        dense = write_shards(_made(folder / "dense"), llama(126, 16384, 53248, 1024, 128256), SHARDS)
        experts = write_shards(_made(folder / "experts"), _experts(58, 256), SHARDS)
        return {
            "open_config_ms_worst": max(configs),
            "gguf_256k_tokens_ms_p50": _median(lambda: read_gguf(model), 7),
            "safetensors_200_shards_ms_p50": _median(lambda: read_index(dense), 7),
            "safetensors_200_shards_90k_tensors_ms_p50": _median(lambda: read_index(experts), 3),
        }


def _open(path: Path) -> None:
    with contextlib.suppress(FileFault):  # to say why not may take no longer
        import_config(path)


def _experts(layers: int, experts: int) -> dict[str, tuple[str, Shape]]:
    """As DeepSeek-V3 stores its experts: each matrix on its own, with its scales."""
    return {
        f"model.layers.{layer}.mlp.experts.{expert}.{matrix}.{name}": (dtype, shape)
        for layer in range(layers)
        for expert in range(experts)
        for matrix in ("gate_proj", "up_proj", "down_proj")
        for name, dtype, shape in (("weight", "F8_E4M3", (2048, 7168)), ("weight_scale_inv", "F32", (16, 56)))
    }


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _median(call: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        took.append(1e3 * (time.perf_counter() - start))
    return statistics.median(took)
