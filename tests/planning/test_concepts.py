"""What the short lessons claim, against the estimate's own figures."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.engines.cache import Keys, State, layers
from memgui.estimator.ledger import ledger
from memgui.estimator.optimizers import OPTIMIZERS
from memgui.estimator.result import COMPONENTS, Estimate
from memgui.planning.cache_concept import copies
from memgui.planning.concepts import concept, in_other_words
from memgui.planning.learning_concept import KEPT
from memgui.planning.lengths import growth
from memgui.planning.report import verdict_line
from memgui.planning.words import English, Said
from memgui.spec import Scenario, replace
from memgui.spec.fields import BY_PATH

WORDS = English()
FIRST = Catalog().first_scenario()
MEGATRON = {"training.implementation": "megatron", "training.precision": "bf16_master"}
TITAN = {"training.implementation": "torchtitan"}
EIGHT = {"device.count": 8, "parallelism.data": 8}
SERVING = {"task": "inference"}
FULL = {"training.activation_checkpointing": "full"}

SETUPS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("", {}),
    "images": ("vit-base-patch16-224", {"training.micro_batch_size": 32}),
    "masked": ("bert-base-uncased", {"training.micro_batch_size": 8, "training.sequence_length": 512}),
    "classes": ("bert-base-uncased", {"model.head": "sequence", "training.micro_batch_size": 32}),
    "classes of a decoder": ("", {"model.head": "sequence", "model.num_labels": 5}),
    "no head": ("all-MiniLM-L6-v1", {"training.sequence_length": 256}),
    "compiled loss": ("", TITAN),
    "loss in chunks": ("", {"training.implementation": "torchtune"}),
    "chunks of LitGPT": ("", {"training.implementation": "litgpt", "training.method": "lora"}),
    "fused loss": ("", {"training.implementation": "fused"}),
    "Unsloth": ("", {"training.implementation": "unsloth", "training.method": "lora"}),
    "Megatron": ("", MEGATRON),
    "Megatron, tensor 4": ("", {**MEGATRON, "device.count": 4, "parallelism.tensor": 4}),
    "checkpoints": ("", FULL),
    "every fourth": ("", {**FULL, "training.checkpoint_every": 4}),
    "eight layers": ("", {**MEGATRON, **FULL, "training.checkpoint_layers": 8}),
    "inputs on the CPU": ("", {**FULL, "training.checkpoint_offload": True}),
    "chosen modules": ("", {**MEGATRON, "training.activation_checkpointing": "selective"}),
    "by operator": ("", {**TITAN, "training.activation_checkpointing": "selective_op"}),
    "eager": ("", {"training.attention": "eager"}),
    "autocast": ("", {"training.precision": "bf16_mixed", "training.gradient_accumulation_steps": 8}),
    "T5": ("t5-base", {"training.sequence_length": 512, "training.attention": "eager"}),
    "BART": ("bart-base", {"training.sequence_length": 512, "training.target_length": 64}),
    "Whisper": ("whisper-tiny", {"training.sequence_length": 128}),
    "Gemma 2": ("gemma-2-2b", {}),
    "Mamba": ("mamba-130m-hf", {}),
    "head only": ("", {"training.method": "frozen"}),
    "half frozen": ("", {"training.frozen_layers": 16}),
    "prompt": ("", {"training.method": "prompt"}),
    "prefix": ("", {"training.method": "prefix"}),
    "pipeline": (
        "",
        {"device.count": 4, "parallelism.pipeline": 4, "training.gradient_accumulation_steps": 8},
    ),
    "context": ("", {"device.count": 4, "parallelism.context": 4}),
    "DDP": ("", EIGHT),
    "ZeRO-1": ("", {**EIGHT, "parallelism.sharding": "zero1"}),
    "ZeRO-3": ("", {**EIGHT, "parallelism.sharding": "zero3"}),
    "ZeRO-3 on the CPU": (
        "",
        {**EIGHT, "parallelism.sharding": "zero3", "parallelism.offload_parameters": True},
    ),
    "in backward": ("", {"training.optimizer_in_backward": True}),
    "half on the CPU": ("", {"training.offload_optimizer": 0.5}),
    "QLoRA": ("", {**FULL, "training.method": "lora", "training.base_format": "nf4_dq"}),
    "experts": ("Mixtral-8x7B-v0.1", {}),
    "served": ("", SERVING),
    "served four": ("", {**SERVING, "inference.batch_size": 4}),
    "served static": ("", {**SERVING, "inference.cache_implementation": "static"}),
    "served in a pipeline": ("", {**SERVING, "device.count": 4, "parallelism.pipeline": 4}),
    "served by four": ("", {**SERVING, "device.count": 4, "parallelism.tensor": 4}),
    "served, writing": ("", {**SERVING, "inference.prompt_tokens": 10, "inference.generated_tokens": 5000}),
    "served, writing, 4.35": (
        "",
        {
            **SERVING,
            "inference.prompt_tokens": 10,
            "inference.generated_tokens": 5000,
            "inference.transformers_version": "4.35",
        },
    ),
    "served NF4": ("", {**SERVING, "inference.weight_format": "nf4"}),
    "served windows": ("Gemma-3-12B-Text", {**SERVING, "inference.prompt_tokens": 16_000}),
    "served latent": ("DeepSeek-V2-Lite", SERVING),
    "served Jamba": ("Jamba-v0.1", SERVING),
    "served Nemotron-H": ("Nemotron-H-8B-Base-8K", SERVING),
    "served Mamba": ("mamba-130m-hf", SERVING),
    "served T5": ("t5-base", {**SERVING, "inference.prompt_tokens": 512, "inference.generated_tokens": 64}),
    "served BERT": ("bert-base-uncased", {**SERVING, "inference.prompt_tokens": 512}),
    **{
        engine: ("", {**SERVING, "inference.engine": engine, "inference.batch_size": 2})
        for engine in ("vllm", "sglang", "llama.cpp", "ollama", "gpt-fast")
    },
    "llama.cpp, Jamba": ("Jamba-v0.1", {**SERVING, "inference.engine": "llama.cpp"}),
    "llama.cpp, none": ("", {**SERVING, "inference.engine": "llama.cpp", "inference.n_gpu_layers": 0}),
    "vLLM, part of a block": (
        "",
        {**SERVING, "inference.engine": "vllm", "inference.prompt_tokens": 101, "inference.batch_size": 3},
    ),
    "llama.cpp, part": ("", {**SERVING, "inference.engine": "llama.cpp", "inference.n_gpu_layers": 8}),
}


def scenario_of(name: str) -> Scenario:
    model, changes = SETUPS[name]
    scenario = FIRST if not model else msgspec.structs.replace(FIRST, model=Catalog().model(model).model)
    for path, value in changes.items():
        scenario = replace(scenario, path, value)
    return scenario


@cache
def answer_of(name: str) -> Estimate:
    answer = estimate(scenario_of(name))
    assert answer.verdict.kind != "unknown", answer.verdict.reason.text
    return answer


def told(name: str, key: str) -> str:
    return " ".join(said.text(WORDS) for said in concept(answer_of(name), key))


def numbers(name: str, key: str, *counts: str) -> Said:
    """The sentence that has all of these counts in it."""
    return next(said for said in concept(answer_of(name), key) if set(counts) <= set(said.counts))


@pytest.mark.parametrize("name", SETUPS)
def test_shares_times_their_counts_are_the_bytes(name: str) -> None:
    """What is said of each token, sequence and score comes to what the estimate has; texts are whole."""
    answer = answer_of(name)
    for key in COMPONENTS:
        size = answer.component(key).bytes
        said = concept(answer, key)
        assert said, key
        for one in said:
            text = one.text(WORDS)
            assert "{" not in text
            assert text.endswith(".")
            assert "0 bytes for each" not in text
            if key == "kv_cache" and {"each", "length"} <= {*one.sizes, *one.counts}:
                batch = one.counts.get("sequences", 1)
                assert one.sizes["each"] * one.counts["length"] * batch == size - copies(answer)
            if key == "activations" and "tokens" in one.counts and not moved(said):
                assert 0 <= size - one.sizes["each"] * one.counts["tokens"] < one.counts["tokens"]
        for label, part in in_other_words(answer, key):
            assert 0 < part <= size, label


def moved(said: tuple[Said, ...]) -> bool:
    return any("most" in one.sizes for one in said)


@pytest.mark.parametrize(
    ("name", "rows", "classes"), [("images", 32, 1000), ("classes", 32, 2), ("classes of a decoder", 4096, 5)]
)
def test_a_classifier_has_few_scores(name: str, rows: int, classes: int) -> None:
    said = numbers(name, "loss", "classes", "scores")
    assert said.counts["scores"] == rows * classes
    assert said.counts["classes"] == classes
    assert "words" not in told(name, "loss")
    assert "hardly any memory" in told(name, "loss")
    answer = answer_of(name)
    most = max(moment.components["loss"] for moment in answer.timeline)
    assert most < 16 * rows * classes + 16 * rows + 64
    if not answer.scenario.model.is_decoder:
        assert answer.component("loss").child("lm_head").bytes == 2 * said.counts["scores"]


@pytest.mark.parametrize("name", ["no head", "fused loss", "pipeline"])
def test_a_loss_that_holds_nothing_is_not_said_to_hold_anything(name: str) -> None:
    text = told(name, "loss")
    assert "several times" not in text
    assert "bytes for each" not in text
    assert max(moment.components["loss"] for moment in answer_of("no head").timeline) < 2**20


@pytest.mark.parametrize(
    "name",
    ["plain", "masked", "compiled loss", "loss in chunks", "chunks of LitGPT", "Unsloth", "Megatron", "T5"],
)
def test_the_loss_holds_as_much_of_each_score_as_is_said(name: str) -> None:
    answer = answer_of(name)
    scores = numbers(name, "loss", "vocabulary", "scores").counts["scores"]
    logits = answer.scenario.training.micro_batch_size * answer.scenario.training.sequence_length
    assert scores == logits * answer.scenario.model.vocab_size
    each = next(said.words["each"] for said in concept(answer, "loss") if "each" in said.words)
    assert isinstance(each, str)
    assert abs(float(each) * scores - answer.component("loss").bytes) <= scores * 0.006


def test_a_fused_loss_names_the_tokens_it_has_at_once() -> None:
    for name in ("fused loss", "Unsloth"):
        at_once = next(one for one in concept(answer_of(name), "loss") if "tokens at a time" in one.template)
        most = max(moment.components["loss"] for moment in answer_of(name).timeline)
        vocabulary = answer_of(name).scenario.model.vocab_size
        whole = 4096 * vocabulary * 4
        assert most < whole
        assert at_once.counts["tokens"] < 4096


def test_layers_that_keep_nothing_are_not_said_to_keep_most() -> None:
    assert "layers keep most" in told("plain", "loss")
    assert "layers keep nothing" in told("head only", "activations")
    assert "layers keep most" not in told("head only", "loss")


def test_what_checkpoints_keep_is_what_is_said() -> None:
    kept = ledger(scenario_of("every fourth")).saved_by_layer()["layers"]
    whole = ledger(scenario_of("plain")).saved_by_layer()["layers"]
    fewer = sum(one * 10 < other for one, other in zip(kept, whole, strict=True))
    assert fewer * numbers("every fourth", "activations", "count").counts["count"] == len(kept)
    first = numbers("eight layers", "activations", "count").counts["count"]
    kept = ledger(scenario_of("eight layers")).saved_by_layer()["layers"]
    assert max(kept[1:first]) * 10 < min(kept[first:])
    assert all(
        "all of that is kept" not in told(name, "activations")
        for name in ("every fourth", "eight layers", "chosen modules", "by operator", "checkpoints")
    )
    assert "computer's memory" in told("inputs on the CPU", "activations")
    most = {
        name: max(moment.components["activations"] for moment in answer_of(name).timeline)
        for name in ("plain", "by operator", "checkpoints", "inputs on the CPU")
    }
    assert most["inputs on the CPU"] < most["checkpoints"] < most["by operator"] < most["plain"]


@pytest.mark.parametrize(
    ("name", "count"), [("plain", 32), ("T5", 24), ("Whisper", 8), ("pipeline", 8), ("half frozen", 16)]
)
def test_layers_are_those_of_the_device(name: str, count: int) -> None:
    assert numbers(name, "activations", "layers").counts["layers"] == count


def test_micro_batches_of_a_pipeline_are_counted() -> None:
    under_way = numbers("pipeline", "activations", "count").counts["count"]
    here = answer_of("pipeline").component("activations").bytes
    alone = answer_of("plain").component("activations").bytes
    assert here / under_way == pytest.approx(alone / 4, rel=0.03)


@pytest.mark.parametrize(
    "name",
    ["plain", "eager", "autocast", "T5", "BART", "Gemma 2", "every fourth", "prefix", "prompt", "masked"],
)
def test_twice_the_length_takes_what_is_said(name: str) -> None:
    """Against an estimate with sequences twice as long, at the same moment."""
    answer = answer_of(name)
    length = answer.scenario.training.sequence_length
    longer = replace(answer.scenario, "training.sequence_length", 2 * length)
    if answer.scenario.training.target_length:
        target = 2 * answer.scenario.training.target_length
        longer = replace(longer, "training.target_length", target)
    if answer.scenario.model.max_position_embeddings:
        longer = replace(longer, "model.max_position_embeddings", 2 * longer.model.max_position_embeddings)
    found, real = growth(answer, "activations"), estimate(longer)
    assert found.now == answer.component("activations").bytes
    moment = next(one for one in real.timeline if one.key == answer.peak_moment.key)
    assert found.twice == pytest.approx(moment.components["activations"], rel=0.02)
    text = told(name, "activations")
    assert ("twice the memory" in text) == (abs(found.twice / found.now - 2) <= 0.01)
    assert ("square of the length" in text) == (found.pairs * 50 > found.now)


def test_images_are_no_tokens() -> None:
    longer = replace(scenario_of("images"), "training.sequence_length", 8192)
    assert estimate(longer).peak_bytes == answer_of("images").peak_bytes
    assert "token" not in told("images", "activations")


@pytest.mark.parametrize("name", ["served Jamba", "served Nemotron-H", "served windows", "served latent"])
def test_layers_that_keep_keys_and_values_are_counted(name: str) -> None:
    answer = answer_of(name)
    found = layers(answer.scenario.model)
    keys = [(layer, count) for layer, count in found if isinstance(layer, Keys)]
    tokens = answer.scenario.inference.prompt_tokens
    numbers_kept = sum(layer.heads * (layer.key + layer.value) * count for layer, count in keys)
    held = answer.component("kv_cache").child("attention").bytes
    assert held == pytest.approx(2 * numbers_kept * tokens, rel=1e-6)
    assert numbers(name, "kv_cache", "count", "layers").counts["count"] == sum(count for _, count in keys)
    states = sum(count for layer, count in found if isinstance(layer, State))
    assert (f"{states} layers keep a state" in told(name, "kv_cache")) == bool(states)
    assert "every layer" not in told(name, "kv_cache")


@pytest.mark.parametrize("name", ["llama.cpp", "ollama", "gpt-fast", "served static", "llama.cpp, Jamba"])
def test_a_cache_that_is_made_at_once_does_not_grow(name: str) -> None:
    text = told(name, "kv_cache")
    assert "does not grow" in text
    assert "grows with every" not in text
    assert "further token" not in text


@pytest.mark.parametrize(("name", "layer_caches"), [("served, writing", 0.5), ("served, writing, 4.35", 32)])
def test_copies_beside_the_cache_are_told_apart(name: str, layer_caches: float) -> None:
    answer = answer_of(name)
    assert answer.peak_moment.phase == "decode"
    written = answer.extra["kv_cache_bytes"]
    assert copies(answer) == pytest.approx(written * layer_caches / 32, rel=0.01)
    assert f"{WORDS.size(copies(answer))} more are there" in told(name, "kv_cache")
    each = in_other_words(answer, "kv_cache")[0][1]
    assert each == answer.extra["kv_bytes_per_token"]
    assert copies(answer_of("served")) == copies(answer_of("served windows")) == 0


def test_a_cache_that_lies_elsewhere_is_not_said_to_be_empty_yet() -> None:
    assert answer_of("llama.cpp, none").component("kv_cache").bytes == 0
    assert "yet" not in told("llama.cpp, none", "kv_cache")
    assert "whole blocks" in told("vLLM, part of a block", "kv_cache")


def test_nothing_is_known_of_what_is_not_covered_and_nothing_breaks() -> None:
    for name in ("pipeline", "T5", "images", "ZeRO-3"):
        answer = estimate(replace(scenario_of(name), "training.compile", True))
        assert answer.verdict.kind == "unknown"
        for key in ("", *COMPONENTS):
            assert concept(answer, key)
            assert in_other_words(answer, key) == ()
    for engine in ("vllm", "llama.cpp"):
        answer = estimate(replace(scenario_of("served T5"), "inference.engine", engine))
        assert answer.verdict.kind == "unknown"
        assert all(concept(answer, key) for key in COMPONENTS)


def test_encoders_cache_nothing_and_decoders_beside_them_what_was_read() -> None:
    assert "nothing to cache" in told("served BERT", "kv_cache")
    assert answer_of("served BERT").component("kv_cache").bytes == 0
    assert "no loss" in told("served BERT", "loss")
    assert "scores" in told("served BERT", "loss")
    text = told("served T5", "kv_cache")
    assert "what the encoder has read" in text
    assert "each of 12 layers" in text
    model = answer_of("served T5").scenario.model
    token = 2 * 2 * model.num_hidden_layers * model.num_key_value_heads * model.head_dim
    assert answer_of("served T5").extra["kv_bytes_per_token"] == token
    assert f"A further token of a sequence adds {WORDS.size(token)}" in text
    read = 512 * token
    assert answer_of("served T5").extra["kv_cache_bytes"] == read + 65 * token
    assert "look back" not in told("served Mamba", "kv_cache")


PER_PARAMETER = {
    "two numbers for each of the": 2,
    "one number for each of the": 1,
    "three numbers": 3,
    "four": 4,
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers_remember_as_many_numbers_as_is_said(optimizer: str) -> None:
    scenario = replace(scenario_of("plain"), "training.optimizer", optimizer)
    scenario = replace(scenario, "training.precision", "fp32")
    answer = estimate(scenario)
    text = KEPT[optimizer]
    said = next((many for words, many in PER_PARAMETER.items() if words in text), 0)
    size, trainable = answer.component("optimizer_states").bytes, answer.parameters.trainable
    shown = " ".join(one.text(WORDS) for one in concept(answer, "optimizer_states"))
    label = BY_PATH["training.optimizer"].choice(optimizer)
    assert label is not None
    assert shown.startswith(label.label)
    assert "0 bytes for each" not in shown
    copies = 1 if OPTIMIZERS[optimizer].by_layer else 0
    assert bool(copies) == ("copy" in shown)
    if OPTIMIZERS[optimizer].paged:
        assert "managed memory" in shown
        assert size < trainable
    elif " bits each" in shown:
        assert size < 4 * max(said, 2) * trainable
    elif "remembers nothing" in text:
        assert size == 0
    elif optimizer in ("adafactor", "adalomo", "galore", "apollo", "apollo_mini", "adam_mini", "muon"):
        assert size < 8 * trainable
    elif optimizer in ("shampoo", "soap"):
        assert size > 8 * trainable
    else:
        assert size == pytest.approx(4 * (said + copies) * trainable, rel=0.001)


@pytest.mark.parametrize("name", ["ZeRO-1", "ZeRO-3"])
def test_what_is_shared_out_says_so(name: str) -> None:
    whole = answer_of("plain").component("optimizer_states").bytes
    here = answer_of(name).component("optimizer_states").bytes
    count = numbers(name, "optimizer_states", "count").counts["count"]
    assert here * count == pytest.approx(whole, rel=0.001)
    assert f"{WORDS.size(here)} lie here" in told(name, "optimizer_states")
    assert "bytes for each" not in told(name, "optimizer_states")
    assert ("part of the model" in told(name, "weights")) == (name == "ZeRO-3")
    assert ("share them out" in told(name, "gradients")) == (name == "ZeRO-3")


def test_what_lies_elsewhere_says_so() -> None:
    for key in ("weights", "gradients", "optimizer_states"):
        assert answer_of("ZeRO-3 on the CPU").component(key).bytes < 2**20
        assert "memory" in told("ZeRO-3 on the CPU", key)
    host = answer_of("half on the CPU").extra["host_bytes"]
    assert f"{WORDS.size(host)} of it lie in the computer's memory" in told(
        "half on the CPU", "optimizer_states"
    )
    host = answer_of("llama.cpp, part").extra["host_bytes"]
    assert f"{WORDS.size(host)} in the computer's memory" in told("llama.cpp, part", "weights")
    buckets = answer_of("DDP").component("gradients").bytes
    assert buckets == 2 * answer_of("DDP").parameters.trainable
    assert "buckets" in told("DDP", "gradients")
    assert "never lie side by side" in told("in backward", "gradients")
    assert max(one.components["gradients"] for one in answer_of("in backward").timeline) < 2**31


@pytest.mark.parametrize("method", ["gpt_article", "llama_guide", "megatron_paper"])
def test_a_rule_of_thumb_claims_what_it_counts(method: str) -> None:
    for capacity in (FIRST.device.memory_bytes, 10**13):
        scenario = replace(msgspec.structs.replace(FIRST, method=method), "device.memory_bytes", capacity)
        answer = estimate(scenario)
        line = verdict_line(answer, WORDS)
        label = BY_PATH["method"].choice(method)
        assert label is not None
        assert label.label in line
        assert WORDS.size(answer.peak_bytes) in line
        assert "leaves out" in line
        for unsaid in ("likely", "AdamW", "Full fine-tuning", "tight"):
            assert unsaid not in line
        assert ("fp64" in line) == (method == "gpt_article")
        assert ("does not fit" in line) == (answer.verdict.kind == "does_not_fit")


def test_the_line_names_one_device_of_several_and_nothing_an_encoder_has_not() -> None:
    assert "on each of 8 × " in verdict_line(answer_of("ZeRO-3"), WORDS)
    line = verdict_line(answer_of("served BERT"), WORDS)
    assert "1 × 512 tokens, weights bf16," in line
    assert "cache" not in line
    assert "NF4" in verdict_line(answer_of("QLoRA"), WORDS)
