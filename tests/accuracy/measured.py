"""``measured.json``: figures that people published of their own machines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from memgui.catalog import Catalog
from memgui.estimator.options import OLD, capability
from memgui.estimator.overhead import context
from memgui.estimator.result import Estimate
from memgui.estimator.settled import settled
from memgui.spec import Scenario
from tests.accuracy import serving, words
from tests.accuracy.express import Inexpressible, answer, scenario_with
from tests.accuracy.figures import Counter, Figure, counter_of, half_a_digit, of_kind
from tests.accuracy.kernels import is_lone, lone_kernel
from tests.accuracy.recipes import RECIPES
from tests.accuracy.score import Miss, Row, percent
from tests.accuracy.slopes import sample_of
from tests.accuracy.subjects import Subjects

TRAINING = ("train-full", "train-lora", "train-qlora")


def measured(truth: list[dict[str, Any]], subjects: Subjects, catalog: Catalog) -> Iterator[Row]:
    """One row for each measurement; what was computed, plotted or extrapolated is not scored."""
    for entry in truth:
        if entry.get("truth", "measured") == "measured":
            yield _row(entry, subjects, catalog)


def _row(entry: Mapping[str, Any], subjects: Subjects, catalog: Catalog) -> Row:
    figure = entry["measured"]
    component = (entry.get("extra") or {}).get("component")
    own = serving.counter(entry)
    counter = own or of_kind(counter_of(figure["counter"], component, figure["unit"]), entry["kind"])
    gpus = gpu_count(entry)
    table = f"{entry['kind']}/{entry['tier']}/{'one' if gpus == 1 else 'many'}/{counter.table}"
    name = f"{entry['id']} {entry['model']['name']}"
    try:
        expected = expected_value(figure)
        if is_lone(entry):
            got = lone_kernel(entry)
        else:
            found = answer(scenario_of(entry, gpus, subjects, catalog))
            found = settled(found, emptied="empty_cache" in (entry.get("ambiguities") or ""))
            got = in_its_context(entry, found, _of_rank(entry, found, counter))
    except Inexpressible as reason:
        return Row(table, name, str(reason))
    row = compared(table, name, counter, figure, expected, got)
    return replace(row, sample=sample_of(entry, expected, got.value))


def _of_rank(entry: Mapping[str, Any], found: Estimate, counter: Counter) -> Figure:
    """What the counter says of the pipeline stage that the row's rank belongs to."""
    layout = entry.get("parallelism") or {}
    if "rank" not in layout or len(found.ranks) == 1:
        return counter.read(found)
    if "max" not in entry["measured"]["counter"] or counter.table != "allocated":
        raise Inexpressible("what a single stage holds between steps is not told apart")
    stage = int(layout["rank"]) * len(found.ranks) // int(layout["gpus"])
    return Figure(found.ranks[stage].allocated_bytes)


def in_its_context(entry: Mapping[str, Any], found: Estimate, got: Figure) -> Figure:
    """A process's figure beside the CUDA context that the row's source measured by itself."""
    stated = re.search(r"\((\d+) MiB measured separately\)", entry.get("ambiguities") or "")
    if stated is None or got.low is None or got.high is None:
        return got
    training, chip = found.scenario.training, found.scenario.device.compute_capability
    known = context(capability(chip), old=training.implementation == OLD)
    own = int(stated.group(1)) * 2**20
    return Figure(got.value - known.usual + own, got.low - known.low + own, got.high - known.high + own)


def compared(
    table: str, name: str, counter: Counter, figure: Mapping[str, Any], expected: int, got: Figure
) -> Row:
    """A row of the scoreboard for one published figure."""
    tolerance = half_a_digit(figure["value"], expected / float(figure["value"])) if figure["value"] else 0
    inside = None
    width = None
    if got.low is not None and got.high is not None:
        inside = got.low - tolerance <= expected <= got.high + tolerance
        width = percent(got.high, got.low, (got.low + got.high) / 2)
    miss = Miss(figure.get("counter", "value"), expected, got.value)
    exact = abs(got.value - expected) <= tolerance
    return Row(
        table,
        name,
        errors=(percent(got.value, expected),),
        exact=exact,
        inside=inside,
        range_pct=width,
        misses=() if exact else (miss,),
        note="" if inside is None else f"range {got.low:,} to {got.high:,}",
    )


def expected_value(figure: Mapping[str, Any]) -> int:
    """Bytes (or tokens) that were measured."""
    if figure["unit"] == "tokens":
        return int(figure["value"])
    if figure.get("bytes_normalised") is None:
        raise Inexpressible("the figure's unit is unknown")
    return int(figure["bytes_normalised"])


def gpu_count(entry: Mapping[str, Any]) -> int:
    """Devices of a row: stated, or the product of its degrees, or in front of the device's name."""
    layout = entry.get("parallelism") or {}
    if layout.get("gpus"):
        return int(layout["gpus"])
    product = math.prod(int(layout.get(key) or 1) for key in ("tp", "pp", "cp"))
    if layout.get("ep"):
        product = max(product, int(layout["ep"]))
    stated = re.match(r"(\d+)x ", str(entry.get("gpu") or ""))
    return max(product, int(stated.group(1)) if stated else 1)


