"""The verdict in words."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from memgui.document.result import Result
from memgui.estimator.result import Estimate
from memgui.gui.numbers import Numbers
from memgui.gui.texts import message_text, value_text
from memgui.spec import QT_TRANSLATE_NOOP
from memgui.spec.fields import BY_PATH
from memgui.spec.messages import counted, within

_HEADLINES = {
    "fits": QT_TRANSLATE_NOOP("verdict", "Fits: needs {need} of {limit}"),
    "tight": QT_TRANSLATE_NOOP("verdict", "Tight: needs {need} of {limit}"),
    "does_not_fit": QT_TRANSLATE_NOOP("verdict", "Does not fit: needs {need} of {limit}"),
}

_WORDS = {
    "fits": QT_TRANSLATE_NOOP("verdict", "Fits"),
    "tight": QT_TRANSLATE_NOOP("verdict", "Tight"),
    "does_not_fit": QT_TRANSLATE_NOOP("verdict", "Does not fit"),
    "unknown": QT_TRANSLATE_NOOP("verdict", "Unknown"),
}


def kind_of(result: Result) -> str:
    """``fits``, ``tight``, ``does_not_fit``, or ``unknown`` while nothing can be computed."""
    return "unknown" if result.estimate is None else result.estimate.verdict.kind


def verdict_word(kind: str) -> str:
    """The verdict in a word or three."""
    return QCoreApplication.translate("verdict", _WORDS.get(kind, _WORDS["unknown"]))


def headline(result: Result, numbers: Numbers) -> str:
    """One sentence with two figures, the verdict first."""
    estimate = result.estimate
    if estimate is None or estimate.verdict.kind not in _HEADLINES:
        return _unknown(result)
    template = QCoreApplication.translate("verdict", _HEADLINES[estimate.verdict.kind])
    text = template.format(
        need=numbers.sentence(estimate.peak_bytes), limit=numbers.sentence(estimate.verdict.capacity_bytes)
    )
    if min(result.scenario.device.count, result.scenario.parallelism.devices) > 1:
        text = QCoreApplication.translate("verdict", "{verdict}, each GPU").format(verdict=text)
    return text


def _unknown(result: Result) -> str:
    if result.reason is not None:
        reason = message_text(result.reason.message)
    elif result.estimate is not None and result.estimate.verdict.reason.template:
        reason = message_text(result.estimate.verdict.reason)
    else:
        return QCoreApplication.translate("verdict", "Unknown: nothing has been computed yet")
    template = QCoreApplication.translate("verdict", "Unknown, because {reason}")
    return template.format(reason=within(reason))


def detail(result: Result, numbers: Numbers, short: bool = False) -> str:
    """The line below: which device, and the likely range."""
    if result.estimate is None:
        if result.last_good is None:
            return ""
        return QCoreApplication.translate(
            "verdict", "The picture shows the last set-up that could be computed."
        )
    estimate = result.estimate
    return f"{_device(result, numbers, short)} {_range(estimate, numbers, short)}".strip()


def _device(result: Result, numbers: Numbers, short: bool) -> str:
    scenario = result.scenario
    device = scenario.device
    if scenario.task == "inference" and scenario.inference.engine == "vllm" and not short:
        template = QCoreApplication.translate("verdict", "On one {device}, vLLM may use {share} of {memory}.")
        if min(device.count, scenario.parallelism.devices) > 1:
            template = QCoreApplication.translate(
                "verdict", "On each of {count} × {device}, vLLM may use {share} of {memory}."
            )
        share = f"{scenario.inference.gpu_memory_utilization:g}"
        return template.format(
            device=device.name, count=device.count, share=share, memory=numbers.sentence(device.memory_bytes)
        )
    used = scenario.parallelism.devices
    if used < device.count:
        template = (
            QCoreApplication.translate("verdict", "{used} of {count} × {device}.")
            if short
            else QCoreApplication.translate("verdict", "On {used} of {count} × {device}.")
        )
        return template.format(used=used, count=device.count, device=device.name)
    if device.count > 1:
        template = (
            QCoreApplication.translate("verdict", "{count} × {device}.")
            if short
            else QCoreApplication.translate("verdict", "On each of {count} × {device}.")
        )
        return template.format(count=device.count, device=device.name)
    template = (
        QCoreApplication.translate("verdict", "One {device}.")
        if short
        else QCoreApplication.translate("verdict", "On one {device}.")
    )
    return template.format(device=device.name)


def _range(estimate: Estimate, numbers: Numbers, short: bool) -> str:
    if estimate.method != "detailed":
        field = BY_PATH["method"]
        template = QCoreApplication.translate("verdict", "Estimated by {method}.")
        return template.format(method=value_text(field, estimate.method))
    if estimate.low_bytes == estimate.high_bytes:
        return ""
    low, high = range_figures(estimate.low_bytes, estimate.high_bytes, numbers)
    if estimate.verdict.kind == "tight" and not short:
        template = QCoreApplication.translate(
            "verdict", "The likely range, {low} to {high}, crosses the limit."
        )
    elif short:
        template = QCoreApplication.translate("verdict", "Range {low} to {high}.")
    else:
        template = QCoreApplication.translate("verdict", "Likely range {low} to {high}.")
    return template.format(low=low, high=high)


def range_figures(low: int, high: int, numbers: Numbers) -> tuple[str, str]:
    """Both ends of a range; the unit stands at the second alone where it is the same."""
    first, second = numbers.sentence(low), numbers.sentence(high)
    figure, _, unit = first.rpartition(" ")
    return (figure if unit == second.rpartition(" ")[2] else first), second


def gap(estimate: Estimate, numbers: Numbers, short: bool = False) -> str:
    """``14.2 GiB over`` or ``38.5 GiB spare``."""
    capacity = estimate.verdict.capacity_bytes
    figure = (numbers.gap_figure if short else numbers.gap)(estimate.peak_bytes, capacity)
    if estimate.verdict.headroom_bytes < 0:
        return QCoreApplication.translate("verdict", "{gap} over").format(gap=figure)
    return QCoreApplication.translate("verdict", "{gap} spare").format(gap=figure)


def versus(estimate: Estimate, pinned: Estimate, numbers: Numbers) -> str:
    """``15.7 GiB more than pinned``: the difference of the two totals as they are shown."""
    gap = numbers.gap(estimate.peak_bytes, pinned.peak_bytes)
    if estimate.peak_bytes == pinned.peak_bytes:
        return QCoreApplication.translate("verdict", "As much as pinned")
    if estimate.peak_bytes > pinned.peak_bytes:
        return QCoreApplication.translate("verdict", "{gap} more than pinned").format(gap=gap)
    return QCoreApplication.translate("verdict", "{gap} less than pinned").format(gap=gap)


def limit_text(estimate: Estimate, numbers: Numbers) -> str:
    """``Limit 79.2 GiB``."""
    template = QCoreApplication.translate("verdict", "Limit {limit}")
    return template.format(limit=numbers.sentence(estimate.verdict.capacity_bytes))


def assumptions_text(count: int) -> str:
    """``4 assumptions``."""
    if not count:
        return QCoreApplication.translate("verdict", "No assumptions")
    template = QCoreApplication.translate("verdict", "{count} {count:assumption|assumptions}")
    return template.format(count=counted(count))
