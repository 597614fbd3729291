"""The search for the peak looks at few layers, and finds what looking at all of them finds."""

from itertools import accumulate

import pytest

from memgui.catalog import Catalog
from memgui.estimator.estimate import run_of
from memgui.estimator.events import Events
from memgui.estimator.inference import InferenceRun
from memgui.estimator.measure import Bytes, Contents, Watch
from memgui.estimator.points import Outside, Spot
from memgui.estimator.search import Heights
from memgui.estimator.training import TrainingRun
from memgui.spec import Scenario, replace
from tests.benchmarks.estimating import remembering

CATALOG = Catalog()
MODELS = ("Llama-3.1-8B", "t5-base", "gemma-3-27b-it", "Mixtral-8x7B-v0.1", "gpt-oss-20b", "whisper-large-v3")
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {"training.activation_checkpointing": "full"},
    {"training.activation_checkpointing": "selective_op", "training.attention": "eager"},
    {"training.activation_checkpointing": "selective", "training.gradient_accumulation_steps": 4},
    {"training.method": "lora", "training.precision": "bf16_mixed"},
    {"training.optimizer": "lomo", "training.outputs_in_step": True},
    {"device.count": 4, "parallelism.data": 4, "parallelism.sharding": "zero3"},
    {"device.count": 4, "parallelism.data": 4, "parallelism.sharding": "zero2"},
    {"task": "inference"},
    {"task": "inference", "inference.attention": "eager", "inference.batch_size": 3},
)


def scenario(model: str, settings: dict[str, object]) -> Scenario:
    made = replace(CATALOG.first_scenario(), "model", CATALOG.model(model).model)
    made = replace(made, "training.sequence_length", 448)
    for path, value in settings.items():
        made = replace(made, path, value)
    return made


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("model", MODELS)
def test_bounds_hold_and_the_first_highest_point_is_found(model: str, settings: dict[str, object]) -> None:
    run = run_of(scenario(model, settings))
    if isinstance(run, TrainingRun):
        walk = run.walk(accumulate=False)
        heights = run.heights(walk)
        points = [(point, 7) for point in walk.forward()] + [(point, 3) for point in walk.backward()]
    else:
        assert isinstance(run, InferenceRun)
        heights = run.passes[-1].heights
        points = [(point, 7) for point in heights.walk.forward()]
    bounds = [heights.bound(point) for point, _ in points]
    found = heights.highest_of(points)
    exact = [heights.highest(point)[0] for point, _ in points]
    assert all(most <= bound for most, bound in zip(exact, bounds, strict=True))
    whole = [most + beside for most, (_, beside) in zip(exact, points, strict=True)]
    assert found is not None
    assert (found.bytes, found.at) == (max(whole), whole.index(max(whole)))
    assert heights.highest_of(points, max(whole)) == found
    assert heights.highest_of(points, max(whole) + 1) is None
    if isinstance(run, TrainingRun):
        rows = [(row, 7) for row in walk.way_forward.rows]
        left = heights.left_by_loss(3)
        others = [most for most, (point, _) in zip(whole, points, strict=True) if point.key != "loss"]
        if left is not None:
            close, loose = (heights.beside_loss(rows[:-1], left, together=one) for one in (False, True))
            assert max(others) <= close <= loose
        loss = heights.at_loss(rows, 3)
        assert loss is None or (loss.bytes, loss.point.key) == (found.bytes, points[found.at][0].key)
    for point, _ in points:  # inside layers too, bounds hold and the first of the highest spots is found
        inside = [_peak(heights, spot) for spot in heights.spots(point.inside)]
        for spot, most in zip(heights.spots(point.inside), inside, strict=True):
            assert most <= heights.numbers.bytes(spot.before) + heights.numbers.sums(spot.most)
        assert heights.peak(point.inside) == (
            max(inside),
            heights.spots(point.inside)[inside.index(max(inside))],
        )
        if isinstance(point.inside, Outside) and point.inside.closer is not None:
            bound = heights.bound(point) - heights.numbers.bytes(point.live)
            for enough in (0, max(inside), max(inside) + 1):
                assert max(inside) <= point.inside.closer(heights.numbers.values, bound, enough)
        components, _ = Contents(heights.numbers).sums(heights.whole(point))
        assert sum(components.values()) == heights.amount(point)


