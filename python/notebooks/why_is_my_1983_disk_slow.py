# /// script
# requires-python = ">=3.10"
# dependencies = ["diskperf", "altair>=6.3", "marimo>=0.25", "polars>=2.1", "pyarrow>=26"]
#
# [tool.uv.sources]
# diskperf = { path = "../.." }
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Why is my 1983 disk slow?")

with app.setup:
    import math

    import altair as alt
    import diskperf
    import marimo as mo
    import polars as pl


@app.cell(hide_code=True)
def _(reads, run_shares, media_kb_per_s):
    mo.md(f"""
    # Why is my 1983 disk slow?

    It is the summer of 1983. You have a VAX-11/780 with four megabytes of memory, a new
    Emulex SC780 controller in its cabinet, and one of the best drives of the year, a
    Fujitsu Eagle. Bits come off its surface at **{media_kb_per_s:,.0f} KB/s** while a track
    passes under the head. You make a 4.2BSD file system, write a file of 8 MB with `write`
    and read it with `read`, and get **{run_shares["lowest"]:.0%} to
    {run_shares["highest"]:.0%}** of that. The file system is fresh, nothing else uses the
    drive, and nobody else is logged in.

    This notebook finds out where the rest goes, the way you would do it if you could look
    inside. diskperf runs the four programs of Kridle and McKusick's report of 27 July 1983
    (*Performance Effects of Disk Subsystem Choices for VAX Systems Running 4.2BSD UNIX*) on
    a model of that computer, in virtual time, and keeps an account of every nanosecond. You
    need to know what a track, a sector and a revolution are; the rest is below.

    The answer in one sentence, so that you know what to look for: **the file system leaves a
    gap between any two blocks of a file, because the computer needs time between two
    requests; the gap alone halves the speed, and where it is a fraction of a millisecond too
    small, every such block costs a whole revolution more** — in the read below
    {reads["missed"]} times out of {reads["requests"]}.
    """)
    return


@app.cell
def _():
    vax = diskperf.System("vax780-sc780-eagle")
    ffs83 = vax.run("ffs83")
    eagle = diskperf.Catalogue().show("eagle")
    ffs83
    return eagle, ffs83, vax


@app.cell
def _(eagle, ffs83):
    revolution_ms, track_kb = eagle.figures["revolution"][0], eagle.figures["track"][0]
    media_kb_per_s = 1000 * track_kb / revolution_ms
    # Results are Arrow columns: polars, pandas, pyarrow and DuckDB take them as they are.
    results = pl.DataFrame(ffs83.results).with_columns(
        share=pl.col("kb_per_s") / media_kb_per_s
    )
    of_8k = results.filter(pl.col("filesystem") == "ffs/8192")
    run_shares = {"lowest": of_8k["share"].min(), "highest": of_8k["share"].max()}
    results.select("filesystem", "program", pl.col("kb_per_s", "cpu_percent").round(1), pl.col("share").round(3))
    return media_kb_per_s, revolution_ms, run_shares


@app.cell
def _(ffs83):
    ffs83.plot()
    return


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 1. Where each millisecond went

    `explain` runs the same again and books the elapsed time of a program by what the program
    did, or waited for. Nothing in the account is a remainder: it sums to the nanosecond.
    """)
    return


@app.cell
def _(vax):
    read_8192 = vax.run("read_8192")
    explanation = read_8192.explain()
    read_8192.plot(next(name for name in read_8192.charts() if name.startswith("ledger")))
    return explanation, read_8192


@app.cell(hide_code=True)
def _(explanation, media_kb_per_s, vax):
    account = explanation.to_dict()["programs"][0]
    read_ms = {
        what: sum(row["ns"] for row in account["ledger"] if row["stage"] in stages) / 1e6
        for what, stages in {
            "media": ["media_transfer"],
            "copy": ["copy"],
            "missed": ["missed_revolution"],
            "rotation": ["rotational_latency"],
            "seek": ["seek"],
        }.items()
    }
    elapsed_ms = account["elapsed_ns"] / 1e6
    _search = max(account["missed"], key=lambda one: one["ns"])
    reads = {
        "requests": account["requests"][0]["usual_requests"],
        "missed": _search["count"],
        "late_ms": _search["late_median_ns"] / 1e6,
        "cost_ms": _search["ns"] / _search["count"] / 1e6,
    }
    mo.md(f"""
    Read it from the top. What the disk was bought for, **moving bits off the surface, is
    {8192 / media_kb_per_s:.1f} s of work** for 8 MB; the program waits for only
    {read_ms["media"] / 1e3:.1f} s of it, because the kernel reads one block ahead and most
    of the transfer happens while the processor copies the block before. **Seeking is
    {read_ms["seek"] / elapsed_ms:.1%} of the time**: whoever buys a drive with faster seeks
    for this buys nothing. What is large:

    - **copying**, {read_ms["copy"] / elapsed_ms:.0%}: a 780 takes
      {vax["host.copy_ms_per_kb"]} ms to move a kilobyte of memory, and every block is moved
      from the kernel to the program;
    - **missed revolutions**, {read_ms["missed"] / elapsed_ms:.0%}: {reads["missed"]} of
      {reads["requests"]} blocks were asked for a median of {reads["late_ms"]:.2f} ms after
      their deadline. Being late by that costs {reads["cost_ms"]:.1f} ms each time, because
      a disk does not wait: the sector comes round again in a revolution.

    In diskperf's own words:

    > {account["verdict"]}
    """)
    return (reads,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ### What would help, and what would not

    Each bar is the same program on the same machine with one thing changed. Some of the
    changes are not for sale (*no missed revolution*); they say what the most is that such a
    change could bring. A pair marked * gains more together than the sum of both.
    """)
    return


