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
from memgui.spec.fields import BY_PATH
from memgui.spec.values import parse

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
    "first token": Scenario(
        model=LLAMA, task="inference", inference=Inference(generated_tokens=64, transformers_version="4.35")
    ),
    **{
        engine: Scenario(model=LLAMA, task="inference", inference=Inference(engine=engine))
        for engine in ("vllm", "sglang", "llama.cpp", "ollama", "gpt-fast")
    },
    "gpt_article": msgspec.structs.replace(TRAINING, method="gpt_article"),
    "llama_guide": msgspec.structs.replace(TRAINING, method="llama_guide", method_variant="as_printed"),
    "megatron_paper": msgspec.structs.replace(TRAINING, method="megatron_paper"),
}
WORDS = English()
CATALOG = Catalog()


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


@pytest.mark.parametrize("method", ["gpt_article", "llama_guide", "megatron_paper"])
def test_each_assumption_of_a_method_is_told_once(method: str) -> None:
    answer = estimate(msgspec.structs.replace(TRAINING, method=method))
    whole = explain(answer, ())
    assert whole is not None
    assert whole.left_out
    assert whole.assumptions
    told = [message.text for message in (*whole.left_out, *whole.assumptions)]
    assert sorted(told) == sorted(message.text for message in answer.assumptions)


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


