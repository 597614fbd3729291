"""What the chips beside the verdict say: fixes, how far it goes, or the context ladder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from PySide6.QtCore import QObject, QTimer

from memgui.document.answers import Answers
from memgui.document.document import Document
from memgui.document.questions import Question
from memgui.document.result import Result
from memgui.document.view_settings import ViewSettings
from memgui.gui.numbers import Numbers
from memgui.gui.texts import issue_text, label
from memgui.gui.verdict import sentence
from memgui.gui.verdict.band import VerdictBand
from memgui.gui.verdict.chips import Cell, Chip

if TYPE_CHECKING:
    from memgui.gui.why.qt_words import QtWords
    from memgui.planning.changes import Change
    from memgui.planning.devices import OnDevice
    from memgui.planning.ladder import Rung
    from memgui.planning.reach import Furthest, Reach
    from memgui.planning.ways import Way, Ways

_SHOWN = 3
PATIENCE_MS = 500
"""Chips of an earlier set-up are faded after this long."""


class Step(msgspec.Struct, frozen=True):
    """What a chip does: values by path, as one undo step called ``text``."""

    values: dict[str, Any]
    text: str


def step(changes: Iterable[Change], text: str) -> Step:
    """The step that makes ``changes``."""
    return Step({one.path: one.new for one in changes}, text)


class Advice(QObject):
    """Asks what the verdict calls for and puts the answer on the chips.

    Inference has the ladder wherever some length fits; all else has fixes until it surely fits, then how
    far it goes.
    """

    def __init__(self, document: Document, answers: Answers, view: ViewSettings, band: VerdictBand) -> None:
        super().__init__(band)
        self._document = document
        self._answers = answers
        self._view = view
        self._band = band
        self._late = QTimer(self)
        self._late.setSingleShot(True)
        self._late.setInterval(PATIENCE_MS)
        self._late.timeout.connect(self._fade)
        self._shown: Question | None = None
        band.chip_pressed.connect(self._press)
        document.changed.connect(self._wait)
        document.result.connect(self._follow)
        view.figures_changed.connect(self._show)
        for question in (answers.ways, answers.reach, answers.ladder):
            question.answered.connect(self._show)
        self._follow(document.last_result)

    def _wait(self) -> None:
        """The chips are of an earlier set-up now; where that lasts, it shows."""
        if not self._late.isActive():
            self._late.start()

    def _fade(self) -> None:
        self._band.chips.set_stale(self._shown is not None and not self._shown.is_current)

    def _follow(self, result: Result) -> None:
        """Have answered what this result calls for; the chips stay until it is."""
        if not result.generation:
            return
        self._want(result)
        if result.estimate is None or result.estimate.verdict.kind == "unknown":
            self._shown = None
            self._band.set_chips(())
        else:
            self._show()  # it may be back where an answer is of, which is not told again

    def _want(self, result: Result) -> None:
        estimate = result.estimate
        kind = "unknown" if estimate is None else estimate.verdict.kind
        serves = result.scenario.task == "inference"
        climbs = serves and kind != "unknown"
        self._answers.ladder.want("chips", climbs)
        fixes = kind in ("tight", "does_not_fit") and not (serves and self._has_room())
        self._answers.ways.want("chips", fixes)
        self._answers.reach.want("chips", kind == "fits" and not serves)

    def _has_room(self) -> bool:
        """Whether some length fits, or that is not known yet."""
        ladder = self._answers.ladder
        rungs: Sequence[Rung] | None = ladder.answer if ladder.is_current else None
        return rungs is None or any(rung.answer.fits for rung in rungs)

    def _show(self, _: object = None) -> None:
        """Put the answer that belongs to the open scenario on the chips, if it is there."""
        from memgui.gui.why.qt_words import QtWords

        result = self._document.last_result
        estimate = result.estimate
        if estimate is None or result.scenario is not self._document.scenario:
            return
        words = QtWords(Numbers.of(self._view.view))
        answers = self._answers
        failed = self._failed(result)
        if failed is not None:
            self._shown = failed
            self._band.set_chips((self._no_advice(failed),))
            return
        if result.scenario.task == "inference" and answers.ladder.is_current:
            if self._has_room() and answers.ladder.answer:
                self._shown = answers.ladder
                self._band.set_ladder(*self._ladder(answers.ladder.answer, words.numbers))
                return
            self._want(result)  # no length fits: fixes are called for
        if estimate.verdict.kind == "fits":
            if answers.reach.is_current and answers.reach.answer is not None:
                self._shown = answers.reach
                self._band.set_chips(self._far(answers.reach.answer, words.numbers))
        elif answers.ways.is_current and answers.ways.answer is not None:
            self._shown = answers.ways
            self._band.set_chips(*self._fixes(answers.ways.answer, words))

    def _failed(self, result: Result) -> Question | None:
        """The question that is called for and that a fault of ours leaves without an answer."""
        answers, estimate = self._answers, result.estimate
        if result.scenario.task == "inference" and self._has_room():
            asked = answers.ladder
        else:
            fits = estimate is not None and estimate.verdict.kind == "fits"
            asked = answers.reach if fits else answers.ways
        return asked if asked.is_current and asked.fault is not None else None

    def _no_advice(self, asked: Question) -> Chip:
        from memgui.gui.ways import texts

        assert asked.fault is not None
        title = self.tr("No advice")
        tip = texts.tip(title, [issue_text(asked.fault)])
        return Chip(title, self.tr("a fault of memgui"), "unknown", tip)

    def _press(self, data: object) -> None:
        if isinstance(data, Step):
            self._document.step(data.values, data.text)

    # -- fixes ---------------------------------------------------------------------------------

    def _fixes(self, ways: Ways, words: QtWords) -> tuple[list[Chip], int]:
        found = list(ways.all)
        enough = [way for way in found if way.kind != "does_not_fit"]
        # Where none is enough: what comes nearest.
        shown = enough[:_SHOWN] or sorted(found, key=lambda way: -way.headroom_bytes)[:_SHOWN]
        return [self._fix(way, words) for way in shown], len(found) - len(shown)

    def _fix(self, way: Way, words: QtWords) -> Chip:
        from memgui.gui.ways import texts

        return Chip(
            texts.short_title(way, words),
            texts.figures(way.estimate, words.numbers),
            way.kind,
            texts.way_tip(way, words),
            step(way.changes, texts.title(way, words)),
            texts.in_two_lines(way, words),
        )

    # -- how far it goes -----------------------------------------------------------------------

    def _far(self, reach: Reach, numbers: Numbers) -> list[Chip]:
        chips = []
        if reach.length is not None:
            title, short = self.tr("Sequence up to {count}"), self.tr("Sequence ≤ {count}")
            chips.append(self._furthest(title, short, reach.length, numbers))
        if reach.batch is not None:
            title, short = self.tr("Micro batch up to {count}"), self.tr("Micro batch ≤ {count}")
            chips.append(self._furthest(title, short, reach.batch, numbers))
        if reach.device is not None:
            chips.append(self._device(reach.device, numbers))
        return chips

    def _furthest(self, template: str, short: str, far: Furthest, numbers: Numbers) -> Chip:
        from memgui.gui.ways import texts

        estimate = far.answer.estimate
        assert estimate is not None
        title = template.format(count=numbers.grouped(far.value))
        if far.next is not None:
            said = self.tr("{next} may not fit") if far.may_fit else self.tr("{next} does not fit")
            text = said.format(next=numbers.grouped(far.next))
        elif far.is_model_limit:
            text = self.tr("the model's limit · {total}").format(total=numbers.sentence(estimate.peak_bytes))
        else:
            text = texts.figures(estimate, numbers)
        lines = [*self._change(far.change, numbers), texts.exact_figures(estimate, numbers)]
        changes = (far.change,) if far.change.new != far.change.old else ()
        made = step(changes, label(far.change.path))
        brief = short.format(count=numbers.grouped(far.value))
        return Chip(title, text, estimate.verdict.kind, texts.tip(title, lines), made, brief)

    def _change(self, one: Change, numbers: Numbers) -> list[str]:
        from memgui.gui.ways import texts

        if one.new == one.old:
            return [self.tr("This is the present value.")]
        return texts.change_lines((one,), numbers)

    def _device(self, found: OnDevice, numbers: Numbers) -> Chip:
        from memgui.gui.ways import texts

        estimate = found.answer.estimate
        assert estimate is not None
        if found.changes:
            gap = numbers.gap_figure(estimate.peak_bytes, estimate.verdict.capacity_bytes)
            text = self.tr("smallest GPU · {gap} spare").format(gap=gap)
            lines = texts.change_lines(found.changes, numbers)
        else:
            text = self.tr("no smaller GPU is enough")
            lines = [text]
        lines.append(texts.exact_figures(estimate, numbers))
        name = found.device.name
        return Chip(name, text, estimate.verdict.kind, texts.tip(name, lines), step(found.changes, name))

    # -- the ladder ----------------------------------------------------------------------------

    def _ladder(self, rungs: Sequence[Rung], numbers: Numbers) -> tuple[str, list[Cell]]:
        serving = self._document.scenario.inference
        caption = self.tr("Context")
        if serving.batch_size > 1:
            caption = self.tr("Context for each\nof {count} sequences").format(
                count=numbers.grouped(serving.batch_size)
            )
        return caption, [self._rung(rung, serving.generated_tokens, numbers) for rung in rungs]

    def _rung(self, rung: Rung, generated: int, numbers: Numbers) -> Cell:
        from memgui.gui.ways import texts

        estimate = rung.answer.estimate
        text = self.tr("largest") if rung.is_largest else ""
        exact = numbers.count(rung.tokens)
        head = self.tr("{count} {count:token|tokens}").format(count=exact)
        lines = texts.change_lines(rung.changes, numbers)
        if generated:
            lines.append(self.tr("{count} of them generated").format(count=numbers.grouped(generated)))
        if estimate is not None:
            text = text or numbers.one(estimate.peak_bytes)
            lines.append(texts.exact_figures(estimate, numbers))
        return Cell(
            numbers.tokens(rung.tokens),
            text or sentence.verdict_word("unknown"),
            rung.answer.kind,
            texts.tip(head, lines),
            rung.is_present,
            step(rung.changes, self.tr("Context of {count} {count:token|tokens}").format(count=exact)),
        )
