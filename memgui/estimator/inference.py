"""Serving with ``transformers``' generate: the prompt in one pass, then token by token.

Weights and cache stay; a pass adds its working set.  The head computes the logits of the last token
of each sequence only.  Decoding is looked at on its last token, where the cache is longest; each
layer's cache is copied to append a token, so old and new lie side by side for one layer at a time.

Before 4.45 the head computed the logits of the whole prompt, which lived on through the pass of the
first token, and a pass made new tuples of keys and values while the old ones lived.

Since 4.50 weights are carved out of one block that is filled before they are loaded
(``caching_allocator_warmup``), so that no large one is rounded up to 2 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

import msgspec

from memgui.estimator.account import account
from memgui.estimator.moments import LOAD, SERVING, Amount, Overhead, amount_of, moment
from memgui.estimator.once import once
from memgui.estimator.overhead import BLOCK, block_bytes
from memgui.estimator.points import Point
from memgui.estimator.program import Program, compiled
from memgui.estimator.quantisation import WHOLE, Share, matrix, scheme_of
from memgui.estimator.result import Moment
from memgui.estimator.run import Floor, Found, Held, Run, batch_input, monomial_values, operator_at
from memgui.estimator.search import Highest, measured
from memgui.estimator.skyline import Way
from memgui.estimator.stages import cached, on_stage, way
from memgui.estimator.stock import Stock
from memgui.estimator.symbols import INFERENCE
from memgui.estimator.tape import Tensor
from memgui.estimator.walk import Walk, walk_of
from memgui.spec.formats import SCHEMES, WeightScheme
from memgui.spec.messages import QT_TRANSLATE_NOOP, Message
from memgui.spec.scenario import Scenario

STAGES = {"loss": "head"}
"""Names of points that serving calls otherwise."""

CARVED = "5.24"
"""The version that takes weights out of one block."""

NEAR: Final = 50
"""Peaks that differ by less than this part may change places when blocks are counted."""


class Pass:
    """One pass (``walk``), and what the cache holds before and after it.

    ``beside``: what the pass before left that is still referred to.
    """

    def __init__(
        self, name: str, scenario: Scenario, program: Program, beside: Sequence[Tensor] = ()
    ) -> None:
        self.name = name
        self.scenario = scenario
        self.program = program
        self.inputs = [*_inputs(program, scenario.inference.linear_causal_mask), *beside]
        there = measured(program, tuple(monomial_values(scenario, program, INFERENCE)))
        self.numbers, self.tensors = there.numbers, there.tensors
        self.walk = walk_of(program)
        self.heights = there.heights(self.walk)
        self.input_sizes = [self.numbers.of(tensor) for tensor in self.inputs]

    def cached(self, *, before: bool = False) -> int:
        """Bytes of all layers' caches after the pass, or ``before`` it."""
        return self.numbers.bytes(self.walk.cache(before=before))


def _inputs(program: Program, by_row: bool) -> list[Tensor]:
    """What a pass is given; generating holds the ids and the mask of all tokens so far.

    gpt-fast holds a table of all positions, and a mask of every pair of tokens there will be, or only the
    rows that a pass needs (``by_row``).
    """
    if program.options.ahead:
        rows = ("s" if not program.options.decode else 1) if by_row else "t"
        mask = batch_input(program, "causal mask", (rows, "t"), 1)
        table = batch_input(program, "rotary table", ("P", "p"), 2)
        return [mask, table, batch_input(program, "token ids", ("b", "t"), 4)]
    if program.model.is_decoder and not program.model.num_encoder_layers:
        length = "t" if program.options.decode else "s"
        return [batch_input(program, name, ("b", length)) for name in ("token ids", "attention mask")]
    return [batch_input(program, one.name, one.dims, one.width) for one in program.inputs]


