"""What people write about a run, in memgui's terms.

Every function takes a row's words and gives a field's value.  A value that memgui does not have yet
is given all the same: the field refuses it, and the row counts under that reason until it is there.
What the words leave open raises :class:`Inexpressible`.
"""

from __future__ import annotations

import re
from typing import Any

from memgui.catalog import Catalog, UnknownName
from tests.accuracy.express import Inexpressible

OFFLOAD = "parts are offloaded to the CPU"


def slug(text: str) -> str:
    """Words as a value could be spelt, for formats and optimizers that have no name here."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def count(value: Any, what: str) -> int:
    """The number in an int, ``"~20"``, ``"<=768"``, ``"1 (implied)"``, ``"cache 8192"``, ``"256+256"``."""
    if isinstance(value, bool) or value is None:
        raise Inexpressible(f"{what} is not stated")
    if isinstance(value, int):
        return value
    text = str(value).replace(",", "")
    if "unpacked" in text.lower() or "global" in text:
        raise Inexpressible(f"{what} is not stated exactly")
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    if not numbers:
        raise Inexpressible(f"{what} is not stated")
    if "+" in text:
        return sum(numbers[-2:]) if len(numbers) > 1 else numbers[0]
    return numbers[0]


def training_precision(text: str | None) -> tuple[str, str]:
    """``training.precision``, and the format of the weights it starts from (``training.base_format``)."""
    words = (
        (text or "").lower().replace("bfloat16", "bf16").replace("float16", "fp16").replace("float32", "fp32")
    )
    if not words:
        raise Inexpressible("the precision is not stated")
    if "fp8" in words:
        return "fp8", "fp8"
    if "fp32 active block" in words:
        return "bf16_block", "bf16"
    half = "fp16" if "fp16" in words and "bf16" not in words else "bf16"
    if "master" in words and "amp" not in words and "autocast" not in words and "no master" not in words:
        return f"{half}_master", half
    if any(word in words for word in ("mixed", "amp", "autocast", "fp32 parameters", "fp32 sharded")):
        # autocast to fp16 keeps the same bytes as to bf16
        return "bf16_mixed", "fp32"
    if "bf16" in words or "fp16" in words:
        return half, half
    if "fp32" in words:
        return "fp32", "fp32"
    raise Inexpressible(f"precision: {words}")


def weight_format(precision: str | None, quantisation: str | None) -> str:
    """The format the weights are held in: the quantisation's, else the precision's."""
    if quantisation:
        return quantised(quantisation)
    words = (precision or "").lower()
    for name, spellings in (
        ("fp32", ("fp32", "float32")),
        ("bf16", ("bf16", "bfloat16")),
        ("fp16", ("fp16", "float16")),
    ):
        if any(spelling in words for spelling in spellings):
            return "fp32" if "mixed" in words else name
    raise Inexpressible("the weights' format is not stated")


def quantised(text: str) -> str:
    """A quantisation's name: ``nf4``, ``int8``, ``gptq_int4_g128``, ``q4_k_m``, …"""
    words = text.lower()
    if words.startswith(("gguf", "ggml")):
        return gguf(words[4:])
    nested = "_dq" if "dq" in words or "nested" in words else ""
    for name in ("mxfp4", "nvfp4", "nf4", "fp4"):
        if name in words:
            return name + nested
    bits = re.search(r"(?:int|-)?([348])[- ]?(?:bits?)?", words)
    group = re.search(r"g(\d+)", words)
    for scheme in ("gptq", "awq", "autoround", "hqq"):
        if scheme in words:  # groups of 128 unless said otherwise, as every tool does by default
            name = "gptq" if scheme == "autoround" else scheme
            size = group.group(1) if group else 128
            return f"{name}_int{bits.group(1) if bits else 4}_g{size}"
    if "int8" in words:
        return "int8"
    if "fp8" in words or "float8" in words:
        return "fp8_per_channel"
    return slug(text)


