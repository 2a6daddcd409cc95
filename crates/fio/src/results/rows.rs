//! Names and values of the members of each JSON object.

use super::json::{JsonNode, object_members};
use super::{
    DirectionResult, DiskUtilisation, FioResults, JobResult, JsonFormat, LatencyDistribution,
    SteadyResult, distribution, histogram,
};
use crate::job::{Direction, DirectionReporting};

/// Options that fio-plot requires in `job options`, with fio's defaults.
const PLOTTED_SERIES: [(&str, &str); 4] = [
    ("rw", "read"),
    ("bs", "4096"),
    ("iodepth", "1"),
    ("numjobs", "1"),
];

pub(super) fn results_row(results: &FioResults, format: JsonFormat) -> JsonNode {
    let mut root = object_members([
        ("fio version", JsonNode::Text(results.version.clone())),
        ("timestamp", JsonNode::Integer(results.timestamp_ms / 1000)),
        ("timestamp_ms", JsonNode::Integer(results.timestamp_ms)),
        ("time", JsonNode::Text(results.time_text.clone())),
    ]);
    let mut add = |name: &str, node| root.push((name.to_owned(), node));
    if !results.global_options.is_empty() {
        add("global options", option_rows(&results.global_options));
    }
    let jobs = results.jobs.iter().map(|row| job_row(results, row, format));
    add("jobs", JsonNode::List(jobs.collect()));
    if !results.disks.is_empty() {
        let disks = results.disks.iter().map(disk_row);
        add("disk_util", JsonNode::List(disks.collect()));
    }
    JsonNode::Object(root)
}

/// Returns the options as an object. The last of several equal options wins.
fn option_rows(written: &[(String, String)]) -> JsonNode {
    let mut members: Vec<(String, JsonNode)> = Vec::new();
    for (name, value) in written {
        let node = JsonNode::Text(value.clone());
        match members.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = node,
            None => members.push((name.clone(), node)),
        }
    }
    JsonNode::Object(members)
}

fn job_options(results: &FioResults, row: &JobResult) -> JsonNode {
    let mut written = row.options_as_written.clone();
    for (name, default) in PLOTTED_SERIES {
        if written.iter().any(|(key, _)| key == name) {
            continue;
        }
        let global = results.global_options.iter().rfind(|(key, _)| key == name);
        let value = global.map_or(default, |(_, value)| value);
        written.push((name.to_owned(), value.to_owned()));
    }
    option_rows(&written)
}

fn job_row(results: &FioResults, row: &JobResult, format: JsonFormat) -> JsonNode {
    let mut job = object_members([
        ("jobname", JsonNode::Text(row.name.clone())),
        ("groupid", JsonNode::Integer(row.group.into())),
        ("error", JsonNode::Integer(row.error.into())),
        ("eta", JsonNode::Integer(0)),
        ("elapsed", JsonNode::Integer(row.elapsed_s)),
        ("job options", job_options(results, row)),
    ]);
    job.extend(direction_rows(results, row, format));
    let processor = &row.cpu_usage;
    job.extend(object_members([
        ("job_runtime", JsonNode::Integer(row.job_runtime_ms)),
        ("usr_cpu", JsonNode::Float(processor.user_percent)),
        ("sys_cpu", JsonNode::Float(processor.system_percent)),
        ("ctx", JsonNode::Integer(processor.context_switches)),
        ("majf", JsonNode::Integer(processor.major_faults)),
        ("minf", JsonNode::Integer(processor.minor_faults)),
    ]));
    let each = Direction::ALL.map(|direction| row.directions.get(direction));
    let ios = each.iter().map(|direction| direction.ios).sum();
    job.extend(object_members([
        (
            "iodepth_level",
            distribution::depth_shares(&row.depth_counts, ios),
        ),
        (
            "iodepth_submit",
            distribution::batch_shares(&row.submit_batch_counts),
        ),
        (
            "iodepth_complete",
            distribution::batch_shares(&row.completion_batch_counts),
        ),
    ]));
    let latencies: Vec<(u64, u64)> = each
        .iter()
        .flat_map(|direction| direction.completion.counts.clone())
        .collect();
    job.extend(object_members(distribution::latency_shares(
        &latencies, ios,
    )));
    job.extend(object_members([
        (
            "latency_depth",
            JsonNode::Integer(row.latency_depth.max(1).into()),
        ),
        (
            "latency_target",
            JsonNode::Integer(row.latency_target_us.saturating_mul(1000)),
        ),
        (
            "latency_percentile",
            JsonNode::Float(row.latency_percentile),
        ),
        ("latency_window", JsonNode::Integer(row.latency_window_us)),
    ]));
    if let Some(errors) = row.ignored_errors {
        job.push(("total_err".to_owned(), JsonNode::Integer(errors.count)));
        job.push((
            "first_error".to_owned(),
            JsonNode::Integer(errors.first_errno),
        ));
    }
    if let Some(description) = &row.description {
        job.push(("desc".to_owned(), JsonNode::Text(description.clone())));
    }
    if let Some(steady) = &row.steady_state {
        job.push(("steadystate".to_owned(), steady_state_row(steady)));
    }
    JsonNode::Object(job)
}

