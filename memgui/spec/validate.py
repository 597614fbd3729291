"""What is wrong or unusual in a scenario.  Nothing is clamped and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

from memgui.spec.fields import BY_PATH, FIELDS, Field, Kind
from memgui.spec.fields.optimizers import IN_BACKWARD
from memgui.spec.fields.when import reads_source
from memgui.spec.finetuning import validate_training
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, Value, allowed
from memgui.spec.methods import VARIANTS
from memgui.spec.model import ModelSpec
from memgui.spec.scenario import Scenario
from memgui.spec.serving import validate_serving
from memgui.spec.validate_chip import validate_chip
from memgui.spec.validate_code import code
from memgui.spec.validate_layout import divisors, layout
from memgui.spec.validate_parts import parts
from memgui.spec.values import check
from memgui.spec.variants import FLAGS, SIZES, variant
from memgui.spec.variants import MOST as MOST_VARIANTS
from memgui.spec.weights import MOST, weights


def validate(scenario: Scenario) -> tuple[Issue, ...]:
    """Every issue of ``scenario``, errors first.

    An ``error`` means that nothing can be computed; fields that do not apply are not judged.
    """
    split = scenario.parallelism
    degrees = (split.data, split.tensor, split.pipeline, split.context, split.expert, split.virtual_pipeline)
    counted = min(*degrees, scenario.device.count) > 0  # what is no number of devices divides nothing
    issues = [
        *_single_fields(scenario),
        *_of_model(scenario.model, detailed=scenario.method == "detailed"),
        *_workload(scenario),
        *_step(scenario),
        *validate_training(scenario),
        *(layout(scenario) if counted else ()),
        *(code(scenario) if counted else ()),
        *_method(scenario),
        *validate_serving(scenario),
        *validate_chip(scenario),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return tuple(sorted(issues, key=lambda issue: order[issue.severity]))


def _single_fields(scenario: Scenario) -> Iterator[Issue]:
    found = list(_judged("", scenario))
    for part in _PARTS:
        found += _remembered(part, getattr(scenario, part)) if part else ()
    found.sort(key=itemgetter(0))
    for index, issue in found:
        if FIELDS[index].applies(scenario):
            yield issue


def _by_part() -> dict[str, list[tuple[int, Callable[[Any], Any]]]]:
    """The fields by the part of a scenario that holds them: where each stands, and how it is read there."""
    parts: dict[str, list[tuple[int, Callable[[Any], Any]]]] = {}
    for index, field in enumerate(FIELDS):
        head, dot, rest = field.path.partition(".")
        parts.setdefault(head if dot else "", []).append((index, attrgetter(rest or head)))
    return parts


_PARTS = _by_part()


def _judged(part: str, held: Any) -> tuple[tuple[int, Issue], ...]:
    """What is wrong or unusual in a part of a scenario, whether or not it applies."""
    found = ((index, _judge(index, read(held))) for index, read in _PARTS[part])
    return tuple([(index, issue) for index, issue in found if issue is not None])


# validation stands before every estimate of a sweep, in which most parts stay as they are
_remembered = lru_cache(maxsize=256)(_judged)


@lru_cache(maxsize=4096, typed=True)
def _judge(index: int, value: Any) -> Issue | None:
    field = FIELDS[index]
    issue = check(field, value)
    if issue is not None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return issue
    if not _unusual(field, value):
        return None
    text = QT_TRANSLATE_NOOP("messages", "{path} is {value}, which is unusual.")
    if field.kind is Kind.BYTES and value < _WITHOUT_UNIT:
        text = QT_TRANSLATE_NOOP(
            "messages",
            "{path} is {value} {value:byte|bytes}, which is unusual. Is a unit missing, as in {value} GiB?",
        )
    return Issue("note", "unusual", (field.path,), Message(text, {"path": field.path, "value": value}))


_WITHOUT_UNIT = 2**20
"""Fewer bytes were typed by somebody who thought of GiB."""


def _unusual(field: Field, value: int | float) -> bool:
    low, high = field.usual_minimum, field.usual_maximum
    return (low is not None and value < low) or (high is not None and value > high)


def _other_weights(texts: tuple[str, ...]) -> Iterator[Issue]:
    wrong = next((text for text in texts if weights(text) is None), None)
    if wrong is None and len(texts) <= MOST:
        return
    shown = wrong[:80] if wrong is not None else str(len(texts))
    yield Issue(
        "error",
        "bad_weights",
        ("model.other_weights",),
        Message(QT_TRANSLATE_NOOP("messages", "model.other_weights cannot hold {value}."), {"value": shown}),
        Message(
            QT_TRANSLATE_NOOP(
                "messages", "At most {most} of the form vision.projector:1x4096x1024 are allowed."
            ),
            {"most": MOST},
        ),
    )


def _layer_variants(texts: tuple[str, ...]) -> Iterator[Issue]:
    wrong = next((text for text in texts if variant(text) is None), None)
    if wrong is None and len(texts) <= MOST_VARIANTS:
        return
    shown = wrong[:80] if wrong is not None else str(len(texts))
    yield Issue(
        "error",
        "bad_variants",
        ("model.layer_variants",),
        Message(QT_TRANSLATE_NOOP("messages", "model.layer_variants cannot hold {value}."), {"value": shown}),
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "At most {most} of the form full_attention:head_dim=512 are allowed; fields: {fields}.",
            ),
            {"most": MOST_VARIANTS, "fields": ", ".join((*SIZES, *FLAGS))},
        ),
    )


@lru_cache(maxsize=64)
def _of_model(model: ModelSpec, *, detailed: bool) -> tuple[Issue, ...]:
    """What is wrong or unusual in a model, which most questions leave as it is."""
    return tuple(_model(model, detailed=detailed))


def _model(model: ModelSpec, *, detailed: bool) -> Iterator[Issue]:
    yield from _layer_variants(model.layer_variants)
    yield from _other_weights(model.other_weights)
    if detailed:
        yield from parts(model)
    if model.num_experts and not model.moe_intermediate_size:
        yield Issue(
            "warning",
            "experts_without_width",
            ("model.moe_intermediate_size", "model.num_experts"),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages", "{count} {count:expert of width 0 holds|experts of width 0 hold} no weights."
                ),
                {"count": model.num_experts},
            ),
        )
    chosen, among = model.num_experts_per_tok, model.num_experts + model.zero_expert_num
    if model.num_experts and chosen > among:
        yield Issue(
            "error",
            "more_experts_chosen_than_there_are",
            ("model.num_experts_per_tok", "model.num_experts"),
            Message(
                QT_TRANSLATE_NOOP("messages", "A token cannot go through {chosen} of {among} experts."),
                {"chosen": chosen, "among": among},
            ),
        )
    heads, shared = model.num_attention_heads, model.num_key_value_heads
    if shared > 0 and heads % shared:
        yield Issue(
            "error",
            "heads_not_grouped",
            ("model.num_attention_heads", "model.num_key_value_heads"),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{heads} attention {heads:head|heads} cannot share {shared} key/value "
                    "{shared:head|heads} evenly.",
                ),
                {"heads": heads, "shared": shared},
            ),
            divisors(heads),
        )


def _workload(scenario: Scenario) -> Iterator[Issue]:
    longest = scenario.model.max_position_embeddings
    if not longest:
        return
    for path, length in _lengths(scenario):
        if length > longest:
            yield _beyond(scenario, path, length)


def _lengths(scenario: Scenario) -> Iterator[tuple[str, int]]:
    """Tokens that positions are needed for, and the field that makes them more."""
    if scenario.task == "training":
        yield "training.sequence_length", scenario.training.sequence_length
        target = scenario.training.target_length
        if target is not None and reads_source(scenario):  # each stack has positions of its own
            yield "training.target_length", target
        return
    serving = scenario.inference
    if not scenario.model.is_decoder:
        yield "inference.prompt_tokens", serving.prompt_tokens
    elif reads_source(scenario):  # each stack has positions of its own
        yield "inference.prompt_tokens", serving.prompt_tokens
        yield "inference.generated_tokens", serving.decoder_prompt_tokens + serving.generated_tokens
    else:
        yield "inference.prompt_tokens", serving.prompt_tokens + serving.generated_tokens


def _beyond(scenario: Scenario, path: str, length: int) -> Issue:
    longest = scenario.model.max_position_embeddings
    learned = scenario.model.position_embedding == "learned" and scenario.method == "detailed"
    args: dict[str, Value] = {"length": length, "longest": longest}
    if learned:
        text = QT_TRANSLATE_NOOP("messages", "{length} tokens: the model has positions for {longest} only.")
    else:
        text = QT_TRANSLATE_NOOP(
            "messages", "{length} tokens are beyond the model's {longest}; computed all the same."
        )
    up_to = (
        Message(QT_TRANSLATE_NOOP("messages", "Allowed: up to {longest}."), {"longest": longest})
        if learned
        else None
    )
    return Issue("error" if learned else "warning", "beyond_longest", (path,), Message(text, args), up_to)


def _step(scenario: Scenario) -> Iterator[Issue]:
    """What an optimizer that steps in the backward pass rules out."""
    training = scenario.training
    if scenario.task != "training" or scenario.method != "detailed":
        return
    if training.optimizer not in IN_BACKWARD and not training.optimizer_in_backward:
        return
    path = "training.optimizer" if training.optimizer in IN_BACKWARD else "training.optimizer_in_backward"
    if training.gradient_accumulation_steps > 1:
        yield Issue(
            "error",
            "no_gradients_to_accumulate",
            (path, "training.gradient_accumulation_steps"),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "A step in the backward pass uses each gradient at once: {steps} cannot be summed.",
                ),
                {"steps": training.gradient_accumulation_steps},
            ),
            allowed("training.gradient_accumulation_steps", 1),
        )
    if 0.0 < training.offload_optimizer < 1.0 and BY_PATH["training.offload_optimizer"].applies(scenario):
        yield Issue(
            "error",
            "part_of_the_states_in_backward",
            ("training.offload_optimizer", path),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "A step in the backward pass has the states of all weights on the CPU, or of none: no "
                    "library parts them.",
                )
            ),
            allowed("training.offload_optimizer", 0, 1),
        )
    if training.gradient_clipping:
        yield Issue(
            "error",
            "no_gradients_to_clip",
            (path, "training.gradient_clipping"),
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "A step in the backward pass never has all gradients, so their norm cannot be taken.",
                )
            ),
            allowed("training.gradient_clipping", False),
        )


def _method(scenario: Scenario) -> Iterator[Issue]:
    if scenario.method == "detailed":
        return
    if scenario.task != "training":
        yield Issue(
            "error",
            "method_of_training",
            ("method", "task"),
            Message(
                QT_TRANSLATE_NOOP("messages", "{method} describes a training step, not {task}."),
                {"method": Named("method", (scenario.method,)), "task": Named("task", (scenario.task,))},
            ),
            allowed("method", "detailed"),
        )
    if scenario.method == "megatron_paper" and scenario.training.activation_checkpointing == "selective_op":
        yield Issue(
            "error",
            "checkpointing_of_torchtitan",
            ("training.activation_checkpointing", "method"),
            Message(QT_TRANSLATE_NOOP("messages", "The Megatron paper knows no checkpointing by operator.")),
            allowed("training.activation_checkpointing", "none", "selective", "full"),
        )
    variants = VARIANTS.get(scenario.method, ())
    if variants and scenario.method_variant is not None and scenario.method_variant not in variants:
        yield Issue(
            "error",
            "variant_of_another_method",
            ("method_variant", "method"),
            Message(
                QT_TRANSLATE_NOOP("messages", "{method} has no variant {variant}."),
                {"method": Named("method", (scenario.method,)), "variant": scenario.method_variant},
            ),
            allowed("method_variant", *variants),
        )
