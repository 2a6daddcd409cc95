#!/usr/bin/env python3
"""Programs with and without a planted bug, correct ones, and their checks.

usage: programs.py write PROGRAM BUG      (BUG is `bug` or `right`, the only one of some)
       programs.py check PROGRAM"""

import ctypes
import fcntl
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


def write_synced(path, data):
    """A new file, or new contents of a file, without a sync of the directory."""
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    os.write(file, data)
    os.fsync(file)
    os.close(file)


def blocks(name, durable):
    """Finds the durable blocks of a file in their places."""
    data = open(name, "rb").read() if durable else b""
    for number in durable:
        if data[4096 * number : 4096 * (number + 1)] != page(number, 4096):
            sys.exit(f"block {number} of {name} is lost")


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
    blocks("direct", durable)


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
    blocks("group", durable)


def mapped_write(mark, bug):
    file = prepared("mapped", 4096 * COUNT)
    memory = mmap.mmap(file, 4096 * COUNT)
    for number in range(COUNT):
        memory[4096 * number : 4096 * (number + 1)] = page(number, 4096)
        if not bug:
            memory.flush()
        mark(number)


def mapped_check(durable):
    blocks("mapped", durable)


def size_write(mark, bug):
    """Records grow a file. sync_file_range(2) sends the data, and neither the size nor a flush."""
    file = prepared("growing", 0)
    library = ctypes.CDLL(None)
    for number in range(COUNT):
        os.pwrite(file, page(number, 4096), 4096 * number)
        if bug:
            whole = (ctypes.c_int64(0), ctypes.c_int64(0))
            assert library.sync_file_range(file, *whole, 7) == 0
        else:
            os.fdatasync(file)
        mark(number)


def size_check(durable):
    blocks("growing", durable)


def checkpoint_write(mark, bug):
    """Pages are logged, then written to their place, then the log is emptied."""
    log, database = prepared("log", 0), prepared("database", 4096 * COUNT)
    for number in range(COUNT):
        os.pwrite(log, page(number, 4096), 0)
        os.fsync(log)
        mark(number)
        os.pwrite(database, page(number, 4096), 4096 * number)
        if not bug:
            os.fsync(database)
        os.ftruncate(log, 0)
        os.fsync(log)


def checkpoint_check(durable):
    if not durable:
        return
    log, database = (open(name, "rb").read() for name in ("log", "database"))
    for number in durable:
        places = (log, database[4096 * number : 4096 * (number + 1)])
        if page(number, 4096) not in places:
            sys.exit(f"page {number} is neither in the log nor in the database")


def fua_write(mark, bug):
    """Writes that are durable by themselves. Linux ignores O_DSYNC in fcntl(2)."""
    file = prepared("dsync", 4096 * COUNT)
    if bug:
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_DSYNC)
    for number in range(COUNT):
        flags = 0 if bug else os.RWF_DSYNC
        os.pwritev(file, [page(number, 4096)], 4096 * number, flags)
        mark(number)


def fua_check(durable):
    blocks("dsync", durable)


def swallowed_write(mark, bug):
    """Syncs fail at times. The pages count as written then, so they have to be written again."""

    def synced():
        try:
            os.fsync(file)
            return True
        except OSError:
            return bug

    file = os.open("records", os.O_CREAT | os.O_RDWR)
    synced()
    sync_directory(".")
    for number in range(COUNT):
        os.pwrite(file, page(number, 4096), 4096 * number)
        while not synced():
            os.pwrite(file, page(number, 4096), 4096 * number)
        mark(number)


def swallowed_check(durable):
    blocks("records", durable)


def truncate_write(mark, bug):
    """A file is emptied before a new version takes its place."""
    settings = prepared("settings", 0)
    os.pwrite(settings, page(0, 9000), 0)
    os.fsync(settings)
    mark(0)
    for number in range(1, COUNT):
        write_synced("settings.new", page(number, 9000))
        if bug:
            os.truncate("settings", 0)
            write_synced("notes", f"version {number} comes".encode())
        os.rename("settings.new", "settings")
        sync_directory(".")
        mark(number)


def truncate_check(durable):
    data = open("settings", "rb").read() if durable else b""
    versions = [page(number, 9000) for number in range(COUNT)]
    if durable and data not in versions[durable[-1] :]:
        sys.exit(f"version {durable[-1]} is lost: the file has {len(data)} bytes")


def rotate_write(mark, _):
    """A log of two records for each file, which is renamed when it is full."""
    for number in range(COUNT):
        log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(log, page(number, 700))
        os.fsync(log)
        sync_directory(".")
        mark(number)
        if number % 2:
            os.rename("log", f"log.{number // 2}")
            sync_directory(".")
        os.close(log)


def rotate_check(durable):
    names = [name for name in sorted(os.listdir(".")) if name.startswith("log")]
    data = b"".join(open(name, "rb").read() for name in names)
    for number in durable:
        if page(number, 700) not in data:
            sys.exit(f"record {number} is in none of {names}")


def link_write(mark, _):
    """Files that get their name when they are complete."""
    for number in range(COUNT):
        write_synced("draft", page(number, 5000))
        os.link("draft", f"article-{number}")
        os.unlink("draft")
        sync_directory(".")
        mark(number)


