"""Where ranks meet: what they gather and reduce around split matrices, and hand from stage to stage.

Between :func:`enter` and :func:`leave` a rank works on all tokens with its share of heads or of the
feed-forward's width.  With sequence parallelism it has its share of the tokens outside of them.
"""

from __future__ import annotations

from memgui.estimator.modules.context import Context
from memgui.estimator.tape import ALIAS, NEW, Dims, Tape, Tensor

FP32 = 4


def enter(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x`` where matrices are split by columns: gathered, or as it is and its gradient summed over ranks."""
    split = c.options.split
    if split.tensor == 1:
        return x
    if split.sequence:
        out = t.tensor("gathered tokens", (*c.rows, *x.dims[2:]), x.width, x.grad)
        return t.record("all_gather_into_tensor", (x,), out, (), ((x, NEW),))
    y = t.view(x, x.name, x.dims)
    how = ALIAS if c.options.reduces_in_place else NEW
    t.run("identity", (x,), (y,), (), ((x, how),) if x.grad else ())
    return y


def gathered_tokens(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x`` of all tokens, where a rank has some of them."""
    if not c.options.split.sequence:
        return x
    out = t.tensor(x.name, (*c.rows, *x.dims[2:]), x.width, x.grad)
    return t.record("all_gather_into_tensor", (x,), out, (), ((x, NEW),))


def leave(t: Tape, c: Context, y: Tensor) -> Tensor:
    """What matrices split by rows made: summed over the ranks, each of which gets all of it or its tokens."""
    split = c.options.split
    if split.tensor == 1:
        return y
    if split.sequence:
        out = t.tensor("output", c.residual, y.width, y.grad)
        return t.record("reduce_scatter_tensor", (y,), out, (), ((y, NEW),))
    if c.options.reduces_in_place:
        out = t.view(y, y.name, y.dims)
        t.run("all_reduce_", (y,), (out,), (), ((y, ALIAS),) if y.grad else ())
        return out
    out = t.tensor(y.name, y.dims, y.width, y.grad)
    return t.record("all_reduce", (y,), out, (), ((y, ALIAS),))


def gathered_logits(t: Tape, c: Context, logits: Tensor) -> Tensor:
    """Logits of the whole vocabulary from each rank's share: gathered, then put side by side."""
    if c.options.split.vocabulary == 1:
        return logits
    dims: Dims = (*logits.dims[:-1], "V")
    beside = t.tensor("logits of the ranks", dims, logits.width, logits.grad)
    t.record("all_gather_into_tensor", (logits,), beside, (), ((logits, NEW),))
    out = t.tensor("logits", dims, logits.width, logits.grad)
    return t.record("cat", (beside,), out, (), ((beside, ALIAS),))


def received(t: Tape, c: Context) -> Tensor:
    """What the stage before sends: the schedule refers to it until it has run back."""
    x = t.tensor("received", c.residual, c.options.width, True)
    t.run("recv", (), (x,), (), ())
    t.hold(x)
    return x


def sent(t: Tape, c: Context, x: Tensor) -> Tensor:
    """What the stage sends on: PyTorch keeps it until its gradient is there, Megatron-LM lets it go."""
    t.frees_input = True
    out = t.tensor("sent", (1,), x.width, True)
    saves = () if c.options.reduces_in_place else (x,)
    t.run("send", (x,), (out,), saves, ((x, NEW),))
    return out


def in_ring(
    t: Tape, c: Context, q: Tensor, k: Tensor, v: Tensor, gathered: Dims, inner: tuple[int, int] | None
) -> Tensor:
    """Attention of a rank's queries over the keys and values of all context parallel ranks.

    Its own are kept.  Those of others are there while it runs (``gathered``: rows of keys and values,
    heads and their size besides), and with their gradients while it runs back.
    """
    others = t.tensor("keys and values of other ranks", (*gathered, *k.dims[-2:]), k.width)
    t.run("all_gather_into_tensor", (k, v), (others,), (), ())
    out = t.tensor("attention output", (*c.rows, "a", v.dims[-1]), q.width, q.grad or k.grad or v.grad)
    sums = t.tensor("log-sum-exp", ("b", "a", c.queries), FP32)
    back = tuple([(x, NEW) for x in (q, k, v) if x.grad])
    again = (2 * others.coefficient, others.monomial)
    saves = (q, k, v, out, sums) if back else ()
    name = "_scaled_dot_product_flash_attention"
    t.run(name, (q, k, v, others), (out, sums), saves, back, None, again, inner)
    return out
