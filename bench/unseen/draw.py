"""Drawing of disks: parameters like those of the SCSI drives of 1990 to 2000."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from .disk import Parameters
from .layout import Layout, Zone

CACHE_RULES = ["none", "ahead", "contiguous", "track"]

#: Ways in which the parameter files of real drives are wrong.
FAULTS = [
    "origins left out",
    "skews of one zone for all",
    "cylinder skew off",
    "comments and hexadecimal",
    "seek table shifted",
    "write settle left out",
    "bus rate",
    "overheads",
    "buffer rule",
    "zero latency",
    "segments",
    "write level 1",
    "block count",
    "read-ahead over requested -1",
    "other words for hits",
]


class Family(NamedTuple):
    """Ranges of one generation of drives."""

    rpm: tuple
    surfaces: tuple
    outer_sectors: tuple
    cylinders: tuple
    seek_single_ms: tuple
    seek_full_ms: tuple
    block_ms: tuple


FAMILIES = [
    Family((4002, 4500, 5400), (3, 19), (56, 110), (1600, 2900), (1.2, 2.6), (18.0, 24.0), (0.09, 0.20)),
    Family((5400, 6300, 6400), (4, 21), (90, 150), (2100, 4200), (0.9, 2.2), (15.0, 21.0), (0.05, 0.15)),
    Family((7200,), (4, 21), (110, 230), (2700, 6900), (0.7, 2.0), (14.0, 19.0), (0.025, 0.13)),
    Family((10000, 10025, 10033), (3, 24), (170, 334), (5000, 10100), (0.6, 1.3), (10.0, 16.0), (0.013, 0.11)),
    Family((12000, 15000), (3, 10), (200, 334), (7000, 14000), (0.4, 0.9), (7.0, 10.0), (0.008, 0.06)),
]


@dataclass
class Drawn:
    """A disk: its true parameters, its nominal speed, and what its files have wrong."""

    name: str
    parameters: Parameters
    rpm: int
    wedges: int
    faults: list
    exact_skews: bool
    think: str
    scheduled: bool
    gaps: int


def seek_table(random, family, cylinders):
    """Seek times like measured ones: a root, then a line, with the unevenness of a table."""
    single, full = random.uniform(*family.seek_single_ms), random.uniform(*family.seek_full_ms)
    knee = cylinders * random.uniform(0.15, 0.35)
    # The line continues the root with its slope, so both have the value `full` at the end.
    root = (full - single) / (math.sqrt(knee) + (cylinders - knee) / (2 * math.sqrt(knee)))
    steps = [*range(1, 11), 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100]
    distance = 125
    while distance < cylinders - 1:
        steps.append(distance)
        distance += 25 if distance < 300 else 100 if distance < 1000 else 250
    rows, uneven = [(0, 0.0)], random.uniform(0.0, 0.04)
    for d in [*(s for s in steps if s < cylinders - 1), cylinders - 1]:
        smooth = single + root * (math.sqrt(min(d, knee)) - 1 + max(0.0, d - knee) / (2 * math.sqrt(knee)))
        rows.append((d, round(max(0.2, smooth + random.gauss(0.0, uneven)), 3)))
    return rows


def layout(random, family, cylinders, wedges, angles):
    """Zones from the outer edge to the inner one, with origins of their own."""
    surfaces = random.randint(*family.surfaces)
    count = random.choice([random.randint(3, 12), random.randint(8, 24), random.randint(20, 60)])
    outer, ratio = random.randint(*family.outer_sectors), random.uniform(0.5, 0.7)
    scheme, ranges = random.choice([0, 1, 2, 3, 8, 8, 9, 9]), random.randint(4, 16)
    separate, stepped = random.random() < 0.3, scheme == 8 and random.random() < 0.6
    origins = random.random() < 0.85
    cuts = sorted(random.sample(range(1, cylinders // 40), count - 1)) if cylinders // 40 > count else range(1, count)
    bounds = [0, *(cut * (cylinders // max(count, cylinders // 40)) for cut in cuts), cylinders]
    zones, dead = [], random.choice([0, 0, outer * surfaces])
    for number, (first, end) in enumerate(zip(bounds, bounds[1:])):
        track = round(outer * (1 - (1 - ratio) * number / count) * random.uniform(0.995, 1.005))
        track = min(track, zones[-1].sectors_per_track) if zones else track
        last = end - 1 - (separate and end < cylinders)
        slips = []
        if scheme in (8, 9) and random.random() < 0.6:
            # Cylinders after the last whole range have no spares.
            cylinders_spared = (last - first + 1) // (ranges if scheme == 8 else 1) * (ranges if scheme == 8 else 1)
            room = max(0, cylinders_spared * surfaces * track - 2 * track)
            slips = sorted(random.sample(range(room), min(room, random.randint(1, 12))))
        elif scheme == 1:
            tracks = (last - first + 1) * surfaces
            slips = sorted(random.sample(range(tracks // 2), random.randint(0, min(4, surfaces))))
        # As many spares in every unit as its slips can need.
        few = {0: 0, 1: surfaces, 2: random.randint(2, 30), 3: random.randint(1, 3)}
        spares = few.get(scheme, random.randint(20, 90))
        origin = random.randrange(wedges) / wedges if origins and number else 0.0
        step = random.randrange(wedges) / wedges if stepped else 0.0
        zones.append(Zone(first, last, track, origin, step, 0 if number else dead, spares, slips))
    return Layout(surfaces, cylinders, zones, (scheme, ranges), random.choice([0, 0, 1]), *angles)


def overheads(random):
    """Command overheads, by kind and by the kind of the request before."""
    miss, hit, write = random.uniform(0.2, 2.0), random.uniform(0.08, 0.8), random.uniform(0.2, 1.5)
    found = {}
    for after in "RW":
        found["read miss", after] = round(miss + random.uniform(0.0, 0.4), 3)
        found["read hit", after] = round(min(hit, miss) + random.uniform(0.0, 0.3), 3)
        found["write", after] = round(write + random.uniform(0.0, 0.4), 3)
    return found


def draw(random, name, wrong):
    """Draws a disk. `wrong`: its files are wrong in several ways."""
    family = random.choice(FAMILIES)
    rpm = random.choice(family.rpm)
    share = random.choice([0.002, 0.02])
    period = 60000.0 / rpm * (1 + random.uniform(-share, share))
    wedges = random.randint(19, 132)
    cylinders = random.randint(*family.cylinders)
    table = seek_table(random, family, cylinders)
    head_switch = random.uniform(0.15, 0.9) * table[1][1]
    # Skews are wedges that leave time for the switch.
    track_skew = math.ceil((head_switch + random.uniform(0.1, 0.5)) / period * wedges) / wedges
    cylinder_skew = math.ceil((table[1][1] + 0.2 + random.uniform(0.1, 0.5)) / period * wedges) / wedges
    places = layout(random, family, cylinders, wedges, (track_skew, cylinder_skew))
    rule = random.choice(CACHE_RULES)
    segment = random.randint(128, 700)
    write_back = random.random() < 0.55
    parameters = Parameters(
        layout=places,
        period_ms=period,
        phase=random.random(),
        wander_ms=random.uniform(0.0, 0.2),
        wander_period_ms=random.uniform(150e3, 400e3),
        seek_table=table,
        head_switch_ms=round(head_switch, 3),
        write_settle_ms=round(random.choice([0.0, random.uniform(0.1, 0.8)]), 3),
        overhead_ms=overheads(random),
        hit_extra_ms=round(random.choice([0.0, random.uniform(0.15, 0.6)]), 3),
        read_completion_ms=round(random.choice([0.0, random.uniform(0.0, 0.2)]), 3),
        write_completion_ms=round(random.choice([0.0, random.uniform(0.0, 0.2)]), 3),
        block_ms=round(random.uniform(*family.block_ms), 4),
        zero_latency_read=random.random() < 0.4,
        zero_latency_write=random.random() < 0.4,
        write_back=write_back,
        cache_rule=rule,
        segments=random.choice([1, 1, 2, 3, 4, 8, 10, 16]),
        segment_blocks=segment,
        read_ahead_blocks=random.choice([segment - 64, segment // 2]),
        extends_on_hit=random.random() < 0.5,
        write_clears_all=random.random() < 0.5,
        keeps_written=random.random() < 0.5,
        serves_partial=random.random() < 0.6,
    )
    faults = random.sample(FAULTS, random.randint(5, 10)) if wrong else []
    return Drawn(
        name,
        parameters,
        rpm,
        wedges,
        faults,
        not wrong and random.random() < 0.4,
        random.choice(["before", "after"]),
        random.random() < 0.7,
        random.choice([0, random.randint(1, 8)]),
    )
