"""Simulator of one disk: arm, spindle, bus, buffer and firmware, a request at a time.

The drive serves one request at a time. Times are milliseconds, angles revolutions. The
buffer holds segments of contiguous blocks; read-ahead fills the newest one while the arm
has nothing else to do. A write-back drive completes a write after its transfer and moves
the arm at once; the next request that needs the arm waits."""

import bisect
import math
from dataclasses import dataclass, field

#: Share of a revolution by which a sector's preamble lets the drive begin late. Larger than
#: what the wander of the phase adds while a track passes.
ANGLE_SLACK = 1e-4


@dataclass
class Parameters:
    """True parameters of a disk. Overheads are by kind and by the kind of the request
    before; `hit_extra_ms` is added to hits that do not continue the read before."""

    layout: object
    period_ms: float
    phase: float
    wander_ms: float
    wander_period_ms: float
    seek_table: list
    head_switch_ms: float
    write_settle_ms: float
    overhead_ms: dict
    hit_extra_ms: float
    read_completion_ms: float
    write_completion_ms: float
    block_ms: float
    zero_latency_read: bool
    zero_latency_write: bool
    write_back: bool
    cache_rule: str
    segments: int
    segment_blocks: int
    read_ahead_blocks: int
    extends_on_hit: bool
    write_clears_all: bool
    keeps_written: bool
    serves_partial: bool


@dataclass
class Segment:
    """Contiguous blocks in the buffer, from `start` up to `end`."""

    start: int
    end: int


@dataclass
class ReadAhead:
    """Read-ahead under way: `clock` is the time up to which it has been followed."""

    segment: Segment
    limit: int
    clock: float


