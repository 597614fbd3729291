"""Optimizers that treat every number alike: Adam's kin, momentum, signs."""

from __future__ import annotations

from memgui.estimator.optimizers.rule import (
    FP32,
    Kept,
    Optimizer,
    Settings,
    Step,
    Trained,
    Weight,
    largest,
    lists,
    nothing,
    one_by_one,
    plain,
    working,
)
from memgui.spec.messages import QT_TRANSLATE_NOOP

_FOREACH = lists(1, "aten._foreach_sqrt")
_FORLOOP = one_by_one(working(root=0, denominator=0), "aten.div", working(denominator_before=0))


def adamw_states(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """Two moments; the fused kernels keep the step count of each weight on the device."""
    width = settings.state_width or weight.width
    moments = (Kept("exp_avg", width), Kept("exp_avg_sq", width))
    return (*moments, Kept("step", FP32, ())) if settings.implementation == "fused" else moments


def adamw_step(trained: Trained, settings: Settings) -> Step:
    """Fused: nothing.  foreach: the list of roots.  For-loop: root and denominator of one weight."""
    if settings.implementation == "fused":
        return Step((), "aten._fused_adamw_")
    return (_FOREACH if settings.implementation == "foreach" else _FORLOOP)(trained, settings)


def _badam_step(trained: Trained, settings: Settings) -> Step:
    """AdamW's step beside fp32 gradients; then each fp32 copy is cast to its weight's format.

    Gradients in 16 bits go as they are copied, so only what the copies are larger by comes on top.
    """
    wider = [
        (weight, Kept("gradient in fp32, beyond its own", FP32 - weight.of.width), count)
        for weight, count in trained
        if weight.of.width < FP32
    ]
    cast = one_by_one(_written_back, "aten._to_copy")(trained, settings)
    step = largest(adamw_step(trained, settings), cast)
    return Step((*wider, *step.held), step.operator)


def _written_back(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    width = weight.of.width
    return (Kept("copy in the weight's format", width),) if width < FP32 else ()


def _lamb(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    width = settings.state_width or weight.width
    moments = (Kept("exp_avg", width), Kept("exp_avg_sq", width))
    norms = ("weight_norm", "adam_norm", "trust_ratio")
    return (*moments, *(Kept(name, weight.width, ()) for name in norms))


def _adam_mini(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
    """The whole momentum; of second moments one for each row (neuron), of embeddings and head all."""
    width = settings.state_width or weight.width
    if not weight.matrix:
        return (Kept("m", width), Kept("vmean", width, ()))
    if not weight.hidden:
        return (Kept("m", width), Kept("v", width))
    return (Kept("m", width), Kept("vmean", width, weight.shape[:-1]))


ADAMW = Optimizer(
    adamw_states,
    adamw_step,
    QT_TRANSLATE_NOOP("sources", "torch.optim.AdamW, PyTorch 2.13: measured on real models"),
    plain=True,
    kernels=True,
    uniform=True,
)

ELEMENTWISE: dict[str, Optimizer] = {
    "adamw": ADAMW,
    "sgd": Optimizer(
        plain(),
        nothing,
        QT_TRANSLATE_NOOP("sources", "torch.optim.SGD, PyTorch 2.13: measured on real models"),
        uniform=True,
    ),
    "sgd_momentum": Optimizer(
        plain("momentum_buffer"),
        nothing,
        QT_TRANSLATE_NOOP("sources", "torch.optim.SGD, PyTorch 2.13: measured"),
        plain=True,
        uniform=True,
    ),
    "paged_adamw": Optimizer(
        plain("state1", "state2", width=FP32),
        nothing,
        QT_TRANSLATE_NOOP("sources", "bitsandbytes 0.50, PagedAdamW32bit: measured"),
        plain=True,
        paged=True,
    ),
    "lion": Optimizer(
        plain("state1", width=FP32),
        nothing,
        QT_TRANSLATE_NOOP("sources", "bitsandbytes 0.50, Lion32bit (Trainer's lion_32bit): measured"),
        plain=True,
        uniform=True,
    ),
    "ademamix": Optimizer(
        plain("state1, fast", "state1, slow", "state2", width=FP32),
        nothing,
        QT_TRANSLATE_NOOP("sources", "bitsandbytes 0.50, AdEMAMix32bit: measured"),
        plain=True,
        uniform=True,
    ),
    "lamb": Optimizer(
        _lamb,
        lists(1, "aten._foreach_sqrt"),
        QT_TRANSLATE_NOOP("sources", "pytorch_optimizer 4.1, Lamb: measured"),
        plain=True,
        wide_elsewhere=True,
    ),
    "sophia": Optimizer(
        plain("momentum", "hessian_moment"),
        lists(2, "aten._foreach_div"),
        QT_TRANSLATE_NOOP("sources", "pytorch_optimizer 4.1, SophiaH: read in its code"),
        plain=True,
        note=QT_TRANSLATE_NOOP(
            "messages",
            "The Hessian's own pass every tenth step is taken to need no more than a training step.",
        ),
        wide_elsewhere=True,
    ),
    "badam": Optimizer(
        adamw_states,
        _badam_step,
        QT_TRANSLATE_NOOP("sources", "BAdam 1.3 over torch.optim.AdamW, PyTorch 2.13: measured"),
        plain=True,
        uniform=True,
        kernels=True,
        elementwise=False,
        by_layer=True,
        note=QT_TRANSLATE_NOOP(
            "messages",
            "BAdam trains one layer for some steps, then another; embedding, head and all other layers are "
            "frozen meanwhile. Counted is the first layer, for which backward goes through all others.",
        ),
    ),
    "adam_mini": Optimizer(
        _adam_mini,
        one_by_one(working(scaled=0, update=0), "aten.mul"),
        QT_TRANSLATE_NOOP("sources", "adam-mini 1.1.1: read in its code"),
        plain=True,
        elementwise=False,
    ),
    "schedule_free": Optimizer(
        plain("z", "exp_avg_sq"),
        lists(1, "aten._foreach_div"),
        QT_TRANSLATE_NOOP("sources", "schedulefree 1.4, AdamWScheduleFree: measured"),
        plain=True,
        uniform=True,
    ),
    "prodigy": Optimizer(
        plain("s", "p0", "exp_avg", "exp_avg_sq"),
        one_by_one(working(root=0), "aten.sqrt", working(root_before=0)),
        QT_TRANSLATE_NOOP("sources", "prodigyopt 1.1, Prodigy without slices: measured"),
        plain=True,
        uniform=True,
    ),
}
"""By their names in ``training.optimizer``."""
