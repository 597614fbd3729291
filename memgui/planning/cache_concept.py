"""What a cache of keys and values is and how it grows, in plain words with the person's numbers in them."""

from __future__ import annotations

from memgui.estimator.engines.cache import Keys, Layer, State, layers
from memgui.estimator.result import Estimate
from memgui.planning.words import Said
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

GGML = ("llama.cpp", "ollama")
POOLED = ("vllm", "sglang")
"""Engines that keep a pool for the tokens of all sequences."""


def kv_cache(estimate: Estimate) -> tuple[Said, ...]:
    """The sentences of the KV cache, or of the state that is kept in its place."""
    scenario = estimate.scenario
    size = estimate.component("kv_cache").bytes
    if scenario.task == "training":
        return _of_training(scenario, size)
    if not scenario.model.is_decoder:
        text = QT_TRANSLATE_NOOP(
            "why", "An encoder reads the whole text at once and writes none, so there is nothing to cache."
        )
        return (Said(text),)
    said = [*_what_layers_keep(scenario), *_part(scenario)]
    if not size:
        if scenario.inference.engine not in GGML:  # whose cache may lie elsewhere
            said.append(Said(QT_TRANSLATE_NOOP("why", "At the moment of the peak nothing is in it yet.")))
        return tuple(said)
    return (*said, *_how_much(estimate, size), *_growth(estimate, size))


def _of_training(scenario: Scenario, size: int) -> tuple[Said, ...]:
    if scenario.training.method == "prefix":
        text = QT_TRANSLATE_NOOP(
            "why",
            "What prefix tuning trains are keys and values that stand before those of the tokens: each layer "
            "puts both into a cache.",
        )
        return (Said(text),)
    said = [
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "A cache serves to write text word by word; in training the whole text is there at once.",
            )
        )
    ]
    if size:
        said.append(Said(QT_TRANSLATE_NOOP("why", "Here it is on all the same, and filled in vain.")))
    return tuple(said)


def _kept(scenario: Scenario) -> tuple[tuple[Layer, int], ...]:
    """What the layers that write keep, and how many of them."""
    return layers(scenario.model)


def _what_layers_keep(scenario: Scenario) -> list[Said]:
    """Which layers keep what: keys and values, of a window or of all, and states."""
    found = _kept(scenario)
    keys = [(layer, count) for layer, count in found if isinstance(layer, Keys)]
    states = sum(count for layer, count in found if isinstance(layer, State))
    total = scenario.model.num_hidden_layers
    counts = {"count": sum(count for _, count in keys), "layers": total}
    said: list[Said] = []
    if keys:
        text = QT_TRANSLATE_NOOP(
            "why",
            "Each new token looks back at the tokens before it. So that they need not be computed again, "
            "{count:the|each of} {count} {count:layer|layers} keeps two vectors, a key and a value, for each "
            "of them.",
        )
        if all(layer.latent for layer, _ in keys):
            text = QT_TRANSLATE_NOOP(
                "why",
                "Each new token looks back at the tokens before it. So that they need not be computed "
                "again, {count:the|each of} {count} {count:layer|layers} keeps one short vector for each of "
                "them, from which it makes keys and values.",
            )
        said.append(Said(text, counts=counts))
    for window in sorted({layer.window for layer, _ in keys if layer.window}):
        near = sum(count for layer, count in keys if layer.window == window)
        text = QT_TRANSLATE_NOOP(
            "why",
            "{count} of these layers {count:looks|look} back at the last {window} {window:token|tokens} at "
            "most.",
        )
        if near == counts["count"]:
            text = QT_TRANSLATE_NOOP(
                "why", "They look back at the last {window} {window:token|tokens} at most."
            )
        said.append(Said(text, counts={"count": near, "window": window}))
    if states:
        text = QT_TRANSLATE_NOOP(
            "why",
            "{count} {count:layer keeps|layers keep} a state for each sequence, which has one size, however "
            "long the sequence is.",
        )
        said.append(Said(text, counts={"count": states}))
    if scenario.model.num_encoder_layers:
        text = QT_TRANSLATE_NOOP(
            "why", "Each of them also keeps keys and values of what the encoder has read; those do not grow."
        )
        said.append(Said(text))
    return said


def _part(scenario: Scenario) -> list[Said]:
    """Which part of that is on one device."""
    split, model, inference = scenario.parallelism, scenario.model, scenario.inference
    several = scenario.device.count > 1
    on_gpu = inference.n_gpu_layers
    held = inference.engine in GGML and on_gpu is not None and on_gpu < model.num_hidden_layers
    if (several and split.pipeline > 1) or held:
        return [Said(QT_TRANSLATE_NOOP("why", "Only what the layers on this device keep lies here."))]
    heads = model.kv_lora_rank is None and model.num_key_value_heads > 1
    if several and split.tensor > 1 and heads:
        text = QT_TRANSLATE_NOOP(
            "why", "Devices that split the layers share the heads that this is kept for."
        )
        return [Said(text)]
    return []


def each_token(estimate: Estimate) -> int | None:
    """Bytes that each cached token takes here, where all take the same; else ``None``."""
    scenario = estimate.scenario
    size = estimate.component("kv_cache").bytes - copies(estimate)
    if scenario.task == "training" or not size or scenario.model.num_encoder_layers:
        return None
    if any(isinstance(layer, State) or layer.window for layer, _ in _kept(scenario)):
        return None
    held = held_tokens(estimate)
    return None if size % held else size // held


