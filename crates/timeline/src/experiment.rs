//! What a run is asked to do: the one description from which it is planned, by which
//! it is kept, and from which it is made again.

use crate::protocol::{CacheMode, Protocol, SteadyRule};
use crate::replay::TraceReplay;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Programs, targets, and how the programs are run there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Experiment {
    /// The programs.
    pub workload: Workload,
    /// Words of fio's command line for a job file that is still to be read: `--size=1g`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fio_arguments: Vec<String>,
    /// Directories, files, block devices, and modelled systems: names of the
    /// catalogue and files that end in `.toml`.
    pub targets: Vec<PathBuf>,
    /// All targets at the same time, as one run.
    pub together: bool,
    /// A directory on another file system, for copies.
    pub other: Option<PathBuf>,
    /// How many drives of a modelled system run each program at once.
    pub drives: Option<u32>,
    /// A folder laid over the catalogue.
    pub catalogue: Option<PathBuf>,
    /// Parameters of programs and of modelled systems.
    pub settings: Vec<Setting>,
    /// Repetitions in place of the protocol's.
    pub repetitions: Option<u32>,
    /// Repeat each program until it is steady by this rule, at most as often as
    /// `repetitions` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_steady: Option<SteadyRule>,
    /// Bytes that each program moves.
    pub size: SizeChoice,
    /// Bytes that single programs move, by their titles, where no size was chosen: those
    /// of an earlier run, so that the two can be compared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, u64>,
    /// What is asked of the page cache.
    pub cache: CacheMode,
    /// Whether programs go through the page cache that would go past it where they can.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub through_cache: bool,
    /// Drop the caches of the whole machine before each repetition.
    pub drop_all_caches: bool,
    /// Fresh file systems, as `ext4:block_bytes=1024`.
    pub fresh: Option<String>,
    /// Devices that may be overwritten.
    pub destroy_data_on: Vec<PathBuf>,
    /// Also where they carry a signature.
    pub ignore_signature: bool,
    /// Whether a modelled machine may take all the events, virtual time and memory
    /// that it needs.
    pub no_budget: bool,
    /// Whether each call is timed.
    pub time_calls: bool,
    /// The seed of every random choice.
    pub seed: u64,
    /// The user's own name for the run.
    pub label: Option<String>,
}

impl Default for Experiment {
    /// The usual workload with cold caches, each call timed.
    fn default() -> Self {
        Self {
            workload: Workload::Usual,
            fio_arguments: Vec::new(),
            targets: Vec::new(),
            together: false,
            other: None,
            drives: None,
            catalogue: None,
            settings: Vec::new(),
            repetitions: None,
            until_steady: None,
            size: SizeChoice::Auto,
            sizes: BTreeMap::new(),
            cache: CacheMode::Cold,
            through_cache: false,
            drop_all_caches: false,
            fresh: None,
            destroy_data_on: Vec::new(),
            ignore_signature: false,
            no_budget: false,
            time_calls: true,
            seed: 1983,
            label: None,
        }
    }
}

impl Experiment {
    /// As a run keeps it, if JSON can hold it: a path need not be UTF-8.
    pub fn kept(&self) -> Option<Self> {
        let paths = self.targets.iter().chain(&self.destroy_data_on);
        let traces = match &self.workload {
            Workload::Replay(replay) => &replay.files[..],
            _ => &[],
        };
        let paths = paths.chain(traces);
        let mut paths = paths.chain(&self.other).chain(&self.catalogue);
        paths
            .all(|path| path.to_str().is_some())
            .then(|| self.clone())
    }
}

/// Which programs run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// The usual suite of the target.
    Usual,
    /// The suite or program of this name.
    Named(String),
    /// These steps, whatever suites hold today.
    Steps {
        /// The suite's name, or the program's.
        name: String,
        /// How each step is repeated.
        protocol: Protocol,
        /// In the order of running.
        steps: Vec<StepValues>,
    },
    /// The jobs of a fio job file.
    JobFile(JobText),
    /// The requests of a block trace.
    Replay(Box<TraceReplay>),
}

impl Workload {
    /// The suite or program of a name; the usual suite without one.
    pub fn of(name: Option<String>) -> Self {
        name.map_or(Self::Usual, Self::Named)
    }

    /// The name of its suite or program; the usual suite depends on the target.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Usual => None,
            Self::Named(name) | Self::Steps { name, .. } => Some(name),
            Self::JobFile(file) => Some(&file.name),
            Self::Replay(replay) => Some(replay.name()),
        }
    }
}

