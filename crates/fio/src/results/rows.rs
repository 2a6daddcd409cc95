//! Names and values of the members of each JSON object.

use super::json::{Node, object};
use super::{
    DirectionResult, DiskUtilisation, Format, JobResult, Latency, Results, SteadyResult,
    distribution, histogram,
};
use crate::job::{Direction, Unified};

/// Options that fio-plot requires in `job options`, with fio's defaults.
const PLOTTED: [(&str, &str); 4] = [
    ("rw", "read"),
    ("bs", "4096"),
    ("iodepth", "1"),
    ("numjobs", "1"),
];

pub(super) fn root(results: &Results, format: Format) -> Node {
    let mut root = object([
        ("fio version", Node::Text(results.version.clone())),
        ("timestamp", Node::Integer(results.timestamp_ms / 1000)),
        ("timestamp_ms", Node::Integer(results.timestamp_ms)),
        ("time", Node::Text(results.time.clone())),
    ]);
    let mut add = |name: &str, node| root.push((name.to_owned(), node));
    if !results.global_options.is_empty() {
        add("global options", options(&results.global_options));
    }
    let jobs = results.jobs.iter().map(|row| job(results, row, format));
    add("jobs", Node::List(jobs.collect()));
    if !results.disks.is_empty() {
        let disks = results.disks.iter().map(disk);
        add("disk_util", Node::List(disks.collect()));
    }
    Node::Object(root)
}

/// Returns the options as an object. The last of several equal options wins.
fn options(written: &[(String, String)]) -> Node {
    let mut members: Vec<(String, Node)> = Vec::new();
    for (name, value) in written {
        let node = Node::Text(value.clone());
        match members.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = node,
            None => members.push((name.clone(), node)),
        }
    }
    Node::Object(members)
}

fn job_options(results: &Results, row: &JobResult) -> Node {
    let mut written = row.options_as_written.clone();
    for (name, default) in PLOTTED {
        if written.iter().any(|(key, _)| key == name) {
            continue;
        }
        let global = results.global_options.iter().rfind(|(key, _)| key == name);
        let value = global.map_or(default, |(_, value)| value);
        written.push((name.to_owned(), value.to_owned()));
    }
    options(&written)
}

fn job(results: &Results, row: &JobResult, format: Format) -> Node {
    let mut job = object([
        ("jobname", Node::Text(row.name.clone())),
        ("groupid", Node::Integer(row.group.into())),
        ("error", Node::Integer(row.error.into())),
        ("eta", Node::Integer(0)),
        ("elapsed", Node::Integer(row.elapsed_s)),
        ("job options", job_options(results, row)),
    ]);
    job.extend(directions(results, row, format));
    let processor = &row.processor;
    job.extend(object([
        ("job_runtime", Node::Integer(row.job_runtime_ms)),
        ("usr_cpu", Node::Float(processor.user_percent)),
        ("sys_cpu", Node::Float(processor.system_percent)),
        ("ctx", Node::Integer(processor.context_switches)),
        ("majf", Node::Integer(processor.major_faults)),
        ("minf", Node::Integer(processor.minor_faults)),
    ]));
    let each = Direction::ALL.map(|direction| row.directions.get(direction));
    let ios = each.iter().map(|direction| direction.ios).sum();
    job.extend(object([
        ("iodepth_level", distribution::depths(&row.depths, ios)),
        ("iodepth_submit", distribution::batches(&row.submitted)),
        ("iodepth_complete", distribution::batches(&row.completed)),
    ]));
    let latencies: Vec<(u64, u64)> = each
        .iter()
        .flat_map(|direction| direction.completion.counts.clone())
        .collect();
    job.extend(object(distribution::latencies(&latencies, ios)));
    job.extend(object([
        (
            "latency_depth",
            Node::Integer(row.latency_depth.max(1).into()),
        ),
        (
            "latency_target",
            Node::Integer(row.latency_target_us.saturating_mul(1000)),
        ),
        ("latency_percentile", Node::Float(row.latency_percentile)),
        ("latency_window", Node::Integer(row.latency_window_us)),
    ]));
    if let Some(errors) = row.passed_over {
        job.push(("total_err".to_owned(), Node::Integer(errors.count)));
        job.push(("first_error".to_owned(), Node::Integer(errors.first)));
    }
    if let Some(description) = &row.description {
        job.push(("desc".to_owned(), Node::Text(description.clone())));
    }
    if let Some(steady) = &row.steady {
        job.push(("steadystate".to_owned(), steady_state(steady)));
    }
    Node::Object(job)
}

