"""Letters of formulas that no field holds: how each follows from others, or which fields decide it."""

from __future__ import annotations

from collections.abc import Callable

from memgui.estimator.result import Derivation, Symbol
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

_CHUNKS = "(s + Q - 1)//Q"
_ROUNDED = {
    f"{letter}{step}": f"({letter} + {step - 1})//{step}*{step}"
    for letter in ("s", "u")
    for step in (8, 16, 32, 64, 128)
}

DEFINED: dict[str, str] = {
    "g": "a + 2*k",
    "p2": "p//2",
    "a2": "a//2",
    "dp": "d - p",
    "lp": "lk + p",
    "nv": "d - p + dv",
    "mn": "ng*N",
    "mc": "D + 2*ng*N",
    "mi": "2*D + 2*ng*N + mh",
    "gc": "2*gk*ck + gv*cv",
    "gq": "2*gk*ck + 2*gv*cv",
    "lb": "lw//a",
    "X": "E//ep",
    "Vt": "(V + tp - 1)//tp",
    "sv": "s + v",
    "sv8": "(s + v + 7)//8*8",
    "s1": "s + 1",
    "c128": "(s + 127)//128",
    **_ROUNDED,
    "di": "id - p",
    "ihk": "ih + 1",
    "nb": "(s + ib - 1)//ib",
    "nb1": "(s + ib - 1)//ib + 1",
    "nbt": "(s + ib - 1)//ib*ib",
    "wc": "s//rc",
    "wc1": "s//rc + 1",
    "wh": "s//rh",
    "swc": "s + s//rc",
    "swh": "s + s//rh",
    "swc1": "s + s//rc + 1",
    "swh1": "s + s//rh + 1",
    "tws": "tw + 1",
    "tc": "t//rc",
    "tc1": "t//rc + 1",
    "th": "t//rh",
    "twc": "tw + t//rc",
    "twh": "tw + t//rh",
    "twc1": "tw + t//rc + 1",
    "twh1": "tw + t//rh + 1",
    "sp": "s - 1",
    "sc": "s + K - 1",
    "cc": _CHUNKS,
    "cn": f"{_CHUNKS} + 1",
    "cm": f"{_CHUNKS} - 1",
    "cl": "s - (s - 1)//Q*Q",
    "t": "s + tg",
    "t1": "s + tg - 1",
    "ts": "s + tg + 1",
    "tq": "s + tg//128*128",
    "tr": "tg - tg//128*128",
    "tr1": "tg - 1 - (tg - 1)//128*128",
    "vt": "u + tg",
    "vt1": "u + tg - 1",
}
"""Formulas of letters in others."""

_SHARED = "(ns*ws + tp - 1)//tp"
"""Of ``w`` where ranks share it."""

_LETTERS: dict[str, tuple[str, str, Callable[[Scenario], int]]] = {
    "ng": (
        QT_TRANSLATE_NOOP("symbols", "Mamba groups"),
        "model.mamba_n_groups",
        lambda s: s.model.mamba_n_groups,
    ),
    "ns": (
        QT_TRANSLATE_NOOP("symbols", "shared experts"),
        "model.n_shared_experts",
        lambda s: s.model.n_shared_experts,
    ),
    "ws": (
        QT_TRANSLATE_NOOP("symbols", "width of a shared expert"),
        "model.shared_expert_intermediate_size",
        lambda s: s.model.shared_expert_intermediate_size,
    ),
    "tp": (
        QT_TRANSLATE_NOOP("symbols", "tensor parallel ranks"),
        "parallelism.tensor",
        lambda s: s.parallelism.tensor,
    ),
    "ep": (
        QT_TRANSLATE_NOOP("symbols", "expert parallel ranks"),
        "parallelism.expert",
        lambda s: s.parallelism.expert,
    ),
    "tg": (
        QT_TRANSLATE_NOOP("symbols", "tokens generated"),
        "inference.generated_tokens",
        lambda s: s.inference.generated_tokens,
    ),
}
"""Letters that occur in definitions alone."""

_OF_LOSS = (
    "training.micro_batch_size",
    "training.sequence_length",
    "model.hidden_size",
    "model.vocab_size",
)
_WINDOWED = ("inference.prompt_tokens", "inference.generated_tokens")


def definition(
    scenario: Scenario, name: str, value: int, known: Callable[[str], Symbol]
) -> Derivation | None:
    """How ``name`` comes to its ``value``; ``known`` makes the symbols of other letters.

    ``None`` where a field holds it.
    """
    depends = _depends(scenario, name)
    if depends:
        return Derivation(str(value), {}, depends=depends)
    formula = DEFINED.get(name)
    if name == "w":
        m = scenario.model
        whole = m.n_shared_experts * m.shared_expert_intermediate_size
        formula = "ns*ws" if value == whole else _SHARED
    if formula is None:
        return None
    return Derivation(formula, {letter: _symbol(scenario, letter, known) for letter in letters_of(formula)})


def _symbol(scenario: Scenario, letter: str, known: Callable[[str], Symbol]) -> Symbol:
    own = _LETTERS.get(letter)
    return known(letter) if own is None else Symbol(own[2](scenario), own[0], own[1])


def letters_of(formula: str) -> list[str]:
    """The letters of a formula, each once, in order."""
    spaced = "".join(character if character.isalnum() or character == "_" else " " for character in formula)
    return [word for word in dict.fromkeys(spaced.split()) if not word.isdigit()]


def _depends(scenario: Scenario, name: str) -> tuple[str, ...]:
    """Fields that a letter follows from by a rule that is no sum and no product."""
    if name in ("bu", "bt"):
        return _OF_LOSS
    if name in ("tw", "tw1"):
        held = "sliding_window" if scenario.model.sliding_window else "attention_chunk_size"
        return (*_WINDOWED, f"model.{held}") if getattr(scenario.model, held) else _WINDOWED
    return ()
