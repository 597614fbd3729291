"""What people type and paste, and what they are told when it cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.spec import ScenarioError
from memgui.spec.fields import FIELDS
from memgui.spec.values import parse


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("training.sequence_length", "128k", 131_072),
        ("training.sequence_length", "4,096", 4096),
        ("inference.prompt_tokens", "1M", 1_048_576),
        ("inference.generated_tokens", "0", 0),
        ("model.nominal_parameters", "7B", 7_000_000_000),
        ("model.nominal_parameters", "7.6b", 7_600_000_000),
        ("model.nominal_parameters", "none", None),
        ("model.vocab_size", "32k", 32_000),
        ("device.memory_bytes", "24 GiB", 24 * 2**30),
        ("device.memory_bytes", "80GB", 80 * 10**9),
        ("device.memory_bytes", "0.5 TiB", 2**39),
        ("device.memory_bytes", "1,024.5 GiB", 2049 * 2**29),
        ("device.memory_bytes", "79.2 GiB", 85_040_352_461),
        ("device.memory_bytes", "23.6GB", 23_600_000_000),
        ("model.nominal_parameters", "1e9", 1_000_000_000),
        ("model.nominal_parameters", "6.7380e9", 6_738_000_000),
        ("model.nominal_parameters", "1.23456789012345E+14", 123_456_789_012_345),
        ("training.sequence_length", "1.31072e5", 131_072),
        ("training.sequence_length", "4096.", 4096),
        ("training.sequence_length", "+5e-1 k", 512),
        ("device.memory_bytes", "8e10", 80 * 10**9),
        ("device.memory_bytes", "2.4e1 GiB", 24 * 2**30),
        ("training.dropout", "1e-1", 0.1),
        ("training.dropout", "0.1", 0.1),
        ("training.dropout", "10 %", 0.1),
        ("inference.gpu_memory_utilization", "92.5%", 0.925),
        ("training.dropout", "auto", None),
        ("training.padding_mask", "on", True),
        ("training.precision", "bf16_mixed", "bf16_mixed"),
        ("training.lora.target_modules", "q_proj, k_proj o_proj", ("q_proj", "k_proj", "o_proj")),
        ("device.name", "My GPU", "My GPU"),
    ],
)
def test_understood(path: str, text: str, value: Any) -> None:
    parsed = parse(path, text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("training.micro_batch_size", "0", "1 to 1,000,000,000"),
        ("training.micro_batch_size", "1.5", "whole number"),
        ("training.micro_batch_size", "-1", "Allowed"),
        ("training.micro_batch_size", "nan", "a number is needed"),
        ("training.micro_batch_size", "1e-1", "whole number"),
        ("training.micro_batch_size", "1e99", "1 to 1,000,000,000"),
        ("training.micro_batch_size", "1e100", "a number is needed"),
        ("training.micro_batch_size", "1e", "a number is needed"),
        ("training.micro_batch_size", "e9", "a number is needed"),
        ("training.micro_batch_size", "9" * 10_000, "a number is needed"),
        ("training.sequence_length", "12 GiB", "a number is needed"),
        (
            "device.memory_bytes",
            "24 parsecs",
            "nothing: bytes, KB, MB, GB, TB, KiB, MiB, GiB, TiB.",
        ),
        ("model.name", "a\x1b[31mb", "“a\\x1b[31mb”: characters that break a line"),
        ("device.name", "a\u202eb", "characters that break a line or turn its direction are not allowed"),
        ("training.lora.target_modules", "q_proj\0", "characters that break a line"),
        ("device.memory_bytes", "24,5 GiB", "a point parts decimals"),
        ("training.sequence_length", "1,5k", "a point parts decimals"),
        ("device.memory_bytes", "1 234,5 GiB", "a point parts decimals"),
        ("training.dropout", "0,1", "a point parts decimals"),
        ("training.dropout", "0,1%", "a point parts decimals"),
        ("training.dropout", "ten", "with one of these after it or nothing: %"),
        ("training.micro_batch_size", "1,5", "a point parts decimals"),
        ("training.micro_batch_size", "4%", "k, M, B, T"),
        ("device.memory_bytes", "85,02", "a point parts decimals"),
        ("task", "", "task cannot be “”"),
        ("training.dropout", "1.5", "Allowed: 0 to 0.99."),
        ("training.precision", "int3", "bf16_mixed"),
        ("training.padding_mask", "maybe", "on, off"),
    ],
)
def test_refused_with_what_is_allowed(path: str, text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(path, text)
    assert path in str(caught.value)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@given(st.sampled_from([field.path for field in FIELDS]), st.text(max_size=80))
def test_any_text_gives_a_value_or_one_sentence(path: str, text: str) -> None:
    try:
        parse(path, text)
    except ScenarioError as error:
        told = error.issue
    else:
        return
    assert told.paths == (path,)
