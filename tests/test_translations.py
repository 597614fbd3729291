"""Every text a person sees is found by Qt Linguist's tools, in a context that is looked up again."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from memgui.spec.fields import FIELDS

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "memgui").rglob("*.py"))
MARKS = ("QT_TRANSLATE_NOOP", "translate")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """``{context: texts}`` as lupdate writes them."""
    file = tmp_path_factory.mktemp("lupdate") / "memgui.ts"
    tool = Path(sys.executable).with_name("pyside6-lupdate")
    if not tool.exists():
        pytest.skip("pyside6-lupdate is not beside this Python")
    run = subprocess.run(
        [str(tool), *map(str, SOURCES), "-ts", str(file)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "warning" not in run.stderr.lower(), run.stderr
    contexts = ElementTree.parse(file).getroot().iter("context")
    return {
        context.findtext("name", ""): {message.findtext("source", "") for message in context.iter("message")}
        for context in contexts
    }


def test_fields_are_found_whole(found: dict[str, set[str]]) -> None:
    """Label, help and choices of every row, also where a text is joined from literals."""
    for field in FIELDS:
        assert field.label in found["fields"], field.path
        assert field.help in found["fields"], field.path


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


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
