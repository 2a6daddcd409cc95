# /// script
# requires-python = ">=3.10"
# dependencies = ["diskperf", "altair>=6.3", "marimo>=0.25", "polars>=2.1", "pyarrow>=26"]
#
# [tool.uv.sources]
# diskperf = { path = "../.." }
# ///

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Which cache bits?")

with app.setup:
    import math
    import shlex
    from concurrent.futures import ThreadPoolExecutor

    import altair as alt
    import diskperf
    import marimo as mo
    import polars as pl

    BITS = ["SEA", "CRD", "RAP", "CWT", "SRD", "SWT", "XHD", "XCY"]


@app.cell(hide_code=True)
def _(trials):
    _best, _worst = trials.row(0, named=True), trials.row(-1, named=True)
    mo.md(f"""
    # Which cache bits?

    In September 1987 Rayan Zachariassen of Toronto wrote to comp.periphs about two disk
    controllers that he had tried in a Sun 3/180. One of them, Ciprico's 3200 "Rimfire",
    keeps what it reads in a memory of its own, and what it does with that memory is said by
    eight bits and a number that the driver gives with every command. "A passtime with this
    controller is fiddling the cache control bits", he writes, and prints what came of five
    settings: the same `fsck` took {_best["printed"]:.1f} s with one and
    {_worst["printed"]:.1f} s with another.

    | bit | what it does |
    |:---|:---|
    | SEA | look for sectors in the cache before the disk is asked (and read ahead at all) |
    | CRD | keep what was read |
    | RAP | reading ahead goes before writes that wait |
    | CWT | keep what was written |
    | SRD, SWT | of the reads (writes) that wait take the nearest, not the first |
    | XHD | read ahead over the end of a track |
    | XCY | and over the end of a cylinder |

    The number is how many sectors it reads ahead. All nine are set for each of three classes
    of access: `raw` (past the file system, which is what `fsck` does), `file` (the file
    system's whole blocks) and `file_part` (its other accesses).

    Eight bits and a number for three classes are more than anybody tries by hand. This
    notebook tries them on the modelled controller, and says which bits matter for which kind
    of access, why, and which to set.
    """)
    return