/// Returns the results by direction: separate, combined or both.
fn direction_rows(
    results: &FioResults,
    row: &JobResult,
    format: JsonFormat,
) -> Vec<(String, JsonNode)> {
    let mut members = Vec::new();
    if row.direction_reporting != DirectionReporting::Mixed {
        for (name, which) in [
            ("read", Direction::Read),
            ("write", Direction::Write),
            ("trim", Direction::Trim),
        ] {
            let done = row.directions.get(which);
            let group = group_kib_per_s(results, row, |job| job.directions.get(which).clone());
            members.push((name.to_owned(), direction_row(done, group, row, format)));
        }
        let mut sync = vec![(
            "total_ios".to_owned(),
            JsonNode::Integer(row.sync_latency.count()),
        )];
        sync.push((
            "lat_ns".to_owned(),
            latency_row(&row.sync_latency, true, row, format),
        ));
        members.push(("sync".to_owned(), JsonNode::Object(sync)));
    }
    if row.direction_reporting != DirectionReporting::Separate {
        let group = group_kib_per_s(results, row, combined_directions);
        members.push((
            "mixed".to_owned(),
            direction_row(&combined_directions(row), group, row, format),
        ));
    }
    members
}

fn combined_directions(row: &JobResult) -> DirectionResult {
    let mut all = row.directions.read.clone();
    all.merge(row.directions.write.clone());
    all.merge(row.directions.trim.clone());
    all
}

/// Returns the throughput of all jobs of a group, in KiB/s.
fn group_kib_per_s(
    results: &FioResults,
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
        runtime_ms = done.io_time_ms.max(runtime_ms);
    }
    per_second(bytes, runtime_ms) as f64 / 1024.0
}

fn per_second(count: u64, runtime_ms: u64) -> u64 {
    let whole = (u128::from(count) * 1000).checked_div(runtime_ms.into());
    u64::try_from(whole.unwrap_or(0)).unwrap_or(u64::MAX)
}

fn direction_row(
    done: &DirectionResult,
    group_kib_per_s: f64,
    row: &JobResult,
    format: JsonFormat,
) -> JsonNode {
    let bytes_per_s = per_second(done.bytes, done.io_time_ms);
    let iops = match done.io_time_ms {
        0 => 0.0,
        runtime_ms => done.ios as f64 * 1000.0 / runtime_ms as f64,
    };
    let percentiles = &row.percentiles;
    let mut members = object_members([
        ("io_bytes", JsonNode::Integer(done.bytes)),
        ("io_kbytes", JsonNode::Integer(done.bytes / 1024)),
        ("bw_bytes", JsonNode::Integer(bytes_per_s)),
        ("bw", JsonNode::Integer(bytes_per_s / 1024)),
        ("iops", JsonNode::Float(iops)),
        ("runtime", JsonNode::Integer(done.io_time_ms)),
        ("total_ios", JsonNode::Integer(done.ios)),
        ("short_ios", JsonNode::Integer(done.short_ios)),
        ("drop_ios", JsonNode::Integer(done.dropped_ios)),
        (
            "slat_ns",
            latency_row(
                &done.submission,
                percentiles.reports_submission,
                row,
                format,
            ),
        ),
        (
            "clat_ns",
            latency_row(
                &done.completion,
                percentiles.reports_completion,
                row,
                format,
            ),
        ),
        (
            "lat_ns",
            latency_row(&done.total, percentiles.reports_total, row, format),
        ),
    ]);
    let bandwidth = SampleStatistics::from_samples(&done.bandwidth_samples_kib_per_s);
    let share = match group_kib_per_s {
        group if group > 0.0 => (bandwidth.mean * 100.0 / group).min(100.0),
        _ => 0.0,
    };
    let iops = SampleStatistics::from_samples(&done.iops_samples);
    members.extend(object_members([
        ("bw_min", JsonNode::Integer(bandwidth.min)),
        ("bw_max", JsonNode::Integer(bandwidth.max)),
        ("bw_agg", JsonNode::Float(share)),
        ("bw_mean", JsonNode::Float(bandwidth.mean)),
        ("bw_dev", JsonNode::Float(bandwidth.deviation)),
        ("bw_samples", JsonNode::Integer(bandwidth.count)),
        ("iops_min", JsonNode::Integer(iops.min)),
        ("iops_max", JsonNode::Integer(iops.max)),
        ("iops_mean", JsonNode::Float(iops.mean)),
        ("iops_stddev", JsonNode::Float(iops.deviation)),
        ("iops_samples", JsonNode::Integer(iops.count)),
    ]));
    JsonNode::Object(members)
}

