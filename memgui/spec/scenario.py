"""What a person can say: a model, what is done with it, how it is split, on what device.

All types are frozen; :func:`replace` is the only edit.  A field is named by its dotted path
(``training.micro_batch_size``), and ``memgui.spec.fields`` says what each path means.
"""

# Annotations are not postponed: msgspec would compile each of them when it first reads a scenario.

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, ScenarioError
from memgui.spec.model import ModelSpec


class Lora(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Low-rank adapters on a frozen base (``training.method`` = ``lora``)."""

    rank: int = 16
    target_modules: tuple[str, ...] = ("q_proj", "v_proj")
    modules_to_save: tuple[str, ...] = ()
    variant: str = "lora"
    dropout: float = 0.0
    adapter_format: str = "fp32"


class Training(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One training step on one device; counts are per device and step."""

    method: str = "full"
    micro_batch_size: int = 1
    sequence_length: int = 4096
    target_length: int | None = None
    gradient_accumulation_steps: int = 1
    precision: str = "bf16"
    fp8_scaling: str = "tensorwise"
    optimizer: str = "adamw"
    optimizer_implementation: str = "fused"
    optimizer_rank: int = 128
    state_format: str | None = None
    wide_embedding_states: bool = True
    optimizer_in_backward: bool = False
    offload_optimizer: float = 0.0
    gradient_format: str | None = None
    master_format: str = "fp32"
    activation_checkpointing: str = "none"
    recompute_modules: tuple[str, ...] = ("core_attn",)
    checkpoint_every: int = 1
    checkpoint_layers: int | None = None
    checkpoint_offload: bool = False
    attention: str = "sdpa"
    sdpa_backend: str = "auto"
    torch_version: str = "2.13"
    padding_mask: bool = False
    use_cache: bool = False
    gradient_clipping: bool = False
    zero_grad_set_to_none: bool = True
    keep_outputs: bool = True
    outputs_in_step: bool = False
    expandable_segments: bool = False
    input_require_grads: bool = True
    kbit_preparation: bool = True
    virtual_tokens: int = 20
    frozen_layers: int = 0
    implementation: str = "transformers"
    loss: str = "auto"
    loss_chunks: int = 8
    compile: bool = False
    dropout: float | None = None
    lora: Lora = Lora()
    base_format: str = "bf16"


class Inference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sequences held at once, their length in tokens, and the engine that holds them.

    Fields below ``attention`` belong to one engine each and are called as the engine calls them.
    """

    engine: str = "transformers"
    batch_size: int = 1
    prompt_tokens: int = 4096
    decoder_prompt_tokens: int = 1
    generated_tokens: int = 512
    weight_format: str = "bf16"
    quantised_parts: tuple[str, ...] | None = None
    kv_cache_format: str = "bf16"
    kv_cache_format_v: str | None = None
    attention: str = "sdpa"
    transformers_version: str = "5.24"
    cache_implementation: str = "dynamic"
    gpu_memory_utilization: float = 0.92
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    block_size: int = 16
    enforce_eager: bool = False
    vllm_version: str = "0.11"
    mem_fraction_static: float | None = None
    llama_cpp_version: str = "b11434"
    n_ubatch: int = 512
    flash_attention: bool = True
    n_gpu_layers: int | None = None
    n_cpu_moe: int = 0
    kv_unified: bool = True
    swa_full: bool = False
    linear_causal_mask: bool = False


class Parallelism(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Degrees of parallelism; their product is at most ``device.count``."""

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    virtual_pipeline: int = 1
    context: int = 1
    expert: int = 1
    sequence: bool = False
    sharding: str = "none"
    library: str = "auto"
    bucket_elements: int | None = None
    gradient_as_bucket_view: bool = False
    offload_parameters: bool = False
    limit_all_gathers: bool = True
    gather_to_save: bool = False
    sync_each_batch: bool = False

    @property
    def devices(self) -> int:
        """How many devices the degrees are of: their product.  Experts are spread over those of others."""
        return self.data * self.tensor * self.pipeline * self.context


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One accelerator: its name and the bytes a process really gets on it, and how many there are."""

    name: str = "H100 SXM 80 GB"
    memory_bytes: int = 85_024_112_640
    count: int = 1
    compute_capability: str = "9.0"

    @property
    def facts(self) -> dict[str, str | int]:
        """What is true of one of these, whatever their count: a value for each path of a scenario."""
        return {
            "device.name": self.name,
            "device.memory_bytes": self.memory_bytes,
            "device.compute_capability": self.compute_capability,
        }


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything an estimate depends on."""

    model: ModelSpec
    task: str = "training"
    training: Training = Training()
    inference: Inference = Inference()
    parallelism: Parallelism = Parallelism()
    device: Device = Device()
    method: str = "detailed"
    method_variant: str | None = None
    method_number_format: str | None = None


def get(scenario: Scenario, path: str) -> Any:
    """The value at ``path``; ``KeyError`` where there is no such field."""
    read = _READERS.get(path)
    if read is not None:
        return read(scenario)
    value: Any = scenario
    for name in path.split("."):
        if not isinstance(value, msgspec.Struct) or name not in value.__struct_fields__:
            raise KeyError(path)
        value = getattr(value, name)
    _READERS[path] = attrgetter(path)  # as many as there are fields
    return value


_READERS: dict[str, Callable[[Scenario], Any]] = {}
"""How the value at a path is read, of paths that lead somewhere; each is found out once."""


def replace(scenario: Scenario, path: str, value: Any) -> Scenario:
    """A scenario like ``scenario`` with ``value`` at ``path``.

    Types are checked strictly (nothing is coerced, nothing clamped): a value of another type
    raises :class:`ScenarioError`, an unknown path ``KeyError``.  A model that is changed is no longer
    the one in its file: what that holds is dropped.
    """
    get(scenario, path)
    result: Scenario = _replace(scenario, path.split("."), value, path)
    if path.startswith("model.") and path not in _BESIDE_THE_FILE and scenario.model.stored_weights:
        model = msgspec.structs.replace(result.model, stored_weights=())
        result = msgspec.structs.replace(result, model=model)
    return result


_BESIDE_THE_FILE = (
    "model.name",
    "model.model_type",
    "model.max_position_embeddings",
    "model.stored_weights",
)
"""Fields of a model that say nothing of its weights."""


def _replace(node: Any, names: list[str], value: Any, path: str) -> Any:
    name = names[0]
    inner = value if len(names) == 1 else _replace(getattr(node, name), names[1:], value, path)
    if len(names) == 1:
        inner = _checked(type(node), name, value, path)
    return msgspec.structs.replace(node, **{name: inner})


_TYPES: dict[type, dict[str, Any]] = {}


def _checked(owner: type, name: str, value: Any, path: str) -> Any:
    types = _TYPES.get(owner)
    if types is None:
        types = _TYPES[owner] = {field.name: field.type for field in msgspec.structs.fields(owner)}
    if isinstance(value, list):
        value = tuple(value)
    try:
        return msgspec.convert(value, types[name], strict=True)
    except msgspec.ValidationError:
        from memgui.spec.types import allowed_type  # where something is wrong, not at each start

        raise ScenarioError(
            Issue(
                severity="error",
                code="wrong_type",
                paths=(path,),
                message=Message(
                    QT_TRANSLATE_NOOP("messages", "{path} cannot be {value}."),
                    {"path": path, "value": repr(value)[:80]},
                ),
                allowed=allowed_type(types[name]),
            )
        ) from None


def to_builtins(scenario: Scenario) -> dict[str, Any]:
    """Every field as plain dicts, lists, numbers and strings (``scenario`` of ``--json``)."""
    result: dict[str, Any] = _plain(scenario)
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
