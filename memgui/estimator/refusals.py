"""How what is not modelled is refused."""

from __future__ import annotations

from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, Value


class NotCovered(NotImplementedError):
    """A model with something that no module writes; ``message`` says what."""

    issues: tuple[Issue, ...] = ()
    """What is wrong with the input, where that is why."""

    def __init__(self, message: Message) -> None:
        super().__init__(message.text)
        self.message = message


class Refused(NotCovered):
    """A wrong input, which only shows when the model is laid out; ``issue`` says what is allowed."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.message)
        self.issues = (issue,)


def not_with(path: str, value: object, other: Value) -> Message:
    """That a value is not modelled beside ``other``, a choice that goes with further ones elsewhere."""
    return Message(
        QT_TRANSLATE_NOOP("messages", "{path} = {value} is not modelled yet with {other}."),
        {"path": path, "value": Named(path, (value,)), "other": other},
    )


def not_yet(path: str, value: object) -> Message:
    """That a value is not modelled."""
    return Message(
        QT_TRANSLATE_NOOP("messages", "{path} = {value} is not modelled yet."),
        {"path": path, "value": Named(path, (value,))},
    )
