"""What lies on the device beside the tensors: block rounding, workspaces, fragmentation, context.

Block rounding follows from the sizes of the tensors alive and is computed; workspaces follow from
the architecture.  Fragmentation and the CUDA context are known as ranges only.
"""

from __future__ import annotations

from typing import Final

import msgspec

from memgui.spec.messages import QT_TRANSLATE_NOOP

MIB: Final = 1 << 20
BLOCK: Final = 512
SMALL: Final = MIB
LARGE_SEGMENT: Final = 20 * MIB
OWN_SEGMENT: Final = 10 * MIB
SEGMENT_STEP: Final = 2 * MIB
UNSPLIT: Final = MIB
MOST_EXCESS: Final = UNSPLIT + BLOCK
"""More than :func:`block_bytes` ever adds to a tensor."""

ALLOCATOR_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources", "PyTorch's CUDA caching allocator (c10/core/AllocatorConfig.h), and measured on an RTX A6000"
)


def block_bytes(size: int) -> int:
    """Bytes of the block that PyTorch's allocator counts for a tensor of ``size`` bytes.

    Requests are rounded up to 512 bytes.  From 10 MiB on a request gets a segment of whole 2 MiB
    steps, of which a rest up to 1 MiB is not split off.  Between 1 and 10 MiB requests share
    segments of 20 MiB; a rest up to 1 MiB at a segment's end goes to its last block, here spread
    over the blocks that fit into one.
    """
    rounded = -(-size // BLOCK) * BLOCK
    if rounded >= OWN_SEGMENT:
        segment = -(-rounded // SEGMENT_STEP) * SEGMENT_STEP
        return segment if segment - rounded <= UNSPLIT else rounded
    if rounded > SMALL:
        fit = LARGE_SEGMENT // rounded
        rest = LARGE_SEGMENT - fit * rounded
        return rounded + (rest // fit if rest <= UNSPLIT else 0)
    return rounded


class Range(msgspec.Struct, frozen=True):
    """A quantity that is known as a range: least, usual, most.

    ``percent``: what the usual one is of something else, where it is a share.
    """

    low: int
    usual: int
    high: int
    source: str
    percent: int = 0


CUBLAS_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources", "PyTorch's CublasHandlePool.cpp and pull requests 83461, 89027, 175344"
)
CUBLAS_DEFAULT: Final = 8_519_680
CUBLAS_HOPPER: Final = 32 * MIB


def cublas_workspace(capability: tuple[int, int], *, training: bool) -> int:
    """Workspaces of cuBLAS: 8.125 MiB each, 32 MiB from compute capability 9.0 on.

    There is one for each handle and stream: one for the forward pass, one for autograd's thread.
    """
    each = CUBLAS_HOPPER if capability >= (9, 0) else CUBLAS_DEFAULT
    return each * (2 if training else 1)


SCRATCH_SOURCE: Final = QT_TRANSLATE_NOOP("sources", "AutoGPTQ 0.7 (exllamav2: temp_dq_size)")

KERNELS_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources", "PyTorch's CUDA kernels (SoftMax.cu), and measured on a Tesla T4"
)

CONTEXT_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources",
    "Measured contexts with lazy module loading (PyTorch PR 86509, issues 107667 and 109888, a Tesla T4, "
    "and others)",
)

_CONTEXT: Final = (
    ((12, 0), Range(500 * MIB, 600 * MIB, 750 * MIB, CONTEXT_SOURCE)),
    ((10, 0), Range(500 * MIB, 600 * MIB, 750 * MIB, CONTEXT_SOURCE)),
    ((9, 0), Range(450 * MIB, 520 * MIB, 600 * MIB, CONTEXT_SOURCE)),
    ((8, 9), Range(350 * MIB, 400 * MIB, 450 * MIB, CONTEXT_SOURCE)),
    ((8, 0), Range(300 * MIB, 400 * MIB, 710 * MIB, CONTEXT_SOURCE)),
    ((7, 5), Range(140 * MIB, 141 * MIB, 300 * MIB, CONTEXT_SOURCE)),
    ((0, 0), Range(140 * MIB, 250 * MIB, 300 * MIB, CONTEXT_SOURCE)),
)


OLD_CONTEXT_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources",
    "Contexts before CUDA 11.7, which loaded every kernel (PyTorch PR 86509 and issue 107667; 1,343 MiB "
    "on a V100 in the documentation of Transformers)",
)


def context(capability: tuple[int, int], *, old: bool = False) -> Range:
    """The CUDA context of a process, by architecture (Volta and Turing, Ampere, Ada, Hopper, Blackwell).

    ``old``: before CUDA 11.7 all kernels of PyTorch were loaded with it.
    """
    if old:
        return Range(636 * MIB, 1000 * MIB, 1343 * MIB, OLD_CONTEXT_SOURCE)
    return next(found for least, found in _CONTEXT if capability >= least)


FRAGMENTATION_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources",
    "Runs played on PyTorch's caching allocator; reserved against allocated memory in published ones "
    "(torchtune 1185, cosmos-rl 388, and others)",
)


EXPANDABLE_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources", "Reserved memory with expandable segments (torchtune 1185, cosmos-rl 388)"
)


LOADED_SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources", "Weights as they load, played on PyTorch's caching allocator, which keeps its segments"
)


def fragmentation(
    allocated: int, persistent: int, *, training: bool, recomputed: bool = False, expandable: bool = False
) -> Range:
    """Reserved over allocated bytes.

    What lies still (weights, states) fragments nothing; of what comes and goes (``allocated`` less
    ``persistent``) a part stays unused inside segments: 1 to 3 % in inference, where the last segments of
    2 and of 20 MiB may be empty too, up to 15 % in training, up to 30 % where every layer is ``recomputed``
    whole, and up to 5 % where segments are ``expandable``.  Of 456 set-ups of seven models played on the
    allocator (:mod:`memgui.estimator.simulation`) half lay below 8 % without recomputing and below 17 % with
    it, four in five below 16 and 30 %; with the cache given back where memory runs short, the least was 1 %.
    Runs that compute a part of each layer again, or every second layer, lie where those without do (634 more:
    the middle at 9 and 8 %, against 19 %): most of what they move is still saved once and freed once.
    """
    moving = max(allocated - persistent, 0)
    if training:
        usual, most = (2, 5) if expandable else (17, 30) if recomputed else (6, 15)
        source = EXPANDABLE_SOURCE if expandable else FRAGMENTATION_SOURCE
        return Range(0, moving * usual // 100, moving * most // 100, source, usual)
    last = LARGE_SEGMENT + SEGMENT_STEP
    return Range(moving // 100, moving * 2 // 100, moving * 3 // 100 + last, FRAGMENTATION_SOURCE, 2)
