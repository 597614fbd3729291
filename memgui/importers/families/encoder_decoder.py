"""Encoder and decoder: T5, BART, Whisper.  ``num_hidden_layers`` is the decoder's."""

from __future__ import annotations

from memgui.files.strict_json import shown
from memgui.importers.config_reader import Config
from memgui.importers.families.parts import ACTIVATIONS, activation, dropouts, share
from memgui.importers.families.registry import Fields, family
from memgui.spec.messages import QT_TRANSLATE_NOOP

BIASES: Fields = {"attention_bias": True, "attention_output_bias": True, "mlp_bias": True}


@family("t5", "mt5")
def t5(c: Config) -> Fields:
    """RMSNorm before each half, no bias, distances in buckets; v1.1 has a gated feed-forward."""
    heads = c.count("num_attention_heads")
    encoder_layers = c.count("num_layers")
    kind = c.text("feed_forward_proj", default="relu")
    name = kind.removeprefix("gated-")
    gated = name != kind
    rate = c.ratio("dropout_rate")
    width = c.count("intermediate_size")
    tied = c.flag("tie_word_embeddings", default=True)
    return {
        "head": "seq2seq",
        "dropouts": ("attention", "hidden", "embedding", "activation", "final"),
        "attention_dropout": rate,
        "hidden_dropout": rate,
        "embedding_dropout": rate,
        "activation_dropout": rate,
        "final_dropout": rate,
        "norm": "t5_rms_norm",
        "mlp_in_weight_format": True,
        "vocab_size": c.count("vocab_size"),
        "hidden_size": c.count("hidden_size"),
        "num_hidden_layers": c.count_or_none("num_decoder_layers") or encoder_layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": c.count("head_dim"),
        "intermediate_size": width,
        "hidden_act": "gelu_new" if kind == "gated-gelu" else ACTIVATIONS.get(name, name),
        "gated_mlp": gated,
        "softmax_in_fp32": False,
        "position_embedding": "relative",
        "relative_attention_num_buckets": c.count("relative_attention_num_buckets"),
        "tie_word_embeddings": tied,
        "head_input_scaling": c.flag("scale_decoder_outputs", default=tied),  # as 5.24 writes it
        "num_encoder_layers": encoder_layers,
        "encoder_attention_heads": heads,
        "encoder_ffn_dim": width,
    }


@family("longt5")
def longt5(c: Config) -> Fields:
    """T5 whose encoder looks at neighbouring blocks, which no module here writes yet."""
    c.assume(
        QT_TRANSLATE_NOOP(
            "messages",
            "encoder_attention_type is {value}, which is not known here; T5's attention to all is taken: "
            "too little for short sources, too much for long ones.",
        ),
        value=shown(c.text("encoder_attention_type", default="local"), 40),
    )
    return t5(c)


@family("umt5")
def umt5(c: Config) -> Fields:
    """T5 with a bias by distance of each layer's own."""
    return {**t5(c), "relative_attention_shared": False}


@family("bart")
def bart(c: Config) -> Fields:
    """Norms after each sum and on the embedding, learned positions with two rows more."""
    hidden, heads = c.count("hidden_size"), c.count("decoder_attention_heads")
    fields = dropouts(c, "attention", "hidden")
    return {
        **fields,
        **BIASES,
        "head": "seq2seq",
        "dropouts": ("attention", "hidden", "embedding", "activation"),
        "embedding_dropout": fields["hidden_dropout"],
        "activation_dropout": c.ratio("activation_dropout"),
        "embedding_scaling": "number",
        "explicit_mask": True,
        "logits_buffer": True,
        "vocab_size": c.count("vocab_size"),
        "hidden_size": hidden,
        "num_hidden_layers": c.count("decoder_layers"),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": share(c, hidden, heads),
        "intermediate_size": c.count("decoder_ffn_dim"),
        "max_position_embeddings": c.count("max_position_embeddings"),
        "position_embedding": "learned",
        "position_offset": 2,
        "softmax_in_fp32": False,
        "hidden_act": activation(c, "gelu"),
        "gated_mlp": False,
        "norm": "layer_norm",
        "norm_placement": "post",
        "embedding_norm": True,
        "final_norm": False,
        "tie_word_embeddings": c.flag("tie_word_embeddings", default=True),
        "num_encoder_layers": c.count("encoder_layers"),
        "encoder_attention_heads": c.count("encoder_attention_heads"),
        "encoder_ffn_dim": c.count("encoder_ffn_dim"),
    }


@family("mbart")
def mbart(c: Config) -> Fields:
    """BART with norms before each half, and one more behind each stack."""
    return {**bart(c), "norm_placement": "pre", "final_norm": True}


@family("pegasus")
def pegasus(c: Config) -> Fields:
    """Norms before each half and behind each stack, fixed positions."""
    return {**mbart(c), "position_embedding": "sinusoidal", "position_offset": 0, "embedding_norm": False}


@family("whisper")
def whisper(c: Config) -> Fields:
    """A spectrogram through two convolutions into the encoder; keys without bias; norms before each half."""
    longest = c.count("max_target_positions")
    fields = bart(c.with_default("max_position_embeddings", longest))
    return {
        **fields,
        "head": "speech",
        "position_offset": 0,
        "norm_placement": "pre",
        "embedding_norm": False,
        "embedding_scaling": "none",
        "logits_buffer": False,
        "explicit_mask": False,
        "final_norm": True,
        "key_bias": False,
        "query_scaling": True,
        "heads_in_order": True,
        "num_mel_bins": c.count("num_mel_bins"),
        "max_source_positions": c.count("max_source_positions"),
    }
