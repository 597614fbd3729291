"""Lone modules against figures that Liger's benchmark published of an A100 (MiB, from its own table)."""

from typing import Any

import pytest

from tests.accuracy.express import Inexpressible
from tests.accuracy.kernels import lone_kernel

GATED = {"bsz": 8, "hidden_size": 4096, "intermediate_size": 11008, "hidden_act": "gelu_pytorch_tanh"}


def _row(kernel: str, words: str, **dims: Any) -> dict[str, Any]:
    name = f"liger-{kernel.replace('_', '-')}-{words}"
    return {"id": name, "model": {"name": f"kernel:{kernel}", "dims": {"dtype": "torch.bfloat16", **dims}}}


@pytest.mark.parametrize(
    ("row", "published"),
    [
        (_row("geglu", "liger-forward-t1024", T=1024, **GATED), 918.25),
        (_row("geglu", "huggingface-forward-t8192", T=8192, **GATED), 6802.25),
        (_row("geglu", "huggingface-full-t2048", T=2048, **GATED), 3452.25),
        (
            _row("fused_linear_cross_entropy", "huggingface-full-bt8192", BT=8192, H=4096, V=128256),
            9162.3134765625,
        ),
    ],
    ids=lambda value: value["id"] if isinstance(value, dict) else "",
)
def test_modules_alone(row: dict[str, Any], published: float) -> None:
    assert abs(lone_kernel(row).value / 2**20 - published) < 0.001


def test_a_kernel_that_no_module_writes_is_told_so() -> None:
    with pytest.raises(Inexpressible, match="a lone kernel"):
        lone_kernel(_row("fused_moe", "liger-full-t128", T=128))
