"""What the letters in llama.cpp's graph stand for."""

from __future__ import annotations

from typing import NamedTuple

from memgui.estimator.engines.settings import physical_batch, step
from memgui.estimator.engines.sheet import Factor
from memgui.estimator.engines.told import all_cells, predicted, routed
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


class Symbols(NamedTuple):
    """Symbols of a graph."""

    tokens: Factor
    cells: Factor
    outputs: Factor
    hidden: Factor
    heads: Factor
    shared: Factor
    head: Factor
    inner: Factor
    experts: Factor
    chosen: Factor
    expert_inner: Factor
    vocabulary: Factor


def symbols(scenario: Scenario) -> Symbols:
    """The symbols of ``scenario``'s largest graph: a physical batch against the whole cache."""
    m = scenario.model
    batch = physical_batch(scenario)
    rows = batch if scenario.inference.llama_cpp_version == "b6000" else scenario.inference.batch_size
    return Symbols(
        Factor("n", batch, QT_TRANSLATE_NOOP("symbols", "tokens computed at once"), "inference.n_ubatch"),
        all_cells(scenario, step(scenario), whole=False),
        Factor(
            "o",
            min(rows, batch),
            QT_TRANSLATE_NOOP("symbols", "rows that logits are computed for"),
            "inference.n_ubatch" if rows >= batch else "inference.batch_size",
        ),
        Factor("h", m.hidden_size, QT_TRANSLATE_NOOP("symbols", "hidden size"), "model.hidden_size"),
        Factor(
            "a",
            m.num_attention_heads,
            QT_TRANSLATE_NOOP("symbols", "attention heads"),
            "model.num_attention_heads",
        ),
        Factor(
            "k",
            m.num_key_value_heads,
            QT_TRANSLATE_NOOP("symbols", "key/value heads"),
            "model.num_key_value_heads",
        ),
        Factor("d", m.head_dim, QT_TRANSLATE_NOOP("symbols", "head size"), "model.head_dim"),
        Factor(
            "f", m.intermediate_size, QT_TRANSLATE_NOOP("symbols", "FFN width"), "model.intermediate_size"
        ),
        *routed(m),
        Factor(
            "m",
            m.moe_intermediate_size,
            QT_TRANSLATE_NOOP("symbols", "expert width"),
            "model.moe_intermediate_size",
        ),
        predicted(m),
    )
