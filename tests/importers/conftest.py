import itertools
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def make_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Paths of files that are not there yet, for tests of many examples."""
    folder = tmp_path_factory.mktemp("made")
    numbers = itertools.count()
    return lambda: folder / f"{next(numbers)}.bin"
