"""What attention's kernels keep and allocate: the flash-attn package, and buffers inside backward.

Sizes inside kernels follow PyTorch's sources (``mha_bwd`` in flash_api.cpp, ``workspace_size`` of
kernel_backward.h); no tracer of tensors sees them.
"""

import msgspec
import pytest

from memgui.estimator import estimate, ledger
from memgui.estimator.options import options
from memgui.spec import Scenario, Training
from memgui.spec.model import ModelSpec
from memgui.spec.validate import validate
from tests.estimator.models import LLAMA_2_7B, LLAMA_3_1B

BATCH, LENGTH, MANY = 2, 1000, 64


def scenario(model: ModelSpec, **choices: object) -> Scenario:
    training = Training(micro_batch_size=BATCH, sequence_length=LENGTH, attention="sdpa")
    return Scenario(
        model=msgspec.structs.replace(model, num_hidden_layers=2),
        training=msgspec.structs.replace(training, **choices),
    )


@pytest.mark.parametrize("model", [LLAMA_2_7B, LLAMA_3_1B], ids=lambda m: m.name)
def test_flash_2_keeps_what_flash_keeps(model: ModelSpec) -> None:
    """But for its random state, which is 8 bytes shorter in each layer."""
    flash, package = (
        ledger(scenario(model, attention=name)).saved_total for name in ("sdpa", "flash_attention_2")
    )
    assert package == flash - 2 * 8


def test_padding_is_taken_out_for_flash_2() -> None:
    """Rows are chosen (queries, keys and values anew) and put back among zeros."""
    plain, padded = (
        ledger(scenario(LLAMA_2_7B, attention="flash_attention_2", padding_mask=mask)).saved_total
        for mask in (False, True)
    )
    tokens = BATCH * LENGTH
    output = tokens * 4096 * 2  # that which is put back is what the next layer keeps
    assert padded - plain == 2 * (8 * tokens + output)


def inside(model: ModelSpec, backend: str) -> int:
    """Bytes inside kernels at the peak of a step where attention holds most; no norm is in fp32."""
    small = msgspec.structs.replace(model, vocab_size=8, intermediate_size=64, norm="layer_norm")
    run = scenario(
        small,
        activation_checkpointing="full",
        sdpa_backend=backend,
        micro_batch_size=MANY,
        optimizer_implementation="forloop",
        torch_version="2.14",  # whose memory-efficient kernel takes shared heads
    )
    parts = {node.key: node.bytes for part in estimate(run).components for node in part.children}
    return parts["kernels"]


def test_flash_sums_the_gradient_of_queries_in_fp32() -> None:
    rows = MANY * 1024 * 32
    assert inside(LLAMA_2_7B, "flash") == rows * 4 * (128 + 1)


def test_flash_makes_the_gradients_of_grouped_heads_for_each_head() -> None:
    rows = MANY * 1024 * 32
    assert inside(LLAMA_3_1B, "flash") == rows * (4 * (64 + 1) + 2 * 2 * 64)


def test_the_efficient_kernel_sums_the_gradient_of_queries_in_fp32() -> None:
    rows = MANY * 1024 * 32
    assert inside(LLAMA_2_7B, "efficient") == rows * 4 * (128 + 1)


def test_the_efficient_kernel_makes_the_gradients_of_grouped_heads_for_each_head() -> None:
    rows = MANY * 1024 * 32
    assert inside(LLAMA_3_1B, "efficient") == rows * (4 * (64 + 1) + 2 * 2 * 64)


def test_grouped_heads_in_fp32_keep_scores_before_2_14() -> None:
    old, new = (
        ledger(scenario(LLAMA_3_1B, precision="fp32", torch_version=version)).saved_total
        for version in ("2.13", "2.14")
    )
    assert old - new > 2 * BATCH * 32 * LENGTH**2 * 4


def test_the_version_told_is_the_one_chosen() -> None:
    assert estimate(scenario(LLAMA_3_1B)).version.startswith("PyTorch 2.13, ")
    assert estimate(scenario(LLAMA_3_1B, torch_version="2.14")).version.startswith("PyTorch 2.14, ")


def test_flash_2_in_fp32_is_said() -> None:
    found = validate(scenario(LLAMA_2_7B, attention="flash_attention_2", precision="fp32"))
    assert "no_flash_in_fp32" in {issue.code for issue in found}


def test_no_more_layers_are_frozen_than_there_are() -> None:
    found = validate(scenario(LLAMA_2_7B, frozen_layers=3))
    assert [(issue.code, issue.severity) for issue in found] == [("more_frozen_than_there_are", "error")]


@pytest.mark.parametrize(
    ("choices", "letters"),
    [
        ({"sequence_length": 1001, "padding_mask": True}, ("s",)),
        ({"sequence_length": 1004, "padding_mask": True}, ("s",)),
        ({"sequence_length": 1000, "padding_mask": True}, ()),
        ({"sequence_length": 1001}, ()),
        ({"sequence_length": 1001, "padding_mask": True, "attention": "eager"}, ()),
        ({"sequence_length": 1001, "padding_mask": True, "attention": "flash_attention_2"}, ()),
        ({"sequence_length": 1001, "padding_mask": True, "sdpa_backend": "math"}, ()),
    ],
)
def test_another_program_only_where_a_mask_is_padded(
    choices: dict[str, object], letters: tuple[str, ...]
) -> None:
    assert options(scenario(LLAMA_3_1B, **choices)).ragged == letters
