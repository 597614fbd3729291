"""What each component is and why it is there, in plain words with the person's numbers in them.

For someone who has never heard of it; how large it is, and what would change it.
"""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.layout import layout_of
from memgui.estimator.optimizers import OPTIMIZERS
from memgui.estimator.result import COMPONENTS, Estimate
from memgui.planning.activations_concept import activations
from memgui.planning.cache_concept import each_token, kv_cache
from memgui.planning.learning_concept import gradients, is_even, optimizer_states, per_parameter
from memgui.planning.lengths import fullest_stage, sequence_tokens
from memgui.planning.loss_concept import loss
from memgui.planning.words import Said
from memgui.spec.fields.optimizers import BY_LAYER
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


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


def _is_part(scenario: Scenario) -> bool:
    """Whether a device holds some of the weights only."""
    if scenario.device.count == 1:
        return False
    split = scenario.parallelism
    experts = split.expert > 1 and scenario.model.num_experts > 0
    shares = scenario.task == "training" and layout_of(scenario).shares_weights
    return split.tensor > 1 or split.pipeline > 1 or experts or shares


def _weights(estimate: Estimate) -> tuple[Said, ...]:
    scenario, parameters = estimate.scenario, estimate.parameters
    said = [_the_model(estimate)]
    by_layer = scenario.task == "training" and scenario.training.optimizer in BY_LAYER
    if scenario.task == "training" and parameters.trainable < parameters.total:
        text = QT_TRANSLATE_NOOP(
            "why", "Only {trainable} of them learn; the rest is frozen, but has to be there all the same."
        )
        if by_layer:
            text = QT_TRANSLATE_NOOP(
                "why",
                "Only {trainable} of them learn at a time, a layer's; the rest is frozen meanwhile, but "
                "has to be there all the same.",
            )
        said.append(Said(text, counts={"trainable": parameters.trainable}))
    elif parameters.active < parameters.total and scenario.model.num_experts:
        text = QT_TRANSLATE_NOOP(
            "why",
            "A token passes through {active} of them only, but the next token may need other experts, so "
            "none can be left out.",
        )
        said.append(Said(text, counts={"active": parameters.active}))
    else:
        text = QT_TRANSLATE_NOOP(
            "why", "A format of fewer bytes makes them smaller; the text's length does not."
        )
        said.append(Said(text))
    return tuple(said)


def _the_model(estimate: Estimate) -> Said:
    """How many numbers, and how many bytes each, or that only a part of them lies here."""
    scenario = estimate.scenario
    size, total = estimate.component("weights").bytes, estimate.parameters.total
    counts = {"parameters": total}
    if scenario.task == "training" and layout_of(scenario).weights_on_host:
        text = QT_TRANSLATE_NOOP(
            "why",
            "The model, {parameters} numbers, its parameters, lies in the computers' memory in parts; here "
            "they are only while a layer computes with them.",
        )
        return Said(text, counts=counts)
    if _is_part(scenario):
        text = QT_TRANSLATE_NOOP(
            "why",
            "One device's part of the model: of its {parameters} numbers, its parameters, those that lie "
            "here. They are loaded once and stay.",
        )
        return Said(text, counts=counts)
    host = estimate.extra.get("host_bytes", 0) if scenario.task == "inference" else 0
    if host:
        text = QT_TRANSLATE_NOOP(
            "why",
            "The model itself: {parameters} numbers, its parameters. They are loaded once and stay: {size} "
            "here, {host} in the computer's memory.",
        )
        return Said(text, sizes={"size": size, "host": host}, counts=counts)
    text = QT_TRANSLATE_NOOP(
        "why",
        "The model itself: {parameters} numbers, its parameters, {each} {each:byte|bytes} for each on "
        "average. They are loaded once and stay.",
    )
    if is_even(size, total):
        text = QT_TRANSLATE_NOOP(
            "why",
            "The model itself: {parameters} numbers, its parameters, {each} {each:byte|bytes} for each. They "
            "are loaded once and stay.",
        )
    return Said(text, counts=counts, words={"each": per_parameter(size, total)})


def _temporary(estimate: Estimate) -> tuple[Said, ...]:
    scenario = estimate.scenario
    size = estimate.component("temporary").bytes
    text = QT_TRANSLATE_NOOP(
        "why",
        "What the computation needs for a moment: copies, results on their way, work space. Most of it the "
        "next operator uses again.",
    )
    if scenario.task == "inference" and scenario.inference.engine in _LAID_OUT:
        text = QT_TRANSLATE_NOOP(
            "why",
            "What the computation needs for results on their way and as work space. The engine sets it aside "
            "once, and one operator after another uses it.",
        )
    said = [Said(text)]
    if scenario.task == "training":
        said += _exchanged(scenario)
    operator = estimate.peak_moment.operator
    if not size and "outside_budget_bytes" in estimate.extra:
        text = QT_TRANSLATE_NOOP("why", "It lies in what the engine leaves free and is not counted here.")
        said.append(Said(text))
    elif not size:
        said.append(Said(QT_TRANSLATE_NOOP("why", "At the moment of the peak there is none.")))
    elif operator:
        text = QT_TRANSLATE_NOOP("why", "At the peak the operator {operator} runs.")
        said.append(Said(text, words={"operator": operator}))
    return tuple(said)


