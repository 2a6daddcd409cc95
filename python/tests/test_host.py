"""Runs of real storage: small ones, in a folder of the test's own."""

import diskperf
import pytest


def test_a_directory_is_measured_kept_and_left_as_it_was(tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    run = diskperf.run("read_8192", on=here, size="256K", repetitions=2)
    assert (run.world, run.state, run.target) == ("host", "finished", str(here))
    (row,) = run.results.to_pylist()
    assert row["kb_per_s"] > 0
    assert row["size_bytes"] == 256 * 1024
    # Those that were disturbed are run again.
    assert set(run.repetitions["bytes"]) == {256 * 1024}
    assert len(run.repetitions["disturbed"]) == len(run.repetitions["bytes"]) >= 2
    assert len(run.ledger) == 0
    assert list(here.iterdir()) == []
    assert diskperf.open_store().runs["id"] == [run.id]


def test_a_measurement_is_not_kept_if_that_is_said(tmp_path):
    diskperf.run("read_8192", on=tmp_path, size="64K", repetitions=1, store=False)
    assert len(diskperf.open_store()) == 0


def test_a_store_that_fails_loses_no_measurement(tmp_path):
    store = tmp_path / "store.sqlite"
    store.write_text("something else")
    with pytest.warns(diskperf.StoreWarning, match="saved in") as warned:
        run = diskperf.run("read_8192", on=tmp_path, size="64K", repetitions=1, store=store)
    assert run.state == "finished"
    (path,) = tmp_path.glob("diskperf-run-*.json")
    assert str(path) in str(warned[0].message)
    assert store.read_text() == "something else"
    assert diskperf.open_store().run(str(path)).to_json() == run.to_json()


def test_spans_of_real_storage_are_refused(tmp_path):
    run = diskperf.run("read_8192", on=tmp_path, size="64K", repetitions=1)
    with pytest.raises(diskperf.RequestError, match="is of real storage"):
        run.spans()
