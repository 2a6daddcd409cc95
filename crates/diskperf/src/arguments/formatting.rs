//! The options of `diskperf calculate format`.

use super::OutputFormat;
use clap::Args;
use diskperf_laboratory::Setting;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct FormatArguments {
    /// A modelled system (see `diskperf list systems`), or a file that describes one
    #[arg(long, value_name = "TARGET")]
    pub(crate) on: String,
    /// Number of the drive, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) drive: u32,
    /// Number of verify passes after the format
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub(crate) passes: u32,
    /// Set a parameter of the system
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}
