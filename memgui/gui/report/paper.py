"""The report set on one page: verdict, donut and facts, breakdown, inputs, what was assumed, sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QRectF
from PySide6.QtGui import QPagedPaintDevice, QPageLayout, QPageSize, QPainter, QPdfWriter, QTextDocument
from PySide6.QtWidgets import QApplication

from memgui.gui.donut.painting import Scene
from memgui.gui.palette import LIGHT
from memgui.gui.report.picture import paint_picture
from memgui.planning.report import Fact, Line, Page, Section

MARGIN = 36.0
"""Points on each side; a point is 1/72 inch."""
LARGEST, SMALLEST, STEP = 9.0, 5.0, 0.25
"""Sizes of the text in points: the largest with which everything stands on the page is taken."""
EM = 100
"""The text's size in the units that a sheet is laid out in."""
GAP = 1.0 * EM
DONUT, DONUT_HEIGHT = 0.42, 20.0 * EM
"""The donut's share of the width, and its least height."""

Put = Callable[[str, float, float, float], float]
"""Places a text at left, width, top; where it ends."""


def pdf_bytes(page: Page, scene: Scene | None) -> bytes:
    """The page as the bytes of a PDF file, A4, text as text."""
    held = QByteArray()
    buffer = QBuffer(held)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setTitle(page.title)
    writer.setCreator("memgui")
    writer.setResolution(1200)
    size = QPageSize(QPageSize.PageSizeId.A4)
    writer.setPageLayout(QPageLayout(size, QPageLayout.Orientation.Portrait, QMarginsF()))
    print_page(writer, page, scene)
    buffer.close()
    return bytes(held.data())


def print_page(device: QPagedPaintDevice, page: Page, scene: Scene | None) -> None:
    """Paint the page on paper: a printer or a PDF, whatever its size and resolution."""
    layout = device.pageLayout()
    whole = layout.fullRect(QPageLayout.Unit.Point)
    printable = layout.paintRect(QPageLayout.Unit.Point)
    margin = max(MARGIN, printable.left(), whole.width() - printable.right())
    painter = QPainter(device)
    try:
        painter.scale(device.logicalDpiX() / 72, device.logicalDpiY() / 72)
        painter.translate(margin - printable.left(), margin - printable.top())
        _paint(painter, page, scene, whole.width() - 2 * margin, whole.height() - 2 * margin)
    finally:
        painter.end()


def _paint(painter: QPainter, page: Page, scene: Scene | None, width: float, height: float) -> None:
    """As large as the text can be on ``width`` by ``height`` points."""
    size = LARGEST
    sheet = _Sheet(page, scene, width / size * EM)
    while size > SMALLEST and sheet.height > height / size * EM:
        size -= STEP
        sheet = _Sheet(page, scene, width / size * EM)
    factor = min(size / EM, height / sheet.height)  # a page of very many words is shrunk as a whole
    painter.scale(factor, factor)
    sheet.paint(painter)


class _Sheet:
    """The page laid out for a width; lengths are hundredths of the text's size."""

    def __init__(self, page: Page, scene: Scene | None, width: float) -> None:
        self._page = page
        self._scene = scene
        self._width = width
        self._blocks: list[tuple[QTextDocument, QRectF]] = []
        self._donut = QRectF()
        self._strip = QRectF()
        self.height = self._lay_out()

    def paint(self, painter: QPainter) -> None:
        """Every block, the verdict's strip, the donut."""
        for document, place in self._blocks:
            painter.save()
            painter.translate(place.topLeft())
            document.drawContents(painter)
            painter.restore()
        painter.fillRect(self._strip, LIGHT.verdict(self._page.kind))
        if self._scene is not None:
            factor = 0.92 * EM / 13  # the donut's lengths are px beside a 13 px body
            painter.translate(self._donut.topLeft())
            painter.scale(factor, factor)
            size = self._donut.size() / factor
            paint_picture(painter, self._scene, QRectF(0, 0, size.width(), size.height()))

    def _put(self, body: str, left: float, width: float, top: float) -> float:
        document = QTextDocument()
        font = QApplication.font()
        font.setPixelSize(EM)
        document.setDefaultFont(font)
        document.setDocumentMargin(0)
        document.setDefaultStyleSheet(_STYLE)
        document.setHtml(f"<body>{body}</body>")
        document.setTextWidth(width)
        high = document.size().height()
        self._blocks.append((document, QRectF(left, top, width, high)))
        return top + high

    def _lay_out(self) -> float:
        """Place every block; the height they need."""
        page, width, put = self._page, self._width, self._put
        top = put(f"<h1>{escape(page.title)}</h1>", 0, width, 0)
        start = top
        top = put(f"<p><b>{escape(page.verdict)}</b></p>", 0.8 * EM, width - 0.8 * EM, top)
        self._strip = QRectF(0, start, 0.3 * EM, top - start)
        top += GAP
        left = width * DONUT if self._scene is not None else 0.0
        end = put(_facts(page.facts), left, width - left, top)
        if left:
            end = max(end, top + DONUT_HEIGHT)
            self._donut = QRectF(0, top, left - GAP, end - top)
        top = put("".join(_breakdown(page)), 0, width, end + GAP) + GAP
        if page.measured:
            top = put("".join(_measured(page)), 0, width, top) + GAP
        top = put(f"<h2>{escape(page.inputs_title)}</h2>", 0, width, top)
        inputs = [_section(one) for one in _shared_out(page.inputs, 3)]
        top = _columns(inputs, 3, width, top, put) + GAP / 2
        lists = [_listed(one.title, one.sentences) for one in page.lists]
        top = _columns(lists, 2, width, top, put)
        if page.made:
            top = put(f'<p class="quiet">{escape(page.made)}</p>', 0, width, top + GAP / 2)
        return top


