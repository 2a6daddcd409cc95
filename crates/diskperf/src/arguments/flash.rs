//! The options of `diskperf calculate flash`.

use super::OutputFormat;
use clap::{Args, ValueEnum};
use diskperf_analysis::flash::FlashDrive;
use diskperf_models::flash::FlashRequest;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct FlashArguments {
    /// Spare shares: shares of closed superblocks without valid data, such as 10%
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values = ["7%", "10%", "15%", "20%", "28%"], value_parser = super::parse_percent)]
    pub(crate) spare: Vec<f64>,
    /// Victim selection of garbage collection: fifo, greedy, cost_benefit, or choices_N, the best
    /// of N superblocks drawn at random
    #[arg(long, value_name = "POLICY", value_delimiter = ',', default_values = ["fifo", "greedy"])]
    pub(crate) policy: Vec<String>,
    /// Superblock size in units of 4 KiB, for formula and model; greedy approaches fifo as
    /// superblocks grow
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) superblock_units: u32,
    /// Percentage of the writes and of the space that they hit, such as 90/10 [default: uniform
    /// writes]
    #[arg(long, value_name = "W/S")]
    pub(crate) hot: Option<String>,
    /// Share of the space that is trimmed and not rewritten
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = super::parse_percent)]
    pub(crate) trimmed: f64,
    /// Destination of the data that garbage collection copies
    #[arg(long, value_enum, default_value = "mixed")]
    pub(crate) moved: CopyPlacement,
    /// Queue depths of random reads, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128, 256])]
    pub(crate) depth: Vec<u32>,
    /// Number of dies
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) dies: u32,
    /// Bytes per program operation of a die: K, M and G are powers of 1024; KB, MB and GB are
    /// powers of 1000
    #[arg(long, value_name = "SIZE", default_value = "96K", value_parser = super::parse_bytes)]
    pub(crate) program: u64,
    /// Program time, in µs
    #[arg(long, value_name = "US", default_value_t = 1170.0)]
    pub(crate) program_us: f64,
    /// Bytes per sense operation of a die
    #[arg(long, value_name = "SIZE", default_value = "32K", value_parser = super::parse_bytes)]
    pub(crate) sensed: u64,
    /// Sense time, in µs
    #[arg(long, value_name = "US", default_value_t = 45.0)]
    pub(crate) read_us: f64,
    /// Channel transfer time of 4 KiB, in µs
    #[arg(long, value_name = "US", default_value_t = 3.8)]
    pub(crate) transfer_us: f64,
    /// Capacity for the host, in bytes
    #[arg(long, value_name = "SIZE", default_value = "1920GB", value_parser = super::parse_bytes)]
    pub(crate) capacity: u64,
    /// Size of the write buffer, in bytes
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = super::parse_bytes)]
    pub(crate) buffer: u64,
    /// Write rate of the host, in MB/s [default: the link rate of PCIe 4.0 x4]
    #[arg(long, value_name = "MB/S", default_value_t = 7200.0)]
    pub(crate) arrival_mb_per_s: f64,
    /// Size of the SLC cache, in bytes; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = super::parse_bytes)]
    pub(crate) cache: u64,
    /// Write rate of the SLC cache, in MB/s
    #[arg(long, value_name = "MB/S", default_value_t = 3300.0)]
    pub(crate) cache_mb_per_s: f64,
    /// Program/erase cycles that a block endures
    #[arg(long, value_name = "N", default_value_t = 7000.0)]
    pub(crate) cycles: f64,
    /// Warranty period, in years
    #[arg(long, value_name = "YEARS", default_value_t = 5.0)]
    pub(crate) years: f64,
    /// Seed of the model
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = super::parse_seed)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

/// Destination of copied data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CopyPlacement {
    /// Same superblock as host writes
    Mixed,
    /// Separate superblocks
    #[value(name = "apart")]
    Separate,
}

impl FlashArguments {
    pub(crate) fn to_request(&self) -> FlashRequest {
        FlashRequest {
            spare_shares: self.spare.clone(),
            policy_names: self.policy.clone(),
            superblock_units: self.superblock_units,
            hot_shares: self.hot.clone(),
            trimmed_share: self.trimmed,
            separates_hot: self.moved == CopyPlacement::Separate,
            queue_depths: self.depth.clone(),
            seed: self.seed,
            drive: FlashDrive {
                die_count: self.dies,
                program_bytes: self.program,
                program_us: self.program_us,
                sensed_bytes: self.sensed,
                read_us: self.read_us,
                transfer_us: self.transfer_us,
                capacity_bytes: self.capacity,
                buffer_bytes: self.buffer,
                arrival_mb_per_s: self.arrival_mb_per_s,
                cache_bytes: self.cache,
                cache_mb_per_s: self.cache_mb_per_s,
                erase_cycles: self.cycles,
                warranty_years: self.years,
            },
        }
    }
}
