"""What gradients and optimizer states are, in plain words with the person's numbers in them."""

from __future__ import annotations

from memgui.estimator.keeping import Keeping, keeping_of
from memgui.estimator.layout import Layout, layout_of
from memgui.estimator.optimizers import OPTIMIZERS
from memgui.estimator.result import Estimate
from memgui.planning.words import Said
from memgui.spec.fields import BY_PATH
from memgui.spec.fields.optimizers import EMBEDDING_APART
from memgui.spec.messages import QT_TRANSLATE_NOOP, Count, counted

RUNNING = ("forward", "loss", "backward")
"""Phases in which a micro batch runs."""


def per_parameter(size: int, parameters: int) -> Count:
    """Bytes of each parameter, at most two decimals."""
    if parameters <= 0:
        return counted(0)
    hundredths = (200 * size + parameters) // (2 * parameters)
    shown = f"{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")
    return Count(shown, is_one=hundredths == 100)


def is_even(size: int, parameters: int) -> bool:
    """Whether each parameter has the same whole number of half bytes, but for a thousandth."""
    halves = (4 * size + parameters) // (2 * max(parameters, 1))
    return abs(2 * size - halves * parameters) * 1000 <= 2 * size


def gradients(estimate: Estimate) -> tuple[Said, ...]:
    """The sentences of the gradients."""
    size = estimate.component("gradients").bytes
    scenario = estimate.scenario
    if scenario.task != "training":
        return (Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so there are no gradients.")),)
    layout = layout_of(scenario)
    keeping = keeping_of(scenario, layout)
    stays = keeping.gradients_lie or not scenario.training.zero_grad_set_to_none
    elsewhere = layout.weights_on_host or keeping.gradients_on_host
    said = [
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "The backward pass works out for each of the {trainable} trained parameters which way to "
                "change it: one number, the gradient.",
            ),
            counts={"trainable": estimate.parameters.trainable},
        )
    ]
    if keeping.consumes:
        text = QT_TRANSLATE_NOOP(
            "why", "The optimizer uses each of them as soon as it is there, so they never lie side by side."
        )
    elif elsewhere:
        text = QT_TRANSLATE_NOOP("why", "They go to the computer's memory as they are made.")
    elif stays:
        text = QT_TRANSLATE_NOOP("why", "Their place stays taken from step to step.")
    else:
        text = QT_TRANSLATE_NOOP("why", "It is kept until the optimizer has used it.")
    said.append(Said(text))
    said += _spread_gradients(layout)
    steps = scenario.training.gradient_accumulation_steps
    phase = estimate.peak_moment.phase
    if keeping.consumes or elsewhere:
        return tuple(said)
    if size and steps > 1 and not stays:
        text = QT_TRANSLATE_NOOP(
            "why",
            "{steps} micro batches add to the same gradients, so from the second on they are there during "
            "the forward pass too.",
        )
        said.append(Said(text, counts={"steps": steps}))
    elif size and phase == "backward" and not stays:
        text = QT_TRANSLATE_NOOP(
            "why", "At the moment of the peak {size} are there: each layer makes its own on the way back."
        )
        said.append(Said(text, sizes={"size": size}))
    elif not size and phase in RUNNING:
        text = QT_TRANSLATE_NOOP(
            "why",
            "At the moment of the peak they do not exist yet: each layer makes its own on the way back.",
        )
        said.append(Said(text))
    return tuple(said)


def _spread_gradients(layout: Layout) -> list[Said]:
    """What devices do to each other's gradients."""
    said: list[Said] = []
    if layout.tensor > 1 or layout.pipeline > 1 or layout.expert > 1:
        text = QT_TRANSLATE_NOOP("why", "Only those of the parameters that lie on this device are here.")
        said.append(Said(text))
    if layout.shares_gradients:
        text = QT_TRANSLATE_NOOP("why", "{count} devices share them out, and each keeps its part.")
        if layout.whole_gradients:
            text = QT_TRANSLATE_NOOP(
                "why",
                "{count} devices share them out after a step's last micro batch; until then each keeps all.",
            )
        said.append(Said(text, counts={"count": layout.replicas}))
    elif layout.buckets and not layout.views:
        text = QT_TRANSLATE_NOOP(
            "why",
            "The buckets in which devices exchange them are as large as all of them together and always "
            "there.",
        )
        said.append(Said(text))
    return said


