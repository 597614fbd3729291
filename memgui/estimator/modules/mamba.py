"""Mamba-1 as transformers runs it where no kernels are installed: a scan in a loop over the tokens."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.mixing import convolution, copied_weight, exponential, piece, softplus
from memgui.estimator.modules import rms
from memgui.estimator.modules.adapters import idle_adapter
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.norm import norm
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.states import convolution_state, recurrent_state, without_padding
from memgui.estimator.tape import NEW, Back, Dims, Tape, Tensor

FP32 = 4


def mamba(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Project in, short convolution, selective scan, gate, project out."""
    m, o = c.model, c.options
    t.part = "mixer"
    inner: Dims = (*c.rows, "D")
    x = without_padding(t, c, x)
    both = projection(t, c, x, "mamba.in", "projected", (2, "D"), ("h",), bias=m.mamba_proj_bias)
    decay_log = t.parameter("A_log", ("D", "N"), o.width, o.base_trained)
    decay_rate = op.scale(t, exponential(t, op.cast(t, decay_log, FP32), "rate"), "rate", "neg")
    u, gate = op.split(t, both, ("u", "gate"), (inner, inner))
    if o.cache:
        u = convolution_state(t, c, u, "D", "K")
    u = without_padding(t, c, short_convolution(t, c, u, "D"))
    raw, step, b, out_map = _selection(t, c, u)
    step = softplus(t, step)
    decay = exponential(t, op.mul(t, step, decay_rate, "decay", (*inner, "N")), "decay")
    weighted = op.mul(t, step, op.cast(t, b, FP32), "input map", (*inner, "N"))
    fed = op.mul(t, weighted, op.cast(t, u, FP32), "input", (*inner, "N"))
    y, outputs = _scan(t, c, decay, fed, out_map, u.width)
    d = copied_weight(t, t.parameter("D", ("D",), o.width, o.base_trained), FP32)
    y = op.add(t, y, op.mul(t, u, d, "skip", inner), "scanned")
    y = op.mul(t, y, op.pointwise(t, "silu", gate, "gate", saves="input"), "gated", inner)
    t.use(decay, weighted, fed, step, *outputs)
    y = op.cast(t, y, x.width)
    y = _by_token(t, c, op.cast(t, y, t.autocast) if t.autocast else y)
    out = projection(t, c, y, "mamba.out", "output", ("h",), ("D",), bias=m.mamba_proj_bias, cut="row")
    t.use(both, u, gate, raw, x)
    return out


def _by_token(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Channels by tokens turned round for a linear layer: a copy, but of one sequence a view."""
    return x if c.options.one_sequence else op.clone(t, x)


def short_convolution(
    t: Tape, c: Context, x: Tensor, channels: str, *, bias: bool | None = None, activated: bool = True
) -> Tensor:
    """``silu(conv1d(x))``; the convolution runs over padding behind the tokens, which is cut off.

    Of one token it runs over those in the state before it.
    """
    o = c.options
    own = FP32 if c.model.linear_exact else o.width
    w = t.parameter("conv1d.weight", (channels, 1, "K"), own, o.base_trained, role="convolution")
    biased = c.model.mamba_conv_bias if bias is None else bias
    shift = t.parameter("conv1d.bias", (channels,), o.width, o.base_trained) if biased else None
    longer: Dims = ("b", channels, 2 if o.decode else "sc")
    if o.decode:
        behind = t.tensor(x.name, ("b", channels, c.sizes.values["K"] + 1), x.width)
        x = t.record("cat", (x,), behind, (), ())
    y = convolution(t, op.cast(t, x, own), w, shift, "convolved", longer, viewed=True)
    y = piece(t, y, "convolved", (*c.rows, channels))
    if activated:
        y = op.pointwise(t, "silu", y, x.name, saves="input")
    return op.cast(t, y, x.width)


def _selection(t: Tape, c: Context, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Time step (raw and biased), input map and output map, all read from the token itself."""
    m, o = c.model, c.options
    maps: Dims = (*c.rows, "N")
    widths = m.mamba_dt_rank + 2 * m.mamba_d_state
    read = projection(t, c, _by_token(t, c, u), "mamba.x", "selection", (widths,), ("D",))
    step, b, out_map = op.split(t, read, ("step", "B", "C"), ((*c.rows, m.mamba_dt_rank), maps, maps))
    if m.mamba_inner_norm == "selection":
        step, b = norm(t, c, step, "dt_layernorm", part="mixer"), norm(t, c, b, "b_layernorm", part="mixer")
        out_map = norm(t, c, out_map, "c_layernorm", part="mixer")
    elif m.mamba_inner_norm == "plain_selection":
        step, b, out_map = (_plain_norm(t, one) for one in (step, b, out_map))
        for name, dims in (("dt_layernorm", ("D",)), ("b_layernorm", ("N",)), ("c_layernorm", ("N",))):
            t.buffer(f"{name}.weight", dims, o.width)
    w = t.parameter("dt_proj.weight", ("D", m.mamba_dt_rank), o.width, o.base_trained)
    idle_adapter(t, c, "dt_proj", ("D",), (m.mamba_dt_rank,))
    bias = t.parameter("dt_proj.bias", ("D",), o.width, o.base_trained)
    raw = op.clone(t, op.linear(t, step, w, None, "time step", (*c.rows, "D")))
    return raw, op.add_broadcast(t, raw, op.cast(t, op.cast(t, bias, FP32), raw.width)), b, out_map


def _plain_norm(t: Tape, x: Tensor) -> Tensor:
    return rms.normalised(t, x, None, (*x.dims[:-1], 1), rms.PLAIN)


def _scan(
    t: Tape, c: Context, decay: Tensor, fed: Tensor, out_map: Tensor, width: int
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """``state = decay * state + fed``, ``y = state @ C``, token by token, all states kept.

    The products with ``C`` are made in ``width`` bytes per element, so that each state is copied.
    Going back, each token's gradient (of decay and of input) comes as a tensor as long as all tokens'.
    Returns the outputs stacked, and what the code refers to beside them.
    """
    o = c.options
    state: Dims = ("b", "D", "N")
    compute = t.autocast or width
    first = t.tensor("first state", state, width)
    t.run("zeros", (), (first,), (), ())
    if o.decode:
        first = recurrent_state(t, c, state)
    states = t.tensor("states", ("b", "sp", "D", "N"), FP32)
    last = t.tensor("last state", state, FP32)
    outputs = t.tensor("outputs", (*c.rows, "D"), compute, decay.grad or fed.grad)
    made: tuple[Tensor, ...] = (states,)
    kept: tuple[Tensor, ...] = (decay, first, states, out_map)
    if compute == FP32:
        kept = (*kept, last)
    else:
        copies = t.tensor("states, copied", (*c.rows, "D", "N"), compute)
        made, kept = (*made, copies), (*kept, copies)
    for tensor in made:
        tensor.stepwise = True
    step = (2 * last.coefficient, last.monomial)
    back: Back = tuple([(one, NEW) for one in (decay, fed, out_map) if one.grad])
    whole = (decay.coefficient, decay.monomial)
    if outputs.grad:
        t.run("scan", (decay, fed, out_map, first), (outputs, last, *made), kept, back, step, whole)
    else:
        t.run("scan", (decay, fed, out_map, first), (outputs, last), (), (), step)
    if o.cache and not o.decode:
        recurrent_state(t, c, state)
    y = t.tensor("scanned", outputs.dims, compute, outputs.grad)
    return t.record("stack", (outputs,), y, (), ((outputs, NEW),)), (outputs, last)
