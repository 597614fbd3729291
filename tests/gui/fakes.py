"""Estimates with figures that add up, for widgets to show: training, serving, huge, tiny."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from memgui.document.result import Result
from memgui.estimator.result import (
    COMPONENTS,
    Derivation,
    Estimate,
    Moment,
    Node,
    Parameters,
    Symbol,
    Verdict,
)
from memgui.spec import Device, Inference, Issue, Message, ModelSpec, Scenario, Training

GIB = 2**30
H100 = 85_024_112_640

LLAMA = ModelSpec(
    name="Llama-3.1-8B",
    model_type="llama",
    vocab_size=128_256,
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    intermediate_size=14_336,
    max_position_embeddings=131_072,
)

SYMBOLS: dict[str, Symbol] = {
    "L": Symbol(32, "layers", "model.num_hidden_layers"),
    "b": Symbol(1, "batch", "training.micro_batch_size"),
    "s": Symbol(4096, "sequence", "training.sequence_length"),
    "f": Symbol(14_336, "FFN width", "model.intermediate_size"),
    "h": Symbol(4096, "hidden", "model.hidden_size"),
    "k": Symbol(8, "KV heads", "model.num_key_value_heads"),
    "d": Symbol(128, "head size", "model.head_dim"),
    "n": Symbol(4, "sequences", "inference.batch_size"),
    "t": Symbol(8192, "tokens", None),
}


def leaf(
    key: str, label: str, formula: str, text: str = "", source: str = "Measured with autograd hooks"
) -> Node:
    """A node whose bytes are its formula's, so that the explanation holds."""
    size = eval(formula, {}, {name: symbol.value for name, symbol in SYMBOLS.items()})
    used = {name: symbol for name, symbol in SYMBOLS.items() if name in formula}
    return Node(key, label, size, derive=lambda _: Derivation(formula, used, source, text))


def mlp() -> Node:
    kept = {
        "gate": ("gate_proj output", "L*b*s*2*f"),
        "silu": ("silu(gate)", "L*b*s*2*f"),
        "up": ("up_proj output", "L*b*s*2*f"),
        "product": ("product, into down_proj", "L*b*s*2*f"),
        "input": ("shared input", "L*b*s*2*h"),
    }
    used = {name: SYMBOLS[name] for name in "Lbsfh"}
    text = (
        "Kept from the forward pass for the backward pass: four bf16 tensors as wide as the feed-forward "
        "layer, and the input that gate and up share."
    )
    return Node(
        "mlp",
        "MLP",
        children=tuple(leaf(key, label, formula) for key, (label, formula) in kept.items()),
        derive=lambda _: Derivation(
            "L*b*s*(8*f+2*h)", used, "Measured with autograd hooks, transformers 5.24", text
        ),
    )


def parts(key: str, sizes: Mapping[str, int]) -> Node:
    children = tuple(Node(name.lower().replace(" ", "_"), name, size) for name, size in sizes.items())
    return Node(key, COMPONENTS[key], children=children)


def training_components() -> tuple[Node, ...]:
    weights = {
        "Embedding": 1_050_673_152,
        "Attention": 2_684_354_560,
        "MLP": 11_274_289_152,
        "Norms": 532_480,
        "Output head": 1_050_673_152,
    }
    activations = Node(
        "activations",
        COMPONENTS["activations"],
        children=(
            Node("attention", "Attention", int(3.52 * GIB)),
            mlp(),
            Node("norms", "Norms", int(6.09 * GIB)),
            Node("head", "Head input", 33_554_432),
        ),
    )
    return (
        parts("weights", weights),
        Node("gradients", COMPONENTS["gradients"], 16_060_522_496),
        parts("optimizer_states", {"First moment": 16_060_522_496, "Second moment": 16_060_522_496}),
        activations,
        parts(
            "loss", {"Logits": 2_101_346_304, "Log-probabilities": 2_101_346_304, "Gradient": 2_101_346_304}
        ),
        Node("kv_cache", COMPONENTS["kv_cache"], 0),
        Node("temporary", COMPONENTS["temporary"], 33_554_432),
        parts("overhead", {"Context": 600_000_000, "Fragmentation": 2_642_865_049}),
    )


