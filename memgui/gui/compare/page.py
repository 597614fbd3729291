"""The Compare tab: pins and what is open side by side, or methods, or devices, the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_values

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QMenu, QScrollArea, QSizePolicy, QWidget

from memgui.document.answers import Answers
from memgui.document.questions import Question
from memgui.document.result import Result
from memgui.gui.compare.bars import Bars
from memgui.gui.compare.inputs import Inputs
from memgui.gui.compare.setups import SetUp, listed, pinned
from memgui.gui.compare.table import DeltaTable
from memgui.gui.context import AppContext
from memgui.gui.controls.buttons import Button
from memgui.gui.controls.scrolling import slim
from memgui.gui.controls.segmented import SegmentedSwitch
from memgui.gui.numbers import Numbers
from memgui.gui.pinning import Pinning
from memgui.gui.texts import issue_text
from memgui.gui.theme import Look, Role, menu_sheet
from memgui.gui.why.qt_words import QtWords
from memgui.planning.ask import surely_fits
from memgui.planning.compare import Comparison, compare

_TOP = 44
_WIDE = 660
"""From this width on (13 px body) the inputs stand beside the figures."""
_TABLE = 760
_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


class ComparePage(QWidget):
    """Works out a comparison only while it is in sight."""

    def __init__(
        self,
        context: AppContext,
        answers: Answers,
        pinning: Pinning,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._context = context
        self._answers = answers
        self._pinning = pinning
        self._result: Result | None = None
        self._set_ups: list[SetUp] = []
        self._comparison: Comparison | None = None
        self._column = -1
        self._base = 0
        self._words_end = 0
        self._said = ""
        self.bars = Bars()
        self.table = DeltaTable(context.selection)
        self.inputs = Inputs(context.selection)
        self._make_top()
        self._make_body()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setFocusProxy(self.bars)
        self.bars.chosen.connect(self._choose)
        self.bars.opened.connect(self._open)
        self.bars.removed.connect(self._unpin)
        self.bars.renamed.connect(self._ask_name)
        self.bars.menu_asked.connect(self._show_menu)
        context.pins.changed.connect(self._look_again)
        context.view.figures_changed.connect(self._look_again)
        for question in (answers.methods, answers.devices):
            question.answered.connect(self._look_again)
        self._place()

    def _make_top(self) -> None:
        self.mode = SegmentedSwitch(self.tr("What to compare"), self)
        for value, text in (
            ("pins", self.tr("Set-ups")),
            ("methods", self.tr("Methods")),
            ("devices", self.tr("Devices")),
        ):
            self.mode.add(value, text)
        self.mode.chosen.connect(self._turn)
        self.swap = Button(self.tr("Swap"), "swap", parent=self)
        self.swap.clicked.connect(self._swap)
        self.add = Button(self.tr("Pin this set-up"), "plus", parent=self)
        self.add.clicked.connect(self._pinning.add)

    def _make_body(self) -> None:
        self._inner = QWidget()
        for part in (self.bars, self.table, self.inputs):
            part.setParent(self._inner)
        self._scroll = QScrollArea(self)
        slim(self._scroll)
        self._scroll.setWidget(self._inner)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Its room is always taken, so that nothing moves when it is needed.
        self._scroll.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        for widget in (self._scroll, self._scroll.viewport(), self._inner):
            widget.setAutoFillBackground(False)

    @property
    def set_ups(self) -> list[SetUp]:
        """Those compared, the first one first."""
        return self._set_ups

    @property
    def comparison(self) -> Comparison | None:
        """What is shown."""
        return self._comparison

    @property
    def column(self) -> int:
        """Which of them is compared with the first."""
        return self._column

    def set_result(self, result: Result) -> None:
        """Compare with another open set-up."""
        self._result = result
        self._look_again()

    def showEvent(self, event: QEvent) -> None:
        self._want()
        self._look_again()

    def hideEvent(self, event: QEvent) -> None:
        self._answers.methods.want("compare", False)
        self._answers.devices.want("compare", False)

    def _want(self) -> None:
        mode = self.mode.value()
        self._answers.methods.want("compare", mode == "methods")
        self._answers.devices.want("compare", mode == "devices")

    def _turn(self, _: object) -> None:
        self._column, self._base = -1, 0
        self._want()
        self._look_again()

    # -- what is compared -----------------------------------------------------------------------

    def _found(self, result: Result) -> list[SetUp]:
        mode = self.mode.value()
        if mode == "pins":
            return pinned(self._context.pins, result)
        found = listed(self._question().answer or (), result.scenario)
        if 0 < self._base < len(found):
            found[0], found[self._base] = found[self._base], found[0]
        return found

    def _question(self) -> Question:
        return self._answers.methods if self.mode.value() == "methods" else self._answers.devices

    def _look_again(self, _: object = None) -> None:
        if not self.isVisible() or self._result is None:
            return
        before = len(self._set_ups)
        self._set_ups = self._found(self._result)
        count = len(self._set_ups)
        if self._column < 0 or count != before or self._column >= count:
            self._column = self._usual(count)
        words = QtWords(Numbers.of(self._context.view.view))
        self._comparison = compare([one.column for one in self._set_ups]) if self._set_ups else None
        self.bars.show_set_ups(self._set_ups, self._column, words.numbers)
        if self._comparison is not None:
            self.table.show_comparison(self._comparison, self._column, words.numbers)
            self.inputs.show_comparison(self._comparison, self._column, words)
        self._enable()
        self._place()
        # What stands below the title paints itself when it changes.
        self.update(0, 0, self.width(), Look.of(self).px(_TOP) + 1)
        if self.nothing() != self._said:
            self._said = self.nothing()
            self.update()

    def _usual(self, count: int) -> int:
        """What is looked at first: what is open, else the second."""
        if self.mode.value() == "pins":
            places = [place for place, one in enumerate(self._set_ups) if one.is_open and place]
            return places[0] if places else min(1, count - 1)
        return min(1, count - 1)

    def _choose(self, place: int) -> None:
        self._column = place
        self._look_again()

    # -- what can be done with one --------------------------------------------------------------

    def _open(self, place: int) -> None:
        one = self._set_ups[place]
        self._context.document.use_scenario(one.scenario, one.name)

    def _swap(self) -> None:
        """The chosen one and the first change places; where it is what is open, the first is opened."""
        if not 0 < self._column < len(self._set_ups):
            return
        first, second = self._set_ups[0], self._set_ups[self._column]
        pins = self._context.pins
        if self.mode.value() != "pins":
            self._base = self._column if self._base != self._column else 0
            self._look_again()
        elif second.pin is not None and first.pin is not None:
            pins.exchange(first.pin, second.pin)
        elif first.pin is not None:
            self._pinning.open_for(first.pin)

    def _unpin(self, place: int) -> None:
        pin = self._set_ups[place].pin
        if pin is not None:
            self._pinning.remove(pin)

    def _ask_name(self, place: int) -> None:
        pin = self._set_ups[place].pin
        if pin is not None:
            self._pinning.rename(pin)

    def menu_of(self, place: int) -> list[QAction]:
        """What can be done with the set-up at a place."""
        one, pins = self._set_ups[place], self._context.pins
        pin = one.pin
        entries: list[tuple[str, Callable[[], object], bool]] = [
            (self.tr("Open this set-up"), lambda: self._open(place), not one.is_open)
        ]
        if pin is not None:
            entries += [
                (self.tr("Make it the baseline"), lambda: pins.put(pin, 0), place > 0),
                (self.tr("Rename…"), lambda: self._ask_name(place), True),
                (self.tr("Unpin"), lambda: self._unpin(place), True),
            ]
        elif self.mode.value() == "pins":
            entries.append((self.tr("Pin this set-up"), self._pinning.add, pins.can_pin))
        actions = []
        for text, slot, on in entries:
            action = QAction(text, self)
            action.setEnabled(on)
            action.triggered.connect(lambda checked=False, slot=slot: slot())
            actions.append(action)
        return actions

    def _show_menu(self, place: int, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setStyleSheet(menu_sheet(Look.of(self)))
        for action in self.menu_of(place):
            action.setParent(menu)
            menu.addAction(action)
        menu.popup(at)

    # -- what is written ------------------------------------------------------------------------

    def title(self) -> str:
        """How far the chosen one is from the first, in a sentence."""
        comparison, column = self._comparison, self._column
        if self.mode.value() == "devices":
            return self._enough()
        if comparison is None or not 0 < column < len(self._set_ups):
            return ""
        said = comparison.headline(column)
        first, second = self._set_ups[0].estimate, self._set_ups[column].estimate
        if said is None or first is None or second is None:
            return ""
        words = QtWords(Numbers.of(self._context.view.view))
        if said.sizes:
            # The difference of the two figures as they are shown, so that it can be checked by eye.
            gap = words.numbers.gap(second.peak_bytes, first.peak_bytes)
            said = with_values(said, sizes={}, words={**said.words, "gap": gap})
        return said.text(words)

    def _enough(self) -> str:
        """On which devices it fits."""
        fitting = [one for one in self._set_ups if one.estimate is not None and surely_fits(one.estimate)]
        if not self._set_ups:
            return ""
        if not fitting:
            return self.tr("It fits on none of these.")
        least = min(fitting, key=lambda one: one.scenario.device.memory_bytes)
        return self.tr("It fits on {count} of {all}; the smallest is {name}.").format(
            count=len(fitting), all=len(self._set_ups), name=least.name
        )

    def nothing(self) -> str:
        """What to do where there is nothing to compare with."""
        fault = self._question().fault if self.mode.value() != "pins" else None
        if fault is not None:
            return issue_text(fault)
        if self.mode.value() != "pins" or len(self._set_ups) > 1:
            return ""
        if self._context.pins.baseline is not None:
            return self.tr(
                "What is pinned is what is open: change something, and the difference stands here."
            )
        return self.tr(
            "Nothing is pinned. Pin this set-up (Ctrl+D), change something, and the two stand side by side."
        )

    def _enable(self) -> None:
        pins = self.mode.value() == "pins"
        self.add.setVisible(pins)
        is_pinned = any(one.is_open and one.pin is not None for one in self._set_ups)
        self.add.setEnabled(self._context.pins.can_pin and not is_pinned)
        self.swap.setVisible(len(self._set_ups) > 1)
        self.swap.setEnabled(0 < self._column < len(self._set_ups))
        if len(self._set_ups) > 1 and self._column > 0:
            letters = (self._set_ups[0].letter, self._set_ups[self._column].letter)
            text = self.tr("Swap {first} and {second}").format(first=letters[0], second=letters[1])
            self.swap.setToolTip(text)
        self.swap.setAccessibleName(self.swap.toolTip() or self.swap.text())

    # -- places ---------------------------------------------------------------------------------

    def _place(self) -> None:
        look = Look.of(self)
        top, edge, high = look.px(_TOP), look.px(16), look.px(28)
        right = self.width() - edge
        for widget in (self.add, self.swap, self.mode):
            if widget.isHidden():
                continue
            width = widget.sizeHint().width()
            widget.setGeometry(right - width, (top - high) // 2, width, high)
            right -= width + look.px(8)
        self._words_end = right
        self._scroll.setGeometry(0, top + 1, self.width(), max(0, self.height() - top - 1))
        width = self._scroll.viewport().width()
        y = look.px(4)
        self.bars.setGeometry(0, y, width, self.bars.sizeHint().height())
        y += self.bars.height() + look.px(8)
        shown = len(self._set_ups) > 1
        self.table.setVisible(shown)
        self.inputs.setVisible(shown)
        wide = width >= look.px(_WIDE)
        # Names and figures of a row stay near each other however wide the window is.
        left = min(round(width * 0.58), look.px(_TABLE)) if wide else width
        self.table.resize(left, self.table.height())
        self.table.setGeometry(0, y, left, self.table.sizeHint().height())
        beside = (left + 1, y) if wide else (0, y + self.table.height() + look.px(12))
        room = width - left - 1 if wide else width
        self.inputs.setGeometry(*beside, room, self.inputs.height_for(room))
        end = max(self.table.geometry().bottom(), self.inputs.geometry().bottom()) if shown else y
        self._inner.resize(width, end + look.px(12))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def sizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(760), look.px(236))

    def minimumSizeHint(self) -> QSize:
        look = Look.of(self)
        return QSize(look.px(240), look.px(140))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = Look.of(self)
        colours = look.colours
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.base)
        top, edge = look.px(_TOP), look.px(16)
        painter.fillRect(QRectF(0, top, self.width(), 1), colours.hairline)
        room = self._words_end - edge - look.px(8)
        painter.setPen(colours.text)
        # A sentence without room stands in two lines: its figures are not cut.
        title, role = self.title(), Role.BODY
        if look.width(title, Role.BODY, 600) > room:
            role = Role.SMALL
        painter.setFont(look.font(role, 600))
        painter.drawText(QRectF(edge, 0, room + 2, top), _LEFT | Qt.TextFlag.TextWordWrap, title)
        nothing = self.nothing()
        if nothing:
            y = top + self.bars.geometry().bottom() + look.px(16)
            painter.setPen(colours.secondary)
            painter.setFont(look.font())
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
            painter.drawText(QRectF(edge, y, self.width() - 2 * edge, self.height()), flags, nothing)
