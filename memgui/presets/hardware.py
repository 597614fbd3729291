"""Which NVIDIA GPUs this machine has, asked of the driver through nvidia-ml-py where that is installed."""

from __future__ import annotations

import logging
from types import ModuleType

import msgspec

from memgui.spec import QT_TRANSLATE_NOOP, Message, one_line

log = logging.getLogger(__name__)

_MOST = 64
_NO_GPU = QT_TRANSLATE_NOOP("messages", "The NVIDIA driver names no GPU.")


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, or one MIG slice of it, with the bytes that processes share: not those the driver keeps."""

    name: str
    total_bytes: int
    used_bytes: int
    compute_capability: str = ""


class ThisMachine(msgspec.Struct, frozen=True):
    """The GPUs found; where there is none, ``reason`` says why (for the diagnostics page)."""

    gpus: tuple[Gpu, ...] = ()
    reason: Message | None = None


def this_machine() -> ThisMachine:
    """Ask the driver.  Never raises; takes some 10 ms to seconds, so ask off the window's thread."""
    try:
        import pynvml
    except Exception:  # an absent package, or one that does not suit this Python
        return ThisMachine((), Message(QT_TRANSLATE_NOOP("messages", "nvidia-ml-py is not installed.")))
    try:
        pynvml.nvmlInit()
    except Exception as error:
        return _none(error)
    try:
        found: list[Gpu] = []
        for index in range(min(int(pynvml.nvmlDeviceGetCount()), _MOST)):
            try:
                found += _gpus(pynvml, pynvml.nvmlDeviceGetHandleByIndex(index))
            except Exception as error:  # one that is lost or forbidden does not hide the others
                log.info("GPU %d does not answer: %s", index, error)
        return ThisMachine(tuple(found), None if found else Message(_NO_GPU))
    except Exception as error:
        return _none(error)
    finally:
        try:
            pynvml.nvmlShutdown()
        except Exception as error:
            log.info("NVML does not shut down: %s", error)


def _gpus(nvml: ModuleType, handle: object) -> list[Gpu]:
    slices = _slices(nvml, handle)
    capability = _capability(nvml, handle)
    return [_gpu(nvml, part, capability) for part in slices or [handle]]


def _slices(nvml: ModuleType, handle: object) -> list[object]:
    """The MIG slices of a GPU that is cut into such: no process gets the whole one then."""
    try:
        if not nvml.nvmlDeviceGetMigMode(handle)[0]:
            return []
        count = int(nvml.nvmlDeviceGetMaxMigDeviceCount(handle))
    except Exception:  # GPUs that cannot be cut answer with an error
        return []
    slices: list[object] = []
    for index in range(min(count, _MOST)):
        try:
            slices.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
        except Exception:  # slots without a slice answer with an error
            continue
    return slices


def _gpu(nvml: ModuleType, handle: object, capability: str) -> Gpu:
    name = nvml.nvmlDeviceGetName(handle)
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
    total, used = _memory(nvml, handle)
    return Gpu(name=one_line(text)[:200], total_bytes=total, used_bytes=used, compute_capability=capability)


def _memory(nvml: ModuleType, handle: object) -> tuple[int, int]:
    """Total and used bytes.  The second form of the call tells what the driver keeps from what is used."""
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
        return int(memory.total) - int(memory.reserved), int(memory.used)
    except Exception:  # drivers before 510, packages before 11.510
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        return int(memory.total), int(memory.used)


def _capability(nvml: ModuleType, handle: object) -> str:
    try:
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        return f"{int(major)}.{int(minor)}"
    except Exception:
        return ""


def _none(error: Exception) -> ThisMachine:
    text = QT_TRANSLATE_NOOP("messages", "The NVIDIA driver names no GPU: it says “{reason}”.")
    return ThisMachine((), Message(text, {"reason": str(error)[:200]}))
