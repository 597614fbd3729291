"""The floors of the house: who may import whom, what each floor may reach, and how text is marked."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "memgui"
LONGEST_MODULE = 450

# Each part of memgui, with the parts it may import. `memgui` itself (the version) is open to all.
SIDES = {"spec", "files", "estimator", "catalog", "importers", "presets"}
FLOORS: dict[str, set[str]] = {
    "_resources": set(),
    "spec": set(),
    "files": {"spec"},
    "estimator": {"spec"},
    "catalog": {"spec", "files", "_resources"},
    "importers": {"spec", "files", "_resources"},
    "presets": {"spec", "files"},
    "planning": SIDES,
    "document": SIDES | {"planning"},
    "gui": SIDES | {"planning", "document", "_resources"},
    "app": SIDES | {"planning", "document", "gui", "_resources"},
    # Beside gui: it opens a window through app, and never touches a widget itself.
    "cli": SIDES | {"planning", "document", "app", "_resources"},
    "__main__": {"cli"},
}

# The libraries of pyproject.toml that each part may import; none for a part that is not named.
# PySide6 is open module by module, so that no widget gets below gui and nothing gets to the network.
QT_CORE = {"PySide6.QtCore", "PySide6.QtGui", "PySide6.__version__", "shiboken6"}
QT_WIDGETS = QT_CORE | {
    "PySide6.QtWidgets",
    "PySide6.QtSvg",
    "PySide6.QtSvgWidgets",
    "PySide6.QtPrintSupport",
}
LIBRARIES: dict[str, set[str]] = {
    "spec": {"msgspec"},
    "estimator": {"msgspec"},
    "files": {"msgspec"},
    "catalog": {"msgspec"},
    "importers": {"msgspec"},
    "presets": {"msgspec", "platformdirs", "pynvml"},
    "planning": {"msgspec"},
    "document": {"msgspec"} | QT_CORE,
    "gui": {"msgspec", "numpy", "pyqtgraph"} | QT_WIDGETS,
    "app": {"msgspec", "platformdirs"} | QT_WIDGETS,
    "cli": {"msgspec"},
}

# spec and estimator are arithmetic: what is not listed (files, clock, locale, chance, threads) is closed.
PURE = {"spec", "estimator"}
PURE_STDLIB = {
    *(
        "__future__",
        "abc",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "decimal",
        "difflib",
    ),
    *("enum", "fractions", "functools", "graphlib", "heapq", "itertools", "math", "numbers", "operator"),
    *("re", "string", "textwrap", "types", "typing", "unicodedata"),
}
PURE_NAMES = {"threading.RLock"}
"""Programs are shared by the threads of who asks: they take turns where one changes them."""
PURE_CALLS = {"open", "input", "print", "breakpoint"}

# Nothing in memgui runs what a file says, and nothing reaches the network.
BANNED = {
    *("pickle", "cPickle", "dill", "joblib", "marshal", "shelve", "code", "codeop", "runpy", "torch"),
    *("socket", "socketserver", "ssl", "select", "selectors", "asyncio", "http", "urllib", "urllib3"),
    *("requests", "httpx", "aiohttp", "ftplib", "smtplib", "poplib", "imaplib", "xmlrpc", "webbrowser"),
}
BANNED_CALLS = {"eval", "exec", "compile", "__import__"}
BANNED_ATTRIBUTES = {"import_module", "allow_pickle"}

MAKERS = {"format", "join", "replace"}  # methods that make a text which stands in no source
MARKERS = {"tr": 0, "QT_TR_NOOP": 0, "QT_TRANSLATE_NOOP": 1, "translate": 1}  # name -> which argument is text


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name: `from a.b import c` is `a.b.c`, for it may be a module as well as a name."""

    name: str
    line: int

    def is_of(self, module: str) -> bool:
        return self.name == module or self.name.startswith(module + ".")


