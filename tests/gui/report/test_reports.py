"""The report through the window's actions: files of every kind, the clipboard, one page of paper."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF, QSize, QSizeF
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtPrintSupport import QPrinter
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.gui.interior import Interior
from memgui.gui.palette import DARK, LIGHT
from memgui.gui.report import paper, picture
from memgui.gui.report.reports import FORMATS, Reports
from memgui.planning.measured import Counter, to_plain, typed
from memgui.spec import replace
from tests.gui.house import House


@pytest.fixture
def real(qapp: QApplication, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "home", estimate)
    yield made
    made.close()


@pytest.fixture
def reports(real: House, qtbot: QtBot) -> Reports:
    window = real.window()
    qtbot.addWidget(window)
    return Reports(real.context, window)


@pytest.mark.parametrize("kind", FORMATS)
def test_each_kind_of_file_has_the_figures(reports: Reports, real: House, kind: str, tmp_path: Path) -> None:
    real.document.measure(to_plain((typed("70 GiB", Counter.ALLOCATED),)), "run")
    path = tmp_path / f"report.{kind}"
    assert reports.export(path)
    data = path.read_bytes()
    found = real.document.settle().estimate
    assert found is not None
    grouped, exact = f"{found.peak_bytes:,}".encode(), str(found.peak_bytes).encode()
    match kind:
        case "pdf":
            assert data.startswith(b"%PDF-")
            assert data.count(b"/Type /Page\n") == 1
        case "html" | "md":
            assert grouped in data
            assert b"70.00 GiB" in data
        case "csv":
            assert exact in data
        case "json":
            told = json.loads(data)
            assert told["device"]["peak_bytes"] == found.peak_bytes
            assert told["measured"]["measurements"][0]["figures"][0]["bytes"] == 70 * 2**30
        case "png":
            image = QImage.fromData(data)
            assert image.size() == picture.SIZE * picture.SHARP
        case "svg":
            assert data.startswith(b"<?xml")
            assert b"<path" in data
    assert real.told[-1].severity == "info"


def test_an_ending_that_is_none_is_refused_and_nothing_written(
    reports: Reports, real: House, tmp_path: Path
) -> None:
    assert not reports.export(tmp_path / "report.docx")
    assert "docx" in real.told[-1].message.text
    assert not list(tmp_path.glob("*.docx"))


def test_a_folder_that_is_not_there_is_told(reports: Reports, real: House, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert not reports.export(blocked / "report.pdf")
    assert real.told[-1].severity == "error"


def test_what_cannot_be_computed_has_no_report(reports: Reports, real: House, tmp_path: Path) -> None:
    real.document.edit("parallelism.tensor", 3)
    assert not reports.export(tmp_path / "report.md")
    assert real.told[-1].severity == "warning"


def test_picture_is_the_components_in_their_colours(real: House) -> None:
    found = real.document.settle().estimate
    assert found is not None
    image = picture.png(picture.scene_of(found, "GiB"), QSize(400, 300), 1)
    colours = {image.pixelColor(x, y).name() for x in range(0, 400, 2) for y in range(0, 300, 2)}
    for node in found.components:
        if node.bytes > found.peak_bytes // 20:
            assert LIGHT.component(node.key).fill.name() in colours


def test_what_a_person_sees_first_stands_on_one_page(reports: Reports) -> None:
    found = estimate(Catalog().first_scenario())
    data = paper.pdf_bytes(reports.page(found), picture.scene_of(found, "GB"))
    assert data.count(b"/Type /Page\n") == 1


@pytest.mark.parametrize("name", ["gpt2", "DeepSeek-V3", "Qwen3-Next-80B-A3B-Instruct", "gemma-3n-E4B-it"])
def test_the_largest_models_go_on_over_a_page_and_stay_legible(reports: Reports, name: str) -> None:
    """What belongs together is not cut, nothing lies over anything, no text is under eight points."""
    scenario = replace(Catalog().first_scenario(), "model", Catalog().model(name).model)
    found = estimate(replace(scenario, "training.sequence_length", 1024))
    page, scene = reports.page(found), picture.scene_of(found, "GB")
    assert paper.pdf_bytes(page, scene).count(b"/Type /Page\n") <= 2
    assert paper.SMALLEST >= 8
    assert "px" not in re.sub(r"h[123] {[^}]*}", "", paper._STYLE)
    size = QSizeF(531, 778) / paper.SMALLEST * paper.EM
    sheet = paper._Sheet(page, scene, size, paper.FOOT)
    places = [
        [QRectF(at, document.size()) for number, document, at in sheet._blocks if number == one]
        for one in range(sheet.pages)
    ]
    for rects in places:
        assert rects
        for rect in rects:
            assert rect.bottom() <= size.height() - paper.FOOT
            assert rect.right() <= size.width() + 1
            assert not any(
                rect.adjusted(1, 1, -1, -1).intersects(other) for other in rects if other is not rect
            )
    text = "".join(document.toPlainText() for _, document, _ in sheet._blocks)
    for listed in page.lists:
        assert all(sentence in text for sentence in listed.sentences)
    for line in page.breakdown:
        assert not line.bytes or line.exact in text


def test_it_prints(reports: Reports, real: House, tmp_path: Path) -> None:
    found = real.document.settle().estimate
    assert found is not None
    printer = QPrinter(QPrinter.PrinterMode.HighResolution)
    printer.setOutputFormat(QPrinter.OutputFormat.PdfFormat)
    printer.setOutputFileName(str(tmp_path / "printed.pdf"))
    reports.print_on(printer, found)
    assert (tmp_path / "printed.pdf").read_bytes().startswith(b"%PDF-")


def test_the_menu_asks_where_and_copies(inside: Interior, house: House, qtbot: QtBot) -> None:
    inside.actions.export_report.trigger()
    dialog = inside.window.findChild(QFileDialog)
    assert dialog is not None
    assert dialog.selectedFiles()[0].endswith(".pdf")
    dialog.reject()
    inside.actions.copy_picture.trigger()
    assert not QGuiApplication.clipboard().image().isNull()
    inside.actions.copy_verdict.trigger()
    line = QGuiApplication.clipboard().text()
    assert "Llama-3.1-8B" in line
    assert "\n" not in line
    inside.actions.copy_markdown.trigger()
    assert QGuiApplication.clipboard().text().startswith("# ")


def test_paper_is_white_in_the_dark_and_holds_any_name(
    reports: Reports, real: House, qapp: QApplication
) -> None:
    long = "通义千问三代混合专家模型" * 6 + " with-a-name-that-has-no-spaces" * 3
    real.document.saved_as(long, "long")
    real.document.edit("training.micro_batch_size", 65_536)
    found = real.document.settle().estimate
    assert found is not None
    before, pictures = qapp.palette(), []
    try:
        for colours in (LIGHT, DARK):
            qapp.setPalette(colours.qpalette())
            sheet = QImage(595, 842, QImage.Format.Format_RGB32)
            sheet.fill(0xFFFFFFFF)
            painter = QPainter(sheet)
            room = QSizeF(523, 770)
            paper._paint(painter, lambda: None, reports.page(found), picture.scene_of(found, "GiB"), room)
            painter.end()
            pictures.append(sheet)
    finally:
        qapp.setPalette(before)
    assert pictures[0] == pictures[1]
    edge = {pictures[0].pixelColor(x, y).name() for x in range(530, 595) for y in range(0, 842, 3)}
    assert edge == {"#ffffff"}, "nothing is wider than the paper's inside"
