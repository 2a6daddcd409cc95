#!/usr/bin/env python3
"""A file that is replaced as a whole: a workload of `diskperf crash`, and its check.

usage: replace.py write [--without-fsync] [--without-directory-fsync] [--in-place]
       replace.py check

A version is written to a new file, synced, renamed over the old one, and durable when the
fsync of the directory returns. The check finds a whole version, no older than the last one
that was marked durable."""

import os
import sys

VERSIONS = 6
BYTES = 9000


def contents(version):
    return (f"version {version}\n" * BYTES).encode()[:BYTES]


def sync_directory(path):
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def note(text):
    """Writes a synced line to a file of its own, as programs do that keep a log."""
    log = os.open("notes", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(log, (text + "\n").encode())
    os.fsync(log)
    os.close(log)


def replace(version, options):
    name = "settings" if "--in-place" in options else "settings.new"
    file = os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    note(f"writing version {version}")
    os.write(file, contents(version))
    if "--without-fsync" not in options:
        os.fsync(file)
    os.close(file)
    if name != "settings":
        os.rename(name, "settings")
    if "--without-directory-fsync" not in options:
        sync_directory(".")


def write(options):
    with open(os.environ["DISKPERF_MARKS"], "a") as marks:
        for version in range(VERSIONS):
            replace(version, options)
            print("durable", version, file=marks, flush=True)


def check():
    durable = [int(line) for line in open(os.environ["DISKPERF_DURABLE"])]
    if not os.path.exists("settings"):
        sys.exit("the file is lost" if durable else 0)
    data = open("settings", "rb").read()
    versions = [version for version in range(VERSIONS) if data == contents(version)]
    if not versions:
        sys.exit(f"the file is no whole version: it has {len(data)} bytes")
    if durable and versions[0] < durable[-1]:
        sys.exit(f"version {durable[-1]} is lost: the file has version {versions[0]}")


if sys.argv[1:2] == ["write"]:
    write(sys.argv[2:])
elif sys.argv[1:] == ["check"]:
    check()
else:
    sys.exit(__doc__)
