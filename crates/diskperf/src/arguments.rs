//! The command line.

mod ab;
mod disk_queue;
mod explain;
mod flash;
mod format;
mod formatting;
mod import;
mod interleave;
mod list;
mod record;
mod replay;
mod serve;
mod trace;

pub(crate) use ab::{AbArguments, with_escaped_variants};
pub(crate) use disk_queue::DiskQueueArguments;
pub(crate) use explain::ExplainArguments;
pub(crate) use flash::FlashArguments;
pub(crate) use format::{OutputFormat, RunFormat};
pub(crate) use formatting::FormatArguments;
pub(crate) use import::ImportArguments;
pub(crate) use interleave::InterleaveArguments;
pub(crate) use list::{ListArguments, Listed};
pub(crate) use record::RecordArguments;
pub(crate) use replay::ReplayArguments;
pub(crate) use serve::ServeArguments;
pub(crate) use trace::TraceArguments;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use diskperf_analysis::statistics::interleaved::Limits;
use diskperf_catalogue::Component;
use diskperf_laboratory::ab::like;
use diskperf_laboratory::crew::available_threads;
use diskperf_laboratory::{Experiment, Setting, SizeChoice, Workload, job_file};
use diskperf_models::tune::{BUDGET, Goal};
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
    /// Tell two targets or settings apart in interleaved blocks, with an error that is bounded
    Ab(AbArguments),
    /// Compare runs: the ratio of their rates, with a 99 % interval
    Compare(CompareArguments),
    /// Show where the time went and, for a model, what would change it; of two, why they differ
    Explain(ExplainArguments),
    /// Print published numbers beside modelled ones: the accuracy card
    Reproduce(ReproduceArguments),
    /// Record what a disk is asked by whatever runs on this machine, as a block trace (root)
    Record(RecordArguments),
    /// Show what a block trace holds, or write it in another form
    Trace(TraceArguments),
    /// Make the requests of a block trace again: at its times, so many at once, or with its pauses
    Replay(ReplayArguments),
    /// Serve a modelled drive to other programs in real time, as a network block device (NBD)
    Serve(ServeArguments),
    /// Import drives from DiskSim's parameter files as entries of a catalogue
    Import(ImportArguments),
    /// Find the best settings of a modelled system or of real storage, and how near a cliff is
    Tune(TuneArguments),
    /// Write runs as one HTML file with tables, charts, and the commands that repeat them
    Report(ReportArguments),
    /// Calculate what a disk's queue gains, what a flash drive's spare gives, an interleave factor,
    /// or the time to format a drive
    Calculate(CalculateArguments),
    /// List suites, programs, runs, parameters, or catalogue entries
    List(ListArguments),
    /// Show a stored run, a suite, a program, or a catalogue entry
    Show(ShowArguments),
    /// Write runs to a file, which other commands accept in place of a run
    Export(ExportArguments),
    /// Remove runs from the store
    Delete(DeleteArguments),
    /// Remove what killed runs left
    Clean(CleanArguments),
    /// Print a script that completes commands, options and values in a shell
    Completions(CompletionsArguments),
    /// Print the manual page of diskperf, or of one command
    Man(ManArguments),
}

/// The modelled system beside this machine's storage: a drive of today.
const NVME_MODEL: &str = "bare-nvme-tlc";

/// The modelled system of programs and of settings that ask for a kernel and a file system.
const SYSTEM_MODEL: &str = "vax780-sc780-eagle";

#[derive(Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) asked: ExperimentArguments,
    /// Take the programs, their sizes, settings, cache mode and seed from a stored run, and its
    /// targets without --on; --set adds to its settings
    #[arg(long, value_name = "RUN", conflicts_with_all = ["what", "suite", "fio_arguments", "drives", "catalogue", "together", "other", "cache", "direct", "drop_caches", "fresh", "no_budget", "no_latency", "seed"])]
    pub(crate) like: Option<String>,
    /// Repetitions of each program [default: those of the suite]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_negative_numbers = true)]
    pub(crate) runs: Option<u32>,
    /// Repeat each program until its last rounds are steady: ROUNDS,EXCURSION,SLOPE
    /// [default without RULE: 5,20%,10%, as SNIA has it]; at most --runs rounds [default: 25]
    #[arg(long, value_name = "RULE", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = SteadyRule::parse)]
    pub(crate) until_steady: Option<SteadyRule>,
    /// Also write a trace of modelled systems for Perfetto (ui.perfetto.dev); for real storage, use
    /// `diskperf explain PATH --perfetto FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Also record what storage is asked for in the timed part of each repetition, as a block trace
    /// for `diskperf trace` and `replay`; a new file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replace the file of --record
    #[arg(long, requires = "record")]
    pub(crate) force: bool,
    /// Print what would be written, where, and how long it would take; run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format; fio-json and fio-json+ are those of fio's results, for programs that keep
    /// requests under way
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RunFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl RunArguments {
    /// What is asked for; `earlier` is the experiment of the run that it is to be like.
    pub(crate) fn experiment(&self, earlier: Option<Experiment>) -> Experiment {
        let asked = Experiment {
            repetitions: self.runs,
            until_steady: self.until_steady,
            ..self.asked.experiment()
        };
        match earlier {
            None => asked,
            Some(earlier) => like(
                earlier,
                Experiment {
                    targets: self.asked.targets.clone(),
                    ..asked
                },
            ),
        }
    }
}

