from collections.abc import Iterator

import msgspec
import pytest

from memgui.catalog import Catalog
from memgui.estimator import estimate
from memgui.estimator.result import COMPONENTS, Estimate, Node
from memgui.planning.concepts import concept, in_other_words
from memgui.planning.formula import tokens_of, value_of
from memgui.planning.why import as_markdown, as_text, divides, explain, sentences, written
from memgui.planning.words import English, Said
from memgui.spec import Inference, Message, ModelSpec, Scenario, Training, replace

LLAMA = ModelSpec(
    name="Llama-3.1-8B",
    model_type="llama",
    vocab_size=128_256,
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    intermediate_size=14_336,
    max_position_embeddings=131_072,
)
TRAINING = Scenario(model=LLAMA)
SCENARIOS = {
    "bf16": TRAINING,
    "accumulated": Scenario(model=LLAMA, training=Training(gradient_accumulation_steps=8)),
    "autocast, checkpointed": Scenario(
        model=LLAMA, training=Training(precision="bf16_mixed", activation_checkpointing="full")
    ),
    "eager": Scenario(
        model=LLAMA, training=Training(attention="eager", micro_batch_size=3, sequence_length=777)
    ),
    "sgd": Scenario(model=LLAMA, training=Training(optimizer="sgd")),
    "loss in chunks": Scenario(
        model=LLAMA, training=Training(method="lora", implementation="litgpt", sequence_length=2048)
    ),
    "serving": Scenario(model=LLAMA, task="inference", inference=Inference(batch_size=4, prompt_tokens=6144)),
    **{
        engine: Scenario(model=LLAMA, task="inference", inference=Inference(engine=engine))
        for engine in ("vllm", "sglang", "llama.cpp", "ollama", "gpt-fast")
    },
    "gpt_article": msgspec.structs.replace(TRAINING, method="gpt_article"),
    "llama_guide": msgspec.structs.replace(TRAINING, method="llama_guide", method_variant="as_printed"),
    "megatron_paper": msgspec.structs.replace(TRAINING, method="megatron_paper"),
}
WORDS = English()


@pytest.fixture(params=SCENARIOS)
def answer(request: pytest.FixtureRequest) -> Estimate:
    made = estimate(SCENARIOS[request.param])
    assert made.verdict.kind != "unknown"
    return made


def paths(nodes: tuple[Node, ...], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Node]]:
    for node in nodes:
        yield (*above, node.key), node
        yield from paths(node.children, (*above, node.key))


def test_no_explanation_lies(answer: Estimate) -> None:
    """Every shown formula, with its shown values, comes to the shown bytes."""
    for path, node in paths(answer.components):
        assert value_of(tokens_of(node.derivation)) == node.bytes, path
        explanation = explain(answer, path)
        assert explanation is not None
        assert explanation.bytes == node.bytes
        if explanation.tokens:
            assert value_of(explanation.tokens) == node.bytes, path
        if explanation.parts:
            assert sum(part.bytes for part in explanation.parts) == node.bytes, path


def test_whole_is_the_sum_of_its_components(answer: Estimate) -> None:
    whole = explain(answer, ())
    assert whole is not None
    assert whole.bytes == sum(part.bytes for part in whole.parts) == answer.peak_bytes


def test_every_explanation_can_be_copied(answer: Estimate) -> None:
    for path in ((), *(path for path, _ in paths(answer.components))):
        explanation = explain(answer, path)
        assert explanation is not None
        text, markdown = as_text(explanation, WORDS), as_markdown(explanation, WORDS)
        for copied in (text, markdown):
            assert f"{explanation.bytes:,} bytes" in copied
            assert "{" not in copied
        assert markdown.startswith("### ")
        assert markdown.count("```") == 2


