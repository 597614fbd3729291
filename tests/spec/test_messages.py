import pytest

from memgui.spec import Issue, Message, one_line
from memgui.spec.messages import within


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


@pytest.mark.parametrize(
    ("sentence", "inside"),
    [
        ("The model has no layers.", "the model has no layers"),
        ("No value fits", "no value fits"),
        ("A name is missing.", "a name is missing"),
        ("Micro batch cannot be 0.", "micro batch cannot be 0"),
        ("模型没有层。", "模型没有层"),
        *(
            (kept, kept)
            for kept in ("PEFT refuses", "PyTorch's", "Megatron-LM wants", "KV cache", "GPU 1", "")
        ),
        *((kept, kept) for kept in ("Shampoo needs", "Unsloth's own", "vLLM fills", "2·P is", "FSDP has")),
    ],
)
def test_a_sentence_in_a_sentence_begins_small_unless_with_a_name(sentence: str, inside: str) -> None:
    assert within(sentence) == inside


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-5, "−5"),
        (-1234, "−1,234"),
        (-0.1, "−0.1"),
        (1e-05, "1e−05"),
        (0.0, "0"),
        (0.99, "0.99"),
        ("-5", "-5"),
    ],
)
def test_a_number_has_a_true_minus_and_a_text_stays_as_it_is(value: float | str, shown: str) -> None:
    assert Message("It cannot be {value}.", {"value": value}).text == f"It cannot be {shown}."


def test_a_number_chooses_its_words() -> None:
    text = "{count} {count:layer is|layers are} split into {parts} {parts:part|parts}."
    said = {count: Message(text, {"count": count, "parts": 1}).text for count in (0, 1, 1_000)}
    assert said == {
        0: "0 layers are split into 1 part.",
        1: "1 layer is split into 1 part.",
        1_000: "1,000 layers are split into 1 part.",
    }
    assert (
        Message(text, {"count": 1, "parts": 2}).said(lambda _: "{count} 层分成 {parts} 份。")
        == "1 层分成 2 份。"
    )


def test_what_is_allowed_is_said_after_what_is_wrong() -> None:
    wrong, allowed = Message("{path} cannot be 0.", {"path": "a.b"}), Message("Allowed: 1.")
    assert Issue("error", "code", ("a.b",), wrong).whole == wrong
    issue = Issue("error", "code", ("a.b",), wrong, allowed)
    assert issue.text == "a.b cannot be 0. Allowed: 1."
    assert issue.whole.said(lambda template: f"⟦{template}⟧") == "⟦⟦a.b cannot be 0.⟧ ⟦Allowed: 1.⟧⟧"
