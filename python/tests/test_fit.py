"""Free parameters from observations."""

import math
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import diskperf
import fit_trials
import numpy as np
import pytest
from conftest import VAX
from diskperf._fit.search import softened

COPY = ("host.copy_ms_per_kb", 0.3, 1.2)
CALL = ("kernel.read_write_ms", 0.1, 2.0, None, "log")
TRUE_COPY, TRUE_CALL = 0.8, 0.6
SIZE = "512K"


def observed(noise=0.02, seed=1, **more):
    """The numbers of a VAX with other costs than the catalogue's, and noise."""
    random = np.random.default_rng(seed)
    settings = {"host.copy_ms_per_kb": TRUE_COPY, "kernel.read_write_ms": TRUE_CALL}
    rows = diskperf.run_points(VAX, "ffs83", [settings], size=SIZE, repetitions=2).to_pylist()
    return [
        diskperf.Observation("ffs83", row[metric] * (1 + noise * random.standard_normal()), metric,
                             uncertainty=0.02, program=row["program"], **more)
        for row in rows
        for metric in ("kb_per_s", "processor_ns", "elapsed_ns")
    ]  # fmt: skip


def fitted(observations=None, free=(COPY, CALL), **options):
    return diskperf.fit(VAX, observed() if observations is None else observations, free,
                        **{"size": SIZE, "repetitions": 2, "restarts": 1, **options})  # fmt: skip


@pytest.fixture(scope="module")
def found():
    return fitted()


def test_parameters_are_found_with_intervals(found):
    rows = {row["key"]: row for row in found.parameters}
    for (key, *_), value in ((COPY, TRUE_COPY), (CALL, TRUE_CALL)):
        row = rows[key]
        assert row["determined"] == "yes"
        assert row["low"] <= row["value"] <= row["high"]
        assert row["low"] <= value <= row["high"], row
    # The cost of each kilobyte is what all twelve numbers hang on.
    assert rows[COPY[0]]["high"] / rows[COPY[0]]["low"] < 1.4
    assert found.system["host.copy_ms_per_kb"] == repr(found.values["host.copy_ms_per_kb"])


def test_every_observation_is_accounted_for(found):
    rows = found.observations.to_pylist()
    assert len(rows) == 12 and sum(row["held_out"] for row in rows) == 2
    kept = [row for row in rows if not row["held_out"]]
    assert math.isclose(found.chi_squared, sum(row["residual"] ** 2 for row in kept))
    for row in rows:
        assert math.isclose(row["error"], row["modelled"] / row["observed"] - 1)
        assert math.isclose(row["residual"], math.log(row["modelled"] / row["observed"]) / 0.02)
    held_out = [row["error"] for row in rows if row["held_out"]]
    assert math.isclose(found.held_out_error, math.sqrt(np.mean(np.square(held_out))))
    assert found.held_out_error < 0.06
    shares = found.information.to_pylist()
    assert {row["observation"] for row in shares} == {row["observation"] for row in kept}
    assert all(-1e-9 <= row["share"] < 1 for row in shares)
    matrix = np.array([found.correlations[key] for key in found.values])
    assert np.allclose(np.diag(matrix), 1) and np.allclose(matrix, matrix.T)


def test_it_says_in_words_what_it_found(found):
    text = str(found)
    assert "host.copy_ms_per_kb" in text and "2 held out: error" in text


def test_the_executor_changes_nothing(found):
    class Backwards:
        def map(self, function, items):
            return list(reversed([function(item) for item in reversed(items)]))

    with ThreadPoolExecutor(3) as threads:
        for executor in (Backwards(), threads):
            assert fitted(executor=executor).parameters.to_pydict() == found.parameters.to_pydict()


def test_a_client_of_an_address_is_closed_again(found):
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        there = fitted(executor=cluster.scheduler_address)
        clients = [name for name in cluster.scheduler.clients if name != "fire-and-forget"]
    assert there.parameters.to_pydict() == found.parameters.to_pydict()
    assert clients == []


@pytest.mark.skipif(os.name != "posix", reason="processes that fork")
def test_processes_can_carry_it_out():
    import multiprocessing

    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        apart = fitted(free=[COPY], method="differential-evolution", generations=2, executor=processes)
    here = fitted(free=[COPY], method="differential-evolution", generations=2)
    assert apart.parameters.to_pydict() == here.parameters.to_pydict()
    # The cost of a call, which is not free, is another in truth: the copies carry it.
    assert here.parameters["determined"] == ["yes"] and here.values[COPY[0]] > TRUE_COPY


def test_what_the_data_do_not_tell_is_said():
    # The drive of a program that reads from the start to the end hardly seeks.
    free = [COPY, ("drive.seek_maximum_ms", 34, 37)]
    one = fitted(free=free)
    row = one.parameters.to_pylist()[1]
    assert row["determined"] == "no" and row["low"] is None and row["high"] is None
    assert any("drive.seek_maximum_ms is not determined" in note for note in one.notes)
    assert one.parameters["determined"][0] == "yes"


