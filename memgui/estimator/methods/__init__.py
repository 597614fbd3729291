"""Published rules of thumb, computed exactly as their authors wrote them.

``estimate_by_method(scenario, counted)`` answers for ``scenario.method`` with the same
:class:`~memgui.estimator.result.Estimate` as the detailed method; ``omissions(scenario, counted)``
states, component by component, what the method leaves out.  All of them describe a training step.
"""

from __future__ import annotations

from memgui import __version__
from memgui.estimator.methods.gpt_article import gpt_article
from memgui.estimator.methods.llama_guide import llama_guide
from memgui.estimator.methods.megatron_paper import megatron_paper
from memgui.estimator.methods.method import Answer, Omission, assembled
from memgui.estimator.result import Estimate, Parameters
from memgui.spec.methods import variant_of
from memgui.spec.scenario import Scenario

__all__ = ["Omission", "estimate_by_method", "omissions"]


def estimate_by_method(scenario: Scenario, counted: Parameters) -> Estimate:
    """The estimate of the article that ``scenario.method`` names.

    ``counted`` are the model's parameters, which a method takes for P where none are given.
    Raises ``KeyError`` where there is no such method; a scenario that is not valid is the caller's.
    """
    answer = _answer(scenario, counted)
    return assembled(scenario, counted, f"{answer.source}, memgui {__version__}", answer)


def omissions(scenario: Scenario, counted: Parameters) -> tuple[Omission, ...]:
    """What the method of ``scenario`` leaves out, each with the component it belongs to."""
    return _answer(scenario, counted).omissions


def _answer(scenario: Scenario, counted: Parameters) -> Answer:
    variant = variant_of(scenario)
    match scenario.method:
        case "gpt_article":
            return gpt_article(scenario, variant)
        case "llama_guide":
            return llama_guide(scenario, variant, counted.total)
        case "megatron_paper":
            return megatron_paper(scenario, counted.total)
    raise KeyError(scenario.method)
