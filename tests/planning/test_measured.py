"""What a run really used: read exactly, kept with a preset, set beside the estimate, explained."""

from __future__ import annotations

import contextlib
import json
import time
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.planning.ask import Asker
from memgui.planning.changes import apply
from memgui.planning.measured import (
    HOST,
    Counter,
    Figure,
    Measurement,
    beside,
    counts_beside,
    explain,
    from_plain,
    parse,
    to_plain,
    typed,
)
from memgui.planning.words import English
from memgui.spec import Scenario, ScenarioError, replace

FIRST = Catalog().first_scenario()
ESTIMATE = estimate(FIRST)
MIB, GIB = 2**20, 2**30

OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 156.00 MiB (GPU 0; 10.91 GiB total capacity; "
    "5.68 GiB already allocated; 100.81 MiB free; 5.75 GiB reserved in total by PyTorch) If reserved memory"
)
OLDER = (
    "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 1; 10.92 GiB total capacity; 8.50 MiB already "
    "allocated; 9.28 GiB free; 4.50 MiB cached)"
)
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 3 has a total capacity of "
    "79.15 GiB of which 1.50 GiB is free. Process 4711 has 1.00 GiB memory in use. Including non-PyTorch "
    "memory, this process has 77.63 GiB memory in use. Of the allocated memory 75.75 GiB is\n"
    "allocated by PyTorch, with 20.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.25 GiB is "
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting"
)
TYPO = NEW.replace("capacity", "capacty").replace("torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError")
SUMMARY = """
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
|       from large pool |    1048 MB |    4865 MB |   89263 MB |   88215 MB |
| Active memory         |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
| Requested memory      |  183578 KiB|   4870 MiB |  89299 MiB |  88237 MiB |
| GPU reserved memory   |   12420 MB |   12420 MB |   16924 MB |    4504 MB |
"""
SMI = """
|   0  NVIDIA GeForce RTX 4090        Off | 00000000:01:00.0 Off |                  Off |
| 30%   45C    P2             100W / 450W |  21395MiB / 24564MiB |     98%      Default |
|    0   N/A  N/A      1234      C   python                                    21280MiB |
"""
VLLM_0 = """
INFO 01-14 12:36:51 model_runner.py:1099] Loading model weights took 7.9692 GB
(VllmWorkerProcess pid=2607784) INFO 01-14 12:36:52 worker.py:240] the current vLLM instance can use \
total_gpu_memory (23.55GiB) x gpu_memory_utilization (0.90) = 21.19GiB
INFO 01-14 worker.py] model weights take 7.97GiB; non_torch_memory takes 0.25GiB; PyTorch activation peak \
memory takes 0.50GiB; the rest of the memory reserved for KV Cache is 1.50GiB.
INFO 03-13 08:56:40 [executor_base.py:111] # cuda blocks: 5148, # CPU blocks: 9362
"""
VLLM_1 = """
\x1b[32m(Worker pid=4)\x1b[0m INFO [gpu_model_runner.py:4879] Model loading took 12.66 GiB memory and 31 s
(Worker pid=7) INFO [gpu_worker.py:563] Available KV cache memory: 6.875 GiB
(EngineCore pid=7476) INFO 07-25 13:42:38 [kv_cache_utils.py:2146] GPU KV cache size: 1,823,372 tokens
INFO 05-26 21:34:14 [gpu_model_runner.py:6243] Graph capturing finished in 2 secs, took 0.125 GiB
"""
VLLM_2 = """
Free memory on device (78.73/79.11 GiB) on startup. Desired GPU memory utilization is (0.9, 71.2 GiB). \
Actual usage is 14.96 GiB for weight, 1.27 GiB for peak activation, 0.12 GiB for non-torch memory, and \
0.55 GiB for CUDAGraph memory. Replace gpu_memory_utilization config with `--kv-cache-memory=57982058496`
"""
LLAMA_CPP = """
llm_load_tensors:        CPU buffer size =  1640.50 MiB
load_tensors:        CUDA0 model buffer size =  5434.50 MiB
llama_new_context_with_model: n_ctx      = 4096
llama_kv_cache_unified:      CUDA0 KV buffer size =  1536.00 MiB
llama_kv_cache_unified:      CUDA0 KV buffer size =   512.00 MiB
llama_memory_recurrent:      CUDA0 RS buffer size =    16.00 MiB
llama_context:  CUDA_Host  output buffer size =     1.50 MiB
llama_context:      CUDA0 compute buffer size =   672.25 MiB
"""
TABLE = """
llama_memory_breakdown_print: | memory breakdown [MiB] | total    free     self   model   context   compute
print: |   - CUDA0 (RTX 3090)   | 24124 = 7178 + (15946 = 15364 +     412 +     170) +        1000 |
print: |   - Host               |                    804 =   682 +       0 +     122                |
"""
STATS = {
    **{f"active.{pool}.allocated": 10**6 for pool in ("all", "large_pool", "small_pool")},
    **{
        f"{name}.large_pool.{kind}": 7
        for name in ("allocated_bytes", "oversize")
        for kind in ("peak", "freed")
    },
    "allocated_bytes.all.current": 5 * GIB,
    "allocated_bytes.all.peak": 11 * GIB,
    **{f"inactive_split_bytes.small_pool.{number}": number for number in range(120)},
    "num_alloc_retries": 2,
    "num_ooms": 1,
    "requested_bytes.all.peak": 10 * GIB,
    "reserved_bytes.all.peak": 12 * GIB,
    "reserved_bytes_by_private_pools.0_1.all.peak": 99 * GIB,
}
PRINTED = """
step 1: max_memory_allocated: 11811160064, max_memory_reserved: 12884901888
step 2: torch.cuda.max_memory_allocated() = 12,884,901,888
"""
LOGS = [
    *(OLD, OLDER, NEW, TYPO, SUMMARY, SMI, VLLM_0, VLLM_1, VLLM_2, LLAMA_CPP, TABLE, PRINTED, repr(STATS)),
    *(json.dumps(STATS, indent=1), repr(OrderedDict(STATS))),
]