struct SampleStatistics {
    min: u64,
    max: u64,
    mean: f64,
    deviation: f64,
    count: u64,
}

impl SampleStatistics {
    fn from_samples(samples: &[u64]) -> SampleStatistics {
        let counts = samples.iter().map(|&sample| (sample, 1)).collect();
        let latency = LatencyDistribution::from_counts(counts);
        SampleStatistics {
            min: latency.min_ns,
            max: latency.max_ns,
            mean: latency.mean_ns,
            deviation: latency.deviation_ns,
            count: samples.len() as u64,
        }
    }
}

fn latency_row(
    latency: &LatencyDistribution,
    has_percentiles: bool,
    row: &JobResult,
    format: JsonFormat,
) -> JsonNode {
    let count = latency.count();
    let mut members = object_members([
        ("min", JsonNode::Integer(latency.min_ns)),
        ("max", JsonNode::Integer(latency.max_ns)),
        ("mean", JsonNode::Float(latency.mean_ns)),
        ("stddev", JsonNode::Float(latency.deviation_ns)),
        ("N", JsonNode::Integer(count)),
    ]);
    if !has_percentiles || count == 0 {
        return JsonNode::Object(members);
    }
    let bins = histogram::bin_counts(&latency.counts);
    let list = histogram::percentiles(&bins, &row.percentiles.percents);
    let list = list.into_iter();
    let list = list.map(|(percent, value)| (format!("{percent:.6}"), JsonNode::Integer(value)));
    members.push(("percentile".to_owned(), JsonNode::Object(list.collect())));
    if format == JsonFormat::JsonPlus {
        let bins = bins.into_iter();
        let bins = bins.map(|(value, count)| (value.to_string(), JsonNode::Integer(count)));
        members.push(("bins".to_owned(), JsonNode::Object(bins.collect())));
    }
    JsonNode::Object(members)
}

fn steady_state_row(steady: &SteadyResult) -> JsonNode {
    let unit = if steady.is_value_percent { "%" } else { "" };
    let mean = |values: &[u64]| {
        let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
        let mean = sum.checked_div(values.len() as u128).unwrap_or(0);
        JsonNode::Integer(u64::try_from(mean).unwrap_or(u64::MAX))
    };
    let list =
        |values: &[u64]| JsonNode::List(values.iter().copied().map(JsonNode::Integer).collect());
    JsonNode::Object(object_members([
        ("ss", JsonNode::Text(steady.requested_criterion.clone())),
        ("duration", JsonNode::Integer(steady.window_s)),
        ("attained", JsonNode::Integer(steady.is_attained.into())),
        (
            "criterion",
            JsonNode::Text(format!("{:.6}{unit}", steady.final_value)),
        ),
        ("max_deviation", JsonNode::Float(steady.deviation_max)),
        ("slope", JsonNode::Float(steady.slope)),
        (
            "data",
            JsonNode::Object(object_members([
                ("bw_mean", mean(&steady.bytes_per_s)),
                ("iops_mean", mean(&steady.iops)),
                ("iops", list(&steady.iops)),
                ("bw", list(&steady.bytes_per_s)),
            ])),
        ),
    ]))
}

fn disk_row(disk: &DiskUtilisation) -> JsonNode {
    JsonNode::Object(object_members([
        ("name", JsonNode::Text(disk.name.clone())),
        ("read_ios", JsonNode::Integer(disk.reads)),
        ("write_ios", JsonNode::Integer(disk.writes)),
        ("read_merges", JsonNode::Integer(disk.read_merges)),
        ("write_merges", JsonNode::Integer(disk.write_merges)),
        ("read_ticks", JsonNode::Integer(disk.read_ticks_ms)),
        ("write_ticks", JsonNode::Integer(disk.write_ticks_ms)),
        ("in_queue", JsonNode::Integer(disk.in_queue_ms)),
        ("util", JsonNode::Float(disk.busy_percent)),
    ]))
}
