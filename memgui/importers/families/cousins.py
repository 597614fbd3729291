"""Families that take their parts from several others."""

from __future__ import annotations

from math import isqrt

from memgui.importers.config_reader import Config
from memgui.importers.families.encoder_decoder import bart, mbart, pegasus
from memgui.importers.families.experts import by_sigmoids, first_dense
from memgui.importers.families.further import beside, unequal
from memgui.importers.families.gemma import gemma2
from memgui.importers.families.gpt import gpt2
from memgui.importers.families.latent import latent_attention
from memgui.importers.families.llama import granite, llama
from memgui.importers.families.parts import (
    activation,
    dropouts,
    experts,
    shared_experts,
    window_by_layers,
    window_everywhere,
)
from memgui.importers.families.registry import Fields, family
from memgui.importers.families.single import lfm2
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.weights import Weights


@family("gpt-sw3")
def gpt_sw3(c: Config) -> Fields:
    """GPT-2 under another name."""
    return gpt2(c)


@family("lfm2_moe")
def lfm2_moe(c: Config) -> Fields:
    """LFM2 with experts behind the first layers, chosen by sigmoids in the model's own format."""
    fields = lfm2(c.with_default("block_auto_adjust_ff_dim", False))
    balanced = c.flag("use_expert_bias", default=True)
    return {
        **fields,
        **experts(c),
        **first_dense(c, fields["num_hidden_layers"], c.count("num_dense_layers", default=2)),
        "router_scoring": "sigmoid_own",
        "router_correction_bias": balanced,
        "norm_topk_prob": c.flag("norm_topk_prob", default=True),
        "routed_scaling": True,
    }


@family("vaultgemma")
def vaultgemma(c: Config) -> Fields:
    """Gemma 2 with norms before each half only."""
    return {**gemma2(c), "norm_placement": "pre"}


@family("minicpm3")
def minicpm3(c: Config) -> Fields:
    """DeepSeek's attention rotated as Llama's, and MiniCPM's fixed factors."""
    head = c.count("hidden_size") // max(c.count("num_attention_heads"), 1)
    latent = latent_attention(c.with_default("v_head_dim", head))
    return {
        **llama(c.with_default("head_dim", latent["head_dim"])),
        **latent,
        "embedding_scaling": "whole_buffer",
        "residual_scaling": True,
        "head_input_scaling": True,
    }


@family("hyperclovax")
def hyperclovax(c: Config) -> Fields:
    """Granite, with norms behind each half too where the file says so."""
    return {**granite(c), "norm_placement": "sandwich" if c.flag("use_post_norm", default=False) else "pre"}


@family("exaone_moe")
def exaone_moe(c: Config) -> Fields:
    """EXAONE 4's attention with norms before each half; DeepSeek-V3's experts."""
    fields = llama(c)
    number = c.count("num_shared_experts", default=1)
    return {
        **fields,
        **window_by_layers(c, fields["num_hidden_layers"], 4),
        **experts(c),
        **shared_experts(number, c.count("moe_intermediate_size")),
        **first_dense(c, fields["num_hidden_layers"], c.count("first_k_dense_replace", default=1)),
        **by_sigmoids(c),
        "qk_norm": "head",
    }


@family("diffllama")
def diffllama(c: Config) -> Fields:
    """Llama whose attention is the difference of two."""
    return {**llama(c), "differential": True}


@family("doge")
def doge(c: Config) -> Fields:
    """Llama with norms on heads, learned masks, weights on what each half is added to."""
    fields = llama(c)
    layers, hidden = fields["num_hidden_layers"], fields["hidden_size"]
    number = c.count("num_experts", default=0) if c.flag("is_moe", default=False) else 0
    found: Fields = {}
    if number:
        unequal(c, QT_TRANSLATE_NOOP("messages", "experts of one row each are looked up beside"))
        halves = Weights("per_layer.router", layers, (2 * isqrt(number), hidden))
        found = beside(halves, Weights("per_layer.experts", 2 * layers, (number, hidden)))
    return {
        **fields,
        **dropouts(c, "attention", "hidden"),
        **window_everywhere(c),
        "qk_norm": "head",
        "norm_placement": "weighed",
        "dynamic_mask": True,
        "explicit_mask": True,
        "keep_window_size": c.count("keep_window_size", default=2048),
        **found,
    }


@family("bitnet")
def bitnet(c: Config) -> Fields:
    """Llama with squared ReLU, and a norm before the last projection of each half."""
    return {**llama(c), "hidden_act": activation(c, "relu2"), "inner_norms": True}


@family("nanochat")
def nanochat(c: Config) -> Fields:
    """Norms without weights, also on the embedding and on rotated heads; squared ReLU without a gate."""
    return {
        **llama(c),
        "norm": "plain_rms_norm",
        "embedding_norm": True,
        "qk_norm": "plain",
        "gated_mlp": False,
        "hidden_act": activation(c, "relu2"),
        "final_logit_softcapping": c.number_or_none("final_logit_softcapping"),
    }


@family("marian")
def marian(c: Config) -> Fields:
    """BART with fixed positions and no norm on the embedding."""
    fields = {**bart(c), "position_embedding": "sinusoidal", "position_offset": 0}
    return {**fields, "embedding_norm": False}


@family("m2m_100")
def m2m_100(c: Config) -> Fields:
    """Pegasus with positions in a buffer, and none on its logits."""
    fixed = {"position_embedding": "sinusoidal_buffer", "position_offset": 2}
    return {**pegasus(c), **fixed, "logits_buffer": False}


@family("blenderbot")
def blenderbot(c: Config) -> Fields:
    """MBART without a norm on the embedding, positions from 0."""
    return {**mbart(c), "embedding_norm": False, "position_offset": 0}


@family("blenderbot-small")
def blenderbot_small(c: Config) -> Fields:
    """BART with positions from 0."""
    return {**bart(c), "position_offset": 0}


@family("plbart")
def plbart(c: Config) -> Fields:
    """BART under another name."""
    return bart(c)


@family("mvp")
def mvp(c: Config) -> Fields:
    """BART whose attention is its own: it scales the queries."""
    return {**bart(c), "sdpa": False, "query_scaling": True, "score_scaling": "none"}
