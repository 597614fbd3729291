"""``megatron_paper``: activations of a GPT under Megatron-LM's layouts.

Source: Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models"
(arXiv 2205.05198), table 2 and section 4: 16-bit activations with dropout masks, on the first
pipeline stage.  Beside them stand Megatron's 18 bytes per parameter (2 weights, 4 gradients,
12 states), here spread evenly over the tensor and pipeline ranks.
"""

from __future__ import annotations

from memgui.estimator.methods.method import Answer, Omission, branch, leaf, letter
from memgui.estimator.result import COMPONENTS, Derivation, Node, Symbol
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

SOURCE = QT_TRANSLATE_NOOP("sources", "Korthikanti et al. 2022, arXiv 2205.05198, table 2 and section 4")
STATIC = QT_TRANSLATE_NOOP("sources", "Megatron-LM: 18 bytes per parameter (2 + 4 + 12)")


def megatron_paper(scenario: Scenario, counted: int) -> Answer:
    """The paper's activations, and 18 bytes for each of ``counted`` parameters beside them."""
    letters = _letters(scenario, counted)
    spread = scenario.parallelism.sequence or letters["t"].value == 1
    layers = _layers(letters, *_per_layer(scenario.training.activation_checkpointing, spread, letters))
    nodes = {key: _static(key, size, letters) for key, size in _BYTES_PER_PARAMETER.items()}
    around = _around_the_layers(letters) if spread else ()
    nodes["activations"] = Node("activations", COMPONENTS["activations"], 0, (layers, *around))
    if spread and letters["p"].value == 1:
        nodes["loss"] = Node("loss", COMPONENTS["loss"], 0, (_logits(letters),))
    return Answer(
        SOURCE,
        nodes,
        _omissions(scenario.training.activation_checkpointing, spread, letters["p"].value),
        _REMARKS,
        {"layer_bytes": layers.children[0].bytes if layers.children else 0},
    )


def _letters(scenario: Scenario, counted: int) -> dict[str, Symbol]:
    return {
        "s": letter(scenario, QT_TRANSLATE_NOOP("estimator", "sequence length"), "training.sequence_length"),
        "b": letter(scenario, QT_TRANSLATE_NOOP("estimator", "micro batch"), "training.micro_batch_size"),
        "h": letter(scenario, QT_TRANSLATE_NOOP("estimator", "hidden size"), "model.hidden_size"),
        "a": letter(scenario, QT_TRANSLATE_NOOP("estimator", "attention heads"), "model.num_attention_heads"),
        "L": letter(scenario, QT_TRANSLATE_NOOP("estimator", "layers"), "model.num_hidden_layers"),
        "v": letter(scenario, QT_TRANSLATE_NOOP("estimator", "vocabulary"), "model.vocab_size"),
        "t": letter(scenario, QT_TRANSLATE_NOOP("estimator", "tensor parallel"), "parallelism.tensor"),
        "p": letter(scenario, QT_TRANSLATE_NOOP("estimator", "pipeline stages"), "parallelism.pipeline"),
        "m": letter(
            scenario, QT_TRANSLATE_NOOP("estimator", "interleaved chunks"), "parallelism.virtual_pipeline"
        ),
        "P": Symbol(
            counted,
            QT_TRANSLATE_NOOP("estimator", "parameters"),
            derivation=Derivation(str(counted), {}, depends=_COUNTED_BY),
        ),
    }


_COUNTED_BY = (
    "model.num_hidden_layers",
    "model.hidden_size",
    "model.intermediate_size",
    "model.vocab_size",
)


def _per_layer(checkpointing: str, spread: bool, letters: dict[str, Symbol]) -> tuple[str, int, str]:
    """Formula, bytes and meaning of one layer's row in the paper's table 2."""
    s, b, h, a, t = (letters[name].value for name in "sbhat")
    row, scores = s * b * h, 5 * a * s * s * b
    if checkpointing == "full":
        text = QT_TRANSLATE_NOOP("estimator", "Full recomputation keeps the layer's input alone, 2·s·b·h.")
        return "2 * s * b * h", 2 * row, text
    selective = checkpointing == "selective"
    if spread and selective:
        text = QT_TRANSLATE_NOOP(
            "estimator", "Selective recomputation drops the attention's 5·a·s²·b: 34·s·b·h/t."
        )
        return "34 * s * b * h // t", 34 * row // t, text
    if spread:
        text = QT_TRANSLATE_NOOP("estimator", "s·b·h/t·(34 + 5·a·s/h), everything split by t.")
        return "(34 * s * b * h + 5 * a * s * s * b) // t", (34 * row + scores) // t, text
    if selective:
        text = QT_TRANSLATE_NOOP(
            "estimator", "Selective recomputation drops the attention's 5·a·s²·b/t: s·b·h·(10 + 24/t)."
        )
        return "10 * s * b * h + 24 * s * b * h // t", 10 * row + 24 * row // t, text
    text = QT_TRANSLATE_NOOP(
        "estimator", "s·b·h·(10 + 24/t + 5·a·s/(h·t)): norms and dropouts are not split."
    )
    formula = "10 * s * b * h + 24 * s * b * h // t + 5 * a * s * s * b // t"
    return formula, 10 * row + 24 * row // t + scores // t, text