def _shared_out(sections: Sequence[Section], count: int) -> Iterator[Section]:
    """A section longer than its share of ``count`` columns goes on in another, under its title again."""
    rows = sum(len(one.facts) + 2 for one in sections)
    most = max(8, -(-rows // count))
    for one in sections:
        for at in range(0, len(one.facts), most):
            yield Section(one.title, one.facts[at : at + most])


def _columns(bodies: Sequence[str], count: int, width: float, top: float, put: Put) -> float:
    """Blocks in columns, each below the shortest; the lowest end."""
    wide = (width - 2 * GAP * (count - 1)) / count
    ends = [top] * count
    for body in bodies:
        at = ends.index(min(ends))
        ends[at] = put(body, at * (wide + 2 * GAP), wide, ends[at]) + GAP / 2
    return max(ends)


_STYLE = """
body { color: #1b1f26; }
h1 { font-size: 165px; margin: 0 0 30px 0; }
h2 { font-size: 112px; margin: 0 0 20px 0; }
h3 { font-size: 96px; margin: 0 0 10px 0; }
p { margin: 0; }
.quiet { color: #606876; font-size: 84px; }
.head { color: #4f5765; font-size: 88px; }
.key { color: #4f5765; }
.code { color: #4f5765; font-size: 80px; }
.small { font-size: 88px; }
"""


def _table(rows: Iterable[str]) -> str:
    return f'<table width="100%" cellspacing="0" cellpadding="6">{"".join(rows)}</table>'


def _facts(facts: Sequence[Fact]) -> str:
    return _table(
        f'<tr><td class="key" width="38%">{escape(one.label)}</td><td>{escape(one.value)}</td></tr>'
        for one in facts
    )


def _section(section: Section) -> str:
    rows = (
        f'<tr><td class="key small" width="56%">{escape(one.label)}</td>'
        f'<td class="small">{escape(one.value)}</td></tr>'
        for one in section.facts
    )
    return f"<h3>{escape(section.title)}</h3>{_table(rows)}"


def _listed(title: str, sentences: Sequence[str]) -> str:
    return f"<h2>{escape(title)}</h2>" + "".join(f'<p class="small">– {escape(one)}</p>' for one in sentences)


def _heads(heads: Sequence[str]) -> str:
    first, *others = heads
    cells = "".join(f'<td class="head" align="right">{escape(head)}</td>' for head in others)
    return f'<tr><td class="head">{escape(first)}</td>{cells}</tr>'


def _breakdown(page: Page) -> Iterator[str]:
    yield f"<h2>{escape(page.breakdown_title)}</h2>"
    part, size, share, exact, formula = map(escape, page.heads)
    rows = [
        f'<tr><td class="head" width="30%">{part}</td><td class="head" align="right">{size}</td>'
        f'<td class="head" align="right">{share}</td><td class="head" align="right">{exact}</td>'
        f'<td class="head" width="34%">&nbsp;&nbsp;{formula}</td></tr>'
    ]
    rows += [_line(line) for line in page.breakdown if line.bytes]
    rows.append(_line(page.total))
    yield _table(rows)


def _line(line: Line) -> str:
    whole = len(line.path) < 2
    label = escape(line.label)
    if len(line.path) == 1:
        fill = LIGHT.component(line.path[0]).fill.name()
        label = f'<span style="color:{fill}">■</span> {label}'
    elif not whole:
        label = f"&nbsp;&nbsp;&nbsp;&nbsp;&nbsp;{label}"
    figures = "".join(
        f'<td align="right">{_bold(text, whole)}</td>' for text in (line.size, line.share, line.exact)
    )
    formula = f'<td class="code">&nbsp;&nbsp;{escape(line.formula)}</td>'
    return f"<tr><td>{_bold(label, whole, ready=True)}</td>{figures}{formula}</tr>"


def _bold(text: str, on: bool, ready: bool = False) -> str:
    shown = text if ready else escape(text)
    return f"<b>{shown}</b>" if on else f'<span class="key">{shown}</span>'


def _measured(page: Page) -> Iterator[str]:
    yield f"<h2>{escape(page.measured_title)}</h2>"
    rows = [_heads(page.measured_heads)]
    for one in page.measured:
        cells = "".join(
            f'<td align="right">{escape(text)}</td>' for text in (one.measured, one.estimated, one.gap)
        )
        rows.append(f"<tr><td>{escape(one.label)}</td>{cells}</tr>")
    yield _table(rows)
