"""``python -m diskperf sweep``, and the page that shows it."""

import os
import pathlib
import pty
import re
import subprocess
import sys

import diskperf
import pytest
from conftest import VAX

pytest.importorskip("pyarrow")

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"

SMALL = f"""
system = "{VAX}"
suite = "read_8192"
size = "64K"
repetitions = 1
seeds = [1, 2]
[over]
filesystem.rotdelay_ms = "0..2"
"host.speed" = [1, 2]
"""


def command(*words, code=0, **options):
    done = subprocess.run(
        [sys.executable, "-m", "diskperf", "sweep", *map(str, words)], capture_output=True, text=True, **options
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


def test_a_study_of_a_file(tmp_path):
    (tmp_path / "study.toml").write_text(SMALL)
    printed = command("study.toml", "--to", "here", cwd=tmp_path)
    study = diskperf.open_sweep(tmp_path / "here")
    best = study.best()
    assert study.points == 12 and "12 points are in here" in printed
    assert f"best: filesystem.rotdelay_ms={best['filesystem.rotdelay_ms']} host.speed=2, " in printed
    assert "over 2 seeds" in printed
    again = diskperf.sweep(
        VAX, "read_8192", over={"filesystem.rotdelay_ms": range(3), "host.speed": [1, 2]}, seeds=[1, 2],
        size="64K", repetitions=1,
    )  # fmt: skip
    assert again.to_pylist() == study.to_pylist()
    # The second time there is nothing to do.
    assert command("study.toml", "--to", "here", "--goal", "cpu", cwd=tmp_path).count("CPU ms per MiB") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("suite = 'read_8192'", "does not say on what"),
        ("system = ", "study.toml: "),
        ("sistem = 'vax'", "has no `sistem`; it has system"),
        ("system = 'vax'\nover = 3", "`over` is a table"),
        (SMALL.replace("rotdelay_ms", "rotdelai_ms"), "did you mean `rotdelay_ms`"),
        (SMALL.replace("0..2", "2..0"), "the range is empty"),
        (SMALL.replace("[1, 2]\n[over]", "'0..9'\nmost_points = 3\n[over]"), "or --yes (in study.toml: most_points = 60) to begin"),
    ],
)
def test_what_is_wrong_is_said(text, words, tmp_path):
    (tmp_path / "study.toml").write_text(text)
    said = command("study.toml", "--to", "here", code=2, cwd=tmp_path)
    assert said.startswith(("diskperf: ", "error: ")) and words in said
    assert not (tmp_path / "here").exists()


def test_what_is_missing_is_said(tmp_path):
    assert "nothing.toml cannot be read" in command(tmp_path / "nothing.toml", "--to", "x", code=2)
    (tmp_path / "study.toml").write_text(SMALL)
    assert "give --to FOLDER" in command(tmp_path / "study.toml", code=2)


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2)])
def test_a_terminal_is_asked(answer, code, tmp_path):
    (tmp_path / "study.toml").write_text("most_points = 3\n" + SMALL)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "diskperf", "sweep", "study.toml", "--to", "here"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, answer.encode() + b"\n")
    try:
        while more := os.read(ours, 1000):
            shown += more
    except OSError:
        pass  # Linux's way to say that the other end is closed.
    assert process.wait(timeout=120) == code, shown
    assert b"12 points take about" in shown
    assert (tmp_path / "here").exists() == (code == 0)
    if code == 0:
        # The bar, as somebody saw it.
        assert b"12/12" in shown


def test_yes_does_not_ask(tmp_path):
    (tmp_path / "study.toml").write_text("most_points = 3\n" + SMALL)
    assert "12 points" in command("study.toml", "--to", "here", "--yes", "--quiet", cwd=tmp_path)


def test_the_page_shows_the_study_of_the_file():
    page = (DOCS / "sweeps.md").read_text()
    # The file has a title besides.
    of_page = re.search(r"```toml\n(.*?)```", page, re.S).group(1)
    assert (DOCS / "study.toml").read_text().endswith(of_page)
