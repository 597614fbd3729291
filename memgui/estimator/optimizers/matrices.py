"""Optimizers that treat matrices as matrices: orthogonal updates, preconditioners, low-rank projections."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from memgui.estimator.optimizers.elementwise import adamw_states, adamw_step
from memgui.estimator.optimizers.low_bit import LEAST, MAP, blockwise
from memgui.estimator.optimizers.rule import (
    FP32,
    Kept,
    Optimizer,
    Settings,
    Step,
    Trained,
    Weight,
    largest,
    one_by_one,
)
from memgui.spec.messages import QT_TRANSLATE_NOOP

BF16 = 2


# -- Muon ----------------------------------------------------------------------------------------


def orthogonal(weight: Weight) -> bool:
    """Whether Muon takes the weight: a matrix inside the layers."""
    return weight.hidden and len(weight.shape) == 2


def _muon(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    if orthogonal(weight):
        return (Kept("momentum_buffer", settings.state_width or weight.width),)
    return adamw_states(weight, settings)


def _newton_schulz(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """The update, two bf16 matrices of its size, and two squares of the smaller side."""
    if not orthogonal(weight):
        return ()
    side = min(weight.sides)
    large = Kept("Newton-Schulz, matrices", 2 * BF16)
    return (Kept("update", weight.width), large, Kept("Newton-Schulz, squares", 2 * BF16, (side, side)))


def _muon_step(trained: Trained, settings: Settings) -> Step:
    rest = [(weight, count) for weight, count in trained if not orthogonal(weight)]
    return largest(one_by_one(_newton_schulz, "aten.addmm")(trained, settings), adamw_step(rest, settings))


# -- preconditioners -----------------------------------------------------------------------------

_SHAMPOO_BLOCK = 512
_SHAMPOO_LONGEST = 8192
_SOAP_LONGEST = 10_000


def _blocks(side: int) -> list[int]:
    """A side cut into blocks of at most 512."""
    whole, rest = divmod(side, _SHAMPOO_BLOCK)
    return [_SHAMPOO_BLOCK] * whole + ([rest] if rest else [])


def _shampoo(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """Momentum, grafting, and for each block a statistic and its inverse root on either side, in fp32."""
    width = settings.state_width or weight.width
    held = (Kept("momentum", width), Kept("graft", width))
    if not weight.matrix or max(weight.shape) > _SHAMPOO_LONGEST:
        return held
    rows, columns = (_blocks(side) for side in weight.sides)
    stacked = weight.elements // (weight.sides[0] * weight.sides[1])
    squares = len(columns) * sum(b * b for b in rows) + len(rows) * sum(b * b for b in columns)
    numbers = (2 * stacked * squares,)
    return (*held, Kept("statistics and preconditioners", FP32, numbers))


def _shampoo_work(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """A product of one block's statistic, the slice it is made of, the gradient in fp32."""
    held = () if weight.width == FP32 else (Kept("gradient in fp32", FP32),)
    if not weight.matrix or max(weight.shape) > _SHAMPOO_LONGEST:
        return (*held, Kept("update", 2 * weight.width))
    side, other = (min(side, _SHAMPOO_BLOCK) for side in (max(weight.sides), min(weight.sides)))
    products = [Kept("product", FP32, (length, length)) for length in (side, other)]
    return (*held, *products, Kept("slice", FP32, (side, other)))


