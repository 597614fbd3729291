import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgui.gui.donut import geometry
from memgui.gui.donut.geometry import Need, Slice
from memgui.gui.palette import DISPLAY_ORDER

SIZES = st.floats(0, 1e13)
NEEDS = st.builds(
    Need,
    st.dictionaries(st.sampled_from(DISPLAY_ORDER), SIZES, min_size=1),
    st.just({}),
    st.floats(1, 1e13),
)


def with_parts(components: dict[str, list[float]], limit: float) -> Need:
    return Need(
        {key: sum(parts) for key, parts in components.items()},
        {key: {str(index): size for index, size in enumerate(parts)} for key, parts in components.items()},
        limit,
    )


@given(NEEDS)
def test_components_and_free_fill_the_circle(need: Need) -> None:
    inner = [piece for piece in geometry.slices(need) if piece.ring == geometry.COMPONENTS]
    assert sum(piece.sweep for piece in inner) == pytest.approx(360, abs=0.06)
    assert [piece.path[0] for piece in inner if piece.path != (geometry.FREE,)] == [
        key for key in DISPLAY_ORDER if need.components.get(key, 0) > 0
    ]
    for before, after in itertools.pairwise(inner):
        assert after.start == pytest.approx(before.start + before.sweep)
    assert not (need.over and any(piece.path == (geometry.FREE,) for piece in inner))


@given(st.dictionaries(st.sampled_from(DISPLAY_ORDER), st.lists(SIZES, max_size=5)), st.floats(1, 1e13))
def test_parts_stand_over_their_component(components: dict[str, list[float]], limit: float) -> None:
    pieces = geometry.slices(with_parts(components, limit))
    for whole in pieces:
        parts = [piece for piece in pieces if len(piece.path) == 2 and piece.path[0] == whole.path[0]]
        if len(whole.path) == 1 and parts:
            assert sum(part.sweep for part in parts) == pytest.approx(whole.sweep)
            assert all(part.start >= whole.start - 1e-6 for part in parts)


def test_circle_is_the_need_when_over_and_the_limit_when_not() -> None:
    over = Need({"weights": 90.0}, {}, 60.0)
    assert over.over
    assert geometry.limit_angle(over) == pytest.approx(240)
    assert [piece.sweep for piece in geometry.slices(over)] == [360.0]
    fits = Need({"weights": 30.0}, {}, 60.0)
    assert [(piece.path, piece.sweep) for piece in geometry.slices(fits)] == [
        (("weights",), 180.0),
        (("free",), 180.0),
    ]


@given(st.dictionaries(st.sampled_from(DISPLAY_ORDER), SIZES), st.floats(1, 1e13))
def test_ghost_stops_where_the_pinned_total_stops(pinned: dict[str, float], circle: float) -> None:
    pieces = geometry.ghost(pinned, circle)
    assert sum(piece.sweep for piece in pieces) == pytest.approx(
        min(360.0, 360 * sum(pinned.values()) / circle)
    )


def test_points_are_found_in_their_slices() -> None:
    need = with_parts({"weights": [25.0, 25.0], "loss": [50.0]}, 100.0)
    pieces = geometry.slices(need)

    def at(angle: float, radius: float) -> tuple[str, ...]:
        turn = math.radians(angle)
        return geometry.hit(pieces, 100 * radius * math.sin(turn), -100 * radius * math.cos(turn), 100)

    assert at(10, 0.6) == ("weights",)
    assert at(10, 0.9) == ("weights", "0")
    assert at(100, 0.9) == ("weights", "1")
    assert at(100, 0.805) == ("weights",)
    assert at(300, 0.7) == ("loss",)
    assert at(10, 0.3) == ()
    assert at(10, 0.99) == ()
    assert at(10, 2.0) == ()
    assert geometry.hit(pieces, 1, 1, 0) == ()


@given(
    st.lists(st.floats(1, 100), min_size=1, max_size=9),
    st.floats(60, 400),
    st.floats(20, 140),
    st.floats(12, 60),
)
def test_labels_leave_ring_panel_and_each_other_alone(
    sweeps: list[float], radius: float, width: float, height: float
) -> None:
    whole = sum(sweeps)
    wanted = []
    start = 0.0
    for index, sweep in enumerate(sweeps):
        degrees = 360 * sweep / whole
        wanted.append((Slice((str(index),), start, degrees, geometry.COMPONENTS), width, height))
        start += degrees
    half_width, half_height = radius + width + 20, radius + height + 20
    placed = geometry.place_labels(wanted, radius, 9.0, half_width, half_height)
    boxes = list(placed.values())
    assert boxes
    for box in boxes:
        assert box.distance() >= radius
        assert box.left >= -half_width
        assert box.left + box.width <= half_width
        assert box.top >= -half_height
        assert box.top + box.height <= half_height
    for first, second in itertools.combinations(boxes, 2):
        assert not first.meets(second, 4.0)


def test_largest_slice_has_its_label() -> None:
    wanted = [
        (Slice(("small",), 0, 20, geometry.COMPONENTS), 60.0, 30.0),
        (Slice(("large",), 20, 340, geometry.COMPONENTS), 60.0, 30.0),
    ]
    assert ("large",) in geometry.place_labels(wanted, 100, 9, 180, 150)


def test_labels_stand_outside_where_they_leave_a_donut_worth_it() -> None:
    assert geometry.radius_for(360, 284, 66, 32, 9)[1]
    assert geometry.radius_for(360, 284, 66, 32, 9)[0] == pytest.approx(99)
    radius, labelled = geometry.radius_for(244, 192, 66, 32, 9)
    assert not labelled
    assert radius == pytest.approx(93)
    assert geometry.radius_for(0, 0, 66, 32, 9) == (0.0, False)


@pytest.mark.parametrize(("angle", "side"), [(0, 0), (90, 1), (180, 0), (270, -1), (45, 1), (355, 0)])
def test_labels_are_aligned_by_side(angle: float, side: int) -> None:
    assert geometry.side_of(angle) == side
