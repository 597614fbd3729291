"""Everything around the picture: menus, toolbar, form, tabs, presets, notices, and what they do together."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from memgui.document.answers import Answers
from memgui.document.limits import Limits
from memgui.document.view_settings import View
from memgui.files.addresses import from_network
from memgui.gui.accessible import install
from memgui.gui.actions import Actions
from memgui.gui.context import AppContext
from memgui.gui.device_items import device_search
from memgui.gui.files import Files
from memgui.gui.form.form import OPEN_AT_FIRST, REST_MS, Form
from memgui.gui.main_window import MainWindow
from memgui.gui.menus import fill_menus
from memgui.gui.numbers import Numbers
from memgui.gui.pages import Pages
from memgui.gui.pinning import Pinning
from memgui.gui.presets_dock import PresetsDock
from memgui.gui.stops import first_stop
from memgui.gui.tabs import Tabs
from memgui.gui.theme import Look, menu_sheet
from memgui.gui.toolbar import Toolbar
from memgui.gui.verdict.advice import Advice

if TYPE_CHECKING:
    from memgui.document.notice import Notice
    from memgui.gui.model_picker import ModelPicker
    from memgui.gui.name_bar import NameBar
    from memgui.gui.notice_bar import NoticeBar
    from memgui.gui.report.reports import Reports
    from memgui.spec import ModelSpec


SOON_MS = 1
"""Between two pieces of work: the loop takes what waits."""
PAINTED_MS = 20
"""After a place is filled: what stands there is painted first."""


class Interior(QObject):
    """Furnishes a window.  Nothing here is needed for the first picture."""

    def __init__(self, window: MainWindow, context: AppContext, *, at_once: bool = True) -> None:
        """``at_once``: all of it; else :meth:`go_on` does a piece each time, so that no frame waits."""
        super().__init__(window)
        self.window = window
        self.context = context
        self._told_of: ModelSpec | None = None  # what was open when the newest notice came
        self._pieces = self._furnish(at_once=at_once)
        if at_once:
            self.finish()

    def finish(self) -> None:
        """Do all that is left."""
        for _ in self._pieces:
            pass

    def go_on(self) -> int | None:
        """Do the next piece; after how many ms it is time for another, ``None`` where all is done."""
        return next(self._pieces, None)

    def _furnish(self, *, at_once: bool) -> Iterator[int]:
        """Piece by piece: each place in the window is filled when all that stands there is made.

        A place gets its painting before the next is filled.
        """
        window, context, state = self.window, self.context, self.window.state
        install(window.donut)
        self.actions = Actions(window, context.document.undo_stack)
        self.files = Files(context, lambda *asked: self.names.ask(*asked), window)
        yield SOON_MS
        self.toolbar = Toolbar(self.actions, context.view, window)
        self.toolbar.model.set_result(context.document.last_result)
        yield SOON_MS
        nearby = context.library.nearby
        devices = device_search(context.catalog, nearby, lambda: Numbers.of(context.view.view))
        self.form = Form(context.document, context.selection, context.view, devices, window)
        nearby.machine_found.connect(self.form.refresh_devices)
        for key in state.names("sections", OPEN_AT_FIRST):
            yield SOON_MS
            self.form.open_section(key)
        yield SOON_MS
        self.pinning = Pinning(context, self.actions, lambda *asked: self.names.ask(*asked), window)
        self._limits = Limits(context.document, context.jobs, self)
        self._limits.changed.connect(self.form.set_limits)
        self.answers = Answers(context.document, context.jobs, context.catalog, parent=self)
        self.advice = Advice(context.document, self.answers, context.view, window.verdict)
        yield SOON_MS
        self.tabs = Tabs(window, at_once=at_once)
        self.pages = Pages(context, self.answers, self.pinning, self.tabs)
        fill_menus(window.menuBar(), self.actions)
        self._silence = QTimer(self)
        self._silence.setSingleShot(True)
        self._silence.setInterval(REST_MS)
        self._silence.timeout.connect(window.verdict.announce)
        self._dress_menus()
        yield SOON_MS
        window.column.replaceWidget(window.top, self.toolbar)
        window.top.deleteLater()
        window.top = self.toolbar
        yield PAINTED_MS
        self.form.resize(window.body.form.size())
        self.form.ensurePolished()
        column = self.form.layout()
        assert column is not None
        column.activate()
        yield SOON_MS
        window.body.form.put(self.form)
        yield PAINTED_MS
        window.body.tabs.put(self.tabs)
        self.tabs.show_tab(" ".join(state.names("tab", ())))
        self.actions.expand_tabs.setChecked(window.body.is_expanded)
        self.tabs.set_expanded(window.body.is_expanded)
        yield PAINTED_MS
        self._show_presets(not window.body.presets.isHidden())
        yield PAINTED_MS
        self._connect()
        if not at_once:
            self.form.make_ahead()

    def _connect(self) -> None:
        actions, context, window = self.actions, self.context, self.window
        for action, slot in (
            (actions.find_model, self.open_model_picker),
            (actions.open, self.files.ask_open),
            (actions.save, self.files.save),
            (actions.save_as, self.files.ask_save_as),
            (actions.save_model, self.files.ask_save_model),
            (actions.import_presets, self.files.ask_import),
            (actions.export_preset, self.files.ask_export),
            (actions.export_presets, self.files.ask_export_all),
            (actions.quit, window.close),
            (actions.find_field, self.form.find_field),
            (actions.find_device, self.form.choose_device),
            (actions.export_report, lambda: self.reports.ask_export()),
            (actions.print_report, lambda: self.reports.ask_print()),
            (actions.copy_verdict, lambda: self.reports.copy_verdict()),
            (actions.copy_markdown, lambda: self.reports.copy_markdown()),
            (actions.copy_csv, lambda: self.reports.copy_csv()),
            (actions.copy_picture, lambda: self.reports.copy_picture()),
            (actions.copy_share, self.files.copy_share),
            (actions.paste, self.paste),
            (actions.put_back, self.put_back),
            (actions.next_pane, self.next_pane),
            (actions.diagnostics, self.files.show_diagnostics),
            (actions.shortcuts, self.show_shortcuts),
            (actions.about, self.show_about),
        ):
            actions.on(action, slot)
        actions.show_presets.toggled.connect(self._show_presets)
        actions.expand_tabs.toggled.connect(self._expand)
        self.tabs.expand_asked.connect(actions.expand_tabs.toggle)
        self.form.section_toggled.connect(self._keep_sections)
        window.narrowed.connect(self._narrowed)
        window.dropped.connect(self.take)
        window.escaped.connect(self._escaped)
        window.closing.connect(lambda: window.state.put("tab", self.tabs.current))
        window.installEventFilter(self)
        context.library.told.connect(self.tell)
        context.library.opened_quietly.connect(self._let_news_of_opening_go)
        context.document.changed.connect(self._let_old_news_go)
        context.document.result.connect(self.toolbar.model.set_result)
        context.document.result.connect(self._speak_later)
        context.view.changed.connect(self._view_changed)
        context.selection.activated.connect(lambda path: self.tabs.show_tab("why"))
        window.verdict.compare_requested.connect(lambda: self.tabs.show_tab("compare"))
        window.verdict.more_requested.connect(lambda: self.tabs.show_tab("ways"))

    @cached_property
    def notices(self) -> NoticeBar:
        """The line over the verdict; made when there is something to say."""
        from memgui.gui.notice_bar import NoticeBar

        made = NoticeBar(self.window)
        self.window.column.insertWidget(1, made)
        return made

    @cached_property
    def names(self) -> NameBar:
        """The line that asks for a name; made when one is needed."""
        from memgui.gui.name_bar import NameBar

        made = NameBar(self.window)
        self.window.column.insertWidget(1, made)
        self.context.library.changed.connect(made.hide)
        return made

    @cached_property
    def reports(self) -> Reports:
        """What exports, prints and copies; made when something leaves the window."""
        from memgui.gui.report.reports import Reports

        return Reports(self.context, self.window)

    @cached_property
    def presets(self) -> PresetsDock:
        """The panel at the left; made when it first has room."""
        from memgui.document.verdicts import Verdicts

        context = self.context
        made = PresetsDock(context.library, context.document, self.actions, self.window)
        made.fill()
        verdicts = Verdicts(context.document, context.library, context.jobs, made)
        verdicts.found.connect(made.set_verdicts)
        verdicts.look()
        self.window.body.presets.put(made)
        return made

    @cached_property
    def picker(self) -> ModelPicker:
        """The search for models over the toolbar's field."""
        from memgui.gui.model_picker import ModelPicker

        return ModelPicker(self.context.library, Numbers.of(self.context.view.view), self.window)

    # -- what the actions do -------------------------------------------------------------------

    def open_model_picker(self) -> None:
        """Search models."""
        look = Look.of(self.window)
        current = self.context.document.scenario.model.name
        self.picker.popup.open_at(self.toolbar.model, look.px(620), look.px(460), current)

    def show_shortcuts(self) -> None:
        """The keys at a glance."""
        from memgui.gui.help import Shortcuts

        Shortcuts(self.actions.all(), self.window)

    def show_about(self) -> None:
        """What memgui is, and what its figures stand for."""
        from memgui.gui.help import About

        estimate = self.context.document.last_result.shown
        About(estimate.version if estimate is not None else "", self.window)

    def paste(self) -> None:
        """Open what the clipboard holds: a shared preset, a path, or the name of a model."""
        self.take(QGuiApplication.clipboard().mimeData())

    def take(self, mime: QMimeData) -> None:
        """Open what was dropped or pasted."""
        paths = [Path(name) for url in mime.urls() if (name := url.toLocalFile())]
        if paths:
            away = (url.toString() for url in mime.urls() if not url.isLocalFile())
            self.context.library.open_first(paths, tuple(from_network(address) for address in away))
        else:
            self.files.open_text(mime.text())

    def put_back(self) -> None:
        """The layout of the first start."""
        self.actions.expand_tabs.setChecked(False)
        self.actions.show_presets.setChecked(not self.window.is_narrow)
        self.window.put_back()

    def next_pane(self) -> None:
        """Move the focus to the next of form, legend, donut, tabs, presets."""
        panes: list[QWidget] = [self.form, self.window.legend, self.window.donut, self.tabs]
        if self.window.body.presets.isVisible():
            panes.append(self.presets)
        focus = self.window.focusWidget()
        at = next((i for i, pane in enumerate(panes) if focus in (pane, *pane.findChildren(QWidget))), -1)
        for pane in (*panes[at + 1 :], *panes[: at + 1]):
            target = first_stop(pane)
            if target is not None:
                target.setFocus(Qt.FocusReason.TabFocusReason)
                return

    # -- what follows from what ----------------------------------------------------------------

    def _show_presets(self, on: bool) -> None:
        self.window.body.show_presets(on)
        if on:
            self.window.presets_folded = False
            self.presets.show()
        self.toolbar.presets.setVisible(not on)
        self.actions.show_presets.setChecked(on)

    def _expand(self, on: bool) -> None:
        self.window.body.expand(on)
        self.tabs.set_expanded(on)

    def _narrowed(self) -> None:
        self._show_presets(not self.window.body.presets.isHidden())

    def tell(self, notice: Notice) -> None:
        """Show a notice over the verdict."""
        self.notices.show_notice(notice)
        self._told_of = self.context.document.state.origin

    def _let_old_news_go(self) -> None:
        """How opening went is no news any more when something else is open."""
        if self._told_of is not self.context.document.state.origin:
            self._let_news_of_opening_go()

    def _let_news_of_opening_go(self) -> None:
        if self._told_of is None:
            return
        self._told_of = None
        notice = self.notices.notice
        if notice is not None and notice.of_opening:
            self.notices.dismiss()

    def _escaped(self) -> None:
        if "notices" in self.__dict__:
            self.notices.dismiss()

    def _keep_sections(self) -> None:
        opened = tuple(key for key, section in self.form.sections.items() if section.is_open)
        self.window.state.put("sections", opened)

    def _view_changed(self, view: View) -> None:
        self.context.library.change_settings(
            units=view.units, theme=view.theme, language=view.language, reduced_motion=view.reduced_motion
        )
        self.toolbar.model.set_result(self.context.document.last_result)

    def _speak_later(self) -> None:
        """Have the verdict said aloud once the person rests, not at every turn of a slider."""
        self._silence.start()

    def _dress_menus(self) -> None:
        sheet = menu_sheet(Look.of(self.window))
        for widget in (self.window.menuBar(), *self.toolbar.menus()):
            widget.setStyleSheet(sheet)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.WindowActivate:
            self.context.library.look_again()
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self._dress_menus()
        return False
