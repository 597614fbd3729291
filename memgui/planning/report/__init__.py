"""The report: one page about one set-up, as Markdown, HTML, CSV or JSON, and the verdict in a line.

``page(estimate, words, …)`` makes the page in the person's words; :func:`markdown`, :func:`html` and
:func:`as_csv` set it; :func:`as_json` is the command line's object with what was measured beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memgui.estimator.result import Estimate
from memgui.planning.as_json import estimate_object
from memgui.planning.measured.records import Measurement, to_plain
from memgui.planning.report.page import Fact, Line, Listed, MeasuredLine, Page, Section, page
from memgui.planning.report.verdict import device_text, verdict_line, work_text
from memgui.planning.report.writers import Picture, as_csv, html, markdown
from memgui.spec import NO_REPORT, ImportReport, Issue, Message

__all__ = [
    "Fact",
    "Line",
    "Listed",
    "MeasuredLine",
    "Page",
    "Picture",
    "Section",
    "as_csv",
    "as_json",
    "device_text",
    "html",
    "markdown",
    "page",
    "verdict_line",
    "work_text",
]


def as_json(
    estimate: Estimate,
    *,
    name: str = "",
    issues: Sequence[Issue] = (),
    assumed: Sequence[Message] = (),
    measured: Sequence[Measurement] = (),
    report: ImportReport = NO_REPORT,
) -> str:
    """``memgui estimate --json``, before it the name, what was measured, what became of the model's file."""
    head: dict[str, Any] = {"name": name}
    if measured:
        head["measured"] = to_plain(tuple(measured))
    if report:
        head["import_report"] = report.to_object()
    whole = {**head, **estimate_object(estimate, issues, assumed)}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