def copies(estimate: Estimate) -> int:
    """Bytes of the cache that are there twice: Transformers puts a token to old ones by making new ones."""
    scenario = estimate.scenario
    inference = scenario.inference
    written = estimate.extra.get("kv_cache_bytes", 0)
    grows = inference.engine == "transformers" and not is_made_at_once(scenario)
    staged = scenario.device.count > 1 and scenario.parallelism.pipeline > 1
    if not grows or staged or estimate.peak_moment.phase != "decode":
        return 0
    return max(0, estimate.component("kv_cache").bytes - written)


def held_tokens(estimate: Estimate) -> int:
    """Tokens of all sequences that there is room for in the cache at the peak."""
    scenario = estimate.scenario
    if scenario.inference.engine in GGML:
        return estimate.extra["n_ctx"]
    return scenario.inference.batch_size * cached_tokens(estimate)


def _how_much(estimate: Estimate, size: int) -> list[Said]:
    inference = estimate.scenario.inference
    each, twice = each_token(estimate), copies(estimate)
    said: list[Said] = []
    if twice:
        text = QT_TRANSLATE_NOOP(
            "why", "{copies} more are there for the moment in which a token is added: the old beside the new."
        )
        said.append(Said(text, sizes={"copies": twice}))
        size -= twice
    counts = {"length": cached_tokens(estimate), "sequences": inference.batch_size}
    if each is not None and inference.engine in GGML:
        text = QT_TRANSLATE_NOOP(
            "why",
            "{each} for {cells:the|each of} {cells} {cells:token|tokens} that the context has room for.",
        )
        return [Said(text, sizes={"each": each}, counts={"cells": held_tokens(estimate)})]
    if each is not None:
        text = QT_TRANSLATE_NOOP("why", "{each} for {length:the|each of} {length} {length:token|tokens}.")
        if inference.batch_size > 1:
            text = QT_TRANSLATE_NOOP(
                "why",
                "{each} for {length:the|each of} {length} {length:token|tokens} in each of {sequences} "
                "sequences.",
            )
        return [Said(text, sizes={"each": each}, counts=counts), *said]
    text = QT_TRANSLATE_NOOP("why", "{size} for a sequence of {length} {length:token|tokens}.")
    if inference.batch_size > 1:
        text = QT_TRANSLATE_NOOP("why", "{size} for {sequences} sequences of {length} {length:token|tokens}.")
    if estimate.scenario.model.num_encoder_layers:
        text = QT_TRANSLATE_NOOP("why", "{size} for each input and what is written of it.")
        size //= inference.batch_size
    return [Said(text, sizes={"size": size}, counts=counts), *said]


def _growth(estimate: Estimate, size: int) -> list[Said]:
    """How it grows: token by token, out of a pool, or not, as its room is made at once."""
    scenario = estimate.scenario
    inference, split = scenario.inference, scenario.parallelism
    found = _kept(scenario)
    if found and all(isinstance(layer, State) for layer, _ in found):
        return []
    if is_made_at_once(scenario):
        text = QT_TRANSLATE_NOOP(
            "why", "Its room is made at once for all tokens there can be, so it does not grow."
        )
        return [Said(text)]
    staged = scenario.device.count > 1 and split.pipeline > 1
    said: list[Said] = []
    if inference.engine in POOLED:
        text = QT_TRANSLATE_NOOP("why", "Its tokens lie in a pool that the engine has taken before.")
        if inference.engine == "vllm":
            text = QT_TRANSLATE_NOOP(
                "why", "Each sequence takes whole blocks of a pool that the engine has taken before."
            )
        said.append(Said(text))
    adds = estimate.extra.get("kv_bytes_per_token", 0)
    plain = inference.kv_cache_format in ("bf16", "fp16", "fp32", "fp8")
    if each_token(estimate) is not None:
        said.append(Said(QT_TRANSLATE_NOOP("why", "It grows with every token written.")))
    elif staged:
        return said
    elif adds > 0 and plain:
        text = QT_TRANSLATE_NOOP("why", "A further token of a sequence adds {growth}.")
        said.append(Said(text, sizes={"growth": adds}))
    elif not adds:
        said.append(Said(QT_TRANSLATE_NOOP("why", "Once the windows are full it does not grow.")))
    most = estimate.extra.get("kv_cache_bytes", size)
    if most > size and not staged and not scenario.model.num_encoder_layers:
        text = QT_TRANSLATE_NOOP(
            "why",
            "When {count:the|all} {count} {count:token is|tokens are} written it takes {most}, but then the "
            "whole needs less.",
        )
        whole = inference.prompt_tokens + inference.generated_tokens
        said.append(Said(text, sizes={"most": most}, counts={"count": whole}))
    return said


def is_made_at_once(scenario: Scenario) -> bool:
    """Whether the cache has room for all tokens from its start on."""
    inference = scenario.inference
    static = inference.engine == "transformers" and inference.cache_implementation == "static"
    return static or inference.engine in (*GGML, "gpt-fast")


def cached_tokens(estimate: Estimate) -> int:
    """Tokens of each sequence that the cache holds at the peak: in the prompt's pass only the prompt's."""
    scenario = estimate.scenario
    inference = scenario.inference
    if estimate.peak_moment.phase in ("prefill", "first_token") and not is_made_at_once(scenario):
        return inference.prompt_tokens
    return inference.prompt_tokens + inference.generated_tokens
