"""Attention of a decoder over an encoder's states, and biases by distance that all layers share."""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.attention import HEADS, attention, by_head
from memgui.estimator.modules.cache import cached
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.kernels import attend
from memgui.estimator.modules.projection import projection
from memgui.estimator.modules.reach import FULL
from memgui.estimator.tape import AMBIENT, BY_HEAD, Tape, Tensor

INT64 = 8


def cross_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Queries from the decoder, keys and values from the encoder's states; cached once, with the prompt."""
    m, o, over = c.model, c.options, c.over
    assert over is not None
    t.part = "attention"
    q = projection(t, c, x, "attention.q", "q", HEADS, ("h",), bias=m.attention_bias)
    if m.query_scaling:
        q = op.scale(t, q)
    q = by_head(t, c, q)
    if o.decode:
        k, v = (_held(t, over, name) for name in ("k", "v"))
    else:
        states = over.states
        assert states is not None
        k = projection(t, c, states, "attention.k", "k", HEADS, ("h",), bias=m.attention_bias and m.key_bias)
        v = projection(t, c, states, "attention.v", "v", HEADS, ("h",), bias=m.attention_bias)
        k, v = by_head(t, c, k), by_head(t, c, v)
        if o.cache:
            k, v = cached(t, over, k), cached(t, over, v)
    if m.position_embedding == "relative" and over.bias is None:
        no_bias(t, over, q.width)
    y = attend(t, over, q, k, v, FULL)
    _forget_own(over)
    y = projection(
        t, c, y, "attention.o", "output", ("h",), ("a", "d"), bias=m.attention_output_bias, cut="row"
    )
    t.use(q, k, v, x, *over.named)
    over.named.clear()
    return op.dropout(t, y, o.hidden_dropout)


def _held(t: Tape, c: Context, name: str) -> Tensor:
    """Keys or values of the source, in the cache since the prompt."""
    made = t.tensor(name, ("b", c.keys, "a", "d"), c.options.cache_width, origin=AMBIENT)
    made.layout = BY_HEAD
    t.cache(made)
    t.replaced.append(made)
    return made


def biased_attention(t: Tape, c: Context, x: Tensor) -> Tensor:
    """Self-attention with a bias by distance, which the first layer makes for all."""
    y = attention(t, c, x, prepare=None if c.bias is not None else relative_bias)
    _forget_own(c)
    return y


def relative_bias(t: Tape, c: Context) -> None:
    """A learned bias for each head and bucket of distances, looked up for every pair of tokens."""
    before = len(t.written), len(t.parameters)
    buckets, named = _buckets(t, c)
    bias = _by_bucket(t, c, buckets)
    t.use(*named)
    _share(t, c, bias)
    t.set_apart(*before)


def _buckets(t: Tape, c: Context) -> tuple[Tensor, list[Tensor]]:
    """The bucket of every pair's distance, and what the code that computes it names meanwhile.

    Small distances have a bucket each, greater ones share them by their logarithm; of a decoder's only
    those backward count, an encoder's are told apart by their sign.  Some twenty operators without a
    gradient, told as one: where they hold most there are, beside the distances and the buckets of
    greater ones, which distances are small (1 byte), those of the side that counts (8), the greater ones
    before and at their limit (8 each), and an encoder's sign (8).
    """
    pairs = (c.queries, c.keys)
    named = [t.tensor("positions", (length,), INT64) for length in pairs]
    for positions in named:
        t.run("arange", (), (positions,), (), ())
    given = t.tensor("distances", pairs, INT64)
    t.run("sub", tuple(named), (given,), (), ())
    named.append(given)
    buckets = t.tensor("distance buckets", pairs, INT64)
    held = 1 + (3 if c.causal else 4) * INT64
    t.run("where", (given,), (buckets,), (), (), (buckets.coefficient // INT64 * held, buckets.monomial))
    return buckets, named


def _by_bucket(t: Tape, c: Context, buckets: Tensor) -> Tensor:
    """The bias of every pair of tokens: (queries, keys, heads)."""
    m, o = c.model, c.options
    pairs = (c.queries, c.keys)
    table = t.parameter(
        "relative_attention_bias.weight",
        (m.relative_attention_num_buckets, "a"),
        o.width,
        o.base_trained,
        part="position_embedding",
    )
    return op.embedding(t, buckets, table, "position bias", (*pairs, "a"))


def bias_of_distances(t: Tape, c: Context) -> None:
    """An encoder's bias by distance, made before the layers: copied for every sequence, head by head."""
    buckets = t.tensor("distance buckets", (c.queries, c.keys), INT64)
    t.run("add", (), (buckets,), (), ())
    c.bias = op.clone(t, _by_bucket(t, c, buckets), "position bias", ("b", "a", c.queries, c.keys), BY_HEAD)
    t.hand_out(c.bias)


def no_bias(t: Tape, c: Context, width: int) -> None:
    """Zeros in place of a bias, which T5 makes once; under checkpointing they require a gradient."""
    zeros = t.tensor("position bias", ("a", c.queries, c.keys), width)
    if c.model.relative_attention_shared and c.options.training and c.options.layerwise:
        zeros.grad, t.leaf = True, zeros
    t.run("zeros", (), (zeros,), (), ())
    t.set_apart(len(t.written) - 1, len(t.parameters))
    zeros.layout = BY_HEAD  # nothing to be put in order before a kernel can use it
    _share(t, c, zeros)


def _share(t: Tape, c: Context, bias: Tensor) -> None:
    c.bias = bias
    if c.model.relative_attention_shared:
        t.hand_out(bias)
        c.handed.append(bias)


def _forget_own(c: Context) -> None:
    if not c.model.relative_attention_shared:
        c.bias = None
