"""The scoreboard itself: its figures, its words, its shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memgui.catalog import Catalog
from tests.accuracy import words
from tests.accuracy.__main__ import FIGURES, main, run
from tests.accuracy.express import Inexpressible, Models
from tests.accuracy.figures import counter_of, half_a_digit
from tests.accuracy.measured import gpu_count, targets_of
from tests.accuracy.score import (
    Row,
    Sample,
    Table,
    compare,
    compare_mapping,
    percent,
    quantile,
    tables_of,
)
from tests.accuracy.slopes import slopes, stated_pool, stated_tokens, summary
from tests.accuracy.subjects import Subjects

KEYS = [
    "file",
    "kind",
    "rows",
    "expressible",
    "exact",
    "mean_abs_pct",
    "median_abs_pct",
    "p90_abs_pct",
    "worst_abs_pct",
    "bias_pct",
    "within_range_pct",
    "wrong_fits",
    "wrong_refusals",
    "ran",
    "inexpressible",
]


def test_a_table_counts_every_row() -> None:
    rows = [
        Row("t", "a", errors=(0.0,), exact=True, inside=True),
        Row("t", "b", errors=(1.0, -3.0), inside=False),
        Row("t", "c", errors=(2.0,)),
        Row("t", "d", "no field x"),
        Row("t", "e", "no field x"),
        Row("t", "f", "unknown"),
    ]
    (table,) = tables_of("f.json", rows)
    figures = table.figures()
    assert list(figures) == KEYS
    assert figures["rows"] == 6
    assert figures["expressible"] == 3
    assert figures["exact"] == 1
    assert figures["mean_abs_pct"] == pytest.approx(5 / 3)
    assert figures["median_abs_pct"] == 2.0
    assert figures["p90_abs_pct"] == figures["worst_abs_pct"] == 3.0
    assert figures["bias_pct"] == pytest.approx(-1 / 3)
    assert figures["within_range_pct"] == 50.0
    assert figures["inexpressible"] == {"no field x": 2, "unknown": 1}
    assert figures["wrong_fits"] is None


def test_verdicts_are_wrong_in_two_ways_and_tight_in_none() -> None:
    def row(called: str, ran: bool) -> Row:
        return Row("t", called, called=called, ran=ran, exact=called == ("fits" if ran else "does_not_fit"))

    table = Table("verdicts.json", "t", [row("fits", True), row("fits", False), row("does_not_fit", True)])
    table.rows += [
        row("tight", True),
        row("tight", False),
        row("does_not_fit", False),
        Row("t", "x", "why", ran=True),
    ]
    figures = table.figures()
    assert (figures["wrong_fits"], figures["wrong_refusals"], figures["ran"], figures["exact"]) == (
        1,
        1,
        3,
        2,
    )


def test_an_empty_table_has_no_figures() -> None:
    figures = Table("f.json", "t", [Row("t", "a", "why")]).figures()
    assert figures["mean_abs_pct"] is None
    assert figures["within_range_pct"] is None


def test_quantile_is_reached_by_that_share() -> None:
    assert quantile([float(n) for n in range(1, 11)], 0.9) == 9.0
    assert quantile([1.0, 2.0, 3.0], 0.9) == 3.0
    assert quantile([7.0], 0.9) == 7.0


def test_comparing_says_what_differs() -> None:
    pairs = [("same", 1, 1), ("more", 1, 3), ("absent", None, 5), ("lost", 4, None)]
    assert [miss.text for miss in compare(pairs)] == [
        "more: 1 expected, 3 (+2)",
        "lost: 4 expected, nothing found",
    ]
    assert compare(compare_mapping("", {"a": 1, "b": 0}, {"a": 1})) == ()
    assert [miss.name for miss in compare(compare_mapping("p.", {"a": 1}, {"b": 2}))] == ["p.a", "p.b"]
    assert percent(102, 100) == 2.0
    assert percent(0, 0) == 0.0


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7),
        ("~20", 20),
        ("<=768", 768),
        ("1 (implied)", 1),
        ("cache 8192", 8192),
        ("256+256", 512),
        ("20,000+", 20000),
    ],
)
def test_counts_in_words(value: Any, number: int) -> None:
    assert words.count(value, "it") == number


@pytest.mark.parametrize("value", [None, "short", "Alpaca unpacked", "32 (global?)", True])
def test_counts_that_are_not_stated(value: Any) -> None:
    with pytest.raises(Inexpressible, match="not stated"):
        words.count(value, "the batch")


@pytest.mark.parametrize(
    ("text", "precision"),
    [
        ("bf16", ("bf16", "bf16")),
        ("bfloat16", ("bf16", "bf16")),
        ("bf16-true", ("bf16", "bf16")),
        ("float32", ("fp32", "fp32")),
        ("bf16 mixed (fp32 params/states)", ("bf16_mixed", "fp32")),
        ("fp16 AMP (fp32 master weights)", ("bf16_mixed", "fp32")),
        ("bf16 autocast over fp32 load (HF Trainer --bf16)", ("bf16_mixed", "fp32")),
        ("bf16 (fp32 master)", ("bf16_master", "bf16")),
        ("fp16", ("fp16", "fp16")),
        ("fp8 weights", ("fp8", "fp8")),
    ],
)
def test_precisions_in_words(text: str, precision: tuple[str, str]) -> None:
    assert words.training_precision(text) == precision


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("bnb.nf4", "nf4"),
        ("bnb.nf4-dq", "nf4_dq"),
        ("bnb FP4", "fp4"),
        ("GPTQ int4 g128 (exllama)", "gptq_int4_g128"),
        ("GPTQ-Int8", "gptq_int8_g128"),
        ("AWQ 4-bit", "awq_int4_g128"),
        ("GGUF Q4_K_M", "q4_k_m"),
        ("GGUF Q8_0 (664.295 GiB (8.504 BPW))", "q8_0"),
        ("int8", "int8"),
        ("fp8 (weight only on Ampere)", "fp8_per_channel"),
    ],
)
def test_quantisations_in_words(text: str, name: str) -> None:
    assert words.quantised(text) == name


def test_optimizers_and_recompute_in_words() -> None:
    assert words.optimizer("torch AdamW fused", "")["training.optimizer_implementation"] == "fused"
    assert words.optimizer(None, "PEFT")["training.optimizer_implementation"] == "foreach"
    assert words.optimizer("8-bit Adam (bitsandbytes)", "") == {"training.optimizer": "adamw_8bit"}
    assert words.optimizer("AdamW on CPU", "")["training.offload_optimizer"] == 1.0
    assert words.optimizer("Adam, 25% states on CPU", "")["training.offload_optimizer"] == 0.25
    assert words.checkpointing(True) == "full"
    assert words.checkpointing(None) == words.checkpointing("off (flag absent)") == "none"
    assert words.checkpointing("full uniform 1") == "full"
    assert words.checkpointing("selective (core attention)") == "selective"
    assert words.recomputation("selective: mlp")["training.recompute_modules"] == ("mlp",)
    assert words.recomputation("selective: every 2nd layer")["training.checkpoint_every"] == 2


def test_layouts_in_words() -> None:
    settings = words.parallelism({"dp_shard": 4, "tp": 2, "strategy": "FSDP2+TP(SP)"}, 8)
    assert settings["parallelism.sharding"] == "zero3"
    assert (settings["parallelism.data"], settings["parallelism.tensor"], settings["device.count"]) == (
        4,
        2,
        8,
    )
    assert words.parallelism({"strategy": "distributed optimizer"}, 8)["parallelism.sharding"] == "zero1"
    assert words.offloaded("fsdp full_shard, no offload") == {}
    assert words.offloaded("fsdp full_shard + cpu offload") == {"parallelism.offload_parameters": True}
    with pytest.raises(Inexpressible, match="CPU"):
        words.offloaded("zero-3 + cpu offload")
    assert words.kept_precision("bf16", "transformers", "ZeRO-3", "") == "bf16_master"
    assert words.kept_precision("bf16_mixed", "megatron", "", "") == "bf16_master"
    assert words.kept_precision("bf16", "transformers", "FSDP", "stanford_alpaca") == "bf16_mixed"
    assert words.parallelism({"strategy": "device_map auto (naive pipeline)"}, 2)["parallelism.pipeline"] == 2
    assert gpu_count({"parallelism": {"tp": 4, "pp": 2}}) == 8
    assert gpu_count({"parallelism": {}, "gpu": "16x H100-80GB"}) == 16
    assert targets_of("q,k,v,o") == ("q_proj", "k_proj", "v_proj", "o_proj")
    assert targets_of(["query", "value"]) == ("q_proj", "v_proj")


@pytest.mark.parametrize(
    ("name", "memory_gb", "capability"),
    [
        ("A100-SXM4-40GB", None, "8.0"),
        ("NVIDIA H100 80GB HBM3", None, "9.0"),
        ("Tesla T4", None, "7.5"),
        ("RTX 3090", 24, "8.6"),
        ("A100/A800-80GB", None, "8.0"),
        ("V100-16GB", None, "7.0"),
    ],
)
def test_devices_in_words(name: str, memory_gb: float | None, capability: str) -> None:
    assert words.device(name, Catalog(), memory_gb)["device.compute_capability"] == capability


def test_devices_without_a_name_have_what_such_cards_have() -> None:
    usable = words.device("12 GB card", Catalog(), 12)["device.memory_bytes"]
    assert 11.6 < usable / 2**30 < 12
    assert words.device("a card of its own", Catalog(), 13.5)["device.memory_bytes"] == int(13.5 * 2**30)
    assert words.device(None, Catalog()) == {}


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("torch.cuda.max_memory_allocated", "allocated"),
        ("peak memory active (active_bytes.all.peak)", "allocated"),
        ("sum over GPUs of torch.cuda.max_memory_allocated", "allocated"),
        ("torch.cuda.max_memory_reserved", "process"),
        ("torch.cuda.max_memory_reserved (peak over training) minus initial", "process"),
        ("NVML used (device)", "process"),
        ("not stated", "process"),
        ("memory_allocated between steps", "allocated"),
        ('"Model loading took" (per GPU)', "allocated"),
    ],
)
def test_counters_and_their_tables(text: str, table: str) -> None:
    assert counter_of(text, None, "GB").table == table


def test_a_published_digit_has_a_half() -> None:
    assert half_a_digit(4.82, 10**9) == 5_000_000
    assert half_a_digit(72.91, 2**20) == 5242
    assert half_a_digit(14949, 2**20) == 2**19
    assert half_a_digit(38868615168, 1) == 0


def test_subjects_are_found_by_dimensions_or_by_name() -> None:
    catalog = Catalog()
    subjects = Subjects(catalog, Models({}, catalog))
    dimensions = {
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 32,
        "head_dim": 128,
        "ffn": 11008,
        "vocab": 32001,
    }
    found = subjects.find("Vicuna-7B v1.5 (Llama-2-7B arch)", dimensions)
    assert (found.norm, found.vocab_size, found.name) == (
        "rms_norm",
        32001,
        "Vicuna-7B v1.5 (Llama-2-7B arch)",
    )
    assert subjects.find("gpt2", {}).vocab_size == 50257
    with pytest.raises(Inexpressible):
        subjects.find("nothing like it", {"layers": 3, "hidden": 7})


def test_a_sibling_lends_its_structure_to_another_size() -> None:
    catalog = Catalog()
    subjects = Subjects(catalog, Models({}, catalog))
    found = subjects.find(
        "owner/Qwen3-99B-Instruct", {"layers": 7, "hidden": 640, "ffn": 1000, "tied_embeddings": True}
    )
    assert (found.num_hidden_layers, found.hidden_size, found.intermediate_size) == (7, 640, 1000)
    assert (found.qk_norm, found.num_experts, found.tie_word_embeddings) == ("head", 0, True)


def test_any_folder_of_these_shapes_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((FIGURES / "params.json").read_text("utf-8"))
    one = {"models": {"gpt2": config["models"]["gpt2"], "never heard of": config["models"]["gpt2"]}}
    (tmp_path / "params.json").write_text(json.dumps(one), "utf-8")
    assert main(["--truth", str(tmp_path), "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert set(KEYS) <= set(table)
    assert (table["file"], table["kind"], table["rows"], table["exact"]) == ("params.json", "params", 2, 1)
    assert sum(table["inexpressible"].values()) == 1


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--truth", str(tmp_path / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err


def test_an_empty_folder_scores_nothing(tmp_path: Path) -> None:
    assert run(tmp_path) == []


def test_slopes_are_those_of_what_a_series_varies() -> None:
    def sample(batch: int, tokens: int, expected: int, got: int) -> Row:
        return Row("t", "r", sample=Sample("s", (batch, tokens), expected, got))

    rows = [sample(1, length, 1000 + 10 * length, 5000 + 11 * length) for length in (100, 200, 400)]
    rows += [sample(batch, 800, 50 * batch, 49 * batch) for batch in (2, 4, 8)]
    rows += [Row("t", "alone", sample=Sample("", (1, 1), 1, 1)), Row("t", "unknown", "no field x")]
    found = {line.name: line.error for line in slopes(rows)}
    assert found == {"s, 800 tokens": pytest.approx(-2), "s, batch 1": pytest.approx(10)}
    assert summary(list(slopes(rows))).startswith("1 of 2 within 3 %")


@pytest.mark.parametrize(
    ("figures", "tokens", "pool"),
    [
        ("peak torch 17.98; KV 2.89 GiB = 1,478 blocks (23,648 tokens) < 29,000", 23_648, 2.89),
        ("weights 3.7710 GB per GPU; 5,402 blocks = 86,432 tokens (2.64 GiB per GPU)", 86_432, 2.64),
        ("KV 302,921 tokens; pool 4.99 GiB per card", 302_921, 4.99),
        ("37,085 blocks of 32", 37_085 * 32, None),
        ("about 3,000 KV blocks", None, None),
        ("", None, None),
    ],
)
def test_a_message_names_tokens_and_a_pool(figures: str, tokens: int | None, pool: float | None) -> None:
    assert stated_tokens(figures) == tokens
    assert stated_pool(figures) == (None if pool is None else round(pool * 2**30))