@pytest.mark.parametrize("length", [1, 3, 448])
@pytest.mark.parametrize("model", ["t5-base", "DeepSeek-V4-Flash", "Kimi-Linear-48B-A3B-Instruct"])
def test_most_is_alive_after_one_of_the_events_that_are_told(model: str, length: int) -> None:
    """And where several hold as much, after the first of them."""
    run = run_of(scenario(model, {"training.sequence_length": length}))
    assert isinstance(run, TrainingRun)
    walk = run.walk(accumulate=False)
    for point in (*walk.forward(), *walk.backward()):
        for events, stop, _ in (spot.place() for spot in walk.spots(point.inside)):
            for whole in (True, False):
                numbers = Bytes(run.values, whole=whole)
                tops = [(numbers.sums([pairs]), -after) for pairs, after in events.tops(stop, whole=whole)]
                most, first = _top(numbers, events, stop)
                watch = Watch(numbers, 0)
                watch(events)
                watch.see(events, stop)
                assert (watch.most, watch.stop) == (most, first) or stop is not None
                assert max(tops)[0] == most
                assert -max(tops)[1] == first or not numbers.positive


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("model", [*MODELS, "DeepSeek-V4-Flash", "Kimi-Linear-48B-A3B-Instruct"])
def test_what_is_told_for_all_workloads_holds_for_each(model: str, settings: dict[str, object]) -> None:
    """Further workloads find the same point, spot and event as one that looks at its numbers."""
    lengths = "inference.prompt_tokens" if settings.get("task") == "inference" else "training.sequence_length"
    settings = {"training.lora.target_modules": ("all-linear",), **settings}
    for length in (448, 7, 64, 3000, 1):
        run = run_of(scenario(model, {**settings, lengths: length}))
        behind = None
        if isinstance(run, TrainingRun):
            heights, behind = run.heights(run.walk(accumulate=False)), 3
        else:
            assert isinstance(run, InferenceRun)
            heights = run.passes[-1].heights
        walk = heights.walk
        rows = [(row, 7) for row in walk.way_forward.rows]
        if behind is not None:
            rows += [(row, behind) for row in walk.way_backward.rows]
        found, told = heights.highest_of(rows), heights.highest_on(walk.way_forward, 7, behind)
        assert told is not None
        assert told == found
        assert heights.highest_on(walk.way_forward, 7, behind, told.bytes) == told
        assert heights.highest_on(walk.way_forward, 7, behind, told.bytes + 1) is None


def test_a_forward_pass_is_not_gone_through_where_what_dies_shows_that_less_is_alive() -> None:
    for forget in remembering():
        forget()
    run = run_of(scenario("gemma-4-E2B-it", {"training.sequence_length": 4096}))
    assert run.peak().stage == "backward.loss"
    assert "running" not in vars(run.program.tail)


def test_where_the_loss_holds_most_backward_is_not_gone_through() -> None:
    run = run_of(scenario("gemma-3-1b-it", {"training.sequence_length": 4096}))
    assert run.peak().stage == "backward.loss"
    assert isinstance(run, TrainingRun)
    assert "back" not in vars(run.program)
    assert "way_backward" not in vars(run.walk(accumulate=False))


def test_backward_is_gone_through_as_far_as_its_peak_may_lie() -> None:
    """Each workload goes as far as it needs, and finds what there is when all of it is gone through."""
    for forget in remembering():
        forget()
    seen: list[tuple[Heights, int, Spot]] = []
    for length in (4096, 1024, 128, 16, 1):
        run = run_of(scenario("DeepSeek-V4-Flash", {"training.sequence_length": length}))
        assert isinstance(run, TrainingRun)
        if not seen:
            run.peak()
            begun = [(block, back) for block, _ in run.program.blocks for back in block._backs.values()]
            assert begun
            assert all(2 * len(back.events.ends) < len(block.tape.ops) for block, back in begun)
        heights = run.heights(run.walk(accumulate=False))
        seen += [(heights, *heights.peak(point.inside)) for point in heights.walk.backward()]
    for heights, most, spot in seen:
        assert most == _peak(heights, spot)


def _peak(heights: Heights, spot: Spot) -> int:
    place = spot.place()
    return heights.numbers.bytes(spot.before) + _top(heights.numbers, place.events, place.stop)[0]


def _top(numbers: Bytes, events: Events, stop: int | None) -> tuple[int, int]:
    """The most that is alive at one of the first ``stop`` events, and after how many of them first."""
    sizes = events.sizes if numbers.whole else events.coefficients
    running = [0, *accumulate(map(lambda size, at: size * numbers.values[at], sizes, events.monomials))]
    most = max(running if stop is None else running[: stop + 1])
    return most, running.index(most)
