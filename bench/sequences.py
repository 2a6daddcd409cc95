"""Sequences of file operations, drawn from a seed by profile.

A sequence has an `id`, a `profile`, operations of `setup` and `seq`, and for each file system the
arguments of mkfs and the options of mount. The README beside crates/linux/tests/data lists the
operations. Draws follow the state of the files, so that each call succeeds."""

import random
from typing import NamedTuple

KIB = 1024

#: Arguments of mkfs and options of mount, with weights.
OPTIONS = {
    "ext4": [
        (10, [], ""),
        (1, [], "data=journal"),
        (1, [], "data=writeback"),
        (1, [], "nobarrier"),
        (1, [], "nodelalloc"),
        (1, [], "noatime"),
        (1, [], "lazytime"),
        (1, [], "discard"),
        (1, [], "sync"),
        (1, [], "journal_async_commit,data=writeback"),
        (1, ["-b", "1024"], ""),
        (1, ["-O", "fast_commit"], ""),
        (1, ["-O", "^has_journal"], ""),
    ],
    "xfs": [
        (12, [], ""),
        (3, ["-s", "size=4096"], ""),
        (1, ["-m", "reflink=0"], ""),
        (1, ["-l", "su=4096"], ""),
        (1, [], "wsync"),
        (1, [], "discard"),
        (1, [], "lazytime"),
        (1, [], "noatime"),
        (1, [], "allocsize=64k"),
    ],
}  # fmt: skip

#: Weights of the steps of each profile. A step is one operation or a few that belong together.
PROFILES = {
    "log": {"append": 8, "sync": 7, "start": 2, "overwrite": 1, "read": 1, "rename": 0.4, "truncate": 0.3, "drop": 0.3},
    "db": {"overwrite": 9, "sync": 5, "append": 1, "start": 1, "read": 1, "range": 0.5, "space": 0.5, "sleep": 0.5},
    "mail": {"deliver": 6, "unlink": 2, "directory": 2, "start": 1, "syncfs": 1, "drop": 0.5, "sleep": 0.4, "close": 1},
    "replace": {"replace": 6, "directory": 2, "start": 0.5, "sync": 1, "unlink": 0.5},
    "space": {"space": 7, "sync": 4, "overwrite": 2, "truncate": 2, "start": 1, "append": 1, "unlink": 0.3},
    "stream": {"stream": 8, "sync": 5, "start": 1, "overwrite": 1, "rename": 0.3, "read": 0.3},
    "range": {"range": 6, "append": 3, "overwrite": 3, "sync": 3, "start": 1, "stream": 1, "sleep": 0.3},
    "mixed": {
        "append": 4, "overwrite": 4, "sync": 6, "start": 2, "read": 1.5, "drop": 1, "space": 1.5, "truncate": 1,
        "range": 1, "rename": 0.7, "unlink": 0.7, "directory": 2, "syncfs": 1, "stream": 1, "close": 1,
        "sleep": 0.5, "trim": 0.3, "deliver": 0.5,
    },
}  # fmt: skip

#: Operations of a sequence beyond which no step is drawn.
OPERATIONS = (5, 30)


class Descriptor(NamedTuple):
    """Descriptor of a sequence, with the file that it was opened for."""

    name: str
    file: "File"
    direct: bool


class File:
    """A file as later draws have to know it."""

    def __init__(self, size):
        self.size = size


