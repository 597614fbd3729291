"""What of a run is modelled: what is not is refused, never passed over."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from memgui.estimator.coverage import BORROWED, LENT, shape_of
from memgui.estimator.modules.implementations import IMPLEMENTATIONS
from memgui.estimator.modules.reach import FLASH_2
from memgui.estimator.optimizers import OPTIMIZERS
from memgui.estimator.options import ADAPTERS, WIDTHS
from memgui.estimator.refusals import NotCovered, not_with, not_yet
from memgui.estimator.split import spans_of
from memgui.spec.fields import BY_PATH
from memgui.spec.formats import SCHEMES
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message, Named
from memgui.spec.scenario import Parallelism, Scenario, get
from memgui.spec.weights import TOWERS, said


def require_covered_run(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where the run has something that is not modelled."""
    split = scenario.parallelism
    shared = scenario.model.num_mem_blocks
    own = scenario.task == "training" and scenario.training.method in ADAPTERS
    if shared and (own or scenario.training.frozen_layers or any(is_split(scenario, n) for n in DEGREES)):
        raise NotCovered(not_yet("model.num_mem_blocks", shared))
    looped = scenario.model.n_recurrent_layers
    if looped and (scenario.training.frozen_layers or any(is_split(scenario, name) for name in DEGREES)):
        raise NotCovered(not_yet("model.n_recurrent_layers", looped))
    if split != _ALONE:
        if scenario.task == "training":
            _require_split(scenario)
        else:
            for name in ("context", "expert"):
                if is_split(scenario, name):
                    raise NotCovered(not_yet(f"parallelism.{name}", getattr(split, name)))
        if split.sharding != "none" and split.data > 1 and scenario.task != "training":
            raise NotCovered(not_yet("parallelism.sharding", split.sharding))
    part = "training" if scenario.task == "training" else "inference"
    settings = getattr(scenario, part)
    _require_masked(scenario)
    for name, known in _RUNS[part].items():
        value = getattr(settings, name)
        if value not in known and BY_PATH[f"{part}.{name}"].applies(scenario):
            raise NotCovered(not_yet(f"{part}.{name}", value))
    if part == "training":
        _require_written(scenario)
        _require_by_layer(scenario)
        _require_shareable(scenario)
    if scenario.training.lora.adapter_format not in WIDTHS:
        value = scenario.training.lora.adapter_format
        raise NotCovered(not_yet("training.lora.adapter_format", value))