def only(text: str) -> Measurement:
    (found,) = parse(text)
    return found


def sizes(found: Measurement) -> dict[Counter, int]:
    return {one.counter: one.bytes for one in found.figures}


def parts(found: Measurement) -> dict[tuple[str, str], int]:
    return {(one.part, one.device): one.bytes for one in found.figures}


def test_out_of_memory_as_pytorch_1_said_it() -> None:
    found = only(OLD)
    assert found.source == "out_of_memory"
    assert sizes(found) == {
        Counter.WANTED: 156 * MIB,
        Counter.CAPACITY: round(10.91 * GIB),
        Counter.ALLOCATED: round(5.68 * GIB),
        Counter.RESERVED: round(5.75 * GIB),
    }
    assert all(
        one.at_least == (one.counter in (Counter.ALLOCATED, Counter.RESERVED)) for one in found.figures
    )


def test_what_was_cached_stood_beside_what_was_allocated() -> None:
    found = only(OLDER)
    assert sizes(found)[Counter.RESERVED] == 13 * MIB
    assert {one.device for one in found.figures} == {"GPU 1"}


@pytest.mark.parametrize(
    "text", [NEW, TYPO, NEW.replace("\n", " "), f"[rank0]: {NEW}\nand more {'x' * 3000}"]
)
def test_out_of_memory_as_pytorch_2_says_it(text: str) -> None:
    assert sizes(only(text)) == {
        Counter.WANTED: round(1.96 * GIB),
        Counter.CAPACITY: round(79.15 * GIB),
        Counter.ALLOCATED: round(75.75 * GIB),
        Counter.RESERVED: 77 * GIB,
        Counter.PROCESS: round(77.63 * GIB),
        Counter.OTHERS: GIB,
    }


