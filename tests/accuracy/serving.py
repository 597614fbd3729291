"""What rows about serving say of engine, formats and lengths, in memgui's fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memgui.estimator.result import Estimate
from memgui.spec import ModelSpec
from tests.accuracy import words
from tests.accuracy.express import Inexpressible
from tests.accuracy.figures import ALLOCATED, Counter, Figure, moment, part

GGML_KINDS = {"f16": "fp16", "f32": "fp32", "bf16": "bf16"}
_KINDS = r"(f16|f32|bf16|q\d_\d|iq4_nl)"


def measured(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The inference fields of a measured row."""
    framework = entry.get("framework")
    engine = engine_of(framework)
    if engine == "llama.cpp":
        return _llama_cpp(entry, framework or "")
    weights = words.weight_format(entry.get("precision"), entry.get("quantisation"))
    keys, values = _cache_formats(entry, weights)
    settings: dict[str, Any] = {
        "task": "inference",
        "inference.engine": engine,
        "inference.weight_format": weights,
        "inference.kv_cache_format": keys,
        "inference.kv_cache_format_v": values,
        "inference.attention": words.attention(entry.get("attention")),
        **_lengths(entry, engine),
    }
    if engine == "transformers":
        settings["inference.transformers_version"] = transformers_version(framework or "")
    if engine == "vllm":
        settings |= _vllm(entry)
    if engine == "gpt-fast":
        settings |= _gpt_fast(entry)
    return settings