_LAID_OUT = ("vllm", "sglang", "llama.cpp", "ollama")
"""Engines that know their work space before they serve."""


def _exchanged(scenario: Scenario) -> list[Said]:
    """What devices that share out a training step gather and exchange."""
    layout = layout_of(scenario)
    said: list[Said] = []
    if layout.shares_weights:
        text = QT_TRANSLATE_NOOP(
            "why", "Weights that devices share out are whole here while they are needed."
        )
        said.append(Said(text))
    if layout.shares_gradients:
        text = QT_TRANSLATE_NOOP("why", "Buffers through which gradients are exchanged count here too.")
        said.append(Said(text))
    return said


def _overhead(estimate: Estimate) -> tuple[Said, ...]:
    scenario = estimate.scenario
    outside = estimate.extra.get("outside_budget_bytes")
    said: list[Said] = []
    if outside is not None:
        text = QT_TRANSLATE_NOOP(
            "why",
            "The engine leaves {outside} of the GPU to all that is not in its share: what CUDA takes for "
            "itself, recorded graphs, work space. That is not counted here.",
        )
        said.append(Said(text, sizes={"outside": outside}))
    else:
        text = QT_TRANSLATE_NOOP(
            "why",
            "Not the model's: what CUDA takes for itself, work space of its libraries, memory that is "
            "rounded up or left unused between blocks.",
        )
        said.append(Said(text))
    if estimate.low_bytes == estimate.high_bytes:
        return tuple(said)
    text = QT_TRANSLATE_NOOP(
        "why",
        "Drivers and chance decide over it, so it is a range: the whole need lies between {low} and {high}. "
        "That is the hatched part of the bar.",
    )
    if outside is not None:
        text = QT_TRANSLATE_NOOP(
            "why",
            "Libraries take their own inside the share, how much is a range: the whole need lies between "
            "{low} and {high}. That is the hatched part of the bar.",
        )
    said.append(Said(text, sizes={"low": estimate.low_bytes, "high": estimate.high_bytes}))
    if scenario.task == "training" and OPTIMIZERS[scenario.training.optimizer].wide_elsewhere:
        text = QT_TRANSLATE_NOOP(
            "why", "The range has room for implementations of the optimizer that keep its states in fp32."
        )
        said.append(Said(text))
    return tuple(said)


_CONCEPTS: dict[str, Callable[[Estimate], tuple[Said, ...]]] = {
    "weights": _weights,
    "gradients": gradients,
    "optimizer_states": optimizer_states,
    "activations": activations,
    "loss": loss,
    "kv_cache": kv_cache,
    "temporary": _temporary,
    "overhead": _overhead,
}


def in_other_words(estimate: Estimate, key: str) -> tuple[tuple[Said, int], ...]:
    """The same bytes for one of what they grow with: labels and sizes, rounded down to whole bytes.

    Nothing is told of tokens where not each takes the same, nor of sequences that are split over devices.
    """
    if estimate.method != "detailed" or key not in ("activations", "loss", "kv_cache"):
        return ()
    size = estimate.component(key).bytes
    each, count = _shares(estimate, key)
    told: list[tuple[Said, int]] = []
    if each:
        told.append((Said(QT_TRANSLATE_NOOP("why", "One token")), each))
    if size >= count > 0:
        told.append((Said(QT_TRANSLATE_NOOP("why", "One sequence")), size // count))
    if told and count > 1:
        told.append((Said(QT_TRANSLATE_NOOP("why", "All {count} sequences"), counts={"count": count}), size))
    return tuple(told)


def _shares(estimate: Estimate, key: str) -> tuple[int, int]:
    """Bytes of a token and how many sequences there are; 0 where there is no telling."""
    scenario = estimate.scenario
    if key == "kv_cache":
        return each_token(estimate) or 0, scenario.inference.batch_size if scenario.task == "inference" else 0
    if scenario.task != "training" or fullest_stage(estimate).waiting:
        return 0, 0
    batch, model = scenario.training.micro_batch_size, scenario.model
    whole = batch if layout_of(scenario).context == 1 else 0
    if model.num_encoder_layers or model.image_size or model.head in ("image", "sequence", "base"):
        rows = batch * sequence_tokens(scenario) if key == "activations" else 0
        alike = not (model.num_encoder_layers or model.image_size)
        return (estimate.component(key).bytes // rows if rows and alike else 0), whole
    return estimate.component(key).bytes // (batch * sequence_tokens(scenario)), whole
