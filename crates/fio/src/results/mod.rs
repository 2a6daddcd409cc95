//! fio's JSON and JSON+ from plain counts: for the plots and scripts that read them.
//!
//! Names, nesting, order, units and types are those of fio 3.33, down to the blank before
//! a colon. Three things differ. An option that was given bare is printed as "" (3.33
//! leaves it out, newer ones do not). `job options` always has `rw`, `bs`, `iodepth` and
//! `numjobs`, which fio-plot wants there: from the globals, or fio's defaults. And what
//! nobody counted is 0.

mod distribution;
pub mod histogram;
mod json;
mod rows;

use crate::job::PerDirection;

/// Which of fio's two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `--output-format=json`.
    Json,
    /// `--output-format=json+`: with the bins of all latencies.
    JsonPlus,
}

/// The latencies of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Values in ns, and how often each was seen.
    pub counts: Vec<(u64, u64)>,
    /// The smallest, in ns.
    pub min_ns: u64,
    /// The largest, in ns: beyond what the bins hold, if it was.
    pub max_ns: u64,
    /// In ns.
    pub mean_ns: f64,
    /// The standard deviation of the sample, in ns.
    pub deviation_ns: f64,
}

impl Latency {
    /// Of values and how often each was seen. Where the values are themselves middles of
    /// bins, what was kept of the extremes may be set afterwards.
    pub fn of(counts: Vec<(u64, u64)>) -> Latency {
        let seen = || counts.iter().filter(|(_, count)| *count > 0);
        let count: u64 = seen().map(|(_, count)| count).sum();
        let sum: f64 = seen()
            .map(|&(value, count)| value as f64 * count as f64)
            .sum();
        let mean_ns = if count == 0 { 0.0 } else { sum / count as f64 };
        let square = |&(value, count): &(u64, u64)| (value as f64 - mean_ns).powi(2) * count as f64;
        let squares: f64 = seen().map(square).sum();
        Latency {
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

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    fn absorb(&mut self, other: Latency) {
        let mut counts = std::mem::take(&mut self.counts);
        counts.extend(other.counts);
        let (low, high) = (self.min_ns.min(other.min_ns), self.max_ns.max(other.max_ns));
        *self = Latency::of(counts);
        (self.min_ns, self.max_ns) = (low, high.max(self.max_ns));
    }
}

/// What was done in one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionResult {
    /// Bytes read, written or trimmed.
    pub bytes: u64,
    /// I/Os.
    pub ios: u64,
    /// I/Os that moved less than they should.
    pub short_ios: u64,
    /// I/Os that were given up.
    pub dropped_ios: u64,
    /// From the first to the last, in whole ms.
    pub runtime_ms: u64,
    /// From the start of an I/O to its submission: empty for a synchronous engine.
    pub submission: Latency,
    /// From submission to completion.
    pub completion: Latency,
    /// Both together.
    pub total: Latency,
    /// Bandwidth of each interval (fio's are 500 ms), in KiB/s.
    pub bandwidth_samples_kib_per_s: Vec<u64>,
    /// I/Os per second of each interval.
    pub iops_samples: Vec<u64>,
}

/// Seconds are a share of the runtime of all clones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Processor {
    /// `usr_cpu`, in percent.
    pub user_percent: f64,
    /// `sys_cpu`, in percent.
    pub system_percent: f64,
    /// `ctx`: context switches.
    pub context_switches: u64,
    /// `majf`: page faults that did I/O.
    pub major_faults: u64,
    /// `minf`: others.
    pub minor_faults: u64,
}

/// What `steadystate` came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyResult {
    /// As it was asked for: `iops:10.000000%`.
    pub asked: String,
    /// `ss_dur`, in s.
    pub window_s: u64,
    /// Whether it was steady.
    pub is_attained: bool,
    /// What it was judged by, and in percent or not.
    pub criterion: f64,
    /// Whether `criterion` is in percent of the mean.
    pub criterion_is_percent: bool,
    /// The largest distance from the mean.
    pub max_deviation: f64,
    /// Of the best line, per sample.
    pub slope: f64,
    /// Of each sample of the window.
    pub iops: Vec<u64>,
    /// Of each sample, in bytes/s.
    pub bytes_per_s: Vec<u64>,
}

/// Which percentiles are printed, and of what.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// In percent, ascending.
    pub list: Vec<f64>,
    /// `slat_percentiles`.
    pub of_submission: bool,
    /// `clat_percentiles`.
    pub of_completion: bool,
    /// `lat_percentiles`.
    pub of_total: bool,
}

impl Default for Percentiles {
    fn default() -> Percentiles {
        let report = crate::job::Report::default();
        Percentiles::of(&report)
    }
}

impl Percentiles {
    /// What a job asks for.
    pub fn of(report: &crate::job::Report) -> Percentiles {
        Percentiles {
            list: report.percentiles.to_vec(),
            of_submission: report.of_submission,
            of_completion: report.of_completion,
            of_total: report.of_both,
        }
    }
}