def gguf(text: str) -> str:
    """The mix of a file, as a log or a person names it: ``Q5_K - Medium``, ``IQ4_XS - 4.25 bpw``, ``F16``."""
    found = re.search(r"\b(ud-)?(i?q\d_[a-z0-9]+(?:_[sml])?|mxfp4|bf16|f16|f32)\b", text)
    if found is None or found.group(1):
        return slug(text.split("(")[0])
    name = {"bf16": "bf16", "f16": "fp16", "f32": "fp32", "mxfp4": "mxfp4_moe"}.get(
        found.group(2), found.group(2)
    )
    size = re.search(r"- (small|medium|large)", text)
    return f"{name}_{size.group(1)[0]}" if size else name


_OPTIMIZERS = (
    ("paged 8", "paged_adamw_8bit"),
    ("pagedadamw8", "paged_adamw_8bit"),
    ("paged", "paged_adamw"),
    ("galore", "galore"),
    ("badam", "badam"),
    ("lisa", "lisa"),
    ("pro (", "llama_pro"),
    ("muon", "muon"),
    ("adafactor", "adafactor"),
    ("fp8", "adamw_fp8"),
    ("4-bit", "adamw_4bit"),
    ("4bit", "adamw_4bit"),
    ("8-bit", "adamw_8bit"),
    ("8bit", "adamw_8bit"),
    ("adam", "adamw"),
    ("sgd", "sgd"),
)


def optimizer(text: str | None, framework: str) -> dict[str, Any]:
    """``training.optimizer`` and how it runs; AdamW where nothing is said, every script's default."""
    words = (text or "adamw").lower()
    share = re.search(r"(\d+)% states on cpu", words)
    on_cpu = int(share.group(1)) / 100 if share else float("cpu" in words)
    name = next((value for word, value in _OPTIMIZERS if word in words), slug(words))
    if "lora-fa" in words:
        name = "adamw"
    settings: dict[str, Any] = {"training.optimizer": name}
    if on_cpu:
        settings["training.offload_optimizer"] = on_cpu
    if "backward" in words:
        settings["training.optimizer_in_backward"] = True
    if "bf16 moments" in words:
        settings["training.state_format"] = "bf16"
    if "lora-fa" in words:  # trains one of the two matrices
        settings["training.lora.variant"] = "lora_fa"
    if name == "adamw":
        loop = "4.1x" in framework  # Transformers' own AdamW of that time updates one tensor after another
        fused = "fused" in words or framework.startswith("DeepSpeed")  # which has its own FusedAdam
        kernels = "fused" if fused else "forloop" if loop else "foreach"
        settings["training.optimizer_implementation"] = kernels
    return settings


def recompute(value: Any) -> dict[str, Any]:
    """``training.activation_checkpointing``, and whether checkpoints wait in the computer's memory."""
    words = str(value).lower()
    if "offload" in words and words.startswith("on"):
        return {"training.activation_checkpointing": "full", "training.checkpoint_offload": True}
    return {"training.activation_checkpointing": checkpointing(value)}


def checkpointing(value: Any) -> str:
    """``training.activation_checkpointing``."""
    words = str(value).lower()
    if value is None or value is False or words.startswith(("none", "off", "false")):
        return "none"
    if "offload" in words:
        raise Inexpressible(OFFLOAD)
    if "selective" in words:
        return (
            "selective"
            if "core" in words or words == "selective"
            else f"selective_{slug(words.partition(':')[2] or 'op')}"
        )
    return "full"


_MODULES = {
    "core_attn": "core_attn",
    "core attention": "core_attn",
    "mlp": "mlp",
    "moe": "moe",
    "layernorm": "layernorm",
}


def recomputation(value: Any) -> dict[str, Any]:
    """``training.activation_checkpointing``, and which modules or layers."""
    words = str(value).lower()
    if "every 2nd layer" in words:
        return {"training.activation_checkpointing": "full", "training.checkpoint_every": 2}
    named = tuple(dict.fromkeys(module for word, module in _MODULES.items() if word in words))
    if "selective" in words and named:
        return {"training.activation_checkpointing": "selective", "training.recompute_modules": named}
    return {"training.activation_checkpointing": checkpointing(value)}


