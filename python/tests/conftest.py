"""What the tests share: a system to run on, and the command line."""

import json
import os
import subprocess
import sys

import hypothesis
import pytest

# No test asserts a time, for the machine may be busy.
hypothesis.settings.register_profile(
    "any speed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any speed")

#: A system of 1983, on which a program takes milliseconds.
VAX = "vax780-sc780-eagle"


#: What a slow machine may need for anything, in seconds; nothing waits for it.
PATIENCE_S = 120


def sweeper(study):
    """A sweep of read_8192 by the options of a study, in which a call may change some."""
    import diskperf

    def swept(**changes):
        return diskperf.sweep(VAX, "read_8192", **{**study, **changes})

    return swept


def undisturbed_by(swept):
    """A fixture: the folder of a study by the threads of one process."""

    @pytest.fixture(scope="module")
    def undisturbed(tmp_path_factory):
        folder = tmp_path_factory.mktemp("undisturbed") / "study"
        swept(to=folder)
        return folder

    return undisturbed


def two_workers(processes):
    """A cluster of Dask's: a scheduler and two workers of one thread each."""
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=processes, dashboard_address=":0"
    )


def files(folder):
    """What is in a study's folder, by its place in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


@pytest.fixture(scope="session")
def command_line(tmp_path_factory):
    """Runs a command line and gives its standard output. ``DISKPERF_BINARY`` is the
    binary that cargo built; without it ``python -m diskperf`` stands for it."""
    data = tmp_path_factory.mktemp("data")
    binary = os.environ.get("DISKPERF_BINARY")
    program = [binary] if binary else [sys.executable, "-m", "diskperf"]

    def call(*words, code=0):
        done = subprocess.run(
            [*program, *map(str, words)],
            capture_output=True,
            text=True,
            env={**os.environ, "XDG_DATA_HOME": str(data)},
        )
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return call


@pytest.fixture(scope="session")
def command_line_json(command_line):
    """The same, read as JSON."""

    def call(*words):
        return json.loads(command_line(*words, "--format", "json"))

    return call


@pytest.fixture(autouse=True)
def own_data(tmp_path, monkeypatch):
    """No test writes into the user's own store."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
