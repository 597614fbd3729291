"""What could explain a gap: the set-ups that people mean, other devices, and that nothing does."""

from __future__ import annotations

from typing import Any

import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import Asker
from memgui.planning.changes import apply, change
from memgui.planning.layout import together
from memgui.planning.measured import Counter, Explanation, beside, explain, parse, typed
from memgui.planning.words import English
from memgui.spec import Scenario, get, replace

CATALOG = Catalog()
FIRST = CATALOG.first_scenario()
ESTIMATE = estimate(FIRST)
GIB = 2**30


def with_changes(scenario: Scenario, **changes: Any) -> Scenario:
    for path, value in changes.items():
        scenario = replace(scenario, path.replace("__", "."), value)
    return scenario


def texts(found: tuple[Explanation, ...]) -> list[str]:
    return [one.said.text(English()) for one in found]


LORA = with_changes(FIRST, training__method="lora")
QLORA = with_changes(LORA, training__base_format="nf4_dq")
SERVED = with_changes(FIRST, task="inference", inference__engine="transformers")
RUNS = {
    "LoRA": (FIRST, LORA),
    "QLoRA": (FIRST, QLORA),
    "full": (LORA, FIRST),
    "twice the batch": (FIRST, with_changes(FIRST, training__micro_batch_size=2)),
    "half the batch": (with_changes(FIRST, training__micro_batch_size=4), FIRST),
    "longer": (FIRST, with_changes(FIRST, training__sequence_length=16384)),
    "states on the CPU": (FIRST, with_changes(FIRST, training__offload_optimizer=1.0)),
    "states on the device": (with_changes(FIRST, training__offload_optimizer=1.0), FIRST),
    "more sequences": (SERVED, with_changes(SERVED, inference__batch_size=16)),
    "sharded": (
        FIRST,
        with_changes(FIRST, device__count=4, parallelism__data=4, parallelism__sharding="zero3"),
    ),
    "tensor parallel": (SERVED, with_changes(SERVED, device__count=2, parallelism__tensor=2)),
    "longer prompts": (SERVED, with_changes(SERVED, inference__prompt_tokens=32_768)),
}


@pytest.mark.parametrize(("opened", "ran"), RUNS.values(), ids=RUNS)
def test_the_set_up_that_ran_is_named_and_applied(opened: Scenario, ran: Scenario) -> None:
    used = estimate(ran).allocated_bytes
    found = explain(typed(f"{used / GIB:.2f} GiB", Counter.ALLOCATED), estimate(opened))
    there = [one for one in found if one.changes and apply(opened, one.changes) == ran]
    assert there, texts(found)
    # nothing that is further from the figure stands before it, and there are few of them
    assert found.index(there[0]) < 4, texts(found)
    assert len(found) <= 8


def test_a_process_may_lie_anywhere_in_the_range_of_what_ran() -> None:
    ran = estimate(LORA)
    low = ran.low_bytes + (ran.peak_bytes - ran.low_bytes) // 4
    assert 100 * (ran.peak_bytes - low) > low  # further than a hundredth from what is usual
    found = explain(typed(f"{low / GIB:.2f} GiB", Counter.PROCESS), ESTIMATE)
    assert any("“Method: LoRA”:" in text for text in texts(found)), texts(found)


def test_the_length_of_a_rounded_figure_is_a_round_one() -> None:
    ran = with_changes(FIRST, training__sequence_length=6144)
    found = explain(typed(f"{estimate(ran).allocated_bytes / GIB:.1f} GiB", Counter.ALLOCATED), ESTIMATE)
    assert any("with 6,144 tokens" in text for text in texts(found)), texts(found)


def test_adapters_are_tried_on_layers_that_the_model_has() -> None:
    opened = with_changes(FIRST, model=CATALOG.model("state-spaces/mamba-130m-hf").spec)
    ran = apply(
        opened, [change(opened, *step) for step in together(opened, "training.method", "lora").items()]
    )
    used = estimate(ran).allocated_bytes
    found = explain(typed(f"{used / GIB:.3f} GiB", Counter.ALLOCATED), estimate(opened))
    assert any("“Method: LoRA”" in text for text in texts(found)), texts(found)
    assert any(one.changes and apply(opened, one.changes) == ran for one in found)


def test_no_field_is_named_over_and_over() -> None:
    used = estimate(with_changes(FIRST, training__offload_optimizer=1.0)).allocated_bytes
    found = explain(typed(f"{used / GIB:.2f} GiB", Counter.ALLOCATED), ESTIMATE)
    paths = [one.changes[0].path for one in found if one.changes]
    assert max(paths.count(path) for path in paths) <= 2


@pytest.mark.parametrize("text", ["3.21 GiB", "391 GiB"])
def test_what_nothing_explains_is_said_to_be_so(text: str) -> None:
    measurement = typed(text, Counter.PROCESS)
    (row,) = beside(measurement, ESTIMATE)
    assert not row.within
    assert explain(measurement, ESTIMATE), "a gap and not a word"


