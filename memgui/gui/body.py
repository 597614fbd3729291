"""Presets, form, picture and tabs beside each other, with handles between them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from memgui.gui.controls.scrolling import Splitter
from memgui.gui.theme import Look
from memgui.gui.window_state import WindowState

NARROW = 1160
"""Below this width (13 px body) the presets give their place to the rest."""
LEAST_TABS = 200
"""Height that a smaller window leaves to the tabs, if it is not more than half of what there is."""
PRESETS, FORM, DONUT, PICTURE = 192, 320, 360, 320
NARROW_FORM, NARROW_DONUT, NARROW_PICTURE = 312, 244, 221


class Slot(QWidget):
    """A place in the layout, empty until something is put into it."""

    def put(self, widget: QWidget) -> None:
        """Fill the place."""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(widget)

    @property
    def is_filled(self) -> bool:
        """Whether something stands here."""
        return self.layout() is not None


class Body(QWidget):
    """The splitters, with donut and legend in them and places for presets, form and tabs."""

    def __init__(self, donut: QWidget, legend: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.main = Splitter(Qt.Orientation.Horizontal, self)
        self.presets, self.form = Slot(self.main), Slot(self.main)
        self.right = Splitter(Qt.Orientation.Vertical, self.main)
        self.picture = Splitter(Qt.Orientation.Horizontal, self.right)
        self.tabs = Slot(self.right)
        for splitter, parts in (
            (self.picture, (donut, legend)),
            (self.right, (self.picture, self.tabs)),
            (self.main, (self.presets, self.form, self.right)),
        ):
            for part in parts:
                splitter.addWidget(part)
            splitter.splitterMoved.connect(self._moved)
        # What a window grows by goes to picture and tabs, however the handles came to their places.
        for splitter, place in ((self.main, 2), (self.right, 1)):
            for index in range(splitter.count()):
                splitter.setStretchFactor(index, 1 if index == place else 0)
        self.picture.setStretchFactor(0, 1)
        self.picture.setStretchFactor(1, 1)
        self.is_placed = False
        """Whether the handles have their places; there is no size to place them in before."""
        self.was_moved = False
        """Whether the person moved a handle: where none was, each size of the window has its own places."""
        look = Look.of(self)
        self.presets.setMinimumWidth(look.px(150))
        self.form.setMinimumWidth(look.px(280))
        donut.setMinimumSize(look.px(180), look.px(160))
        legend.setMinimumWidth(look.px(240))
        self.tabs.setMinimumHeight(look.px(140))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.main)

    def splitters(self) -> dict[str, QSplitter]:
        """Every splitter by the name it is remembered under."""
        return {"main": self.main, "right": self.right, "picture": self.picture}

    def show_presets(self, on: bool) -> None:
        """Show or hide the panel at the left."""
        self.presets.setVisible(on)

    @property
    def is_expanded(self) -> bool:
        """Whether the tabs are spread over the picture."""
        return self.picture.isHidden()

    def expand(self, on: bool) -> None:
        """Spread the tabs over the picture, or put it back."""
        self.picture.setVisible(not on)

    def _moved(self) -> None:
        self.was_moved = True

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def fit(self) -> None:
        """Place everything for another size; where the person moved handles, only keep the tabs usable."""
        if not self.is_placed:
            return
        if not self.was_moved:
            self.put_back(self.width(), self.height())
            return
        picture, tabs = self.right.sizes()
        lacking = min(Look.of(self).px(LEAST_TABS), self.height() // 2) - tabs
        if lacking > 0 and not self.is_expanded:
            self.right.setSizes([picture - lacking, tabs + lacking])

    def put_back(self, width: int, height: int) -> None:
        """The widths of the first start, for a body of that size in px."""
        self.is_placed, self.was_moved = True, False
        look = Look.of(self)
        narrow = width < look.px(NARROW)
        form = look.px(NARROW_FORM if narrow else FORM)
        donut = look.px(NARROW_DONUT if narrow else DONUT)
        picture = look.px(NARROW_PICTURE if narrow else PICTURE)
        if width > look.px(1600):
            # What a large screen has more goes to donut and tabs, never to the form.
            donut += (width - look.px(1600)) // 3
        if height > look.px(720):
            picture += (height - look.px(720)) // 2
        presets = look.px(PRESETS)  # hidden, they keep it for when they come back
        rest = width - form - (0 if self.presets.isHidden() else presets)
        self.main.setSizes([presets, form, rest])
        self.picture.setSizes([donut, max(1, rest - donut)])
        self.right.setSizes([picture, max(1, height - picture)])

    def restore(self, state: WindowState) -> bool:
        """Put the handles where the person had moved them; false where that is not known."""
        if not state.flag("moved", False):
            return False
        self.is_placed = self.was_moved = True
        restored = [state.restore_splitter(key, splitter) for key, splitter in self.splitters().items()]
        return all(restored)
