"""What a cache of keys and values is and how it grows, in plain words with the person's numbers in them."""

from __future__ import annotations

from memgui.estimator.result import Estimate
from memgui.planning.words import Said
from memgui.spec.messages import QT_TRANSLATE_NOOP


def kv_cache(estimate: Estimate) -> tuple[Said, ...]:
    """The sentences of the KV cache, or of the state that is kept in its place."""
    scenario = estimate.scenario
    if scenario.task == "training":
        return (
            Said(
                QT_TRANSLATE_NOOP(
                    "why",
                    "A cache serves to write text word by word; in training the whole text is there at once.",
                )
            ),
        )
    if estimate.component("kv_cache").bytes and estimate.extra.get("kv_bytes_per_token") == 0:
        text = QT_TRANSLATE_NOOP(
            "why",
            "This model keeps no keys and values of the tokens before, but for each sequence a state of "
            "one size, however long it is.",
        )
        return (Said(text),)
    inference = scenario.inference
    length = cached_tokens(estimate)
    size = estimate.component("kv_cache").bytes
    said = [
        Said(
            QT_TRANSLATE_NOOP(
                "why",
                "Each new token looks back at all tokens before it. So that they need not be "
                "computed again, every "
                "layer keeps two vectors, a key and a value, for each of them.",
            )
            if scenario.model.kv_lora_rank is None
            else QT_TRANSLATE_NOOP(
                "why",
                "Each new token looks back at all tokens before it. So that they need not be computed again, "
                "every layer keeps one short vector for each of them, from which it makes keys and values.",
            )
        ),
    ]
    each = size // max(1, length * inference.batch_size)
    growth = estimate.extra.get("kv_bytes_per_token", each)
    if size:
        said.append(
            Said(
                QT_TRANSLATE_NOOP(
                    "why", "{each} for each of {length} tokens in each of {sequences} sequences."
                )
                if inference.batch_size > 1
                else QT_TRANSLATE_NOOP("why", "{each} for each of {length} tokens."),
                sizes={"each": each},
                counts={"length": length, "sequences": inference.batch_size},
            )
        )
    if size and growth == each:
        said.append(Said(QT_TRANSLATE_NOOP("why", "It grows with every token written.")))
    elif growth > 0:
        text = QT_TRANSLATE_NOOP("why", "Every further token adds {growth}; the rest does not grow.")
        said.append(Said(text, sizes={"growth": growth}))
    most = estimate.extra.get("kv_cache_bytes", size)
    if most > size:
        text = QT_TRANSLATE_NOOP(
            "why", "When all {count} tokens are written it takes {most}, but then the whole needs less."
        )
        whole = inference.prompt_tokens + inference.generated_tokens
        said.append(Said(text, sizes={"most": most}, counts={"count": whole}))
    return tuple(said)


def cached_tokens(estimate: Estimate) -> int:
    """Tokens of each sequence that the cache holds at the peak: in the prompt's pass only the prompt's."""
    inference = estimate.scenario.inference
    size = estimate.component("kv_cache").bytes
    grows = estimate.extra.get("kv_cache_bytes", size) > size
    if grows and estimate.peak_moment.phase == "prefill":
        return inference.prompt_tokens
    return inference.prompt_tokens + inference.generated_tokens
