"""Charts: those of the HTML report, as Altair has them."""

import json
import re

import diskperf
import pytest
from conftest import VAX

altair = pytest.importorskip("altair")


def specifications(page):
    """The specifications in a page of the command line, by name."""
    figures = re.findall(
        r'data-chart="([^"]+)".*?<script type="application/json">(.*?)</script>', page, re.S
    )
    return {name: json.loads(text) for name, text in figures}


def test_they_are_those_of_the_report(tmp_path, command_line):
    run = diskperf.run("ffs83", on=VAX, size="512K", repetitions=2, store=tmp_path / "runs.sqlite")
    page = tmp_path / "page.html"
    command_line("report", run.id, "--store", tmp_path / "runs.sqlite", "-o", page)
    expected = specifications(page.read_text())
    charts = run.charts()
    assert list(charts) == list(expected)
    for name, chart in charts.items():
        ours = chart.to_dict()
        data = ours.pop("datasets", None)
        values = next(iter(data.values())) if data else ours["data"]["values"]
        assert values == expected[name]["data"]["values"]
        assert ours["title"] == expected[name]["description"]


def test_plot_gives_one(tmp_path):
    run = diskperf.run("ffs83", on=VAX, size="512K", repetitions=2)
    assert run.plot().to_dict() == run.charts()["throughput-1"].to_dict()
    with pytest.raises(KeyError, match="there is no chart 'pie'"):
        run.plot("pie")
    slower = "vax750-sc750-eagle"
    other = diskperf.run("ffs83", on=slower, size="512K", repetitions=2)
    series = json.dumps(diskperf.plot([run, other]).to_dict())
    assert slower in series and VAX in series


def test_a_card_has_its_own():
    cells = "*/T2/vax780-*/8K/read_8192/1*"
    charts = diskperf.reproduce("kridle-mckusick-1983", cell=cells).charts()
    assert len(charts) >= 2
    for chart in charts.values():
        assert chart.to_dict()["$schema"].startswith("https://vega.github.io/schema/vega-lite/v6")


def test_without_altair_it_is_said_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match=r"pip install altair, or diskperf.s own extra"):
        diskperf.run("read_8192", on=VAX).plot()