def serving_components() -> tuple[Node, ...]:
    weights = {
        "Embedding": 1_050_673_152,
        "Attention": 2_684_354_560,
        "MLP": 11_274_289_152,
        "Norms": 532_480,
        "Output head": 1_050_673_152,
    }
    cache = Node(
        "kv_cache",
        COMPONENTS["kv_cache"],
        children=(leaf("keys", "Keys", "L*k*d*2*n*t"), leaf("values", "Values", "L*k*d*2*n*t")),
        derive=lambda _: Derivation(
            "2*L*k*d*2*n*t",
            {name: SYMBOLS[name] for name in "Lkdnt"},
            "Measured: cache object after prompt and one token",
            "The keys and values of every token so far, for every layer, so that a new token need not "
            "recompute them. Grows with each token of each sequence.",
        ),
    )
    return (
        parts("weights", weights),
        Node("gradients", COMPONENTS["gradients"], 0),
        Node("optimizer_states", COMPONENTS["optimizer_states"], 0),
        Node("activations", COMPONENTS["activations"], 0),
        Node("loss", COMPONENTS["loss"], 0),
        cache,
        Node("temporary", COMPONENTS["temporary"], 665_719_930),
        parts("overhead", {"Context": 340_234_147, "Fragmentation": 100_000_000}),
    )


