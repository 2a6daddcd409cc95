"""Bios and requests that this machine's kernel makes of a sequence, by tracepoints, in the strings of
the README beside crates/linux/tests/data.

Needs root, loop devices, tracefs, mke2fs, dumpe2fs, debugfs, mkfs.xfs and xfs_db."""

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import pathlib
import re
import struct
import tempfile
import time
from typing import NamedTuple

from disk_contents import Ext4Layout, Labels, XfsLayout, join, run

#: Size of the file system.
IMAGE_BYTES = 512 << 20

#: Pause before each operation, so that each has a time stamp of its own.
PAUSE_S = 0.02

SETUP_PAUSE_S = 0.1

OPEN_FLAGS = {
    "creat": os.O_CREAT, "trunc": os.O_TRUNC, "direct": os.O_DIRECT,
    "dsync": os.O_DSYNC, "sync": os.O_SYNC, "rdonly": 0,
}  # fmt: skip

FALLOCATE_MODES = {"": 0, "keep": 1, "punch": 3, "zero": 16}
RANGE_FLAGS = {"before": 1, "write": 2, "after": 4}
ADVICE = {
    "normal": os.POSIX_FADV_NORMAL, "sequential": os.POSIX_FADV_SEQUENTIAL, "random": os.POSIX_FADV_RANDOM,
    "willneed": os.POSIX_FADV_WILLNEED, "dontneed": os.POSIX_FADV_DONTNEED,
}  # fmt: skip

FITRIM = 0xC0185879
FIEMAP = 0xC020660B

#: Extents of a file that are looked at.
EXTENTS_MAX = 512

