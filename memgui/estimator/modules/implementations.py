"""Whose code runs a model: Transformers', or another library's, with what that code can run.

Another library's outline stands in for the one that Transformers' code gives the model.  Figures
hold for the version named beside each.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from types import MappingProxyType

import msgspec

from memgui.estimator.modules.context import Context
from memgui.estimator.modules.layers import LayerPlan, Writer
from memgui.estimator.modules.reach import FLASH_2, FLEX
from memgui.estimator.options import ADAPTERS, BASES, BITSANDBYTES, OLD, WIDTHS
from memgui.spec.model import ModelSpec


class Code(msgspec.Struct, frozen=True):
    """What stands before the layers, the layers, what stands after them."""

    stem: Writer
    plans: Callable[[Context], list[tuple[LayerPlan, int]]]
    tail: Writer


class Implementation(msgspec.Struct, frozen=True):
    """A library's code, or Transformers' own outline where ``code`` is ``None``.

    ``choices`` are the values of fields of a training step that it is written for, ``model`` those of a
    model's fields (of each element, where a field is a tuple); others are free.  ``version`` is what the
    figures hold for, ``shares`` which degrees of parallelism beside data the code has.  A library's code
    is loaded when something first runs it.
    """

    version: str
    code: Callable[[], Code] | None
    choices: Mapping[str, Container[object]]
    model: Mapping[str, Container[object]] = MappingProxyType({})
    shares: tuple[str, ...] = ()

    def lacks(self, model: ModelSpec) -> tuple[str, object] | None:
        """The first field of ``model`` with a value that the code cannot run, and the value."""
        for name, allowed in self.model.items():
            value = getattr(model, name)
            for one in value if isinstance(value, tuple) else (value,):
                if one not in allowed:
                    return name, one
        return None


def _litgpt() -> Code:
    from memgui.estimator.modules.litgpt import plans, stem, tail

    return Code(stem, plans, tail)


def _megatron() -> Code:
    from memgui.estimator.modules.megatron import plans, stem, tail

    return Code(stem, plans, tail)


def _torchtitan() -> Code:
    from memgui.estimator.modules.torchtitan import plans, stem, tail

    return Code(stem, plans, tail)


def _torchtune() -> Code:
    from memgui.estimator.modules.torchtune import plans, stem, tail

    return Code(stem, plans, tail)


def _unsloth() -> Code:
    from memgui.estimator.modules.unsloth import plans, stem, tail

    return Code(stem, plans, tail)


_PLAIN_DECODER: Mapping[str, Container[object]] = {
    "is_decoder": (True,),
    "norm_placement": ("pre",),
    "qk_norm": ("none",),
    "position_embedding": ("rope",),
    "num_experts": (0,),
    "output_vocab_size": (0,),
    "kv_lora_rank": (None,),
    "layer_variants": (),
    "mamba_d_ssm": (0,),
    "attn_logit_softcapping": (None,),
}

_ALSO_FUSED = ("attn_logit_softcapping", "layer_variants")
"""What Liger's kernels leave to Transformers' code."""

IMPLEMENTATIONS: dict[str, Implementation] = {
    "transformers": Implementation(
        "PyTorch 2.13, Transformers 5.24",
        None,
        {
            "method": ("full", "frozen", *ADAPTERS),
            "attention": ("eager", "sdpa", FLASH_2),
            "base_format": {*WIDTHS, *BASES},
            "loss": ("auto", "standard"),
            "compile": (False,),
        },
        shares=("tensor", "pipeline", "context"),
    ),
    OLD: Implementation(
        "PyTorch 1.10, Transformers 4.17",
        None,
        {
            "method": ("full", "frozen"),
            "attention": ("eager",),
            "loss": ("auto", "standard"),
            "compile": (False,),
            "frozen_layers": (0,),
        },
        {
            "num_experts": (0,),
            "kv_lora_rank": (None,),
            "mamba_d_ssm": (0,),
            "sliding_window": (None,),
            "position_embedding": ("learned",),
            "image_size": (0,),
            "num_encoder_layers": (0,),
        },
    ),
    "fused": Implementation(
        "Liger Kernel 0.8.5, PyTorch 2.13, Transformers 5.24",
        None,
        {
            "method": ("full", "lora"),
            "attention": ("eager", "sdpa", FLASH_2),
            "base_format": {*WIDTHS, *BASES},
            "loss": ("auto", "standard", "fused_linear"),
            "compile": (False,),
        },
        {
            **{name: known for name, known in _PLAIN_DECODER.items() if name not in _ALSO_FUSED},
            "norm_placement": ("pre", "sandwich"),
            "qk_norm": ("none", "head"),
            "norm": ("rms_norm", "gemma_rms_norm"),
            "hidden_act": ("silu", "gelu_pytorch_tanh"),
            "gated_mlp": (True,),
            "mlp_bias": (False,),
            "rotary_dim": (None,),
            "lm_head_bias": (False,),
            "parallel_block": ("none",),
            "rotary_style": ("half", "part"),
            "mup_scaling": (False,),
            "logit_scaling": (False,),
            "embedding_size": (None,),
            "residual_in_fp32": (False,),
            "layer_types": ("full_attention", "sliding_attention"),
        },
    ),
    "unsloth": Implementation(
        "Unsloth of October 2026, PyTorch 2.13",
        _unsloth,
        {
            "method": ("lora",),
            "precision": ("bf16", "fp16", "bf16_mixed"),
            "attention": ("sdpa", FLASH_2),
            "base_format": {"bf16", "fp16", "nf4", "nf4_dq", "fp4", "fp4_dq"},
            "loss": ("auto", "fused_linear"),
            "activation_checkpointing": ("none", "full"),
            "compile": (False,),
            "padding_mask": (False,),
        },
        {
            **_PLAIN_DECODER,
            "qk_norm": ("none", "head"),
            "norm": ("rms_norm",),
            "hidden_act": ("silu",),
            "gated_mlp": (True,),
            "mlp_bias": (False,),
            "fused_qkv": (False,),
            "fused_gate_up": (False,),
            "lm_head_bias": (False,),
            "parallel_block": ("none",),
            "rotary_style": ("half",),
            "attention_output_bias": (False,),
            "layer_types": ("full_attention",),
        },
    ),
    "litgpt": Implementation(
        "LitGPT of October 2023, bitsandbytes 0.41",
        _litgpt,
        {
            "method": ("lora",),
            "attention": ("eager", "sdpa"),
            "base_format": {*WIDTHS, *BITSANDBYTES},
            "loss": ("auto", "chunked"),
            "compile": (False,),
        },
        {
            **_PLAIN_DECODER,
            "norm": ("rms_norm", "layer_norm"),
            "tie_word_embeddings": (False,),
            "layer_types": ("full_attention", "sliding_attention"),
        },
    ),
    "torchtune": Implementation(
        "torchtune of November 2024, PyTorch 2.6",
        _torchtune,
        {
            "method": ("full", "lora"),
            "attention": ("sdpa", FLEX),
            "base_format": {*WIDTHS, "nf4_dq"},
            "loss": ("auto", "standard", "chunked"),
            "compile": (False, True),
            "frozen_layers": (0,),
            "padding_mask": (False,),
        },
        {
            **_PLAIN_DECODER,
            "norm": ("rms_norm",),
            "hidden_act": ("silu",),
            "gated_mlp": (True,),
            "mlp_bias": (False,),
            "lm_head_bias": (False,),
            "parallel_block": ("none",),
            "rotary_style": ("half",),
            "layer_types": ("full_attention",),
        },
    ),
    "megatron": Implementation(
        "Megatron-LM core 0.12, Transformer Engine 2, PyTorch 2.7",
        _megatron,
        {
            "method": ("full",),
            "attention": ("eager", "sdpa", FLASH_2),
            "loss": ("auto", "standard"),
            "compile": (False,),
            "frozen_layers": (0,),
            "padding_mask": (False,),
            "optimizer_in_backward": (False,),
            "precision": ("fp32", "bf16_master", "fp16_master", "fp8"),
        },
        {
            **{name: known for name, known in _PLAIN_DECODER.items() if name != "kv_lora_rank"},
            "qk_norm": ("none", "head"),
            "position_embedding": ("rope", "learned", "none"),
            "num_experts": range(1_000_000),
            "moe_latent_size": (0,),
            "experts_norm": (False,),
            "expert_bias": (False,),
            "expert_layout": ("grouped",),
            "norm": ("rms_norm", "gemma_rms_norm", "layer_norm"),
            "hidden_act": ("silu", "gelu", "gelu_new", "gelu_pytorch_tanh"),
            "parallel_block": ("none",),
            "layer_types": ("full_attention", "sliding_attention"),
            "mlp_layer_types": ("dense", "sparse"),
            "mup_scaling": (False,),
            "embedding_size": (None,),
            "residual_in_fp32": (False,),
            "embedding_norm": (False,),
        },
        shares=("tensor", "pipeline", "context", "expert"),
    ),
    "torchtitan": Implementation(
        "torchtitan of 2025, PyTorch 2.7",
        _torchtitan,
        {
            "method": ("full",),
            "attention": ("sdpa",),
            "loss": ("auto", "standard", "compiled"),
            "compile": (False, True),
            "frozen_layers": (0,),
            "padding_mask": (False,),
            "precision": ("fp32", "bf16", "bf16_mixed", "fp8"),
        },
        {
            **_PLAIN_DECODER,
            "qk_norm": ("none", "head"),
            "norm": ("rms_norm",),
            "hidden_act": ("silu",),
            "gated_mlp": (True,),
            "mlp_bias": (False,),
            "attention_bias": (False,),
            "lm_head_bias": (False,),
            "parallel_block": ("none",),
            "layer_types": ("full_attention",),
        },
        shares=("tensor", "pipeline", "context"),
    ),
}
"""By ``training.implementation``."""
