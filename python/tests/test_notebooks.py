"""The notebooks: each runs as a program, holds what it says, and does so with other
values of its controls as well."""

import importlib.util
import pathlib
import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import diskperf
import pytest

if sys.version_info < (3, 11):
    import tomli as tomllib
else:
    import tomllib

marimo = pytest.importorskip("marimo")
pytest.importorskip("altair")
polars = pytest.importorskip("polars")

FOLDER = pathlib.Path(__file__).parents[1] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))

#: What the extra `notebooks` of the package brings.
PROJECT = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["project"]
EXTRA = PROJECT["optional-dependencies"]["notebooks"]

#: What a notebook defines by its controls, and what follows from these.
CONTROLS = {
    "why_is_my_1983_disk_slow": {"machines", "machine", "program", "block_bytes", "rotdelay_ms"},
    "which_cache_bits": {"workload", "bits", "ahead"},
}


def module(name):
    """A notebook as a module, which runs nothing yet."""
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def words(outputs):
    """What a reader reads of it, without the markup."""
    texts = (getattr(output, "text", "") for output in outputs)
    return " ".join(re.sub(r"<[^>]+>", " ", "\n".join(texts)).split())


@pytest.fixture(scope="module")
def slow():
    return module("why_is_my_1983_disk_slow").app.run()


@pytest.fixture(scope="module")
def bits():
    return module("which_cache_bits").app.run()


def again(name, before, **controls):
    """Runs the cells that hang on the controls with other values of these."""
    loaded = module(name)
    # Not what a module has that ran nothing: its imports and functions.
    kept = {
        key: value
        for key, value in before.items()
        if key not in CONTROLS[name] and not key.startswith("your") and not hasattr(loaded, key)
    }
    chosen = {key: SimpleNamespace(value=value) for key, value in controls.items()}
    others = {key: None for key in CONTROLS[name] if key not in controls}
    return loaded.app.run(defs={**kept, **others, **chosen})


def rate(program, **settings):
    """KB/s of a program on the first notebook's machine."""
    run = diskperf.run(program, on="vax780-sc780-eagle", settings=settings, repetitions=1)
    return run.results["kb_per_s"][0]


