"""Requests, traces of a disk, and traces without any phase."""

import math
import statistics

from .disk import Disk

REQUESTS = 8000

#: Standard deviation of what lies between a completion and its record, in milliseconds.
NOISE_MS = 0.05

#: Longest dropped stretch of lines, and lines of which at most one follows such a stretch.
GAP_LINES_MAX, GAP_DISTANCE = 300, 200


class Load:
    """Requests like those of the measured traces: contiguous ones, near ones and random
    ones, and the pauses between them."""

    def __init__(self, random, blocks):
        self.random, self.blocks = random, blocks
        self.contiguous, self.near = random.uniform(0.15, 0.3), random.uniform(0.15, 0.3)
        self.near_blocks = random.choice([60, 150, 1000])
        self.reads = random.uniform(0.5, 0.75)
        self.grain = random.choice([1, 2, 4, 4, 8])
        self.grains = random.uniform(1.0, 3.0) if self.grain > 2 else random.uniform(3.0, 8.0)
        self.floor_ms, self.mean_ms = random.choice([(30.0, 20.0), (14.0, 14.0), (20.0, 30.0)])
        self.last = (False, 0, 0)

    def next(self):
        """Operation, first block and blocks of the next request."""
        write, block, count = self.last
        end, kind = block + count, self.random.random()
        count = self.grain * min(64 // self.grain, 1 + int(self.random.expovariate(1 / self.grains)))
        if kind < self.contiguous:
            block = end
        elif kind < self.contiguous + self.near:
            write = self.random.random() > self.reads
            block = end + self.grain * round(self.random.gauss(0.0, self.near_blocks) / self.grain)
        else:
            write = self.random.random() > self.reads
            block = self.random.randrange(self.blocks // self.grain) * self.grain
        self.last = write, min(max(block, 0), self.blocks - count), count
        return self.last

    def gap_ms(self):
        """Time between two issues, or a pause, by the rule of the trace."""
        return self.floor_ms + self.random.expovariate(1 / self.mean_ms)


def kept_lines(random, gaps):
    """Which lines of a longer run remain: 8,000 in `gaps` + 1 stretches."""
    cells = sorted(random.sample(range(1, REQUESTS // GAP_DISTANCE), gaps))
    begins = [cell * GAP_DISTANCE + random.randrange(GAP_DISTANCE * 3 // 4) for cell in cells]
    kept, line = [], 0
    for index in range(REQUESTS):
        line += random.randint(1, GAP_LINES_MAX) if index in begins else 0
        kept.append(line)
        line += 1
    return kept, begins


def run(random, drawn):
    """Runs a disk. Returns the lines (write, block, count, service ms, think ms), the first
    line after each dropped stretch, and how each line was served."""
    disk = Disk(drawn.parameters)
    load = Load(random, drawn.parameters.layout.blocks)
    kept, begins = kept_lines(random, drawn.gaps)
    issue, scheduled, rows, kinds = 50.0, 50.0, [], []
    before, wanted = 50.0, set(kept)
    for line in range(kept[-1] + 1):
        request = load.next()
        service = max(0.02, disk.serve(issue, *request) + random.gauss(0.0, NOISE_MS))
        end = issue + service
        if drawn.scheduled:
            scheduled = max(scheduled + load.gap_ms(), end + 0.2)
        else:
            scheduled = end + 0.3 * load.gap_ms()
        after = scheduled - end
        if line in wanted:
            rows.append([*request, round(service, 3), round(before if drawn.think == "before" else after, 3)])
            kinds.append(disk.kind)
        issue, before = scheduled, after
    return rows, begins, kinds


def replay(drawn, rows):
    """Service times of the true disk without noise, in a closed loop over the lines."""
    disk, issue, found = Disk(drawn.parameters), 0.0, []
    for number, (write, block, count, _, think) in enumerate(rows):
        if drawn.think == "before":
            issue += think if number else 50.0
        found.append(disk.serve(issue, write, block, count))
        issue += found[-1] + (think if drawn.think == "after" else 0.0)
    return found


def score(measured, modelled):
    """Share within half a millisecond, in percent, and the demerit in milliseconds, of the
    second half."""
    half = len(measured) // 2
    a, b = measured[half:], modelled[half:]
    within = sum(abs(x - y) <= 0.5 for x, y in zip(a, b)) / len(a)
    demerit = math.sqrt(statistics.fmean((x - y) ** 2 for x, y in zip(sorted(a), sorted(b))))
    return 100 * within, demerit


CONTROLS = ["uniform latency", "log-normal", "flash", "shuffled", "host clock"]


def control(random, drawn, kind):
    """Lines whose service times no platter makes: drawn from a distribution, or those of
    the disk in another order, or on the ticks of a host's clock."""
    rows, _, kinds = run(random, drawn)
    period = drawn.parameters.period_ms
    misses = [row[3] for row, way in zip(rows, kinds) if way in ("miss", "partial", "write through")]
    random.shuffle(misses)
    centre, tick = random.uniform(4.0, 14.0), random.uniform(4.0, 16.0)
    for row, way in zip(rows, kinds):
        moved = way in ("miss", "partial", "write through")
        if kind == "flash":
            row[3] = 0.2 + 0.03 * row[2] + random.expovariate(1 / 0.4) + (1.5 if row[0] else 0.0)
        elif not moved:
            continue
        elif kind == "log-normal":
            row[3] = random.lognormvariate(math.log(centre), 0.4)
        elif kind == "shuffled":
            row[3] = misses.pop()
        else:
            row[3] = row[3] - random.random() * min(period, row[3] / 2) + random.random() * period
    if kind == "host clock":
        on_ticks(rows, drawn.think, tick)
    for row in rows:
        row[3] = round(row[3], 3)
    return rows


def on_ticks(rows, think, tick):
    """Moves every issue to the next tick of a clock, as a host with a coarse timer does."""
    time = 0.0
    for row, following in zip(rows, [*rows[1:], rows[-1]]):
        at = row if think == "after" else following
        time += row[3]
        issue = math.ceil((time + at[4]) / tick) * tick
        at[4], time = round(issue - time, 3), issue
