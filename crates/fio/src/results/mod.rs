//! fio's JSON and JSON+ output from plain counts, for existing plots and scripts.
//!
//! Names, nesting, order, units and types are those of fio 3.33, down to the blank before a colon.
//! Three things differ. An option without a value is printed as "" (fio 3.33 leaves it out, newer
//! versions do not). `job options` always contains `rw`, `bs`, `iodepth` and `numjobs`, which
//! fio-plot requires there; they come from the global sections or from fio's defaults. Values that
//! were not counted are 0.

mod distribution;
pub mod histogram;
mod json;
mod rows;

use crate::job::PerDirection;

/// JSON output format of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFormat {
    /// JSON without latency bins (`--output-format=json`).
    Json,
    /// JSON with all latency bins (`--output-format=json+`).
    JsonPlus,
}

/// Latency distribution of one kind (submission, completion, total or sync).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencyDistribution {
    /// Latency values in ns, each with its number of occurrences.
    pub counts: Vec<(u64, u64)>,
    /// Minimum latency, in ns.
    pub min_ns: u64,
    /// Maximum latency, in ns. It may exceed all values of the histogram bins.
    pub max_ns: u64,
    /// Mean latency, in ns.
    pub mean_ns: f64,
    /// Sample standard deviation of latency, in ns.
    pub deviation_ns: f64,
}

impl LatencyDistribution {
    /// Creates a distribution from latency values and their numbers of occurrences. If the values
    /// are middles of bins, the caller may afterwards set the exact extremes.
    pub fn from_counts(counts: Vec<(u64, u64)>) -> LatencyDistribution {
        let seen = || counts.iter().filter(|(_, count)| *count > 0);
        let count: u64 = seen().map(|(_, count)| count).sum();
        let sum: f64 = seen()
            .map(|&(value, count)| value as f64 * count as f64)
            .sum();
        let mean_ns = if count == 0 { 0.0 } else { sum / count as f64 };
        let square = |&(value, count): &(u64, u64)| (value as f64 - mean_ns).powi(2) * count as f64;
        let squares: f64 = seen().map(square).sum();
        LatencyDistribution {
            min_ns: seen().map(|(value, _)| *value).min().unwrap_or(0),
            max_ns: seen().map(|(value, _)| *value).max().unwrap_or(0),
            mean_ns,
            deviation_ns: match count {
                0 | 1 => 0.0,
                count => (squares / (count - 1) as f64).sqrt(),
            },
            counts,
        }
    }

    /// Returns the number of latency values.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    fn merge(&mut self, other: LatencyDistribution) {
        let mut counts = std::mem::take(&mut self.counts);
        counts.extend(other.counts);
        let (low, high) = (self.min_ns.min(other.min_ns), self.max_ns.max(other.max_ns));
        *self = LatencyDistribution::from_counts(counts);
        (self.min_ns, self.max_ns) = (low, high.max(self.max_ns));
    }
}

/// Results of a job for one direction: read, write or trim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionResult {
    /// Total bytes read, written or trimmed.
    pub bytes: u64,
    /// Number of I/Os in this direction.
    pub ios: u64,
    /// Number of I/Os that transferred less than requested.
    pub short_ios: u64,
    /// Number of I/Os that fio dropped.
    pub dropped_ios: u64,
    /// Time from the first to the last I/O, in whole ms.
    pub io_time_ms: u64,
    /// Submission latency: from the start of an I/O to its submission. Empty for a synchronous
    /// engine.
    pub submission: LatencyDistribution,
    /// Completion latency: from submission to completion.
    pub completion: LatencyDistribution,
    /// Total latency: submission plus completion.
    pub total: LatencyDistribution,
    /// Throughput of each interval in KiB/s; fio's intervals are 500 ms.
    pub bandwidth_samples_kib_per_s: Vec<u64>,
    /// I/Os per second of each interval.
    pub iops_samples: Vec<u64>,
}

/// CPU time, context switches and page faults of a job. Percentages refer to the run time of all
/// clones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuUsage {
    /// User CPU time, in percent (`usr_cpu`).
    pub user_percent: f64,
    /// System CPU time, in percent (`sys_cpu`).
    pub system_percent: f64,
    /// Number of context switches (`ctx`).
    pub context_switches: u64,
    /// Number of page faults that required I/O (`majf`).
    pub major_faults: u64,
    /// Number of page faults without I/O (`minf`).
    pub minor_faults: u64,
}