def _layers(letters: dict[str, Symbol], formula: str, size: int, text: str) -> Node:
    held, p, m = letters["L"].value, letters["p"].value, letters["m"].value
    one = leaf("layer", QT_TRANSLATE_NOOP("estimator", "One layer"), formula, letters, size, SOURCE, text)
    if p > 1 and m > 1:
        whole, total = (
            f"({formula}) * L * (p * m + p - 1) // (p * m)",
            size * held * (p * m + p - 1) // (p * m),
        )
        why = QT_TRANSLATE_NOOP(
            "estimator", "The first stage of an interleaved schedule holds L·(1 + (p − 1)/(p·m)) layers."
        )
    else:
        whole, total = f"({formula}) * L", size * held
        why = QT_TRANSLATE_NOOP("estimator", "The first stage of 1F1B holds L layers, whatever p is.")
    others = leaf(
        "other_layers",
        QT_TRANSLATE_NOOP("estimator", "The other layers held"),
        f"{whole} - ({formula})",
        letters,
        total - size,
        SOURCE,
        why,
    )
    label = QT_TRANSLATE_NOOP("estimator", "Layers")
    return branch("layers", label, whole, letters, (one, others), SOURCE, why)


def _around_the_layers(letters: dict[str, Symbol]) -> tuple[Node, ...]:
    s, b, h, t, p = (letters[name].value for name in "sbhtp")
    masks = leaf(
        "embedding_dropout",
        QT_TRANSLATE_NOOP("estimator", "Embedding dropout"),
        "s * b * h * p // t",
        letters,
        s * b * h * p // t,
        SOURCE,
        QT_TRANSLATE_NOOP("estimator", "Dropout masks of the embeddings of the p micro batches in flight."),
    )
    if p > 1:
        return (masks,)
    last = leaf(
        "final_norm_and_head",
        QT_TRANSLATE_NOOP("estimator", "Last norm and output layer"),
        "4 * s * b * h // t",
        letters,
        4 * s * b * h // t,
        SOURCE,
        QT_TRANSLATE_NOOP("estimator", "Inputs of the last norm and of the output layer, 2·s·b·h/t each."),
    )
    return (masks, last)


def _logits(letters: dict[str, Symbol]) -> Node:
    s, b, v, t = (letters[name].value for name in "sbvt")
    return leaf(
        "logits",
        QT_TRANSLATE_NOOP("estimator", "Logits"),
        "4 * s * b * v // t",
        letters,
        4 * s * b * v // t,
        SOURCE,
        QT_TRANSLATE_NOOP("estimator", "The FP32 logits, which the cross entropy keeps."),
    )


_BYTES_PER_PARAMETER = {"weights": 2, "gradients": 4, "optimizer_states": 12}


def _static(key: str, size: int, letters: dict[str, Symbol]) -> Node:
    total = size * letters["P"].value // (letters["t"].value * letters["p"].value)
    text = QT_TRANSLATE_NOOP(
        "estimator", "Bytes per parameter: 16-bit weights 2, FP32 gradients 4, FP32 copy and states 12."
    )
    return leaf(key, COMPONENTS[key], f"{size} * P // (t * p)", letters, total, STATIC, text, (_EVEN,))


_EVEN = Message(
    QT_TRANSLATE_NOOP(
        "messages", "Parameters are taken as spread evenly over the t·p devices of one replica."
    )
)

_REMARKS = (
    Message(
        QT_TRANSLATE_NOOP(
            "messages",
            "The paper covers activations alone; weights, gradients and states beside them are Megatron's "
            "18 bytes per parameter.",
        )
    ),
    _EVEN,
)

_LEFT_OUT = (
    Omission(
        "activations",
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "Activations: the paper's layer is a GPT's, with an MLP of 4·h, dropout everywhere and the "
                "attention's 5·a·s²·b; gated MLPs, grouped heads, experts and flash attention are not in it.",
            )
        ),
    ),
    Omission(
        "loss",
        Message(
            QT_TRANSLATE_NOOP(
                "messages", "Loss: the gradient of the logits, 4·s·b·v/t more in the backward pass."
            )
        ),
    ),
    Omission(
        "overhead",
        Message(
            QT_TRANSLATE_NOOP(
                "messages", "The CUDA context, communication buffers, workspaces and fragmentation."
            )
        ),
    ),
)
_NOT_SPREAD = Omission(
    "activations",
    Message(
        QT_TRANSLATE_NOOP(
            "messages",
            "Outside the layers: embedding dropout, last norm, output layer and logits; the paper gives "
            "them for tensor with sequence parallelism only.",
        )
    ),
)
_FIRST_STAGE = Omission(
    "loss",
    Message(
        QT_TRANSLATE_NOOP(
            "messages",
            "The last norm, the output layer and the logits are on the last stage; this is the first of p.",
        )
    ),
)
_RECOMPUTED = Omission(
    "temporary",
    Message(
        QT_TRANSLATE_NOOP(
            "messages",
            "What is recomputed for the backward pass of one layer lives for a moment beside what is kept.",
        )
    ),
)
_WORKING = Omission(
    "temporary", Message(QT_TRANSLATE_NOOP("messages", "Working memory of the operators for a moment."))
)


def _omissions(checkpointing: str, spread: bool, stages: int) -> tuple[Omission, ...]:
    found = list(_LEFT_OUT)
    if not spread:
        found.append(_NOT_SPREAD)
    elif stages > 1:
        found.append(_FIRST_STAGE)
    found.append(_WORKING if checkpointing == "none" else _RECOMPUTED)
    return tuple(found)