def test_every_component_is_told_in_plain_words(answer: Estimate) -> None:
    for key in ("", *COMPONENTS):
        said = concept(answer, key)
        if answer.method == "detailed" or not key:
            assert said, key
        for sentence in said:
            text = sentence.text(WORDS)
            assert "{" not in text
            assert text[0].isupper() or text[0].isdigit()
            assert text.endswith(".")


def test_persons_numbers_are_in_the_sentences() -> None:
    answer = estimate(SCENARIOS["eager"])
    text = " ".join(said.text(WORDS) for said in concept(answer, "activations"))
    assert "32 layers" in text
    assert "2,331 tokens (3 × 777)" in text
    assert "square" in text
    served = estimate(SCENARIOS["serving"])
    text = " ".join(said.text(WORDS) for said in concept(served, "kv_cache"))
    assert "6,144 tokens in each of 4 sequences" in text
    assert " KiB for each" in text
    alone = estimate(Scenario(model=LLAMA, task="inference"))
    text = " ".join(said.text(WORDS) for said in concept(alone, "kv_cache"))
    assert "4,096 tokens. It grows" in text
    assert "When all 4,608 tokens are written it takes" in text


def test_mlp_reads_as_in_a_paper() -> None:
    answer = estimate(TRAINING)
    explanation = explain(answer, ("activations", "mlp"))
    assert explanation is not None
    assert written(explanation.tokens) == "L·b·s·(8·f + 2·h)"
    assert written(explanation.tokens, WORDS) == "32·1·4,096·(8·14,336 + 2·4,096)"
    assert explanation.symbols["s"].path == "training.sequence_length"
    text = as_text(explanation, WORDS)
    assert "= 16,106,127,360 bytes = 15.00 GiB" in text
    assert "s = 4,096  sequence length" in text
    assert len(explanation.parts) == 5
    assert {part.key for part in explanation.parts} == {""}
    assert "b·s·f·2" in {part.note for part in explanation.parts}


def test_method_says_what_it_leaves_out() -> None:
    answer = estimate(SCENARIOS["gpt_article"])
    whole = explain(answer, ())
    assert whole is not None
    assert whole.left_out
    assert "leaves out" in as_markdown(whole, WORDS)
    loss = explain(answer, ("loss",))
    assert loss is not None
    assert loss.bytes == 0
    assert loss.left_out
    assert all(message in whole.left_out for message in loss.left_out)
    assert len(loss.left_out) < len(whole.left_out)
    detailed = explain(estimate(TRAINING), ())
    assert detailed is not None
    assert detailed.left_out == ()


def test_printed_guide_divides_and_says_how() -> None:
    answer = estimate(SCENARIOS["llama_guide"])
    explanation = explain(answer, ("weights",))
    assert explanation is not None
    assert divides(explanation.tokens)
    assert "÷" in as_text(explanation, WORDS)


def test_node_that_is_not_there_has_no_explanation() -> None:
    answer = estimate(TRAINING)
    assert explain(answer, ("nothing",)) is None
    assert explain(answer, ("weights", "nothing")) is None


def test_texts_come_from_whoever_shows_them() -> None:
    class Shouting(English):
        def translate(self, context: str, text: str) -> str:
            return text.upper() if context == "estimator" else text

    explanation = explain(estimate(TRAINING), ("activations", "mlp"))
    assert explanation is not None
    assert as_text(explanation, Shouting()).startswith("ACTIVATIONS › FEED-FORWARD")
    assert sentences(explanation, Shouting())[0].isupper()


def test_said_puts_every_sort_of_value_in() -> None:
    said = Said(
        "{size} {count} {word} {marked} {message}",
        sizes={"size": 3 * 2**30},
        counts={"count": 4096},
        words={"word": "adamw", "marked": ("estimator", "Weights")},
        messages={"message": Message("layer {layer}", {"layer": 3})},
    )
    assert said.text(WORDS) == "3.00 GiB 4,096 adamw Weights layer 3"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0.00 GiB"),
        (2**30, "1.00 GiB"),
        (50 * 2**20, "50.0 MiB"),
        (131_072, "128.0 KiB"),
        (1000, "1,000 bytes"),
    ],
)
def test_english_sizes(size: int, text: str) -> None:
    assert WORDS.size(size) == text
    assert WORDS.share(1, 3) == "33.3 %"
    assert WORDS.share(1, 0) == "0.0 %"


