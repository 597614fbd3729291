"""The Why tab says how far a set-up that serves goes, once that is known."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from memgui.catalog import Catalog
from memgui.document.answers import Answers
from memgui.document.document import Document
from memgui.document.jobs import Jobs
from memgui.document.selection import Selection
from memgui.document.view_settings import ViewSettings
from memgui.estimator import estimate
from memgui.gui.why.page import WhyPage
from memgui.planning.words import English
from memgui.spec import replace


def test_the_whole_of_what_serves_has_its_limits(qtbot: QtBot) -> None:
    catalog = Catalog()
    document = Document(catalog.first_scenario(), estimate)
    jobs = Jobs()
    answers = Answers(document, jobs, catalog, rest_ms=0)
    page = WhyPage(Selection(), ViewSettings(), None, answers.serving)
    qtbot.addWidget(page)
    page.resize(700, 400)
    page.show()
    document.result.connect(page.set_result)
    serving = replace(replace(document.scenario, "task", "inference"), "inference.engine", "vllm")
    document.use_scenario(serving, "serve")
    document.settle()

    def said() -> list[str]:
        explanation = page.explanation()
        return [] if explanation is None else [one.text(English()) for one in explanation.answers]

    qtbot.waitUntil(lambda: any("stay free" in text for text in said()), timeout=5000)
    qtbot.waitUntil(lambda: any("sequences of" in text for text in said()), timeout=20000)
    assert any(text.startswith("Best weights") for text in said())
    page.hide()
    document.use_scenario(replace(serving, "task", "training"), "train")
    document.settle()
    assert said() == []
    jobs.close()
