//! fio's own output, read into plain counts and printed again, is the same text but for
//! what the counts do not hold.

use diskperf_fio::PerDirection;
use diskperf_fio::job::DirectionReporting;
use diskperf_fio::results::{
    DirectionResult, DiskUtilisation, FioResults, JobResult, JsonFormat, LatencyDistribution,
    PercentileOptions, SteadyResult,
};
use serde_json::Value;

use crate::{Fio, ours};

const JOB: &str = "[global]\nsize=1m\nbs=4k\nfilename=data\nrw=randrw\niodepth=1\nnumjobs=1\n\
    [mixed]\nfsync=8\nioengine=libaio\niodepth=8\ndescription=some words\n\
    [one]\nstonewall=1\nrw=read\nunified_rw_reporting=mixed\nslat_percentiles=1\nlat_percentiles=1\n\
    [both]\nstonewall=1\nrw=write\nunified_rw_reporting=both\npercentile_list=50:99.99\n\
    latency_target=900ms\nlatency_window=1s\nclat_percentiles=0\n\
    [steady]\nstonewall=1\nrw=read\ntime_based=1\nruntime=2\nss=iops:90%\nss_dur=1\n\
    [trim]\nstonewall=1\nioengine=null\nrw=trim\n";

fn integer(node: &Value, name: &str) -> u64 {
    node[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} of {node}"))
}

fn float(node: &Value, name: &str) -> f64 {
    node[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} of {node}"))
}

/// Bins where fio prints them, or as many of its mean.
fn latency(node: &Value) -> LatencyDistribution {
    let count = integer(node, "N");
    let counts = match node.get("bins").and_then(Value::as_object) {
        Some(bins) => bins
            .iter()
            .map(|(value, count)| (value.parse().expect("ns"), count.as_u64().expect("a count")))
            .collect(),
        None => vec![(float(node, "mean") as u64, count)],
    };
    LatencyDistribution {
        min_ns: integer(node, "min"),
        max_ns: integer(node, "max"),
        mean_ns: float(node, "mean"),
        deviation_ns: float(node, "stddev"),
        counts,
    }
}

fn direction(node: &Value) -> DirectionResult {
    DirectionResult {
        bytes: integer(node, "io_bytes"),
        ios: integer(node, "total_ios"),
        short_ios: integer(node, "short_ios"),
        dropped_ios: integer(node, "drop_ios"),
        io_time_ms: integer(node, "runtime"),
        submission: latency(&node["slat_ns"]),
        completion: latency(&node["clat_ns"]),
        total: latency(&node["lat_ns"]),
        ..DirectionResult::default()
    }
}

fn row(node: &Value, job: &diskperf_fio::JobDefinition) -> JobResult {
    let mut row = JobResult {
        name: node["jobname"].as_str().expect("a name").to_owned(),
        description: job.description.clone(),
        group: job.group,
        error: integer(node, "error") as u32,
        elapsed_s: integer(node, "elapsed"),
        options_as_written: job.options_as_written.clone(),
        direction_reporting: job.report.direction_reporting,
        job_runtime_ms: integer(node, "job_runtime"),
        latency_target_us: job.latency.target_us,
        latency_window_us: job.latency.window_us,
        latency_percentile: job.latency.percentile,
        latency_depth: job.engine.depth,
        percentiles: PercentileOptions::from_report_options(&job.report),
        ..JobResult::default()
    };
    row.cpu_usage.context_switches = integer(node, "ctx");
    if job.report.direction_reporting == DirectionReporting::Mixed {
        row.directions.read = direction(&node["mixed"]);
    } else {
        row.directions = PerDirection {
            read: direction(&node["read"]),
            write: direction(&node["write"]),
            trim: direction(&node["trim"]),
        };
        row.sync_latency = latency(&node["sync"]["lat_ns"]);
    }
    row.steady_state = node.get("steadystate").map(|steady| SteadyResult {
        requested_criterion: steady["ss"].as_str().expect("a criterion").to_owned(),
        window_s: integer(steady, "duration"),
        is_attained: integer(steady, "attained") == 1,
        is_value_percent: true,
        iops: vec![0; steady["data"]["iops"].as_array().expect("samples").len()],
        bytes_per_s: vec![0; steady["data"]["bw"].as_array().expect("samples").len()],
        ..SteadyResult::default()
    });
    row
}

