"""The report of the file that a model came from, kept with the model in presets and sessions."""

from __future__ import annotations

from string import Formatter
from typing import Annotated, Any

import msgspec

from memgui.spec import ImportReport, Message, one_line
from memgui.spec.import_report import MOST
from memgui.spec.messages import Value

_Text = Annotated[str, msgspec.Meta(max_length=10_000)]
_Keys = Annotated[tuple[_Text, ...], msgspec.Meta(max_length=MOST)]


class _Message(msgspec.Struct, frozen=True):
    template: _Text
    args: Annotated[dict[str, str | int | float | _Message], msgspec.Meta(max_length=20)] = {}


class _Report(msgspec.Struct, frozen=True):
    file: _Text = ""
    understood: _Keys = ()
    assumed: Annotated[tuple[_Message, ...], msgspec.Meta(max_length=MOST)] = ()
    ignored: _Keys = ()
    unnamed: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0


def report_of(value: Any) -> ImportReport:
    """The report that plain values of a file state.

    Raises ``ValueError`` where they state none, or a sentence that asks for more than its values, each once:
    templates of strangers come here, ``{x:1000000000}`` would be a text of a gigabyte, and so would be
    ``{x}{x}{x}`` of a sentence that holds such sentences.
    """
    read = msgspec.convert(value, _Report, strict=True)
    return ImportReport(
        one_line(read.file),
        tuple(map(one_line, read.understood)),
        tuple(map(_message, read.assumed)),
        tuple(map(one_line, read.ignored)),
        read.unnamed,
    )


def _message(read: _Message) -> Message:
    left = set(read.args)
    for _, name, form, conversion in Formatter().parse(read.template):
        if name is None:
            continue
        if form or conversion or not name.isidentifier() or name not in left:
            raise ValueError(f"no sentence: {one_line(read.template)[:100]}")
        left.remove(name)
    return Message(one_line(read.template), {key: _value(value) for key, value in read.args.items()})


def _value(read: str | float | _Message) -> Value:
    return _message(read) if isinstance(read, _Message) else read
