"""Keys of a config.json that are known and say nothing about memory."""

from __future__ import annotations

import re
from typing import Final

_SILENT: Final = re.compile(
    r"(_token_id|_token_index|_token_ids|_eps|_epsilon|_std|_std_factor|_coef|(?<!rotary)_factor|_scale"
    r"|_multiplier|_multipliers|_loss|_noise|_alpha|_beta|_scheme|_floor|_theta|_limit|_scaling|_tokens|_weight)$"
    r"|^(init|summary_|mask_|apply_spec|num_beams|max_length|output_|return_dict|problem_type|id2label|label2id"
    r"|architectures|transformers_version|dtype|torch_dtype|use_cache|chunk_size_feed_forward|initializer"
    r"|rescale|pretraining_tp|ctc_|diversity|gradient_checkpointing|time_step_m|norm_topk|scoring|topk_method"
    r"|z_loss|early_stopping|rope_(?!pct|dim)|auto_map|_name_or_path|model_type|tokenizer|task_specific|finetun"
    r"|classifier_|scale_|reorder_|add_cross|use_mamba|use_associative|n_group$|topk_group|residual_in_fp32"
    r"|is_encoder_decoder|is_decoder|_attn_impl|use_flash|onnx|torchscript|use_dynamic|language|license|bf16"
    r"|fp16|fp32|prefix$|seed|repetition|temperature|top_[kp]$|length_penalty|no_repeat|forced_|suppress)"
)


def is_silent(key: str) -> bool:
    """Whether ``key`` is known to say nothing about memory: token ids, initialisers, losses, factors."""
    return _SILENT.search(key) is not None
