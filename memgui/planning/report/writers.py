"""The page as Markdown, as HTML that needs nothing beside it, and as CSV."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from memgui.planning.report.page import Line, Page


@dataclass(frozen=True, slots=True)
class Picture:
    """The drawing of the breakdown: ``kind`` is ``svg`` or ``png``; ``label`` says what it shows."""

    data: bytes
    kind: str
    label: str
    width: int = 320

    @property
    def uri(self) -> str:
        """The picture as a ``data:`` address; nothing in it can run there."""
        mime = {"svg": "image/svg+xml", "png": "image/png"}[self.kind]
        return f"data:{mime};base64,{base64.b64encode(self.data).decode('ascii')}"


def markdown(page: Page) -> str:
    """The page in GitHub's Markdown."""
    lines = [f"# {_inline(page.title)}", "", f"**{_inline(page.verdict)}**", ""]
    lines += [f"- {_inline(fact.label)}: {_inline(fact.value)}" for fact in page.facts]
    lines += ["", f"## {_inline(page.breakdown_title)}", ""]
    rows = ((_part(line), line.size, line.share, line.exact, _code(line.formula)) for line in page.breakdown)
    total = page.total
    last = (f"**{_inline(total.label)}**", f"**{total.size}**", total.share, total.exact, "")
    lines += _table(page.heads, (*rows, last), (":---", "---:", "---:", "---:", ":---"))
    if page.measured:
        lines += ["", f"## {_inline(page.measured_title)}", ""]
        measured = ((_inline(one.label), one.measured, one.estimated, one.gap) for one in page.measured)
        lines += _table(page.measured_heads, measured, (":---", "---:", "---:", "---:"))
    lines += ["", f"## {_inline(page.inputs_title)}"]
    for section in page.inputs:
        lines += ["", f"### {_inline(section.title)}", ""]
        lines += [f"- {_inline(fact.label)}: {_inline(fact.value)}" for fact in section.facts]
    for listed in page.lists:
        lines += ["", f"## {_inline(listed.title)}", "", *(f"- {_inline(one)}" for one in listed.sentences)]
    if page.made:
        lines += ["", f"*{_inline(page.made)}*"]
    return "\n".join(lines) + "\n"


def _part(line: Line) -> str:
    if len(line.path) == 1:
        return f"**{_inline(line.label)}**"
    return f"&nbsp;&nbsp;&nbsp;&nbsp;{_inline(line.label)}"


_ESCAPED = {ord(mark): f"\\{mark}" for mark in "\\`*_[]|~#"} | {
    ord("<"): "&lt;",
    ord(">"): "&gt;",
    ord("&"): "&amp;",
    ord("\n"): " ",
    ord("\r"): " ",
}


def _inline(text: str) -> str:
    """``text`` with nothing in it that Markdown would read as its own."""
    return text.translate(_ESCAPED)


