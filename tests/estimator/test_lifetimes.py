"""The tape and its lifetimes, on networks small enough to count by hand."""

from itertools import accumulate

from memgui.estimator import operators as op
from memgui.estimator.block import Block
from memgui.estimator.lifetimes import Events
from memgui.estimator.tape import Sizes, Tape, Tensor

SIZES = {"h": 4, "f": 16}


def running(events: Events) -> list[int]:
    """Bytes alive after each event, for one token."""
    return list(accumulate(events.coefficients))


def network(*, trained: bool = True, grad: bool = True, autocast: int = 0, width: int = 4) -> Tape:
    """``down(silu(up(x)))``: the smallest network with something to save and something to free."""
    t = Tape("block", Sizes(SIZES), autocast)
    x = t.input(("b", "h"), width, grad)
    up = t.parameter("up", ("f", "h"), width, trained)
    down = t.parameter("down", ("h", "f"), width, trained)
    inner = op.linear(t, x, up, None, "inner", ("b", "f"))
    active = op.pointwise(t, "silu", inner, "active", saves="input")
    t.out = op.linear(t, active, down, None, "y", ("b", "h"))
    return t


def names(tensors: dict[Tensor, int]) -> list[str]:
    return [tensor.name for tensor in tensors]


def test_a_linear_layer_saves_its_input_only_where_its_weight_is_trained() -> None:
    assert names(Block(network()).saved) == ["input", "inner", "active"]
    assert names(Block(network(trained=False)).saved) == ["inner"]
    assert names(Block(network(trained=False, grad=False)).saved) == []


def test_autocast_saves_its_copies() -> None:
    saved = Block(network(autocast=2)).saved
    assert sorted(names(saved)) == ["active", "down", "inner", "input", "up"]
    assert {tensor.width for tensor in saved} == {2}
    assert [tensor.name for tensor in saved if tensor.weight_copy] == ["up", "down"]


def test_forward_frees_what_nobody_needs() -> None:
    block = Block(network())
    assert running(block.running) == [64, 128, 144]  # inner, active, y: both inner ones are saved
    assert running(block.passing) == [64, 128, 64, 80, 16]  # inner dies once active is there


def test_recomputation_stops_before_the_last_operator_that_saves_inputs_only() -> None:
    block = Block(network())
    assert running(block.running)[: block.running.stop] == [64, 128]


def test_backward_frees_what_it_has_used_and_leaves_gradients() -> None:
    back = Block(network()).back()
    assert sum(back.events.coefficients) == -(16 + 64 + 64) - 16 + 16 + 2 * 256
    assert [gradient.of.name for gradient in back.weights] == ["down", "up"]
    adding = Block(network()).back(accumulate=True)
    assert sum(adding.events.coefficients) == -(16 + 64 + 64)
    assert adding.weights == []


def test_gradients_that_meet_are_summed() -> None:
    t = Tape("block", Sizes(SIZES))
    x = t.input(("b", "h"), 4, True)
    t.out = op.add(t, x, op.pointwise(t, "silu", x, "active", saves="input"))
    back = Block(t).back()
    # silu's gradient beside the one passed on; both die in their sum; x was saved by silu
    assert running(back.events) == [16, 0, -16, -32, -16]
    assert back.finish is not None


def test_tied_weight_waits_for_its_other_gradient() -> None:
    sizes = Sizes({"V": 8, "h": 4})
    stem = Tape("stem", sizes)
    table = stem.parameter("table", ("V", "h"), 4)
    table.tied = True
    ids = stem.tensor("ids", ("b",), 8)
    stem.out = op.embedding(stem, ids, table, "x", ("b", "h"))
    tail = Tape("tail", sizes)
    x = tail.input(("b", "h"), 4, True)
    tail.out = op.linear(tail, x, table, None, "logits", ("b", "V"))
    head, embedding = Block(tail).back(), Block(stem).back()
    assert [gradient.of for gradient in head.weights] == [table]
    assert embedding.weights == []
    assert max(running(embedding.events)) == 128  # the embedding's own, for a moment