fn results(json: &Value, parsed: &diskperf_fio::JobFile) -> FioResults {
    let rows = json["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .zip(&parsed.jobs);
    let disks = json["disk_util"].as_array().into_iter().flatten();
    FioResults {
        version: json["fio version"].as_str().expect("a version").to_owned(),
        timestamp_ms: integer(json, "timestamp_ms"),
        time_text: json["time"].as_str().expect("a time").to_owned(),
        global_options: parsed.global_options.clone(),
        jobs: rows.map(|(node, job)| row(node, job)).collect(),
        disks: disks.map(|_| DiskUtilisation::default()).collect(),
    }
}

/// What stands before the `{` is no JSON.
fn json_text(output: &str) -> &str {
    let start = output.find("{\n").expect("JSON");
    let end = output.rfind("\n}").expect("JSON");
    &output[start..end + 2]
}

/// A line's indentation, name and type; `job options` and what goes in and out of
/// parameters apart.
fn shape(text: &str) -> Vec<String> {
    let mut shape = Vec::new();
    let mut skipped = None;
    for line in text.lines() {
        let indentation = line.len() - line.trim_start().len();
        if skipped.is_some_and(|depth| indentation > depth) {
            continue;
        }
        skipped = None;
        let line = line.trim_end_matches(',');
        let (name, value) = line.split_once("\" : ").unwrap_or((line, ""));
        if name.ends_with("\"job options") {
            skipped = Some(indentation);
        }
        let of = match value {
            "" | "{" | "[" => value,
            text if text.starts_with('"') => "a string",
            number if number.contains('.') => "a fraction",
            _ => "an integer",
        };
        let is_number = name.trim().bytes().all(|byte| byte.is_ascii_digit());
        let name = if is_number { "" } else { name };
        shape.push(format!("{name} {of}"));
    }
    shape
}

#[test]
fn fios_output_is_printed_again() {
    let Some(fio) = Fio::installed() else { return };
    let parsed = ours(JOB).unwrap_or_else(|errors| panic!("{errors}"));
    for (argument, format) in [("json", JsonFormat::Json), ("json+", JsonFormat::JsonPlus)] {
        let (output, _) = fio.run(JOB, &[&format!("--output-format={argument}")]);
        let theirs = json_text(&output);
        let json: Value = serde_json::from_str(theirs).expect("fio's JSON");
        let again = results(&json, &parsed).render(format);
        // A disk that is made of others has more to say than this machine's.
        let both = [again.as_str(), theirs].map(|text| match theirs.contains("\"aggr_") {
            true => shape(text.split("\"disk_util\"").next().unwrap_or("")),
            false => shape(text),
        });
        assert_eq!(both[0], both[1], "{argument}");
        let again: Value = serde_json::from_str(&again).expect("our JSON");
        values(&again, &json, format);
    }
}

/// What follows from the counts is the same, to fio's last digit.
fn values(ours: &Value, theirs: &Value, format: JsonFormat) {
    for name in ["timestamp", "timestamp_ms", "time", "global options"] {
        assert_eq!(ours[name], theirs[name], "{name}");
    }
    let jobs = theirs["jobs"].as_array().expect("jobs");
    for (number, theirs) in jobs.iter().enumerate() {
        let ours = &ours["jobs"][number];
        for name in [
            "jobname",
            "groupid",
            "error",
            "elapsed",
            "desc",
            "latency_target",
            "latency_window",
            "latency_percentile",
        ] {
            assert_eq!(ours[name], theirs[name], "{name}");
        }
        for (name, value) in theirs["job options"].as_object().expect("options") {
            assert_eq!(ours["job options"][name], *value, "{name}");
        }
        for which in ["read", "write", "trim"] {
            if theirs.get("mixed").is_some() && theirs.get(which).is_none() {
                continue;
            }
            same(&ours[which], &theirs[which], which, format);
        }
        if theirs.get("read").is_none() {
            same(&ours["mixed"], &theirs["mixed"], "mixed", format);
        }
        if format == JsonFormat::JsonPlus {
            assert_eq!(ours["sync"], theirs["sync"], "sync of {number}");
        }
    }
}

fn same(ours: &Value, theirs: &Value, which: &str, format: JsonFormat) {
    for name in [
        "io_bytes",
        "io_kbytes",
        "bw_bytes",
        "bw",
        "runtime",
        "total_ios",
        "iops",
    ] {
        assert_eq!(ours[name], theirs[name], "{which}: {name}");
    }
    if format == JsonFormat::JsonPlus {
        for name in ["slat_ns", "clat_ns", "lat_ns"] {
            assert_eq!(ours[name], theirs[name], "{which}: {name}");
        }
    }
}