def test_a_memory_summary_gives_its_peaks() -> None:
    found = only(SUMMARY)
    assert sizes(found) == {
        Counter.ALLOCATED: 4877 * MIB,
        Counter.REQUESTED: 4870 * MIB,
        Counter.RESERVED: 12420 * MIB,
    }
    assert {one.step for one in found.figures} == {MIB}
    assert found.facts == {"out_of_memory": 1, "retries": 2}


def test_two_summaries_are_two_measurements() -> None:
    second = SUMMARY.replace("device ID 0", "device ID 1")
    assert [one.figures[0].device for one in parse(SUMMARY + second)] == ["GPU 0", "GPU 1"]


def test_nvidia_smi_tells_the_process_from_the_others() -> None:
    assert sizes(only(SMI)) == {
        Counter.PROCESS: 21280 * MIB,
        Counter.CAPACITY: 24564 * MIB,
        Counter.OTHERS: 115 * MIB,
    }


def test_a_process_of_nvidia_smi_may_stand_alone() -> None:
    found = only(SMI.splitlines()[-1])
    assert found.figures == (Figure(21280 * MIB, MIB, Counter.PROCESS, device="GPU 0"),)


@pytest.mark.parametrize("text", [repr(STATS), json.dumps(STATS, indent=1), repr(OrderedDict(STATS))])
def test_a_printed_dictionary_of_statistics_gives_its_peaks(text: str) -> None:
    assert len(text) > 3000  # longer than lines that are read
    found = only(text)
    assert (found.source, found.facts) == ("memory_stats", {"out_of_memory": 1, "retries": 2})
    assert sizes(found) == {
        Counter.ALLOCATED: 11 * GIB,
        Counter.REQUESTED: 10 * GIB,
        Counter.RESERVED: 12 * GIB,
    }
    assert not any(one.at_least for one in found.figures)
    assert len(parse(f"{text}\n{text}")) == 2


def test_a_dictionary_without_peaks_says_the_least_there_was() -> None:
    found = only("{'allocated_bytes.all.current': 12345678}")
    assert found.figures == (Figure(12_345_678, 1, Counter.ALLOCATED, at_least=True),)


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("max_memory_allocated: 12345678", Figure(12_345_678, 1, Counter.ALLOCATED)),
        ("torch.cuda.max_memory_allocated() = 12345678", Figure(12_345_678, 1, Counter.ALLOCATED)),
        ("torch.cuda.max_memory_allocated()=12345678", Figure(12_345_678, 1, Counter.ALLOCATED)),
        ("max_memory_reserved = 25_124_667_392", Figure(25_124_667_392, 1, Counter.RESERVED)),
        ("max_memory_cached: 25,124,667,392 bytes", Figure(25_124_667_392, 1, Counter.RESERVED)),
        ("{'max_memory_allocated': 12345678, 'lr': 0.1}", Figure(12_345_678, 1, Counter.ALLOCATED)),
        ("max_memory_allocated: 11.5 GiB", Figure(23 * 2**29, GIB // 10, Counter.ALLOCATED)),
        ("max_memory_allocated: 11.5GB.", Figure(11_500_000_000, 10**8, Counter.ALLOCATED)),
        ("max_memory_allocated: 1.0123456789012345 GB", Figure(1_012_345_679, 1, Counter.ALLOCATED)),
        ("max_memory_allocated (MiB): 512", Figure(512 * MIB, MIB, Counter.ALLOCATED)),
        ("max_memory_allocated_gb = 1.5", Figure(1_500_000_000, 10**8, Counter.ALLOCATED)),
        (
            'torch.cuda.max_memory_reserved("cuda:1"): 2 GiB',
            Figure(2 * GIB, GIB, Counter.RESERVED, device="GPU 1"),
        ),
        ("memory_allocated: 12345678", Figure(12_345_678, 1, Counter.ALLOCATED, at_least=True)),
    ],
)
def test_a_printed_counter_is_read(text: str, figure: Figure) -> None:
    assert only(text) == Measurement("printed", (figure,))


