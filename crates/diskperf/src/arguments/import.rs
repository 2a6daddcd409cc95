//! The options of `diskperf import`.

use super::OutputFormat;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// DiskSim's files of drives, .parv, .diskspecs or .model, with what these name beside them;
    /// or a trace of a drive without files, .trace, .blkparse, .csv, .log or .dpt, with issue and
    /// completion of requests that came one at a time
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Directory of a catalogue that gets the entries; give it as --catalogue DIR afterwards
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Replace entries of the same names
    #[arg(long)]
    pub(crate) replace: bool,
    /// Also write a drive NAME-fitted: with what the first half of a measured trace of the drive
    /// shows of its spindle, skews and buffer
    #[arg(long, value_name = "TRACE")]
    pub(crate) calibrate: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}
