//! Arguments of the command line.

mod ab;
mod crash;
mod disk_queue;
mod explain;
mod export;
mod flash;
mod format;
mod formatting;
mod import;
mod interleave;
mod list;
mod record;
mod replay;
mod requests;
mod serve;
mod trace;
mod volume;

pub(crate) use ab::{AbArguments, with_escaped_variants};
pub(crate) use crash::{CrashArguments, CrashFormat};
pub(crate) use disk_queue::DiskQueueArguments;
pub(crate) use explain::ExplainArguments;
pub(crate) use export::{ExportArguments, ExportFormat};
pub(crate) use flash::FlashArguments;
pub(crate) use format::{OutputFormat, RunFormat};
pub(crate) use formatting::FormatArguments;
pub(crate) use import::ImportArguments;
pub(crate) use interleave::InterleaveArguments;
pub(crate) use list::{ListArguments, ListSubject};
pub(crate) use record::RecordArguments;
pub(crate) use replay::ReplayArguments;
pub(crate) use requests::RequestListArguments;
pub(crate) use serve::ServeArguments;
pub(crate) use trace::TraceArguments;
pub(crate) use volume::VolumeArguments;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use diskperf_analysis::statistics::interleaved::DecisionLimits;
use diskperf_catalogue::Component;
use diskperf_laboratory::ab::apply_earlier;
use diskperf_laboratory::crew::available_threads;
use diskperf_laboratory::{Experiment, Setting, SizeChoice, Workload, job_file};
use diskperf_models::tune::{RUN_BUDGET_DEFAULT, TuningGoal};
use diskperf_timeline::units::parse_size;
use diskperf_timeline::{CacheMode, SteadyRule};
use std::path::PathBuf;

/// Measures storage and modelled computers with the same I/O programs, and stores, compares
/// and explains the results.
#[derive(Parser)]
#[command(
    name = "diskperf",
    version,
    propagate_version = true,
    after_help = "For parameter studies, on all cores or a cluster: `python -m diskperf sweep STUDY.toml`"
)]
pub(crate) struct Arguments {
    /// Store results in this file [default: runs.sqlite in the user's data directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a suite or a program on directories, block devices or modelled systems
    Run(RunArguments),
    /// Compare two targets or settings in interleaved blocks, with a bounded error rate
    Ab(AbArguments),
    /// Compare runs by the ratio of their rates, with a 99 % interval
    Compare(CompareArguments),
    /// Show where the time went and, for a model, what would reduce it; for two runs, why they
    /// differ
    Explain(ExplainArguments),
    /// Print published numbers beside modelled ones: the accuracy card
    Reproduce(ReproduceArguments),
    /// Record the requests to a disk from all processes of this machine as a block trace (root)
    Record(RecordArguments),
    /// Describe a block trace, or convert it to another form
    Trace(TraceArguments),
    /// Replay a block trace at its times, at a fixed queue depth, or with its think times
    Replay(ReplayArguments),
    /// Serve a modelled drive to other programs in real time: as a network block device (NBD), a file or
    /// a disk
    Serve(ServeArguments),
    /// Cut the power of a modelled drive (root) or a directory under a workload, at each flush or
    /// sync, and check what is left
    Crash(CrashArguments),
    /// Import drives from DiskSim's parameter files as entries of a catalogue
    Import(ImportArguments),
    /// Find the best settings of a modelled system or of real storage, and their distance from a
    /// cliff
    Tune(TuneArguments),
    /// Write runs as one HTML file with tables, charts and the commands to repeat them
    Report(ReportArguments),
    /// Calculate the gain of a disk's queue, the write amplification of a flash drive, the volumes
    /// that carry a load, the requests of file operations, an interleave factor, or the time to
    /// format a drive
    Calculate(CalculateArguments),
    /// List suites, programs, runs, parameters, or catalogue entries
    List(ListArguments),
    /// Show a stored run, a suite, a program, or a catalogue entry
    Show(ShowArguments),
    /// Write runs to a file that other commands accept in place of a run, or in the format of
    /// another tool
    Export(ExportArguments),
    /// Remove runs from the store
    Delete(DeleteArguments),
    /// Remove the files, mounts and settings that killed runs left behind
    Clean(CleanArguments),
    /// Print a shell script that completes commands, options and values
    Completions(CompletionsArguments),
    /// Print the manual page of diskperf, or of one command
    Man(ManArguments),
}

