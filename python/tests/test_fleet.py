"""A suite on every host of a cluster. The workers here are of one machine; where
several hosts are needed they pass for them, by what ``host_of`` says."""

import os
import signal
import threading
import time

import diskperf
import pytest
from diskperf._cluster import fleet as measuring

distributed = pytest.importorskip("distributed")

OPTIONS = {"size": "256K", "repetitions": 2}


def by_name(dask_worker):
    """Workers that pass for hosts: each by its own name."""
    return f"host-{dask_worker.name}"


def by_pair(dask_worker):
    return f"host-{int(dask_worker.name) // 2}"


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def test_workers_of_one_host_count_as_one(client, tmp_path):
    fleet = diskperf.measure_fleet("read_8192", tmp_path, client, **OPTIONS)
    (row,) = fleet.hosts.to_pylist()
    assert row["host"] == os.uname().nodename
    assert row["error"] is None and row["outlier"] is None and row["filesystem"]
    assert row["read_8192_kb_per_s"] > 0 and row["elapsed_s"] > 0 and row["start_ms"] == 0
    # The clock is this machine's own; what is known of it is known to the error.
    assert abs(row["clock_offset_ms"]) <= row["clock_error_ms"] + 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("together", [False, True])
def test_every_host_has_a_row(together, client, tmp_path):
    fleet = diskperf.measure_fleet("read_8192", tmp_path, client, together, host_of=by_name, **OPTIONS)
    rows = fleet.hosts.to_pylist()
    assert [row["host"] for row in rows] == ["host-0", "host-1", "host-2"]
    assert len({row["worker"] for row in rows}) == 3
    ends = [row["start_ms"] + 1e3 * row["elapsed_s"] for row in rows]
    if together:
        # Nobody began before the agreed moment, but for what clocks are unsure of.
        assert all(row["start_ms"] >= -2 * row["clock_error_ms"] - 1 for row in rows)
    else:
        # In their order, each after the one before.
        assert all(end <= row["start_ms"] + 1 for end, row in zip(ends, rows[1:]))
    assert len(fleet.results) == 3
    assert fleet.results["kb_per_s"] == [row["read_8192_kb_per_s"] for row in rows]
    assert set(fleet.documents) == {"host-0", "host-1", "host-2"}
    assert str(fleet).startswith("host-0: read_8192 ")
    assert list(tmp_path.iterdir()) == []


def test_the_rules_of_one_host_hold(client, tmp_path):
    with pytest.raises(diskperf.RequestError, match="is not a path.*/ "):
        diskperf.measure_fleet("read_8192", "vax780-sc780-eagle", client)
    with pytest.raises(diskperf.RequestError, match="host-0 refuses, and no host began: .*nowhere"):
        diskperf.measure_fleet("read_8192", tmp_path / "nowhere", client, host_of=by_name)
    with pytest.raises(diskperf.RequestError, match="refuses"):
        diskperf.measure_fleet("read_8193", tmp_path, client)
    with pytest.raises(diskperf.RequestError, match="refuses.*repetition"):
        diskperf.measure_fleet("read_8192", tmp_path, client, repetition=3)
    # A file that is there is only read.
    (tmp_path / "mine").write_bytes(b"mine" * 100_000)
    with pytest.raises(diskperf.RequestError, match="refuses"):
        diskperf.measure_fleet("write_8192", tmp_path / "mine", client)
    assert (tmp_path / "mine").read_bytes() == b"mine" * 100_000


