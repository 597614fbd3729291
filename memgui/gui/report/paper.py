"""The report set on paper: verdict, donut and facts, breakdown, inputs, what was assumed, sources.

One page where that can be read; what is more goes on over others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QCoreApplication,
    QIODevice,
    QMarginsF,
    QPointF,
    QRectF,
    QSizeF,
)
from PySide6.QtGui import QPagedPaintDevice, QPageLayout, QPageSize, QPainter, QPdfWriter, QTextDocument
from PySide6.QtWidgets import QApplication

from memgui.gui.donut.painting import Scene
from memgui.gui.palette import LIGHT
from memgui.gui.report.picture import paint_picture
from memgui.planning.report import Fact, Line, Listed, Page, Section

MARGIN = 32.0
"""Points on each side; a point is 1/72 inch."""
LARGEST, SMALLEST, STEP = 9.0, 8.0, 0.25
"""Sizes of the text in points: the largest with which everything stands on one page is taken.

What would be smaller goes on over further pages: nothing on paper is too small to read.
"""
EM = 100
"""The text's size in the units that a sheet is laid out in."""
GAP = 0.8 * EM
DONUT, DONUT_HEIGHT = 0.42, 14.0 * EM
"""The donut's share of the width, and its least height."""
FOOT = 1.6 * EM
"""Kept free for the number of the page, where there are several."""


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
    """Paint the report on paper: a printer or a PDF, whatever its size and resolution."""
    layout = device.pageLayout()
    whole = layout.fullRect(QPageLayout.Unit.Point)
    printable = layout.paintRect(QPageLayout.Unit.Point)
    margin = max(MARGIN, printable.left(), whole.width() - printable.right())
    painter = QPainter(device)
    try:
        painter.scale(device.logicalDpiX() / 72, device.logicalDpiY() / 72)
        painter.translate(margin - printable.left(), margin - printable.top())
        room = QSizeF(whole.width() - 2 * margin, whole.height() - 2 * margin)
        _paint(painter, device.newPage, page, scene, room)
    finally:
        painter.end()


def _paint(
    painter: QPainter, turn: Callable[[], object], page: Page, scene: Scene | None, room: QSizeF
) -> None:
    """As large as the text can be on one page with ``room`` in points, else on as many as it takes."""
    size, sheet = _largest(lambda size: _Sheet(page, scene, room / size * EM))
    if sheet.pages > 1:
        size, sheet = _largest(lambda size: _Sheet(page, scene, room / size * EM, FOOT))
    painter.scale(size / EM, size / EM)
    for number in range(sheet.pages):
        if number:
            turn()
        painter.save()
        sheet.paint(painter, number)
        painter.restore()


def _largest(laid_out: Callable[[float], _Sheet]) -> tuple[float, _Sheet]:
    """The largest size of which there are no more pages than of the smallest, and its sheet."""
    sizes = [SMALLEST + step * STEP for step in range(round((LARGEST - SMALLEST) / STEP) + 1)]
    made = {SMALLEST: laid_out(SMALLEST)}
    low, high = 0, len(sizes) - 1
    while low < high:
        middle = (low + high + 1) // 2
        sheet = made[sizes[middle]] = laid_out(sizes[middle])
        if sheet.pages > made[SMALLEST].pages:
            high = middle - 1
        else:
            low = middle
    return sizes[low], made[sizes[low]]