/// A fio job file, and all that its meaning hangs on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobText {
    /// What it is called, and where files that it includes are looked for.
    pub name: String,
    /// What it says.
    pub text: String,
    /// Words of fio's command line beside it, as `--size=1g`: defaults for what it does not
    /// say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The files that it includes, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub includes: BTreeMap<String, String>,
    /// The variables of the environment that it names, as far as they are set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// `$pagesize`, in bytes; 0 where nothing asks for it.
    pub page_bytes: u64,
    /// `$mb_memory`: the machine's memory, in MiB; 0 where nothing asks for it.
    pub memory_mib: u64,
    /// `$ncpus`; 0 where nothing asks for it.
    pub processors: u64,
    /// How its jobs are repeated, where that is settled: in a run that was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

/// One step of a suite, as values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepValues {
    /// The program's name.
    pub program: String,
    /// Its parameters, all of them, in their canonical text.
    pub parameters: BTreeMap<String, String>,
    /// The parameters that tell it from its siblings.
    pub distinguishing: Vec<String>,
    /// Its place in the table.
    pub row: u32,
    /// Programs of one group move the same number of bytes.
    pub size_group: u32,
    /// How it is repeated, where that is not as the others are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// How often it moves its whole area, where that and not a size decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area_times: Option<u32>,
    /// Bytes that it moves, where these are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// What runs at the same time as it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<StepValues>,
}

/// How many bytes a program moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeChoice {
    /// As many as take about half a second, found by a pilot; on a modelled system
    /// 1983's.
    Auto,
    /// This many.
    Bytes(u64),
}

/// One change to a program or to a modelled system: `program.call_bytes=512` and
/// `filesystem.block_bytes=4096` change a parameter, `drive=capricorn` puts another
/// entry of the catalogue in a component's place, `drive.2=capricorn` in one drive's,
/// and `drives=1` changes how many are configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Setting {
    /// The path: `filesystem.block_bytes`.
    pub path: String,
    /// The value as it was written: `4096`.
    pub text: String,
}

/// A text that is no setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` sets nothing: write PATH=VALUE, as in program.call_bytes=512 or drive=capricorn")]
pub struct SettingError(pub String);

impl Setting {
    /// A setting of a path to a value, as TOML or as a bare word.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// A setting from `PATH=VALUE`.
    ///
    /// # Errors
    ///
    /// No `=`, or an empty path or value.
    pub fn parse(argument: &str) -> Result<Self, SettingError> {
        let (path, text) = argument.split_once('=').unwrap_or((argument, ""));
        let (path, text) = (path.trim(), text.trim());
        if text.is_empty() || path.split('.').any(|part| part.trim().is_empty()) {
            return Err(SettingError(argument.to_owned()));
        }
        Ok(Self::new(path, text))
    }

    /// The parameter of programs that it sets, if it sets one.
    pub fn of_program(&self) -> Option<&str> {
        self.path.strip_prefix("program.")
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}={}", self.path, self.text)
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        setting.to_string()
    }
}

impl TryFrom<String> for Setting {
    type Error = SettingError;

    fn try_from(text: String) -> Result<Self, SettingError> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_needs_a_path_and_a_value() {
        for text in ["", "=", "a.b", "=3", "a.b=", "a..b=3", ".a=3"] {
            assert!(Setting::parse(text).is_err(), "{text}");
        }
        // The first `=` counts.
        assert_eq!(Setting::parse("a.b = c=d"), Ok(Setting::new("a.b", "c=d")));
    }

    #[test]
    fn what_json_holds_is_read_back() {
        let experiment = Experiment {
            settings: vec![Setting::new("drive.zones", "[[1, 2]]")],
            workload: Workload::Named("ffs83".to_owned()),
            size: SizeChoice::Bytes(u64::MAX),
            targets: vec!["vax780-sc780-eagle".into()],
            ..Experiment::default()
        };
        let text = serde_json::to_string(&experiment).unwrap();
        assert_eq!(
            serde_json::from_str::<Experiment>(&text).unwrap(),
            experiment
        );
        // What a later version adds has a value for what an earlier one wrote.
        let nothing = serde_json::from_str::<Experiment>("{}").unwrap();
        assert_eq!(nothing, Experiment::default());
        assert!(serde_json::from_str::<Setting>("\"drive\"").is_err());
    }
}