class InferenceRun(Run):
    """A serving scenario's programs (prompt and decoding) with its workload put in.

    ``share``: what one of several devices has of the model, and so runs.
    """

    def __init__(self, scenario: Scenario, program: Program, share: Share = WHOLE) -> None:
        self.scenario = scenario
        self.program = program
        self.share = share
        scheme = scheme_of(scenario)
        self.account = account(program, scheme=scheme)
        if share is not WHOLE:
            self.account = on_stage(self.account, program, scheme, share)
        self.prefill = Pass("prefill", scenario, program)
        self.numbers = self.prefill.numbers
        self.values = self.numbers.values
        self.passes = [self.prefill]
        inference = scenario.inference
        if inference.generated_tokens and scenario.model.is_decoder:
            if program.options.whole_logits:
                self.passes.append(self._first_token())
            self.passes.append(Pass("decode", scenario, self._decoding()))
        self.weight_excess = self.account.weight_excess
        if inference.engine == "transformers" and inference.transformers_version == CARVED:
            self.weight_excess = _carved(program, scheme, share)

    def _first_token(self) -> Pass:
        """The first token's pass, with the prompt's logits still there."""
        decoding = self._decoding()
        logits = batch_input(
            decoding,
            "logits of the prompt",
            ("b", "s", "Vo" if self.scenario.model.output_vocab_size else "V"),
            4,
        )
        return Pass("first_token", _generating(self.scenario, 1), decoding, (logits,))

    def _decoding(self) -> Program:
        return compiled(
            self.scenario.model, msgspec.structs.replace(self.program.options, decode=True, masked=False)
        )

    def one_more(self) -> Pass:
        """The pass of a single token after the prompt."""
        return Pass("decode", _generating(self.scenario, 1), self._decoding())

    def inputs_and_weights(self, part: Pass) -> Amount:
        """What lies still during a pass, the cache apart."""
        a = self.account
        sizes = part.input_sizes if self.share.stem else ()
        return Amount(
            {"weights": a.weight_bytes, "activations": sum(sizes)},
            self.weight_excess + sum(block_bytes(size) - size for size in sizes),
        )

    def cache(self, walk: Walk, *, before: bool = False) -> Stock:
        """What the caches hold here after a pass, or ``before`` it."""
        if self.share is WHOLE:
            return walk.cache(before=before)
        return cached(walk, self.share, before=before)

    def forward(self, walk: Walk) -> Sequence[Point]:
        """The points of a pass here."""
        return self.way(walk).points

    def way(self, walk: Walk) -> Way:
        """The way that they are on."""
        return walk.way_forward if self.share is WHOLE else way(walk, self.share)

    def persistent(self) -> int:
        if self.program.options.ahead:
            return self.account.weight_bytes + self.prefill.cached() + sum(self.prefill.input_sizes)
        return self.account.weight_bytes

    def floors(self) -> tuple[Floor, ...]:
        return ({"weights": self.account.weight_bytes},)

    def doubt(self, found: Found) -> int:
        """gpt-fast makes its table of all positions in fp32 and complex numbers, which may stay reserved."""
        if not self.program.options.ahead:
            return 0
        count = self.program.sizes.count
        return 10 * count(("P", "p"))

    def scratch(self) -> int:
        """Room for the largest matrix, unpacked, which AutoGPTQ's 4-bit kernels keep."""
        inference = self.scenario.inference
        if inference.transformers_version == CARVED or "gptq_int4" not in inference.weight_format:
            return 0
        return _largest_matrix(self.program, inference.weight_format)

    def assumptions(self) -> tuple[Message, ...]:
        if self.share is WHOLE:
            return ()
        if self.share.tensor > 1:
            text = QT_TRANSLATE_NOOP(
                "messages", "Each of {count} devices has a part of every layer, and the embedding whole."
            )
            return (Message(text, {"count": self.share.tensor}),)
        text = QT_TRANSLATE_NOOP(
            "messages",
            "Layers {first} to {last} of {layers}: the fullest device, as device_map='auto' places them.",
        )
        layers = self.scenario.model.num_hidden_layers
        first, last = self.share.start, (self.share.stop or layers) - 1
        return (Message(text, {"first": first, "last": last, "layers": layers}),)

    def extra(self) -> dict[str, int]:
        """What the cache holds at the end, and what one more token of one sequence adds to it."""
        if not self.scenario.model.is_decoder:
            return {}
        inference = self.scenario.inference
        if self.program.options.static or self.program.options.cache_format:
            held = self.passes[-1].cached()
            tokens = inference.batch_size * (inference.prompt_tokens + inference.generated_tokens)
            return {"kv_bytes_per_token": held // tokens, "kv_cache_bytes": held}
        last = self.passes[-1] if len(self.passes) > 1 else self.one_more()
        held, before = last.cached(), last.cached(before=True)
        return {
            "kv_bytes_per_token": (held - before) // inference.batch_size,
            "kv_cache_bytes": held if len(self.passes) > 1 else before,
        }

    def most(self) -> int:
        return self.account.weight_bytes + (0 if self._highest is None else self._highest[1].bytes)

    @once
    def _highest(self) -> tuple[Pass, Highest] | None:
        """The pass with the peak, and where that is."""
        best: tuple[Pass, Highest] | None = None
        for part in self.passes:
            rest = part.numbers.bytes(self.cache(part.walk, before=True))
            rest += sum(part.input_sizes) if self.share.stem else 0
            floor = 0 if best is None else best[1].bytes - self._near(best[1]) + 1
            found = part.heights.highest_on(self.way(part.walk), rest, floor=floor)
            if found is not None and (best is None or self._is_above((part, found), best)):
                best = part, found
        return best

    def _near(self, best: Highest) -> int:
        return (self.account.weight_bytes + best.bytes) // NEAR

    def _is_above(self, other: tuple[Pass, Highest], best: tuple[Pass, Highest]) -> bool:
        """Whether another pass's peak is higher; what blocks add decides where they are nearly as high."""
        if other[1].bytes - best[1].bytes > self._near(best[1]):
            return True
        there, here = (self._found(part, found) for part, found in (other, best))
        return _with_blocks(there) > _with_blocks(here)

    def peak(self) -> Found:
        if self._highest is None:  # a device without layers
            return self._idle()
        part, found = self._highest
        return self._found(part, found)

    def _idle(self) -> Found:
        base = self.inputs_and_weights(self.prefill)
        return Found("load", "load", LOAD, base, Amount({}, 0), dict, -1, "")

    def _found(self, part: Pass, best: Highest) -> Found:
        point, offset = best.point, best.offset
        whole = point.whole(best.spot, best.stop, offset).grown(self.cache(part.walk, before=True))
        stage = f"{part.name}.{STAGES.get(point.key, point.key)}"
        layer = point.start + offset if point.start >= 0 else -1
        base = self.inputs_and_weights(part)
        return Found(
            stage + (f".{layer}" if layer >= 0 else ""),
            stage,
            SERVING[stage],
            base,
            amount_of(whole, part.tensors),
            partial(part.tensors.bag, whole),
            layer,
            operator_at(best.spot, best.stop),
        )

    def _part(self, found: Found) -> Pass:
        name = found.stage.partition(".")[0]
        return next((part for part in self.passes if part.name == name), self.prefill)

    def values_of(self, found: Found) -> Sequence[int]:
        return self._part(found).numbers.values

    def program_of(self, found: Found) -> Program:
        return self._part(found).program

    def scenario_of(self, found: Found) -> Scenario:
        return self._part(found).scenario

    def held(self, found: Found) -> Held:
        a = self.account
        part = self._part(found)
        return {
            "weights": [*a.weights, *a.buffers],
            "activations": [(tensor, 1) for tensor in part.inputs if self.share.stem],
        }

    def moments(self, overhead: Overhead) -> Iterator[Moment]:
        a = self.account
        load = Amount({"weights": a.weight_bytes}, self.weight_excess)
        yield moment("load", "load", LOAD, load, overhead)
        for part in self.passes:
            walk = part.walk
            before = self.inputs_and_weights(part)
            base = before.plus(amount_of(self.cache(walk, before=True), part.tensors))
            for point in self.forward(walk):
                amount = base.plus(amount_of(part.heights.whole(point), part.tensors))
                slope = amount_of(point.inside.slope, part.tensors)
                operator = operator_at(*part.heights.top(point))
                stage = f"{part.name}.{STAGES.get(point.key, point.key)}"
                for offset in range(point.count):
                    layer = point.start + offset if point.start >= 0 else -1
                    key = stage + (f".{layer}" if layer >= 0 else "")
                    yield moment(
                        key, stage, SERVING[stage], amount.plus(slope, offset), overhead, layer, operator
                    )
            after = before.plus(amount_of(self.cache(walk), part.tensors))
            stage = f"after_{part.name}"
            yield moment(stage, stage, SERVING[stage], after, overhead)


def _with_blocks(found: Found) -> int:
    """The bytes of all blocks."""
    whole = found.base.plus(found.amount)
    return whole.bytes + whole.excess


def _generating(scenario: Scenario, tokens: int) -> Scenario:
    inference = msgspec.structs.replace(scenario.inference, generated_tokens=tokens)
    return msgspec.structs.replace(scenario, inference=inference)


@lru_cache(maxsize=64)
def _carved(program: Program, scheme: WeightScheme | None, share: Share) -> int:
    """What blocks of whole 512 bytes add to the weights."""
    held = account(program, scheme=scheme)
    if share is not WHOLE:
        held = on_stage(held, program, scheme, share)
    return sum(-thing.coefficient % BLOCK * count for thing, count in (*held.weights, *held.buffers))


@lru_cache(maxsize=64)
def _largest_matrix(program: Program, weight_format: str) -> int:
    """Bytes of the largest matrix that a format packs, in 16 bits."""
    parts = SCHEMES[weight_format].parts
    found = (
        matrix(parameter)
        for weights, _ in program.weights()
        for parameter in weights
        if parameter.part in parts
    )
    return max((2 * one.rows * one.columns for one in found if one is not None), default=0)
