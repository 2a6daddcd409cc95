//! The options of `diskperf replay`.

use super::{CacheTemperature, RunFormat, cache_mode, trace::parse_window};
use clap::Args;
use diskperf_laboratory::traces::{CsvColumns, Form, TimeUnit};
use diskperf_laboratory::{Experiment, Setting, Workload};
use diskperf_timeline::{CacheMode, ReplayAddresses, ReplayPace, TraceReading, TraceReplay};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ReplayArguments {
    /// A trace, plain or compressed with gzip or zstd; for blktrace, the files of all processors or
    /// their directory
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// A directory, in which a file replaces the traced device, a file, a block device, or a
    /// modelled system; several targets are replayed in turn
    #[arg(long = "on", value_name = "TARGET", default_value = ".")]
    pub(crate) targets: Vec<PathBuf>,
    /// Open loop: issue requests at the times of the trace, sped up by this factor [default: 1]
    #[arg(long, value_name = "X", conflicts_with_all = ["depth", "think"], allow_negative_numbers = true)]
    speed: Option<f64>,
    /// Closed loop: keep this many requests in flight, in the order of the trace
    #[arg(long, value_name = "N", conflicts_with = "think", value_parser = clap::value_parser!(u32).range(1..=4096), allow_negative_numbers = true)]
    depth: Option<u32>,
    /// Dependent: keep the think time of the trace between a completion and the request that
    /// follows it
    #[arg(long)]
    think: bool,
    /// Maximum number of requests in flight, for open loop and --think [default: 1024, or as many
    /// as 1 GiB of buffers allows]
    #[arg(long, value_name = "N", conflicts_with = "depth", value_parser = clap::value_parser!(u32).range(1..=4096), allow_negative_numbers = true)]
    slots: Option<u32>,
    /// Scale addresses to the size of the target, or to SIZE; in a directory, to a tenth of the
    /// free space
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, value_parser = super::parse_bytes)]
    scale_addresses: Option<Option<u64>>,
    /// Round reads and writes that are not whole sectors to sectors of this many bytes [without
    /// BYTES: 4096]
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "4096", value_parser = super::parse_bytes)]
    round_to_sectors: Option<u64>,
    /// Form of the trace [default: detected from its start]
    #[arg(long, value_name = "FORM")]
    form: Option<Form>,
    /// Columns of a table, by number or by name: time_us=1,op=3,offset=4,length=Size; also sector,
    /// sectors, response_UNIT, device
    #[arg(long, value_name = "NAME=N,...", value_parser = parse_columns)]
    columns: Option<String>,
    /// Time unit of a form that does not state it: s, ms, us, ns or ps
    #[arg(long, value_name = "UNIT", value_parser = parse_time_unit)]
    time_unit: Option<String>,
    /// Accept a truncated trace, and read its complete part
    #[arg(long)]
    partial: bool,
    /// Only requests issued in this time window from the start, as 10s..1m
    #[arg(long, value_name = "FROM..TO", value_parser = parse_window)]
    window: Option<(u64, u64)>,
    /// Only requests of this part of the trace, such as a repetition of a run, by its number in the
    /// table of parts of `diskperf trace`
    #[arg(long, value_name = "N")]
    part: Option<u32>,
    /// Only requests to this device, by its name in the trace
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Repetitions [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_negative_numbers = true)]
    runs: Option<u32>,
    /// Use the page cache, in this state before each repetition [default: bypass it with O_DIRECT
    /// where possible]
    #[arg(long, value_enum)]
    cache: Option<CacheTemperature>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    catalogue: Option<PathBuf>,
    /// Set a parameter of a modelled system: COMPONENT.KEY=VALUE
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    settings: Vec<Setting>,
    /// Create a file system for the replay: ext4, ext2, xfs or btrfs (root)
    #[arg(long, value_name = "KIND[:KEY=VALUE,...]")]
    fresh: Option<String>,
    /// Allow the trace's writes to overwrite this block device, which must be a target
    #[arg(long, value_name = "DEV")]
    destroy_data_on: Vec<PathBuf>,
    /// Overwrite the device even if it has a file system, a partition table or another signature
    #[arg(long, requires = "destroy_data_on")]
    ignore_signature: bool,
    /// Remove the limits on events, virtual time and memory of modelled systems
    #[arg(long)]
    no_budget: bool,
    /// Seed of the written data, and of every random choice of a model
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = super::parse_seed, allow_negative_numbers = true)]
    seed: u64,
    /// Name of the run, for use in other commands
    #[arg(long)]
    label: Option<String>,
    /// Print what the replay would read and write, where, and for how long; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format; fio-json and fio-json+ are the formats of fio
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RunFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl ReplayArguments {
    pub(crate) fn to_experiment(&self) -> Experiment {
        Experiment {
            workload: Workload::Replay(Box::new(self.to_trace_replay())),
            targets: self.targets.clone(),
            catalogue_path: self.catalogue.clone(),
            settings: self.settings.clone(),
            repetition_count: self.runs,
            cache_mode: match self.cache {
                cache @ Some(_) => cache_mode(false, cache),
                None => CacheMode::Direct,
            },
            fresh_filesystem: self.fresh.clone(),
            destroy_data_on: self.destroy_data_on.clone(),
            ignores_signature: self.ignore_signature,
            has_no_budget: self.no_budget,
            seed: self.seed,
            label: self.label.clone(),
            ..Experiment::default()
        }
    }

    fn to_trace_replay(&self) -> TraceReplay {
        TraceReplay {
            files: self.files.clone(),
            trace_reading: TraceReading {
                form: self.form.map(|form| form.name().to_owned()),
                column_names: self.columns.clone(),
                time_unit: self.time_unit.clone(),
                allows_partial: self.partial,
                window_ns: self.window,
                part_index: self.part,
                device_name: self.device.clone(),
                round_to_bytes: self.round_to_sectors,
            },
            replay_pace: match (self.depth, self.think) {
                (Some(depth), _) => ReplayPace::ClosedLoop { depth },
                (None, true) => ReplayPace::Dependent,
                (None, false) => ReplayPace::OpenLoop {
                    speed: self.speed.unwrap_or(1.0),
                },
            },
            slot_count: self.slots,
            replay_addresses: match self.scale_addresses {
                None => ReplayAddresses::Unchanged,
                Some(None) => ReplayAddresses::ScaledToTarget,
                Some(Some(bytes)) => ReplayAddresses::Scaled(bytes),
            },
            trace_facts: None,
            protocol: None,
        }
    }
}

fn parse_columns(text: &str) -> Result<String, String> {
    text.parse::<CsvColumns>().map(|_| text.to_owned())
}

fn parse_time_unit(text: &str) -> Result<String, String> {
    text.parse::<TimeUnit>().map(|_| text.to_owned())
}
