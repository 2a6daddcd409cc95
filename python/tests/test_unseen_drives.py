"""The generator of `bench/unseen-drives`: a mistake of its own would be held against a fit.

It runs without the package: layouts by hand, every block in one place, and traces whose
requests show the drawn period, alignment and angles, or none in a control."""

import cmath
import importlib
import math
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))
draw, disk, layout, trace = (importlib.import_module(f"unseen.{name}") for name in ("draw", "disk", "layout", "trace"))

#: Sparing scheme, cylinders of a range, spares of the zone by hand.
BY_HAND = {"none": (0, 1, 0), "cylinders": (2, 1, 1), "tracks": (3, 1, 1), "ranges": (8, 2, 3)}


def zone_by_hand(scheme, cylinders, spares, slips=()):
    """Four cylinders, two surfaces, ten sectors; skews of two sectors and of three."""
    zone = layout.Zone(0, 3, 10, 0.0, 0.0, 0, spares, slips)
    return layout.Layout(2, 4, [zone], (scheme, cylinders), 0, 0.2, 0.3)


def test_angles_are_those_worked_out_by_hand():
    places = zone_by_hand(*BY_HAND["none"])
    found = {block: round(places.extent(block, 1).angle, 3) for block in (0, 9, 10, 20, 30, 40)}
    assert found == {0: 0.0, 9: 0.9, 10: 0.2, 20: 0.5, 30: 0.7, 40: 0.0}


@pytest.mark.parametrize(
    ("name", "blocks", "cylinder", "first"),
    [("none", 80, 1, 20), ("cylinders", 76, 1, 19), ("tracks", 72, 1, 18), ("ranges", 74, 2, 37)],
)
def test_spares_take_the_blocks_worked_out_by_hand(name, blocks, cylinder, first):
    places = zone_by_hand(*BY_HAND[name])
    assert places.blocks == blocks
    assert places.extent(first, 1).cylinder == cylinder
    assert places.extent(first - 1, 1).cylinder == cylinder - 1


def test_a_slip_moves_the_blocks_behind_it():
    places = zone_by_hand(9, 1, 2, (5, 6))
    assert [round(10 * places.extent(block, 1).angle) for block in (4, 5, 6)] == [4, 7, 8]


@pytest.mark.parametrize("seed", range(12))
def test_every_extent_of_a_drawn_disk_lies_behind_the_one_before(seed):
    source = random.Random(f"layout {seed}")
    places = draw.draw(source, "disk", False).parameters.layout
    for number, first in enumerate(places.first_blocks):
        block, end, before = first, first + min(30000, places.zone_blocks(places.zones[number])), (-1, -1)
        while block < end:
            extent = places.extent(block, 1 << 30)
            # Tracks ascend, and blocks on one track are as far apart as their angles say.
            assert extent.cylinder >= before[0] and extent.count > 0, (seed, block)
            last = places.extent(block + extent.count - 1, 1)
            turned = (last.angle - extent.angle) * extent.sectors_per_track % extent.sectors_per_track
            assert last[:2] == extent[:2] and abs(turned - extent.count + 1) < 1e-6, (seed, block)
            before, block = extent[:2], block + extent.count
        zone, last = places.zones[number], places.extent(end - 1, 1).cylinder
        assert zone.first_cylinder <= last <= zone.last_cylinder, (seed, number)


def agreement(drawn, rows, kinds, begins, think, period):
    """How much reads from the media agree on the angle of the platter, 0 to 1, with each
    stretch of lines by itself."""
    time, sums, read_count = 0.0, [0j], 0
    for line, ((write, block, count, service, pause), kind) in enumerate(zip(rows, kinds)):
        time += pause if think == "before" else 0.0
        sums += [0j] if line in begins else []
        extents = list(drawn.parameters.layout.extents(block, count))
        if kind == "miss" and not write and len(extents) == 1:
            sector, b = drawn.parameters.period_ms / extents[0].sectors_per_track, drawn.parameters.block_ms
            first = time + service - max(sector + count * b, count * sector + b)
            sums[-1] += cmath.exp(2j * math.pi * (first / period - extents[0].angle))
            read_count += 1
        time += service + (pause if think == "after" else 0.0)
    return sum(map(abs, sums)) / read_count


@pytest.mark.parametrize("seed", range(6))
def test_a_trace_shows_the_period_the_alignment_and_the_angles_of_its_truth(seed):
    source = random.Random(f"trace {seed}")
    drawn = draw.draw(source, "disk", False)
    drawn.parameters.zero_latency_read = False
    rows, begins, kinds = trace.run(source, drawn)
    assert len(rows) == trace.REQUESTS and len(begins) == drawn.gaps
    period, other = drawn.parameters.period_ms, {"before": "after", "after": "before"}[drawn.think]
    assert agreement(drawn, rows, kinds, begins, drawn.think, period) > 0.95, seed
    assert agreement(drawn, rows, kinds, begins, drawn.think, period * 1.001) < 0.5, seed
    assert agreement(drawn, rows, kinds, begins, other, period) < 0.5, seed
    within, _ = trace.score([row[3] for row in rows], trace.replay(drawn, rows))
    assert within > 98, seed


def test_a_stream_loses_no_revolution_at_any_phase_of_the_wander():
    drawn = draw.draw(random.Random("stream"), "disk", False).parameters
    drawn.cache_rule, drawn.wander_ms, drawn.wander_period_ms, drawn.extends_on_hit = "ahead", 0.2, 150e3, True
    for step in range(100):
        running = disk.Disk(drawn)
        time, block = step * 1500.0, 0
        for number in range(8):
            service = running.serve(time, False, block, 8)
            time, block = time + service + 0.2, block + 8
            # Eight blocks from the buffer or from under the head, behind the first eight.
            assert number == 0 or service < drawn.period_ms / 2, (step, number, running.kind)


@pytest.mark.parametrize("rule", ["ahead", "track"])
def test_a_read_ahead_that_is_over_has_read_nothing_beyond_its_limit(rule):
    source = random.Random("limit")
    drawn = (draw.draw(source, "disk", False).parameters for _ in range(200))
    parameters = next(p for p in drawn if p.cache_rule == rule and p.read_ahead_blocks > 8)
    modelled = disk.Disk(parameters)
    block = parameters.layout.first_blocks[0] + 10
    modelled.serve(1000.0, False, block, 2)
    limit = modelled.read_ahead.limit
    modelled.serve(2000.0, False, limit - 4, 8)
    assert modelled.kind in ("partial", "miss")


@pytest.mark.parametrize("kind", trace.CONTROLS)
def test_a_control_shows_no_period(kind):
    source = random.Random(f"control {kind}")
    drawn = draw.draw(source, "control", False)
    rows = trace.control(source, drawn, kind)
    kinds = ["miss"] * len(rows)
    assert agreement(drawn, rows, kinds, [], drawn.think, drawn.parameters.period_ms) < 0.1, kind
