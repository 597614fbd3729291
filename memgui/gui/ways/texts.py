"""What a way to fit is called, what it changes, what it comes to: shared by the chips and the tab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from memgui.estimator.result import Estimate
from memgui.gui.numbers import Numbers
from memgui.gui.texts import label, value_text
from memgui.gui.verdict import sentence
from memgui.spec import QT_TRANSLATE_NOOP
from memgui.spec.fields import BY_PATH, Kind

if TYPE_CHECKING:
    from memgui.gui.why.qt_words import QtWords
    from memgui.planning.changes import Change
    from memgui.planning.ways import Way

translate = QCoreApplication.translate

_SHORT = {
    "Smaller micro batch, more accumulation": QT_TRANSLATE_NOOP("ways", "Smaller micro batch"),
    "Let the outputs go before backward": QT_TRANSLATE_NOOP("ways", "Let the outputs go"),
    "SDPA instead of eager attention": QT_TRANSLATE_NOOP("ways", "SDPA attention"),
    "Gradients freed after each step": QT_TRANSLATE_NOOP("ways", "Free the gradients"),
    "Packed samples, no padding mask": QT_TRANSLATE_NOOP("ways", "Packed samples"),
    "Checkpoint activations": QT_TRANSLATE_NOOP("ways", "Checkpointing"),
    "{method} on a base in {format}": QT_TRANSLATE_NOOP("ways", "{format} {method}"),
}
"""Shorter names of titles, by title, for where two or three words must do."""

_LONG_ENOUGH = frozenset({"Checkpoint activations", "{method} on a base in {format}"})
"""Titles that are only cut short beside another one."""

_FORMATS = {
    "training.base_format": QT_TRANSLATE_NOOP("ways", "{value} base"),
    "training.lora.adapter_format": QT_TRANSLATE_NOOP("ways", "{value} adapters"),
    "inference.weight_format": QT_TRANSLATE_NOOP("ways", "{value} weights"),
    "inference.kv_cache_format": QT_TRANSLATE_NOOP("ways", "{value} cache"),
}
"""What a number format is of, in a word."""

_FACTS = frozenset({"device.memory_bytes", "device.compute_capability", "parallelism.data"})
"""Fields that follow from another one that is named."""

_VAGUE = ("_format", "activation_checkpointing")
"""Ends of paths whose values say nothing alone: “bf16”, “By operator”."""

ARROW = "→"


def title(way: Way, words: QtWords) -> str:
    """The change; of a pair both."""
    if way.parts:
        return " + ".join(part.title.text(words) for part in way.parts)
    return way.title.text(words)


def short_title(way: Way, words: QtWords) -> str:
    """The change in two or three words; of a pair both, shorter still."""
    if way.parts:
        return " + ".join(_brief(part, words) for part in way.parts)
    template = way.title.template
    if template in _SHORT and template not in _LONG_ENOUGH:
        return translate("ways", _SHORT[template])
    return way.title.text(words)


def in_two_lines(way: Way, words: QtWords) -> str:
    """The short title in two lines: a pair's changes, or field and value; empty where it is one."""
    if way.parts:
        return "\n+ ".join(_brief(part, words) for part in way.parts)
    field, colon, value = short_title(way, words).partition(": ")
    return f"{field}:\n{value}" if colon else ""


def _brief(way: Way, words: QtWords) -> str:
    if way.title.template in _SHORT:
        return replace(way.title, template=_SHORT[way.title.template]).text(words)
    one = way.changes[0]
    if len(way.changes) == 1 and one.path in _FORMATS:
        value = value_text(BY_PATH[one.path], one.new).partition(",")[0]
        return translate("ways", _FORMATS[one.path]).format(value=value)
    if way.title.template == "{field}: {value}" and _says_enough(one):
        return value_text(BY_PATH[one.path], one.new)
    return way.title.text(words)


def from_to(way: Way, numbers: Numbers) -> str:
    """``None → Every layer``; of several numbers each with its label."""
    changes = [one for one in way.changes if one.path not in _FACTS] or list(way.changes)
    if len(changes) == 1:
        return _from_to(changes[0], numbers)
    return ", ".join(
        _from_to(one, numbers) if _says_enough(one) else f"{label(one.path)} {_from_to(one, numbers)}"
        for one in changes
    )


def _says_enough(one: Change) -> bool:
    """Whether the values say by themselves what field they are of; ``bf16`` is a format of many things."""
    is_choice = BY_PATH[one.path].kind is Kind.CHOICE and not one.path.endswith(_VAGUE)
    return is_choice or one.path == "device.name"


def _from_to(one: Change, numbers: Numbers) -> str:
    field = BY_PATH[one.path]
    if field.kind is Kind.BYTES:
        return f"{numbers.tip(one.old)} {ARROW} {numbers.tip(one.new)}"
    return f"{value_text(field, one.old)} {ARROW} {value_text(field, one.new)}"


def change_lines(changes: Iterable[Change], numbers: Numbers) -> list[str]:
    """Every field that changes, with what it was and what becomes of it."""
    return [f"{label(one.path)}: {_from_to(one, numbers)}" for one in changes]


_FIGURES: Mapping[str, str] = {
    "fits": QT_TRANSLATE_NOOP("ways", "{total} · fits, {gap} spare"),
    "tight": QT_TRANSLATE_NOOP("ways", "{total} · tight, {gap} spare"),
    "does_not_fit": QT_TRANSLATE_NOOP("ways", "{total} · {gap} over"),
}


def figures(estimate: Estimate, numbers: Numbers) -> str:
    """``69.3 GiB · fits, 9.9 spare``: total and room in a line."""
    verdict = estimate.verdict
    total = numbers.sentence(estimate.peak_bytes)
    if estimate.scenario.device.count > 1:
        total = translate("ways", "{total} each").format(total=total)
    gap = numbers.gap_figure(estimate.peak_bytes, verdict.capacity_bytes)
    template = translate("ways", _FIGURES[verdict.kind])
    if verdict.kind == "tight" and verdict.headroom_bytes < 0:
        template = translate("ways", "{total} · tight, {gap} over")
    return template.format(total=total, gap=gap)


def exact_figures(estimate: Estimate, numbers: Numbers) -> str:
    """``69.3 GiB of 79.2 GiB: 9.9 GiB spare``, for tooltips."""
    return translate("ways", "{total} of {limit}: {gap}").format(
        total=numbers.sentence(estimate.peak_bytes),
        limit=numbers.sentence(estimate.verdict.capacity_bytes),
        gap=sentence.gap(estimate, numbers),
    )


def tip(head: str, lines: Iterable[str]) -> str:
    """A tooltip: a bold line over plain ones, never wrapped."""
    rest = "<br>".join(escape(line) for line in lines if line)
    return f"<p style='white-space:pre'><b>{escape(head)}</b><br>{rest}</p>"


def way_tip(way: Way, words: QtWords) -> str:
    """What changes, what it comes to, what it costs."""
    costs = [said.text(words) for said in way.costs]
    lines = [
        *change_lines(way.changes, words.numbers),
        exact_figures(way.estimate, words.numbers),
        *costs,
    ]
    return tip(title(way, words), lines)
