"""DiskSim's files of a drawn disk, its trace and its truth.

A file that is not wrong still rounds skews and origins to sectors in most disks, and has
the nominal speed: the format has no other."""

import json

QUEUE = """Scheduler = disksim_ioqueue {
      Scheduling policy = 1, Cylinder mapping strategy = 0,
      Write initiation delay = 0.0, Read initiation delay = 0.0,
      Sequential stream scheme = 0, Maximum concat size = 0,
      Overlapping request scheme = 0, Sequential stream diff maximum = 0,
      Scheduling timeout scheme = 0, Timeout time/weight = 0, Timeout scheduling = 0,
      Scheduling priority scheme = 0, Priority scheduling = 0
   }"""

#: Keys that are the same in every file.
FIXED = """Per-request overhead time = 0.0, Time scale for overheads = 1.0,
   Hold bus entire read xfer = 0, Hold bus entire write xfer = 0,
   Allow almost read hits = 0, Allow sneaky full read hits = 0,
   Allow sneaky partial read hits = 0, Allow sneaky intermediate read hits = 0,
   Allow write prebuffering = 0, Preseeking level = 0, Never disconnect = 0, Print stats = 1,
   Max queue length = 1, Maximum number of write segments = 1, Use separate write segment = 0,
   Low (write) water mark = 0.0, High (read) water mark = 0.0, Set watermark by reqsize = 1,
   Calc sector by sector = 1, Minimum read-ahead (blks) = 0, Read any free blocks = 0,
   Combine seq writes = 1, Stop prefetch in sector = 0, Disconnect write if seek = 0,
   Write hit stop prefetch = 1, Read directly to buffer = 1, Data preparation overhead = 0.0,
   First reselect overhead = 0.0, Other reselect overhead = 0.0, Read disconnect afterread = 0.0,
   Read disconnect afterwrite = 0.0, Write disconnect overhead = 0.0, Extra write disconnect = 0,
   Extradisc command overhead = 0.0, Extradisc disconnect overhead = 0.0,
   Extradisc inter-disconnect delay = 0.0, Extradisc 2nd disconnect overhead = 0.0,
   Extradisc seek delta = 0.0, Minimum seek delay = 0.0"""

RUN = """disksim_global Global {{ Init Seed = 42, Real Seed = 42, Stat definition file = statdefs }}
disksim_iodriver DRIVER0 {{ type = 1, Constant access time = 0.0, {queue}, Use queueing in subsystem = 1 }}
disksim_bus BUS0 {{ type = 1, Arbitration type = 1, Arbitration time = 0.0,
   Read block transfer time = 0.0, Write block transfer time = 0.0, Print stats = 0 }}
disksim_bus BUS1 {{ type = 1, Arbitration type = 1, Arbitration time = 0.0,
   Read block transfer time = {bus}, Write block transfer time = {bus}, Print stats = 1 }}
disksim_ctlr CTLR0 {{ type = 1, Scale for delays = 0.0, Bulk sector transfer time = 0.0,
   Maximum queue length = 0, Print stats = 1 }}
# {name}
source {name}.diskspecs
instantiate [ bus0 ] as BUS0
instantiate [ bus1 ] as BUS1
instantiate [ disk0 ] as {name}
instantiate [ driver0 ] as DRIVER0
instantiate [ ctlr0 ] as CTLR0
topology disksim_iodriver driver0 [
   disksim_bus bus0 [ disksim_ctlr ctlr0 [ disksim_bus bus1 [ disksim_disk disk0 [] ] ] ]
]
"""


def block(words):
    """Lines of a parameter block."""
    return ",\n   ".join(f"{key} = {value}" for key, value in words.items())