def _old_vllm(entry: Mapping[str, Any], framework: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What differs before 0.6, which is the oldest version there is: prompts were not cut by themselves."""
    stated = re.search(r"vllm (\d+)\.(\d+)(?:\.(\d+))?", framework.lower())
    version = tuple(int(one or 0) for one in stated.groups()) if stated else (0, 11)
    if (
        version < (0, 3)
        and "awq" in settings["inference.weight_format"]
        and (entry.get("dims") or {}).get("experts")
    ):
        raise Inexpressible("how vLLM 0.2 ran packed experts is not modelled")
    found: dict[str, Any] = {}
    if version < (0, 6, 4):
        found["inference.vllm_version"] = "0.2" if version < (0, 3) else "0.3"
    if version < (0, 6) or (version < (0, 8) and "LoRA" in entry["model"]):
        tokens = settings.get("inference.max_num_batched_tokens")
        found["inference.max_num_batched_tokens"] = tokens or max(settings["inference.prompt_tokens"], 2048)
    if "405B-Instruct-FP8" in entry["model"]:  # FBGEMM's: attention stays in 16 bits
        found["inference.quantised_parts"] = ("mlp",)
    return found


def _gpt_fast(entry: Mapping[str, Any]) -> dict[str, Any]:
    """``-kvq``: an int8 cache; ``-lcm``: no mask of every pair; ``cache N``: room for more than there is."""
    if (entry.get("extra") or {}).get("compile"):
        raise Inexpressible("what torch.compile keeps is not modelled")
    settings: dict[str, Any] = {"inference.linear_causal_mask": "-lcm" in entry["id"]}
    if "-kvq" in entry["id"]:
        settings["inference.kv_cache_format"] = "int8"
    if str(entry.get("seq_len")).startswith("cache"):
        room = words.count(entry["seq_len"], "the cache")
        settings |= {"inference.prompt_tokens": 6, "inference.generated_tokens": room - 6}
    return settings


def verdict(entry: Mapping[str, Any], model: ModelSpec) -> dict[str, Any]:
    """The inference fields of somebody's set-up."""
    framework = entry.get("framework") or ""
    if "another process" in str(entry.get("note")):
        raise Inexpressible("another process holds some of the device")
    if not _tells_cache(entry):
        raise Inexpressible("the cache's format is not stated")
    engine = engine_of(framework)
    weights = words.weight_format(entry.get("precision"), entry.get("quant"))
    kept = "bf16" if weights == "bf16" else "fp16"
    settings: dict[str, Any] = {
        "task": "inference",
        "inference.engine": engine,
        "inference.weight_format": weights,
        "inference.kv_cache_format": kept,
        "inference.attention": words.attention(entry.get("attention")),
        "inference.batch_size": entry.get("batch") or 1,
        "inference.prompt_tokens": _length(entry, engine, model),
        "inference.generated_tokens": 0,
    }
    if engine == "transformers":
        settings["inference.transformers_version"] = transformers_version(framework)
    if engine == "vllm":
        settings |= _vllm_words(framework)
        settings |= _old_vllm(entry, framework, settings)
    if engine in ("llama.cpp", "ollama"):
        stated = re.search(_KINDS + r"\s*(?:k\b|kv)", framework.lower())
        kind = stated.group(1) if stated else "f16"
        settings["inference.kv_cache_format"] = GGML_KINDS.get(kind, kind)
        automatic = str(entry.get("date")) >= "2025-09"  # from b6325 on, where the model allows it
        settings["inference.flash_attention"] = automatic or "flash" in (entry.get("attention") or "")
    return settings


def _length(entry: Mapping[str, Any], engine: str, model: ModelSpec) -> int:
    """Tokens of a sequence: stated, or the model's longest, which vLLM takes where no flag says otherwise.

    What died while its weights were loaded never came to a token.
    """
    if entry.get("seq_len") is None:
        told = f"{entry.get('framework')} {entry.get('figures')}"
        fixed = re.search(r"max[-_](model|seq)", str(entry.get("fix")))  # what ran was longer
        bare = "flag" not in told and "batched tokens" not in told and not fixed
        if engine == "vllm" and bare and model.max_position_embeddings:
            return model.max_position_embeddings
        if entry.get("died_at") in ("load", "weight creation"):
            return 1
    return words.count(entry.get("seq_len"), "the length")


def _tells_cache(entry: Mapping[str, Any]) -> bool:
    """Whether a row tells how keys and values are stored: its dimensions may only say what a byte makes."""
    example = "at 1 byte" in str((entry.get("dims") or {}).get("note"))
    return not example or re.search(r"\bkv\b|\bk and v\b", (entry.get("framework") or "").lower()) is not None


def engine_of(framework: str | None) -> str:
    """``inference.engine``; the forks of llama.cpp count as it where a row asks for what they share."""
    found = words.engine(framework)
    return "llama.cpp" if found == "ik_llama.cpp" else found


def transformers_version(framework: str) -> str:
    """The behaviour nearest to a version: what generate() computes logits of, and how caches grow."""
    stated = re.search(r"transformers (\d+)\.(\d+)", framework.lower())
    if stated is None:
        return "4.35" if "4.3x" in framework.lower() else "5.24"
    version = int(stated.group(1)), int(stated.group(2))
    if version >= (4, 57):
        return "5.24"
    return "4.45" if version >= (4, 45) else "4.35"


# -- vLLM --------------------------------------------------------------------------------------------


def _vllm(entry: Mapping[str, Any]) -> dict[str, Any]:
    extra = entry.get("extra") or {}
    settings: dict[str, Any] = {}
    if "reserved for KV cache" in entry["measured"]["counter"] and not extra.get("gpu_memory_gib"):
        raise Inexpressible("the device is not stated")
    old = any(card in (entry.get("gpu") or "") for card in ("T4", "V100"))  # V1 does not run there
    settings["inference.vllm_version"] = "0.6" if old else "0.11"
    if extra.get("gpu_memory_utilization"):
        settings["inference.gpu_memory_utilization"] = float(extra["gpu_memory_utilization"])
    if extra.get("gpu_memory_gib"):
        settings["device.memory_bytes"] = int(extra["gpu_memory_gib"] * 2**30)
    return settings


def _vllm_words(framework: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"inference.gpu_memory_utilization": 0.9}
    version = re.search(r"vllm (\d+)\.(\d+)", framework.lower())
    v0 = "v0" in re.findall(r"\w+", framework.lower())
    if v0 or (version and (int(version.group(1)), int(version.group(2))) < (0, 8)):
        settings["inference.vllm_version"] = "0.6"
    share = re.search(r"util (0?\.\d+)", framework)
    if share:
        settings["inference.gpu_memory_utilization"] = float(share.group(1))
    batched = re.search(r"([\d,]+) batched tokens", framework)
    if batched:
        settings["inference.max_num_batched_tokens"] = int(batched.group(1).replace(",", ""))
    sequences = re.search(r"\b(\d+) seqs", framework)
    if sequences:
        settings["inference.max_num_seqs"] = int(sequences.group(1))
    if "fp8_e4m3 kv" in framework.lower():
        settings["inference.kv_cache_format"] = "fp8"
    if "eager" in framework.lower():
        settings["inference.enforce_eager"] = True
    return settings


def peer_vllm(given: Mapping[str, Any], figures: Mapping[str, int]) -> dict[str, Any]:
    """vLLM 0.11 on H100-80 as llm-d-planner ran it; the utilisation is what its own figures add up to."""
    total = int(79.18 * 2**30)
    used = sum(figures.get(name, 0) for name in ("weights", "activation_profile", "non_torch", "kv_cache"))
    degree = re.search(r"TP(\d)", str(given.get("model")))
    tensor = int(degree.group(1)) if degree else 1
    words_of_name = str(given.get("model")).lower()
    quantised = "fp8" if "fp8" in words_of_name else "mxfp4" if "gpt-oss" in words_of_name else None
    return {
        "task": "inference",
        "inference.engine": "vllm",
        "inference.weight_format": words.quantised(quantised) if quantised else "bf16",
        "inference.prompt_tokens": 16_000,
        "inference.generated_tokens": 0,
        "inference.block_size": 128,
        "inference.gpu_memory_utilization": min(1.0, round(used / total, 2)),
        "device.name": "H100",
        "device.memory_bytes": total,
        "device.compute_capability": "9.0",
        "device.count": tensor,
        "parallelism.tensor": tensor,
    }


def counter(entry: Mapping[str, Any]) -> Counter | None:
    """The figure that a row's own words ask for, where it is not what its counter's name says."""
    return _pool_counter(entry) or _gguf_counter(entry) or _end_counter(entry)


def _end_counter(entry: Mapping[str, Any]) -> Counter | None:
    """What is allocated when all is generated, where a table's "peak" lies below the prompt's working set.

    Qwen3's table grows by the cache alone, to the byte; no pass over 30,720 tokens at once can do that.
    """
    if "no prefill activation transient" not in str(entry.get("ambiguities")):
        return None

    def end(estimate: Estimate) -> Figure:
        found = moment(estimate, "after_decode").allocated
        assert found is not None
        return Figure(found)

    return Counter(ALLOCATED, end)


def _pool_counter(entry: Mapping[str, Any]) -> Counter | None:
    """The counter of a row about vLLM's pool: its bytes, or the tokens that a stated pool holds."""
    unit, extra = entry["measured"]["unit"], entry.get("extra") or {}
    if unit != "tokens":
        return None
    if "Maximum concurrency" in entry["measured"]["counter"] or not extra.get("kv_pool_gib"):
        return Counter(ALLOCATED, _extra("pool_tokens"))
    pool = int(float(extra["kv_pool_gib"]) * 2**30)

    def tokens(estimate: Estimate) -> Figure:
        block = 16 * estimate.extra["kv_bytes_per_token"]
        return Figure(pool // block * 16)

    return Counter(ALLOCATED, tokens)


def _extra(key: str) -> Any:
    def read(estimate: Estimate) -> Figure:
        if key not in estimate.extra:
            raise Inexpressible(f"memgui does not say {key}")
        return Figure(estimate.extra[key])

    return read


# -- llama.cpp ---------------------------------------------------------------------------------------


def _llama_cpp(entry: Mapping[str, Any], framework: str) -> dict[str, Any]:
    component = (entry.get("extra") or {}).get("component")
    attention = str(entry.get("attention") or "")
    fork = "ik_llama" in framework and "mainline" not in framework
    if component == "compute-buffer" and fork:
        raise Inexpressible("ik_llama.cpp's graphs are not modelled")
    if "mla=0" in attention and entry["model"].get("kv_lora_rank"):
        raise Inexpressible("latent attention with expanded keys and values is not modelled")
    keys, values = _cache_formats(entry, "")
    lengths = {"inference.prompt_tokens": 512}
    if component not in ("weights", "host"):
        lengths = {"inference.prompt_tokens": words.count(entry.get("seq_len"), "the context")}
    settings: dict[str, Any] = {
        "task": "inference",
        "inference.engine": "llama.cpp",
        "inference.llama_cpp_version": "b6000",
        "inference.weight_format": _gguf_weights(entry, component),
        "inference.kv_cache_format": keys,
        "inference.kv_cache_format_v": values,
        "inference.batch_size": 1,
        "inference.generated_tokens": 0,
        "inference.flash_attention": "flash_attn=0" not in attention,
        "inference.swa_full": fork or "full-size" in entry["measured"]["counter"],
        **lengths,
    }
    batch = entry.get("micro_batch")
    if batch:
        settings["inference.n_ubatch"] = words.count(batch, "the physical batch")
    slots = re.search(r"x (\d+) slots", str(entry.get("ambiguities")))
    if component == "recurrent" and slots:
        settings["inference.batch_size"] = int(slots.group(1))
    return settings


def _gguf_weights(entry: Mapping[str, Any], component: str | None) -> str:
    """The mix; a row about cache or buffers does not depend on it."""
    if component in ("kv-cache", "compute-buffer", "recurrent"):
        return "q4_k_m"
    return words.weight_format(entry.get("precision"), entry.get("quantisation"))


def _gguf_counter(entry: Mapping[str, Any]) -> Counter | None:
    """The cache without recurrent states; windows apart where the log tells them apart."""
    if (entry.get("extra") or {}).get("component") != "kv-cache":
        return None
    text = entry["measured"]["counter"]
    if text.startswith(("SWA", "non-SWA")):
        return Counter(ALLOCATED, part("kv_cache/windows" if text.startswith("SWA") else "kv_cache/keys"))

    def cache(estimate: Estimate) -> Figure:
        states = sum(
            node.bytes for node in estimate.component("kv_cache").children if node.key == "recurrent"
        )
        if "all devices" in text or (entry.get("parallelism") or {}).get("gpus", 1) > 1:
            return Figure(estimate.extra["kv_cache_bytes"])
        return Figure(estimate.component("kv_cache").bytes - states)

    return Counter(ALLOCATED, cache)


def _cache_formats(entry: Mapping[str, Any], weights: str) -> tuple[str, str | None]:
    extra = entry.get("extra") or {}
    stated = str(extra.get("kv_type") or extra.get("kv_dtype") or "").lower()
    told = str(entry.get("source_quote_free_summary") or "").lower()
    both = re.search(rf"k \(?{_KINDS}\)?.*?\bv \(?{_KINDS}\)?", stated or told)
    if both:
        keys, values = (GGML_KINDS.get(kind, kind) for kind in both.groups())
        return keys, values
    one = re.search(_KINDS, stated) or re.search(rf"c\^kv \({_KINDS}\)", told)
    if one:
        return GGML_KINDS.get(one.group(1), one.group(1)), None
    if stated and stated != "auto":
        return stated, None
    if weights in ("bf16", "fp16", "fp32"):
        return weights, None
    return ("bf16" if "bf16" in (entry.get("precision") or "").partition("(")[0] else "fp16"), None


def _lengths(entry: Mapping[str, Any], engine: str) -> dict[str, Any]:
    if entry["kind"] == "weights":
        return {"inference.batch_size": 1, "inference.prompt_tokens": 1, "inference.generated_tokens": 0}
    held = entry.get("seq_len")
    if engine in ("vllm", "vllm_ascend"):
        # one sequence as long as the context that the engine was started with
        return {
            "inference.batch_size": 1,
            "inference.prompt_tokens": words.count(held, "the context"),
            "inference.generated_tokens": 0,
        }
    generated = max(0, int(entry.get("generated_tokens") or 0) - 1)  # the first one comes with the prompt
    tokens = words.count(held, "the prompt")
    if "+" in str(held) or str(held).startswith("cache"):
        tokens = max(1, tokens - generated)
    return {
        "inference.batch_size": words.count(entry.get("micro_batch"), "the batch"),
        "inference.prompt_tokens": tokens,
        "inference.generated_tokens": generated,
    }
