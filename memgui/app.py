"""The program: QApplication, logging, what happens when something breaks, the first window."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec
from PySide6 import __version__ as pyside_version
from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QLocale,
    QMessageLogContext,
    QObject,
    QTimer,
    QtMsgType,
    QTranslator,
    Signal,
    qInstallMessageHandler,
    qVersion,
)
from PySide6.QtWidgets import QApplication

from memgui import __version__, _resources
from memgui.document.autosave import Autosave
from memgui.document.document import Document, State
from memgui.document.notice import Notice
from memgui.document.plain_imports import plain_imports
from memgui.document.selection import Selection
from memgui.document.view_settings import View, ViewSettings
from memgui.estimator import estimate
from memgui.gui.crash import CrashGuard
from memgui.gui.main_window import MainWindow
from memgui.gui.theme import STYLE, Theme
from memgui.presets.paths import AppPaths
from memgui.presets.session import Pinned, Recovery, Session, SessionKeeper
from memgui.presets.settings import SettingsStore
from memgui.spec import QT_TRANSLATE_NOOP, Message, get

if TYPE_CHECKING:
    from memgui.document.ahead import Ahead
    from memgui.gui.context import AppContext
    from memgui.gui.interior import Interior
    from memgui.planning.opening import Opened

log = logging.getLogger(__name__)

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


REST_MS = 300
"""So long after everything stands the first questions are answered."""


class Program(QObject):
    """Everything that lives as long as the window: made once, closed once.

    The start makes what the first picture needs.  The rest follows with :meth:`furnish`, one frame later.
    """

    ready = Signal()
    """Everything stands and can be used."""

    def __init__(self, app: QApplication, paths: AppPaths, content: Opened | None = None) -> None:
        """``content`` is what the person asked to open; without it, what was open last time."""
        super().__init__()
        self.paths = paths
        self.interior: Interior | None = None
        self._furnished = False
        self._ahead: Ahead | None = None
        self._next = QTimer(self)
        self._next.setSingleShot(True)
        self._next.timeout.connect(self._go_on)
        self._settings = SettingsStore(paths.settings)
        held, self._settings_issues = self._settings.load()
        self.keeper = SessionKeeper(paths.sessions)
        self._recovery = self.keeper.start()
        self.document = Document(_first_state(self._recovery), estimate, self)
        self.view = ViewSettings(View(held.units, held.theme, held.language, held.reduced_motion), self)
        self.selection = Selection(self)
        self.translators = load_translators(app, held.language)
        self.theme = Theme(app, held.theme)
        self.view.changed.connect(lambda new: self.theme.set_mode(new.theme))
        self._early: list[Notice] = []
        if content is not None:
            self.context.library.told.connect(self._early.append)
            self.context.library.show(content)
            if self._recovery.session is None:
                self.document.undo_stack.clear()  # else what was open last time is one step back
        self.autosave = Autosave(self.document, self._keep, lambda: self.context.jobs, parent=self)
        if content is not None:
            self.autosave.look_again()  # it is kept before anything is edited
        self._show_something()
        self.window = MainWindow(self.document, self.selection, self.view, paths.window)
        self.window.painted.connect(self._furnish_by_pieces)

    def _show_something(self) -> None:
        """The picture of what is open; where there is none, of what could be computed before it."""
        session = self._recovery.session
        if self.document.settle().shown is None and session is not None and session.computed is not None:
            self.document.show_instead(session.computed)

    @cached_property
    def context(self) -> AppContext:
        """The services around the document, made when first asked for."""
        from memgui.catalog import Catalog
        from memgui.document.jobs import Jobs
        from memgui.document.library import Library
        from memgui.document.pins import Pins
        from memgui.gui.context import AppContext
        from memgui.presets.store import PresetStore

        catalog, jobs = Catalog(), Jobs(self)
        self.document.changed.connect(jobs.hold)
        library = Library(self.document, catalog, PresetStore(self.paths), self._settings, jobs, self)
        pins = Pins(self.document, jobs, self)
        session = self._recovery.session
        if session is not None:
            library.remember_seen(session.preset, session.digest)
            pins.restore((pin.name, pin.scenario) for pin in session.pinned)
        return AppContext(self.paths, catalog, self.document, library, self.selection, self.view, jobs, pins)

    def furnish(self) -> None:
        """Put everything around the picture into the window, at once."""
        if not self._furnished:
            self._begin()
            assert self.interior is not None
            self.interior.finish()
            self._end()

    def _furnish_by_pieces(self) -> None:
        """The same so that no frame waits: in each turn of the loop something is read, or made."""
        from memgui.document.ahead import Ahead
        from memgui.gui.modules import PAGES, inside

        tab = PAGES.get(" ".join(self.window.state.names("tab", ())), PAGES["why"])
        self._ahead = Ahead(chain(inside(), tab.read()), self._go_on, self)

    def _go_on(self) -> None:
        if self._furnished:
            return
        self._begin()
        assert self.interior is not None
        wait = self.interior.go_on()
        if wait is None:
            self._next.timeout.disconnect(self._go_on)
            self._next.timeout.connect(self.read_ahead)
            self._end()
        self._next.start(REST_MS if wait is None else wait)

    def _begin(self) -> None:
        from memgui.gui.interior import Interior

        if self.interior is None:
            self.interior = Interior(self.window, self.context, at_once=False)

    def _end(self) -> None:
        """Everything stands: follow it, and say what there is to say."""
        from PySide6.QtGui import QIcon

        assert self.interior is not None
        self._furnished = True
        QApplication.setWindowIcon(QIcon(str(_resources.root() / "desktop" / "memgui.svg")))
        library = self.context.library
        self.context.pins.changed.connect(self.autosave.look_again)
        self.autosave.failed.connect(library.told)
        for notice in tuple(self._early):
            self.interior.tell(notice)
        self._look_back()
        self.ready.emit()

    def read_ahead(self) -> None:
        """Read what a person may ask for next, so that nothing waits for it then."""
        from memgui.document.ahead import Ahead
        from memgui.gui.modules import later

        self._ahead = Ahead(later(), lambda: log.debug("all is read"), self)

    def _look_back(self) -> None:
        """Say what the last run and the disk left to say, once the window is there."""
        from memgui.presets.logs import take_crash_report

        library, recovery = self.context.library, self._recovery
        report = take_crash_report(self.paths)
        issues = (*self._settings_issues, *recovery.issues)
        told = (*(issue.message for issue in issues), *library.start())
        if told:
            library.changed.emit()  # what cannot be read is no longer in the list
        if recovery.crashed or report:
            text = QT_TRANSLATE_NOOP(
                "messages", "memgui did not end properly last time. What was open is here."
            )
            message = Message(text)
        elif told:
            text = QT_TRANSLATE_NOOP(
                "messages", "Not all of what memgui keeps could be read or written: {count}."
            )
            message = Message(text, {"count": len(told)})
        else:
            return
        details = (*told, *(Message("{line}", {"line": line}) for line in report.splitlines()))
        lost = (*((recovery.held_back,) if recovery.held_back is not None else ()), *recovery.others)
        offer = QT_TRANSLATE_NOOP("messages", "Open what else was open") if lost else ""
        action = (lambda: self._reopen(lost[0])) if lost else None
        library.told.emit(Notice(message, "warning", details, offer, action))

    def _reopen(self, lost: Session) -> None:
        self.document.load(_state(lost), lost.name)
        self.context.library.remember_seen(lost.preset, lost.digest)

    def keep_crash(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str:
        """Keep the report of what nobody caught, for the next start; the report."""
        from memgui.presets.logs import keep_crash

        return keep_crash(self.paths, kind, error, trace)

    def close(self) -> None:
        """Stop what runs aside, keep what is open for the next start, and take the window apart."""
        self._furnished = True
        self._next.stop()
        if self._ahead is not None:
            self._ahead.stop()
        if "context" in self.__dict__:
            self.context.jobs.close()
        try:
            self.keeper.close(self._session(self.document.state))
        except Exception as fault:  # the end must come whatever the disk says
            log.warning("what is open is not kept: %s", fault)
        self.document.settle()  # no figure arrives when the views are gone
        # In order: the window's actions before the undo stack they show.
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(self.window, QEvent.Type.DeferredDelete)

    def _keep(self, state: State) -> Callable[[], None]:
        return partial(self.keeper.write, self._session(state))

    def _session(self, state: State) -> Session:
        shown = self.document.last_result.shown
        return Session(
            scenario=state.scenario,
            origin=state.origin,
            name=state.name,
            preset=state.preset,
            digest=self._seen(state.preset),
            pinned=self._pinned(),
            measured=state.measured,
            report=state.report,
            asked=state.asked,
            computed=shown.scenario if shown is not None and shown.scenario != state.scenario else None,
        )

    def _pinned(self) -> tuple[Pinned, ...]:
        if "context" in self.__dict__:
            return tuple(Pinned(pin.name, pin.scenario) for pin in self.context.pins.all)
        return self._recovery.session.pinned if self._recovery.session is not None else ()

    def _seen(self, preset: str) -> str:
        if "context" in self.__dict__:
            return self.context.library.seen(preset)
        return self._recovery.session.digest if self._recovery.session is not None else ""


def _first_state(recovery: Recovery) -> State:
    if recovery.session is not None:
        return _state(recovery.session)
    from memgui.catalog import Catalog

    scenario = Catalog().first_scenario()
    return State(scenario, scenario.model)


def _state(session: Session) -> State:
    origin = session.origin or session.scenario.model
    fitted = {path: (asked, get(session.scenario, path)) for path, asked in session.asked.items()}
    return State(
        session.scenario, origin, session.name, session.preset, session.measured, session.report, fitted
    )


def load_translators(app: QApplication, language: str) -> list[QTranslator]:
    """Translate memgui and Qt's own texts; the translators must be kept alive.

    ``language`` is a locale name, empty for the desktop's; one without a translation of ours leaves
    everything English: Qt's texts, the direction of writing, and numbers (78,8 GiB in an English sentence
    would be read as 788).
    """
    locale = QLocale(language) if language else QLocale.system()
    loaded: list[QTranslator] = []

    def load(name: str, folder: str) -> bool:
        translator = QTranslator(app)
        if not translator.load(locale, name, "_", folder):
            return False
        app.installTranslator(translator)
        loaded.append(translator)
        return True

    if load("memgui", str(_resources.root() / "translations")):
        from PySide6.QtCore import QLibraryInfo

        load("qtbase", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath))
    QLocale.setDefault(locale if loaded else QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))
    return loaded


def _qt_message(kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
    level = _LEVELS.get(kind, logging.WARNING)
    if text is not None and text.startswith("This plugin does not support"):
        level = logging.DEBUG  # the offscreen platform says so of each window
    logging.getLogger("qt").log(level, "%s", text)


class _Starting:
    """Takes Qt's messages while it starts: without a display it aborts, and we leave with one line."""

    def __init__(self) -> None:
        self.first = ""

    def __call__(self, kind: QtMsgType, context: QMessageLogContext, text: str | None) -> None:
        self.first = self.first or (text or "").partition("\n")[0]
        if kind is QtMsgType.QtFatalMsg:
            from memgui.planning.display import no_display

            print(f"memgui: {no_display(self.first)}", file=sys.stderr, flush=True)
            os._exit(2)


