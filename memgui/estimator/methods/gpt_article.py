"""``gpt_article``: memory of a GPT-like transformer from five letters.

Source: 《如何估算transformer模型的显存大小》 ("How to estimate the GPU memory of transformer models"),
published in the column 小白学视觉.  Counts are elements, multiplied at the end by the bytes of one
number (float64 in the article).
"""

from __future__ import annotations

from memgui.estimator.methods.method import Answer, Omission, branch, leaf, letter
from memgui.estimator.result import COMPONENTS, Node, Symbol
from memgui.spec.formats import number_format
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

SOURCE = QT_TRANSLATE_NOOP(
    "sources", "《如何估算transformer模型的显存大小》 (How to estimate the GPU memory of transformer models)"
)
DEFAULT_FORMAT = "fp64"


def gpt_article(scenario: Scenario, variant: str) -> Answer:
    """The article's figure: ``derived``, ``printed`` or ``long_sequence``."""
    letters = _letters(scenario)
    nodes = {"weights": _weights(letters)}
    if variant == "long_sequence":
        nodes["activations"] = _scores_alone(letters)
    else:
        nodes["activations"] = _activations(letters)
    if variant == "derived":
        nodes["gradients"] = _gradients(letters)
    return Answer(SOURCE, nodes, (*_gradients_left_out(variant), *_OMISSIONS), _remarks(variant))


def _letters(scenario: Scenario) -> dict[str, Symbol]:
    chosen = scenario.method_number_format or DEFAULT_FORMAT
    return {
        "R": letter(scenario, QT_TRANSLATE_NOOP("estimator", "blocks"), "model.num_hidden_layers"),
        "N": letter(scenario, QT_TRANSLATE_NOOP("estimator", "heads"), "model.num_attention_heads"),
        "D": letter(scenario, QT_TRANSLATE_NOOP("estimator", "dimension of one head"), "model.head_dim"),
        "B": letter(scenario, QT_TRANSLATE_NOOP("estimator", "batch size"), "training.micro_batch_size"),
        "S": letter(scenario, QT_TRANSLATE_NOOP("estimator", "sequence length"), "training.sequence_length"),
        "F": Symbol(
            number_format(chosen).bytes_for(1),
            QT_TRANSLATE_NOOP("estimator", "bytes of one number"),
            "method_number_format",
        ),
    }


def _part(key: str, label: str, formula: str, letters: dict[str, Symbol], size: int, text: str) -> Node:
    return leaf(key, label, formula, letters, size, SOURCE, text)


def _values(letters: dict[str, Symbol]) -> tuple[int, ...]:
    return tuple(letters[name].value for name in "RNDBSF")


def _weights(letters: dict[str, Symbol]) -> Node:
    r, n, d, _, _, f = _values(letters)
    each = r * n * n * d * d * f
    text = QT_TRANSLATE_NOOP("estimator", "One matrix of (N·D)² in each of R blocks.")
    formula = "R * N * N * D * D * F"
    children = tuple(
        _part(key, label, formula, letters, each, text)
        for key, label in (
            ("query", QT_TRANSLATE_NOOP("estimator", "Query")),
            ("key", QT_TRANSLATE_NOOP("estimator", "Key")),
            ("value", QT_TRANSLATE_NOOP("estimator", "Value")),
            ("mlp", QT_TRANSLATE_NOOP("estimator", "MLP")),
        )
    )
    return branch(
        "weights",
        COMPONENTS["weights"],
        "4 * R * N * N * D * D * F",
        letters,
        children,
        SOURCE,
        QT_TRANSLATE_NOOP("estimator", "Query, key, value and MLP, each (N·D)²; nothing else is counted."),
    )


def _scores(letters: dict[str, Symbol]) -> Node:
    r, n, _, b, s, f = _values(letters)
    return _part(
        "softmax",
        QT_TRANSLATE_NOOP("estimator", "Softmax"),
        "R * B * N * S * S * F",
        letters,
        r * b * n * s * s * f,
        QT_TRANSLATE_NOOP("estimator", "The softmax of every pair of tokens: B·N·S² in each block."),
    )


