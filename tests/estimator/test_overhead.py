"""Block rounding, workspaces, context: figures of the allocator and of real cards."""

import pytest

from memgui.estimator.overhead import block_bytes, context, cublas_workspace, fragmentation

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "block"),
    [
        (1, 512),
        (512, 512),
        (513, 1024),
        (MIB, MIB),
        (32 * MIB, 32 * MIB),
        (35 * MIB, 36 * MIB),  # a rest of 1 MiB is not split off (measured on an RTX A6000)
        (35 * MIB - 512, 35 * MIB - 512),  # a larger one is
        (10 * MIB, 10 * MIB),
        (5 * MIB, 5 * MIB),  # four fill a segment of 20 MiB
        (19 * MIB // 2, 10 * MIB),  # two leave 1 MiB, which the last one keeps
        (6 * MIB, 6 * MIB),  # three leave 2 MiB, which are split off
    ],
)
def test_block_bytes(size: int, block: int) -> None:
    assert block_bytes(size) == block


def test_workspaces_are_one_for_each_thread_that_multiplies() -> None:
    """8,519,680 bytes each (PyTorch pull request 83461), 32 MiB on Hopper (89027)."""
    assert cublas_workspace((8, 6), training=False) == 8_519_680
    assert cublas_workspace((8, 6), training=True) == 2 * 8_519_680
    assert cublas_workspace((9, 0), training=True) == 64 * MIB


@pytest.mark.parametrize("chip", [(7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)])
def test_context_is_a_range(chip: tuple[int, int]) -> None:
    found = context(chip)
    assert 0 < found.low < found.usual < found.high
    assert found.source


def test_recomputing_layers_leaves_more_in_segments_and_growing_ones_least() -> None:
    plain, again, growing = (
        fragmentation(100 * MIB, 0, training=True, **how)
        for how in ({}, {"recomputed": True}, {"expandable": True})
    )
    assert growing.high < plain.high < again.high
    assert growing.low < growing.usual < plain.usual < again.usual
