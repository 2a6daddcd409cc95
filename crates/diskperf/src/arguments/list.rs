//! The arguments of `diskperf list`.

use super::OutputFormat;
use clap::{Args, ValueEnum};
use diskperf_laboratory::Setting;
use diskperf_laboratory::runs::RunSelection;
use diskperf_timeline::units::parse_point_in_time;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Args)]
pub(crate) struct ListArguments {
    /// What to list [default: suites and programs]
    #[arg(value_enum)]
    pub(crate) what: Option<ListSubject>,
    /// For `parameters`: a program, a suite or a modelled system [default: all programs]
    #[arg(value_name = "PROGRAM|SUITE|TARGET")]
    pub(crate) name: Option<String>,
    /// For `parameters`: apply this change to the modelled system
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    #[command(flatten)]
    pub(crate) selection: SelectionArguments,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

#[derive(Args)]
pub(crate) struct SelectionArguments {
    /// For `runs`: only runs of this suite or program
    #[arg(long, value_name = "WHAT")]
    pub(crate) suite: Option<String>,
    /// For `runs`: only runs on this target, by the name on their command line, alone or with other
    /// targets
    #[arg(long = "on", value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// For `runs`: only runs with this label
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// For `runs`: only runs since a date (2026-11-20, or 2026-11-20 14:00:00, UTC) or within a
    /// time (2h, 3days)
    #[arg(long, value_name = "WHEN", value_parser = parse_time)]
    pub(crate) since: Option<u64>,
    /// For `runs`: only the newest N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub(crate) limit: Option<u32>,
}

impl SelectionArguments {
    pub(crate) fn to_selection(&self) -> RunSelection {
        RunSelection {
            suite: self.suite.clone(),
            target: self.target.clone(),
            label: self.label.clone(),
            since_unix_ms: self.since,
            count_max: self.limit.map(|limit| limit as usize),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListSubject {
    /// Suites: sequences of programs with a measurement protocol
    Suites,
    /// I/O programs
    Programs,
    /// Stored runs, newest first
    Runs,
    /// Parameters of a program, of a suite's programs, or of a modelled system
    Parameters,
    /// Modelled systems, with their variants
    Systems,
    /// Modelled drives
    Drives,
    /// Modelled controllers
    Controllers,
    /// Modelled buses
    Buses,
    /// Modelled processors and memories
    Hosts,
    /// Modelled operating systems
    Kernels,
    /// Modelled drivers
    Drivers,
    /// Modelled file systems
    Filesystems,
    /// Documents with published numbers
    Published,
}

/// Parses a date or an age, and returns Unix time in milliseconds.
fn parse_time(text: &str) -> Result<u64, String> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_unix_ms = since_1970.map_or(0, |now| now.as_millis() as u64);
    parse_point_in_time(text, now_unix_ms).ok_or_else(|| {
        format!("`{text}` is no moment of the past: write a date (2026-11-20), or a time ago (2h, 3days)")
    })
}
