"""Scores of `import FILE.trace`: a drive from its trace alone.

The JSON that is read, in `drives[0]`: `fit.phase` (null where there is none),
`replays.model.within_half_ms_percent`, and the list `fitted` with `parameter`, `value`, `low`
and `high` of each number. A number that is not determined has no row, or the value null.
`NUMBERS` has the parameters that a truth is known for; zones count from 0, from block 0 on."""

import re
import shutil
import tempfile

from .score import PERIOD_PPM, Tally, period_ppm, phase, run, truths

#: Share of the blocks that must lie in tracks of the right length, and of the zone borders
#: that must be in place, and what is right: a share of the length, and of the capacity.
SHARE_MIN, RIGHT = 0.95, 0.01

#: Bars of 20 drives.
WITHIN_PERCENT = 80


def zone_of(truth, block):
    """Zone that holds a block."""
    return max((zone for zone in truth["zones"] if zone["first_block"] <= block), key=lambda zone: zone["first_block"])


def lengths(truth, zone):
    """Track lengths that are true of a zone: sectors, and blocks where each track has spares."""
    spares = zone["spares"] if truth["layout"]["scheme"] == 3 else 0
    return {zone["sectors_per_track"], zone["sectors_per_track"] - spares}


def nearest(values, value):
    """Value that lies nearest."""
    return min(values, key=lambda one: abs(one - value))


def overhead(kind, after):
    return lambda truth, *_: {1000 * truth["overhead_ms"][f"{kind} after {after}"]}


#: True values of each parameter, by pattern. The functions get the truth, the found zones
#: and the groups of the pattern.
NUMBERS = {
    r"spindle\.period_us": lambda truth, *_: {1000 * truth["period_ms"]},
    r"bus\.read_block_us": lambda truth, *_: {1000 * truth["block_ms"]},
    r"layout\.blocks": lambda truth, *_: {truth["layout"]["blocks"]},
    r"layout\.surfaces": lambda truth, *_: {truth["layout"]["surfaces"]},
    r"angles\.track_skew": lambda truth, *_: {truth["layout"]["track_skew"]},
    r"angles\.cylinder_skew": lambda truth, *_: {truth["layout"]["cylinder_skew"]},
    r"mechanism\.head_switch_us": lambda truth, *_: {1000 * truth["head_switch_ms"]},
    r"mechanism\.write_settle_us": lambda truth, *_: {1000 * truth["write_settle_ms"]},
    r"zones\.(\d+)\.first_block": lambda truth, found, n: {zone["first_block"] for zone in truth["zones"]},
    r"zones\.(\d+)\.track_blocks": lambda truth, found, n: lengths(truth, zone_of(truth, found[int(n)]["middle"])),
    r"overheads\.read_hit_us": overhead("read hit", "R"),
    r"overheads\.write_us": overhead("write", "R"),
    r"cache\.segments": lambda truth, *_: {truth["segments"]},
    r"cache\.segment_blocks": lambda truth, *_: {truth["segment_blocks"]},
    r"cache\.read_ahead_blocks": lambda truth, *_: {truth["read_ahead_blocks"]},
}


def found_zones(fitted, blocks):
    """Zones of the fit with first block, track length and middle, by number."""
    zones = {}
    for row in fitted:
        match = re.fullmatch(r"zones\.(\d+)\.(first_block|track_blocks)", row["parameter"])
        if match and row["value"] is not None:
            zones.setdefault(int(match[1]), {})[match[2]] = row["value"]
    zones = {n: zone for n, zone in sorted(zones.items()) if len(zone) == 2}
    ends = [zone["first_block"] for zone in zones.values()][1:] + [blocks]
    for zone, end in zip(zones.values(), ends):
        zone["middle"] = (zone["first_block"] + end) / 2
    return zones


