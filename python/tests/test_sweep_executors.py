"""Whoever computes a study: clusters and clients of Dask's, worker processes that share
nothing with the study but a connection, jobs of a queue; and what is said of those that
cannot, or that are waited for."""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from concurrent import futures

import diskperf
import pytest
from conftest import PATIENCE_S, VAX, files, sweeper, two_workers, undisturbed_by
from diskperf._cluster import dask as over_dask

pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"

STUDY = {
    "over": {"filesystem.rotdelay_ms": "0..4"},
    "seeds": range(1, 5),
    "size": "64K",
    "repetitions": 1,
    "chunk_points": 3,
}

swept = sweeper(STUDY)
undisturbed_folder = undisturbed_by(swept)


@pytest.fixture(scope="module")
def undisturbed(undisturbed_folder):
    return files(undisturbed_folder)


@pytest.fixture(scope="module")
def cluster():
    """Scheduler and workers in threads of this process, which begins at once."""
    with two_workers(processes=False) as cluster:
        yield cluster


def test_a_cluster_stands_for_its_client(cluster, undisturbed, tmp_path):
    swept(to=tmp_path / "study", executor=cluster)
    assert files(tmp_path / "study") == undisturbed
    # It had a client of its own, which is nobody's default.
    with pytest.raises(ValueError, match="No clients found"):
        distributed.default_client()
    with distributed.Client(cluster, set_as_default=False) as client:
        swept(to=tmp_path / "executor", executor=client.get_executor())
        swept(to=tmp_path / "client", executor=client)
        assert client.status == "running"
    assert files(tmp_path / "executor") == files(tmp_path / "client") == undisturbed


def without(module, command):
    """A command of Dask's in an environment that lacks a module."""
    code = f"import sys; sys.modules[{module!r}] = None; from distributed.cli.{command} import main; main()"
    return [sys.executable, "-c", code]


