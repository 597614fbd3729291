"""Reading what a person typed or pasted.  It is data: bounded, never run, never kept as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memgui.planning.measured.counters import LEAST_BARE, memory_stats, printed
from memgui.planning.measured.llama_cpp import llama_cpp
from memgui.planning.measured.nvidia import nvidia_smi
from memgui.planning.measured.pytorch import memory_summary, out_of_memory
from memgui.planning.measured.records import Counter, Figure, Measurement
from memgui.planning.measured.sizes import size_of
from memgui.planning.measured.vllm import vllm
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message, ScenarioError
from memgui.spec.values import commas_part_thousands

MOST_TEXT: Final = 1_000_000
"""Longest text that is read (characters)."""
LONGEST_LINE: Final = 2_000
MOST_LINES: Final = 20_000
MOST_MEASUREMENTS: Final = 64

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]{0,16}m")
_TYPED: Final = re.compile(
    r"([0-9][0-9,_ \u00a0\u2009\u202f']{0,30}(?:\.[0-9]{1,9})?) ?((?:[kKmMgGtT]i?)?[bB]|bytes?)?"
)


def typed(text: str, counter: Counter) -> Measurement:
    """One figure, as ``23.4 GiB``, ``25.1 GB`` (a thousand million bytes) or ``25,124,667,392``.

    Raises :class:`ScenarioError` for anything else.
    """
    found = _TYPED.fullmatch(text.strip()) if len(text) <= 80 else None
    if found is not None and not commas_part_thousands(found[1]):
        raise _fault(
            QT_TRANSLATE_NOOP("messages", "“{value}” can be read in two ways."),
            QT_TRANSLATE_NOOP("messages", "A comma parts thousands, a point parts decimals: 23.4 GiB."),
            value=text.strip(),
        )
    number = re.sub(r"[^0-9.]", "", found[1]) if found is not None else ""
    unit = _unit(found[2] or "bytes") if found is not None else ""
    size = size_of(number, unit, binary=False) if 0 < len(number) <= 30 else None
    bare = found is not None and not found[2] and (size is None or size.bytes < LEAST_BARE)
    if size is None or size.bytes == 0 or bare:
        raise _fault(
            QT_TRANSLATE_NOOP("messages", "“{value}” is no amount of memory."),
            QT_TRANSLATE_NOOP("messages", "Allowed: a number with GiB, MiB, GB, MB or bytes after it."),
            value=text.strip()[:80],
        )
    return Measurement("typed", (Figure(size.bytes, size.step, counter),))


def _unit(text: str) -> str:
    return "bytes" if text.startswith("byte") else text[:-1].upper().replace("I", "i") + "B"


def parse(text: str) -> tuple[Measurement, ...]:
    """Every measurement found in ``text``: PyTorch's, nvidia-smi's, vLLM's, llama.cpp's, in any mixture.

    Raises :class:`ScenarioError` where the text is too long or holds none.
    """
    if len(text) > MOST_TEXT:
        raise _fault(
            QT_TRANSLATE_NOOP("messages", "The text has {length} characters."),
            QT_TRANSLATE_NOOP("messages", "Up to {limit} are read: leave out what is not about memory."),
            length=len(text),
            limit=MOST_TEXT,
        )
    plain = _COLOURS.sub("", text)
    lines = [line[:LONGEST_LINE] for line in plain.splitlines()[:MOST_LINES]]
    found = list(_all(plain, lines))[:MOST_MEASUREMENTS]
    if not found:
        raise _fault(
            QT_TRANSLATE_NOOP("messages", "There is no amount of memory in the text that can be read."),
            QT_TRANSLATE_NOOP(
                "messages",
                "Read are torch.cuda.memory_summary(), memory_stats() and max_memory_allocated(), "
                "out-of-memory messages, nvidia-smi, and the start-up logs of vLLM and llama.cpp.",
            ),
        )
    return tuple(found)


def _all(text: str, lines: list[str]) -> Iterator[Measurement]:
    yield from out_of_memory("\n".join(lines))
    yield from memory_summary(lines)
    yield from memory_stats(text)  # a dictionary is printed on one line, however long
    yield from printed(text)
    yield from nvidia_smi(lines)
    yield from vllm(lines)
    yield from llama_cpp(lines)


def _fault(text: str, allowed: str, **args: str | int) -> ScenarioError:
    limits = {name: value for name, value in args.items() if name == "limit"}
    message = Message(text, {name: value for name, value in args.items() if name != "limit"})
    return ScenarioError(Issue("error", "not_measured", ("measured",), message, Message(allowed, {**limits})))
