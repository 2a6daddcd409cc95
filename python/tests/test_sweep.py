"""Parameter studies: what they give, by whomever they are computed."""

import itertools
import json
import multiprocessing
import os
import subprocess
import sys
from concurrent import futures

import diskperf
import pytest
from conftest import VAX, files, sweeper, undisturbed_by
from diskperf._cluster.executors import carry_out
from diskperf._study.folder import Folder
from diskperf._study.space import Space
from diskperf._study.study import Study
from diskperf._study.sweep import chosen_chunk
from hypothesis import given, settings
from hypothesis import strategies as st

pyarrow = pytest.importorskip("pyarrow")

OVER = {"filesystem.rotdelay_ms": "0..3", "drive": ["eagle", "capricorn"], "host.speed": [1, 2.5]}
STUDY = {"over": OVER, "seeds": range(1, 4), "size": "64K", "repetitions": 1, "chunk_points": 5}
POINTS = 4 * 2 * 2 * 3

swept = sweeper(STUDY)
undisturbed = undisturbed_by(swept)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 5), max_size=4), st.integers(1, 4))
def test_points_are_all_combinations_in_order(lengths, seeds):
    over = {f"a.k{number}": list(range(length)) for number, length in enumerate(lengths)}
    space = Space.of(over, range(seeds))
    found = [(*space.settings(number).values(), space.seed(number)) for number in range(space.points)]
    expected = itertools.product(*(map(str, range(length)) for length in lengths), range(seeds))
    assert found == list(expected)
    assert Space.from_definition(json.loads(json.dumps(space.definition()))) == space


def test_points_are_never_a_list():
    space = Space.of({"a.b": "0..9999", "a.c": "0..9999"}, seeds=range(10**9))
    assert space.points == 10**17
    assert space.settings(10**17 - 1) == {"a.b": "9999", "a.c": "9999"}
    assert space.seed(10**17 - 2) == 10**9 - 2


def test_the_rows_are_those_of_the_points(undisturbed):
    rows = diskperf.open_sweep(undisturbed).to_pylist()
    keys = [
        {"filesystem.rotdelay_ms": rotdelay_ms, "drive": drive, "host.speed": speed}
        for rotdelay_ms, drive, speed in itertools.product(range(4), ["eagle", "capricorn"], [1, 2.5])
        for _ in range(3)
    ]
    expected = diskperf.run_points(
        VAX, "read_8192", keys, seeds=[1, 2, 3] * 16, size="64K", repetitions=1
    ).to_pylist()
    assert len(rows) == len(expected) == POINTS
    for key, row, one in zip(keys, rows, expected):
        assert row == {**one, **key}
        # Whole numbers are whole numbers, and not words.
        assert type(row["filesystem.rotdelay_ms"]) is int and type(row["host.speed"]) is float


def test_there_is_a_file_for_each_chunk_and_nothing_else(undisturbed):
    names = sorted(files(undisturbed))
    assert names == [*(f"parts/000000/part-{chunk:09}.parquet" for chunk in range(10)), "study.json"]
    manifest = json.loads((undisturbed / "study.json").read_text())
    assert manifest["points"] == POINTS and manifest["chunk_points"] == 5
    assert manifest["over"]["filesystem.rotdelay_ms"] == ["0", "1", "2", "3"]
    assert manifest["model"]["version"].startswith(diskperf.__version__)


def reversed_map(function, calls):
    return reversed([function(call) for call in reversed(list(calls))])


class Mapping:
    """Has map and nothing else, and begins with the last."""

    map = staticmethod(reversed_map)


@pytest.mark.parametrize("kind", ["threads", "processes", "a pool", "map alone"])
def test_whoever_computes_the_bytes_are_the_same(kind, undisturbed, tmp_path):
    # A process is begun anew, and not forked from one with threads.
    anew = multiprocessing.get_context("spawn")
    executors = {
        "threads": lambda: futures.ThreadPoolExecutor(5),
        "processes": lambda: futures.ProcessPoolExecutor(2, mp_context=anew),
        "a pool": lambda: anew.Pool(1),
    }
    if kind == "map alone":
        swept(to=tmp_path / "study", executor=Mapping())
    else:
        with executors[kind]() as executor:
            swept(to=tmp_path / "study", executor=executor)
    assert files(tmp_path / "study") == files(undisturbed)