def test_a_host_that_is_lost_is_a_row(client, tmp_path):
    pids = client.run(os.getpid)
    # Two of the three are one host, of which the first worker counts.
    hosts = measuring._hosts(client, by_pair)
    assert list(hosts) == ["host-0", "host-1"]
    victim = hosts["host-1"]

    def kill():
        # In the middle of its run: there is a folder of its own.
        until = time.monotonic() + 60
        while not any(tmp_path.iterdir()) and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(pids[victim], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    asked = ("read_8192", str(tmp_path), {"store": False, "size": "8M", "repetitions": 10_000})
    try:
        processes = measuring._ready(client, {"host-1": victim}, asked)
        rows = measuring._measured(client, {"host-1": victim}, processes, asked, False)
    finally:
        killer.join()
    ((row, document),) = rows
    assert document is None and "was lost on the way" in row["error"] and "clean --on" in row["error"]
    client.wait_for_workers(3, timeout=60)


def test_a_host_is_not_measured_again_by_a_process_in_the_place_of_another(client, tmp_path):
    # As where a worker that died begins anew at the same address.
    (worker, *_) = client.scheduler_info(n_workers=-1)["workers"]
    asked = ("write_8192", str(tmp_path), {"store": False, **OPTIONS})
    ((row, document),) = measuring._measured(client, {"host-0": worker}, {"host-0": "died"}, asked, True)
    assert document is None and "is another process now" in row["error"] and row["start_ms"] is None
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_is_lost_before_it_began_is_a_row(client, tmp_path):
    (worker, *_) = client.scheduler_info(n_workers=-1)["workers"]
    asked = ("read_8192", str(tmp_path), {"store": False, **OPTIONS})
    hosts = {"host-0": worker, "host-1": "tcp://127.0.0.1:9"}
    processes = measuring._ready(client, {"host-0": worker}, asked)
    rows = dict(zip(hosts, measuring._measured(client, hosts, {**processes, "host-1": "lost"}, asked, True)))
    assert rows["host-0"][1] is not None and rows["host-0"][0]["error"] is None
    assert rows["host-1"][0]["error"] == "its worker was lost before it began"


def test_whatever_goes_wrong_at_one_host_is_its_row(client, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(measuring, "run", broken)
    found = measuring._run_here("read_8192", str(tmp_path), {}, None, measuring._PROCESS)
    assert found["error"] == "OSError: [Errno 5] Input/output error"


def only_the_first(dask_worker):
    if dask_worker.name != 0:
        raise LookupError("no name")
    return "host"


def test_what_is_no_host_is_refused(client, tmp_path):
    for host_of, words in [(only_the_first, "no name"), (lambda: "", "''"), (lambda: 3, "host_of says 3")]:
        with pytest.raises(diskperf.RequestError, match=words):
            diskperf.measure_fleet("read_8192", tmp_path, client, host_of=host_of)
    assert list(measuring._hosts(client, lambda: "rack 1")) == ["rack 1"]
    with pytest.raises(diskperf.RequestError, match="client=3: give a Dask client"):
        diskperf.measure_fleet("read_8192", tmp_path, 3)


def test_a_worker_with_another_diskperf_is_refused(client, tmp_path, monkeypatch):
    class Older:
        __version__ = "0.0.1"

    monkeypatch.setattr(measuring, "_native", Older)
    with pytest.raises(diskperf.RequestError, match="refuses.*has diskperf .*and this is 0.0.1"):
        diskperf.measure_fleet("read_8192", tmp_path, client)


def test_a_busy_host_is_waited_for_and_that_is_said(client, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "SILENCE_S", 0.0)
    monkeypatch.setattr(measuring, "LOOK_S", 0.1)
    busy = client.map(lambda _: time.sleep(1.5), range(3), pure=False)
    with pytest.warns(diskperf.SweepWarning, match="does not answer: is its worker at tcp.* busy"):
        fleet = diskperf.measure_fleet("read_8192", tmp_path, client, host_of=by_name, **OPTIONS)
    assert fleet.hosts["error"] == [None] * 3
    client.gather(busy)


def test_outliers_by_the_rule():
    def named(**rates):
        rows = [{"host": host, "program": "p", "kb_per_s": rate} for host, rate in rates.items()]
        return {one["host"] for one in measuring.outliers(rows)}

    assert named(a=100, b=101, c=99, d=50) == {"d"}
    assert named(a=100, b=101, c=99, d=300) == {"d"}
    assert named(a=100, b=101, c=50) == {"c"}
    # Of two nobody can say which; and hosts that differ by a percent are alike.
    assert named(a=100, b=50) == set()
    assert named(a=100.0, b=100.0, c=101.0) == set()
    assert named(a=80, b=100, c=120, d=140) == set()
    # By hand: logarithms 0, 0, 0 and ln 2; spread 0, taken for 1 %.
    assert measuring.scores([1, 1, 1, 2])[3] == pytest.approx(0.6745 * 0.693147 / 0.01, rel=1e-4)
    fleet = measuring.Fleet(
        [{"host": host} for host in "abcd"],
        {
            host: {"results": [{"program": "p", "kb_per_s": rate}]}
            for host, rate in zip("abcd", (100, 101, 99, 50))
        },
    )
    assert fleet.hosts["outlier"][:3] == [None] * 3
    assert "p 50 KB/s, 0.50 of the median" in fleet.hosts["outlier"][3]
    assert "OUTLIER" in str(fleet)
