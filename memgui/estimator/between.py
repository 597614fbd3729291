"""What is alive between the points of a walk: kept for backward, referred to, cached."""

from __future__ import annotations

from typing import Final

from memgui.estimator.block import Block
from memgui.estimator.program import Program
from memgui.estimator.stacks import Kind
from memgui.estimator.stock import Stock

GIVEN_BACK_IF_ASKED: Final = frozenset(
    (
        *("afmoe", "ctrl", "exaone4", "gemma", "gpt2", "mellum", "ministral", "ministral3", "mistral"),
        *("phi3", "qwen2", "qwen2_moe", "qwen3", "smollm3", "starcoder2"),
    )
)
"""Models that give the cache they are given back only with ``use_cache`` (a prefix is put into one)."""


class Between:
    """What a micro batch through a program leaves alive.

    ``keep_outputs``: the model's result is referred to until the end of backward.  ``waiting``: how many
    micro batches have gone forward before, and not back yet.  ``refers``: modules keep something of a
    micro batch until they run again; ``ran``: one ran before.
    """

    def __init__(
        self,
        program: Program,
        *,
        keep_outputs: bool = False,
        waiting: int = 0,
        refers: bool = False,
        ran: bool = False,
    ) -> None:
        self.program = program
        self.keep_outputs = keep_outputs
        self.waiting = waiting
        self.refers = refers
        self.ran = refers and ran
        self.offloads = program.options.checkpoint_offload
        self.lets_go = self.offloads and program.options.implementation != "unsloth"
        """whether only what runs again has a layer's input that was fetched; Unsloth's code names it"""
        self._kept: dict[Kind, Stock] = {}

    def kept(self, kind: Kind) -> Stock:
        """What autograd, or a checkpoint, keeps of a layer until its backward."""
        known = self._kept.get(kind)
        if known is None:
            known = self._kept[kind] = Stock()
            if kind.recomputed:
                first = kind.blocks[0]
                if kind.differentiable and not self.offloads:
                    known.add(first.input, first.sort_input)
                known.add(kind.passed, first.sort_input)
                for sparing in kind.sparing:
                    known.add(sparing.kept, first.sort_input)
            else:
                for block in kind.blocks:
                    known.add(block.kept, block.sort_running)
        return known

    def referred(self, kind: Kind, *, passing: bool = False) -> Stock:
        """What the modules of a layer keep of a micro batch that has run back, until they run again.

        ``passing``: also what they keep only until all layers have run back.
        """
        live = Stock()
        for block in referring(kind):
            if passing or not block.tape.passing:
                live.add(block.behind, block.sort_pinned)
        return live

    def all_referred(self) -> Stock:
        """The same of all layers."""
        live = Stock()
        if self.refers:
            for kind in self.program.kinds:
                live.include(self.referred(kind), kind.count)
        return live

    def in_flight(self) -> Stock:
        """What a pipeline stage keeps of the micro batches that wait; on the last stage none has a loss."""
        live = Stock()
        if self.waiting:
            each = self._kept_by_all()
            if not self.program.options.stage.last:
                each.add(self.program.tail.kept, self.program.tail.sort_running)
            live.include(each, self.waiting)
        return live

    def _kept_by_all(self) -> Stock:
        """What all stacks keep until their backward."""
        live = Stock()
        for stack in self.program.stacks:
            live.add(stack.frame.kept, stack.frame.sort_running)
            live.add(stack.shared_kept, stack.frame.sort_input)
            live.add(stack.passed_last, stack.frame.sort_input, -1)
            for kind in stack.kinds:
                live.include(self.kept(kind), kind.count)
        return live

    def after_forward(self) -> Stock:
        """What is alive when the loss has been computed and the model has returned."""
        tail = self.program.tail
        live = self.in_flight()
        live.include(self._kept_by_all())
        for stack in self.program.stacks:
            if not stack.leaf_is_kept:
                live.add(stack.leaf, stack.frame.sort_pinned)
            live.add(stack.given_leaves, stack.frame.sort_pinned)
        live.add(tail.kept, tail.sort_running)
        live.add(tail.output, tail.sort_running)
        self._pin(live)
        if self.keep_outputs:
            self._give_out(live)
        return live

    def _pin(self, live: Stock) -> None:
        """Add what the graph refers to until the loss dies."""
        for block, count in self.program.pinning:
            live.add(block.pinned, block.sort_pinned, count)

    def _give_out(self, live: Stock) -> None:
        """Add what the model's result refers to and autograd does not keep: logits, a cache."""
        tail = self.program.tail
        live.add(tail.returned, tail.sort_running)
        for stack in self.program.stacks:
            live.add(stack.results, stack.frame.sort_running)
        if self.gives_cache:
            live.include(self.cache())

    @property
    def gives_cache(self) -> bool:
        """Whether the cache is part of what the model returns, where there is one."""
        program = self.program
        return program.options.cache or program.model.model_type not in GIVEN_BACK_IF_ASKED

    def lingering(self) -> Stock:
        """What is left of the micro batch for as long as its outputs and its loss are referred to."""
        tail, live = self.program.tail, Stock()
        self._pin(live)
        self._give_out(live)
        live.add(tail.output, tail.sort_running)
        if self.gives_cache:
            for kind in self.program.kinds:
                for block in kind.blocks:
                    live.add(block.cache_kept, block.sort_running, kind.count)
        for stack in self.program.stacks:
            live.add(stack.results_kept, stack.frame.sort_input)
            leaves = stack.leaf, stack.leaf_gradient, stack.given_leaves, stack.given_leaf_gradients
            for leaf in leaves:
                live.add(leaf, stack.frame.sort_pinned)
        return live

    def cache(self, *, before: bool = False) -> Stock:
        """What all layers' caches hold after this pass, or ``before`` it."""
        held = Stock()
        for kind in self.program.kinds:
            for block in kind.blocks:
                if block.tape.cached or before:
                    held.add(block.replaced if before else block.cache, block.sort_running, kind.count)
        return held


def referring(kind: Kind) -> list[Block]:
    """The blocks of a layer whose modules keep what was computed again."""
    return [block for block in kind.blocks if block.tape.referred] if kind.recomputed else []
