"""What decides a model's tape besides the model: formats, kernels, what is trained.

An :class:`Options` is hashable and holds no workload number: everything that has it in common with
another scenario shares its compiled program.  Where a number changes what PyTorch does (one
sequence in a batch, a window shorter than the sequence), the answer to that question stands here,
not the number.
"""

from __future__ import annotations

import msgspec

from memgui.estimator.dimensions import chunk_tokens
from memgui.estimator.layout import kept_precision, layout_of
from memgui.estimator.modules.names import targets
from memgui.estimator.split import ALL, WHOLE, Split, Stage
from memgui.estimator.symbols import open_symbols
from memgui.estimator.tensor import OTHER_HALF
from memgui.spec.fields.optimizers import BY_LAYER
from memgui.spec.formats import SCHEMES
from memgui.spec.model import ModelSpec
from memgui.spec.scenario import Lora, Scenario, Training

WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2}
"""Bytes per element of the formats that PyTorch computes in."""

WIDE = {"fp32": 4, "tf32": 4, "fp64": 8}
"""Those of the formats in which models are served that are wider than 16 bits."""


ADAPTERS = ("lora", "ia3", "prompt", "prefix")
"""Methods that train something beside a frozen base."""

VIRTUAL = ("prompt", "prefix")
"""Those of them that train virtual tokens."""

BITSANDBYTES: dict[str, tuple[str, bool]] = {
    "int8": ("int8", False),
    "nf4": ("4bit", False),
    "nf4_dq": ("4bit", True),
    "fp4": ("4bit", False),
    "fp4_dq": ("4bit", True),
}
"""Formats that bitsandbytes packs as it loads: who runs them, and whether scales are packed too."""

PACKED_BEFORE = ("gptq", "awq", "hqq")
"""Libraries that run what was packed before; names of formats begin with theirs."""

BASES: dict[str, tuple[str, bool]] = {
    **BITSANDBYTES,
    **{
        name: (library, False)
        for library in PACKED_BEFORE
        for name in SCHEMES
        if name.startswith(f"{library}_")
    },
}
"""Packed bases that adapters can be trained on, likewise."""

OWN_LOSS = {
    "fused": "fused_linear",
    "litgpt": "chunked",
    "torchtune": "chunked",
    "unsloth": "fused_linear",
    "torchtitan": "compiled",
}
"""How implementations compute the loss unless told otherwise, where that is not at once."""

RUN_BY = {
    ("litgpt", "4bit"): "4bit_of_2023",
    ("torchtune", "4bit"): "nf4_torchao",
    ("unsloth", "4bit"): "4bit_unsloth",
}
"""Who runs a packed base where that is not the library that packs it today."""

OLD = "transformers_2022"
"""The implementation on PyTorch 1.10: all kernels came with the context, softmax kept its input."""

FEW_TOKENS = 1024
"""Up to here AWQ's kernel multiplies packed weights."""

UPCAST = ("int8", "4bit", "awq")
"""Bases whose other weights ``prepare_model_for_kbit_training`` turns to fp32."""