/// Returns the results by direction: separate, combined or both.
fn directions(results: &Results, row: &JobResult, format: Format) -> Vec<(String, Node)> {
    let mut members = Vec::new();
    if row.unified != Unified::Mixed {
        for (name, which) in [
            ("read", Direction::Read),
            ("write", Direction::Write),
            ("trim", Direction::Trim),
        ] {
            let done = row.directions.get(which);
            let group = group_kib_per_s(results, row, |job| job.directions.get(which).clone());
            members.push((name.to_owned(), direction(done, group, row, format)));
        }
        let mut sync = vec![("total_ios".to_owned(), Node::Integer(row.sync.count()))];
        sync.push(("lat_ns".to_owned(), latency(&row.sync, true, row, format)));
        members.push(("sync".to_owned(), Node::Object(sync)));
    }
    if row.unified != Unified::Apart {
        let group = group_kib_per_s(results, row, mixed);
        members.push((
            "mixed".to_owned(),
            direction(&mixed(row), group, row, format),
        ));
    }
    members
}

fn mixed(row: &JobResult) -> DirectionResult {
    let mut all = row.directions.read.clone();
    all.absorb(row.directions.write.clone());
    all.absorb(row.directions.trim.clone());
    all
}

/// Returns the throughput of all jobs of a group, in KiB/s.
fn group_kib_per_s(
    results: &Results,
    row: &JobResult,
    done: impl Fn(&JobResult) -> DirectionResult,
) -> f64 {
    let group = results
        .jobs
        .iter()
        .filter(|other| other.group == row.group)
        .map(done);
    let (mut bytes, mut runtime_ms) = (0, 0);
    for done in group {
        bytes += done.bytes;
        runtime_ms = done.runtime_ms.max(runtime_ms);
    }
    per_second(bytes, runtime_ms) as f64 / 1024.0
}

fn per_second(count: u64, runtime_ms: u64) -> u64 {
    let whole = (u128::from(count) * 1000).checked_div(runtime_ms.into());
    u64::try_from(whole.unwrap_or(0)).unwrap_or(u64::MAX)
}

fn direction(
    done: &DirectionResult,
    group_kib_per_s: f64,
    row: &JobResult,
    format: Format,
) -> Node {
    let bytes_per_s = per_second(done.bytes, done.runtime_ms);
    let iops = match done.runtime_ms {
        0 => 0.0,
        runtime_ms => done.ios as f64 * 1000.0 / runtime_ms as f64,
    };
    let percentiles = &row.percentiles;
    let mut members = object([
        ("io_bytes", Node::Integer(done.bytes)),
        ("io_kbytes", Node::Integer(done.bytes / 1024)),
        ("bw_bytes", Node::Integer(bytes_per_s)),
        ("bw", Node::Integer(bytes_per_s / 1024)),
        ("iops", Node::Float(iops)),
        ("runtime", Node::Integer(done.runtime_ms)),
        ("total_ios", Node::Integer(done.ios)),
        ("short_ios", Node::Integer(done.short_ios)),
        ("drop_ios", Node::Integer(done.dropped_ios)),
        (
            "slat_ns",
            latency(&done.submission, percentiles.of_submission, row, format),
        ),
        (
            "clat_ns",
            latency(&done.completion, percentiles.of_completion, row, format),
        ),
        (
            "lat_ns",
            latency(&done.total, percentiles.of_total, row, format),
        ),
    ]);
    let bandwidth = Samples::of(&done.bandwidth_samples_kib_per_s);
    let share = match group_kib_per_s {
        group if group > 0.0 => (bandwidth.mean * 100.0 / group).min(100.0),
        _ => 0.0,
    };
    let iops = Samples::of(&done.iops_samples);
    members.extend(object([
        ("bw_min", Node::Integer(bandwidth.min)),
        ("bw_max", Node::Integer(bandwidth.max)),
        ("bw_agg", Node::Float(share)),
        ("bw_mean", Node::Float(bandwidth.mean)),
        ("bw_dev", Node::Float(bandwidth.deviation)),
        ("bw_samples", Node::Integer(bandwidth.count)),
        ("iops_min", Node::Integer(iops.min)),
        ("iops_max", Node::Integer(iops.max)),
        ("iops_mean", Node::Float(iops.mean)),
        ("iops_stddev", Node::Float(iops.deviation)),
        ("iops_samples", Node::Integer(iops.count)),
    ]));
    Node::Object(members)
}

