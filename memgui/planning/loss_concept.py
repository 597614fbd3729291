"""What the loss holds, in plain words with the person's numbers in them."""

from __future__ import annotations

from memgui.estimator.layout import layout_of
from memgui.estimator.options import loss_of
from memgui.estimator.result import Estimate
from memgui.estimator.symbols import TRAINING
from memgui.planning.learning_concept import is_even, per_parameter
from memgui.planning.lengths import fullest_stage, sequence_tokens, target_tokens
from memgui.planning.words import Said
from memgui.spec.messages import QT_TRANSLATE_NOOP

PAIR = 2
"""Classes where the model does not say how many."""

_AT_ONCE = {"fused": "bt", "unsloth": "bu"}
"""Letters of the tokens whose scores are there at once, by the code that fuses head and loss."""


def loss(estimate: Estimate) -> tuple[Said, ...]:
    """The sentences of the loss."""
    scenario = estimate.scenario
    size = estimate.component("loss").bytes
    if scenario.task != "training":
        said = [Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so there is no loss."))]
        if size:
            text = QT_TRANSLATE_NOOP("why", "What lies here are the scores that the head gives.")
            said.append(Said(text))
        return tuple(said)
    if scenario.model.head == "base":
        text = QT_TRANSLATE_NOOP(
            "why",
            "This model ends without a head: its loss is taken of the last layer's output and holds little.",
        )
        return (Said(text),)
    if not fullest_stage(estimate).stage.last:
        text = QT_TRANSLATE_NOOP(
            "why", "The head and the loss are in the last pipeline stage, on another device."
        )
        return (Said(text),)
    if scenario.model.head in ("sequence", "image"):
        return _of_classes(estimate)
    return _of_words(estimate)


def head_rows(estimate: Estimate) -> int:
    """How many tokens the head gives scores to on this device; sequences or images where it sorts those."""
    scenario = estimate.scenario
    model, batch = scenario.model, scenario.training.micro_batch_size
    if model.num_encoder_layers:
        return batch * target_tokens(scenario)
    if model.head == "image" or (model.head == "sequence" and not model.is_decoder):
        return batch
    return batch * sequence_tokens(scenario)


def _of_classes(estimate: Estimate) -> tuple[Said, ...]:
    """A classifier's: few numbers."""
    model = estimate.scenario.model
    classes = model.vocab_size if model.head == "image" else model.num_labels or PAIR
    rows = head_rows(estimate)
    text = QT_TRANSLATE_NOOP(
        "why",
        "The head gives each sequence a score for {classes:the|every one of} {classes} "
        "{classes:class|classes}: {scores} numbers in all.",
    )
    if model.head == "image":
        text = QT_TRANSLATE_NOOP(
            "why",
            "The head gives each image a score for {classes:the|every one of} {classes} "
            "{classes:class|classes}: {scores} numbers in all.",
        )
    elif model.is_decoder:
        text = QT_TRANSLATE_NOOP(
            "why",
            "The head gives each token a score for {classes:the|every one of} {classes} "
            "{classes:class|classes}, {scores} numbers in all; those of each sequence's last token count.",
        )
    counts = {"classes": classes, "scores": rows * classes}
    more = QT_TRANSLATE_NOOP("why", "A loss over so few takes hardly any memory.")
    return (Said(text, counts=counts), Said(more))


def _of_words(estimate: Estimate) -> tuple[Said, ...]:
    """A language model's: a score for every word."""
    scenario = estimate.scenario
    rows, vocabulary = head_rows(estimate), scenario.model.vocab_size
    text = QT_TRANSLATE_NOOP(
        "why",
        "For {tokens:the|each of} {tokens} {tokens:token|tokens} the head gives a score to every one of the "
        "{vocabulary} words it knows: {scores} numbers.",
    )
    counts = {"tokens": rows, "vocabulary": vocabulary, "scores": rows * vocabulary}
    said = [Said(text, counts=counts), *_made(estimate, rows)]
    split = layout_of(scenario).tensor > 1
    if split and any("Vt" in part.derivation.symbols for part in estimate.component("loss").children):
        text = QT_TRANSLATE_NOOP("why", "Devices that split the layers split the words among them too.")
        said.append(Said(text))
    return (*said, *_at_the_peak(estimate, rows * vocabulary))


def _made(estimate: Estimate, rows: int) -> list[Said]:
    """How the scores become a loss."""
    scenario = estimate.scenario
    match loss_of(scenario.training):
        case "fused_linear":
            letter = _AT_ONCE.get(scenario.training.implementation, "")
            at_once = TRAINING[letter][2](scenario) if letter else rows
            if at_once < rows:
                text = QT_TRANSLATE_NOOP(
                    "why",
                    "Head and loss work together, on {tokens} of the tokens at a time, so that they are "
                    "never all there.",
                )
                return [Said(text, counts={"tokens": at_once})]
            return [Said(QT_TRANSLATE_NOOP("why", "Head and loss work together, on all of them at once."))]
        case "chunked":
            text = QT_TRANSLATE_NOOP(
                "why",
                "The loss goes through them in chunks of tokens, so that its own steps hold less at once.",
            )
        case "compiled":
            text = QT_TRANSLATE_NOOP(
                "why", "Their logarithms and gradients are made by a compiled loss, which spares copies."
            )
        case _:
            text = QT_TRANSLATE_NOOP("why", "From them come their logarithms, and the gradients of both.")
    return [Said(text)]


def _at_the_peak(estimate: Estimate, scores: int) -> list[Said]:
    """What of it is held at the peak."""
    size, moment = estimate.component("loss").bytes, estimate.peak_moment
    if 2 * size < scores:
        if not size:
            return [Said(QT_TRANSLATE_NOOP("why", "At the moment of the peak nothing of it is there."))]
        text = QT_TRANSLATE_NOOP("why", "At the moment of the peak {size} of it are there.")
        return [Said(text, sizes={"size": size})]
    text = QT_TRANSLATE_NOOP(
        "why",
        "At the moment of the peak the loss holds {each} {each:byte|bytes} for each of them on average.",
    )
    if is_even(size, scores):
        text = QT_TRANSLATE_NOOP(
            "why", "At the moment of the peak the loss holds {each} {each:byte|bytes} for each of them."
        )
    said = [Said(text, words={"each": per_parameter(size, scores)})]
    if moment.phase == "loss" and estimate.scenario.training.method != "frozen":
        text = QT_TRANSLATE_NOOP("why", "Short in time, but just when the layers keep most for the way back.")
        said.append(Said(text))
    return said
