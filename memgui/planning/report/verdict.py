"""The verdict in one honest line: what, on what, whether it fits, by how much, how sure, by what."""

from __future__ import annotations

from memgui.estimator.result import Estimate
from memgui.planning.values import value_text
from memgui.planning.words import Said, Words
from memgui.spec import QT_TRANSLATE_NOOP, Scenario, get
from memgui.spec.fields import BY_PATH

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
_TRAINING = QT_TRANSLATE_NOOP(
    "report", "{model}, {method}, micro batch {batch}, {length} tokens, {precision}, {optimizer},"
)
_INFERENCE = QT_TRANSLATE_NOOP(
    "report",
    "{model}, {engine}, {batch} × ({prompt} + {generated}) tokens, weights {weights}, cache {cache},",
)


def verdict_line(estimate: Estimate, words: Words) -> str:
    """One sentence to paste; the same bytes as everywhere, in the words' unit."""
    verdict = estimate.verdict
    return Said(
        _LINES[verdict.kind],
        sizes={
            "need": estimate.peak_bytes,
            "capacity": verdict.capacity_bytes,
            "gap": abs(verdict.headroom_bytes),
            "low": estimate.low_bytes,
            "high": estimate.high_bytes,
        },
        words={
            "what": work_text(estimate.scenario, words),
            "device": device_text(estimate.scenario, words),
            "by": estimate.version,
        },
        messages={"reason": verdict.reason},
        context="report",
    ).text(words)


def device_text(scenario: Scenario, words: Words) -> str:
    """``H100 SXM5 80GB``; ``4 × H100 SXM5 80GB``."""
    device = scenario.device
    return device.name if device.count == 1 else f"{words.count(device.count)} × {device.name}"


def work_text(scenario: Scenario, words: Words) -> str:
    """The model and what is done with it."""

    def said(path: str) -> str:
        return value_text(BY_PATH[path], get(scenario, path), words)

    shown: dict[str, str | tuple[str, str]] = {"model": scenario.model.name or "?"}
    if scenario.task == "training":
        run = scenario.training
        shown |= {name: said(f"training.{name}") for name in ("method", "precision", "optimizer")}
        counts = {"batch": run.micro_batch_size, "length": run.sequence_length}
        return Said(_TRAINING, counts=counts, words=shown, context="report").text(words)
    serving = scenario.inference
    shown |= {
        "engine": said("inference.engine"),
        "weights": said("inference.weight_format"),
        "cache": said("inference.kv_cache_format"),
    }
    counts = {
        "batch": serving.batch_size,
        "prompt": serving.prompt_tokens,
        "generated": serving.generated_tokens,
    }
    return Said(_INFERENCE, counts=counts, words=shown, context="report").text(words)