class Drawing:
    """One sequence while it is drawn."""

    def __init__(self, seed, identifier):
        self.random = random.Random(seed)
        self.files, self.open, self.counts = {}, [], {}
        self.directories, self.has_slept = [], False
        self.setup, self.operations = [], []
        self.profile = self.random.choice([*PROFILES, "mixed"])
        self.identifier = identifier

    def draw(self):
        for number in range(self.random.randrange(4)):
            self.prepare(f"s{number}")
        length = self.random.randint(*OPERATIONS)
        steps = PROFILES[self.profile]
        self.start()
        while len(self.operations) < length:
            getattr(self, self.random.choices(list(steps), list(steps.values()))[0])()
        drawn = {"id": self.identifier, "profile": self.profile, "setup": self.setup, "seq": self.operations}
        for system, options in OPTIONS.items():
            _, make, mount = self.random.choices(options, [weight for weight, *_ in options])[0]
            drawn[system] = {"mkopts": make, "mntopts": mount}
        return drawn

    def prepare(self, name):
        size = self.random.choice([4 * KIB, 10000, 64 * KIB, 1024 * KIB, 4096 * KIB])
        self.setup += [["open", "s", name, ["creat"]], ["pwrite", "s", 0, size], ["close", "s"]]
        self.files[name] = File(size)

    def add(self, *operation):
        self.operations.append(list(operation))

    def count(self, kind):
        """Number of names of a kind so far."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind] - 1

    def new_name(self):
        folder = self.random.choice([*self.directories, "", "", ""])
        return f"{folder}/f{self.count('f')}" if folder else f"f{self.count('f')}"

    def open_file(self, name, flags):
        file = self.files.setdefault(name, File(0))
        if "trunc" in flags:
            file.size = 0
        opened = Descriptor(f"d{self.count('d')}", file, "direct" in flags)
        self.add("open", opened.name, name, flags)
        self.open.append(opened)
        return opened

    def start(self):
        """Opens a new file, or one that exists."""
        flags = self.random.choice([[], [], [], [], ["dsync"], ["sync"], ["direct"], ["direct"], ["direct", "dsync"]])
        if self.files and self.random.random() < 0.5:
            name = self.random.choice(list(self.files))
            self.open_file(name, (["trunc"] if self.random.random() < 0.15 else []) + flags)
        else:
            self.open_file(self.new_name(), ["creat", *flags])

    def chosen(self):
        """A descriptor, mostly of those that were opened last."""
        if not self.open:
            self.start()
        return self.random.choice(self.open[-3:])

    def write(self, descriptor, offset, length):
        if descriptor.direct:
            offset = offset // 4096 * 4096
            length = max(4096, length // 4096 * 4096)
        self.add("pwrite", descriptor.name, offset, length)
        descriptor.file.size = max(descriptor.file.size, offset + length)

    def append(self):
        descriptor = self.chosen()
        lengths = [100, 512, 4096, 4096, 8192, 16384, 65536, 10000]
        gap = self.random.choice([0] * 8 + [4096, 65536])
        self.write(descriptor, descriptor.file.size + gap, self.random.choice(lengths))

    def stream(self):
        descriptor = self.chosen()
        length = self.random.choice([64, 256, 1024, 1024, 3072]) * KIB
        offset = descriptor.file.size if self.random.random() < 0.85 else self.place(descriptor, 4096)
        self.write(descriptor, offset, length)

    def place(self, descriptor, grain):
        """An offset in the file."""
        return self.random.randrange(max(1, descriptor.file.size)) // grain * grain

    def overwrite(self):
        descriptor = self.chosen()
        length = self.random.choice([100, 512, 4096, 4096, 4096, 8192, 16384, 65536, 262144])
        self.write(descriptor, self.place(descriptor, self.random.choice([1, 4096, 4096, 4096])), length)

    def read(self):
        descriptor = self.chosen()
        self.add("pread", descriptor.name, self.place(descriptor, 4096), self.random.choice([4096, 16384, 65536]))

    def sync(self):
        self.add(self.random.choice(["fsync", "fdatasync"]), self.chosen().name)

    def syncfs(self):
        self.add("syncfs")

    def trim(self):
        self.add("fstrim")

    def sleep(self):
        """Sleeps shortly, or once across the timers of 5 s."""
        is_long = not self.has_slept and self.random.random() < 0.4
        self.has_slept |= is_long
        self.add("sleep", 6.5 if is_long else 0.3)

    def drop(self):
        """Drops a file's pages, and reads it again."""
        descriptor = self.chosen()
        self.add("fadvise", descriptor.name, self.random.choice(["dontneed", "dontneed", "willneed", "random"]), 0, 0)
        self.add("pread", descriptor.name, 0, self.random.choice([4096, 16384, 65536]))

    def range(self):
        descriptor = self.chosen()
        flags = self.random.choice([["write"], ["write", "after"], ["before"], ["before", "write", "after"]])
        length = self.random.choice([0, 4096, 65536, 1024 * KIB])
        self.add("sfr", descriptor.name, self.random.choice([0, 0, self.place(descriptor, 4096)]), length, flags)

    def space(self):
        descriptor = self.chosen()
        mode = self.random.choice(["", "keep", "punch", "punch", "zero"])
        if mode == "punch":
            offset, length = self.place(descriptor, 4096), self.random.choice([4096, 4096, 65536, 1000])
        else:
            offset = self.random.choice([0, 65536, 1024 * KIB])
            length = self.random.choice([64, 1024, 4096]) * KIB
        self.add("fallocate", descriptor.name, mode, offset, length)
        if mode in ("", "zero"):
            descriptor.file.size = max(descriptor.file.size, offset + length)

    def truncate(self):
        descriptor = self.chosen()
        inside = [self.place(descriptor, 1), self.place(descriptor, 4096)]
        size = self.random.choice([0, 4096, *inside, descriptor.file.size + 65536])
        self.add("ftruncate", descriptor.name, size)
        descriptor.file.size = size

    def rename(self):
        if not self.files:
            return
        source = self.random.choice(list(self.files))
        others = [name for name in self.files if name != source]
        target = self.random.choice(others) if others and self.random.random() < 0.5 else self.new_name()
        self.add("rename", source, target)
        self.files[target] = self.files.pop(source)

    def unlink(self):
        if self.files:
            name = self.random.choice(list(self.files))
            self.add("unlink", name)
            del self.files[name]

    def close(self):
        if self.open:
            descriptor = self.open.pop(self.random.randrange(len(self.open)))
            self.add("close", descriptor.name)

    def directory(self):
        if self.random.random() < 0.2:
            self.directories.append(f"dir{self.count('dir')}")
            self.add("mkdir", self.directories[-1])
        else:
            self.add("fsyncdir", self.random.choice([*self.directories, ".", "."]))

    def deliver(self):
        """Writes a small file, mostly syncs it, and closes it."""
        descriptor = self.open_file(self.new_name(), ["creat"])
        self.write(descriptor, 0, self.random.choice([100, 4096, 10000]))
        if self.random.random() < 0.7:
            self.add("fsync", descriptor.name)
        self.add("close", descriptor.name)
        self.open.remove(descriptor)

    def replace(self):
        """Writes a new file, and renames it over another or to a new name."""
        source = self.new_name()
        descriptor = self.open_file(source, ["creat", *self.random.choice([[], ["trunc"]])])
        self.write(descriptor, 0, self.random.choice([100, 4096, 10000, 65536]))
        if self.random.random() < 0.7:
            self.add(self.random.choice(["fsync", "fdatasync"]), descriptor.name)
        if self.random.random() < 0.7:
            self.add("close", descriptor.name)
            self.open.remove(descriptor)
        others = [name for name in self.files if name != source]
        target = self.random.choice(others) if others and self.random.random() < 0.6 else self.new_name()
        self.add("rename", source, target)
        self.files[target] = self.files.pop(source)
        if self.random.random() < 0.4:
            self.add("fsyncdir", ".")


def draw(seed, count):
    """Draws sequences. Each depends on the seed and its own number alone."""
    return [Drawing(f"{seed}/{number}", f"q{number:03}").draw() for number in range(count)]