@app.cell
def _(explanation):
    changes = pl.DataFrame(explanation.counterfactuals).with_columns(
        what=pl.col("change") + pl.when("beats_sum").then(pl.lit(" *")).otherwise(pl.lit("")),
        seconds=pl.col("elapsed_ns") / 1e9,
    )
    # Pairs that are hardly more than one of them alone would bury the others.
    shown = changes.filter(~pl.col("beats_sum") | (pl.col("gain") > 0.4)).filter(
        pl.col("gain").abs() > 0.005
    )
    _bars = alt.Chart(shown.select("what", "gain", "seconds")).encode(
        y=alt.Y("what:N", sort=None, title=None, axis=alt.Axis(labelLimit=420)),
        x=alt.X(
            "gain:Q",
            title="elapsed time saved (negative: added)",
            axis=alt.Axis(format="%"),
            scale=alt.Scale(domain=[-1.1, 0.8]),
        ),
    )
    alt.layer(
        _bars.mark_bar().encode(
            color=alt.condition("datum.gain > 0", alt.value("#479b3c"), alt.value("#d8403d")),
            tooltip=["what", alt.Tooltip("gain:Q", format="+.1%"), alt.Tooltip("seconds:Q", format=".2f")],
        ),
        _bars.transform_filter("datum.gain > 0").mark_text(align="left", dx=4).encode(
            text=alt.Text("gain:Q", format=".0%")
        ),
        _bars.transform_filter("datum.gain <= 0").mark_text(align="right", dx=-4).encode(
            text=alt.Text("gain:Q", format=".0%")
        ),
    ).properties(width=380, title="read_8192, 8K blocks: one thing changed")
    return (changes,)


@app.cell(hide_code=True)
def _(changes):
    gain_of = dict(changes.select("change", "gain").iter_rows())
    mo.md(f"""
    Two things to notice. A processor *infinitely* fast gains
    {gain_of["processor infinitely fast"]:.0%}, no more than one twice as fast
    ({gain_of["processor twice as fast"]:.0%}), than free copying
    ({gain_of["copying free"]:.0%}) — or than no missed revolutions at all
    ({gain_of["no missed revolution"]:.0%}). They all gain the **same** thing: the
    revolutions. Once no block is late, something else holds everything up, and it is not
    the processor. And an infinitely fast processor *together with* no rotational latency
    gains {gain_of["processor infinitely fast and no rotational latency"]:.0%}: what stands
    behind the revolutions is rotation itself, that is, the place where the blocks lie.
    """)
    return (gain_of,)


@app.cell(hide_code=True)
def _(layout, vax):
    mo.md(f"""
    ## 2. The gap: the file skips every other block

    Here are the first blocks that the program read, as they lie on their tracks. Between the
    end of a block of {layout["block"]} sectors and the start of the next there are
    **{layout["step"] - layout["block"]} sectors that the file does not use**
    ({layout["gap_ms"]:.1f} ms). The file system was told to leave them, by `rotdelay`
    (`newfs -d`): {vax["filesystem.rotdelay_ms"]} ms here, made up to whole blocks. That is
    what it expects the computer to need from one request to the next.
    """)
    return


@app.function
def requests_of(spans):
    """One row for each request of a drive, in the order in which they were made."""
    return (
        spans.filter(pl.col("kind") == "request")
        .group_by("request", maintain_order=True)
        .agg(
            pl.col("sector", "sectors", "cylinder", "head", "purpose").first(),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
        )
    )


