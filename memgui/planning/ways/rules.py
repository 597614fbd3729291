"""Which changes could help: read from the field table wherever it says enough.

A rule looks at a scenario and proposes changes; whether they are legal and what they save is for
the estimator to say.  A new choice of a field, or a new on/off field, is proposed without a line here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memgui.estimator.targets import usual_targets
from memgui.planning.ask import surely_fits
from memgui.planning.changes import Change, apply, change
from memgui.planning.solve import solve
from memgui.planning.ways.costs import is_turned_back
from memgui.planning.ways.hardware import larger_device, larger_share, more_devices
from memgui.planning.ways.means import Means, Proposal, Rule
from memgui.planning.ways.rounding import bits_of
from memgui.planning.words import Said
from memgui.spec import QT_TRANSLATE_NOOP, Scenario, get
from memgui.spec.fields import BY_PATH, FIELDS, Choice, Field, Kind
from memgui.spec.formats import CACHE_FORMATS, SCHEMES

_SECTIONS = ("workload", "precision", "engine", "parallelism")
_NOT_A_WAY = frozenset(
    {
        "inference.engine",  # another program
        "training.input_require_grads",  # without it adapters may get no gradient
        "inference.kv_cache_format_v",  # goes with that of the keys
        "training.method",  # has a rule of its own
        "training.sdpa_backend",  # PyTorch's own choice is proposed, no other is forced
        "training.lora.target_modules",
        "parallelism.sequence",
    }
)


def choices(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """Every other value of every choice and switch that matters here."""
    for one in FIELDS:
        if one.section not in _SECTIONS or one.path in _NOT_A_WAY or one.path.endswith("_version"):
            continue
        if not one.applies(scenario):
            continue
        if one.kind is Kind.FLAG:
            other = not get(scenario, one.path)
            if not is_turned_back(one.path, other):
                yield Proposal((change(scenario, one.path, other),))
        elif one.kind is Kind.CHOICE:
            favoured = means.favoured.get(one.path)
            for made in other_choices(scenario, one):
                if favoured is None or made.new in favoured:
                    yield Proposal((made,))


def other_choices(scenario: Scenario, one: Field) -> Iterator[Change]:
    """Every choice of a field but the present one; of weight formats those that the program loads."""
    present = get(scenario, one.path)
    for choice in one.choices:
        if choice.value != present and _is_loaded(scenario, one.path, choice.value):
            yield change(scenario, one.path, choice.value)


def _is_loaded(scenario: Scenario, path: str, value: str) -> bool:
    """Whether the program of ``scenario`` can hold weights, or its cache, like this."""
    engine = "transformers" if scenario.task == "training" else scenario.inference.engine
    if path in ("inference.weight_format", "training.base_format"):
        scheme = SCHEMES.get(value)
        return scheme is None or engine in scheme.engines
    if path == "inference.kv_cache_format":
        return engine in CACHE_FORMATS[value].engines
    return True


def own_kernel(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """PyTorch's choice of the attention kernel, where another was forced."""
    path = "training.sdpa_backend"
    if BY_PATH[path].applies(scenario) and get(scenario, path) != "auto":
        yield Proposal((change(scenario, path, "auto"),))


