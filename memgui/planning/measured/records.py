"""What a real run used: figures with the counter they come from, as data that a preset can keep."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message, Scenario, ScenarioError
from memgui.spec.types import wrong_place

MOST_FIGURES = 256
MOST_BYTES = 2**60


class Counter(StrEnum):
    """Which bytes a figure counts."""

    REQUESTED = "requested"  # tensors as asked for, without the allocator's rounding
    ALLOCATED = "allocated"  # blocks handed out to tensors; PyTorch's `active` is the same here
    RESERVED = "reserved"  # all that PyTorch's allocator holds
    PROCESS = "process"  # all that the process holds, as nvidia-smi shows
    WANTED = "wanted"  # one request, which failed
    OTHERS = "others"  # held by other processes
    CAPACITY = "capacity"  # the device


COUNTERS: Mapping[Counter, str] = {
    Counter.REQUESTED: QT_TRANSLATE_NOOP("measured", "Tensors alone"),
    Counter.ALLOCATED: QT_TRANSLATE_NOOP("measured", "Allocated"),
    Counter.RESERVED: QT_TRANSLATE_NOOP("measured", "Reserved"),
    Counter.PROCESS: QT_TRANSLATE_NOOP("measured", "Process (nvidia-smi)"),
    Counter.WANTED: QT_TRANSLATE_NOOP("measured", "Requested last"),
    Counter.OTHERS: QT_TRANSLATE_NOOP("measured", "Other processes"),
    Counter.CAPACITY: QT_TRANSLATE_NOOP("measured", "Device"),
}
"""Label of each counter."""

WHOLE_DEVICE = "whole device"
"""The part of a device's size as nvidia-smi says it: no process gets all of that."""

PARTS: Mapping[str, str] = {
    "allowed": QT_TRANSLATE_NOOP("measured", "Its share of the device"),
    WHOLE_DEVICE: QT_TRANSLATE_NOOP("measured", "Device (nvidia-smi)"),
    "peak in PyTorch": QT_TRANSLATE_NOOP("measured", "Peak in PyTorch"),
    "all processes": QT_TRANSLATE_NOOP("measured", "All processes (nvidia-smi)"),
}
"""Label of a figure that its counter or its components would name in too few words, or too many."""

LOG_PARTS = (
    QT_TRANSLATE_NOOP("messages", "weights"),
    QT_TRANSLATE_NOOP("messages", "activations"),
    QT_TRANSLATE_NOOP("messages", "outside PyTorch"),
    QT_TRANSLATE_NOOP("messages", "CUDA graphs"),
    QT_TRANSLATE_NOOP("messages", "device"),
    QT_TRANSLATE_NOOP("messages", "KV cache pool"),
    QT_TRANSLATE_NOOP("messages", "KV cache of one request"),
    QT_TRANSLATE_NOOP("messages", "model"),
    QT_TRANSLATE_NOOP("messages", "KV cache"),
    QT_TRANSLATE_NOOP("messages", "recurrent state"),
    QT_TRANSLATE_NOOP("messages", "compute buffer"),
    QT_TRANSLATE_NOOP("messages", "output buffer"),
    QT_TRANSLATE_NOOP("messages", "context"),
    QT_TRANSLATE_NOOP("messages", "unaccounted"),
)
"""What logs call their figures; such a part is shown in the person's language (:func:`named_part`)."""


def named_part(part: str) -> Message:
    """What a log calls a figure, or several that were added: the words known here can be translated."""
    first, plus, rest = part.partition(" + ")
    word = Message(first) if first in LOG_PARTS else Message("{part}", {"part": first})
    return Message("{first} + {further}", {"first": word, "further": named_part(rest)}) if plus else word


ENTERED = (Counter.ALLOCATED, Counter.RESERVED, Counter.PROCESS)
"""The counters that a person chooses from when typing a figure."""

WORKING = ("activations", "loss", "temporary")
"""The components that engines call activations, or compute buffer."""

HOST = "host"
"""The device of a figure that does not lie on a GPU."""

_Bytes = Annotated[int, msgspec.Meta(ge=0, le=MOST_BYTES)]
_Name = Annotated[str, msgspec.Meta(max_length=120)]


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number of bytes.

    ``step`` is the worth of the last digit that was printed (bytes): the figure is known to that.
    ``components`` are keys of the estimate's components that it counts, all of them where empty;
    ``extra`` the key of the estimate's exact figure for it, where its engine gives one.  ``part`` is
    what the log calls it, ``device`` on what (:data:`HOST` for none).  ``at_least``: the run got no
    further than this.
    """

    bytes: _Bytes
    step: _Bytes
    counter: Counter
    components: tuple[_Name, ...] = ()
    part: _Name = ""
    device: _Name = ""
    at_least: bool = False
    extra: _Name = ""


class Measurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was entered or pasted at once.

    ``source`` is ``typed``, ``memory_summary``, ``memory_stats``, ``printed``, ``out_of_memory``,
    ``nvidia_smi``, ``vllm`` or ``llama.cpp``; ``facts`` are whole numbers that are no bytes (tokens of a
    cache, …) by stable key.
    ``of`` is what it was entered beside (:func:`subject`), empty where nobody wrote it down.
    """

    source: _Name
    figures: Annotated[tuple[Figure, ...], msgspec.Meta(max_length=MOST_FIGURES)]
    facts: Mapping[_Name, Annotated[int, msgspec.Meta(ge=0, le=2**62)]] = {}
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    of: Annotated[str, msgspec.Meta(max_length=300)] = ""


def subject(scenario: Scenario) -> str:
    """What a run is of: the model, and the program that served it."""
    name = scenario.model.name[:200]
    return name if scenario.task == "training" else f"{name}, {scenario.inference.engine}"


def to_plain(measurements: tuple[Measurement, ...]) -> dict[str, Any]:
    """Measurements as plain JSON values, for a preset's ``measured``."""
    return {"schema": 1, "measurements": msgspec.json.decode(msgspec.json.encode(measurements))}


def from_plain(plain: Mapping[str, Any]) -> tuple[Measurement, ...]:
    """What :func:`to_plain` made; nothing of an empty mapping.

    Raises :class:`ScenarioError` for anything else: a preset may come from a stranger.
    """
    if not plain:
        return ()
    if plain.get("schema") != 1:
        raise _unread("schema")
    try:
        return msgspec.convert(plain.get("measurements"), tuple[Measurement, ...], strict=True)
    except msgspec.ValidationError as error:
        raise _unread(f"measurements{wrong_place(error)}") from None


def _unread(where: str) -> ScenarioError:
    text = QT_TRANSLATE_NOOP(
        "messages", "What was measured cannot be read: {where} is not as this version of memgui writes it."
    )
    message = Message(text, {"where": f"measured.{where}"[:300]})
    return ScenarioError(Issue("error", "bad_measurement", ("measured",), message))
