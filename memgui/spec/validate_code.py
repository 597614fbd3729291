"""What the code that runs a training step does not do: precisions, and degrees of parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from memgui.spec.fields.parallelism import library
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, Value, allowed
from memgui.spec.scenario import Scenario

FP8 = ("megatron", "torchtitan")
"""Whose products may be in fp8."""

Values = dict[str, Value]

MEGATRON = ("bf16_master", "fp16_master", "fp32", "fp8")
"""Precisions of Megatron-LM, which has no autocast and always updates fp32 numbers."""


def code(scenario: Scenario) -> Iterator[Issue]:
    """Issues of the implementation of a training step that is estimated in detail."""
    if scenario.task != "training" or scenario.method != "detailed":
        return
    yield from _precision(scenario)
    if scenario.device.count > 1:
        yield from _library(scenario)
        yield from _sequence(scenario)
        yield from _pipeline(scenario)
        yield from _context(scenario)
        yield from _experts(scenario)


def _named(implementation: str) -> Named:
    return Named("training.implementation", (implementation,))


def _precision(scenario: Scenario) -> Iterator[Issue]:
    training = scenario.training
    name, paths = training.implementation, ("training.precision", "training.implementation")
    if training.precision == "fp8" and name not in FP8:
        text = QT_TRANSLATE_NOOP(
            "messages", "{implementation} has no products in fp8; they are Transformer Engine's or torchao's."
        )
        yield _error(
            "fp8_of_another_code",
            paths[::-1],
            text,
            {"implementation": _named(name)},
            allowed(paths[1], *FP8),
        )
    if name == "megatron" and training.precision not in MEGATRON:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{implementation} keeps weights in 16 bits beside fp32 master copies, and no autocast.",
        )
        yield _error(
            "precision_of_another_code",
            paths,
            text,
            {"implementation": _named(name)},
            allowed(paths[0], *MEGATRON),
        )


def _library(scenario: Scenario) -> Iterator[Issue]:
    if scenario.training.implementation != "megatron" or library(scenario) == "megatron":
        return
    text = QT_TRANSLATE_NOOP(
        "messages", "Megatron-LM's layers add to gradients that its own library reduces."
    )
    paths = ("parallelism.library", "training.implementation")
    yield _error("library_of_another_code", paths, text, {}, allowed(paths[0], "auto", "megatron"))


def _sequence(scenario: Scenario) -> Iterator[Issue]:
    split, training = scenario.parallelism, scenario.training
    if split.sequence and split.tensor > 1 and training.implementation not in FP8:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{implementation} keeps all tokens on each tensor parallel rank: no sequence parallel.",
        )
        paths = ("parallelism.sequence", "training.implementation")
        values: Values = {"implementation": _named(training.implementation)}
        yield _error("sequence_of_another_code", paths, text, values, allowed(paths[0], False))


def _pipeline(scenario: Scenario) -> Iterator[Issue]:
    split, steps = scenario.parallelism, scenario.training.gradient_accumulation_steps
    if split.pipeline == 1:
        return
    path = "training.gradient_accumulation_steps"
    values: Values
    layers, chunks = scenario.model.num_hidden_layers, split.pipeline * split.virtual_pipeline
    paths = ("parallelism.pipeline", "parallelism.virtual_pipeline", "model.num_hidden_layers")
    values = {"layers": layers, "stages": split.pipeline, "chunks": split.virtual_pipeline}
    if chunks > layers:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{layers} {layers:layer|layers} cannot be split into {stages} stages of {chunks} chunks.",
        )
        yield _error("stages_without_layers", paths, text, values, None)
    elif scenario.training.implementation == "megatron" and layers % chunks:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{layers} {layers:layer does|layers do} not divide by {stages} stages of {chunks} chunks: "
            "Megatron-LM wants to be told which stages have fewer; here the first ones take one more.",
        )
        yield Issue("warning", "stages_not_even", paths, Message(text, values))
    if split.virtual_pipeline > 1 and steps % split.pipeline:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "Interleaved chunks take micro batches in turns of {stages}: {steps} are no whole turns.",
        )
        many = [split.pipeline * turn for turn in (1, 2, 4, 8)]
        values = {"stages": split.pipeline, "steps": steps}
        yield _error("no_whole_turns", (path, "parallelism.pipeline"), text, values, allowed(path, *many))
    elif steps < split.pipeline:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "Of {stages} pipeline stages some always wait: a step has {steps} "
            "{steps:micro batch|micro batches}.",
        )
        values = {"steps": steps, "stages": split.pipeline}
        yield Issue("warning", "pipeline_not_filled", (path, "parallelism.pipeline"), Message(text, values))


def _context(scenario: Scenario) -> Iterator[Issue]:
    if scenario.parallelism.context > 1 and scenario.training.attention == "eager":
        text = QT_TRANSLATE_NOOP(
            "messages",
            "Context parallel ranks exchange keys and values inside a flash kernel: not with eager.",
        )
        paths = ("training.attention", "parallelism.context")
        yield _error("eager_in_a_ring", paths, text, {}, allowed(paths[0], "sdpa", "flash_attention_2"))


def _experts(scenario: Scenario) -> Iterator[Issue]:
    split, model = scenario.parallelism, scenario.model
    if not model.num_experts or scenario.training.implementation != "megatron":
        return
    if split.tensor > 1 and not split.sequence:
        text = QT_TRANSLATE_NOOP(
            "messages", "Megatron-LM trains experts on tensor parallel ranks with sequence parallel only."
        )
        paths = ("parallelism.sequence",)
        yield _error("experts_without_sequence", paths, text, {}, allowed(paths[0], True))
    whole = split.data * split.context % split.expert == 0
    if split.tensor > 1 and whole and model.moe_intermediate_size % split.tensor:
        text = QT_TRANSLATE_NOOP("messages", "{path} = {number} cannot be split by {degree}.")
        path = "model.moe_intermediate_size"
        values: Values = {"path": path, "number": model.moe_intermediate_size, "degree": split.tensor}
        yield _error("not_split", ("parallelism.tensor", path), text, values, None)


def _error(name: str, paths: tuple[str, ...], text: str, values: Values, hint: Message | None) -> Issue:
    return Issue("error", name, paths, Message(text, values), hint)
