//! The options of `diskperf calculate flash`.

use super::OutputFormat;
use clap::{Args, ValueEnum};
use diskperf_analysis::flash::FlashDrive;
use diskperf_models::flash::Asked;

#[derive(Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct FlashArguments {
    /// Spares: the shares of closed superblocks that hold no mapped unit, such as 10%
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_values = ["7%", "10%", "15%", "20%", "28%"], value_parser = super::parse_percent)]
    pub(crate) spare: Vec<f64>,
    /// How victims of collection are chosen: fifo, greedy, cost_benefit, or choices_N, the best of
    /// N superblocks drawn at random
    #[arg(long, value_name = "POLICY", value_delimiter = ',', default_values = ["fifo", "greedy"])]
    pub(crate) policy: Vec<String>,
    /// Units of 4 KiB of a superblock, of formula and model: with more, greedy comes to what fifo
    /// does
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) superblock_units: u32,
    /// Percents of the writes and of the space that they go to, such as 90/10 [default: all units are
    /// written alike]
    #[arg(long, value_name = "W/S")]
    pub(crate) hot: Option<String>,
    /// The share of the space that is trimmed and not written again
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = super::parse_percent)]
    pub(crate) trimmed: f64,
    /// Where collection writes what it moves
    #[arg(long, value_enum, default_value = "mixed")]
    pub(crate) moved: Moved,
    /// Depths of the queue of random reads, with commas between them
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128, 256])]
    pub(crate) depth: Vec<u32>,
    /// Dies that work side by side
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) dies: u32,
    /// Bytes that one die programs at once: K, M and G are powers of 1024, KB, MB and GB of 1000
    #[arg(long, value_name = "SIZE", default_value = "96K", value_parser = super::parse_bytes)]
    pub(crate) program: u64,
    /// The time of a program, in µs
    #[arg(long, value_name = "US", default_value_t = 1170.0)]
    pub(crate) program_us: f64,
    /// Bytes that one die senses at once
    #[arg(long, value_name = "SIZE", default_value = "32K", value_parser = super::parse_bytes)]
    pub(crate) sensed: u64,
    /// The time of sensing, in µs
    #[arg(long, value_name = "US", default_value_t = 45.0)]
    pub(crate) read_us: f64,
    /// The time of 4 KiB on the channel, in µs
    #[arg(long, value_name = "US", default_value_t = 3.8)]
    pub(crate) transfer_us: f64,
    /// Bytes of the host
    #[arg(long, value_name = "SIZE", default_value = "1920GB", value_parser = super::parse_bytes)]
    pub(crate) capacity: u64,
    /// Bytes of the write buffer
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = super::parse_bytes)]
    pub(crate) buffer: u64,
    /// What the host sends, in MB/s: the default is a link of PCIe generation 4 with 4 lanes
    #[arg(long, value_name = "MB/S", default_value_t = 7200.0)]
    pub(crate) arrival_mb_per_s: f64,
    /// Bytes of the cache of one bit a cell; 0: none
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = super::parse_bytes)]
    pub(crate) cache: u64,
    /// The rate of this cache, in MB/s
    #[arg(long, value_name = "MB/S", default_value_t = 3300.0)]
    pub(crate) cache_mb_per_s: f64,
    /// Erases that a block endures
    #[arg(long, value_name = "N", default_value_t = 7000.0)]
    pub(crate) cycles: f64,
    /// Years of the warranty
    #[arg(long, value_name = "YEARS", default_value_t = 5.0)]
    pub(crate) years: f64,
    /// Seed of what the model draws
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = super::parse_seed)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

/// Where what is moved goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Moved {
    /// To the superblock that the host writes
    Mixed,
    /// To superblocks of its own
    Apart,
}

impl FlashArguments {
    /// What is to be calculated.
    pub(crate) fn asked(&self) -> Asked {
        Asked {
            spares: self.spare.clone(),
            policies: self.policy.clone(),
            superblock_units: self.superblock_units,
            hot: self.hot.clone(),
            trimmed: self.trimmed,
            apart: self.moved == Moved::Apart,
            depths: self.depth.clone(),
            seed: self.seed,
            drive: FlashDrive {
                dies: self.dies,
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
                cycles: self.cycles,
                years: self.years,
            },
        }
    }
}
