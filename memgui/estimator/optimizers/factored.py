"""Optimizers that keep sums of rows and columns in place of a second moment, and those that keep nothing."""

from __future__ import annotations

from memgui.estimator.optimizers.rule import (
    FP32,
    Kept,
    Optimizer,
    Settings,
    Weight,
    one_by_one,
    plain,
    working,
)
from memgui.spec.messages import QT_TRANSLATE_NOOP


def rows_and_columns(weight: Weight) -> tuple[Kept, ...]:
    """fp32 sums over the last and the last but one dimension; of a vector all its second moments."""
    if not weight.matrix:
        return (Kept("exp_avg_sq", FP32),)
    shape = weight.shape
    rows = Kept("exp_avg_sq_row", FP32, shape[:-1])
    return rows, Kept("exp_avg_sq_col", FP32, (*shape[:-2], shape[-1]))


def _adafactor(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    return (*rows_and_columns(weight), Kept("RMS", FP32, ()))


def _adafactor_work(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """fp32 copies of weight and gradient where they are no fp32, the update, and a product."""
    held = [Kept("update", FP32), Kept("product", FP32)]
    if weight.matrix:
        held.append(Kept("means of rows", FP32, weight.shape[:-1]))
    if weight.width != FP32:
        held.append(Kept("weight in fp32", FP32))
    if weight.gradient != FP32:
        held.append(Kept("gradient in fp32", FP32))
    return tuple(held)


def _adalomo(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    return rows_and_columns(weight)


FACTORED: dict[str, Optimizer] = {
    "adafactor": Optimizer(
        _adafactor,
        one_by_one(_adafactor_work, "aten.add", working(update_before=FP32)),
        QT_TRANSLATE_NOOP("sources", "transformers 5.24, Adafactor without momentum (Trainer's): measured"),
        elementwise=False,
    ),
    "lomo": Optimizer(
        plain(),
        one_by_one(working(gradient_in_fp32=FP32, weight_in_fp32=FP32), "aten._to_copy"),
        QT_TRANSLATE_NOOP("sources", "lomo-optim 0.1.1, Lomo: read in its code"),
        consumes=True,
    ),
    "adalomo": Optimizer(
        _adalomo,
        one_by_one(working(gradient_in_fp32=FP32, update=FP32, product=FP32), "aten.add"),
        QT_TRANSLATE_NOOP("sources", "lomo-optim 0.1.1, AdaLomo: read in its code"),
        consumes=True,
        elementwise=False,
    ),
}
"""By their names in ``training.optimizer``."""
