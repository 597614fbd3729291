"""The window: puts its parts together and lets each say what it has to say to the others."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QMainWindow, QScrollArea, QVBoxLayout, QWidget

from memgui.document.result import Result
from memgui.document.view_settings import View
from memgui.gui.actions import Actions
from memgui.gui.body import NARROW, Body
from memgui.gui.context import AppContext
from memgui.gui.controls import slim
from memgui.gui.device_items import device_search
from memgui.gui.files import Files
from memgui.gui.form.form import OPEN_AT_FIRST, Form
from memgui.gui.menus import fill_menus
from memgui.gui.numbers import Numbers
from memgui.gui.panes import Panes
from memgui.gui.tabs import Tabs
from memgui.gui.theme import Look, menu_sheet
from memgui.gui.toolbar import Toolbar
from memgui.gui.window_state import WindowState

if TYPE_CHECKING:
    from memgui.gui.model_picker import ModelPicker
    from memgui.gui.name_bar import NameBar
    from memgui.gui.notice_bar import NoticeBar

SIZE = (1280, 800)
FRAME_MS = 16
"""What can wait begins this long after the first painting, when it is on the screen."""
SMALLEST = (1024, 660)
"""Below this (13 px body) the inside scrolls."""


class MainWindow(QMainWindow):
    """Composes; the arithmetic is the estimator's, the files are the library's."""

    painted = Signal()
    """The window has been painted for the first time; what can wait begins now."""

    def __init__(self, context: AppContext) -> None:
        super().__init__()
        self.context = context
        self.setAcceptDrops(True)
        self.actions_ = Actions(self, context.document.undo_stack)
        self.state = WindowState(context.paths.window)
        self.files = Files(context, lambda *asked: self.names.ask(*asked), self)
        self.toolbar = Toolbar(self.actions_, context.view, self)
        devices = device_search(context.catalog, lambda: Numbers.of(context.view.view))
        self.form = Form(context.document, context.selection, context.view, devices, self)
        self.tabs = Tabs(self)
        self.panes = Panes(context, self.tabs, self)
        self.body = Body(self._make_presets, self.form, self.panes.donut, self.panes.legend, self.tabs, self)
        self._picker: ModelPicker | None = None
        self._narrow: bool | None = None
        self._shown_before = False
        self._painted_before = False
        self._next_frame = QTimer(self)
        self._next_frame.setSingleShot(True)
        self._next_frame.setInterval(FRAME_MS)
        self._next_frame.timeout.connect(self._first_painted)
        self._lay_out()
        fill_menus(self.menuBar(), self.actions_)
        self._dress_menus()
        self._connect()
        self._restore()
        self._title()

    @cached_property
    def notices(self) -> NoticeBar:
        """The line over the verdict; made when there is something to say."""
        from memgui.gui.notice_bar import NoticeBar

        made = NoticeBar(self)
        self._column.insertWidget(1, made)
        return made

    @cached_property
    def names(self) -> NameBar:
        """The line that asks for a name; made when one is needed."""
        from memgui.gui.name_bar import NameBar

        made = NameBar(self)
        self._column.insertWidget(1, made)
        self.context.library.changed.connect(made.hide)
        return made

    def _lay_out(self) -> None:
        inside = QWidget()
        self._column = column = QVBoxLayout(inside)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for part in (self.toolbar, self.panes.verdict):
            column.addWidget(part)
        column.addWidget(self.body, 1)
        look = Look.of(self)
        inside.setMinimumSize(look.px(SMALLEST[0]), look.px(SMALLEST[1]))
        scroll = QScrollArea(self)
        slim(scroll)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(inside)
        self.setCentralWidget(scroll)

    def _connect(self) -> None:
        actions, context = self.actions_, self.context
        on = actions.on
        on(actions.find_model, self.open_model_picker)
        on(actions.open, self.files.ask_open)
        on(actions.save, self.files.save)
        on(actions.save_as, self.files.ask_save_as)
        on(actions.save_model, self.files.ask_save_model)
        on(actions.import_presets, self.files.ask_import)
        on(actions.export_preset, self.files.ask_export)
        on(actions.quit, self.close)
        on(actions.find_field, self.form.find_field)
        on(actions.find_device, lambda: self.form.go_to("device.name"))
        on(actions.copy_verdict, self.files.copy_verdict)
        on(actions.copy_markdown, self.files.copy_markdown)
        on(actions.copy_csv, self.files.copy_csv)
        on(actions.copy_share, self.files.copy_share)
        on(actions.paste, self.paste)
        on(actions.put_back, self.put_back)
        on(actions.next_pane, self.next_pane)
        on(actions.diagnostics, self.files.copy_diagnostics)
        on(actions.shortcuts, self.show_shortcuts)
        on(actions.about, self.show_about)
        actions.show_presets.toggled.connect(self._show_presets)
        actions.expand_tabs.toggled.connect(self.body.expand)
        self.tabs.expand_asked.connect(actions.expand_tabs.toggle)
        context.library.told.connect(lambda notice: self.notices.show_notice(notice))
        context.document.result.connect(self.set_result)
        context.document.undo_stack.cleanChanged.connect(self._title)
        context.document.changed.connect(self._title)
        context.view.changed.connect(self._view_changed)
        context.selection.activated.connect(lambda path: self.tabs.show_tab("why"))
        self.form.section_toggled.connect(self._section_toggled)
        if context.document.last_result.generation:
            self.set_result(context.document.last_result)

    # -- showing -------------------------------------------------------------------------------

    def set_result(self, result: Result) -> None:
        """Give every view the newest result; each repaints what changed of its own."""
        self.toolbar.model.set_result(result)
        self.panes.set_result(result)

    def _view_changed(self, view: View) -> None:
        self.context.library.change_settings(
            units=view.units, theme=view.theme, language=view.language, reduced_motion=view.reduced_motion
        )
        self.toolbar.model.set_result(self.context.document.last_result)

    def _title(self) -> None:
        state = self.context.document.state
        name = state.name or state.scenario.model.name or self.tr("Unnamed model")
        self.setWindowTitle(self.tr("{name}[*] – memgui").format(name=name))
        self.setWindowModified(bool(state.preset) and not self.context.document.undo_stack.isClean())

    def _dress_menus(self) -> None:
        sheet = menu_sheet(Look.of(self))
        for widget in (self.menuBar(), *self.toolbar.menus()):
            widget.setStyleSheet(sheet)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.ApplicationPaletteChange, QEvent.Type.ApplicationFontChange):
            self._dress_menus()

    def open_model_picker(self) -> None:
        """Search models over the toolbar's field."""
        from memgui.gui.model_picker import ModelPicker

        if self._picker is None:
            numbers = Numbers.of(self.context.view.view)
            self._picker = ModelPicker(self.context.library, numbers, self)
        look = Look.of(self)
        current = self.context.document.scenario.model.name
        self._picker.popup.open_at(self.toolbar.model, look.px(620), look.px(460), current)

    def show_shortcuts(self) -> None:
        """The keys at a glance."""
        from memgui.gui.help import Shortcuts

        Shortcuts(self.actions_.all(), self)

    def show_about(self) -> None:
        """What memgui is, and what its figures stand for."""
        from memgui.gui.help import About

        estimate = self.context.document.last_result.shown
        About(estimate.version if estimate is not None else "", self)

    def paste(self) -> None:
        """Open what the clipboard holds: a shared preset, a path, or the name of a model."""
        self.files.open_text(QGuiApplication.clipboard().text())

    # -- layout --------------------------------------------------------------------------------

    def _make_presets(self, parent: QWidget) -> QWidget:
        from memgui.gui.presets_dock import PresetsDock

        dock = PresetsDock(self.context.library, self.context.document, self.actions_, parent)
        dock.fill()
        return dock

    def _show_presets(self, on: bool) -> None:
        self.body.show_presets(on, fill=self._painted_before)
        self.toolbar.presets.setVisible(not on)

    def _first_painted(self) -> None:
        self._show_presets(self.actions_.show_presets.isChecked())
        self.tabs.begin()
        self.painted.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._painted_before:
            self._painted_before = True
            self._next_frame.start()

    def _section_toggled(self) -> None:
        opened = tuple(key for key, section in self.form.sections.items() if section.is_open)
        self.state.put("sections", opened)

    def _restore(self) -> None:
        look = Look.of(self)
        if not self.state.restore_window(self):
            self.resize(look.px(SIZE[0]), look.px(SIZE[1]))
        self.form.open_sections(self.state.names("sections", OPEN_AT_FIRST))
        roomy = self.width() >= look.px(NARROW)
        self.actions_.show_presets.setChecked(self.state.flag("presets", roomy) and roomy)
        self._show_presets(self.actions_.show_presets.isChecked())
        self.tabs.show_tab(" ".join(self.state.names("tab", ())))
        self.actions_.expand_tabs.setChecked(self.state.flag("expanded", False))

    def put_back(self) -> None:
        """The layout of the first start."""
        self.actions_.expand_tabs.setChecked(False)
        self.actions_.show_presets.setChecked(self.width() >= Look.of(self).px(NARROW))
        self.body.put_back(self.body.width(), self.body.height())

    def next_pane(self) -> None:
        """Move the focus to the next of form, legend, donut, tabs, presets."""
        panes = [self.form, self.panes.legend, self.panes.donut, self.tabs]
        if self.body.presets is not None and self.body.presets.isVisible():
            panes.append(self.body.presets)
        focus = self.focusWidget()
        at = next((i for i, pane in enumerate(panes) if focus in (pane, *pane.findChildren(QWidget))), -1)
        for pane in (*panes[at + 1 :], *panes[: at + 1]):
            target = first_stop(pane)
            if target is not None:
                target.setFocus(Qt.FocusReason.TabFocusReason)
                return

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.notices.dismiss()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        narrow = event.size().width() < Look.of(self).px(NARROW)
        if narrow != self._narrow:
            self._narrow = narrow
            if narrow:
                self.actions_.show_presets.setChecked(False)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._shown_before:
            # Only now have the splitters the size that their handles are placed in.
            self._shown_before = True
            self.setFocus()  # no control looks touched before one is
            if not self.body.restore(self.state):
                self.body.put_back(self.body.width(), self.body.height())

    # -- coming and going ----------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls() or event.mimeData().hasText():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        event.acceptProposedAction()
        if paths:
            self.context.library.open_path(Path(paths[0]))
        else:
            self.files.open_text(event.mimeData().text())

    def closeEvent(self, event: QCloseEvent) -> None:
        self.state.put("presets", self.actions_.show_presets.isChecked())
        self.state.put("expanded", self.actions_.expand_tabs.isChecked())
        self.state.put("tab", self.tabs.current)
        self.state.keep(self, self.body.splitters())
        super().closeEvent(event)


def first_stop(pane: QWidget) -> QWidget | None:
    """The first widget of a pane that Tab stops at; ``None`` where there is none in sight."""
    for widget in (pane, *pane.findChildren(QWidget)):
        stops = widget.focusPolicy().value & Qt.FocusPolicy.TabFocus.value
        if stops and widget.isVisible() and widget.isEnabled():
            return widget
    return None
