"""Adapters on weights that are no linear layer's: stacks of experts and routers, as PEFT 0.21 wraps them.

In models whose experts Transformers 5 keeps as one parameter, PEFT attaches adapters to that
parameter where a name of the old linear layers is asked for: the weight plus the adapter's product
is a new weight, as big as all experts, which autograd keeps.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.adapters import adapted, width_of
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import NEW, Dims, Parameter, Tape, Tensor


def with_adapter(
    t: Tape, c: Context, w: Parameter, role: str, out: Dims, wide: Dims, *, ranks: int = 1
) -> Tensor:
    """The stack of experts ``w`` with its adapter folded in; ``w`` itself where it has none.

    ``ranks`` is how many of the old layers it stands for: gate and up have a rank each.
    """
    if not _adapted(c, role):
        return w
    assert c.options.lora is not None
    width = width_of(c.options)
    part, t.part = t.part, "adapter"
    down = t.parameter(f"{w.name}.lora_A", ("r", ranks, "E", *wide), width, inputs=len(wide))
    up = t.parameter(f"{w.name}.lora_B", (*out, "r", ranks, "E"), width, inputs=3)
    factors = op.copy_of_weight(t, up, w.width), op.copy_of_weight(t, down, w.width)
    folded = t.tensor(w.name, w.dims, w.width, True)
    t.record("baddbmm", (w, *factors), folded, factors, tuple([(one, NEW) for one in factors]))
    c.named += (folded, *factors)  # PEFT's parametrization lasts as long as the experts run
    t.part = part
    return folded


def router_with_adapter(t: Tape, c: Context, w: Parameter) -> Tensor:
    """A router's weight with its adapter's product added, made anew in every forward."""
    if not _adapted(c, "router"):
        return w
    assert c.options.lora is not None
    width = width_of(c.options)
    part, t.part = t.part, "adapter"
    down = t.parameter(f"{w.name}.lora_A", ("r", "h"), width, True)
    up = t.parameter(f"{w.name}.lora_B", ("E", "r"), width, True)
    left = op.weight(t, up, t.autocast)
    delta = op.scale(t, op.linear(t, left, down, None, "adapter, product", w.dims))
    total = op.add(t, w, op.cast(t, delta, w.width), w.name)
    t.part = part
    return total


def _adapted(c: Context, role: str) -> bool:
    called = c.names.get(role)
    return called is not None and adapted(c, called)
