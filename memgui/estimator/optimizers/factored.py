"""Optimizers that keep sums of rows and columns in place of a second moment, and those that keep nothing."""

from __future__ import annotations

from msgspec.structs import replace

from memgui.estimator.optimizers.rule import (
    FP32,
    Kept,
    Optimizer,
    Settings,
    Step,
    Trained,
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


def _adafactor_step(trained: Trained, settings: Settings) -> Step:
    """fp32 copies of weight and gradient where they are no fp32, two tensors of the weight's size.

    Beside them the update of the weight before, until this one's takes its name; and then, of a matrix,
    the factors of rows and columns that are multiplied.
    """
    best, most = Step(), 0
    before: Weight | None = None
    for weight, _ in trained:
        held = [(weight, Kept("update", FP32)), (weight, Kept("product", FP32))]
        if weight.width != FP32:
            held.append((weight, Kept("weight in fp32", FP32)))
        if weight.gradient != FP32:
            held.append((weight, Kept("gradient in fp32", FP32)))
        factors = [(weight, kept) for kept in _factors(weight)]
        last = [] if before is None else [(before, Kept("update before", FP32))]
        held += factors if _total(factors) >= _total(last) else last
        if _total(held) > most:
            best = Step(tuple([(one, kept, 1) for one, kept in held]), "aten.add")
            most = _total(held)
        before = weight
    return best


def _total(held: list[tuple[Weight, Kept]]) -> int:
    return sum(kept.bytes(weight) for weight, kept in held)


def _factors(weight: Weight) -> tuple[Kept, ...]:
    return tuple([replace(kept, name="factor") for kept in rows_and_columns(weight)]) if weight.matrix else ()


def _adalomo(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    return rows_and_columns(weight)


FACTORED: dict[str, Optimizer] = {
    "adafactor": Optimizer(
        _adafactor,
        _adafactor_step,
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
