//! The options of `diskperf calculate disk`.

use super::OutputFormat;
use clap::Args;
use diskperf_laboratory::Setting;
use diskperf_models::disk_queue::{DEPTH_MAX, REQUESTS_MAX};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct DiskQueueArguments {
    /// A modelled system whose drive is a disk with firmware (see `diskperf list systems`), or a
    /// file that describes one
    #[arg(long, value_name = "TARGET", default_value = "bare-sata-7200")]
    pub(crate) on: String,
    /// Number of the drive, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) drive: u32,
    /// Queue depths, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64], value_parser = clap::value_parser!(u32).range(1..=i64::from(DEPTH_MAX)), allow_negative_numbers = true)]
    pub(crate) depth: Vec<u32>,
    /// Scheduling policies (fcfs, c_look, look, sstf, v_scan, aged_sptf, sptf) [default: all]
    #[arg(long, value_name = "ORDER", value_delimiter = ',')]
    pub(crate) order: Vec<String>,
    /// Request size in bytes: K, M and G are powers of 1024; KB, MB and GB are powers of 1000
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = super::parse_bytes)]
    pub(crate) block: u64,
    /// Number of requests per result
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=REQUESTS_MAX), allow_negative_numbers = true)]
    pub(crate) requests: u64,
    /// Set a parameter of the system
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Seed of the random addresses
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = super::parse_seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}
