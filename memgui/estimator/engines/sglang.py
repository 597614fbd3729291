"""SGLang: weights and a pool of cache tokens in its static share of the device; the rest is left to run in.

The share that is not static is sized by a rule from the device and the layout; activations, CUDA graphs
and what libraries take have to find room there.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple

from memgui.estimator.engines import told
from memgui.estimator.engines.cache import Keys, layers
from memgui.estimator.engines.layout import require_layout
from memgui.estimator.engines.settings import GIB, length
from memgui.estimator.engines.sheet import Factor, Line, Squeezed, Stage, Term, estimated, explained
from memgui.estimator.engines.vllm import every_rank, ranks
from memgui.estimator.engines.weights import loaded, model_of, weights_node
from memgui.estimator.quantisation import Share
from memgui.estimator.result import Derivation, Estimate, Node
from memgui.spec.formats import cache_format
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

MIB: Final = 1 << 20
SOURCE: Final = QT_TRANSLATE_NOOP(
    "sources", "SGLang 0.5.16 server_args.py, as mirrored in ai-dynamo/aiconfigurator (sglang_backend.py)"
)
POOL_SOURCE: Final = QT_TRANSLATE_NOOP("sources", "SGLang 0.5: one slot of its pool for each token and layer")

LOAD = QT_TRANSLATE_NOOP("messages", "Model loaded")
SERVE = QT_TRANSLATE_NOOP("messages", "Serving all sequences")

TIERS: Final = (
    (20, 2048, 8, 8),
    (35, 2048, 24, 80),
    (60, 4096, 32, 160),
    (160, 8192, 256, 512),
)
"""Below so many GiB: tokens of a chunk; largest batch of a CUDA graph, with four ranks or more."""
LARGEST: Final = (16384, 512, 512)


class Device(NamedTuple):
    """One rank: its weights, and bytes of a token and of a sequence's states in its pool."""

    name: str
    share: Share
    weights: Node
    token_bytes: int
    state_bytes: int


def reserve(scenario: Scenario) -> int:
    """Bytes of a device that SGLang leaves for everything but weights and cache."""
    memory = scenario.device.memory_bytes
    given = scenario.inference.mem_fraction_static
    if given is not None:
        return memory - int(memory * given)
    split = scenario.parallelism
    chunk, few, many = next((tier[1:] for tier in TIERS if memory < tier[0] * GIB), LARGEST)
    graphs = many if split.tensor >= 4 else few
    megabytes = 512 + chunk * 3 // 2 + 1024 * split.tensor * split.pipeline // 8 + 2 * graphs
    if memory > 60 * GIB:
        megabytes = max(megabytes, 10 * 1024)
    return min(megabytes * MIB, memory)


def serve(scenario: Scenario) -> Estimate:
    """What SGLang holds on the worst rank; raises ``NotCovered``."""
    require_layout(scenario, "tensor", "pipeline", "expert")
    inference, memory = scenario.inference, scenario.device.memory_bytes
    model = model_of(scenario)
    devices = [
        Device(
            name,
            share,
            weights_node(scenario, model.program, loaded(scenario, model.program, share).things),
            *_kept(scenario, share),
        )
        for name, share in ranks(scenario)
    ]
    sequences, tokens = inference.batch_size, length(scenario)
    needed = {
        device.name: device.weights.bytes + sequences * (tokens * device.token_bytes + device.state_bytes)
        for device in devices
    }
    worst = max(devices, key=lambda device: needed[device.name])
    kept = reserve(scenario)
    budget = memory - kept
    pool = max(0, min(budget - device.weights.bytes for device in devices))
    weights = Line("weights", worst.weights)
    cached = Line("kv_cache", _cache_node(scenario, worst))
    parts = _parts(pool, worst)
    return estimated(
        scenario,
        "SGLang 0.5",
        model.parameters,
        (Stage("load", LOAD, (weights,)), Stage("decode", SERVE, (weights, cached))),
        budget,
        extra={
            "kv_bytes_per_token": worst.token_bytes,
            "state_bytes_per_sequence": worst.state_bytes,
            "kv_pool_bytes": pool,
            "pool_tokens": max(0, parts.tokens),
            "max_concurrency": parts.sequences(tokens),
            "budget_bytes": budget,
            "outside_budget_bytes": kept,
        },
        squeezed=_squeezed(parts, sequences, tokens),
        ranks=every_rank(scenario, [needed[device.name] for device in devices]),
        assumptions=(
            Message(
                QT_TRANSLATE_NOOP(
                    "messages",
                    "Activations, CUDA graphs and libraries have the {bytes} bytes that SGLang leaves free.",
                ),
                {"bytes": kept},
            ),
        ),
    )