def _activations(letters: dict[str, Symbol]) -> Node:
    r, n, d, b, s, f = _values(letters)
    row = r * b * n * s * d * f
    formula = "R * B * N * S * D * F"
    children = (
        _scores(letters),
        _part(
            "value",
            QT_TRANSLATE_NOOP("estimator", "Value"),
            formula,
            letters,
            row,
            QT_TRANSLATE_NOOP("estimator", "The attention's output: B·N·S·D in each block."),
        ),
        _part(
            "mlp",
            QT_TRANSLATE_NOOP("estimator", "MLP"),
            formula,
            letters,
            row,
            QT_TRANSLATE_NOOP("estimator", "The MLP's output: B·N·S·D in each block."),
        ),
    )
    return branch(
        "activations",
        COMPONENTS["activations"],
        "R * B * N * S * (S + 2 * D) * F",
        letters,
        children,
        SOURCE,
        QT_TRANSLATE_NOOP("estimator", "Softmax, value and MLP of every block."),
    )


def _scores_alone(letters: dict[str, Symbol]) -> Node:
    return branch(
        "activations",
        COMPONENTS["activations"],
        "R * B * N * S * S * F",
        letters,
        (_scores(letters),),
        SOURCE,
        QT_TRANSLATE_NOOP("estimator", "For S much larger than D only the softmax counts: quadratic in S."),
    )


def _gradients(letters: dict[str, Symbol]) -> Node:
    r, n, d, b, s, f = _values(letters)
    return leaf(
        "gradients",
        COMPONENTS["gradients"],
        "R * B * N * S * (S + 2 * D) * F",
        letters,
        r * b * n * s * (s + 2 * d) * f,
        SOURCE,
        QT_TRANSLATE_NOOP("estimator", "As many as activations: that is the article's claim."),
    )


def _gradients_left_out(variant: str) -> tuple[Omission, ...]:
    if variant == "printed":
        text = QT_TRANSLATE_NOOP(
            "messages",
            "Gradients: the article's last line prints weights + R·B·N·S·(S + 2·D) and so loses the factor 2 "
            "that its derivation puts before the activations.",
        )
    elif variant == "long_sequence":
        text = QT_TRANSLATE_NOOP(
            "messages",
            "Gradients, and the 2·R·B·N·S·D of value and MLP: left out because S is taken as much larger "
            "than D.",
        )
    else:
        return ()
    return (Omission("gradients", Message(text)),)


_OMISSIONS = (
    Omission(
        "weights",
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "Weights: embeddings, norms, biases, the attention's output projection, and all of the MLP "
                "beyond one (N·D)².",
            )
        ),
    ),
    Omission(
        "gradients",
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "Gradients of the weights, 4·R·N²·D²: the article counts those of the activations instead.",
            )
        ),
    ),
    Omission(
        "optimizer_states",
        Message(QT_TRANSLATE_NOOP("messages", "Optimizer states: 2 · 4·R·N²·D² more with Adam.")),
    ),
    Omission(
        "activations",
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "Activations: query, key, norms, dropout masks and what lies inside the MLP; flash "
                "attention, which keeps no B·N·S², is unknown to the article.",
            )
        ),
    ),
    Omission(
        "loss",
        Message(
            QT_TRANSLATE_NOOP("messages", "Logits and loss: B·S numbers for every word of the vocabulary.")
        ),
    ),
    Omission(
        "temporary", Message(QT_TRANSLATE_NOOP("messages", "Working memory of the operators for a moment."))
    ),
    Omission(
        "overhead",
        Message(QT_TRANSLATE_NOOP("messages", "The CUDA context, libraries' workspaces and fragmentation.")),
    ),
)


def _remarks(variant: str) -> tuple[Message, ...]:
    told = {
        "derived": QT_TRANSLATE_NOOP(
            "messages",
            "The article derives weights + 2 · activations, but its last line prints weights + activations: "
            "the variants “derived” and “printed” differ by that factor.",
        ),
        "printed": QT_TRANSLATE_NOOP(
            "messages",
            "This is the article's last line as printed; its derivation gives weights + 2 · activations.",
        ),
        "long_sequence": QT_TRANSLATE_NOOP(
            "messages", "For long sequences the article keeps R·B·N·S² alone: linear in B, quadratic in S."
        ),
    }
    return (Message(told[variant]),)