def _require_masked(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where masks that layers make meet a kernel without, or hide too much."""
    model, training = scenario.model, scenario.task == "training"
    own = model.dynamic_mask or "pooled_indexed_attention" in model.layer_types
    attention = scenario.training.attention if training else scenario.inference.attention
    if own and attention == FLASH_2:
        raise NotCovered(not_yet("training.attention" if training else "inference.attention", attention))
    prompt = scenario.inference.prompt_tokens
    beyond = prompt <= model.keep_window_size < prompt + scenario.inference.generated_tokens
    if model.dynamic_mask and not training and beyond:  # what is generated passes it
        raise NotCovered(not_yet("model.keep_window_size", model.keep_window_size))


def is_split(scenario: Scenario, name: str) -> bool:
    """Whether ranks are asked to share something out by the degree called ``name``, and it applies."""
    return getattr(scenario.parallelism, name) > 1 and BY_PATH[f"parallelism.{name}"].applies(scenario)


def _require_split(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where ranks share out what no code here is known to share."""
    split, model = scenario.parallelism, scenario.model
    if scenario.device.count == 1:
        return
    code = IMPLEMENTATIONS[scenario.training.implementation]
    for name in ("tensor", "pipeline", "context", "expert"):
        if name not in code.shares and is_split(scenario, name):
            called = Named("training.implementation", (scenario.training.implementation,))
            raise NotCovered(not_with(f"parallelism.{name}", getattr(split, name), called))
    if max(split.tensor, split.pipeline, split.context) == 1:
        return
    if shape_of(model) != "decoder":
        raise NotCovered(not_yet("model.is_decoder", model.is_decoder))
    if model.altup_num_inputs or (split.pipeline > 1 and model.hidden_size_per_layer_input):
        name = "altup_num_inputs" if model.altup_num_inputs else "hidden_size_per_layer_input"
        raise NotCovered(not_yet(f"model.{name}", getattr(model, name)))
    if split.pipeline > 1:
        stages = spans_of(scenario, split.pipeline * split.virtual_pipeline)
        if not all(layers for _, layers in stages):
            idle = Named("model.layer_types", ("none",))
            raise NotCovered(not_with("parallelism.pipeline", split.pipeline, idle))
        for one in map(said, model.other_weights):
            if one.part not in TOWERS and one.part != "embedding":  # of layers, nobody says of which
                own = Named("model.other_weights", (str(one),))
                raise NotCovered(not_with("parallelism.pipeline", split.pipeline, own))
    if max(split.tensor, split.context) > 1 and model.shortcut_experts:
        raise NotCovered(not_yet("model.shortcut_experts", True))
    if max(split.tensor, split.context) > 1 and "dense_sparse" in model.mlp_layer_types:
        raise NotCovered(not_yet("model.mlp_layer_types", "dense_sparse"))
    for value in model.layer_types if split.pipeline > 1 else ():
        if value in BORROWED:  # a stage would have to be sent them
            raise NotCovered(not_yet("model.layer_types", value))
    for value in model.layer_types if max(split.tensor, split.context) > 1 else ():
        if value not in SHARED_MIXERS:
            raise NotCovered(not_yet("model.layer_types", value))
    for name in ("differential", "dynamic_mask"):
        if getattr(model, name):
            raise NotCovered(not_yet(f"model.{name}", True))
    if model.score_scaling == "exact" and split.tensor > 1:  # whose attention each rank has as a whole
        raise NotCovered(not_yet("model.score_scaling", "exact"))
    if model.output_vocab_size and split.tensor > 1:
        raise NotCovered(not_yet("model.output_vocab_size", model.output_vocab_size))
    if split.context > 1 and scenario.training.attention == "eager":
        raise NotCovered(not_yet("training.attention", scenario.training.attention))


DEGREES: Final = ("tensor", "pipeline", "context", "expert")
"""How ranks may share out a model."""
SHARED_MIXERS: Final = (
    *("full_attention", "sliding_attention", "chunked_attention", "unrotated_attention"),
    *(*LENT, *BORROWED),
)
"""Mixers whose heads ranks can share."""


def _require_written(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where a training step's implementation lacks what is chosen."""
    code = IMPLEMENTATIONS[scenario.training.implementation]
    called = Named("training.implementation", (scenario.training.implementation,))
    if scenario.training.precision == "fp8" and "precision" not in code.choices:
        raise NotCovered(not_with("training.precision", "fp8", called))
    for name, known in code.choices.items():
        value = getattr(scenario.training, name)
        if value not in known and BY_PATH[f"training.{name}"].applies(scenario):
            raise NotCovered(not_with(f"training.{name}", value, called))
    model = scenario.model
    if model.is_decoder and model.head == "sequence" and scenario.training.implementation not in _HEADS_ALIKE:
        raise NotCovered(not_with("model.head", model.head, called))
    _require_packed(scenario)
    _require_prefixed(scenario)
    _require_plain_adapters(scenario)
    lacking = code.lacks(model)
    if lacking is not None:
        name, value = lacking
        raise NotCovered(not_with(f"model.{name}", value, called))


_HEADS_ALIKE: Final = ("transformers", "transformers_2022", "fused")
"""Implementations that leave a decoder's head over classes to Transformers."""


_UNSLOTH: Final = Named("training.implementation", ("unsloth",))


def _require_plain_adapters(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where Unsloth would leave adapters to PEFT, or run them otherwise."""
    lora = scenario.training.lora
    if scenario.training.implementation != "unsloth":
        return
    if lora.variant not in ("lora", "rslora"):
        raise NotCovered(not_with("training.lora.variant", lora.variant, _UNSLOTH))
    if lora.dropout:
        raise NotCovered(not_with("training.lora.dropout", lora.dropout, _UNSLOTH))
    if lora.modules_to_save:
        saved = ", ".join(lora.modules_to_save)
        raise NotCovered(not_with("training.lora.modules_to_save", saved, _UNSLOTH))


def _require_prefixed(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where a prefix meets layers that have no plain keys and values."""
    model = scenario.model
    if scenario.training.method != "prefix":
        return
    plain = set(model.layer_types) <= {"full_attention"} and model.kv_lora_rank is None
    if not plain or shape_of(model) != "decoder" or model.cached_key_value_heads is not None:
        odd = next((one for one in model.layer_types if one != "full_attention"), model.model_type)
        raise NotCovered(not_with("training.method", "prefix", odd))


def _require_packed(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where it is not known how a packed base runs."""
    training = scenario.training
    if training.method not in ADAPTERS:
        return
    base, experts = training.base_format, scenario.model.num_experts
    if base.startswith(("gptq_", "awq_")) and experts:  # how experts are packed
        raise NotCovered(not_with("training.base_format", base, f"num_experts = {experts}"))
    if base.startswith("hqq_") and training.method == "lora" and training.lora.variant == "dora":
        raise NotCovered(
            not_with("training.lora.variant", training.lora.variant, Named("training.base_format", (base,)))
        )


def _require_by_layer(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where an optimizer that trains one layer at a time meets anything else."""
    name = scenario.training.optimizer
    if not OPTIMIZERS[name].by_layer:
        return
    for path, known in _BY_LAYER.items():
        value = get(scenario, path)
        if value not in known:
            raise NotCovered(not_with(path, value, Named("training.optimizer", (name,))))


_BY_LAYER: Final[dict[str, tuple[object, ...]]] = {
    "training.method": ("full",),
    "training.frozen_layers": (0,),
    "training.implementation": ("transformers", "fused"),
    "training.optimizer_in_backward": (False,),
    "training.gradient_format": (None,),
    "model.num_hidden_groups": (0,),
    "model.n_recurrent_layers": (0,),
    "model.num_mem_blocks": (0,),
    "device.count": (1,),
}


def _require_shareable(scenario: Scenario) -> None:
    """Raise :class:`NotCovered` where an optimizer that updates whole matrices meets shards of them."""
    split, name = scenario.parallelism, scenario.training.optimizer
    if split.sharding == "none" or split.data * split.context == 1 or OPTIMIZERS[name].elementwise:
        return
    text = QT_TRANSLATE_NOOP(
        "messages", "{optimizer} updates matrices as a whole: with {sharding} it is not modelled yet."
    )
    raise NotCovered(
        Message(
            text,
            {
                "optimizer": Named("training.optimizer", (name,)),
                "sharding": Named("parallelism.sharding", (split.sharding,)),
            },
        )
    )


PACKED_CACHES: Final = ("quantized_int4", "quantized_int2", "kivi_4bit", "kivi_2bit", "int8")
"""Formats of a cache that is packed: Transformers' QuantizedCache, KIVI on top of it, gpt-fast's int8."""

_ALONE: Final = Parallelism()
_RUNS: Final[dict[str, dict[str, Container[str]]]] = {
    "training": {
        "precision": (
            "fp32",
            "bf16",
            "fp16",
            "bf16_mixed",
            "fp16_mixed",
            "bf16_master",
            "fp16_master",
            "fp8",
        ),
        "optimizer": OPTIMIZERS,
        "activation_checkpointing": ("none", "selective", "selective_op", "full"),
        "implementation": IMPLEMENTATIONS,
    },
    "inference": {
        "engine": ("transformers", "gpt-fast"),
        "weight_format": SCHEMES,
        "kv_cache_format": (*WIDTHS, *PACKED_CACHES),
        "attention": ("eager", "sdpa", FLASH_2),
    },
}