def test_the_rows_do_not_depend_on_the_chunks(undisturbed):
    expected = diskperf.open_sweep(undisturbed).to_pylist()
    assert swept().to_pylist() == swept(chunk_points=7).to_pylist() == expected


def test_every_consumer_takes_it(undisturbed):
    study = diskperf.open_sweep(undisturbed)
    table = study.table()
    assert len(study) == table.num_rows == POINTS
    assert study.schema == pyarrow.schema(study) == table.schema
    assert pyarrow.table(study).to_pylist() == list(study) == table.to_pylist()
    assert [row for batch in study.batches(["point"]) for row in batch.to_pylist()] == [
        {"point": point} for point in range(POINTS)
    ]
    fast = study.dataset().to_table(columns=["point", "host.speed"], filter=pyarrow.compute.field("seed") == 2)
    assert fast["host.speed"].to_pylist() == [1.0, 2.5] * 8
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(study).to_dicts() == table.to_pylist()
    assert "48 points of read_8192 on vax780" in repr(study)


def test_the_best_is_the_best(undisturbed):
    study = diskperf.open_sweep(undisturbed)
    rates = {}
    for row in study:
        key = (row["filesystem.rotdelay_ms"], row["drive"], row["host.speed"])
        rates.setdefault(key, []).append(row["kb_per_s"])
    best = study.best()
    expected = max(rates, key=lambda key: sum(rates[key]))
    assert (best["filesystem.rotdelay_ms"], best["drive"], best["host.speed"]) == expected
    assert best["throughput"] == pytest.approx(sum(rates[expected]) / 3, rel=1e-9)
    assert best["seeds"] == 3 and best["lowest"] <= best["throughput"] * 1.000001
    assert study.best("cpu")["host.speed"] == 2.5
    assert study.best("latency")["latency"] > 0
    with pytest.raises(diskperf.RequestError, match="goal='speed'.*'throughput'"):
        study.best("speed")


def test_a_study_goes_on_with_what_is_missing(undisturbed, tmp_path):
    folder = tmp_path / "study"
    swept(to=folder)
    lost = [3, 9]
    places = [folder / f"parts/000000/part-{chunk:09}.parquet" for chunk in range(10)]
    for chunk in lost:
        places[chunk].unlink()
    study = diskperf.open_sweep(folder)
    assert not study.complete and "not all of them run yet" in repr(study)
    before = [None if chunk in lost else place.stat() for chunk, place in enumerate(places)]
    assert swept(to=folder, chunk_points=None).complete
    for chunk, place in enumerate(places):
        assert (place.stat() == before[chunk]) == (chunk not in lost)
    assert files(folder) == files(undisturbed)