/// Default modelled system for programs without a kernel: a recent NVMe drive.
const NVME_MODEL: &str = "bare-nvme-tlc";

/// Default modelled system for programs and settings that need a kernel and a file system.
const SYSTEM_MODEL: &str = "vax780-sc780-eagle";

#[derive(Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) asked: ExperimentArguments,
    /// Use the programs, sizes, settings, cache mode and seed of a stored run, and its targets
    /// without --on; --set adds to its settings
    #[arg(long, value_name = "RUN", conflicts_with_all = ["what", "suite", "fio_arguments", "drives", "catalogue", "together", "other", "cache", "direct", "drop_caches", "fresh", "no_budget", "no_latency", "seed"])]
    pub(crate) like: Option<String>,
    /// Repetitions of each program [default: those of the suite]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_negative_numbers = true)]
    pub(crate) runs: Option<u32>,
    /// Repeat each program until its last rounds are steady: ROUNDS,EXCURSION,SLOPE [default
    /// without RULE: 5,20%,10%, the SNIA rule]; --runs limits the rounds [default: 25]
    #[arg(long, value_name = "RULE", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = SteadyRule::parse_rule)]
    pub(crate) until_steady: Option<SteadyRule>,
    /// After the programs, probe each kind of their requests for a limit on the rate, such as those
    /// of cloud volumes and control groups; takes 2 minutes for each
    #[arg(long)]
    pub(crate) find_limits: bool,
    /// Cloud volume that the targets are, such as gp2:100GiB or premium-ssd:P10; a limit that is
    /// found is compared with its limits
    #[arg(long, value_name = "TYPE[:SIZE]")]
    pub(crate) volume: Option<String>,
    /// Also write a trace of modelled systems for Perfetto (ui.perfetto.dev); for real storage, use
    /// `diskperf explain PATH --perfetto FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Also record the storage requests of the timed part of each repetition, as a block trace for
    /// `diskperf trace` and `replay`; the file must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Also write the figures for the textfile collector of Prometheus' node_exporter; the file is
    /// written beside and renamed, and replaces that of the last run
    #[arg(long, value_name = "FILE.prom")]
    pub(crate) metrics: Option<PathBuf>,
    /// Replace an existing file of --record
    #[arg(long, requires = "record")]
    pub(crate) force: bool,
    /// Print what the run would write, where, and for how long; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format; fio-json and fio-json+ are the formats of fio, for programs that keep
    /// requests in flight
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RunFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl RunArguments {
    /// Returns the requested experiment; `earlier` is the experiment of the run that `--like`
    /// names.
    pub(crate) fn to_experiment(&self, earlier: Option<Experiment>) -> Experiment {
        let asked = Experiment {
            repetition_count: self.runs,
            steady_rule: self.until_steady,
            finds_caps: self.find_limits,
            volume: self.volume.clone(),
            ..self.asked.to_experiment()
        };
        match earlier {
            None => asked,
            Some(earlier) => apply_earlier(
                earlier,
                Experiment {
                    targets: self.asked.targets.clone(),
                    ..asked
                },
            ),
        }
    }
}

/// Setting that `--verify` changes.
const VERIFY_SETTING: &str = "program.verify";

