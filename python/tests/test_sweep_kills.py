"""Studies that lose a worker, their scheduler, or their own process: nothing that
was finished is lost, and the bytes are those of an undisturbed study."""

import os
import signal
import subprocess
import sys
import threading
import time

import diskperf
import pytest
from conftest import PATIENCE_S, VAX, files, sweeper, two_workers, undisturbed_by

pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")

STUDY = {
    "over": {"filesystem.rotdelay_ms": "0..9", "host.speed": [1, 2]},
    "seeds": range(1, 11),
    "size": "64K",
    "repetitions": 1,
    "chunk_points": 5,
}
CHUNKS = 40

swept = sweeper(STUDY)
undisturbed_folder = undisturbed_by(swept)


def parts(folder):
    return len(list(folder.glob("parts/*/*.parquet")))


def wait_for(what):
    until = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < until, "it never came to it"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def undisturbed(undisturbed_folder):
    return files(undisturbed_folder)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, each with a nanny that starts it anew."""
    with two_workers(processes=True) as cluster:
        yield cluster


def test_a_cluster_gives_the_same_bytes(cluster, undisturbed, tmp_path):
    with distributed.Client(cluster, set_as_default=False) as client:
        swept(to=tmp_path / "client", executor=client)
    swept(to=tmp_path / "address", executor=cluster.scheduler_address)
    assert files(tmp_path / "client") == files(tmp_path / "address") == undisturbed


def test_errors_of_points_come_from_a_cluster_as_they_are(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        with pytest.raises(diskperf.SettingError, match="rotdelay_ms is 100") as raised:
            swept(over={"filesystem.rotdelay_ms": [1, 100]}, errors="raise", executor=client)
    assert raised.value.point >= 10


def test_a_worker_that_is_killed_loses_nothing(cluster, undisturbed, tmp_path):
    folder = tmp_path / "study"
    with distributed.Client(cluster, set_as_default=False) as client:
        victims = []

        def kill():
            wait_for(lambda: parts(folder) >= 3)
            victim = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
            victims.append(client.run(os.getpid, workers=[victim])[victim])
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        swept(to=folder, executor=client)
        killer.join()
        assert len(victims) == 1
    assert files(folder) == undisturbed


#: A study in a process of its own.
PROGRAM = f"""
import sys, diskperf
if __name__ == "__main__":
    diskperf.sweep({VAX!r}, "read_8192", **{STUDY!r}, to=sys.argv[1], executor=eval(sys.argv[2]))
"""


def test_a_study_whose_process_is_killed_goes_on(undisturbed, tmp_path):
    folder = tmp_path / "study"
    for round_ in (1, 2):
        study = subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder), "None"])
        wait_for(lambda at_least=4 * round_: parts(folder) >= at_least)
        study.kill()
        assert study.wait() == -signal.SIGKILL
        assert parts(folder) < CHUNKS
    # What it was writing, if it was, is no chunk.
    (folder / "parts" / "000000" / f"part-{CHUNKS:09}.parquet.1.unfinished").write_bytes(b"half")
    there = {name: content for name, content in files(folder).items() if not name.endswith("unfinished")}
    assert all(undisturbed[name] == content for name, content in there.items())
    before = {path: path.stat().st_mtime_ns for path in folder.glob("parts/*/*.parquet")}
    assert swept(to=folder).complete
    assert files(folder) == undisturbed
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in before.items())


def test_ctrl_c_ends_a_study_that_goes_on(undisturbed, tmp_path):
    folder = tmp_path / "study"
    study = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), "None"], stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: parts(folder) >= 3)
    study.send_signal(signal.SIGINT)
    _, words = study.communicate(timeout=PATIENCE_S)
    assert "KeyboardInterrupt" in words and study.returncode not in (0, None)
    assert parts(folder) < CHUNKS
    swept(to=folder)
    assert files(folder) == undisturbed


def started(*words, says):
    """A process, once it has said something."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    for line in process.stderr:
        if says in line:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, line
    raise AssertionError(f"{words} never said {says}")


def test_a_scheduler_that_is_killed_is_said_and_the_study_goes_on(undisturbed, tmp_path):
    folder = tmp_path / "study"
    # A scheduler that is gone is waited for no longer than this.
    quick = {"distributed.comm.timeouts.connect": "2s", "distributed.comm.retry.count": 0}
    scheduler, line = started(
        "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--host", "127.0.0.1",
        says="Scheduler at:",
    )  # fmt: skip
    address = line.split()[-1]
    worker, _ = started(
        "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
        "--death-timeout", "10", says="Registered to:",
    )  # fmt: skip
    import dask

    def kill():
        wait_for(lambda: parts(folder) >= 3)
        scheduler.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with dask.config.set(quick), pytest.raises(diskperf.RunError) as raised:
            swept(to=folder, executor=address)
    finally:
        killer.join()
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    assert f"the Dask scheduler at {address} was lost" in str(raised.value)
    assert "start it again to compute the others" in str(raised.value)
    assert 3 <= parts(folder) < CHUNKS
    swept(to=folder)
    assert files(folder) == undisturbed


def test_a_scheduler_that_is_not_there_is_said(tmp_path, monkeypatch):
    from diskperf._cluster import dask as over_dask

    monkeypatch.setattr(over_dask, "ANSWER_S", 1)
    with pytest.raises(diskperf.RunError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        swept(to=tmp_path / "study", executor="tcp://127.0.0.1:9")
    assert not (tmp_path / "study").exists()