def test_the_chunk_hangs_on_the_study_and_on_no_clock(tmp_path):
    sizes = set()
    for name in ("one", "two"):
        study = diskperf.sweep(VAX, "read_8192", over={"host.speed": "1..4"}, size="64K", repetitions=1, to=tmp_path / name)
        sizes.add(study.definition["chunk_points"])
    assert len(sizes) == 1
    # A point of 1 ms: chunks of two seconds, of less where there are few points, and
    # longer ones rather than very many; workers share them evenly.
    chosen = {points: -(-points // chosen_chunk(points, 1e-3)) for points in (100, 10_000, 240_000, 10_000_000)}
    assert chosen == {100: 1, 10_000: 12, 240_000: 120, 10_000_000: 1992}
    assert chosen_chunk(10_000_000_000, 1e-3) == 60_004
    assert chosen_chunk(10, 100.0) == 1


def test_a_point_that_cannot_be_is_a_row_with_its_error(tmp_path):
    over = {"filesystem.rotdelay_ms": [0, 100, 4], "host.speed": [1, 2]}
    with pytest.warns(diskperf.SweepWarning, match="2 of 6 points.*point 2: .*rotdelay_ms is 100"):
        study = swept(over=over, seeds=1)
    assert study.failed == 2
    assert [row["error"] is None for row in study] == [True, True, False, False, True, True]
    assert [row["kb_per_s"] is None for row in study] == [False, False, True, True, False, False]
    assert study.best()["filesystem.rotdelay_ms"] in (0, 4)
    with pytest.raises(diskperf.SettingError, match="rotdelay_ms is 100") as raised:
        swept(over=over, seeds=1, errors="raise", to=tmp_path / "study")
    assert raised.value.point in (2, 3)


NEVER = {"executor": object()}


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"over": {"filesystem.rotdelai_ms": [1, 2]}}, "SettingError", "did you mean `rotdelay_ms`"),
        ({"over": {"host.speed": [1], "program.cal_bytes": "1..3"}}, "SettingError", "call_bytes"),
        ({"over": {"drive": ["eagle", "eagel"]}}, "SettingError", "eagel"),
        ({"over": {"filesystem.rotdelay_ms": [-2, -1]}}, "SettingError", "out of range: -2"),
        ({"over": {"filesystem.rotdelay_ms": "3..1"}}, "RequestError", "the range is empty"),
        ({"over": {"filesystem.rotdelay_ms": "x..y"}}, "RequestError", "not a number"),
        ({"over": {"filesystem.rotdelay_ms": []}}, "RequestError", "has no values"),
        ({"over": {"filesystem.rotdelay_ms": [1, 1]}}, "RequestError", "the value 1 twice"),
        ({"over": {"filesystem.rotdelay_ms": range(10**6)}}, "RequestError", "1,000,000 values"),
        ({"over": {"host.speed": [1]}, "settings": {"host.speed": 2}}, "RequestError", "in over and in set"),
        ({"seeds": []}, "RequestError", "there are none"),
        ({"seeds": [1, 1]}, "RequestError", "twice"),
        ({"seeds": [-1]}, "RequestError", "-1 is not a seed"),
        ({"seeds": "9..1"}, "RequestError", "seeds: the range 9..1 is empty"),
        ({"seeds": "1..9:0"}, "RequestError", "seeds: the range 1..9:0 is empty"),
        ({"size": "many"}, "RequestError", "many"),
        ({"errors": "ignore"}, "RequestError", "errors='ignore'"),
        ({"chunk_points": 0}, "RequestError", "chunk_points=0"),
        (NEVER, "RequestError", "executor=<object"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(changes, kind, words, tmp_path):
    with pytest.raises(getattr(diskperf, kind), match=words):
        swept(to=tmp_path / "study", **{**NEVER, **changes})
    assert not (tmp_path / "study" / "parts" / "000000").exists()


def test_ten_billion_points_are_asked_about(tmp_path):
    many = {"over": {"filesystem.rotdelay_ms": "0..9"}, "seeds": range(10**9)}
    with pytest.raises(diskperf.TooManyPoints) as raised:
        swept(**many, to=tmp_path / "study")
    assert "10,000,000,000 points take about" in str(raised.value)
    assert "ms each" in str(raised.value) and "most_points=10000000000" in str(raised.value)
    assert any(unit in str(raised.value) for unit in ("days", "years"))
    assert raised.value.points == 10**10
    # In words, as a file has it.
    with pytest.raises(diskperf.TooManyPoints, match="10,000,000,000 points"):
        swept(**{**many, "seeds": "1..1000000000"}, to=tmp_path / "study")
    assert list(Space.of({}, "1..9:4").seeds) == [1, 5, 9] and list(Space.of({}, "7").seeds) == [7]
    assert not (tmp_path / "study").exists()
    with pytest.raises(diskperf.RequestError, match="give a folder"):
        swept(over={"filesystem.rotdelay_ms": "0..9"}, seeds=range(10**6))


def test_a_folder_of_something_else_is_refused(undisturbed, tmp_path):
    for changes, words in [
        ({"seeds": [1, 2]}, "its `seeds` is"),
        ({"size": "128K"}, "its `options.size` is \"64K\", and \"128K\" was asked for"),
        ({"over": {"filesystem.rotdelay_ms": "0..4"}}, "its `over.filesystem.rotdelay_ms` is"),
        # The same keys and values; but points are numbered by the keys' order.
        ({"over": dict(reversed(OVER.items()))}, "its `over` is"),
        ({"chunk_points": 6}, "files of 5 points"),
    ]:
        with pytest.raises(diskperf.FileError, match=words):
            swept(to=undisturbed, **changes)
    (tmp_path / "mine.txt").write_text("a letter")
    with pytest.raises(diskperf.FileError, match="is not empty"):
        swept(to=tmp_path)
    with pytest.raises(diskperf.FileError, match="mine.txt cannot be"):
        swept(to=tmp_path / "mine.txt")
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(diskperf.FileError, match="not a study of diskperf"):
        swept(to=tmp_path)
    with pytest.raises(diskperf.FileError, match="has no study"):
        diskperf.open_sweep(tmp_path / "nothing")


def test_another_model_or_catalogue_is_refused(undisturbed, tmp_path):
    (tmp_path / "study").mkdir()
    manifest = json.loads((undisturbed / "study.json").read_text())
    manifest["model"]["version"] = "0.0.1+feed"
    (tmp_path / "study" / "study.json").write_text(json.dumps(manifest))
    with pytest.raises(diskperf.FileError, match=r"made by model 0\.0\.1\+feed, .* would not fit together"):
        swept(to=tmp_path / "study")
    # A catalogue of one's own: one number of one entry is another.
    (tmp_path / "mine" / "drives").mkdir(parents=True)
    (tmp_path / "mine" / "drives" / "fast.toml").write_text('extends = "eagle"\n')
    system = diskperf.System(VAX, catalogue=diskperf.Catalogue(tmp_path / "mine"))
    with pytest.raises(diskperf.FileError, match="was made by model"):
        diskperf.sweep(system, "read_8192", **STUDY, to=undisturbed)


def test_a_worker_with_another_model_is_refused():
    space = Space.of({"host.speed": [1]})
    study = Study(diskperf.System(VAX), "read_8192", space, {}, "raise", ("0.0.1+feed", "beef"))
    with futures.ThreadPoolExecutor(1) as executor:
        with pytest.raises(diskperf.FileError, match="the worker on .* has another model"):
            list(carry_out(executor, study, [(0, 0, 1)]))


def test_a_full_disk_leaves_nothing_half_written(undisturbed, tmp_path, monkeypatch):
    folder = tmp_path / "study"
    real, calls = os.fsync, itertools.count()

    def full(file):
        # The manifest and two chunks find room.
        if next(calls) >= 3:
            raise OSError(28, "No space left on device")
        real(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(diskperf.FileError, match="No space left on device; 2 of 10 chunks are in"):
        swept(to=folder)
    monkeypatch.undo()
    there = files(folder)
    assert len(there) == 3
    assert all(content == files(undisturbed)[name] for name, content in there.items())
    swept(to=folder)
    assert files(folder) == files(undisturbed)


def test_two_processes_do_not_share_a_folder(undisturbed):
    program = f"""
import sys, diskperf
from diskperf._study.folder import Folder
with Folder.read({str(undisturbed)!r}):
    print("locked", flush=True)
    sys.stdin.read()
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(diskperf.RequestError, match="another process is at work"):
            swept(to=undisturbed)
    finally:
        other.communicate(timeout=60)
    assert swept(to=undisturbed).complete


def test_two_studies_of_a_process_do_not_share_a_folder(undisturbed, tmp_path):
    folder = tmp_path / "study"
    with Folder.new(folder, Folder.read(undisturbed).manifest):
        for _ in range(2):
            with pytest.raises(diskperf.RequestError, match="another study of this process is at work"):
                swept(to=folder)
        # Nor have these made it free for other processes.
        lock = subprocess.run(
            [sys.executable, "-c", f"from diskperf._study.folder import Folder; Folder.read({str(folder)!r}).__enter__()"],
            capture_output=True, text=True,
        )  # fmt: skip
        assert "another process is at work" in lock.stderr
    assert files(folder).keys() == {"study.json"}
    swept(to=folder)
    assert files(folder) == files(undisturbed)


def test_a_study_that_began_meanwhile_keeps_its_folder(undisturbed, tmp_path):
    # Both found no study there; the other was first.
    late = Folder.new(tmp_path / "study", {**Folder.read(undisturbed).manifest, "seeds": [9]})
    swept(to=tmp_path / "study")
    with pytest.raises(diskperf.RequestError, match="another study was begun in .* meanwhile"):
        late.__enter__()
    assert files(tmp_path / "study") == files(undisturbed)


def test_a_folder_of_another_release_says_which(undisturbed, tmp_path):
    for version, words in [(2, "a newer diskperf"), (0, "an older diskperf")]:
        manifest = {**json.loads((undisturbed / "study.json").read_text()), "diskperf_study": version}
        (tmp_path / "study.json").write_text(json.dumps(manifest))
        with pytest.raises(diskperf.FileError, match=f"by {words}.*use that diskperf, or give another folder"):
            swept(to=tmp_path)


def test_without_pyarrow_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install .pyarrow., or diskperf.s own extra"):
        swept()
