"""Replays of block traces."""

import json

import diskperf
import pytest

LINES = "".join(
    f"{128166400000000000 + 10000 * number},web,0,{'Read' if number % 4 else 'Write'},{number % 50 * 4096},4096,1000\n"
    for number in range(400)
)


@pytest.fixture
def web(tmp_path):
    path = tmp_path / "web.csv"
    path.write_text(LINES)
    return path


def test_a_replay_is_that_of_the_command_line(web, command_line):
    run = diskperf.replay(web, on="bare-sata-7200", think=True)
    printed = command_line("replay", str(web), "--on", "bare-sata-7200", "--think", "--format", "json")
    theirs = json.loads(printed)["runs"][0]["results"][0]
    assert run.to_dict()["results"][0] == theirs
    assert run.replay == theirs["replay"]
    assert run.replay["fidelity"]["max_us"] == 0
    assert run.replay["trace_latency"]["read"]["count"] == 300
    assert diskperf.run(like=run, on="bare-sas-10k").replay["trace_requests"] == 400
    assert diskperf.run("random", on="bare-fixed", size="1M", cache="direct").replay is None


def test_several_targets_and_paces(web):
    runs = diskperf.replay(web, on=["bare-sata-7200", "bare-sas-10k"], depth=4)
    pair = diskperf.compare(*runs).to_dict()["comparison"]["pairs"][0]
    assert pair["verdict"] == "slower"
    assert pair["program"].startswith("replay")
    assert "fidelity" not in runs[0].replay
    fast = diskperf.replay(web, on="bare-fixed", speed=4, window_s=(0, 0.1), scale_addresses="128K")
    assert fast.replay["trace_requests"] == 100
    with pytest.raises(TypeError, match="one of speed and think"):
        diskperf.replay(web, on="bare-fixed", speed=2, think=True)
    with pytest.raises(diskperf.RequestError, match="no such device"):
        diskperf.replay(web, on="bare-fixed", device="sda")
    with pytest.raises(diskperf.RequestError, match="scale_addresses"):
        diskperf.replay(web, on="bare-fixed", scale_addresses="x")


def test_a_replay_in_a_directory(web, tmp_path):
    (tmp_path / "target").mkdir()
    run = diskperf.replay(web, on=tmp_path / "target", speed=10, store=False)
    assert run.replay["fidelity"]["issued"] == 400
    assert not list((tmp_path / "target").iterdir())
