"""What each place of a file system's image holds: data of files by tags in it, the journal and
metadata by the layout, which is read with dumpe2fs, debugfs and xfs_db, and by magic numbers."""

import os
import re
import struct
import subprocess
from typing import NamedTuple

SECTOR = 512

#: Start of each 16 bytes that a sequence writes; the file and the sector in it follow.
TAG = b"dpRq"

#: Magic numbers at the start of XFS's metadata.
XFS_KINDS = {
    b"XFSB": "sb", b"XAGF": "agf", b"XAGI": "agi", b"XAFL": "agfl", b"AB3B": "bnobt", b"AB3C": "cntbt",
    b"IAB3": "inobt", b"FIB3": "finobt", b"XDB3": "dir", b"XDD3": "dir", b"XDF3": "dir",
}  # fmt: skip


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


class Piece(NamedTuple):
    """Part of a bio: what it holds, its place there or on the device, and its length in bytes."""

    verb: str
    name: str
    offset: int
    length: int
    flags: str

    def follows(self, last):
        """Whether it continues the last piece of the same kind."""
        is_alike = last.verb in "RWJN" and last[:2] == self[:2] and last.flags == self.flags
        return is_alike and last.offset + last.length == self.offset

    def text(self):
        length = f"{self.length / 1024:g}"
        words = {
            "F": ["F"],
            "Z": ["Z", f"{self.offset / 1024:g}+{length}"],
            "J": ["J", length, self.flags],
            "M": ["M", self.name, length, self.flags],
            "MR": ["MR", self.name, length, self.flags],
        }
        data = [self.verb, self.name, f"{self.offset / 1024:g}+{length}", self.flags]
        return " ".join(words.get(self.verb, data)).strip()


class Layout:
    """Places of a file system's metadata, by bytes on the device."""

    def __init__(self, image):
        self.image = image
        self.ranges = []
        self.block_bytes = 4096

    def add(self, kind, first, count):
        self.ranges.append((first, first + count, kind))

    def kind(self, offset):
        """Kind of metadata at an offset, or `journal`. None: no fixed place."""
        return next((kind for first, end, kind in self.ranges if first <= offset < end), None)


class Ext4Layout(Layout):
    """Layout of ext4, from dumpe2fs and debugfs."""

    PLACES = {
        "sb": r"(?:Primary|Backup) superblock at (\d+)()",
        "gdt": r"Group descriptors at (\d+)-(\d+)",
        "bbm": r"Block bitmap at (\d+)()",
        "ibm": r"Inode bitmap at (\d+)()",
        "itab": r"Inode table at (\d+)-(\d+)",
    }

    def __init__(self, image):
        super().__init__(image)
        text = run("dumpe2fs", image)
        self.block_bytes = int(re.search(r"Block size:\s+(\d+)", text)[1])
        for kind, pattern in self.PLACES.items():
            for first, last in re.findall(pattern, text):
                self.add_blocks(kind, int(first), int(last or first))
        if "has_journal" in text:
            blocks = [int(word) for word in run("debugfs", "-R", "blocks <8>", image).split()]
            # The journal's own extent block may be among them: it lies outside.
            first = next(block for block in blocks if self.read(block)[:4] == b"\xc0\x3b\x39\x98")
            self.add_blocks("jsb", first, first)
            for block in blocks:
                self.add_blocks("journal", block, block)

    def add_blocks(self, kind, first, last):
        if kind == "journal" and self.ranges[-1][2] == kind and self.ranges[-1][1] == first * self.block_bytes:
            first = self.ranges.pop()[0] // self.block_bytes
        self.add(kind, first * self.block_bytes, (last - first + 1) * self.block_bytes)

    def read(self, block):
        with open(self.image, "rb") as file:
            file.seek(block * self.block_bytes)
            return file.read(self.block_bytes)

    @staticmethod
    def kind_of_content(content):
        """A block of a directory ends in an entry without a name that holds a checksum."""
        is_directory = content[-12:-4] == b"\0\0\0\0\x0c\0\0\xde"
        is_indexed = content[6:9] == b"\1\2." or content[4:9] == b"\x0c\0\1\2."
        return "dir" if is_directory or is_indexed else "?"


