"""The interpreter's lock while a model runs, and Ctrl-C."""

import signal
import subprocess
import sys
import threading

import diskperf
import pytest
from conftest import VAX

#: A program that runs for very long, as one model, as many points, and on real storage.
LONG = {
    "one model": f"diskperf.run('read_8192', on='{VAX}', size='32M', repetitions=100000)",
    "many points": f"diskperf.run_points('{VAX}', 'read_8192', [{{}}] * 1000000)",
    "real storage": "diskperf.run('read_8192', on=sys.argv[1], size='1M', repetitions=100000)",
    "an explanation": f"diskperf.explain('{VAX}', repetitions=100000)",
    "a card": "[diskperf.reproduce() for _ in range(1000)]",
}


@pytest.mark.parametrize("what", LONG)
def test_ctrl_c_ends_it(what, tmp_path):
    program = f"""
import sys, diskperf
print("begun", flush=True)
try:
    {LONG[what]}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "begun\n"
    # It is in the middle of it after a moment; if it is not, it ends all the same.
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(timeout=1)
    child.send_signal(signal.SIGINT)
    # A child that does not end fails this by the timeout of a minute, which no
    # machine is too slow for.
    rest, _ = child.communicate(timeout=60)
    assert rest == "interrupted\n"
    assert child.returncode == 3
    # What was made on real storage is gone; the store is somewhere else.
    assert [path.name for path in tmp_path.iterdir() if path.name != "data"] == []


def test_others_go_on_while_models_run():
    """Two threads run models, and count how often a third one moved on meanwhile."""
    counter = 0
    done = threading.Event()

    def count():
        nonlocal counter
        while not done.is_set():
            counter += 1

    seen = []

    def model():
        before = counter
        diskperf.run_points(VAX, "ffs83", [{}] * 5)
        seen.append(counter - before)

    counting = threading.Thread(target=count)
    models = [threading.Thread(target=model) for _ in range(2)]
    counting.start()
    for thread in models:
        thread.start()
    for thread in models:
        thread.join()
    done.set()
    counting.join()
    # With the lock held all the time, none could have come in between.
    assert len(seen) == 2 and min(seen) > 1000


def test_threads_have_the_results_of_one():
    expected = diskperf.run_points(VAX, "ffs83", [{}], seeds=5).to_pylist()
    found = []
    threads = [
        threading.Thread(
            target=lambda: found.append(diskperf.run_points(VAX, "ffs83", [{}], seeds=5).to_pylist())
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_a_handler_of_the_users_own_is_heard():
    """Not Ctrl-C alone: whatever a handler raises ends the work."""

    class Enough(Exception):
        pass

    def enough(*_):
        raise Enough

    before = signal.signal(signal.SIGALRM, enough)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Enough):
            diskperf.run("read_8192", on=VAX, size="32M", repetitions=100_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
