"""Ways to fit: legal, exact, in plain words, gentlest first; pairs only where one change is not enough."""

from __future__ import annotations

import sys

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import Asker, surely_fits
from memgui.planning.changes import Change, apply, change
from memgui.planning.devices import of_a_sort
from memgui.planning.solve import solve
from memgui.planning.ways import Disturbance, Way, Ways, cost_of, hardware, rules, title_of, ways_to_fit
from memgui.planning.ways.find import _cost
from memgui.planning.ways.means import Means
from memgui.planning.words import English
from memgui.spec import Device, Scenario, get, replace
from memgui.spec.fields import BY_PATH, FIELDS, Choice, Kind
from memgui.spec.formats import CACHE_FORMATS, SCHEMES
from memgui.spec.validate import validate
from tests.planning.fakes import MODEL, needing

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
LONG = replace(FIRST, "training.sequence_length", 8192)
EAGER = replace(replace(FIRST, "training.micro_batch_size", 8), "training.attention", "eager")
HUGE = replace(FIRST, "model.num_hidden_layers", 400)
SERVING = replace(replace(FIRST, "task", "inference"), "inference.batch_size", 100)
SETUPS = {"long": LONG, "eager": EAGER, "huge": HUGE, "serving": SERVING}


def ways(scenario: Scenario) -> Ways:
    return ways_to_fit(scenario, of_a_sort(CATALOG.devices, scenario))


def named(found: tuple[Way, ...], start: str) -> list[Way]:
    return [way for way in found if way.key.startswith(start)]


@pytest.mark.parametrize("name", SETUPS)
def test_every_figure_is_the_estimators(name: str) -> None:
    scenario = SETUPS[name]
    base = estimate(scenario)
    found = ways(scenario)
    assert found.estimate is not None
    assert found.estimate.peak_bytes == base.peak_bytes
    assert found.singles
    for way in found.all:
        there = apply(scenario, way.changes)
        assert there == way.scenario
        assert not [issue for issue in validate(there) if issue.severity == "error"]
        direct = estimate(there)
        assert way.estimate.peak_bytes == direct.peak_bytes
        assert way.saves_bytes == base.peak_bytes - direct.peak_bytes
        assert way.kind == direct.verdict.kind
        assert way.headroom_bytes > base.verdict.headroom_bytes
        for one in way.changes:
            assert one.old == get(scenario, one.path)


@pytest.mark.parametrize("name", SETUPS)
def test_what_fits_stands_first_and_the_gentlest_first_of_it(name: str) -> None:
    found = ways(SETUPS[name]).all
    kinds = [way.kind for way in found]
    assert kinds == sorted(kinds, key=["fits", "tight", "does_not_fit"].index)
    for kind in set(kinds):
        levels = [way.disturbance for way in found if way.kind == kind]
        assert levels == sorted(levels)


def test_known_changes_are_found() -> None:
    found = ways(LONG).singles
    paths = {way.key for way in found}
    assert {
        "training.activation_checkpointing=full",
        "training.method=lora",
        "training.optimizer=sgd",
        "training.keep_outputs=False",
    } <= paths
    (shorter,) = named(found, "training.sequence_length=")
    assert shorter.changes[0].new == solve(LONG, "training.sequence_length", within=surely_fits).largest
    assert surely_fits(shorter.estimate)
    (device,) = named(found, "device.name=")
    assert device.scenario.device.memory_bytes > LONG.device.memory_bytes
    checkpointing = named(found, "training.activation_checkpointing")[0]
    assert checkpointing.same_results
    assert checkpointing.title.text(English()) == "Checkpoint activations"
    said = " ".join(one.text(English()) for one in checkpointing.costs)
    assert said == "About a third slower. Results stay the same."


def test_a_smaller_micro_batch_keeps_the_batch_of_a_step() -> None:
    scenario = replace(
        replace(FIRST, "training.micro_batch_size", 6), "training.gradient_accumulation_steps", 2
    )
    (way,) = named(ways(scenario).singles, "training.micro_batch_size")
    after = way.scenario.training
    assert after.micro_batch_size * after.gradient_accumulation_steps == 12
    assert way.disturbance is Disturbance.SLOWER


def test_pairs_are_looked_for_where_no_single_change_is_enough() -> None:
    found = ways(HUGE)
    assert found.pairs
    much = (Disturbance.HARDWARE, Disturbance.LESS)
    assert not any(surely_fits(way.estimate) for way in found.singles if way.disturbance not in much)
    for pair in found.pairs:
        first, second = pair.parts
        assert pair.changes == (*first.changes, *second.changes)
        assert not {one.path for one in first.changes} & {one.path for one in second.changes}
        assert not surely_fits(first.estimate)
        assert pair.disturbance >= max(first.disturbance, second.disturbance)
    assert ways(LONG).pairs == ()