@app.cell
def _():
    sun = diskperf.System("sun3-rimfire-2344")
    # Every number has a source: where is each of the bits from?
    bits_of_the_catalogue = pl.DataFrame(sun.parameters).filter(
        pl.col("path").str.contains(r"^controller\.(raw|file|file_part)_(cache|read)")
    )
    bits_of_the_catalogue.select("path", "value", "unit", "source", "meaning")
    return (sun,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 1. The five settings that were printed

    `reproduce` runs what the text measured (footnote 8 of its table "Miscellaneous") and puts
    both side by side.
    """)
    return


@app.function
def setting_of(test):
    """Of a cell's name (`fsck /dev/rXX0f ..., SEA|CRD 60`) the setting: bits and sectors."""
    bits, ahead = test.rsplit(", ", 1)[1].rsplit(" ", 1)
    return bits.replace("(|XCY)", ""), int(ahead)


@app.cell
def _():
    card = diskperf.reproduce("zachariassen-1987", cell="*rimfire/fsck*")
    trials = pl.DataFrame([
        {
            "setting": "{}, {} ahead".format(*setting_of(cell["test"])),
            "printed": cell["printed"],
            "modelled": cell["modelled"],
            "error": cell["error"],
        }
        for cell in card.cells
        if cell["quantity"] == "seconds"
    ]).sort("printed")  # fmt: skip
    trials.with_columns(pl.col("modelled").round(1), pl.col("error").round(3))
    return (trials,)


@app.cell
def _(trials):
    alt.Chart(trials.unpivot(["printed", "modelled"], index="setting", variable_name="what", value_name="s")).mark_bar().encode(
        y=alt.Y("setting:N", sort=None, title=None, axis=alt.Axis(labelLimit=240)),
        yOffset=alt.YOffset("what:N", sort=["printed", "modelled"]),
        x=alt.X("s:Q", title="fsck /dev/rXX0f, seconds (less is better)"),
        color=alt.Color(
            "what:N", title=None,
            scale=alt.Scale(domain=["printed", "modelled"], range=["#8b9299", "#4c78a8"]),
            legend=alt.Legend(orient="bottom"),
        ),
        tooltip=["setting", "what", alt.Tooltip("s:Q", format=".1f")],
    ).properties(width=430, height=200)  # fmt: skip
    return


@app.cell(hide_code=True)
def _(trials):
    _by = {row["setting"]: row for row in trials.iter_rows(named=True)}
    same_order = trials["modelled"].is_sorted()
    _worst = trials.row(trials["error"].abs().arg_max(), named=True)
    mo.md(f"""
    The model puts them {"in the printed order" if same_order else "in another order"}; its
    error is {trials["error"].abs().max():.0%} at the most ({_worst["setting"]}). The size of its
    cache was calibrated on rows of fsck, so this says that one board explains all five, and
    not that they could have been foretold. The printed best is not the author's advice, though: in the
    text he ends up with 301-10, which is SEA|XHD|XCY with 10 sectors, and that is not in his
    table. We come back to it.
    """)
    return (same_order,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 2. Why: where fsck spends its time

    `explain` keeps an account of what the program waited for. Three settings side by side:
    no cache, the printed best, and the board's default for raw access.
    """)
    return


@app.function
def raw(bits, sectors):
    """A setting of the raw class, by the catalogue's keys."""
    return {"controller.raw_cache_bits": bits, "controller.raw_read_ahead_sectors": sectors}


@app.function
def file(bits, sectors):
    """A setting of both classes of the file system."""
    return {
        "controller.file_cache_bits": bits,
        "controller.file_read_ahead_sectors": sectors,
        "controller.file_part_cache_bits": bits,
        "controller.file_part_read_ahead_sectors": sectors,
    }


@app.cell
def _(sun):
    # The contents of the file system that was checked: 90838 KB in use, less what belongs
    # to the files besides.
    fsck_size = "87500K"
    compared = {"no cache": raw("0", 60), "SEA|CRD, 10 ahead": raw("SEA|CRD", 10), "default: SEA|XHD|XCY, 100 ahead": {}}
    accounts = {
        name: sun.with_(setting).explain("fsck", size=fsck_size, repetitions=1, counterfactuals=False)
        for name, setting in compared.items()
    }
    _groups = {
        "controller_queue": "waiting: the board still reads ahead",
        "seek": "seek",
        "rotational_latency": "rotational latency",
        "media_transfer": "media transfer",
        "cache_hit": "from the cache",
        "command": "the board's command",
        "user": "fsck computing",
    }
    ledger = (
        pl.concat([
            pl.DataFrame(one.ledger).with_columns(setting=pl.lit(name)) for name, one in accounts.items()
        ])
        .with_columns(part=pl.col("stage").replace_strict(_groups, default="kernel and other"))
        .group_by("setting", "part", maintain_order=True)
        .agg(seconds=pl.col("ns").sum() / 1e9)
    )  # fmt: skip
    _order = [*_groups.values(), "kernel and other"]
    _colors = ["#d8403d", "#c9992e", "#e8883a", "#479b3c", "#3f9c98", "#9d6fb0", "#86a8cf", "#8b9299"]
    alt.Chart(
        ledger.with_columns(rank=pl.col("part").replace_strict({part: place for place, part in enumerate(_order)}))
    ).mark_bar().encode(
        y=alt.Y("setting:N", sort=None, title=None, axis=alt.Axis(labelLimit=240)),
        x=alt.X("seconds:Q", title="seconds of fsck, by what it waited for"),
        color=alt.Color(
            "part:N", title=None, scale=alt.Scale(domain=_order, range=_colors),
            legend=alt.Legend(orient="bottom", columns=3, labelLimit=260),
        ),
        order="rank:Q",
        tooltip=["setting", "part", alt.Tooltip("seconds:Q", format=".1f")],
    ).properties(width=430, height=130)  # fmt: skip
    return accounts, fsck_size, ledger


@app.cell(hide_code=True)
def _(accounts, ledger):
    seconds_of = {(setting, part): s for setting, part, s in ledger.iter_rows()}
    _none, _best, _default = accounts

    def _total(setting):
        return accounts[setting].to_dict()["programs"][0]["elapsed_ns"] / 1e9

    _requests = accounts[_best].to_dict()["programs"][0]["requests"][0]
    _queue = seconds_of[_default, "waiting: the board still reads ahead"]
    mo.md(f"""
    `fsck` makes {_requests["requests"]:,} requests, {_requests["usual_requests"]:,} of them of
    {_requests["usual_bytes"] / 1024:g} KB, here and there: inodes, then directories and indirect
    blocks that lie anywhere. It waits for each.

    - **Keeping what was read (CRD) helps**, because it comes back to many of the same
      sectors: {seconds_of[_best, "rotational latency"]:.1f} s of rotation instead of
      {seconds_of[_none, "rotational latency"]:.1f}, {seconds_of[_best, "seek"]:.1f} s of
      seeks instead of {seconds_of[_none, "seek"]:.1f}. What it pays is
      {seconds_of[_best, "from the cache"]:.1f} s of copying out of the cache.
    - **Reading far ahead hurts.** With 100 sectors across heads and cylinders the next
      request, which goes elsewhere, waits until the board has read what nobody wants:
      {_queue:.1f} s of {_total(_default):.1f}. The default makes `fsck`
      {_total(_default) / _total(_best):.1f} times as slow as the best, and
      {_total(_default) / _total(_none):.1f} times as slow as no cache at all.
    """)
    return (seconds_of,)


@app.cell(hide_code=True)
def _(gap_s, sun):
    mo.md(f"""
    ## 3. Which bits matter, for what

    Seven workloads, in the two classes of access that they use. *Mixed* ones read and write,
    in different places. (The file systems are laid out for a board that reads ahead, with
    `tunefs -a {sun["filesystem.maxcontig"]} -d {sun["filesystem.rotdelay_ms"]}`: no gaps. With
    the gap of 1983, the subject of *Why is my 1983 disk slow?*, file dd of 4 MB takes
    {gap_s["with"]:.1f} s in place of {gap_s["without"]:.1f}.)
    """)
    return


@app.cell
def _(fsck_size, sun):
    # Partitions a and b of the drive by themselves, for what goes past the file system.
    drive = diskperf.System("sun3-rimfire-2344:raw-ab")
    cylinder = 1809 * 512
    workloads = {
        # name: (class, system, program, its parameters, options)
        "fsck": (raw, sun, "fsck", {}, {"size": fsck_size}),
        "raw dd, 8k": (raw, drive, "copy", {"program.destination": "null"}, {"size": "4M", "cache": "direct"}),
        "raw dd, a cylinder": (
            raw, drive, "copy",
            {"program.destination": "null", "program.call_bytes": cylinder},
            {"size": "4M", "cache": "direct"},
        ),
        "raw mixed (a to b)": (raw, drive, "copy", {"program.destination": "other"}, {"size": "4M", "cache": "direct"}),
        "file dd": (file, sun, "copy", {"program.destination": "null"}, {"size": "4M"}),
        "file mixed (same fs)": (file, sun, "copy", {"program.destination": "same"}, {"size": "4M"}),
        "file mixed (other fs)": (file, sun, "copy", {"program.destination": "other"}, {"size": "4M"}),
    }  # fmt: skip

    def seconds(workload, settings):
        """How long a workload takes with each of some settings, (bits, sectors)."""
        of_class, system, program, parameters, options = workloads[workload]
        rows = diskperf.run_points(
            system,
            program,
            [of_class(*setting) for setting in settings],
            settings=parameters,
            repetitions=1,
            time_calls=False,
            **options,
        )
        return dict(zip(settings, (ns / 1e9 for ns in rows["elapsed_ns"])))

    return seconds, workloads


@app.cell
def _(sun):
    gap_s = {
        name: diskperf.run_points(sun, "copy", [changes], size="4M", repetitions=1)["elapsed_ns"][0] / 1e9
        for name, changes in {
            "without": {},
            "with": {"filesystem.maxcontig": 1, "filesystem.rotdelay_ms": 4},
        }.items()
    }
    return (gap_s,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    Not all of the 256 sets of bits make sense, and the model says why:
    """)
    return


@app.cell
def _(sun):
    def why_not(bits):
        try:
            sun.with_(raw(bits, 100))
        except diskperf.SettingError as error:
            # The first line says what, the others where.
            return str(error).splitlines()[0].split(": ", 2)[-1]
        return None

    pl.DataFrame([{"bits": bits, "why not": why_not(bits)} for bits in ("CRD", "SEA|XCY", "SEA|XHD|XCY")])
    return (why_not,)


@app.cell
def _(seconds, why_not, workloads):
    def joined(*bits):
        return "|".join(bit for bit in BITS if bit in bits) or "0"

    # The four that decide what is kept and how far is read ahead, in all combinations, near
    # and far; the other four one at a time on top of some of them.
    _masks = [[bit for place, bit in enumerate(("SEA", "CRD", "XHD", "XCY")) if mask >> place & 1] for mask in range(16)]
    core = [joined(*some) for some in _masks if not why_not(joined(*some))]
    design = [(bits, sectors) for bits in core for sectors in (10, 100)]
    design += [
        (joined(*bits.split("|"), extra), 100)
        for bits in ("0", "SEA|CRD", "SEA|CRD|XHD|XCY")
        for extra in ("RAP", "CWT", "SRD", "SWT")
        if not why_not(joined(*bits.split("|"), extra))
    ]
    # Python is free for others while a model runs: threads are enough.
    with ThreadPoolExecutor() as _threads:
        elapsed_s = dict(zip(workloads, _threads.map(lambda one: seconds(one, design), workloads)))
    pl.DataFrame([
        {"bits": bits, "sectors ahead": ahead, **{one: round(elapsed_s[one][bits, ahead], 2) for one in workloads}}
        for bits, ahead in design
    ])  # fmt: skip
    return core, design, elapsed_s, joined


@app.function
def effects(times, workload):
    """How much time each bit adds or saves: of all pairs of settings that differ in this
    bit alone, the geometric mean of the ratio, and the least and the most."""

    def with_bit(setting, bit):
        present = [one for one in setting[0].split("|") if one != "0"]
        return "|".join(one for one in BITS if one in present or one == bit), setting[1]

    found = []
    for bit in [*BITS, "10 to 100 ahead"]:
        ratios = []
        for setting, time in times.items():
            if bit in setting[0].split("|"):
                continue
            if bit in BITS:
                other = with_bit(setting, bit)
            elif setting[1] == 10 and "SEA" in setting[0]:
                other = (setting[0], 100)
            else:
                continue
            if other in times:
                ratios.append(math.log(times[other] / time))
        found.append({
            "workload": workload,
            "bit": bit,
            "effect": math.exp(sum(ratios) / len(ratios)) - 1,
            "least": math.exp(min(ratios)) - 1,
            "most": math.exp(max(ratios)) - 1,
            "pairs": len(ratios),
        })  # fmt: skip
    return found


@app.cell(hide_code=True)
def _(design):
    mo.md(f"""
    ### Main effects

    {len(design)} settings for each workload. A bit's effect is read from all pairs of
    settings that differ in this bit alone: by how much it changes the time, in the geometric
    mean. Green saves time, red costs;
    empty fields change less than half a percent. (Hold the pointer over a field for the range over the
    pairs: where it is wide, the bit's effect depends on the others.)
    """)
    return


@app.cell
def _(elapsed_s, workloads):
    main_effects = pl.DataFrame([row for workload in workloads for row in effects(elapsed_s[workload], workload)])
    _label = pl.col("effect").map_elements(
        lambda effect: "" if abs(effect) < 0.005 else f"{effect:+.0%}".replace("-", "\N{MINUS SIGN}"), return_dtype=pl.String
    )
    _base = alt.Chart(main_effects.with_columns(label=_label)).encode(
        x=alt.X(
            "workload:N", sort=list(workloads), title=None,
            axis=alt.Axis(orient="top", labelAngle=-35, labelLimit=200),
        ),
        y=alt.Y("bit:N", sort=[*BITS, "10 to 100 ahead"], title=None),
    )  # fmt: skip
    (
        _base.mark_rect().encode(
            color=alt.Color(
                "effect:Q",
                title="time",
                scale=alt.Scale(domain=[-0.5, 0, 0.5], range=["#479b3c", "#ffffff", "#d8403d"], clamp=True, interpolate="rgb"),
                legend=alt.Legend(format="+%"),
            ),
            tooltip=["workload", "bit", *(alt.Tooltip(f"{one}:Q", format="+.1%") for one in ("effect", "least", "most")), "pairs"],
        )
        + _base.mark_text().encode(text="label")
    ).properties(width=440, height=270)
    return (main_effects,)


@app.cell(hide_code=True)
def _(main_effects, workloads):
    _effect = {(row["workload"], row["bit"]): row for row in main_effects.iter_rows(named=True)}
    silent = [
        bit for bit in BITS
        if all(max(abs(_effect[one, bit]["least"]), abs(_effect[one, bit]["most"])) < 0.02 for one in workloads)
    ]  # fmt: skip
    largest = {
        one: max((row for row in main_effects.iter_rows(named=True) if row["workload"] == one), key=lambda row: abs(row["effect"]))
        for one in workloads
    }
    _lines = "\n".join(
        f"| {one} | {row['bit']} | {row['effect']:+.0%} | {row['least']:+.0%} to {row['most']:+.0%} |"
        for one, row in largest.items()
    )
    mo.md(f"""
| workload | what matters most | time | over the pairs |
|:---|:---|---:|---:|
{_lines}

What to see in it:

- **fsck wants memory, not foresight.** CRD changes its time by
  {_effect["fsck", "CRD"]["effect"]:+.0%}; XHD by {_effect["fsck", "XHD"]["effect"]:+.0%},
  and 100 sectors instead of 10 by {_effect["fsck", "10 to 100 ahead"]["effect"]:+.0%}.
- **Reading in order wants foresight.** SEA, without which nothing is read ahead, changes raw
  dd of 8 KB by {_effect["raw dd, 8k", "SEA"]["effect"]:+.0%}, and file dd by
  {_effect["file dd", "SEA"]["effect"]:+.0%}. With a cylinder at a time 100 sectors instead
  of 10 change {_effect["raw dd, a cylinder", "10 to 100 ahead"]["effect"]:+.0%}: "pretty much
  irrelevant on long raw i/o", as the author found.
- **XCY costs copies.** Across cylinders the modelled board gives up reading ahead when a write
  waits, which was inferred from the printed copies
  ({_effect["raw mixed (a to b)", "XCY"]["effect"]:+.0%} from a to b,
  {_effect["file mixed (other fs)", "XCY"]["effect"]:+.0%} between file systems): what it had
  begun is lost. With RAP it goes on, which is worth up to
  {_effect["raw mixed (a to b)", "RAP"]["least"]:+.0%} from a to b; without XCY, or without
  writes, RAP says nothing.
- **{", ".join(silent)}** change nothing here by more than 2 %: there is one program, which waits
  for each of its reads, so there is nothing to sort and nobody to put first, and none reads
  what it wrote. That is a statement about these workloads; several programs at once are another.
    """)
    return largest, silent


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 4. Which setting to choose

    What matters for a class is opposed within it: `fsck` and `dd` are both `raw`. So a choice
    is a compromise, and the fair one minimises the geometric mean of the times, each relative
    to the best of its workload.
    """)
    return


@app.cell
def _(elapsed_s, workloads):
    classes = {
        "raw": [one for one, what in workloads.items() if what[0] is raw],
        "file": [one for one, what in workloads.items() if what[0] is file],
    }

    def mean(setting, of_class):
        return math.exp(
            sum(math.log(elapsed_s[one][setting] / min(elapsed_s[one].values())) for one in of_class) / len(of_class)
        )

    chosen = {
        name: min(elapsed_s[of_class[0]], key=lambda setting: round(mean(setting, of_class), 4))
        for name, of_class in classes.items()
    }
    candidates = {
        "raw": {
            "the board's default": ("SEA|XHD|XCY", 100),
            "the author's 301-10": ("SEA|XHD|XCY", 10),
            "best printed for fsck": ("SEA|CRD", 10),
            "best over the class": chosen["raw"],
        },
        "file": {
            "the board's default, the author's 101-100": ("SEA|XHD", 100),
            "best over the class": chosen["file"],
        },
    }
    verdicts = pl.DataFrame([
        {
            "class": name,
            "choice": f"{choice}: {setting[0]}, {setting[1]} ahead",
            "workload": one,
            "relative": elapsed_s[one][setting] / min(elapsed_s[one].values()),
        }
        for name, choices in candidates.items()
        for choice, setting in choices.items()
        for one in classes[name]
    ])  # fmt: skip
    return candidates, chosen, classes, verdicts


@app.cell
def _(sun, verdicts, workloads, elapsed_s):
    # A controller that chooses by itself, which nobody built.
    adaptive = {}
    for _one, (_, _system, _program, _parameters, _options) in workloads.items():
        _rows = diskperf.run_points(
            _system, _program, [{"controller.adaptive": True}], settings=_parameters, repetitions=1,
            time_calls=False, **_options,
        )  # fmt: skip
        adaptive[_one] = _rows["elapsed_ns"][0] / 1e9 / min(elapsed_s[_one].values())
    all_choices = pl.concat([
        verdicts,
        pl.DataFrame([
            {
                "class": "file" if one.startswith("file") else "raw",
                "choice": "controller.adaptive=true",
                "workload": one,
                "relative": ratio,
            }
            for one, ratio in adaptive.items()
        ]),
    ])  # fmt: skip

    def _panel(name):
        rows = all_choices.filter(pl.col("class") == name)
        return (
            alt.Chart(rows)
            .mark_point(filled=True, size=70)
            .encode(
                x=alt.X(
                    "relative:Q",
                    title="time relative to the best setting of this workload",
                    scale=alt.Scale(type="log", domain=[0.85, 3]),
                    axis=alt.Axis(values=[0.9, 1, 1.2, 1.5, 2, 2.5, 3], format=".1f"),
                ),
                y=alt.Y("workload:N", sort=None, title=None),
                yOffset=alt.YOffset("choice:N", sort=rows["choice"].unique(maintain_order=True).to_list()),
                color=alt.Color(
                    "choice:N",
                    sort=rows["choice"].unique(maintain_order=True).to_list(),
                    title=f"{name} access",
                    legend=alt.Legend(orient="bottom", columns=1, labelLimit=420),
                ),
                tooltip=["workload", "choice", alt.Tooltip("relative:Q", format=".2f")],
            )
            .properties(width=430, height=48 * rows["workload"].n_unique())
        )

    alt.vconcat(_panel("raw"), _panel("file")).resolve_scale(color="independent")
    return adaptive, all_choices


@app.cell(hide_code=True)
def _(adaptive, all_choices, candidates, chosen, classes):
    _mean = {
        (row["class"], row["choice"]): row["mean"]
        for row in all_choices.group_by("class", "choice", maintain_order=True)
        .agg(mean=pl.col("relative").log().mean().exp())
        .iter_rows(named=True)
    }
    _bar = r"\|"
    _lines = "\n".join(
        f"| {name} | {choice.replace('|', _bar)} | {value:.2f} |" for (name, choice), value in _mean.items()
    )
    mean_of = {
        (name, choice): _mean[name, f"{choice}: {setting[0]}, {setting[1]} ahead"]
        for name, choices in candidates.items()
        for choice, setting in choices.items()
    }
    _relative = {
        (choice.split(": ")[0], one): value
        for choice, one, value in all_choices.filter(pl.col("class") == "raw")
        .select("choice", "workload", "relative")
        .iter_rows()
    }
    _gain = {
        name: mean_of[name, "best over the class"] / mean_of[name, next(iter(candidates[name]))] - 1 for name in classes
    }
    _worst = max(adaptive, key=adaptive.get)
    mo.md(f"""
| class | choice | geometric mean of the relative times |
|:---|:---|---:|
{_lines}

**For raw access set `{chosen["raw"][0]}` with {chosen["raw"][1]} sectors**: over
{len(classes["raw"])} raw workloads it takes {-_gain["raw"]:.0%} less time than the board's default.
**For files {"leave the default" if _gain["file"] > -0.03 else "set the best"}**: of all that was
tried `{chosen["file"][0]}` with {chosen["file"][1]} is best over {len(classes["file"])} workloads, by
{-_gain["file"]:.0%}.

The author's own 301-10 brings fsck to {_relative["the author's 301-10", "fsck"]:.2f}
times the best (the default: {_relative["the board's default", "fsck"]:.2f}), because it reads less far
ahead; what it still lacks is CRD, and ten sectors are few for raw dd of 8 KB
({_relative["the author's 301-10", "raw dd, 8k"]:.2f} times the best). Whoever only checks file systems sets
what was printed: SEA|CRD with 10 ({_relative["best printed for fsck", "fsck"]:.2f}).

He also wished for an algorithm that adapts. `controller.adaptive` is one, on a board that nobody
built: it takes {adaptive["fsck"]:.2f} times the best fixed setting's time
on fsck, {adaptive["raw dd, 8k"]:.2f} on raw dd, and {adaptive[_worst]:.2f} at the worst
({_worst}); each from a cold start, in which it has to learn what is asked.
    """)
    return (mean_of,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ### The same with `tune`

    For one workload the search need not be written by hand. Any key of the system can stand
    in `over`, and `best` picks by throughput:
    """)
    return


@app.cell
def _(fsck_size, sun):
    over = {
        "controller.raw_cache_bits": ["0", "SEA|CRD", "SEA|XHD", "SEA|XHD|XCY"],
        "controller.raw_read_ahead_sectors": [10, 100],
    }
    fsck_sweep = diskperf.sweep(sun, "fsck", over=over, size=fsck_size, repetitions=1, time_calls=False, progress=False)
    best_for_fsck = fsck_sweep.best()
    best_for_fsck
    return best_for_fsck, over


@app.cell(hide_code=True)
def _(fsck_size, over):
    tune_command = " \\\n    ".join([
        f"diskperf tune sun3-rimfire-2344 --suite fsck --size {fsck_size} --seeds 0",
        *(shlex.join(["--over", f"{key}={','.join(map(str, values))}"]) for key, values in over.items()),
    ])  # fmt: skip
    mo.md(f"""
At the prompt this is

```
{tune_command}
```

which also says what today's setting gives, and marks a best that stands beside a cliff.
""")
    return (tune_command,)


@app.cell(hide_code=True)
def _():
    mo.md("""
    ## 5. Your turn

    Fiddle the bits.
    """)
    return


@app.cell
def _(workloads):
    workload = mo.ui.dropdown(list(workloads), value="fsck", label="workload")
    bits = mo.ui.multiselect(BITS, value=["SEA", "CRD"], label="bits")
    ahead = mo.ui.slider(0, 244, value=10, label="sectors ahead", show_value=True)
    mo.hstack([workload, bits, ahead], justify="start", wrap=True)
    return ahead, bits, workload


@app.cell
def _(ahead, bits, elapsed_s, joined, seconds, why_not, workload):
    your_bits = joined(*bits.value)
    your_problem = why_not(your_bits)
    your_seconds = None if your_problem else seconds(workload.value, [(your_bits, ahead.value)])[your_bits, ahead.value]
    _others = pl.DataFrame(
        [{"setting": f"{one[0]}, {one[1]} ahead", "s": s} for one, s in elapsed_s[workload.value].items()]
    ).sort("s")
    _all = alt.Chart(_others).mark_tick(thickness=2, size=26, color="#86a8cf").encode(
        x=alt.X("s:Q", title=f"seconds of {workload.value}: every setting of section 3 (red: yours)", scale=alt.Scale(zero=False)),
        tooltip=["setting", alt.Tooltip("s:Q", format=".2f")],
    )
    _yours = alt.Chart(pl.DataFrame({"s": [your_seconds or float(_others["s"][0])]})).mark_rule(color="#d8403d", strokeWidth=2).encode(x="s:Q")
    (
        mo.md(f"**{your_bits}** cannot be: {your_problem}")
        if your_problem
        else mo.vstack([
            mo.md(f"**{your_bits}, {ahead.value} ahead: {your_seconds:.2f} s** of {workload.value}; "
                  f"{(_others['s'] < your_seconds - 1e-9).sum()} of the {_others.height} settings of section 3 are faster."),
            (_all + _yours).properties(width=520, height=60),
        ])
    )  # fmt: skip
    return your_problem, your_seconds


if __name__ == "__main__":
    app.run()