def set_up(name: str, *changes: str) -> Scenario:
    model = CATALOG.model(name).model
    made = replace(CATALOG.first_scenario(), "model", model)
    if 0 < model.max_position_embeddings < 4608:
        length = max(model.max_position_embeddings // 2, 16)
        for path in ("training.sequence_length", "inference.prompt_tokens", "inference.generated_tokens"):
            made = replace(made, path, length)
    for path, _, value in (change.partition("=") for change in changes):
        made = replace(made, path, parse(path, value))
    return made


SERVE, EIGHT = "task=inference", "device.count=8"
LLAMA_8B, LORA = "Llama-3.1-8B", "training.method=lora"
SET_UPS = (
    (LLAMA_8B, "training.attention=eager", "training.padding_mask=true"),
    (LLAMA_8B, "training.precision=bf16_mixed", "training.activation_checkpointing=full"),
    (LLAMA_8B, "training.optimizer=adamw_8bit", "training.expandable_segments=true"),
    (LLAMA_8B, LORA, "training.base_format=nf4_dq"),
    (LLAMA_8B, "training.method=prefix"),
    (LLAMA_8B, LORA, "training.implementation=unsloth"),
    (LLAMA_8B, EIGHT, "parallelism.data=8", "parallelism.sharding=zero3"),
    (LLAMA_8B, EIGHT, "parallelism.tensor=8"),
    (LLAMA_8B, EIGHT, "parallelism.pipeline=8", "training.gradient_accumulation_steps=8"),
    (LLAMA_8B, "method=megatron_paper"),
    ("t5-base", "training.attention=eager"),
    ("t5-base", SERVE),
    ("whisper-large-v3",),
    ("vit-base-patch16-224",),
    ("deberta-v3-base",),
    ("mamba-2.8b-hf",),
    ("Falcon-H1-7B-Base",),
    ("Qwen3-Next-80B-A3B-Instruct",),
    ("Kimi-Linear-48B-A3B-Instruct",),
    ("Mixtral-8x7B-v0.1",),
    ("gemma-3-1b-it", SERVE),
    ("gemma-4-E2B-it", SERVE),
    ("Qwen2.5-VL-7B-Instruct", SERVE),
    ("DeepSeek-V3",),
    (LLAMA_8B, SERVE, "inference.kv_cache_format=int8", "inference.engine=gpt-fast"),
    *(
        (name, SERVE, f"inference.engine={engine}")
        for engine in ("vllm", "sglang", "llama.cpp")
        for name in (LLAMA_8B, "gemma-3-1b-it", "DeepSeek-V2-Lite", "Jamba-v0.1", "gpt-oss-20b")
        if (name, engine) not in {("Jamba-v0.1", "llama.cpp"), ("gpt-oss-20b", "llama.cpp")}
    ),
    ("DeepSeek-V3", SERVE, "inference.engine=vllm", EIGHT, "parallelism.tensor=8"),
    ("MiniMax-Text-01", SERVE, "inference.engine=vllm"),
    ("mamba-2.8b-hf", SERVE, "inference.engine=llama.cpp"),
    (LLAMA_8B, SERVE, "inference.engine=llama.cpp", "inference.kv_cache_format=q8_0"),
    (LLAMA_8B, SERVE, "inference.engine=vllm", "inference.max_num_batched_tokens=65536"),
)


@pytest.mark.parametrize("changes", SET_UPS, ids=" ".join)
def test_each_number_leads_to_its_field(changes: tuple[str, ...]) -> None:
    """A letter is a field that applies, a component, or has a formula of its own that is true."""
    scenario = set_up(*changes)
    answer = estimate(scenario)
    assert answer.peak_bytes
    for path, node in paths(answer.components):
        if not node.bytes:
            continue
        explanation = explain(answer, path)
        assert explanation is not None
        assert not explanation.tokens or value_of(explanation.tokens) == node.bytes, path
        told = {(step.name, step.symbol.label) for step in explanation.steps}
        for step in explanation.steps:
            assert step.given or step.tokens, (path, step.name)
            assert not step.tokens or value_of(step.tokens) == step.symbol.value, (path, step.name)
        for tokens in (explanation.tokens, *(step.tokens for step in explanation.steps)):
            for symbol in (token.symbol for token in tokens if token.symbol is not None):
                name = next(token.text for token in tokens if token.symbol is symbol)
                if symbol.path:
                    assert BY_PATH[symbol.path].applies(scenario), (path, name)
                else:
                    assert symbol.component or (name, symbol.label) in told, (path, name)
        if explanation.tokens and not explanation.symbols:  # a number alone
            assert explanation.given or node.bytes <= SCALAR, path


SCALAR = 8
"""Bytes of one number: of a loss, a counter."""


def test_bytes_of_a_block_are_explained_down_to_the_fields() -> None:
    explanation = explain(estimate(SCENARIOS["vllm"]), ("kv_cache",))
    assert explanation is not None
    text = as_text(explanation, WORDS)
    assert "B = L·bs·K = 32·16·4,096 = 2,097,152" in text
    assert "K = 2·k·d·2 = 2·8·128·2 = 4,096" in text
    assert "K depends on KV cache: bf16" in text
    named = [step.name for step in explanation.steps]
    assert named == ["n", "B", "K"]


def test_bytes_of_a_latent_are_explained_too() -> None:
    for changes, said in (
        (("DeepSeek-V2-Lite",), "B = (lk + lr)·2 = (512 + 64)·2 = 1,152"),
        (("DeepSeek-V3.2",), "K = (lk + lr + id)·2 = (512 + 64 + 128)·2 = 1,408"),
    ):
        engine = "llama.cpp" if "V2" in changes[0] else "vllm"
        explanation = explain(estimate(set_up(*changes, SERVE, f"inference.engine={engine}")), ("kv_cache",))
        assert explanation is not None
        assert said in as_text(explanation, WORDS)


def test_fragmentation_says_how_it_comes_about() -> None:
    answer = estimate(TRAINING)
    explanation = explain(answer, ("overhead", "fragmentation"))
    assert explanation is not None
    assert written(explanation.tokens) == "(A − P)·6 ÷ 100"
    allocated, still = (step.symbol.value for step in explanation.steps)
    assert allocated == answer.allocated_bytes
    assert still == answer.component("weights").bytes + answer.component("optimizer_states").bytes
    for step in explanation.steps:
        for token in step.tokens:
            assert token.symbol is None or token.symbol.component
    fields = [one.path for one in explanation.given]
    assert fields == ["training.activation_checkpointing", "training.expandable_segments"]
