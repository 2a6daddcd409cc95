//! I/O log that a fio job repeats instead of drawing I/Os: an iolog of fio or a trace of blktrace
//! (`read_iolog`).

use super::FioJob;
use super::stream::FileExtent;
use crate::program::{Program, greatest_common_divisor};
use diskperf_blocktrace::{Form, TraceReader, TracedOperation as Logged};
use diskperf_fio::job::{BlockSizes, ReadWriteMode, SkippedKinds};
use diskperf_fio::offsets::FileRegion;
use diskperf_fio::plan::{FileSize, PlannedFile};
use diskperf_fio::{Errors, JobDefinition, PerDirection, Problem};
use diskperf_system::IoOperation;
use diskperf_timeline::Nanoseconds;
use std::collections::BTreeMap;
use std::sync::Arc;

/// I/Os that a job repeats from a log, in the order of issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoLog {
    /// File names as the log gives them.
    file_paths: Vec<String>,
    logged_ios: Vec<LogIo>,
    /// Trims of the log that are left out.
    trim_count: u64,
    /// I/Os of the log that `replay_skip` leaves out.
    skipped_count: u64,
    /// Whether the log is a trace of blktrace instead of an iolog.
    is_blktrace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogIo {
    /// Time of issue, from the start of the job.
    issue_time: Nanoseconds,
    operation: IoOperation,
    file_index: usize,
    offset_bytes: u64,
    bytes: u32,
}

/// Maximum number of I/Os of a log. All of them are held in memory.
const LOGGED_IOS_MAX: usize = 1 << 24;

/// Latest time of an I/O, in nanoseconds from the start: 36 years. A 64-bit clock can hold the sum
/// of this and the start time of a run.
const ISSUE_TIME_NS_MAX: u64 = 1 << 60;
const NS_PER_YEAR: f64 = 365.25 * 86_400e9;

const IO_BYTES_MAX: u64 = 1 << 30;

impl IoLog {
    /// Reads the I/O log that a job repeats and applies the job's replay options.
    ///
    /// # Errors
    ///
    /// Returns a message that says why the log cannot be read or repeated.
    pub fn read_log(job: &JobDefinition, mut reader: TraceReader) -> Result<Self, String> {
        let form = reader.form();
        let is_of_blktrace = match form {
            Form::FioIolog2 | Form::FioIolog3 => false,
            Form::Blktrace => true,
            _ => {
                return Err(format!(
                    "it has the format {form} and is neither an iolog of fio nor a trace of \
                     blktrace: use `diskperf replay`"
                ));
            }
        };
        let mut script = Self {
            is_blktrace: is_of_blktrace,
            ..Self::default()
        };
        let iolog = &job.iolog;
        while let Some(record) = reader.next() {
            let record = record.map_err(|error| error.to_string())?;
            let at_ns = record
                .issued_ns
                .saturating_add(reader.first_issue_ns().unwrap_or(0));
            let operation = match record.operation {
                Logged::Read => IoOperation::Read,
                Logged::Write => IoOperation::Write,
                Logged::Flush => IoOperation::Fsync,
                Logged::Discard if is_of_blktrace => IoOperation::DiscardRange,
                Logged::Discard | Logged::WriteZeroes => {
                    script.trim_count += 1;
                    continue;
                }
            };
            if is_of_blktrace && is_skipped(iolog.skipped_kinds, operation) {
                script.skipped_count += 1;
                continue;
            }
            if record.length_bytes > IO_BYTES_MAX {
                let bytes = record.length_bytes;
                return Err(format!(
                    "an I/O of {bytes} bytes exceeds the maximum of one call"
                ));
            }
            if script.logged_ios.len() == LOGGED_IOS_MAX {
                return Err(format!(
                    "it has more than {LOGGED_IOS_MAX} I/Os: use `diskperf replay`, which reads it \
                     during the run"
                ));
            }
            let offset_bytes = record.offset_bytes / iolog.offset_divisor;
            script.logged_ios.push(LogIo {
                issue_time: match iolog.is_unpaced {
                    true => Nanoseconds::ZERO,
                    false => scale_to_speed(at_ns, iolog.speed_percent)?,
                },
                operation,
                file_index: match iolog.redirect_target {
                    Some(_) => 0,
                    None => record.device.0 as usize,
                },
                offset_bytes: offset_bytes - offset_bytes % iolog.align_bytes,
                bytes: record.length_bytes as u32,
            });
        }
        if script.logged_ios.is_empty() {
            return Err("it has no reads, writes or syncs".to_owned());
        }
        script.file_paths = match &iolog.redirect_target {
            Some(path) => vec![path.clone()],
            None => reader.devices().to_vec(),
        };
        Ok(script)
    }

