"""The commands of ``memgui``.

``memgui [PATH|NAME]`` opens the window; ``memgui estimate``, ``solve``, ``fields`` and ``check`` answer
on the terminal.  What is wrong with the input is said in one line on stderr, with exit status 2 and nothing
on stdout.  Qt is imported only for a window and for ``check``.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any, NoReturn, TextIO

from memgui import __version__
from memgui.catalog import Catalog, UnknownName
from memgui.estimator import estimate
from memgui.estimator.result import Estimate
from memgui.files.bounded import FileFault, printable
from memgui.planning.as_json import estimate_object, field_objects, solution_object
from memgui.planning.as_text import (
    as_csv,
    as_lines,
    as_markdown,
    as_table,
    field_lines,
    solution_lines,
    solution_rows,
)
from memgui.planning.display import is_missing, no_display, no_qt
from memgui.planning.opening import Opened, mattering, opened, starting_scenario, with_device
from memgui.planning.served import found as in_words
from memgui.planning.served import told
from memgui.planning.serving import limits
from memgui.planning.solve import solve
from memgui.planning.words import English
from memgui.spec import QT_TRANSLATE_NOOP, Issue, Message, Scenario, ScenarioError, replace
from memgui.spec.fields import BY_PATH
from memgui.spec.validate import validate
from memgui.spec.values import parse

WRONG_INPUT = 2


class WrongInput(Exception):
    """Something the caller must change; the text is one sentence."""


def main(argv: list[str] | None = None) -> int:
    """Run ``memgui`` with ``argv`` (``sys.argv`` without the program) and return its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    command = COMMANDS.get(arguments[0]) if arguments else None
    try:
        return _window(arguments) if command is None else command(arguments[1:])
    except (WrongInput, FileFault, ScenarioError, UnknownName) as fault:
        _complain(f"memgui: {printable(_said(fault), 2000)}")
        return WRONG_INPUT
    except BrokenPipeError:  # the reader has seen enough
        _let_go_of_stdout()
        return 0


# -- commands ---------------------------------------------------------------------------------


def _estimate(arguments: Sequence[str]) -> int:
    parser = _Parser("estimate", "How much GPU memory a set-up takes, where it goes, whether it fits.")
    _add_set_up(parser)
    options = parser.parse_args(arguments)

    scenario, issues, assumed = _scenario(options.model, options.preset, options.sets, Catalog())
    found = estimate(scenario)
    _require_right(found.issues)
    if options.form == "json":
        _print(json.dumps(estimate_object(found, issues, assumed), indent=2))
    elif options.form == "markdown":
        _print(as_markdown(found, issues, assumed))
    elif options.form == "csv":
        _print(as_csv(found))
    else:
        notes = _notes(issues, (*assumed, *found.assumptions))
        _print("\n".join((as_lines(found), *_answers(found), *notes)))
    return 0


def _answers(found: Estimate) -> Iterator[str]:
    """What is asked of a set-up that serves: room left, tokens, phases, how far it goes."""
    said = told(found)
    far = limits(found.scenario) if said else None
    if far is not None:
        said += in_words(found, far)
    words = English()
    if said:
        yield from ("", *(one.text(words) for one in said))


def _solve(arguments: Sequence[str]) -> int:
    parser = _Parser(
        "solve", "The largest value of a field with which a set-up fits, and the next that does not."
    )
    parser.add_argument(
        "--for", metavar="FIELD", dest="path", required=True, help="a whole number; memgui fields lists them"
    )
    _add_set_up(parser)
    options = parser.parse_args(arguments)
    path = _known(options.path, "--for", options.path)
    scenario, issues, assumed = _scenario(options.model, options.preset, options.sets, Catalog())
    solution = solve(scenario, path)
    if solution.largest is None and solution.next is None:
        if solution.issue is None:
            raise WrongInput(f"{path}: no value is allowed")
        raise ScenarioError(solution.issue)
    if options.form == "json":
        _print(json.dumps(solution_object(solution), indent=2))
    elif options.form is not None:
        _print(as_table(solution_rows(solution), options.form))
    else:
        _print("\n".join((solution_lines(solution), *_notes(issues, assumed))))
    return 0


def _add_set_up(parser: argparse.ArgumentParser) -> None:
    """The options that say which set-up is meant, and in which form the answer is printed."""
    parser.add_argument(
        "--model",
        metavar="PATH|NAME",
        help="a config.json, .gguf or .safetensors, a model folder, a preset, or a built-in model",
    )
    parser.add_argument("--preset", metavar="PATH", help="a preset to start from")
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        dest="sets",
        action="append",
        default=[],
        help="set a field (may be given again); memgui fields lists them",
    )
    form = parser.add_mutually_exclusive_group()
    for name in ("json", "markdown", "csv"):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {name}")


def _fields(arguments: Sequence[str]) -> int:
    parser = _Parser("fields", "Every field of a set-up: path, type, unit, range, default, meaning.")
    parser.add_argument("--json", action="store_true", help="print json")
    objects = field_objects(Catalog().first_scenario())
    if parser.parse_args(arguments).json:
        _print(json.dumps(objects, indent=2))
    else:
        _print(field_lines(objects))
    return 0


def _check(arguments: Sequence[str]) -> int:
    _Parser("check", "Start the window offscreen, run one edit through it, print versions.").parse_args(
        arguments
    )
    return int(_app().check(_print))


