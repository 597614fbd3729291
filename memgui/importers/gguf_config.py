"""GGUF metadata as the ``config.json`` that the model once had.

llama.cpp names a model's sizes in its own words (``llama.attention.head_count_kv``).  Here they get the
names Transformers has for them, so that the same family descriptions read both.  What the metadata
leaves out (biases, tied embeddings, norms on heads) is read off the names of the tensors.

Source of the keys: gguf-py's constants and llama.cpp's ``convert_hf_to_gguf.py``, which writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memgui.files.bounded import FileFault
from memgui.files.strict_json import JsonObject, shown
from memgui.importers.gguf_header import Skipped
from memgui.importers.tensors import TensorInfo, TensorTable
from memgui.spec.messages import QT_TRANSLATE_NOOP

# What llama.cpp calls an architecture and Transformers a model_type, where they differ.
_ARCHITECTURES = """
    qwen2moe qwen2_moe      qwen3moe qwen3_moe        qwen3next qwen3_next    qwen35 qwen3_5_text
    qwen35moe qwen3_5_moe_text                        qwen2vl qwen2_vl_text   qwen3vl qwen3_vl_text
    qwen3vlmoe qwen3_vl_moe_text                      gemma3 gemma3_text      gemma3n gemma3n_text
    gemma4 gemma4_text      phi2 phi                  gptneox gpt_neox        starcoder gpt_bigcode
    command-r cohere        glm4moe glm4_moe          glm-dsa glm_moe_dsa     llama4 llama4_text
    gpt-oss gpt_oss         minimax-m2 minimax_m2     mistral3 ministral3     granitehybrid granitemoehybrid
    falcon-h1 falcon_h1     kimi-linear kimi_linear   modern-bert modernbert  nemotron_h_moe nemotron_h
    mimo2 mimo_v2_flash     step35 step3p5            ernie4_5-moe ernie4_5_moe
    hunyuan-moe hunyuan_v1_moe                        hunyuan-dense hunyuan_v1_dense
"""
_words = _ARCHITECTURES.split()
MODEL_TYPES: Final = dict(zip(_words[::2], _words[1::2], strict=True))

# The key behind the architecture's name, and Transformers' names for it.
_KEYS = """
    block_count                         num_hidden_layers
    embedding_length                    hidden_size
    context_length                      max_position_embeddings
    vocab_size                          vocab_size
    feed_forward_length                 intermediate_size
    attention.head_count                num_attention_heads
    attention.head_count_kv             num_key_value_heads
    attention.key_length                head_dim
    attention.value_length              v_head_dim
    attention.sliding_window            sliding_window
    attention.q_lora_rank               q_lora_rank
    attention.kv_lora_rank              kv_lora_rank
    attention.indexer.head_count        index_n_heads
    attention.indexer.key_length        index_head_dim
    attention.indexer.top_k             index_topk
    expert_count                        num_experts
    expert_used_count                   num_experts_per_tok
    expert_feed_forward_length          moe_intermediate_size
    expert_shared_feed_forward_length   shared_expert_intermediate_size
    expert_shared_count                 n_shared_experts
    leading_dense_block_count           first_k_dense_replace
    interleave_moe_layer_step           interleave_moe_layer_step
    nextn_predict_layers                num_nextn_predict_layers
    use_parallel_residual               use_parallel_residual
    full_attention_interval             full_attention_interval
    attn_logit_softcapping              attn_logit_softcapping
    final_logit_softcapping             final_logit_softcapping
    rescale_every_n_layers              rescale_every
    decoder_block_count                 num_decoder_layers
    attention.relative_buckets_count    relative_attention_num_buckets
    shortconv.l_cache                   conv_L_cache
    embedding_length_per_layer_input    hidden_size_per_layer_input
    attention.shared_kv_layers          num_kv_shared_layers
    attention.key_length_swa            swa_head_dim
