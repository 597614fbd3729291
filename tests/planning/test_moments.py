import itertools

import msgspec
import pytest

from memgui.estimator import estimate
from memgui.estimator.result import Estimate
from memgui.planning.moments import first_step_peak, peak_index, spans_of, why_here
from memgui.planning.words import English
from memgui.spec import Inference, Scenario, Training, replace
from tests.gui.fakes import LLAMA

WORDS = English()
TRAINING = Scenario(model=LLAMA)
SCENARIOS = {
    "training": TRAINING,
    "accumulated": Scenario(model=LLAMA, training=Training(gradient_accumulation_steps=8)),
    "two": Scenario(model=LLAMA, training=Training(gradient_accumulation_steps=2)),
    "checkpointed": Scenario(model=LLAMA, training=Training(activation_checkpointing="full")),
    "serving": Scenario(model=LLAMA, task="inference", inference=Inference(batch_size=4)),
    "article": msgspec.structs.replace(TRAINING, method="gpt_article"),
}


@pytest.fixture(params=SCENARIOS)
def answer(request: pytest.FixtureRequest) -> Estimate:
    return estimate(SCENARIOS[request.param])


def titles(answer: Estimate) -> tuple[list[str], list[str], list[str]]:
    steps = answer.scenario.training.gradient_accumulation_steps
    spans = spans_of(answer.timeline, steps)
    phases, batches, whole = (
        [span.title.text(WORDS) for span in some] for some in (spans.phases, spans.batches, spans.steps)
    )
    return phases, batches, whole


def test_spans_cover_the_timeline_without_overlap(answer: Estimate) -> None:
    spans = spans_of(answer.timeline, answer.scenario.training.gradient_accumulation_steps)
    assert spans.phases[0].first == 0
    assert spans.phases[-1].last == len(answer.timeline) - 1
    for some in (spans.phases, spans.batches, spans.steps):
        for before, after in itertools.pairwise(some):
            assert before.last < after.first
            assert before.first <= before.last
    for before, after in itertools.pairwise(spans.phases):
        assert after.first == before.last + 1


def test_training_has_two_steps_of_four_phases() -> None:
    phases, batches, steps = titles(estimate(TRAINING))
    assert phases == ["Load", *["Forward", "Loss", "Backward", "Optimizer"] * 2]
    assert batches == []
    assert steps == ["First step", "Every further step"]


def test_accumulation_tells_the_first_micro_batch_from_the_others() -> None:
    phases, batches, _ = titles(estimate(SCENARIOS["accumulated"]))
    assert phases.count("Loss") == 4
    assert batches == ["Micro batch 1", "Micro batches 2 to 8, alike", "Update"] * 2
    assert titles(estimate(SCENARIOS["two"]))[1][1] == "Micro batch 2"


def test_serving_has_neither_steps_nor_batches() -> None:
    phases, batches, steps = titles(estimate(SCENARIOS["serving"]))
    assert phases == ["Load", "Prompt", "Last token"]
    assert batches == steps == []


def test_peak_is_found_where_it_is(answer: Estimate) -> None:
    index = peak_index(answer)
    assert (
        answer.timeline[index].bytes == answer.peak_bytes == max(moment.bytes for moment in answer.timeline)
    )


def test_first_steps_peak_is_lower_and_told_apart() -> None:
    answer = estimate(TRAINING)
    first = first_step_peak(answer)
    assert first is not None
    assert answer.timeline[first].key.startswith("step1.")
    assert answer.timeline[first].bytes < answer.peak_bytes
    said = " ".join(one.text(WORDS) for one in why_here(answer, first))
    assert "no states yet" in said
    assert WORDS.size(answer.timeline[first].bytes) in said
    assert WORDS.size(answer.peak_bytes) in said
    assert first_step_peak(estimate(SCENARIOS["serving"])) is None
    assert first_step_peak(estimate(SCENARIOS["article"])) is None


def test_every_moment_says_what_goes_on(answer: Estimate) -> None:
    for index in range(len(answer.timeline)):
        said = [one.text(WORDS) for one in why_here(answer, index)]
        assert said, answer.timeline[index].key
        assert all("{" not in text and text.endswith(".") for text in said)


def test_what_is_said_to_be_left_is_there() -> None:
    for optimizer, clips in (("adamw", True), ("sgd", True), ("lomo", False)):
        scenario = replace(TRAINING, "training.optimizer", optimizer)
        answer = estimate(replace(scenario, "training.gradient_clipping", clips))
        for index, moment in enumerate(answer.timeline):
            if moment.phase == "optimizer":
                said = why_here(answer, index)[0].text(WORDS)
                there = [moment.components[key] > 0 for key in ("gradients", "optimizer_states")]
                assert ["all gradients" in said, "states are here" in said] == there, moment.key


def test_waiting_gradients_are_named() -> None:
    answer = estimate(SCENARIOS["accumulated"])
    said = " ".join(one.text(WORDS) for one in why_here(answer, peak_index(answer)))
    assert "waiting" in said
    assert "operator" in said