def _window(arguments: Sequence[str]) -> int:
    parser = _Parser(
        None,
        "How much GPU memory a transformer takes, where it goes, and what to change so that it fits.",
        "commands: memgui estimate, memgui solve, memgui fields, memgui check (--help after each says more)",
    )
    parser.add_argument("--version", action="version", version=f"memgui {__version__}")
    parser.add_argument(
        "source",
        metavar="PATH|NAME",
        nargs="?",
        help="open the window on a config.json, weights, a model folder, a preset, or a built-in model",
    )
    source: str | None = parser.parse_args(arguments).source
    content = None if source is None else opened(_not_empty("PATH|NAME", source), Catalog())
    if is_missing():
        raise WrongInput(no_display())
    return int(_app().run(content))


def _app() -> ModuleType:
    """The program with its window; Qt is imported here and nowhere else."""
    try:
        from memgui import app
    except ImportError as error:
        if (error.name or "").startswith("memgui"):
            raise
        raise WrongInput(no_qt(error)) from error
    return app


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "estimate": _estimate,
    "solve": _solve,
    "fields": _fields,
    "check": _check,
}


# -- from arguments to a scenario ---------------------------------------------------------------


def _scenario(
    model: str | None, preset: str | None, sets: Sequence[str], catalog: Catalog
) -> tuple[Scenario, tuple[Issue, ...], tuple[Message, ...]]:
    """The scenario that the options describe, what is unusual in it, what was assumed and ignored."""
    if model is None and preset is None:
        raise WrongInput("a set-up is needed: --model PATH|NAME or --preset PATH")
    base = _opened("--preset", preset, catalog) if preset is not None else Opened(catalog.first_scenario())
    subject = _opened("--model", model, catalog) if model is not None else base
    given = dict(_assignment(text) for text in sets)
    assumed = subject.assumptions
    scenario = base.content if isinstance(base.content, Scenario) else catalog.first_scenario()
    if model is not None or not isinstance(base.content, Scenario):
        scenario, told = starting_scenario(scenario, subject.model, subject.quantization)
    else:
        told = ()
    for path, value in given.items():
        scenario = replace(scenario, path, value)
    assumed = (*assumed, *mattering(told, scenario, given))
    scenario = with_device(scenario, given, catalog)
    issues = validate(scenario)
    _require_right(issues)
    issues = (*base.issues, *issues, *_without_effect(scenario, given))
    return scenario, issues, assumed


def _require_right(issues: Iterable[Issue]) -> None:
    """Raise the first error there is."""
    wrong = next((issue for issue in issues if issue.severity == "error"), None)
    if wrong is not None:
        raise ScenarioError(wrong)


def _opened(option: str, text: str, catalog: Catalog) -> Opened:
    try:
        return opened(_not_empty(option, text), catalog)
    except (FileFault, UnknownName) as fault:
        raise WrongInput(f"{option} {printable(text, 200)}: {fault}") from fault


def _not_empty(option: str, text: str) -> str:
    if not text.strip():
        raise WrongInput(f"{option} is empty: a path or the name of a built-in model is needed")
    return text


def _assignment(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    path = path.strip()
    if not equals:
        raise WrongInput(f"--set {text}: FIELD=VALUE is needed, for example training.micro_batch_size=4")
    return _known(path, "--set", text), parse(path, value)


def _known(path: str, option: str, text: str) -> str:
    if path not in BY_PATH:
        near = difflib.get_close_matches(path, BY_PATH, 3, 0.5)
        hint = f"near it: {', '.join(near)}; " if near else ""
        raise WrongInput(f"{option} {text}: there is no field {path}; {hint}memgui fields lists them all")
    return path


def _without_effect(scenario: Scenario, given: Iterable[str]) -> list[Issue]:
    """A note for each field that was set and does not matter in this scenario."""
    text = QT_TRANSLATE_NOOP("messages", "{path} was set and has no effect in this set-up.")
    return [
        Issue("note", "no_effect", (path,), Message(text, {"path": path}))
        for path in given
        if not BY_PATH[path].applies(scenario)
    ]


# -- words --------------------------------------------------------------------------------------


def _said(fault: Exception) -> str:
    """One sentence; an issue's begins with the fields it is said of, unless it names them itself."""
    if isinstance(fault, ScenarioError):
        unnamed = [path for path in fault.issue.paths if path not in fault.issue.text]
        return f"{', '.join(unnamed)}: {fault}" if unnamed else str(fault)
    return str(fault)


def _notes(issues: Iterable[Issue], assumed: Iterable[Message]) -> list[str]:
    lines = [f"{issue.severity}: {issue.text}" for issue in issues]
    lines += [f"assumed: {message.text}" for message in assumed]
    return ["", *lines] if lines else []


def _print(text: str) -> None:
    try:
        _write(text, sys.stdout)
    except BrokenPipeError:
        raise
    except OSError as fault:
        _let_go_of_stdout()
        raise WrongInput(f"the answer cannot be written: {fault.strerror}") from fault


def _complain(text: str) -> None:
    """Say it on stderr, where that can be written: what went wrong stands in the exit status as well."""
    with suppress(OSError):
        _write(text, sys.stderr)


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:  # closed by whoever started memgui; print() would take another one
        return
    try:
        print(text, file=stream, flush=True)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        print(text.encode(encoding, "replace").decode(encoding), file=stream, flush=True)


def _let_go_of_stdout() -> None:
    """Python must not try to flush to it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line, like every other."""

    def __init__(self, command: str | None, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog="memgui" if command is None else f"memgui {command}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
        )

    def _print_message(self, message: str, file: Any = None) -> None:  # help and version
        _print(message.rstrip("\n"))

    def error(self, message: str) -> NoReturn:
        raise WrongInput(f"{message}; {self.prog} --help says what is allowed")