@dataclass(frozen=True, slots=True)
class Module:
    """A source file of memgui, with the floor it stands on."""

    path: Path
    floor: str
    tree: ast.Module
    lines: int

    def imports(self) -> Iterator[Import]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (Import(alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                package = [*self.path.relative_to(ROOT).parent.parts]
                base = package[: len(package) - node.level + 1] if node.level else []
                prefix = ".".join([*base, *([node.module] if node.module else [])])
                yield from (Import(f"{prefix}.{alias.name}", node.lineno) for alias in node.names)

    def calls(self) -> Iterator[ast.Call]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def says(self, line: int, what: str) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}: {what}"


def parse(path: Path, text: str) -> Module:
    parts = path.relative_to(PACKAGE).parts
    floor = parts[0] if len(parts) > 1 else path.stem
    return Module(path, floor, ast.parse(text, str(path)), text.count("\n"))


def modules() -> list[Module]:
    return [parse(path, path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]


def wrong_floor(module: Module) -> Iterator[str]:
    if module.floor == "__init__":
        allowed: set[str] = set()
    elif module.floor in FLOORS:
        allowed = FLOORS[module.floor] | {module.floor, "__version__"}
    else:
        yield module.says(1, f"{module.floor} is no floor of the house; give it a place in FLOORS")
        return
    for imported in module.imports():
        if imported.is_of("memgui"):
            part = imported.name.split(".")[1] if "." in imported.name else "__version__"
            if part not in allowed:
                yield module.says(imported.line, f"{module.floor} must not import {imported.name}")


def wrong_library(module: Module) -> Iterator[str]:
    allowed = LIBRARIES.get(module.floor, set())
    for imported in module.imports():
        top = imported.name.split(".")[0]
        if top == "memgui":
            continue
        if top in sys.stdlib_module_names:
            if module.floor in PURE and top not in PURE_STDLIB and imported.name not in PURE_NAMES:
                yield module.says(
                    imported.line, f"{module.floor} is pure and must not import {imported.name}"
                )
        elif not any(imported.is_of(library) for library in allowed):
            yield module.says(imported.line, f"{module.floor} must not import {imported.name}")


def dangerous(module: Module) -> Iterator[str]:
    for imported in module.imports():
        if imported.name.split(".")[0] in BANNED or imported.is_of("importlib.import_module"):
            yield module.says(imported.line, f"nothing in memgui may import {imported.name}")
    banned_calls = BANNED_CALLS | (PURE_CALLS if module.floor in PURE else set())
    for call in module.calls():
        if isinstance(call.func, ast.Name) and call.func.id in banned_calls:
            yield module.says(call.lineno, f"{call.func.id}() must not be called here")
        if isinstance(call.func, ast.Attribute) and call.func.attr in BANNED_ATTRIBUTES:
            yield module.says(call.lineno, f"{call.func.attr}() must not be called here")
        if any(keyword.arg in BANNED_ATTRIBUTES for keyword in call.keywords):
            yield module.says(call.lineno, "numpy's allow_pickle must not be used")


def made(text: ast.expr) -> bool:
    if isinstance(text, ast.Call):
        return isinstance(text.func, ast.Attribute) and text.func.attr in MAKERS
    if isinstance(text, ast.BinOp):  # of numbers, where it is QPainter.translate(x, y)
        return any(isinstance(node, ast.Constant) and isinstance(node.value, str) for node in ast.walk(text))
    return isinstance(text, ast.JoinedStr)


def unmarkable(module: Module) -> Iterator[str]:
    """Texts that lupdate cannot read: it takes literals only, and an f-string as one that never matches."""
    for call in module.calls():
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        place = MARKERS.get(name)
        if place is None or (name == "translate" and len(call.args) < 2):  # str.translate(table)
            continue
        for argument in call.args[: place + 1]:
            literal = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            # translate() may be given a text that was marked where it was written.
            if made(argument) or (name != "translate" and not literal):
                yield module.says(argument.lineno, f"{name}() needs a literal; put values in afterwards")


def too_long(module: Module) -> Iterator[str]:
    if module.lines > LONGEST_MODULE:
        yield module.says(LONGEST_MODULE, f"{module.lines} lines; split it (at most {LONGEST_MODULE})")


RULES = [wrong_floor, wrong_library, dangerous, unmarkable, too_long]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_house_keeps_the_rule(rule: Callable[[Module], Iterator[str]]) -> None:
    found = [fault for module in modules() for fault in rule(module)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("rule", "file", "text"),
    [
        (wrong_floor, "spec/a.py", "import memgui.estimator"),
        (wrong_floor, "estimator/a.py", "from memgui import catalog"),
        (wrong_floor, "estimator/a.py", "def f():\n    from memgui.catalog import models"),
        (wrong_floor, "planning/a.py", "from ..document import document"),
        (wrong_floor, "document/a.py", "from memgui.gui.form import Form"),
        (wrong_floor, "catalog/a.py", "from memgui.presets import store"),
        (wrong_floor, "gui/a.py", "import memgui.app"),
        (wrong_floor, "cli.py", "from memgui.gui import window"),
        (wrong_floor, "utils/a.py", ""),
        (wrong_floor, "__init__.py", "from memgui.spec import Scenario"),
        (wrong_library, "spec/a.py", "from PySide6.QtCore import QObject"),
        (wrong_library, "spec/a.py", "import os"),
        (wrong_library, "spec/a.py", "from pathlib import Path"),
        (wrong_library, "estimator/a.py", "import time"),
        (wrong_library, "estimator/a.py", "from threading import Thread"),
        (wrong_library, "estimator/a.py", "from datetime import datetime"),
        (wrong_library, "estimator/a.py", "import locale, random"),
        (wrong_library, "planning/a.py", "import PySide6"),
        (wrong_library, "document/a.py", "from PySide6 import QtWidgets"),
        (wrong_library, "gui/a.py", "from PySide6.QtNetwork import QTcpSocket"),
        (wrong_library, "gui/a.py", "import scipy"),
        (dangerous, "catalog/a.py", "import pickle"),
        (dangerous, "gui/a.py", "from urllib.request import urlopen"),
        (dangerous, "app.py", "import socket"),
        (dangerous, "cli.py", "import requests"),
        (dangerous, "importers/a.py", "eval('1')"),
        (dangerous, "importers/a.py", "exec('1')"),
        (dangerous, "importers/a.py", "import importlib\nimportlib.import_module('pickle')"),
        (dangerous, "importers/a.py", "import numpy\nnumpy.load('a', allow_pickle=True)"),
        (dangerous, "spec/a.py", "open('a')"),
        (unmarkable, "gui/a.py", "self.tr(f'{n} layers')"),
        (unmarkable, "gui/a.py", "self.tr('layers ' + n)"),
        (unmarkable, "gui/a.py", "self.tr('%d layers' % n)"),
        (unmarkable, "gui/a.py", "self.tr('{} layers'.format(n))"),
        (unmarkable, "gui/a.py", "self.tr(label)"),
        (unmarkable, "gui/a.py", "QCoreApplication.translate('gui', f'{n} layers')"),
        (unmarkable, "gui/a.py", "QCoreApplication.translate('gui', '{} layers'.format(n))"),
        (unmarkable, "spec/a.py", "QT_TRANSLATE_NOOP('fields', f'{n} layers')"),
        (unmarkable, "spec/a.py", "QT_TRANSLATE_NOOP(context, 'layers')"),
        (too_long, "gui/a.py", "\n" * (LONGEST_MODULE + 1)),
    ],
)
def test_rule_finds_the_fault(rule: Callable[[Module], Iterator[str]], file: str, text: str) -> None:
    assert list(rule(parse(PACKAGE / file, text)))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "spec/a.py",
            "import msgspec\nfrom fractions import Fraction\nfrom memgui.spec.model import ModelSpec",
        ),
        ("estimator/a.py", "from memgui.spec import Scenario\nimport re\nre.compile('a')"),
        ("catalog/a.py", "from memgui import _resources\nimport json\nopen(_resources.root() / 'a')"),
        ("document/a.py", "from PySide6.QtCore import QObject\nfrom memgui import __version__"),
        ("gui/a.py", "self.tr('%n layers', '', count)\ndialog.exec()"),
        ("gui/a.py", "painter.translate(x + 1, y / 2)\nfrom PySide6 import __version__"),
        ("gui/a.py", "QCoreApplication.translate('verdict', WORDS.get(kind, WORDS['unknown']))"),
        ("gui/a.py", "QCoreApplication.translate('fields', field.label)\ntext.translate({ord('a'): f'{b}'})"),
        ("cli.py", "def window():\n    from memgui import app"),
        ("__main__.py", "from memgui.cli import main"),
    ],
)
def test_rule_lets_good_code_pass(file: str, text: str) -> None:
    module = parse(PACKAGE / file, text)
    assert [fault for rule in RULES for fault in rule(module)] == []


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("memgui.spec", "PySide6"),
        ("memgui.estimator", "PySide6"),
        ("memgui.catalog", "PySide6"),
        ("memgui.files", "PySide6"),
        ("memgui.importers", "PySide6"),
        ("memgui.presets", "PySide6"),
        ("memgui.planning", "PySide6"),
        ("memgui.cli", "PySide6"),
        ("memgui.app", "pyqtgraph"),
    ],
)
def test_import_leaves_out(module: str, absent: str) -> None:
    """What the walk over imports cannot see: the libraries that come along with others."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    if not path.with_suffix(".py").exists() and not path.joinpath("__init__.py").exists():
        pytest.skip(f"{module} is not built yet")
    code = f"import sys, {module}; sys.exit({absent!r} in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr or f"importing {module} brings {absent} along"
