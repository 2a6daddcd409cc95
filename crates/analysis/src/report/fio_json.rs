//! Runs in the form of fio's results, for plots and scripts that read those.
//!
//! A job is represented by its median repetition by request rate, among those that count. As in
//! fio, a request's submission latency ends when the submitting call returns, and its completion
//! latency begins then. Runs of early versions have no completion latencies: theirs are empty.

use crate::fio_jobs;
use crate::quantity::judged_duration_s;
use diskperf_fio::results::{
    CpuUsage, DirectionResult, DiskUtilisation, FioResults, IgnoredErrorCounts, JobResult,
    JsonFormat, LatencyDistribution, PercentileOptions,
};
use diskperf_fio::{JobDefinition, JobFile};
use diskperf_timeline::units::{KIB, format_utc};
use diskperf_timeline::{
    Histogram, LoadMeasure, Nanoseconds, OperationMeasure, ProgramResult, Repetition, Run,
    SeriesPoint, WorkerMeasure, Workload,
};

/// Error for a run without any program that fio's format can represent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "fio's format exists only for programs with requests in flight (random, sequential, log_append, database, the jobs of a job file), and {0} has none"
)]
pub struct NoRequests(pub String);

/// Formats runs as fio's JSON, one object after the other.
///
/// # Errors
///
/// A run without a program that keeps requests in flight.
pub fn render_fio_json(runs: &[Run], format: JsonFormat) -> Result<String, NoRequests> {
    let texts = runs.iter().map(|run| {
        let results =
            build_results(run).ok_or_else(|| NoRequests(format!("run {}", run.run_id)))?;
        Ok(results.render(format))
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.concat())
}

fn build_results(run: &Run) -> Option<FioResults> {
    let file = match run.experiment.as_ref().map(|one| &one.workload) {
        // It was read when the run was planned.
        Some(Workload::JobFile(text)) => fio_jobs::parse_stored_job(text).ok(),
        _ => None,
    };
    let mut jobs: Vec<(u32, JobResult)> = Vec::new();
    let mut disks: Vec<DiskUtilisation> = Vec::new();
    let mut elapsed = Nanoseconds::default();
    for (number, result) in run.results.iter().enumerate() {
        let Some(one) = find_median_repetition(result) else {
            continue;
        };
        elapsed = elapsed + one.elapsed_time();
        add_disk_utilisation(one, &mut disks);
        let section = file
            .as_ref()
            .and_then(|file| file.jobs.get(result.table_row as usize));
        if section.is_some_and(|job| !job.report.is_reported) {
            continue;
        }
        let rows = build_jobs(result, one, (number as u32, section));
        let merged = section.is_some_and(|job| job.report.is_grouped);
        for row in rows {
            let of_group = |(_, other): &&mut (u32, JobResult)| merged && other.group == row.group;
            match jobs.iter_mut().find(of_group) {
                Some((_, first)) => first.merge(row),
                None => jobs.push((result.table_row, row)),
            }
        }
    }
    if jobs.is_empty() {
        return None;
    }
    // As they stand in the file, which need not be how they ran.
    jobs.sort_by_key(|(row, _)| *row);
    let timestamp_ms = run.started_unix_ms + elapsed.0 / 1_000_000;
    Some(FioResults {
        version: format!("diskperf-{}", run.program_version),
        timestamp_ms,
        time_text: format_ctime(timestamp_ms),
        global_options: file.map_or_else(Vec::new, |file: JobFile| file.global_options),
        jobs: jobs.into_iter().map(|(_, row)| row).collect(),
        disks,
    })
}

fn find_median_repetition(result: &ProgramResult) -> Option<&Repetition> {
    let mut kept: Vec<&Repetition> = result
        .kept_repetitions()
        .filter(|one| has_requests(one))
        .collect();
    kept.sort_by(|one, other| judged_duration_s(one).total_cmp(&judged_duration_s(other)));
    kept.get(kept.len().saturating_sub(1) / 2).copied()
}

/// Tests whether the repetition did only work that fio knows. Operations on file names are timed
/// like requests but do not count.
fn has_requests(repetition: &Repetition) -> bool {
    let mut loads = repetition.load_measures().peekable();
    loads.peek().is_some() && loads.all(|load| load.name_call_count() == 0)
}

/// Returns the fio results of a job, one for each of its clones.
fn build_jobs(
    result: &ProgramResult,
    repetition: &Repetition,
    (number, section): (u32, Option<&JobDefinition>),
) -> Vec<JobResult> {
    let of_worker = |worker: &WorkerMeasure| {
        let load = worker.load_measure.as_ref()?;
        let runtime_ms = worker.elapsed_time.0.div_ceil(1_000_000);
        let row = JobResult {
            name: section.map_or_else(|| result.result_key(), |job| job.name.clone()),
            description: section.and_then(|job| job.description.clone()),
            group: section.map_or(number, |job| job.group),
            elapsed_s: (worker.start_time + worker.elapsed_time)
                .0
                .div_ceil(1_000_000_000),
            options_as_written: match section {
                Some(job) => job.options_as_written.clone(),
                None => list_job_options(result, load),
            },
            directions: diskperf_fio::PerDirection {
                read: build_direction(&load.read, load, runtime_ms, |point| {
                    (point.read_count, point.read_bytes)
                }),
                write: build_direction(&load.write, load, runtime_ms, |point| {
                    (point.write_count, point.written_bytes)
                }),
                trim: build_direction(&load.discard, load, runtime_ms, |_| (0, 0)),
            },
            direction_reporting: section
                .map_or_else(Default::default, |job| job.report.direction_reporting),
            error: worker
                .worker_failure
                .as_ref()
                .map_or(0, |failure| failure.errno),
            sync_latency: build_latency(&load.sync.response_times),
            job_runtime_ms: runtime_ms,
            cpu_usage: build_processor_usage(worker),
            depth_counts: vec![(
                load.queue_depth,
                load.read_write_count() + load.discard.request_count(),
            )],
            ignored_errors: section
                .is_some_and(|job| job.errors.ignores_any())
                .then_some(IgnoredErrorCounts {
                    count: load.ignored_error_count,
                    first_errno: load.first_ignored_errno,
                }),
            latency_depth: match section.is_some_and(|job| job.latency.target_us > 0) {
                true => load.in_flight_max as u32,
                false => load.queue_depth,
            },
            latency_percentile: section.map_or(100.0, |job| job.latency.percentile),
            latency_target_us: section.map_or(0, |job| job.latency.target_us),
            latency_window_us: section.map_or(0, |job| job.latency.window_us),
            percentiles: section.map_or_else(PercentileOptions::default, |job| {
                PercentileOptions::from_report_options(&job.report)
            }),
            ..JobResult::default()
        };
        Some(row)
    };
    repetition.workers.iter().filter_map(of_worker).collect()
}

/// Lists the program's options as a job file would give them.
fn list_job_options(result: &ProgramResult, load: &LoadMeasure) -> Vec<(String, String)> {
    let value = |name: &str| result.parameters.get(name).cloned();
    let random = result.program == "random";
    let rw = match (load.read.is_empty(), load.write.is_empty(), random) {
        (_, true, true) => "randread",
        (_, true, false) => "read",
        (true, false, true) => "randwrite",
        (true, false, false) => "write",
        (false, false, true) => "randrw",
        (false, false, false) => "rw",
    };
    let options = [
        ("rw", Some(rw.to_owned())),
        ("bs", value("block_bytes")),
        ("iodepth", Some(load.queue_depth.to_string())),
        ("numjobs", value("workers")),
        ("size", value("area_bytes")),
        ("io_size", Some(result.size_bytes.to_string())),
        (
            "direct",
            value("direct").map(|direct| u8::from(direct == "yes").to_string()),
        ),
    ];
    let said = options.into_iter();
    said.filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Summarizes one direction, read or write. `in_point` gives its requests and bytes in an interval
/// of the series.
fn build_direction(
    operation_measure: &OperationMeasure,
    load: &LoadMeasure,
    runtime_ms: u64,
    in_point: impl Fn(&SeriesPoint) -> (u64, u64) + Clone,
) -> DirectionResult {
    if operation_measure.is_empty() {
        return DirectionResult::default();
    }
    // The last interval may be shorter than the others.
    let whole = load.time_series.len().saturating_sub(1).max(1);
    let points = load.time_series.iter().take(whole).map(in_point);
    let seconds = load.series_interval.seconds();
    let per_second = |count: u64| match seconds > 0.0 {
        true => (count as f64 / seconds).round() as u64,
        false => 0,
    };
    // A job that verifies reads back when it has written.
    let runtime_ms = match operation_measure.elapsed_span.0 {
        0 => runtime_ms,
        span_ns => span_ns.div_ceil(1_000_000),
    };
    DirectionResult {
        bytes: operation_measure.bytes,
        ios: operation_measure.request_count(),
        io_time_ms: runtime_ms,
        submission: build_latency(&operation_measure.submit_call_times),
        completion: build_latency(&operation_measure.completion_times),
        total: build_latency(&operation_measure.response_times),
        bandwidth_samples_kib_per_s: points
            .clone()
            .map(|(_, bytes)| per_second(bytes / KIB))
            .collect(),
        iops_samples: points.map(|(count, _)| per_second(count)).collect(),
        ..DirectionResult::default()
    }
}

fn build_latency(histogram: &Histogram) -> LatencyDistribution {
    let mut latency = LatencyDistribution::from_counts(histogram.buckets().to_vec());
    if histogram.latency_count() > 0 {
        latency.min_ns = histogram.latency_min().0;
        latency.max_ns = histogram.latency_max().0;
        latency.mean_ns = histogram.mean_ns();
    }
    latency
}

fn build_processor_usage(worker: &WorkerMeasure) -> CpuUsage {
    let elapsed_ns = worker.elapsed_time.0.max(1) as f64;
    // The kernel splits by ticks, of which a short run has none.
    let split_ns = (worker.user_cpu_time + worker.system_cpu_time).0;
    let user_share = match split_ns {
        0 => 0.0,
        all => worker.user_cpu_time.0 as f64 / all as f64,
    };
    let percent = 100.0 * worker.cpu_time.0 as f64 / elapsed_ns;
    CpuUsage {
        user_percent: percent * user_share,
        system_percent: percent * (1.0 - user_share),
        context_switches: worker.voluntary_switch_count + worker.involuntary_switch_count,
        major_faults: worker.major_fault_count,
        minor_faults: worker.minor_fault_count,
    }
}

/// Adds the disks that a repetition used, each once, with the utilisation of the first job that
/// used it.
fn add_disk_utilisation(repetition: &Repetition, disks: &mut Vec<DiskUtilisation>) {
    let elapsed_ms = (repetition.elapsed_time().0 / 1_000_000).max(1) as f64;
    for device in &repetition.devices {
        if disks.iter().any(|disk| disk.name == device.device_name) {
            continue;
        }
        let requests = &device.request_counters;
        disks.push(DiskUtilisation {
            name: device.device_name.clone(),
            reads: requests.read_count,
            writes: requests.write_count,
            read_merges: requests.read_merge_count,
            write_merges: requests.write_merge_count,
            read_ticks_ms: requests.read_ms,
            write_ticks_ms: requests.write_ms,
            in_queue_ms: requests.queue_ms,
            busy_percent: (100.0 * device.busy_ms as f64 / elapsed_ms).min(100.0),
        });
    }
}

/// Formats a time as ctime(3) does, in UTC: `Mon Nov 23 16:39:34 2026`.
fn format_ctime(unix_ms: u64) -> String {
    const DAY_NAMES: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTH_NAMES: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let utc = format_utc(unix_ms);
    let day = DAY_NAMES[(unix_ms / 86_400_000 % 7) as usize];
    let part = |range: std::ops::Range<usize>| utc.get(range).unwrap_or_default();
    let month = part(5..7).parse::<usize>().ok();
    match month.and_then(|month| MONTH_NAMES.get(month.wrapping_sub(1))) {
        Some(month) => format!(
            "{day} {month} {:>2} {} {}",
            part(8..10).trim_start_matches('0'),
            part(11..19),
            part(0..4)
        ),
        None => utc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::load::build_today26_run;
    use serde_json::Value;

    fn printed(format: JsonFormat) -> Value {
        let run = build_today26_run("aaaaaaaaaa", "/mnt", 1.0);
        let text = render_fio_json(&[run], format).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn moments_are_those_of_ctime() {
        // The one of the facts' example, and a day of one digit.
        assert_eq!(format_ctime(1_795_451_974_000), "Mon Nov 23 16:39:34 2026");
        assert_eq!(format_ctime(0), "Thu Jan  1 00:00:00 1970");
    }

    /// What fio-plot, fio_jsonplus_clat2csv and scripts of test machines read.
    #[test]
    fn the_paths_that_others_read_are_there() {
        let root = printed(JsonFormat::JsonPlus);
        for path in ["/fio version", "/timestamp", "/time"] {
            assert!(root.pointer(path).is_some(), "{path}");
        }
        let job = |number: usize, path: &str| {
            let path = format!("/jobs/{number}/{path}");
            root.pointer(&path)
                .unwrap_or_else(|| panic!("{path}"))
                .clone()
        };
        for path in [
            "jobname",
            "groupid",
            "job options/rw",
            "job options/iodepth",
            "job options/numjobs",
            "job options/bs",
            "read/iops",
            "read/bw",
            "read/bw_bytes",
            "read/iops_stddev",
            "read/lat_ns/mean",
            "read/lat_ns/stddev",
            "read/clat_ns/percentile/99.000000",
            "read/clat_ns/bins",
            "latency_us/250",
            "usr_cpu",
            "sys_cpu",
            "iodepth_level/1",
        ] {
            job(1, path);
        }
        assert_eq!(job(1, "job options/rw"), "randread");
        assert_eq!(job(2, "job options/iodepth"), "32");
        assert_eq!(job(3, "job options/rw"), "randrw");
    }

    #[test]
    fn figures_agree_with_each_other() {
        let root = printed(JsonFormat::Json);
        for job in root["jobs"].as_array().unwrap() {
            for direction in ["read", "write"] {
                let of = &job[direction];
                let number = |path: &str| of.pointer(path).unwrap().as_f64().unwrap();
                let bw_bytes = number("/bw_bytes");
                assert!(number("/bw") * 1024.0 <= bw_bytes);
                assert!(bw_bytes < (number("/bw") + 1.0) * 1024.0);
                let ios = number("/iops") * number("/runtime") / 1000.0;
                assert!((ios - number("/total_ios")).abs() < 0.01, "{ios}");
                if number("/total_ios") > 0.0 {
                    let parts = number("/slat_ns/mean") + number("/clat_ns/mean");
                    assert!((parts - number("/lat_ns/mean")).abs() < 2.0, "{parts}");
                }
            }
        }
    }

    /// A submission that takes long moves no other request's time to complete.
    #[test]
    fn times_to_complete_are_those_of_each_request() {
        let mut run = build_today26_run("aaaaaaaaaa", "/mnt", 1.0);
        let results = run.results.iter_mut();
        let repetitions = results.flat_map(|result| &mut result.repetitions);
        let workers = repetitions.flat_map(|one| &mut one.workers);
        for load in workers.filter_map(|worker| worker.load_measure.as_mut()) {
            load.write = OperationMeasure {
                bytes: 4096 * 1000,
                response_times: vec![(6_700, 998), (50_000_000, 2)].into(),
                submit_call_times: vec![(6_100, 998), (49_999_000, 2)].into(),
                completion_times: vec![(600, 998), (1_000, 2)].into(),
                ..OperationMeasure::default()
            };
        }
        let text = render_fio_json(&[run], JsonFormat::JsonPlus).unwrap();
        let root: Value = serde_json::from_str(&text).unwrap();
        for job in root["jobs"].as_array().unwrap() {
            let of = &job["write"]["clat_ns"];
            assert_eq!(of["max"], 1_000, "{of}");
            // The middle of fio's bin.
            let p50 = of["percentile"]["50.000000"].as_u64().unwrap();
            assert!((590..=610).contains(&p50), "{of}");
        }
    }

    #[test]
    fn programs_without_requests_have_no_fio_form() {
        let run = crate::fixtures::build_run("aaaaaaaaaa", "ffs83", "/mnt", Vec::new());
        let refused = render_fio_json(&[run], JsonFormat::Json).unwrap_err();
        assert!(refused.to_string().contains("run aaaaaaaaaa"), "{refused}");
        // What is done to names is timed in the same way, and is nothing of fio's.
        let mut run = build_today26_run("bbbbbbbbbb", "/mnt", 1.0);
        let results = run.results.iter_mut();
        let repetitions = results.flat_map(|result| &mut result.repetitions);
        let workers = repetitions.flat_map(|one| &mut one.workers);
        for load in workers.filter_map(|worker| worker.load_measure.as_mut()) {
            load.stat = std::mem::take(&mut load.read);
            load.create = std::mem::take(&mut load.write);
        }
        assert!(render_fio_json(&[run], JsonFormat::Json).is_err());
    }
}