def newer_kernels(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """A PyTorch whose kernels take query heads that share keys and values."""
    path, model = "training.torch_version", scenario.model
    grouped = model.num_key_value_heads < model.num_attention_heads
    if grouped and BY_PATH[path].applies(scenario) and get(scenario, path) == "2.13":
        yield Proposal((change(scenario, path, "2.14"),))


def all_of_it(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """What is done in part done throughout: states on the CPU, layers checkpointed."""
    for path, whole in _WHOLE.items():
        if BY_PATH[path].applies(scenario) and get(scenario, path) != whole:
            yield Proposal((change(scenario, path, whole),))


_WHOLE: Mapping[str, float | int | None] = {
    "training.offload_optimizer": 1.0,
    "training.checkpoint_every": 1,
    "training.checkpoint_layers": None,
}


def no_dropout(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """Dropout without masks to keep."""
    for path in ("training.dropout", "training.lora.dropout"):
        if BY_PATH[path].applies(scenario) and get(scenario, path) != 0.0:
            yield Proposal((change(scenario, path, 0.0),))


def fewer_weights(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """Training less than every weight, and adapters on a base of fewer bits."""
    path = "training.method"
    if not BY_PATH[path].applies(scenario):
        return
    for other in other_choices(scenario, BY_PATH[path]):
        if other.new == "full":
            continue
        yield Proposal((other,))
        adapters = apply(scenario, (other,))
        base = BY_PATH["training.base_format"]
        if base.applies(adapters):
            narrow = next((choice for choice in base.choices if (bits_of(choice.value) or 16) < 6), None)
            if narrow is not None:
                yield Proposal((other, change(scenario, base.path, narrow.value)), _on_base(other, narrow))


def _on_base(method: Change, base: Choice) -> Said:
    choice = BY_PATH[method.path].choice(method.new)
    label = choice.label if choice is not None else str(method.new)
    words: dict[str, str | tuple[str, str]] = {"method": ("fields", label), "format": ("fields", base.label)}
    return Said(QT_TRANSLATE_NOOP("ways", "{method} on a base in {format}"), words=words, context="ways")


def smaller_adapters(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """The usual adapters in place of more, and the largest rank that fits."""
    if not BY_PATH["training.lora.rank"].applies(scenario):
        return
    usual = usual_targets(scenario.model)
    present: tuple[str, ...] = get(scenario, "training.lora.target_modules")
    if "all-linear" in present or not set(present) <= set(usual):
        yield Proposal((change(scenario, "training.lora.target_modules", usual),))
    yield from _largest("training.lora.rank", None, scenario, means)


def smaller_steps(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """A smaller micro batch with as much more accumulation: the largest that fits, or one."""
    size: int = get(scenario, _BATCH)
    if scenario.task != "training" or size == 1:
        return
    accumulates = BY_PATH[_STEPS].applies(scenario)
    steps: int = get(scenario, _STEPS)
    title = Said(QT_TRANSLATE_NOOP("ways", "Smaller micro batch, more accumulation"), context="ways")
    found: Proposal | None = None
    for smaller in _divisors_below(size):
        changes: tuple[Change, ...] = (change(scenario, _BATCH, smaller),)
        if accumulates:
            changes = (*changes, change(scenario, _STEPS, steps * (size // smaller)))
        found = Proposal(changes, title if accumulates else None)
        if means.is_enough(scenario, changes):
            break
    if found is not None:
        yield found


_BATCH = "training.micro_batch_size"
_STEPS = "training.gradient_accumulation_steps"


def _divisors_below(size: int) -> list[int]:
    """The divisors of ``size`` below it, largest first, one for each halving at most."""
    found: list[int] = []
    for divisor in range(min(size // 2, 4096), 0, -1):
        if size % divisor == 0 and (not found or divisor <= found[-1] // 2 or divisor == 1):
            found.append(divisor)
    return found


def one_step(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """No accumulation, so that no gradients lie beside the activations."""
    if BY_PATH[_STEPS].applies(scenario) and get(scenario, _STEPS) > 1:
        title = Said(QT_TRANSLATE_NOOP("ways", "One micro batch a step"), context="ways")
        yield Proposal((change(scenario, _STEPS, 1),), title)


def shorter(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """The longest sequences, and the most of them, that fit."""
    if scenario.task == "training":
        title = Said(QT_TRANSLATE_NOOP("ways", "Shorter sequences"), context="ways")
        yield from _largest("training.sequence_length", title, scenario, means)
        return
    fewer = Said(QT_TRANSLATE_NOOP("ways", "Fewer sequences at once"), context="ways")
    prompts = Said(QT_TRANSLATE_NOOP("ways", "Shorter prompts"), context="ways")
    answers = Said(QT_TRANSLATE_NOOP("ways", "Shorter answers"), context="ways")
    yield from _largest("inference.batch_size", fewer, scenario, means)
    yield from _largest("inference.prompt_tokens", prompts, scenario, means)
    yield from _largest("inference.generated_tokens", answers, scenario, means)


def smaller_buffers(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """Smaller batches inside the engine, which no request is asked about."""
    for path, smaller in _BUFFERS:
        if BY_PATH[path].applies(scenario):
            present: int | None = get(scenario, path)
            for value in smaller:
                if present is None or value < present:
                    yield Proposal((change(scenario, path, value),))


_BUFFERS = (
    ("inference.max_num_batched_tokens", (2048,)),
    ("inference.max_num_seqs", (64,)),
    ("inference.n_ubatch", (256, 128)),
)


def host_layers(scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """Layers, or experts of layers, on the host: as few as are enough."""
    layers = scenario.model.num_hidden_layers
    path = "inference.n_cpu_moe"
    if BY_PATH[path].applies(scenario):
        present: int = get(scenario, path)
        fewest = _fewest(scenario, path, present + 1, layers, means)
        if fewest is not None:
            yield Proposal((change(scenario, path, fewest),))
    path = "inference.n_gpu_layers"
    if BY_PATH[path].applies(scenario):
        held: int | None = get(scenario, path)
        largest = solve(scenario, path, means.ask, surely_fits, 0).largest
        if largest is not None and largest < (layers + 1 if held is None else held):
            yield Proposal((change(scenario, path, largest),))


def _fewest(scenario: Scenario, path: str, low: int, high: int, means: Means) -> int | None:
    """The least value from ``low`` to ``high`` that surely fits, where more needs less."""

    def is_enough(value: int) -> bool:
        return means.is_enough(scenario, (change(scenario, path, value),))

    if low > high or not is_enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return high


def _largest(path: str, title: Said | None, scenario: Scenario, means: Means) -> Iterator[Proposal]:
    """The largest value below the present one that surely fits; nothing where there is none."""
    if not BY_PATH[path].applies(scenario):
        return
    least = int(BY_PATH[path].minimum or 0)
    if not means.may_do(scenario, (change(scenario, path, least),)):
        return
    largest = solve(scenario, path, means.ask, surely_fits, 0).largest
    present: int = get(scenario, path)
    if largest is not None and largest < present:
        yield Proposal((change(scenario, path, largest),), title)


RULES: tuple[Rule, ...] = (
    choices,
    own_kernel,
    newer_kernels,
    all_of_it,
    no_dropout,
    smaller_steps,
    one_step,
    larger_share,
    smaller_buffers,
    host_layers,
    larger_device,
    more_devices,
    fewer_weights,
    smaller_adapters,
    shorter,
)

LESSENING: tuple[Rule, ...] = (smaller_adapters, shorter)
"""Rules that do less, just as much less as is needed."""

ALWAYS: Mapping[Rule, str] = {
    smaller_steps: "training.micro_batch_size",
    larger_device: "device.memory_bytes",
    more_devices: "device.count",
}
"""A field that every proposal of a rule changes, where another change of it came before."""

REACHING: tuple[Rule, ...] = (host_layers, larger_device, more_devices, *LESSENING)
"""Rules that go as far as is needed: where they can be enough, they are enough alone."""
