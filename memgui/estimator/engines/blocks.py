"""A pool of cache blocks: what a sequence takes of it, and how many fit (vLLM's KV cache manager)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from memgui.estimator.engines import told
from memgui.estimator.engines.cache import Keys, State, layers
from memgui.estimator.engines.settings import batched_tokens, is_v0, length, padded
from memgui.estimator.engines.sheet import Factor, Term, explained
from memgui.estimator.quantisation import Share
from memgui.estimator.result import Derivation, Node
from memgui.spec.formats import CacheFormat, cache_format
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

EXPANDED = 256
"""Elements to which vLLM before 0.7 filled each head's keys and values, of models with latent attention."""


class Group(NamedTuple):
    """Layers that need the same blocks: ``layers`` of them, a page each of ``page`` bytes for every block.

    ``window`` tokens are held (0: all).  ``state`` groups take ``held`` blocks a sequence, however long
    it is: one, and with prefix caching and drafts one more and one for each token of a draft.
    ``layer`` is what each of them keeps.
    """

    layers: int
    page: int
    block: int
    window: int = 0
    state: bool = False
    held: int = 1
    layer: Keys | State | None = None

    def blocks(self, tokens: int, batched: int) -> int:
        """Blocks that a sequence of ``tokens`` takes at most while prompts run in chunks of ``batched``."""
        if self.state:
            return self.held
        if not self.window:
            return -(-tokens // self.block)
        return -(-min(self.window - 1 + batched, tokens) // self.block) + 1


class Filled(NamedTuple):
    """What a pool of a given size holds."""

    blocks: int
    tokens: int
    concurrency_percent: int
    longest: int

    @property
    def concurrency(self) -> int:
        """Whole sequences of the scenario's length at once."""
        return self.concurrency_percent // 100


class Pool(NamedTuple):
    """The groups of a model's layers on one of ``degree`` ranks, and what the scenario's sequences take."""

    groups: tuple[Group, ...]
    sequences: int
    length: int
    batched: int
    degree: int = 1

    @property
    def block_bytes(self) -> int:
        """Bytes of one block: a page of each layer of a group, all groups alike."""
        return max((group.layers * group.page for group in self.groups), default=0)

    @property
    def sequence_blocks(self) -> int:
        """Blocks of one sequence of full length, over all groups."""
        return sum(group.blocks(self.length, self.batched) for group in self.groups)

    @property
    def needed(self) -> int:
        """Bytes of the scenario's sequences."""
        return self.sequences * self.sequence_blocks * self.block_bytes

    @property
    def token_bytes(self) -> int:
        """Bytes that one more token takes in layers that look back on all of them."""
        return sum(group.layers * group.page // group.block for group in self.groups if not _fixed(group))

    @property
    def state_bytes(self) -> int:
        """Bytes of a sequence's states, however long it is."""
        return sum(group.layers * group.page for group in self.groups if group.state)

    def filled(self, size: int) -> Filled:
        """What fits into ``size`` bytes."""
        if not self.groups:
            return Filled(0, 0, 0, 0)
        blocks = size // self.block_bytes
        growing = [group for group in self.groups if not _fixed(group)]
        block = min(group.block for group in self.groups)
        tokens = blocks // len(self.groups) * block
        return Filled(
            blocks, tokens, 100 * blocks // max(self.sequence_blocks, 1), self._longest(blocks, growing)
        )

    def _longest(self, blocks: int, growing: list[Group]) -> int:
        """The longest sequence that a pool of ``blocks`` holds alone."""
        if not growing:
            return 0
        low, high = 0, blocks * max(group.block for group in growing)
        while low < high:
            middle = (low + high + 1) // 2
            if sum(group.blocks(middle, self.batched) for group in self.groups) <= blocks:
                low = middle
            else:
                high = middle - 1
        return low

    def node(self, scenario: Scenario, source: str) -> Node:
        """The node of the scenario's sequences, group by group."""
        text = QT_TRANSLATE_NOOP(
            "estimator", "Whole blocks of the pool that the sequences take at their full length."
        )
        page = Factor(
            "B",
            self.block_bytes,
            QT_TRANSLATE_NOOP("symbols", "bytes of a block over its layers"),
            told=partial(self._block, scenario),
        )
        nodes: list[Node] = []
        alike: dict[tuple[str, int], list[int]] = {}
        for index, group in enumerate(self.groups):
            alike.setdefault((_label(group), group.blocks(self.length, self.batched)), []).append(index)
        for (named, number), indices in alike.items():
            group, index = self.groups[indices[0]], indices[0]
            blocks = Factor(
                "n",
                number,
                QT_TRANSLATE_NOOP("symbols", "blocks of a sequence"),
                told=partial(self._taken, scenario, group, number),
            )
            held = told.sequences(scenario)
            term: Term = (held, page) if group.state and number == 1 else (held, blocks, page)
            if len(indices) > 1:
                grouped = QT_TRANSLATE_NOOP("symbols", "groups of layers")
                term = (Factor("g", len(indices), grouped, "model.layer_types"), *term)
            key = f"recurrent{index}" if group.state else f"window{index}" if group.window else f"keys{index}"
            nodes.append(explained(key, named, (term,), source, text))
        label = QT_TRANSLATE_NOOP("estimator", "KV cache")
        if len(nodes) == 1:
            return explained("kv_cache", label, (term,), source, text)
        return Node("kv_cache", label, 0, tuple(nodes))

    def _block(self, scenario: Scenario) -> Derivation:
        """How the bytes of a block come about: of the layers whose page is the largest."""
        kept = cache_format(scenario.inference.kv_cache_format)
        for group in self.groups:
            if isinstance(group.layer, Keys):
                each = told.token(scenario, group.layer, kept, kept, self.degree, "K")
                if group.page == group.block * each.value:
                    used = (told.layers(group.layers, scenario), _tokens(group), each)
                    return Derivation("L*bs*K", told.symbols(used))
        group = self.groups[0]
        state = Factor(
            "R",
            group.page,
            QT_TRANSLATE_NOOP("symbols", "bytes of a layer's state"),
            told=partial(told.stated_by, group.page, *told.state_fields(scenario.model)),
        )
        return Derivation("L*R", told.symbols((told.layers(group.layers, scenario), state)))

    def _taken(self, scenario: Scenario, group: Group, number: int) -> Derivation:
        """How many blocks a sequence takes."""
        if group.state or group.window:
            window = "sliding_window" if scenario.model.sliding_window else "attention_chunk_size"
            paths = (f"model.{window}", "inference.max_num_batched_tokens", "inference.block_size")
            return told.stated_by(number, *paths)
        used = told.symbols((*told.sequence(scenario), _tokens(group)))
        return Derivation("(s + tg + bs - 1)//bs", used)


def _tokens(group: Group) -> Factor:
    return Factor(
        "bs", group.block, QT_TRANSLATE_NOOP("symbols", "tokens of a block"), "inference.block_size"
    )


def _fixed(group: Group) -> bool:
    return group.state or bool(group.window)


def _label(group: Group) -> str:
    if group.state:
        return QT_TRANSLATE_NOOP("estimator", "Recurrent states")
    if group.window:
        return QT_TRANSLATE_NOOP("estimator", "Keys and values of a window")
    return QT_TRANSLATE_NOOP("estimator", "Keys and values of all tokens")


def pool_of(scenario: Scenario, share: Share) -> Pool:
    """The pool of a device: layers alike are cut into groups of equal size, as vLLM 0.11 does it."""
    inference = scenario.inference
    kept = cache_format(inference.kv_cache_format)
    found = list(_kinds(scenario, share, kept))
    if is_v0(scenario):  # every layer holds every token
        found = _alike(found)
    block = _block(scenario, found)
    return Pool(
        tuple(_grouped(found, block)),
        inference.batch_size,
        length(scenario),
        batched_tokens(scenario),
        share.tensor,
    )


Kind = tuple[Keys | State, int, int]
"""A layer, how many there are, and its bytes (of a token, or of a sequence's state)."""


def _kinds(scenario: Scenario, share: Share, kept: CacheFormat) -> Iterator[Kind]:
    width = 4 if scenario.inference.weight_format == "fp32" else 2
    expanded = is_v0(scenario)
    for layer, count in layers(scenario.model, share.start, share.stop):
        if isinstance(layer, Keys):
            if layer.latent and expanded:
                layer = Keys(scenario.model.num_attention_heads, EXPANDED, EXPANDED)
            yield layer, count, layer.bytes_for(kept, kept, share.tensor)
        else:
            columns = max(layer.kernel - 1, 0)
            carried = 4 if layer.wide else width
            size = (layer.channels * columns * width + layer.state * carried) // share.tensor
            if size:  # a convolution of one token carries nothing on
                yield layer, count, size


def _alike(kinds: list[Kind]) -> list[Kind]:
    merged: dict[tuple[Keys | State, int], int] = {}
    for layer, count, size in kinds:
        whole = layer._replace(window=0) if isinstance(layer, Keys) else layer
        merged[whole, size] = merged.get((whole, size), 0) + count
    return [(layer, count, size) for (layer, size), count in merged.items()]


def _block(scenario: Scenario, kinds: list[Kind]) -> int:
    """Tokens of a block: with states, as many as make a page of attention as large as a state."""
    block = scenario.inference.block_size
    states = [size for layer, _, size in kinds if isinstance(layer, State)]
    tokens = [size for layer, _, size in kinds if isinstance(layer, Keys)]
    if not states or not tokens:
        return block
    return padded(-(-max(states) // min(tokens)), block)


def _grouped(kinds: list[Kind], block: int) -> Iterator[Group]:
    if not kinds:
        return
    page = max(
        (block * size if isinstance(layer, Keys) else size for layer, _, size in kinds),
    )
    size = min(count for _, count, _ in kinds)
    for layer, count, _ in kinds:
        for _ in range(-(-count // size)):
            window = layer.window if isinstance(layer, Keys) else 0
            yield Group(size, page, block, window, isinstance(layer, State), layer=layer)
