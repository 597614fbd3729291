"""``peer_cases.json``: real GPUs, measured component by component by the authors of other estimators."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memgui.catalog import Catalog
from memgui.estimator.result import Estimate
from memgui.estimator.settled import settled, simulation
from memgui.estimator.simulation import Simulated
from memgui.spec import Scenario
from tests.accuracy import serving, words
from tests.accuracy.express import Inexpressible, answer, ledger_of, scenario_with
from tests.accuracy.figures import ALLOCATED, PROCESS
from tests.accuracy.figures import process as process_figure
from tests.accuracy.measured import targets_of
from tests.accuracy.score import Row, compare, percent
from tests.accuracy.subjects import Subjects

_UNITS = {"bytes": 1, "MiB": 2**20, "GiB": 2**30, "GB": 10**9, "MB": 10**6}


def peers(truth: Mapping[str, Any], subjects: Subjects, catalog: Catalog) -> Iterator[Row]:
    """Rows of real measurements: one for what was allocated, one for the process where it is told."""
    for case in truth["cases"]:
        if case["kind"] == "published_measurement":
            yield from _rows(case, subjects, catalog)


def _rows(case: Mapping[str, Any], subjects: Subjects, catalog: Catalog) -> Iterator[Row]:
    given = case["input"]
    figures = {
        name: round(entry["value"] * _UNITS[entry["unit"]])
        for name, entry in case["output"].items()
        if entry.get("unit") in _UNITS and isinstance(entry["value"], (int, float))
    }
    inference = given.get("task") == "inference" or "kv_cache" in figures
    kind = "inference" if inference else "train"
    table = f"{kind}/A/{'one' if _gpus(given) == 1 else 'many'}"
    name = f"{case['id']} {given.get('model') or given.get('case')}"
    process = figures.get("process")
    try:
        if "activation_profile" in figures:
            scenario = _vllm(given, figures, subjects)
        else:
            scenario = _scenario(given, inference, subjects, catalog)
        emptied = "qkv_bias" in given  # vramcalc empties the cache first
        found = settled(answer(scenario), emptied=emptied)
        counters = simulation(scenario, emptied=emptied)
        pairs = list(_pairs(figures, scenario, found, counters))
        if not pairs:
            raise Inexpressible("no figure that memgui names")
    except Inexpressible as reason:
        yield Row(f"{table}/{ALLOCATED}", name, str(reason))
        if process is not None:
            yield Row(f"{table}/{PROCESS}", name, str(reason))
        return
    misses = compare((name, expected, got) for name, expected, got in pairs)
    yield Row(
        f"{table}/{ALLOCATED}",
        name,
        errors=tuple(percent(got, expected) for _, expected, got in pairs),
        exact=not misses,
        misses=misses,
        note=_card(given),
    )
    if process is not None:
        figure = process_figure(found)
        assert figure.low is not None
        assert figure.high is not None
        yield Row(
            f"{table}/{PROCESS}",
            name,
            errors=(percent(figure.value, process),),
            exact=figure.value == process,
            inside=figure.low <= process <= figure.high,
            range_pct=percent(figure.high, figure.low, (figure.low + figure.high) / 2),
            misses=compare([("process", process, figure.value)]),
            note=f"range {figure.low:,} to {figure.high:,}",
        )


def _vllm(given: Mapping[str, Any], figures: Mapping[str, int], subjects: Subjects) -> Scenario:
    name = re.sub(r"\s*\bTP\d\b|\(.*?\)", "", str(given["model"])).strip()
    return scenario_with(subjects.find(name, given), serving.peer_vllm(given, figures))


def _pairs(
    figures: Mapping[str, int], scenario: Scenario, found: Estimate, counters: Simulated | None
) -> Iterator[tuple[str, int, int]]:
    """Every allocated figure of the row with memgui's own."""
    weights = found.component("weights").bytes
    mine = {
        "measured_weights": weights,
        "measured_peak_above_persistent": found.allocated_bytes - weights,
        "measured_total_allocated": found.allocated_bytes,
        "peak_allocated": found.allocated_bytes,
        "real": found.allocated_bytes,
        "peak_active_before": found.allocated_bytes,
        "weights": weights,
        "kv_cache": found.component("kv_cache").bytes,
    }
    if scenario.inference.engine == "vllm":
        mine |= {
            "kv_cache": found.extra["kv_pool_bytes"],
            "activation_profile": found.component("temporary").bytes,
        }
    if counters is not None:
        step = ledger_of(scenario).steps[1]
        mine |= {
            "gradients": step.grad_bytes,
            "optimizer": step.optimizer_state_bytes,
            "peak_forward": counters.forward,
            "peak_backward": counters.backward,
            "peak_optimizer": counters.optimizer,
            # the authors took the growth of the allocator's counter, in which the workspaces are
            "measured_weights": counters.loaded,
            "measured_states": counters.rest - counters.loaded,
            "measured_peak_above_persistent": counters.allocated - counters.rest,
            "measured_total_allocated": counters.allocated,
        }
    for name, expected in figures.items():
        if name in mine and expected:
            yield name, expected, mine[name]


