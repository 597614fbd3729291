"""llama.cpp: model buffers, a cache in cells, recurrent slots and one compute buffer on each device.

Everything is allocated when the context is made and stays.  The token embedding and what does not fit
on the devices lie on the host; layers are split among devices in order, or matrices by rows.  Rules:
llama.cpp b11434 (llama-model.cpp, llama-kv-cache*.cpp, llama-memory-recurrent.cpp), measured with its
own code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

from memgui.estimator.engines import told
from memgui.estimator.engines.cache import Keys, Layer, State, layers
from memgui.estimator.engines.ggml_graph import Compute, compute_buffer
from memgui.estimator.engines.layout import require_layout
from memgui.estimator.engines.rows import Listed, is_matrix, on_device, splits
from memgui.estimator.engines.settings import cells, length, physical_batch, step, window_cells
from memgui.estimator.engines.sheet import Factor, Line, Stage, Term, estimated, explained, ranged
from memgui.estimator.engines.weights import Model, loaded, model_of, weights_node
from memgui.estimator.loose import stated
from memgui.estimator.options import capability
from memgui.estimator.overhead import Range, context
from memgui.estimator.quantisation import WHOLE, Share
from memgui.estimator.result import Estimate, Node, Rank
from memgui.estimator.state import State as Piece
from memgui.estimator.tape import Parameter
from memgui.spec.formats import CacheFormat, cache_format
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

CACHE_SOURCE: Final = QT_TRANSLATE_NOOP("sources", "llama.cpp b11434: llama-kv-cache.cpp, its iswa variant")
STATE_SOURCE: Final = QT_TRANSLATE_NOOP("sources", "llama.cpp b11434: llama-memory-recurrent.cpp")
GRAPH_SOURCE: Final = QT_TRANSLATE_NOOP("sources", "llama.cpp b11434: llama-graph.cpp, ggml-alloc.c")
OLLAMA_RESERVE: Final = 457 << 20
"""What ollama leaves free on each device (ml/device.go, MinimumMemory)."""

LOAD = QT_TRANSLATE_NOOP("messages", "Model loaded")
CONTEXT = QT_TRANSLATE_NOOP("messages", "Context made: cache and compute buffer stay from here on")


class Place(NamedTuple):
    """One device and the layers on it; ``head``: the output layer too."""

    device: int
    start: int
    stop: int
    head: bool


class Loaded(NamedTuple):
    """One device with what lies on it."""

    place: Place
    weights: Node
    cache: Node
    compute: Compute
    token_bytes: int

    @property
    def bytes(self) -> int:
        """Everything llama.cpp allocates there."""
        return self.weights.bytes + self.cache.bytes + self.compute.bytes


def _devices(scenario: Scenario) -> int:
    return max(scenario.parallelism.pipeline, scenario.parallelism.tensor)


def places(scenario: Scenario) -> list[Place]:
    """Where the layers go: the last ``n_gpu_layers`` (the output layer is the last of all) on the devices.

    Devices are taken to be alike, so each gets an equal share of the layers, in order.
    """
    count, devices = scenario.model.num_hidden_layers, _devices(scenario)
    wanted = scenario.inference.n_gpu_layers
    placed = count + 1 if wanted is None else min(wanted, count + 1)
    first = count + 1 - placed
    bounds = [first - (-placed * index // devices) for index in range(devices + 1)]
    return [
        Place(index, min(start, count), min(stop, count), placed > 0 and stop == count + 1)
        for index, (start, stop) in enumerate(pairwise(bounds))
    ]


def serve(scenario: Scenario) -> Estimate:
    """What llama.cpp holds on the fullest device; raises ``NotCovered``."""
    both = splits(scenario) and scenario.parallelism.pipeline > 1
    rows = scenario.inference.engine == "llama.cpp" and not both
    require_layout(scenario, "pipeline", *(("tensor",) if rows else ()))
    model = model_of(scenario)
    everywhere = places(scenario)
    devices = [loaded_on(scenario, model, place, everywhere) for place in everywhere]
    worst = max(devices, key=lambda device: device.bytes)
    chip = capability(scenario.device.compute_capability)
    beside = _context(context(chip))
    weights = Line("weights", worst.weights)
    held = (
        weights,
        Line("kv_cache", worst.cache),
        Line("temporary", _compute(scenario, worst.compute)),
        beside,
    )
    stages = (
        Stage("load", LOAD, (weights, beside)),
        Stage("decode", CONTEXT, held, worst.compute.operator),
    )
    inference = scenario.inference
    ollama = inference.engine == "ollama"
    capacity = scenario.device.memory_bytes - (OLLAMA_RESERVE if ollama else 0)
    on_devices = sum(device.weights.bytes for device in devices)
    whole = loaded(scenario, model.program, WHOLE).bytes
    twice = _tied_bytes(scenario, model) if any(device.place.head for device in devices) else 0
    free = min(capacity - device.bytes - beside.node.bytes for device in devices)
    return estimated(
        scenario,
        ("Ollama, " if ollama else "") + f"llama.cpp {inference.llama_cpp_version}",
        model.parameters,
        stages,
        capacity,
        extra={
            "kv_bytes_per_token": sum(device.token_bytes for device in devices),
            "n_ctx": cells(scenario),
            "kv_cache_bytes": sum(device.cache.bytes for device in devices),
            "host_bytes": whole - (on_devices - twice),
            "compute_buffer_bytes": worst.compute.bytes,
            "free_bytes": free,
            "pool_tokens": max(0, cells(scenario) + _more_tokens(devices, capacity, beside.node.bytes)),
            "max_concurrency": _sequences(scenario, devices, capacity, beside.node.bytes),
        },
        ranks=tuple(Rank(str(device.place.device), device.bytes + beside.node.bytes) for device in devices),
        assumptions=_assumed(scenario),
    )


def _more_tokens(devices: list[Loaded], capacity: int, beside: int) -> int:
    """Tokens that the free (or missing) bytes of the devices are worth; the tightest decides."""
    room = [
        (capacity - device.bytes - beside) // device.token_bytes for device in devices if device.token_bytes
    ]
    return min(room, default=0)


def _sequences(scenario: Scenario, devices: list[Loaded], capacity: int, beside: int) -> int:
    """Sequences of the scenario's length that fit, from the cache's share of each."""
    sequences = scenario.inference.batch_size
    found = []
    for device in devices:
        each = device.cache.bytes // sequences
        if each:
            found.append((capacity - beside - device.bytes + device.cache.bytes) // each)
    return max(0, min(found, default=0))


def loaded_on(scenario: Scenario, model: Model, place: Place, everywhere: list[Place]) -> Loaded:
    """What lies on one of the devices of ``everywhere``."""
    share = Share(
        start=place.start,
        stop=place.stop,
        stem=False,
        tail=place.head,
        experts_from=scenario.inference.n_cpu_moe,
    )
    things = list(loaded(scenario, model.program, share).things)
    if place.head and scenario.model.tie_word_embeddings:
        things += _tied(scenario, model)
    if splits(scenario):
        things = _with_rows(scenario, model, place, everywhere, things)
    keys = cache_format(scenario.inference.kv_cache_format)
    values = cache_format(scenario.inference.kv_cache_format_v or scenario.inference.kv_cache_format)
    found = layers(scenario.model, place.start, place.stop)
    return Loaded(
        place,
        weights_node(scenario, model.program, things),
        _cache(scenario, found, keys, values),
        compute_buffer(scenario, place.device, _devices(scenario)),
        sum(
            count * layer.bytes_for(keys, values)
            for layer, count in found
            if isinstance(layer, Keys) and not layer.window
        ),
    )


def _with_rows(
    scenario: Scenario, model: Model, place: Place, everywhere: list[Place], things: list[Listed]
) -> list[Listed]:
    """``things`` without the matrices, and of those on all devices the rows that lie on this one."""
    head = any(one.head for one in everywhere)
    share = Share(
        start=everywhere[0].start,
        stop=everywhere[-1].stop,
        stem=False,
        tail=head,
        experts_from=scenario.inference.n_cpu_moe,
    )
    whole: list[Listed] = list(loaded(scenario, model.program, share).things)
    if head and scenario.model.tie_word_embeddings:
        whole += _tied(scenario, model)
    kept = [(thing, count) for thing, count in things if not is_matrix(thing)]
    return [*kept, *on_device(scenario, whole, place.device)]


def _tied(scenario: Scenario, model: Model) -> list[tuple[Parameter | Piece, int]]:
    """The embedding once more: the output layer has a copy of its own on the device."""
    stem = loaded(scenario, model.program, Share(stop=0, tail=False)).things
    return [
        (thing, count)
        for thing, count in stem
        if _weight(thing).part == "embedding" and _weight(thing).dims[0] == "V"
    ]


def _weight(thing: Parameter | Piece) -> Parameter:
    return thing.of if isinstance(thing, Piece) else thing


def _tied_bytes(scenario: Scenario, model: Model) -> int:
    if not scenario.model.tie_word_embeddings:
        return 0
    return sum(thing.coefficient * count for thing, count in _tied(scenario, model))


def _cache(
    scenario: Scenario, found: tuple[tuple[Layer, int], ...], keys: CacheFormat, values: CacheFormat
) -> Node:
    text = QT_TRANSLATE_NOOP(
        "estimator", "Keys and values of every cell, allocated for the whole context at once."
    )
    every = told.all_cells(scenario, step(scenario))
    nodes: list[Node] = []
    for layer, count in found:
        number = told.layers(count, scenario)
        if isinstance(layer, State):
            nodes.append(_states(scenario, layer, number))
            continue
        size = told.token(scenario, layer, keys, values)
        if layer.window:
            label = QT_TRANSLATE_NOOP("symbols", "cells of the windows' cache")
            held = told.windows(scenario, window_cells(scenario, layer.window), label)
            name = QT_TRANSLATE_NOOP("estimator", "Keys and values of windows")
            nodes.append(explained("windows", name, ((number, held, size),), CACHE_SOURCE, text))
        else:
            name = QT_TRANSLATE_NOOP("estimator", "Keys and values of the whole context")
            nodes.append(explained("keys", name, ((number, every, size),), CACHE_SOURCE, text))
    return Node("kv_cache", QT_TRANSLATE_NOOP("estimator", "KV cache"), 0, tuple(nodes))


def _states(scenario: Scenario, layer: State, number: Factor) -> Node:
    slots = Factor(
        "b",
        scenario.inference.batch_size,
        QT_TRANSLATE_NOOP("symbols", "slots, one for each sequence"),
        "inference.batch_size",
    )
    channels, columns, carried = told.state_factors(scenario, layer)
    terms: list[Term] = [(number, slots, channels, columns, 4), (number, slots, carried, 4)]
    return explained(
        "recurrent",
        QT_TRANSLATE_NOOP("estimator", "Recurrent states"),
        terms,
        STATE_SOURCE,
        QT_TRANSLATE_NOOP("estimator", "The state of each recurrent layer in fp32, whatever the length."),
    )


def _compute(scenario: Scenario, found: Compute) -> Node:
    """The compute buffer: what is alive at its fullest, and the gaps between."""
    terms: list[Term] = [buffer.term for buffer in found.alive]
    text = QT_TRANSLATE_NOOP("estimator", "The tensors alive at the fullest moment of a physical batch.")
    label = QT_TRANSLATE_NOOP("estimator", "Tensors of the graph")
    recurrent = told.state_fields(scenario.model) if _recurs(scenario) else ()
    alive = explained("tensors", label, terms, GRAPH_SOURCE, text, depends=recurrent)
    gaps = explained(
        "gaps",
        QT_TRANSLATE_NOOP("estimator", "Gaps"),
        ((found.bytes - alive.bytes,),),
        GRAPH_SOURCE,
        QT_TRANSLATE_NOOP("estimator", "Room between tensors that ggml's allocator could not use."),
        depends=("inference.n_ubatch", "inference.flash_attention"),
    )
    return Node("compute_buffer", QT_TRANSLATE_NOOP("estimator", "Compute buffer"), 0, (alive, gaps))


def _recurs(scenario: Scenario) -> bool:
    return any(isinstance(layer, State) for layer, _ in layers(scenario.model))


def _context(known: Range) -> Line:
    node = stated(
        "context",
        QT_TRANSLATE_NOOP("estimator", "CUDA context"),
        known.usual,
        known.source,
        QT_TRANSLATE_NOOP("estimator", "The driver's own memory for each process; known as a range."),
        known,
        depends=("device.compute_capability",),
    )
    return ranged("overhead", node, known)


def _assumed(scenario: Scenario) -> tuple[Message, ...]:
    return (
        Message(
            QT_TRANSLATE_NOOP(
                "messages",
                "{cells} {cells:cell|cells} for {sequences} {sequences:sequence|sequences} of {length} "
                "{length:token|tokens}, {batch} computed at once.",
            ),
            {
                "cells": cells(scenario),
                "sequences": scenario.inference.batch_size,
                "length": length(scenario),
                "batch": physical_batch(scenario),
            },
        ),
    )
