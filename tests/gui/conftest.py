from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from memgui.gui.interior import Interior
from tests.gui.house import House


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "home")
    yield made
    made.close()


@pytest.fixture
def inside(house: House, qtbot: QtBot) -> Iterator[Interior]:
    window = house.window()
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.painted):
        window.show()
    made = Interior(window, house.context)
    qtbot.waitUntil(made.form.isVisible)
    yield made
    house.document.settle()
