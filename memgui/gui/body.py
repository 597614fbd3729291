"""Presets, form, picture and tabs beside each other, with handles between them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from memgui.gui.controls import Splitter
from memgui.gui.form.form import Form
from memgui.gui.tabs import Tabs
from memgui.gui.theme import Look
from memgui.gui.window_state import WindowState

NARROW = 1160
"""Below this width (13 px body) the presets give their place to the rest."""
PRESETS, FORM, DONUT, PICTURE = 192, 320, 360, 320
NARROW_FORM, NARROW_DONUT, NARROW_PICTURE = 312, 244, 221


class Body(QWidget):
    """The splitters.  The presets panel is made when it first has room."""

    def __init__(
        self,
        make_presets: Callable[[QWidget], QWidget],
        form: Form,
        donut: QWidget,
        legend: QWidget,
        tabs: Tabs,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._make_presets = make_presets
        self.presets: QWidget | None = None
        self.form = form
        self.tabs = tabs
        self.main = Splitter(Qt.Orientation.Horizontal, self)
        self._slot = QWidget(self.main)
        self._slot.hide()
        self.right = Splitter(Qt.Orientation.Vertical, self.main)
        self.picture = Splitter(Qt.Orientation.Horizontal, self.right)
        self.picture.addWidget(donut)
        self.picture.addWidget(legend)
        self.right.addWidget(self.picture)
        self.right.addWidget(tabs)
        self.main.addWidget(self._slot)
        self.main.addWidget(form)
        self.main.addWidget(self.right)
        for splitter in self.splitters().values():
            splitter.setChildrenCollapsible(False)
        look = Look.of(self)
        self._slot.setMinimumWidth(look.px(150))
        form.setMinimumWidth(look.px(280))
        donut.setMinimumSize(look.px(180), look.px(160))
        legend.setMinimumWidth(look.px(240))
        tabs.setMinimumHeight(look.px(140))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.main)

    def splitters(self) -> dict[str, QSplitter]:
        """Every splitter by the name it is remembered under."""
        return {"main": self.main, "right": self.right, "picture": self.picture}

    def show_presets(self, on: bool, *, fill: bool) -> None:
        """Show or hide the panel at the left; without ``fill`` it may still be empty."""
        if on and fill and self.presets is None:
            self.presets = self._make_presets(self._slot)
            column = QVBoxLayout(self._slot)
            column.setContentsMargins(0, 0, 0, 0)
            column.addWidget(self.presets)
        self._slot.setVisible(on)

    def expand(self, on: bool) -> None:
        """Spread the tabs over the picture, or put it back."""
        self.picture.setVisible(not on)
        self.tabs.set_expanded(on)

    def put_back(self, width: int, height: int) -> None:
        """The widths of the first start, for a body of that size in px."""
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
        presets = 0 if self._slot.isHidden() else look.px(PRESETS)
        rest = width - presets - form
        self.main.setSizes([presets, form, rest])
        self.picture.setSizes([donut, max(1, rest - donut)])
        self.right.setSizes([picture, max(1, height - picture)])
        for splitter, place in ((self.main, 2), (self.right, 1)):
            for index in range(splitter.count()):
                splitter.setStretchFactor(index, 1 if index == place else 0)
        self.picture.setStretchFactor(0, 1)
        self.picture.setStretchFactor(1, 1)

    def restore(self, state: WindowState) -> bool:
        """Put the handles where they were; false where that is not known."""
        restored = [state.restore_splitter(key, splitter) for key, splitter in self.splitters().items()]
        return all(restored)