/// Setting that `--verify` stands for.
const VERIFY: &str = "program.verify";

/// What is run, where and how: an experiment.
#[derive(Args)]
pub(crate) struct ExperimentArguments {
    /// A suite (today26, ssd26, ffs83, interleave91, seqread89, vme87) or a program, see `diskperf
    /// list`; or a fio job file, - for standard input, which without --on runs where it says
    /// [default: today26; on modelled systems alone the suite of their day, as ffs83 or today26]
    #[arg(value_name = "WHAT")]
    pub(crate) what: Option<String>,
    /// Alternative to the argument WHAT
    #[arg(long, value_name = "WHAT", conflicts_with = "what")]
    pub(crate) suite: Option<String>,
    /// A directory, a file, a block device, a modelled system (see `diskperf list systems`) or a
    /// FILE.toml that describes one; several targets run one after the other [default: . and,
    /// without WHAT and options of one world, bare-nvme-tlc; with --drives, --catalogue or --set of
    /// a system vax780-sc780-eagle]
    #[arg(long = "on", value_name = "TARGET")]
    pub(crate) targets: Vec<PathBuf>,
    /// Number of drives of a modelled system that run each program at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8), allow_negative_numbers = true)]
    pub(crate) drives: Option<u32>,
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Run on all targets at the same time and report the sums
    #[arg(long)]
    pub(crate) together: bool,
    /// A directory on another file system, for copies from one to the other
    #[arg(long, value_name = "DIR")]
    pub(crate) other: Option<PathBuf>,
    /// Bytes that each program moves, as 8M (8MiB) or 8MB (8000000), and each job of a fio job file
    /// that says no size; auto is about half a second's worth, and 8M on a modelled system. What
    /// random, sequential and other ring programs spread their requests over is program.area_bytes
    #[arg(long, value_name = "BYTES", default_value = "auto", value_parser = size, allow_negative_numbers = true)]
    pub(crate) size: SizeChoice,
    /// An option of fio's command line for a job file, as --fio-arg=--runtime=10: as in fio, a
    /// default for what the file does not say; --section=NAME runs this job alone
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
    /// Read all that programs wrote back at the end of each repetition, and compare it: of every
    /// program that writes blocks (a fio job file says it itself, by verify=)
    #[arg(long)]
    pub(crate) verify: bool,
    /// State of the page cache before each repetition [default: cold; programs that keep requests
    /// in flight go past it where the file system has O_DIRECT]
    #[arg(long, value_enum)]
    pub(crate) cache: Option<Cache>,
    /// Bypass the page cache with O_DIRECT
    #[arg(long, conflicts_with = "cache")]
    pub(crate) direct: bool,
    /// Drop the caches of the whole machine before each repetition (root)
    #[arg(long)]
    pub(crate) drop_caches: bool,
    /// Make a fresh file system for the run: ext4, ext2, xfs or btrfs, as ext4:block_bytes=1024 (root)
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
    /// Do not time single calls: no latencies, and slightly less overhead
    #[arg(long)]
    pub(crate) no_latency: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Name of the run, for use in other commands
    #[arg(long)]
    pub(crate) label: Option<String>,
}

impl ExperimentArguments {
    /// What is asked for, with the repetitions of the protocol.
    pub(crate) fn experiment(&self) -> Experiment {
        Experiment {
            workload: Workload::of(self.what.clone().or_else(|| self.suite.clone())),
            fio_arguments: self.fio_arguments.clone(),
            targets: self.all_targets(),
            together: self.together,
            other: self.other.clone(),
            drives: self.drives,
            catalogue: self.catalogue.clone(),
            settings: self.all_settings(),
            repetitions: None,
            until_steady: None,
            size: self.size,
            cache: cache_mode(self.direct, self.cache),
            through_cache: self.cache.is_some(),
            drop_all_caches: self.drop_caches,
            fresh: self.fresh.clone(),
            destroy_data_on: self.destroy_data_on.clone(),
            ignore_signature: self.ignore_signature,
            no_budget: self.no_budget,
            time_calls: !self.no_latency,
            seed: self.seed,
            label: self.label.clone(),
            ..Experiment::default()
        }
    }

