"""``verdicts.json``: set-ups of real people that ran, died, or were refused the length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memgui.catalog import Catalog
from memgui.estimator.result import Estimate
from memgui.spec import Scenario, replace
from tests.accuracy import serving, words
from tests.accuracy.defaults import filled, least
from tests.accuracy.express import Inexpressible, answer, scenario_with
from tests.accuracy.measured import TRAINING, targets_of
from tests.accuracy.recipes import RECIPES
from tests.accuracy.score import Miss, Row, Sample
from tests.accuracy.slopes import stated_pool, stated_tokens
from tests.accuracy.subjects import Subjects


def verdicts(truth: list[dict[str, Any]], subjects: Subjects, catalog: Catalog) -> Iterator[Row]:
    """One row for each set-up; those that died in CPU memory are no question to memgui."""
    for entry in truth:
        if "HOST" not in (entry.get("died_at") or ""):
            yield _row(entry, subjects, catalog)


def _row(entry: Mapping[str, Any], subjects: Subjects, catalog: Catalog) -> Row:
    gpus = entry.get("n_gpus")
    table = f"{entry['task']}/{entry['specified']}/{'one' if gpus == 1 else 'many'}"
    ran = entry["outcome"] == "fits"
    name = f"{entry['id']} {entry['model']} {entry['outcome']}"
    try:
        if not gpus:
            raise Inexpressible("the number of devices is not stated")
        found = _answer(filled(entry), gpus, subjects, catalog)
    except Inexpressible as reason:
        return Row(table, name, str(reason), ran=ran)
    called = found.verdict.kind
    right = called == ("fits" if ran else "does_not_fit")
    miss = Miss("capacity and what memgui says is needed", found.verdict.capacity_bytes, found.peak_bytes)
    return Row(
        table,
        name,
        exact=right,
        called=called,
        ran=ran,
        misses=() if right else (miss,),
        note=f"called {called}, range {found.low_bytes:,} to {found.high_bytes:,}",
        sample=_capacity(entry, found),
    )


def _answer(entry: Mapping[str, Any], gpus: int, subjects: Subjects, catalog: Catalog) -> Estimate:
    """What memgui says of a row; of one that it cannot express, that not even the least fits, if so."""
    try:
        return answer(_scenario(entry, gpus, subjects, catalog))
    except Inexpressible:
        if entry["task"] not in TRAINING:
            raise
        try:
            scenario = _scenario(least(entry), gpus, subjects, catalog)
            found = answer(replace(scenario, "training.kbit_preparation", False))
        except Inexpressible:
            found = None
        if found is None or found.verdict.kind != "does_not_fit":
            raise
        return found


def _capacity(entry: Mapping[str, Any], found: Estimate) -> Sample | None:
    """The tokens that the message says the pool holds: as memgui fills the pool that it names, or its own."""
    figures = entry.get("figures") or ""
    tokens = stated_tokens(figures)
    if tokens is None or "kv_pool_bytes" not in found.extra:
        return None
    if "utilisation not given" in str(entry.get("ambiguities")):
        return None
    pool, own = stated_pool(figures), found.extra["kv_pool_bytes"]
    mine = found.extra["pool_tokens"]
    if str(entry.get("date")) >= "2026":  # since then a log counts the whole sequences that fit
        mine = found.extra["max_concurrency_percent"] * found.scenario.inference.prompt_tokens // 100
    if pool is None or not own:
        return Sample("", (0, 0), tokens, mine, "of memgui's own pool")
    return Sample("", (0, 0), tokens, mine * pool // own, "of the pool that the message names")


def _scenario(entry: Mapping[str, Any], gpus: int, subjects: Subjects, catalog: Catalog) -> Scenario:
    model = subjects.find(entry["model"], entry.get("dims"))
    gpu = entry.get("gpu") or {}
    settings = words.device(gpu.get("name"), catalog, gpu.get("memory_gb"))
    if not settings:
        raise Inexpressible("the device is not stated")
    usable = re.search(r"\(?(?:about )?([\d.]+) GiB", gpu.get("name") or "")
    usable = usable or re.search(r"\btotal ([\d.]+)", entry.get("figures") or "")  # GiB, as PyTorch says it
    if usable:
        settings["device.memory_bytes"] = int(float(usable.group(1)) * 2**30)
    settings |= _layout(entry.get("parallelism") or "", gpus)
    settings |= _training(entry) if entry["task"] in TRAINING else serving.verdict(entry, model)
    return scenario_with(model, settings)


def _layout(text: str, gpus: int) -> dict[str, Any]:
    given: dict[str, Any] = {"strategy": text}
    for key, pattern in (("tp", r"TP\s?(\d+)"), ("pp", r"PP\s?(\d+)"), ("ep", r"EP\s?(\d+)")):
        stated = re.search(pattern, text)
        if stated:
            given[key] = int(stated.group(1))
    if gpus == 1:
        if "offload" in text.lower():
            raise Inexpressible(words.OFFLOAD)
        return {}
    if not text:
        raise Inexpressible("how the devices share the model is not stated")
    return words.parallelism(given, gpus)


SINCE_WAITING = "2023-10-04"
"""When PyTorch 2.1 came, whose FSDP gathers a layer only when the one before is done."""

BEFORE_SDPA = "2023-12-11"
"""When Transformers 4.36 came, the first in which Llama has more than eager attention."""


def _training(entry: Mapping[str, Any]) -> dict[str, Any]:
    if any(word in entry["model"] for word in ("PPO", "GRPO")):
        raise Inexpressible("several models share the devices")
    framework = entry.get("framework") or ""
    quantisation = entry.get("quant")
    stated = entry.get("precision") or ("bf16" if quantisation else None)
    precision, base = words.training_precision(stated)
    if "torch_compile on" in framework:
        raise Inexpressible("what torch.compile keeps is not modelled")
    implementation = words.implementation(framework)
    if entry["task"] == "train-full":
        layout = entry.get("parallelism") or ""
        precision = words.kept_precision(precision, implementation, layout, framework)
    attention = words.attention(entry.get("attention"))
    if not entry.get("attention") and (entry.get("date") or BEFORE_SDPA) < BEFORE_SDPA:
        attention = "eager"
    settings: dict[str, Any] = {
        "training.micro_batch_size": words.count(entry.get("batch"), "the batch"),
        "training.sequence_length": words.count(entry.get("seq_len"), "the sequence length"),
        "training.precision": precision,
        "training.attention": attention,
        **words.recompute(entry.get("checkpointing")),
        "training.implementation": implementation,
        **words.optimizer(entry.get("optimizer"), framework),
    }
    if "FSDP" in (entry.get("parallelism") or "") and (entry.get("date") or SINCE_WAITING) < SINCE_WAITING:
        settings["parallelism.limit_all_gathers"] = False
        settings["parallelism.gather_to_save"] = "checkpoint gather" in (entry.get("died_at") or "")
    if entry.get("grad_accum"):
        settings["training.gradient_accumulation_steps"] = int(entry["grad_accum"])
    lora = entry.get("lora") or ""
    if "misspelled" in lora:  # no layer has that name, so none gets an adapter, and DeepSpeed trains them all
        settings["training.precision"] = f"{precision}_master"
    elif entry["task"] != "train-full":
        settings |= _lora(lora)
        settings["training.base_format"] = words.quantised(quantisation) if quantisation else base
    recipe = RECIPES.get(settings["training.implementation"])
    if recipe is None:
        return settings
    # A message's layout is words, which were read above; recipes know a table's.
    return settings | recipe({**entry, "kind": entry["task"], "parallelism": None}, precision)


def _lora(text: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"training.method": "lora"}
    rank = re.search(r"\b(?:r|dim )(\d+)", text)
    if rank:
        settings["training.lora.rank"] = int(rank.group(1))
    if "linear" in text:
        settings["training.lora.target_modules"] = ("all-linear",)
    elif re.search(r"\bq(_proj)?,\s?v", text):
        settings["training.lora.target_modules"] = targets_of("q,v")
    return settings
