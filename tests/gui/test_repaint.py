"""An edit paints what it changes, and leaves nothing of what was there before."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from memgui.estimator import estimate
from memgui.gui.interior import Interior
from memgui.gui.palette import DARK, LIGHT, Palette
from tests.gui.house import House

BATCH, LENGTH = "training.micro_batch_size", "training.sequence_length"
STEPS = (
    (BATCH, 4),
    (LENGTH, 640),
    ("training.activation_checkpointing", "full"),
    (BATCH, 1),
    ("training.precision", "bf16_mixed"),
    (LENGTH, 0),
    (LENGTH, 512),
    ("device.count", 2),
    ("device.count", 1),
    (BATCH, 640),
    ("model.num_hidden_layers", 16),
    ("task", "inference"),
    ("inference.batch_size", 3),
    ("inference.batch_size", 1),
)


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "home", estimate)
    made.view.change(reduced_motion=True)
    yield made
    made.close()


def settle(house: House) -> None:
    """Have painted what is to be painted; no timer gets its turn, so nothing else happens meanwhile."""
    house.document.settle()
    for _ in range(3):
        QCoreApplication.sendPostedEvents()


def picture(window: QWidget) -> QImage:
    """The window as it stands on the screen; ``grab()`` would paint it anew."""
    return window.screen().grabWindow(window.winId()).toImage()


def painted_anew(window: QWidget, house: House) -> QImage:
    for widget in (window, *window.findChildren(QWidget)):
        widget.update()
    settle(house)
    return picture(window)


def _where(one: QImage, other: QImage) -> tuple[int, int, int, int]:
    """The box in which two pictures differ."""
    places = [
        (x, y)
        for y in range(one.height())
        for x in range(one.width())
        if one.pixel(x, y) != other.pixel(x, y)
    ]
    across, down = [x for x, _ in places], [y for _, y in places]
    return min(across), min(down), max(across), max(down)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_nothing_stays_of_the_picture_before(colours: Palette, inside: Interior, house: House) -> None:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    before = app.palette()
    app.setPalette(colours.qpalette())
    try:
        inside.window.resize(1280, 800)
        inside.tabs.show_tab("why")
        for selected in ((), ("activations",)):
            house.document.edit("task", "training")
            house.selection.select(selected)
            for path, value in STEPS:
                house.document.edit(path, value)
                settle(house)
                seen = picture(inside.window)
                assert seen.width() >= 1280
                anew = painted_anew(inside.window, house)
                assert seen == anew, (selected, path, value, _where(seen, anew))
            inside.actions.pin.trigger()
    finally:
        app.setPalette(before)


class Painted(QObject):
    """Which widgets were painted, how often."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint:
            self.seen[type(watched).__name__] += 1
        return False


def test_an_edit_paints_what_it_changes_alone(inside: Interior, house: House, qapp: QApplication) -> None:
    inside.window.resize(1280, 800)
    inside.tabs.show_tab("why")
    for length in (640, 704, 768):
        house.document.edit(LENGTH, length)
        settle(house)
    painted = Painted()
    qapp.installEventFilter(painted)
    house.document.edit(LENGTH, 832)
    settle(house)
    qapp.removeEventFilter(painted)
    seen = painted.seen
    # What is shown of the estimate, each once, none of what lies under or between it.
    once = ("VerdictBand", "CapacityBar", "Donut", "_Footer", "WhyPage", "WhyView", "PartsList", "LogSlider")
    assert {name: seen[name] for name in once} == dict.fromkeys(once, 1)
    for name in (
        "MainWindow",
        "Body",
        "Splitter",
        "Tabs",
        "Legend",
        "_Header",
        "ScrollBar",
        "ToolButton",
        "ChipButton",
    ):
        assert name not in seen, seen
    assert seen.total() <= 22, seen
