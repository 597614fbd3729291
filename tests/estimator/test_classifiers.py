"""Encoders that tell classes apart, against the real modules of Transformers 5.24, and on a V100 of 2022."""

from __future__ import annotations

from typing import Any

import pytest

from memgui.estimator import estimate, ledger
from memgui.estimator.settled import simulation
from memgui.importers.hf_config import import_config
from memgui.spec import Scenario, replace

MIB = 1 << 20
SMALL = {
    "vocab_size": 1000,
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 512,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "hidden_act": "gelu",
    "id2label": {"0": "a", "1": "b", "2": "c"},
}
LARGE = {
    "vocab_size": 30522,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}


def classifier(config: dict[str, Any], name: str, settings: dict[str, Any]) -> Scenario:
    model = import_config({"architectures": [f"{name}ForSequenceClassification"], **config}, name).model
    scenario = replace(Scenario(model=model), "training.attention", "eager")
    for path, value in settings.items():
        scenario = replace(scenario, f"training.{path}", value)
    return scenario


@pytest.mark.parametrize(
    ("name", "config", "parameters", "saved"),
    [
        ("Bert", {"model_type": "bert"}, 550147, 2367828),
        ("Albert", {"model_type": "albert", "embedding_size": 32}, 253571, 2335060),
    ],
)
def test_classes_of_a_sequence(name: str, config: dict[str, Any], parameters: int, saved: int) -> None:
    """Weights, and what autograd saved of four sequences of 32 tokens on a CPU."""
    settings = {"precision": "fp32", "micro_batch_size": 4, "sequence_length": 32}
    held = ledger(classifier({**SMALL, **config}, name, settings))
    assert held.parameters.total == parameters
    assert held.saved_total == saved


def v100(**settings: Any) -> Scenario:
    """bert-large-uncased as the documentation of Transformers measured it in 2022."""
    return replace(
        classifier(
            {"model_type": "bert", **LARGE},
            "Bert",
            {
                "implementation": "transformers_2022",
                "zero_grad_set_to_none": False,
                "wide_embedding_states": False,
                "optimizer_implementation": "forloop",
                "precision": "fp32",
                "sequence_length": 512,
                **settings,
            },
        ),
        "device.compute_capability",
        "7.0",
    )


ONE = {"micro_batch_size": 1, "gradient_accumulation_steps": 4}
SPARING = {**ONE, "activation_checkpointing": "full"}


@pytest.mark.parametrize(
    ("settings", "used"),
    [
        ({"micro_batch_size": 4}, 14949),
        (ONE, 8681),
        (SPARING, 6775),
        ({"micro_batch_size": 4, "precision": "bf16_mixed"}, 13939),
        ({**SPARING, "precision": "bf16_mixed"}, 7275),
        ({"micro_batch_size": 4, "optimizer": "adafactor"}, 12295),
        ({**SPARING, "precision": "bf16_mixed", "optimizer": "adafactor"}, 4847),
        ({"micro_batch_size": 4, "optimizer": "adamw_8bit"}, 13085),
        ({**SPARING, "precision": "bf16_mixed", "optimizer": "adamw_8bit"}, 5363),
    ],
)
def test_what_a_v100_used_beyond_its_context(settings: dict[str, Any], used: int) -> None:
    """NVML's MiB less the 1,343 that the context alone took there."""
    counters = simulation(v100(**settings))
    assert counters is not None
    assert counters.reserved / MIB == pytest.approx(used - 1343, rel=0.03)


def test_contexts_of_2022_held_every_kernel() -> None:
    found = estimate(v100(micro_batch_size=4)).component("overhead").child("context")
    assert found.derivation.assumptions[0].args == {"low": 636 * MIB, "high": 1343 * MIB}


def test_attention_other_than_eager_came_later() -> None:
    later = replace(v100(), "training.attention", "sdpa")
    assert estimate(later).verdict.kind == "unknown"