def test_a_device_that_holds_a_part_of_the_weights_says_so() -> None:
    serving = replace(replace(Catalog().first_scenario(), "task", "inference"), "device.count", 2)
    for path in ("parallelism.tensor", "parallelism.pipeline"):
        said = explain(estimate(replace(serving, path, 2)), ("weights",))
        assert said is not None
        assert "One device's part" in as_text(said, English())


def test_activations_that_are_used_up_say_when_they_were_there() -> None:
    answer = estimate(replace(TRAINING, "training.activation_checkpointing", "full"))
    fullest = max(answer.timeline, key=lambda moment: moment.components["activations"])
    most = fullest.components["activations"]
    assert most > 2 * answer.component("activations").bytes
    text = " ".join(said.text(WORDS) for said in concept(answer, "activations"))
    assert f"{WORDS.size(most)} are kept ({fullest.label.text})" in text
    tokens = TRAINING.training.micro_batch_size * TRAINING.training.sequence_length
    assert WORDS.size(most // tokens) in text
    plain = " ".join(said.text(WORDS) for said in concept(estimate(TRAINING), "activations"))
    assert "used most of it up" not in plain


def test_a_token_of_the_cache_takes_what_the_estimator_says() -> None:
    for engine in ("transformers", "vllm"):
        serving = replace(replace(TRAINING, "task", "inference"), "inference.engine", engine)
        answer = estimate(serving)
        each = answer.extra["kv_bytes_per_token"]
        assert in_other_words(answer, "kv_cache")[0][1] == each
        text = " ".join(said.text(WORDS) for said in concept(answer, "kv_cache"))
        held = answer.component("kv_cache").bytes // each
        assert f"{WORDS.size(each)} for each of {WORDS.count(held)} tokens" in text
        most = answer.extra.get("kv_cache_bytes", answer.component("kv_cache").bytes)
        assert ("When all" in text) == (most > answer.component("kv_cache").bytes)


def test_a_sum_below_a_component_says_what_it_is_a_part_of() -> None:
    answer = estimate(replace(TRAINING, "training.attention", "eager"))
    whole = answer.component("activations")
    part = whole.child("attention")
    (said,) = sentences(explain(answer, ("activations", "attention")), WORDS)  # type: ignore[arg-type]
    assert said.startswith(f"{part.bytes / whole.bytes:.1%}"[:-1] + " % of Activations, ")
    assert WORDS.size(whole.bytes) in said


@pytest.mark.parametrize(
    ("name", "task", "engine"),
    [
        ("albert-base-v2", "inference", "transformers"),
        ("aya-23-8B", "training", "transformers"),
        ("MiniMax-Text-01", "inference", "vllm"),
    ],
)
def test_parts_that_are_called_alike_or_by_halves_are_explained(name: str, task: str, engine: str) -> None:
    """ALBERT's only part of the cache is a sum of its own, MiniMax has seven groups of states."""
    model = Catalog().model(name).model
    length = min(model.max_position_embeddings - 64, 512)
    inference = Inference(engine=engine, prompt_tokens=length, generated_tokens=64)
    answer = estimate(
        Scenario(model=model, task=task, inference=inference, training=Training(sequence_length=length))
    )
    for path, node in paths(answer.components):
        keys = [child.key for child in node.children]
        assert len(keys) == len(set(keys)), path
        explanation = explain(answer, path)
        assert explanation is not None
        assert f"{node.bytes:,} bytes" in as_text(explanation, WORDS)
        if explanation.tokens:
            assert value_of(explanation.tokens) == node.bytes, path
