"""Exports for other tools, read by the parsers of those tools."""

import json

import jsonschema
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from junitparser import JUnitXml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

#: Label with characters that are syntax in the formats. The command line refuses it, but a file
#: of another user may hold it.
HOSTILE = 'a"b\\c\n{d="e"} 1\r# EOF\0é]]>&<x/>,\u202e%0A'

#: The label as it is exported: what a terminal obeys is visible.
VISIBLE = HOSTILE.replace("\r", "\\r").replace("\0", "\\u0000").replace("\u202e", "\\u202e")

FILES = {
    "bmf": "runs.bmf",
    "github-benchmark": "runs.json",
    "openmetrics": "runs.om",
    "prometheus": "runs.prom",
    "hdr": "runs.hlog",
    "junit": "runs.xml",
}

#: Types of Bencher's adapter for version 0 of its format.
BENCHER = {
    "type": "object",
    "propertyNames": {"minLength": 1},
    "additionalProperties": {
        "type": "object",
        "propertyNames": {"minLength": 1},
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "additionalProperties": False,
            "properties": {key: {"type": "number"} for key in ("value", "lower_value", "upper_value")},
        },
    },
}

#: Types of github-action-benchmark's custom tools.
GITHUB = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["name", "unit", "value"],
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "unit": {"type": "string"},
            "value": {"type": "number"},
            "range": {"type": "string"},
            "extra": {"type": "string"},
        },
    },
}


def is_refused(text):
    """Whether OpenMetrics' own parser refuses a text."""
    try:
        list(open_metrics(text))
    except ValueError:
        return True
    return False


def list_samples(families):
    """Lists name, labels and value of each sample; no sample has a timestamp."""
    found = []
    for family in families:
        for sample in family.samples:
            assert sample.timestamp is None, sample
            found.append([sample.name, sample.labels, sample.value])
    return found


def break_metrics(text):
    """Returns texts that OpenMetrics does not allow, each made from a text that it allows."""
    lines = text.splitlines(keepends=True)
    infinite = next(number for number, line in enumerate(lines) if 'le="+Inf"' in line)
    unequal = [*lines]
    unequal[infinite] = unequal[infinite].rpartition(" ")[0] + " 1.5\n"
    return {
        "no end": text.replace("# EOF\n", ""),
        "a blank line": "\n" + text,
        "unequal count": "".join(unequal),
        "interleaved": text.replace("# EOF\n", lines[1] + "# EOF\n"),
    }


def list_histograms(path):
    """Lists tag, count and percentiles (p50, p99) of each line of a log."""
    reader = HistogramLogReader(str(path), HdrHistogram(1, 1 << 50, 3))
    found = []
    while (histogram := reader.get_next_interval_histogram()) is not None:
        percentiles = [histogram.get_value_at_percentile(at) for at in (50.0, 99.0)]
        found.append([histogram.get_tag(), histogram.get_total_count(), percentiles])
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory, command_line):
    """A folder with two modelled runs in every format, the first with a hostile label, and the
    result of the second run in JSON."""
    folder = tmp_path_factory.mktemp("exports")
    for label in ("other", "plain"):
        options = "--set program.duration_ms=200 --runs 2 --quiet --label"
        command_line("run", "random", "--on", "bare-fixed", *options.split(), label)
    both = folder / "both.json"
    command_line("export", "other", "plain", "-o", both)
    runs = json.loads(both.read_text())
    runs["runs"][0]["label"] = HOSTILE
    both.write_text(json.dumps(runs))
    for form, name in FILES.items():
        command_line("export", both, "--format", form, "-o", folder / name)
    shown = json.loads(command_line("show", "plain", "--format", "json"))
    return folder, shown["runs"][0]["results"][0]


def test_benchmark_trackers_accept_the_figures(exported):
    folder, result = exported
    bencher = json.loads((folder / "runs.bmf").read_text())
    jsonschema.validate(bencher, BENCHER)
    assert len(bencher) == 2
    assert {measures["iops"]["value"] for measures in bencher.values()} == {result["iops"]}
    for direction in ("bigger", "smaller"):
        entries = json.loads((folder / f"runs-{direction}.json").read_text())
        jsonschema.validate(entries, GITHUB)
        assert entries


@pytest.mark.parametrize(
    ("name", "parser"), [("runs.om", open_metrics), ("runs.prom", prometheus)]
)
def test_metrics_keep_figures_and_hostile_labels(exported, name, parser):
    folder, result = exported
    samples = list_samples(parser((folder / name).read_bytes().decode()))
    rates = [value for sample, _, value in samples if sample == "diskperf_requests_per_second"]
    assert rates == [result["iops"]] * 2
    labels = [labels["label"] for sample, labels, _ in samples if sample == "diskperf_run_info"]
    assert VISIBLE in labels
    counts = [value for sample, _, value in samples if sample == "diskperf_response_time_seconds_count"]
    assert counts and all(count > 0 for count in counts)


def test_broken_metrics_are_refused(exported):
    folder, _ = exported
    text = (folder / "runs.om").read_bytes().decode()
    assert [name for name, broken in break_metrics(text).items() if not is_refused(broken)] == []


def test_a_log_of_histograms_keeps_percentiles(exported):
    folder, result = exported
    logged = list_histograms(folder / "runs.hlog")
    # One line for the counted repetition of each run.
    assert len(logged) == 2
    for tag, count, (p50_ns, _) in logged:
        assert tag.endswith(".read") and count > 0
        assert p50_ns / 1e3 == pytest.approx(result["latency"]["read"]["response"]["p50_us"], rel=2e-3)


def test_junit_has_a_case_for_each_row(exported):
    folder, _ = exported
    suites = JUnitXml.fromfile(str(folder / "runs.xml"))
    cases = [case for suite in suites for case in suite]
    assert cases and all(not case.result for case in cases)
