"""Operators said as one where nobody asks for their order, and written out where somebody does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from memgui.estimator.modules.context import Context
from memgui.estimator.op import copy, spelled
from memgui.estimator.tape import Back, Op, Parameter, Sizes, Tape, Tensor


def plainly(t: Tape, c: Context, x: Tensor) -> bool:
    """Whether a module that is given ``x`` may be said in short: all in one format, all of it trained."""
    trained = x.grad and c.options.base_trained
    return trained and x.width == c.options.width and not (t.ordered or t.autocast)


def in_short(
    t: Tape,
    c: Context | None,
    write: Callable[..., Tensor],
    given: tuple[Tensor, ...],
    weights: Sequence[Parameter],
    outs: tuple[Tensor, ...],
    saves: tuple[Tensor, ...],
    back: Back,
    ahead: int,
    behind: int,
    behind_weights: int = 0,
) -> Tensor:
    """One operator for those that ``write`` writes of what is ``given``, with ``weights`` in their order.

    ``outs`` are its result, the storage of that where it is a view, and what is made and saved; ``saves`` and
    ``back`` are those of all operators, the last one's gradients first, but for what is made and gone within.
    That is ``ahead`` bytes forward and ``behind`` bytes backward for each token, ``behind_weights`` in all.
    """
    monomial = outs[0].monomial
    t.short = True
    t.written.append(
        Op(
            write.__name__.strip("_"),
            t.part,
            t.module,
            (*given, *weights),
            outs,
            saves,
            back,
            (ahead, monomial),
            (behind, monomial),
            (behind_weights, 0) if behind_weights else None,
            None,
            spell=partial(_spelled, c, t.sizes, write, len(given)),
        )
    )
    return outs[0]


def apart(short: Op, sizes: Sizes, weights: Iterable[Parameter], half: str = "bf16") -> Tape:
    """A tape on which the operators that ``short`` stands for are written, with the ``weights`` it has.

    Threads may do so at the same time: each on a copy of the context, of which modules change the options.
    """
    t = Tape(short.outs[0].block, sizes, half=half, part=short.part, module=short.module, ordered=True)
    t.again = [*weights]
    return t


def _spelled(
    c: Context | None, sizes: Sizes, write: Callable[..., Tensor], given: int, short: Op
) -> list[Op]:
    t = apart(short, sizes, [one for one in short.ins[given:] if isinstance(one, Parameter)])
    made = write(t, c and copy(c), *short.ins[:given])
    return spelled(short, t.written, [made] if made.base is None else [made, made.base])
