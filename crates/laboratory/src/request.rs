//! What the user asked for, as the command line has it.

use diskperf_machine::Budget;
use diskperf_timeline::CacheMode;
use std::path::PathBuf;

/// How many bytes a program moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeChoice {
    /// As many as take about half a second, found by a pilot.
    Auto,
    /// This many.
    Bytes(u64),
}

/// A `diskperf run`.
#[derive(Clone, Debug)]
pub struct Request {
    /// A suite or a program; the target's default suite if absent.
    pub what: Option<String>,
    /// Directories, files, block devices, and modelled systems: names of the
    /// catalogue and files that end in `.toml`.
    pub targets: Vec<PathBuf>,
    /// How many drives of a modelled system run each program at once.
    pub drives: Option<u32>,
    /// A folder laid over the catalogue.
    pub catalogue: Option<PathBuf>,
    /// All targets at the same time, as one run.
    pub together: bool,
    /// A directory on another file system, for copies.
    pub other: Option<PathBuf>,
    /// Bytes that each program moves.
    pub size: SizeChoice,
    /// `--set COMPONENT.KEY=VALUE`, as typed.
    pub settings: Vec<String>,
    /// Repetitions in place of the protocol's.
    pub repetitions: Option<u32>,
    /// What is asked of the page cache.
    pub cache: CacheMode,
    /// Drop the caches of the whole machine before each repetition.
    pub drop_all_caches: bool,
    /// Fresh file systems, in the text of the command line.
    pub fresh: Option<String>,
    /// Devices whose data the user gave up.
    pub destroy_data_on: Vec<PathBuf>,
    /// Also where they carry a signature.
    pub ignore_signature: bool,
    /// What each modelled machine may take.
    pub budget: Budget,
    /// Whether each call is timed.
    pub time_calls: bool,
    /// The seed of every random choice.
    pub seed: u64,
    /// The user's own name for the run.
    pub label: Option<String>,
    /// The command line, word by word.
    pub command_line: Vec<String>,
}

impl Request {
    /// Some targets with nothing else asked for: caches are cold, and nothing
    /// is written but in folders of diskperf's own.
    pub fn of(targets: Vec<PathBuf>, seed: u64) -> Self {
        Self {
            what: None,
            targets,
            drives: None,
            catalogue: None,
            together: false,
            other: None,
            size: SizeChoice::Auto,
            settings: Vec::new(),
            repetitions: None,
            cache: CacheMode::Cold,
            drop_all_caches: false,
            fresh: None,
            destroy_data_on: Vec::new(),
            ignore_signature: false,
            budget: Budget::USUAL,
            time_calls: false,
            seed,
            label: None,
            command_line: Vec::new(),
        }
    }
}