"""
_words = _KEYS.split()
KEYS: Final = dict(zip(_words[::2], _words[1::2], strict=True))

# llama.cpp has one set of names for all state space models, Transformers one for each.
_MAMBA: Final = {"conv_kernel": "conv_kernel", "state_size": "state_size"}
_STATES: Final[dict[str, dict[str, str]]] = {
    "mamba": {**_MAMBA, "inner_size": "intermediate_size", "time_step_rank": "time_step_rank"},
    "mamba2": {**_MAMBA, "group_count": "n_groups", "time_step_rank": "num_heads"},
    "jamba": {
        "conv_kernel": "mamba_d_conv",
        "state_size": "mamba_d_state",
        "time_step_rank": "mamba_dt_rank",
    },
    "falcon_h1": {
        "conv_kernel": "mamba_d_conv",
        "state_size": "mamba_d_state",
        "inner_size": "mamba_d_ssm",
        "time_step_rank": "mamba_n_heads",
        "group_count": "mamba_n_groups",
    },
    "nemotron_h": {
        "conv_kernel": "conv_kernel",
        "state_size": "ssm_state_size",
        "time_step_rank": "mamba_num_heads",
        "group_count": "n_groups",
    },
    "qwen3_next": {
        "conv_kernel": "linear_conv_kernel_dim",
        "state_size": "linear_key_head_dim",
        "group_count": "linear_num_key_heads",
        "time_step_rank": "linear_num_value_heads",
    },
}
_STATES["granitemoehybrid"] = {key: name for key, name in _STATES["falcon_h1"].items() if key != "inner_size"}
_STATES["qwen3_5_text"] = _STATES["qwen3_5_moe_text"] = _STATES["qwen3_next"]

Stated = dict[str, object]
"""A config.json's content."""


def config_of(table: TensorTable, name: str) -> Stated:
    """The configuration that a GGUF file's metadata and tensors state, in Transformers' names.

    Raises :class:`FileFault` where the file names no architecture, states no layers, or holds only a
    projector (``clip``).
    """
    metadata = JsonObject(table.metadata, name)
    architecture = metadata.string("general.architecture")
    if architecture == "clip":
        raise FileFault(
            name,
            QT_TRANSLATE_NOOP(
                "messages",
                "{file} is the vision part of a model (mmproj) alone; the .gguf file of its language model "
                "can be opened.",
            ),
        )
    return _Translation(architecture, metadata, table).config()


