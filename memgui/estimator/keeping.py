"""What a training step keeps of each trained weight: master copy, gradient, states, each in its format."""

from __future__ import annotations

from typing import Final

import msgspec

from memgui.estimator.layout import ALONE, Layout, kept_precision
from memgui.estimator.optimizers import OPTIMIZERS, Settings
from memgui.spec.scenario import Scenario

WIDTHS: Final = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}
"""Bytes per number of the formats that gradients and plain states may have."""


class Keeping(msgspec.Struct, frozen=True):
    """How a trained weight is kept.

    ``master``: bytes per number of a copy of it, which the optimizer updates; 0 where there is none.
    ``gradient_width``: bytes per number of a main gradient, which lies still from step to step and to
    which backward adds the weight's own; 0 where there is none.  ``consumes``: each gradient is used as
    soon as it is there.  ``offloaded``: of a thousand numbers, how many have their states and master
    copies in the computer's memory.
    """

    settings: Settings
    master: int = 0
    gradient_width: int = 0
    consumes: bool = False
    offloaded: int = 0
    layout: Layout = ALONE

    @property
    def gradients_on_host(self) -> bool:
        """Whether gradients go to the computer's memory as they are reduced, for an optimizer that is there.

        DeepSpeed, ``offload_optimizer``: stage_1_and_2.py (``copy_grads_in_partition``), stage3.py
        (``grad_partitions_flat_buffer``).
        """
        layout = self.layout
        return layout.library == "deepspeed" and layout.shares_gradients and self.offloaded == 1000

    @property
    def gradients_lie(self) -> bool:
        """Whether gradients lie still from step to step, in a buffer that is there from the start."""
        fills = self.layout.library == "deepspeed" and self.layout.sharding == "zero3"
        fills = fills and not self.gradients_on_host
        return bool(self.gradient_width) or fills or self.layout.views


def keeping_of(scenario: Scenario, layout: Layout = ALONE) -> Keeping:
    """What the scenario's training step keeps; Megatron's gradients are fp32 unless said otherwise."""
    training = scenario.training
    settings = Settings(
        training.optimizer,
        training.optimizer_implementation,
        training.optimizer_rank,
        WIDTHS[training.state_format] if training.state_format is not None else 0,
        training.wide_embedding_states,
    )
    precision = kept_precision(scenario)
    consumes = training.optimizer_in_backward or OPTIMIZERS[training.optimizer].consumes
    main = training.gradient_format or ("fp32" if layout.library == "megatron" else None)
    return Keeping(
        settings,
        _master(scenario, precision, layout),
        0 if main is None or consumes else WIDTHS[main],
        consumes,
        1000 if layout.weights_on_host else round(training.offload_optimizer * 1000),
        layout,
    )


def _master(scenario: Scenario, precision: str, layout: Layout) -> int:
    """Bytes per number of the master copies; FSDP's shards of fp32 weights are such copies."""
    if OPTIMIZERS[scenario.training.optimizer].by_layer:
        return 4  # also of weights that are fp32 themselves
    if precision.endswith("_master"):
        return WIDTHS[scenario.training.master_format]
    return 4 if layout.fsdp and precision.endswith("_mixed") else 0
