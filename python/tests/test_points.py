"""Points of a parameter study."""

import diskperf
import pytest
from conftest import VAX
from hypothesis import given, settings
from hypothesis import strategies as st

ROTDELAYS = [0, 2, 4, 7]
SHARES = [0, 0.5]
POINTS = st.tuples(st.sampled_from(ROTDELAYS), st.sampled_from(SHARES), st.integers(0, 3))


def of(points, **options):
    keys = [
        {"filesystem.rotdelay_ms": rotdelay_ms, "program.write_share": write_share}
        for rotdelay_ms, write_share, _ in points
    ]
    seeds = [seed for *_, seed in points]
    return diskperf.run_points(VAX, "random_mix", keys, seeds=seeds, size="128K",
                               settings={"program.area_bytes": "1M"}, **options)  # fmt: skip


def without_place(rows):
    return [{name: value for name, value in row.items() if name != "point"} for row in rows]


@settings(max_examples=15, deadline=None)
@given(st.lists(POINTS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_a_point_depends_on_nothing_but_itself(points, random):
    together = of(points).to_pylist()
    order = list(range(len(points)))
    random.shuffle(order)
    shuffled = of([points[place] for place in order]).to_pylist()
    for place, row in zip(order, shuffled):
        assert without_place([row]) == without_place([together[place]])
    alone = [row for point in points for row in of([point])]
    assert without_place(alone) == without_place(together)


def test_a_point_has_the_figures_of_a_run():
    change = {"filesystem.rotdelay_ms": 7, "filesystem.block_bytes": 4096}
    rows = diskperf.run_points(VAX, "ffs83", [change], seeds=11, drives=2).to_pylist()
    run = diskperf.run("ffs83", on=VAX, settings=change, seed=11, drives=2)
    results = {row["program"]: row for row in run.results}
    assert len(rows) == len(results) == 4
    for row in rows:
        expected = results[row["program"]]
        for name in ("filesystem", "drives", "kept", "kb_per_s", "durable_kb_per_s", "cpu_percent",
                     "read_p99_ns", "write_p99_ns"):  # fmt: skip
            assert row[name] == expected[name], name
        repetitions = [
            one for one in run.repetitions
            if one["program"] == row["program"] and not one["discarded"]
        ]  # fmt: skip
        middle = sorted(repetitions, key=lambda one: one["elapsed_ns"])[(len(repetitions) - 1) // 2]
        for name in ("elapsed_ns", "durable_ns", "cpu_ns", "bytes", "read_bytes", "written_bytes", "calls"):
            assert row[name] == middle[name], name
        assert row["error"] is None
        assert row["requests"] > 0
        assert row["processor_ns"] > 0


def test_a_program_has_one_name_in_all_points():
    points = [{"program.call_bytes": size} for size in ("4K", "64K")]
    assert diskperf.run_points(VAX, "read_8192", points)["program"] == ["read_8192"] * 2


def test_rows_have_their_points_and_seeds():
    rows = diskperf.run_points(VAX, "ffs83", [{}, {"host.speed": 2}], seeds=[2**64 - 1, 1], size="1M")
    assert rows["point"] == [0] * 4 + [1] * 4
    assert rows["seed"] == [2**64 - 1] * 4 + [1] * 4
    assert len(diskperf.run_points(VAX, "ffs83", [])) == 0
    assert diskperf.run_points(VAX, "ffs83", []).types == rows.types


def test_an_error_names_its_point():
    points = [{}, {"filesystem.rotdelay_ms": 2}, {"filesystem.rotdelai_ms": 2}]
    with pytest.raises(diskperf.SettingError, match="rotdelai_ms") as raised:
        diskperf.run_points(VAX, "read_8192", points)
    assert raised.value.point == 2
    with pytest.raises(diskperf.SettingError) as raised:
        diskperf.System("nothing")
    assert raised.value.point is None


def test_an_error_can_be_a_row():
    points = [{"filesystem.rotdelai_ms": 2}, {}]
    wrong, right = diskperf.run_points(VAX, "read_8192", points, errors="column").to_pylist()
    assert "rotdelai_ms" in wrong.pop("error")
    assert (wrong.pop("point"), wrong.pop("seed")) == (0, 1983)
    assert set(wrong.values()) == {None}
    assert right["error"] is None and right["kb_per_s"] > 0
    # A system that there is not is no matter of a point.
    with pytest.raises(diskperf.RequestError):
        diskperf.run_points("vax", "read_8192", points, errors="column")


def test_arguments_that_do_not_fit_are_refused():
    with pytest.raises(diskperf.RequestError, match="2 seeds for 1 points"):
        diskperf.run_points(VAX, "read_8192", [{}], seeds=[1, 2])
    with pytest.raises(diskperf.RequestError, match="errors='ignore'"):
        diskperf.run_points(VAX, "read_8192", [{}], errors="ignore")
    with pytest.raises(diskperf.RequestError, match="drives=9"):
        diskperf.run_points(VAX, "read_8192", [{}], drives=9)