/// Programs, targets and settings of an experiment.
#[derive(Args)]
pub(crate) struct ExperimentArguments {
    /// A suite (today26, ssd26, ffs83, interleave91, seqread89, vme87), a program (see `diskperf
    /// list`), a fio job file, or - for a job file from standard input; without --on, a job file
    /// runs on its own paths [default: today26; for modelled systems the suite of their time, ffs83
    /// or today26]
    #[arg(value_name = "WHAT")]
    pub(crate) what: Option<String>,
    /// Suite, program or job file, instead of the argument WHAT
    #[arg(long, value_name = "WHAT", conflicts_with = "what")]
    pub(crate) suite: Option<String>,
    /// A directory, a file, a block device, a modelled system (see `diskperf list systems`) or a
    /// FILE.toml that describes one; several targets run in turn [default: the current directory
    /// and, unless WHAT or an option excludes models, bare-nvme-tlc; with --drives, --catalogue or
    /// --set of a system, vax780-sc780-eagle]
    #[arg(long = "on", value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Number of drives of a modelled system that run each program at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8), allow_negative_numbers = true)]
    pub(crate) drives: Option<u32>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Run on all targets at the same time and report the totals
    #[arg(long)]
    pub(crate) together: bool,
    /// A directory on another file system, for copies between file systems
    #[arg(long, value_name = "DIR")]
    pub(crate) other: Option<PathBuf>,
    /// Bytes that each program transfers, as 8M (8MiB) or 8MB (8000000); also for jobs of a fio job
    /// file without a size; auto is about half a second's worth, and 8M on a modelled system. The
    /// range that random, sequential and other ring programs access is program.area_bytes
    #[arg(long, value_name = "BYTES", default_value = "auto", value_parser = parse_size_choice, allow_negative_numbers = true)]
    pub(crate) size: SizeChoice,
    /// An option of fio's command line for a job file, as --fio-arg=--runtime=10; as in fio, the
    /// job file overrides it; --section=NAME runs only this job
    #[arg(
        long = "fio-arg",
        value_name = "--KEY=VALUE",
        allow_hyphen_values = true
    )]
    pub(crate) fio_arguments: Vec<String>,
    /// Set a parameter of the programs (program.KEY=VALUE) or of a modelled system
    /// (filesystem.rotdelay_ms=2, drive=capricorn); see `diskperf list parameters`
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Read back all written data at the end of each repetition and compare it, for each program
    /// that writes blocks (a fio job file does so with verify=)
    #[arg(long)]
    pub(crate) verify: bool,
    /// State of the page cache before each repetition [default: cold; programs that keep requests
    /// in flight bypass it on file systems with O_DIRECT]
    #[arg(long, value_enum)]
    pub(crate) cache: Option<CacheTemperature>,
    /// Bypass the page cache with O_DIRECT
    #[arg(long, conflicts_with = "cache")]
    pub(crate) direct: bool,
    /// Drop the caches of the whole machine before each repetition (root)
    #[arg(long)]
    pub(crate) drop_caches: bool,
    /// Create a file system for the run: ext4, ext2, xfs or btrfs, as ext4:block_bytes=1024 (root)
    /// [default: blocks of 4096 bytes; ffs83 runs on the largest and the smallest]
    #[arg(long, value_name = "KIND[:KEY=VALUE,...]")]
    pub(crate) fresh: Option<String>,
    /// Allow programs to overwrite this block device, which must be a target
    #[arg(long, value_name = "DEV")]
    pub(crate) destroy_data_on: Vec<PathBuf>,
    /// Overwrite the device even if it has a file system, a partition table or another signature
    #[arg(long, requires = "destroy_data_on")]
    pub(crate) ignore_signature: bool,
    /// Remove the limits on events, virtual time and memory of modelled systems
    #[arg(long)]
    pub(crate) no_budget: bool,
    /// Do not time single calls: less overhead, but no latencies
    #[arg(long)]
    pub(crate) no_latency: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = parse_seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Name of the run, for use in other commands
    #[arg(long)]
    pub(crate) label: Option<String>,
}

impl ExperimentArguments {
    /// Returns the requested experiment, with the repetitions of the suite's protocol.
    pub(crate) fn to_experiment(&self) -> Experiment {
        Experiment {
            workload: Workload::from_suite_name(self.what.clone().or_else(|| self.suite.clone())),
            fio_arguments: self.fio_arguments.clone(),
            targets: self.collect_targets(),
            runs_targets_together: self.together,
            second_target: self.other.clone(),
            drive_count: self.drives,
            catalogue_path: self.catalogue.clone(),
            settings: self.collect_settings(),
            repetition_count: None,
            steady_rule: None,
            size_choice: self.size,
            cache_mode: cache_mode(self.direct, self.cache),
            passes_cache: self.cache.is_some(),
            drops_all_caches: self.drop_caches,
            fresh_filesystem: self.fresh.clone(),
            destroy_data_on: self.destroy_data_on.clone(),
            ignores_signature: self.ignore_signature,
            has_no_budget: self.no_budget,
            times_calls: !self.no_latency,
            seed: self.seed,
            label: self.label.clone(),
            ..Experiment::default()
        }
    }