def attention(text: str | None, default: str = "sdpa") -> str:
    """``training.attention`` and ``inference.attention``."""
    words = (text or "").lower()
    if not words or "auto" in words or "not stated" in words:
        return default
    if "flash_attn=0" in words or "eager" in words or "unfused" in words or "matmul" in words:
        return "eager"
    if "flex" in words:
        return "flex_attention"
    if "sdpa" in words:
        return "sdpa"
    if "flash" in words or "fa2" in words or "te" in words.split():
        return "flash_attention_2"
    if "unsloth" in words:
        return "sdpa"
    return default


_IMPLEMENTATIONS = (
    ("transformers 4.1x", "transformers_2022"),
    ("liger", "fused"),
    ("megatron", "megatron"),
    ("ms-swift", "transformers"),
    ("lit-gpt", "litgpt"),
    ("litgpt", "litgpt"),
    ("torchtune", "torchtune"),
    ("torchtitan", "torchtitan"),
    ("torchao", "torchtune"),
    ("colossalai", "colossalai"),
    ("xtuner", "xtuner"),
    ("nanogpt", "nanogpt"),
    ("llm-foundry", "llm_foundry"),
    ("pytorch 2", "pytorch"),
)


_OTHERS = {
    "unsloth": "how Unsloth before 2026 made its logits is not modelled",
    "llmtools": "how llmtools runs a base packed by GPTQ is not modelled",
}
"""Libraries whose code of that time nothing here writes."""


def implementation(framework: str | None) -> str:
    """``training.implementation``: whose layers run.  Most scripts are Transformers' Trainer in disguise."""
    words = (framework or "").lower()
    for name, reason in _OTHERS.items():
        if name in words:
            raise Inexpressible(reason)
    return next(
        (value for word, value in _IMPLEMENTATIONS if words.startswith(word) or word in words), "transformers"
    )


_ENGINES = (
    ("vllm-ascend", "vllm_ascend"),
    ("vllm", "vllm"),
    ("ik_llama", "ik_llama.cpp"),
    ("llama.cpp", "llama.cpp"),
    ("llama-cpp", "llama.cpp"),
    ("ollama", "ollama"),
    ("koboldcpp", "llama.cpp"),
    ("lm studio", "llama.cpp"),
    ("sglang", "sglang"),
    ("tgi", "tgi"),
    ("lmdeploy", "lmdeploy"),
    ("exllama", "exllama"),
    ("autoawq", "autoawq"),
    ("gpt-fast", "gpt-fast"),
    ("lit-gpt", "gpt-fast"),
    ("deepspeed", "transformers"),
    ("xtuner", "xtuner"),
    ("q27", "q27"),
    ("pytorch", "pytorch"),
)


def engine(framework: str | None) -> str:
    """``inference.engine``."""
    words = (framework or "").lower()
    if words.startswith(("transformers", "optimum")):
        return "transformers"
    return next((value for word, value in _ENGINES if word in words), "transformers")


