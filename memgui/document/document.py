"""The scenario that is open: every change goes through its undo stack, every result comes out once.

    edit / load  ->  undo command (old state, new state)  ->  one recompute per turn of the event loop
                 ->  result(Result)

Views keep no numbers of their own and never write to a scenario.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from PySide6.QtCore import QCoreApplication, QElapsedTimer, QObject, QTimer, Signal
from PySide6.QtGui import QUndoStack
from shiboken6 import isValid

from memgui.document.change import Change
from memgui.document.result import Result
from memgui.estimator.result import Estimate
from memgui.estimator.targets import TARGETS, usual_targets
from memgui.spec import (
    NO_REPORT,
    ImportReport,
    Issue,
    ModelSpec,
    Scenario,
    ScenarioError,
    fault_issue,
    get,
    replace,
)
from memgui.spec.fields import BY_PATH
from memgui.spec.validate import validate

log = logging.getLogger(__name__)

PAUSE_MS = 1000
"""A rest this long ends a gesture: what is typed or turned after it is another undo step."""

UNDO_LIMIT = 1000


class State(msgspec.Struct, frozen=True):
    """What one undo step goes back to.

    ``origin`` is the model as it was loaded, against which changed model fields are counted;
    ``name`` is that of the preset or file the scenario came from, empty where there is none;
    ``preset`` is the key under which the person's presets have it, empty where they do not.
    """

    scenario: Scenario
    origin: ModelSpec
    name: str = ""
    preset: str = ""
    measured: Mapping[str, Any] = {}
    """What real runs of the set-up used, as a preset keeps it (``memgui.planning.measured.to_plain``)."""
    report: ImportReport = NO_REPORT
    """What became of the file that the model was read from."""
    fitted: Mapping[str, tuple[Any, Any]] = {}
    """Fields that follow the open model (lengths it has positions for, how its weights are stored), by path:
    what was asked, what it is instead."""

    def as_asked(self) -> Scenario:
        """The scenario without what follows the open model, where nobody changed that since."""
        scenario = self.scenario
        for path, asked in self.asked.items():
            scenario = replace(scenario, path, asked)
        return scenario

    @property
    def asked(self) -> dict[str, Any]:
        """What was asked of the fields that follow the open model and that nobody changed since, by path."""
        scenario = self.scenario
        return {
            path: asked for path, (asked, fitting) in self.fitted.items() if get(scenario, path) == fitting
        }


class _Kept(NamedTuple):
    """What a preset or file holds, as this window last read or wrote it."""

    name: str
    scenario: Scenario
    measured: Mapping[str, Any]


class Document(QObject):
    """The open scenario, its history and its newest result."""

    result = Signal(object)
    """The newest :class:`Result`, at most one per turn of the event loop."""
    restored = Signal(str)
    """After undo or redo: path of the field to look at, empty where many changed."""
    changed = Signal()
    """The scenario is another one now; its result follows."""

    def __init__(
        self,
        state: State | Scenario,
        estimate: Callable[[Scenario], Estimate],
        parent: QObject | None = None,
    ) -> None:
        """``estimate`` is the estimator; it is a parameter so that this floor can be tested alone."""
        super().__init__(parent)
        self._state = state if isinstance(state, State) else State(state, state.model)
        self._estimate = estimate
        self._gesture = 0
        self._touched = ""
        self._last = Result(self.scenario, None)
        self._defaults_of: Scenario | None = None
        self._changed_of: State | None = None
        self._changed: frozenset[str] = frozenset()
        self._kept: dict[str, _Kept] = {}
        self._changed_parts: dict[str, tuple[Any, Any, tuple[str, ...]]] = {}
        self.undo_stack = QUndoStack(self)
        self.undo_stack.setUndoLimit(UNDO_LIMIT)
        self._rest = QElapsedTimer()
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._recompute)
        self._turn.start()

    @property
    def estimator(self) -> Callable[[Scenario], Estimate]:
        """What answers for a scenario; views that ask about others ask it too."""
        return self._estimate

    @property
    def state(self) -> State:
        """The scenario with where it came from."""
        return self._state

    @property
    def scenario(self) -> Scenario:
        """The open scenario."""
        return self._state.scenario

    def __del__(self) -> None:
        """Let go of the steps, which are Qt's: a collector that takes a cycle apart may free them first."""
        stack = self.__dict__.get("undo_stack")
        if stack is not None and isValid(stack):
            stack.blockSignals(True)
            stack.clear()

    @property
    def is_modified(self) -> bool:
        """Whether what is open differs from the preset or file that it came from, where that is known."""
        state = self._state
        kept = self._kept.get(state.preset or state.name)
        return kept is not None and (kept.scenario, kept.measured) != (state.scenario, state.measured)

    @property
    def last_result(self) -> Result:
        """The newest result; it may be a turn behind the scenario (:meth:`settle` catches up)."""
        return self._last

    def default(self, path: str) -> Any:
        """What the field holds where nobody changed it: the type's default, or the loaded model's."""
        return get(self._defaults(), path)

    def is_changed(self, path: str) -> bool:
        """Whether the field differs from its default."""
        return path in self.changed_paths()

    def changed_paths(self) -> frozenset[str]:
        """Paths of the fields that differ from their default."""
        if self._changed_of is not self._state:
            self._changed_of = self._state
            self._changed = self._found_changed(self.scenario, self._defaults())
        return self._changed

    def _found_changed(self, scenario: Scenario, default: Scenario) -> frozenset[str]:
        """Each part is looked through when it is another one: an edit leaves most as they are."""
        found: list[str] = []
        for name in scenario.__struct_fields__:
            one, other = getattr(scenario, name), getattr(default, name)
            known = self._changed_parts.get(name)
            if known is None or known[0] is not one or known[1] is not other:
                known = self._changed_parts[name] = one, other, tuple(_differing(one, other, name))
            found += known[2]
        return frozenset(found)

    def _defaults(self) -> Scenario:
        if self._defaults_of is None or self._defaults_of.model is not self._state.origin:
            origin = self._state.origin
            self._defaults_of = replace(Scenario(model=origin), TARGETS, usual_targets(origin))
        return self._defaults_of

    def edit(self, path: str, value: Any, *, held: bool = False) -> None:
        """Set one field.  Edits of one field within one gesture are one undo step.

        ``held`` says that the gesture goes on however long the person rests (a pressed slider).
        A value outside the field's range is taken and answered with an issue; a value of another
        type raises :class:`ScenarioError`.
        """
        field = BY_PATH[path]
        self.edit_many({path: value}, QCoreApplication.translate("fields", field.label), held=held)

    def edit_many(self, values: Mapping[str, Any], text: str, *, held: bool = False) -> None:
        """Set several fields as one undo step called ``text``; the first is the one touched."""
        scenario = self.scenario
        for path, value in values.items():
            scenario = replace(scenario, path, value)
        paths = tuple(values)
        touched = paths[0] if paths else ""
        rested = self._rest.isValid() and self._rest.elapsed() >= PAUSE_MS
        if rested or touched != self._touched:
            self.finish_gesture()
        self._touched = touched
        if scenario != self.scenario:
            state = msgspec.structs.replace(self._state, scenario=scenario)
            self.undo_stack.push(Change(self, state, text, paths, self._gesture))
        if held:
            self._rest.invalidate()
        else:
            self._rest.start()

    def step(self, values: Mapping[str, Any], text: str) -> None:
        """Set several fields as an undo step of their own, whatever comes before and after it."""
        self.finish_gesture()
        self.edit_many(values, text)
        self.finish_gesture()

    def use_model(
        self,
        scenario: Scenario,
        text: str,
        fitted: Mapping[str, tuple[Any, Any]] | None = None,
        report: ImportReport = NO_REPORT,
    ) -> None:
        """Take a scenario with another model as one undo step called ``text``; the preset stays open.

        ``fitted`` are the fields that follow it (:attr:`State.fitted`), ``report`` is of the file that it
        was read from.
        """
        self._finish_and_push(
            msgspec.structs.replace(
                self._state,
                scenario=scenario,
                origin=scenario.model,
                report=report,
                fitted=fitted or {},
            ),
            text,
        )

    def use_scenario(
        self, scenario: Scenario, text: str, beside: Callable[[bool], None] | None = None
    ) -> None:
        """Take a whole scenario as one undo step called ``text``; a model that stays keeps its defaults.

        ``beside`` is called with the step (true) and with its undoing (false), for what belongs to it and
        is no part of the scenario.
        """
        same = scenario.model == self.scenario.model
        kept = {} if same else {"origin": scenario.model, "report": NO_REPORT, "fitted": {}}
        self._finish_and_push(msgspec.structs.replace(self._state, scenario=scenario, **kept), text, beside)

    def load(self, state: State, text: str) -> None:
        """Open something else as one undo step called ``text``; it counts as saved."""
        self._kept[state.preset or state.name] = _Kept(state.name, state.scenario, state.measured)
        if state == self._state:
            self.changed.emit()  # it may have counted as modified
        self._finish_and_push(state, text, opens=True)

    def measure(self, measured: Mapping[str, Any], text: str) -> None:
        """Keep with the set-up what real runs used, as one undo step called ``text``."""
        self._finish_and_push(msgspec.structs.replace(self._state, measured=measured), text)

    def beside(self, text: str, act: Callable[[bool], None]) -> None:
        """Have something done (``act(True)``) and undone as a step called ``text``; the scenario stays."""
        self.finish_gesture()
        self.undo_stack.push(Change(self, self._state, text, (), self._gesture, act))
        self.finish_gesture()

    def saved_as(self, name: str, preset: str) -> None:
        """The open scenario was saved under that name: not a change of the scenario."""
        self.finish_gesture()
        self._state = msgspec.structs.replace(self._state, name=name, preset=preset)
        self.keep(preset, name, self.scenario, self._state.measured)

    def keep(self, preset: str, name: str, scenario: Scenario, measured: Mapping[str, Any]) -> None:
        """A preset of that name holds this, as it was read or written now: what is open is told from it."""
        self._kept[preset] = _Kept(name, scenario, measured)
        self.renamed(preset, name)

    def renamed(self, preset: str, name: str) -> None:
        """A preset is called so now, wherever it is come back to."""
        self.finish_gesture()
        if preset in self._kept:
            self._kept[preset] = self._kept[preset]._replace(name=name)
        if self._state.preset == preset:
            self._state = msgspec.structs.replace(self._state, name=name)
            self.changed.emit()

    def let_go(self, preset: str) -> bool:
        """A preset is no more: what is open came from nowhere.  Whether it was the open one."""
        if not preset or self._state.preset != preset:
            return False
        self._state = msgspec.structs.replace(self._state, name="", preset="")
        self.changed.emit()
        return True

    def take_up(self, preset: str, name: str) -> None:
        """A preset that was let go is there again, and open where nothing else was opened since."""
        if not (self._state.preset or self._state.name):
            self._state = msgspec.structs.replace(self._state, preset=preset)
            self.renamed(preset, name)

    def finish_gesture(self) -> None:
        """The next edit starts another undo step.  May be called at any time and twice."""
        self._rest.invalidate()
        self._gesture += 1

    def settle(self) -> Result:
        """Carry out a recompute that is due now; the newest result."""
        if self._turn.isActive():
            self._turn.stop()
            self._recompute()
        return self._last

    def show_instead(self, scenario: Scenario) -> None:
        """Where nothing could be computed yet: the picture that is shown, dimmed, is of this set-up."""
        if self._last.shown is None:
            found, _ = self._answer(scenario)
            self._last = msgspec.structs.replace(self._last, last_good=found)

    def _finish_and_push(
        self,
        state: State,
        text: str,
        beside: Callable[[bool], None] | None = None,
        *,
        opens: bool = False,
    ) -> None:
        self.finish_gesture()
        if state != self._state:
            self.undo_stack.push(Change(self, state, text, (), self._gesture, beside, opens=opens))
        self.finish_gesture()

    def enter(self, state: State, look_at: tuple[str, ...] | None) -> None:
        """Make ``state`` the open one; ``look_at`` is ``None`` where the person is there already."""
        if look_at is not None:
            self.finish_gesture()
        kept = self._kept.get(state.preset)
        if kept is not None and state.preset:  # it may be called otherwise by now
            state = msgspec.structs.replace(state, name=kept.name)
        self._state = state
        self._turn.start()
        self.changed.emit()
        if look_at is not None:
            self.restored.emit(look_at[0] if look_at else "")

    def _recompute(self) -> None:
        last, scenario = self._last, self.scenario
        estimate, issues = self._answer(scenario)
        last_good = estimate if estimate is not None else last.last_good
        self._last = Result(scenario, estimate, issues, last.generation + 1, last_good, self._state.report)
        self.result.emit(self._last)

    def _answer(self, scenario: Scenario) -> tuple[Estimate | None, tuple[Issue, ...]]:
        """The estimate, where there is one, and what is to be said of the scenario."""
        issues: tuple[Issue, ...] = ()
        try:
            issues = validate(scenario)
            if any(issue.severity == "error" for issue in issues):
                return None, issues
            estimate = self._estimate(scenario)
        except ScenarioError as error:
            return None, (error.issue, *issues)
        except Exception as error:
            # A fault of ours must neither end the program nor pass for an answer.
            log.exception("the estimate of %s failed", scenario)
            return None, (fault_issue(error), *issues)
        if estimate.verdict.kind == "unknown":  # valid, but nothing that the estimator models
            return None, (*_reasons(estimate), *issues)
        return estimate, (*issues, *(issue for issue in estimate.issues if issue not in issues))


def _differing(value: Any, default: Any, path: str) -> Iterator[str]:
    """Paths at and under ``path`` at which two values differ; equal branches are not walked."""
    if value is default or value == default:
        return
    if isinstance(value, msgspec.Struct) and isinstance(default, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _differing(getattr(value, name), getattr(default, name), f"{path}.{name}")
    else:
        yield path


def _reasons(estimate: Estimate) -> tuple[Issue, ...]:
    """Why an estimate is unknown: its own errors, or its verdict's reason as one, said of what it names."""
    errors = tuple(issue for issue in estimate.issues if issue.severity == "error")
    if errors:
        return errors
    reason = estimate.verdict.reason
    return (Issue("error", "unknown", tuple(filter(BY_PATH.__contains__, reason.paths)), reason),)
