"""What activations are and what of them is kept, in plain words with the person's numbers in them."""

from __future__ import annotations

from memgui.estimator.layout import layout_of
from memgui.estimator.result import Estimate
from memgui.planning.lengths import fullest_stage, growth, layers_here, sequence_tokens, target_tokens
from memgui.planning.words import Said
from memgui.spec.messages import QT_TRANSLATE_NOOP

FEW = 20
"""Activations of less than this part of the peak have mostly been used up by then, or are still to come."""


def activations(estimate: Estimate) -> tuple[Said, ...]:
    """The sentences of the activations."""
    scenario = estimate.scenario
    size = estimate.component("activations").bytes
    if scenario.task != "training":
        said = [
            Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so no layer has to keep what it computed."))
        ]
        if size:
            text = QT_TRANSLATE_NOOP(
                "why", "What lies here is what the model is given: tokens, masks, positions."
            )
            said.append(Said(text))
        return tuple(said)
    said = list(_kept(estimate))
    elsewhere = _elsewhere(estimate, size)
    if elsewhere is not None:
        most, sentence = elsewhere
        return (*said, sentence, *_for_each(estimate, most, grows=False))
    return (*said, *_for_each(estimate, size, grows=True))


def _kept(estimate: Estimate) -> list[Said]:
    """What the layers keep."""
    training = estimate.scenario.training
    layers = layers_here(estimate)
    if training.method == "frozen":
        text = QT_TRANSLATE_NOOP(
            "why", "Only the head learns, so the layers keep nothing of what they computed."
        )
        return [Said(text)]
    frozen = min(training.frozen_layers, layers) if training.method == "full" else 0
    said = [
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "To learn, {layers:the|each of the} {layers} {layers:layer|layers} needs on the way back "
                "what it computed on the way forward, as far as gradients depend on it.",
            ),
            counts={"layers": layers - frozen},
        )
    ]
    if frozen:
        text = QT_TRANSLATE_NOOP(
            "why", "The first {count} {count:layer is frozen and keeps|layers are frozen and keep} nothing."
        )
        said.append(Said(text, counts={"count": frozen}))
    how = training.activation_checkpointing
    every, first = training.checkpoint_every, training.checkpoint_layers
    if training.implementation != "megatron":
        first = None
    if how == "none":
        said.append(Said(QT_TRANSLATE_NOOP("why", "So all of that is kept until then.")))
        return said
    if how == "selective":
        text = QT_TRANSLATE_NOOP(
            "why",
            "Of the modules chosen for checkpointing only the inputs are kept, and what they make inside is "
            "computed again; the rest is kept until then.",
        )
        return [*said, Said(text)]
    if how == "selective_op":
        text = QT_TRANSLATE_NOOP(
            "why",
            "With checkpointing by operator a layer keeps its input and the results that are dear to "
            "compute; all else is computed again.",
        )
    else:
        text = QT_TRANSLATE_NOOP(
            "why",
            "With checkpointing only a layer's input is kept, and the layer is computed again: about a third "
            "more time for much less memory.",
        )
    said.append(Said(text))
    if first is not None and every == 1:
        text = QT_TRANSLATE_NOOP(
            "why", "That goes for the first {count} {count:layer|layers} of each device; others keep all."
        )
        said.append(Said(text, counts={"count": first}))
    elif every > 1:
        text = QT_TRANSLATE_NOOP("why", "That goes for one layer of every {count}; the others keep all.")
        said.append(Said(text, counts={"count": every}))
    if training.checkpoint_offload:
        said.append(Said(QT_TRANSLATE_NOOP("why", "The inputs wait in the computer's memory meanwhile.")))
    return said


def _elsewhere(estimate: Estimate, size: int) -> tuple[int, Said] | None:
    """The most there ever is, and a sentence that says so, where the peak has hardly any of it."""
    if size * FEW >= estimate.peak_bytes:  # so that it is known without a look at every moment
        return None
    fullest = max(estimate.timeline, key=lambda moment: moment.components["activations"])
    most = fullest.components["activations"]
    if most <= 2 * size:
        return None
    text = QT_TRANSLATE_NOOP(
        "why",
        "By the moment of the peak the way back has used most of it up; at most, {most} are kept ({moment}).",
    )
    if estimate.peak_moment.phase not in ("backward", "optimizer"):
        text = QT_TRANSLATE_NOOP(
            "why", "At the moment of the peak little of it is there; at most, {most} are kept ({moment})."
        )
    return most, Said(text, sizes={"most": most}, messages={"moment": fullest.label})


def _for_each(estimate: Estimate, size: int, *, grows: bool) -> list[Said]:
    """What that is for each token (image, source and target, …), and how it grows with the length."""
    scenario = estimate.scenario
    training, layout = scenario.training, layout_of(scenario)
    waiting = fullest_stage(estimate).waiting
    said: list[Said] = []
    count = training.micro_batch_size
    if waiting and layout.chunks == 1:
        text = QT_TRANSLATE_NOOP(
            "why",
            "Up to {count} {count:micro batch is|micro batches are} under way in this pipeline stage, each "
            "with its own.",
        )
        said.append(Said(text, counts={"count": waiting + 1}))
        count *= waiting + 1
    elif waiting:
        text = QT_TRANSLATE_NOOP(
            "why", "Several micro batches are under way in this pipeline stage, each with its own."
        )
        return [Said(text)]
    if layout.context > 1:
        text = QT_TRANSLATE_NOOP("why", "Each sequence is cut into parts for {count} devices.")
        said.append(Said(text, counts={"count": layout.context}))
    length = sequence_tokens(scenario)
    sizes = {"each": size // count}
    if scenario.model.image_size:
        return [*said, Said(QT_TRANSLATE_NOOP("why", "{each} for each image."), sizes=sizes)]
    counts = {"source": length, "target": target_tokens(scenario)}
    if scenario.model.num_mel_bins:
        text = QT_TRANSLATE_NOOP(
            "why", "{each} for each recording and the {target} {target:token|tokens} of its text."
        )
        return [*said, Said(text, sizes=sizes, counts=counts)]
    if scenario.model.num_encoder_layers:
        text = QT_TRANSLATE_NOOP(
            "why", "{each} for each sequence of {source} {source:token|tokens} to read and {target} to write."
        )
        said.append(Said(text, sizes=sizes, counts=counts))
        return [*said, *_longer(estimate)] if grows else said
    counts = {"tokens": count * length, "batch": count, "sequence": length}
    text = QT_TRANSLATE_NOOP(
        "why", "{each} for {tokens:the|each of} {tokens} {tokens:token|tokens} ({batch} × {sequence})."
    )
    said.append(Said(text, sizes={"each": size // max(count * length, 1)}, counts=counts))
    return [*said, *_longer(estimate)] if grows else said


def _longer(estimate: Estimate) -> list[Said]:
    """What twice the length takes, by the formulas of what is there at the peak."""
    found = growth(estimate, "activations")
    if found.linear:
        return [Said(QT_TRANSLATE_NOOP("why", "Sequences twice as long take twice the memory."))]
    if found.pairs * 50 > found.now:
        text = QT_TRANSLATE_NOOP(
            "why",
            "{pairs} of it are numbers for every pair of tokens and grow with the square of the length: "
            "sequences twice as long take {twice}.",
        )
        return [Said(text, sizes={"pairs": found.pairs, "twice": found.twice})]
    return [
        Said(QT_TRANSLATE_NOOP("why", "Sequences twice as long take {twice}."), sizes={"twice": found.twice})
    ]
