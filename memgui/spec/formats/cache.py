"""How cached keys and values are stored."""

from __future__ import annotations

import msgspec

from memgui.spec.formats.ggml import GGML
from memgui.spec.formats.numbers import FORMATS
from memgui.spec.messages import QT_TRANSLATE_NOOP


class CacheFormat(msgspec.Struct, frozen=True):
    """``block`` values in ``block_bytes`` bytes, and ``head_bytes`` for each head of a token.

    The last ``residual_tokens`` tokens of a sequence stay in 16 bits.  ``latent_only`` formats store
    the compressed keys and values of latent attention, with the rotary part in 16 bits.  ``engines``
    have it.
    """

    name: str
    label: str
    block: int
    block_bytes: int
    source: str
    head_bytes: int = 0
    residual_tokens: int = 0
    latent_only: bool = False
    exact: bool = True
    engines: tuple[str, ...] = ()

    def bytes_for(self, heads: int, head_dim: int) -> int:
        """Bytes of the keys (or values) of one token."""
        return -(-heads * head_dim // self.block) * self.block_bytes + heads * self.head_bytes

    @property
    def bits(self) -> float:
        """Bits per value, scales of blocks included (for display)."""
        return 8 * self.block_bytes / self.block


_FP8 = QT_TRANSLATE_NOOP("sources", "One scale for a tensor or a head, which is not counted")
_INT8 = QT_TRANSLATE_NOOP("sources", "One fp32 scale for each token and head")
_NVFP4 = QT_TRANSLATE_NOOP("sources", "One e4m3 scale for 16 values, as in TensorRT-LLM and vLLM")
_EXL = QT_TRANSLATE_NOOP("sources", "One fp16 scale for 32 values, as in exllamav2 and exllamav3")
_KIVI = QT_TRANSLATE_NOOP("sources", "KIVI's README and paper: groups of 32, the last 128 tokens in 16 bits")
_HF = QT_TRANSLATE_NOOP("sources", "Transformers' QuantizedCache: groups of 64, 128 tokens in 16 bits")
_DS = QT_TRANSLATE_NOOP("sources", "vLLM's fp8_ds_mla: fp8 with an fp32 scale for 128, rotary part in bf16")

_TURBO = QT_TRANSLATE_NOOP(
    "sources", "vLLM pull request 38479: packed keys and their norm, packed values with scale and zero"
)

_ANY = ("transformers", "vllm", "sglang", "llama.cpp", "ollama", "gpt-fast")
OLLAMA = ("q8_0", "q4_0")
"""Packed formats that Ollama offers of llama.cpp's (OLLAMA_KV_CACHE_TYPE)."""

_TABLE = (
    *(
        CacheFormat(
            name, FORMATS[name].label, 1, FORMATS[name].block_bytes, FORMATS[name].source, engines=_ANY
        )
        for name in ("fp32", "bf16", "fp16")
    ),
    CacheFormat("fp8", FORMATS["fp8"].label, 1, 1, _FP8, engines=("vllm", "sglang")),
    CacheFormat("int8", FORMATS["int8"].label, 1, 1, _INT8, head_bytes=4, engines=("gpt-fast",)),
    CacheFormat("nvfp4", "NVFP4", 16, 9, _NVFP4, exact=False),
    *(
        CacheFormat(
            name,
            GGML[name].label,
            GGML[name].block,
            GGML[name].block_bytes,
            GGML[name].source,
            engines=("llama.cpp", "ollama") if name in OLLAMA else ("llama.cpp",),
        )
        for name in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
    ),
    *(
        CacheFormat(f"exl2_q{bits}", f"EXL2 Q{bits}", 32, 4 * bits + 2, _EXL, exact=False)
        for bits in (4, 6, 8)
    ),
    *(
        CacheFormat(f"exl3_{bits}bit", f"EXL3 {bits}-bit", 32, 4 * bits + 2, _EXL, exact=False)
        for bits in range(2, 9)
    ),
    *(
        CacheFormat(
            f"kivi_{bits}bit",
            f"KIVI {bits}-bit",
            32,
            4 + 4 * bits,
            _KIVI,
            residual_tokens=128,
            exact=False,
            engines=("transformers",),
        )
        for bits in (2, 4)
    ),
    CacheFormat(
        "quantized_int4",
        "QuantizedCache int4",
        64,
        36,
        _HF,
        residual_tokens=128,
        exact=False,
        engines=("transformers",),
    ),
    CacheFormat(
        "quantized_int2",
        "QuantizedCache int2",
        64,
        20,
        _HF,
        residual_tokens=128,
        exact=False,
        engines=("transformers",),
    ),
    # of a head's key and value together: two bytes of norm, four of scale and zero
    *(
        CacheFormat(name, label, 8, bits, _TURBO, head_bytes=head, engines=("vllm",))
        for name, label, bits, head in (
            ("turboquant_4bit", QT_TRANSLATE_NOOP("fields", "TurboQuant 4-bit (from 0.20 on)"), 4, 3),
            ("turboquant_3bit", QT_TRANSLATE_NOOP("fields", "TurboQuant 3-bit (from 0.20 on)"), 3, 3),
            ("turboquant_k8v4", QT_TRANSLATE_NOOP("fields", "TurboQuant K8V4 (from 0.20 on)"), 6, 2),
        )
    ),
    CacheFormat("fp8_ds_mla", "fp8_ds_mla", 128, 132, _DS, latent_only=True, engines=("vllm",)),
)

CACHE_FORMATS: dict[str, CacheFormat] = {entry.name: entry for entry in _TABLE}
"""Every format of cached keys and values by name."""


def cache_format(name: str) -> CacheFormat:
    """The format called ``name``; ``KeyError`` names the known ones."""
    try:
        return CACHE_FORMATS[name]
    except KeyError:
        raise KeyError(f"unknown cache format {name!r}; known: {', '.join(CACHE_FORMATS)}") from None