def _code(formula: str) -> str:
    return f"`{formula}`".replace("|", "\\|") if formula else ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], sides: Sequence[str]) -> list[str]:
    return [
        "| " + " | ".join(map(_inline, heads)) + " |",
        "| " + " | ".join(sides) + " |",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


_STYLE = """
body { font: 14px/1.45 Inter, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", sans-serif;
       color: #1b1f26; background: #fff; max-width: 52em; margin: 2em auto; padding: 0 1em;
       overflow-wrap: anywhere; }
h1 { font-size: 1.6em; margin: 0 0 .4em; } h2 { font-size: 1.15em; margin: 1.6em 0 .4em; }
h3 { font-size: 1em; margin: 1em 0 .2em; }
.verdict { font-weight: 600; border-left: 4px solid #606876; padding: .3em 0 .3em .8em; }
.fits { border-color: #17693a; } .tight { border-color: #8a5800; } .does_not_fit { border-color: #b3261e; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .2em .6em .2em 0; text-align: left; }
th { font-weight: 400; font-size: .92em; color: #4f5765; border-bottom: 1px solid #dde0e6; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.c td { font-weight: 600; padding-top: .5em; } .total td { font-weight: 600; border-top: 2px solid #828a98; }
.part { padding-left: 1.4em; color: #4f5765; }
code { font-size: .88em; color: #4f5765; } td.k { color: #4f5765; width: 16em; vertical-align: top; }
footer { color: #606876; font-size: .85em; margin-top: 2em; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""


def html(page: Page, picture: Picture | None = None, language: str = "en") -> str:
    """The page as one file: no scripts, nothing fetched, every text escaped."""
    return "\n".join(_html(page, picture, language)) + "\n"


def _html(page: Page, picture: Picture | None, language: str) -> Iterator[str]:
    yield f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">'
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{escape(page.title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    yield f"<h1>{escape(page.title)}</h1>"
    yield f'<p class="verdict {escape(page.kind)}">{escape(page.verdict)}</p>'
    if picture is not None:
        label = escape(picture.label)
        yield f'<p><img src="{picture.uri}" alt="{label}" width="{picture.width}"></p>'
    yield from _pairs([(fact.label, fact.value) for fact in page.facts])
    yield f"<h2>{escape(page.breakdown_title)}</h2>\n<table>"
    yield _heads(page.heads, numbers={1, 2, 3})
    for line in page.breakdown:
        yield _row(line, ' class="c"' if len(line.path) == 1 else "")
    yield _row(page.total, ' class="total"') + "\n</table>"
    if page.measured:
        yield f"<h2>{escape(page.measured_title)}</h2>\n<table>"
        yield _heads(page.measured_heads, numbers={1, 2, 3})
        for one in page.measured:
            cells = "".join(
                f'<td class="n">{escape(text)}</td>' for text in (one.measured, one.estimated, one.gap)
            )
            yield f"<tr><td>{escape(one.label)}</td>{cells}</tr>"
        yield "</table>"
    yield f"<h2>{escape(page.inputs_title)}</h2>"
    for section in page.inputs:
        yield f"<h3>{escape(section.title)}</h3>"
        yield from _pairs([(fact.label, fact.value) for fact in section.facts])
    for listed in page.lists:
        sentences = "".join(f"<li>{escape(one)}</li>" for one in listed.sentences)
        yield f"<h2>{escape(listed.title)}</h2>\n<ul>{sentences}</ul>"
    if page.made:
        yield f"<footer>{escape(page.made)}</footer>"
    yield "</body>\n</html>"


def _heads(heads: Sequence[str], numbers: set[int]) -> str:
    cells = (
        f'<th class="n">{escape(head)}</th>' if at in numbers else f"<th>{escape(head)}</th>"
        for at, head in enumerate(heads)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _row(line: Line, of: str) -> str:
    depth = ' class="part"' if len(line.path) > 1 else ""
    numbers = "".join(f'<td class="n">{escape(text)}</td>' for text in (line.size, line.share, line.exact))
    formula = f"<code>{escape(line.formula)}</code>" if line.formula else ""
    return f"<tr{of}><td{depth}>{escape(line.label)}</td>{numbers}<td>{formula}</td></tr>"


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "<table>"
    for label, value in pairs:
        yield f'<tr><td class="k">{escape(label)}</td><td>{escape(value)}</td></tr>'
    yield "</table>"


def as_csv(page: Page) -> str:
    """The page as rows: what it is, its key, its label, its value, its bytes.

    A value that a spreadsheet would take for a formula is preceded by an apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("kind", "key", "label", "value", "bytes"))
    rows: list[tuple[str, str, str, str, int | str]] = [("verdict", page.kind, page.title, page.verdict, "")]
    rows += [("fact", "", fact.label, fact.value, "") for fact in page.facts]
    rows += [
        ("input", fact.path, fact.label, fact.value, "") for section in page.inputs for fact in section.facts
    ]
    rows += [("part", "/".join(line.path), line.label, line.size, line.bytes) for line in page.breakdown]
    rows.append(("total", "", page.total.label, page.total.size, page.total.bytes))
    rows += [("measured", "", one.label, one.measured, one.measured_bytes) for one in page.measured]
    rows += [("list", "", listed.title, one, "") for listed in page.lists for one in listed.sentences]
    for row in rows:
        writer.writerow([_harmless(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
