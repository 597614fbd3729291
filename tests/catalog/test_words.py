"""What the data say in words can be translated: none is forgotten when the data are made anew."""

from memgui.catalog import Catalog
from memgui.catalog.words import REMARKS, how_known

CITED = ("github ", "PyPI ", "public public repository")
"""How sources begin that name a place."""


def test_every_remark_of_the_data_is_marked_for_translation() -> None:
    catalog = Catalog()
    said = {entry.note for entry in catalog.devices if entry.note}
    said |= {entry.source for entry in catalog.models if not entry.source.startswith(CITED)}
    assert said == set(REMARKS)
    assert len(set(REMARKS)) == len(REMARKS)


def test_how_each_memory_is_known_is_said_in_words_of_ours() -> None:
    for device in Catalog().devices:
        said = how_known(device.how)
        assert said.template != "{how}", device.name
        words = device.how.replace("%", " ").replace(",", " ").split()
        assert all(word in said.text for word in words if word[0].isdigit()), device.name
    assert how_known("found in a {drawer}").text == "found in a {drawer}"