def test_what_is_known_beforehand_counts_beside_the_data():
    known = diskperf.Free("drive.seek_maximum_ms", 30, 42, start=35.5, prior_spread=1)
    sure = diskperf.Free(*COPY, start=TRUE_COPY * 1.4, scale="log", prior_spread=1.02)
    one = fitted(free=[sure, known])
    copy, seek = one.parameters.to_pylist()
    assert seek["determined"] == "by its prior" and seek["value"] == pytest.approx(35.5, abs=1)
    assert any("drive.seek_maximum_ms is close to its expected value" in note for note in one.notes)
    # A strong one draws the value from where the data alone have it.
    assert TRUE_COPY * 1.1 < copy["value"] < TRUE_COPY * 1.4


def test_a_model_that_cannot_be_right_widens_its_intervals():
    # Half of the numbers are a tenth off, where they are said to be sure to 2 %.
    wrong = observed(noise=0)
    wrong = [
        diskperf.Observation(one.suite, one.value * (1.1 if place % 2 else 0.9), one.metric,
                             uncertainty=0.02, program=one.program)
        for place, one in enumerate(wrong)
    ]  # fmt: skip
    one = fitted(wrong, hold_out=0)
    assert one.scale > 2
    assert any("differs from the observations" in note for note in one.notes)
    assert one.held_out_error is None


@pytest.mark.parametrize("blocks", [4, 12, 50])
def test_intervals_hold_the_true_value(blocks):
    """4 parameters and 30 observations for each height of the jumps, 5 trials of each of
    four sets of true values. bench/fit makes 40 of each."""
    truths = [(0.55, 0.6, 0.6, 3700), (0.8, 0.4, 0.9, 3500), (0.7, 0.3, 0.5, 4100), (0.6, 1.0, 0.4, 3601)]
    several = [
        fit_trials.outcome(fit_trials.Additive(blocks), truth, 5, first_seed=100 * number)
        for number, truth in enumerate(truths)
    ]
    held = np.concatenate([one.held[one.stated] for one in several])
    assert len(held) > 0.9 * 80
    assert 0.88 <= held.mean(), [str(one) for one in several]
    assert np.median(np.concatenate([one.ratios for one in several])) < 3


def test_intervals_of_a_modelled_disk_hold_the_true_value():
    one = fit_trials.outcome(fit_trials.vax("512K"), (0.55, 0.6, 0.6, 3700), 1)
    # With 95 % each, more than one of four missed is a chance of one in seventy.
    assert one.held.sum() >= 3, str(one)
    assert np.median(one.ratios) < 3, str(one)


def test_what_nothing_explains_bends_a_soft_loss_less():
    wrong = observed(noise=0)
    wrong[0] = diskperf.Observation("ffs83", wrong[0].value * 2, wrong[0].metric,
                                    uncertainty=0.02, program=wrong[0].program)  # fmt: skip
    off = {
        loss: abs(fitted(wrong, hold_out=0, loss=loss).values[COPY[0]] / TRUE_COPY - 1)
        for loss in ("linear", "cauchy")
    }
    assert off["cauchy"] < off["linear"] / 2, off
    rows = np.array([[-0.01, 100.0]])
    for loss, most in (("soft-l1", 200), ("cauchy", 10)):
        counted = softened(rows, loss)
        assert math.isclose(counted[0, 0], -0.01, rel_tol=1e-3) and counted[0, 1] ** 2 < most
    assert softened(rows, "linear") is rows
    with pytest.raises(diskperf.RequestError, match="loss='huber': give 'linear', 'soft-l1' or 'cauchy'"):
        fitted(loss="huber")


def test_a_catalogue_has_what_was_found(found, tmp_path, command_line_json):
    path, = found.to_catalogue(tmp_path / "mine")
    assert path == str(tmp_path / "mine" / "systems" / VAX / "fitted.toml")
    assert os.listdir(os.path.dirname(path)) == ["fitted.toml"]
    system = diskperf.Catalogue(tmp_path / "mine").system(f"{VAX}:fitted")
    rows = {row["path"]: row for row in system.parameters}
    for key, value in found.values.items():
        assert float(rows[key]["value"]) == value
        assert rows[key]["source"].startswith("fitted: on 10 observations, error ")
        assert "95 % interval" in rows[key]["source"]
    words = ["run", "read_8192", "--on", f"{VAX}:fitted", "--size", "256K"]
    by_line = command_line_json(*words, "--catalogue", tmp_path / "mine")["runs"][0]["results"][0]
    by_hand = diskperf.run("read_8192", on=VAX, size="256K", settings=found.values)
    assert math.isclose(by_line["kb_per_s"], by_hand.results["kb_per_s"][0], rel_tol=1e-3)


def test_a_catalogue_that_cannot_be_written_is_refused(found, tmp_path):
    (tmp_path / "systems").write_text("a file")
    with pytest.raises(diskperf.FileError, match="systems"):
        found.to_catalogue(tmp_path)
    with pytest.raises(diskperf.RequestError, match="no name of a variant"):
        found.to_catalogue(tmp_path, "../x")


