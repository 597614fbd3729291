"""What is wrong with how several devices share the work: degrees that do not divide, what rules out what."""

from __future__ import annotations

from collections.abc import Iterator

from memgui.spec.fields.optimizers import IN_BACKWARD
from memgui.spec.fields.parallelism import library
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, Value, allowed
from memgui.spec.scenario import Scenario, get

SHARDINGS = {
    "pytorch": ("none", "zero1", "zero2", "zero3"),
    "deepspeed": ("none", "zero1", "zero2", "zero3"),
    "megatron": ("none", "zero1"),
}
"""What each library shares out."""


def layout(scenario: Scenario) -> Iterator[Issue]:
    """Issues of the layout; none where there is one device and nothing that shares it."""
    alone = scenario.device.count == 1
    if alone and (scenario.parallelism.devices == 1 or scenario.method != "detailed"):
        return  # a formula takes degrees without devices
    yield from _degrees(scenario)
    if alone:
        return
    yield from _heads(scenario)
    yield from _stages(scenario)
    if scenario.method != "detailed":
        return
    if scenario.task == "inference":
        yield from _served_experts(scenario)
    else:
        yield from _parts(scenario)
        yield from _sequences(scenario)
        yield from _experts(scenario)
        yield from _shares(scenario)


def divisors(number: int) -> Message:
    """That only divisors of ``number`` are allowed."""
    found = [divisor for divisor in range(1, min(number, 4096) + 1) if number % divisor == 0]
    return Message(
        QT_TRANSLATE_NOOP("messages", "Allowed: {allowed}."), {"allowed": ", ".join(map(str, found[:16]))}
    )


def taking(scenario: Scenario) -> str:
    """The degree that further devices go to where the person does not say: what people do first.

    Training runs replicas; vLLM and SGLang split matrices; Transformers and llama.cpp put layers on
    each device in turn.
    """
    if scenario.task == "training":
        return "parallelism.data"
    split = scenario.inference.engine in ("vllm", "sglang")
    return "parallelism.tensor" if split else "parallelism.pipeline"


_PATHS = (*(f"parallelism.{name}" for name in ("data", "tensor", "pipeline", "context")), "device.count")


def _degrees(scenario: Scenario) -> Iterator[Issue]:
    """Devices that are missing, or that do nothing."""
    used, count = scenario.parallelism.devices, scenario.device.count
    if used > count:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "The degrees of parallelism multiply to {used}, and there {count:is|are} {count} "
            "{count:device|devices}: {path} = {used} would do.",
        )
        args: dict[str, Value] = {"used": used, "count": count, "path": "device.count"}
        many = (path for path in _PATHS if path == "device.count" or get(scenario, path) > 1)
        yield Issue("error", "degrees_and_devices", tuple(many), Message(text, args))
    if used >= count:
        return
    text = QT_TRANSLATE_NOOP(
        "messages", "The degrees of parallelism use {used} of {count} devices, the rest do nothing."
    )
    args = {"used": used, "count": count}
    path = taking(scenario)
    others = used // int(get(scenario, path))
    if count % others == 0:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "The degrees of parallelism use {used} of {count} devices, the rest do nothing: {path} = {value} "
            "would use all.",
        )
        args |= {"path": path, "value": count // others}
    yield Issue("warning", "degrees_and_devices", _PATHS, Message(text, args))


def _heads(scenario: Scenario) -> Iterator[Issue]:
    heads, tensor = scenario.model.num_attention_heads, scenario.parallelism.tensor
    if tensor > 1 and heads % tensor:
        yield Issue(
            "error",
            "heads_not_split",
            ("parallelism.tensor", "model.num_attention_heads"),
            Message(
                QT_TRANSLATE_NOOP("messages", "{heads} {heads:head|heads} cannot be split by {degree}."),
                {"heads": heads, "degree": tensor},
            ),
            divisors(heads),
        )


def _stages(scenario: Scenario) -> Iterator[Issue]:
    layers, stages = scenario.model.num_hidden_layers, scenario.parallelism.pipeline
    if stages > layers:
        yield Issue(
            "error",
            "stages_without_layers",
            ("parallelism.pipeline", "model.num_hidden_layers"),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages", "{layers} {layers:layer|layers} cannot be split into {stages} stages."
                ),
                {"layers": layers, "stages": stages},
            ),
        )


def _parts(scenario: Scenario) -> Iterator[Issue]:
    """Matrices that tensor parallel ranks cannot split evenly."""
    model, tensor = scenario.model, scenario.parallelism.tensor
    if tensor == 1 or model.num_attention_heads % tensor:
        return
    shared = model.num_key_value_heads
    if shared and shared % tensor and tensor % shared:
        yield _not_split("parallelism.tensor", "model.num_key_value_heads", shared, tensor)
    dense = not model.num_experts or "dense" in model.mlp_layer_types
    if dense and model.intermediate_size % tensor:
        yield _not_split("parallelism.tensor", "model.intermediate_size", model.intermediate_size, tensor)


