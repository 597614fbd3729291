"""What a change costs, in plain words.  No bytes: those are the estimator's affair.

Every field of the table has an answer: one of its own here, else its help.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from memgui.estimator.result import Estimate
from memgui.planning.changes import Change
from memgui.planning.devices import MACHINE
from memgui.planning.ways.cost import Cost, Disturbance, say
from memgui.planning.ways.rounding import bits_of, rounded
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP
from memgui.spec.fields import BY_PATH

SAME = say(QT_TRANSLATE_NOOP("ways", "Results stay the same."))
ROUNDING = say(QT_TRANSLATE_NOOP("ways", "Results stay the same up to rounding."))
PACKAGE = say(QT_TRANSLATE_NOOP("ways", "Needs a further package."))
NOTHING = say(QT_TRANSLATE_NOOP("ways", "None worth naming."))
TUNE = say(QT_TRANSLATE_NOOP("ways", "The learning rate needs tuning again."))
SMALL_UPDATES = say(QT_TRANSLATE_NOOP("ways", "Weights lose digits: small updates can vanish."))

_FREE = Cost(Disturbance.NONE, (NOTHING, SAME))
_KERNELS = Cost(Disturbance.NONE, (NOTHING, ROUNDING))

_USUAL_OPTIMIZERS = ("adamw_8bit", "adafactor", "lion", "paged_adamw", "paged_adamw_8bit")
"""Of the optimizers that cost alike those that people take, so that they are named before their like."""

_AS_IT_GOES = say(QT_TRANSLATE_NOOP("ways", "Gradients are used up at once: no clipping, no accumulation."))
_IN_BACKWARD = Cost(Disturbance.TUNING, (TUNE, _AS_IT_GOES), 3)
_RISK = say(QT_TRANSLATE_NOOP("ways", "Small risk to convergence."))
_SGD = Cost(
    Disturbance.TUNING,
    (TUNE, say(QT_TRANSLATE_NOOP("ways", "Transformers usually train worse with it."))),
    1,
)
_RERUN = say(QT_TRANSLATE_NOOP("ways", "Part of the forward pass runs again."))
_THIRD = say(QT_TRANSLATE_NOOP("ways", "About a third slower."))
_MASTER = say(QT_TRANSLATE_NOOP("ways", "Products are rounded to 16 bits, sums of updates are not."))
_OVERFLOW = say(QT_TRANSLATE_NOOP("ways", "Can overflow, so the loss must be scaled."))
_MOVES = say(QT_TRANSLATE_NOOP("ways", "Slower: data moves between GPU and host memory."))

_VALUES: Mapping[tuple[str, object], Cost] = {
    ("training.activation_checkpointing", "full"): Cost(Disturbance.SLOWER, (_THIRD, SAME), 1),
    ("training.activation_checkpointing", "selective"): Cost(Disturbance.SLOWER, (_RERUN, SAME)),
    ("training.attention", "sdpa"): _KERNELS,
    ("training.attention", "flash_attention_2"): Cost(Disturbance.NONE, (PACKAGE, ROUNDING), 1),
    ("inference.attention", "sdpa"): _KERNELS,
    ("inference.attention", "flash_attention_2"): Cost(Disturbance.NONE, (PACKAGE, ROUNDING), 1),
    ("training.implementation", "fused"): Cost(Disturbance.NONE, (PACKAGE, ROUNDING), 1),
    ("training.implementation", "unsloth"): Cost(Disturbance.NONE, (PACKAGE, ROUNDING), 2),
    **{
        ("training.implementation", name): Cost(
            Disturbance.TUNING, (say(QT_TRANSLATE_NOOP("ways", "The training code is written anew.")),)
        )
        for name in ("megatron", "torchtitan", "torchtune", "litgpt")
    },
    ("training.optimizer_in_backward", True): Cost(Disturbance.NONE, (_AS_IT_GOES,), 2),
    ("training.optimizer_implementation", "forloop"): Cost(
        Disturbance.SLOWER, (say(QT_TRANSLATE_NOOP("ways", "The optimizer step takes longer.")), SAME)
    ),
    ("training.optimizer_implementation", "fused"): _FREE,
    ("training.optimizer_implementation", "foreach"): _FREE,
    ("training.keep_outputs", False): Cost(
        Disturbance.NONE, (say(QT_TRANSLATE_NOOP("ways", "One line of the training loop changes.")), SAME)
    ),
    ("training.outputs_in_step", False): Cost(
        Disturbance.NONE, (say(QT_TRANSLATE_NOOP("ways", "One line of the training loop changes.")), SAME)
    ),
    ("training.torch_version", "2.14"): Cost(
        Disturbance.NONE, (say(QT_TRANSLATE_NOOP("ways", "Needs PyTorch 2.14 or later.")), ROUNDING)
    ),
    ("training.expandable_segments", True): Cost(
        Disturbance.NONE, (say(QT_TRANSLATE_NOOP("ways", "One environment variable is set.")), SAME)
    ),
    ("training.wide_embedding_states", False): Cost(
        Disturbance.ACCURACY, (say(QT_TRANSLATE_NOOP("ways", "States of embeddings are rounded too.")),)
    ),
    ("training.kbit_preparation", False): Cost(
        Disturbance.ACCURACY,
        (say(QT_TRANSLATE_NOOP("ways", "Norms, embeddings and head stay in 16 bits.")),),
    ),
    ("training.use_cache", False): _FREE,
    ("training.zero_grad_set_to_none", True): _FREE,
    ("inference.cache_implementation", "dynamic"): _FREE,
    ("inference.cache_implementation", "static"): _FREE,
    ("inference.kv_unified", True): _FREE,
    ("inference.linear_causal_mask", True): _FREE,
    ("inference.swa_full", False): Cost(
        Disturbance.NONE,
        (say(QT_TRANSLATE_NOOP("ways", "Prompts that share a beginning are computed anew.")), SAME),
    ),
    ("inference.flash_attention", True): _KERNELS,
    ("inference.enforce_eager", True): Cost(
        Disturbance.SLOWER, (say(QT_TRANSLATE_NOOP("ways", "Each token takes longer.")), SAME)
    ),
    ("training.padding_mask", False): Cost(
        Disturbance.NONE,
        (say(QT_TRANSLATE_NOOP("ways", "Samples are packed instead of padded.")),),
        2,
    ),
    ("training.gradient_clipping", False): Cost(
        Disturbance.TUNING, (say(QT_TRANSLATE_NOOP("ways", "Outliers among the gradients are not damped.")),)
    ),
    ("training.precision", "fp32"): Cost(
        Disturbance.SLOWER, (say(QT_TRANSLATE_NOOP("ways", "Slower: all arithmetic is in 32 bits.")),), 3
    ),
    ("training.precision", "bf16_mixed"): Cost(Disturbance.ACCURACY, (_MASTER,)),
    ("training.precision", "fp16_mixed"): Cost(Disturbance.ACCURACY, (_MASTER, _OVERFLOW), 1),
    ("training.precision", "bf16_master"): Cost(Disturbance.ACCURACY, (_MASTER,)),
    ("training.precision", "fp16_master"): Cost(Disturbance.ACCURACY, (_MASTER, _OVERFLOW), 1),
    ("training.precision", "bf16"): Cost(Disturbance.TUNING, (SMALL_UPDATES,)),
    ("training.precision", "fp16"): Cost(Disturbance.TUNING, (SMALL_UPDATES, _OVERFLOW), 1),
    ("training.precision", "fp8"): Cost(Disturbance.ACCURACY, (_RISK,), 1),
    ("training.master_format", "bf16"): Cost(Disturbance.TUNING, (SMALL_UPDATES,)),
    ("training.optimizer", "lomo"): _IN_BACKWARD,
    ("training.optimizer", "adalomo"): _IN_BACKWARD,
    ("training.optimizer", "badam"): Cost(
        Disturbance.TUNING,
        (
            say(QT_TRANSLATE_NOOP("ways", "One layer is trained at a time: each sees a part of the steps.")),
            TUNE,
        ),
        1,
    ),
    ("training.optimizer", "sgd"): _SGD,
    ("training.optimizer", "sgd_momentum"): _SGD,
    ("parallelism.sharding", "zero1"): Cost(
        Disturbance.HARDWARE,
        (say(QT_TRANSLATE_NOOP("ways", "GPUs exchange their shares at each step.")), SAME),
    ),
    ("parallelism.sharding", "zero2"): Cost(
        Disturbance.HARDWARE,
        (say(QT_TRANSLATE_NOOP("ways", "GPUs exchange their shares at each step.")), SAME),
        1,
    ),
    ("parallelism.sharding", "zero3"): Cost(
        Disturbance.HARDWARE,
        (say(QT_TRANSLATE_NOOP("ways", "GPUs exchange weights at each layer.")), SAME),
        2,
    ),
}
"""Costs of one value of a field."""

_PATHS: Mapping[str, Cost] = {
    "training.activation_checkpointing": Cost(Disturbance.SLOWER, (_RERUN, SAME)),
    "training.checkpoint_every": Cost(Disturbance.SLOWER, (_RERUN, SAME)),
    "training.checkpoint_layers": Cost(Disturbance.SLOWER, (_RERUN, SAME)),
    "training.offload_optimizer": Cost(Disturbance.SLOWER, (_MOVES, SAME), 2),
    "training.sdpa_backend": _KERNELS,
    "training.precision": Cost(Disturbance.ACCURACY, (SMALL_UPDATES,), 1),
    "training.method": Cost(
        Disturbance.LESS, (say(QT_TRANSLATE_NOOP("ways", "Fewer weights are trained; may learn less.")),), 2
    ),
    "training.dropout": Cost(
        Disturbance.TUNING, (say(QT_TRANSLATE_NOOP("ways", "Less protection against overfitting.")),)
    ),
    "training.lora.dropout": Cost(
        Disturbance.TUNING, (say(QT_TRANSLATE_NOOP("ways", "Less protection against overfitting.")),)
    ),
    "training.lora.rank": Cost(
        Disturbance.LESS, (say(QT_TRANSLATE_NOOP("ways", "Smaller adapters can learn less.")),)
    ),
    "training.lora.target_modules": Cost(
        Disturbance.LESS, (say(QT_TRANSLATE_NOOP("ways", "Fewer adapters can learn less.")),)
    ),
    "training.lora.adapter_format": Cost(Disturbance.ACCURACY, (SMALL_UPDATES,)),
    "training.lora.variant": Cost(
        Disturbance.TUNING, (say(QT_TRANSLATE_NOOP("ways", "The adapters learn in another way.")),)
    ),
    "training.state_format": Cost(Disturbance.ACCURACY, (_RISK,), 2),
    "training.fp8_scaling": Cost(Disturbance.ACCURACY, (_RISK,), 2),
    "training.sequence_length": Cost(
        Disturbance.LESS, (say(QT_TRANSLATE_NOOP("ways", "Longer texts are cut or split.")),)
    ),
    "training.micro_batch_size": Cost(
        Disturbance.TUNING, (say(QT_TRANSLATE_NOOP("ways", "The batch is smaller.")),)
    ),
    "training.gradient_accumulation_steps": Cost(
        Disturbance.TUNING, (say(QT_TRANSLATE_NOOP("ways", "The batch is smaller.")),)
    ),
    "inference.batch_size": Cost(
        Disturbance.LESS,
        (say(QT_TRANSLATE_NOOP("ways", "Fewer sequences at once, so fewer tokens a second.")),),
    ),
    "inference.prompt_tokens": Cost(
        Disturbance.LESS, (say(QT_TRANSLATE_NOOP("ways", "Longer prompts are cut or refused.")),), 1
    ),
    "inference.generated_tokens": Cost(
        Disturbance.LESS, (say(QT_TRANSLATE_NOOP("ways", "Longer answers are cut.")),), 1
    ),
    "inference.gpu_memory_utilization": Cost(
        Disturbance.HARDWARE,
        (say(QT_TRANSLATE_NOOP("ways", "Leaves less for whatever else runs on the GPU.")),),
    ),
    "inference.mem_fraction_static": Cost(
        Disturbance.HARDWARE,
        (say(QT_TRANSLATE_NOOP("ways", "Leaves less for whatever else runs on the GPU.")),),
    ),
    "inference.max_num_batched_tokens": Cost(
        Disturbance.SLOWER, (say(QT_TRANSLATE_NOOP("ways", "Long prompts take more passes.")), SAME)
    ),
    "inference.max_num_seqs": Cost(
        Disturbance.SLOWER, (say(QT_TRANSLATE_NOOP("ways", "Fewer sequences run at once.")), SAME), 1
    ),
    "inference.n_ubatch": Cost(
        Disturbance.SLOWER, (say(QT_TRANSLATE_NOOP("ways", "Long prompts take more passes.")), SAME)
    ),
    "inference.n_gpu_layers": Cost(
        Disturbance.SLOWER,
        (say(QT_TRANSLATE_NOOP("ways", "Many times slower: the host computes the rest.")), SAME),
        9,
    ),
    "inference.n_cpu_moe": Cost(
        Disturbance.SLOWER,
        (say(QT_TRANSLATE_NOOP("ways", "Slower: the host computes those experts.")), SAME),
        8,
    ),
    "device.memory_bytes": Cost(
        Disturbance.HARDWARE, (say(QT_TRANSLATE_NOOP("ways", "Another GPU.")), SAME), 4
    ),
    "device.count": Cost(Disturbance.HARDWARE, (say(QT_TRANSLATE_NOOP("ways", "More GPUs.")), SAME), 3),
    "parallelism.tensor": Cost(
        Disturbance.HARDWARE,
        (
            say(
                QT_TRANSLATE_NOOP(
                    "ways", "GPUs exchange activations in each layer, so they need a fast link."
                )
            ),
            SAME,
        ),
        3,
    ),
    "parallelism.pipeline": Cost(
        Disturbance.HARDWARE,
        (
            say(QT_TRANSLATE_NOOP("ways", "GPUs work one after the other: room for more, no speed.")),
            SAME,
        ),
        3,
    ),
}
"""Costs of a field, whatever its value."""

_LESS = frozenset(
    {
        "training.sequence_length",
        "training.lora.rank",
        "inference.batch_size",
        "inference.prompt_tokens",
        "inference.generated_tokens",
    }
)
"""Fields of which less is less done: each halving weighs."""

ACCUMULATED = Cost(
    Disturbance.SLOWER,
    (
        say(QT_TRANSLATE_NOOP("ways", "More and smaller passes: somewhat slower.")),
        say(QT_TRANSLATE_NOOP("ways", "The batch of a step stays the same.")),
    ),
)
"""A smaller micro batch with as much more accumulation."""


def is_turned_back(path: str, new: bool) -> bool:
    """Whether a switch at ``new`` is the opposite of where it is known to need less."""
    return (path, not new) in _VALUES and (path, new) not in _VALUES


def cost_of(change: Change, after: Estimate) -> Cost:
    """What ``change`` costs; ``after`` is the estimate with it made."""
    path, new = change.path, change.new
    if path == "training.method" and new != "full":
        return _fewer_weights(after)
    found = _VALUES.get((path, new)) if isinstance(new, str | bool) else None
    if found is not None:
        return found
    field = BY_PATH[path]
    if path.endswith("_format") and isinstance(new, str) and path not in _PATHS:
        return rounded(new)
    if path == "training.optimizer":
        return _other_optimizer(str(new))
    if "offload" in path or "offload" in str(new):
        return Cost(Disturbance.SLOWER, (_MOVES, SAME), 2)
    if path == "device.count":
        return _more_devices(change.old, new)
    if path == "parallelism.pipeline" and after.scenario.task == "training":
        return _STAGES
    if path in _LESS and isinstance(new, int):
        least = _PATHS[path]
        return replace(least, weight=least.weight + (change.old // max(new, 1)).bit_length() - 1)
    if path in _PATHS:
        return _PATHS[path]
    choice = field.choice(new)
    said = (choice.help if choice is not None else "") or field.help
    return Cost(Disturbance.ACCURACY, (Said("{help}", words={"help": ("fields", said)}, context="ways"),), 9)


def paid_for(change: Change, after: Estimate) -> Cost | None:
    """What is paid for a change that a person made; ``None`` where it is free or goes the other way."""
    path, old, new = change.path, change.old, change.new
    if isinstance(new, bool) or isinstance(old, bool):
        found = _VALUES.get((path, new))
    elif isinstance(new, int | float) and isinstance(old, int | float):
        found = _PATHS.get(path) if (new > old) == (path in _GROWING) else None
    elif path == "training.method":
        found = cost_of(change, after) if old == "full" else None
    elif path.endswith("_format"):
        before, now = bits_of(str(old)) or 0, bits_of(str(new)) or 0
        found = cost_of(change, after) if now < before else None
    elif (path, new) in _VALUES or path == "training.optimizer":
        found = cost_of(change, after)
    else:
        found = None
    return None if found is None or found.disturbance is Disturbance.NONE else found


_GROWING = frozenset(
    {
        "device.count",
        "device.memory_bytes",
        "parallelism.tensor",
        "parallelism.pipeline",
        "inference.gpu_memory_utilization",
        "inference.mem_fraction_static",
        "inference.n_cpu_moe",
        "training.offload_optimizer",
    }
)
"""Fields of which more is what costs something."""


_STAGES = Cost(
    Disturbance.HARDWARE,
    (say(QT_TRANSLATE_NOOP("ways", "GPUs wait for each other where a step has few micro batches.")), SAME),
    3,
)


def _more_devices(old: int, new: int) -> Cost:
    """The cost of further devices: more of it with each doubling, and another one where machines are many."""
    said = QT_TRANSLATE_NOOP("ways", "More GPUs: several machines with a fast network.")
    sentence = say(said) if new > max(MACHINE, old) else _PATHS["device.count"].sentences[0]
    return Cost(Disturbance.HARDWARE, (sentence, SAME), 1 + 2 * max(1, round(math.log2(new / max(old, 1)))))


def _fewer_weights(after: Estimate) -> Cost:
    counted = after.parameters
    hundredths = counted.trainable * 10_000 // max(counted.total, 1)
    share = f"{hundredths // 100}.{hundredths % 100:02d}" if hundredths else "< 0.01"
    said = Said(
        QT_TRANSLATE_NOOP("ways", "Trains {share} % of the weights; may learn less."),
        words={"share": share},
        context="ways",
    )
    return Cost(Disturbance.LESS, (said,), 2 if after.scenario.training.method == "lora" else 3)


def _other_optimizer(name: str) -> Cost:
    """The cost of an optimizer by its name: paged, of few bits, or with settings of its own."""
    rest = 0 if name in _USUAL_OPTIMIZERS else 1
    narrow = any(part in name for part in ("8bit", "4bit", "int8", "fp8"))
    if name.startswith("paged"):
        sentences = (_MOVES, _RISK) if narrow else (_MOVES, SAME)
        return Cost(Disturbance.ACCURACY if narrow else Disturbance.SLOWER, sentences, 2)
    if narrow and name.startswith("adamw"):
        return Cost(Disturbance.ACCURACY, (_RISK, PACKAGE), rest)
    if narrow:
        return Cost(Disturbance.TUNING, (TUNE, _RISK), rest)
    return Cost(Disturbance.TUNING, (TUNE,), rest)