def zone_text(drawn, zone, first):
    """A zone in DiskSim's keys, with what the file has wrong."""
    layout, faults = drawn.parameters.layout, drawn.faults
    track, cylinder, origin = layout.track_skew, layout.cylinder_skew, zone.origin
    words = {
        "First cylinder number": zone.first_cylinder,
        "Last cylinder number": zone.last_cylinder,
        "Blocks per track": zone.sectors_per_track,
    }
    if drawn.exact_skews:
        words["Skew units"] = "revolutions"
        angles = [f"{angle:.9f}" for angle in (origin, track, cylinder)]
    else:
        base = first.sectors_per_track if "skews of one zone for all" in faults else zone.sectors_per_track
        off = zone.first_cylinder % 5 - 2 if "cylinder skew off" in faults else 0
        origin = 0.0 if "origins left out" in faults else origin
        angles = [f"{float(round(angle)):.6f}" for angle in (origin * zone.sectors_per_track, track * base)]
        angles.append(f"{float(max(0, round(cylinder * base) + off)):.6f}")
    words["Offset of first block"] = angles[0]
    words["Empty space at zone front"] = zone.dead
    words["Skew for track switch"], words["Skew for cylinder switch"] = angles[1:]
    words["Number of spares"] = zone.spares
    words["slips"] = f"[ {', '.join(map(str, zone.slips))} ]"
    words["defects"] = "[]"
    return f"dm_layout_g1_zone {{\n   {block(words)}\n   }}"


def model_text(drawn):
    """The geometry and the mechanism."""
    p, faults = drawn.parameters, drawn.faults
    layout, table = p.layout, p.seek_table
    scheme, ranges = layout.scheme, layout.range_cylinders
    zones = ",\n   ".join(zone_text(drawn, zone, layout.zones[0]) for zone in layout.zones)
    geometry = {
        "LBN-to-PBN mapping scheme": layout.mapping,
        "Sparing scheme used": scheme,
        "Rangesize for sparing": ranges,
        "Zones": f"[\n   {zones}\n   ]",
    }
    settle = 0.0 if "write settle left out" in faults else p.write_settle_ms
    mechanism = {
        "Access time type": "trackSwitchPlusRotation",
        "Seek type": "extracted",
        "Single cylinder seek time": f"{table[1][1]:.5f}",
        "Full seek curve": f"{drawn.name}.seek",
        "Full strobe seek time": f"{table[-1][1]:.5f}",
        "Add. write settling delay": f"{settle:.5f}",
        "Head switch time": f"{p.head_switch_ms:.5f}",
        "Rotation speed (in rpms)": drawn.rpm,
        "Percent error in rpms": "0.0",
    }
    words = {
        "Number of data surfaces": layout.surfaces,
        "Number of cylinders": layout.cylinders,
        "Block count": round(layout.blocks * (0.98 if "block count" in faults else 1)),
        "Layout Model": f"dm_layout_g1 {{\n   {block(geometry)}\n   }}",
        "Mechanical Model": f"dm_mech_g1 {{\n   {block(mechanism)}\n   }}",
    }
    before, behind = "", ""
    if "comments and hexadecimal" in faults:
        words["Number of cylinders"] = hex(layout.cylinders)
        ten = ",\n#   ".join(f"{ms:.2f}" for _, ms in table[1:11])
        before, behind = "# Number of data surfaces = 99,\n   ", f"\n#   First ten seek times = [\n#   {ten}\n#   ]"
    return f"dm_disk {drawn.name}_model {{\n   {before}{block(words)}{behind}\n}} # end of {drawn.name}_model spec\n"


def specs_text(drawn, random):
    """The controller and the buffer."""
    p, faults = drawn.parameters, drawn.faults
    write_level = 2 if p.write_back else 0
    if p.write_back and "write level 1" in faults:
        write_level = 1
    # The format has no rule by which only a contiguous read begins a read-ahead: 3 is nearest.
    continuous = {"none": 0, "ahead": 3, "contiguous": 3, "track": 1}[p.cache_rule]
    if "buffer rule" in faults:
        continuous = random.choice([0, 1, 2, 3, 4])
    words = {
        "Model": f"source {drawn.name}.model",
        "Bulk sector transfer time": f"{bus_times(drawn)[0]:.6f}",
        "Allow read hits on write data": int(p.keeps_written),
        "Avg sectors per cylinder": p.layout.blocks // p.layout.cylinders,
        "Number of buffer segments": random.randint(1, 16) if "segments" in faults else p.segments,
        "Segment size (in blks)": p.segment_blocks,
        "Enable caching in buffer": 0 if p.cache_rule == "none" and not p.write_back else 1,
        "Buffer continuous read": continuous,
        "Maximum read-ahead (blks)": p.read_ahead_blocks,
        "Read-ahead over requested": -1 if "read-ahead over requested -1" in faults else 1,
        "Read-ahead on idle hit": int(p.extends_on_hit),
        "Fast write level": write_level,
        "Immediate buffer read": int(p.zero_latency_read ^ ("zero latency" in faults)),
        "Immediate buffer write": int(p.zero_latency_write ^ ("zero latency" in faults)),
        "Immed transfer partial hit": int(p.serves_partial),
    }
    for kind in ("read hit", "read miss", "write hit", "write miss"):
        for after, name in (("R", "read"), ("W", "write")):
            value = p.overhead_ms["write" if "write" in kind else kind, after]
            value *= random.uniform(0.5, 1.5) if "overheads" in faults else 1.0
            words[f"{kind.capitalize()} over. after {name}"] = f"{value:.6f}"
    words["Read completion overhead"] = f"{p.read_completion_ms:.6f}"
    words["Write completion overhead"] = f"{p.write_completion_ms:.6f}"
    return f"disksim_disk {drawn.name} {{\n   {block(words)},\n   {QUEUE},\n   {FIXED}\n}} # end of {drawn.name} spec\n"


