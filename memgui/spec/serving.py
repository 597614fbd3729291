"""What is wrong or unusual in how a model is served."""

from __future__ import annotations

from collections.abc import Iterator

from memgui.spec.formats import CACHE_FORMATS, SCHEMES, CacheFormat
from memgui.spec.formats.schemes import AS_IN_FILE
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, Value, allowed
from memgui.spec.scenario import Scenario
from memgui.spec.stored import MOST, stored

GGML = ("llama.cpp", "ollama")
PLAIN = ("bf16", "fp16", "fp32")


def validate_serving(scenario: Scenario) -> Iterator[Issue]:
    """Issues of a serving scenario, and of the bytes that a model has from its files."""
    yield from _stored(scenario.model.stored_weights)
    if scenario.task != "inference" or scenario.method != "detailed":
        return
    if scenario.model.is_decoder and scenario.model.head == "sequence":
        yield Issue(
            "error",
            "no_tokens_from_classes",
            ("model.head",),
            Message(QT_TRANSLATE_NOOP("messages", "A decoder with a head over classes generates no tokens.")),
            allowed("model.head", "causal"),
        )
    yield from _weights(scenario)
    if scenario.model.is_decoder:
        yield from _cache(scenario)
    yield from _attention(scenario)


def _stored(texts: tuple[str, ...]) -> Iterator[Issue]:
    wrong = next((text for text in texts if stored(text) is None), None)
    if wrong is None and len(texts) <= MOST:
        return
    shown = wrong[:80] if wrong is not None else str(len(texts))
    yield Issue(
        "error",
        "bad_stored_weights",
        ("model.stored_weights",),
        Message(QT_TRANSLATE_NOOP("messages", "model.stored_weights cannot hold {value}."), {"value": shown}),
        Message(
            QT_TRANSLATE_NOOP("messages", "At most {most} of the form attention@0-31:83886080 are allowed."),
            {"most": MOST},
        ),
    )


def _weights(scenario: Scenario) -> Iterator[Issue]:
    path, name = "inference.weight_format", scenario.inference.weight_format
    if name == AS_IN_FILE:
        if not scenario.model.stored_weights:
            yield Issue(
                "error",
                "no_file",
                (path, "model.stored_weights"),
                Message(QT_TRANSLATE_NOOP("messages", "No file says how many bytes the weights are.")),
                Message(QT_TRANSLATE_NOOP("messages", "A model opened from its weights has them.")),
            )
        return
    scheme = SCHEMES.get(name)
    engine = scenario.inference.engine
    if scheme is not None and engine not in scheme.engines:
        yield Issue(
            "warning",
            "not_loaded",
            (path, "inference.engine"),
            Message(
                QT_TRANSLATE_NOOP("messages", "{engine} does not load {format}; computed all the same."),
                {"engine": _engine(engine), "format": Named(path, (name,))},
            ),
        )


def _cache(scenario: Scenario) -> Iterator[Issue]:
    inference = scenario.inference
    engine = inference.engine
    apart = engine in GGML and inference.kv_cache_format_v is not None
    for path, name in (
        ("inference.kv_cache_format", inference.kv_cache_format),
        ("inference.kv_cache_format_v", inference.kv_cache_format_v if apart else None),
    ):
        found = CACHE_FORMATS.get(name or "")
        if found is not None and engine not in found.engines:
            yield _not_offered(path, engine, found)
    values = inference.kv_cache_format_v or inference.kv_cache_format
    if engine in GGML and values not in PLAIN and not inference.flash_attention:
        yield Issue(
            "error",
            "packed_values",
            ("inference.flash_attention", "inference.kv_cache_format_v"),
            Message(QT_TRANSLATE_NOOP("messages", "llama.cpp packs values with flash attention only.")),
            Message(QT_TRANSLATE_NOOP("messages", "Allowed without it: bf16, fp16, fp32.")),
        )


def _engine(name: str) -> Named:
    return Named("inference.engine", (name,))


def _not_offered(path: str, engine: str, found: CacheFormat) -> Issue:
    """That an engine has no such cache: an error where another has it, else said of what none has yet."""
    fields = (path, "inference.engine")
    args: dict[str, Value] = {"engine": _engine(engine), "format": Named(path, (found.name,))}
    if not found.engines:
        text = QT_TRANSLATE_NOOP("messages", "No engine here has a {format} cache; computed all the same.")
        return Issue("warning", "cache_not_offered", fields, Message(text, args))
    return Issue(
        "error",
        "cache_not_offered",
        fields,
        Message(QT_TRANSLATE_NOOP("messages", "{engine} has no {format} cache."), args),
        allowed(path, *(one.name for one in CACHE_FORMATS.values() if engine in one.engines)),
    )


def _attention(scenario: Scenario) -> Iterator[Issue]:
    inference = scenario.inference
    if inference.engine != "transformers" or inference.attention != "flash_attention_2":
        return
    if inference.weight_format == "fp32":
        yield Issue(
            "warning",
            "no_flash_in_fp32",
            ("inference.attention", "inference.weight_format"),
            Message(
                QT_TRANSLATE_NOOP("messages", "FlashAttention 2 computes in 16 bits; computed all the same.")
            ),
        )
