"""RecurrentGemma's gated linear recurrence (RG-LRU), a loop over the tokens, as transformers runs it."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import convolution, exponential, piece, softplus
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import ACTIVATIONS
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.states import convolution_state, recurrent_state
from memgui.estimator.tape import ALIAS, NEW, Back, Dims, Tape, Tensor
from memgui.spec.model import pattern_at

FP32 = 4
STATE: Dims = ("b", "lw")


def rg_lru(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Two branches: an activation; a short convolution and the recurrence.  Their product goes out."""
    m, o = c.model, c.options
    t.part = "mixer"
    wide: Dims = (*c.rows, "lw")
    beside = projection(t, c, x, "lru.y", "gate", ("lw",), ("h",), bias=True)
    beside = ACTIVATIONS[m.hidden_act](t, beside)
    u = projection(t, c, x, "lru.x", "u", ("lw",), ("h",), bias=True)
    if o.cache:
        convolution_state(t, c, u, "lw", m.conv1d_width - 1)
    elif o.training:
        t.forget()
    u = _convolved(t, c, u)
    y = _recurrence(t, c, u)
    t.use(u)
    y = op.mul(t, y, beside, "gated", wide)
    out = projection(t, c, _by_token(t, c, y), "lru.out", "output", ("h",), ("lw",), bias=True, cut="row")
    t.use(y, beside, x)
    return out


def kept_states(t: Tape, c: Context) -> None:
    """Each layer's module refers to its last state until the next step's comes."""
    layers = c.model.num_hidden_layers
    kinds = [pattern_at(c.model.layer_types, i, "") for i in range(layers)]
    many = kinds.count("rg_lru")
    if many and c.options.training:
        c.given(t, "last states", (many, *STATE), FP32)


def _by_token(t: Tape, c: Context, x: Tensor) -> Tensor:
    """In order for a linear layer: the convolution left channels before tokens, but of one sequence."""
    return x if c.options.one_sequence or c.options.decode else op.clone(t, x)


def _convolved(t: Tape, c: Context, u: Tensor) -> Tensor:
    """The short convolution; its padding behind the tokens is cut off.  Of one token, a sum of products."""
    o = c.options
    w = t.parameter("conv_1d.weight", ("lw", 1, "K"), o.width, o.base_trained, role="convolution")
    bias = t.parameter("conv_1d.bias", ("lw",), o.width, o.base_trained)
    if o.decode:
        behind = t.tensor("u", ("b", "lw", "K"), u.width)
        t.run("cat", (u,), (behind,), (), ())
        product = op.mul(t, behind, w, "convolved", behind.dims)
        y = t.tensor("convolved", u.dims, u.width)
        t.run("sum", (product,), (y,), (), ())
        return op.add_broadcast(t, y, bias)
    y = convolution(t, u, w, bias, "convolved", ("b", "lw", "sc"))
    return piece(t, y, "convolved", u.dims)


def _gate(t: Tape, c: Context, x: Tensor, name: str) -> Tensor:
    """``sigmoid(baddbmm(bias, x, weight))``, a matrix for each head."""
    o = c.options
    w = t.parameter(f"{name}_gate_weight", ("a", "lb", "lb"), o.width, o.base_trained, role="heads")
    bias = t.parameter(f"{name}_gate_bias", ("a", "lb"), o.width, o.base_trained, role="heads")
    used = op.weight(t, w, t.autocast)
    added = op.cast(t, bias, t.autocast) if t.autocast else bias  # a view: autocast does not remember it
    saves, back = op.product(x, used)
    if bias.grad:
        back = (*back, (added, NEW))
    heads = t.tensor(f"{name} gate", ("a", *c.rows, "lb"), used.width, bool(back))
    t.record("baddbmm", (x, used, added), heads, saves, back)
    return op.pointwise(t, "sigmoid", _joined(t, c, heads), f"{name} gate", saves="output")