def _sequences(scenario: Scenario) -> Iterator[Issue]:
    split, length = scenario.parallelism, scenario.training.sequence_length
    path = "training.sequence_length"
    pieces = 2 * split.context if split.context > 1 else 1  # each rank has one from either end
    if length % pieces:
        yield _not_split("parallelism.context", path, length, pieces)
    ranks = split.tensor * pieces
    along = split.sequence or scenario.training.implementation == "torchtitan"
    if along and split.tensor > 1 and length % ranks:
        yield _not_split("parallelism.tensor", path, length, ranks)
    if split.sequence and split.tensor == 1:
        text = QT_TRANSLATE_NOOP(
            "messages", "Sequence parallel has no effect: one device has each layer's matrices."
        )
        yield Issue(
            "warning",
            "sequence_without_tensor",
            ("parallelism.sequence", "parallelism.tensor"),
            Message(text),
        )


def _experts(scenario: Scenario) -> Iterator[Issue]:
    split, experts = scenario.parallelism, scenario.model.num_experts
    if split.expert == 1 or not experts:
        return
    if experts % split.expert:
        yield _not_split("parallelism.expert", "model.num_experts", experts, split.expert)
    ranks = split.data * split.tensor * split.context
    if ranks % split.expert:
        yield _not_spread(ranks, split.expert, "data", "tensor", "context")


def _served_experts(scenario: Scenario) -> Iterator[Issue]:
    """All ranks of a stage have experts of their own in vLLM, or split each one; SGLang does both at once."""
    split, engine = scenario.parallelism, scenario.inference.engine
    if split.expert == 1 or not scenario.model.num_experts:
        return
    if engine == "sglang" and split.tensor % split.expert:
        yield _not_spread(split.tensor, split.expert, "tensor")
    elif engine == "vllm" and split.tensor != split.expert:
        text = QT_TRANSLATE_NOOP(
            "messages", "vLLM spreads experts over all {ranks} ranks of a stage, or none."
        )
        yield Issue(
            "error",
            "experts_not_spread",
            ("parallelism.expert", "parallelism.tensor"),
            Message(text, {"ranks": split.tensor}),
            allowed("parallelism.expert", *dict.fromkeys((1, split.tensor))),
        )


def _not_spread(ranks: int, degree: int, *others: str) -> Issue:
    text = QT_TRANSLATE_NOOP(
        "messages", "Experts are spread over the ranks of a stage: {ranks} cannot be split by {degree}."
    )
    paths = ("expert", *others)
    return Issue(
        "error",
        "experts_not_spread",
        tuple(f"parallelism.{name}" for name in paths),
        Message(text, {"ranks": ranks, "degree": degree}),
        divisors(ranks),
    )


def _not_split(degree: str, path: str, number: int, by: int) -> Issue:
    return Issue(
        "error",
        "not_split",
        (degree, path),
        Message(
            QT_TRANSLATE_NOOP("messages", "{path} = {number} cannot be split by {degree}."),
            {"path": path, "number": number, "degree": by},
        ),
        divisors(number),
    )


def _shares(scenario: Scenario) -> Iterator[Issue]:
    split, training = scenario.parallelism, scenario.training
    if split.data * split.context == 1:
        return
    name = library(scenario)
    if split.sharding not in SHARDINGS[name]:
        path = "parallelism.sharding"
        text = QT_TRANSLATE_NOOP("messages", "{library} does not share out what {sharding} shares out.")
        yield Issue(
            "error",
            "sharding_of_another_library",
            (path, "parallelism.library"),
            Message(text, {"library": _library(name), "sharding": Named(path, (split.sharding,))}),
            allowed(path, *SHARDINGS[name]),
        )
    if name != "pytorch" and training.precision.endswith("_mixed"):
        text = QT_TRANSLATE_NOOP(
            "messages", "{library} keeps weights in bf16 beside fp32 master copies, and no autocast."
        )
        yield Issue(
            "error",
            "precision_of_another_library",
            ("training.precision", "parallelism.library"),
            Message(text, {"library": _library(name)}),
            allowed("training.precision", "bf16_master", "fp16_master", "fp32"),
        )
    if (
        training.base_format == "int8"
        and training.method in ("lora", "ia3", "prompt", "prefix")
        and name == "pytorch"
        and split.sharding in ("zero2", "zero3")
    ):
        text = QT_TRANSLATE_NOOP(
            "messages",
            "FSDP shares out numbers of floating formats: weights that LLM.int8 packed are none, and "
            "preparing the model ends in an error.",
        )
        yield Issue(
            "error",
            "int8_not_shared",
            ("training.base_format", "parallelism.sharding"),
            Message(text),
            allowed("training.base_format", "nf4", "nf4_dq", "fp4", "fp4_dq", "bf16", "fp16"),
        )
    if training.optimizer in IN_BACKWARD or training.optimizer_in_backward:
        path = "optimizer" if training.optimizer in IN_BACKWARD else "optimizer_in_backward"
        text = QT_TRANSLATE_NOOP(
            "messages",
            "A step in the backward pass uses each gradient at once: it cannot wait to be reduced "
            "over {ranks} ranks.",
        )
        yield Issue(
            "error",
            "no_gradients_to_reduce",
            (f"training.{path}", "parallelism.data", "parallelism.context"),
            Message(text, {"ranks": split.data * split.context}),
            allowed("parallelism.data", 1),
        )


def _library(name: str) -> Named:
    return Named("parallelism.library", (name,))