class _Translation:
    """The translation of one file; ``config`` grows as each rule adds what it knows."""

    def __init__(self, architecture: str, metadata: JsonObject, table: TensorTable) -> None:
        self.architecture = architecture
        self.metadata = metadata
        self.tensors: Mapping[str, TensorInfo] = {tensor.name: tensor for tensor in table.tensors}
        self.stated: Stated = {}

    def config(self) -> Stated:
        for key, name in KEYS.items():
            value = self._value(key)
            if value is not None:
                self.stated[name] = value
        self.stated["model_type"] = self._model_type()
        self._vocabulary()
        self._layers()
        self._heads()
        self._latent()
        self._states()
        self._windows()
        self._biases()
        stated = self.stated.items()
        return {name: value for name, value in stated if value is not None or name == "q_lora_rank"}

    def _value(self, key: str) -> object:
        value = self.metadata.value.get(f"{self.architecture}.{key}")
        if value is not None:
            self.metadata.note_read(f"{self.architecture}.{key}")
        return value

    def _number(self, key: str) -> int:
        return self.metadata.integer_or_none(f"{self.architecture}.{key}") or 0

    def _shape(self, *names: str) -> tuple[int, ...] | None:
        found = next((self.tensors[name] for name in names if name in self.tensors), None)
        return None if found is None else found.shape

    def _has(self, ending: str) -> bool:
        """Whether any layer has a tensor of this name."""
        return any(name.startswith("blk.") and name.endswith("." + ending) for name in self.tensors)

    def _model_type(self) -> str:
        architecture = self.architecture
        if architecture == "llama" and self._number("expert_count"):
            return "mixtral"
        if architecture == "granite" and self._number("expert_count"):
            return "granitemoe"
        if architecture == "deepseek2":
            sigmoid = self._number("expert_gating_func") == 2
            return "deepseek_v3" if sigmoid else "deepseek_v2"
        return MODEL_TYPES.get(architecture, architecture.replace("-", "_"))

    def _vocabulary(self) -> None:
        shape = self._shape("token_embd.weight")
        tokens = self.metadata.value.get("tokenizer.ggml.tokens")
        if shape and len(shape) == 2:
            self.stated["vocab_size"] = shape[0]
        elif "vocab_size" not in self.stated and tokens is not None:
            count = tokens.length if isinstance(tokens, Skipped) else None
            self.stated["vocab_size"] = len(tokens) if isinstance(tokens, list) else count
        types = self._shape("token_types.weight")
        if types:
            self.stated["type_vocab_size"] = types[0]
        if self.tensors:
            self.stated["tie_word_embeddings"] = "output.weight" not in self.tensors
            self.stated["lm_head_bias"] = "output.bias" in self.tensors

    def _layers(self) -> None:
        """Layers that predict further tokens are counted by llama.cpp, and not by Transformers."""
        layers, further = self.stated.get("num_hidden_layers"), self.stated.get("num_nextn_predict_layers")
        if isinstance(layers, int) and isinstance(further, int):
            self.stated["num_hidden_layers"] = layers - further
        self._per_layer()
        wide, model_type = self.stated.get("moe_intermediate_size"), self.stated["model_type"]
        if model_type in ("gpt_oss", "minimax_m2", "olmoe", "granitemoe") and wide is not None:
            self.stated["intermediate_size"] = wide
        if model_type == "llama4_text" and wide is not None:
            self.stated["intermediate_size_mlp"] = self.stated.get("intermediate_size")
            self.stated["intermediate_size"] = wide
        if model_type == "granitemoehybrid":
            shared = self.stated.get("shared_expert_intermediate_size")
            self.stated["shared_intermediate_size"] = shared or self.stated.get("intermediate_size")
        if model_type == "qwen2_moe" and "shared_expert_intermediate_size" not in self.stated:
            shape = self._shape("blk.0.ffn_up_shexp.weight")
            self.stated["shared_expert_intermediate_size"] = shape[0] if shape else None
        if model_type == "lfm2":  # the file has the width as it came out
            self.stated["block_auto_adjust_ff_dim"] = False
        if model_type == "qwen":  # Transformers counts gate and up together
            shape = self._shape("blk.0.ffn_up.weight")
            self.stated["intermediate_size"] = 2 * shape[0] if shape else self.stated.get("intermediate_size")

    def _gemma4(self) -> None:
        """The file has the sizes of full attention; those of windows, where they differ, beside them."""
        narrow = self.stated.pop("swa_head_dim", None)
        if narrow is not None:
            self.stated |= {"global_head_dim": self.stated.get("head_dim"), "head_dim": narrow}
        kv, width = (self.stated.get(name) for name in ("num_key_value_heads", "intermediate_size"))
        if isinstance(kv, list) and len(set(kv)) == 2:
            same = {"attention_k_eq_v": True, "num_global_key_value_heads": min(kv)}
            self.stated |= {"num_key_value_heads": max(kv), **same}
        if isinstance(width, list) and len(set(width)) == 2 and max(width) == 2 * min(width):
            self.stated |= {"intermediate_size": min(width), "use_double_wide_mlp": True}

    def _per_layer(self) -> None:
        """Lists with a number for each layer: of one kind, or 0 where a layer has no such half."""
        if self.stated["model_type"] == "gemma4_text":
            self._gemma4()
        kv = self.stated.get("num_key_value_heads")
        width = self.stated.get("intermediate_size")
        attends = [bool(number) for number in kv] if isinstance(kv, list) else None
        feeds = [bool(number) for number in width] if isinstance(width, list) else None
        for name in (
            "num_attention_heads",
            "num_key_value_heads",
            "intermediate_size",
            "num_experts_per_tok",
        ):
            value = self.stated.get(name)
            if isinstance(value, list):
                self.stated[name] = self._same(name, value)
        if attends is None or all(attends):
            return
        model_type = self.stated["model_type"]
        if model_type == "nemotron_h":
            fed = "E" if self._has("ffn_gate_inp.weight") else "-"
            feeds = feeds or [False] * len(attends)
            letters = zip(attends, feeds, strict=False)
            self.stated["hybrid_override_pattern"] = "".join(
                "*" if attention else fed if feed else "M" for attention, feed in letters
            )
        elif model_type == "jamba":
            at = [index for index, attention in enumerate(attends) if attention]
            self.stated["attn_layer_offset"] = at[0] if at else 0
            self.stated["attn_layer_period"] = at[1] - at[0] if len(at) > 1 else len(attends)
        elif model_type == "kimi_linear":
            full = [index + 1 for index, attention in enumerate(attends) if attention]
            self.stated["linear_attn_config"] = {"full_attn_layers": full}
        else:
            other = "conv" if model_type == "lfm2" else "mamba"
            self.stated["layer_types"] = ["full_attention" if one else other for one in attends]

    def _same(self, name: str, numbers: list[object]) -> object:
        kinds = sorted({number for number in numbers if isinstance(number, int) and number})
        if len(kinds) > 1:
            raise FileFault(
                self.metadata.name,
                QT_TRANSLATE_NOOP(
                    "messages",
                    "{file}: {where} differs from layer to layer ({value}); only models whose layers are "
                    "equally wide can be opened.",
                ),
                where=name,
                value=shown(kinds),
            )
        return kinds[0] if kinds else 0

    def _heads(self) -> None:
        stated = self.stated
        heads, hidden = stated.get("num_attention_heads"), stated.get("hidden_size")
        head = stated.get("head_dim")
        if head is None and isinstance(heads, int) and isinstance(hidden, int) and heads:
            head = hidden // heads
        rotated = self._number("rope.dimension_count")
        if rotated and isinstance(head, int) and head and stated["model_type"] != "phi3":
            stated["rotary_dim" if stated["model_type"] in ("gptj", "minimax_m2") else "rotary_pct"] = (
                rotated if stated["model_type"] in ("gptj", "minimax_m2") else min(1.0, rotated / head)
            )
        stated["use_qk_norm"] = stated["qk_layernorm"] = self._has("attn_q_norm.weight")
        kv = stated.get("num_key_value_heads")
        if stated["model_type"] == "gpt_bigcode":
            stated["multi_query"] = kv == 1
        if stated["model_type"] == "falcon":
            grouped = self._has("attn_norm_2.weight")
            stated.update(new_decoder_architecture=grouped, multi_query=kv == 1, parallel_attn=True)
        if stated["model_type"] == "chatglm":
            stated.update(multi_query_attention=kv != heads, multi_query_group_num=kv)
        if stated["model_type"] == "t5":
            stated["d_kv"] = stated.pop("head_dim", None)
            stated["num_layers"] = stated.pop("num_hidden_layers", None)
            stated.setdefault("num_decoder_layers", stated["num_layers"])
            stated["feed_forward_proj"] = "gated-gelu" if self._gated_encoder() else "relu"
        if stated["model_type"] == "mpt" and isinstance(hidden, int):
            width = stated.pop("intermediate_size", None)
            stated["expansion_ratio"] = width // hidden if isinstance(width, int) and hidden else 4

    def _gated_encoder(self) -> bool:
        return any(name.endswith(".ffn_gate.weight") for name in self.tensors)

    def _latent(self) -> None:
        """Latent attention: newer files hold the sizes of its heads apart from those of what is cached."""
        if not self._number("attention.kv_lora_rank"):
            return
        rotated = self._number("rope.dimension_count")
        key = self._number("attention.key_length_mla") or self._number("attention.key_length")
        value = self._number("attention.value_length_mla") or self._number("attention.value_length")
        for name in ("head_dim", "rotary_pct"):
            self.stated.pop(name, None)
        self.stated["num_key_value_heads"] = self.stated.get("num_attention_heads")
        self.stated.setdefault("q_lora_rank", None)
        self.stated.update(qk_rope_head_dim=rotated, qk_nope_head_dim=key - rotated, v_head_dim=value)

    def _states(self) -> None:
        names = _STATES.get(str(self.stated["model_type"]), {})
        for key, name in names.items():
            self.stated[name] = self._value(f"ssm.{key}")
        inner, heads = self._number("ssm.inner_size"), self._number("ssm.time_step_rank")
        if not inner or not heads:
            return
        match self.stated["model_type"]:
            case "mamba2":
                hidden = self.stated.get("hidden_size")
                self.stated["head_dim"] = inner // heads
                if isinstance(hidden, int) and hidden:
                    self.stated["expand"] = inner // hidden
            case "nemotron_h":
                self.stated["mamba_head_dim"] = inner // heads
            case "granitemoehybrid":
                self.stated["mamba_d_head"] = inner // heads
            case "qwen3_next" | "qwen3_5_text" | "qwen3_5_moe_text":
                self.stated["linear_value_head_dim"] = inner // heads

    def _windows(self) -> None:
        """A pattern is a period, or says of each layer whether it looks through a window."""
        pattern = self._value("attention.sliding_window_pattern")
        if isinstance(pattern, list):
            kinds = ["sliding_attention" if one else "full_attention" for one in pattern]
            self.stated["layer_types"] = kinds
        elif isinstance(pattern, int):
            self.stated["sliding_window_pattern"] = pattern
        if self.stated["model_type"] in ("qwen2", "qwen3") and "sliding_window" in self.stated:
            self.stated["use_sliding_window"] = True

    def _biases(self) -> None:
        query = self._has("attn_q.bias") or self._has("attn_qkv.bias")
        stated, model_type = self.stated, self.stated["model_type"]
        if not self.tensors:
            return
        if model_type == "qwen2_moe":
            stated["qkv_bias"] = query
        elif model_type == "stablelm":
            stated["use_qkv_bias"] = query
        elif model_type == "chatglm":
            stated["add_qkv_bias"] = query
        elif model_type == "starcoder2":
            stated["use_bias"] = query
        elif model_type != "modernbert":
            stated["attention_bias"] = query
        if model_type not in ("falcon", "mpt"):
            stated["mlp_bias"] = self._has("ffn_up.bias")
