"""An estimator whose need is any function of the scenario, with the real one's verdict."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.result import COMPONENTS, Estimate, Moment, Node, Parameters, Rank
from memgui.estimator.verdict import verdict
from memgui.planning.ask import Estimator
from memgui.spec import Message, ModelSpec, Scenario

MODEL = ModelSpec(
    name="small",
    vocab_size=1000,
    hidden_size=64,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=8,
    intermediate_size=256,
)


def needing(peak: Callable[[Scenario], int], loose: int = 1) -> Estimator:
    """An estimator that answers ``peak(scenario)`` bytes, all of them weights, give or take ``loose``."""

    def estimate(scenario: Scenario) -> Estimate:
        size = peak(scenario)
        nodes = tuple(Node(key, label, size if key == "weights" else 0) for key, label in COMPONENTS.items())
        moment = Moment("peak", Message("Peak"), "peak", size, {node.key: node.bytes for node in nodes})
        return Estimate(
            scenario=scenario,
            method="detailed",
            version="fake",
            parameters=Parameters(1, 1, 1, {}),
            components=nodes,
            peak_bytes=size,
            peak_moment=moment,
            low_bytes=size - loose,
            high_bytes=size + loose,
            allocated_bytes=size,
            reserved_bytes=size,
            timeline=(moment,),
            ranks=(Rank("0", size),),
            verdict=verdict(size, size - loose, size + loose, scenario.device.memory_bytes),
        )

    return estimate
