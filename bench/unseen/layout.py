"""Layout of a disk: the place and the angle of each logical block."""

import bisect
from typing import NamedTuple


class Extent(NamedTuple):
    """Contiguous sectors of one track: `angle` is that of the first, in revolutions."""

    cylinder: int
    head: int
    angle: float
    sectors_per_track: int
    count: int


class Zone(NamedTuple):
    """Cylinders with one track length. Angles are in revolutions; `slips` are ascending."""

    first_cylinder: int
    last_cylinder: int
    sectors_per_track: int
    origin: float
    range_step: float
    dead: int
    spares: int
    slips: list


class Layout:
    """Map of logical blocks, with DiskSim's sparing schemes 0, 1, 2, 3, 8 and 9."""

    def __init__(self, surfaces, cylinders, zones, sparing, mapping=0, track_skew=0.0, cylinder_skew=0.0):
        self.surfaces, self.cylinders, self.zones = surfaces, cylinders, zones
        self.scheme, self.range_cylinders = sparing
        self.mapping, self.track_skew, self.cylinder_skew = mapping, track_skew, cylinder_skew
        self.first_blocks, block = [], 0
        for zone in zones:
            self.first_blocks.append(block)
            block += self.zone_blocks(zone)
        self.blocks = block

    def zone_blocks(self, zone):
        """Number of logical blocks that a zone holds."""
        cylinders, surfaces = zone.last_cylinder - zone.first_cylinder + 1, self.surfaces
        lost = {
            0: 0,
            1: zone.spares * zone.sectors_per_track,
            2: zone.spares * cylinders,
            3: zone.spares * cylinders * surfaces,
            8: zone.spares * (cylinders // self.range_cylinders),
            9: zone.spares,
        }[self.scheme]
        return cylinders * surfaces * zone.sectors_per_track - lost - zone.dead

    def zone_index(self, block):
        """Index of the zone that holds a block."""
        return bisect.bisect_right(self.first_blocks, block) - 1

    def _physical(self, zone, index, left):
        """Zone-relative physical sector of a logical index, and the sectors that follow it
        without a gap."""
        length, track = zone.sectors_per_track, zone.sectors_per_track
        if self.scheme == 1:
            number, sector = divmod(index, track)
            for slip in zone.slips:
                number += slip <= number
            return number * track + sector, min(left, track - sector)
        unit = {2: self.surfaces * track, 3: track, 8: self.range_cylinders * self.surfaces * track}.get(self.scheme)
        base, limit = 0, None
        if unit:
            number, index = divmod(index, unit - zone.spares)
            base, left = number * unit, min(left, unit - zone.spares - index)
            limit = base + unit
        sector = base + index
        for slip in zone.slips:
            if limit is None or base <= slip < limit:
                if slip > sector:
                    left = min(left, slip - sector)
                    break
                sector += 1
        return sector, min(left, length - sector % length)

    def extent(self, block, count_max):
        """Longest extent from a block on, of at most `count_max` sectors."""
        number = self.zone_index(block)
        zone = self.zones[number]
        following = self.first_blocks[number + 1] if number + 1 < len(self.zones) else self.blocks
        sector, count = self._physical(zone, block - self.first_blocks[number] + zone.dead, following - block)
        track, at = divmod(sector, zone.sectors_per_track)
        cylinder, head = divmod(track, self.surfaces)
        angle = (
            zone.origin
            + (head + (self.surfaces - 1) * cylinder) * self.track_skew
            + cylinder * self.cylinder_skew
            + at / zone.sectors_per_track
        )
        if self.scheme == 8:
            angle += cylinder // self.range_cylinders * zone.range_step
        if self.mapping == 1 and cylinder % 2:
            head = self.surfaces - 1 - head
        return Extent(zone.first_cylinder + cylinder, head, angle % 1.0, zone.sectors_per_track, min(count, count_max))

    def extents(self, block, count):
        """Extents of a request, in the order of its blocks."""
        while count > 0:
            extent = self.extent(block, count)
            yield extent
            block, count = block + extent.count, count - extent.count

    def track_end(self, block):
        """First block after the track that holds a block."""
        extent = self.extent(block, 1 << 30)
        end = block + extent.count
        while end < self.blocks and self.extent(end, 1)[:2] == extent[:2]:
            end += self.extent(end, 1 << 30).count
        return end
