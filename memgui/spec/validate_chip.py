"""What a device's chip cannot run, and what is taken for granted of chips of other makers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from memgui.spec.fields import BY_PATH
from memgui.spec.messages import QT_TRANSLATE_NOOP, Issue, Message, Named, Value, allowed
from memgui.spec.scenario import Scenario, get

Capability = tuple[int, int]

_LONGEST: Final = 5
"""Characters of a compute capability."""

AMPERE: Final = (8, 0)
ADA: Final = (8, 9)
TURING: Final = (7, 5)
VOLTA: Final = (7, 0)

_NEEDS: Final[Mapping[str, Mapping[object, Capability]]] = {
    # "FlashAttention only supports Ampere GPUs or newer" (flash-attn); Triton's compiler begins at 7.0
    "training.attention": {"flash_attention_2": AMPERE, "flex_attention": VOLTA},
    "inference.attention": {"flash_attention_2": AMPERE},
    # PyTorch, sdp_utils.cpp: both kernels are built from sm80 on
    "training.sdpa_backend": {"flash": AMPERE, "cudnn": AMPERE},
    # "Compute capability 8.9 or higher required for FP8 execution" (Transformer Engine; torchao alike)
    "training.precision": {"fp8": ADA},
    "training.compile": {True: VOLTA},
    # "GPU: compute capability 7.0 or higher" (vLLM's installation guide); "sm75 and above" (SGLang's)
    "inference.engine": {"vllm": VOLTA, "sglang": TURING},
}
"""The least compute capability that a choice runs on."""

_NOT_IN_FP16: Final = ("gemma2", "gemma3", "gemma3_text", "glm4", "plamo2")
"""Models that vLLM V1 does not run in fp16 ("Numerical instability"): where bf16 is none, in fp32."""


def _written(text: str) -> Capability | None:
    """``"9.0"`` as (9, 0), ``"9"`` too; ``None`` for what is no such number."""
    major, point, minor = text.partition(".")
    plain = text.isascii() and major.isdigit() and (minor.isdigit() if point else True)
    return (int(major), int(minor or 0)) if plain and len(text) <= _LONGEST else None


def _no_capability(text: str) -> Issue:
    path = "device.compute_capability"
    return Issue(
        "error",
        "no_capability",
        (path,),
        Message(
            QT_TRANSLATE_NOOP("messages", "{path} cannot be “{value}”."), {"path": path, "value": text[:80]}
        ),
        Message(
            QT_TRANSLATE_NOOP(
                "messages", "Allowed: a number such as 9.0, or nothing for other makers' chips."
            )
        ),
    )


def validate_chip(scenario: Scenario) -> Iterator[Issue]:
    """That a choice needs a newer chip; that another maker's chip is taken to do as NVIDIA's."""
    if scenario.method != "detailed":
        return
    text = scenario.device.compute_capability
    if not text:
        yield from _of_another_maker(scenario)
        return
    chip = _written(text)
    if chip is None:
        yield _no_capability(text)
        return
    if chip >= ADA:
        return
    for path, needs in _NEEDS.items():
        value = get(scenario, path)
        needed = needs.get(value)
        if needed is not None and chip < needed and BY_PATH[path].applies(scenario):
            runs = [
                one.value for one in BY_PATH[path].choices if _NEEDS[path].get(one.value, (0, 0)) < needed
            ]
            yield _too_old(scenario, path, value, needed, allowed(path, *(runs or (False,))))
    if chip < AMPERE:
        yield from _without_bf16(scenario)


def _without_bf16(scenario: Scenario) -> Iterator[Issue]:
    """PyTorch emulates bf16; an older vLLM refuses it, a newer one takes fp16 where nobody named bf16.

    "Bfloat16 is only supported on GPUs with compute capability of at least 8.0" (vLLM).
    """
    training, inference = scenario.training, scenario.inference
    facts = ("device.name", "device.compute_capability")
    args: dict[str, Value] = {
        "device": scenario.device.name,
        "capability": scenario.device.compute_capability,
    }
    if scenario.task == "training":
        if training.implementation == "transformers" and training.precision.startswith("bf16"):
            emulated = QT_TRANSLATE_NOOP(
                "messages",
                "{device} (compute capability {capability}) emulates bf16: it runs, but slower than in fp16.",
            )
            yield Issue("note", "bf16_emulated", ("training.precision", *facts), Message(emulated, args))
        return
    path = "inference.weight_format"
    if inference.engine != "vllm" or inference.weight_format != "bf16":
        return
    if inference.vllm_version != "0.11":
        half = Message(QT_TRANSLATE_NOOP("messages", "Allowed in as many bytes: fp16."))
        yield _too_old(scenario, path, "bf16", AMPERE, half)
        return
    if scenario.model.model_type in _NOT_IN_FP16:
        yield _too_old(scenario, path, "bf16", AMPERE, allowed(path, "fp32"))
        return
    falls_back = QT_TRANSLATE_NOOP(
        "messages",
        "vLLM computes in fp16 on {device} (compute capability {capability}), in as many bytes; asked for "
        "bf16 by name it refuses.",
    )
    yield Issue("note", "bf16_as_fp16", (path, *facts), Message(falls_back, args))


def _too_old(scenario: Scenario, path: str, value: object, needed: Capability, runs: Message) -> Issue:
    choice = BY_PATH[path].choice(value)
    device = scenario.device
    return Issue(
        "error",
        "chip_too_old",
        (path, "device.name", "device.compute_capability"),
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "{choice} needs a GPU of compute capability {needed} or newer; {device} has {capability}.",
            ),
            {
                "choice": Named(path) if choice is None else Named(path, (value,)),
                "needed": f"{needed[0]}.{needed[1]}",
                "device": device.name,
                "capability": device.compute_capability,
            },
        ),
        runs,
    )


def _of_another_maker(scenario: Scenario) -> Iterator[Issue]:
    if scenario.task != "training" and scenario.inference.engine != "transformers":
        return
    text = QT_TRANSLATE_NOOP(
        "messages",
        "{name} is no NVIDIA chip: kernels, workspaces and the driver's context count as on a current one.",
    )
    yield Issue(
        "note",
        "no_nvidia_chip",
        ("device.name", "device.compute_capability"),
        Message(text, {"name": scenario.device.name}),
    )