class _Sheet:
    """The report laid out on pages of a size; lengths are hundredths of the text's size.

    What belongs together (a component with its parts, a section) stands on one page.
    """

    def __init__(self, page: Page, scene: Scene | None, size: QSizeF, foot: float = 0.0) -> None:
        """``foot`` is kept free at the end of each page."""
        self._page = page
        self._scene = scene
        self._width = size.width()
        self._height = size.height()
        self._last = self._height - foot
        self._blocks: list[tuple[int, QTextDocument, QPointF]] = []
        self._donut = QRectF()
        self._strip = QRectF()
        self._number = 0
        self._top = 0.0
        self._lay_out()
        self.pages = self._number + 1

    def paint(self, painter: QPainter, number: int) -> None:
        """A page: its blocks; on the first one the verdict's strip and the donut."""
        for at, document, place in self._blocks:
            if at == number:
                _draw(painter, document, place)
        if self.pages > 1:
            foot = QCoreApplication.translate("Report", "{title}, page {number} of {count}").format(
                title=self._page.title, number=number + 1, count=self.pages
            )
            _draw(painter, _text(_quiet(foot), self._width), QPointF(0, self._height - 1.2 * EM))
        if number:
            return
        painter.fillRect(self._strip, LIGHT.verdict(self._page.kind))
        if self._scene is not None:
            factor = 0.92 * EM / 13  # the donut's lengths are px beside a 13 px body
            painter.translate(self._donut.topLeft())
            painter.scale(factor, factor)
            size = self._donut.size() / factor
            paint_picture(painter, self._scene, QRectF(0, 0, size.width(), size.height()))

    def _put(self, body: str, left: float, width: float, top: float) -> float:
        """Place a text on the page that is being filled; where it ends."""
        document = _text(body, width)
        self._blocks.append((self._number, document, QPointF(left, top)))
        return top + document.size().height()

    def _flow(self, body: str, gap: float = 0.0) -> None:
        """Place a text as wide as the page below what stands there, on the next page if need be."""
        document = _text(body, self._width)
        high = document.size().height()
        if self._top and self._top + high > self._last:
            self._number, self._top = self._number + 1, 0.0
        self._blocks.append((self._number, document, QPointF(0, self._top)))
        self._top += high + gap

    def _lay_out(self) -> None:
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
        self._top = end + GAP / 2
        for part in _breakdown(page):
            self._flow(part)
        self._top += GAP / 2
        if page.measured:
            self._flow("".join(_measured(page)), GAP)
        short, long = _parted(page.inputs)
        inputs = [_section(one) for one in _shared_out(short, 3)]
        self._columns(f"<h2>{escape(page.inputs_title)}</h2>", inputs, 3)
        for fact in long:
            self._flow(f'<p><span class="key">{escape(fact.label)}</span> &nbsp;{escape(fact.value)}</p>')
        self._top += GAP / 2
        lists = [one for one in page.lists if one.sentences]
        for one in lists:
            self._flow(_listed(one), GAP / 2)
        if page.made:
            self._flow(_quiet(page.made))

    def _columns(self, title: str, bodies: Sequence[str], count: int) -> None:
        """A title, and blocks in columns beneath, each below the shortest; on one page if they can."""
        wide = (self._width - 2 * GAP * (count - 1)) / count
        documents = [_text(body, wide) for body in bodies]
        head = _text(title, self._width) if title else None
        high = head.size().height() if head is not None else 0.0
        most = self._last
        places = _placed([one.size().height() + GAP / 2 for one in documents], count, most - self._top - high)
        if places is None and self._top:
            self._number, self._top = self._number + 1, 0.0
            places = _placed([one.size().height() + GAP / 2 for one in documents], count, most - high)
        if head is not None:
            self._blocks.append((self._number, head, QPointF(0, self._top)))
        self._top += high
        ends = [0.0]
        for document, (column, top) in zip(documents, places or (), strict=bool(places)):
            at = QPointF(column * (wide + 2 * GAP), self._top + top)
            self._blocks.append((self._number, document, at))
            ends.append(top + document.size().height())
        if places is None:  # more than a page: one below the other
            for body in bodies:
                self._flow(body, GAP / 2)
            return
        self._top += max(ends) + GAP / 2


def _placed(heights: Sequence[float], count: int, room: float) -> list[tuple[int, float]] | None:
    """Column and top of each block, each below the shortest column; ``None`` where there is no room."""
    ends = [0.0] * count
    places: list[tuple[int, float]] = []
    for high in heights:
        at = ends.index(min(ends))
        places.append((at, ends[at]))
        ends[at] += high
    return places if max(ends, default=0.0) <= room else None


def _draw(painter: QPainter, document: QTextDocument, place: QPointF) -> None:
    painter.save()
    painter.translate(place)
    document.drawContents(painter)
    painter.restore()


def _text(body: str, width: float) -> QTextDocument:
    document = QTextDocument()
    font = QApplication.font()
    font.setPixelSize(EM)
    document.setDefaultFont(font)
    document.setDocumentMargin(0)
    document.setDefaultStyleSheet(_STYLE)
    document.setHtml(f"<body>{body}</body>")
    document.setTextWidth(width)
    return document


