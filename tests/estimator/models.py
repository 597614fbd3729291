"""Models of the dense families, described as their configurations do."""

import msgspec

from memgui.spec.model import ModelSpec

GPT2 = ModelSpec(
    name="gpt2",
    model_type="gpt2",
    vocab_size=50257,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    num_key_value_heads=12,
    head_dim=64,
    intermediate_size=3072,
    max_position_embeddings=1024,
    tie_word_embeddings=True,
    norm="layer_norm",
    hidden_act="gelu_new",
    gated_mlp=False,
    position_embedding="learned",
    fused_qkv=True,
    attention_bias=True,
    attention_output_bias=True,
    mlp_bias=True,
    softmax_in_fp32=False,
    dropouts=("attention", "hidden", "embedding"),
    hidden_dropout=0.1,
    attention_dropout=0.1,
    embedding_dropout=0.1,
)
OPT_1B = ModelSpec(
    name="opt-1.3b",
    model_type="opt",
    vocab_size=50272,
    hidden_size=2048,
    num_hidden_layers=24,
    num_attention_heads=32,
    num_key_value_heads=32,
    head_dim=64,
    intermediate_size=8192,
    max_position_embeddings=2048,
    tie_word_embeddings=True,
    norm="layer_norm",
    hidden_act="relu",
    gated_mlp=False,
    position_embedding="learned",
    position_offset=2,
    attention_bias=True,
    attention_output_bias=True,
    mlp_bias=True,
    query_scaling=True,
    dropouts=("attention", "hidden"),
    hidden_dropout=0.1,
)


def llama(
    name: str, vocabulary: int, hidden: int, layers: int, heads: tuple[int, int, int], ffn: int
) -> ModelSpec:
    return ModelSpec(
        name=name,
        model_type="llama",
        vocab_size=vocabulary,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads[0],
        num_key_value_heads=heads[1],
        head_dim=heads[2],
        intermediate_size=ffn,
        max_position_embeddings=131072,
    )


def _but(model: ModelSpec, **changes: object) -> ModelSpec:
    return msgspec.structs.replace(model, **changes)


LLAMA_2_7B = llama("llama-2-7b", 32000, 4096, 32, (32, 32, 128), 11008)
LLAMA_3_8B = llama("llama-3-8b", 128256, 4096, 32, (32, 8, 128), 14336)
LLAMA_3_1B = _but(llama("llama-3.2-1b", 128256, 2048, 16, (32, 8, 64), 8192), tie_word_embeddings=True)
MISTRAL_7B = _but(
    llama("mistral-7b-v0.1", 32000, 4096, 32, (32, 8, 128), 14336),
    layer_types=("sliding_attention",),
    sliding_window=4096,
)
QWEN_2_7B = _but(llama("qwen2.5-7b", 152064, 3584, 28, (28, 4, 128), 18944), attention_bias=True)
QWEN_3_8B = _but(llama("qwen3-8b", 151936, 4096, 36, (32, 8, 128), 12288), qk_norm="head")
SMOLLM2 = _but(llama("smollm2-135m", 49152, 576, 30, (9, 3, 64), 1536), tie_word_embeddings=True)

MODELS = {
    model.name: model
    for model in (
        *(GPT2, OPT_1B, LLAMA_2_7B, LLAMA_3_8B, LLAMA_3_1B, MISTRAL_7B, QWEN_2_7B, QWEN_3_8B, SMOLLM2),
    )
}
