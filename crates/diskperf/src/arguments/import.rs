//! The options of `diskperf import`.

use super::OutputFormat;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ImportArguments {
    /// DiskSim drive files (.parv, .diskspecs or .model, with the files that they name), or a trace
    /// of a drive without such files (.trace, .blkparse, .csv, .log or .dpt) that has issue and
    /// completion times of requests at queue depth 1
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Catalogue directory for the new entries; use it as --catalogue DIR in other commands
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Replace existing entries with the same names
    #[arg(long)]
    pub(crate) replace: bool,
    /// Also write a drive NAME-fitted, whose spindle, skews and buffer are fitted to the first half
    /// of this measured trace
    #[arg(long, value_name = "TRACE")]
    pub(crate) calibrate: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}
