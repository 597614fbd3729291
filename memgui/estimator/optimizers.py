"""What an optimizer keeps for each weight, and what its step holds for a moment."""

from __future__ import annotations

from typing import NamedTuple

from memgui.spec.messages import QT_TRANSLATE_NOOP


class Optimizer(NamedTuple):
    """States kept per weight, each as big as the weight; ``foreach`` is what that implementation adds.

    ``foreach`` counts temporaries of all weights at once, ``forloop`` of the largest weight alone;
    ``counter``: the fused implementation keeps a 4-byte step count for each weight on the device.
    ``operators`` names the operator at the step's peak, by implementation.
    """

    states: tuple[str, ...]
    foreach: int
    forloop: int
    counter: bool
    operators: dict[str, str]
    source: str


OPTIMIZERS: dict[str, Optimizer] = {
    "adamw": Optimizer(
        ("exp_avg", "exp_avg_sq"),
        1,
        2,
        True,
        {"fused": "aten._fused_adamw_", "foreach": "aten._foreach_sqrt", "forloop": "aten.div"},
        QT_TRANSLATE_NOOP("sources", "torch.optim.AdamW, PyTorch 2.13: measured on real models"),
    ),
    "sgd": Optimizer(
        (),
        0,
        0,
        False,
        {},
        QT_TRANSLATE_NOOP("sources", "torch.optim.SGD, PyTorch 2.13: measured on real models"),
    ),
    "sgd_momentum": Optimizer(
        ("momentum_buffer",),
        0,
        0,
        False,
        {},
        QT_TRANSLATE_NOOP("sources", "torch.optim.SGD, PyTorch 2.13"),
    ),
}
"""Every optimizer by its name in ``training.optimizer``."""
