"""Texts a person will see, made where Qt must not be imported.

``QT_TRANSLATE_NOOP`` only marks: Qt's ``lupdate`` finds a call by this very name, whoever defines
it, and the text is translated where it is shown.  A text with values in it is a :class:`Message`:
the template is what gets translated, the values are put in afterwards; one that is a message itself is
translated too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Union

import msgspec

_BREAKS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """``text`` of a stranger's, with what would break its line or turn its direction shown as escapes."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


MINUS: Final = "\N{MINUS SIGN}"

NAMES: Final = frozenset(
    (
        *("Adafactor", "Apollo", "Kimi", "Korthikanti", "Liger", "Lion", "Llama", "Mamba", "Megatron"),
        *("Mel", "Metal", "Muon", "Ollama", "Prodigy", "Python", "Shampoo", "Sophia", "Trainer"),
        *("Transformers", "Unsloth"),
    )
)
"""Words that keep their capital anywhere; what has another one within needs no mention."""


def within(sentence: str) -> str:
    """``sentence`` as the end of another: without a full stop, small where it began with no name."""
    sentence = sentence.rstrip(".。")
    first = re.match(r"[A-Z][a-z]*(?!\w)", sentence)  # compiled when it is first asked for, not at a start
    return sentence if first is None or first[0] in NAMES else sentence[0].lower() + sentence[1:]


def QT_TRANSLATE_NOOP(context: str, text: str) -> str:
    """Mark ``text`` for translation in ``context`` and return it unchanged."""
    return text


class Count(str):
    """A number as it is shown.  In a template it also chooses words: ``{count} {count:layer|layers}``.

    What stands first is said of one, the other of any other number; a translation may leave the choice out.
    """

    is_one: bool

    def __new__(cls, shown: str, *, is_one: bool) -> Count:
        made = super().__new__(cls, shown)
        made.is_one = is_one
        return made

    def __format__(self, words: str) -> str:
        if not words:
            return str(self)
        one, others = words.split("|")
        return one if self.is_one else others


def counted(number: float) -> Count:
    """``number`` grouped by commas, with a true minus below zero."""
    return Count(f"{number:,}".replace("-", MINUS).removesuffix(".0"), is_one=number == 1)


class Named(msgspec.Struct, frozen=True):
    """Values of the field at ``path``, or without any the field itself.

    A terminal calls them as they are typed there, the window by their labels.
    """

    path: str
    values: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        """As it is typed."""
        return ", ".join(map(_typed, self.values)) if self.values else self.path


def _typed(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else one_line(str(value))


Value = Union[str, int, float, "Message", Named]
"""What a place of a message takes: a name or text that is no sentence, a number, a message of its own,
values of a field."""


class Message(msgspec.Struct, frozen=True):
    """A translatable sentence: ``template`` with ``{name}`` places, and the values for them.

    Whoever shows it calls :meth:`said` with what translates a template (context ``"messages"``);
    :attr:`text` is the English sentence.
    """

    template: str
    args: Mapping[str, Value] = {}

    @property
    def text(self) -> str:
        """The English sentence."""
        return self.said(lambda template: template)

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields it is about, whether or not it has a place for their names."""
        named = (value.path if isinstance(value, Named) else value for value in self.args.values())
        return tuple(dict.fromkeys(value for value in named if isinstance(value, str) and "." in value))

    def said(self, translate: Callable[[str], str]) -> str:
        """The sentence in the language of ``translate``: numbers are a :class:`Count`, texts on one line."""
        shown = {key: _said(value, translate) for key, value in self.args.items()}
        return translate(self.template).format_map(shown)

    def __str__(self) -> str:
        return self.text


def _said(value: Value, translate: Callable[[str], str]) -> str:
    if isinstance(value, Message):
        return value.said(translate)
    if isinstance(value, Named):
        return value.text
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return counted(value)
    return one_line(str(value))


_WRONG_ALLOWED: Final = QT_TRANSLATE_NOOP("messages", "{wrong} {allowed}")


def listed(values: Iterable[Value]) -> Value:
    """Values one after another, parted as the language parts them."""
    first, *rest = values
    if not rest:
        return first
    return Message(
        QT_TRANSLATE_NOOP("messages", "{first}, {further}"), {"first": first, "further": listed(rest)}
    )


class Issue(msgspec.Struct, frozen=True):
    """Something wrong or unusual in a scenario, said of the fields it names.

    ``severity`` is ``"error"`` (nothing can be computed), ``"warning"`` (computed all the same)
    or ``"note"``.  ``code`` is stable and machine-readable.
    """

    severity: str
    code: str
    paths: tuple[str, ...]
    message: Message
    allowed: Message | None = None

    @property
    def whole(self) -> Message:
        """What is wrong, with what is allowed after it."""
        if self.allowed is None:
            return self.message
        return Message(_WRONG_ALLOWED, {"wrong": self.message, "allowed": self.allowed})

    @property
    def text(self) -> str:
        """The English sentence, with what is allowed after it."""
        return self.whole.text


_NO_ESTIMATE = QT_TRANSLATE_NOOP("messages", "memgui has a fault and cannot compute this set-up ({error}).")


def fault_issue(error: Exception, template: str = _NO_ESTIMATE) -> Issue:
    """A fault of ours said plainly: ``template`` has a place for ``{error}``."""
    said = one_line(f"{type(error).__name__}: {error}")[:200]
    return Issue("error", "internal", (), Message(template, {"error": said}))


def allowed(path: str, *values: object) -> Message:
    """That the field at ``path`` may have these values only."""
    return Message(QT_TRANSLATE_NOOP("messages", "Allowed: {allowed}."), {"allowed": Named(path, values)})


class ScenarioError(ValueError):
    """A value that a scenario cannot hold; carries the :class:`Issue` that says why."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.text)
        self.issue = issue
