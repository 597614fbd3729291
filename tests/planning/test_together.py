"""What is said of two changes from what each does alone: no pair that would do is passed over."""

import pytest

from memgui.catalog import Catalog
from memgui.planning.ask import Asker
from memgui.planning.changes import apply, change
from memgui.planning.ways.means import Means
from memgui.planning.ways.rules import choices, fewer_weights, smaller_steps
from memgui.planning.ways.together import Together
from memgui.spec import Scenario, replace

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
SETUPS: dict[str, tuple[Scenario, dict[str, object], str]] = {
    "eager": (FIRST, {"training.micro_batch_size": 8, "training.attention": "eager"}, "H100 SXM5 80GB"),
    "small device": (FIRST, {}, "GeForce RTX 4090"),
    "adapters": (FIRST, {"training.method": "lora", "training.sequence_length": 8192}, "GeForce RTX 4070"),
    "experts": (
        replace(FIRST, "model", CATALOG.model("Qwen3-30B-A3B").model),
        {"training.precision": "fp16_master"},
        "H200 SXM 141GB",
    ),
}


def scenario(name: str) -> Scenario:
    made, settings, device = SETUPS[name]
    for path, value in settings.items():
        made = replace(made, path, value)
    return replace(made, "device", CATALOG.device(device).device())


@pytest.mark.parametrize("name", SETUPS)
def test_what_is_ruled_out_does_not_fit(name: str) -> None:
    base = scenario(name)
    ask = Asker(remember=True)
    together = Together(base, ask)
    means = Means(ask)
    rules = (choices, fewer_weights, smaller_steps)
    firsts = [one.changes for rule in rules for one in rule(base, means)]
    ruled_out = 0
    for changes in firsts[::3]:
        first = apply(base, changes)
        if ask(first).estimate is None:
            continue
        for rule in rules:
            for proposal in rule(first, means):
                changed = apply(first, proposal.changes)
                if together.lacks(first, proposal.changes) is not None:
                    ruled_out += 1
                    assert ask.lacks(changed) is not None or ask(changed).kind in ("does_not_fit", "unknown")
    assert ruled_out > len(firsts), "it is of use"


def test_nothing_is_said_of_a_change_that_matters_only_after_the_first() -> None:
    base = scenario("small device")
    together = Together(base, Asker(remember=True))
    adapters = replace(base, "training.method", "lora")
    narrow = (change(adapters, "training.base_format", "nf4"),)
    assert together.lacks(adapters, narrow) is None
