"""Texts a person will see, made where Qt must not be imported.

``QT_TRANSLATE_NOOP`` only marks: Qt's ``lupdate`` finds a call by this very name, whoever defines
it, and the text is translated where it is shown.  A text with values in it is a :class:`Message`:
the template is what gets translated, the values are put in afterwards.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

_BREAKS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """``text`` of a stranger's, with what would break its line or turn its direction shown as escapes."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def QT_TRANSLATE_NOOP(context: str, text: str) -> str:
    """Mark ``text`` for translation in ``context`` and return it unchanged."""
    return text


class Message(msgspec.Struct, frozen=True):
    """A translatable sentence: ``template`` with ``{name}`` places, and the values for them.

    Whoever shows it translates ``template`` (context ``"messages"``) and calls :meth:`format`
    with the result; :attr:`text` is the English sentence.
    """

    template: str
    args: dict[str, str | int | float] = {}

    @property
    def text(self) -> str:
        """The English sentence."""
        return self.format(self.template)

    def format(self, template: str) -> str:
        """``template`` (a translation of ours) with its values: integers grouped, texts on one line."""
        shown = {
            key: f"{value:,}"
            if isinstance(value, int) and not isinstance(value, bool)
            else one_line(str(value))
            for key, value in self.args.items()
        }
        return template.format_map(shown)

    def __str__(self) -> str:
        return self.text


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
    def text(self) -> str:
        """The English sentence, with what is allowed after it."""
        return self.message.text if self.allowed is None else f"{self.message.text} {self.allowed.text}"


_NO_ESTIMATE = QT_TRANSLATE_NOOP("messages", "memgui has a fault and cannot compute this set-up ({error}).")


def fault_issue(error: Exception, template: str = _NO_ESTIMATE) -> Issue:
    """A fault of ours said plainly: ``template`` has a place for ``{error}``."""
    said = one_line(f"{type(error).__name__}: {error}")[:200]
    return Issue("error", "internal", (), Message(template, {"error": said}))


class ScenarioError(ValueError):
    """A value that a scenario cannot hold; carries the :class:`Issue` that says why."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.text)
        self.issue = issue
