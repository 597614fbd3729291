"""The Measured tab: enter a figure or paste a log; each run beside the estimate, with explanations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import (
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from memgui.document.measurements import Measurements
from memgui.document.result import Result
from memgui.estimator.result import Estimate
from memgui.gui.context import AppContext
from memgui.gui.controls.buttons import Button, ToolButton
from memgui.gui.controls.fields import ComboBox, LineEdit
from memgui.gui.controls.scrolling import slim
from memgui.gui.measured.rows import MeasuredRows
from memgui.gui.numbers import Numbers
from memgui.gui.texts import issue_text
from memgui.gui.theme import Look, Role
from memgui.gui.tips import two_lines
from memgui.gui.why.qt_words import QtWords
from memgui.planning.measured import COUNTERS, ENTERED, Counter, Explanation, Measurement, subject
from memgui.spec import QT_TRANSLATE_NOOP, ScenarioError, fault_issue

translate = QCoreApplication.translate
log = logging.getLogger(__name__)

NO_READING = QT_TRANSLATE_NOOP(
    "messages", "memgui has a fault and cannot read this text ({error}); nothing is changed."
)
_SOURCES = {
    "typed": QT_TRANSLATE_NOOP("measured", "Entered"),
    "memory_summary": QT_TRANSLATE_NOOP("measured", "PyTorch’s memory summary"),
    "memory_stats": QT_TRANSLATE_NOOP("measured", "PyTorch’s memory statistics"),
    "printed": QT_TRANSLATE_NOOP("measured", "PyTorch’s counters, as printed"),
    "out_of_memory": QT_TRANSLATE_NOOP("measured", "PyTorch’s out-of-memory message"),
    "nvidia_smi": QT_TRANSLATE_NOOP("measured", "nvidia-smi"),
    "vllm": QT_TRANSLATE_NOOP("measured", "vLLM’s log"),
    "llama.cpp": QT_TRANSLATE_NOOP("measured", "llama.cpp’s log"),
}


class _Line(QWidget):
    """One explanation; what it would change is one press away."""

    def __init__(self, text: str, button: Button | None, parent: QWidget) -> None:
        super().__init__(parent)
        look = Look.of(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, look.px(2), 0, look.px(2))
        row.setSpacing(look.px(12))
        label = QLabel(text, self)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setWordWrap(True)
        label.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        row.addWidget(label, 1)
        if button is not None:
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)


EXAMPLE = 25_125_558_682
"""Bytes of a run, as a person would type them: 23.4 GiB."""


class _Run(QWidget):
    """One measurement: where it comes from, its figures, what could explain the difference."""

    def __init__(self, page: MeasuredPage, index: int, run: Measurement, estimate: Estimate) -> None:
        super().__init__()
        look = Look.of(self)
        numbers = page.numbers()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, look.px(6), 0, look.px(8))
        column.setSpacing(look.px(4))
        head = QHBoxLayout()
        source = translate("measured", _SOURCES.get(run.source, run.source))
        title = QLabel(source, self)
        title.setTextFormat(Qt.TextFormat.PlainText)
        title.setFont(look.font(Role.BODY, 600))
        if run.of and run.of != subject(estimate.scenario):
            title.setText(self.tr("{source} · a run of {set_up}").format(source=source, set_up=run.of))
            other = self.tr("Another set-up is open now: the figures beside it are not of this run.")
            title.setToolTip(two_lines(run.of, other))
        head.addWidget(title, 1)
        forget = ToolButton("trash", self.tr("Forget this run"), self)
        forget.clicked.connect(lambda: page.remove(index))
        head.addWidget(forget)
        column.addLayout(head)
        self.figures = MeasuredRows(run, estimate, numbers, self)
        column.addWidget(self.figures)
        self._column = column
        self._page = page
        self._lines: list[QWidget] = []

    def show_explanations(self, found: Sequence[Explanation]) -> None:
        """Put other explanations below the figures."""
        for line in self._lines:
            line.hide()
            line.deleteLater()
        words = QtWords(self._page.numbers())
        self._lines = [self._line(one, words) for one in found]
        for line in self._lines:
            self._column.addWidget(line)

    def _line(self, one: Explanation, words: QtWords) -> QWidget:
        button = None
        if one.changes:
            values = {change.path: change.new for change in one.changes}
            button = Button(self.tr("Apply"), parent=self)
            button.setAccessibleDescription(one.said.text(words))
            button.clicked.connect(lambda: self._page.apply(values))
        return _Line(one.said.text(words), button, self)


class MeasuredPage(QWidget):
    """What is entered is kept with the set-up and its preset; each entry is an undo step."""

    def __init__(self, context: AppContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._document = context.document
        self._view = context.view
        self._estimate: Estimate | None = None
        self._shown: tuple[object, ...] = ()
        self.runs: list[_Run] = []
        self.measurements = Measurements(context.document, context.jobs, context.catalog, parent=self)
        self.setAcceptDrops(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._lay_out()
        self.setFocusProxy(self.figure)
        self.measurements.changed.connect(self._show)
        self.measurements.explained.answered.connect(self._explain)
        context.view.figures_changed.connect(self._show)
        context.view.figures_changed.connect(self._give_an_example)
        self._give_an_example()

    def _lay_out(self) -> None:
        look = Look.of(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(look.px(16), look.px(8), look.px(6), look.px(4))
        column.setSpacing(look.px(4))
        row = QHBoxLayout()
        row.setSpacing(look.px(8))
        row.setContentsMargins(0, 0, look.px(10), 0)
        self.figure = LineEdit(parent=self)
        self.figure.setAccessibleName(self.tr("What the run used"))
        self.figure.setMaxLength(80)
        self.figure.setMaximumWidth(look.px(170))
        self.counter = ComboBox(self)
        self.counter.setAccessibleName(self.tr("Which counter it is"))
        tips = {
            Counter.ALLOCATED: self.tr("torch.cuda.max_memory_allocated()"),
            Counter.RESERVED: self.tr("torch.cuda.max_memory_reserved()"),
            Counter.PROCESS: self.tr("What nvidia-smi shows for the process"),
        }
        for counter in ENTERED:
            self.counter.add_choice(counter, translate("measured", COUNTERS[counter]), tip=tips[counter])
        self.counter.setMinimumContentsLength(16)
        self.enter = Button(self.tr("Enter"), parent=self)
        self.paste = Button(self.tr("Paste a log"), "import", parent=self)
        label = QLabel(self.tr("A run used"), self)
        label.setBuddy(self.figure)
        widgets: tuple[QWidget, ...] = (label, self.figure, self.counter, self.enter)
        for widget in widgets:
            row.addWidget(widget)
        row.addStretch(1)
        row.addWidget(self.paste)
        column.addLayout(row)
        self.fault = QLabel(self)
        self.fault.setTextFormat(Qt.TextFormat.PlainText)
        self.fault.setWordWrap(True)
        self.fault.hide()
        column.addWidget(self.fault)
        self.empty = QLabel(self)
        self.empty.setWordWrap(True)
        self.empty.setContentsMargins(0, look.px(4), look.px(10), 0)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.empty.setText(
            self.tr(
                "Enter what a run really used, or paste what it printed: torch.cuda.memory_summary(), "
                "memory_stats() or max_memory_allocated(), an out-of-memory message, nvidia-smi, the "
                "start-up log of vLLM or llama.cpp. It is only read, set beside the estimate part by part, "
                "and kept with the preset."
            )
        )
        column.addWidget(self.empty)
        inner = QWidget()
        self._list = QVBoxLayout(inner)
        self._list.setContentsMargins(0, 0, look.px(10), 0)
        self._list.addStretch(1)
        self._area = QScrollArea(self)
        slim(self._area)
        self._area.setWidgetResizable(True)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setWidget(inner)
        for part in (self._area, self._area.viewport(), inner):
            part.setAutoFillBackground(False)
        column.addWidget(self._area, 1)
        self.enter.clicked.connect(self.enter_figure)
        self.figure.returnPressed.connect(self.enter_figure)
        self.figure.textEdited.connect(lambda _: self._refuse(None))
        self.paste.clicked.connect(lambda: self.read(QGuiApplication.clipboard().text()))

    def numbers(self) -> Numbers:
        """How figures are written now."""
        return Numbers.of(self._view.view)

    def _give_an_example(self) -> None:
        self.figure.setPlaceholderText(self.numbers().sentence(EXAMPLE))

    # what the person does

    def enter_figure(self) -> None:
        """Keep the typed figure."""
        counter = Counter(self.counter.currentData())
        try:
            self.measurements.enter(self.figure.text(), counter, self.tr("Measured figure"))
        except ScenarioError as error:
            self._refuse(error)
        else:
            self.figure.clear()
            self._refuse(None)

    def read(self, text: str) -> None:
        """Keep what a log says."""
        try:
            self.measurements.read(text, self.tr("Measured run"))
        except ScenarioError as error:
            self._refuse(error)
        except Exception as error:  # the text is a stranger's, and our reading of it may fail
            log.exception("a pasted text cannot be read")
            self._refuse(ScenarioError(fault_issue(error, NO_READING)))
        else:
            self._refuse(None)

    def remove(self, index: int) -> None:
        """Forget a run; undo brings it back."""
        self.measurements.remove(index, self.tr("Forget a run"))

    def apply(self, values: dict[str, Any]) -> None:
        """Set the set-up to what an explanation supposes: one undo step."""
        self._document.step(values, self.tr("As measured"))

    def _refuse(self, error: ScenarioError | None) -> None:
        self.figure.set_invalid(error is not None and bool(self.figure.text()))
        self.fault.setText(issue_text(error.issue) if error is not None else "")
        self.fault.setVisible(error is not None)
        palette = self.fault.palette()
        palette.setColor(self.fault.foregroundRole(), Look.of(self).colours.bad)
        self.fault.setPalette(palette)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Paste):
            self.read(QGuiApplication.clipboard().text())
        else:
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasText() and not event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        self.read(event.mimeData().text())

    # results

    def set_result(self, result: Result) -> None:
        """Set the runs beside another estimate; the last good one where there is none."""
        self._estimate = result.shown
        if self.isVisible():
            self._show()

    def _show(self, _: object = None) -> None:
        estimate, runs = self._estimate, self.measurements.all
        now = (estimate, runs, self._view.view.units)
        if estimate is None or not self.isVisible() or now == self._shown:
            return
        self._shown = now
        for run in self.runs:
            run.hide()
            run.deleteLater()
        self.runs = [_Run(self, index, one, estimate) for index, one in enumerate(runs)]
        for at, run in enumerate(reversed(self.runs)):  # the newest first
            self._list.insertWidget(at, run)
        self.empty.setVisible(not runs)
        self.measurements.explained.want("measured", bool(runs))
        if self.measurements.explained.is_current:
            self._explain()

    def _explain(self) -> None:
        asked = self.measurements.explained
        if asked.fault is not None:
            self._refuse(ScenarioError(asked.fault))
        found = asked.answer or ()
        for run, explanations in zip(self.runs, found, strict=False):
            run.show_explanations(explanations)

    def showEvent(self, event: QEvent) -> None:
        self._show()
        self.measurements.explained.want("measured", bool(self.measurements.all))

    def hideEvent(self, event: QEvent) -> None:
        self.measurements.explained.want("measured", False)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self).fillRect(self.rect(), Look.of(self).colours.base)