def parallelism(given: dict[str, Any], gpus: int) -> dict[str, Any]:
    """``parallelism.*`` and ``device.count`` of a measured row's layout."""
    strategy = str(given.get("strategy") or "")
    words = strategy.lower()
    settings: dict[str, Any] = {"device.count": gpus, **offloaded(words)}
    for key, path in (
        ("tp", "tensor"),
        ("pp", "pipeline"),
        ("vpp", "virtual_pipeline"),
        ("cp", "context"),
        ("ep", "expert"),
    ):
        if given.get(key):
            settings[f"parallelism.{path}"] = int(given[key])
    if given.get("sp"):
        settings["parallelism.sequence"] = True
    split = 1
    for path in ("tensor", "pipeline", "context"):
        split *= settings.get(f"parallelism.{path}", 1)
    data = given.get("dp_shard") or given.get("dp")
    if "naive pipeline" in words or "layer split" in words:
        settings["parallelism.pipeline"] = gpus
    else:
        settings["parallelism.data"] = int(data) if data else max(1, gpus // split)
    settings["parallelism.sharding"] = sharding(words)
    return settings


def offloaded(words: str) -> dict[str, Any]:
    """What a strategy's words move to the CPU; :class:`Inexpressible` where they do not say what."""
    if "offload" not in words or "no offload" in words:
        return {}
    optimizer = "optimizer" in words
    parameters = "parameter" in words or ("fsdp" in words and "cpu offload" in words)
    if not optimizer and not parameters:
        raise Inexpressible(OFFLOAD)
    return {
        **({"parallelism.offload_parameters": True} if parameters else {}),
        **({"training.offload_optimizer": 1.0} if optimizer else {}),
    }


def kept_precision(precision: str, implementation: str, strategy: str, framework: str) -> str:
    """``training.precision`` as an engine makes it of ``bf16``.

    DeepSpeed and Megatron keep fp32 copies beside 16-bit weights.  Stanford Alpaca's train.py loads in
    fp32, and its ``--bf16`` is Trainer's autocast.
    """
    half = precision.removesuffix("_mixed")
    if half in ("bf16", "fp16") and (implementation == "megatron" or "zero" in strategy.lower()):
        return f"{half}_master"
    return "bf16_mixed" if precision == "bf16" and "alpaca" in framework else precision


def sharding(words: str) -> str:
    """``parallelism.sharding`` of a strategy's words."""
    if any(word in words for word in ("zero-3", "zero3", "fsdp", "gemini", "full shard")):
        return "zero3"
    if any(word in words for word in ("zero-2", "zero2", "low_level_zero")):
        return "zero2"
    if any(word in words for word in ("zero-1", "zero1", "distributed optimizer")):
        return "zero1"
    return "none"


def device(name: str | None, catalog: Catalog, memory_gb: float | None = None) -> dict[str, Any]:
    """``device.*`` of an accelerator's name; what is not known stays as memgui has it by default."""
    words = re.sub(r"\(.*?\)|\bNVIDIA\b|\bTesla\b|^\d+x\b|HBM3", " ", name or "").strip()
    if words == "H100 96GB":  # torchtitan's: its logs say that 95.0 GiB are there
        return {**device("H100", catalog, memory_gb), "device.memory_bytes": 95 * 2**30}
    for candidate in re.split(r"\s*(?:/|\bor\b|\+)\s*", words):
        found = _device(candidate.strip(), catalog, memory_gb)
        if found is not None:
            return found
    if memory_gb:  # not named: as most cards that are sold with so much
        alike = sorted(entry.memory_bytes for entry in catalog.devices if entry.marketed_gb == memory_gb)
        usual = alike[len(alike) // 2] if alike else int(memory_gb * 2**30)
        return {"device.name": name or "", "device.memory_bytes": usual}
    return {}


def _device(name: str, catalog: Catalog, memory_gb: float | None) -> dict[str, Any] | None:
    size = f"{memory_gb:g}GB" if memory_gb else ""
    for spelling in (name, f"{name} {size}", name.replace("-", " "), f"{name.replace('-', ' ')} {size}"):
        try:
            entry = catalog.device(spelling.strip())
        except UnknownName:
            continue
        return {
            "device.name": entry.name,
            "device.memory_bytes": entry.memory_bytes,
            "device.compute_capability": entry.compute_capability,
        }
    for entry in catalog.search_devices(f"{name} {size}".strip(), 5) if name else ():
        if not memory_gb or entry.marketed_gb == memory_gb:
            return {
                "device.name": entry.name,
                "device.memory_bytes": entry.memory_bytes,
                "device.compute_capability": entry.compute_capability,
            }
    return None
