"""The accuracy card."""

import diskperf
import pytest

DOCUMENT = "kridle-mckusick-1983"
#: One program on some systems: the whole document runs hundreds of machines.
CELLS = "*/T2/vax780-*/8K/read_8192/1*"


@pytest.fixture(scope="module")
def card():
    return diskperf.reproduce(DOCUMENT, cell=CELLS)


def test_it_is_the_bytes_of_the_command_line(card, command_line):
    words = ("reproduce", DOCUMENT, "--cell", CELLS, "--format", "json")
    assert card.to_json().strip() == command_line(*words).strip()


def test_its_tables_are_its_json(card):
    cells = card.to_dict()["cells"]
    assert card.cells["id"] == [cell["id"] for cell in cells]
    assert card.cells["error"] == [cell["error"] for cell in cells]
    assert card.parameters["path"] == [one["path"] for one in card.to_dict()["parameters"]["list"]]


def test_it_does_not_depend_on_the_threads(card):
    assert diskperf.reproduce(DOCUMENT, cell=CELLS, threads=1).to_json() == card.to_json()


def test_settings_change_it(card):
    slow = diskperf.reproduce(DOCUMENT, cell=CELLS, host={"speed": 0.5})
    assert slow.cells["modelled"] != card.cells["modelled"]


def test_it_is_shown(card):
    assert repr(card) == f"<Card of {len(card.cells)} numbers>"
    assert DOCUMENT in str(card)
