"""What a notebook shows of an object that stands last in a cell."""

import html
import re

import diskperf
from conftest import VAX


def shown(thing):
    """The text of what is shown."""
    return html.unescape(re.sub(r"<[^>]+>", " ", thing._repr_html_()))


def test_what_a_terminal_would_show():
    system = diskperf.System(VAX)
    run = system.run("read_8192", size="256K", repetitions=1)
    assert f"read_8192 on {VAX}" in shown(run) and "KB/s (CPU)" in shown(run)
    explanation = run.explain(counterfactuals=False)
    assert explanation.verdict.split(": ", 1)[1][:40] in shown(explanation)
    slower = system.with_({"filesystem.rotdelay_ms": 7})
    options = {"suite": "read_8192", "size": "256K", "counterfactuals": False}
    assert "Why they differ" in shown(diskperf.explain(system, slower, **options))
    card = diskperf.reproduce("kridle-mckusick-1983", cell="*T2*sc780*8K/read_8192/1")
    assert "560" in shown(card)


def test_systems_and_entries():
    system = diskperf.System(VAX).with_({"filesystem.rotdelay_ms": 7})
    assert re.search(r"controller +sc780\n", shown(system))
    assert re.search(r"filesystem\.rotdelay_ms = +7", shown(system))
    catalogue = diskperf.Catalogue()
    assert VAX in shown(catalogue)
    eagle = shown(catalogue.show("eagle"))
    assert re.search(r"revolution +15\.1\d+ ms", eagle) and "spindle_rpm" in eagle


def test_tables_show_their_first_rows_with_few_digits():
    study = diskperf.sweep(
        VAX, "read_8192", over={"filesystem.rotdelay_ms": "0..11"}, size="64K", repetitions=1, progress=False
    )
    points = diskperf.run_points(VAX, "read_8192", [{}] * 12, size="64K", repetitions=1)
    assert "12" in shown(study) and shown(points).count("read_8192") == 12
    for table in (study, points):
        text = shown(table)
        assert "kb_per_s" in text and text.count("read_8192") >= 10
        rates = re.findall(r"\b\d+\.\d+\b", text)
        assert rates and all(len(rate.replace(".", "").lstrip("0")) <= 6 for rate in rates), rates


def test_markup_is_escaped():
    run = diskperf.run("read_8192", on=VAX, size="256K", repetitions=1)
    inside = run._repr_html_().split(">", 1)[1].rsplit("<", 1)[0]
    assert "<" not in inside and run._repr_html_().startswith("<pre ")
