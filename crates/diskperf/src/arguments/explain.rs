//! The arguments of `diskperf explain`.

use super::{CacheTemperature, MachinesArguments, cache_mode, parse_size_choice};
use clap::Args;
use diskperf_laboratory::{Experiment, Setting, SizeChoice, Workload};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ExplainArguments {
    /// A stored run (id, unique prefix, label, `last`, file), a modelled system, or a directory,
    /// file or device of real storage, on which the suite runs; two subjects are compared
    #[arg(value_name = "RUN|TARGET", num_args = 0..=2)]
    pub(crate) subjects: Vec<String>,
    /// For a target: a suite or a program [default: the suite of `run`]
    #[arg(long, visible_alias = "program", value_name = "WHAT")]
    pub(crate) suite: Option<String>,
    /// For a target: number of drives that run each program at the same time; give it twice for two
    /// subjects
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8), allow_negative_numbers = true)]
    pub(crate) drives: Vec<u32>,
    /// For a target: bytes that each program transfers
    #[arg(long, value_name = "BYTES", default_value = "auto", value_parser = parse_size_choice)]
    pub(crate) size: SizeChoice,
    /// For a target: repetitions of each program
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub(crate) runs: Option<u32>,
    /// For a target: state of the cache before each repetition [default: as in `run`]
    #[arg(long, value_enum)]
    pub(crate) cache: Option<CacheTemperature>,
    /// For a target: bypass the page cache with O_DIRECT
    #[arg(long, conflicts_with = "cache")]
    pub(crate) direct: bool,
    /// For a path: create a file system: ext4, ext2, xfs or btrfs (root)
    #[arg(long, value_name = "KIND[:KEY=VALUE,...]")]
    pub(crate) fresh: Option<String>,
    /// For a target: set a parameter of the programs or of the system
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Compare the target with itself after this change
    #[arg(long = "change", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) changes: Vec<Setting>,
    /// Skip the counterfactual runs, which show what would reduce the time
    #[arg(long)]
    pub(crate) no_counterfactuals: bool,
    /// Also write a trace for Perfetto (ui.perfetto.dev): programs, processor, channel, bus and
    /// drives; for a path, its requests from block-layer events
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machines: MachinesArguments,
}

impl ExplainArguments {
    /// Returns the experiment for a target, by its number from 0.
    pub(crate) fn to_experiment(&self, (target, number): (&str, usize)) -> Experiment {
        let drives = self.drives.get(number).or(self.drives.first());
        Experiment {
            workload: Workload::from_suite_name(self.suite.clone()),
            targets: vec![target.into()],
            drive_count: drives.copied(),
            catalogue_path: self.machines.catalogue.clone(),
            size_choice: self.size,
            settings: self.settings.clone(),
            repetition_count: self.runs,
            fresh_filesystem: self.fresh.clone(),
            has_no_budget: self.machines.no_budget,
            cache_mode: cache_mode(self.direct, self.cache),
            passes_cache: self.cache.is_some(),
            seed: self.machines.seed,
            ..Experiment::default()
        }
    }
}
