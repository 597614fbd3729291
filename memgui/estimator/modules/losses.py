"""Cross-entropy over logits that are made in chunks of tokens, all of them before the first loss.

Backward takes the losses first, the last chunk first, then the head's products in the same order.  So
the last two chunks stand for themselves, those before them together.
"""

from __future__ import annotations

from memgui.estimator import operators as op
from memgui.estimator.modules.context import Context
from memgui.estimator.tape import REPLACES, Parameter, Tape, Tensor

FP32 = 4
INT64 = 8
CHUNKS = ("cr", "c2", "c1")
"""Tokens of all chunks but the last two, of the last but one, of the last."""


def in_chunks(t: Tape, c: Context, x: Tensor, w: Parameter, labels: Tensor) -> Tensor:
    """The loss of ``x @ w.T`` against ``labels``, one chunk after the other.

    Rows of a chunk are copied where there are several sequences.
    """
    several = not c.options.one_sequence
    shapes = tuple([("b", tokens, "h") for tokens in CHUNKS])
    pieces = op.split(t, x, ("chunk",) * len(CHUNKS), shapes)
    if w.grad:
        t.reused.add(w)
    logits = [_head(t, op.clone(t, one) if several else one, w, one.dims[1]) for one in pieces]
    t.part = t.module = "loss"
    if several:
        t.loss = False
        labels = op.clone(t, labels, "labels of chunks")
        t.loss = True
    total: Tensor | None = None
    for one in logits:
        if c.options.compiled:
            loss = _fused(t, one)
        elif one.dims[1] == CHUNKS[0]:
            loss = _together(t, one, labels)
        else:
            loss = op.nll_loss(t, op.log_softmax(t, op.cast(t, one, FP32)), labels)
        total = loss if total is None else op.add(t, total, loss, "loss")
    t.use(*logits)
    assert total is not None
    return total


def _head(t: Tape, x: Tensor, w: Parameter, tokens: int | str) -> Tensor:
    return op.linear(t, x, w, None, "logits", ("b", tokens, "V"))


def _together(t: Tape, logits: Tensor, labels: Tensor) -> Tensor:
    """Several chunks, each turned to fp32 and back for itself."""
    kept = t.tensor("log-probabilities", logits.dims, FP32)
    loss = t.tensor("loss", (), FP32, logits.grad)
    coefficient, monomial = t.sizes.of(("b", CHUNKS[1], "V"))
    chunk = (FP32 * coefficient, monomial)
    saves, back = ((kept, labels), ((logits, REPLACES),)) if logits.grad else ((), ())
    t.run("_log_softmax", (logits, labels), (loss, kept), saves, back, chunk, (2 * chunk[0], monomial))
    return loss


def _fused(t: Tape, logits: Tensor) -> Tensor:
    """Compiled: keeps the logits as they are, and backward turns them into their gradient in place."""
    loss = t.tensor("loss", (), FP32, logits.grad)
    saves, back = ((logits,), ((logits, REPLACES),)) if logits.grad else ((), ())
    return t.record("cross_entropy", (logits,), loss, saves, back)


def whole(t: Tape, c: Context, logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of logits that are all there, in fp32."""
    full = op.cast(t, logits, FP32)
    full.name = "logits"
    y = op.nll_loss(t, op.log_softmax(t, full), labels)
    t.use(full)
    return y


def shifted_labels(t: Tape, c: Context) -> Tensor:
    """Labels put one token forward by ``hstack``, a new tensor."""
    given = c.given(t, "labels", ("b", "s"), INT64)
    c.given(t, "label of what is ignored", ("b", 1), INT64)
    out = t.tensor("shifted labels", ("b", "s"), INT64)
    return t.record("cat", (given,), out, (), ())