    /// Removes the trims, for a kernel without discards.
    pub fn remove_trims(&mut self) {
        let before = self.logged_ios.len();
        self.logged_ios
            .retain(|io| io.operation != IoOperation::DiscardRange);
        self.trim_count += (before - self.logged_ios.len()) as u64;
    }

    /// Iterates over the reads, writes and syncs of the log.
    fn iter_data_ios(&self) -> impl Iterator<Item = &LogIo> {
        let moving = |io: &&LogIo| io.operation != IoOperation::DiscardRange;
        self.logged_ios.iter().filter(moving)
    }

    fn has_operation(&self, operation: IoOperation) -> bool {
        self.logged_ios.iter().any(|io| io.operation == operation)
    }

    /// Returns the number of bytes that the log reads and writes.
    pub(super) fn moved_bytes(&self) -> u64 {
        self.iter_data_ios().map(|io| u64::from(io.bytes)).sum()
    }

    /// Returns the greatest common divisor of all offsets and lengths of the log.
    pub(super) fn unit_bytes(&self) -> u64 {
        let of_io = |unit, io: &LogIo| {
            greatest_common_divisor(
                greatest_common_divisor(unit, io.offset_bytes),
                io.bytes.into(),
            )
        };
        self.logged_ios.iter().fold(0, of_io)
    }

    /// Returns the files of the log, each long enough for all of its I/O.
    fn plan_files(&self, existing: &BTreeMap<String, FileSize>) -> Vec<PlannedFile> {
        let mut ends = vec![1; self.file_paths.len()];
        for io in &self.logged_ios {
            let end = io.offset_bytes.saturating_add(io.bytes.into());
            ends[io.file_index] = end.max(ends[io.file_index]);
        }
        let planned = |(path, end): (&String, u64)| PlannedFile {
            path: path.clone(),
            region: FileRegion {
                offset_bytes: 0,
                length_bytes: end,
                file_bytes: existing_size_bytes(existing, path).unwrap_or(0).max(end),
            },
        };
        self.file_paths.iter().zip(ends).map(planned).collect()
    }

    /// Returns the job with the log's access mix and block size in place of the job's own options.
    fn apply_to_job(&self, job: &JobDefinition) -> JobDefinition {
        let mut applied = job.clone();
        let reads = self.has_operation(IoOperation::Read);
        let changes =
            self.has_operation(IoOperation::Write) || self.has_operation(IoOperation::DiscardRange);
        applied.pattern.access = match (reads, changes) {
            (true, true) => ReadWriteMode::Mixed,
            (true, false) => ReadWriteMode::Read,
            (false, _) => ReadWriteMode::Write,
        };
        let largest = self.iter_data_ios().map(|io| io.bytes).max().unwrap_or(0);
        applied.blocks = BlockSizes {
            fixed_bytes: PerDirection::uniform(u64::from(largest.max(512))),
            ..BlockSizes::default()
        };
        // fio repeats it once, whatever these say.
        applied.target.loops = 1;
        applied.durations.is_time_based = false;
        applied.files.is_appended = false;
        applied.files.is_overwritten = true;
        applied
    }

    /// Describes how the log is repeated, as notes for the report.
    pub(super) fn log_notes(&self, job: &JobDefinition) -> Vec<String> {
        let paced = match job.iolog.is_unpaced {
            true => "as fast as the queue depth allows".to_owned(),
            false => "at the log's times; latency counts from these, where fio counts from when it issued an I/O".to_owned(),
        };
        let said = format!(
            "{} I/Os of the log {paced}; rw, bs, size, loops and time_based have no effect",
            self.logged_ios.len()
        );
        let trims = (self.trim_count > 0).then(|| match self.is_blktrace {
            true => format!("left out: {} trims of the trace", self.trim_count),
            false => format!(
                "left out: {} trims of the log, as fio 3.33 leaves them out",
                self.trim_count
            ),
        });
        let skips = match (self.is_blktrace, job.iolog.skipped_kinds != SkippedKinds::default()) {
            (true, true) => Some(format!("replay_skip leaves out {} I/Os", self.skipped_count)),
            (false, true) => Some("replay_skip changes nothing: fio too obeys it for traces of blktrace, and not for an iolog".to_owned()),
            (_, false) => None,
        };
        let unwritten = job.iolog.written_path.as_ref().map(|_| {
            "write_iolog does not count: read_iolog overrides it, as in fio 3.33".to_owned()
        });
        let all = [Some(said), trims, skips, unwritten];
        all.into_iter().flatten().collect()
    }
}

