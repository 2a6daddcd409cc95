"""Traces, queues and real drives: what is found without a run."""

import diskperf
import pytest

LINES = "".join(
    f"{128166400000000000 + 10000 * number},web,0,{'Write' if number % 4 else 'Read'},{number % 50 * 4096},4096,1000\n"
    for number in range(1000)
)


@pytest.fixture
def web(tmp_path):
    path = tmp_path / "web.csv"
    path.write_text(LINES)
    return path


def test_a_trace_is_the_bytes_of_the_command_line(web, command_line):
    found = diskperf.trace(web)
    assert found.to_json().strip() == command_line("trace", str(web), "--format", "json").strip()
    assert found.operations.to_pylist() == [
        {"operation": "read", "requests": 250, "bytes": 250 * 4096},
        {"operation": "write", "requests": 750, "bytes": 750 * 4096},
    ]
    assert sum(found.series["reads"]) == 250
    assert found.miss_ratios["share"][-1] == pytest.approx(0.05)
    assert "1000 requests of msr" in str(found) and "msr" in repr(found)


def test_a_part_of_a_trace(web):
    found = diskperf.trace(web, window_s=(0.5, 0.6), device="web.0")
    assert found.to_dict()["summary"]["requests"] == 100
    with pytest.raises(diskperf.RequestError, match="no such device"):
        diskperf.trace(web, device="sda")
    with pytest.raises(diskperf.RequestError, match="no form"):
        diskperf.trace(web, form="msw")


def test_a_run_is_recorded_part_by_part(tmp_path):
    path = tmp_path / "t.dptrace"
    words = {"size": "256K", "repetitions": 2, "cache": "direct", "record": path}
    run = diskperf.run("random", on="bare-sata-7200", **words)
    found = diskperf.trace(path)
    calls = sum(run.repetitions["calls"])
    parts = found.parts.to_pylist()
    assert [part["requests"] for part in parts] == [calls / 2, calls / 2]
    assert found.to_dict()["summary"]["requests"] == calls
    assert diskperf.trace(path, part=2).to_dict()["summary"]["requests"] == calls / 2
    with pytest.raises(diskperf.FileError, match="--force"):
        diskperf.run("random", on="bare-sata-7200", **words)
    assert diskperf.run("random", on="bare-sata-7200", force=True, **words).state == "finished"
    with pytest.raises(TypeError, match="record"):
        diskperf.ab(".", ".", "random", record=path)


def test_what_is_no_disk_is_not_recorded(tmp_path):
    with pytest.raises(diskperf.RequestError, match="lsblk"):
        diskperf.record(tmp_path / "nothing", tmp_path / "t", seconds=1)


def test_a_queue_is_the_bytes_of_the_command_line(command_line):
    words = ("calculate", "disk", "--on", "bare-sas-10k", "--depth", "1,8", "--requests", "500", "--format", "json")
    found = diskperf.calculate_disk("bare-sas-10k", depths=[8, 1], requests=500)
    assert found.to_json().strip() == command_line(*words).strip()
    rows = found.orders.to_pylist()
    assert len(rows) == 14 and all(row["mean_ms"] > row["bound_ms"] * 0.95 for row in rows)
    with pytest.raises(diskperf.RequestError, match="elevator"):
        diskperf.calculate_disk(orders=["elevator"])


def test_what_is_expected_of_a_drive_is_the_bytes_of_the_command_line(command_line):
    found = diskperf.expected("sas-10k")
    assert found.to_json().strip() == command_line("show", "sas-10k", "--expected", "--format", "json").strip()
    assert found.met
    rows = found.values.to_pylist()
    assert {row["depth"] for row in rows} >= {1, 32}
    assert all(abs(row["off_share"]) <= row["tolerance_share"] for row in rows)
    with pytest.raises(diskperf.RequestError, match="eagle"):
        diskperf.expected("eagle")


def test_a_flash_drive_is_the_bytes_of_the_command_line(command_line):
    words = ("calculate", "flash", "--spare", "10%,28%", "--policy", "greedy", "--depth", "8", "--format", "json")
    found = diskperf.calculate_flash(spares=[0.1, 0.28], policies=["greedy"], depths=[8])
    assert found.to_json().strip() == command_line(*words).strip()
    rows = found.policies.to_pylist()
    assert [row["policy"] for row in rows] == ["greedy", "greedy"]
    assert all(abs(row["model"] / row["formula"] - 1) < 0.02 for row in rows)
    assert found.depths.to_pylist()[0]["depth"] == 8
    assert found.cliffs["bytes"][0] == 64 << 20
    with pytest.raises(diskperf.RequestError, match="--spare 0"):
        diskperf.calculate_flash(spares=[0.0])
    with pytest.raises(diskperf.RequestError, match="elevator"):
        diskperf.calculate_flash(policies=["elevator"])


def test_volumes_under_a_load_are_the_bytes_of_the_command_line(command_line, tmp_path):
    job = tmp_path / "day.fio"
    job.write_text("[day]\nrw=randread\nbs=16k\nsize=90g\ndirect=1\ntime_based\nruntime=8h\nrate_iops=500\n")
    words = ("calculate", "volume", str(job), "--volume", "gp2:100GiB,gp3", "--for", "8h", "--format", "json")
    found = diskperf.calculate_volume(job, volumes=["gp2:100GiB", "gp3"], seconds=8 * 3600)
    assert found.to_json().strip() == command_line(*words).strip()
    rows = {row["volume"]: row for row in found.volumes.to_pylist()}
    assert rows["gp3"]["verdict"] == "carries" and rows["gp3"]["credits_end_s"] is None
    assert rows["gp2"]["verdict"] == "fails" and abs(rows["gp2"]["credits_end_s"] - 27_000) < 1
    with pytest.raises(diskperf.RequestError, match="gp4"):
        diskperf.calculate_volume(job, volumes=["gp4"])
    with pytest.raises(diskperf.RequestError, match="366 days"):
        diskperf.calculate_volume(job, seconds=0)


def test_a_drive_without_files_has_a_row_that_says_so(tmp_path):
    (tmp_path / "lone.trace").write_text("R Miss 8 4 9000.0 100.0\n")
    found = diskperf.reproduce_real_drives(tmp_path)
    assert "lone.diskspecs" in found.drives["error"][0]
    assert found.remaining.to_pylist() == found.off.to_pylist() == found.steps.to_pylist() == []
