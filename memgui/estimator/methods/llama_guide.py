"""``llama_guide``: mixed-precision Adam for Llama 13B.

Source: 《显存计算指南》 ("A guide to computing GPU memory").  It says 1 GB = 1024³ bytes, counts 13B as
13·10⁹ parameters, and prints their bytes divided by 10⁹ as GB: variant ``as_printed`` does so too,
variant ``exact`` puts the same letters in without mixing the units.
"""

from __future__ import annotations

from memgui.estimator.methods.method import Answer, Omission, leaf, letter
from memgui.estimator.result import COMPONENTS, Node, Symbol
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

SOURCE = QT_TRANSLATE_NOOP("sources", "《显存计算指南》 (A guide to computing GPU memory)")
GIB, MIB = 2**30, 2**20


def llama_guide(scenario: Scenario, variant: str, counted: int) -> Answer:
    """The guide's figure, ``exact`` or ``as_printed``; ``counted`` parameters where P is not given."""
    letters = _letters(scenario, counted)
    printed = variant == "as_printed"
    exact = _nodes(letters, printed=False)
    nodes = _nodes(letters, printed=True) if printed else exact
    total = sum(node.bytes for node in exact.values())
    return Answer(SOURCE, nodes, _OMISSIONS, _remarks(letters, total), {"exact_total_bytes": total})


def _letters(scenario: Scenario, counted: int) -> dict[str, Symbol]:
    nominal = scenario.model.nominal_parameters
    return {
        "b": letter(scenario, QT_TRANSLATE_NOOP("estimator", "batch size"), "training.micro_batch_size"),
        "s": letter(scenario, QT_TRANSLATE_NOOP("estimator", "sequence length"), "training.sequence_length"),
        "h": letter(scenario, QT_TRANSLATE_NOOP("estimator", "hidden size"), "model.hidden_size"),
        "a": letter(scenario, QT_TRANSLATE_NOOP("estimator", "attention heads"), "model.num_attention_heads"),
        "L": letter(scenario, QT_TRANSLATE_NOOP("estimator", "layers"), "model.num_hidden_layers"),
        "P": Symbol(
            counted if nominal is None else nominal,
            QT_TRANSLATE_NOOP("estimator", "parameters"),
            "model.nominal_parameters",
        ),
        "G": Symbol(GIB, QT_TRANSLATE_NOOP("estimator", "bytes of the guide's GB")),
        "M": Symbol(MIB, QT_TRANSLATE_NOOP("estimator", "bytes of the guide's MB")),
    }


def _nodes(letters: dict[str, Symbol], *, printed: bool) -> dict[str, Node]:
    def per_parameter(key: str, label: str, size: int, text: str) -> Node:
        value = size * letters["P"].value
        if not printed:
            return leaf(key, label, f"{size} * P", letters, value, SOURCE, text)
        # the guide divides by 10⁹ and calls the quotient GB, of which each is 1024³ bytes
        shown = value * GIB // 10**9
        return leaf(key, label, f"{size} * P * G // 1000000000", letters, shown, SOURCE, text, (_UNITS,))

    states = (
        per_parameter(
            "momentum",
            QT_TRANSLATE_NOOP("estimator", "Momentum"),
            4,
            QT_TRANSLATE_NOOP("estimator", "Adam's first moment, FP32."),
        ),
        per_parameter(
            "variance",
            QT_TRANSLATE_NOOP("estimator", "Variance"),
            4,
            QT_TRANSLATE_NOOP("estimator", "Adam's second moment, FP32."),
        ),
        per_parameter(
            "master_weights",
            QT_TRANSLATE_NOOP("estimator", "FP32 copy of the weights"),
            4,
            QT_TRANSLATE_NOOP("estimator", "The weights once more in FP32, which Adam updates."),
        ),
    )
    return {
        "weights": per_parameter(
            "weights", COMPONENTS["weights"], 2, QT_TRANSLATE_NOOP("estimator", "The weights in FP16.")
        ),
        "gradients": per_parameter(
            "gradients",
            COMPONENTS["gradients"],
            2,
            QT_TRANSLATE_NOOP("estimator", "One FP16 gradient for each parameter."),
        ),
        "optimizer_states": Node("optimizer_states", COMPONENTS["optimizer_states"], 0, states),
        "activations": _activations(letters, printed),
        "temporary": Node("temporary", COMPONENTS["temporary"], 0, _input_and_output(letters, printed)),
    }