class Options(msgspec.Struct, frozen=True):
    """How a model runs.  Widths are bytes per element."""

    training: bool
    width: int
    """of the (base) weights, and so of what the embedding returns"""
    autocast: int
    """of matrix products under autocast, 0 without"""
    attention: str
    backend: str
    capability: tuple[int, int]
    """of the chip, as far as kernels tell chips apart"""
    half: str
    """``bf16`` or ``fp16``: which two-byte format"""
    masked: bool
    """a padding mask is given"""
    one_sequence: bool
    windowed: bool
    """the sequence reaches the sliding window (or fills a chunk)"""
    checkpointing: str
    """``none``, ``selective`` (stretches of a layer), ``selective_op`` or ``full`` (whole layers)"""
    cache: bool
    """keys and values are put into a cache object"""
    attention_dropout: bool
    hidden_dropout: bool
    embedding_dropout: bool
    trained: str
    """``full``, ``lora`` or ``frozen`` (only the head)"""
    lora: Lora | None
    input_leaf: bool = False
    """the embeddings' output is made to require a gradient (``enable_input_require_grads``)"""
    decode: bool = False
    """one query token against a cache"""
    cache_width: int = 0
    cache_format: str = ""
    """of a cache that is packed"""
    implementation: str = "transformers"
    """whose layers run"""
    base: str = ""
    """which library runs the frozen linear layers from packed weights: a key of ``frozen.LINEARS``"""
    compute: int = 2
    """what that library computes in"""
    frozen_layers: int = 0
    """how many of the first layers, and all before them, are not trained"""
    by_layer: bool = False
    """one layer is trained at a time, the first one here"""
    virtual_tokens: int = 0
    """that prompt tuning puts in front of each sequence, and prefix tuning in front of each layer's keys"""
    nested: bool = False
    """the scales of packed weights are packed too (double quantisation)"""
    whole_logits: bool = False
    """generate() computes logits of every token of the prompt"""
    tuples: bool = False
    """a pass makes new tuples of keys and values beside those that it was given"""
    static: bool = False
    """the cache is made for all tokens at once"""
    ahead: bool = False
    """before the first pass, and attention is PyTorch's composite path, as gpt-fast has it"""
    activation_dropout: bool = False
    final_dropout: bool = False
    one_chunk: bool = False
    """a recurrence takes the whole sequence at once"""
    whole_chunks: bool = False
    """the sequence fills the last chunk of a recurrence"""
    recomputed: tuple[str, ...] = ()
    """the stretches of a layer that are computed again"""
    checkpoint_every: int = 1
    """every which layer is checkpointed"""
    checkpoint_layers: int | None = None
    """how many of the first layers are checkpointed, where that is not all"""
    checkpoint_offload: bool = False
    """a checkpointed layer's input waits in the computer's memory"""
    loss: str = "standard"
    """how logits become a loss: ``standard``, ``chunked`` or ``fused_linear``"""
    compiled: bool = False
    """layers go through torch.compile"""
    fused: bool = False
    """Liger's kernels stand in for norms, rotations and gates"""
    ragged: tuple[str, ...] = ()
    """letters of lengths that are no multiple of 8, where SDPA may be given a mask, which it pads"""
    groups: bool = False
    """SDPA's memory-efficient kernel takes query heads that share keys and values (PyTorch 2.14)"""
    few_tokens: bool = False
    """so few in a micro batch that packed weights are multiplied without being unpacked"""

    fp8: str = ""
    """how products in fp8 are scaled"""
    split: Split = WHOLE
    """what of each layer a rank has"""
    stage: Stage = ALL
    """which layers it has"""
    base_trained: bool = False
    """whether the model's own weights are trained: it follows from the rest"""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "base_trained", self.training and self.trained == "full")

    @property
    def layerwise(self) -> bool:
        """Whether layers are checkpointed as a whole."""
        return self.checkpointing in ("full", "selective_op")

    @property
    def reduces_in_place(self) -> bool:
        """Whether ranks sum into what they sum, as Megatron-LM does; else each sum is a new tensor."""
        return self.implementation == "megatron"


def loss_of(training: Training) -> str:
    """How the training step's code computes its loss."""
    return OWN_LOSS.get(training.implementation, "standard") if training.loss == "auto" else training.loss


def capability(text: str) -> tuple[int, int]:
    """``"9.0"`` as (9, 0); what is no number of NVIDIA's counts as a current chip, (9, 0)."""
    major, _, minor = text.partition(".")
    if major.isdigit() and (minor.isdigit() or not minor):
        return int(major), int(minor or 0)
    return 9, 0


def _fp8(training: Training) -> str:
    """How products in fp8 are scaled; torchtitan's by tensor."""
    if training.precision != "fp8":
        return ""
    return training.fp8_scaling if training.implementation == "megatron" else "tensorwise"


def told_apart(chip: tuple[int, int], *, fp8: bool = False) -> tuple[int, int]:
    """The least chip on which kernels allocate as on this one (8.6 and 8.9 have small shared memory)."""
    if chip >= (10, 0) and fp8:
        return 10, 0
    if chip in ((8, 6), (8, 9)):
        return 8, 6
    return (8, 0) if chip >= (8, 0) else (7, 0)


def _meant(lora: Lora, model: ModelSpec, implementation: str) -> Lora:
    """Adapters on the layers that are meant, as the model's code calls them.

    LitGPT tells queries, keys and values apart in one projection.
    """
    if implementation == "litgpt":
        return lora
    called = targets(
        model.model_type,
        lora.target_modules,
        fused_qkv=model.fused_qkv,
        fused_gate_up=model.fused_gate_up,
        gated=model.gated_mlp,
    )
    return lora if called == lora.target_modules else msgspec.structs.replace(lora, target_modules=called)


def _ragged(scenario: Scenario, chosen: Options) -> Options:
    """``chosen`` with the lengths that are no multiple of 8, if SDPA may be given a mask of so many keys."""
    model = scenario.model
    masked = (
        chosen.masked
        or chosen.static
        or chosen.windowed
        or chosen.trained == "prefix"
        or model.explicit_mask
        or model.relative_attention_num_buckets
        or model.index_topk
        or model.index_topk_blocks
    )
    if not masked or chosen.attention != "sdpa" or chosen.backend not in ("auto", "efficient"):
        return chosen
    if chosen.trained == "prefix":
        letters: tuple[str, ...] = ("sv",)
    else:
        letters = ("s", "u") if model.num_encoder_layers else ("s",)
    known = open_symbols(scenario)
    ragged = tuple([letter for letter in letters if known[letter][2](scenario) % 8])
    return msgspec.structs.replace(chosen, ragged=ragged) if ragged else chosen


def options(scenario: Scenario) -> Options:
    """The options of a scenario's training step, or of its prompt phase."""
    return _ragged(scenario, _options(scenario))


