"""An estimate as people paste it: a few lines, a Markdown table, CSV.  English; exact bytes beside GiB."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memgui.estimator.result import Estimate, Node
from memgui.estimator.settled import settled
from memgui.planning.solve import Bound, Solution
from memgui.spec.messages import Issue, Message, within

GIB = 2**30


def gib(size: int) -> str:
    """``size`` bytes in GiB with two decimals, rounded in integers."""
    hundredths = (abs(size) * 100 + GIB // 2) // GIB
    return f"{'-' if size < 0 else ''}{hundredths // 100:,}.{hundredths % 100:02d} GiB"


def size_text(size: int) -> str:
    """``size`` bytes in GiB with two decimals; under a tenth of one in MiB, KiB or bytes."""
    if size * 10 >= GIB or size == 0:
        return gib(size)
    for unit, name in ((2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            tenths = (20 * size + unit) // (2 * unit)
            return f"{tenths // 10}.{tenths % 10} {name}"
    return exact_text(size)


def exact_text(size: int) -> str:
    """Every byte of ``size``."""
    return f"{size:,} byte" if size == 1 else f"{size:,} bytes"


def as_lines(estimate: Estimate) -> str:
    """The verdict and the eight components, for a terminal."""
    if estimate.verdict.kind == "unknown":
        return _sentence(estimate)
    rows = [(node.label, gib(node.bytes), f"{node.bytes:,}") for node in estimate.components]
    rows.append(("Total", gib(estimate.peak_bytes), f"{estimate.peak_bytes:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        _sentence(estimate),
        "",
        *(f"{row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}" for row in rows),
        "",
        f"Peak at: {estimate.peak_moment.label.text}",
        f"Range: {gib(estimate.low_bytes)} to {gib(estimate.high_bytes)}",
        *_played(estimate),
        f"Stands for: {estimate.version}",
    ]
    return "\n".join(lines)


def _played(estimate: Estimate) -> Iterator[str]:
    """What PyTorch's allocator makes of a run that can be played on it."""
    found = settled(estimate)
    if found is not estimate:
        yield (
            f"Played on PyTorch's allocator: {gib(found.allocated_bytes)} allocated, "
            f"{gib(found.reserved_bytes)} reserved, "
            f"process {gib(found.low_bytes)} to {gib(found.high_bytes)}"
        )


def as_markdown(estimate: Estimate, issues: Iterable[Issue] = (), assumptions: Iterable[Message] = ()) -> str:
    """The breakdown as a Markdown table, two levels deep, and what was found and assumed before it."""
    if estimate.verdict.kind == "unknown":
        return _sentence(estimate)
    lines = [
        f"**{_cell(_subject(estimate))}**: {_outcome(estimate)}",
        "",
        "| Part | Memory | Bytes | Formula |",
        "| --- | ---: | ---: | --- |",
    ]
    for depth, path, node in _parts(estimate.components):
        if depth < 2 and (node.bytes or depth == 0):
            name = f"**{node.label}**" if depth == 0 else f"{path[0].label} · {node.label}"
            formula = node.derivation.formula.replace("*", "·").replace("|", "\\|")
            lines.append(f"| {_cell(name)} | {gib(node.bytes)} | {node.bytes:,} | {formula} |")
    lines += [
        f"| **Total** | {gib(estimate.peak_bytes)} | {estimate.peak_bytes:,} | |",
        "",
        f"Peak at: {estimate.peak_moment.label.text}. "
        f"Range: {gib(estimate.low_bytes)} to {gib(estimate.high_bytes)}. Stands for: {estimate.version}.",
        *(f"{line}." for line in _played(estimate)),
    ]
    lines += [f"- {issue.severity}: {issue.text}" for issue in issues]
    lines += [f"- {message.text}" for message in (*assumptions, *estimate.assumptions)]
    return "\n".join(lines)


