//! The options of `diskperf calculate requests`.

use super::OutputFormat;
use clap::{Args, ValueEnum};
use diskperf_laboratory::request_lists::{KernelVersion, SequenceFileSystem};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct RequestListArguments {
    /// A JSON file with an array of sequences of file operations
    #[arg(value_name = "FILE.json")]
    pub(crate) file: PathBuf,
    /// File systems, separated by commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_values = ["ext4", "xfs"]
    )]
    pub(crate) filesystem: Vec<FileSystemKind>,
    /// Version of the kernel
    #[arg(long, value_enum, default_value = "6.18")]
    pub(crate) kernel: KernelKind,
    /// Timer ticks per second (HZ) of the kernel: time stamps of files are those of the last tick
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=10_000), allow_negative_numbers = true)]
    pub(crate) tick_rate: u32,
    /// Processors of the machine
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4096), allow_negative_numbers = true)]
    pub(crate) processors: u32,
    /// Read-ahead of the device in KiB (read_ahead_kb)
    #[arg(long, value_name = "KIB", default_value_t = 128, value_parser = clap::value_parser!(u32).range(0..=1_048_576), allow_negative_numbers = true)]
    pub(crate) read_ahead: u32,
    /// The device supports writes with FUA
    #[arg(long)]
    pub(crate) fua: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FileSystemKind {
    Ext4,
    Xfs,
}

impl From<FileSystemKind> for SequenceFileSystem {
    fn from(kind: FileSystemKind) -> Self {
        match kind {
            FileSystemKind::Ext4 => Self::Ext4,
            FileSystemKind::Xfs => Self::Xfs,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum KernelKind {
    #[value(name = "6.1")]
    V6_1,
    #[value(name = "6.12")]
    V6_12,
    #[value(name = "6.18")]
    V6_18,
}

impl From<KernelKind> for KernelVersion {
    fn from(kind: KernelKind) -> Self {
        match kind {
            KernelKind::V6_1 => Self::V6_1,
            KernelKind::V6_12 => Self::V6_12,
            KernelKind::V6_18 => Self::V6_18,
        }
    }
}