def _quiet(text: str) -> str:
    return f'<p class="quiet">{escape(text)}</p>'


LONG = 44
"""Letters of a value from which on it has a line of its own."""


def _parted(sections: Sequence[Section]) -> tuple[list[Section], list[Fact]]:
    """What goes into columns, and what is too long for one."""
    short = [Section(one.title, tuple(f for f in one.facts if len(f.value) <= LONG)) for one in sections]
    long = [fact for one in sections for fact in one.facts if len(fact.value) > LONG]
    return [one for one in short if one.facts], long


def _shared_out(sections: Sequence[Section], count: int) -> Iterator[Section]:
    """A section longer than its share of ``count`` columns goes on in another, under its title again."""
    rows = sum(len(one.facts) + 2 for one in sections)
    most = max(8, -(-rows // count))
    for one in sections:
        for at in range(0, len(one.facts), most):
            yield Section(one.title, one.facts[at : at + most])


_STYLE = """
body { color: #1b1f26; }
td, p { line-height: 95%; }
h1 { font-size: 165px; margin: 0 0 30px 0; }
h2 { font-size: 120px; margin: 0 0 10px 0; }
h3 { font-size: 100px; margin: 0 0 5px 0; }
p { margin: 0; }
.quiet, .head, .key, .code { color: #4f5765; }
"""


def _table(rows: Iterable[str]) -> str:
    return f'<table width="100%" cellspacing="0" cellpadding="3">{"".join(rows)}</table>'


def _facts(facts: Sequence[Fact]) -> str:
    return _table(
        f'<tr><td class="key" width="38%">{escape(one.label)}</td><td>{escape(one.value)}</td></tr>'
        for one in facts
    )


def _section(section: Section) -> str:
    rows = (
        f'<tr><td class="key" width="50%">{escape(one.label)}</td><td>{escape(one.value)}</td></tr>'
        for one in section.facts
    )
    return f"<h3>{escape(section.title)}</h3>{_table(rows)}"


def _listed(one: Listed) -> str:
    if one.reference:
        body = f"<p>{escape(' · '.join(one.sentences))}</p>"
    else:
        body = "".join(f"<p>– {escape(sentence)}</p>" for sentence in one.sentences)
    return f"<h2>{escape(one.title)}</h2>{body}"


def _heads(heads: Sequence[str]) -> str:
    first, *others = heads
    cells = "".join(f'<td class="head" align="right">{escape(head)}</td>' for head in others)
    return f'<tr><td class="head">{escape(first)}</td>{cells}</tr>'


WIDTHS = (24, 13, 9, 20, 34)
"""Of the breakdown's columns, in per cent: every table of it has the same."""


def _breakdown(page: Page) -> Iterator[str]:
    """Heading and heads with the first component, then each component with its parts, then the total."""
    part, size, share, exact, formula = map(escape, page.heads)
    first = f"<h2>{escape(page.breakdown_title)}</h2>"
    figures = [f'class="head" align="right">{head}' for head in (size, share, exact)]
    rows = [_cells((f'class="head">{part}', *figures, f'class="head">&nbsp;&nbsp;{formula}'))]
    for line in page.breakdown:
        if not line.bytes:
            continue
        if len(line.path) == 1 and len(rows) > 1:
            yield first + _table(rows)
            first, rows = "", []
        rows.append(_line(line))
    yield first + _table([*rows, _line(page.total)])


def _cells(cells: Iterable[str]) -> str:
    made = "".join(f'<td width="{wide}%" {cell}</td>' for wide, cell in zip(WIDTHS, cells, strict=True))
    return f"<tr>{made}</tr>"


def _line(line: Line) -> str:
    whole = len(line.path) < 2
    label = escape(line.label)
    if len(line.path) == 1:
        fill = LIGHT.component(line.path[0]).fill.name()
        label = f'<span style="color:{fill}">■</span> {label}'
    elif not whole:
        label = f"&nbsp;&nbsp;&nbsp;&nbsp;&nbsp;{label}"
    texts = (text.replace(" ", "\u00a0") for text in (line.size, line.share, line.exact))
    figures = [f'align="right">{_bold(text, whole)}' for text in texts]
    formula = f'class="code">&nbsp;&nbsp;{escape(line.formula)}'
    return _cells((f">{_bold(label, whole, ready=True)}", *figures, formula))


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