/// Result of steady-state detection (`steadystate`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyResult {
    /// Requested criterion, such as `iops:10.000000%`.
    pub requested_criterion: String,
    /// Window of the steady-state test in s (`ss_dur`).
    pub window_s: u64,
    /// Whether the job reached a steady state.
    pub is_attained: bool,
    /// Final value that was compared with the limit, in percent or absolute.
    pub final_value: f64,
    /// Whether `criterion` is in percent of the mean.
    pub is_value_percent: bool,
    /// Largest deviation of a sample from the mean.
    pub deviation_max: f64,
    /// Slope of the regression line, per sample.
    pub slope: f64,
    /// I/Os per second of each sample in the window.
    pub iops: Vec<u64>,
    /// Throughput of each sample in the window, in bytes/s.
    pub bytes_per_s: Vec<u64>,
}

/// Percentiles in the output, and the latencies that they apply to.
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileOptions {
    /// Percentiles to print, in percent and ascending order.
    pub percents: Vec<f64>,
    /// Whether the output has percentiles of submission latency (`slat_percentiles`).
    pub reports_submission: bool,
    /// Whether the output has percentiles of completion latency (`clat_percentiles`).
    pub reports_completion: bool,
    /// Whether the output has percentiles of total latency (`lat_percentiles`).
    pub reports_total: bool,
}

impl Default for PercentileOptions {
    fn default() -> PercentileOptions {
        let report = crate::job::ReportOptions::default();
        PercentileOptions::from_report_options(&report)
    }
}

impl PercentileOptions {
    /// Returns the percentiles that a job requests.
    pub fn from_report_options(report: &crate::job::ReportOptions) -> PercentileOptions {
        PercentileOptions {
            percents: report.percentiles.to_vec(),
            reports_submission: report.reports_submission,
            reports_completion: report.reports_completion,
            reports_total: report.reports_total,
        }
    }
}

/// Element of `jobs[]`: results of one clone, or of a group with `group_reporting`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobResult {
    /// Name of the job (`jobname`).
    pub name: String,
    /// Description of the job (`description`).
    pub description: Option<String>,
    /// Index of the reporting group (`groupid`).
    pub group: u32,
    /// Error number of the job (`error`), or 0.
    pub error: u32,
    /// Elapsed time from start to end, including ramp time and start delay, in s, rounded up.
    pub elapsed_s: u64,
    /// Options as written in the job's section; see [`crate::JobDefinition::options_as_written`].
    pub options_as_written: Vec<(String, String)>,
    /// Results for each direction.
    pub directions: PerDirection<DirectionResult>,
    /// Combination of reads, writes and trims in the output (`unified_rw_reporting`).
    pub direction_reporting: crate::job::DirectionReporting,
    /// Latency of fsync and similar calls.
    pub sync_latency: LatencyDistribution,
    /// Sum of the run times of all clones, in ms (`job_runtime`).
    pub job_runtime_ms: u64,
    /// CPU use and page faults of the job.
    pub cpu_usage: CpuUsage,
    /// Queue depths at submission, each with its number of occurrences.
    pub depth_counts: Vec<(u32, u64)>,
    /// Sizes of submission batches, each with its number of occurrences.
    pub submit_batch_counts: Vec<(u32, u64)>,
    /// Numbers of completions reaped together, each with its number of occurrences.
    pub completion_batch_counts: Vec<(u32, u64)>,
    /// Ignored errors (`total_err` and `first_error`) of a job that continues after errors.
    pub ignored_errors: Option<IgnoredErrorCounts>,
    /// Queue depth that the latency-target search found (`latency_depth`); 0 means the job's
    /// `iodepth`.
    pub latency_depth: u32,
    /// Latency target in us (`latency_target`).
    pub latency_target_us: u64,
    /// Share of I/Os within the latency target, in percent (`latency_percentile`).
    pub latency_percentile: f64,
    /// Window for the latency target in us (`latency_window`).
    pub latency_window_us: u64,
    /// Percentiles in the output.
    pub percentiles: PercentileOptions,
    /// Steady-state result; `None` if the job did not request detection.
    pub steady_state: Option<SteadyResult>,
}

