"""Metrics of a served drive, read by the parser of Prometheus."""

import os
import socket
import struct
import subprocess
import sys
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

FAULTS = """
[[fault]]
name = "worn"
kind = "slow_drive"
factor = 2
"""

#: A read of 512 bytes at the start, by the oldest option of the handshake.
READ = struct.pack(">IHHQQI", 0x25609513, 0, 0, 1, 0, 512)


@pytest.fixture
def served(tmp_path):
    """A served drive with a fault: its socket, and the address of its page."""
    binary = os.environ.get("DISKPERF_BINARY")
    program = [binary] if binary else [sys.executable, "-m", "diskperf"]
    faults = tmp_path / "faults.toml"
    faults.write_text(FAULTS)
    path = str(tmp_path / "socket")
    words = ["serve", "fixed", "--socket", path, "--http", "127.0.0.1:0", "--fault", str(faults)]
    process = subprocess.Popen([*program, *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        for line in process.stderr:
            if "watch it at " in line:
                yield path, line.split("watch it at ")[1].split(";")[0]
                break
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


def samples(url):
    """The samples by name and labels."""
    with urllib.request.urlopen(f"{url}metrics") as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


def read_sector(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        stream = client.makefile("rwb")
        stream.read(18)
        stream.write(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
        stream.flush()
        stream.read(10)
        stream.write(READ)
        stream.flush()
        assert len(stream.read(16 + 512)) == 16 + 512


def test_metrics_are_open_metrics_and_count_requests(served):
    path, url = served
    before = samples(url)
    assert before["diskperf_served_drive_info", ("drive", "fixed"), ("version", "0.1.0")] == 1
    assert before["diskperf_served_connections_total",] == 0
    for _ in range(3):
        read_sector(path)
    after = samples(url)
    read = ("operation", "read")
    assert after["diskperf_served_connections_total",] == 3
    assert after["diskperf_served_requests_total", read] == 3
    assert after["diskperf_served_moved_bytes_total", read] == 3 * 512
    assert after["diskperf_served_service_seconds_count", read] == 3
    p50 = after["diskperf_served_service_seconds", read, ("quantile", "0.5")]
    assert p50 == pytest.approx(0.002, rel=0.01)
    strikes = after["diskperf_served_fault_strikes_total", ("fault", "worn"), ("kind", "slow_drive")]
    assert strikes == 3


def test_a_broken_text_is_refused(served):
    _, url = served
    with urllib.request.urlopen(f"{url}metrics") as answer:
        text = answer.read().decode()
    with pytest.raises(ValueError, match=r".*"):
        list(text_string_to_metric_families(text.replace("# EOF\n", "")))
