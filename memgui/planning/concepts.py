"""What each component is and why it is there, in plain words with the person's numbers in them.

For someone who has never heard of it; how large it is, and what would change it.
"""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.result import COMPONENTS, Estimate
from memgui.planning.cache_concept import cached_tokens, kv_cache
from memgui.planning.words import Said
from memgui.spec.fields.optimizers import BY_LAYER
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

FEW = 20
"""Activations of less than this part of the peak have mostly been used up by then."""


def concept(estimate: Estimate, key: str) -> tuple[Said, ...]:
    """The sentences of a component; of the whole where ``key`` is empty."""
    if not key:
        return _whole(estimate)
    if estimate.method != "detailed":
        return ()
    return _CONCEPTS[key](estimate)


def _whole(estimate: Estimate) -> tuple[Said, ...]:
    largest = max(estimate.components, key=lambda node: node.bytes)
    if estimate.method != "detailed":
        return (
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "A rule of thumb adds its parts up; {largest}, with {size}, is the largest of them.",
                ),
                sizes={"size": largest.bytes},
                words={"largest": ("estimator", COMPONENTS[largest.key])},
            ),
        )
    return (
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "What is needed changes from moment to moment. This is the moment at which most is alive at "
                "once ({moment}). The GPU has to hold that much, even if only for an instant.",
            ),
            messages={"moment": estimate.peak_moment.label},
        ),
        Said(
            QT_TRANSLATE_NOOP("why", "The largest part is {largest} with {size}: choose it to see why."),
            sizes={"size": largest.bytes},
            words={"largest": ("estimator", COMPONENTS[largest.key])},
        ),
    )


def _per_parameter(size: int, parameters: int) -> str:
    """Bytes of each parameter, at most two decimals."""
    if parameters <= 0:
        return "0"
    hundredths = (200 * size + parameters) // (2 * parameters)
    return f"{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")


def _is_part(scenario: Scenario) -> bool:
    """Whether a device holds some of the weights only."""
    split = scenario.parallelism
    several = scenario.device.count > 1
    return several and (split.tensor > 1 or split.pipeline > 1 or split.sharding == "zero3")


def _weights(estimate: Estimate) -> tuple[Said, ...]:
    size = estimate.component("weights").bytes
    parameters = estimate.parameters
    said = [
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "The model itself: {parameters} numbers, its parameters, {each} bytes for each. "
                "They are loaded "
                "once and stay.",
            ),
            counts={"parameters": parameters.total},
            words={"each": _per_parameter(size, parameters.total)},
        )
    ]
    if _is_part(estimate.scenario):
        text = QT_TRANSLATE_NOOP(
            "why",
            "One device's part of the model: of its {parameters} numbers, its parameters, those that lie "
            "here. They are loaded once and stay.",
        )
        said = [Said(text, counts={"parameters": parameters.total})]
    if estimate.scenario.task == "training" and parameters.trainable < parameters.total:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "Only {trainable} of them learn; the rest is frozen, but has to be there all the same.",
                ),
                counts={"trainable": parameters.trainable},
            )
        )
    elif parameters.active < parameters.total:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "A token passes through {active} of them only, but the next token may need "
                    "other experts, so all "
                    "are kept.",
                ),
                counts={"active": parameters.active},
            )
        )
    else:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why", "A format of fewer bytes makes them smaller; the text's length does not."
                )
            )
        )
    return tuple(said)


def _gradients(estimate: Estimate) -> tuple[Said, ...]:
    size = estimate.component("gradients").bytes
    scenario = estimate.scenario
    if scenario.task != "training":
        return (Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so there are no gradients.")),)
    said = [
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "The backward pass works out for each of the {trainable} trained parameters which "
                "way to change it: "
                "one number, the gradient, kept until the optimizer has used it.",
            ),
            counts={"trainable": estimate.parameters.trainable},
        )
    ]
    steps = scenario.training.gradient_accumulation_steps
    if size and steps > 1:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "{steps} micro batches add to the same gradients, so from the second on they "
                    "are there during "
                    "the forward pass too.",
                ),
                counts={"steps": steps},
            )
        )
    elif not size:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "At the moment of the peak they do not exist yet: each layer makes its own on "
                    "the way back.",
                )
            )
        )
    return tuple(said)


_KEPT = {
    "adamw": QT_TRANSLATE_NOOP(
        "why",
        "AdamW sizes each step by what happened before. It remembers two numbers for each of the {trainable} "
        "trained parameters: a running mean of its gradients, and of their squares.",
    ),
    "sgd": QT_TRANSLATE_NOOP(
        "why",
        "Plain SGD remembers nothing: it moves each of the {trainable} trained parameters by its "
        "gradient alone.",
    ),
    "sgd_momentum": QT_TRANSLATE_NOOP(
        "why",
        "SGD with momentum remembers one number for each of the {trainable} trained parameters: "
        "which way it has "
        "been moving.",
    ),
}
_KEPT_ELSE = QT_TRANSLATE_NOOP(
    "why", "The optimizer remembers for each of the {trainable} trained parameters how it was changed before."
)


