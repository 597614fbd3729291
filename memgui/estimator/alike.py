"""What tapes have in common, written once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgui.estimator.op import Pattern
from memgui.estimator.tape import Parameter, Tape, Tensor


class Met:
    """A stretch of operators, and the tape that it was first written on."""

    __slots__ = ("folded", "pattern", "tape")

    def __init__(self, pattern: Pattern, tape: Tape) -> None:
        self.pattern = pattern
        self.tape = tape
        self.folded = False

    def fold(self) -> None:
        """One operator stands for it where it was written, too."""
        if self.folded:
            return
        self.folded = True
        ops, written = self.pattern.written, self.tape.written
        if ops and ops[0] in written:
            start = written.index(ops[0])
            end = start + len(ops)
            if written[start:end] == ops:
                written[start:end] = [self.pattern.standing(self.pattern.tensors)]
                self.tape.folded = True


def alike(
    t: Tape,
    met: dict[object, Met],
    key: tuple[object, ...],
    write: Callable[[], tuple[Tensor, ...]],
    *given: Tensor,
    reused: Sequence[Parameter] = (),
    named: int = 0,
) -> tuple[tuple[Tensor, ...], list[Parameter]]:
    """What ``write`` makes of ``given`` and of weights used once already; the weights it has of its own.

    Other tapes have written the same where ``met`` knows it; then one operator stands for it.  The first
    ``named`` results are only referred to outside.
    """
    traits = [(one.dims, one.width, one.grad, one.layout) for one in given]
    full = (*key, t.part, t.module, t.sizes, *traits, *[one.grad for one in reused])
    known = met.get(full)
    pattern = known.pattern if known is not None else None
    if pattern is None or t.recomputed or t.pool is not None or not pattern.usable:
        start, first, buffers = len(t.written), len(t.parameters), len(t.buffers)
        before = _beside(t)
        outs = write()
        weights = t.parameters[first:]
        if pattern is None and before == _beside(t):
            ops = t.written[start:]
            own = weights, t.buffers[buffers:]
            end = t.part, t.module
            met[full] = Met(Pattern(ops, given, outs, reused, *own, named, end, folded=t.folded), t)
        return outs, weights
    if known is not None and known.tape is not t:
        known.fold()
    made, weights, outs = pattern.on(given, reused, t.key)
    t.written.append(made)
    t.folded = True
    t.part, t.module = pattern.end
    t.parameters += weights
    t.reused.update(reused)
    for one in pattern.buffers:
        t.buffer(one.name, one.dims, one.width)
    return outs, weights


def _beside(t: Tape) -> tuple[object, ...]:
    """What operators leave on the tape beside themselves."""
    lists = len(t.cast_cache), len(t.replaced), t.regions, t.forgets, t.leaf
    return (*lists, t.held, t.cached, t.handed_out, t.passed, t.pinned, t.referred)
