"""Which tower belongs to which ``model_type``, and how its weights are written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memgui.files.strict_json import JsonObject
from memgui.importers.config_reader import Config, Report
from memgui.importers.families.registry import Fields
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.weights import Weights

BLOCKS: Final = ("vision_config", "audio_config", "visual", "talker_config", "token2wav_config")
"""Objects of a config.json that speak of something beside the language model."""


class Tower:
    """Collects the weights of one part as a description names them."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.found: list[Weights] = []

    def add(self, name: str, *shape: int, count: int = 1) -> None:
        """``count`` weights of ``shape``; none where a size is 0."""
        if count and all(shape):
            self.found.append(Weights(f"{self.part}.{name}", count, shape or (1,)))

    def linear(self, name: str, reads: int, makes: int, *, bias: bool = True, count: int = 1) -> None:
        """A matrix from ``reads`` to ``makes`` features, and its bias."""
        self.add(name, makes, reads, count=count)
        if bias:
            self.add(f"{name}_bias", makes, count=count)

    def norm(self, name: str, width: int, *, bias: bool = True, count: int = 1) -> None:
        """A LayerNorm, or without ``bias`` an RMSNorm."""
        self.add(name, width, count=count)
        if bias:
            self.add(f"{name}_bias", width, count=count)

    def attention(self, width: int, count: int, *, bias: bool = True, inner: int = 0) -> None:
        """Query, key, value and output projections of ``count`` layers."""
        inner = inner or width
        for which in ("query", "key", "value"):
            self.linear(f"attention.{which}", width, inner, bias=bias, count=count)
        self.linear("attention.output", inner, width, bias=bias, count=count)

    def mlp(self, width: int, inner: int, count: int, *, bias: bool = True, gated: bool = False) -> None:
        """The feed-forward layer of ``count`` layers."""
        if gated:
            self.linear("mlp.gate", width, inner, bias=bias, count=count)
        self.linear("mlp.up", width, inner, bias=bias, count=count)
        self.linear("mlp.down", inner, width, bias=bias, count=count)


class Source:
    """A config.json as a tower's description asks it: its own object, and the language model's fields."""

    def __init__(self, file: JsonObject, report: Report, fields: Fields) -> None:
        self.file = file
        self.report = report
        self.fields = fields

    @property
    def width(self) -> int:
        """Hidden size of the language model that the tower feeds."""
        return int(self.fields["hidden_size"])

    def config(self, key: str, model_type: str, holder: JsonObject | None = None) -> Config:
        """The object under ``key`` with the defaults of ``model_type`` behind it."""
        holder = self.file if holder is None else holder
        inner = holder.child_or_none(key, null=True)
        if inner is None:
            return Config(JsonObject({}, holder.name, holder.at(key)), model_type, self.report)
        if inner.path not in self.report.understood:
            self.report.understood.append(inner.path)
        return Config(inner, model_type, self.report)

    def named(self, known: dict[str, int], model_type: str) -> Config:
        """A tower that the file only names, by its published sizes."""
        return Config(JsonObject(dict(known), self.file.name), model_type, Report())

    def outer(self) -> Config:
        """The file's own object."""
        return Config(self.file, self.file.string_or_none("model_type", null=True) or "", self.report)


Describe = Callable[[Source], list[Tower]]

TOWERS: Final[dict[str, Describe]] = {}
"""By the ``model_type`` at the top of the file."""


def towers(*model_types: str) -> Callable[[Describe], Describe]:
    """Register a description for files of these types."""

    def register(describe: Describe) -> Describe:
        for model_type in model_types:
            TOWERS[model_type] = describe
        return describe

    return register


COUNTED: Final = QT_TRANSLATE_NOOP(
    "messages",
    "{part}: {count} weights beside the language model are counted; activations of what they read are not.",
)
PARTS: Final = {
    "vision": QT_TRANSLATE_NOOP("messages", "vision"),
    "audio": QT_TRANSLATE_NOOP("messages", "audio"),
    "speech": QT_TRANSLATE_NOOP("messages", "speech"),
    "projection": QT_TRANSLATE_NOOP("messages", "projection"),
    "contacts": QT_TRANSLATE_NOOP("messages", "contacts"),
}
"""What the parts of :data:`~memgui.spec.weights.TOWERS` are called in a sentence."""
NOT_COUNTED: Final = QT_TRANSLATE_NOOP(
    "messages", "{where} describes something beside the language model; its weights are not counted."
)


def read_towers(file: JsonObject, fields: Fields, report: Report) -> tuple[str, ...]:
    """The weights beside the language model of ``file`` (see :mod:`memgui.spec.weights`).

    What is counted is booked as an assumption, and so is what nobody described.
    """
    describe = TOWERS.get(file.string_or_none("model_type", null=True) or "")
    found = (
        [one for tower in describe(Source(file, report, fields)) for one in tower.found] if describe else []
    )
    if not found:
        for key in BLOCKS:
            if isinstance(file.value.get(key), dict):
                report.assume(NOT_COUNTED, where=key)
    elements: dict[str, int] = {}
    for one in found:
        elements[one.part] = elements.get(one.part, 0) + one.elements
    for part, count in elements.items():
        report.assume(COUNTED, part=Message(PARTS[part]), count=count)
    return tuple(map(str, found))
