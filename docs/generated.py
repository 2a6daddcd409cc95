"""Pages that are made of what the program says of itself: its commands, its
catalogue with the source of each number, and the accuracy card."""

import json
import os
import pathlib
import re
import subprocess

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: The program that is asked.
DISKPERF = os.environ.get("DISKPERF", "diskperf")
#: Kinds of parts, by their plurals as `diskperf list` has them.
KINDS = {
    "drives": "drive",
    "controllers": "controller",
    "buses": "bus",
    "hosts": "host",
    "kernels": "kernel",
    "drivers": "driver",
    "filesystems": "filesystem",
}


def on_files(files, config):
    """Adds the generated pages to those of the folder."""
    pages = {
        "reference/commands.md": commands(),
        "reference/catalogue.md": catalogue(),
        "reference/accuracy.md": accuracy(),
    }
    for kind, singular in KINDS.items():
        pages[f"reference/catalogue/{kind}.md"] = parts(kind, singular)
    pages["reference/catalogue/systems.md"] = systems()
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def ask(*arguments):
    """What the program prints."""
    done = subprocess.run(
        [DISKPERF, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    return done.stdout


def listed(what, *more):
    """The rows of a list."""
    (rows,) = json.loads(ask("list", what, *more, "--format", "json")).values()
    return rows


def escaped(text):
    """Text that may stand in a cell of a table, with nothing in it taken for markup."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", str(text))


def table(heads, rows):
    """A table of Markdown."""
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    lines += [" | ".join(escaped(cell) for cell in row) for row in rows]
    return "".join(f"| {line} |\n" for line in lines)


def commands():
    """Every command with its options."""
    text = "# Commands\n\n"
    summary = ask("--help")
    text += f"```text\n{summary}```\n"
    names = re.findall(r"^  ([a-z]+) ", summary.split("Commands:")[1].split("Options:")[0], re.M)
    assert len(names) > 8, f"commands were not found in the help: {names}"
    for name in names:
        if name != "help":
            text += f"\n## diskperf {name}\n\n```text\n{ask(name, '--help')}```\n"
    return text


def catalogue():
    """What there is of each kind."""
    text = (
        "# Catalogue\n\n"
        "Every part and every system that can be modelled. Behind each is a page of its\n"
        "numbers with unit, allowed range and source; `diskperf show NAME` prints the same.\n"
    )
    for kind, singular in {"systems": "system", **KINDS}.items():
        rows = listed(kind)
        text += f"\n## {kind.capitalize()}\n\n"
        for row in rows:
            name = row[singular]
            text += f"- [{escaped(name)}](catalogue/{kind}.md#{anchor(name)}): {escaped(row['meaning'])}\n"
    return text


def anchor(name):
    """The anchor of a heading."""
    return re.sub(r"[^a-z0-9-]", "-", name.lower())


def numbers(parameters):
    """A table of parameters."""
    heads = ["key", "value", "unit", "allowed", "source"]
    return table(heads, [[row[head if head != "key" else "path"] for head in heads] for row in parameters])


def parts(kind, singular):
    """Each part of a kind with its numbers."""
    text = f"# {kind.capitalize()}\n"
    for row in listed(kind):
        name = row[singular]
        text += f"\n## {escaped(name)} {{ #{anchor(name)} }}\n\n{escaped(row['meaning'])}\n\n"
        # Of one nothing was printed: it is named, and no model of it is to be had.
        if "a model of it is refused" not in row["meaning"]:
            # One line for each kind that has an entry of the name.
            entries = map(json.loads, ask("show", name, "--format", "json").splitlines())
            (shown,) = (entry for entry in entries if entry.get("component") == singular)
            text += numbers(shown["parameters"])
    return text


def systems():
    """Each system with the parts that it consists of."""
    text = "# Systems\n"
    for row in listed("systems"):
        name = row["system"]
        shown = json.loads(ask("show", name, "--format", "json"))
        text += f"\n## {escaped(name)} {{ #{anchor(name)} }}\n\n{escaped(row['meaning'])}\n\n"
        text += table(["part", "entry"], shown["components"].items())
        text += f"\n`diskperf list parameters {name}` prints its {len(shown['parameters'])} numbers.\n"
    return text


def accuracy():
    """The accuracy card, which a test of the models keeps true."""
    card = (ROOT / "ACCURACY.md").read_text()
    return re.sub(r"^## ", "# ", card, count=1, flags=re.M)
