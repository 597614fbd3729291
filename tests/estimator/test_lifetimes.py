"""The tape and its lifetimes, on networks small enough to count by hand."""

from itertools import accumulate

from memgui.estimator import operators as op
from memgui.estimator.block import Block
from memgui.estimator.events import Events, Gradient, Group
from memgui.estimator.outcome import Outcome
from memgui.estimator.roles import Cast
from memgui.estimator.saved import first_to_save
from memgui.estimator.tape import AMBIENT, Sizes, Tape, Tensor

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


def left(outcome: Outcome) -> list[str]:
    return [tensor.name for tensor in gradients(outcome.left)]


def gradients(group: Group) -> list[Tensor]:
    return [thing.of for thing in group.things if isinstance(thing, Gradient)]


def names(tensors: dict[Tensor, int]) -> list[str]:
    return [tensor.name for tensor in tensors]


def test_a_linear_layer_saves_its_input_only_where_its_weight_is_trained() -> None:
    assert names(Block(network()).saved) == ["input", "inner", "active"]
    assert names(Block(network(trained=False)).saved) == ["inner"]
    assert names(Block(network(trained=False, grad=False)).saved) == []


def test_what_is_kept_belongs_to_the_first_that_keeps_it() -> None:
    """Of a stretch that is computed again that is the last operator; nothing made in it is kept."""
    tape = Tape("block", Sizes(SIZES), recomputed=("layernorm",))
    x = tape.input(("b", "h"), 4, True)
    with tape.within("layernorm"):
        squares = op.power(tape, x)
        normed = op.scale(tape, squares, operator="last")
    one, other = (tape.parameter(name, ("f", "h"), 4) for name in ("one", "other"))
    tape.out = op.linear(tape, normed, one, None, "y", ("b", "f"))
    op.linear(tape, x, other, None, "z", ("b", "f"))
    assert {root.name: saver.name for root, saver in first_to_save(tape).items()} == {"input": "last"}
    plain = network()
    assert [saver.name for saver in first_to_save(plain).values()] == ["mm", "silu", "mm"]
    assert first_to_save(plain).keys() == Block(plain).saved.keys()


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
    assert left(Block(network()).outcome()) == ["down", "up"]
    adding = Block(network()).back(accumulate=True)
    assert sum(adding.events.coefficients) == -(16 + 64 + 64)
    assert left(Block(network()).outcome(accumulate=True)) == []


def test_gradients_that_meet_are_summed() -> None:
    t = Tape("block", Sizes(SIZES))
    x = t.input(("b", "h"), 4, True)
    t.out = op.add(t, x, op.pointwise(t, "silu", x, "active", saves="input"))
    back = Block(t).back()
    # silu's gradient beside the one passed on; both die in their sum; x was saved by silu
    assert running(back.events) == [16, 0, -16, -32, -16]
    assert [gradient.of for gradient in back.finish.things if isinstance(gradient, Gradient)] == [x]


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
    head, embedding = Block(tail), Block(stem)
    cast = Cast([((head,), 1), ((embedding,), 1)], (head, embedding))
    ((first, _),), ((second, _),) = cast.roles(0), cast.roles(1)
    for adding in (False, True):
        one = head.outcome(*first, accumulate=adding)
        other = embedding.outcome(*second, accumulate=adding)
        assert gradients(one.left) == [table]
        assert gradients(other.left) == []
        back = embedding.back(*second, accumulate=adding)
        assert max(running(back.events)) == 128  # the embedding's own, for a moment
        # where a gradient is there already, what waited is added to it and dies
        assert gradients(other.taken) == [table] * adding


def test_a_tensor_of_all_layers_has_one_gradient_that_waits_for_the_block_that_made_it() -> None:
    sizes = Sizes({"h": 4})
    stem = Tape("stem", sizes)
    ids = stem.tensor("ids", ("b",), 8)
    x = op.embedding(stem, ids, stem.parameter("table", (9, "h"), 4), "x", ("b", "h"))
    bias = op.scale(stem, x, "bias")
    stem.hand_out(bias)
    stem.out = x
    layer = Tape("layer", sizes)
    y = layer.input(("b", "h"), 4, True)
    frame = Block(stem)
    _ = frame.running
    bias.origin = AMBIENT
    layer.out = op.mul(layer, y, bias, "y", ("b", "h"))
    block = Block(layer)
    cast = Cast([((block,), 3), ((frame,), 1)], (frame,))
    (last, many), (others, rest) = cast.roles(0)
    assert (many, rest) == (1, 2)
    first = block.back(*last)
    assert gradients(block.outcome(*last).waiting) == [bias]
    assert sum(first.events.coefficients) == 0  # bias's gradient is there, the input saved has gone
    further = block.back(*others)
    assert gradients(block.outcome(*others).waiting) == []
    assert sum(further.events.coefficients) == -16  # what it makes is added to what waits
    ((owner, _),) = cast.roles(1)
    assert gradients(frame.outcome(*owner).taken) == [bias]