def _shampoo_rest(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    return (Kept("updates before", 3 * weight.width),)


def _soap_sides(weight: Weight) -> tuple[int, ...]:
    return tuple([side for side in weight.shape if side <= _SOAP_LONGEST]) if weight.matrix else ()


def _soap(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """Adam's moments; for each side a matrix of statistics and one of eigenvectors."""
    width = settings.state_width or weight.width
    held = [Kept("exp_avg", width), Kept("exp_avg_sq", width)]
    for number, side in enumerate(_soap_sides(weight)):
        held.append(Kept(f"GG {number}", width, (side, side)))
        held.append(Kept(f"Q {number}", width, (side, side)))
    return tuple(held)


def _soap_work(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """The eigenvectors of a side, in fp32: by eigh in the first step, by QR every tenth from then on."""
    sides = sorted(_soap_sides(weight))
    moving = Kept("gradient and updates", 5 * weight.width)
    if not sides:
        return (moving,)
    first = () if weight.width == FP32 else (Kept("eigenvectors", 6 * FP32, (sides[-1], sides[-1])),)
    again = [Kept("eigenvectors, again", 4 * FP32, (sides[-1], sides[-1])), moving]
    again += [Kept("eigenvectors of the other side", 2 * weight.width, (side, side)) for side in sides[:-1]]
    return max(first, tuple(again), key=lambda held: sum(kept.bytes(weight) for kept in held))


# -- projections ---------------------------------------------------------------------------------


def projected(weight: Weight) -> bool:
    """Whether projections take the weight: a matrix inside the layers."""
    return weight.hidden and len(weight.shape) == 2


def _low_rank(weight: Weight, rank: int) -> tuple[Kept, Kept, tuple[int, ...]]:
    """Projector, projected gradient, and the shape of that."""
    rows, columns = weight.sides
    rank = min(rank, rows, columns)
    shape = (rows, rank) if rows >= columns else (rank, columns)
    projector = Kept("projector", weight.width, (min(rows, columns), rank))
    return projector, Kept("projected gradient", weight.width, shape), shape


def _galore(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    width = settings.state_width or weight.width
    if not projected(weight):
        return (Kept("exp_avg", width), Kept("exp_avg_sq", width))
    projector, _, shape = _low_rank(weight, settings.rank)
    side = min(weight.sides)
    if weight.width == FP32:  # a view of all singular vectors, which stay
        projector = replace(projector, shape=(side, side))
    return projector, Kept("exp_avg", width, shape), Kept("exp_avg_sq", width, shape)


def _galore_8bit(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    elements, shape = weight.elements, None
    beside: tuple[Kept, ...] = ()
    if projected(weight):
        projector, _, shape = _low_rank(weight, settings.rank)
        elements, beside = shape[0] * shape[1], (projector,)
    if elements < LEAST:
        return (*beside, Kept("state1", FP32, shape), Kept("state2", FP32, shape))
    return (*beside, *blockwise("state1", elements, shape), *blockwise("state2", elements, shape))


def _galore_work(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """The singular value decomposition of the gradient, every 200 steps: more than the step itself."""
    if not projected(weight):
        return (Kept("denominator", weight.width), Kept("update", weight.width))
    side = min(weight.sides)
    held = (Kept("left singular vectors", FP32), Kept("right singular vectors", FP32, (side, side)))
    return held if weight.width == FP32 else (*held, Kept("gradient in fp32", FP32))


def _galore_rest(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    return (Kept("update before", weight.width),)


def _apollo(rank: int = 0) -> Callable[[Weight, Settings], tuple[Kept, ...]]:
    def states(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
        width = settings.state_width or weight.width
        if not projected(weight):
            return (Kept("exp_avg", width), Kept("exp_avg_sq", width))
        projector, _, shape = _low_rank(weight, rank or settings.rank)
        moments = (Kept("exp_avg", width, shape), Kept("exp_avg_sq", width, shape))
        return (projector, *moments, Kept("scaled_grad", weight.width, ()))

    return states


def _apollo_work(rank: int = 0) -> Callable[[Weight, Settings], tuple[Kept, ...]]:
    def work(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
        full = (Kept("scaled", weight.width), Kept("update", weight.width))
        if not projected(weight):
            return full
        low = _low_rank(weight, rank or settings.rank)[1]
        return (*full, replace(low, width=3 * low.width), Kept("scale", weight.width, (max(weight.sides),)))

    return work


_SVD = QT_TRANSLATE_NOOP(
    "messages", "The singular value decomposition's own workspace is not counted; it runs every 200 steps."
)
_GALORE = QT_TRANSLATE_NOOP("sources", "galore-torch 1.0: measured")
_APOLLO = QT_TRANSLATE_NOOP("sources", "apollo-torch 1.0.3, APOLLOAdamW, which keeps its projector: measured")

MATRICES: dict[str, Optimizer] = {
    "muon": Optimizer(
        _muon,
        _muon_step,
        QT_TRANSLATE_NOOP(
            "sources",
            "torch.optim.Muon for matrices of the layers, AdamW for the rest, PyTorch 2.13: measured",
        ),
        plain=True,
        kernels=True,
        elementwise=False,
        wide_elsewhere=True,
    ),
    "shampoo": Optimizer(
        _shampoo,
        one_by_one(_shampoo_work, "aten.mm", _shampoo_rest),
        QT_TRANSLATE_NOOP("sources", "pytorch_optimizer 4.1, ScalableShampoo: measured"),
        plain=True,
        elementwise=False,
        note=QT_TRANSLATE_NOOP(
            "messages",
            "Shampoo cuts matrices into blocks of 512 and leaves those with a side above 8,192 alone; other "
            "implementations take larger blocks.",
        ),
        wide_elsewhere=True,
    ),
    "soap": Optimizer(
        _soap,
        one_by_one(_soap_work, "aten.mm"),
        QT_TRANSLATE_NOOP("sources", "pytorch_optimizer 4.1, SOAP: measured"),
        plain=True,
        elementwise=False,
        note=QT_TRANSLATE_NOOP("messages", "SOAP leaves sides above 10,000 without a preconditioner."),
        wide_elsewhere=True,
    ),
    "galore": Optimizer(
        _galore,
        one_by_one(_galore_work, "aten._linalg_svd", _galore_rest),
        _GALORE,
        plain=True,
        elementwise=False,
        note=_SVD,
    ),
    "galore_8bit": Optimizer(
        _galore_8bit,
        one_by_one(_galore_work, "aten._linalg_svd", _galore_rest),
        QT_TRANSLATE_NOOP("sources", "galore-torch 1.0 over bitsandbytes' 8-bit states: read in its code"),
        tables=2 * MAP,
        elementwise=False,
        note=_SVD,
    ),
    "apollo": Optimizer(
        _apollo(), one_by_one(_apollo_work(), "aten.div"), _APOLLO, plain=True, elementwise=False
    ),
    "apollo_mini": Optimizer(
        _apollo(1), one_by_one(_apollo_work(1), "aten.div"), _APOLLO, plain=True, elementwise=False
    ),
}
"""By their names in ``training.optimizer``."""
