//! The arguments of `diskperf explain`.

use super::{Cache, MachinesArguments, cache_mode, size};
use clap::Args;
use diskperf_laboratory::{Experiment, Setting, SizeChoice, Workload};
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ExplainArguments {
    /// A stored run (id, unique prefix, label, `last`, file), or a modelled system, or a path of real
    /// storage (a directory, a file or a device), which runs the suite; of two, why they differ
    #[arg(value_name = "RUN|TARGET", num_args = 0..=2)]
    pub(crate) subjects: Vec<String>,
    /// Of a TARGET: a suite or a program [default: as `run` has it, ffs83 for most]
    #[arg(long, visible_alias = "program", value_name = "WHAT")]
    pub(crate) suite: Option<String>,
    /// Of a TARGET: drives that run each program at once; given twice, for the first and for the
    /// second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub(crate) drives: Vec<u32>,
    /// Of a TARGET: bytes that each program moves
    #[arg(long, value_name = "BYTES", default_value = "auto", value_parser = size)]
    pub(crate) size: SizeChoice,
    /// Of a TARGET: repetitions of each program
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// Of a TARGET: whether reads find their bytes in the cache
    #[arg(long, value_enum, default_value = "cold")]
    pub(crate) cache: Cache,
    /// Of a path: read and write with O_DIRECT, past the page cache
    #[arg(long, conflicts_with = "cache")]
    pub(crate) direct: bool,
    /// Of a path: make a fresh file system for it: ext4, ext2, xfs or btrfs (root)
    #[arg(long, value_name = "KIND[:KEY=VALUE,...]")]
    pub(crate) fresh: Option<String>,
    /// Of a TARGET: set a parameter of the programs or of the system
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Explain what this change does to the TARGET: the second is the first with it
    #[arg(long = "change", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) changes: Vec<Setting>,
    /// Do not try what would make it faster
    #[arg(long)]
    pub(crate) no_counterfactuals: bool,
    /// Also write a trace for Perfetto (ui.perfetto.dev): programs, processor, channel, bus, drives;
    /// of a path, its requests, by the block layer's events
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machines: MachinesArguments,
}

impl ExplainArguments {
    /// What is asked of a target: the first or the second, by its number from 0.
    pub(crate) fn experiment(&self, (target, number): (&str, usize)) -> Experiment {
        let drives = self.drives.get(number).or(self.drives.first());
        Experiment {
            workload: Workload::of(self.suite.clone()),
            targets: vec![target.into()],
            drives: drives.copied(),
            catalogue: self.machines.catalogue.clone(),
            size: self.size,
            settings: self.settings.clone(),
            repetitions: self.runs,
            fresh: self.fresh.clone(),
            no_budget: self.machines.no_budget,
            cache: cache_mode(self.direct, self.cache),
            seed: self.machines.seed,
            ..Experiment::default()
        }
    }
}
