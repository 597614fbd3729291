"""Models of the catalog: those of the truth tables and the popular ones of the collected configurations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from memgui.catalog import ModelEntry
from memgui.catalog.search import key
from memgui.importers.families import FAMILIES
from memgui.importers.hf_config import import_config, model_from_config
from memgui.spec import ModelSpec
from tests.catalog.hub_names import ALSO, HUB_NAMES, LONGEST, SAME
from tests.catalog.known import COMPLETED, COMPLETED_BY, KNOWN, PLAIN, SOURCE
from tests.importers.parameters import count

TRUTH_SOURCE = (
    "hyper-parameters of the published model, as in the reference tables built with Transformers 5.24"
)

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
    (r"snowflake|all-minilm|all-mpnet|nomic-embed|gte", "BERT", "embedding models"),
    (r"layoutlm", "BERT", "Microsoft"),
    (r"mobilebert", "BERT", "Google"),
    (r"esm", "ESM", "Meta"),
    (r"xglm", "XGLM", "Meta"),
)


def models(shared: Path) -> list[ModelEntry]:
    """Every entry, by family and size."""
    entries = _collected(shared / "data" / "hf_configs")
    _add_truth(entries, shared / "truth")
    _add_known(entries, shared / "data" / "hf_configs")
    entries = [replace(e, aliases=(*e.aliases, *ALSO.get(e.name, ()))) for e in entries]
    return sorted(entries, key=lambda e: (e.family.casefold(), e.parameters, e.name.casefold()))


def _collected(folder: Path) -> list[ModelEntry]:
    entries: list[ModelEntry] = []
    for row in json.loads((folder / "INDEX.json").read_text("utf-8"))["configs"]:
        name = row["model"]
        if NOT_LISTED.search(name):
            continue
        config: Any = folder / row["file"]
        source = f"{row['source']} ({row['kind']})"
        if name in COMPLETED:
            config = {**json.loads(config.read_text("utf-8")), **COMPLETED[name]}
            source = f"{source}, completed: {COMPLETED_BY}"
        spec = _bare(import_config(config).model)
        if spec.model_type not in FAMILIES:
            continue
        same = next((e for e in entries if e.spec == spec and _base(e.name) == _base(name)), None)
        if same is None:
            entries.append(_entry(name, spec, source))
            continue
        shorter, longer = sorted((same.name, name), key=len)
        aliases = (*same.aliases, longer, longer.partition("/")[2])
        entries[entries.index(same)] = replace(same, name=shorter, aliases=aliases)
    return entries


def _add_truth(entries: list[ModelEntry], folder: Path) -> None:
    configs: dict[str, Any] = json.loads((folder / "configs.json").read_text("utf-8"))
    for name, row in configs.items():
        if name in SAME:
            known = next(e for e in entries if SAME[name] in (e.name, *e.aliases))
            if key(name) not in map(key, (known.title, *known.aliases)):
                entries[entries.index(known)] = replace(known, aliases=(*known.aliases, name))
            continue
        spec = _bare(model_from_config(row["config"], row["head"], row["own_lm_head"]))
        if name in LONGEST:
            spec = replace(spec, max_position_embeddings=LONGEST[name])
        entry = _entry(HUB_NAMES.get(name, name), spec, TRUTH_SOURCE)
        if key(name) not in map(key, (entry.title, *entry.aliases)):
            entry = replace(entry, aliases=(*entry.aliases, name))
        entries.append(entry)


def _add_known(entries: list[ModelEntry], folder: Path) -> None:
    rows = {row["file"]: row for row in json.loads((folder / "INDEX.json").read_text("utf-8"))["configs"]}
    for name, file in PLAIN.items():
        content: dict[str, Any] = json.loads((folder / file).read_text("utf-8"))
        row = rows[file]
        spec = _bare(import_config(content).model)
        entries.append(_entry(name, spec, f"{row['source']} ({row['kind']}), unpacked"))
    entries += [_entry(name, _bare(import_config(config).model), SOURCE) for name, config in KNOWN.items()]


def _entry(name: str, spec: ModelSpec, source: str) -> ModelEntry:
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
        parameters=sum(count(spec).values()),
        source=source,
        spec=spec,
    )


def _bare(model: ModelSpec) -> ModelSpec:
    return replace(model, name="", source="")


def _base(name: str) -> str:
    """The model behind a release: ``meta-llama/Meta-Llama-3-8B-Instruct`` is ``llama-3-8b``."""
    title = name.rpartition("/")[2].casefold().removeprefix("meta-")
    return re.sub(r"-(hf|instruct|chat|it|base|8k|text|v\d.*|\d{4})(?=-|$)", "", title)
