#!/usr/bin/env python3
"""Programs with and without a planted bug, and their checks.

usage: programs.py write PROGRAM BUG      (BUG is `bug` or `right`)
       programs.py check PROGRAM"""

import mmap
import os
import sys
import zlib

COUNT = 5


def sync_directory(path):
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def prepared(name, size, flags=0):
    """A file that is written and synced before anything is marked."""
    file = os.open(name, os.O_CREAT | os.O_RDWR | flags)
    if os.fstat(file).st_size < size:
        os.pwrite(file, aligned(bytes(size)), 0)
        os.fsync(file)
        sync_directory(".")
    return file


def aligned(data):
    memory = mmap.mmap(-1, len(data))
    memory.write(data)
    return memory


def page(number, size):
    body = f"{number};".encode().ljust(size - 4, bytes([number + 1]))
    return zlib.crc32(body).to_bytes(4, "little") + body


def is_whole(data):
    return len(data) > 4 and zlib.crc32(data[4:]).to_bytes(4, "little") == data[:4]


def create_write(mark, bug):
    for number in range(COUNT):
        os.mkdir(f"directory-{number}")
        if not bug:
            sync_directory(".")
        mark(number)


def create_check(durable):
    for number in durable:
        if not os.path.isdir(f"directory-{number}"):
            sys.exit(f"directory {number} is lost")


def direct_write(mark, bug):
    file = prepared("direct", 4096 * COUNT, os.O_DIRECT | (0 if bug else os.O_DSYNC))
    for number in range(COUNT):
        os.pwrite(file, aligned(page(number, 4096)), 4096 * number)
        mark(number)


def direct_check(durable):
    data = open("direct", "rb").read() if durable else b""
    for number in durable:
        if data[4096 * number : 4096 * (number + 1)] != page(number, 4096):
            sys.exit(f"block {number} is lost")


def order_write(mark, bug):
    data, index = (prepared(name, 4096 * COUNT) for name in ("data", "index"))
    for number in range(COUNT):
        writes = [(data, page(number, 4096)), (index, page(number, 4096))]
        for file, block in reversed(writes) if bug else writes:
            os.pwrite(file, block, 4096 * number)
            os.fsync(file)
        mark(number)


def order_check(durable):
    if not os.path.exists("index"):
        sys.exit("the index is lost" if durable else 0)
    data, index = (open(name, "rb").read() for name in ("data", "index"))
    for number in range(COUNT):
        block = slice(4096 * number, 4096 * (number + 1))
        if index[block] == page(number, 4096) and data[block] != page(number, 4096):
            sys.exit(f"entry {number} of the index is there, and its data is not")


def torn_write(mark, bug):
    """A page of 16 KiB is written in place; or to one of two places in turn."""
    size = 16384
    file = prepared("pages", 2 * size)
    for number in range(COUNT):
        place = 0 if bug else number % 2
        os.pwrite(file, page(number, size), size * place)
        os.fsync(file)
        mark(number)


def torn_check(durable):
    if not durable:
        return
    data = open("pages", "rb").read()
    pages = [data[:16384], data[16384:]]
    whole = [page(number, 16384) for number in range(durable[-1], COUNT)]
    if not any(is_whole(one) and one in whole for one in pages):
        sys.exit(f"no page has version {durable[-1]} or a later one: it is torn")


def early_write(mark, bug):
    """A group of records is acknowledged before it is synced."""
    file = prepared("group", 4096 * COUNT)
    for number in range(COUNT):
        os.pwrite(file, page(number, 4096), 4096 * number)
        if not bug:
            os.fsync(file)
        mark(number)
        os.fsync(file)


def early_check(durable):
    data = open("group", "rb").read() if durable else b""
    for number in durable:
        if data[4096 * number : 4096 * (number + 1)] != page(number, 4096):
            sys.exit(f"record {number} is lost")


def mapped_write(mark, bug):
    file = prepared("mapped", 4096 * COUNT)
    memory = mmap.mmap(file, 4096 * COUNT)
    for number in range(COUNT):
        memory[4096 * number : 4096 * (number + 1)] = page(number, 4096)
        if not bug:
            memory.flush()
        mark(number)


def mapped_check(durable):
    data = open("mapped", "rb").read() if durable else b""
    for number in durable:
        if data[4096 * number : 4096 * (number + 1)] != page(number, 4096):
            sys.exit(f"page {number} is lost")


if sys.argv[1] == "write":
    with open(os.environ["DISKPERF_MARKS"], "a") as marks:

        def mark(number):
            print("durable", number, file=marks, flush=True)

        globals()[f"{sys.argv[2]}_write"](mark, sys.argv[3] == "bug")
else:
    globals()[f"{sys.argv[2]}_check"](
        [int(line) for line in open(os.environ["DISKPERF_DURABLE"])]
    )