def scenario_of(entry: Mapping[str, Any], gpus: int, subjects: Subjects, catalog: Catalog) -> Scenario:
    """The set-up that a row describes."""
    model_words = entry["model"]
    if model_words.get("arch") == "none":
        raise Inexpressible("no model, the context alone")
    model = subjects.find(model_words["name"], model_words)
    if "ForSequenceClassification" in model.name:
        model = msgspec.structs.replace(model, head="sequence", num_labels=2)
    settings = words.device(entry.get("gpu"), catalog)
    if gpus > 1:
        settings |= words.parallelism(entry.get("parallelism") or {}, gpus)
    if entry["kind"] in TRAINING:
        settings |= training_of(entry)
    elif entry["kind"] == "weights" and entry.get("lora"):  # adapters lie beside them
        settings |= training_of({**entry, "micro_batch": 1, "seq_len": 1})
    else:
        settings |= serving.measured(entry)
    return scenario_with(model, settings)


def training_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The training fields of a row."""
    framework = entry.get("framework") or ""
    precision, base = words.training_precision(entry.get("precision"))
    quantisation = entry.get("quantisation")
    if quantisation and entry["kind"] == "train-full":
        precision = "fp8" if "float8" in quantisation or "fp8" in quantisation else words.slug(quantisation)
    settings: dict[str, Any] = {
        "training.micro_batch_size": words.count(entry.get("micro_batch"), "the batch"),
        "training.sequence_length": words.count(entry.get("seq_len"), "the sequence length"),
        "training.precision": precision,
        "training.attention": words.attention(entry.get("attention")),
        **words.recomputation(entry.get("gradient_checkpointing")),
        "training.implementation": words.implementation(framework),
        "training.keep_outputs": not _drops_outputs(framework),
        **words.optimizer(entry.get("optimizer"), framework),
    }
    if entry["kind"] == "train-full":
        strategy = str((entry.get("parallelism") or {}).get("strategy") or "")
        if not strategy and "distributed optimizer" in str(entry.get("optimizer")):
            settings["parallelism.sharding"] = "zero1"
        code = settings["training.implementation"]
        settings["training.precision"] = words.kept_precision(precision, code, strategy, framework)
        if "bf16 master" in str(entry.get("precision")):
            settings |= {"training.master_format": "bf16", "training.state_format": "bf16"}
    accumulation = (entry.get("extra") or {}).get("gradient_accumulation")
    if accumulation:
        settings["training.gradient_accumulation_steps"] = accumulation
    if entry["kind"] != "train-full":
        settings |= lora_of(entry.get("lora") or {})
        settings["training.base_format"] = words.quantised(quantisation) if quantisation else base
    recipe = RECIPES.get(settings["training.implementation"])
    return settings | recipe(entry, precision) if recipe is not None else settings


def _drops_outputs(framework: str) -> bool:
    """Whether the loop lets go of the model's outputs before the backward pass, as Trainer does."""
    return any(
        word in framework for word in ("Trainer", "TRL", "swift", "LLaMA-Factory", "alpaca", "Unsloth")
    )


_TARGETS = {
    "query": ("q_proj",),
    "key": ("k_proj",),
    "value": ("v_proj",),
    "q": ("q_proj",),
    "k": ("k_proj",),
    "v": ("v_proj",),
    "o": ("o_proj",),
    "output_proj": ("o_proj",),
    "mlp": ("gate_proj", "up_proj", "down_proj"),
}


_VARIANTS = ("lora", "rslora", "dora", "lora_fa", "mica")


def lora_of(lora: Mapping[str, Any]) -> dict[str, Any]:
    """The adapter fields of a row."""
    method = words.slug(str(lora.get("method") or "lora").lower())
    settings: dict[str, Any] = {"training.method": "lora" if method in _VARIANTS else method}
    if method in _VARIANTS[1:]:
        settings["training.lora.variant"] = method
    if lora.get("modules_to_save"):
        settings["training.lora.modules_to_save"] = tuple(lora["modules_to_save"])
    if lora.get("rank"):
        settings["training.lora.rank"] = int(lora["rank"])
    if lora.get("dropout"):
        settings["training.lora.dropout"] = float(lora["dropout"])
    targets = lora.get("targets")
    if targets:
        settings["training.lora.target_modules"] = targets_of(targets)
    return settings


def targets_of(targets: str | list[str]) -> tuple[str, ...]:
    """Module names of a list, or of words such as ``q,v`` and ``all-linear``."""
    if isinstance(targets, str):
        if "all" in targets:
            return ("all-linear",)
        targets = re.findall(r"\b[a-z]\w*\b", targets.replace("default", ""))
    return tuple(name for target in targets for name in _TARGETS.get(target, (target,)))
