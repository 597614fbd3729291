"""Which GPU is here: asked of a stand-in for NVML, for tests run where there is none."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from memgui.presets.hardware import Gpu, this_machine


class NVMLError(Exception):
    """What the package raises."""


class FakeNvml:
    """As much of the package as is asked for: two whole GPUs unless told otherwise."""

    nvmlMemory_v2 = 0x2000028
    newest = True

    def __init__(self) -> None:
        self.open = 0

    def nvmlInit(self) -> None:
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"gpu{index}"

    def nvmlDeviceGetName(self, handle: str) -> str:
        return f"NVIDIA {handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int = 0) -> Any:
        if not version:
            return SimpleNamespace(total=80 * 2**30, used=3 * 2**30)
        if not self.newest:
            raise NVMLError("Function Not Found")
        return SimpleNamespace(total=80 * 2**30, reserved=2**29, used=2**30)

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        return 9, 0

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        raise NVMLError("Not Supported")


def fails(*args: object, **more: object) -> Any:
    raise NVMLError("Driver/library version mismatch")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_gpus_with_what_processes_get_and_what_is_used(nvml: FakeNvml) -> None:
    found = this_machine()
    assert found.gpus == tuple(
        Gpu(name=name, total_bytes=80 * 2**30 - 2**29, used_bytes=2**30, compute_capability="9.0")
        for name in ("NVIDIA gpu0", "NVIDIA gpu1")
    )
    assert found.reason is None
    assert nvml.open == 0


def test_without_the_package_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found = this_machine()
    assert found.gpus == ()
    assert found.reason is not None
    assert found.reason.text == "nvidia-ml-py is not installed."


@pytest.mark.parametrize("broken", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"])
def test_driver_that_fails_is_no_failure(nvml: FakeNvml, broken: str) -> None:
    setattr(nvml, broken, fails)
    found = this_machine()
    assert found.gpus == ()
    assert found.reason is not None


def test_one_lost_gpu_does_not_hide_the_other(nvml: FakeNvml) -> None:
    nvml.nvmlDeviceGetName = lambda handle: fails() if handle == "gpu0" else b"Old \xff"  # type: ignore[method-assign,assignment,return-value]
    assert [gpu.name for gpu in this_machine().gpus] == ["Old \ufffd"]


def test_older_driver_knows_one_form_of_the_call(nvml: FakeNvml) -> None:
    nvml.newest = False
    assert this_machine().gpus[0].total_bytes == 80 * 2**30
    assert this_machine().gpus[0].used_bytes == 3 * 2**30


def test_gpu_that_is_cut_is_its_slices(nvml: FakeNvml) -> None:
    nvml.nvmlDeviceGetMigMode = lambda handle: [int(handle == "gpu1"), 0]  # type: ignore[method-assign]
    nvml.nvmlDeviceGetMaxMigDeviceCount = lambda handle: 7  # type: ignore[attr-defined]
    nvml.nvmlDeviceGetMigDeviceHandleByIndex = (  # type: ignore[attr-defined]
        lambda handle, index: f"MIG {index}" if index < 2 else fails()
    )
    assert [gpu.name for gpu in this_machine().gpus] == ["NVIDIA gpu0", "NVIDIA MIG 0", "NVIDIA MIG 1"]


def test_shutdown_that_fails_is_no_failure(nvml: FakeNvml) -> None:
    nvml.nvmlShutdown = fails  # type: ignore[method-assign]
    assert len(this_machine().gpus) == 2