def _joined(t: Tape, c: Context, heads: Tensor) -> Tensor:
    """The heads of each token side by side."""
    out = t.tensor(heads.name, (*c.rows, "lw"), heads.width, heads.grad)
    return t.record("clone", (heads,), out, (), ((heads, ALIAS),))


def _recurrence(t: Tape, c: Context, u: Tensor) -> Tensor:
    """How much of the state each token keeps and how much of itself it adds, both read from the token."""
    o = c.options
    wide: Dims = u.dims
    reset = t.tensor("first tokens", (1, c.queries, 1), 1)
    t.run("eq", (), (reset,), (), ())
    by_head = _by_token(t, c, u)
    by_head = op.cast(t, by_head, t.autocast) if t.autocast else by_head
    entry = _gate(t, c, by_head, "input")
    leave = _gate(t, c, by_head, "recurrent")
    rate = t.parameter("recurrent_param", ("lw",), o.width, o.base_trained)
    logs = op.mul(t, op.scale(t, leave), softplus(t, rate), "log of the decay", wide)
    decay = exponential(t, logs, "decay")
    square = exponential(t, op.scale(t, logs), "decay squared")
    fed = op.mul(t, u, entry, "input", wide)
    rest = op.scale(t, square, "1 - decay squared", "rsub")
    root = op.pointwise(t, "sqrt", rest, "multiplier", saves="input")
    multiplier = op.mul(t, root, _others(t, reset), "multiplier", wide)
    multiplier = op.shift(t, multiplier)
    normalised = op.mul(t, fed, op.cast(t, multiplier, u.width), "normalised", wide)
    left = op.mul(t, decay, _others(t, reset), "decay", wide)
    y = (_token if o.decode else _scan)(t, c, normalised, left)
    t.use(reset, by_head, entry, logs, decay, square, fed, multiplier, normalised, left)
    return y


def _others(t: Tape, reset: Tensor) -> Tensor:
    """``~reset``."""
    out = t.tensor("tokens after the first", reset.dims, 1)
    t.run("bitwise_not", (reset,), (out,), (), ())
    return out


def _scan(t: Tape, c: Context, fed: Tensor, decay: Tensor) -> Tensor:
    """``state = decay * state + fed``, token by token in fp32, all states kept, the first of them zero.

    Each token's decay is cast to fp32, which keeps a copy where it is not fp32 already.  Going back,
    each token's gradients come as tensors as long as all tokens'.
    """
    first = t.tensor("first state", STATE, FP32)
    t.run("zeros", (), (first,), (), ())
    states = t.tensor("states", ("b", "sp", "lw"), FP32)
    last = t.tensor("last state", STATE, FP32)
    y = t.tensor("scanned", fed.dims, fed.width, fed.grad or decay.grad)
    made, kept = [states], [first, states]
    if decay.width < FP32:
        copies = t.tensor("decay, copied", ("b", "sp", "lw"), FP32)
        made.append(copies)
        kept.append(copies)
    else:
        kept.append(decay)
    for tensor in made:
        tensor.stepwise = True
    step = (2 * last.coefficient, last.monomial)
    whole = (fed.coefficient, fed.monomial)
    back: Back = tuple([(one, NEW) for one in (fed, decay) if one.grad])
    if y.grad:
        t.run("scan", (fed, decay, first), (y, last, *made), tuple(kept), back, step, whole)
        t.refer(last)
    else:
        t.run("scan", (fed, decay, first), (y, last), (), (), step)
    if c.options.cache:
        recurrent_state(t, c, STATE)
    t.use(last)
    return y


def _token(t: Tape, c: Context, fed: Tensor, decay: Tensor) -> Tensor:
    """One token more."""
    state = recurrent_state(t, c, STATE)
    new = op.mul(t, op.cast(t, decay, FP32), state, "state", fed.dims)
    new = op.add_in_place(t, new, op.cast(t, fed, FP32))
    return op.cast(t, new, fed.width)
