import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.gui.palette import DISPLAY_ORDER
from memgui.gui.verdict import bar_geometry as geometry
from memgui.gui.verdict.bar_geometry import Label, Scale, Sizes

GIB = 2**30
AMOUNTS = st.floats(0, 2000)


def measure(text: str) -> float:
    return 7.0 * len(text)


def sizes(
    parts: dict[str, float], limit: float, low: float = 0.0, high: float = 0.0, card: float = 0.0
) -> Sizes:
    total = sum(parts.values())
    scaled = {key: size * GIB for key, size in parts.items()}
    low, high = low or total, high or total
    return Sizes(scaled, low * GIB, high * GIB, total * GIB, limit * GIB, max(card, limit) * GIB)


OVER = sizes(
    {
        "weights": 14.96,
        "gradients": 14.96,
        "optimizer_states": 29.92,
        "activations": 24.64,
        "loss": 5.87,
        "overhead": 3.05,
    },
    79.2,
    91.7,
    95.6,
)


def scale_of(shown: Sizes, width: float = 1240.0) -> Scale:
    return geometry.scale_for(shown, width, GIB, 100.0, 100.0)


@pytest.mark.parametrize(
    ("least", "step"), [(1, 1), (1.1, 2), (2.1, 5), (5.1, 10), (10.1, 20), (0.3, 0.5), (123, 200)]
)
def test_steps_are_round(least: float, step: float) -> None:
    assert geometry.nice_step(1.0, least) == pytest.approx(step)


def test_scale_ends_at_the_next_round_step() -> None:
    assert scale_of(OVER).end == pytest.approx(100 * GIB)
    assert scale_of(OVER).step == pytest.approx(10 * GIB)
    card = sizes({"weights": 20.0}, 21.7, 19.8, 20.4, card=23.6)
    assert scale_of(card).end == pytest.approx(24 * GIB)
    assert scale_of(card).step == pytest.approx(2 * GIB)


def test_scale_makes_room_for_the_limits_label() -> None:
    assert scale_of(sizes({"weights": 40.0}, 79.2)).end == pytest.approx(90 * GIB)
    assert scale_of(sizes({"weights": 40.0}, 71.0)).end == pytest.approx(80 * GIB)


@given(
    st.dictionaries(st.sampled_from(DISPLAY_ORDER), AMOUNTS, min_size=1),
    st.floats(1, 2000),
    st.floats(200, 3000),
)
def test_everything_stands_on_the_bar(parts: dict[str, float], limit: float, width: float) -> None:
    shown = sizes(parts, limit)
    scale = geometry.scale_for(shown, width, GIB, 100.0, 100.0)
    assert scale.end > max(shown.total, shown.limit)
    found = geometry.segments(shown, scale)
    assert [segment.key for segment in found] == [key for key in DISPLAY_ORDER if parts.get(key, 0) > 0]
    for before, after in itertools.pairwise(found):
        assert after.left == pytest.approx(before.right)
    if found:
        assert found[0].left == 0
        assert found[-1].right == pytest.approx(scale.x(shown.total))
        assert found[-1].right <= width
    text = f"{limit:.1f} GiB"
    placed = geometry.above(scale, shown, "Limit " + text, [text + " over", text], measure, 8.0)
    labels = [label for label in (placed.limit, placed.gap) if label is not None]
    for label in labels:
        assert label.x >= 0
        assert label.right <= width
    if len(labels) == 2:
        assert labels[0].clear_of([labels[1]], 0)
    for start, end in placed.strokes(8.0):
        assert placed.left <= start < end <= placed.right
        assert all(Label(start, end - start, "").clear_of([label], 7.9) for label in labels)


@given(st.floats(1, 5000), st.floats(1, 5000), st.floats(150, 2000))
def test_labels_below_never_touch(total: float, limit: float, width: float) -> None:
    shown = sizes({"weights": total}, limit, total * 0.98, total * 1.03)
    scale = geometry.scale_for(shown, width, GIB, 100.0, 100.0)
    taken = [geometry.range_label(scale, shown, "1,000.0 – 1,100.0", measure)]
    ticks = geometry.tick_labels(scale, GIB, "GiB", str, measure, taken, 8.0)
    every = sorted([*taken, *ticks], key=lambda label: label.x)
    for before, after in itertools.pairwise(every):
        assert before.right + 4 <= after.x


def test_ticks_tell_the_unit_once() -> None:
    ticks = geometry.tick_labels(scale_of(OVER), GIB, "GiB", str, measure, [], 8.0)
    assert sum("GiB" in tick.text for tick in ticks) == 1
    assert {tick.text for tick in ticks} >= {"0", "10", "100 GiB"}
    small = Scale(GIB, GIB / 5, 500)
    assert [figure for _, figure in geometry.tick_figures(small, GIB)] == [
        "0.0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
        "1.0",
    ]


def test_gap_stands_on_its_line_or_beside_it() -> None:
    scale = scale_of(OVER)
    placed = geometry.above(scale, OVER, "Limit 79.2 GiB", ["14.2 GiB over", "14.2 over"], measure, 8.0)
    assert placed.gap is not None
    assert placed.left < placed.gap.x < placed.gap.right < placed.right
    assert placed.limit is not None
    assert placed.limit.right < placed.left
    near = sizes({"weights": 78.3}, 79.2)
    placed = geometry.above(
        scale_of(near), near, "Limit 79.2 GiB", ["0.9 GiB spare", "0.9 spare"], measure, 8.0
    )
    assert placed.gap is not None
    assert placed.gap.right < placed.left
    assert placed.limit is not None
    assert placed.limit.x > placed.right


def test_far_limit_has_its_label_on_the_line() -> None:
    far = sizes({"weights": 10_000}, 79.2)
    placed = geometry.above(scale_of(far), far, "Limit 79.2 GiB", ["9,920.8 GiB over"], measure, 8.0)
    assert placed.limit is not None
    assert placed.gap is not None
    assert placed.left < placed.limit.x < placed.gap.x
    assert len(placed.strokes(8.0)) == 2


@pytest.mark.parametrize(
    ("room", "written"),
    [
        (400, ("Optimizer states", "29.92")),
        (130, ("Optimizer", "29.92")),
        (120, ("Optimizer", "29.92")),
        (119, ("Optimizer", "")),
        (128 + 16, ("Optimizer", "29.92")),
        (90, ("Optimizer", "")),
        (70, ("", "")),
    ],
)
def test_segment_says_what_fits(room: float, written: tuple[str, str]) -> None:
    found = geometry.inner_label(room, "Optimizer states", "Optimizer", "29.92", measure, measure, 8.0)
    assert found == written


def test_what_is_written_in_a_segment_stands_on_one_side_of_a_mark() -> None:
    assert geometry.free_of(100, 300, 50) == (100, 300)
    assert geometry.free_of(100, 300, 250) == (100, 250)
    assert geometry.free_of(100, 300, 150) == (150, 300)