_MOMENTS = QT_TRANSLATE_NOOP(
    "why",
    "{optimizer} sizes each step by what happened before. It remembers two numbers for each of the "
    "{trainable} trained parameters: a running mean of its gradients, and of their squares.",
)
_DIRECTION = QT_TRANSLATE_NOOP(
    "why",
    "{optimizer} remembers one number for each of the {trainable} trained parameters: which way it has been "
    "moving.",
)
_NOTHING = QT_TRANSLATE_NOOP(
    "why",
    "{optimizer} remembers nothing: it moves each of the {trainable} trained parameters by its gradient "
    "alone.",
)
_FACTORS = QT_TRANSLATE_NOOP(
    "why",
    "{optimizer} remembers, in place of a number for each of the {trainable} trained parameters, one for "
    "each row and each column of a matrix.",
)
_PROJECTED = QT_TRANSLATE_NOOP(
    "why",
    "{optimizer} squeezes the gradients of the layers' matrices to a small rank and remembers two numbers "
    "for each that is left, as for the others of the {trainable} trained parameters.",
)
_PRECONDITIONED = QT_TRANSLATE_NOOP(
    "why",
    "{optimizer} remembers two numbers for each of the {trainable} trained parameters, and beside them "
    "square matrices that say how a matrix's rows and columns go together.",
)
KEPT = {
    **dict.fromkeys(
        ("adamw", "adamw_8bit", "paged_adamw", "paged_adamw_8bit", "adamw_8bit_torchao"), _MOMENTS
    ),
    **dict.fromkeys(("adamw_4bit", "adamw_fp8", "lamb", "badam"), _MOMENTS),
    **dict.fromkeys(("sgd_momentum", "lion", "lion_8bit"), _DIRECTION),
    **dict.fromkeys(("sgd", "lomo"), _NOTHING),
    **dict.fromkeys(("adafactor", "adalomo"), _FACTORS),
    **dict.fromkeys(("galore", "galore_8bit", "apollo", "apollo_mini"), _PROJECTED),
    **dict.fromkeys(("shampoo", "soap"), _PRECONDITIONED),
    **dict.fromkeys(
        ("ademamix", "ademamix_8bit"),
        QT_TRANSLATE_NOOP(
            "why",
            "{optimizer} remembers three numbers for each of the {trainable} trained parameters: a fast "
            "and a slow mean of its gradients, and a mean of their squares.",
        ),
    ),
    "sophia": QT_TRANSLATE_NOOP(
        "why",
        "{optimizer} remembers two numbers for each of the {trainable} trained parameters: which way it has "
        "been moving, and how curved the loss is there.",
    ),
    "schedule_free": QT_TRANSLATE_NOOP(
        "why",
        "{optimizer} remembers two numbers for each of the {trainable} trained parameters: where its steps "
        "led, beside the mean of that, and a mean of its gradients' squares.",
    ),
    "prodigy": QT_TRANSLATE_NOOP(
        "why",
        "{optimizer} remembers four numbers for each of the {trainable} trained parameters: AdamW's two, "
        "where it began, and a sum from which the step's size is found.",
    ),
    "adam_mini": QT_TRANSLATE_NOOP(
        "why",
        "{optimizer} remembers a running mean of the gradients of each of the {trainable} trained "
        "parameters; of their squares, inside the layers, one mean for a whole row of a matrix.",
    ),
    "muon": QT_TRANSLATE_NOOP(
        "why",
        "{optimizer} remembers one number for each of the {trainable} trained parameters where they are "
        "matrices of the layers, and AdamW's two for all others.",
    ),
}
"""What an optimizer remembers, by its name in ``training.optimizer``."""


