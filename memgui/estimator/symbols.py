"""The letters of formulas that follow from batch and lengths: what each means, and its field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from memgui.estimator.chunks import cached_entries, compressed_symbols, recurrent_symbols
from memgui.estimator.defined import definition
from memgui.estimator.dimensions import MODEL, ON_RANK, stated_by, window
from memgui.estimator.result import Symbol
from memgui.spec.messages import QT_TRANSLATE_NOOP
from memgui.spec.scenario import Scenario


def _length(scenario: Scenario) -> int:
    """Tokens of a sequence that go through a rank's layers: prompt tuning puts some in front."""
    training = scenario.training
    whole = training.sequence_length + (training.virtual_tokens if training.method == "prompt" else 0)
    ranks = scenario.parallelism.context
    return whole if ranks == 1 or scenario.device.count == 1 else -(-whole // ranks)


def _chunks(scenario: Scenario) -> tuple[int, int, int]:
    """Tokens of the last chunk, of the one before it, of all others, as ``torch.chunk`` cuts a sequence."""
    length = _length(scenario)
    each = -(-length // scenario.training.loss_chunks)
    last = length - (-(-length // each) - 1) * each
    second = min(each, length - last)
    return last, second, length - last - second


BUDGET = 4 * 2**30
LOGIT = 16
"""Bytes that Unsloth's loss may take, and reckons with for each logit."""


def _tokens_of_unsloth(scenario: Scenario) -> int:
    """Tokens of a chunk of Unsloth's loss: a multiple of four chunks, if one does not do."""
    model = scenario.model
    tokens = scenario.training.micro_batch_size * _length(scenario)
    held = 2 * tokens * model.hidden_size
    left = BUDGET - held if held < BUDGET else BUDGET
    wanted = LOGIT * tokens * model.vocab_size
    if wanted <= left:
        return tokens
    chunks = min(tokens, -(-wanted // (4 * left)) * 4)
    return -(-tokens // chunks)


def _tokens_at_once(scenario: Scenario) -> int:
    """Tokens of a chunk of Liger's loss: so many that their logits are about as large as its input."""
    tokens = scenario.training.micro_batch_size * _length(scenario)
    share = -(-tokens // -(-scenario.model.vocab_size // scenario.model.hidden_size))
    return min(tokens, 1 << (share - 1).bit_length())


def target_tokens(scenario: Scenario) -> int:
    """Tokens of each target sequence: as many as the source has, unless said otherwise."""
    training = scenario.training
    return training.target_length or training.sequence_length


def start_tokens(scenario: Scenario) -> int:
    """Tokens that a decoder beside an encoder begins with."""
    return scenario.inference.decoder_prompt_tokens


TRAINING: dict[str, tuple[str, str | None, Callable[[Scenario], int]]] = {
    "b": (
        QT_TRANSLATE_NOOP("symbols", "micro batch"),
        "training.micro_batch_size",
        lambda s: s.training.micro_batch_size,
    ),
    "s": (
        QT_TRANSLATE_NOOP("symbols", "sequence length"),
        "training.sequence_length",
        lambda s: _length(s),
    ),
    "sr": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a sequence on each sequence parallel rank"),
        "parallelism.tensor",
        lambda s: -(-_length(s) // s.parallelism.tensor),
    ),
    "sa": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a sequence on all context parallel ranks"),
        "training.sequence_length",
        lambda s: _length(s) * s.parallelism.context,
    ),
    "s0": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a sequence without the prompt"),
        "training.sequence_length",
        lambda s: s.training.sequence_length,
    ),
    "sv": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a sequence and of the prefix"),
        None,
        lambda s: _length(s) + s.training.virtual_tokens,
    ),
    "sv8": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a sequence and of the prefix, rounded up to 8"),
        None,
        lambda s: -(-(_length(s) + s.training.virtual_tokens) // 8) * 8,
    ),
    "s1": (
        QT_TRANSLATE_NOOP("symbols", "sequence length plus one"),
        None,
        lambda s: _length(s) + 1,
    ),
    "sc128": (
        QT_TRANSLATE_NOOP("symbols", "tokens of a chunk: 128, or the sequence where that is shorter"),
        "training.sequence_length",
        lambda s: min(128, _length(s)),
    ),
    "c128": (
        QT_TRANSLATE_NOOP("symbols", "chunks of 128 tokens"),
        None,
        lambda s: -(-_length(s) // 128),
    ),
    "c1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of the loss's last chunk"),
        "training.loss_chunks",
        lambda s: _chunks(s)[0],
    ),
    "c2": (
        QT_TRANSLATE_NOOP("symbols", "tokens of the loss's last chunk but one"),
        "training.loss_chunks",
        lambda s: _chunks(s)[1],
    ),
    "cr": (
        QT_TRANSLATE_NOOP("symbols", "tokens of the loss's other chunks"),
        "training.loss_chunks",
        lambda s: _chunks(s)[2],
    ),
    "bu": (
        QT_TRANSLATE_NOOP("symbols", "tokens whose logits are there at once"),
        None,
        lambda s: _tokens_of_unsloth(s),
    ),
    "bt": (
        QT_TRANSLATE_NOOP("symbols", "tokens whose logits are there at once"),
        None,
        lambda s: _tokens_at_once(s),
    ),
    "u": (QT_TRANSLATE_NOOP("symbols", "target length"), "training.target_length", target_tokens),
    "u8": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 8"),
        None,
        lambda s: -(-target_tokens(s) // 8) * 8,
    ),
    "u16": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 16"),
        None,
        lambda s: -(-target_tokens(s) // 16) * 16,
    ),
    "u32": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 32"),
        None,
        lambda s: -(-target_tokens(s) // 32) * 32,
    ),
    "u64": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 64"),
        None,
        lambda s: -(-target_tokens(s) // 64) * 64,
    ),
    "u128": (
        QT_TRANSLATE_NOOP("symbols", "target length rounded up to 128"),
        None,
        lambda s: -(-target_tokens(s) // 128) * 128,
    ),
    "s8": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 8"),
        None,
        lambda s: -(-_length(s) // 8) * 8,
    ),
    "s16": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 16"),
        None,
        lambda s: -(-_length(s) // 16) * 16,
    ),
    "it": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the indexer chooses"),
        "model.index_topk",
        lambda s: min(s.model.index_topk, s.training.sequence_length),
    ),
    "s32": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 32"),
        None,
        lambda s: -(-_length(s) // 32) * 32,
    ),
    "s64": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 64"),
        None,
        lambda s: -(-_length(s) // 64) * 64,
    ),
    "s128": (
        QT_TRANSLATE_NOOP("symbols", "sequence length rounded up to 128"),
        None,
        lambda s: -(-_length(s) // 128) * 128,
    ),
    **recurrent_symbols(_length, "training.sequence_length"),
    **compressed_symbols(_length),
}
"""Symbols of a training step that stay open until it is evaluated: label, field, value."""


def _held(scenario: Scenario) -> int:
    """Tokens of each sequence in the cache."""
    return scenario.inference.prompt_tokens + scenario.inference.generated_tokens


RESIDUAL = 128
"""Tokens that Transformers' QuantizedCache gathers before it packs them."""

INFERENCE: dict[str, tuple[str, str | None, Callable[[Scenario], int]]] = {
    "u": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the decoder begins with"),
        "inference.decoder_prompt_tokens",
        start_tokens,
    ),
    "u8": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the decoder begins with, rounded up to 8"),
        None,
        lambda s: -(-start_tokens(s) // 8) * 8,
    ),
    "u32": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the decoder begins with, rounded up to 32"),
        None,
        lambda s: -(-start_tokens(s) // 32) * 32,
    ),
    "vt": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each target in the cache"),
        None,
        lambda s: start_tokens(s) + s.inference.generated_tokens,
    ),
    "vt1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each target in the cache, less one"),
        None,
        lambda s: start_tokens(s) + s.inference.generated_tokens - 1,
    ),
    "b": (
        QT_TRANSLATE_NOOP("symbols", "sequences"),
        "inference.batch_size",
        lambda s: s.inference.batch_size,
    ),
    "s": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens"),
        "inference.prompt_tokens",
        lambda s: s.inference.prompt_tokens,
    ),
    "s8": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens rounded up to 8"),
        None,
        lambda s: -(-s.inference.prompt_tokens // 8) * 8,
    ),
    "it": (
        QT_TRANSLATE_NOOP("symbols", "tokens that the indexer chooses"),
        "model.index_topk",
        lambda s: min(s.model.index_topk, s.inference.prompt_tokens),
    ),
    "s32": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens rounded up to 32"),
        None,
        lambda s: -(-s.inference.prompt_tokens // 32) * 32,
    ),
    "s1": (
        QT_TRANSLATE_NOOP("symbols", "prompt tokens plus one"),
        None,
        lambda s: s.inference.prompt_tokens + 1,
    ),
    "ts": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence in the cache, plus one"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens + 1,
    ),
    "t": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence in the cache"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens,
    ),
    "t1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence in the cache, less one"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens - 1,
    ),
    "tq": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a cache has packed"),
        None,
        lambda s: s.inference.prompt_tokens + s.inference.generated_tokens // RESIDUAL * RESIDUAL,
    ),
    "tr": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a cache has not packed yet"),
        None,
        lambda s: s.inference.generated_tokens % RESIDUAL,
    ),
    "tr1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence not packed yet before the last"),
        None,
        lambda s: (s.inference.generated_tokens - 1) % RESIDUAL,
    ),
    "tw1": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a window held before the last"),
        None,
        lambda s: (
            s.inference.prompt_tokens
            if s.inference.generated_tokens == 1
            else min(
                s.inference.prompt_tokens + s.inference.generated_tokens - 1,
                window(s.model),
            )
        ),
    ),
    "tw": (
        QT_TRANSLATE_NOOP("symbols", "tokens of each sequence that a window holds"),
        None,
        lambda s: min(s.inference.prompt_tokens + s.inference.generated_tokens, window(s.model)),
    ),
    **recurrent_symbols(lambda s: s.inference.prompt_tokens, "inference.prompt_tokens"),
    **compressed_symbols(lambda s: s.inference.prompt_tokens),
    **cached_entries(_held, lambda s: min(_held(s), window(s.model))),
}
"""Symbols of serving that stay open until it is evaluated."""


def open_symbols(scenario: Scenario) -> dict[str, tuple[str, str | None, Callable[[Scenario], int]]]:
    """The open symbols of the scenario's task."""
    return TRAINING if scenario.task == "training" else INFERENCE


def symbol(scenario: Scenario, name: str, values: Mapping[str, int]) -> Symbol:
    """The symbol called ``name`` with its value in ``scenario``."""
    found = MODEL.get(name)
    if found is None and name in values:  # of layers with other sizes: the letter and their mixer
        return Symbol(values[name], MODEL[name.partition("_")[0]][0], "model.layer_variants")
    if found is not None:
        shared = scenario.parallelism.tensor > 1 and scenario.device.count > 1 and name in ON_RANK
        label, path = ON_RANK[name] if shared else found[0], stated_by(name, scenario.model)
        size = values[name]
    else:
        label, path, value = open_symbols(scenario)[name]
        size = value(scenario)
    told = None if path else definition(scenario, name, size, partial(symbol, scenario, values=values))
    return Symbol(size, label, path, told)
