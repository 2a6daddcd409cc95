"""Scores of fits: what `reproduce real-drives` finds out about drawn disks, beside their truths."""

import json
import os
import shutil
import subprocess
import tempfile
from typing import NamedTuple

#: Largest difference of a period that counts as found, in parts per million.
PERIOD_PPM = 20

#: Points within half a millisecond that a fit may be below the truth's own score.
POINTS = 2

#: Points and demerit by which a fit may be worse than the unfitted files without being called
#: so: what one replay differs from another by.
WORSE_POINTS, WORSE_DEMERIT_MS = 0.5, 0.01


class Outcome(NamedTuple):
    """What a run of the program gave: its JSON, or why there is none."""

    output: dict
    problem: str
    seconds: float


def run(program, words):
    """Runs the program. Seconds are those of the processor."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        command = [str(word) for word in (program, *words, "--format", "json")]
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0), errors.seek(0)
        text, problem = output.read(), errors.read().strip()
    try:
        found = json.loads(text)
    except ValueError:
        found = {}
        problem = problem or f"ended with {process.returncode} and no JSON"
    return Outcome(found, problem, usage.ru_utime + usage.ru_stime)


def truths(folder, disks, only):
    """Truths of a folder, in order."""
    paths = sorted(folder.glob("*.truth.json"))
    if only:
        paths = [path for path in paths if path.name == f"{only}.truth.json"]
    if not paths:
        raise SystemExit(f"{folder} has no such disks: draw them first (bench/unseen-drives draw {folder})")
    return [json.loads(path.read_text()) for path in paths[:disks]]


def phase(row):
    """Phase that the program accepts, or None."""
    found = row.get("phase") or (row.get("fit") or {}).get("phase")
    return found if found and found.get("think") != "unknown" else None


def period_ppm(found, truth):
    """Difference of a found period from the true one."""
    return (found["period_us"] / (1000 * truth["period_ms"]) - 1) * 1e6


def phase_steps(found):
    """Number of phase steps that the program reports, or None."""
    for key, value in (found or {}).items():
        if "step" in key and value is not None:
            return len(value) if isinstance(value, list) else int(value)
    return None


class Tally:
    """Counts of judgements, and the lines of a table."""

    def __init__(self, results):
        self.results, self.counts, self.drives = results, {}, []

    def add(self, name, marks, text, seconds):
        """Adds a line; `marks` are the judgements that hold."""
        for mark in marks:
            self.counts[mark] = self.counts.get(mark, 0) + 1
        self.drives.append(seconds)
        self.results.add(f"{name:10} {text}, {seconds:.1f} s")

    def summary(self, seed, bars):
        """Ends the table: each judgement with its count, and the bar it has."""
        counts = ", ".join(f"{mark} {self.counts.get(mark, 0)}{bar}" for mark, bar in bars)
        slowest = f"slowest {max(self.drives):.1f} s, mean {sum(self.drives) / len(self.drives):.1f} s"
        self.results.add(f"seed {seed}, {len(self.drives)} drives: {counts}; {slowest}")


def with_files(folder, harness, disks, only):
    """Scores `reproduce real-drives`, a drive at a time."""
    program, tally = harness.program(), Tally(harness.Results("unseen-drives"))
    drawn = truths(folder, disks, only)
    for truth in drawn:
        with tempfile.TemporaryDirectory() as temporary:
            for path in folder.glob(f"{truth['name']}.*"):
                if not path.name.endswith(".truth.json"):
                    shutil.copy(path, temporary)
            words = ["reproduce", "real-drives", "--data", temporary, "--quiet", "--store", f"{temporary}/runs.sqlite"]
            outcome = run(program, words)
        row = (outcome.output.get("drives") or [{"error": outcome.problem}])[0]
        if "error" in row:
            tally.add(truth["name"], ["not read"], f"not read: {row['error'][:120]}", outcome.seconds)
        elif "control" in truth:
            judge_control(tally, truth, row, outcome.seconds)
        else:
            judge_fit(tally, truth, row, outcome.seconds)
    if any("control" in truth for truth in drawn):
        bars = [("accepted", " (bar 0)"), ("worse than unfitted", " (bar 0)"), ("not read", " (bar 0)")]
    else:
        bars = [("locked", f" (bar {len(drawn) * 57 // 60})"), ("locked within 2 points", " (bar: all locked)")]
        bars += [("wrong period accepted", " (bar 0)"), ("worse than unfitted", " (bar 0)"), ("not read", " (bar 0)")]
        bars += [("steps reported", ""), ("steps right", ""), ("wrong alignment", " (bar 0)")]
    tally.summary(drawn[0]["seed"], bars)


def worse(row):
    """Whether the fit predicts worse than the files alone."""
    fitted, filed = row, row["unfitted"]
    below = fitted["within_half_ms_percent"] < filed["within_half_ms_percent"] - WORSE_POINTS
    return below or fitted["demerit_ms"] > filed["demerit_ms"] + WORSE_DEMERIT_MS


def judge_control(tally, truth, row, seconds):
    """Judges a trace without phase: no period may be accepted."""
    found = phase(row)
    marks = ["accepted"] if found else []
    marks += ["worse than unfitted"] if worse(row) else []
    period = f"ACCEPTED {found['ppm']:.0f} ppm, R {found['r']:.2f}" if found else "no period"
    tally.add(truth["name"], marks, f"{truth['control']}: {period}{', WORSE' if worse(row) else ''}", seconds)


def judge_fit(tally, truth, row, seconds):
    """Judges a fit with parameter files."""
    found, own, planted = phase(row), truth["score"], truth["gap_lines"]
    within, filed = row["within_half_ms_percent"], row["unfitted"]
    marks, text = [], "no period          "
    if found:
        ppm = period_ppm(found, truth)
        locked = abs(ppm) <= PERIOD_PPM
        marks.append("locked" if locked else "wrong period accepted")
        text = f"{'locked' if locked else 'WRONG '} {ppm:+8.1f} ppm"
        if locked and within >= own["within_half_ms_percent"] - POINTS:
            marks.append("locked within 2 points")
        if found["think"] != truth["think"]:
            marks.append("wrong alignment")
            text += ", WRONG ALIGNMENT"
    text += f", within 0.5 ms {within:5.1f} % (truth {own['within_half_ms_percent']:.1f}"
    text += f", files {filed['within_half_ms_percent']:.1f})"
    text += f", demerit {row['demerit_ms']:.2f} (truth {own['demerit_ms']:.2f}, files {filed['demerit_ms']:.2f})"
    if worse(row):
        marks.append("worse than unfitted")
        text += ", WORSE"
    step_count, first_half = phase_steps(found), sum(line < row["requests"] // 2 for line in planted)
    if step_count is not None:
        marks.append("steps reported")
        marks += ["steps right"] if step_count in (first_half, len(planted)) else []
    text += f", steps {'-' if step_count is None else step_count} of {first_half} + {len(planted) - first_half}"
    text += f", {truth['cache_rule']}, write-{'back' if truth['write_back'] else 'through'}"
    text += f", {len(truth['zones'])} zones, {len(truth['faults'])} faults"
    tally.add(truth["name"], marks, text, seconds)
