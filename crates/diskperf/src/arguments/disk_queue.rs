//! The options of `diskperf calculate disk`.

use super::OutputFormat;
use clap::Args;
use diskperf_laboratory::Setting;
use diskperf_models::disk_queue::{DEEPEST, MOST_REQUESTS};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct DiskQueueArguments {
    /// A modelled system whose drive is a disk with firmware (see `diskperf list systems`), or a
    /// file of your own
    #[arg(long, value_name = "TARGET", default_value = "bare-sata-7200")]
    pub(crate) on: String,
    /// The drive, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) drive: u32,
    /// Depths of the queue, with commas between them
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64], value_parser = clap::value_parser!(u32).range(1..=i64::from(DEEPEST)), allow_negative_numbers = true)]
    pub(crate) depth: Vec<u32>,
    /// Orders of service, as the catalogue names them (fcfs, c_look, look, sstf, v_scan,
    /// aged_sptf, sptf) [default: all]
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    pub(crate) order: Vec<String>,
    /// Bytes of a request: K, M and G are powers of 1024, KB, MB and GB of 1000
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = super::parse_bytes)]
    pub(crate) block: u64,
    /// Requests that are served for each figure
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=MOST_REQUESTS), allow_negative_numbers = true)]
    pub(crate) requests: u64,
    /// Set a parameter of the system
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Seed of the random places
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = super::parse_seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}