def _card(given: Mapping[str, Any]) -> str:
    """The device of a case; the cases without a name ran on an RTX A6000."""
    return str(given.get("gpu") or given.get("hw") or "RTX A6000")


def _gpus(given: Mapping[str, Any]) -> int:
    stated = re.match(r"(\d+)\s?x", str(given.get("hw") or given.get("gpus") or ""))
    return int(stated.group(1)) if stated else 1


def _scenario(given: Mapping[str, Any], inference: bool, subjects: Subjects, catalog: Catalog) -> Scenario:
    if "model" not in given:
        raise Inexpressible("batch and sequence length are not stated")
    model = subjects.find(given["model"], given)
    gpus = _gpus(given)
    settings = words.device(_card(given), catalog)
    if gpus > 1:
        layout = {"tp": given.get("tp"), "pp": given.get("pp"), "dp_shard": given.get("fsdp")}
        settings |= words.parallelism({**layout, "strategy": "FSDP"}, gpus)
    length = words.count(given.get("seq"), "the sequence length")
    batch = words.count(given.get("batch"), "the batch")
    half = str(given.get("compute") or given.get("dtype") or "bf16")
    attention = words.attention(given.get("attention"))
    if inference:
        return scenario_with(
            model,
            {
                **settings,
                "task": "inference",
                "inference.batch_size": batch,
                "inference.prompt_tokens": length,
                "inference.generated_tokens": 0,
                "inference.weight_format": half,
                "inference.kv_cache_format": half,
                "inference.attention": attention,
            },
        )
    settings |= {
        "training.micro_batch_size": batch,
        "training.sequence_length": length,
        "training.attention": attention,
        "training.activation_checkpointing": "full" if given.get("full_checkpointing") else "none",
        **words.optimizer(given.get("optimizer"), ""),
        **_precision(given, half),
        **(_vramcalc() if "qkv_bias" in given else _fitcheck(attention)),
    }
    return scenario_with(model, settings)


def _vramcalc() -> dict[str, Any]:
    """The loop of vramcalc 0.1.2 (bench.py): what the row does not say of it.

    Transformers 4.57 makes a mask wherever none is given and there is no cache; gradients are zeroed,
    not freed; checkpoints are not re-entrant and nothing asks for input gradients.
    """
    return {
        "training.padding_mask": True,
        "training.zero_grad_set_to_none": False,
        "training.input_require_grads": False,
    }


def _fitcheck(attention: str) -> dict[str, Any]:
    """The loop of fitcheck-llm 0.3.1 (measure.py): what the row does not say of it.

    "flash" is SDPA pinned to the memory-efficient kernel, keys and values spread over all heads first;
    the model's output is a local variable that the optimizer's step still sees.
    """
    return {
        "training.sdpa_backend": "auto" if attention == "eager" else "efficient",
        "training.attention": "eager" if attention == "eager" else "sdpa",
        "training.torch_version": "2.13",  # whose memory-efficient kernel takes no shared heads
        "training.outputs_in_step": True,
    }


def _precision(given: Mapping[str, Any], half: str) -> dict[str, Any]:
    if not given.get("lora_rank"):
        return {"training.precision": half if given.get("precision") == "pure" else "bf16_mixed"}
    base = str(given.get("base") or "none")
    autocast = given.get("precision") == "amp"
    return {
        "training.method": "lora",
        "training.lora.rank": given["lora_rank"],
        "training.lora.target_modules": targets_of(given.get("lora_targets") or "q,v"),
        "training.precision": "bf16_mixed" if autocast else half,
        "training.base_format": base
        if base != "none"
        else "fp32"
        if given.get("precision") == "amp"
        else half,
    }