def test_where_nothing_is_found_it_says_what_to_look_at() -> None:
    said = texts(explain(typed("3.21 GiB", Counter.ALLOCATED), ESTIMATE))
    assert len(said) == 1
    assert "Nothing that was tried" in said[0]
    assert "GiB less" in said[0]


def test_a_part_that_nothing_explains_is_named() -> None:
    serving = with_changes(FIRST, task="inference", inference__engine="vllm")
    said = texts(explain(parse("Model loading took 3.0 GiB and 2 s")[0], estimate(serving)))
    assert any("“weights”" in text and "Nothing that was tried" in text for text in said), said


def test_a_gap_under_a_hundredth_is_said_to_be_small() -> None:
    used = ESTIMATE.allocated_bytes
    said = texts(explain(typed(f"{used * 995 // 1000}", Counter.ALLOCATED), ESTIMATE))
    assert any("hundredth" in text for text in said), said


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 648.00 MiB. GPU 0 has a total capacity of "
    "{capacity} GiB of which 176.88 MiB is free. Including non-PyTorch memory, this process has 30.35 GiB "
    "memory in use. Of the allocated memory 30.08 GiB is allocated by PyTorch, and 14.45 MiB is reserved by "
    "PyTorch but unallocated."
)


def test_another_gpu_is_named_and_applied() -> None:
    (found,) = parse(OOM.format(capacity="47.53"))
    explained = explain(found, ESTIMATE, devices=CATALOG.devices)
    (device,) = [one for one in explained if any(step.path == "device.memory_bytes" for step in one.changes)]
    said = device.said.text(English())
    assert "It ran on a GPU of 47.53 GiB, such as RTX A6000" in said
    assert FIRST.device.name in said
    there = apply(FIRST, device.changes)
    assert there.device.name == "RTX A6000"
    assert not [row for row in beside(found, estimate(there)) if not row.within]


def test_a_gpu_that_is_not_in_the_catalogue_is_taken_as_large_as_it_is() -> None:
    (found,) = parse(OOM.format(capacity="40.77"))
    (device,) = [one for one in explain(found, ESTIMATE, devices=CATALOG.devices) if one.changes]
    assert [step.path for step in device.changes] == ["device.memory_bytes"]
    assert apply(FIRST, device.changes).device.memory_bytes == round(40.77 * GIB)


def test_a_request_for_a_shared_segment_tells_of_no_tensor() -> None:
    (found,) = parse(OOM.format(capacity="79.19").replace("648.00", "20.00"))
    assert not [text for text in texts(explain(found, ESTIMATE)) if "is the size of the tensor" in text]


@pytest.mark.parametrize("capacity", ["79.11", "79.25"])
def test_another_driver_is_no_other_gpu(capacity: str) -> None:
    (found,) = parse(OOM.format(capacity=capacity))
    assert not [one for one in explain(found, ESTIMATE, devices=CATALOG.devices) if one.changes]
    assert all(row.within for row in beside(found, ESTIMATE))


def test_nvidia_smi_counts_what_no_process_is_told() -> None:
    """A 4090 has 24,564 MiB for the driver and 23.64 GiB for a process."""
    entry = CATALOG.device("GeForce RTX 4090")
    scenario = with_changes(FIRST, **{path.replace(".", "__"): v for path, v in entry.device().facts.items()})
    (found,) = parse("memory.used [MiB], memory.total [MiB]\n900 MiB, 24564 MiB")
    row = next(row for row in beside(found, estimate(scenario)) if row.figure.counter is Counter.CAPACITY)
    assert row.within
    (other,) = parse("memory.used [MiB], memory.total [MiB]\n900 MiB, 40960 MiB")
    explained = explain(other, estimate(scenario), devices=CATALOG.devices)
    device = next(one for one in explained if any(step.path == "device.memory_bytes" for step in one.changes))
    assert get(apply(scenario, device.changes), "device.name").startswith("A100")


def test_it_asks_for_few_estimates() -> None:
    """About three milliseconds each; a search that runs to the end of a field would ask hundreds."""
    for scenario in (FIRST, LORA, SERVED, with_changes(SERVED, inference__engine="vllm")):
        for text in ("3.21 GiB", "391 GiB"):
            ask = Asker(remember=True)
            explain(typed(text, Counter.PROCESS), estimate(scenario), ask)
            assert ask.calls < 160, (scenario.task, text, ask.calls)


def test_the_share_that_an_engine_had_is_found_from_what_its_process_held() -> None:
    opened = with_changes(FIRST, task="inference", inference__engine="vllm")
    ran = estimate(with_changes(opened, inference__gpu_memory_utilization=0.38))
    measured = typed(f"{ran.extra['process_bytes'] / GIB:.2f} GiB", Counter.PROCESS)
    found = explain(measured, estimate(opened))
    assert any("0.38" in text for text in texts(found)), texts(found)
