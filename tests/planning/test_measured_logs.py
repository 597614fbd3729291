"""Logs as they are found in public: old engines, messages out of containers, nvidia-smi's columns."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.measured import Counter, Figure, Measurement, beside, from_plain, parse, to_plain, typed
from memgui.spec import ScenarioError, replace

FIRST = Catalog().first_scenario()
MIB, GIB = 2**20, 2**30


def only(text: str) -> Measurement:
    (found,) = parse(text)
    return found


def sizes(found: Measurement) -> dict[Counter, int]:
    return {one.counter: one.bytes for one in found.figures}


def parts(found: Measurement) -> dict[str, tuple[Counter, int]]:
    return {one.part: (one.counter, one.bytes) for one in found.figures}


# -- what is typed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["23,4 GiB", "23,45 GB", "1234,567 MiB", "8502,961", "1,2,3 GiB", "1 234,5 GiB"]
)
def test_a_comma_parts_thousands_only(text: str) -> None:
    """As in every other box: 23,4 GiB means 23.4 to half of the world, and 234 to nobody."""
    with pytest.raises(ScenarioError) as caught:
        typed(text, Counter.ALLOCATED)
    assert "a comma parts thousands, a point parts decimals" in str(caught.value).lower()


def test_thousands_may_be_parted() -> None:
    assert typed("81,251.5 MiB", Counter.ALLOCATED).figures[0].bytes == 81251 * MIB + MIB // 2
    assert typed("85 029 615 043", Counter.ALLOCATED).figures[0].bytes == 85_029_615_043


# -- out-of-memory messages ---------------------------------------------------------------------------

ALONE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 4 has a total capacity of "
    "79.33 GiB of which 35.81 MiB is free. Process 126723 has 79.28 GiB memory in use. Of the allocated "
    "memory 77.57 GiB is allocated by PyTorch, and 481.53 MiB is reserved by PyTorch but unallocated."
)
BESIDE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of "
    "39.39 GiB of which 3.06 MiB is free. Process 1033 has 4.45 GiB memory in use. Process 1450 has 4.14 GiB "
    "memory in use. Process 2251 has 30.76 GiB memory in use. Of the allocated memory 30.21 GiB is allocated "
    "by PyTorch, and 59.59 MiB is reserved by PyTorch but unallocated."
)


def test_in_a_container_the_own_process_is_one_of_the_list() -> None:
    assert sizes(only(ALONE)) == {
        Counter.WANTED: 64 * MIB,
        Counter.CAPACITY: round(79.33 * GIB),
        Counter.ALLOCATED: round(77.57 * GIB),
        Counter.RESERVED: round(77.57 * GIB) + round(481.53 * MIB),
        Counter.PROCESS: round(79.28 * GIB),
    }
    found = sizes(only(BESIDE))
    assert found[Counter.PROCESS] == round(30.76 * GIB)
    assert found[Counter.OTHERS] == round(4.45 * GIB) + round(4.14 * GIB)


def test_of_two_that_could_be_it_the_one_that_holds_least_is_taken() -> None:
    text = BESIDE.replace("30.76", "8.10").replace("4.45 GiB", "26.70 GiB").replace("30.21", "7.50")
    found = sizes(only(text))
    assert found[Counter.PROCESS] == round(8.1 * GIB)
    assert found[Counter.OTHERS] == round(26.7 * GIB) + round(4.14 * GIB)


def test_a_process_that_is_not_listed_is_none_of_the_others() -> None:
    text = BESIDE.replace("Process 2251 has 30.76 GiB memory in use. ", "")
    found = sizes(only(text))
    assert Counter.PROCESS not in found
    assert found[Counter.OTHERS] == round(4.45 * GIB) + round(4.14 * GIB)


def test_a_message_cut_off_after_its_list_tells_of_no_others() -> None:
    alone = ALONE[: ALONE.index(" Of the allocated")]
    assert sizes(only(alone))[Counter.PROCESS] == round(79.28 * GIB)
    assert Counter.OTHERS not in sizes(only(alone))
    found = sizes(only(BESIDE[: BESIDE.index(" Of the allocated")]))
    assert set(found) == {Counter.WANTED, Counter.CAPACITY}


@pytest.mark.parametrize("said", ["0 bytes", "17179869184.00 GiB"])
def test_a_process_that_holds_less_than_pytorch_in_it_is_not_believed(said: str) -> None:
    """WSL cannot say what a process holds."""
    text = (
        "CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has a total capacity of 23.43 GiB of which "
        f"4.06 MiB is free. Including non-PyTorch memory, this process has {said} memory in use. Of the "
        "allocated memory 23.03 GiB is allocated by PyTorch, and 15.67 MiB is reserved by PyTorch but "
        "unallocated."
    )
    assert Counter.PROCESS not in sizes(only(text))


# -- vLLM ---------------------------------------------------------------------------------------------

VLLM_063 = """\
INFO 12-06 17:07:09 model_runner.py:1077] Loading model weights took 0.2389 GB
INFO 12-06 17:07:09 worker.py:232] Memory profiling results: total_gpu_memory=7.92GiB \
initial_memory_usage=0.65GiB peak_torch_memory=0.71GiB memory_usage_post_profile=0.68GiB \
non_torch_memory=0.43GiB kv_cache_size=5.99GiB gpu_memory_utilization=0.90
INFO 12-06 17:07:09 gpu_executor.py:113] # GPU blocks: 10900, # CPU blocks: 7281
INFO 12-06 17:07:32 model_runner.py:1518] Graph capturing finished in 19 secs, took 0.13 GiB
"""
VLLM_065 = """\
INFO 12-25 14:00:28 worker.py:265] Memory profiling results: duration=18.41 seconds, \
total_gpu_memory=191.98GiB, initial_memory_usage=71.40GiB, peak_torch_memory=86.79GiB, \
memory_usage_post_profile=73.77GiB, non_torch_memory=6.07GiB, kv_cache_size=95.28GiB, \
gpu_memory_utilization=0.98.
"""
VLLM_066 = """\
INFO 01-02 19:54:18 worker.py:243] total_gpu_memory     23.64GiB
INFO 01-02 19:54:18 worker.py:243] gpu_memory_utilization       0.90
INFO 01-02 19:54:18 worker.py:243] the current vLLM instance can use    21.28GiB
INFO 01-02 19:54:18 worker.py:243] model weights take   14.96GiB
INFO 01-02 19:54:18 worker.py:243] non_torch_memory     0.11GiB
INFO 01-02 19:54:18 worker.py:243] PyTorch activation peak memory       1.26GiB
INFO 01-02 19:54:18 worker.py:243] available_kv_cache_memory    4.95GiB
"""


def test_the_results_of_vllms_profile_are_read_from_the_line_they_stood_on() -> None:
    assert parts(only(VLLM_063)) == {
        "weights": (Counter.ALLOCATED, round(0.2389 * GIB)),
        "device": (Counter.CAPACITY, round(7.92 * GIB)),
        "peak in PyTorch": (Counter.ALLOCATED, round(0.71 * GIB)),
        "outside PyTorch": (Counter.PROCESS, round(0.43 * GIB)),
        "KV cache pool": (Counter.RESERVED, round(5.99 * GIB)),
        "CUDA graphs": (Counter.PROCESS, round(0.13 * GIB)),
    }
    assert only(VLLM_063).facts == {"kv_blocks": 10900}
    assert parts(only(VLLM_065)) == {
        "device": (Counter.CAPACITY, round(191.98 * GIB)),
        "peak in PyTorch": (Counter.ALLOCATED, round(86.79 * GIB)),
        "outside PyTorch": (Counter.PROCESS, round(6.07 * GIB)),
        "KV cache pool": (Counter.RESERVED, round(95.28 * GIB)),
    }


def test_vllms_peak_in_pytorch_is_its_weights_and_what_it_works_with() -> None:
    serving = replace(replace(FIRST, "task", "inference"), "inference.engine", "vllm")
    found = estimate(serving)
    row = next(row for row in beside(only(VLLM_063), found) if row.figure.part == "peak in PyTorch")
    held = [found.component(key).bytes for key in ("weights", "activations", "loss", "temporary")]
    assert row.expected == sum(held)


def test_what_vllm_may_use_is_no_second_device() -> None:
    assert parts(only(VLLM_066))["allowed"] == (Counter.CAPACITY, round(21.28 * GIB))
    serving = replace(replace(FIRST, "task", "inference"), "inference.engine", "vllm")
    found = estimate(serving)
    rows = {row.figure.part: row for row in beside(only(VLLM_066), found)}
    assert rows["device"].expected == serving.device.memory_bytes
    assert rows["allowed"].expected == found.extra["budget_bytes"]
    # another engine has no such figure: the share is not set beside the device
    assert "allowed" not in {row.figure.part for row in beside(only(VLLM_066), estimate(FIRST))}


# -- llama.cpp ----------------------------------------------------------------------------------------

OLDEST = """\
llama_model_load_internal: mem required  =  552.09 MB (+  256.00 MB per state)
llama_model_load_internal: allocating batch_size x (512 kB + n_ctx x 128 B) = 288 MB VRAM for the \
scratch buffer
llama_model_load_internal: offloaded 35/35 layers to GPU
llama_model_load_internal: total VRAM used: 13148 MB
"""
WITH_CACHE = """\
llm_load_tensors: offloading v cache to GPU
llm_load_tensors: offloading k cache to GPU
llm_load_tensors: offloaded 83/83 layers to GPU
llm_load_tensors: VRAM used: 40643 MB
llama_new_context_with_model: kv self size  = 1280.00 MB
llama_new_context_with_model: VRAM scratch buffer: 560.00 MB
"""
TOTAL = "llama_new_context_with_model: total VRAM used: 4857.93 MB (model: 4095.05 MB, context: 762.87 MB)"


def test_llama_cpp_before_it_had_buffers_printed_what_it_used() -> None:
    (whole,) = only(OLDEST.replace("load_internal:", "load_internal: [cublas]")).figures
    assert (whole.counter, whole.components, whole.bytes) == (Counter.ALLOCATED, (), 13148 * MIB)
    (held, scratch) = only(WITH_CACHE).figures
    assert (held.components, held.bytes) == (("weights", "kv_cache"), 40643 * MIB)
    assert (scratch.part, scratch.bytes) == ("compute buffer", 560 * MIB)
    (model,) = only("llm_load_tensors: VRAM used: 20607.34 MiB").figures
    assert (model.components, model.bytes) == (("weights",), round(20607.34 * MIB))


def test_llama_cpps_total_is_taken_apart_where_it_says_how() -> None:
    assert parts(only(f"llm_load_tensors: VRAM used: 4095.05 MB\n{TOTAL}")) == {
        "model": (Counter.ALLOCATED, round(4095.05 * MIB)),
        "context": (Counter.ALLOCATED, round(762.87 * MIB)),
    }


def test_what_another_program_calls_vram_used_is_not_llama_cpps() -> None:
    with pytest.raises(ScenarioError):
        parse("Model loaded. VRAM used: 11.2 GB / 24.0 GB")


# -- nvidia-smi's tables of commas --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        ("memory.used [MiB]\n21395 MiB", (Figure(21395 * MIB, MIB, Counter.PROCESS, (), "all processes"),)),
        (
            "timestamp, memory.used [MiB], memory.total [MiB]\n"
            "2024/06/01 11:27:05.177, 1000 MiB, 40960 MiB\n2024/06/01 11:27:06.177, 39000 MiB, 40960 MiB\n"
            "2024/06/01 11:27:07.177, [N/A], [N/A]\n",
            (
                Figure(39000 * MIB, MIB, Counter.PROCESS, (), "all processes"),
                Figure(40960 * MIB, MIB, Counter.CAPACITY, (), "whole device"),
            ),
        ),
        (
            "index, utilization.gpu [%], memory.used [MiB]\n0, 75 %, 77537 MiB\n1, 0 %, 5 MiB\n",
            (
                Figure(77537 * MIB, MIB, Counter.PROCESS, (), "all processes", "GPU 0"),
                Figure(5 * MIB, MIB, Counter.PROCESS, (), "all processes", "GPU 1"),
            ),
        ),
        (
            "$ nvidia-smi --query-gpu=memory.used,memory.total --format=csv,noheader,nounits\n21395, 24564\n",
            (
                Figure(21395 * MIB, MIB, Counter.PROCESS, (), "all processes"),
                Figure(24564 * MIB, MIB, Counter.CAPACITY, (), "whole device"),
            ),
        ),
        (
            "gpu_uuid, pid, used_gpu_memory [MiB]\nGPU-e8, 2069192, 77002 MiB\nGPU-e8, 2680904, 518 MiB\n",
            (Figure(77002 * MIB, MIB, Counter.PROCESS),),
        ),
    ],
    ids=["used", "in time", "by index", "no head", "processes"],
)
def test_nvidia_smis_csv_gives_the_most_there_was(text: str, figures: tuple[Figure, ...]) -> None:
    assert only(text) == Measurement("nvidia_smi", figures)


@pytest.mark.parametrize(
    "text",
    [
        "memory.used [MiB]\n",
        "memory.used [MiB]\n-5 MiB",
        "memory.used [MiB]\n99999999999999999999 MiB",
        "name, memory.used [MiB]\nNVIDIA",
        "utilization.gpu [%]\n12 %",
    ],
)
def test_a_table_of_commas_without_figures_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        parse(text)


@pytest.mark.parametrize(
    "piece",
    [
        "memory.used [MiB], ",
        "1, ",
        "--query-gpu=memory.used,",
        "llm_load_tensors: VRAM used: 1",
        "Process 1 has 1 GiB ",
    ],
)
@pytest.mark.parametrize("line", [60, 1999])
def test_no_such_text_takes_long(piece: str, line: int) -> None:
    row = (piece * line)[:line] + "\n"
    text = "memory.used [MiB]\n" + (row * (400_000 // len(row) + 1))[:400_000]
    start = time.process_time()
    with contextlib.suppress(ScenarioError):
        parse(text)
    assert time.process_time() - start < 1


CSV = "index, memory.used [MiB], memory.total [MiB]\n0, 75 MiB, 81559 MiB\n1, 9 MiB, [N/A]\n"
LOGS = (ALONE, BESIDE, VLLM_063, VLLM_065, VLLM_066, OLDEST, WITH_CACHE, TOTAL, CSV)


@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from(LOGS)), max_size=6), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_any_text_is_read_or_refused(pieces: list[str], cut: int) -> None:
    try:
        found = parse(" ".join(pieces)[cut:])
    except ScenarioError:
        return
    assert from_plain(json.loads(json.dumps(to_plain(found)))) == found