def test_observations_of_a_card_and_of_a_run():
    card = diskperf.reproduce("kridle-mckusick-1983", cell="*/T2/vax780-sc780-eagle/8K/*/1*")
    printed = diskperf.observations_of_card(card)
    assert len(printed) == 8
    rate = next(one for one in printed if one.name.endswith("8K/read_8192/1"))
    assert (rate.metric, rate.on, rate.settings) == ("kb_per_s", VAX, {"filesystem": "8k"})
    run = diskperf.run("ffs83", on=VAX, size="256K")
    measured = diskperf.observations_of_run(run, ["kb_per_s", "elapsed_s"])
    assert [one.value for one in measured][::2] == run.results["kb_per_s"]
    assert {one.program for one in measured} == set(run.results["program"])
    rows = diskperf.observations_of_rows([{"suite": "read_8192", "value": 300, "metric": None}])
    assert rows == [diskperf.Observation("read_8192", 300)]


@pytest.mark.parametrize(
    ("error", "words", "free", "more"),
    [
        (diskperf.SettingError, "copy_ms_per_kilobyte", [("host.copy_ms_per_kilobyte", 0, 1)], {}),
        (diskperf.RequestError, "lower bound 1.2 is not below", [("host.copy_ms_per_kb", 1.2, 0.3)], {}),
        (diskperf.RequestError, "finite", [("host.copy_ms_per_kb", 0, math.inf)], {}),
        (diskperf.RequestError, "start 2 is not from", [("host.copy_ms_per_kb", 0.3, 1.2, 2)], {}),
        (diskperf.RequestError, "above 0", [("host.copy_ms_per_kb", 0, 1, None, "log")], {}),
        (diskperf.RequestError, "prior_spread=0: give an amount", [(*COPY, None, "linear", False, None, 3, 0)], {}),
        (diskperf.RequestError, "prior_spread=1: give a factor", [(*COPY, None, "log", False, None, 3, 1)], {}),
        (diskperf.RequestError, "scale='cubic'", [("host.copy_ms_per_kb", 0, 1, None, "cubic")], {}),
        (diskperf.RequestError, "free twice", [COPY, COPY], {}),
        (diskperf.RequestError, "no parameter is free", [], {}),
        (diskperf.RequestError, "3 is no free parameter", [3], {}),
        (diskperf.SettingError, "at its bound 5000", [("host.copy_ms_per_kb", 0.3, 5000)], {}),
        (diskperf.RequestError, "hold_out=1", [COPY], {"hold_out": 1}),
        (diskperf.RequestError, "method='guess'", [COPY], {"method": "guess"}),
        (diskperf.RequestError, "executor=3", [COPY], {"executor": 3}),
        (diskperf.RequestError, "model_seeds", [COPY], {"model_seeds": []}),
    ],
)
def test_a_request_that_is_wrong_is_refused(error, words, free, more):
    observations = [diskperf.Observation("read_8192", 300.0), diskperf.Observation("write_8192", 300.0)]
    with pytest.raises(error, match=words):
        fitted(observations, free, **more)


def test_more_parameters_than_observations_are_refused():
    one = diskperf.Observation("read_8192", 300.0)
    with pytest.raises(diskperf.RequestError, match="2 parameters are free, and there are 1 observations"):
        fitted([one])
    with pytest.raises(diskperf.RequestError, match="of which 1 are held out"):
        fitted([one, one], hold_out=0.5)


@pytest.mark.parametrize(
    ("words", "row"),
    [
        ("observation 1 .*nothing", {"suite": "nothing"}),
        ("observation 1 .*no program `read`: it has write_4096", {"suite": "ffs83", "program": "read"}),
        ("observation 1 .*several programs", {"suite": "ffs83"}),
        ("observation 1 .*no `durable_ns`", {"suite": "read_8192", "metric": "durable_ns"}),
        ("observation 1 .*which is free", {"suite": "read_8192", "settings": {COPY[0]: 1}}),
        ("observation 1 .*drives", {"suite": "read_8192", "drives": 9}),
        ("no metric `speed`", {"suite": "read_8192", "metric": "speed"}),
        ("nan", {"suite": "read_8192", "value": math.nan}),
        ("'fast'", {"suite": "read_8192", "value": "fast"}),
        ("uncertainty is 0", {"suite": "read_8192", "uncertainty": 0}),
        ("relative=False", {"suite": "read_8192", "value": -1.0}),
        ("`valeu` is none of", {"suite": "read_8192", "valeu": 1.0}),
        ("`suite` is missing", {}),
    ],
)
def test_an_observation_that_is_wrong_is_named(words, row):
    observations = [diskperf.Observation("read_8192", 300.0), {"value": 300.0, **row}]
    with pytest.raises(diskperf.RequestError, match=words):
        fitted(observations, [COPY])
