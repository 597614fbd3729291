"""How devices share a training step: the degrees of parallelism, and who shares out what."""

from __future__ import annotations

from typing import Final, NamedTuple

from memgui.spec.fields.parallelism import REDUCE_AT_ONCE, library, waits_to_reduce
from memgui.spec.scenario import Scenario


class Layout(NamedTuple):
    """How devices share a step, as one of them sees it.

    ``library`` shares out (or reduces) gradients, states and weights: ``pytorch`` (DistributedDataParallel,
    FSDP2), ``deepspeed`` or ``megatron``.  ``bucket`` is how many gradients DeepSpeed reduces at once.
    ``bucket_views``: gradients are views of DDP's buckets.  ``whole_gradients``: FSDP reduces gradients
    once all micro batches of a step have run back; ``reduce_width``: bytes per number that it reduces them
    in, 0 where that is the format of what the optimizer updates.  ``flat``: a unit's weights are one
    parameter, as in FSDP1, whose gradient has room for the frozen ones as well.  ``weights_on_host``: shards
    of weights and gradients lie in the computer's memory.  ``saves_whole``: FSDP gathers all weights on each
    rank to save them.  ``shares_scales``: what a packed weight is unpacked with is shared out as it is.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    chunks: int = 1
    context: int = 1
    expert: int = 1
    sequence: bool = False
    sharding: str = "none"
    library: str = "pytorch"
    bucket: int = 0
    bucket_views: bool = False
    weights_on_host: bool = False
    saves_whole: bool = False
    whole_gradients: bool = False
    reduce_width: int = 0
    flat: bool = False
    shares_scales: bool = False

    @property
    def replicas(self) -> int:
        """Ranks that would hold the same weights without sharding."""
        return self.data * self.context

    @property
    def expert_replicas(self) -> int:
        """Ranks that would hold the same experts without sharding."""
        return max(1, self.replicas * self.tensor // (self.expert * self.expert_tensor))

    @property
    def expert_tensor(self) -> int:
        """Ranks that split each expert: the tensor parallel ones, unless experts are spread over these."""
        return self.tensor if self.replicas % self.expert == 0 else 1

    @property
    def shares_states(self) -> bool:
        """Whether optimizer states are shared out among replicas."""
        return self.sharding != "none"

    @property
    def shares_gradients(self) -> bool:
        """Whether gradients are."""
        return self.sharding in ("zero2", "zero3")

    @property
    def shares_weights(self) -> bool:
        """Whether weights are."""
        return self.sharding == "zero3" or (self.sharding == "zero2" and self.fsdp)

    @property
    def fsdp(self) -> bool:
        """Whether FSDP2 gathers weights unit by unit: its shards are what the optimizer updates."""
        return self.library == "pytorch" and self.shares_gradients

    @property
    def buckets(self) -> bool:
        """Whether PyTorch's DDP reduces gradients, from buckets as large as they are."""
        return self.library == "pytorch" and self.replicas > 1 and not self.shares_gradients

    @property
    def views(self) -> bool:
        """Whether gradients are views of those buckets, and so lie still."""
        return self.buckets and self.bucket_views


FLAT: Final = ("litgpt",)
"""Training codes that shard by FSDP1 (LitGPT of 2023: Fabric's FSDPStrategy)."""

SHARED_SCALES: Final = ("torchtune",)
"""Training codes whose packed weight is one tensor with its scales, cut along with it.

(torchao's nf4tensor.py: ``_INNER_TENSOR_NAMES_FOR_SHARDING``.)
"""

ALONE: Final = Layout()
"""One device, or replicas that nothing is known of."""

MEGATRON: Final = Layout(library="megatron")
"""One device under Megatron-LM, whose gradients lie in a buffer there too."""


def kept_precision(scenario: Scenario) -> str:
    """The precision of weights: beside products in fp8 these are bf16 with masters, or fp32 for torchao."""
    training = scenario.training
    if training.precision != "fp8":
        return training.precision
    return "bf16_master" if training.implementation == "megatron" else "bf16_mixed"


def layout_of(scenario: Scenario) -> Layout:
    """The layout of a training scenario; degrees mean nothing on a single device."""
    split = scenario.parallelism
    code = scenario.training.implementation
    if scenario.device.count == 1:
        return MEGATRON if code == "megatron" else ALONE
    bucket = split.bucket_elements
    if bucket is None:
        bucket = scenario.model.hidden_size**2
    sharding = split.sharding if split.data * split.context > 1 else "none"
    return Layout(
        data=split.data,
        tensor=split.tensor,
        pipeline=split.pipeline,
        chunks=split.virtual_pipeline if split.pipeline > 1 else 1,
        context=split.context,
        expert=split.expert if scenario.model.num_experts else 1,
        sequence=(split.sequence or code == "torchtitan") and split.tensor > 1,
        sharding=sharding,
        library=library(scenario),
        bucket=bucket,
        bucket_views=split.gradient_as_bucket_view,
        weights_on_host=split.offload_parameters and split.sharding == "zero3",
        saves_whole=split.gather_to_save and split.sharding == "zero3",
        reduce_width=0 if code in REDUCE_AT_ONCE or not kept_precision(scenario).endswith("_mixed") else 2,
        flat=code in FLAT,
        shares_scales=code in SHARED_SCALES,
        whole_gradients=sharding != "none" and waits_to_reduce(scenario) and not split.sync_each_batch,
    )
