"""The nearest known structure for a ``model_type`` that nobody has described."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from memgui.files.bounded import FileFault
from memgui.files.strict_json import WrongType
from memgui.importers.config_reader import Config, Report
from memgui.importers.families import FAMILIES, Fields
from memgui.spec.messages import QT_TRANSLATE_NOOP

DEPTHS = ("num_encoder_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")
"""Where models of two stacks say how deep they are."""
HEAD_SIZE = 64
"""Head size of a model that states no heads at all."""


def read_as_nearest(config: Config) -> Fields:
    """The fields of the structure that reads most of what the file states; of equal ones the nearest.

    That it is another family's structure is booked as an assumption.  A value of the wrong type is refused
    as ever; any other fault only says that this is not the structure, unless no other is.
    """
    found: tuple[str, Report, Fields] | None = None
    for name in _candidates(config.undescribed(Report())):
        report = Report()
        try:
            fields = FAMILIES[name](_complete(config.undescribed(report)))
        except WrongType:
            raise
        except FileFault:
            if found is None and name == LAST:
                raise
            continue
        if found is None or len(report.understood) > len(found[1].understood):
            found = name, report, fields
    if found is None:
        raise AssertionError(f"{LAST} is always a candidate")
    name, report, fields = found
    config.report.take(report)
    _book(config, name)
    return fields


LAST = "llama"
"""What is tried last."""


def _candidates(config: Config) -> Iterator[str]:
    """Names like the unknown one, what the keys speak for, names with a part in common, Llama last."""
    likes = get_close_matches(config.model_type, FAMILIES, 3, 0.7) if config.model_type else []
    by_keys = [name for name, keys in SIGNS if all(config.states(key) for key in keys)]
    parts = [part for part in re.split(r"[^a-z]+", config.model_type) if len(part) >= LETTERS]
    kin = [name for name in FAMILIES if name.startswith(tuple(parts))] if parts else []
    yield from (name for name in dict.fromkeys((*likes, *by_keys, *kin)) if name != LAST)
    yield LAST


LETTERS = 4
"""Shorter parts of names say nothing: ``text``, ``lm``."""
SIGNS = (
    ("deepseek_v4", ("hc_mult", "compress_ratios")),
    ("kimi_linear", ("kv_lora_rank", "linear_attn_config")),
    ("glm_moe_dsa", ("kv_lora_rank", "index_topk")),
    ("deepseek_v3", ("kv_lora_rank", "moe_intermediate_size")),
    ("deepseek", ("n_shared_experts", "moe_intermediate_size")),
    ("qwen3_next", ("linear_num_value_heads",)),
    ("bamba", ("mamba_n_heads",)),
    ("gpt_oss", ("num_local_experts", "layer_types")),
    ("qwen3_moe", ("moe_intermediate_size",)),
    ("qwen2_moe", ("shared_expert_intermediate_size",)),
    ("mixtral", ("num_experts",)),
    ("mixtral", ("num_local_experts",)),
    ("gemma3_text", ("sliding_window", "query_pre_attn_scalar")),
    ("qwen2", ("use_sliding_window",)),
    ("t5", ("d_kv", "d_ff")),
    ("bart", ("encoder_layers", "decoder_layers")),
    ("bert", ("type_vocab_size",)),
    ("gpt2", ("n_embd", "n_head")),
)
"""Which structure keys speak for."""


def _complete(config: Config) -> Config:
    """Layers of both stacks where the file states no others, heads of the usual size where it has none."""
    if not config.states("num_hidden_layers"):
        found = {key: config.count(key) for key in DEPTHS if config.states(key)}
        found |= {key: sum(config.counts(key)) for key in ("block_sizes",) if config.states(key)}
        found |= {key: len(config.items(key)) for key in ("attn_layers",) if config.states(key)}
        layers = sum(found.values())
        if layers:
            config.assume(
                QT_TRANSLATE_NOOP(
                    "messages", "The file states no num_hidden_layers; {layers} are assumed, from {keys}."
                ),
                layers=layers,
                keys=", ".join(found),
            )
            config = config.with_default("num_hidden_layers", layers)
    if config.states("num_attention_heads") or not config.states("hidden_size"):
        return config
    heads = max(config.count("hidden_size") // HEAD_SIZE, 1)
    config.assume(
        QT_TRANSLATE_NOOP("messages", "The file states no attention heads; {heads} are assumed."), heads=heads
    )
    return config.with_default("num_attention_heads", heads)


def _book(config: Config, name: str) -> None:
    if config.model_type:
        config.assume(
            QT_TRANSLATE_NOOP(
                "messages",
                "The model_type {model_type} is not described here; its layers are taken to be written as "
                "{nearest}'s.",
            ),
            model_type=config.model_type,
            nearest=name,
        )
    else:
        config.assume(
            QT_TRANSLATE_NOOP(
                "messages",
                "The file names no model_type; its layers are taken to be written as {nearest}'s.",
            ),
            nearest=name,
        )
