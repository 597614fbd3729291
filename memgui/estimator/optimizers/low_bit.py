"""Optimizers whose states are 8 or 4 bits with a scale for each block."""

from __future__ import annotations

from memgui.estimator.optimizers.rule import FP32, Kept, Optimizer, Settings, States, Weight, nothing
from memgui.spec.messages import QT_TRANSLATE_NOOP

LEAST = 4096
"""Weights of fewer numbers keep 32-bit states (bitsandbytes' ``min_8bit_size``; torchao does the same)."""

BLOCK = 256
"""Numbers that share a scale in bitsandbytes' 8-bit states."""

MAP = 256 * FP32
"""bitsandbytes' table of the 256 values that 8 bits can mean, one signed, one not."""


def blockwise(name: str, elements: int, shape: tuple[int, ...] | None = None) -> tuple[Kept, ...]:
    """8-bit numbers and the largest value of each block, in fp32."""
    return (Kept(name, 1, shape), Kept(f"{name}, absmax", FP32, (-(-elements // BLOCK),)))


def bitsandbytes(*names: str) -> States:
    """8-bit states, but 32-bit ones of small weights (and of embeddings, where Trainer asks for it)."""

    def states(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
        embedding = settings.wide_embedding and weight.of.part.endswith("embedding")
        if weight.elements < LEAST or embedding:
            return tuple([Kept(name, FP32) for name in names])
        return tuple([kept for name in names for kept in blockwise(name, weight.elements)])

    return states


def _torchao(bits: int, block: int, table: int) -> States:
    """Torchao's states: as the weight where it is small or is no whole number of blocks."""

    def states(weight: Weight, settings: Settings) -> tuple[Kept, ...]:
        elements = weight.elements
        names = ("exp_avg", "exp_avg_sq")
        if elements < LEAST or elements % block:
            return tuple([Kept(name, weight.width) for name in names])
        found: list[Kept] = []
        for name in names:
            found.append(Kept(f"{name}, codes", 1, None if bits == 8 else (elements // 2,)))
            found.append(Kept(f"{name}, scales", FP32, (elements // block,)))
            if table:
                found.append(Kept(f"{name}, table", FP32, (table,)))
        return tuple(found)

    return states


_BNB = QT_TRANSLATE_NOOP("sources", "bitsandbytes 0.50, blocks of 256, 4,096 numbers at least: measured")
_AO = QT_TRANSLATE_NOOP("sources", "torchao 0.18, torchao.optim: measured")

LOW_BIT: dict[str, Optimizer] = {
    "adamw_8bit": Optimizer(bitsandbytes("state1", "state2"), nothing, _BNB, tables=2 * MAP),
    "paged_adamw_8bit": Optimizer(
        bitsandbytes("state1", "state2"), nothing, _BNB, tables=2 * MAP, paged=True
    ),
    "lion_8bit": Optimizer(bitsandbytes("state1"), nothing, _BNB, tables=MAP),
    "ademamix_8bit": Optimizer(
        bitsandbytes("state1, fast", "state1, slow", "state2"), nothing, _BNB, tables=2 * MAP
    ),
    "adamw_8bit_torchao": Optimizer(_torchao(8, 256, 256), nothing, _AO),
    "adamw_4bit": Optimizer(_torchao(4, 128, 16), nothing, _AO),
    "adamw_fp8": Optimizer(_torchao(8, 256, 0), nothing, _AO),
}
"""By their names in ``training.optimizer``."""