class Parts(NamedTuple):
    """What a pool holds: tokens (-1: as many as one likes) and slots for states (-1: none are needed)."""

    tokens: int
    slots: int

    def sequences(self, tokens: int) -> int:
        """Sequences of so many tokens at once."""
        found = [bound for bound in (self.slots, self.tokens // max(1, tokens)) if bound >= 0]
        return min(found, default=0)


STATES: Final = (9, 19)
"""The share of the pool that states get: 0.9 for each 1 of keys and values (mamba_full_memory_ratio)."""


def _parts(pool: int, device: Device) -> Parts:
    """Models with states have the pool cut in two, once for all."""
    slots = -1
    if device.state_bytes:
        share = pool * STATES[0] // STATES[1] if device.token_bytes else pool
        slots = share // device.state_bytes
        pool -= slots * device.state_bytes
    return Parts(pool // device.token_bytes if device.token_bytes else -1, slots)


def _squeezed(parts: Parts, sequences: int, tokens: int) -> Squeezed | None:
    """All together may have room where one part of the pool has none."""
    if parts.slots < 0 or sequences <= parts.sequences(tokens):
        return None
    text = QT_TRANSLATE_NOOP(
        "messages",
        "SGLang's pool has room for the states of {slots} {slots:sequence|sequences} and {tokens} "
        "{tokens:token|tokens}.",
    )
    return Squeezed("does_not_fit", Message(text, {"slots": parts.slots, "tokens": max(0, parts.tokens)}))


WINDOWED: Final = ("llama4_text", "gpt_oss", "mimo_v2_flash")
"""Models whose window layers have a pool of their own (model_config.py, is_hybrid_swa_model)."""
FOUR_FIFTHS: Final = (4, 5)
"""Tokens that it has for each token of the other layers' pool (swa_full_tokens_ratio, 0.8)."""


def _kept(scenario: Scenario, share: Share) -> tuple[int, int]:
    """Bytes of a token over all layers, and of a sequence's states.

    Layers with windows hold every token; where they have a pool of their own, four of five.  It is the
    other layers' pool that is full first then, as a window is shorter than that.
    """
    inference = scenario.inference
    stored = cache_format(inference.kv_cache_format)
    width = 4 if inference.weight_format == "fp32" else 2
    token = windows = state = 0
    apart = scenario.model.model_type in WINDOWED
    for layer, count in layers(scenario.model, share.start, share.stop):
        if isinstance(layer, Keys):
            size = count * layer.bytes_for(stored, stored, share.tensor)
            if layer.window and apart:
                windows += size
            else:
                token += size
        else:
            columns = max(layer.kernel - 1, 0)
            carried = layer.state * (4 if layer.wide else width)
            state += count * (layer.channels * columns * width + carried) // share.tensor
    few, all_of = FOUR_FIFTHS
    return token + windows * few // all_of if token else windows, state


def _token(scenario: Scenario, share: Share) -> Derivation:
    """How the bytes of a token over all layers come about."""
    stored = cache_format(scenario.inference.kv_cache_format)
    apart = scenario.model.model_type in WINDOWED
    used: list[Factor] = []
    plain: list[str] = []
    windows: list[str] = []
    for layer, count in layers(scenario.model, share.start, share.stop):
        if isinstance(layer, Keys):
            low = str(len(used) // 2) if used else ""
            several = told.layers(count, scenario)._replace(name=f"L{low}")
            used += (several, told.token(scenario, layer, stored, stored, share.tensor, f"B{low}"))
            (windows if layer.window and apart else plain).append(f"L{low}*B{low}")
    few, all_of = FOUR_FIFTHS
    narrow = " + ".join(windows)
    if plain and windows:
        plain.append(f"({narrow})*{few}//{all_of}")
    return Derivation(" + ".join(plain) or narrow or "0", told.symbols(used))


def _cache_node(scenario: Scenario, device: Device) -> Node:
    b, t = told.sequences(scenario), told.tokens(scenario)
    each = Factor(
        "K",
        device.token_bytes,
        QT_TRANSLATE_NOOP("symbols", "bytes of a token over all layers"),
        told=partial(_token, scenario, device.share),
    )
    terms: list[Term] = [(b, t, each)] if device.token_bytes else []
    if device.state_bytes:
        held = Factor(
            "R",
            device.state_bytes,
            QT_TRANSLATE_NOOP("symbols", "bytes of a sequence's states"),
            told=partial(told.stated_by, device.state_bytes, *told.state_fields(scenario.model)),
        )
        terms.append((b, held))
    return explained(
        "kv_cache",
        QT_TRANSLATE_NOOP("estimator", "KV cache"),
        terms,
        POOL_SOURCE,
        QT_TRANSLATE_NOOP("estimator", "Slots of the pool that the sequences take at their full length."),
    )
