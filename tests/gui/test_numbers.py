import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QLocale

from memgui.document.view_settings import View
from memgui.gui.numbers import Numbers

ENGLISH = QLocale(QLocale.Language.English, QLocale.Country.UnitedStates)
GIB = Numbers("GiB", ENGLISH)
GB = Numbers("GB", ENGLISH)
SIZES = st.integers(0, 2**60)


def test_one_decimal_in_sentences_two_in_tables() -> None:
    assert GIB.sentence(100_283_412_889) == "93.4 GiB"
    assert GIB.two(100_283_412_889) == "93.40"
    assert GB.sentence(100_283_412_889) == "100.3 GB"
    assert GIB.two(0) == "0.00"


def test_small_sizes_keep_their_figures() -> None:
    assert GIB.tip(33_554_432) == "32.0 MiB"
    assert GIB.tip(26_460_864_512) == "24.64 GiB"
    assert GIB.sentence(50_000) == "48.8 KiB"
    assert GIB.tip(131_072) == "128 KiB"
    assert GIB.tip(1023) == "1,023 bytes"
    assert GB.tip(4096) == "4.1 kB"
    assert GB.tip(33_554_432) == "33.6 MB"
    assert GIB.tip(0) == "0.00 GiB"


def test_exact_bytes_are_grouped_by_the_language() -> None:
    assert GIB.exact(26_460_864_512) == "26,460,864,512 bytes"
    assert Numbers("GiB", QLocale(QLocale.Language.German)).grouped(26_460_864_512) == "26.460.864.512"
    assert Numbers("GiB", QLocale(QLocale.Language.German)).sentence(100_283_412_889) == "93,4 GiB"
    assert GIB.grouped(-5_000) == "−5,000"
    assert GIB.grouped(2**80) == "1,208,925,819,614,629,174,706,176"


def test_gap_is_the_difference_of_the_figures_shown() -> None:
    need, limit = 100_283_412_889, 85_024_112_640  # 93.396 and 79.185 GiB: 14.21, but shown 93.4 and 79.2
    assert GIB.gap(need, limit) == "14.2 GiB"
    assert GIB.gap(int(19.96 * 2**30), int(21.74 * 2**30)) == "1.7 GiB"  # 20.0 and 21.7
    assert GIB.gap(limit, limit - 5 * 2**20) == "5.0 MiB"
    assert GIB.gap(limit, limit) == "0.0 GiB"


@given(SIZES, SIZES)
def test_gap_can_be_checked_by_eye(first: int, second: int) -> None:
    if 0 < abs(first - second) * 10 < 2**30:
        return
    shown = [round(float(GIB.one(size).replace(",", "")) * 10) for size in (first, second)]
    assert round(float(GIB.gap_figure(first, second).replace(",", "")) * 10) == abs(shown[0] - shown[1])


@given(SIZES)
def test_rounding_is_half_up_and_exact(size: int) -> None:
    hundredths = int(GIB.two(size).replace(",", "").replace(".", ""))
    assert abs(hundredths * 2**30 - size * 100) * 2 <= 2**30


def test_delta_has_a_sign_or_a_dash() -> None:
    assert GIB.delta(13_228_499_763) == "+12.32"
    assert GIB.delta(-15_816_217_067) == "−14.73"
    assert GIB.delta(0) == "–"
    assert GIB.delta(4096) == "+4.0 KiB"
    assert GIB.delta(-(2**20)) == "−1.0 MiB"


def test_share_has_a_thin_space() -> None:
    assert GIB.share(16, 100) == "16.0\u2009%"
    assert GIB.share(1, 3, 0) == "33\u2009%"
    assert GIB.share(118, 100, 0) == "118\u2009%"
    assert GIB.share(0, 0) == "–"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (8_030_261_248, "8.03 B"),
        (124_439_808, "124 M"),
        (13_015_864_320, "13.0 B"),
        (671_026_419_200, "671 B"),
        (1_026_408_232_448, "1.03 T"),
        (999, "999"),
    ],
)
def test_parameters_in_three_figures(count: int, text: str) -> None:
    assert GIB.parameters(count) == text


def test_tokens_on_axes() -> None:
    assert [GIB.tokens(n) for n in (256, 4096, 131_072, 10_864)] == ["256", "4k", "128k", "10,864"]


def test_units_come_from_the_view() -> None:
    assert Numbers.of(View(units="GB")).sentence(10**9) == "1.0 GB"