def bus_times(drawn):
    """Block times of the drive's own key and of the bus: one of them is the true one, or
    near it."""
    value = drawn.parameters.block_ms
    if "bus rate" in drawn.faults:
        value *= 1.3 if drawn.wedges % 2 else 0.75
    return (0.0, value) if drawn.wedges % 4 == 0 else (value, 0.0)


def seek_text(drawn, random):
    """The measured seek times."""
    shift, spread = (random.uniform(-0.4, 0.4), 0.05) if "seek table shifted" in drawn.faults else (0.0, 0.0)
    rows = drawn.parameters.seek_table[1:]
    lines = [f"{d},\t{max(0.1, ms + shift + random.gauss(0.0, spread)):.5f}" for d, ms in rows]
    return f"Seek distances measured: {len(rows)}\n" + "\n".join(lines) + "\n"


def trace_text(drawn, rows, random):
    """The lines of the trace. The second column tells nothing, in any disk."""
    other = "other words for hits" in drawn.faults
    words = ["Miss", "SeqHit", "-", "Unknown", "hit?"] if other else ["Hit"]
    return "".join(
        f"{'W' if write else 'R'} {random.choice(words)} {first:10} {count:3}"
        f" {1000 * service:12.5f} {1000 * think:12.5f}\n"
        for write, first, count, service, think in rows
    )


def truth(drawn, **more):
    """What is true of a disk, as values of JSON."""
    p = drawn.parameters
    found = {key: value for key, value in vars(p).items() if key != "layout"}
    found["overhead_ms"] = {f"{kind} after {after}": ms for (kind, after), ms in p.overhead_ms.items()}
    layout = p.layout
    found["ppm"] = round((p.period_ms * drawn.rpm / 60000 - 1) * 1e6, 3)
    found["think"], found["faults"], found["rpm"] = drawn.think, drawn.faults, drawn.rpm
    found["exact_skews"], found["issues_scheduled"] = drawn.exact_skews, drawn.scheduled
    found["dropped_stretches"] = drawn.gaps
    keys = ("surfaces", "cylinders", "blocks", "scheme", "range_cylinders", "mapping", "track_skew", "cylinder_skew")
    found["layout"] = {key: getattr(layout, key) for key in keys}
    found["zones"] = [
        {**zone._asdict(), "first_block": first} for zone, first in zip(layout.zones, layout.first_blocks)
    ]
    return {"name": drawn.name, **found, **more}


def write(folder, drawn, rows, random, **more):
    """Writes all files of a disk, and of a control the trace instead of a truth."""
    texts = {
        "model": model_text(drawn),
        "diskspecs": specs_text(drawn, random),
        "seek": seek_text(drawn, random),
        "parv": RUN.format(name=drawn.name, queue=QUEUE, bus=f"{bus_times(drawn)[1]:.6f}"),
        "trace": trace_text(drawn, rows, random),
        "truth.json": json.dumps(truth(drawn, **more), indent=1) + "\n",
    }
    for kind, text in texts.items():
        (folder / f"{drawn.name}.{kind}").write_text(text)
