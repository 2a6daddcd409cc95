//! The options of `diskperf serve`.

use super::trace::parse_time_ns;
use super::{OutputFormat, parse_bytes, parse_seed};
use clap::Args;
use diskperf_laboratory::Setting;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Speeds between a thousandth and a thousand times real time. Beyond them a request lasts
/// longer than any client waits, or no time at all.
const SPEED_MIN: f64 = 0.001;
const SPEED_MAX: f64 = 1000.0;

#[derive(Args, Clone)]
pub(crate) struct ServeArguments {
    /// A drive of the catalogue (see `diskperf list drives`), a system that is one drive, or a file
    /// that describes such a system
    #[arg(value_name = "DRIVE|FILE.toml")]
    pub(crate) drive: String,
    /// Listen at this Unix socket, a new file [default: in a private directory of the user's runtime
    /// directory]
    #[arg(long, value_name = "PATH", conflicts_with = "tcp")]
    pub(crate) socket: Option<PathBuf>,
    /// Listen at this port of the loopback, as 127.0.0.1:10809; port 0 is a free one
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = parse_address)]
    pub(crate) tcp: Option<SocketAddr>,
    /// Show the drive as this file, a new one, by FUSE instead of NBD
    #[arg(long, value_name = "FILE", conflicts_with_all = ["socket", "tcp"])]
    pub(crate) fuse: Option<PathBuf>,
    /// Make a block device of the drive, as /dev/loop0, by FUSE and a loop device; needs root
    #[arg(long, conflicts_with_all = ["socket", "tcp", "fuse"])]
    pub(crate) device: bool,
    /// Show a live page and metrics of the drive at this port of the loopback, as 127.0.0.1:8080; port
    /// 0 is a free one
    #[arg(long, value_name = "127.0.0.1:PORT", value_parser = parse_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve the data of this file, and keep what is written in memory; a missing file is created as
    /// a sparse file, and written [default: zeroes, in memory]
    #[arg(long = "data", value_name = "FILE")]
    pub(crate) data_file: Option<PathBuf>,
    /// Write the file of --data, also if it is there
    #[arg(long, requires = "data_file", conflicts_with = "read_only")]
    pub(crate) write: bool,
    /// Serve the first bytes of the drive alone, as 1G [default: all of it]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, allow_negative_numbers = true)]
    pub(crate) size: Option<u64>,
    /// Seconds of the drive in a second: 0.1 is ten times as slow as real time, 10 ten times as fast
    #[arg(long, value_name = "X", default_value = "1", value_parser = parse_speed, allow_negative_numbers = true)]
    pub(crate) speed: f64,
    /// Refuse writes, trims and zeroes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Give the drive the faults of a file
    #[arg(long = "fault", value_name = "FILE.toml")]
    pub(crate) fault_files: Vec<PathBuf>,
    /// Write a line of JSON for each request that a fault strikes
    #[arg(long, value_name = "FILE")]
    pub(crate) fault_log: Option<PathBuf>,
    /// Listen for commands at this Unix socket, a new file: lines of JSON that switch faults and show
    /// statistics
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Record the requests as a trace for `diskperf trace` and `diskperf replay`, in a new file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replace an existing file of --record
    #[arg(long, requires = "record")]
    pub(crate) force: bool,
    /// How long, as 60s or 5m [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub(crate) lasts: Option<Duration>,
    /// Set a parameter of the drive: drive.KEY=VALUE
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = parse_seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Output format of the statistics
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no address with a port: write 127.0.0.1:10809"))
}

pub(super) fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if (SPEED_MIN..=SPEED_MAX).contains(&speed) => Ok(speed),
        _ => Err(format!(
            "`{text}` is no speed from {SPEED_MIN} to {SPEED_MAX}: 1 is real time, 0.1 ten times as slow"
        )),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    match parse_time_ns(text) {
        Some(0) => Err(format!("{text}: nobody connects in no time")),
        Some(ns) => Ok(Duration::from_nanos(ns)),
        None => Err(format!(
            "`{text}` is no time with a unit: write 60s, 5m or 500ms"
        )),
    }
}