def test_of_a_counter_printed_at_each_step_the_largest_counts() -> None:
    found = only(PRINTED)
    assert sizes(found) == {Counter.ALLOCATED: 12 * GIB, Counter.RESERVED: 12 * GIB}
    assert only(f"memory_allocated: 12345678\n{PRINTED}").figures == found.figures


def test_vllms_log_old_and_new() -> None:
    old = only(VLLM_0)
    assert old.source == "vllm"
    assert old.facts == {"kv_blocks": 5148}
    assert parts(old) == {
        ("weights", ""): round(7.9692 * GIB),
        ("device", ""): round(23.55 * GIB),
        ("allowed", ""): round(21.19 * GIB),
        ("activations", ""): GIB // 2,
        ("outside PyTorch", ""): GIB // 4,
        ("KV cache pool", ""): 3 * GIB // 2,
    }
    new = only(VLLM_1)
    assert new.facts == {"kv_tokens": 1_823_372}
    assert parts(new) == {
        ("weights", ""): round(12.66 * GIB),
        ("KV cache pool", ""): round(6.875 * GIB),
        ("CUDA graphs", ""): GIB // 8,
    }

    newest = only(VLLM_2)
    assert parts(newest) == {
        ("weights", ""): round(14.96 * GIB),
        ("activations", ""): round(1.27 * GIB),
        ("outside PyTorch", ""): round(0.12 * GIB),
        ("CUDA graphs", ""): round(0.55 * GIB),
        ("device", ""): round(79.11 * GIB),
        ("allowed", ""): round(71.2 * GIB),
    }


def test_llama_cpps_buffers_by_device() -> None:
    found = only(LLAMA_CPP)
    assert found.facts == {"n_ctx": 4096}
    assert parts(found) == {
        ("model", HOST): round(1640.5 * MIB),
        ("model", "CUDA0"): round(5434.5 * MIB),
        ("KV cache", "CUDA0"): 2048 * MIB,
        ("recurrent state", "CUDA0"): 16 * MIB,
        ("output buffer", HOST): round(1.5 * MIB),
        ("compute buffer", "CUDA0"): round(672.25 * MIB),
    }


def test_llama_cpps_table_counts_more_than_its_buffers() -> None:
    found = only(LLAMA_CPP + TABLE)
    on_device = {part: size for (part, device), size in parts(found).items() if device == "CUDA0"}
    assert on_device == {
        "device": 24124 * MIB,
        "model": 15364 * MIB,
        "KV cache": 412 * MIB,
        "compute buffer": 170 * MIB,
        "unaccounted": 1000 * MIB,
    }


@pytest.mark.parametrize(
    ("text", "size", "step"),
    [
        ("23.4 GiB", round(23.4 * GIB), GIB // 10),
        ("23.4GB", 23_400_000_000, 100_000_000),
        ("81251 MiB", 81251 * MIB, MIB),
        ("85,029,615,043", 85_029_615_043, 1),
        ("85029615043 bytes", 85_029_615_043, 1),
        ("1.5 tib", 3 * 2**39, 2**40 // 10),
    ],
)
def test_a_typed_figure_is_read_exactly(text: str, size: int, step: int) -> None:
    found = typed(text, Counter.RESERVED)
    assert found == Measurement("typed", (Figure(size, step, Counter.RESERVED),))


@pytest.mark.parametrize(
    "text", ["", "abc", "12", "23.4", "1e9", "9" * 40, "-3 GiB", "3 XB", "1.2.3 GiB", "9 PiB " * 30, "5 iB"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        typed(text, Counter.ALLOCATED)
    assert "Allowed" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *("", "all is well", "CUDA out of memory.", "x" * 1_000_001, "Model loading took 1.26iB"),
        *("max_memory_allocated: 23.4", "max_memory_allocated: 12", "max_memory_allocated: 1e9"),
        *("max_memory_allocated: 999999999 XiB", "max_memory_allocated: 99999999 PiB"),
        *("{'reserved_bytes.all.peak': 0}", "max_memory_allocated()"),
    ],
)
def test_a_text_without_figures_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        parse(text)


@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from(LOGS)), max_size=6), st.integers(0, 400))
@settings(max_examples=80, deadline=None)
def test_any_text_is_read_or_refused(pieces: list[str], cut: int) -> None:
    text = " ".join(pieces)[cut:]
    try:
        found = parse(text)
    except ScenarioError:
        return
    assert from_plain(json.loads(json.dumps(to_plain(found)))) == found


