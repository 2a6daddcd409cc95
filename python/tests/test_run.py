"""Runs of modelled systems."""

import json

import diskperf
import pytest
from conftest import VAX


def without_occasion(document):
    """A run without what is different each time that it is made."""
    return {
        name: value
        for name, value in document.items()
        if name not in ("id", "started_unix_ms", "command_line")
    }


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({}, []),
        ({"seed": 7, "drives": 2}, ["--seed", "7", "--drives", "2"]),
        (
            {"size": "1M", "repetitions": 2, "cache": "warm"},
            ["--size", "1M", "--runs", "2", "--cache", "warm"],
        ),
        (
            {"filesystem": {"rotdelay_ms": 7}, "program.call_bytes": 4096},
            ["--set", "filesystem.rotdelay_ms=7", "--set", "program.call_bytes=4096"],
        ),
        ({"time_calls": False, "label": "mine"}, ["--no-latency", "--label", "mine"]),
        ({"no_budget": True}, ["--no-budget"]),
    ],
)
def test_a_run_is_that_of_the_command_line(command_line_json, keywords, words):
    run = diskperf.run("read_8192", on=VAX, **keywords)
    (expected,) = command_line_json("run", "read_8192", "--on", VAX, *words)["runs"]
    assert without_occasion(run.to_dict()) == without_occasion(expected)


def test_a_limit_of_a_volume_is_found():
    settings = {"program.rounds": 14}
    run = diskperf.run("cap_probe", on="bare-gp2", volume="gp2:100GiB", settings=settings)
    (probe,) = run.to_dict()["results"]
    assert (probe["cap"]["verdict"], probe["cap"]["unit"]) == ("capped", "requests")
    assert round(probe["cap"]["per_s"]) == 3000
    assert probe["cap"]["outlook"]["base_per_s"] == 300


def test_it_keeps_what_it_was_asked_to_do():
    settings = {"program.call_bytes": "4K", "host.speed": 2}
    run = diskperf.run("write_8192", on=VAX, settings=settings, seed=3, size="2M", drives=2)
    assert run.command_line == []
    experiment = run.to_dict()["experiment"]
    assert experiment["settings"] == ["host.speed=2"]
    assert (experiment["seed"], experiment["size"]) == (3, {"bytes": 2 << 20})
    (step,) = experiment["workload"]["steps"]["steps"]
    assert (step["program"], step["parameters"]["call_bytes"]) == ("write_8192", "4096")


def test_results_are_those_of_the_json():
    run = diskperf.run("ffs83", on=VAX)
    rows = run.results.to_pylist()
    results = run.to_dict()["results"]
    assert [row["program"] for row in rows] == [one["title"] for one in results]
    assert len(rows) == 8  # Four programs, on file systems of 8K and of 4K.
    for row, one in zip(rows, results):
        for name in ("filesystem", "drives", "size_bytes", "kept", "kb_per_s", "cpu_percent"):
            assert row[name] == one[name], name
        for kind in ("read", "write"):
            latency = one[f"{kind}_latency"]
            assert row[f"{kind}_p99_ns"] == (latency and latency["p99_ns"])


def test_a_ledger_sums_to_the_elapsed_time_of_its_repetition():
    run = diskperf.run("read_8192", on=VAX)
    of_repetition = {}
    for row in run.ledger:
        key = (row["filesystem"], row["repetition"])
        of_repetition[key] = of_repetition.get(key, 0) + row["ns"]
    elapsed = {
        (row["filesystem"], row["repetition"]): row["elapsed_ns"] for row in run.repetitions
    }
    assert of_repetition == elapsed
    assert len(elapsed) == 7


def test_the_same_seed_gives_the_same_figures_and_another_gives_others():
    def figures(seed):
        run = diskperf.run("random_mix", on=VAX, seed=seed, **{"program.area_bytes": "1M"})
        return run.repetitions.to_pylist()

    assert figures(5) == figures(5)
    assert figures(5) != figures(6)


def test_several_targets_give_a_list_in_their_order():
    names = ["vax750-sc750-eagle", VAX]
    runs = diskperf.run("read_8192", on=names)
    assert [run.target for run in runs] == names
    assert [run.world for run in runs] == ["model", "model"]