def link_check(durable):
    for name in os.listdir("."):
        if name.startswith("article-"):
            expected = page(int(name.split("-")[1]), 5000)
            if open(name, "rb").read() != expected:
                sys.exit(f"{name} is incomplete")
    for number in durable:
        if not os.path.exists(f"article-{number}"):
            sys.exit(f"article {number} is lost")


def superblock_write(mark, _):
    """Data that is written once, and two superblocks in turn that count it."""
    file = prepared("volume", 8192 + 4096 * COUNT)
    for number in range(COUNT):
        os.pwrite(file, page(number, 4096), 8192 + 4096 * number)
        os.fdatasync(file)
        os.pwrite(file, page(number, 512), 4096 * (number % 2))
        os.fdatasync(file)
        mark(number)


def superblock_check(durable):
    if not os.path.exists("volume"):
        sys.exit("the volume is lost" if durable else 0)
    data = open("volume", "rb").read()
    blocks_found = [data[start : start + 512] for start in (0, 4096)]
    counts = [number for number in range(COUNT) if page(number, 512) in blocks_found]
    if durable and max(counts, default=-1) < durable[-1]:
        sys.exit(f"no superblock has version {durable[-1]}")
    for number in range(max(counts, default=-1) + 1):
        if data[8192 + 4096 * number : 12288 + 4096 * number] != page(number, 4096):
            sys.exit(f"a superblock counts block {number}, which is not there")


def doublewrite_write(mark, _):
    """A page of 16 KiB in place, after a copy that repairs a torn one."""
    size = 16384
    copy, file = prepared("copy", size), prepared("pages", size)
    for number in range(COUNT):
        for target in (copy, file):
            os.pwrite(target, page(number, size), 0)
            os.fsync(target)
        mark(number)


def doublewrite_check(durable):
    if not durable:
        return
    pages = [open(name, "rb").read() for name in ("copy", "pages")]
    whole = [page(number, 16384) for number in range(durable[-1], COUNT)]
    if not any(one in whole for one in pages):
        sys.exit(f"version {durable[-1]} is neither in its place nor in the copy")


def symlink_write(mark, _):
    """Versions in directories of their own, and a link to the current one."""
    for number in range(COUNT):
        os.mkdir(f"version-{number}")
        write_synced(f"version-{number}/data", page(number, 6000))
        sync_directory(f"version-{number}")
        os.symlink(f"version-{number}", "next")
        sync_directory(".")
        os.rename("next", "current")
        sync_directory(".")
        mark(number)


def symlink_check(durable):
    if not os.path.lexists("current"):
        sys.exit("the link is lost" if durable else 0)
    number = int(os.readlink("current").split("-")[1])
    if durable and number < durable[-1]:
        sys.exit(f"version {durable[-1]} is lost: version {number} is current")
    if open("current/data", "rb").read() != page(number, 6000):
        sys.exit(f"version {number} is incomplete")


def reserved_write(mark, _):
    """Records in space that is reserved before, each synced without metadata."""
    file = prepared("reserved", 0)
    os.posix_fallocate(file, 0, 4096 * COUNT)
    os.fsync(file)
    for number in range(COUNT):
        os.pwrite(file, page(number, 4096), 4096 * number)
        os.fdatasync(file)
        mark(number)


def reserved_check(durable):
    blocks("reserved", durable)


def sector_write(mark, _):
    """Records of 512 bytes side by side, each durable when its write returns."""
    file = prepared("sectors", 4096, os.O_DIRECT | os.O_DSYNC)
    for number in range(COUNT):
        os.pwrite(file, aligned(page(number, 512)), 512 * number)
        mark(number)


def sector_check(durable):
    if durable:
        file = os.open("sectors", os.O_RDONLY | os.O_DIRECT)
    for number in durable:
        record = mmap.mmap(-1, 512)
        try:
            os.preadv(file, [record], 512 * number)
        except OSError as error:
            sys.exit(f"record {number} is unreadable: {error}")
        if record[:] != page(number, 512):
            sys.exit(f"record {number} is lost")


def replaced_tree_write(mark, _):
    """A tree of directories that is built aside, synced from its leaves up, and moved."""
    os.mkdir("trees")
    sync_directory(".")
    for number in range(COUNT):
        os.makedirs("draft/a/b")
        for path in ("draft/a/b/leaf", "draft/a/leaf"):
            write_synced(path, page(number, 3000))
        for path in ("draft/a/b", "draft/a", "draft", "."):
            sync_directory(path)
        os.rename("draft", f"trees/{number}")
        for path in ("trees", "."):
            sync_directory(path)
        mark(number)


def replaced_tree_check(durable):
    trees = os.listdir("trees") if os.path.exists("trees") else []
    for number in [int(name) for name in trees] + durable:
        for leaf in ("a/b/leaf", "a/leaf"):
            if open(f"trees/{number}/{leaf}", "rb").read() != page(number, 3000):
                sys.exit(f"tree {number} is incomplete")


if sys.argv[1] == "write":
    with open(os.environ["DISKPERF_MARKS"], "a") as marks:

        def mark(number):
            print("durable", number, file=marks, flush=True)

        globals()[f"{sys.argv[2]}_write"](mark, sys.argv[3] == "bug")
else:
    globals()[f"{sys.argv[2]}_check"](
        [int(line) for line in open(os.environ["DISKPERF_DURABLE"])]
    )