def _optimizer_states(estimate: Estimate) -> tuple[Said, ...]:
    size = estimate.component("optimizer_states").bytes
    training = estimate.scenario.training
    if estimate.scenario.task != "training":
        return (Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so there is no optimizer.")),)
    trainable = estimate.parameters.trainable
    said = [Said(_KEPT.get(training.optimizer, _KEPT_ELSE), counts={"trainable": trainable})]
    if training.precision.endswith("_master") or training.optimizer in BY_LAYER:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "Steps are often too small for a 16-bit number to change at all, so an exact "
                    "fp32 copy of the "
                    "weights is kept here and updated.",
                )
            )
        )
    if size:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "That is {each} bytes for each, from the first step to the end; the text's "
                    "length is no matter.",
                ),
                words={"each": _per_parameter(size, trainable)},
            )
        )
    return tuple(said)


def _activations(estimate: Estimate) -> tuple[Said, ...]:
    scenario = estimate.scenario
    if scenario.task != "training":
        return (
            Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so no layer has to keep what it computed.")),
        )
    training = scenario.training
    tokens = training.micro_batch_size * training.sequence_length
    size = estimate.component("activations").bytes
    said = []
    if training.activation_checkpointing == "full":
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "To learn, each layer needs on the way back what it computed on the way "
                    "forward. With checkpointing "
                    "only the input of each of the {layers} layers is kept, and the layer is "
                    "computed again: about a "
                    "third more time for much less memory.",
                ),
                counts={"layers": scenario.model.num_hidden_layers},
            )
        )
    else:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "To learn, each of the {layers} layers needs on the way back what it computed "
                    "on the way forward, so "
                    "all of it is kept until then.",
                ),
                counts={"layers": scenario.model.num_hidden_layers},
            )
        )
    if size * FEW < estimate.peak_bytes:  # else it is known without a look at every moment
        fullest = max(estimate.timeline, key=lambda moment: moment.components["activations"])
        most = fullest.components["activations"]
        if most > 2 * size:
            size = most
            said.append(
                Said(
                    QT_TRANSLATE_NOOP(
                        "why",
                        "By the moment of the peak the way back has used most of it up; at most, "
                        "{most} are kept ({moment}).",
                    ),
                    sizes={"most": most},
                    messages={"moment": fullest.label},
                )
            )
    said.append(
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "{each} for each of {tokens} tokens ({batch} × {sequence}): twice the tokens, "
                "twice the memory.",
            ),
            sizes={"each": size // max(tokens, 1)},
            counts={
                "tokens": tokens,
                "batch": training.micro_batch_size,
                "sequence": training.sequence_length,
            },
        )
    )
    if training.attention == "eager":
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "Eager attention also keeps a score for every pair of tokens in every head: "
                    "that part grows with the "
                    "square of the length.",
                )
            )
        )
    return tuple(said)


def _loss(estimate: Estimate) -> tuple[Said, ...]:
    scenario = estimate.scenario
    if scenario.task != "training":
        return (Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so there is no loss.")),)
    tokens = scenario.training.micro_batch_size * scenario.training.sequence_length
    vocabulary = scenario.model.vocab_size
    return (
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "For each of {tokens} tokens the head gives a score to every one of the "
                "{vocabulary} words it knows: "
                "{scores} numbers.",
            ),
            counts={"tokens": tokens, "vocabulary": vocabulary, "scores": tokens * vocabulary},
        ),
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "The loss holds them several times over: the scores, their logarithms, the "
                "gradients of both. Short in "
                "time, but at the very moment when all activations are kept as well.",
            )
        ),
    )


def _temporary(estimate: Estimate) -> tuple[Said, ...]:
    said = [
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "What the computation needs for a moment: copies, results on their way, work "
                "space. The next operator "
                "uses the same memory again.",
            )
        )
    ]
    operator = estimate.peak_moment.operator
    if operator:
        said.append(
            Said(
                QT_TRANSLATE_NOOP("why", "At the peak this is the operator {operator}."),
                words={"operator": operator},
            )
        )
    return tuple(said)


def _overhead(estimate: Estimate) -> tuple[Said, ...]:
    return (
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "Not the model's: what CUDA takes for itself, work space of its libraries, memory "
                "that is rounded up or "
                "left unused between blocks.",
            )
        ),
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "Drivers and chance decide over it, so it is a range: the whole need lies between "
                "{low} and {high}. "
                "That is the hatched part of the bar.",
            ),
            sizes={"low": estimate.low_bytes, "high": estimate.high_bytes},
        ),
    )


_CONCEPTS: dict[str, Callable[[Estimate], tuple[Said, ...]]] = {
    "weights": _weights,
    "gradients": _gradients,
    "optimizer_states": _optimizer_states,
    "activations": _activations,
    "loss": _loss,
    "kv_cache": kv_cache,
    "temporary": _temporary,
    "overhead": _overhead,
}


def in_other_words(estimate: Estimate, key: str) -> tuple[tuple[Said, int], ...]:
    """The same bytes for one of what they grow with: labels and sizes, rounded down to whole bytes."""
    scenario = estimate.scenario
    if estimate.method != "detailed" or key not in ("activations", "loss", "kv_cache"):
        return ()
    size = estimate.component(key).bytes
    if not size:
        return ()
    if key == "kv_cache":
        inference = scenario.inference
        count, length = inference.batch_size, cached_tokens(estimate)
    elif scenario.task == "training":
        count, length = scenario.training.micro_batch_size, scenario.training.sequence_length
    else:
        return ()
    told = [
        (Said(QT_TRANSLATE_NOOP("why", "One token")), size // max(1, count * length)),
        (Said(QT_TRANSLATE_NOOP("why", "One sequence")), size // max(1, count)),
    ]
    if count > 1:
        told.append((Said(QT_TRANSLATE_NOOP("why", "All {count} sequences"), counts={"count": count}), size))
    return tuple(told)