def test_a_pair_fits_though_neither_part_does() -> None:
    """Checkpointing and a smaller micro batch each halve a fake need of 400 against a limit of 150."""

    def need(one: Scenario) -> int:
        checkpointed = one.training.activation_checkpointing == "full"
        return (200 if checkpointed else 400) * one.training.micro_batch_size // 2

    scenario = Scenario(model=MODEL, device=Device(name="d", memory_bytes=150))
    scenario = replace(scenario, "training.micro_batch_size", 2)
    found = ways_to_fit(scenario, (), Asker(estimate=needing(need), remember=True))
    assert {way.kind for way in found.singles} == {"does_not_fit"}
    assert [way.kind for way in found.pairs] == ["fits"]
    assert {part.key.partition("=")[0] for part in found.pairs[0].parts} == {
        "training.activation_checkpointing",
        "training.micro_batch_size",
    }


def test_a_new_choice_of_a_field_is_a_way_without_a_line_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    field = BY_PATH["training.optimizer"]
    more = (*field.choices, Choice("sparse", "Sparse", "", "Keeps states for a few weights."))
    extended = msgspec.structs.replace(field, choices=more)
    monkeypatch.setitem(BY_PATH, field.path, extended)
    for reader in (rules, sys.modules["memgui.spec.validate"]):
        monkeypatch.setattr(reader, "FIELDS", tuple(extended if one is field else one for one in FIELDS))
    scenario = Scenario(model=MODEL, device=Device(name="d", memory_bytes=150))
    ask = Asker(
        estimate=needing(lambda one: 100 if one.training.optimizer == "sparse" else 200), remember=True
    )
    found = ways_to_fit(scenario, (), ask)
    assert [way.key for way in found.singles] == ["training.optimizer=sparse"]
    assert found.singles[0].title.text(English()) == "Optimizer: Sparse"


def test_every_choice_has_a_title_and_a_cost_in_words() -> None:
    after = estimate(FIRST)
    for field in FIELDS:
        news: list[object] = [choice.value for choice in field.choices] if field.kind is Kind.CHOICE else []
        news += [True, False] if field.kind is Kind.FLAG else []
        news += [3] if field.kind in (Kind.COUNT, Kind.TOKENS, Kind.BYTES) else []
        news += [0.5] if field.kind is Kind.RATIO else []
        for new in news:
            change = Change(field.path, get(FIRST, field.path), new)
            assert title_of(change).text(English())
            cost = cost_of(change, after)
            assert cost.sentences
            for said in cost.sentences:
                text = said.text(English())
                assert text
                assert "{" not in text


def test_of_many_number_formats_few_are_named() -> None:
    weights = named(ways(SERVING).singles, "inference.weight_format")
    assert [way.changes[0].new for way in weights] == ["fp8_per_tensor", "awq_int4_g128", "gptq_int2_g128"]
    assert [way.disturbance for way in weights] == [
        Disturbance.ACCURACY,
        Disturbance.ACCURACY,
        Disturbance.LESS,
    ]
    assert len(named(ways(SERVING).singles, "inference.kv_cache_format")) <= 4


def test_an_engine_is_offered_what_it_loads() -> None:
    serving = replace(replace(SERVING, "inference.engine", "vllm"), "device.memory_bytes", 14 * 2**30)
    found = ways(serving).singles
    for way in named(found, "inference.weight_format"):
        assert "vllm" in SCHEMES[way.changes[0].new].engines
    for way in named(found, "inference.kv_cache_format"):
        assert "vllm" in CACHE_FORMATS[way.changes[0].new].engines
    assert len(named(found, "inference.gpu_memory_utilization")) <= 1
    assert not named(found, "inference.vllm_version")


def test_a_scenario_that_cannot_be_computed_has_no_ways() -> None:
    broken = replace(FIRST, "model.num_key_value_heads", 7)
    assert ways(broken) == Ways(broken, None)


def test_work_that_nobody_waits_for_ends() -> None:
    class Stop(Exception):
        pass

    calls = iter(range(40))

    def check() -> None:
        if next(calls, None) is None:
            raise Stop

    with pytest.raises(Stop):
        ways_to_fit(HUGE, CATALOG.devices, Asker(check, remember=True))


def test_what_is_refused_for_one_reason_is_not_asked_for_every_number_of_devices() -> None:
    """Optimizers of whole matrices are not sharded: two questions tell, not one for each of 36 counts."""
    refused = replace(EAGER, "training.optimizer", "shampoo")
    ask = Asker(remember=True)
    found = ways_to_fit(refused, of_a_sort(CATALOG.devices, refused), ask)
    assert not named(found.all, "parallelism.sharding")
    assert ask.calls < 300
    for layout in hardware._layouts(refused):
        asked = Asker(remember=True)
        row = hardware._row(refused, layout, Means(asked))
        assert asked.calls <= 2 or row.counts, layout.path