def test_a_modelled_run_is_stored_where_it_is_said(tmp_path):
    path = tmp_path / "runs.sqlite"
    run = diskperf.run("read_8192", on=VAX, store=path, label="kept")
    store = diskperf.open_store(path)
    assert store.runs["id"] == [run.id]
    assert store.run("kept").to_json() == run.to_json()
    assert store.delete("kept", dry_run=True) == [run.id] and len(store) == 1
    assert store.delete("last") == [run.id] and len(store) == 0
    with pytest.raises(diskperf.StoreError, match="no run `kept`"):
        store.delete("kept")
    diskperf.run("read_8192", on=VAX)
    assert len(diskperf.open_store()) == 0
    diskperf.run("read_8192", on=VAX, store=True)
    assert len(diskperf.open_store()) == 1


def test_notes_say_what_had_no_effect():
    run = diskperf.run("read_8192", on=VAX, **{"filesystem.minfree_percent": 11})
    assert any("filesystem.minfree_percent=11 had no effect" in note for note in run.notes)


def test_a_run_is_shown_as_the_command_line_shows_it():
    run = diskperf.run("read_8192", on=VAX)
    assert repr(run) == f"<Run {run.id}: read_8192 on {VAX}, finished>"
    assert "KB/s (CPU)" in str(run)


def test_what_would_be_done_is_described(command_line):
    assert diskperf.describe("ffs83", on=VAX, drives=2).strip() == command_line(
        "run", "ffs83", "--on", VAX, "--drives", "2", "--dry-run"
    ).strip()


def test_suites_and_programs_are_listed(command_line_json):
    assert diskperf.suites()["suite"] == [
        row["suite"] for row in command_line_json("list", "suites")["suites"]
    ]
    parameters = command_line_json("list", "parameters")["parameters"]
    programs = diskperf.programs()
    paths = [path for path in programs["path"] if path is not None]
    assert paths == [row["path"] for row in parameters]
    assert "read_8192" in programs["program"]


def with_requests_under_way(run, tmp_path):
    """The run as a file, as if its program had kept four requests under way."""
    document = json.loads(run._native.export())
    (result,) = [one for one in document["runs"][0]["results"] if one["row"] == 0][:1]
    document["runs"][0]["results"] = [result]
    for number, repetition in enumerate(result["repetitions"]):
        requests = 300 + number
        point = {"reads": 150, "read_bytes": 150 << 12, "writes": 0, "written_bytes": 0}
        for worker in repetition["workers"]:
            worker["load"] = {
                "engine": "io_uring",
                "depth": 4,
                # All of them took 96 us, but two that took ten times as long.
                "read": {
                    "bytes": requests << 12,
                    "response": [64, -96_000, requests - 2, -863_999, 2],
                    "submit": [64, -1_000, requests],
                },
                "series": [{**point, "response": [8, -1_500, 150]}] * 3,
                "interval": worker["elapsed"] // 3,
            }
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document))
    return path


def test_several_requests_under_way_have_latencies_and_a_series(tmp_path):
    made = diskperf.run("read_8192", on=VAX)
    for columns in (made.latencies, made.series):
        assert len(columns) == 0
    assert made.results["iops"] == [None] * len(made.results)
    path = with_requests_under_way(made, tmp_path)
    run = diskperf.open_store(tmp_path / "store.sqlite").run(str(path))
    (row,) = run.results.to_pylist()
    (result,) = run.to_dict()["results"]
    for name in ("iops", "mb_per_s", "depth", "workers", "read_share", "cpu_us_per_io"):
        assert row[name] == result[name], name
    assert (row["depth"], row["workers"], row["read_share"]) == (4, 1, 1.0)
    assert (row["iops_low"], row["iops_high"]) == (row["iops"], row["iops"])  # Virtual time.
    assert row["response_p50_us"] == 96.0 and row["response_max_us"] == 960.0
    both = run.latencies.to_pylist()
    assert [(one["operation"], one["part"]) for one in both] == [
        ("read", "response"),
        ("read", "submit"),
    ]
    response = result["latency"]["read"]["response"]
    for name in ("count", "p50_us", "p99_us", "p99_9_us", "max_us", "mean_us"):
        assert both[0][name] == response[name], name
    assert both[1]["p99_us"] == 1.0
    series = run.series.to_pylist()
    assert len(series) == 3 * len(run.repetitions)
    middle = [one for one in series if one["repetition"] == result["series_of"]]
    assert [{name: one[name] for name in result["series"][0]} for one in middle] == result["series"]
    assert run.repetitions["iops"] == [one["iops"] for one in result["repetitions"]]
    assert "iops-over-time" in " ".join(name for name, *_ in diskperf._native.charts([run._native]))
