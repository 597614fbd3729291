import msgspec
import pytest
from PySide6.QtCore import QLocale

from memgui.document.result import Result
from memgui.gui.numbers import Numbers
from memgui.gui.verdict import sentence
from memgui.spec import Device, Issue, Message, Parallelism
from tests.gui import fakes

NUMBERS = Numbers("GiB", QLocale(QLocale.Language.English, QLocale.Country.UnitedStates))


@pytest.mark.parametrize(
    ("result", "headline", "detail"),
    [
        (
            fakes.training(),
            "Does not fit: needs 93.4 GiB of 79.2 GiB",
            "On one H100 SXM 80 GB. Likely range 91.7 to 95.6 GiB.",
        ),
        (
            fakes.serving(),
            "Fits: needs 20.0 GiB of 21.7 GiB",
            "On one RTX 4090 24 GB, vLLM may use 0.92 of 23.6 GiB. Likely range 19.8 to 20.4 GiB.",
        ),
        (
            fakes.tight(),
            "Tight: needs 93.4 GiB of 94.3 GiB",
            "On one H100 SXM 80 GB. The likely range, 91.7 to 95.6 GiB, crosses the limit.",
        ),
        (
            fakes.tiny(),
            "Fits: needs 12.0 MiB of 79.2 GiB",
            "On one H100 SXM 80 GB. Likely range 11.8 to 12.3 MiB.",
        ),
        (
            fakes.unknown(),
            "Unknown, because 32 heads cannot be split by 3",
            "The picture shows the last set-up that could be computed.",
        ),
    ],
    ids=["over", "fits", "tight", "tiny", "unknown"],
)
def test_verdict_in_words(result: Result, headline: str, detail: str) -> None:
    assert sentence.headline(result, NUMBERS) == headline
    assert sentence.detail(result, NUMBERS) == detail


def test_a_reason_is_no_sentence_in_the_sentence() -> None:
    issue = Issue("error", "unknown", (), Message("The model has no layers."))
    result = msgspec.structs.replace(fakes.unknown(), issues=(issue,))
    assert sentence.headline(result, NUMBERS) == "Unknown, because the model has no layers"


def test_sentence_gap_is_the_difference_of_its_figures() -> None:
    over = fakes.training().estimate
    spare = fakes.serving().estimate
    assert over is not None
    assert spare is not None
    assert sentence.gap(over, NUMBERS) == "14.2 GiB over"
    assert sentence.gap(spare, NUMBERS) == "1.7 GiB spare"
    assert sentence.gap(spare, NUMBERS, short=True) == "1.7 spare"
    assert sentence.limit_text(over, NUMBERS) == "Limit 79.2 GiB"


def test_narrow_line_is_shorter() -> None:
    assert (
        sentence.detail(fakes.training(), NUMBERS, short=True)
        == "One H100 SXM 80 GB. Range 91.7 to 95.6 GiB."
    )


def test_several_devices() -> None:
    result = fakes.training()
    idle = msgspec.structs.replace(result.scenario, device=Device(count=8))
    one = Result(idle, result.estimate)
    assert sentence.headline(one, NUMBERS).endswith("of 79.2 GiB")
    assert sentence.detail(one, NUMBERS).startswith("On 1 of 8 × H100 SXM 80 GB. Likely")
    assert sentence.detail(one, NUMBERS, short=True).startswith("1 of 8 × H100 SXM 80 GB. Range")
    scenario = msgspec.structs.replace(idle, parallelism=Parallelism(data=8))
    many = Result(scenario, result.estimate)
    assert sentence.headline(many, NUMBERS).endswith("of 79.2 GiB, each GPU")
    assert sentence.detail(many, NUMBERS).startswith("On each of 8 × H100 SXM 80 GB.")


def test_nothing_computed_yet() -> None:
    nothing = Result(fakes.training().scenario, None)
    assert sentence.headline(nothing, NUMBERS) == "Unknown: nothing has been computed yet"
    assert sentence.detail(nothing, NUMBERS) == ""
    assert sentence.kind_of(nothing) == "unknown"
