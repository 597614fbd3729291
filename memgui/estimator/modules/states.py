"""States that recurrences keep in place of keys and values: of fixed size, however long the text."""

from __future__ import annotations

from memgui.estimator.modules.context import Context
from memgui.estimator.tape import AMBIENT, NEW, Dims, Tape, Tensor

FP32 = 4


def without_padding(t: Tape, c: Context, x: Tensor) -> Tensor:
    """``x`` times the padding mask, so that padding leaves no trace in a state."""
    if c.padding is None:
        return x
    out = t.tensor(x.name, x.dims, x.width, x.grad)
    return t.record("mul", (x, c.padding), out, (c.padding,), ((x, NEW),))


def convolution_state(t: Tape, c: Context, x: Tensor, channels: int | str, tokens: int | str) -> Tensor:
    """The last tokens that the short convolution reads; returns what it runs over."""
    _keep(t, c, "convolution state", ("b", channels, tokens), c.options.cache_width or x.width)
    return x


def recurrent_state(t: Tape, c: Context, dims: Dims, width: int = FP32) -> Tensor:
    """The state after the last token."""
    return _keep(t, c, "recurrent state", dims, width)


def _keep(t: Tape, c: Context, name: str, dims: Dims, width: int) -> Tensor:
    """A state is made with the prompt and then changed in place."""
    if c.options.decode:
        state = t.tensor(name, dims, width, origin=AMBIENT)
        t.replaced.append(state)
    else:
        state = t.tensor(name, dims, width)
        t.run("copy", (), (state,), (), ())
    t.cache(state)
    return state