def test_more_devices_are_refused_as_asking_of_each_count_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is what nothing can be said of, count by count."""
    for scenario in (EAGER, replace(EAGER, "training.optimizer", "adafactor"), SERVING):
        means = Means(Asker(remember=True))
        for layout in hardware._layouts(scenario):
            row = hardware._row(scenario, layout, means)
            with monkeypatch.context() as patched:
                patched.setattr(Means, "refusal", lambda *_: None)
                patched.setattr(Means, "prohibition", lambda *_: None)
                every = hardware._row(scenario, layout, means)
            kept = len(row.counts)
            assert every.counts[:kept] == row.counts
            assert all(means.refusal(scenario, every.changes(at)) for at in range(kept, len(every.counts)))


def test_a_step_in_backward_is_not_asked_of_every_number_of_devices() -> None:
    """It cannot wait for gradients of so many ranks, however many: the reason is one, the number is not."""
    refused = replace(EAGER, "training.optimizer_in_backward", True)
    checks: list[int] = []
    means = Means(Asker(lambda: checks.append(1), remember=True))
    rows = [hardware._row(refused, layout, means) for layout in hardware._layouts(refused)]
    assert not any(row.counts for row in rows if row.layout.path == "parallelism.data")
    assert len(checks) < 40


def test_results_are_said_to_stay_the_same_once() -> None:
    """Of two changes that keep results the one that keeps them up to rounding decides."""
    both = [
        change(EAGER, "training.attention", "sdpa"),
        change(EAGER, "training.activation_checkpointing", "full"),
    ]
    said = [one.text(English()) for one in _cost(both, estimate(EAGER)).sentences]
    assert said[-1] == "Results stay the same up to rounding."
    assert "Results stay the same." not in said


@pytest.mark.parametrize(
    ("engine", "way"),
    [
        ("transformers", "parallelism.pipeline"),
        ("llama.cpp", "parallelism.pipeline"),
        ("vllm", "parallelism.tensor"),
    ],
)
def test_further_devices_are_used_as_the_program_uses_them(engine: str, way: str) -> None:
    serving = replace(replace(SERVING, "inference.engine", engine), "device.memory_bytes", 14 * 2**30)
    found = [one for one in ways(serving).singles if way in {change.path for change in one.changes}]
    assert found
    shared = "layers in turn" if way.endswith("pipeline") else "tensor parallel"
    assert shared in found[0].title.text(English())
    offered = {change.path for one in ways(serving).singles for change in one.changes}
    assert ("parallelism.pipeline" in offered) == (engine != "vllm")


def test_a_share_too_small_to_write_is_not_called_none() -> None:
    tuned = replace(FIRST, "training.method", "prompt_tuning")
    cost = cost_of(Change("training.method", "full", "prompt_tuning"), estimate(tuned))
    assert "Trains < 0.01 % of the weights" in " ".join(one.text(English()) for one in cost.sentences)


def test_what_fits_is_not_sent_to_other_hardware() -> None:
    small = replace(replace(FIRST, "task", "inference"), "inference.prompt_tokens", 512)
    assert surely_fits(estimate(small))
    found = ways(small)
    assert found.singles
    assert not found.pairs
    assert all(
        one.path.partition(".")[0] not in ("device", "parallelism")
        for way in found.singles
        for one in way.changes
    )


@pytest.mark.parametrize("path", ["training.implementation", "training.optimizer", "training.precision"])
def test_no_cost_is_a_field_explained(path: str) -> None:
    """What a change costs is said in plain words, not by what its field means."""
    after = estimate(FIRST)
    for choice in BY_PATH[path].choices:
        if choice.value in (get(FIRST, path), "transformers_2022"):
            continue
        said = cost_of(change(FIRST, path, choice.value), after).sentences
        assert said, choice.value
        assert all(one.template != "{help}" for one in said), choice.value


def test_what_is_done_in_part_is_proposed_throughout() -> None:
    partly = replace(LONG, "training.activation_checkpointing", "full")
    partly = replace(partly, "training.checkpoint_every", 4)
    found = {way.key: way for way in ways(partly).singles}
    for path, whole, title in (
        ("training.offload_optimizer", 1.0, "Optimizer states on the CPU"),
        ("training.checkpoint_every", 1, "Checkpoint every layer"),
    ):
        (way,) = [one for one in found.values() if one.changes[0].path == path]
        assert get(way.scenario, path) == whole
        assert way.title.text(English()) == title
        assert cost_of(way.changes[0], way.estimate).disturbance is Disturbance.SLOWER
        assert way.saves_bytes > 0


def test_a_newer_pytorch_is_proposed_where_its_kernels_take_shared_heads() -> None:
    """A packed base without autocast runs in fp32 between its layers, and kept the scores of all tokens."""
    made = FIRST
    for name, value in {"method": "lora", "base_format": "nf4", "precision": "bf16"}.items():
        made = replace(made, f"training.{name}", value)
    (newer,) = [way for way in ways(made).singles if way.changes[0].path == "training.torch_version"]
    assert newer.changes[0].new == "2.14"
    assert newer.estimate.peak_bytes < estimate(made).peak_bytes * 0.6
