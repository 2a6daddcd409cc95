"""What the benchmarks share: the program that they run, what a process takes, sides that
take turns, and where results go.

DISKPERF names a program that is built already, DISKPERF_PYTHON an interpreter that has
the package; without them both are built with the profile of a release."""

import contextlib
import json
import math
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
ENVIRONMENT = ROOT / "target" / "python" / "bin"


class Results:
    """Lines that are printed and kept in `bench/results/NAME.txt`."""

    def __init__(self, name):
        RESULTS.mkdir(exist_ok=True)
        self._file = open(RESULTS / f"{name}.txt", "w")

    def add(self, line):
        print(line, flush=True)
        print(line, file=self._file, flush=True)


class Taken(NamedTuple):
    """What a process took, and what it printed."""

    seconds: float
    cpu_s: float
    peak_mb: float
    output: str


def end_in_order():
    """Has signals end the script so that what it set up is removed."""

    def end(number, _):
        raise SystemExit(f"ended by {signal.Signals(number).name}")

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, end)


def built(*words):
    """Builds a target with the profile of a release, and gives the folder that it is in."""
    subprocess.run(["cargo", "build", "--release", "--quiet", *words], check=True, cwd=ROOT)
    return ROOT / "target" / "release"


def program():
    """The path of diskperf."""
    return os.environ.get("DISKPERF") or built() / "diskperf"


def interpreter():
    """A Python that has diskperf and what the tests need."""
    if "DISKPERF_PYTHON" in os.environ:
        return os.environ["DISKPERF_PYTHON"]
    subprocess.run([ROOT / "tools" / "setup-python"], check=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--force-reinstall"]
    # pip calls maturin by its name.
    path = {**os.environ, "PATH": f"{ENVIRONMENT}:{os.environ['PATH']}"}
    subprocess.run([ENVIRONMENT / "pip", "install", *quiet, str(ROOT)], check=True, env=path)
    return str(ENVIRONMENT / "python")


def fill(path, length_bytes):
    """Writes a file that nothing can compress, to the disk."""
    with open(path, "wb") as file:
        for _ in range(length_bytes >> 20):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())


def run(command):
    """Runs a command to its end."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with process.stdout as stream:
        output = stream.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {process.returncode}")
    # Kilobytes on Linux.
    return Taken(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def in_turns(sides, rounds):
    """Calls each side once a round, so that what else the machine does disturbs all alike;
    gives for each side what it returned."""
    found = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            found[name].append(side())
    return found


def bounds(ratios):
    """Median, and the order statistics that bound it with 95 %: at least as many below and
    above as a fair coin gives in 97.5 of 100."""
    ordered, count = sorted(ratios), len(ratios)
    below, chance = 0, 0.5**count
    while below + 1 < (count + 1) // 2 and chance + math.comb(count, below + 1) * 0.5**count <= 0.025:
        below += 1
        chance += math.comb(count, below) * 0.5**count
    return statistics.median(ordered), ordered[below], ordered[-1 - below]


@contextlib.contextmanager
def loop_device(image, size, direct_io=True):
    """A loop device over a new file that is all there. Needs root."""
    fill(image, size)
    past_cache = "--direct-io=" + ("on" if direct_io else "off")
    attach = ["losetup", "--find", "--show", past_cache, str(image)]
    device = subprocess.run(attach, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def measured(binary, program, target, settings, options=()):
    """The result of one repetition of a program, as JSON has it; no store of the user's has
    it."""
    with tempfile.TemporaryDirectory() as folder:
        words = [binary, "run", program, "--on", target, "--runs", 1, "--format", "json", "--quiet", *options]
        for name, value in settings.items():
            words += ["--set", f"program.{name}={value}"]
        words += ["--store", f"{folder}/runs.sqlite"]
        output = run([str(word) for word in words]).output
    return json.loads(output)["runs"][0]["results"][0]


def ratio(found, of, over):
    """How much larger the least of one side is than that of the other: 0.1 is 10 %."""
    return min(found[of]) / min(found[over]) - 1
