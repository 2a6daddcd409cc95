#!/usr/bin/env python3
"""Records that are appended to a file: a workload of `diskperf crash`, and its check.

usage: append.py write [--without-fsync]
       append.py check

Each record is durable when the fsync after it returns. The check finds every record that
was marked durable, whole and in its place."""

import os
import sys

RECORDS = 6
RECORD_BYTES = 512


def record(number):
    return str(number).encode().rjust(RECORD_BYTES, b".")


def sync_directory(path):
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def write(is_synced):
    log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    sync_directory(".")
    with open(os.environ["DISKPERF_MARKS"], "a") as marks:
        for number in range(RECORDS):
            os.write(log, record(number))
            if is_synced:
                os.fsync(log)
            print("durable", number, file=marks, flush=True)


def check():
    durable = [int(line) for line in open(os.environ["DISKPERF_DURABLE"])]
    data = open("log", "rb").read() if os.path.exists("log") else b""
    for number in durable:
        if data[number * RECORD_BYTES : (number + 1) * RECORD_BYTES] != record(number):
            sys.exit(f"record {number} is lost: the file has {len(data)} bytes")


if sys.argv[1:2] == ["write"]:
    write("--without-fsync" not in sys.argv)
elif sys.argv[1:] == ["check"]:
    check()
else:
    sys.exit(__doc__)