def _application() -> QApplication:
    app = QApplication.instance()
    if isinstance(app, QApplication):
        app.setStyle(STYLE)
    else:
        qInstallMessageHandler(_Starting())
        # Asked for by an argument: setStyle() hands the style to Python, whose enums cost a start 6 ms.
        app = QApplication(["memgui", "-style", STYLE])
    qInstallMessageHandler(_qt_message)
    app.setApplicationName("memgui")
    app.setApplicationVersion(__version__)
    app.setDesktopFileName("memgui")
    return app


def run(content: Opened | None = None, paths: AppPaths | None = None) -> int:
    """Open the window, on ``content`` if it is given, and stay until it is closed; the exit status."""
    with plain_imports():
        paths = paths or AppPaths.default()
        app = _application()
        program = Program(app, paths, content)
        guard = CrashGuard(program.autosave.flush, program.keep_crash, program)
        guard.install()
        program.ready.connect(lambda: _watch(paths, program))
        program.window.show()
        status = app.exec()
        guard.remove()
        program.close()
    return status


def _watch(paths: AppPaths, program: Program) -> None:
    """Collect garbage, write the log, and the stacks if the process dies in C++: when everything stands."""
    from memgui.document.garbage import Garbage
    from memgui.presets.logs import start_logging, watch_for_faults

    Garbage(program.document, program.context.jobs)
    start_logging(paths)
    watch_for_faults(paths)
    log.info("memgui %s, PySide6 %s, Qt %s, %s", __version__, pyside_version, qVersion(), sys.version)