    /// Returns the settings, including those that separate options set.
    fn collect_settings(&self) -> Vec<Setting> {
        let verify = self.verify.then(|| Setting::new(VERIFY_SETTING, "yes"));
        self.settings.iter().cloned().chain(verify).collect()
    }

    /// Returns the targets; without any, the default targets of the other options.
    fn collect_targets(&self) -> Vec<PathBuf> {
        if !self.targets.is_empty() {
            return self.targets.clone();
        }
        // A job says itself where its files are.
        if self
            .what
            .as_deref()
            .is_some_and(|what| what == "-" || job_file::names_job_file(what))
        {
            return Vec::new();
        }
        let modelled = self.drives.is_some()
            || self.catalogue.is_some()
            || self.settings.iter().any(Component::is_changed_by);
        let real = self.together
            || self.direct
            || self.drop_caches
            || self.other.is_some()
            || self.fresh.is_some()
            || !self.destroy_data_on.is_empty();
        let chosen = self.what.is_some() || self.suite.is_some();
        // A drive without a computer has nothing else that can be set.
        let of_computer = |setting: &Setting| {
            Component::is_changed_by(setting) && !setting.path.starts_with("drive.")
        };
        let is_drive = !chosen
            && self.drives.is_none()
            && self.catalogue.is_none()
            && !self.settings.iter().any(of_computer);
        let model = match is_drive {
            true => PathBuf::from(NVME_MODEL),
            false => PathBuf::from(SYSTEM_MODEL),
        };
        match (modelled, real || chosen) {
            (true, _) => vec![model],
            (false, true) => vec![PathBuf::from(".")],
            (false, false) => vec![PathBuf::from("."), model],
        }
    }
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// Runs: ids, unique prefixes, labels, `last`, or files of `diskperf export`; the first is the
    /// base
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) gate: GateArguments,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
}

/// Thresholds of a comparison and the exit code for scripts.
#[derive(Args)]
pub(crate) struct GateArguments {
    /// For scripts: exit with code 0 if no row is slower than the base by more than this, 1 if a
    /// row is, 3 if the runs cannot decide, 4 if a row is missing, 2 for other errors
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) fail_over: Option<f64>,
    /// Smallest relevant difference [default: 3%; for stored runs of `ab`, the value of their
    /// measurement]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) min_effect: Option<f64>,
}

impl GateArguments {
    /// Returns the smallest relevant change that the user gives.
    pub(crate) fn to_limits(&self) -> Option<DecisionLimits> {
        self.min_effect.map(|min_effect| DecisionLimits {
            effect_share_min: min_effect,
        })
    }
}

#[derive(Args)]
pub(crate) struct ReproduceArguments {
    /// Documents from `diskperf list published` [default: all with models], or real-drives with
    /// --data
    #[arg(value_name = "PUBLISHED")]
    pub(crate) documents: Vec<String>,
    /// For real-drives: a directory with NAME.trace and NAME.diskspecs of each measured drive
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Only cells whose id matches this pattern: * matches any characters, ? one character
    #[arg(long, value_name = "GLOB")]
    pub(crate) cell: Option<String>,
    /// Only cells of this table, such as T2
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// Change a parameter of every system: COMPONENT.KEY=VALUE
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Also write the card as an HTML page to this file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) machines: MachinesArguments,
}

