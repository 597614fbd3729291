"""Serving with ``transformers``' generate: the prompt in one pass, then token by token.

Weights and cache stay; a pass adds its working set.  In 5.24 the head computes the logits of the
last token of each sequence only.  Decoding is looked at on its last token, where the cache is
longest; each layer's cache is copied to append a token, so old and new lie side by side for one
layer at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from memgui.estimator.account import account
from memgui.estimator.measure import Bag, Bytes, Contents
from memgui.estimator.moments import LOAD, SERVING, Amount, Overhead, amount_of, moment
from memgui.estimator.overhead import block_bytes
from memgui.estimator.program import Program, compiled
from memgui.estimator.quantisation import scheme_of
from memgui.estimator.result import Moment
from memgui.estimator.run import Found, Held, Run, batch_input, monomial_values, operator_at
from memgui.estimator.symbols import INFERENCE
from memgui.estimator.tape import Tensor
from memgui.estimator.training import highest
from memgui.estimator.walk import Walk
from memgui.spec.scenario import Scenario

STAGES = {"loss": "head"}
"""Names of points that serving calls otherwise."""


class Pass:
    """One pass over bytes (``walk``), and what the cache holds before and after it."""

    def __init__(self, name: str, scenario: Scenario, program: Program) -> None:
        self.name = name
        self.program = program
        self.inputs = _inputs(program)
        self.numbers = Bytes(monomial_values(scenario, program, INFERENCE))
        self.walk: Walk[int] = Walk(program, self.numbers)
        self.input_sizes = [self.numbers.of(tensor) for tensor in self.inputs]

    def contents(self) -> Walk[Bag]:
        """The same walk over tensors."""
        return Walk(self.program, Contents(self.numbers), guide=self.walk)


def _inputs(program: Program) -> list[Tensor]:
    """What a pass is given; generating holds the ids and the mask of all tokens so far."""
    if program.model.is_decoder and not program.model.num_encoder_layers:
        length = "t" if program.options.decode else "s"
        return [batch_input(program, name, ("b", length)) for name in ("token ids", "attention mask")]
    return [batch_input(program, one.name, one.dims, one.width) for one in program.inputs]


class InferenceRun(Run):
    """A serving scenario's programs (prompt and decoding) with its workload put in."""

    def __init__(self, scenario: Scenario, program: Program) -> None:
        self.scenario = scenario
        self.program = program
        self.account = account(program, scheme=scheme_of(scenario))
        self.prefill = Pass("prefill", scenario, program)
        self.numbers = self.prefill.numbers
        self.values = self.numbers.values
        self.passes = [self.prefill]
        if scenario.inference.generated_tokens and scenario.model.is_decoder:
            self.passes.append(Pass("decode", scenario, self._decoding()))

    def _decoding(self) -> Program:
        return compiled(self.scenario.model, self.program.options._replace(decode=True, masked=False))

    def one_more(self) -> Pass:
        """The pass of a single token after the prompt."""
        inference = msgspec.structs.replace(self.scenario.inference, generated_tokens=1)
        scenario = msgspec.structs.replace(self.scenario, inference=inference)
        return Pass("decode", scenario, self._decoding())

    def inputs_and_weights(self, part: Pass) -> Amount:
        """What lies still during a pass, the cache apart."""
        a = self.account
        sizes = part.input_sizes
        return Amount(
            {"weights": a.weight_bytes, "activations": sum(sizes)},
            a.weight_excess + sum(block_bytes(size) - size for size in sizes),
        )

    def persistent(self) -> int:
        return self.account.weight_bytes

    def peak(self) -> Found:
        best: tuple[int, Pass, int, int] | None = None
        for part in self.passes:
            rest = part.walk.cache(before=True) + sum(part.input_sizes)
            for index, point in enumerate(part.walk.forward()):
                most, offset = highest(point)
                if best is None or most + rest > best[0]:
                    best = (most + rest, part, index, offset)
        assert best is not None
        _, part, at, offset = best
        return self._found(part, at, offset)

    def _found(self, part: Pass, at: int, offset: int) -> Found:
        walk = part.contents()
        point = next(islice(walk.forward(), at, None))
        bag = walk.m.copy(point.amount())
        if offset:
            bag = walk.m.add(bag, point.slope(), offset)
        bag = walk.m.add(bag, walk.cache(before=True))
        stage = f"{part.name}.{STAGES.get(point.key, point.key)}"
        layer = point.start + offset if point.start >= 0 else -1
        base = self.inputs_and_weights(part)
        return Found(
            stage + (f".{layer}" if layer >= 0 else ""),
            stage,
            SERVING[stage],
            base,
            amount_of(bag, part.numbers),
            bag,
            layer,
            operator_at(part.numbers, point.place()),
        )

    def _part(self, found: Found) -> Pass:
        return self.passes[-1] if found.stage.startswith("decode") else self.prefill

    def values_of(self, found: Found) -> Sequence[int]:
        return self._part(found).numbers.values

    def program_of(self, found: Found) -> Program:
        return self._part(found).program

    def held(self, found: Found) -> Held:
        a = self.account
        part = self._part(found)
        return {
            "weights": [*a.weights, *a.buffers],
            "activations": [(tensor, 1) for tensor in part.inputs],
        }

    def moments(self, overhead: Overhead) -> Iterator[Moment]:
        a = self.account
        load = Amount({"weights": a.weight_bytes}, a.weight_excess)
        yield moment("load", "load", LOAD, load, overhead)
        for part in self.passes:
            for point_ in part.walk.forward():
                point_.amount()
            walk = part.contents()
            before = self.inputs_and_weights(part)
            base = before.plus(amount_of(walk.cache(before=True), part.numbers))
            for point in walk.forward():
                amount = base.plus(amount_of(point.amount(), part.numbers))
                slope = amount_of(point.slope(), part.numbers) if point.count > 1 else Amount({}, 0)
                operator = operator_at(part.numbers, point.place())
                stage = f"{part.name}.{STAGES.get(point.key, point.key)}"
                for offset in range(point.count):
                    layer = point.start + offset if point.start >= 0 else -1
                    key = stage + (f".{layer}" if layer >= 0 else "")
                    yield moment(
                        key, stage, SERVING[stage], amount.plus(slope, offset), overhead, layer, operator
                    )
            after = before.plus(amount_of(walk.cache(), part.numbers))
            stage = f"after_{part.name}"
            yield moment(stage, stage, SERVING[stage], after, overhead)