def optimizer_states(estimate: Estimate) -> tuple[Said, ...]:
    """The sentences of the optimizer states."""
    scenario = estimate.scenario
    training = scenario.training
    if scenario.task != "training":
        return (Said(QT_TRANSLATE_NOOP("why", "Nothing learns here, so there is no optimizer.")),)
    layout = layout_of(scenario)
    keeping = keeping_of(scenario, layout)
    choice = BY_PATH["training.optimizer"].choice(training.optimizer)
    label = choice.label if choice is not None else training.optimizer
    said = [
        Said(
            KEPT[training.optimizer],
            counts={"trainable": estimate.parameters.trainable},
            words={"optimizer": ("fields", label)},
        )
    ]
    if training.optimizer.endswith(("8bit", "4bit", "fp8", "torchao")):
        text = QT_TRANSLATE_NOOP(
            "why",
            "They are kept in {bits} bits each, with a scale for every block of them; those of small "
            "weights in more.",
        )
        said.append(Said(text, counts={"bits": 4 if "4bit" in training.optimizer else 8}))
        if training.optimizer in EMBEDDING_APART and training.wide_embedding_states:
            said.append(Said(QT_TRANSLATE_NOOP("why", "Those of embeddings are kept in 32 bits.")))
    said += _copies(keeping)
    said += _where(estimate, layout, keeping)
    return tuple(said)


def _copies(keeping: Keeping) -> list[Said]:
    """Copies of the weights beside the states; the shards of FSDP are such copies themselves."""
    if not keeping.master or keeping.layout.fsdp:
        return []
    text = QT_TRANSLATE_NOOP("why", "A bf16 copy of the trained weights is kept here too and updated.")
    if keeping.master == 4:
        text = QT_TRANSLATE_NOOP(
            "why",
            "Steps are often too small for a 16-bit number to change at all, so an exact fp32 copy of the "
            "trained weights is kept here and updated.",
        )
    return [Said(text)]


def _where(estimate: Estimate, layout: Layout, keeping: Keeping) -> list[Said]:
    """How much of it lies here, and where the rest is."""
    size = estimate.component("optimizer_states").bytes
    trainable = estimate.parameters.trainable
    name = estimate.scenario.training.optimizer
    said: list[Said] = []
    if KEPT[name] == _NOTHING and not keeping.master:
        return []
    if OPTIMIZERS[name].paged:
        text = QT_TRANSLATE_NOOP(
            "why",
            "Those of large weights lie in managed memory, which leaves the GPU under pressure; they are not "
            "counted here.",
        )
        said.append(Said(text))
    if layout.tensor > 1 or layout.pipeline > 1 or layout.expert > 1:
        text = QT_TRANSLATE_NOOP("why", "Only what belongs to the parameters on this device is here.")
        said.append(Said(text))
    if layout.shares_states:
        text = QT_TRANSLATE_NOOP("why", "{count} devices share it out, and each keeps its part.")
        said.append(Said(text, counts={"count": layout.replicas}))
    if keeping.offloaded == 1000:
        text = QT_TRANSLATE_NOOP("why", "All of it lies in the computer's memory, not on the GPU.")
        return [*said, Said(text)]
    if keeping.offloaded:
        text = QT_TRANSLATE_NOOP("why", "{size} of it lie in the computer's memory.")
        said.append(Said(text, sizes={"size": estimate.extra.get("host_bytes", 0)}))
    if not size:
        text = QT_TRANSLATE_NOOP(
            "why", "At the moment of the peak there is none yet: the first step makes it."
        )
        return [*said, Said(text)]
    lasting = {"size": size}
    if said or 200 * size < trainable:
        text = QT_TRANSLATE_NOOP(
            "why", "{size} lie here, from the first step to the end; the text's length is no matter."
        )
        return [*said, Said(text, sizes=lasting)]
    text = QT_TRANSLATE_NOOP(
        "why",
        "On average that is {each} {each:byte|bytes} for each, from the first step to the end; the text's "
        "length is no matter.",
    )
    if is_even(size, trainable):
        text = QT_TRANSLATE_NOOP(
            "why",
            "That is {each} {each:byte|bytes} for each, from the first step to the end; the text's length is "
            "no matter.",
        )
    return [Said(text, words={"each": per_parameter(size, trainable)})]
