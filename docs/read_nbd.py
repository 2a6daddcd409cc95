"""Reads sectors of an NBD server, one after the other: a client in a few lines.

usage: read_nbd.py SOCKET COUNT MILLISECONDS"""

import socket
import struct
import sys
import time

SECTOR_BYTES = 512


def receive(server, size):
    """Exactly so many bytes."""
    data = b""
    while len(data) < size:
        part = server.recv(size - len(data))
        if not part:
            raise EOFError("the server closed the connection")
        data += part
    return data


def connect(path):
    """A connection in the transmission phase, and the size of the export."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    magic, option_magic, _flags = struct.unpack(">8s8sH", receive(server, 18))
    assert (magic, option_magic) == (b"NBDMAGIC", b"IHAVEOPT")
    # Fixed newstyle without zeroes, then option 1: the export of the empty name.
    server.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
    size, _flags = struct.unpack(">QH", receive(server, 10))
    return server, size


def read_sector(server, number):
    """Milliseconds until the answer to a read came, and its error: 0 of success, 5 of EIO."""
    start = time.perf_counter()
    header = (0x25609513, 0, 0, number, number * SECTOR_BYTES, SECTOR_BYTES)
    server.sendall(struct.pack(">IHHQQI", *header))
    magic, error, cookie = struct.unpack(">IIQ", receive(server, 16))
    assert (magic, cookie) == (0x67446698, number)
    if error == 0:
        receive(server, SECTOR_BYTES)
    return 1e3 * (time.perf_counter() - start), error


def main():
    path, count, at_least_ms = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    server, size = connect(path)
    reads = [read_sector(server, number) for number in range(count)]
    server.close()
    slow = sum(ms >= at_least_ms for ms, _ in reads)
    failed = sum(error != 0 for _, error in reads)
    note = f", {failed} failed" if failed else ""
    print(f"{slow} of {count} reads on {size} bytes took {at_least_ms:g} ms or more{note}")


if __name__ == "__main__":
    main()