class XfsLayout(Layout):
    """Layout of XFS: the log by xfs_db."""

    def __init__(self, image):
        super().__init__(image)
        text = run("xfs_db", "-r", "-c", "sb 0", "-c", "print logstart logblocks agblocks agblklog", image)
        value = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", text)}
        group, block = divmod(value["logstart"], 1 << value["agblklog"])
        first = group * value["agblocks"] + block
        self.add("journal", first * self.block_bytes, value["logblocks"] * self.block_bytes)

    @staticmethod
    def kind_of_content(content):
        return "ino" if content[:2] == b"IN" else XFS_KINDS.get(content[:4], "?")


class Labels:
    """What each place of the device holds, by the tags in the image and the layout."""

    def __init__(self, image, layout):
        self.image = os.open(image, os.O_RDONLY)
        self.layout = layout
        self.names, self.known = [], {}
        #: Finds the file and offset of a place that has no tag. Zeroes that the device writes have none.
        self.locate = lambda offset: None

    def close(self):
        os.close(self.image)

    def new_file(self, path):
        """Number of a file that is created under a path; a later one of the path is `path#2`."""
        count = 1 + sum(name.split("#")[0] == path for name in self.names)
        self.names.append(path if count == 1 else f"{path}#{count}")
        return len(self.names) - 1

    @staticmethod
    def contents(file, offset, length):
        """Bytes of a file that name their place."""
        first, last = offset // SECTOR, -(-(offset + length) // SECTOR)
        sectors = (struct.pack("<4sIQ", TAG, file, sector) * (SECTOR // 16) for sector in range(first, last))
        return b"".join(sectors)[offset - first * SECTOR :][:length]

    @staticmethod
    def find_tag(block):
        """File, and the offset in it at which a block starts. None: no tag."""
        at = block.find(TAG)
        if at < 0 or at + 16 > len(block) or at % 16:
            return None
        _, file, sector = struct.unpack_from("<4sIQ", block, at)
        return file, (sector - at // SECTOR) * SECTOR

    def file_piece(self, verb, flags, offset, length, last):
        """Data of a file. A block without a tag follows the one before it, or is known from earlier."""
        block = os.pread(self.image, length, offset)
        found = self.find_tag(block)
        if not found and last and last.verb == verb and last.name in self.names:
            found = self.names.index(last.name), last.offset + last.length
        found = found or self.known.get(offset)
        if not found and "m" not in flags and self.layout.kind_of_content(block) == "?":
            found = self.locate(offset)
        if not found:
            return None
        self.known[offset] = found
        return Piece(verb, self.names[found[0]], found[1], length, flags)

    def pieces(self, event):
        """Pieces of a bio or request."""
        operation, flags = self.parse(event.operation)
        offset, length = event.sector * SECTOR, event.sectors * SECTOR
        if length == 0:
            return [Piece("F", "", 0, 0, "")]
        if operation == "D":
            return [Piece("Z", "", offset, length, "")]
        kind = self.layout.kind(offset)
        if kind == "journal":
            verb, name = ("J", "") if operation == "W" else ("MR", "journal")
            return [Piece(verb, name, offset, length, flags)]
        if kind:
            return [Piece("MR" if operation == "R" else "M", kind, offset, length, flags)]
        return self.data_pieces(operation, flags, offset, length)

    def data_pieces(self, operation, flags, offset, length):
        """Pieces of a bio that has no fixed place: data of files, or metadata that its content names."""
        pieces, step = [], min(length, self.layout.block_bytes)
        for at in range(offset, offset + length, step):
            last = pieces[-1] if pieces else None
            piece = self.file_piece(operation, flags, at, min(step, offset + length - at), last)
            if not piece:
                kind = self.layout.kind_of_content(os.pread(self.image, step, offset))
                return [Piece("MR" if operation == "R" else "M", kind, offset, length, flags)]
            join(pieces, piece)
        return pieces

    @staticmethod
    def parse(operation):
        """Operation and flags of the tracepoint's letters."""
        has_preflush = operation[0] == "F" and operation[1:2] in tuple("WRDFN")
        body = operation[1:] if has_preflush else operation
        letter, rest = body[0], body[1:]
        if rest[:1] == "Z":
            letter = "N"
        letters = {"f": "F", "s": "S", "m": "M", "a": "A"}
        flags = "".join(flag for flag, sign in letters.items() if sign in rest)
        return letter, ("p" if has_preflush else "") + flags


def join(pieces, piece):
    """Adds a piece, or joins it with the last one."""
    if pieces and piece.follows(pieces[-1]):
        pieces[-1] = pieces[-1]._replace(length=pieces[-1].length + piece.length)
    else:
        pieces.append(piece)
