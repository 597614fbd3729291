"""Every text a person sees is found by Qt Linguist's tools, in a context that is looked up again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from string import Formatter

import pytest

from memgui.spec.fields import FIELDS
from memgui.spec.messages import NAMES
from tests.linguist import SOURCES, foreign, lupdate

MARKS = ("QT_TRANSLATE_NOOP", "translate")
SAYING = ("Message", "FileFault", "assume", "refuse", "Said", "sentence")
"""What makes a text of a template and values: a value that is a text of ours is translated by itself."""
NO_WORDS = ("where", "mixed", "kind", "needed")
"""Values put together here that are names: a place in a file, a setting, a file's ending, a version."""


ORDINARY = {
    *("Bring", "Classifier", "Hash", "Mixing", "Nominal", "Pin", "Pooler", "Replace", "Stop", "Tied"),
    *("Utilisation", "Working"),
}
"""Words that stand at the head of a text alone and are no names."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    return lupdate(tmp_path_factory.mktemp("lupdate"))


def test_fields_are_found_whole(found: dict[str, set[str]]) -> None:
    """Label, help and choices of every row, also where a text is joined from literals."""
    for field in FIELDS:
        assert field.label in found["fields"], field.path
        assert field.help in found["fields"], field.path
        for text in (field.unit, field.empty_label, field.why_not):
            assert not text or text in found["fields"] or not any(foreign(text)), (field.path, text)
        for choice in field.choices:
            for text in (choice.label, choice.note, choice.help):
                assert text in found["fields"] or not any(foreign(text, {choice.value})), (field.path, text)


def test_a_context_is_a_class_or_a_name_given_by_hand(found: dict[str, set[str]]) -> None:
    """``self.tr`` looks a text up under its class: lupdate must have filed it there."""
    classes, given = set(), set()
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes.add(node.name)
            elif isinstance(node, ast.Call) and len(node.args) > 1 and _called(node) in MARKS:
                context = node.args[0]
                if isinstance(context, ast.Constant) and isinstance(context.value, str):
                    given.add(context.value)
    assert set(found) <= classes | given, sorted(set(found) - classes - given)
    assert given <= set(found), sorted(given - set(found))


def test_words_that_a_number_chooses_are_two(found: dict[str, set[str]]) -> None:
    """``{count:layer|layers}``: what is said of one, and of any other number, which the text shows."""
    for text in (text for texts in found.values() for text in texts):
        places = list(Formatter().parse(text)) if "|" in text else []
        shown = {name for _, name, words, _ in places if name and not words}
        for _, name, words, _ in places:
            assert not words or (words.count("|") == 1 and name in shown), text


def test_names_are_known_by_which_a_sentence_in_a_sentence_begins(found: dict[str, set[str]]) -> None:
    """A first word with one capital is written small elsewhere, or is a name (``messages.NAMES``)."""
    words = {word for texts in found.values() for text in texts for word in re.findall(r"[a-z]+", text)}
    first = (
        re.match(r"[A-Z][a-z]+(?!\w)", text) for text in found["messages"] | {field.label for field in FIELDS}
    )
    assert {one[0] for one in first if one and one[0].lower() not in words} <= NAMES | ORDINARY


def test_no_english_is_put_into_a_sentence() -> None:
    """A text of ours in a text of ours is a message of its own: else it stays English in a translation."""
    glued = []
    for source in SOURCES:
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Call) and _called(node) in SAYING:
                glued += [f"{source.name}:{node.lineno} {name}" for name in _texts_put_in(node)]
    assert glued == []


def _texts_put_in(call: ast.Call) -> Iterator[str]:
    values = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg != "context"]
    for given in (*call.args, *(value for _, value in values)):
        if isinstance(given, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in given.keys]
            values += zip(map(str, keys), given.values, strict=True)
    for name, value in values:
        text = isinstance(value, ast.JoinedStr) or (
            isinstance(value, ast.Constant) and isinstance(value.value, str)
        )
        if text and name not in NO_WORDS:
            yield f"{name}={ast.unparse(value)}"


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
