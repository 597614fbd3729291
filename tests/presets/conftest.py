"""A home for presets, and set-ups to keep in it."""

from pathlib import Path

import pytest

from memgui.presets.paths import AppPaths
from memgui.presets.store import PresetStore
from memgui.spec import ModelSpec, Scenario, replace

MODEL = ModelSpec(
    name="Test 1B",
    vocab_size=32_000,
    hidden_size=2048,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    intermediate_size=8192,
    layer_types=("full_attention", "sliding_attention"),
    sliding_window=4096,
)
SCENARIO = replace(Scenario(model=MODEL), "training.micro_batch_size", 3)


@pytest.fixture
def paths(tmp_path: Path) -> AppPaths:
    return AppPaths.default(home=tmp_path / "home")


@pytest.fixture
def store(paths: AppPaths) -> PresetStore:
    return PresetStore(paths)
