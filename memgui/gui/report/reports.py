"""Exports, prints and copies the report of what is open: it asks where, the writers do the rest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from PySide6.QtCore import QDate, QLocale, QMimeData, QObject
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from memgui import __version__
from memgui.document.notice import Notice
from memgui.estimator.result import Estimate
from memgui.files.atomic import write_atomic
from memgui.files.bounded import FileFault, display_name
from memgui.gui.context import AppContext
from memgui.gui.numbers import Numbers
from memgui.gui.why.qt_words import QtWords
from memgui.planning import report
from memgui.planning.as_text import as_csv
from memgui.planning.measured import Measurement, from_plain
from memgui.spec import QT_TRANSLATE_NOOP, Message, ScenarioError

FORMATS = ("pdf", "html", "md", "csv", "json", "png", "svg")


class Reports(QObject):
    """Everything that leaves the window: what cannot be computed has no report, and is told so."""

    def __init__(self, context: AppContext, window: QWidget) -> None:
        super().__init__(window)
        self._context = context
        self._window = window

    # -- files and paper -----------------------------------------------------------------------

    def ask_export(self) -> None:
        """Let the person choose where the report is written, and as what."""
        estimate = self._estimate()
        if estimate is None:
            return
        dialog = QFileDialog(self._window, self.tr("Export report"), self._context.library.settings.folder)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        filters = self._filters()
        dialog.setNameFilters(list(filters))
        dialog.setDefaultSuffix("pdf")
        dialog.filterSelected.connect(lambda chosen: dialog.setDefaultSuffix(filters.get(chosen, "pdf")))
        dialog.selectFile(_file_name(self._name(estimate)))
        dialog.fileSelected.connect(lambda path: self.export(Path(path)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _filters(self) -> dict[str, str]:
        return {
            self.tr("PDF (*.pdf)"): "pdf",
            self.tr("Web page (*.html)"): "html",
            self.tr("Markdown (*.md)"): "md",
            self.tr("Table (*.csv)"): "csv",
            self.tr("Data (*.json)"): "json",
            self.tr("Picture (*.png)"): "png",
            self.tr("Drawing (*.svg)"): "svg",
        }

    def export(self, path: Path) -> bool:
        """Write the report as what the path's ending says; whether it was written."""
        estimate = self._estimate()
        if estimate is None:
            return False
        kind = path.suffix.lower().removeprefix(".")
        if kind not in FORMATS:
            text = QT_TRANSLATE_NOOP("messages", "{file}: no report ends in {kind}. Allowed: {allowed}.")
            if not kind:
                text = QT_TRANSLATE_NOOP(
                    "messages", "{file}: the ending says what is written. Allowed: {allowed}."
                )
            allowed = ", ".join(FORMATS)
            told = Message(text, {"file": display_name(path), "kind": f".{kind}", "allowed": allowed})
            self._tell(told, "error")
            return False
        try:
            write_atomic(path, self.data(estimate, kind))
        except FileFault as fault:
            self._tell(fault.message, "error")
            return False
        self._tell(Message(QT_TRANSLATE_NOOP("messages", "{file} is written."), {"file": display_name(path)}))
        return True

    def data(self, estimate: Estimate, kind: str) -> bytes:
        """The report as the bytes of a file of one of :data:`FORMATS`."""
        from memgui.gui.report import paper, picture

        page = self.page(estimate)
        scene = picture.scene_of(estimate, self._context.view.view.units)
        match kind:
            case "pdf":
                return paper.pdf_bytes(page, scene)
            case "html":
                shown, wide = picture.png_bytes(picture.png(scene)), picture.SIZE.width()
                drawn = report.Picture(shown, "png", page.verdict, wide)
                return report.html(page, drawn, QLocale().bcp47Name()).encode()
            case "md":
                return report.markdown(page).encode()
            case "csv":
                return report.as_csv(page).encode()
            case "json":
                return self._json(estimate).encode()
            case "png":
                return picture.png_bytes(picture.png(scene))
            case "svg":
                return picture.svg_bytes(scene, page.title)
        raise ValueError(kind)

    def ask_print(self) -> None:
        """Let the person choose a printer."""
        from PySide6.QtPrintSupport import QPrintDialog, QPrinter

        estimate = self._estimate()
        if estimate is None:
            return
        printer = QPrinter(QPrinter.PrinterMode.HighResolution)
        printer.setDocName(self._name(estimate))
        dialog = QPrintDialog(printer, self._window)
        dialog.accepted.connect(lambda: self.print_on(printer, estimate))
        dialog.finished.connect(dialog.deleteLater)
        QDialog.open(dialog)

    def print_on(self, printer: object, estimate: Estimate) -> None:
        """Paint the page on a printer."""
        from PySide6.QtPrintSupport import QPrinter

        from memgui.gui.report import paper, picture

        assert isinstance(printer, QPrinter)
        scene = picture.scene_of(estimate, self._context.view.view.units)
        paper.print_page(printer, self.page(estimate), scene)

    # -- copying -------------------------------------------------------------------------------

    def copy_verdict(self) -> None:
        """The verdict as one line."""
        self._copy(lambda estimate: report.verdict_line(estimate, self._words()))

    def copy_markdown(self) -> None:
        """The report in Markdown."""
        self._copy(lambda estimate: report.markdown(self.page(estimate)))

    def copy_csv(self) -> None:
        """Every node of the breakdown as CSV."""
        self._copy(as_csv)

    def copy_picture(self) -> None:
        """The donut as a picture, with the verdict as its text."""
        from memgui.gui.report import picture

        estimate = self._estimate()
        if estimate is not None:
            mime = QMimeData()
            mime.setImageData(picture.png(picture.scene_of(estimate, self._context.view.view.units)))
            QGuiApplication.clipboard().setMimeData(mime)
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "Copied.")))

    def _copy(self, made: Callable[[Estimate], str]) -> None:
        estimate = self._estimate()
        if estimate is not None:
            QGuiApplication.clipboard().setText(made(estimate))
            self._tell(Message(QT_TRANSLATE_NOOP("messages", "Copied.")))

    # -- what is in it -------------------------------------------------------------------------

    def page(self, estimate: Estimate) -> report.Page:
        """The report's page, in the window's language and unit."""
        date = QLocale().toString(QDate.currentDate(), QLocale.FormatType.LongFormat)
        return report.page(
            estimate,
            self._words(),
            name=self._name(estimate),
            issues=self._context.document.last_result.issues,
            assumed=self._assumed(),
            measured=self._measured(),
            made=self.tr("memgui {version}, {date}").format(version=__version__, date=date),
        )

    def _json(self, estimate: Estimate) -> str:
        return report.as_json(
            estimate,
            name=self._name(estimate),
            issues=self._context.document.last_result.issues,
            assumed=self._assumed(),
            measured=self._measured(),
            report=self._context.document.state.report,
        )

    def _assumed(self) -> tuple[Message, ...]:
        found = self._context.document.state.report
        return (*found.assumed, *found.not_read)

    def _measured(self) -> tuple[Measurement, ...]:
        with suppress(ScenarioError):
            return from_plain(self._context.document.state.measured)
        return ()

    def _words(self) -> QtWords:
        return QtWords(Numbers.of(self._context.view.view))

    def _name(self, estimate: Estimate) -> str:
        return self._context.document.state.name or estimate.scenario.model.name

    def _estimate(self) -> Estimate | None:
        estimate = self._context.document.settle().estimate
        if estimate is None:
            text = QT_TRANSLATE_NOOP("messages", "What cannot be computed has no report.")
            self._tell(Message(text), "warning")
        return estimate

    def _tell(self, message: Message, severity: str = "info") -> None:
        self._context.library.told.emit(Notice(message, severity))


def _file_name(name: str) -> str:
    """``name`` without what a file's name may not have."""
    kept = "".join(letter if letter.isalnum() or letter in " -_.×" else "-" for letter in name)
    return f"{kept.strip(' .')[:80] or 'memgui'}.pdf"
