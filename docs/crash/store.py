#!/usr/bin/env python3
"""Runs of diskperf whose store is on the drive: a workload of `diskperf crash`, and its check.

usage: store.py write [RUNS REPETITIONS]
       store.py check

A repetition is durable when the progress display shows that the next one has started, and the
last one when the run has ended. The check opens the store, finds the database sound, and finds
every repetition that was marked durable. DISKPERF is the program, else `diskperf`."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import sys
import tempfile

DISKPERF = os.environ.get("DISKPERF", "diskperf")
STORE = "runs.sqlite"

# A repetition of 0.2 s: the display shows each one.
JOB = """[job]
rw=write
bs=4k
size=64k
rate_iops=80
"""


def read_terminal(terminal):
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux's end of a terminal that nobody has open.
        return b""


def run(mark, label, repetitions, folder):
    """Makes a run on a terminal, where diskperf shows each repetition as it starts."""
    words = ["run", f"{folder}/job.fio", "--on", folder, "--label", label]
    command = [DISKPERF, "--store", STORE, *words, "--runs", str(repetitions)]
    terminal, end = pty.openpty()
    process = subprocess.Popen(command, stdin=end, stdout=end, stderr=end)
    os.close(end)
    shown, finished = b"", 0
    while data := read_terminal(terminal):
        shown = (shown + data)[-8192:]
        started = [int(number) for number in re.findall(rb"run (\d+) of \d", shown)]
        for number in range(finished + 1, max(started, default=0)):
            mark(f"{label} {number}")
            finished = number
    if process.wait() != 0:
        sys.exit(f"`{' '.join(command)}` failed: {shown.decode(errors='replace')}")
    # A repetition that was disturbed is made again.
    mark(f"{label} {max(finished + 1, repetitions)}")


def write(runs, repetitions):
    with (
        open(os.environ["DISKPERF_MARKS"], "a") as marks,
        tempfile.TemporaryDirectory() as folder,
    ):
        with open(f"{folder}/job.fio", "w") as job:
            job.write(JOB)

        def mark(name):
            print("durable", name, file=marks, flush=True)

        for number in range(runs):
            run(mark, f"run-{number}", repetitions, folder)


def check():
    durable = [line.split() for line in open(os.environ["DISKPERF_DURABLE"])]
    command = [DISKPERF, "--store", STORE, "list", "runs", "--format", "json"]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode != 0:
        sys.exit(f"the store does not open: {listed.stderr}")
    stored = {run["label"]: run["repetitions"] for run in json.loads(listed.stdout)["runs"]}
    for label, count in durable:
        if stored.get(label, 0) < int(count):
            sys.exit(f"{label} has {stored.get(label, 0)} of {count} finished repetitions")
    sound = sqlite3.connect(STORE).execute("pragma integrity_check").fetchall()
    if sound != [("ok",)]:
        sys.exit(f"the database is damaged: {sound}")


if sys.argv[1:2] == ["write"] and len(sys.argv) in (2, 4):
    write(*([int(count) for count in sys.argv[2:]] or [2, 4]))
elif sys.argv[1:] == ["check"]:
    check()
else:
    sys.exit(__doc__)