/// Reports whether `replay_skip` leaves out an operation of a trace.
fn is_skipped(skips: SkippedKinds, operation: IoOperation) -> bool {
    match operation {
        IoOperation::Read => skips.reads,
        IoOperation::Write => skips.writes,
        IoOperation::DiscardRange => skips.trims,
        IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => skips.syncs,
    }
}

/// Converts a time of the log to the given speed in percent (`replay_time_scale`).
///
/// # Errors
///
/// Fails if no run reaches the resulting time.
fn scale_to_speed(at_ns: u64, percent: u32) -> Result<Nanoseconds, String> {
    let scaled = u128::from(at_ns) * 100 / u128::from(percent);
    let scaled = u64::try_from(scaled)
        .ok()
        .filter(|ns| *ns <= ISSUE_TIME_NS_MAX);
    let scaled = scaled.ok_or_else(|| {
        format!(
            "an I/O is {:.0} years after the start: correct its time, or give a larger replay_time_scale, or replay_no_stall=1",
            at_ns as f64 * 100.0 / f64::from(percent) / NS_PER_YEAR
        )
    });
    scaled.map(Nanoseconds)
}

/// Read position in a log that a job repeats.
#[derive(Clone, Debug)]
pub(super) struct LogCursor {
    io_log: Arc<IoLog>,
    next_index: usize,
    start_time: Nanoseconds,
    is_unpaced: bool,
}

/// Next step of a log that is repeated.
pub(super) enum LogStep {
    /// I/O that is due. `intended` is its time of issue, if the times of the log count.
    IssueIo {
        operation: IoOperation,
        extent: FileExtent,
        intended: Option<Nanoseconds>,
    },
    /// Wait until this time, before which no I/O of the log is due.
    WaitUntil(Nanoseconds),
    EndOfLog,
}

impl LogCursor {
    pub(super) fn new(script: &Arc<IoLog>, job: &JobDefinition, start: Nanoseconds) -> Self {
        Self {
            io_log: Arc::clone(script),
            next_index: 0,
            start_time: start,
            is_unpaced: job.iolog.is_unpaced,
        }
    }

    pub(super) fn next_step(&mut self, now: Nanoseconds) -> LogStep {
        let Some(io) = self.io_log.logged_ios.get(self.next_index) else {
            return LogStep::EndOfLog;
        };
        let due = self.start_time + io.issue_time;
        if !self.is_unpaced && now < due {
            return LogStep::WaitUntil(due);
        }
        self.next_index += 1;
        LogStep::IssueIo {
            operation: io.operation,
            extent: FileExtent {
                file_index: io.file_index,
                offset_bytes: io.offset_bytes,
                bytes: io.bytes,
            },
            intended: (!self.is_unpaced).then_some(due),
        }
    }
}

impl Program {
    /// Creates the program that does what fio does for a section that repeats an I/O log.
    /// `existing` is as for [`Self::from_fio_job`].
    ///
    /// # Errors
    ///
    /// As for [`Self::from_fio_job`], and if the target ends before the log's last offset.
    pub fn from_fio_log(
        job: &JobDefinition,
        script: IoLog,
        existing: &BTreeMap<String, FileSize>,
    ) -> Result<Self, Errors> {
        super::support::check_support(job)?;
        let applied = script.apply_to_job(job);
        super::support::check_support(&applied)?;
        let files = script.plan_files(existing);
        for file in &files {
            let room_bytes = existing_size_bytes(existing, &file.path);
            let end = file.region.length_bytes;
            if room_bytes.is_some_and(|room| room < end) {
                let title = "the log addresses bytes beyond the end of the target";
                let label = format!("{} is used to byte {end}", file.path);
                return Err(Errors::from(target_too_small_problem(job, title, &label)));
            }
        }
        let files = vec![files; job.order.clone_count as usize];
        Ok(FioJob::from_log(applied, files, script))
    }
}

fn existing_size_bytes(existing: &BTreeMap<String, FileSize>, path: &str) -> Option<u64> {
    existing.get(path).and_then(|size| size.fixed_bytes())
}