@dataclass
class Disk:
    """State of a disk. `kinds` counts the ways in which requests were served."""

    p: Parameters
    cylinder: int = 0
    head: int = 0
    arm_free: float = 0.0
    previous: str = "R"
    read_end: int = -1
    write_end: int = -1
    segments: list = field(default_factory=list)
    read_ahead: ReadAhead = None
    kind: str = ""

    def __post_init__(self):
        self._distances = [row[0] for row in self.p.seek_table]

    def angle(self, time):
        """Angle under the head."""
        wander = self.p.wander_ms * math.sin(2 * math.pi * time / self.p.wander_period_ms)
        return (self.p.phase + (time + wander) / self.p.period_ms) % 1.0

    def seek_ms(self, distance):
        """Seek time, linear between the entries of the table."""
        table = self.p.seek_table
        at = min(max(bisect.bisect_left(self._distances, distance), 1), len(table) - 1)
        (near, low), (far, high) = table[at - 1], table[at]
        return low + (high - low) * (distance - near) / (far - near)

    def _position(self, time, extent, write):
        """Moves the arm to an extent; returns the time of arrival."""
        ms = self.seek_ms(abs(extent.cylinder - self.cylinder)) if extent.cylinder != self.cylinder else 0.0
        if extent.head != self.head:
            ms = max(ms, self.p.head_switch_ms)
        if write and (extent.cylinder, extent.head) != (self.cylinder, self.head):
            ms += self.p.write_settle_ms
        self.cylinder, self.head = extent.cylinder, extent.head
        return time + max(ms, 0.0)

    def _pass(self, time, extent, zero_latency):
        """Media transfer of an extent under the head from `time` on: the time at which its
        first sector begins, and how many sectors end the transfer after that."""
        ahead = (extent.angle - self.angle(time)) % 1.0
        if ahead > 1.0 - ANGLE_SLACK:
            ahead = 0.0
        into = math.ceil((1.0 - ahead) * extent.sectors_per_track - 1e-6)
        last = into if zero_latency and ahead > 0.0 and into < extent.count else extent.count
        return time + ahead * self.p.period_ms, last

    def _media_read(self, time, block, count, bus_done):
        """Reads blocks and sends each as soon as it is there; returns the end on the media
        and the end on the bus."""
        for extent in self.p.layout.extents(block, count):
            first, last = self._pass(self._position(time, extent, False), extent, self.p.zero_latency_read)
            sector, b = self.p.period_ms / extent.sectors_per_track, self.p.block_ms
            time = first + last * sector
            bus_done = max(bus_done + extent.count * b, first + sector + extent.count * b)
            bus_done = max(bus_done, time + (extent.count - last + 1) * b)
        return time, bus_done

    def _media_write(self, time, block, count, bus_start=-math.inf):
        """Writes blocks, of which the first crosses the bus from `bus_start` on: none reaches
        the media before it is there. Returns the end on the media."""
        for extent in self.p.layout.extents(block, count):
            arrival, b = self._position(time, extent, True), self.p.block_ms
            bus_start += extent.count * b
            # A write that may begin with any block waits for all; another one for so many that
            # the bus keeps ahead of the media.
            slower = min(b, 0.0 if self.p.zero_latency_write else self.p.period_ms / extent.sectors_per_track)
            there = bus_start - (extent.count - 1) * slower
            first, last = self._pass(max(arrival, there), extent, self.p.zero_latency_write)
            time = first + last * self.p.period_ms / extent.sectors_per_track
        return time

    def _follow_read_ahead(self, until, wanted_end=None):
        """Follows the read-ahead up to a time, or until it has read up to `wanted_end`."""
        ahead = self.read_ahead
        while ahead and ahead.segment.end < (wanted_end or ahead.limit) and (wanted_end or ahead.clock < until):
            end = wanted_end or ahead.limit
            extent = self.p.layout.extent(ahead.segment.end, end - ahead.segment.end)
            arrival = self._position(ahead.clock, extent, False)
            first, _ = self._pass(arrival, extent, False)
            sector, count = self.p.period_ms / extent.sectors_per_track, extent.count
            if not wanted_end and first + count * sector > until:
                # The sector under the head at `until` is read to its end; a seek is finished.
                count = max(0, math.ceil((until - first) / sector))
            ahead.segment.end += count
            ahead.segment.start = max(ahead.segment.start, ahead.segment.end - self.p.segment_blocks)
            ahead.clock = first + count * sector if count else max(until, arrival)
            if not count:
                return

    def _stop_read_ahead(self, time):
        """Ends the read-ahead; returns when the arm is free."""
        self._follow_read_ahead(time)
        if self.read_ahead:
            self.arm_free = max(self.arm_free, self.read_ahead.clock)
        self.read_ahead = None
        return max(self.arm_free, time)

    def _start_read_ahead(self, time, segment, block, count):
        """Begins the read-ahead behind a read, as the rule of the buffer allows."""
        limit = min(block + count + self.p.read_ahead_blocks, self.p.layout.blocks)
        if self.p.cache_rule == "track":
            limit = min(limit, self.p.layout.track_end(block + count - 1))
        if limit > segment.end:
            self.read_ahead = ReadAhead(segment, limit, time)

    def _segment(self, block, count):
        """Segment that holds all blocks, or else the first ones; or None. The segment
        becomes the newest."""
        found = None
        for segment in self.segments:
            if segment.start <= block < segment.end and (not found or segment.end >= block + count):
                found = segment
        if found:
            self.segments.remove(found)
            self.segments.append(found)
        return found

    def _keep(self, block, end):
        """Makes blocks the newest segment; appends to one that ends there."""
        for segment in self.segments:
            if segment.end == block:
                self.segments.remove(segment)
                segment.end = end
                segment.start = max(segment.start, end - self.p.segment_blocks)
                break
        else:
            segment = Segment(max(block, end - self.p.segment_blocks), end)
            if len(self.segments) >= self.p.segments:
                self.segments.pop(0)
        self.segments.append(segment)
        return segment

    def serve(self, time, write, block, count):
        """Serves a request that is issued at a time; returns its service time."""
        done = self._write(time, block, count) if write else self._read(time, block, count)
        self.previous = "W" if write else "R"
        return done - time

    def _read(self, time, block, count):
        p, after, end = self.p, self.previous, block + count
        contiguous, self.read_end = block == self.read_end, end
        self._follow_read_ahead(time)
        segment = self._segment(block, count) if p.cache_rule != "none" else None
        hit = p.overhead_ms["read hit", after] + (0.0 if contiguous else p.hit_extra_ms)
        on_bus = time + hit + count * p.block_ms + p.read_completion_ms
        ahead = self.read_ahead
        if segment and segment.end >= end:
            self.kind = "hit"
            self._extend_on_hit(on_bus, segment, block, count)
            return on_bus
        # A read-ahead that has come to its limit reads no more by itself: what lies beyond was not
        # read before somebody asked for it.
        reached = ahead and ahead.segment.start <= block <= ahead.segment.end < ahead.limit
        if reached:
            self.kind = "reading ahead"
            self._follow_read_ahead(math.inf, end)
            done = max(on_bus, ahead.clock + p.block_ms + p.read_completion_ms)
            self._extend_on_hit(done, ahead.segment, block, count)
            return done
        free, miss = self._stop_read_ahead(time), p.overhead_ms["read miss", after]
        start, have = max(time + miss, free), 0
        bus_done = time + miss
        if segment and p.serves_partial:
            have = segment.end - block
            bus_done = time + hit + have * p.block_ms
        self.kind = "partial" if have else "miss"
        media_end, bus_done = self._media_read(start, block + have, count - have, bus_done)
        self.arm_free = media_end
        if p.cache_rule != "none":
            segment = self._keep(block + have, end)
            if p.cache_rule != "contiguous" or contiguous:
                self._start_read_ahead(media_end, segment, block, count)
        return bus_done + p.read_completion_ms

    def _extend_on_hit(self, time, segment, block, count):
        """Lets the read-ahead keep its distance before a hit."""
        if not self.p.extends_on_hit or self.p.cache_rule == "track":
            return
        if self.read_ahead and self.read_ahead.segment is segment:
            self.read_ahead.clock = max(self.read_ahead.clock, self.arm_free)
            if self.read_ahead.segment.end >= self.read_ahead.limit:
                self.read_ahead.clock = max(self.read_ahead.clock, time)
            self.read_ahead.limit = min(block + count + self.p.read_ahead_blocks, self.p.layout.blocks)

    def _write(self, time, block, count):
        p, end = self.p, block + count
        free = self._stop_read_ahead(time)
        appends, self.write_end = block == self.write_end, end
        overhead = p.overhead_ms["write", self.previous]
        ready = time + overhead + count * p.block_ms
        if p.write_back:
            self.kind = "write back"
            if not appends:
                ready += max(0.0, free - time)
            done = ready + p.write_completion_ms
            self.arm_free = self._media_write(max(done, free), block, count)
        else:
            self.kind = "write through"
            self.arm_free = self._media_write(max(time + overhead, free), block, count, time + overhead)
            done = self.arm_free + p.write_completion_ms
        kept = [s for s in self.segments if not p.write_clears_all and (s.end <= block or s.start >= end)]
        self.segments = kept
        if p.keeps_written and p.cache_rule != "none":
            self._keep(block, end)
        return done