/// Options of commands that run many modelled machines.
#[derive(Args)]
pub(crate) struct MachinesArguments {
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Number of machines that run at the same time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// Remove the limits on events, virtual time and memory of each machine
    #[arg(long)]
    pub(crate) no_budget: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = parse_seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl MachinesArguments {
    /// Returns the number of machines that run at the same time.
    pub(crate) fn thread_count(&self) -> usize {
        self.threads
            .map_or_else(available_threads, |threads| threads as usize)
    }
}

#[derive(Args)]
pub(crate) struct TuneArguments {
    /// A modelled system (see `diskperf list systems`), a file that describes one, or a directory,
    /// file or device of real storage, on which tune varies only safe settings
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// A suite or a program; a suite is scored by the geometric mean over its programs [default: the
    /// default suite of the target]
    #[arg(long, value_name = "WHAT")]
    pub(crate) suite: Option<String>,
    /// Target, if the argument TARGET names the suite or program
    #[arg(long, value_name = "TARGET")]
    pub(crate) on: Option<String>,
    /// A parameter and its values: KEY=LOW..HIGH, KEY=LOW..HIGH:STEP or KEY=X,Y,Z, as
    /// filesystem.rotdelay_ms=0..10:0.5; several parameters give all combinations
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub(crate) over: Vec<String>,
    /// Goal of the search: KB/s, the 99th percentile of the response time, or the processor time
    /// per MiB
    #[arg(long, value_enum, default_value = "throughput")]
    pub(crate) goal: TuneGoal,
    /// Maximum number of combinations to run; coordinate descent selects among more
    #[arg(long, value_name = "N", default_value_t = RUN_BUDGET_DEFAULT, value_parser = clap::value_parser!(u64).range(1..=1_000_000), allow_negative_numbers = true)]
    pub(crate) budget: u64,
    /// Number of seeds for the comparison of the best settings with the current ones, each at 4
    /// spindle phases of a disk; 0 disables it
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000), allow_negative_numbers = true)]
    pub(crate) seeds: u32,
    /// Run all points again, even if the store has them
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Set a parameter of the programs (program.KEY=VALUE) or of the system in all runs
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Number of drives that run the programs at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8), allow_negative_numbers = true)]
    pub(crate) drives: Option<u32>,
    /// Bytes that each program transfers on each drive, as 8M, rounded down to whole calls; auto is
    /// half a second's worth on real storage, 2M on a modelled system, and the size of `run` if its
    /// drives have a cache
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = parse_size_choice, allow_negative_numbers = true)]
    pub(crate) size: SizeChoice,
    /// For a path: maximum number of repetitions of each point, after an uncounted warm-up round;
    /// the search ends earlier when all points are decided
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=1000), allow_negative_numbers = true)]
    pub(crate) runs: u32,
    /// Also write the result as an HTML page to this file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// For a path, as root: allow changes to device.read_ahead_kb and device.scheduler of its disk,
    /// which are restored at the end
    #[arg(long)]
    pub(crate) change_device_settings: bool,
    #[command(flatten)]
    pub(crate) machines: MachinesArguments,
}