fn target_too_small_problem(job: &JobDefinition, title: &str, label: &str) -> Problem {
    let help = "give a larger target, or replay_scale=";
    job.option_error("read_iolog", title, label, help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_blocktrace::ReadOptions;
    use diskperf_fio::{JobEnvironment, JobFile};

    const LOG: &str = "fio version 3 iolog\n0 x add\n10 x open\n1000 x read 0 4096\n\
                       201000 x write 12288 8192\n301000 y sync 0 0\n401000 x trim 0 4096\n";

    /// A trace of 14 reads, 25 writes, 4 flushes and a discard.
    const TRACE: &[u8] = include_bytes!("../../../blocktrace/tests/data/all.blktrace.0");

    fn read(options: &str, log: &'static str) -> Result<IoLog, String> {
        read_bytes(options, log.as_bytes())
    }

    fn read_bytes(options: &str, log: &'static [u8]) -> Result<IoLog, String> {
        let text = format!("[x]\nread_iolog=log\n{}\n", options.replace(' ', "\n"));
        let parsed = JobFile::parse("x.fio", &text, &JobEnvironment::default());
        let job = parsed.unwrap_or_else(|errors| panic!("{errors}")).jobs[0].clone();
        let options = ReadOptions::default();
        let reader = TraceReader::open("log", Box::new(log), &options);
        IoLog::read_log(&job, reader.map_err(|error| error.to_string())?)
    }

    #[test]
    fn times_and_offsets_are_those_that_the_options_make_of_the_log() {
        for (options, moments_us, offsets) in [
            ("", [1_000, 201_000, 301_000], [0, 12_288, 0]),
            (
                "replay_time_scale=200",
                [500, 100_500, 150_500],
                [0, 12_288, 0],
            ),
            (
                "replay_time_scale=50",
                [2_000, 402_000, 602_000],
                [0, 12_288, 0],
            ),
            ("replay_no_stall=1 replay_scale=2", [0, 0, 0], [0, 6_144, 0]),
            (
                "replay_scale=2 replay_align=4k",
                [1_000, 201_000, 301_000],
                [0, 4_096, 0],
            ),
        ] {
            let script = read(options, LOG).unwrap();
            let moments: Vec<u64> = script
                .logged_ios
                .iter()
                .map(|io| io.issue_time.0 / 1000)
                .collect();
            assert_eq!(moments, moments_us, "{options}");
            let found: Vec<u64> = script.logged_ios.iter().map(|io| io.offset_bytes).collect();
            assert_eq!(found, offsets, "{options}");
            assert_eq!(
                (script.trim_count, &script.file_paths[..]),
                (1, &["x", "y"].map(str::to_owned)[..])
            );
        }
    }

    /// Reads, writes, syncs and trims: those of fio 3.33 with the same trace and options.
    #[test]
    fn a_trace_of_blktrace_is_repeated_without_what_is_skipped() {
        for (options, expected) in [
            ("", [14, 25, 4, 1]),
            ("replay_skip=write", [14, 0, 4, 1]),
            ("replay_skip=read,sync", [0, 25, 0, 1]),
            ("replay_skip=trim", [14, 25, 4, 0]),
            ("replay_redirect=/dev/x replay_scale=2", [14, 25, 4, 1]),
        ] {
            let mut script = read_bytes(options, TRACE).unwrap();
            let all = [
                IoOperation::Read,
                IoOperation::Write,
                IoOperation::Fsync,
                IoOperation::DiscardRange,
            ];
            let count = |script: &IoLog, operation| {
                let ios = script.logged_ios.iter();
                ios.filter(|io| io.operation == operation).count()
            };
            let found = all.map(|operation| count(&script, operation));
            assert_eq!(found, expected, "{options}");
            script.remove_trims();
            assert_eq!(count(&script, IoOperation::DiscardRange), 0);
            assert_eq!(script.trim_count, expected[3] as u64, "{options}");
        }
        // An iolog keeps all of its own.
        let script = read("replay_skip=write", LOG).unwrap();
        assert!(script.has_operation(IoOperation::Write));
    }

    #[test]
    fn what_is_no_log_of_fio_is_refused_with_what_it_is() {
        let csv = "128166400000000000,web,0,Write,8192,4096,1500\n\
                   128166400000010000,web,0,Read,0,512,1500\n";
        for (log, says) in [
            (csv, "use `diskperf replay`"),
            (
                "fio version 3 iolog\n0 x add\n",
                "no reads, writes or syncs",
            ),
            ("fio version 3 iolog\n0 x add\n5 x read 0\n", "log, line 3"),
        ] {
            let words = read("", log).unwrap_err();
            assert!(words.contains(says), "{words}");
        }
    }
}
