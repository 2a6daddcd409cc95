"""A/B measurements: small ones, in a folder of the test's own."""

import diskperf
import pytest


def test_two_settings_are_measured_in_blocks_and_kept(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    answer = diskperf.ab(
        {},
        {"program.call_bytes": 512},
        "read_8192",
        on=here,
        size="64K",
        cache="warm",
        blocks=3,
        label="x",
    )
    (pair,) = answer.pairs
    assert pair["program"].startswith("read_8192")
    assert (answer.a.label, answer.b.label) == ("x-a", "x-b")
    assert answer.b.repetitions["discarded"] == [True, False, False, False]
    first, second = (run.to_dict()["interleaved"] for run in (answer.a, answer.b))
    assert (first["partner"], second["partner"]) == (answer.b.id, answer.a.id)
    assert sorted(diskperf.open_store().runs["id"]) == sorted([answer.a.id, answer.b.id])
    assert list(here.iterdir()) == []
    assert "read_8192" in str(answer)
    # A run is repeated as it was.
    again = diskperf.ab(answer.b, answer.b, blocks=1, store=False)
    assert again.a.results["size_bytes"] == [64 * 1024]
    assert len(diskperf.open_store()) == 2


def test_modelled_systems_are_compared_exactly():
    answer = diskperf.ab(
        "vax780-sc780-eagle", "vax750-sc750-eagle", "write_8192", size="64K"
    )
    assert {pair["verdict"] for pair in answer.pairs} == {"slower"}


def test_mistakes(tmp_path):
    for options, said in [
        ({"budget_s": 0}, "budget_s=0"),
        ({"min_time_s": -1}, "min_time_s=-1"),
        ({"min_time_s": 200}, "min_time_s 200s.*budget_s"),
        ({"min_effect": 3}, "min_effect=3"),
        ({"blocks": 0}, "blocks=0"),
    ]:
        with pytest.raises(diskperf.RequestError, match=said):
            diskperf.ab(tmp_path, tmp_path, "read_8192", **options)
    with pytest.raises(diskperf.RequestError, match="blocks of both tell nothing"):
        diskperf.ab(tmp_path, "vax780-sc780-eagle", "read_8192")
    with pytest.raises(diskperf.RunError, match="before-b `false` failed"):
        diskperf.ab(tmp_path, tmp_path, "read_8192", size="64K", before_b="false", store=False)
