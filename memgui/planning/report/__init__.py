"""The report: one page about one set-up, as Markdown, HTML, CSV or JSON, and the verdict in a line.

``page(estimate, words, …)`` makes the page in the person's words; :func:`markdown`, :func:`html` and
:func:`as_csv` set it; :func:`as_json` is the command line's object with what was measured beside it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

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
    """``memgui estimate --json`` with the name and what was measured before it."""
    head = {"name": name, "measured": to_plain(tuple(measured))} if measured else {"name": name}
    whole = {**head, **estimate_object(estimate, issues, assumed, report)}
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
