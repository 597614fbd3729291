"""Quantisation schemes: what is stored how, as a whole model is loaded or published in it.

A scheme names the format of linear layers, of the head and of the embedding, and which parts of a
model it touches.  GGUF's mixes choose for each tensor by its role and layer; here they have a name
and a base type (:mod:`memgui.estimator.quantisation_gguf` has their rules).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from memgui.spec.formats.weights import WEIGHT_FORMATS
from memgui.spec.messages import QT_TRANSLATE_NOOP

LAYERS = ("attention", "mlp", "experts", "shared_experts", "mixer")
"""Parts whose matrices are linear layers inside the layers of a model."""

PARTS = (*LAYERS, "lm_head", "embedding")
"""Every part that a scheme can quantise."""

AS_IN_FILE = "as_in_file"
"""The scheme of weights whose files were opened: their true bytes."""

_HF = ("transformers",)
_VLLM = ("vllm", "sglang")
_GGUF = ("llama.cpp", "ollama")
_GPT_FAST = ("gpt-fast",)


class WeightScheme(msgspec.Struct, frozen=True):
    """How the weights of a model are stored.

    ``linear`` is the weight format of linear layers in ``parts``, ``head`` and ``embedding`` those of
    the head and the embedding; ``""`` is ``base``, the plain format of everything else.  ``mix`` is a
    GGUF mix, by whose rules each tensor is stored.  ``engines`` load it.  ``table`` holds the bytes
    of a file (:mod:`memgui.spec.stored`), which then count.
    """

    name: str
    label: str
    note: str = ""
    linear: str = ""
    base: str = "bf16"
    head: str = ""
    embedding: str = ""
    parts: tuple[str, ...] = LAYERS
    mix: str = ""
    engines: tuple[str, ...] = (*_HF, *_VLLM)
    table: tuple[str, ...] = ()


def _schemes() -> Iterator[WeightScheme]:
    everywhere = (*_HF, *_VLLM, *_GGUF, *_GPT_FAST)
    for plain in ("bf16", "fp16", "fp32"):
        yield WeightScheme(plain, plain, base=plain, engines=everywhere)
    yield WeightScheme(AS_IN_FILE, QT_TRANSLATE_NOOP("fields", "as in the file"), base="", engines=())
    eight = QT_TRANSLATE_NOOP("fields", "8 bits")
    six = QT_TRANSLATE_NOOP("fields", "6 bits")
    four = QT_TRANSLATE_NOOP("fields", "4 bits")
    for name, note in (
        ("fp8_per_tensor", eight),
        ("fp8_static", eight),
        ("fp8_per_channel", eight),
        ("fp8_block_128x128", eight),
        ("mxfp8_e4m3", eight),
        ("mxfp8_e5m2", eight),
        ("mxint8", eight),
        ("mxfp6_e2m3", six),
        ("mxfp6_e3m2", six),
        ("nvfp4", four),
    ):
        yield WeightScheme(name, WEIGHT_FORMATS[name].label, note, name)
    yield WeightScheme("mxfp4", "MXFP4", QT_TRANSLATE_NOOP("fields", "experts"), "mxfp4", parts=("experts",))
    yield WeightScheme("int8", "LLM.int8()", "bitsandbytes", "llm_int8")
    for kind in ("nf4", "nf4_dq", "fp4", "fp4_dq"):
        for name in (kind, f"{kind}_block128"):
            yield WeightScheme(name, WEIGHT_FORMATS[name].label, "bitsandbytes", name)
    for start, engines in (
        ("gptq_", (*_HF, *_VLLM)),
        ("awq_", (*_HF, *_VLLM)),
        ("compressed_tensors_", (*_HF, *_VLLM)),
        ("hqq_", (*_HF, *_VLLM)),
        ("aqlm_", (*_HF, *_VLLM)),
        ("quanto_", _HF),
    ):
        for name, stored in WEIGHT_FORMATS.items():
            if name.startswith(start):
                yield WeightScheme(name, stored.label, linear=name, engines=engines)
    for name, stored in WEIGHT_FORMATS.items():
        if name.startswith("torchao_"):
            yield WeightScheme(name, stored.label, linear=name, head=name, engines=(*_HF, *_VLLM, *_GPT_FAST))
        if name.startswith("mlx_"):
            yield WeightScheme(name, stored.label, linear=name, head=name, embedding=name, engines=("mlx",))
        if name.startswith("exl2_"):
            yield WeightScheme(name, stored.label, linear=name, head="exl2_6.0bpw", engines=("exllama",))
        if name.startswith("exl3_"):
            yield WeightScheme(name, stored.label, linear=name, head="exl3_6bit", engines=("exllama",))
    alone = QT_TRANSLATE_NOOP("fields", "numbers alone, no scales")
    for name in NUMBERS:
        yield WeightScheme(name, WEIGHT_FORMATS[name].label, alone, name, engines=())
    for name in WIDE:
        yield WeightScheme(name, WEIGHT_FORMATS[name].label, base=name, engines=())
    for name, base in MIXES.items():
        yield WeightScheme(name, name.upper(), "GGUF", f"ggml_{base}", "fp32", mix=name, engines=_GGUF)


NUMBERS = ("fp8_e4m3", "fp8_e5m2", "int4", "fp4_e2m1", "int2", "ternary_b1.58")
"""Number formats that no engine loads without scales: what linear layers would take at least."""

WIDE = ("tf32", "fp64")
"""Formats that nothing is served in by itself."""

MIXES = {
    "q8_0": "q8_0",
    "q6_k": "q6_k",
    "q5_k_m": "q5_k",
    "q5_k_s": "q5_k",
    "q5_1": "q5_1",
    "q5_0": "q5_0",
    "q4_k_m": "q4_k",
    "q4_k_s": "q4_k",
    "q4_1": "q4_1",
    "q4_0": "q4_0",
    "iq4_nl": "iq4_nl",
    "iq4_xs": "iq4_xs",
    "q3_k_l": "q3_k",
    "q3_k_m": "q3_k",
    "q3_k_s": "q3_k",
    "iq3_m": "iq3_s",
    "iq3_s": "iq3_s",
    "iq3_xs": "iq3_s",
    "iq3_xxs": "iq3_xxs",
    "q2_k": "q2_k",
    "q2_k_s": "q2_k",
    "iq2_m": "iq2_s",
    "iq2_s": "iq2_xs",
    "iq2_xs": "iq2_xs",
    "iq2_xxs": "iq2_xxs",
    "iq1_m": "iq1_m",
    "iq1_s": "iq1_s",
    "tq2_0": "tq2_0",
    "tq1_0": "tq1_0",
    "mxfp4_moe": "mxfp4",
}
"""The mixes of ``llama-quantize`` that quantise, each with its base type."""

PLAIN_MIXES = {"bf16": "bf16", "fp16": "f16", "fp32": "f32"}
"""Plain formats as GGUF files hold them: matrices in this ggml type, the rest in fp32."""

SCHEMES: dict[str, WeightScheme] = {scheme.name: scheme for scheme in _schemes()}
"""Every scheme by name."""


def weight_scheme(name: str, engine: str = "") -> WeightScheme:
    """The scheme called ``name`` as ``engine`` loads it; ``KeyError`` names the known ones.

    llama.cpp holds whatever is no matrix in fp32, in files of plain formats too.
    """
    try:
        found = SCHEMES[name]
    except KeyError:
        raise KeyError(f"unknown weight scheme {name!r}; known: {', '.join(SCHEMES)}") from None
    plain = PLAIN_MIXES.get(name)
    if plain is None or engine not in _GGUF:
        return found
    return WeightScheme(name, found.label, "", f"ggml_{plain}", "fp32", mix=name, engines=_GGUF)
