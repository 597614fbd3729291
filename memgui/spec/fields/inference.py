"""Fields of serving: what is held at once, in which formats, by which engine."""

from __future__ import annotations

from memgui.spec.fields import when
from memgui.spec.fields.field import Choice, Field, Kind
from memgui.spec.formats import CACHE_FORMATS, SCHEMES
from memgui.spec.formats.schemes import PARTS
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def inference(scenario: Scenario) -> bool:
    """Whether the scenario is inference."""
    return scenario.task == "inference"


def _reads_source(scenario: Scenario) -> bool:
    """An encoder reads the prompt, a decoder writes."""
    return inference(scenario) and when.reads_source(scenario)


def decodes(scenario: Scenario) -> bool:
    """Whether the scenario is inference that writes, and so keeps a cache; encoders only read."""
    return inference(scenario) and scenario.model.is_decoder


def transformers(scenario: Scenario) -> bool:
    """Whether the scenario is inference by Transformers' generate()."""
    return inference(scenario) and scenario.inference.engine == "transformers"


def _generates(scenario: Scenario) -> bool:
    """Whether tokens are written, or were asked of an encoder: that can be taken back."""
    return inference(scenario) and (scenario.model.is_decoder or scenario.inference.generated_tokens > 0)


def _ggml(scenario: Scenario) -> bool:
    return inference(scenario) and scenario.inference.engine in ("llama.cpp", "ollama")


def _quantised(scenario: Scenario) -> bool:
    scheme = SCHEMES.get(scenario.inference.weight_format)
    return inference(scenario) and scheme is not None and bool(scheme.linear) and not scheme.mix


def _weight_formats() -> tuple[Choice, ...]:
    return tuple(Choice(scheme.name, scheme.label, scheme.note) for scheme in SCHEMES.values())


def _cache_formats() -> tuple[Choice, ...]:
    return tuple(Choice(entry.name, entry.label) for entry in CACHE_FORMATS.values())


_PARTS = {
    "attention": QT_TRANSLATE_NOOP("fields", "attention"),
    "mlp": QT_TRANSLATE_NOOP("fields", "feed-forward"),
    "experts": QT_TRANSLATE_NOOP("fields", "experts"),
    "shared_experts": QT_TRANSLATE_NOOP("fields", "shared experts"),
    "mixer": QT_TRANSLATE_NOOP("fields", "other mixers"),
    "lm_head": QT_TRANSLATE_NOOP("fields", "head"),
    "embedding": QT_TRANSLATE_NOOP("fields", "embedding"),
}

FIELDS: tuple[Field, ...] = (
    Field(
        "inference.engine",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Engine"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The program that runs the model; each allocates weights, cache and buffers its own way.",
        ),
        section="workload",
        choices=(
            Choice(
                "transformers",
                QT_TRANSLATE_NOOP("fields", "Transformers"),
                QT_TRANSLATE_NOOP("fields", "generate()"),
            ),
            Choice("vllm", "vLLM", "0.11"),
            Choice("sglang", "SGLang", "0.5"),
            Choice("llama.cpp", "llama.cpp", "b11434"),
            Choice("gpt-fast", "gpt-fast", QT_TRANSLATE_NOOP("fields", "as torchao has it")),
            Choice("ollama", "Ollama", QT_TRANSLATE_NOOP("fields", "llama.cpp inside")),
        ),
        applies=inference,
    ),
    Field(
        "inference.batch_size",
        Kind.COUNT,
        QT_TRANSLATE_NOOP("fields", "Sequences"),
        QT_TRANSLATE_NOOP("fields", "Sequences held at once."),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "sequences"),
        minimum=1,
        maximum=1_000_000_000,
        usual_maximum=65_536,
        log_scale=True,
        applies=inference,
    ),
    Field(
        "inference.prompt_tokens",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Prompt"),
        QT_TRANSLATE_NOOP("fields", "Tokens of each prompt."),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=1_000_000_000,
        usual_maximum=10_000_000,
        log_scale=True,
        applies=inference,
    ),
    Field(
        "inference.decoder_prompt_tokens",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Decoder start"),
        QT_TRANSLATE_NOOP("fields", "Tokens that the decoder begins with; the prompt goes to the encoder."),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=1,
        maximum=1_000_000_000,
        usual_maximum=10_000_000,
        log_scale=True,
        advanced=True,
        applies=_reads_source,
    ),
    Field(
        "inference.generated_tokens",
        Kind.TOKENS,
        QT_TRANSLATE_NOOP("fields", "Generated"),
        QT_TRANSLATE_NOOP("fields", "Tokens generated after each prompt; 0 stops after the prompt."),
        section="workload",
        unit=QT_TRANSLATE_NOOP("fields", "tokens"),
        minimum=0,
        maximum=1_000_000_000,
        usual_maximum=10_000_000,
        log_scale=True,
        applies=_generates,
        why_not=QT_TRANSLATE_NOOP("fields", "An encoder reads; it generates nothing."),
    ),
    Field(
        "inference.weight_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Weights"),
        QT_TRANSLATE_NOOP(
            "fields", "How the weights are stored: a number format, or a quantisation with its scales."
        ),
        section="precision",
        choices=_weight_formats(),
        applies=inference,
    ),
    Field(
        "inference.quantised_parts",
        Kind.CHOICES,
        QT_TRANSLATE_NOOP("fields", "Quantised parts"),
        QT_TRANSLATE_NOOP(
            "fields",
            "The parts of the model whose matrices are quantised; checkpoints leave some as they were.",
        ),
        section="precision",
        choices=tuple(Choice(part, _PARTS[part]) for part in PARTS),
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "as usual for the format"),
        advanced=True,
        applies=_quantised,
    ),
    Field(
        "inference.kv_cache_format",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "KV cache"),
        QT_TRANSLATE_NOOP("fields", "Number format of cached keys and values."),
        section="precision",
        choices=_cache_formats(),
        applies=decodes,
        why_not=QT_TRANSLATE_NOOP("fields", "An encoder keeps no cache."),
    ),
    Field(
        "inference.kv_cache_format_v",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Cached values"),
        QT_TRANSLATE_NOOP("fields", "Number format of cached values where it differs from that of keys."),
        section="precision",
        choices=_cache_formats(),
        optional=True,
        empty_label=QT_TRANSLATE_NOOP("fields", "as keys"),
        advanced=True,
        applies=_ggml,
    ),
    Field(
        "inference.attention",
        Kind.CHOICE,
        QT_TRANSLATE_NOOP("fields", "Attention"),
        QT_TRANSLATE_NOOP(
            "fields", "Eager attention holds the scores of every pair of tokens of the prompt for a moment."
        ),
        section="precision",
        choices=(
            Choice("eager", QT_TRANSLATE_NOOP("fields", "Eager")),
            Choice(
                "sdpa", QT_TRANSLATE_NOOP("fields", "SDPA"), QT_TRANSLATE_NOOP("fields", "PyTorch's kernels")
            ),
            Choice("flash_attention_2", "FlashAttention 2"),
        ),
        applies=transformers,
    ),
)