SYSTEMS = {
    "ext4": (Ext4Layout, ["mke2fs", "-t", "ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
    "xfs": (XfsLayout, ["mkfs.xfs", "-q", "-f"]),
}

LIBC = ctypes.CDLL(None, use_errno=True)


def call(result, operation):
    """Raises the error of a call of the C library."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")


class Event(NamedTuple):
    """Bio or request of the device, as a tracepoint shows it."""

    seconds: float
    is_request: bool
    operation: str
    sector: int
    sectors: int


class Trace:
    """An instance of tracefs that records the bios and requests of one device at a time."""

    PATTERN = re.compile(r" (\d+\.\d+): block_(bio_queue|rq_issue): \S+ (\w+) (?:\d+ )?\(?[^()]*?\)? ?(\d+) \+ (\d+) ")

    def __init__(self, folder):
        self.folder = folder
        self.write("trace_clock", "mono")
        self.pipe = os.open(folder / "trace_pipe", os.O_RDONLY | os.O_NONBLOCK)

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def watch(self, device):
        """Records one device from here on, given by its number."""
        number = os.major(device) << 20 | os.minor(device)
        for event in ("block_bio_queue", "block_rq_issue"):
            self.write(f"events/block/{event}/filter", f"dev == {number}")
            self.write(f"events/block/{event}/enable", "1")
        self.take()

    def take(self):
        """Returns the events since the last call."""
        text = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.pipe, 1 << 16):
                text += part
        if b"LOST" in text:
            raise RuntimeError("the kernel's buffer of events was too small: events are lost")
        lines = [line for line in text.decode().splitlines() if "block_" in line]
        return [self.parse(line) for line in lines]

    def parse(self, line):
        found = self.PATTERN.search(line)
        if not found:
            raise RuntimeError(f"the line of a tracepoint has another form: {line}")
        seconds, event, operation, sector, sectors = found.groups()
        return Event(float(seconds), event == "rq_issue", operation, int(sector), int(sectors))


@contextlib.contextmanager
def tracing():
    """An instance of tracefs, which is removed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        run("mount", "-t", "tracefs", "tracefs", folder)
        instance = pathlib.Path(folder) / "instances" / f"request-lists-{os.getpid()}"
        try:
            instance.mkdir()
            trace = Trace(instance)
            try:
                yield trace
            finally:
                os.close(trace.pipe)
        finally:
            if instance.exists():
                instance.rmdir()
            run("umount", folder)


def extents(descriptor):
    """Extents of a file: offset in it, place on the device and length, in bytes."""
    buffer = bytearray(32 + 56 * EXTENTS_MAX)
    struct.pack_into("=QQIIII", buffer, 0, 0, 2**64 - 1, 0, 0, EXTENTS_MAX, 0)
    fcntl.ioctl(descriptor, FIEMAP, buffer, True)
    (count,) = struct.unpack_from("=I", buffer, 20)
    return [struct.unpack_from("=QQQ", buffer, 32 + 56 * number) for number in range(count)]


class Mounted:
    """A fresh file system on a loop device, and the calls of a sequence on it."""

    def __init__(self, mount, labels):
        self.mount = mount
        self.labels = labels
        self.open, self.files = {}, {}
        labels.locate = self.locate
        self.root = os.open(mount, os.O_RDONLY)

    def close_files(self):
        for descriptor, *_ in self.open.values():
            os.close(descriptor)
        self.open = {}

    def close(self):
        """Unmounts, once."""
        self.close_files()
        if self.root is not None:
            os.close(self.root)
            self.root = None
            run("umount", self.mount)

    def locate(self, offset):
        """File and offset in it of a place on the device, among the open files."""
        for descriptor, file, _ in self.open.values():
            for logical, physical, length in extents(descriptor):
                if physical <= offset < physical + length:
                    return file, logical + offset - physical
        return None

    def call(self, operation):
        name, *arguments = operation
        getattr(self, f"call_{name}")(*arguments)

    def call_open(self, name, path, flags):
        # A file that is created now has a name of its own in the lists.
        if not os.path.exists(self.mount / path):
            self.files[path] = self.labels.new_file(path)
        bits = os.O_RDONLY if "rdonly" in flags else os.O_RDWR
        for flag in flags:
            bits |= OPEN_FLAGS[flag]
        self.open[name] = os.open(self.mount / path, bits, 0o644), self.files[path], "direct" in flags

    def call_close(self, name):
        os.close(self.open.pop(name)[0])

    def call_pwrite(self, name, offset, length):
        descriptor, file, _ = self.open[name]
        # O_DIRECT needs memory at a page's boundary.
        with mmap.mmap(-1, length) as memory:
            memory.write(self.labels.contents(file, offset, length))
            if os.pwrite(descriptor, memory, offset) != length:
                raise OSError(errno.EIO, f"pwrite {name} {offset} {length} was short")

    def call_pread(self, name, offset, length):
        with mmap.mmap(-1, length) as memory:
            os.preadv(self.open[name][0], [memory], offset)

    def call_fsync(self, name):
        os.fsync(self.open[name][0])

    def call_fdatasync(self, name):
        os.fdatasync(self.open[name][0])

    def call_fsyncdir(self, path):
        descriptor = os.open(self.mount / path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def call_syncfs(self):
        call(LIBC.syncfs(self.root), "syncfs")

    def call_rename(self, source, target):
        os.rename(self.mount / source, self.mount / target)
        self.files[target] = self.files.pop(source)

    def call_unlink(self, path):
        os.unlink(self.mount / path)

    def call_mkdir(self, path):
        os.mkdir(self.mount / path)

    def call_fallocate(self, name, mode, offset, length):
        words = ctypes.c_long(offset), ctypes.c_long(length)
        call(LIBC.fallocate(self.open[name][0], FALLOCATE_MODES[mode], *words), f"fallocate {name} {mode}")

    def call_ftruncate(self, name, size):
        os.ftruncate(self.open[name][0], size)

    def call_sfr(self, name, offset, length, flags):
        bits = sum(RANGE_FLAGS[flag] for flag in flags)
        words = ctypes.c_long(offset), ctypes.c_long(length)
        call(LIBC.sync_file_range(self.open[name][0], *words, bits), f"sync_file_range {name}")

    def call_fadvise(self, name, advice, offset, length):
        os.posix_fadvise(self.open[name][0], offset, length, ADVICE[advice])

    def call_fstrim(self):
        fcntl.ioctl(self.root, FITRIM, struct.pack("QQQ", 0, 2**64 - 1, 0))

    def call_sleep(self, seconds):
        time.sleep(seconds)


@contextlib.contextmanager
def loop_device(folder, read_ahead_kib):
    """A loop device over a sparse file, with write cache and without FUA."""
    image = pathlib.Path(folder) / "image"
    with open(image, "wb") as file:
        file.truncate(IMAGE_BYTES)
    device = run("losetup", "--find", "--show", image).strip()
    try:
        queue = pathlib.Path("/sys/block") / pathlib.Path(device).name / "queue"
        settings = {"scheduler": "none", "max_sectors_kb": "1280", "read_ahead_kb": str(read_ahead_kib)}
        for name, value in settings.items():
            (queue / name).write_text(value)
        found = [(queue / name).read_text().strip() for name in ("write_cache", "fua")]
        if found != ["write back", "0"]:
            raise RuntimeError(f"{device} has write_cache and fua {found}, not write back and 0")
        yield image, device
    finally:
        run("losetup", "--detach", device)


class Recorder:
    """Runs sequences on this machine, and lists what its kernel makes of them."""

    def __init__(self, trace, folder, read_ahead_kib):
        self.trace = trace
        self.folder = folder
        self.read_ahead_kib = read_ahead_kib

    def record(self, sequence, system):
        """Lists of a sequence on a file system."""
        layout_class, make = SYSTEMS[system]
        options = sequence[system]
        with contextlib.ExitStack() as stack:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder)))
            image, device = stack.enter_context(loop_device(folder, self.read_ahead_kib))
            run(*make, *options["mkopts"], device)
            run("sync", device)
            labels = stack.enter_context(contextlib.closing(Labels(image, layout_class(image))))
            (folder / "mount").mkdir()
            mount = ["-o", options["mntopts"]] if options["mntopts"] else []
            run("mount", "-t", system, *mount, device, folder / "mount")
            mounted = stack.enter_context(contextlib.closing(Mounted(folder / "mount", labels)))
            self.trace.watch(os.stat(device).st_rdev)
            lists = self.run(sequence, mounted, labels)
            mounted.close_files()
            time.sleep(PAUSE_S)
            closed = self.describe(labels)["bio"]
            mounted.close()
            return {**lists, "umount": closed + self.describe(labels)["bio"]}

    def run(self, sequence, mounted, labels):
        for operation in sequence["setup"]:
            mounted.call(operation)
        mounted.call_syncfs()
        time.sleep(SETUP_PAUSE_S)
        self.describe(labels)
        lists = {"bio": [], "req": [], "seconds": []}
        time.sleep(PAUSE_S)
        self.describe(labels)
        for operation in sequence["seq"]:
            mounted.call(operation)
            time.sleep(PAUSE_S)
            for name, found in self.describe(labels).items():
                lists[name].append(found)
        return lists

    def describe(self, labels):
        """Bios and requests since the last call, as strings, and the times of the bios."""
        bios, requests, seconds = [], [], []
        for event in self.trace.take():
            pieces = labels.pieces(event)
            if event.is_request:
                requests += pieces
                continue
            seconds.append(event.seconds)
            for piece in pieces:
                join(bios, piece)
        texts = {name: [piece.text() for piece in found] for name, found in (("bio", bios), ("req", requests))}
        return {**texts, "seconds": seconds}
