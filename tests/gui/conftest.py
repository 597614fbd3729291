from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from tests.gui.house import House


@pytest.fixture
def house(qapp: QApplication, tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path / "home")
    yield made
    made.close()