/// Statistics of a series of interval samples.
struct Samples {
    min: u64,
    max: u64,
    mean: f64,
    deviation: f64,
    count: u64,
}

impl Samples {
    fn of(samples: &[u64]) -> Samples {
        let counts = samples.iter().map(|&sample| (sample, 1)).collect();
        let latency = Latency::of(counts);
        Samples {
            min: latency.min_ns,
            max: latency.max_ns,
            mean: latency.mean_ns,
            deviation: latency.deviation_ns,
            count: samples.len() as u64,
        }
    }
}

fn latency(latency: &Latency, has_percentiles: bool, row: &JobResult, format: Format) -> Node {
    let count = latency.count();
    let mut members = object([
        ("min", Node::Integer(latency.min_ns)),
        ("max", Node::Integer(latency.max_ns)),
        ("mean", Node::Float(latency.mean_ns)),
        ("stddev", Node::Float(latency.deviation_ns)),
        ("N", Node::Integer(count)),
    ]);
    if !has_percentiles || count == 0 {
        return Node::Object(members);
    }
    let bins = histogram::binned(&latency.counts);
    let list = histogram::percentiles(&bins, &row.percentiles.list);
    let list = list.into_iter();
    let list = list.map(|(percent, value)| (format!("{percent:.6}"), Node::Integer(value)));
    members.push(("percentile".to_owned(), Node::Object(list.collect())));
    if format == Format::JsonPlus {
        let bins = bins.into_iter();
        let bins = bins.map(|(value, count)| (value.to_string(), Node::Integer(count)));
        members.push(("bins".to_owned(), Node::Object(bins.collect())));
    }
    Node::Object(members)
}

fn steady_state(steady: &SteadyResult) -> Node {
    let unit = if steady.criterion_is_percent { "%" } else { "" };
    let mean = |values: &[u64]| {
        let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
        let mean = sum.checked_div(values.len() as u128).unwrap_or(0);
        Node::Integer(u64::try_from(mean).unwrap_or(u64::MAX))
    };
    let list = |values: &[u64]| Node::List(values.iter().copied().map(Node::Integer).collect());
    Node::Object(object([
        ("ss", Node::Text(steady.asked.clone())),
        ("duration", Node::Integer(steady.window_s)),
        ("attained", Node::Integer(steady.is_attained.into())),
        (
            "criterion",
            Node::Text(format!("{:.6}{unit}", steady.criterion)),
        ),
        ("max_deviation", Node::Float(steady.max_deviation)),
        ("slope", Node::Float(steady.slope)),
        (
            "data",
            Node::Object(object([
                ("bw_mean", mean(&steady.bytes_per_s)),
                ("iops_mean", mean(&steady.iops)),
                ("iops", list(&steady.iops)),
                ("bw", list(&steady.bytes_per_s)),
            ])),
        ),
    ]))
}

fn disk(disk: &DiskUtilisation) -> Node {
    Node::Object(object([
        ("name", Node::Text(disk.name.clone())),
        ("read_ios", Node::Integer(disk.reads)),
        ("write_ios", Node::Integer(disk.writes)),
        ("read_merges", Node::Integer(disk.read_merges)),
        ("write_merges", Node::Integer(disk.write_merges)),
        ("read_ticks", Node::Integer(disk.read_ticks_ms)),
        ("write_ticks", Node::Integer(disk.write_ticks_ms)),
        ("in_queue", Node::Integer(disk.in_queue_ms)),
        ("util", Node::Float(disk.busy_percent)),
    ]))
}