/// One row of `jobs[]`: a clone, or with `group_reporting` a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobResult {
    /// `jobname`.
    pub name: String,
    /// `description`.
    pub description: Option<String>,
    /// `groupid`.
    pub group: u32,
    /// `error`: an errno, or 0.
    pub error: u32,
    /// From start to end with ramp and delay, in s, rounded up.
    pub elapsed_s: u64,
    /// [`crate::Job::options_as_written`].
    pub options_as_written: Vec<(String, String)>,
    /// What was done.
    pub directions: PerDirection<DirectionResult>,
    /// `unified_rw_reporting`.
    pub unified: crate::job::Unified,
    /// Latencies of fsync and the like.
    pub sync: Latency,
    /// `job_runtime`: of all clones together, in ms.
    pub job_runtime_ms: u64,
    /// What the processor did.
    pub processor: Processor,
    /// I/Os under way when one was submitted, and how often.
    pub depths: Vec<(u32, u64)>,
    /// I/Os submitted at once, and how often.
    pub submitted: Vec<(u32, u64)>,
    /// Completions taken at once, and how often.
    pub completed: Vec<(u32, u64)>,
    /// `total_err` and `first_error`, of a job that passes errors over.
    pub passed_over: Option<PassedOver>,
    /// `latency_depth`: what the search for a depth came to; 0 is `iodepth` of the job.
    pub latency_depth: u32,
    /// `latency_target`, in us.
    pub latency_target_us: u64,
    /// `latency_percentile`.
    pub latency_percentile: f64,
    /// `latency_window`, in us.
    pub latency_window_us: u64,
    /// Which percentiles.
    pub percentiles: Percentiles,
    /// If the job asked for it.
    pub steady: Option<SteadyResult>,
}

/// Errors that did not end a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// `total_err`.
    pub count: u64,
    /// `first_error`: an errno, or 0.
    pub first: u64,
}

impl JobResult {
    /// Makes one row of two of a group, as `group_reporting` does: under this one's name.
    pub fn absorb(&mut self, other: JobResult) {
        let PerDirection { read, write, trim } = other.directions;
        self.directions.read.absorb(read);
        self.directions.write.absorb(write);
        self.directions.trim.absorb(trim);
        if other.sync.count() > 0 {
            self.sync.absorb(other.sync);
        }
        if let (Some(ours), Some(theirs)) = (&mut self.passed_over, other.passed_over) {
            ours.first = if ours.count == 0 {
                theirs.first
            } else {
                ours.first
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
        let (mine, its) = (&mut self.processor, other.processor);
        mine.user_percent = share(mine.user_percent, its.user_percent);
        mine.system_percent = share(mine.system_percent, its.system_percent);
        mine.context_switches += its.context_switches;
        mine.major_faults += its.major_faults;
        mine.minor_faults += its.minor_faults;
        self.job_runtime_ms += other.job_runtime_ms;
        self.depths.extend(other.depths);
        self.submitted.extend(other.submitted);
        self.completed.extend(other.completed);
    }
}

impl DirectionResult {
    fn absorb(&mut self, other: DirectionResult) {
        self.bytes += other.bytes;
        self.ios += other.ios;
        self.short_ios += other.short_ios;
        self.dropped_ios += other.dropped_ios;
        self.runtime_ms = self.runtime_ms.max(other.runtime_ms);
        let pairs = [
            (&mut self.submission, other.submission),
            (&mut self.completion, other.completion),
            (&mut self.total, other.total),
        ];
        for (mine, its) in pairs {
            if mine.count() == 0 {
                *mine = its;
            } else if its.count() > 0 {
                mine.absorb(its);
            }
        }
        self.bandwidth_samples_kib_per_s
            .extend(other.bandwidth_samples_kib_per_s);
        self.iops_samples.extend(other.iops_samples);
    }
}

/// A row of `disk_util[]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskUtilisation {
    /// Of the device.
    pub name: String,
    /// Requests, merged ones, and ms.
    pub reads: u64,
    /// Requests.
    pub writes: u64,
    /// Reads that became part of others.
    pub read_merges: u64,
    /// Writes that did.
    pub write_merges: u64,
    /// In ms.
    pub read_ticks_ms: u64,
    /// In ms.
    pub write_ticks_ms: u64,
    /// In ms.
    pub in_queue_ms: u64,
    /// How long it was busy.
    pub busy_percent: f64,
}

/// All that `--output-format=json` prints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// `fio version`: say who wrote it, for instance `diskperf-0.1.0`.
    pub version: String,
    /// When it ended, in ms since 1970.
    pub timestamp_ms: u64,
    /// The same as ctime has it: `Mon Nov 23 16:39:34 2026`.
    pub time: String,
    /// [`crate::JobFile::global_options`].
    pub global_options: Vec<(String, String)>,
    /// In the order of the file.
    pub jobs: Vec<JobResult>,
    /// Of the disks below; left out if there are none.
    pub disks: Vec<DiskUtilisation>,
}

impl Results {
    /// fio's text of it, with a line's end.
    pub fn render(&self, format: Format) -> String {
        let mut text = json::text(&rows::root(self, format));
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests;