@pytest.fixture
def start(tmp_path):
    """Starts processes, and ends them with the test."""
    processes = []

    def begin(words, says, folder=tmp_path):
        folder.mkdir(exist_ok=True)
        process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=folder)
        processes.append(process)
        for line in process.stderr:
            if says in line:
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return line.split()[-1]
        raise AssertionError(f"{words} never said {says}")

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def worker(address):
    return [address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--death-timeout", "10"]


SCHEDULER = ["--port", "0", "--no-dashboard", "--host", "127.0.0.1"]


def test_workers_share_nothing_but_a_connection(start, undisturbed, tmp_path, monkeypatch):
    # The scheduler needs no diskperf, and no worker the study's folder.
    address = start([*without("diskperf", "dask_scheduler"), *SCHEDULER], "Scheduler at:")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        start([sys.executable, "-m", "distributed.cli.dask_worker", *worker(address)], "Registered to:", folder)
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    swept(to="study", executor=address.removeprefix("tcp://"))
    assert files(tmp_path / "own" / "study") == undisturbed
    assert [list(folder.rglob("*.parquet")) for folder in folders] == [[], []]
    # One that lacks diskperf is named, with what to install where.
    start([*without("diskperf", "dask_worker"), *worker(address)], "Registered to:")
    with distributed.Client(address, set_as_default=False) as client:
        client.retire_workers(client.run(os.getcwd).keys() - lacking(client))
        with pytest.raises(diskperf.RunError) as raised:
            swept(executor=client)
        with pytest.raises(diskperf.RunError, match="install diskperf.*; nothing was begun"):
            diskperf.measure_fleet("read_8192", tmp_path, client)
    said = str(raised.value)
    assert re.match(r"the worker at tcp://[\d.:]+ cannot run diskperf: .*diskperf.* in /", said)
    assert f"install diskperf {diskperf.__version__} and pyarrow there" in said


def lacking(client):
    """The workers without diskperf."""
    return {address for address, cannot in client.run(lambda: sys.modules.get("diskperf", 0) is None).items() if cannot}


def test_a_cluster_without_workers_is_waited_for_and_that_is_said(undisturbed, tmp_path, monkeypatch):
    monkeypatch.setattr(over_dask, "SILENCE_S", 0.2)
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        # Workers come when it has been said, as jobs of a queue do some time.
        said = threading.Event()

        def come():
            assert said.wait(PATIENCE_S)
            cluster.scale(1)

        coming = threading.Thread(target=come)
        coming.start()

        def tell(words, *_, **__):
            assert "has no workers: the study waits for some (as `dask worker inproc://" in words
            said.set()

        monkeypatch.setattr(over_dask.warnings, "warn", tell)
        swept(to=tmp_path / "study", executor=cluster)
        coming.join()
    assert files(tmp_path / "study") == undisturbed


@pytest.mark.parametrize(
    "address", ["localhost", "10.0.0.1:x", "tcp://", "tcp://10.0.0.1", "", "scheduler.json", "a b:8786", "http://x:1"]
)
def test_an_address_that_is_none_is_said_at_once(address):
    with pytest.raises(diskperf.RequestError, match=r"is not an address of a Dask scheduler|unknown address scheme"):
        swept(executor=address)


def test_who_cannot_compute_is_said_before_anything_starts(cluster, tmp_path):
    client = distributed.Client(cluster, set_as_default=False)
    client.close()
    pool = futures.ThreadPoolExecutor(1)
    pool.shutdown()
    closed = distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0")
    closed.close()
    for executor, kind, words in [
        (client, diskperf.RequestError, "the Dask client is closed: give a new Client"),
        (closed, diskperf.RequestError, "LocalCluster is closed"),
        (distributed.Client, diskperf.RequestError, "executor=<class"),
        (pool, diskperf.RunError, "takes no more work"),
    ]:
        with pytest.raises(kind, match=words):
            swept(executor=executor)


def test_a_client_that_is_closed_in_the_middle_is_said(cluster, tmp_path):
    client = distributed.Client(cluster, set_as_default=False)

    def close():
        until = time.monotonic() + PATIENCE_S
        while not list(tmp_path.glob("study/parts/*/*.parquet")) and time.monotonic() < until:
            time.sleep(0.01)
        client.close()

    closing = threading.Thread(target=close)
    closing.start()
    with pytest.raises(diskperf.RunError, match="client was closed while.*start it again to compute the others"):
        swept(seeds=range(500), executor=client, to=tmp_path / "study")
    closing.join()


class Short:
    """Gives fewer results than there are calls."""

    @staticmethod
    def map(function, calls):
        return [function(call) for call in calls][:-1]


def test_a_map_that_drops_calls_is_no_executor():
    with pytest.raises(diskperf.RunError, match="gave 6 results of 7 calls"):
        swept(executor=Short())


def test_workers_of_a_study_in_memory_are_verified(cluster, monkeypatch):
    from diskperf._study.study import Study

    # What the workers here, threads of this process, find of themselves.
    known = Study.identity
    found = iter([known(Study(diskperf.System(VAX), None, None, {}, "raise"))])
    monkeypatch.setattr(Study, "identity", lambda study: next(found, ("0.0.1", "beef")))
    with pytest.raises(diskperf.FileError, match=r"the worker on .* has another model: model 0\.0\.1"):
        swept(executor=cluster, over={"host.speed": [3]})


def test_the_page_of_a_queue_runs(undisturbed, tmp_path):
    """The page's study on a Slurm site, whose jobs a queue of this machine runs."""
    pytest.importorskip("dask_jobqueue")
    page = (DOCS / "sweeps.md").read_text()
    (code,) = re.findall(r"```python[^\n]*\n(import diskperf[^`]*SLURMCluster[^`]*)```", page)
    assert 'cores=32, processes=32, memory="64GB"' in code and '"1..4"' in code
    for theirs, ours in [
        ("import SLURMCluster", "import LocalCluster as SLURMCluster"),
        ("from dask_jobqueue ", "from dask_jobqueue.local "),
        ('cores=32, processes=32, memory="64GB"', 'cores=1, processes=1, memory="1GB"'),
        ("maximum_jobs=20", "maximum_jobs=1"),
        ('"0..10"', '"0..1"'),
    ]:
        assert theirs in code
        code = code.replace(theirs, ours)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    study = diskperf.open_sweep(tmp_path / "rotdelay")
    assert study.complete and study.failed == 0 and len(study) == study.points == 2 * 5 * 3 * 4