    /// The settings, with those that options of their own stand for.
    fn all_settings(&self) -> Vec<Setting> {
        let verify = self.verify.then(|| Setting::new(VERIFY, "yes"));
        self.settings.iter().cloned().chain(verify).collect()
    }

    /// The targets; without any, what the other options are about.
    fn all_targets(&self) -> Vec<PathBuf> {
        if !self.targets.is_empty() {
            return self.targets.clone();
        }
        // A job says itself where its files are.
        if self
            .what
            .as_deref()
            .is_some_and(|what| what == "-" || job_file::is_named(what))
        {
            return Vec::new();
        }
        let modelled = self.drives.is_some()
            || self.catalogue.is_some()
            || self.settings.iter().any(Component::is_set_by);
        let real = self.together
            || self.direct
            || self.drop_caches
            || self.other.is_some()
            || self.fresh.is_some()
            || !self.destroy_data_on.is_empty();
        let chosen = self.what.is_some() || self.suite.is_some();
        // A drive without a computer has nothing else that can be set.
        let of_computer = |setting: &Setting| {
            Component::is_set_by(setting) && !setting.path.starts_with("drive.")
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

/// What counts as a difference, and which one ends a script.
#[derive(Args)]
pub(crate) struct GateArguments {
    /// For scripts: exit with code 0 if no row is slower than the base by more than this, 1 if one
    /// is, 3 if the runs cannot tell, 4 if a row is missing, 2 for other errors
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_over: Option<f64>,
    /// The smallest difference that matters [default: 3%; of stored arms of `ab`, what they were
    /// measured with]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) min_effect: Option<f64>,
}

impl GateArguments {
    /// The smallest change that matters, if the user says it.
    pub(crate) fn limits(&self) -> Option<Limits> {
        self.min_effect.map(|min_effect| Limits { min_effect })
    }
}

#[derive(Args)]
pub(crate) struct ReproduceArguments {
    /// Documents, as `diskperf list published` names them [default: all that have models]; or
    /// real-drives, with --data
    #[arg(value_name = "PUBLISHED")]
    pub(crate) documents: Vec<String>,
    /// For real-drives: a directory with measured drives, NAME.trace and NAME.diskspecs of each
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Only cells whose id matches this pattern: * matches any characters, ? one character
    #[arg(long, value_name = "GLOB")]
    pub(crate) cell: Option<String>,
    /// Only cells of this table, as T2
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

/// Options of all commands that run many modelled machines.
#[derive(Args)]
pub(crate) struct MachinesArguments {
    /// Directory with catalogue entries, which override those of the catalogue
    #[arg(long, value_name = "DIR")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Machines that run at the same time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), allow_negative_numbers = true)]
    pub(crate) threads: Option<u32>,
    /// Remove the limits on events, virtual time and memory of each machine
    #[arg(long)]
    pub(crate) no_budget: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1983, value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: OutputFormat,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl MachinesArguments {
    /// Machines at a time.
    pub(crate) fn threads(&self) -> usize {
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
    /// The target; the argument TARGET is then the suite or program
    #[arg(long, value_name = "TARGET")]
    pub(crate) on: Option<String>,
    /// A parameter and its values: KEY=LOW..HIGH, KEY=LOW..HIGH:STEP or KEY=X,Y,Z, as
    /// filesystem.rotdelay_ms=0..10:0.5; several give every combination
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub(crate) over: Vec<String>,
    /// Goal of the search: KB/s, the 99th percentile of the response time, or the processor time
    /// per MiB
    #[arg(long, value_enum, default_value = "throughput")]
    pub(crate) goal: TuneGoal,
    /// Most combinations to run; coordinate descent chooses among more
    #[arg(long, value_name = "N", default_value_t = BUDGET, value_parser = clap::value_parser!(u64).range(1..=1_000_000), allow_negative_numbers = true)]
    pub(crate) budget: u64,
    /// Seeds to compare the best settings with today's, each at 4 spindle phases of a disk; 0 for none
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000), allow_negative_numbers = true)]
    pub(crate) seeds: u32,
    /// Run all points again, also those in the store
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Set a parameter of the programs (program.KEY=VALUE) or of the system for all runs
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Setting::parse)]
    pub(crate) settings: Vec<Setting>,
    /// Number of drives that run the programs at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8), allow_negative_numbers = true)]
    pub(crate) drives: Option<u32>,
    /// Bytes that each program moves on each drive, as 8M, rounded down to whole calls; auto is 2M on
    /// a modelled system, as much as in `run` where its drives have a cache, and half a second's
    /// worth on real storage
    #[arg(long, value_name = "SIZE", default_value = "auto", value_parser = size, allow_negative_numbers = true)]
    pub(crate) size: SizeChoice,
    /// For a path: most repetitions of each point, after a round that does not count; the search
    /// ends before when all points are decided
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=1000), allow_negative_numbers = true)]
    pub(crate) runs: u32,
    /// Also write the result as an HTML page to this file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// For a path, as root: allow changes of device.read_ahead_kb and device.scheduler of its disk,
    /// which are restored at the end
    #[arg(long)]
    pub(crate) change_device_settings: bool,
    #[command(flatten)]
    pub(crate) machines: MachinesArguments,
}

