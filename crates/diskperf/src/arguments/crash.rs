//! The options of `diskperf crash`.

use super::serve::parse_speed;
use super::trace::parse_time_ns;
use super::{parse_bytes, parse_seed};
use clap::{Args, ValueEnum};
use diskperf_crash::{CutPolicy, Instants, LyingFlush};
use diskperf_laboratory::Setting;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct CrashArguments {
    /// Workload: a command for the shell, which runs in the file system (also $DISKPERF_MOUNT) and
    /// appends `durable NAME` to the file $DISKPERF_MARKS when something has to survive
    #[arg(value_name = "CMD", required_unless_present = "log")]
    pub(crate) workload: Option<String>,
    /// A drive of the catalogue (see `diskperf list drives`), a system that is one drive, or a file
    /// that describes such a system
    #[arg(long, value_name = "DRIVE|FILE.toml", required_unless_present_any = ["log", "directory"])]
    pub(crate) on: Option<String>,
    /// Test without root and without a drive: record what the workload does to the files of a
    /// directory, and check what POSIX lets a power cut leave of them
    #[arg(long, requires = "check", conflicts_with_all = ["log", "on", "fs", "export_log", "settings", "catalogue", "speed"])]
    pub(crate) directory: bool,
    /// Cut the power in this log of dm-log-writes instead of a workload
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workload", "on"])]
    pub(crate) log: Option<PathBuf>,
    /// Size of the device of --log, as 64M [default: what was written, rounded up to 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, requires = "log", allow_negative_numbers = true)]
    pub(crate) size: Option<u64>,
    /// File system on the drive: ext4, ext2, xfs or btrfs, as ext4:size=64M
    #[arg(long, value_name = "KIND[:KEY=VALUE,...]", default_value = "ext4")]
    pub(crate) fs: String,
    /// Check of a medium: a command for the shell, which runs in the recovered file system, finds
    /// the marks before the cut in the file $DISKPERF_DURABLE, and fails if something is lost
    /// [default: the file system's own checker alone]
    #[arg(long, value_name = "CMD")]
    pub(crate) check: Option<String>,
    /// Longest duration of a check, as 60s
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    pub(crate) check_timeout: Duration,
    /// Instants of the cuts: each (flush), marks (and after each mark), all (submissions,
    /// completions and marks), or a number [default: each, and with --directory marks]
    #[arg(long, value_name = "each|marks|all|N", value_parser = parse_instants, allow_negative_numbers = true)]
    pub(crate) cuts: Option<Instants>,
    /// Survivors of a cut among the writes that no flush covers: none, all, likely, torn,
    /// random:SEED, or each of these and a second random choice; or unreadable, all but a sector
    /// that was being written
    #[arg(long, value_name = "POLICY", default_value = "each", value_parser = parse_policy)]
    pub(crate) cut: CutPolicy,
    /// Let the drive ignore flushes, or the directory syncs: all of them or the first K of each N
    #[arg(long, value_name = "K/N", num_args = 0..=1, require_equals = true, default_missing_value = "1/1", value_parser = parse_lying, conflicts_with = "log")]
    pub(crate) lying_flush: Option<LyingFlush>,
    /// Let syncs of the directory fail with an error, all of them or the first K of each N: what
    /// they cover may be lost even if a later sync succeeds
    #[arg(long, value_name = "K/N", num_args = 0..=1, require_equals = true, default_missing_value = "1/1", value_parser = parse_lying, requires = "directory")]
    pub(crate) failing_sync: Option<LyingFlush>,
    /// Write the requests and marks to this file, as dm-log-writes does
    #[arg(long, value_name = "FILE")]
    pub(crate) export_log: Option<PathBuf>,
    /// Write the result to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Keep the recorded requests and the verdicts in this file until the test has ended: the same
    /// command goes on with a test that was interrupted or killed
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Media that are checked at the same time [default: four for each processor, and one with
    /// --directory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), allow_negative_numbers = true)]
    pub(crate) jobs: Option<u16>,
    /// Seconds of the drive in a second: 10 is ten times as fast as real time
    #[arg(long, value_name = "X", default_value = "1", value_parser = parse_speed, allow_negative_numbers = true)]
    pub(crate) speed: f64,
    /// Set a parameter of the drive: drive.KEY=VALUE
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = parse_seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: CrashFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Output format of a crash test.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CrashFormat {
    Table,
    Json,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    match parse_time_ns(text) {
        Some(ns) if ns > 0 => Ok(Duration::from_nanos(ns)),
        _ => Err(format!(
            "`{text}` is no time with a unit: write 60s, 5m or 500ms"
        )),
    }
}

fn parse_instants(text: &str) -> Result<Instants, String> {
    match (text, text.parse()) {
        ("each", _) => Ok(Instants::Each),
        ("marks", _) => Ok(Instants::Marks),
        ("all", _) => Ok(Instants::All),
        (_, Ok(count)) if count > 0 => Ok(Instants::Count(count)),
        _ => Err(format!(
            "`{text}` is no choice of instants: write each, marks, all, or a number from 1"
        )),
    }
}

fn parse_policy(text: &str) -> Result<CutPolicy, String> {
    match text {
        "none" => return Ok(CutPolicy::None),
        "all" => return Ok(CutPolicy::All),
        "likely" => return Ok(CutPolicy::Likely),
        "torn" => return Ok(CutPolicy::Torn),
        "unreadable" => return Ok(CutPolicy::Unreadable),
        "each" => return Ok(CutPolicy::Each),
        _ => {}
    }
    let seed = text.strip_prefix("random:");
    let seed = seed.and_then(|seed| seed.parse().ok());
    let random = seed.map(|seed| CutPolicy::Random { seed });
    random.ok_or_else(|| {
        format!(
            "`{text}` is no policy: write none, all, likely, torn, unreadable, each, or random:7 with a seed"
        )
    })
}

fn parse_lying(text: &str) -> Result<LyingFlush, String> {
    let parts = text.split_once('/');
    let numbers = parts.and_then(|(ignored, round)| {
        Some(LyingFlush {
            ignored: ignored.parse().ok()?,
            round: round.parse().ok()?,
        })
    });
    numbers
        .filter(|of| of.ignored > 0 && of.ignored <= of.round)
        .ok_or_else(|| {
            format!("`{text}` is no share of flushes or syncs: write 2/3 to ignore the first 2 of each 3")
        })
}
