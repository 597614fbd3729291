"""Set-ups that do not fit, drawn by chance from the whole catalog: what nobody picked to look good."""

from __future__ import annotations

import random
from collections.abc import Iterator

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.layout import together
from memgui.planning.opening import starting_scenario
from memgui.spec import Scenario, replace
from memgui.spec.fields import BY_PATH
from memgui.spec.validate import validate

METHODS = ("full", "full", "lora", "lora", "ia3", "prompt", "prefix", "frozen")
BASES = ("bf16", "nf4", "nf4_dq", "int8")
ENGINES = ("transformers", "vllm", "sglang", "llama.cpp", "ollama")
DEGREES = (1, 1, 1, 2, 4)


def drawn(catalog: Catalog, count: int, seed: int) -> Iterator[Scenario]:
    """``count`` legal set-ups that do not fit, the same ones for the same ``seed`` and catalog."""
    chance = random.Random(seed)
    found = 0
    while found < count:
        scenario = _one(catalog, chance)
        if any(issue.severity == "error" for issue in validate(scenario)):
            continue
        if estimate(scenario).verdict.kind == "does_not_fit":
            found += 1
            yield scenario


def _one(catalog: Catalog, chance: random.Random) -> Scenario:
    model, device = chance.choice(catalog.models), chance.choice(catalog.devices)
    scenario, _ = starting_scenario(catalog.first_scenario(), model.model)
    scenario = replace(scenario, "device", device.device())
    settings = _training(chance) if chance.random() < 0.6 else _serving(chance)
    for path, value in settings.items():
        for further, follows in together(scenario, path, value).items():
            scenario = replace(scenario, further, follows)
    return replace(scenario, "device.count", scenario.parallelism.devices)


def _training(chance: random.Random) -> dict[str, object]:
    method = chance.choice(METHODS)
    base = {} if method in ("full", "frozen") else {"training.base_format": chance.choice(BASES)}
    return {
        "training.method": method,
        **base,
        "training.optimizer": _any(chance, "training.optimizer"),
        "training.precision": _any(chance, "training.precision"),
        "training.activation_checkpointing": _any(chance, "training.activation_checkpointing"),
        "training.attention": _any(chance, "training.attention"),
        "training.sequence_length": chance.choice((512, 2048, 8192, 32_768)),
        "training.micro_batch_size": chance.choice((1, 2, 8, 64)),
        "parallelism.data": chance.choice(DEGREES),
        "parallelism.tensor": chance.choice(DEGREES),
        "parallelism.pipeline": chance.choice(DEGREES),
        "parallelism.sharding": _any(chance, "parallelism.sharding"),
    }


def _serving(chance: random.Random) -> dict[str, object]:
    engine = chance.choice(ENGINES)
    cache = {"inference.kv_cache_format": "fp16"} if engine in ("llama.cpp", "ollama") else {}
    return {
        "task": "inference",
        "inference.engine": engine,
        **cache,
        "inference.batch_size": chance.choice((1, 8, 128, 512)),
        "inference.prompt_tokens": chance.choice((128, 8192, 131_072)),
        "inference.generated_tokens": chance.choice((1, 1024, 8192)),
        "parallelism.tensor" if engine in ("vllm", "sglang") else "parallelism.pipeline": chance.choice(
            DEGREES
        ),
    }


def _any(chance: random.Random, path: str) -> str:
    return chance.choice(BY_PATH[path].choices).value
