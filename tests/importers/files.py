"""Weight files made byte by byte: what no honest writer would write, and real sizes without the data."""

import json
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from pathlib import Path

import pytest

from memgui.files.bounded import FileFault
from memgui.importers.tensors import GGML_TYPES, SAFETENSORS_DTYPES

Shape = Sequence[int]


def sentence(read: Callable[[], object]) -> str:
    """The one sentence that ``read`` refuses with, within a second and 64 MiB."""
    start = time.process_time()
    with pytest.raises(FileFault) as fault:
        read()
    took = time.process_time() - start
    tracemalloc.start()
    try:
        with pytest.raises(FileFault):
            read()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = str(fault.value)
    assert said.isprintable()
    assert said.endswith(".")
    assert took < 1
    assert peak < 64 * 2**20
    return said


def sparse(path: Path, start: bytes, size: int | None = None) -> Path:
    """A file that begins with ``start`` and has ``size`` bytes, without taking them on the disk."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) if size is None else size)
    return path


# safetensors


def framed(header: bytes) -> bytes:
    """A safetensors header behind its length."""
    return struct.pack("<Q", len(header)) + header


def safetensors_header(
    tensors: Mapping[str, tuple[str, Shape]], metadata: Mapping[str, str] | None = None
) -> tuple[bytes, int]:
    """The header of ``tensors`` (dtype and shape by name), framed; and the bytes of the data behind it."""
    header: dict[str, object] = {} if metadata is None else {"__metadata__": metadata}
    position = 0
    for name, (dtype, shape) in tensors.items():
        packing = SAFETENSORS_DTYPES[dtype]
        end = position + prod(shape) * packing.block_bytes // packing.block
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    return framed(text + b" " * (-len(text) % 8)), position


def write_safetensors(
    path: Path, tensors: Mapping[str, tuple[str, Shape]], metadata: Mapping[str, str] | None = None
) -> Path:
    header, data = safetensors_header(tensors, metadata)
    return sparse(path, header, len(header) + data)


def write_shards(folder: Path, tensors: Mapping[str, tuple[str, Shape]], count: int) -> Path:
    """``tensors`` dealt out to ``count`` shards as Transformers names them; the path of their index."""
    names = list(tensors)
    weight_map: dict[str, str] = {}
    total = 0
    for number in range(count):
        shard = f"model-{number + 1:05}-of-{count:05}.safetensors"
        part = {
            name: tensors[name]
            for name in names[number * len(names) // count : (number + 1) * len(names) // count]
        }
        header, data = safetensors_header(part, {"format": "pt"})
        sparse(folder / shard, header, len(header) + data)
        weight_map |= dict.fromkeys(part, shard)
        total += data
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2))
    return index


def llama(layers: int, hidden: int, inner: int, kv: int, vocabulary: int) -> dict[str, tuple[str, Shape]]:
    """The tensors of a Llama, as its checkpoints name and store them."""
    tensors: dict[str, tuple[str, Shape]] = {"model.embed_tokens.weight": ("BF16", (vocabulary, hidden))}
    matrices = {
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    for layer in range(layers):
        for name, shape in matrices.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = ("BF16", shape)
    return tensors | {
        "model.norm.weight": ("BF16", (hidden,)),
        "lm_head.weight": ("BF16", (vocabulary, hidden)),
    }


# GGUF


def text(value: str | bytes, version: int = 3) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return count(len(data), version) + data


def count(value: int, version: int = 3) -> bytes:
    return struct.pack("<I" if version == 1 else "<Q", value)


def entry(key: str, kind: int, value: bytes, version: int = 3) -> bytes:
    return text(key, version) + struct.pack("<I", kind) + value


def number(key: str, value: int, version: int = 3) -> bytes:
    return entry(key, 4, struct.pack("<I", value), version)


def words(key: str, values: Iterable[str], version: int = 3) -> bytes:
    values = list(values)
    head = struct.pack("<I", 8) + count(len(values), version)
    return entry(key, 9, head + b"".join(text(value, version) for value in values), version)


def tensor(name: str | bytes, shape: Shape, kind: int, offset: int, version: int = 3) -> bytes:
    """A tensor's entry; ``shape`` outermost first, as memgui gives it."""
    code = "I" if version == 1 else "Q"
    dimensions = struct.pack(f"<I{len(shape)}{code}", len(shape), *reversed(shape))
    return text(name, version) + dimensions + struct.pack("<IQ", kind, offset)


def gguf(
    entries: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    version: int = 3,
    entry_count: int | None = None,
    tensor_count: int | None = None,
) -> bytes:
    """A GGUF header; the counts are told as they are unless another is given."""
    tensor_count = len(tensors) if tensor_count is None else tensor_count
    entry_count = len(entries) if entry_count is None else entry_count
    start = b"GGUF" + struct.pack("<I", version) + count(tensor_count, version) + count(entry_count, version)
    return start + b"".join(entries) + b"".join(tensors)


def gguf_llama(
    layers: int, hidden: int, inner: int, vocabulary: int, kind: int = 12, more: Sequence[bytes] = ()
) -> tuple[bytes, int]:
    """The header of a quantised Llama with its tokenizer, and the size of the file it belongs to."""
    entries = [
        entry("general.architecture", 8, text("llama")),
        number("llama.block_count", layers),
        number("llama.embedding_length", hidden),
        words("tokenizer.ggml.tokens", (f"token{index}" for index in range(vocabulary))),
        entry(
            "tokenizer.ggml.scores",
            9,
            struct.pack("<I", 6) + count(vocabulary) + struct.pack(f"<{vocabulary}f", *range(vocabulary)),
        ),
    ]
    shapes = {"token_embd": (vocabulary, hidden), "output_norm": (hidden,), "output": (vocabulary, hidden)}
    for layer in range(layers):
        shapes |= {
            f"blk.{layer}.attn_norm": (hidden,),
            f"blk.{layer}.attn_q": (hidden, hidden),
            f"blk.{layer}.ffn_up": (inner, hidden),
            f"blk.{layer}.ffn_down": (hidden, inner),
        }
    tensors = []
    offset = 0
    for name, shape in shapes.items():
        packing = GGML_TYPES[kind if len(shape) > 1 else 0]
        tensors.append(tensor(f"{name}.weight", shape, kind if len(shape) > 1 else 0, offset))
        offset += -(-(prod(shape) // packing.block * packing.block_bytes) // 32) * 32
    header = gguf([*entries, *more], tensors)
    return header, -(-len(header) // 32) * 32 + offset
