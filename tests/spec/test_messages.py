import pytest

from memgui.spec import Issue, Message, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Llama 3.1", "Llama 3.1"),
        ("тест 模型 é 👩‍🚀 می‌خواهم", "тест 模型 é 👩‍🚀 می‌خواهم"),  # joiners belong to words and pictures
        ("80\u00a0GB\u2009x", "80\u00a0GB\u2009x"),
        ("a\nb\r\x1b[31m", "a\\nb\\r\\x1b[31m"),
        ("safe\u202egpj.exe\u2066", "safe\\u202egpj.exe\\u2066"),
        ("one\u2028two\u2029\x85", "one\\u2028two\\u2029\\x85"),
        ("half \ud800", "half \\ud800"),
        ("\\n stays", "\\n stays"),
    ],
)
def test_a_strangers_text_stays_on_its_line_and_in_its_direction(text: str, shown: str) -> None:
    assert one_line(text) == shown
    message = Message("“{name}” has {count} parts.", {"name": text, "count": 12345})
    assert message.text == f"“{shown}” has 12,345 parts."


def test_a_message_in_a_message_is_translated_with_it() -> None:
    said = Message("Set aside. {reason}", {"reason": Message("{file} is gone.", {"file": "a\nb"})})
    assert said.text == "Set aside. a\\nb is gone."
    assert said.said(lambda template: f"⟦{template}⟧") == "⟦Set aside. ⟦a\\nb is gone.⟧⟧"


def test_what_is_allowed_is_said_after_what_is_wrong() -> None:
    wrong, allowed = Message("{path} cannot be 0.", {"path": "a.b"}), Message("Allowed: 1.")
    assert Issue("error", "code", ("a.b",), wrong).whole == wrong
    issue = Issue("error", "code", ("a.b",), wrong, allowed)
    assert issue.text == "a.b cannot be 0. Allowed: 1."
    assert issue.whole.said(lambda template: f"⟦{template}⟧") == "⟦⟦a.b cannot be 0.⟧ ⟦Allowed: 1.⟧⟧"