def shares(truth, zones):
    """Shares of right track lengths, by blocks, and of zone borders in place."""
    blocks, right, count = truth["layout"]["blocks"], 0, 1000
    for index in range(count):
        block = (index + 0.5) * blocks / count
        at = [zone for zone in zones.values() if zone["first_block"] <= block]
        true = lengths(truth, zone_of(truth, block))
        if at:
            length = max(at, key=lambda zone: zone["first_block"])["track_blocks"]
            right += abs(length / nearest(true, length) - 1) <= RIGHT
    borders = []
    for before, zone in zip(truth["zones"], truth["zones"][1:]):
        # Nobody can see a border between tracks of nearly the same length.
        if abs(zone["sectors_per_track"] / before["sectors_per_track"] - 1) > RIGHT:
            starts = [found["first_block"] for found in zones.values()]
            off = abs(nearest(starts, zone["first_block"]) - zone["first_block"]) if starts else blocks
            borders.append(off <= RIGHT * blocks)
    return right / count, sum(borders) / len(borders) if borders else 1.0


def intervals(truth, fitted, zones):
    """Numbers with a known truth, and those whose interval does not hold it."""
    judged, missed = 0, []
    for row in fitted:
        for pattern, true in NUMBERS.items():
            match = re.fullmatch(pattern, row["parameter"])
            if not match or None in (row["value"], row.get("low"), row.get("high")):
                continue
            if match.groups() and int(match[1]) not in zones:
                continue
            judged += 1
            if not any(row["low"] <= value <= row["high"] for value in true(truth, zones, *match.groups())):
                missed.append(row["parameter"])
    return judged, missed


def score(folder, harness, disks, only):
    """Scores drives without their files, a drive at a time."""
    program, tally = harness.program(), Tally(harness.Results("unseen-drives-alone"))
    drawn, judged, missed = truths(folder, disks or 20, only), 0, 0
    for truth in drawn:
        with tempfile.TemporaryDirectory() as temporary:
            trace = shutil.copy(folder / f"{truth['name']}.trace", temporary)
            words = ["import", trace, "--output", f"{temporary}/catalogue", "--store", f"{temporary}/runs.sqlite"]
            outcome = run(program, words)
        row = (outcome.output.get("drives") or [None])[0]
        if row is None:
            tally.add(truth["name"], ["not read"], f"not read: {outcome.problem[:160]}", outcome.seconds)
            continue
        number, off = judge(tally, truth, row, outcome.seconds)
        judged, missed = judged + number, missed + off
    bars = [("period", " (bar 19)"), ("tracks and zones", " (bar 16)"), (f"within {WITHIN_PERCENT} %", " (bar 14)")]
    bars += [("wrong period accepted", ""), ("accepted without phase", " (bar 0)"), ("not read", "")]
    tally.summary(drawn[0]["seed"], bars)
    share = f"{100 * missed / judged:.1f} %" if judged else "none judged"
    tally.results.add(f"intervals that do not hold the truth: {missed} of {judged}, {share} (bar 5 %)")


def judge(tally, truth, row, seconds):
    """Judges a drive; returns how many numbers were judged, and how many are off."""
    found, fitted = phase(row), row.get("fitted") or []
    marks, text = [], "no period"
    if found and "control" in truth:
        marks, text = ["accepted without phase"], "ACCEPTED"
    elif found:
        ppm = period_ppm(found, truth)
        marks.append("period" if abs(ppm) <= PERIOD_PPM else "wrong period accepted")
        text = f"period {ppm:+.1f} ppm"
    zones = found_zones(fitted, truth["layout"]["blocks"])
    tracks, borders = shares(truth, zones)
    marks += ["tracks and zones"] if min(tracks, borders) >= SHARE_MIN else []
    text += f", tracks {100 * tracks:.0f} %, borders {100 * borders:.0f} % of {len(truth['zones'])} zones"
    replays = row.get("replays") or {}
    within = (replays.get("fitted") or replays.get("model") or {}).get("within_half_ms_percent")
    marks += [f"within {WITHIN_PERCENT} %"] if within is not None and within >= WITHIN_PERCENT else []
    text += f", within 0.5 ms {'-' if within is None else round(within, 1)}"
    number, missed = intervals(truth, fitted, zones)
    text += f", intervals {number - len(missed)} of {number}" + (f" (not {', '.join(missed[:4])})" if missed else "")
    tally.add(truth["name"], marks, text, seconds)
    return number, len(missed)
