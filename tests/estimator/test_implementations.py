"""Other libraries' code against figures measured on that code: LitGPT of October 2023 and bitsandbytes 0.41.

LitGPT's model and loss ran on a fake CUDA device (PyTorch 2.13), three layers of each model; its table of
real A100 runs is among the measured rows of the scoreboard.  Chunks that are cut off at the sequence's end,
and copies of labels, are not modelled to the byte.
"""

import msgspec
import pytest

from memgui.estimator import estimate, ledger
from memgui.spec import Lora, Scenario, Training
from memgui.spec.model import ModelSpec
from tests.estimator.models import LLAMA_2_7B

PHI = ModelSpec(
    name="phi-1.5",
    model_type="phi",
    vocab_size=51200,
    hidden_size=2048,
    num_hidden_layers=24,
    num_attention_heads=32,
    num_key_value_heads=32,
    head_dim=64,
    intermediate_size=8192,
    max_position_embeddings=2048,
    norm="layer_norm",
    parallel_block="one_norm",
    hidden_act="gelu_new",
    gated_mlp=False,
    rotary_dim=32,
    attention_bias=True,
    attention_output_bias=True,
    mlp_bias=True,
    lm_head_bias=True,
)
STABLELM = msgspec.structs.replace(
    PHI,
    name="stablelm-base-alpha-3b",
    model_type="gpt_neox",
    vocab_size=50688,
    hidden_size=4096,
    num_hidden_layers=16,
    head_dim=128,
    intermediate_size=16384,
    max_position_embeddings=4096,
    parallel_block="two_norms",
    hidden_act="gelu",
    lm_head_bias=False,
)


def litgpt(model: ModelSpec, batch: int, length: int, precision: str, base: str) -> Scenario:
    mixed = precision == "bf16_mixed"
    return Scenario(
        model=msgspec.structs.replace(model, num_hidden_layers=3),
        training=Training(
            method="lora",
            implementation="litgpt",
            micro_batch_size=batch,
            sequence_length=length,
            precision=precision,
            base_format=base,
            kbit_preparation=False,
            optimizer_implementation="foreach",
            lora=Lora(rank=8, dropout=0.05, adapter_format="fp32" if mixed else "bf16"),
        ),
    )


@pytest.mark.parametrize(
    ("model", "batch", "length", "precision", "base", "after_forward", "forward", "backward"),
    [
        (LLAMA_2_7B, 1, 1304, "bf16", "bf16", 2760963388, 2760973808, 2793736596),
        (LLAMA_2_7B, 2, 1304, "bf16", "bf16", 3781032812, 3786941656, 3846576816),
        (PHI, 1, 1044, "bf16", "bf16", 1317158164, 1317166504, 1369591132),
        (STABLELM, 2, 1034, "bf16", "bf16", 3540018404, 3543684464, 3643833496),
        (STABLELM, 1, 1034, "bf16_mixed", "fp32", 9431615332, 9431623592, 9483523972),
        (LLAMA_2_7B, 1, 1304, "bf16", "nf4", 1882073404, 2154585352, 2323033364),
        (PHI, 1, 1044, "bf16", "nf4_dq", 997320840, 1094191196, 1310050408),
    ],
)
def test_first_step_of_litgpt(
    model: ModelSpec,
    batch: int,
    length: int,
    precision: str,
    base: str,
    after_forward: int,
    forward: int,
    backward: int,
) -> None:
    first = ledger(litgpt(model, batch, length, precision, base)).steps[0]
    assert first.after_forward == pytest.approx(after_forward, rel=1e-5)
    assert first.phases["forward"] == pytest.approx(forward, rel=2e-3)
    assert first.phases["backward"] == pytest.approx(backward, rel=5e-3)


def test_the_version_is_shown() -> None:
    assert "LitGPT" in estimate(litgpt(PHI, 1, 128, "bf16", "bf16")).version


def test_what_a_library_cannot_run_is_refused() -> None:
    scenario = litgpt(msgspec.structs.replace(PHI, tie_word_embeddings=True), 1, 128, "bf16", "bf16")
    assert estimate(scenario).verdict.kind == "unknown"
