"""fio job files from Python, and runs as fio prints its results."""

import json

import diskperf
import pytest
from conftest import VAX

JOBS = "[global]\nbs=4k\nsize=256k\n[reads]\nrw=randread\n[log]\nstonewall\nrw=write\nfdatasync=8\n"


def counts(run):
    """Requests of each job: reads and writes."""
    rows = {(row["program"], row["operation"]): row["count"] for row in run.latencies if row["part"] == "response"}
    return {name: [rows.get((name, way), 0) for way in ("read", "write")] for name in ("reads", "log")}


def test_a_job_file_runs_where_it_is_told_to(tmp_path):
    path = tmp_path / "job.fio"
    path.write_text(JOBS)
    measured, modelled = diskperf.run(path, on=[tmp_path, VAX], store=False)
    assert (measured.world, modelled.world) == ("host", "model")
    for run in (measured, modelled, diskperf.run(JOBS, on=tmp_path, store=False)):
        assert counts(run) == {"reads": [64, 0], "log": [0, 64]}
    assert "[log]" in diskperf.describe(path, on=tmp_path)


def test_one_that_names_its_place_needs_no_target(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    jobs = JOBS.replace("[global]", f"[global]\ndirectory={place}")
    run = diskperf.run(jobs, store=False)
    assert run.target == str(place) and counts(run)["reads"] == [64, 0]
    assert list(place.iterdir()) == []
    both = diskperf.ab({}, {}, jobs, blocks=1, store=False)
    assert {both.a.target, both.b.target} == {str(place)}
    with pytest.raises(diskperf.RequestError, match="gone.fio"):
        diskperf.run("gone.fio")


def test_a_run_as_fio_prints_it(tmp_path):
    run = diskperf.run(JOBS, on=tmp_path, store=False)
    reads, log = json.loads(run.to_fio_json())["jobs"]
    assert (reads["jobname"], log["jobname"]) == ("reads", "log")
    assert (reads["read"]["total_ios"], log["write"]["total_ios"]) == (64, 64)
    assert "bins" not in reads["read"]["clat_ns"]
    bins = json.loads(run.to_fio_json(plus=True))["jobs"][0]["read"]["clat_ns"]["bins"]
    assert sum(bins.values()) == 64
    other = diskperf.run("write_8192", on=VAX, size="64K")
    with pytest.raises(diskperf.RequestError, match=r"run \w+ has none; to_json"):
        other.to_fio_json()


def test_what_people_add_on_fios_command_line(tmp_path):
    jobs = JOBS.replace("size=256k\n", "")
    with pytest.raises(diskperf.RequestError, match="a missing file has no size"):
        diskperf.run(jobs, on=tmp_path, store=False)
    assert counts(diskperf.run(jobs, on=tmp_path, size="128K", store=False)) == {"reads": [32, 0], "log": [0, 32]}
    words = ["--size=64k", "--bs=8k", "--section=log"]
    assert counts(diskperf.run(jobs, on=tmp_path, fio_args=words, store=False)) == {"reads": [0, 0], "log": [0, 16]}
    with pytest.raises(diskperf.RequestError, match="size=1m: it is for fio job files"):
        diskperf.run("write_8192", on=tmp_path, fio_args=["--size=1m"], store=False)


def test_options_of_public_job_files_are_taken(tmp_path):
    busy = "[burn]\nioengine=cpuio\ncpuload=20\nexit_on_io_done=1\n[reads]\nrw=randread\nsize=64k\nlockfile=exclusive\n"
    for place in (tmp_path, VAX):
        run = diskperf.run(busy, on=place, store=False)
        assert counts(run)["reads"] == [16, 0]
    filled = "[log]\nfill_device=1\nrw=write\nbs=64k\nnumber_ios=3\n"
    assert counts(diskperf.run(filled, on=VAX, store=False))["log"] == [0, 3]
    with pytest.raises(diskperf.RequestError, match="cpuload"):
        diskperf.run("[burn]\nioengine=cpuio\nruntime=1\n", on=VAX)


@pytest.mark.parametrize(("rate", "unread"), [("", False), ("rate_iops=60\nruntime=1\n", True)])
def test_what_was_verified_is_in_the_results(tmp_path, rate, unread):
    jobs = f"[burn]\nrw=randwrite\nbs=4k\nsize=1m\nverify=crc32c\n{rate}"
    result = diskperf.run(jobs, on=tmp_path, store=False).to_dict()["results"][0]
    verified = result["verified"]
    assert verified["kind"] == "crc32c" and verified["mismatches"] == 0
    assert (verified["blocks"] + verified["unread_blocks"]) * 4096 == verified["written_bytes"]
    assert (verified["unread_blocks"] > 0) == unread
    assert any("not read back" in note or "0 of" in note for note in result["notes"]) == unread