/// Errors that did not end a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredErrorCounts {
    /// Number of errors that did not end the job (`total_err`).
    pub count: u64,
    /// Error number of the first error (`first_error`), or 0.
    pub first_errno: u64,
}

impl JobResult {
    /// Merges another result of the same group into this one, as `group_reporting` does. The name
    /// of this result remains.
    pub fn merge(&mut self, other: JobResult) {
        let PerDirection { read, write, trim } = other.directions;
        self.directions.read.merge(read);
        self.directions.write.merge(write);
        self.directions.trim.merge(trim);
        if other.sync_latency.count() > 0 {
            self.sync_latency.merge(other.sync_latency);
        }
        if let (Some(ours), Some(theirs)) = (&mut self.ignored_errors, other.ignored_errors) {
            ours.first_errno = if ours.count == 0 {
                theirs.first_errno
            } else {
                ours.first_errno
            };
            ours.count += theirs.count;
        }
        self.error = if self.error == 0 {
            other.error
        } else {
            self.error
        };
        self.elapsed_s = self.elapsed_s.max(other.elapsed_s);
        let ours = self.job_runtime_ms as f64;
        let theirs = other.job_runtime_ms as f64;
        let share = |mine: f64, other: f64| match ours + theirs {
            all if all > 0.0 => (mine * ours + other * theirs) / all,
            _ => 0.0,
        };
        let (mine, its) = (&mut self.cpu_usage, other.cpu_usage);
        mine.user_percent = share(mine.user_percent, its.user_percent);
        mine.system_percent = share(mine.system_percent, its.system_percent);
        mine.context_switches += its.context_switches;
        mine.major_faults += its.major_faults;
        mine.minor_faults += its.minor_faults;
        self.job_runtime_ms += other.job_runtime_ms;
        self.depth_counts.extend(other.depth_counts);
        self.submit_batch_counts.extend(other.submit_batch_counts);
        self.completion_batch_counts
            .extend(other.completion_batch_counts);
    }
}

impl DirectionResult {
    fn merge(&mut self, other: DirectionResult) {
        self.bytes += other.bytes;
        self.ios += other.ios;
        self.short_ios += other.short_ios;
        self.dropped_ios += other.dropped_ios;
        self.io_time_ms = self.io_time_ms.max(other.io_time_ms);
        let pairs = [
            (&mut self.submission, other.submission),
            (&mut self.completion, other.completion),
            (&mut self.total, other.total),
        ];
        for (mine, its) in pairs {
            if mine.count() == 0 {
                *mine = its;
            } else if its.count() > 0 {
                mine.merge(its);
            }
        }
        self.bandwidth_samples_kib_per_s
            .extend(other.bandwidth_samples_kib_per_s);
        self.iops_samples.extend(other.iops_samples);
    }
}

/// Element of `disk_util[]`: utilization of one block device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUtilisation {
    /// Name of the block device.
    pub name: String,
    /// Number of reads that the block device completed.
    pub reads: u64,
    /// Number of writes that the block device completed.
    pub writes: u64,
    /// Number of reads merged into other requests.
    pub read_merges: u64,
    /// Number of writes merged into other requests.
    pub write_merges: u64,
    /// Total time of the block device's reads, in ms.
    pub read_ticks_ms: u64,
    /// Total time of the block device's writes, in ms.
    pub write_ticks_ms: u64,
    /// Time weighted by the number of requests in flight, in ms.
    pub in_queue_ms: u64,
    /// Share of time in which the device was busy, in percent.
    pub busy_percent: f64,
}

/// Complete output of `--output-format=json`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FioResults {
    /// Program that wrote the output (`fio version`), such as `diskperf-0.1.0`.
    pub version: String,
    /// End of the run, in ms since 1970.
    pub timestamp_ms: u64,
    /// End of the run as text in ctime format: `Mon Nov 23 16:39:34 2026`.
    pub time_text: String,
    /// Options of the global sections; see [`crate::JobFile::global_options`].
    pub global_options: Vec<(String, String)>,
    /// Job results in the order of the job file.
    pub jobs: Vec<JobResult>,
    /// Utilization of the disks under the files; omitted from the output if empty.
    pub disks: Vec<DiskUtilisation>,
}

impl FioResults {
    /// Formats the results as fio's JSON text, with a final newline.
    pub fn render(&self, format: JsonFormat) -> String {
        let mut text = json::to_text(&rows::results_row(self, format));
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests;