@pytest.mark.parametrize(
    "piece",
    [
        "9",
        "1.",
        "out of memory ",
        "| ",
        "CUDA out of memory. Tried to allocate 1",
        " GiB 1",
        "- CUDA0 ",
        "12 ",
        "\x1b[0",
        " CUDA0 model buffer size = ",
        "Process 1 has ",
        "| Allocated memory | 1 |",
        "total_gpu_memory (",
        "max_memory_allocated: ",
        "max_memory_allocated: 1,111,1",
        "max_memory_allocated(((",
        "'allocated_bytes.all.peak': 1",
    ],
)
@pytest.mark.parametrize("line", [60, 1999])
def test_no_text_takes_long(piece: str, line: int) -> None:
    row = (piece * line)[:line] + "\n"
    text = (row * (400_000 // len(row) + 1))[:400_000]
    start = time.process_time()
    with contextlib.suppress(ScenarioError):
        parse(text)
    assert time.process_time() - start < 1


def test_measurements_are_kept_as_plain_values() -> None:
    found = tuple(one for text in LOGS for one in parse(text))
    kept = json.loads(json.dumps(to_plain(found)))
    assert from_plain(kept) == found
    assert from_plain({}) == ()


@pytest.mark.parametrize(
    "plain",
    [
        {"schema": 2, "measurements": []},
        {"measurements": []},
        {"schema": 1},
        {"schema": 1, "measurements": {}},
        {"schema": 1, "measurements": [{"source": "x"}]},
        {
            "schema": 1,
            "measurements": [{"source": "x", "figures": [{"bytes": -1, "step": 1, "counter": "allocated"}]}],
        },
        {
            "schema": 1,
            "measurements": [{"source": "x", "figures": [{"bytes": 1, "step": 1, "counter": "guess"}]}],
        },
        {"schema": 1, "measurements": [{"source": "x" * 200, "figures": []}]},
        {"schema": 1, "measurements": [{"source": "x", "figures": [], "more": 1}]},
    ],
)
def test_a_strangers_measurements_are_checked(plain: dict[str, object]) -> None:
    with pytest.raises(ScenarioError):
        from_plain(plain)


def test_each_counter_is_set_beside_its_own_figure() -> None:
    figures = tuple(Figure(1, 1, counter) for counter in Counter)
    rows = {row.figure.counter: row for row in beside(Measurement("typed", figures), ESTIMATE)}
    overhead = ESTIMATE.component("overhead").bytes
    assert {counter: row.expected for counter, row in rows.items()} == {
        Counter.REQUESTED: ESTIMATE.peak_bytes - overhead,
        Counter.ALLOCATED: ESTIMATE.allocated_bytes,
        Counter.RESERVED: ESTIMATE.reserved_bytes,
        Counter.PROCESS: ESTIMATE.peak_bytes,
        Counter.CAPACITY: FIRST.device.memory_bytes,
    }
    process = rows[Counter.PROCESS]
    assert (process.low, process.high) == (ESTIMATE.low_bytes, ESTIMATE.high_bytes)
    reserved = rows[Counter.RESERVED]
    assert (
        ESTIMATE.allocated_bytes <= reserved.low <= reserved.expected <= reserved.high < ESTIMATE.high_bytes
    )


def test_a_log_is_set_beside_component_by_component() -> None:
    found = only(VLLM_0)
    rows = {row.figure.components: row for row in beside(found, ESTIMATE)}
    assert rows["weights",].expected == ESTIMATE.component("weights").bytes
    assert rows["weights",].gap == round(7.9692 * GIB) - ESTIMATE.component("weights").bytes
    working = ("activations", "loss", "temporary")
    assert rows[working].expected == sum(ESTIMATE.component(key).bytes for key in working)
    on_gpu = {row.figure.part for row in beside(only(LLAMA_CPP), ESTIMATE)}
    assert on_gpu == {"model", "KV cache + recurrent state", "compute buffer"}


def test_vllms_pool_is_set_beside_the_engines_own_figures() -> None:
    serving = replace(replace(FIRST, "task", "inference"), "inference.engine", "vllm")
    found = estimate(serving)
    assert found.verdict.kind != "unknown"
    rows = {row.figure.part: row for row in beside(only(VLLM_1), found)}
    assert rows["KV cache pool"].expected == found.extra["kv_pool_bytes"]
    assert rows["CUDA graphs"].expected == found.extra["cuda_graph_bytes"]
    assert rows["weights"].expected == found.component("weights").bytes
    (tokens,) = counts_beside(only(VLLM_1), found)
    assert (tokens.measured, tokens.expected) == (1_823_372, found.extra["pool_tokens"])
    (process,) = beside(typed("79 GB", Counter.PROCESS), found)
    assert process.expected == found.extra["process_bytes"]
    assert process.low <= process.expected <= process.high


def test_a_figure_that_the_estimate_gives_is_within() -> None:
    for counter, size in (
        (Counter.ALLOCATED, ESTIMATE.allocated_bytes),
        (Counter.PROCESS, ESTIMATE.high_bytes),
        (Counter.PROCESS, ESTIMATE.low_bytes),
    ):
        (row,) = beside(typed(f"{size} bytes", counter), ESTIMATE)
        assert row.within
    (row,) = beside(typed(f"{ESTIMATE.high_bytes + 2} bytes", Counter.PROCESS), ESTIMATE)
    assert not row.within


def said(measurement: Measurement) -> list[str]:
    return [one.said.text(English()) for one in explain(measurement, ESTIMATE)]


def test_nothing_is_explained_where_nothing_is_off() -> None:
    assert said(typed(f"{ESTIMATE.allocated_bytes}", Counter.ALLOCATED)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("training.activation_checkpointing", "full"),
        ("training.attention", "eager"),
        ("training.method", "lora"),
    ],
)
def test_a_set_up_that_gives_the_figure_is_found(path: str, value: str) -> None:
    ran = estimate(replace(FIRST, path, value))
    found = explain(typed(f"{ran.allocated_bytes}", Counter.ALLOCATED), ESTIMATE)
    exact = [one for one in found if one.remains == 0]
    assert any([(step.path, step.new) for step in one.changes] == [(path, value)] for one in exact)


def test_shorter_sequences_are_found_to_the_token() -> None:
    ran = estimate(replace(FIRST, "training.sequence_length", 1234))
    found = explain(typed(f"{ran.allocated_bytes}", Counter.ALLOCATED), ESTIMATE)
    shorter = next(one for one in found if one.changes and one.changes[0].path == "training.sequence_length")
    there = apply(FIRST, shorter.changes)
    assert abs(estimate(there).allocated_bytes - ran.allocated_bytes) == shorter.remains
    assert shorter.remains == 0  # 1,231 to 1,234 tokens take the same
    assert 1231 <= there.training.sequence_length <= 1234


def test_every_explanation_brings_the_figures_nearer() -> None:
    for text, counter in (
        ("60 GiB", Counter.ALLOCATED),
        ("70.0 GiB", Counter.PROCESS),
        ("90 GB", Counter.RESERVED),
    ):
        measurement = typed(text, counter)
        (row,) = beside(measurement, ESTIMATE)
        for one in explain(measurement, ESTIMATE):
            assert one.remains is None or one.remains < abs(row.gap)


def test_gigabytes_read_as_gibibytes_are_recognised() -> None:
    measurement = typed(f"{ESTIMATE.allocated_bytes / 1e9:.2f} GiB", Counter.ALLOCATED)
    assert any("mixed up" in text for text in said(measurement))


def test_another_counter_is_recognised() -> None:
    measurement = typed(f"{ESTIMATE.allocated_bytes / GIB:.2f} GiB", Counter.PROCESS)
    assert any("“Allocated”" in text for text in said(measurement))


def test_an_out_of_memory_message_is_taken_apart() -> None:
    texts = said(only(NEW))
    assert any("at least" in text and "77.71 GiB" in text for text in texts)
    assert any(text.startswith("1.96 GiB is the size of the tensor “log-probabilities”: ") for text in texts)
    assert "Other processes held 1.00 GiB of the GPU." in texts
    assert any(text.startswith("Outside PyTorch lie") for text in texts)


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp"])
def test_what_a_serving_engine_printed_is_explained(engine: str) -> None:
    """Its tensors are in no ledger: a request that failed is told without the tensor it was for."""
    serving = estimate(replace(replace(FIRST, "task", "inference"), "inference.engine", engine))
    texts = [one.said.text(English()) for one in explain(only(NEW), serving)]
    assert any("at least" in text and "77.71 GiB" in text for text in texts)


def test_fragmentation_is_read_from_the_log() -> None:
    assert any("fragmented" in text for text in said(only(SUMMARY)))


def test_a_usual_gap_is_not_called_fragmentation() -> None:
    """What is reserved without being allocated is a range; but a request that it had room for says enough."""
    allocated, unused = ESTIMATE.allocated_bytes, ESTIMATE.reserved_bytes - ESTIMATE.allocated_bytes
    for more, wanted, told in ((MIB * 40, 1.96, False), (GIB * 9, 1.96, True), (MIB * 40, 1.5, True)):
        text = NEW.replace("75.75 GiB", f"{allocated / GIB:.2f} GiB").replace(
            "of 1.96 GiB", f"of {wanted} GiB"
        )
        text = text.replace("1.25 GiB", f"{(unused + more) / GIB:.2f} GiB").replace(
            "allocate 1.96", f"allocate {wanted}"
        )
        assert any("fragmented" in one for one in said(only(text))) is told, (more, wanted)


def test_explaining_can_be_stopped() -> None:
    class Stop(Exception):
        pass

    def check() -> None:
        raise Stop

    with pytest.raises(Stop):
        explain(typed("60 GiB", Counter.ALLOCATED), ESTIMATE, Asker(check))


def llama_cpp_log(**sizes: int) -> str:
    """A log with buffers of these sizes (bytes) on one GPU."""
    names = {"model": "load_tensors", "KV": "llama_kv_cache", "compute": "llama_context"}
    return "\n".join(
        f"{names[kind]}:      CUDA0 {kind} buffer size = {size / MIB:.2f} MiB" for kind, size in sizes.items()
    )


SERVED = replace(replace(FIRST, "task", "inference"), "inference.engine", "llama.cpp")
RUNS = [
    ("inference.weight_format", "q5_k_m", "“Weights: Q5_K_M”: then “model” should take"),
    ("inference.prompt_tokens", 7680, "had 8,192 tokens: then “KV cache” should take"),
    ("inference.kv_cache_format", "q8_0", "“KV cache: Q8_0”: then “KV cache” should take"),
    ("inference.n_ubatch", 2048, "2048”: then “compute buffer” should take"),
]


@pytest.mark.parametrize(("path", "value", "said"), RUNS, ids=[path for path, _, _ in RUNS])
def test_a_part_of_an_engines_log_is_explained_by_another_set_up(path: str, value: object, said: str) -> None:
    opened = replace(SERVED, "inference.weight_format", "q4_k_m")
    ran = replace(opened, path, value)
    held = {node.key: node.bytes for node in estimate(ran).components}
    log = llama_cpp_log(
        model=held["weights"],
        KV=held["kv_cache"],
        compute=held["activations"] + held["loss"] + held["temporary"],
    )
    found = explain(only(log), estimate(opened))
    fitting = [one for one in found if said in one.said.text(English())]
    assert fitting, [one.said.text(English()) for one in found]
    assert apply(opened, fitting[0].changes) == ran
    assert not explain(only(log), estimate(ran))


def test_a_cache_pool_is_explained_by_the_programs_share() -> None:
    opened = replace(SERVED, "inference.engine", "vllm")
    ran = estimate(replace(opened, "inference.gpu_memory_utilization", 0.8))
    log = (
        f"Model loading took {ran.component('weights').bytes / GIB:.4f} GiB and 3 seconds\n"
        f"Available KV cache memory: {ran.extra['kv_pool_bytes'] / GIB:.2f} GiB\n"
    )
    texts = [one.said.text(English()) for one in explain(only(log), estimate(opened))]
    assert any("0.8”: then “KV cache pool” should take" in text for text in texts), texts


def vllm_log(weights: int, pool: int, device: int | None = None) -> str:
    """A log with these sizes (bytes)."""
    total = "" if device is None else f"Free memory on device (10.0/{device / GIB:.2f} GiB) on startup.\n"
    return (
        f"{total}Model loading took {weights / GIB:.4f} GiB and 3 seconds\n"
        f"Available KV cache memory: {pool / GIB:.2f} GiB\n"
    )


@pytest.mark.parametrize(
    ("weights", "pool", "device", "told"),
    [
        (GIB, -GIB, None, "differs by what the other parts differ."),
        (0, 100 * GIB, None, "differs by more than the other parts"),
        (0, 100 * GIB, 180 * GIB, "the GPU of the log has another memory: 180.00 GiB, here 80.00 GiB."),
    ],
)
def test_why_a_pool_differs_is_said_only_where_it_is_true(
    weights: int, pool: int, device: int | None, told: str
) -> None:
    opened = replace(replace(SERVED, "inference.engine", "vllm"), "device.memory_bytes", 80 * GIB)
    found = estimate(opened)
    log = vllm_log(found.component("weights").bytes + weights, found.extra["kv_pool_bytes"] + pool, device)
    texts = [one.said.text(English()) for one in explain(only(log), found)]
    (of_pool,) = [text for text in texts if "pool is what the program leaves" in text]
    assert told in of_pool


@pytest.mark.parametrize(
    ("opened", "told"),
    [
        (FIRST, "The log is of vLLM, which serves models; what is open here is a training."),
        (SERVED, "The log is of vLLM; what is open here is served by llama.cpp."),
    ],
)
def test_a_log_of_another_program_is_said_to_be_that_and_no_more(opened: Scenario, told: str) -> None:
    log = vllm_log(15 * GIB, 50 * GIB) + "Graph capturing finished in 20 secs, took 1.22 GiB\n"
    assert [one.said.text(English()) for one in explain(only(log), estimate(opened))] == [told]
    assert "KV cache pool" not in [row.figure.part for row in beside(only(log), estimate(opened))]


def test_ollamas_log_is_llama_cpps() -> None:
    opened = estimate(replace(SERVED, "inference.engine", "ollama"))
    texts = [one.said.text(English()) for one in explain(only(llama_cpp_log(model=3 * GIB)), opened)]
    assert not any("The log is of" in text for text in texts), texts
