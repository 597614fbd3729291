from hypothesis import given
from hypothesis import strategies as st

from memgui.planning.round_values import round_values
from memgui.planning.sweep import Scale

LENGTH = "training.sequence_length"
SHARE = "inference.gpu_memory_utilization"


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(2, 60), st.sampled_from(Scale))
def test_values_are_few_ascending_and_inside(first: int, second: int, most: int, scale: Scale) -> None:
    low, high = sorted((first, second))
    found = round_values(LENGTH, low, high, most, scale)
    assert len(found) <= most
    assert list(found) == sorted(set(found))
    assert all(low <= value <= high and isinstance(value, int) for value in found)


def test_lengths_are_powers_of_two_and_what_lies_between_where_there_is_room() -> None:
    assert round_values(LENGTH, 256, 16384, 7) == (256, 512, 1024, 2048, 4096, 8192, 16384)
    assert round_values(LENGTH, 256, 16384, 4) == (256, 1024, 4096, 16384)
    assert round_values(LENGTH, 256, 1024, 6) == (256, 384, 512, 768, 1024)
    assert round_values(LENGTH, 100, 5000, 8, Scale.LINEAR) == (1024, 2048, 3072, 4096)


def test_few_whole_numbers_are_all_there() -> None:
    assert round_values("training.micro_batch_size", 1, 8, 8) == tuple(range(1, 9))


def test_fractions_are_round_too() -> None:
    assert round_values(SHARE, 0.0, 1.0, 12) == tuple(at / 10 for at in range(11))
    assert round_values(SHARE, 0.5, 0.5, 12) == ()