def check(say: Callable[[str], None] = print) -> int:
    """Start the window where no display is needed, run one edit through it, say versions."""
    import platform
    import tempfile

    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    app = _application()
    with tempfile.TemporaryDirectory(prefix="memgui-check-") as home:
        program = Program(app, AppPaths.default(Path(home)))
        program.window.show()
        program.furnish()
        app.processEvents()
        document = program.document
        before = document.settle()
        document.edit("training.sequence_length", 2 * before.scenario.training.sequence_length)
        app.processEvents()
        after = document.settle()
        painted = not program.window.grab().isNull()
        sound = (
            painted
            and before.estimate is not None
            and after.estimate is not None
            and after.estimate.peak_bytes > before.estimate.peak_bytes
        )
        program.window.close()
        program.close()
        lines = [
            f"memgui {__version__}",
            f"PySide6 {pyside_version}, Qt {qVersion()}, msgspec {msgspec.__version__}",
            f"Python {platform.python_version()}, {platform.platform()}",
        ]
        if before.estimate is not None and after.estimate is not None:
            lines.append(
                f"{before.scenario.model.name}: {before.estimate.peak_bytes:,} bytes, "
                f"with twice the tokens {after.estimate.peak_bytes:,}"
            )
            lines.append(f"Figures stand for {after.estimate.version}")
        lines.append("The window works." if sound else "The window does not work: the edit changed nothing.")
    say("\n".join(lines))
    return 0 if sound else 1