def scaled(node: Node, factor: int, divisor: int) -> Node:
    children = tuple(scaled(child, factor, divisor) for child in node.children)
    return Node(node.key, node.label, node.bytes * factor // divisor, children)


def moment_of(components: tuple[Node, ...], key: str, label: str, phase: str) -> Moment:
    sizes = {node.key: node.bytes for node in components}
    return Moment(key, Message(label), phase, sum(sizes.values()), sizes)


def training_timeline(
    components: tuple[Node, ...], layers: int = 32, micro_batches: int = 2
) -> tuple[Moment, ...]:
    """A step as it goes: activations grow, the loss peaks, gradients take their place, then the optimizer."""
    whole = {node.key: node.bytes for node in components}
    moments: list[Moment] = []

    def at(key: str, label: str, phase: str, **share: float) -> None:
        sizes = {
            name: int(
                size * share.get(name, 1.0 if name in ("weights", "overhead", "optimizer_states") else 0.0)
            )
            for name, size in whole.items()
        }
        moments.append(Moment(key, Message(label), phase, sum(sizes.values()), sizes))

    for batch in range(1, micro_batches + 1):
        before = 0.0 if batch == 1 else 1.0
        at(f"{batch}.forward.start", "start of forward", "forward", gradients=before)
        for layer in range(layers):
            done = (layer + 1) / layers
            at(
                f"{batch}.forward.{layer}",
                f"forward, layer {layer}",
                "forward",
                gradients=before,
                activations=done,
            )
        at(f"{batch}.loss.logits", "logits", "loss", gradients=before, activations=1.0, loss=0.66)
        at(
            f"{batch}.loss",
            f"loss, micro batch {batch}",
            "loss",
            gradients=before,
            activations=1,
            loss=1,
            temporary=1,
        )
        for layer in reversed(range(layers)):
            left = layer / layers
            grown = max(before, 1 - left)
            at(
                f"{batch}.backward.{layer}",
                f"backward, layer {layer}",
                "backward",
                gradients=grown,
                activations=left,
                temporary=1.0,
            )
    at("optimizer", "optimizer step", "optimizer", gradients=1.0)
    at("zero", "gradients set to None", "optimizer", gradients=0.0)
    return tuple(moments)


def estimate(
    scenario: Scenario,
    components: tuple[Node, ...],
    capacity: int,
    low: int | None = None,
    high: int | None = None,
    timeline: tuple[Moment, ...] = (),
    peak: Moment | None = None,
) -> Estimate:
    size = sum(node.bytes for node in components)
    overhead = components[-1].bytes
    low = size - overhead // 2 if low is None else low
    high = size + overhead if high is None else high
    kind = "fits" if high <= capacity else "tight" if low < capacity else "does_not_fit"
    peak = peak or moment_of(components, "loss", "loss, micro batch 2 of 8", "loss")
    return Estimate(
        scenario=scenario,
        method="detailed",
        version="PyTorch 2.13, Transformers 5.24",
        parameters=Parameters(8_030_261_248, 8_030_261_248, 8_030_261_248, {}),
        components=components,
        peak_bytes=size,
        peak_moment=peak,
        low_bytes=low,
        high_bytes=high,
        allocated_bytes=size - overhead,
        reserved_bytes=size - overhead // 2,
        timeline=timeline or (peak,),
        ranks=(),
        verdict=Verdict(kind, capacity, capacity - size, Message("")),
        assumptions=tuple(Message(text) for text in ("bf16 weights", "no padding", "fused AdamW", "CUDA 12")),
    )


def training() -> Result:
    """The mockup's: Llama-3.1-8B, full fine-tuning on one H100; 14.2 GiB over."""
    scenario = Scenario(model=LLAMA, training=Training(gradient_accumulation_steps=8))
    components = training_components()
    timeline = training_timeline(components)
    peak = max(timeline, key=lambda moment: moment.bytes)
    made = estimate(scenario, components, H100, int(91.7 * GIB), int(95.6 * GIB), timeline, peak)
    return Result(scenario, made, generation=1, last_good=made)


def tight() -> Result:
    """The same on a limit that the likely range crosses."""
    scenario = Scenario(model=LLAMA)
    components = training_components()
    made = estimate(scenario, components, int(94.3 * GIB), int(91.7 * GIB), int(95.6 * GIB))
    return Result(scenario, made, generation=2, last_good=made)


def serving() -> Result:
    """Llama-3.1-8B on an RTX 4090 of which vLLM may use 0.92."""
    card = 25_344_540_672
    scenario = Scenario(
        model=LLAMA,
        task="inference",
        inference=Inference(engine="vllm", batch_size=4, prompt_tokens=6144, generated_tokens=2048),
        device=Device(name="RTX 4090 24 GB", memory_bytes=card, compute_capability="8.9"),
    )
    components = serving_components()
    peak = moment_of(components, "prefill", "prefill, last prompt", "prefill")
    made = estimate(scenario, components, card * 92 // 100, int(19.8 * GIB), int(20.4 * GIB), peak=peak)
    return Result(scenario, made, generation=3, last_good=made)


def huge() -> Result:
    """A training step of about ten TiB on one card."""
    scenario = Scenario(model=msgspec.structs.replace(LLAMA, name="DeepSeek-V3"))
    components = tuple(scaled(node, 110, 1) for node in training_components())
    made = estimate(scenario, components, H100)
    return Result(scenario, made, generation=4, last_good=made)


def tiny() -> Result:
    """A model of a few MiB."""
    scenario = Scenario(model=msgspec.structs.replace(LLAMA, name="tiny"))
    components = tuple(scaled(node, 1, 8000) for node in training_components())
    made = estimate(scenario, components, H100)
    return Result(scenario, made, generation=5, last_good=made)


def unknown() -> Result:
    """What cannot be computed, with the last picture behind it."""
    good = training()
    issue = Issue(
        "error",
        "not_divisible",
        ("parallelism.tensor",),
        Message("32 heads cannot be split by 3."),
        Message("Allowed: {allowed}.", {"allowed": "1, 2, 4, 8"}),
    )
    return Result(good.scenario, None, (issue,), generation=6, last_good=good.estimate)
