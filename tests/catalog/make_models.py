"""Models of the catalog: those of the truth tables and the popular ones of the collected configurations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from memgui.catalog import ModelEntry
from memgui.catalog.search import key
from memgui.importers.families import FAMILIES
from memgui.importers.hf_config import import_config, model_from_config
from memgui.spec import ModelSpec

TRUTH_SOURCE = "config.json of the published model; parameters as the modules of Transformers 5.24 count them"

# Re-uploads, merges and quantised copies of models that stand under their own name.
NOT_LISTED = re.compile(
    r"^(YouriLalain|semcoder|decapoda-research|kailas-m|root-hypercube|jeevanchaps|IrfanUruchi|TheBloke"
    r"|ubergarm|bryce-hoehn|reubzdubz|LargeWorldModel|cognitivecomputations|mlx-community|RedHatAI"
    r"|mattshumer)/"
    r"|NVFP4|-FP8|-AWQ|-Int4|-MLX-|GPTQ|bnb"
)

# A model's family and organisation, by how its name begins.
FAMILY_OF = (
    (r"gpt-oss", "gpt-oss", "OpenAI"),
    (r"gpt-?j|gpt-?neo|pythia", "GPT-J / NeoX", "EleutherAI"),
    (r"redpajama", "GPT-J / NeoX", "Together"),
    (r"gpt-?2", "GPT-2", "OpenAI"),
    (r"whisper", "Whisper", "OpenAI"),
    (r"clip", "CLIP", "OpenAI"),
    (r"opt", "OPT", "Meta"),
    (r"bart", "BART", "Meta"),
    (r"roberta", "BERT", "Meta"),
    (r"bloom", "BLOOM", "BigScience"),
    (r"codellama|(meta-)?llama|reflection", "Llama", "Meta"),
    (r"vicuna", "Llama", "LMSYS"),
    (r"wizardlm", "Mistral", "Microsoft"),
    (r"tinyllama", "Llama", "TinyLlama"),
    (r"yi", "Yi", "01.AI"),
    (r"deepseek", "DeepSeek", "DeepSeek"),
    (r"smollm", "SmolLM", "Hugging Face"),
    (r"mamba-codestral|mistral|ministral|mixtral|devstral|codestral", "Mistral", "Mistral AI"),
    (r"qwen", "Qwen", "Alibaba"),
    (r"medgemma|gemma", "Gemma", "Google"),
    (r"recurrentgemma", "Gemma", "Google"),
    (r"t5|flan", "T5", "Google"),
    (r"bert|albert", "BERT", "Google"),
    (r"vit", "ViT", "Google"),
    (r"phi", "Phi", "Microsoft"),
    (r"deberta", "BERT", "Microsoft"),
    (r"falcon", "Falcon", "TII"),
    (r"mpt|dbrx", "MPT / DBRX", "Databricks"),
    (r"stablelm", "StableLM", "Stability AI"),
    (r"starcoder|gpt_bigcode|wizardcoder", "StarCoder", "BigCode"),
    (r"command|c4ai|aya", "Command", "Cohere"),
    (r"kimi|moonlight", "Kimi", "Moonshot AI"),
    (r"glm|chatglm", "GLM", "Z.ai"),
    (r"olmo|molmo", "OLMo", "Ai2"),
    (r"granite", "Granite", "IBM"),
    (r"bamba", "Granite", "IBM"),
    (r"mamba", "Mamba", "State Spaces"),
    (r"jamba", "Jamba", "AI21"),
    (r"minimax", "MiniMax", "MiniMax"),
    (r"modernbert", "BERT", "Answer.AI"),
    (r"nemotron|nvidia", "Nemotron", "NVIDIA"),
    (r"lfm", "LFM", "Liquid AI"),
    (r"mimo", "MiMo", "Xiaomi"),
    (r"internlm|internvl", "InternLM", "Shanghai AI Lab"),
    (r"minicpm", "MiniCPM", "OpenBMB"),
    (r"exaone", "EXAONE", "LG AI"),
    (r"baichuan", "Baichuan", "Baichuan"),
    (r"orion", "Orion", "OrionStar"),
    (r"step", "Step", "StepFun"),
    (r"llava", "LLaVA", "LLaVA"),
    (r"rwkv", "RWKV", "RWKV"),
    (r"snowflake|all-minilm", "BERT", "embedding models"),
)

UPPER = {"gpt", "opt", "glm", "mpt", "dbrx", "bloom", "bert", "vit", "t5", "bart", "moe", "llm"}
MIXED = {"deepseek": "DeepSeek", "smollm2": "SmolLM2", "smollm3": "SmolLM3", "tinyllama": "TinyLlama"}
MIXED |= {"codellama": "CodeLlama", "starcoder": "StarCoder", "starcoder2": "StarCoder2", "gpt2": "gpt2"}
MIXED |= {"stablelm": "StableLM", "neox": "NeoX", "olmo": "OLMo", "olmoe": "OLMoE", "minimax": "MiniMax"}
MIXED |= {"roberta": "RoBERTa", "deberta": "DeBERTa", "modernbert": "ModernBERT", "albert": "ALBERT"}
MIXED |= {"recurrentgemma": "RecurrentGemma", "flan": "FLAN"}


def models(shared: Path) -> list[ModelEntry]:
    """Every entry, by family and size."""
    entries = _collected(shared / "data" / "hf_configs")
    _add_truth(entries, shared / "truth")
    return sorted(entries, key=lambda e: (e.family.casefold(), e.parameters, e.name.casefold()))


def _collected(folder: Path) -> list[ModelEntry]:
    entries: list[ModelEntry] = []
    for row in json.loads((folder / "INDEX.json").read_text("utf-8"))["configs"]:
        parameters = row.get("module_params") or row.get("published_params")
        if NOT_LISTED.search(row["model"]) or not parameters or row["model_type"] not in FAMILIES:
            continue
        spec = _bare(import_config(folder / row["file"]).model)
        same = next((e for e in entries if e.spec == spec and _base(e.name) == _base(row["model"])), None)
        if same is not None:
            shorter, longer = sorted((same.name, row["model"]), key=len)
            entries.remove(same)
            entries.append(
                msgspec.structs.replace(
                    same, name=shorter, aliases=(*same.aliases, longer, longer.partition("/")[2])
                )
            )
            continue
        entries.append(_entry(row["model"], spec, parameters, f"{row['source']} ({row['kind']})"))
    return entries


def _add_truth(entries: list[ModelEntry], folder: Path) -> None:
    configs: dict[str, Any] = json.loads((folder / "configs.json").read_text("utf-8"))
    counted = json.loads((folder / "params.json").read_text("utf-8"))["models"]
    totals = {name: row["total_params"] for name, row in counted.items()}
    for name, row in configs.items():
        if row["model_type"] not in FAMILIES:
            continue
        spec = _bare(model_from_config(row["config"], row["head"], row["own_lm_head"]))
        total = totals.get(name)
        known = next((e for e in entries if _same(e.spec, spec) and _base(e.name) == _base(name)), None)
        if known is not None:
            if key(known.title) != key(name):
                entries[entries.index(known)] = msgspec.structs.replace(known, aliases=(*known.aliases, name))
        elif total is not None:
            entries.append(_entry(_cased(name), spec, total, TRUTH_SOURCE))


def _entry(name: str, spec: ModelSpec, parameters: int, source: str) -> ModelEntry:
    title = name.rpartition("/")[2]
    plain = title.removeprefix("Meta-")
    family, organisation = next(
        (family, organisation)
        for pattern, family, organisation in FAMILY_OF
        if re.match(pattern, title.casefold())
    )
    return ModelEntry(
        name=name,
        aliases=() if plain == title else (plain,),
        family=family,
        organisation=organisation,
        parameters=parameters,
        source=source,
        spec=spec,
    )


def _bare(model: ModelSpec) -> ModelSpec:
    return msgspec.structs.replace(model, name="", source="")


def _same(one: ModelSpec, other: ModelSpec) -> bool:
    """Whether two descriptions differ at most in the longest sequence, where that has no weights."""
    if one.position_embedding == "learned":
        return one == other
    return one == msgspec.structs.replace(other, max_position_embeddings=one.max_position_embeddings)


def _base(name: str) -> str:
    """The model behind a release: ``meta-llama/Meta-Llama-3-8B-Instruct`` is ``llama-3-8b``."""
    title = name.rpartition("/")[2].casefold().removeprefix("meta-")
    return re.sub(r"-(hf|instruct|chat|it|base|8k|text|v\d.*|\d{4})(?=-|$)", "", title)


def _cased(name: str) -> str:
    """A truth table's name in the case that people write: ``qwen2.5-7b`` is ``Qwen2.5-7B``."""
    parts = []
    for part in name.split("-"):
        if re.fullmatch(r"[0-9.]+[bmk]|a[0-9.]+[bm]|[0-9]+x[0-9]+b|[0-9.]+m", part):
            parts.append(part.upper().replace("X", "x"))
        elif part in UPPER or part in MIXED:
            parts.append(MIXED.get(part) or part.upper())
        elif re.fullmatch(r"v[0-9.]+|[0-9].*|oss|text|class|default|base|it", part):
            parts.append(part)
        else:
            parts.append(part[:1].upper() + part[1:])
    return "-".join(parts)