def test_there_are_two_and_they_are_marimo_s():
    assert NAMES == ["which_cache_bits", "why_is_my_1983_disk_slow"]
    for name in NAMES:
        text = (FOLDER / f"{name}.py").read_text()
        header = tomllib.loads("".join(re.findall(r"^# ?(.*\n)", text[: text.index("# ///\n")], re.M)[1:]))
        # By its plain name, which marimo finds among the sources: with an extra it does not.
        assert set(header["dependencies"]) == {"diskperf", *EXTRA}
        assert (FOLDER / header["tool"]["uv"]["sources"]["diskperf"]["path"] / "pyproject.toml").exists()
    checked = subprocess.run(
        [sys.executable, "-m", "marimo", "check", "--strict", *(FOLDER / f"{name}.py" for name in NAMES)],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_cliff_is_where_it_says(slow):
    outputs, defs = slow
    cliff = defs["cliff_4k"]
    below, above = (
        rate("read_8192", **{"filesystem.block_bytes": 4096, "filesystem.rotdelay_ms": cliff[ms]})
        for ms in ("from_ms", "to_ms")
    )
    assert (cliff["from_ms"], cliff["to_ms"]) == (3, 4)
    assert above > 2 * below
    # The notebook runs each program once, which leaves other things in the cache.
    assert cliff["from_kb_per_s"] == pytest.approx(below, rel=0.05)
    assert cliff["to_kb_per_s"] == pytest.approx(above, rel=0.05)
    assert cliff["missed_below"] > 0.9 and cliff["missed_above"] < 0.01
    said = words(outputs)
    assert "there is a cliff between 3 and 4 ms" in said
    assert f"{cliff['from_kb_per_s']:,.0f} KB/s on one side, {cliff['to_kb_per_s']:,.0f} on the other" in said


def test_the_layout_is_the_ceiling(slow):
    _, defs = slow
    assert defs["layout"]["step"] == 2 * defs["layout"]["block"] == 32
    ceilings = {
        (row["blocks"], row["rotdelay_ms"]): row["kb_per_s"] for row in defs["ceilings"].iter_rows(named=True)
    }
    # By the arithmetic of 4.2BSD for an Eagle; reads never exceed it.
    assert ceilings["8K blocks", 4] == pytest.approx(792, abs=1)
    assert ceilings["4K blocks", 4] == pytest.approx(528, abs=1)
    assert ceilings["4K blocks", 7] == pytest.approx(396, abs=1)
    for row in defs["rates"].filter(polars.col("program") == "read_8192").iter_rows(named=True):
        assert row["kb_per_s"] <= ceilings[row["blocks"], row["rotdelay_ms"]]


def test_a_third_to_a_half_and_why(slow):
    _, defs = slow
    shares = defs["run_shares"]
    assert 0.25 < shares["lowest"] < shares["highest"] < 0.5
    gains = defs["gain_of"]
    # Four changes gain the same, for all of them end the missed revolutions.
    same = [gains[one] for one in ("processor infinitely fast", "processor twice as fast", "copying free")]
    assert max(same) - min(same) < 0.02 and min(same) >= gains["no missed revolution"]
    assert gains["processor infinitely fast and no rotational latency"] > 2 * max(same)
    passes, deadline = defs["about"]["passes_ms"], defs["about"]["deadline_ms"]
    assert deadline < passes[0] < passes[1]


def test_what_is_kept_of_1983_and_1984(slow):
    _, defs = slow
    # Don Speck: about 40 blocks a second at 4 ms, almost twice as many at 7 ms.
    speck = defs["speck_at"]
    assert speck[4]["blocks_per_s"] == pytest.approx(40, rel=0.1)
    assert 1.7 < speck[7]["blocks_per_s"] / speck[4]["blocks_per_s"] < 2
    lead = {value: rate for (key, value), rate in defs["kernel_at"].items() if key == "driver.search_lead_sectors"}
    assert lead[7] > 1.5 * lead[2]
    assert defs["printed"].height == 24 and defs["printed"]["error"].abs().max() < 0.25
    ladder = defs["ladder"]
    assert ladder["kb_per_s"].is_sorted() and ladder["kb_per_s"][-1] > 3 * ladder["kb_per_s"][0]
    assert ladder["gain"].arg_max() == 3 and ladder["gain_alone"][3] < 0
    assert defs["most_important"]["key"] == "filesystem.rotdelay_ms"


@pytest.mark.parametrize(
    ("machine", "program", "block_bytes", "rotdelay_ms"),
    [
        ("vax780-uda50-ra81", "write_4096", 8192, 0),
        ("vax750-sc750-eagle", "rewrite_8192", 4096, 12),
        ("vax780-si9900-cdc9775", "read_8192", 4096, 7),
    ],
)
def test_other_machines_and_gaps(slow, machine, program, block_bytes, rotdelay_ms):
    controls = {"machine": machine, "program": program, "block_bytes": block_bytes, "rotdelay_ms": rotdelay_ms}
    outputs, defs = again("why_is_my_1983_disk_slow", slow[1], **controls)
    settings = {"filesystem.block_bytes": block_bytes, "filesystem.rotdelay_ms": rotdelay_ms}
    expected = diskperf.run(program, on=machine, settings=settings, repetitions=1).results["kb_per_s"][0]
    assert defs["your_rate"] == expected
    assert f"{expected:,.0f} KB/s by {program}" in words(outputs)


def test_all_that_can_be_chosen_can_be_run(slow):
    for name in slow[1]["machines"].values():
        system = diskperf.System(name).with_({"filesystem.block_bytes": 4096, "filesystem.rotdelay_ms": 12})
        assert system.run("read_8192", size="256K", repetitions=1).results["kb_per_s"][0] > 0


def test_the_printed_settings_keep_their_order(bits):
    outputs, defs = bits
    assert defs["same_order"] and "in the printed order" in words(outputs)
    assert defs["trials"]["printed"].to_list() == [29.1, 37.0, 37.0, 48.4, 79.5]
    assert defs["trials"]["error"].abs().max() < 0.2


def test_which_bits_matter(bits):
    _, defs = bits
    effect = {(row["workload"], row["bit"]): row for row in defs["main_effects"].iter_rows(named=True)}
    assert effect["fsck", "CRD"]["effect"] < -0.2
    assert effect["fsck", "XHD"]["effect"] > 0.2 and effect["fsck", "10 to 100 ahead"]["effect"] > 0.3
    assert effect["raw dd, 8k", "10 to 100 ahead"]["effect"] < -0.5
    assert abs(effect["raw dd, a cylinder", "10 to 100 ahead"]["effect"]) < 0.05
    assert effect["raw mixed (a to b)", "XCY"]["effect"] > 0.1
    assert effect["raw mixed (a to b)", "RAP"]["least"] < -0.2
    assert defs["silent"] == ["CWT", "SRD", "SWT"]
    # A gap between blocks, which helped in 1983, costs where a cache reads ahead.
    assert defs["gap_s"]["with"] > 1.2 * defs["gap_s"]["without"]
    assert all(row["pairs"] > 0 and row["least"] <= row["effect"] <= row["most"] for row in effect.values())


def test_the_effects_are_of_pairs():
    """By hand: A in two surroundings, once twice and once eight times the time."""
    effects = module("which_cache_bits").effects
    times = {("0", 10): 1.0, ("SEA", 10): 2.0, ("SRD", 10): 1.0, ("SEA|SRD", 10): 8.0, ("SEA", 100): 1.0,
             ("SEA|CRD", 10): 1.0, ("SEA|RAP", 10): 1.0, ("SEA|CWT", 10): 1.0, ("SWT", 10): 1.0,
             ("SEA|XHD", 10): 1.0, ("SEA|XHD|XCY", 10): 0.5}  # fmt: skip
    found = {row["bit"]: row for row in effects(times, "one")}
    assert found["SEA"]["effect"] == pytest.approx(4 - 1) and found["SEA"]["pairs"] == 2
    assert (found["SEA"]["least"], found["SEA"]["most"]) == (pytest.approx(1), pytest.approx(7))
    assert found["10 to 100 ahead"]["effect"] == pytest.approx(-0.5)
    assert found["XCY"]["effect"] == pytest.approx(-0.5)


def test_the_choice_is_the_best_and_tune_agrees(bits, command_line, tmp_path):
    outputs, defs = bits
    for name, setting in defs["chosen"].items():
        means = [value for (of_class, _), value in defs["mean_of"].items() if of_class == name]
        assert defs["mean_of"][name, "best over the class"] == min(means), setting
    best = defs["best_for_fsck"]
    chosen = {key: best[key] for key in defs["over"]}
    assert chosen == {"controller.raw_cache_bits": "SEA|CRD", "controller.raw_read_ahead_sectors": 10}
    command = shlex.split(defs["tune_command"].replace("\\\n", ""))
    assert command[0] == "diskperf"
    text = command_line(*command[1:], "--store", tmp_path / "tuned.sqlite")
    told = next(line for line in text.splitlines() if line.startswith(("best", "candidate")))
    assert all(f"{key}={value}" in text for key, value in chosen.items()), told


@pytest.mark.parametrize(
    ("workload", "chosen", "ahead", "said"),
    [
        ("file dd", ["SEA", "XHD", "XCY"], 10, "SEA|XHD|XCY, 10 ahead:"),
        ("raw mixed (a to b)", [], 0, "0, 0 ahead:"),
        ("fsck", ["CRD"], 60, "CRD cannot be: CRD needs SEA"),
    ],
)
def test_other_bits(bits, workload, chosen, ahead, said):
    outputs, defs = again("which_cache_bits", bits[1], workload=workload, bits=chosen, ahead=ahead)
    assert said in words(outputs)
    known = bits[1]["elapsed_s"][workload].get(("|".join(chosen) or "0", ahead))
    if known is not None:
        assert defs["your_seconds"] == pytest.approx(known, rel=1e-9)
