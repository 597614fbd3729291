"""The tensors behind an estimate, where there is a list of them."""

from __future__ import annotations

from memgui.estimator.ledger import Entry, ledger
from memgui.estimator.refusals import NotCovered
from memgui.estimator.result import Estimate


def tensors(estimate: Estimate) -> tuple[Entry, ...]:
    """Every tensor of the ledger; none of an article, or of an engine, which lays them out its own way."""
    if estimate.method != "detailed":
        return ()
    try:
        return tuple(ledger(estimate.scenario).tensors())
    except NotCovered:
        return ()