impl TuneArguments {
    /// What is the same in every run of a search.
    pub(crate) fn experiment(&self, workload: Workload) -> Experiment {
        Experiment {
            workload,
            settings: self.settings.clone(),
            drives: self.drives,
            size: self.size,
            no_budget: self.machines.no_budget,
            seed: self.machines.seed,
            ..Experiment::default()
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TuneGoal {
    /// Highest KB/s
    Throughput,
    /// Lowest 99th percentile of the response time
    Latency,
    /// Least processor time per MiB
    Cpu,
}

impl From<TuneGoal> for Goal {
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
    /// The interleave factor that fits a service time: John Bass's calculation of 1984
    ///
    /// After a sector is read, the processor works for the service time before it can request the
    /// next one. Give the measured parts of that time, and the interrupts that extend it.
    Interleave(InterleaveArguments),
    /// What the order of service gains at the arm of a disk, by the depth of its queue
    ///
    /// A closed queue of random reads is served by the modelled arm in every order, and each
    /// depth has the mean service that no order comes below.
    Disk(DiskQueueArguments),
    /// Write amplification, dies at work, buffers that fill and endurance of a flash drive
    ///
    /// Formulas beside the model of the translation layer, which is really written at random until
    /// collection is steady. The drive is one of 1.92 TB for data centres if nothing else is given.
    Flash(FlashArguments),
    /// The time that a modelled controller takes to format and verify a drive, track by track
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
    /// Of a run: IOPS, MB/s and the 99th percentile of the response, interval by interval
    #[arg(long)]
    pub(crate) series: bool,
    /// Of a drive of the catalogue: what it does, beside what its data sheet and theory lead one to expect
    #[arg(long, conflicts_with = "series")]
    pub(crate) expected: bool,
    /// Output format; fio-json and fio-json+, of runs, are those of fio's results
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RunFormat,
}

#[derive(Args)]
pub(crate) struct ExportArguments {
    /// Runs: ids, unique prefixes, labels, or `last`
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub(crate) runs: Vec<String>,
    /// Output file; - is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Args)]
pub(crate) struct DeleteArguments {
    /// Runs: ids, unique prefixes, labels that one run has, or `last`
    #[arg(value_name = "RUN", required = true, num_args = 1..)]
    pub(crate) runs: Vec<String>,
    /// Also runs that never ended, since their process was killed
    #[arg(long)]
    pub(crate) killed: bool,
    /// Print what would be removed, and remove nothing
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
    /// Also look in this directory, besides those that the store lists
    #[arg(long = "on", value_name = "DIR", default_value = ".")]
    pub(crate) directories: Vec<PathBuf>,
    /// Print what would be removed or restored, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Forget directories on file systems that are not mounted and will not be
    #[arg(long)]
    pub(crate) forget_unmounted: bool,
}

#[derive(Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Args)]
pub(crate) struct ManArguments {
    /// A command, as `run` or `calculate interleave` [default: diskperf itself]
    #[arg(value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Cache {
    /// Synced and dropped
    Cold,
    /// Read in, and checked to be resident
    Warm,
}

/// What is asked of the page cache.
fn cache_mode(direct: bool, cache: Option<Cache>) -> CacheMode {
    match (direct, cache) {
        (true, _) => CacheMode::Direct,
        (false, None | Some(Cache::Cold)) => CacheMode::Cold,
        (false, Some(Cache::Warm)) => CacheMode::Warm,
    }
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

fn parse_size(text: &str) -> Result<SizeChoice, String> {
    if text == "auto" {
        return Ok(SizeChoice::Auto);
    }
    parse_size(text)
        .map(SizeChoice::Bytes)
        .map_err(|error| format!("{error}, or auto"))
}

/// A share from text such as `5%` or `5`. A fraction is what somebody else calls
/// a percentage, and is a hundredth of what was meant.
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
