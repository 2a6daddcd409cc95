"""Modelled systems, and the catalogue that they are of."""

import copy
import pickle

import diskperf
import pytest
from conftest import VAX
from hypothesis import given, settings
from hypothesis import strategies as st


def test_with_gives_another_system_and_leaves_the_first():
    vax = diskperf.System(VAX)
    fast = vax.with_({"host.speed": 4}, drive="capricorn", filesystem={"rotdelay_ms": 7})
    assert vax.settings == {}
    assert fast.settings == {
        "host.speed": "4",
        "drive": "capricorn",
        "filesystem.rotdelay_ms": "7",
    }
    assert fast.components["drive 1"] == "capricorn"
    assert vax.components["drive 1"] == "eagle"
    assert float(fast["filesystem.rotdelay_ms"]) == 7
    assert fast != vax
    assert fast == diskperf.System(VAX, fast.settings)
    with pytest.raises(AttributeError):
        fast.name = "another"


def test_the_later_change_of_a_key_counts():
    vax = diskperf.System(VAX).with_({"filesystem.rotdelay_ms": 7})
    assert float(vax.with_({"filesystem.rotdelay_ms": 2})["filesystem.rotdelay_ms"]) == 2


@settings(max_examples=25)
@given(st.sampled_from([0, 1, 2, 4, 7, 10]), st.integers(1, 40))
def test_a_system_survives_a_journey(rotdelay_ms, speed):
    system = diskperf.System(VAX).with_(
        {"filesystem.rotdelay_ms": rotdelay_ms, "host.speed": speed / 10}
    )
    assert pickle.loads(pickle.dumps(system)) == system
    assert hash(copy.deepcopy(system)) == hash(system)
    again = pickle.loads(pickle.dumps(system))
    assert again.parameters.to_pylist() == system.parameters.to_pylist()


def test_a_system_runs_with_its_changes():
    slow = diskperf.System(VAX, {"filesystem.rotdelay_ms": 7})
    of_name = diskperf.run("read_8192", on=VAX, settings={"filesystem.rotdelay_ms": 7})
    assert slow.run("read_8192").repetitions.to_pylist() == of_name.repetitions.to_pylist()


@pytest.mark.parametrize("name", [VAX, "pcat-st251", "atarist-supra", "sun3-rimfire-2344:adaptive"])
def test_parameters_are_those_of_the_command_line(command_line_json, name):
    expected = command_line_json("list", "parameters", name)["parameters"]
    rows = diskperf.System(name).parameters.to_pylist()
    assert [row["path"] for row in rows] == [str(row["path"]) for row in expected]
    for row, line in zip(rows, expected):
        for column in ("value", "unit", "allowed", "source", "meaning"):
            assert row[column] == str(line[column])
        assert row["file"]


@pytest.mark.parametrize(
    ("what", "kind"),
    [("systems", "system"), ("drives", "drive"), ("buses", "bus"), ("kernels", "kernel")],
)
def test_lists_are_those_of_the_command_line(command_line_json, what, kind):
    names = diskperf.Catalogue().list(what)["name"]
    (rows,) = command_line_json("list", what).values()
    assert names == [row[kind] for row in rows]
    assert names


def test_published_documents_are_listed():
    documents = {row["name"]: row for row in diskperf.Catalogue().list("published")}
    assert documents["kridle-mckusick-1983"]["modelled"]
    assert documents["kridle-mckusick-1983"]["scored"] > 0


def test_an_entry_has_numbers_sources_and_what_follows():
    catalogue = diskperf.Catalogue()
    eagle = catalogue.show("eagle")
    assert eagle.kind == "drive"
    assert eagle.figures["capacity"][1] == "MB"
    assert eagle.seek_ms_by_cylinders[0] == (0, 0.0)
    sources = dict(zip(eagle.parameters["path"], eagle.parameters["source"]))
    assert sources["drive.spindle_rpm"]
    vax = catalogue.show(VAX)
    assert vax.kind == "system"
    assert vax.components == catalogue.system(VAX).components


def test_a_folder_is_laid_over_the_catalogue(tmp_path):
    (tmp_path / "drives").mkdir()
    (tmp_path / "drives" / "turtle.toml").write_text(
        'extends = "eagle"\ndescription = "A slow one."\nsource = "made up"\n'
        "spindle_rpm = 1800\nlabel_rpm = 1800\n"
    )
    catalogue = diskperf.Catalogue(tmp_path)
    assert "turtle" in catalogue.list("drives")["name"]
    slow = catalogue.system(VAX, drive="turtle")
    assert pickle.loads(pickle.dumps(slow)).components == slow.components
    usual = diskperf.run("read_8192", on=VAX).results["kb_per_s"]
    assert max(slow.run("read_8192").results["kb_per_s"]) < min(usual)


def test_a_key_that_there_is_not_names_the_nearest():
    mixed = diskperf.System("vax780-si9900-cdc9775")
    with pytest.raises(KeyError, match=r"no `drive\.spindle_rpm`; near it drive\.\d\.spindle_rpm"):
        mixed["drive.spindle_rpm"]
