"""Where the time went, and why two differ."""

import json

import diskperf
import pytest
from conftest import VAX


@pytest.fixture(scope="module")
def run():
    return diskperf.run("read_8192", on=VAX, drives=2, size="1M", repetitions=2)


@pytest.fixture(scope="module")
def explanation(run):
    return run.explain()


def test_it_is_that_of_the_command_line(command_line_json):
    ours = diskperf.explain(VAX, suite="read_8192", settings={"host.speed": 2})
    theirs = command_line_json("explain", VAX, "--suite", "read_8192", "--set", "host.speed=2")
    theirs["what"] = ours.to_dict()["what"]
    assert ours.to_dict() == theirs


def test_a_run_and_its_system_have_one_explanation(run, explanation):
    of_system = diskperf.System(VAX).explain("read_8192", drives=2, size="1M", repetitions=2)
    assert of_system.to_dict()["programs"] == explanation.to_dict()["programs"]
    assert of_system.verdict == explanation.verdict
    assert of_system.spans().to_pylist() == explanation.spans().to_pylist()


def test_its_tables_are_its_json(explanation):
    programs = explanation.to_dict()["programs"]
    for program in programs:
        key = (program["program"], program["filesystem"])
        ledger = [row for row in explanation.ledger if (row["program"], row["filesystem"]) == key]
        assert sum(row["ns"] for row in ledger) == program["elapsed_ns"]
        changes = [
            row
            for row in explanation.counterfactuals
            if (row["program"], row["filesystem"]) == key
        ]
        assert [row["change"] for row in changes] == [
            one["change"] for one in program["counterfactuals"]
        ]
        assert program["verdict"] in explanation.verdict


def test_spans_tile_what_they_are_of(run):
    ends, starts, tiles = {}, {}, {}
    for row in run.spans():
        if row["kind"] == "handler":
            assert row["process"] is None and row["request"] is None
            continue
        key = (row["filesystem"], row["kind"], row["process"], row["request"])
        assert ends.get(key, row["start_ns"]) == row["start_ns"], key
        assert row["end_ns"] > row["start_ns"]
        starts.setdefault(key, row["start_ns"])
        ends[key] = row["end_ns"]
        tiles[key] = tiles.get(key, 0) + row["end_ns"] - row["start_ns"]
    assert tiles == {key: ends[key] - starts[key] for key in ends}
    processes = [key for key in ends if key[1] == "process"]
    assert len(processes) == 2  # One for each drive.
    requests = [row for row in run.spans() if row["kind"] == "request"]
    assert {row["drive"] for row in requests} == {0, 1}
    assert {row["purpose"] for row in requests} >= {"read", "read_ahead"}


def test_a_stored_run_is_explained_as_it_was(tmp_path):
    settings = {"driver.search_lead_sectors": 2, "program.call_bytes": "16K"}
    run = diskperf.run("read_8192", on=VAX, settings=settings, seed=9, store=tmp_path / "s.sqlite")
    stored = diskperf.open_store(tmp_path / "s.sqlite").run(run.id)
    assert stored.command_line == run.command_line
    assert stored.spans().to_pylist() == run.spans().to_pylist()


def test_differences_are_those_of_the_command_line(command_line_json):
    uda = "vax780-uda50-ra81"
    found = diskperf.explain(VAX, uda, suite="read_8192", counterfactuals=False)
    assert found.to_dict() == command_line_json(
        "explain", VAX, uda, "--suite", "read_8192", "--no-counterfactuals"
    )
    changed = diskperf.System(VAX).with_({"driver.search_lead_sectors": 2})
    found = diskperf.explain(diskperf.System(VAX), changed, suite="read_8192")
    assert "search_lead_sectors" in json.dumps(found.to_dict()["programs"])
    assert VAX in str(found)


def test_a_run_takes_no_settings(run):
    with pytest.raises(diskperf.RequestError, match="repeated exactly"):
        diskperf.explain(run, suite="ffs83")


def test_a_trace_is_for_perfetto(explanation):
    assert len(explanation.perfetto()) > 1000
    assert b"read_8192 ffs/8192" in explanation.perfetto()


def test_it_is_shown_as_the_command_line_shows_it(explanation):
    assert "Explained: read_8192" in str(explanation)
    assert repr(explanation).startswith("<Explanation of read_8192 on")
