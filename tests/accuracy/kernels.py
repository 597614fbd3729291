"""Lone modules, as kernel libraries measure them: no model around, the same pass again and again.

The module that memgui has runs on a tape of its own.  What the measuring script holds lies beside it:
the module's weights, its input and, where it runs back, the gradients of earlier passes, the gradient
it is given.  The allocator's counter counts blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

from memgui.estimator import operators as op
from memgui.estimator.block import Block
from memgui.estimator.events import Events, Gradient, Thing
from memgui.estimator.modules.context import Context
from memgui.estimator.modules.mlp import mlp
from memgui.estimator.modules.names import names
from memgui.estimator.modules.norm import norm
from memgui.estimator.options import options
from memgui.estimator.overhead import block_bytes, cublas_workspace
from memgui.estimator.tape import AMBIENT, REPLACES, Sizes, Tape, Tensor
from memgui.spec import ModelSpec, Scenario, Training
from tests.accuracy.express import Inexpressible
from tests.accuracy.figures import Figure

WIDTHS = {"torch.bfloat16": ("bf16", 2), "torch.float32": ("fp32", 4)}

AMPERE = (8, 0)
"""The compute capability of the card behind every row that is expressed."""


class Lone(NamedTuple):
    """A module to measure: how it is written, its input's shape, the sizes of letters, who wrote it.

    ``beside`` is what else the script has on the device, in bytes; ``products``: it multiplies matrices;
    ``retains``: the script calls ``backward(retain_graph=True)``.
    """

    write: Callable[[Tape, Context, Tensor], Tensor]
    dims: tuple[str, ...]
    sizes: Mapping[str, int]
    model: ModelSpec
    implementation: str = "transformers"
    beside: int = 0
    products: bool = True
    retains: bool = True


def is_lone(entry: Mapping[str, Any]) -> bool:
    """Whether a row measures a kernel without a model."""
    return str(entry["model"]["name"]).startswith("kernel:")


def lone_kernel(entry: Mapping[str, Any]) -> Figure:
    """The most that is allocated, as a row's script has it; its words say which module and which pass."""
    kernel = str(entry["model"]["name"]).removeprefix("kernel:")
    provider, way = _words(str(entry["id"]), kernel)
    write = MODULES.get(kernel)
    if write is None:
        raise Inexpressible("a lone kernel, which memgui's modules do not run")
    dims = entry["model"]["dims"]
    precision, width = WIDTHS[dims["dtype"]]
    return Figure(most(write(dims, provider), precision, width, back=way == "full"))


def _words(name: str, kernel: str) -> tuple[str, str]:
    """Who wrote the kernel and what ran: ``liger-layer-norm-huggingface-full-n1024``."""
    provider, way, *_ = name.removeprefix(f"liger-{kernel.replace('_', '-')}-").split("-")
    return provider, way


def geglu(dims: Mapping[str, Any], provider: str) -> Lone:
    """A feed-forward with a gate."""
    model = _model(
        hidden_size=dims["hidden_size"],
        intermediate_size=dims["intermediate_size"],
        hidden_act=dims["hidden_act"],
    )
    tokens = {"b": dims["bsz"], "s": dims["T"], "h": dims["hidden_size"], "f": dims["intermediate_size"]}
    return Lone(mlp, ("b", "s", "h"), tokens, model, _implementation(provider))


def layer_norm(dims: Mapping[str, Any], provider: str) -> Lone:
    """PyTorch's layer norm; Liger's is a kernel of its own, which memgui does not write."""
    if provider == "liger":
        raise Inexpressible("a lone kernel, of Liger: its layer norm is not modelled")
    model = _model(hidden_size=dims["N"], norm="layer_norm", norm_bias=True)

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        return norm(t, c, x, "norm")

    return Lone(write, ("b", "s", "h"), {"b": 1, "s": dims["M"], "h": dims["N"]}, model, products=False)


def fused_linear_cross_entropy(dims: Mapping[str, Any], provider: str) -> Lone:
    """A head and ``CrossEntropyLoss`` in its format.  The script makes both heads before it measures one."""
    if provider == "liger":
        raise Inexpressible("a lone kernel, of Liger 0.4: how its loss summed chunks is not modelled")
    model = _model(hidden_size=dims["H"], vocab_size=dims["V"])

    def write(t: Tape, c: Context, x: Tensor) -> Tensor:
        labels = t.tensor("labels", c.rows, 8, origin=AMBIENT)
        w = t.parameter("lm_head.weight", ("V", "h"), c.options.width, c.options.base_trained)
        logits = op.linear(t, x, w, None, "logits", (*c.rows, "V"))
        return op.nll_loss(t, op.log_softmax(t, logits), labels)

    other = WIDTHS[dims["dtype"]][1] * dims["H"] * dims["V"]
    sizes = {"b": 1, "s": dims["BT"], "h": dims["H"], "V": dims["V"]}
    return Lone(write, ("b", "s", "h"), sizes, model, beside=other + 8 * dims["BT"], retains=False)


MODULES: Mapping[str, Callable[[Mapping[str, Any], str], Lone]] = {
    "geglu": geglu,
    "layer_norm": layer_norm,
    "fused_linear_cross_entropy": fused_linear_cross_entropy,
}
"""By the name of a row's kernel."""


def _model(**changes: Any) -> ModelSpec:
    known = {"vocab_size": 1, "hidden_size": 1, "intermediate_size": 1, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 1}
    return ModelSpec(**{**known, **heads, **changes})


def _implementation(provider: str) -> str:
    return "fused" if provider == "liger" else "transformers"


def most(lone: Lone, precision: str, width: int, *, back: bool) -> int:
    """Bytes in blocks at the peak of a pass forward, or of the second pass that also runs ``back``."""
    training = Training(precision=precision, implementation=lone.implementation)
    how = options(Scenario(model=lone.model, training=training))
    sizes = Sizes(lone.sizes)
    tape = Tape("kernel", sizes)
    x = tape.input(lone.dims, width, grad=True)
    tape.out = lone.write(tape, Context.of(lone.model, how, sizes, names(lone.model.model_type)), x)
    block = Block(tape)
    lasting = sum(block_bytes(w.coefficient) for w in tape.parameters) + block_bytes(x.coefficient)
    workspaces = cublas_workspace(AMPERE, training=True) if lone.products else 0
    base = lasting * (2 if back else 1) + block_bytes(lone.beside) + workspaces
    ahead, after = _peak(block.running)
    if not back:
        return base + ahead
    run = block.back(accumulate=True, keep_input=True)
    (start,) = block.start.things
    given = block_bytes(start.coefficient)
    staying = {start, *(block.saved if lone.retains else ())}
    over = {one for each in tape.ops for one, how in each.back if how == REPLACES and lone.retains}
    return base + max(ahead, after + given + _peak(run.events, staying, over)[0])


def _peak(events: Events, staying: Container[Thing] = (), over: Container[Tensor] = ()) -> tuple[int, int]:
    """The most that is alive beyond the start, and what is left; what is ``staying`` does not die.

    Gradients of what is in ``over`` are written over what stays: they are no new tensors.
    """
    live = highest = 0
    for thing, size in zip(events.things, events.sizes, strict=True):
        replaces = isinstance(thing, Gradient) and thing.of in over
        if replaces or (thing in staying and size < 0):
            continue
        live += block_bytes(size) if size > 0 else -block_bytes(-size)
        highest = max(highest, live)
    return highest, live