def as_csv(estimate: Estimate) -> str:
    """Every node of the breakdown, one a line; ``part`` is its path of keys, joined by ``/``.

    Of what is unknown there is one line without bytes, for 0 is an answer.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("part", "label", "bytes", "formula", "source"))
    if estimate.verdict.kind == "unknown":
        writer.writerow(("unknown", _outcome(estimate), "", "", estimate.version))
        return text.getvalue().rstrip("\n")
    for _, path, node in _parts(estimate.components):
        key = "/".join(one.key for one in path)
        writer.writerow((key, node.label, node.bytes, node.derivation.formula, node.derivation.source))
    writer.writerow(("total", "Total", estimate.peak_bytes, "", estimate.version))
    return text.getvalue().rstrip("\n")


def solution_lines(solution: Solution) -> str:
    """The largest value that fits, what comes after it, and what is in the way, for a terminal."""
    lines = [_at(solution.path, solution.largest, solution.estimate)]
    if solution.largest is None:
        lines = [f"{solution.path}: no value fits."]
    if solution.next is not None:
        lines.append(_at("next", solution.next, solution.next_estimate))
    elif solution.issue is not None:
        lines.append(f"next: {solution.issue.text}")
    elif solution.bound is Bound.FIELD:
        lines.append("next: the field ends there.")
    return "\n".join(lines)


def _at(name: str, value: int | None, estimate: Estimate | None) -> str:
    if value is None or estimate is None:
        return f"{name}: none"
    verdict = estimate.verdict
    gap = f"{size_text(abs(verdict.headroom_bytes))} {'spare' if verdict.headroom_bytes >= 0 else 'lacking'}"
    need = (
        f"needs {gib(estimate.peak_bytes)} ({estimate.peak_bytes:,} bytes) of {gib(verdict.capacity_bytes)}"
    )
    return f"{name}: {value:,} {need}, {gap}: {_KINDS[verdict.kind]}"


def solution_rows(solution: Solution) -> list[tuple[str, str, str]]:
    """Heads and figures of a small table: which, value, bytes."""
    found = (
        ("largest", solution.largest, solution.peak_bytes),
        ("next", solution.next, solution.next_peak_bytes),
    )
    rows = [(name, _or_empty(value), _or_empty(size)) for name, value, size in found]
    return [("", solution.path, "peak_bytes"), *rows]


def _or_empty(number: int | None) -> str:
    return "" if number is None else str(number)


def as_table(rows: Iterable[tuple[str, ...]], form: str) -> str:
    """``rows``, the first of them heads, as ``csv`` or ``markdown``."""
    listed = list(rows)
    if form == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(listed)
        return text.getvalue().rstrip("\n")
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in listed]
    return "\n".join((lines[0], "|" + " --- |" * len(listed[0]), *lines[1:]))


_KINDS = {"fits": "fits", "tight": "tight", "does_not_fit": "does not fit"}


def _sentence(estimate: Estimate) -> str:
    return f"{_subject(estimate)}: {_outcome(estimate)}"


def _outcome(estimate: Estimate) -> str:
    reason = estimate.verdict.reason.text
    kind = _KINDS.get(estimate.verdict.kind)
    return f"unknown, because {within(reason)}." if kind is None else f"{kind}. {reason}"


def _subject(estimate: Estimate) -> str:
    scenario = estimate.scenario
    count, used = scenario.device.count, scenario.parallelism.devices
    many = f"{count} × " if count > 1 else ""
    if used < count:
        many = f"{used} of {many}"
    return f"{scenario.model.name or 'The model'}, {scenario.task}, on {many}{scenario.device.name}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _parts(
    nodes: tuple[Node, ...], above: tuple[Node, ...] = ()
) -> Iterator[tuple[int, tuple[Node, ...], Node]]:
    for node in nodes:
        path = (*above, node)
        yield len(above), path, node
        yield from _parts(node.children, path)


def field_lines(fields: Iterable[Mapping[str, Any]]) -> str:
    """The fields that :func:`memgui.planning.as_json.field_objects` lists, a few lines for each."""
    return "\n".join(line for entry in fields for line in _field(entry))


def _field(entry: Mapping[str, Any]) -> Iterator[str]:
    unit = f", {entry['unit']}" if entry["unit"] not in ("", None, entry["type"]) else ""
    yield f"{entry['path']}  ({entry['type']}{unit})"
    if entry["choices"]:
        yield f"    one of: {', '.join(entry['choices'])}{', or any other' if entry['open_choices'] else ''}"
    if entry["minimum"] is not None:
        most = "" if entry["maximum"] is None else f" to {entry['maximum']:,}"
        yield f"    range: {entry['minimum']:,}{most or ' or more'}"
    yield f"    default: {_default(entry['default'])}"
    yield f"    {entry['meaning']}"


def _default(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None or value == "" else str(value)
