//! The options of `diskperf record`.

use super::OutputFormat;
use super::trace::parse_time_ns;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args)]
pub(crate) struct RecordArguments {
    /// A block device or partition (see `lsblk`), or a path, which selects all disks under it
    #[arg(value_name = "DEVICE|PATH")]
    pub(crate) target: PathBuf,
    /// Duration of the recording, as 60s or 5m [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) lasts: Option<Duration>,
    /// Trace file, which must not exist; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Output format; json has all figures
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
    /// Do not show progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    match parse_time_ns(text) {
        Some(0) => Err(format!("{text}: nothing happens in no time")),
        Some(ns) => Ok(Duration::from_nanos(ns)),
        None => Err(format!(
            "`{text}` is no time with a unit: write 60s, 5m or 500ms"
        )),
    }
}
