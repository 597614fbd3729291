"""The verdict in one honest line: what, on what, whether it fits, by how much, how sure, by what."""

from __future__ import annotations

from memgui.estimator.methods.gpt_article import DEFAULT_FORMAT
from memgui.estimator.result import Estimate
from memgui.planning.values import value_text
from memgui.planning.words import Said, Words
from memgui.spec import QT_TRANSLATE_NOOP, Scenario, get
from memgui.spec.fields import BY_PATH
from memgui.spec.methods import variant_of

_LINES = {
    "fits": QT_TRANSLATE_NOOP(
        "report",
        "{what} on {device} fits: it needs {need} of {capacity}, {gap} stay free; likely {low} to "
        "{high}. {by}.",
    ),
    "tight": QT_TRANSLATE_NOOP(
        "report",
        "{what} on {device} is tight: it needs {need} of {capacity}; likely {low} to {high}. {by}.",
    ),
    "does_not_fit": QT_TRANSLATE_NOOP(
        "report",
        "{what} on {device} does not fit: it needs {need} of {capacity}, {gap} too much; likely {low} to "
        "{high}. {by}.",
    ),
    "unknown": QT_TRANSLATE_NOOP("report", "{what} on {device} is unknown: {reason} {by}."),
}
_RULES = {
    "fits": QT_TRANSLATE_NOOP(
        "report",
        "{what} on {device}: what the method counts comes to {need}, {gap} less than {capacity}; what it "
        "leaves out comes on top. {by}.",
    ),
    "does_not_fit": QT_TRANSLATE_NOOP(
        "report",
        "{what} on {device} does not fit: what the method counts comes to {need}, {gap} more than "
        "{capacity}; what it leaves out comes on top. {by}.",
    ),
}
"""Of an article's method, which counts some parts, knows no range and not what else was chosen."""
_EACH = QT_TRANSLATE_NOOP("report", "each of {devices}")
_SOME = QT_TRANSLATE_NOOP("report", "each of {count} of {devices}")
_RULE = QT_TRANSLATE_NOOP(
    "report", "{model} by the rule of thumb “{method}”, micro batch {batch}, {length} {length:token|tokens},"
)
_VARIANT = QT_TRANSLATE_NOOP(
    "report",
    "{model} by the rule of thumb “{method}” ({variant}), micro batch {batch}, {length} "
    "{length:token|tokens},",
)
_FORMAT = QT_TRANSLATE_NOOP(
    "report",
    "{model} by the rule of thumb “{method}” ({variant}), micro batch {batch}, {length} "
    "{length:token|tokens}, every number in {format},",
)
_TRAINING = QT_TRANSLATE_NOOP(
    "report",
    "{model}, {method}, micro batch {batch}, {length} {length:token|tokens}, {precision}, {optimizer},",
)
_BASE = QT_TRANSLATE_NOOP(
    "report",
    "{model}, {method} beside a base in {base}, micro batch {batch}, {length} {length:token|tokens}, "
    "{precision}, {optimizer},",
)
_ENCODER = QT_TRANSLATE_NOOP(
    "report", "{model}, {engine}, {batch} × {prompt} {prompt:token|tokens}, weights {weights},"
)
_INFERENCE = QT_TRANSLATE_NOOP(
    "report",
    "{model}, {engine}, {batch} × ({prompt} + {generated}) tokens, weights {weights}, cache {cache},",
)


def verdict_line(estimate: Estimate, words: Words) -> str:
    """One sentence to paste; the same bytes as everywhere, in the words' unit."""
    verdict = estimate.verdict
    lines = _LINES if estimate.method == "detailed" else {**_LINES, **_RULES}
    return Said(
        lines[verdict.kind],
        sizes={
            "need": estimate.peak_bytes,
            "capacity": verdict.capacity_bytes,
            "gap": abs(verdict.headroom_bytes),
            "low": estimate.low_bytes,
            "high": estimate.high_bytes,
        },
        words={
            "what": work_text(estimate.scenario, words),
            "device": _of_one(estimate, words),
            "by": estimate.version,
        },
        messages={"reason": verdict.reason},
        context="report",
    ).text(words)


def _of_one(estimate: Estimate, words: Words) -> str:
    """The device that the figures are of: one of several has the need, and the limit is its own."""
    device, used = estimate.scenario.device, estimate.scenario.parallelism.devices
    devices = device_text(estimate.scenario, words)
    if device.count == 1 or used == 1 or estimate.method != "detailed":
        return device.name
    said = {"devices": devices}
    if used < device.count:
        return Said(_SOME, counts={"count": used}, words=said, context="report").text(words)
    return Said(_EACH, words=said, context="report").text(words)


def device_text(scenario: Scenario, words: Words) -> str:
    """``H100 SXM5 80GB``; ``4 × H100 SXM5 80GB``."""
    device = scenario.device
    return device.name if device.count == 1 else f"{words.count(device.count)} × {device.name}"


def work_text(scenario: Scenario, words: Words) -> str:
    """The model and what is done with it."""

    def said(path: str) -> str:
        return value_text(BY_PATH[path], get(scenario, path), words)

    shown: dict[str, str | tuple[str, str]] = {"model": scenario.model.name or "?"}
    if scenario.method != "detailed":
        return _by_rule(scenario, shown, words)
    if scenario.task == "training":
        run = scenario.training
        shown |= {name: said(f"training.{name}") for name in ("method", "precision", "optimizer")}
        counts = {"batch": run.micro_batch_size, "length": run.sequence_length}
        text = _TRAINING
        if BY_PATH["training.base_format"].applies(scenario) and run.base_format != run.precision:
            text = _BASE
            shown["base"] = said("training.base_format")
        return Said(text, counts=counts, words=shown, context="report").text(words)
    serving = scenario.inference
    shown |= {
        "engine": said("inference.engine"),
        "weights": said("inference.weight_format"),
        "cache": said("inference.kv_cache_format"),
    }
    text = _INFERENCE if scenario.model.is_decoder else _ENCODER
    counts = {
        "batch": serving.batch_size,
        "prompt": serving.prompt_tokens,
        "generated": serving.generated_tokens,
    }
    return Said(text, counts=counts, words=shown, context="report").text(words)


def _by_rule(scenario: Scenario, shown: dict[str, str | tuple[str, str]], words: Words) -> str:
    """The method's name and what it reads; it knows nothing of precision, optimizer or what is trained."""

    def choice(path: str, value: str) -> str:
        return value_text(BY_PATH[path], value, words)

    shown = {**shown, "method": choice("method", scenario.method)}
    counts = {"batch": scenario.training.micro_batch_size, "length": scenario.training.sequence_length}
    text, variant = _RULE, variant_of(scenario)
    if variant:
        text, shown["variant"] = _VARIANT, choice("method_variant", variant)
    if BY_PATH["method_number_format"].applies(scenario):
        text = _FORMAT
        shown["format"] = choice("method_number_format", scenario.method_number_format or DEFAULT_FORMAT)
    return Said(text, counts=counts, words=shown, context="report").text(words)
