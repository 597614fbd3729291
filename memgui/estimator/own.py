"""Tensors of one block in place of those that it has in common with others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memgui.estimator.op import Op, copy, on_others
from memgui.estimator.tensor import Parameter, Tensor


class Own:
    """What of a block stands for tensors of several, as far as it is there.

    What is handed out, and the input, is there from the start; the rest once the block is written out.
    """

    __slots__ = ("block", "same")

    def __init__(self, block: str) -> None:
        self.block = block
        self.same: dict[Tensor, Tensor] = {}

    def of(self, tensor: Tensor) -> Tensor:
        """The block's own."""
        found = self.same.get(tensor)
        if found is None:
            self.same[tensor] = found = copy(tensor)
            found.block = self.block
            if found.base is not None:
                found.base = self.same.get(found.base, found.base)
        return found

    def weights(self, listed: Iterable[Parameter]) -> list[Parameter]:
        """The block's own weights."""
        found: list[Parameter] = []
        for one in listed:
            own = one if one.block == self.block else self.of(one)
            assert isinstance(own, Parameter)
            found.append(own)
        return found

    def written_out(self, ops: Sequence[Op]) -> list[Op]:
        """Operators on the block's own tensors; what other blocks hand out stays."""
        same = self.same
        for op in ops:
            for out in op.outs:
                if out.block != self.block or out.base in same:
                    self.of(out)
        return [on_others(op, same) for op in ops]