@app.cell
def _(explanation, revolution_ms, vax):
    spans = pl.DataFrame(explanation.spans())
    sectors_per_track = int(vax["drive.sectors_per_track"])
    blocks = requests_of(spans).filter(pl.col("purpose").is_in(["read", "read_ahead"]))
    steps = blocks["sector"].diff().drop_nulls()
    layout = {"block": int(vax["filesystem.block_bytes"]) // 512, "step": steps.mode()[0]}
    layout["gap_ms"] = (layout["step"] - layout["block"]) * revolution_ms / sectors_per_track
    layout["ms"] = layout["step"] * revolution_ms / sectors_per_track
    layout["kb_per_s"] = layout["block"] / 2 / layout["ms"] * 1000
    # From the second cylinder group on: the first twelve blocks lie elsewhere.
    _first = blocks.filter(pl.col("sectors") == layout["block"]).slice(14, 9)
    _drawn = _first.with_row_index("block").with_columns(
        block=pl.col("block") + 1,
        start=pl.col("sector") % sectors_per_track,
        track=pl.format("head {}", pl.col("head")),
    ).with_columns(end=pl.col("start") + layout["block"])
    _base = alt.Chart(_drawn.select("block", "start", "end", "track")).encode(
        y=alt.Y("track:N", sort=None, title=None)
    )
    alt.layer(
        _base.mark_bar(color="#4c78a8").encode(
            x=alt.X(
                "start:Q",
                title="sector of the track (48 pass in a revolution)",
                scale=alt.Scale(domain=[0, sectors_per_track]),
                axis=alt.Axis(values=list(range(0, sectors_per_track + 1, 8))),
            ),
            x2="end",
        ),
        _base.transform_calculate(middle="(datum.start + datum.end) / 2")
        .mark_text(color="white", fontWeight="bold")
        .encode(x="middle:Q", text="block:Q"),
    ).properties(width=560, height=150, title="Nine successive blocks of the file; what is white it skips")
    return layout, sectors_per_track, spans


@app.cell(hide_code=True)
def _(layout, media_kb_per_s):
    mo.md(f"""
    From the start of a block to the start of the next it is {layout["step"]} sectors, or
    {layout["ms"]:.1f} ms. **No program can read such a file faster than
    {layout["kb_per_s"]:,.0f} KB/s**, {layout["kb_per_s"] / media_kb_per_s:.0%} of what the
    surface gives, and it gets that only if it is never late. That is the first half of the
    answer, and it is deliberate.
    """)
    return


@app.cell(hide_code=True)
def _(vax):
    mo.md(f"""
    ## 3. One missed revolution

    And this is what it looks like to be late. Dashed: the moments at which the first sector
    of the wanted block passes under the head. Dotted: the deadline. The driver does not
    simply tell the drive to read. It has the drive search for a sector that comes
    {vax["driver.search_lead_sectors"]} sectors earlier (the *search lead*) and call when it
    is there, so that the controller is held for no longer than it must.
    """)
    return


@app.function
def parts_of(stage):
    """What a stage counts as, in a chart of few colours."""
    return {
        "copy": "copying to the program",
        "interrupt": "interrupts",
        "missed_revolution": "missed revolution",
        "rotational_latency": "rotational latency",
        "media_transfer": "media transfer",
        "seek": "seek",
        "driver_queue": "waiting in the driver",
        "cpu_wait": "waiting for the processor",
        "memory_contention": "waiting for memory",
    }.get(stage, "kernel: calls, cache, driver")


@app.function
def a_missed_revolution(spans, revolution_ms, lead_ms):
    """The spans around a missed revolution of the commonest kind, near the middle of a
    run, in lanes and in ms; and what it was, or None where none was missed."""
    missed = spans.filter(
        (pl.col("kind") == "request") & (pl.col("stage") == "missed_revolution")
    ).with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    if missed.is_empty():
        return None, None
    commonest = missed.group_by("cause").agg(pl.col("ns").sum()).sort("ns")["cause"][-1]
    missed = missed.filter(pl.col("cause") == commonest)
    request = missed["request"][missed.height // 2]
    own = spans.filter((pl.col("kind") == "request") & (pl.col("request") == request))
    read_ns = own.filter(pl.col("stage") == "media_transfer")["start_ns"].min()
    end_ns = own["end_ns"].max()
    # What the drive did before it: the request that it finished last.
    begun_ns = min(own["start_ns"].min(), read_ns - 1e6 * revolution_ms)
    before = spans.filter(
        (pl.col("kind") == "request") & (pl.col("request") != request) & (pl.col("start_ns") < begun_ns)
    )
    start_ns = begun_ns - 5e6
    lanes = (
        pl.when(pl.col("kind") == "process").then(pl.lit("program"))
        .when(pl.col("kind") == "handler").then(pl.lit("interrupt handlers"))
        .when(pl.col("request") == request).then(pl.lit("this block's request"))
        .when(pl.col("request").is_in(before["request"].unique().to_list())).then(pl.lit("the one before"))
    )  # fmt: skip
    window = (
        spans.filter((pl.col("end_ns") > start_ns) & (pl.col("start_ns") < end_ns))
        .with_columns(
            lane=lanes,
            what=pl.col("stage").map_elements(parts_of, return_dtype=pl.String),
            from_ms=(pl.max_horizontal("start_ns", pl.lit(start_ns)) - start_ns) / 1e6,
            to_ms=(pl.min_horizontal("end_ns", pl.lit(end_ns)) - start_ns) / 1e6,
        )
        .filter(pl.col("lane").is_not_null())
        .select("lane", "what", "stage", "from_ms", "to_ms")
    )
    about = {
        "cause": commonest,
        "count": missed.height,
        "passes_ms": [(read_ns - start_ns) / 1e6 - revolution_ms, (read_ns - start_ns) / 1e6],
        "deadline_ms": (
            None if lead_ms is None or commonest != "search" else (read_ns - start_ns) / 1e6 - revolution_ms - lead_ms
        ),
    }
    return window, about


@app.function
def timeline(window, about):
    """A chart of what `a_missed_revolution` found."""
    lanes = ["program", "interrupt handlers", "the one before", "this block's request"]
    colors = {
        "kernel: calls, cache, driver": "#4c78a8",
        "copying to the program": "#86a8cf",
        "interrupts": "#3f9c98",
        "waiting for the processor": "#9d6fb0",
        "waiting for memory": "#c9b3d6",
        "waiting in the driver": "#8b9299",
        "seek": "#c9992e",
        "rotational latency": "#e8883a",
        "missed revolution": "#d8403d",
        "media transfer": "#479b3c",
    }
    present = [name for name in colors if name in window["what"].unique().to_list()]
    bars = (
        alt.Chart(window)
        .mark_bar(height={"band": 0.8})
        .encode(
            x=alt.X("from_ms:Q", title="milliseconds", scale=alt.Scale(nice=False)),
            x2="to_ms",
            y=alt.Y("lane:N", sort=lanes, title=None),
            color=alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(domain=present, range=[colors[name] for name in present]),
                legend=alt.Legend(orient="bottom", columns=4, labelLimit=220),
            ),
            tooltip=["lane", "what", "stage", alt.Tooltip("from_ms:Q", format=".2f"),
                     alt.Tooltip("to_ms:Q", format=".2f")],
        )
    )  # fmt: skip
    passes = pl.DataFrame({
        "ms": about["passes_ms"], "label": ["it passes: too early for us", "it passes again"],
    })  # fmt: skip
    deadline = pl.DataFrame({"ms": [about["deadline_ms"]], "label": ["deadline"]}).drop_nulls()
    rules = alt.Chart(deadline).mark_rule(strokeDash=[1, 3], strokeWidth=2, color="#000").encode(x="ms:Q") + alt.Chart(
        deadline
    ).mark_text(align="right", baseline="bottom", dx=-3, dy=-2, color="#333").encode(
        x="ms:Q", y=alt.value(0), text="label"
    )
    rules += alt.Chart(passes).mark_rule(strokeDash=[5, 3], color="#333").encode(x="ms:Q")
    labels = (
        alt.Chart(passes)
        .mark_text(align="left", baseline="bottom", dx=3, dy=-2, color="#333")
        .encode(x="ms:Q", y=alt.value(0), text="label")
    )
    return (bars + rules + labels).properties(width=600, height=200)


@app.cell
def _(revolution_ms, sectors_per_track, spans, vax):
    _lead_ms = int(vax["driver.search_lead_sectors"]) * revolution_ms / sectors_per_track
    window, about = a_missed_revolution(spans, revolution_ms, _lead_ms)
    timeline(window, about)
    return (about,)


@app.cell(hide_code=True)
def _(about, layout, reads, revolution_ms):
    mo.md(f"""
    Read it from the left. The drive ends with the block before, and the program, still at
    work on an earlier one, comes back to the kernel with its next `read`. Only that makes
    the kernel ask for the block after (it reads one block ahead, no more), and so the search
    command is at the drive {reads["late_ms"]:.2f} ms (the median) after the sector that it is
    to look for. The block itself has not even come yet: it passes
    {about["passes_ms"][0] - about["deadline_ms"]:.1f} ms after the deadline, unused. The
    drive finds its sector a revolution later, {revolution_ms:.1f} ms, and everybody waits for
    it. Then there is time in plenty, and the next few blocks are caught, until the lag has
    built up again. The gap of {layout["gap_ms"]:.1f} ms was almost long enough.
    """)
    return


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 4. The cliff

    If the gap is almost long enough, what do other gaps give? A sweep: `rotdelay` from 0 to
    12 ms, for both block sizes of the report, all four programs. Grey and dashed is the most that the
    layout allows if no block is ever late; without a gap that is the rate of the surface,
    above the chart.
    """)
    return


@app.cell
def _(vax):
    rotdelays = diskperf.sweep(
        vax,
        "ffs83",
        over={"filesystem.block_bytes": [4096, 8192], "filesystem.rotdelay_ms": "0..12"},
        repetitions=1,
        progress=False,
    )
    pl.DataFrame(rotdelays).select(
        "filesystem", "filesystem.rotdelay_ms", "program", pl.col("kb_per_s").round(1), "missed_revolutions", "requests"
    )
    return (rotdelays,)


@app.function
def of_drive(system, key):
    """A number of a system's first drive, whose drives may be alike or not."""
    alike = f"drive.{key}" in system.parameters["path"]
    return system[f"drive.{key}" if alike else f"drive.1.{key}"]


@app.function
def ceiling_kb_per_s(system, block_bytes, rotdelay_ms, revolution_ms):
    """What a file of 4.2BSD's layout gives if no block is ever late: the gap is whole
    blocks, of as many fragments as pass in `rotdelay_ms`, rounded down and then up
    (blkpref in 4.2BSD's ufs_alloc.c)."""
    sectors = int(of_drive(system, "sectors_per_track"))
    fragment = int(system["filesystem.fragment_bytes"]) // 512
    turns_per_s = int(float(of_drive(system, "label_rpm"))) // 60
    block = block_bytes // 512
    fragments = rotdelay_ms * turns_per_s * sectors // (fragment * 1000)
    gap = math.ceil(fragments * fragment / block)
    return block_bytes / 1024 / ((1 + gap) * block * revolution_ms / sectors) * 1000


@app.function
def tidy(swept):
    """The columns of a sweep over rotdelay that the charts below use."""
    return pl.DataFrame(swept).select(
        "program",
        pl.col("filesystem.rotdelay_ms").alias("rotdelay_ms"),
        (pl.format("{}K blocks", pl.col("filesystem").str.split("/").list.last().cast(pl.Int64) // 1024))
        .alias("blocks"),
        "kb_per_s",
        (pl.col("missed_revolutions") / pl.col("requests")).alias("missed_per_request"),
    )  # fmt: skip


@app.function
def cliff_chart(rows, ceilings):
    """KB/s and missed revolutions by rotdelay, for each size of blocks."""
    programs = rows["program"].unique(maintain_order=True).to_list()
    color = alt.Color(
        "program:N", sort=programs, title=None, legend=alt.Legend(orient="bottom", columns=5)
    )
    x = alt.X("rotdelay_ms:Q", title="rotdelay, ms", scale=alt.Scale(nice=False), axis=alt.Axis(tickMinStep=2))

    def panel(blocks):
        own, top = rows.filter(pl.col("blocks") == blocks), ceilings.filter(pl.col("blocks") == blocks)
        ceiling = (
            alt.Chart(top)
            .mark_line(interpolate="step-after", strokeDash=[4, 3], color="#777")
            .encode(x=x, y="kb_per_s:Q")
        )
        rates = (
            alt.Chart(own)
            .mark_line(opacity=0.8, point=alt.OverlayMarkDef(size=28))
            .encode(
                x=x,
                y=alt.Y("kb_per_s:Q", title="KB/s", scale=alt.Scale(domain=[0, 1000], clamp=True)),
                color=color,
                tooltip=["program", "rotdelay_ms", alt.Tooltip("kb_per_s:Q", format=",.0f")],
            )
        )
        missed = (
            alt.Chart(own)
            .mark_line(opacity=0.8, point=alt.OverlayMarkDef(size=28))
            .encode(
                x=x,
                y=alt.Y("missed_per_request:Q", title="missed per request", scale=alt.Scale(domain=[0, 1])),
                color=color,
            )
        )
        size = {"width": 290}
        return (ceiling + rates).properties(height=230, title=blocks, **size) & missed.properties(
            height=110, **size
        )

    return alt.hconcat(*(panel(blocks) for blocks in rows["blocks"].unique(maintain_order=True)))


@app.cell
def _(revolution_ms, rotdelays, vax):
    rates = tidy(rotdelays)
    ceilings = pl.DataFrame([
        {
            "blocks": f"{block // 1024}K blocks",
            "rotdelay_ms": ms,
            "kb_per_s": ceiling_kb_per_s(vax, block, ms, revolution_ms),
        }
        for block in (4096, 8192)
        for ms in range(13)
    ])  # fmt: skip
    cliff_chart(rates, ceilings)
    return ceilings, rates


@app.function
def cliff_of(rates, blocks, program):
    """The step of rotdelay at which the most is gained: from, to, and KB/s at both."""
    rows = rates.filter((pl.col("blocks") == blocks) & (pl.col("program") == program)).sort("rotdelay_ms")
    pairs = list(zip(rows.iter_rows(named=True), rows[1:].iter_rows(named=True)))
    below, above = max(pairs, key=lambda pair: pair[1]["kb_per_s"] / pair[0]["kb_per_s"])
    return {
        "from_ms": below["rotdelay_ms"],
        "to_ms": above["rotdelay_ms"],
        "from_kb_per_s": below["kb_per_s"],
        "to_kb_per_s": above["kb_per_s"],
        "missed_below": below["missed_per_request"],
        "missed_above": above["missed_per_request"],
    }


@app.cell(hide_code=True)
def _(ceilings, rates):
    cliff_4k, cliff_8k = (cliff_of(rates, blocks, "read_8192") for blocks in ("4K blocks", "8K blocks"))
    _too_much = rates.filter(
        (pl.col("blocks") == "4K blocks") & (pl.col("program") == "read_8192") & (pl.col("rotdelay_ms") == 12)
    )["kb_per_s"][0]
    _ceiling = ceilings.filter((pl.col("blocks") == "4K blocks") & (pl.col("rotdelay_ms") == cliff_4k["from_ms"]))
    mo.md(f"""
    **With blocks of 4K there is a cliff between {cliff_4k["from_ms"]:g} and
    {cliff_4k["to_ms"]:g} ms: {cliff_4k["from_kb_per_s"]:,.0f} KB/s on one side,
    {cliff_4k["to_kb_per_s"]:,.0f} on the other**, {cliff_4k["to_kb_per_s"] / cliff_4k["from_kb_per_s"]:.1f}
    times as much, for one step of one number given to `newfs`. Below it
    {cliff_4k["missed_below"]:.0%} of the requests miss their revolution, above it
    {cliff_4k["missed_above"]:.0%}. The layout below the cliff would allow
    {_ceiling["kb_per_s"][0]:,.0f} KB/s, more than any other with a gap; it is the tightest
    one, and therefore the worst. **Too large a gap costs as well, but gently**, for then the
    layout itself is the limit: 12 ms give {_too_much:,.0f} KB/s,
    {"still more" if _too_much > cliff_4k["from_kb_per_s"] else "less"} than a gap that is a
    millisecond too short. That is the rule to take away: a little too long costs a little, a
    little too short costs most of it.

    With blocks of 8K the gap is a whole block of {8192 // 512} sectors from
    {cliff_8k["to_ms"]:g} ms on, which is nearly enough; only without any gap do reads fall
    to {cliff_8k["from_kb_per_s"]:,.0f} KB/s, more than a revolution for each block.

    The steps are there because the gap is counted in whole blocks. 2 and 3 ms are the same
    layout, and so are 4 and 5.
    """)
    return cliff_4k, cliff_8k


@app.cell(hide_code=True)
def _():
    mo.md("""
    ### The same cliff elsewhere

    On 25 July 1984 Don Speck wrote to net.unix-wizards about a 780 with another controller
    (SI 9900) and another drive (CDC 9775). He printed: with the default of 4 ms "only about
    40 4Kbyte blocks per second", and after `tunefs -d 7` "the throughput almost doubles".
    He asked whether something was wrong with his configuration.
    """)
    return


@app.cell
def _():
    speck = diskperf.System("vax780-si9900-cdc9775").with_(filesystem="4k")
    _swept = pl.DataFrame(
        diskperf.sweep(speck, "read_8192", over={"filesystem.rotdelay_ms": "0..12"}, progress=False)
    )
    speck_rows = _swept.select(
        pl.col("filesystem.rotdelay_ms").alias("rotdelay_ms"),
        blocks_per_s=pl.col("kb_per_s") / 4,
        missed=pl.col("missed_revolutions") / pl.col("requests"),
    )
    alt.Chart(speck_rows).mark_line(point=True).encode(
        x=alt.X("rotdelay_ms:Q", title="rotdelay, ms", axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("blocks_per_s:Q", title="blocks of 4K per second", scale=alt.Scale(domain=[0, 100])),
        tooltip=["rotdelay_ms", alt.Tooltip("blocks_per_s:Q", format=".1f")],
    ).properties(width=480, height=220, title="Don Speck's machine: read_8192")
    return (speck_rows,)


@app.cell(hide_code=True)
def _(speck_rows):
    speck_at = {row["rotdelay_ms"]: row for row in speck_rows.iter_rows(named=True)}
    mo.md(f"""
    The model gives {speck_at[4]["blocks_per_s"]:.0f} blocks per second at 4 ms, with
    {speck_at[4]["missed"]:.0%} of the blocks missed, and {speck_at[7]["blocks_per_s"]:.0f} at
    7 ms, {speck_at[7]["blocks_per_s"] / speck_at[4]["blocks_per_s"]:.2f} times as many.
    Nothing was wrong: on his controller a request takes longer, and the cliff stood at
    another place. **There is no good default for a number that depends on the computer, the
    controller and the drive together.**
    """)
    return (speck_at,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 5. Your turn

    Choose a machine, a program and a gap. (On the page as it is exported: the machine of
    the report with blocks of 4K, just below its cliff.)
    """)
    return


@app.cell
def _():
    machines = {
        "VAX-11/780, SC780, Eagle": "vax780-sc780-eagle",
        "VAX-11/780, SI 9900, Eagle": "vax780-si9900-eagle",
        "VAX-11/780, SI 9900, CDC 9775 (Don Speck)": "vax780-si9900-cdc9775",
        "VAX-11/750, SC750, Eagle": "vax750-sc750-eagle",
        "VAX-11/780, UDA50, RA81": "vax780-uda50-ra81",
    }
    machine = mo.ui.dropdown(machines, value="VAX-11/780, SC780, Eagle", label="machine")
    program = mo.ui.dropdown(
        ["read_8192", "write_4096", "write_8192", "rewrite_8192"], value="read_8192", label="program"
    )
    block_bytes = mo.ui.dropdown({"4K": 4096, "8K": 8192}, value="4K", label="blocks")
    rotdelay_ms = mo.ui.slider(0, 12, value=3, label="rotdelay, ms", show_value=True)
    mo.hstack([machine, program, block_bytes, rotdelay_ms], justify="start", wrap=True)
    return block_bytes, machine, program, rotdelay_ms


@app.cell
def _(block_bytes, machine, program, rotdelay_ms):
    yours = diskperf.System(machine.value).with_(
        {"filesystem.block_bytes": block_bytes.value, "filesystem.rotdelay_ms": rotdelay_ms.value}
    )
    your_run = yours.run(program.value, repetitions=1)
    your_explanation = your_run.explain(counterfactuals=False)
    your_run.plot(next(name for name in your_run.charts() if name.startswith("ledger")))
    return your_explanation, your_run, yours


@app.cell
def _(your_explanation, yours):
    _turn_ms = 60_000 / float(of_drive(yours, "spindle_rpm"))
    # Not every driver searches, and one that does may have a lead for each type of drive.
    _of = {row["path"]: row["value"] for row in yours.parameters}
    _type = of_drive(yours, "driver_type")
    _lead = _of.get("driver.search_lead_sectors", _of.get(f"driver.type.{_type}.search_lead_sectors"))
    _lead_ms = None if _lead is None else int(_lead) * _turn_ms / int(of_drive(yours, "sectors_per_track"))
    _window, _about = a_missed_revolution(pl.DataFrame(your_explanation.spans()), _turn_ms, _lead_ms)
    (
        mo.md("*No revolution was missed: there is nothing to draw.*")
        if _about is None
        else timeline(_window, _about)
    )
    return


@app.cell(hide_code=True)
def _(block_bytes, program, rotdelay_ms, your_explanation, your_run, yours):
    _turn_ms = 60_000 / float(of_drive(yours, "spindle_rpm"))
    your_top = ceiling_kb_per_s(yours, block_bytes.value, rotdelay_ms.value, _turn_ms)
    your_rate = your_run.results["kb_per_s"][0]
    your_missed = sum(one["count"] for one in your_explanation.to_dict()["programs"][0]["missed"])
    mo.md(f"""
    **{your_rate:,.0f} KB/s** by {program.value} with blocks of {block_bytes.value // 1024}K
    and {rotdelay_ms.value} ms; the layout would allow {your_top:,.0f}; {your_missed:,}
    revolutions were missed.

    > {your_explanation.to_dict()["programs"][0]["verdict"]}
    """)
    return your_missed, your_rate, your_top


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 6. What else decides whether a block is late

    The gap is one side of the race. The other is how soon the next command can be at the
    drive. Three numbers decide that: whether the kernel reads ahead (`breada`, one
    block), how many blocks the file system lays out without a gap (`maxcontig`), and, in the driver of
    the drive (`hp.c`), how many sectors before the wanted one it has the drive call: the
    **search lead**.
    """)
    return


@app.cell
def _(vax):
    kernel_keys = {
        "kernel.read_ahead_blocks": ("read-ahead, blocks", [0, 1]),
        "filesystem.maxcontig": ("maxcontig, blocks", [1, 2, 4, 8, 16]),
        "driver.search_lead_sectors": ("search lead, sectors", list(range(0, 16))),
    }
    kernel_rows = pl.concat([
        pl.DataFrame(diskperf.sweep(vax, "read_8192", over={key: values}, repetitions=1, progress=False))
        .select(pl.lit(key).alias("key"), pl.col(key).cast(pl.Int64).alias("value"), "kb_per_s", "missed_revolutions")
        for key, (_, values) in kernel_keys.items()
    ])  # fmt: skip
    alt.hconcat(*(
        alt.Chart(kernel_rows.filter(pl.col("key") == key))
        .mark_bar(color="#4c78a8")
        .encode(
            x=alt.X("value:O", title=title, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("kb_per_s:Q", title="KB/s", scale=alt.Scale(domain=[0, 700])),
            tooltip=["value", alt.Tooltip("kb_per_s:Q", format=",.0f"), "missed_revolutions"],
        )
        .properties(width=width, height=200)
        for (key, (title, _)), width in zip(kernel_keys.items(), (70, 150, 330))
    )).properties(title="read_8192 with blocks of 8K and 4 ms")
    return (kernel_rows,)


@app.cell(hide_code=True)
def _(kernel_rows, vax):
    kernel_at = {
        (row["key"], row["value"]): row["kb_per_s"] for row in kernel_rows.iter_rows(named=True)
    }
    _lead = {value: rate for (key, value), rate in kernel_at.items() if key == "driver.search_lead_sectors"}
    best_lead = max(_lead, key=_lead.get)
    mo.md(f"""
    - **Without read-ahead** every block is asked for when the program wants it, which is
      too late: {kernel_at["kernel.read_ahead_blocks", 0]:,.0f} KB/s. One block of read-ahead
      is what makes {kernel_at["kernel.read_ahead_blocks", 1]:,.0f} possible at all.
    - **`maxcontig`** above 1 removes gaps, and a controller that buffers
      {vax["controller.buffer_sectors"]} sector cannot use what comes by while the computer
      is thinking: 2 blocks without a gap give {kernel_at["filesystem.maxcontig", 2]:,.0f}
      KB/s, 16 give {kernel_at["filesystem.maxcontig", 16]:,.0f}. (Four years later, on
      controllers with a cache, it is the other way round: see the notebook *Which cache
      bits?*)
    - **The search lead** has a cliff of its own. With {vax["driver.search_lead_sectors"]}
      sectors, the driver's own since 30 May 1983, it is
      {_lead[int(vax["driver.search_lead_sectors"])]:,.0f} KB/s; with 2, which it had before,
      {_lead[2]:,.0f}; the best here is {best_lead} ({_lead[best_lead]:,.0f}). Too short a lead, and the drive's
      call ("your sector is coming") is answered after the sector has gone; too long, and
      the command to search comes after the sector it is to search for.
    """)
    return best_lead, kernel_at


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 7. What the report printed beside it

    Table 5 of the report shows the same hardware three times in 1983, while its authors
    found out just this: with a search lead that was too short, with the lead corrected, and
    with the controller's bus arbitration improved. `reproduce` runs the models of every cell
    and puts what was printed beside it.
    """)
    return


@app.cell
def _():
    table_5 = diskperf.reproduce("kridle-mckusick-1983", cell="*/T5/*/1")
    return (table_5,)


@app.cell
def _(table_5):
    stages = {
        "vax780-sc780-eagle:inadequate-lead-initial-arbitration": "1 lead too short",
        "vax780-sc780-eagle:initial-arbitration": "2 lead corrected",
        "vax780-sc780-eagle": "3 arbitration improved",
    }
    printed = (
        pl.DataFrame(table_5.cells)
        .filter((pl.col("quantity") == "kb_per_s") & pl.col("printed").is_not_null())
        .with_columns(
            system=pl.col("target").replace_strict(stages),
            blocks=pl.col("filesystem").str.slice(0, 2) + " blocks",
        )
        .select("system", "blocks", "test", "printed", "modelled", "error")
    )
    _long = printed.unpivot(
        ["printed", "modelled"], index=["system", "blocks", "test"], variable_name="what", value_name="kb_per_s"
    )
    alt.Chart(_long).mark_bar().encode(
        x=alt.X("system:N", title=None, axis=alt.Axis(labelAngle=-35)),
        xOffset=alt.XOffset("what:N", sort=["printed", "modelled"]),
        y=alt.Y("kb_per_s:Q", title="KB/s"),
        color=alt.Color(
            "what:N", title=None, sort=["printed", "modelled"],
            scale=alt.Scale(domain=["printed", "modelled"], range=["#8b9299", "#4c78a8"]),
            legend=alt.Legend(orient="bottom"),
        ),
        column=alt.Column(
            "test:N", title=None, sort=["read_8192", "write_4096", "write_8192", "rewrite_8192"]
        ),
        row=alt.Row("blocks:N", title=None, sort=["8K blocks", "4K blocks"]),
        tooltip=["system", "test", "what", alt.Tooltip("kb_per_s:Q", format=",.0f")],
    ).properties(width=120, height=130)  # fmt: skip
    return (printed,)


@app.cell(hide_code=True)
def _(printed):
    _error = printed["error"].abs()
    _worst = printed.row(_error.arg_max(), named=True)
    _reads = printed.filter(pl.col("test") == "read_8192")
    _gain = {
        blocks: {
            what: [
                _reads.filter((pl.col("blocks") == blocks) & (pl.col("system") == system))[what][0]
                for system in ("1 lead too short", "3 arbitration improved")
            ]
            for what in ("printed", "modelled")
        }
        for blocks in ("8K blocks", "4K blocks")
    }
    _eight, _four = _gain["8K blocks"], _gain["4K blocks"]
    mo.md(f"""
    Table 5 printed {_eight["printed"][0]:.0f} KB/s of read_8192 at first and
    {_eight["printed"][1]:.0f} in the end with blocks of 8K, {_four["printed"][0]:.0f} and
    {_four["printed"][1]:.0f} with blocks of 4K; the model gives
    {_eight["modelled"][0]:.0f} and {_eight["modelled"][1]:.0f}, and
    {_four["modelled"][0]:.0f} and {_four["modelled"][1]:.0f}. Over all {printed.height} rates
    of the table with one drive its error is {_error.median():.0%} in the median and
    {_error.max():.0%} at the most ({_worst["test"]}, {_worst["blocks"]}, "{_worst["system"][2:]}").
    How often data came late under the first arbitration nobody counted: the model's rate is
    calibrated on the printed numbers (the catalogue says which).
    """)
    return


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 8. What could be changed in 1983, and what each buys

    Back to the day the controller came: the search lead of the old driver, the first
    arbitration, 2 ms of `rotdelay` (the default of `newfs` until 3 July 1983) and blocks of
    4K. Four things could be changed. Made in the order of that year:
    """)
    return


@app.cell
def _():
    as_it_came = diskperf.System("vax780-sc780-eagle:inadequate-lead-initial-arbitration").with_(filesystem="4k")
    remedies = {
        "search lead (hp.c, 30 May)": {"driver": "hp-1983-07"},
        "bus arbitration (Emulex)": {"controller": "sc780"},
        "rotdelay 2 to 4 ms (newfs, 4 July)": {"filesystem.rotdelay_ms": 4},
        "blocks of 8K (newfs -b 8192)": {"filesystem.block_bytes": 8192},
    }

    def together(changes):
        run = as_it_came.with_({"filesystem.rotdelay_ms": 2, **changes}).run("ffs83", repetitions=1)
        # The suite makes both file systems: those of the block size that is asked for.
        wanted = f"ffs/{changes.get('filesystem.block_bytes', 4096)}"
        of = pl.DataFrame(run.results).filter(pl.col("filesystem") == wanted)["kb_per_s"]
        return math.exp(of.log().mean())

    ladder = [{"step": "as it came", "kb_per_s": together({}), "alone": None}]
    made = {}
    for what, change in remedies.items():
        made = {**made, **change}
        ladder.append({"step": f"+ {what}", "kb_per_s": together(made), "alone": together(change)})
    ladder = pl.DataFrame(ladder, infer_schema_length=None).with_columns(
        gain=pl.col("kb_per_s") / pl.col("kb_per_s").shift() - 1,
        gain_alone=pl.col("alone") / pl.col("kb_per_s").first() - 1,
    )
    _bars = alt.Chart(ladder.select("step", "kb_per_s")).encode(
        y=alt.Y("step:N", sort=None, title=None, axis=alt.Axis(labelLimit=300)),
        x=alt.X("kb_per_s:Q", title="KB/s, geometric mean of the four programs", scale=alt.Scale(domainMax=600), axis=alt.Axis(tickCount=6)),
    )
    (
        _bars.mark_bar(color="#4c78a8")
        + _bars.mark_text(align="left", dx=4).encode(text=alt.Text("kb_per_s:Q", format=",.0f"))
    ).properties(width=400, height=190, title="One remedy after the other")
    return as_it_came, ladder, remedies


@app.cell(hide_code=True)
def _(ladder):
    _gain = dict(ladder.select("step", "gain").iter_rows())
    _alone = dict(ladder.select("step", "gain_alone").iter_rows())
    _lines = "\n".join(
        f"| {step.removeprefix('+ ')} | {_gain[step]:+.0%} | {_alone[step]:+.0%} |"
        for step in ladder["step"][1:]
    )
    mo.md(f"""
| remedy | after those before it | alone |
|:---|---:|---:|
{_lines}

Together they make it {ladder["kb_per_s"][-1] / ladder["kb_per_s"][0]:.1f} times as fast,
and none of them is another disk. The columns differ because all of them are for the
same illness: as long as one deadline is missed for every block, meeting another one
earns little, and the longer gap by itself is
{"a loss" if ladder["gain_alone"][3] < 0 else "a gain"} ({ladder["gain_alone"][3]:+.0%}).
""")
    return


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 9. The parameter that matters most

    Last, the numbers that could be turned, each over a reasonable range, the others as they
    were in July 1983 with blocks of 4K. A bar goes from the worst value to the best; the red
    line is July 1983. `filesystem` is what anybody may give to `newfs`; for the others one
    compiles a kernel.
    """)
    return


@app.cell
def _(vax):
    today = vax.with_(filesystem="4k")
    turned = {
        "filesystem.rotdelay_ms": list(range(0, 9)),
        "filesystem.block_bytes": [4096, 8192],
        "filesystem.maxcontig": [1, 2, 4, 8],
        "filesystem.blocks_per_section": [64, 256, 1024],
        "filesystem.cylinders_per_group": [8, 16, 32],
        "driver.search_lead_sectors": [2, 3, 5, 7, 9, 12, 15],
        "kernel.read_ahead_blocks": [0, 1],
        "kernel.disksort": ["1983", "reads-first", "first-come"],
    }

    def of_key(key, values):
        rows = pl.DataFrame(
            diskperf.sweep(today, "ffs83", over={key: values}, repetitions=1, progress=False)
        ).group_by(key, maintain_order=True).agg(rate=pl.col("kb_per_s").log().mean().exp())
        at = dict(rows.iter_rows())
        worst, best = min(at, key=at.get), max(at, key=at.get)
        return {
            "key": key, "by": "newfs" if key.startswith("filesystem") else "kernel", "low": at[worst], "high": at[best], "worst": str(worst), "best": str(best),
            "span": at[best] / at[worst],
        }  # fmt: skip

    tornado = pl.DataFrame([of_key(*one) for one in turned.items()]).sort("span", descending=True)
    today_kb_per_s = math.exp(
        pl.DataFrame(diskperf.run_points(today, "ffs83", [{}], repetitions=1))["kb_per_s"].log().mean()
    )
    _bars = alt.Chart(tornado).encode(y=alt.Y("key:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)))
    (
        _bars.mark_bar(height={"band": 0.6}).encode(
            color=alt.Color(
                "by:N", title="set by", scale=alt.Scale(domain=["newfs", "kernel"], range=["#86a8cf", "#c9b38a"])
            ),
            x=alt.X("low:Q", title="KB/s, geometric mean of the four programs", scale=alt.Scale(domain=[150, 550])),
            x2="high",
            tooltip=["key", "worst", alt.Tooltip("low:Q", format=",.0f"), "best", alt.Tooltip("high:Q", format=",.0f")],
        )
        + _bars.mark_text(align="right", dx=-4, fontSize=10).encode(x="low:Q", text="worst")
        + _bars.mark_text(align="left", dx=4, fontSize=10).encode(x="high:Q", text="best")
        + alt.Chart(pl.DataFrame({"x": [today_kb_per_s]})).mark_rule(color="#d8403d").encode(x="x:Q")
    ).properties(width=430, height=240, title="From the worst value to the best")
    return today_kb_per_s, tornado


@app.cell(hide_code=True)
def _(cliff_4k, cliff_8k, gain_of, layout, media_kb_per_s, tornado):
    _first = tornado.row(0, named=True)
    most_important = tornado.filter(pl.col("by") == "newfs").row(0, named=True)
    _idle = tornado.filter(pl.col("span") < 1.03)["key"].to_list()
    mo.md(f"""
    Of all of them `{_first["key"]}` has the widest bar ({_first["worst"]} to {_first["best"]}:
    {_first["span"]:.1f} times). Of those that need no new kernel **it is
    `{most_important["key"]}`: from {most_important["worst"]} to {most_important["best"]} the
    four programs become {most_important["span"]:.1f} times as fast.** The two are one
    question from both sides: is the command there when the sector comes?
    {" and ".join(f"`{key}`" for key in _idle)} move less than 3 %: whoever tunes those tunes
    the wrong thing.

    So, why is the disk slow?

    1. By design: with the gap a file is read at {layout["kb_per_s"]:,.0f} KB/s at the most,
       {layout["kb_per_s"] / media_kb_per_s:.0%} of the {media_kb_per_s:,.0f} that the surface
       gives, because the computer cannot be ready for the next block at once.
    2. By misfortune: where the computer is a little slower than the gap is long, a block
       costs a revolution more. Without those, the read would take
       {gain_of["no missed revolution"]:.0%} less time.
    3. A step of `rotdelay` is what makes it: {cliff_4k["from_ms"]:g} to {cliff_4k["to_ms"]:g}
       ms for {cliff_4k["to_kb_per_s"] / cliff_4k["from_kb_per_s"]:.1f} times the speed with
       blocks of 4K, {cliff_8k["from_ms"]:g} to {cliff_8k["to_ms"]:g} ms for
       {cliff_8k["to_kb_per_s"] / cliff_8k["from_kb_per_s"]:.1f} times with 8K. Err on the
       long side.

    At the prompt the same is, where `tune` says by itself that the best stands on a cliff,

    ```
    diskperf explain vax780-sc780-eagle --suite read_8192
    diskperf tune vax780-sc780-eagle --suite ffs83 --over filesystem.rotdelay_ms=0..12 \\
        --set filesystem.block_bytes=4096
    ```
    """)
    return (most_important,)


if __name__ == "__main__":
    app.run()