def _activations(letters: dict[str, Symbol], printed: bool) -> Node:
    b, s, h, a, layers = (letters[name].value for name in "bshaL")
    formula, size = "(34 * s * b * h + 5 * a * s * s * b) * L", (34 * s * b * h + 5 * a * s * s * b) * layers
    text = QT_TRANSLATE_NOOP(
        "estimator",
        "s·b·h·(34 + 5·a·s/h) bytes in each of L layers, FP16: the formula of Korthikanti et al. 2022.",
    )
    return _written("activations", COMPONENTS["activations"], formula, letters, size, text, printed)


def _input_and_output(letters: dict[str, Symbol], printed: bool) -> tuple[Node, Node]:
    size = letters["b"].value * letters["s"].value * letters["h"].value * 2
    formula = "b * s * h * 2"
    return (
        _written(
            "input",
            QT_TRANSLATE_NOOP("estimator", "Input"),
            formula,
            letters,
            size,
            QT_TRANSLATE_NOOP("estimator", "The input, one FP16 vector of h for each token."),
            printed,
        ),
        _written(
            "output",
            QT_TRANSLATE_NOOP("estimator", "Output"),
            formula,
            letters,
            size,
            QT_TRANSLATE_NOOP("estimator", "As much again for the output."),
            printed,
        ),
    )


def _written(
    key: str, label: str, formula: str, letters: dict[str, Symbol], size: int, text: str, printed: bool
) -> Node:
    """A part in bytes, or rounded as the guide prints it: tenths of its GB, below one GB whole MB."""
    if not printed:
        return leaf(key, label, formula, letters, size, SOURCE, text)
    if size >= GIB:
        rounded = f"(({formula}) * 10 + G // 2) // G * G // 10"
        size = (size * 10 + GIB // 2) // GIB * GIB // 10
    else:
        rounded = f"(({formula}) + M // 2) // M * M"
        size = (size + MIB // 2) // MIB * MIB
    return leaf(key, label, rounded, letters, size, SOURCE, text, (_ROUNDED,))


_UNITS = Message(
    QT_TRANSLATE_NOOP(
        "messages",
        "The guide says that 1 GB is 1024³ bytes, yet divides the bytes of the parameters by 10⁹ to print "
        "GB.",
    )
)
_ROUNDED = Message(
    QT_TRANSLATE_NOOP("messages", "Rounded as the guide prints it: one decimal of GB, whole MB below one GB.")
)

_OMISSIONS = (
    Omission(
        "activations",
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "Activations: the formula is that of a GPT with an MLP of 4·h, dropout and attention scores "
                "of 5·a·s²·b; Llama's gated MLP, grouped heads and flash attention are not in it.",
            )
        ),
    ),
    Omission(
        "loss",
        Message(
            QT_TRANSLATE_NOOP("messages", "Logits and loss: b·s numbers for every word of the vocabulary.")
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


def _remarks(letters: dict[str, Symbol], total: int) -> tuple[Message, ...]:
    half = 2 * letters["P"].value
    return (
        _UNITS,
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "2·P is {half} bytes, which are {billions} GB but only {gib} GiB; the guide's total adds "
                "the two units. Exactly, all parts are {total} bytes = {total_gib} GiB = {total_gb} GB.",
            ),
            {
                "half": half,
                "billions": _tenths(half, 10**9),
                "gib": _tenths(half, GIB),
                "total": total,
                "total_gib": _tenths(total, GIB),
                "total_gb": _tenths(total, 10**9),
            },
        ),
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "b counts sequences. The guide's batch of 4,000,000 is one of tokens; read as sequences it "
                "multiplies to 58,000,000 GB of activations.",
            )
        ),
        Message(QT_TRANSLATE_NOOP("messages", "Where the guide writes “1.3B” it means 13B.")),
    )


def _tenths(size: int, unit: int) -> str:
    """``size`` in ``unit``, rounded to one decimal in integers alone."""
    tenths = (size * 10 + unit // 2) // unit
    return f"{tenths // 10:,}.{tenths % 10}"
