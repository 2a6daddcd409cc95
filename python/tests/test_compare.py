"""Runs compared from Python, and runs like earlier ones."""

import diskperf
import pytest
from conftest import VAX


def test_modelled_runs_are_compared_exactly():
    base, other, third = (
        diskperf.run("write_8192", on=on, size="64K")
        for on in (VAX, "vax750-sc750-eagle", VAX)
    )
    compared = diskperf.compare(base, other, third)
    kb_per_s = {pair["run"]: pair for pair in compared.pairs if pair["quantity"] == "kb_per_s"}
    assert kb_per_s[other.id]["verdict"] == "slower"
    assert kb_per_s[third.id]["verdict"] == "no_difference_seen"
    quotient = other.results["kb_per_s"][0] / base.results["kb_per_s"][0]
    assert kb_per_s[other.id]["ratio"] == pytest.approx(quotient)
    assert compared.gate is None
    assert compared.failures == []
    assert base.id in repr(compared)
    assert "slower" in str(compared)


@pytest.mark.parametrize(
    ("on", "fail_over", "gate"),
    [(VAX, 0.05, "kept"), ("vax750-sc750-eagle", 0.05, "exceeded"), ("vax750-sc750-eagle", 0.99, "kept")],
)
def test_a_limit_is_kept_or_not(on, fail_over, gate):
    base, other = (diskperf.run("write_8192", on=one, size="64K") for one in (VAX, on))
    compared = diskperf.compare(base, other, fail_over=fail_over)
    assert compared.gate == gate
    assert bool(compared.failures) == (gate == "exceeded")
    assert compared.to_dict()["comparison"]["gate"]["outcome"] == gate


def test_what_was_not_measured_is_missing():
    base = diskperf.run("ffs83", on=VAX, size="64K")
    other = diskperf.run("write_8192", on=VAX, size="64K")
    compared = diskperf.compare(base, other, fail_over=0.05)
    assert compared.gate == "missing"
    assert any("read_8192" in failure for failure in compared.failures)


def test_few_repetitions_cannot_tell(tmp_path):
    runs = [
        diskperf.run("read_8192", on=tmp_path, size="64K", repetitions=3, cache="warm")
        for _ in range(2)
    ]
    compared = diskperf.compare(*runs, fail_over=0.05, min_effect=0.1)
    assert compared.gate == "cannot_tell"
    # Neither does a store of one's own know more, nor none.
    for store in (False, tmp_path / "own.sqlite"):
        assert diskperf.compare(*runs, fail_over=0.05, store=store).gate == "cannot_tell"


def test_arms_are_compared_by_their_blocks(tmp_path):
    options = {"size": "64K", "cache": "warm", "blocks": 15, "store": False}
    answer = diskperf.ab(tmp_path, tmp_path, "read_8192", min_effect=0.5, fail_over=0.9, **options)
    again = diskperf.compare(answer.a, answer.b, fail_over=0.9)
    assert again.pairs == answer.pairs
    assert (again.gate, again.failures) == (answer.gate, answer.failures)
    assert again.gate in {"kept", "cannot_tell"}
    assert answer.a.to_dict()["interleaved"]["min_effect"] == 0.5


def test_a_percentage_is_no_share():
    run = diskperf.run("write_8192", on=VAX, size="64K")
    for option in ("fail_over", "min_effect"):
        with pytest.raises(diskperf.RequestError, match=rf"{option}=5.*0\.03 for 3 %"):
            diskperf.compare(run, run, **{option: 5})
        with pytest.raises(diskperf.RequestError, match=f"{option}=5"):
            diskperf.ab(VAX, VAX, "write_8192", size="64K", **{option: 5})


def test_a_run_is_like_an_earlier_one(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    first = diskperf.run(
        "read_8192", on=here, size="128K", cache="warm", seed=7, repetitions=2,
        settings={"program.call_bytes": "4K"},
    )
    again = diskperf.run(like=first, repetitions=2, label="again")
    assert (again.target, again.seed, again.label) == (str(here), 7, "again")
    (row,), (of_first,) = again.results.to_pylist(), first.results.to_pylist()
    for column in ("program", "size_bytes", "cache"):
        assert row[column] == of_first[column]
    assert again.to_dict()["results"][0]["parameters"]["call_bytes"] == "4096"
    # Elsewhere, with another setting and size besides.
    other = diskperf.run(like=first, on=there, size="64K", settings={"program.think_ns": 1}, repetitions=1)
    parameters = other.to_dict()["results"][0]["parameters"]
    assert (parameters["call_bytes"], parameters["think_ns"]) == ("4096", "1")
    assert (other.target, other.results["size_bytes"]) == (str(there), [64 * 1024])
    assert "4096" in diskperf.describe(like=first) or "read_8192" in diskperf.describe(like=first)


def test_a_modelled_run_is_like_an_earlier_one():
    first = diskperf.run("read_8192", on=VAX, size="64K", settings={"filesystem.rotdelay_ms": 4})
    again = diskperf.run(like=first)
    assert again.results["kb_per_s"] == first.results["kb_per_s"]


def test_what_the_earlier_one_decides_is_refused(tmp_path):
    first = diskperf.run("write_8192", on=VAX, size="64K")
    for options in ({"cache": "warm"}, {"seed": 7}, {"drives": 2}, {"together": True}, {"time_calls": False}):
        (name,) = options
        with pytest.raises(TypeError, match=f"takes {name} from"):
            diskperf.run(like=first, **options)
    with pytest.raises(TypeError, match="takes suite from"):
        diskperf.run("write_8192", like=first)
    with pytest.raises(TypeError, match="needs a target"):
        diskperf.run("write_8192")
    with pytest.raises(TypeError, match="takes no like"):
        diskperf.ab(tmp_path, tmp_path, "write_8192", like=first)