def _options(scenario: Scenario) -> Options:
    model = scenario.model
    window = model.sliding_window or model.attention_chunk_size
    if model.dynamic_mask:
        window = model.keep_window_size + 1
    elif window is not None and not model.is_decoder:
        window //= 2  # half of it lies ahead
    chunk = chunk_tokens(model)
    if scenario.task == "training":
        training = scenario.training
        mixed = (
            kept_precision(scenario).endswith("_mixed")
            and not layout_of(scenario).fsdp  # which casts itself
            and training.implementation != "unsloth"  # which leaves nothing to it
        )
        lora = training.method == "lora"
        beside = training.method in ADAPTERS
        half = "fp16" if training.precision.startswith("fp16") else "bf16"
        base, nested = BASES.get(training.base_format, ("", False)) if beside else ("", False)
        base = RUN_BY.get((training.implementation, base), base)
        if base:
            width = 4 if training.kbit_preparation and base in UPCAST else WIDTHS.get(training.precision, 2)
        elif beside:
            width = WIDTHS[training.base_format]
            if mixed and {half, training.base_format} == {"fp16", "bf16"}:
                width = OTHER_HALF
        else:
            width = 4 if mixed or training.precision == "fp32" else 2
        given = training.dropout

        def drops(own: float) -> bool:
            return bool(own if given is None else given)

        return Options(
            training=True,
            width=width,
            autocast=2 if mixed else 0,
            attention=training.attention if model.sdpa else "eager",
            backend=training.sdpa_backend if training.attention == "sdpa" else "auto",
            capability=told_apart(
                capability(scenario.device.compute_capability), fp8=training.precision == "fp8"
            ),
            half=half,
            masked=training.padding_mask,
            one_sequence=training.micro_batch_size == 1,
            one_chunk=training.sequence_length <= chunk,
            whole_chunks=not training.sequence_length % chunk,
            windowed=window is not None and training.sequence_length >= window,
            checkpointing=training.activation_checkpointing,
            recomputed=training.recompute_modules if training.activation_checkpointing == "selective" else (),
            checkpoint_every=training.checkpoint_every,
            checkpoint_layers=training.checkpoint_layers if training.implementation == "megatron" else None,
            checkpoint_offload=training.checkpoint_offload,
            cache=model.is_decoder and training.use_cache and training.activation_checkpointing == "none",
            attention_dropout="attention" in model.dropouts and drops(model.attention_dropout),
            hidden_dropout=bool({"hidden", "feed_forward", "attention_output"} & {*model.dropouts})
            and drops(model.hidden_dropout),
            embedding_dropout="embedding" in model.dropouts and drops(model.embedding_dropout),
            activation_dropout="activation" in model.dropouts and drops(model.activation_dropout),
            final_dropout="final" in model.dropouts and drops(model.final_dropout),
            trained=training.method,
            lora=_meant(training.lora, model, training.implementation) if lora else None,
            implementation=training.implementation,
            base=base,
            nested=nested,
            compute=4 if training.precision == "fp32" else 2,
            input_leaf=training.input_require_grads and training.activation_checkpointing != "none",
            frozen_layers=training.frozen_layers if training.method == "full" else 0,
            by_layer=training.optimizer in BY_LAYER,
            virtual_tokens=training.virtual_tokens if training.method in VIRTUAL else 0,
            loss=loss_of(training),
            compiled=training.compile,
            fused=training.implementation == "fused",
            groups=training.torch_version == "2.14" and training.implementation in ("transformers", "fused"),
            few_tokens=base == "awq" and training.micro_batch_size * training.sequence_length <= FEW_TOKENS,
            fp8=_fp8(training),
        )
    inference = scenario.inference
    ahead = inference.engine == "gpt-fast"
    old = not ahead and inference.transformers_version == "4.35"
    base, nested = BITSANDBYTES.get(inference.weight_format.removesuffix("_block128"), ("", False))
    return Options(
        training=False,
        width=WIDE.get(inference.weight_format, 2),
        autocast=0,
        attention="sdpa" if ahead else inference.attention if model.sdpa else "eager",
        backend="math" if ahead else "auto",
        capability=told_apart(capability(scenario.device.compute_capability)),
        half="fp16" if "fp16" in (inference.weight_format, inference.kv_cache_format) else "bf16",
        masked=False,
        one_sequence=inference.batch_size == 1,
        one_chunk=inference.prompt_tokens <= chunk,
        whole_chunks=not inference.prompt_tokens % chunk,
        windowed=window is not None and inference.prompt_tokens >= window,
        checkpointing="none",
        cache=model.is_decoder,
        attention_dropout=False,
        hidden_dropout=False,
        embedding_dropout=False,
        trained="none",
        lora=None,
        cache_width=WIDTHS.get(inference.kv_cache_format, 2),
        cache_format="" if inference.kv_cache_format in WIDTHS else inference.kv_cache_format,
        base=base,
        nested=nested,
        whole_logits=old,
        tuples=old,
        static=ahead or (model.is_decoder and inference.cache_implementation == "static"),
        ahead=ahead,
    )