impl TuneArguments {
    /// Returns the experiment that all runs of the search share.
    pub(crate) fn to_experiment(&self, workload: Workload) -> Experiment {
        Experiment {
            workload,
            settings: self.settings.clone(),
            drive_count: self.drives,
            size_choice: self.size,
            has_no_budget: self.machines.no_budget,
            seed: self.machines.seed,
            ..Experiment::default()
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TuneGoal {
    /// Highest throughput, in KB/s
    Throughput,
    /// Lowest 99th percentile of the response time
    Latency,
    /// Lowest processor time per MiB
    Cpu,
}

impl From<TuneGoal> for TuningGoal {
    fn from(goal: TuneGoal) -> Self {
        match goal {
            TuneGoal::Throughput => Self::Throughput,
            TuneGoal::Latency => Self::Latency,
            TuneGoal::Cpu => Self::Cpu,
        }
    }
}

#[derive(Args)]
pub(crate) struct CalculateArguments {
    #[command(subcommand)]
    pub(crate) calculation: Calculation,
}

#[derive(Subcommand)]
pub(crate) enum Calculation {
    /// Interleave factor for a service time: John Bass's calculation of 1984
    ///
    /// After a sector is read, the processor works for the service time before it can request the
    /// next one. Give the measured parts of that time, and the interrupts that extend it.
    Interleave(InterleaveArguments),
    /// Gain of a disk's request scheduling, by queue depth
    ///
    /// The modelled disk serves a closed loop of random reads with every scheduling policy. For
    /// each depth, the result includes a lower bound of the mean service time.
    Disk(DiskQueueArguments),
    /// Write amplification, busy dies, buffer fill time and endurance of a flash drive
    ///
    /// Shows formulas beside a model of the flash translation layer, which writes at random until
    /// garbage collection is steady. The default is a data-centre drive of 1.92 TB.
    Flash(FlashArguments),
    /// Cloud volumes that carry a load: p99, the hour at which credits end, and what is left after a
    /// week
    ///
    /// The load is a job file whose jobs have a runtime, or a block trace. It repeats for a week.
    /// Without --volume, the smallest volume of each type is searched that carries the load.
    Volume(VolumeArguments),
    /// Bios that Linux makes of file operations on ext4 and XFS
    ///
    /// Each sequence runs on a fresh file system of 512 MiB, one operation after the other. Shows
    /// data by file and offset, journal or log, metadata in place and flushes, in the order of
    /// submission.
    Requests(RequestListArguments),
    /// Time of a modelled controller to format and verify a drive, track by track
    Format(FormatArguments),
}

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// A run (id, unique prefix, label, `last`, file), a suite, a program, or a catalogue entry
    #[arg(value_name = "RUN|NAME", default_value = "last")]
    pub(crate) name: String,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// For a run: IOPS, MB/s and the 99th percentile of the response time in each interval
    #[arg(long)]
    pub(crate) series: bool,
    /// For a drive of the catalogue: modelled performance beside its data sheet and theory
    #[arg(long, conflicts_with = "series")]
    pub(crate) expected: bool,
    /// Output format; fio-json and fio-json+ are the formats of fio, for runs
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RunFormat,
}

#[derive(Args)]
pub(crate) struct DeleteArguments {
    /// Runs: ids, unique prefixes, unique labels, or `last`
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub(crate) runs: Vec<String>,
    /// Also remove runs whose process was killed before they ended
    #[arg(long)]
    pub(crate) killed: bool,
    /// Print the runs that would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args)]
pub(crate) struct ReportArguments {
    /// Runs: ids, unique prefixes, labels, `last`, or files of `diskperf export`
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) runs: Vec<String>,
    /// Output file; - is standard output
    #[arg(long, short, value_name = "FILE.html")]
    pub(crate) output: PathBuf,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CleanArguments {
    /// Also search this directory, in addition to those in the store
    #[arg(long = "on", value_name = "DIR", default_value = ".")]
    pub(crate) directories: Vec<PathBuf>,
    /// Print what the command would remove or restore, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Forget directories on file systems that are not mounted and will not be
    #[arg(long)]
    pub(crate) forget_unmounted: bool,
}

#[derive(Args)]
pub(crate) struct CompletionsArguments {
    /// Shell to write the script for
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArguments {
    /// A command, such as `run` or `calculate interleave` [default: diskperf itself]
    #[arg(value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum CacheTemperature {
    /// Written back and dropped
    Cold,
    /// Read in and verified to be resident
    Warm,
}

fn cache_mode(direct: bool, cache: Option<CacheTemperature>) -> CacheMode {
    match (direct, cache) {
        (true, _) => CacheMode::Direct,
        (false, None | Some(CacheTemperature::Cold)) => CacheMode::Cold,
        (false, Some(CacheTemperature::Warm)) => CacheMode::Warm,
    }
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

fn parse_size_choice(text: &str) -> Result<SizeChoice, String> {
    if text == "auto" {
        return Ok(SizeChoice::AutomaticSize);
    }
    parse_size(text)
        .map(SizeChoice::SizeBytes)
        .map_err(|error| format!("{error}, or auto"))
}

/// Parses a percentage such as `5%` or `5`. A fraction below 1 is rejected because it may be meant
/// as a share.
fn parse_percent(text: &str) -> Result<f64, String> {
    let (number, has_sign) = match text.strip_suffix('%') {
        Some(number) => (number.trim(), true),
        None => (text.trim(), false),
    };
    match number.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 && !has_sign => Err(format!(
            "`{text}` may be {text} % or {:.4}%; write {}% for the latter",
            100.0 * share,
            100.0 * share
        )),
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!(
            "`{text}` is not a percentage from 0 to 100; write 5%"
        )),
    }
}
