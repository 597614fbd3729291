"""Fields that one engine has, called as the engine calls them."""

from __future__ import annotations

from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.fields.inference import decodes, inference, transformers
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario

GGUF = ("llama.cpp", "ollama")
"""Engines that hold a model as ggml tensors."""


def _caches(scenario: Scenario) -> bool:
    return transformers(scenario) and decodes(scenario)


def _vllm(scenario: Scenario) -> bool:
    return inference(scenario) and scenario.inference.engine == "vllm"


def _sglang(scenario: Scenario) -> bool:
    return inference(scenario) and scenario.inference.engine == "sglang"


def _ggml(scenario: Scenario) -> bool:
    return inference(scenario) and scenario.inference.engine in GGUF


def _llama_cpp(scenario: Scenario) -> bool:
    return inference(scenario) and scenario.inference.engine == "llama.cpp"


def _gpt_fast(scenario: Scenario) -> bool:
    return inference(scenario) and scenario.inference.engine == "gpt-fast"


def _experts_of_ggml(scenario: Scenario) -> bool:
    return _ggml(scenario) and scenario.model.num_experts > 0


def _windows_of_ggml(scenario: Scenario) -> bool:
    return _ggml(scenario) and scenario.model.sliding_window is not None


FIELDS: tuple[Field, ...] = (
    Field(
        "inference.transformers_version",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Version"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Before 4.45 generate() computed the logits of the whole prompt, and had old and new cache "
            "side by side.",
        ),
        section="engine",
        choices=(
            Choice("5.24", "5.24"),
            Choice("4.45", "4.45", QT_TRANSLATE_NOOP("fields", "logits of the last token")),
            Choice("4.35", "4.35", QT_TRANSLATE_NOOP("fields", "logits of the prompt, cache tuples")),
        ),
        advanced=True,
        applies=transformers,
    ),
    Field(
        "inference.cache_implementation",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Cache"),
        QT_TRANSLATE_NOOP(
            "fields", "A dynamic cache grows with every token; a static one is made for all tokens at once."
        ),
        section="engine",
        choices=(
            Choice("dynamic", QT_TRANSLATE_NOOP("fields", "dynamic")),
            Choice("static", QT_TRANSLATE_NOOP("fields", "static")),
        ),
        advanced=True,
        applies=_caches,
    ),
    Field(
        "inference.gpu_memory_utilization",
        Kind.RATIO,
        QT_TRANSLATE_NOOP("fields", "Utilisation"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The share of the device that the engine may use; the limit is that share of the memory.",
        ),
        section="engine",
        minimum=0.01,
        maximum=1.0,
        usual_minimum=0.5,
        applies=_vllm,
    ),
    Field(
        "inference.max_num_batched_tokens",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Batched tokens"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Tokens that vLLM runs at once at most (max_num_batched_tokens); its profile run takes as many.",
        ),
        section="engine",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=100_000_000,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "vLLM's default"),
        log_scale=True,
        applies=_vllm,
    ),
    Field(
        "inference.max_num_seqs",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Running sequences"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Sequences that vLLM runs at once at most (max_num_seqs); its profile run samples for as many.",
        ),
        section="engine",
        unit=QT_TRANSLATE_NOOP("fields", "sequences"),
        minimum=1,
        maximum=10_000_000,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "vLLM's default"),
        log_scale=True,
        applies=_vllm,
    ),
    Field(
        "inference.block_size",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Block"),
        QT_TRANSLATE_NOOP("fields", "Tokens in one block of the cache; a sequence takes whole blocks."),
        section="engine",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=65_536,
        advanced=True,
        applies=_vllm,
    ),
    Field(
        "inference.enforce_eager",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Without CUDA graphs"),
        QT_TRANSLATE_NOOP("fields", "vLLM's enforce_eager: no CUDA graphs are captured."),
        section="engine",
        advanced=True,
        applies=_vllm,
    ),
    Field(
        "inference.vllm_version",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Version"),
        QT_TRANSLATE_NOOP(
            "fields",
            "vLLM 0.6 (V0) profiled a prompt of the longest length; 0.11 (V1) runs prompts in chunks. "
            "Up to 0.6.3 what PyTorch had reserved counted, not what was allocated.",
        ),
        section="engine",
        choices=(
            Choice("0.11", "0.11", "V1"),
            Choice("0.6", "0.6", QT_TRANSLATE_NOOP("fields", "V0, from 0.6.4 on")),
            Choice("0.3", "0.3", QT_TRANSLATE_NOOP("fields", "V0, up to 0.6.3")),
            Choice("0.2", "0.2"),
        ),
        advanced=True,
        applies=_vllm,
    ),
    Field(
        "inference.mem_fraction_static",
        Kind.RATIO,
        QT_TRANSLATE_NOOP("fields", "Static share"),
        QT_TRANSLATE_NOOP(
            "fields", "SGLang's mem_fraction_static: the share of the device for weights and cache."
        ),
        section="engine",
        minimum=0.01,
        maximum=1.0,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "SGLang's default"),
        applies=_sglang,
    ),
    Field(
        "inference.linear_causal_mask",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Mask row by row"),
        QT_TRANSLATE_NOOP(
            "fields",
            "gpt-fast's linear_causal_mask: rows of the mask are made when needed; all pairs are not held.",
        ),
        section="engine",
        applies=_gpt_fast,
    ),
    Field(
        "inference.llama_cpp_version",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Version"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Builds of 2025 reserved logits for every token of a physical batch, later ones for outputs.",
        ),
        section="engine",
        choices=(Choice("b11434", "b11434", "2026"), Choice("b6000", "b6000", "2025")),
        advanced=True,
        applies=_ggml,
    ),
    Field(
        "inference.n_ubatch",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Physical batch"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Tokens computed at once (n_ubatch); compute buffers grow with it, windows hold as many more.",
        ),
        section="engine",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=1_000_000,
        log_scale=True,
        applies=_ggml,
    ),
    Field(
        "inference.flash_attention",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Flash attention"),
        QT_TRANSLATE_NOOP(
            "fields",
            "Without it the scores of a physical batch against the whole context lie in the compute buffer.",
        ),
        section="engine",
        applies=_ggml,
    ),
    Field(
        "inference.n_gpu_layers",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Layers on the GPU"),
        QT_TRANSLATE_NOOP(
            "fields", "Layers whose weights and cache lie on the GPU; the rest stays on the host."
        ),
        section="engine",
        minimum=0,
        maximum=100_000,
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "all"),
        applies=_ggml,
    ),
    Field(
        "inference.n_cpu_moe",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Layers with experts on the CPU"),
        QT_TRANSLATE_NOOP("fields", "The experts of the first so many layers stay on the host (n_cpu_moe)."),
        section="engine",
        minimum=0,
        maximum=100_000,
        applies=_experts_of_ggml,
    ),
    Field(
        "inference.kv_unified",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "One cache for all sequences"),
        QT_TRANSLATE_NOOP("fields", "llama.cpp's kv_unified: sequences share the cells of one cache."),
        section="engine",
        advanced=True,
        applies=_llama_cpp,
    ),
    Field(
        "inference.swa_full",
        Kind.FLAG,
        QT_TRANSLATE_NOOP("fields", "Windows hold the whole context"),
        QT_TRANSLATE_NOOP(
            "fields", "llama.cpp's swa_full: sliding-window layers hold as many tokens as the others."
        ),
        section="engine",
        advanced=True,
        applies=_windows_of_ggml,
    ),
)
