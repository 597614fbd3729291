"""What is alive between the points of a walk: kept for backward, referred to, cached."""

from __future__ import annotations

from typing import Generic

from memgui.estimator.block import Block
from memgui.estimator.measure import Measure, N
from memgui.estimator.program import Kind, Program


class Between(Generic[N]):
    """What a micro batch through a program leaves alive, in a measure.

    ``keep_outputs``: the model's result is referred to until the end of backward.  ``waiting``: how many
    micro batches have gone forward before, and not back yet.  ``refers``: modules keep something of a
    micro batch until they run again; ``ran``: one ran before.
    """

    def __init__(
        self,
        program: Program,
        measure: Measure[N],
        *,
        keep_outputs: bool = False,
        waiting: int = 0,
        refers: bool = False,
        ran: bool = False,
    ) -> None:
        self.program = program
        self.m = measure
        self.keep_outputs = keep_outputs
        self.waiting = waiting
        self.refers = refers
        self.ran = refers and ran
        self.offloads = program.options.checkpoint_offload
        self._kept: dict[Kind, N] = {}

    def kept(self, kind: Kind) -> N:
        """What autograd, or a checkpoint, keeps of a layer until its backward."""
        known = self._kept.get(kind)
        if known is None:
            m = self.m
            known = m.nothing()
            if kind.recomputed:
                first = kind.blocks[0]
                if kind.differentiable and not self.offloads:
                    known = m.add(known, m.group(first.input, first.sort_input))
                for sparing in kind.sparing:
                    known = m.add(known, m.group(sparing.kept, first.sort_input))
            else:
                for block in kind.blocks:
                    known = m.add(known, m.group(block.kept, block.sort_running))
            self._kept[kind] = known
        return known

    def referred(self, kind: Kind, *, passing: bool = False) -> N:
        """What the modules of a layer keep of a micro batch that has run back, until they run again.

        ``passing``: also what they keep only until all layers have run back.
        """
        m, live = self.m, self.m.nothing()
        for block in referring(kind):
            if passing or not block.tape.passing:
                live = m.add(live, m.group(block.behind, block.sort_pinned))
        return live

    def all_referred(self) -> N:
        """The same of all layers."""
        m, live = self.m, self.m.nothing()
        if self.refers:
            for kind in self.program.kinds:
                live = m.add(live, self.referred(kind), kind.count)
        return live

    def in_flight(self) -> N:
        """What a pipeline stage keeps of the micro batches that wait; on the last stage none has a loss."""
        m, program = self.m, self.program
        live = m.nothing()
        if not self.waiting:
            return live
        for stack in program.stacks:
            live = m.add(live, m.group(stack.frame.kept, stack.frame.sort_running))
            live = m.add(live, m.group(stack.shared_kept, stack.frame.sort_input))
            for kind in stack.kinds:
                live = m.add(live, self.kept(kind), kind.count)
        if not program.options.stage.last:
            live = m.add(live, m.group(program.tail.kept, program.tail.sort_running))
        return m.add(m.nothing(), live, self.waiting)

    def after_forward(self) -> N:
        """What is alive when the loss has been computed and the model has returned."""
        m, program = self.m, self.program
        tail = program.tail
        live = self.in_flight()
        for stack in program.stacks:
            live = m.add(live, m.group(stack.frame.kept, stack.frame.sort_running))
            live = m.add(live, m.group(stack.shared_kept, stack.frame.sort_input))
            if not stack.leaf_is_kept:
                live = m.add(live, m.group(stack.leaf, stack.frame.sort_pinned))
            for kind in stack.kinds:
                live = m.add(live, self.kept(kind), kind.count)
        live = m.add(live, m.group(tail.kept, tail.sort_running))
        live = m.add(live, m.group(tail.output, tail.sort_running))
        live = m.add(live, self._pinned())
        if self.keep_outputs:
            live = m.add(live, self._outputs())
        return live

    def _pinned(self) -> N:
        """What the graph refers to until the loss dies."""
        m = self.m
        live = m.nothing()
        for block, count in self.program.pinning:
            live = m.add(live, m.group(block.pinned, block.sort_pinned), count)
        return live

    def _outputs(self) -> N:
        """What the model's result refers to and autograd does not keep: logits, a cache."""
        m, tail = self.m, self.program.tail
        live = m.add(m.nothing(), m.group(tail.returned, tail.sort_running))
        for stack in self.program.stacks:
            live = m.add(live, m.group(stack.results, stack.frame.sort_running))
        for kind in self.program.kinds:
            for block in kind.blocks:
                live = m.add(live, m.group(block.cache, block.sort_running), kind.count)
        return live

    def lingering(self) -> N:
        """What is left of the micro batch for as long as its outputs and its loss are referred to."""
        m, tail = self.m, self.program.tail
        live = m.add(self._pinned(), self._outputs())
        live = m.add(live, m.group(tail.output, tail.sort_running))
        for stack in self.program.stacks:
            for leaf in (stack.leaf, stack.leaf_gradient):
                live = m.add(live, m.group(leaf, stack.frame.sort_pinned))
        return live

    def cache(self, *, before: bool = False) -> N:
        """What all layers' caches hold after this pass, or ``before`` it."""
        m = self.m
        held = m.nothing()
        for kind in self.program.kinds:
            for block in kind.blocks:
                group = block.replaced if before else block.cache
                held = m.add(held, m.group(group, block.sort_running), kind.count)
        return held


def referring(kind: Kind) -> list[Block]:
    """The blocks of a layer whose modules keep what was computed again."""
    return [block for block in kind.blocks if block.tape.referred] if kind.recomputed else []
