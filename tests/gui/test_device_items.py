"""The rows of the device search: this machine's GPUs, where there are any, then the catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from memgui.catalog import Catalog
from memgui.document.jobs import Jobs
from memgui.document.nearby import Nearby
from memgui.document.view_settings import View
from memgui.gui.device_items import device_search
from memgui.gui.numbers import Numbers
from memgui.presets import hardware
from memgui.presets.hardware import Gpu, ThisMachine

GPU = Gpu(name="NVIDIA H200", total_bytes=150_754_820_096, used_bytes=5_000_000, compute_capability="9.0")


@pytest.fixture
def nearby(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nearby]:
    monkeypatch.setattr(hardware, "this_machine", ThisMachine)
    jobs = Jobs()
    yield Nearby(jobs)
    assert jobs.close()


def test_this_machine_stands_first_and_says_what_is_used(nearby: Nearby) -> None:
    search = device_search(Catalog(), nearby, lambda: Numbers.of(View()))
    before = search("")
    nearby.gpus = (GPU, GPU)
    found = search("")
    assert len(found) == len(before) + 1
    assert found[0].title == "This machine: NVIDIA H200"
    assert found[0].details.count("Used now: 5,000,000 bytes") == 2
    device = found[0].value
    assert (device.name, device.memory_bytes) == (GPU.name, GPU.total_bytes)
    assert device.compute_capability == "9.0"
    assert search("this machine")[0].title == found[0].title
    assert all(not item.title.startswith("This machine") for item in search("rtx"))
