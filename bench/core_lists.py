"""The core form of lists of bios, in which runs and kernels are compared, and first differences.

Left out are reads, metadata in place and the flags s, m and a. A preflush is a flush of its own.
Touching pieces of data are joined, and pieces of the journal without a flush between. Two races of
ext4 are left out too: syncfs and unmounting count up to the first commit block, fstrim not at all."""

import re
from typing import NamedTuple


class Difference(NamedTuple):
    """First difference of a sequence: where, and the entries of both sides."""

    place: str
    call: str
    live: object
    model: object
    lists: tuple

    def mechanism(self):
        """Operation and kinds of the two entries, by which differences are grouped."""
        kinds = ["nothing" if entry is None else entry.split()[0] for entry in (self.live, self.model)]
        flags = "|".join(re.findall(r"\b(?:before|write|after|punch|zero|keep)\b", self.call))
        name = " ".join([self.call.split()[0], flags]).strip()
        return f"{name}: {kinds[0]} live, {kinds[1]} by the model"

    def text(self):
        return f"{self.place} ({self.call}): {self.live or 'nothing'} live, {self.model or 'nothing'} by the model"


class Core(NamedTuple):
    """Entry of a core form. Places and lengths are in KiB."""

    kind: str
    name: str = ""
    offset: float = 0.0
    length: float = 0.0
    fua: bool = False

    def joined(self, last):
        """This entry with the last one before it, if both are one piece. None: they are not."""
        if last is None or last[:2] != self[:2] or last.fua != self.fua or self.kind not in "WJ":
            return None
        if self.kind == "W" and last.offset + last.length != self.offset:
            return None
        return last._replace(length=last.length + self.length)

    def text(self):
        mark = " f" if self.fua else ""
        place = "" if self.kind == "J" else f"{self.offset:g}+"
        words = [] if self.kind == "F" else [*self.name.split(), f"{place}{self.length:g}"]
        return " ".join([self.kind, *words]) + mark


def parse(entry):
    """Entries of a core form that one string stands for."""
    kind, *words = entry.split()
    if kind in ("R", "MR"):
        return []
    takes_name = kind in ("W", "N", "M")
    flags = words[2 if takes_name else 1] if len(words) > (2 if takes_name else 1) and kind != "Z" else ""
    flush = [Core("F")] if "p" in flags or kind == "F" else []
    if kind in ("M", "F"):
        return flush
    offset, _, length = words[1 if takes_name else 0].rpartition("+")
    kind = "W" if kind == "N" else kind
    return [*flush, Core(kind, words[0] if takes_name else "", float(offset or 0), float(length), "f" in flags)]


def core(entries):
    """Core form of a list."""
    found = []
    for entry in entries:
        for one in parse(entry):
            joined = one.joined(found[-1]) if found else None
            found[-1:] = [joined] if joined else [*found[-1:], one]
    return [one.text() for one in found]


def cut(entries):
    """A list up to its first commit block."""
    ends = [number for number, entry in enumerate(entries) if entry.startswith("J") and entry.endswith("f")]
    return entries[: ends[0] + 1] if ends else entries


def compare(live, model, is_cut):
    """First entries that differ of two lists, as a pair. None: there is no difference."""
    live, model = core(live), core(model)
    if is_cut:
        live, model = cut(live), cut(model)
    for number in range(max(len(live), len(model))):
        pair = tuple(side[number] if number < len(side) else None for side in (live, model))
        if pair[0] != pair[1]:
            return pair
    return None


def first_difference(sequence, system, lives, model):
    """First difference of a model's lists from those of one or more live runs: an operation is equal
    if it is equal in one of them. Unmounting is compared by itself."""
    is_ext4 = system == "ext4"
    for number, operation in enumerate(sequence["seq"]):
        if is_ext4 and operation[0] == "fstrim":
            continue
        is_cut = is_ext4 and operation[0] == "syncfs"
        lists = [live["bio"][number] for live in lives]
        place = f"operation {number}", " ".join(str(word) for word in operation)
        if difference := differs(place, lists, model["bio"][number], is_cut):
            return difference
    return None


def unmount_difference(system, lives, model):
    lists = [live["umount"] for live in lives]
    return differs(("the end", "unmount"), lists, model["umount"], system == "ext4")


def differs(place, lists, model, is_cut):
    pairs = [compare(live, model, is_cut) for live in lists]
    return None if None in pairs else Difference(*place, *pairs[0], (lists[0], model))
