"""Fields of how a model's code writes what other models write otherwise: same figures, other tensors."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field
from memgui.spec.fields.rows import choice, flag, size
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def _linear(scenario: Scenario) -> bool:
    return scenario.model.linear_num_value_heads > 0


def _classifies(scenario: Scenario) -> bool:
    return not scenario.model.is_decoder or scenario.model.head == "sequence"


def _encoder_of_classes(scenario: Scenario) -> bool:
    return not scenario.model.is_decoder and scenario.model.head == "sequence"


def _experts(scenario: Scenario) -> bool:
    return scenario.model.num_experts > 0


ATTENTION: tuple[Field, ...] = (
    choice(
        "rotary_style",
        QT_TRANSLATE_NOOP("fields", "Rotation"),
        QT_TRANSLATE_NOOP(
            "fields",
            "How the code turns queries and keys by their positions; some ways copy more than others.",
        ),
        Choice("half", QT_TRANSLATE_NOOP("fields", "halves (Llama)")),
        Choice("half_fp32", QT_TRANSLATE_NOOP("fields", "halves in fp32 (OLMo)")),
        Choice("half_upcast", QT_TRANSLATE_NOOP("fields", "halves in fp32 (ModernBERT)")),
        Choice("half_upcast_once", QT_TRANSLATE_NOOP("fields", "halves in fp32, frequencies once (ESM)")),
        Choice("part", QT_TRANSLATE_NOOP("fields", "halves, put together again (NeoX, Phi 3)")),
        Choice("part_in_layer", QT_TRANSLATE_NOOP("fields", "the same by the layer itself (Phi, StableLM)")),
        Choice("pairs", QT_TRANSLATE_NOOP("fields", "pairs (Helium)")),
        Choice("pairs_upcast", QT_TRANSLATE_NOOP("fields", "pairs in fp32 (ERNIE 4.5)")),
        Choice("pairs_part", QT_TRANSLATE_NOOP("fields", "pairs, put together again (GLM)")),
        Choice("pairs_part_by_token", QT_TRANSLATE_NOOP("fields", "pairs, token by token (GPT-J)")),
        Choice("pairs_part_fp32", QT_TRANSLATE_NOOP("fields", "pairs, token by token, in fp32 (CodeGen)")),
        Choice("pairs_of_table", QT_TRANSLATE_NOOP("fields", "pairs by a table of weights (RoFormer)")),
        Choice("pairs_fp32", QT_TRANSLATE_NOOP("fields", "pairs in fp32 (Cohere)")),
        Choice("quarters", QT_TRANSLATE_NOOP("fields", "products of halves (gpt-oss)")),
        Choice("pairs_quarters", QT_TRANSLATE_NOOP("fields", "products of pairs (DeepSeek-V3)")),
        Choice("complex", QT_TRANSLATE_NOOP("fields", "complex numbers (DeepSeek-V2, Llama 4)")),
    ),
    flag(
        "rotary_per_layer_type",
        QT_TRANSLATE_NOOP("fields", "Rotary tables per layer type"),
        QT_TRANSLATE_NOOP("fields", "Layers with and without a window have rotary tables of their own."),
    ),
    flag(
        "rotary_per_sequence",
        QT_TRANSLATE_NOOP("fields", "Rotary tables per sequence"),
        QT_TRANSLATE_NOOP("fields", "Every sequence of a batch has rotary tables of its own."),
    ),
    flag(
        "rotary_in_layer",
        QT_TRANSLATE_NOOP("fields", "Rotary tables per layer"),
        QT_TRANSLATE_NOOP("fields", "Every layer with attention makes rotary tables of its own."),
    ),
    flag(
        "linear_fused",
        QT_TRANSLATE_NOOP("fields", "Linear projections fused"),
        QT_TRANSLATE_NOOP("fields", "Queries, keys, values and gate of linear attention are one projection."),
        applies=_linear,
    ),
    flag(
        "linear_separate",
        QT_TRANSLATE_NOOP("fields", "Linear projections separate"),
        QT_TRANSLATE_NOOP("fields", "Queries, keys and values of linear attention are one projection each."),
        applies=_linear,
    ),
    flag(
        "linear_doubled",
        QT_TRANSLATE_NOOP("fields", "Linear updates doubled"),
        QT_TRANSLATE_NOOP("fields", "The share of a state that a token rewrites is doubled."),
        applies=_linear,
    ),
    flag(
        "linear_sigmoid",
        QT_TRANSLATE_NOOP("fields", "Linear gate, sigmoid"),
        QT_TRANSLATE_NOOP("fields", "The gate behind linear attention is a sigmoid, not SiLU."),
        applies=_linear,
    ),
    choice(
        "fused_qkv_split",
        QT_TRANSLATE_NOOP("fields", "Fused QKV taken apart"),
        QT_TRANSLATE_NOOP(
            "fields", "How the code takes query, key and value out of their one projection; indexing copies."
        ),
        Choice("split", QT_TRANSLATE_NOOP("fields", "split at once")),
        Choice("slices", QT_TRANSLATE_NOOP("fields", "one slice each")),
        Choice("copied", QT_TRANSLATE_NOOP("fields", "split and copied (CodeGen)")),
        Choice("indexed", QT_TRANSLATE_NOOP("fields", "key and value indexed")),
    ),
    flag(
        "clip_qkv",
        QT_TRANSLATE_NOOP("fields", "Queries, keys, values clipped"),
        QT_TRANSLATE_NOOP(
            "fields", "Queries, keys and values are held between bounds; what they were before is kept."
        ),
    ),
    flag(
        "sdpa",
        QT_TRANSLATE_NOOP("fields", "SDPA path"),
        QT_TRANSLATE_NOOP(
            "fields", "The code can use PyTorch's attention kernels; a model without runs eager attention."
        ),
    ),
    flag(
        "explicit_mask",
        QT_TRANSLATE_NOOP("fields", "Mask always given"),
        QT_TRANSLATE_NOOP(
            "fields", "The code hands a mask to every layer even where none is needed: no flash attention."
        ),
    ),
    flag(
        "repeats_key_values",
        QT_TRANSLATE_NOOP("fields", "Grouped heads known"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Shared keys and values are repeated, or the kernel is told of them; "
            "else they are spread by the matrix product.",
        ),
    ),
    flag(
        "heads_in_order",
        QT_TRANSLATE_NOOP("fields", "Heads in order"),
        QT_TRANSLATE_NOOP("fields", "Queries, keys and values are copied so that each head lies by itself."),
    ),
    flag(
        "softmax_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Softmax in fp32"),
        QT_TRANSLATE_NOOP(
            "fields", "Eager attention computes its probabilities in fp32, then casts them back."
        ),
    ),
    flag(
        "scores_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Scores in fp32"),
        QT_TRANSLATE_NOOP("fields", "Eager attention multiplies queries and keys in fp32."),
    ),
    choice(
        "score_scaling",
        QT_TRANSLATE_NOOP("fields", "Score factor"),
        QT_TRANSLATE_NOOP(
            "fields", "How eager attention scales its scores; a step of its own holds them twice."
        ),
        Choice("after", QT_TRANSLATE_NOOP("fields", "a step of its own")),
        Choice("in_place", QT_TRANSLATE_NOOP("fields", "in place")),
        Choice("fused", QT_TRANSLATE_NOOP("fields", "with the product")),
        Choice("upcast", QT_TRANSLATE_NOOP("fields", "with the product, in fp32 (GPT-2)")),
        Choice("exact", QT_TRANSLATE_NOOP("fields", "a step of its own, in fp32 (Flint)")),
        Choice("none", QT_TRANSLATE_NOOP("fields", "not scaled")),
    ),
    choice(
        "score_masking",
        QT_TRANSLATE_NOOP("fields", "Score mask"),
        QT_TRANSLATE_NOOP("fields", "How eager attention masks its scores."),
        Choice("added", QT_TRANSLATE_NOOP("fields", "a mask is added")),
        Choice("filled", QT_TRANSLATE_NOOP("fields", "filled where masked (MPT)")),
        Choice("floored", QT_TRANSLATE_NOOP("fields", "added, held above the least number (XGLM)")),
        Choice("lowered", QT_TRANSLATE_NOOP("fields", "added, less the largest (MiMo-V2)")),
        Choice("scaled", QT_TRANSLATE_NOOP("fields", "multiplied by a buffer (OpenAI GPT)")),
        Choice("buffered", QT_TRANSLATE_NOOP("fields", "chosen by a buffer, then added (GPT-Neo)")),
    ),
    flag(
        "query_temperature",
        QT_TRANSLATE_NOOP("fields", "Query temperature"),
        QT_TRANSLATE_NOOP(
            "fields", "Layers without rotary positions, or else all, scale their queries by position."
        ),
    ),
    flag(
        "query_scaling",
        QT_TRANSLATE_NOOP("fields", "Scaled queries"),
        QT_TRANSLATE_NOOP("fields", "Queries are scaled before attention instead of the scores within it."),
    ),
    flag(
        "value_scaling",
        QT_TRANSLATE_NOOP("fields", "Scaled values"),
        QT_TRANSLATE_NOOP("fields", "Values are multiplied by a number before attention (MiMo-V2)."),
    ),
)

RESIDUAL: tuple[Field, ...] = (
    flag(
        "bias_added",
        QT_TRANSLATE_NOOP("fields", "Bias apart"),
        QT_TRANSLATE_NOOP("fields", "The biases of linear layers are added in a step of their own."),
    ),
    flag(
        "head_bias_added",
        QT_TRANSLATE_NOOP("fields", "Head bias apart"),
        QT_TRANSLATE_NOOP("fields", "The bias of a masked head is added in a step of its own."),
    ),
    flag(
        "sink_factor",
        QT_TRANSLATE_NOOP("fields", "Sinks as factors"),
        QT_TRANSLATE_NOOP("fields", "A sink is no score more, but multiplies what attention gives."),
    ),
    flag(
        "causal_head_transform",
        QT_TRANSLATE_NOOP("fields", "Causal head transform"),
        QT_TRANSLATE_NOOP("fields", "The head that predicts the next token has a layer, too."),
    ),
    choice(
        "embedding_scaling",
        QT_TRANSLATE_NOOP("fields", "Embedding factor"),
        QT_TRANSLATE_NOOP("fields", "The embeddings are multiplied before the first layer."),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        Choice("number", QT_TRANSLATE_NOOP("fields", "a number")),
        Choice("buffer", QT_TRANSLATE_NOOP("fields", "a number kept on the device")),
        Choice("whole_buffer", QT_TRANSLATE_NOOP("fields", "a whole number kept on the device (MiniCPM 3)")),
        Choice("unmasked", QT_TRANSLATE_NOOP("fields", "by the share of tokens not masked, in fp32 (ESM)")),
        Choice(
            "normalizer", QT_TRANSLATE_NOOP("fields", "a bf16 number after the embedding (RecurrentGemma)")
        ),
    ),
    flag(
        "residual_scaling",
        QT_TRANSLATE_NOOP("fields", "Branch factor"),
        QT_TRANSLATE_NOOP("fields", "What attention and feed-forward add to the layer is multiplied first."),
    ),
    flag(
        "layer_scalar",
        QT_TRANSLATE_NOOP("fields", "Layer factor"),
        QT_TRANSLATE_NOOP("fields", "What a layer gives is multiplied in place by a number on the device."),
    ),
    flag(
        "channel_scales",
        QT_TRANSLATE_NOOP("fields", "Channel scales"),
        QT_TRANSLATE_NOOP("fields", "Queries, gates, feed-forwards and logits have learned scales (nGPT)."),
    ),
    flag(
        "mup_scaling",
        QT_TRANSLATE_NOOP("fields", "Factors inside layers"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Keys, gates, what attention and Mamba read and what they give are multiplied (Falcon-H1).",
        ),
    ),
    flag(
        "logit_scaling",
        QT_TRANSLATE_NOOP("fields", "Logit factor"),
        QT_TRANSLATE_NOOP("fields", "Logits are multiplied, which holds them twice for a moment."),
    ),
    flag(
        "head_input_scaling",
        QT_TRANSLATE_NOOP("fields", "Head input factor"),
        QT_TRANSLATE_NOOP("fields", "What the head reads is multiplied first."),
    ),
    flag(
        "mask_buffer",
        QT_TRANSLATE_NOOP("fields", "Mask buffer"),
        QT_TRANSLATE_NOOP(
            "fields", "A mask for every pair of positions there may be lies beside the weights."
        ),
    ),
    flag(
        "logits_buffer",
        QT_TRANSLATE_NOOP("fields", "Logits buffer"),
        QT_TRANSLATE_NOOP("fields", "A buffer, which is not trained, is added to the logits."),
    ),
    flag(
        "mlp_in_weight_format",
        QT_TRANSLATE_NOOP("fields", "FFN in its weight's format"),
        QT_TRANSLATE_NOOP("fields", "The feed-forward's inner tensor is cast to its last weight's format."),
    ),
    flag(
        "joined_branches",
        QT_TRANSLATE_NOOP("fields", "Branches joined"),
        QT_TRANSLATE_NOOP(
            "fields",
            "In a parallel layer attention and feed-forward are added in place, with one dropout for both.",
        ),
    ),
    flag(
        "residual_first",
        QT_TRANSLATE_NOOP("fields", "Residual first"),
        QT_TRANSLATE_NOOP("fields", "In a parallel layer the branches are added to its input one by one."),
    ),
    choice(
        "branch_held",
        QT_TRANSLATE_NOOP("fields", "Attention held"),
        QT_TRANSLATE_NOOP("fields", "What of attention a layer's code refers to until it returns."),
        Choice("none", QT_TRANSLATE_NOOP("fields", "nothing")),
        Choice("output", QT_TRANSLATE_NOOP("fields", "its result (GPT-2)")),
        Choice("both", QT_TRANSLATE_NOOP("fields", "its input and result (StableLM)")),
    ),
)

ROUTING: tuple[Field, ...] = (
    choice(
        "router_scoring",
        QT_TRANSLATE_NOOP("fields", "Router scores"),
        QT_TRANSLATE_NOOP("fields", "How the router turns its logits into weights of experts."),
        Choice("softmax", QT_TRANSLATE_NOOP("fields", "softmax of all")),
        Choice("softmax_own", QT_TRANSLATE_NOOP("fields", "softmax of all, model's format")),
        Choice("softmax_balanced", QT_TRANSLATE_NOOP("fields", "softmax of all, chosen with a balance")),
        Choice("softmax_clamped", QT_TRANSLATE_NOOP("fields", "softmax of all, never autocast (ERNIE)")),
        Choice("topk_softmax", QT_TRANSLATE_NOOP("fields", "softmax of the highest")),
        Choice("topk_softmax_plain", QT_TRANSLATE_NOOP("fields", "softmax of the highest, fp32 in autocast")),
        Choice("topk_softmax_upcast", QT_TRANSLATE_NOOP("fields", "softmax of the highest, then fp32")),
        Choice("topk_softmax_fp32", QT_TRANSLATE_NOOP("fields", "softmax of the highest, fp32")),
        Choice("sigmoid", QT_TRANSLATE_NOOP("fields", "sigmoid")),
        Choice("sqrtsoftplus", QT_TRANSLATE_NOOP("fields", "root of softplus, divided by the sum")),
        Choice("sigmoid_summed", QT_TRANSLATE_NOOP("fields", "sigmoid, divided by the sum")),
        Choice("softmax_exact", QT_TRANSLATE_NOOP("fields", "softmax of all, of fp32 copies (Lara)")),
        Choice("sigmoid_exact", QT_TRANSLATE_NOOP("fields", "sigmoid, in fp32 throughout (Flint)")),
        Choice("sigmoid_own", QT_TRANSLATE_NOOP("fields", "sigmoid, model's format")),
        Choice("sigmoid_last", QT_TRANSLATE_NOOP("fields", "sigmoid of the highest")),
        Choice("sparsemixer", "SparseMixer"),
        applies=_experts,
    ),
    choice(
        "router_balance",
        QT_TRANSLATE_NOOP("fields", "Router balance"),
        QT_TRANSLATE_NOOP(
            "fields", "Experts are chosen by a correction that is a weight, though not trained."
        ),
        Choice("none", QT_TRANSLATE_NOOP("fields", "none")),
        Choice("fp32", QT_TRANSLATE_NOOP("fields", "in fp32")),
        Choice("own", QT_TRANSLATE_NOOP("fields", "in the model's format")),
        applies=_experts,
    ),
    flag(
        "shared_experts_first",
        QT_TRANSLATE_NOOP("fields", "Shared experts first"),
        QT_TRANSLATE_NOOP("fields", "The experts that every token goes through run before the routed ones."),
        applies=_experts,
    ),
    flag(
        "experts_summed_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Experts summed in fp32"),
        QT_TRANSLATE_NOOP("fields", "What routed and shared experts give is added in fp32."),
        applies=_experts,
    ),
    flag(
        "router_in_fp32",
        QT_TRANSLATE_NOOP("fields", "Router in fp32"),
        QT_TRANSLATE_NOOP("fields", "The router's weight and its input are fp32 whatever the model is in."),
        applies=_experts,
    ),
    flag(
        "norm_topk_prob",
        QT_TRANSLATE_NOOP("fields", "Expert weights normalised"),
        QT_TRANSLATE_NOOP("fields", "The weights of a token's experts are divided by their sum."),
        applies=_experts,
    ),
    flag(
        "routed_scaling",
        QT_TRANSLATE_NOOP("fields", "Expert weights scaled"),
        QT_TRANSLATE_NOOP("fields", "The weights of a token's experts are multiplied by a number."),
        applies=_experts,
    ),
    flag(
        "router_casts_back",
        QT_TRANSLATE_NOOP("fields", "Expert weights cast back"),
        QT_TRANSLATE_NOOP(
            "fields", "The weights of a token's experts go back from fp32 to the model's format."
        ),
        applies=_experts,
    ),
    choice(
        "expert_layout",
        QT_TRANSLATE_NOOP("fields", "Expert products"),
        QT_TRANSLATE_NOOP("fields", "How the experts' products are written; it decides what they keep."),
        Choice("grouped", QT_TRANSLATE_NOOP("fields", "grouped, tokens sorted by expert")),
        Choice("looped", QT_TRANSLATE_NOOP("fields", "one expert after the other")),
        Choice("every_token", QT_TRANSLATE_NOOP("fields", "every token through every expert")),
        applies=_experts,
    ),
    flag(
        "expert_bias",
        QT_TRANSLATE_NOOP("fields", "Expert bias"),
        QT_TRANSLATE_NOOP("fields", "The experts' projections have a bias."),
        applies=_experts,
    ),
)

CLASSIFYING: tuple[Field, ...] = (
    size(
        "num_labels",
        QT_TRANSLATE_NOOP("fields", "Classes"),
        QT_TRANSLATE_NOOP("fields", "Classes that the head tells apart."),
        applies=_classifies,
    ),
    choice(
        "classifier",
        QT_TRANSLATE_NOOP("fields", "Classifier"),
        QT_TRANSLATE_NOOP("fields", "What an encoder's head over classes does before its last layer."),
        Choice("pooled", QT_TRANSLATE_NOOP("fields", "linear, tanh, dropout (BERT)")),
        Choice("dropped", QT_TRANSLATE_NOOP("fields", "dropout, linear, tanh, dropout (RoBERTa)")),
        Choice("dropped_gelu", QT_TRANSLATE_NOOP("fields", "dropout, linear, GELU, dropout (DeBERTa)")),
        Choice("relu", QT_TRANSLATE_NOOP("fields", "linear, ReLU, dropout (DistilBERT)")),
        Choice("normed", QT_TRANSLATE_NOOP("fields", "linear, GELU, norm, dropout (ModernBERT)")),
        applies=_encoder_of_classes,
    ),
)

FIELDS: tuple[Field, ...] = (*ATTENTION, *RESIDUAL, *ROUTING, *CLASSIFYING)
