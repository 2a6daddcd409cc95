//! Description of a run: the input for planning it, the form in which a stored run keeps it, and
//! the source for repeating it.

use crate::protocol::{CacheMode, Protocol, SteadyRule};
use crate::replay::TraceReplay;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Experiment: the programs of a run, the targets, and the way the programs run there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Experiment {
    /// Programs that the experiment runs.
    pub workload: Workload,
    /// Options of fio's command line, such as `--size=1g`, for a job file that has still to be
    /// read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fio_arguments: Vec<String>,
    /// Targets of the run: directories, files, block devices and modelled systems. A modelled
    /// system is the name of a catalogue entry or a file that ends in `.toml`.
    pub targets: Vec<PathBuf>,
    /// Whether all targets run at the same time, as one run.
    #[serde(rename = "together")]
    pub runs_targets_together: bool,
    /// Directory on another file system, the destination of copy programs.
    #[serde(rename = "other")]
    pub second_target: Option<PathBuf>,
    /// Number of drives of a modelled system that run each program at the same time.
    #[serde(rename = "drives")]
    pub drive_count: Option<u32>,
    /// Folder whose files replace or extend those of the built-in catalogue.
    #[serde(rename = "catalogue")]
    pub catalogue_path: Option<PathBuf>,
    /// Parameter changes for programs and modelled systems.
    pub settings: Vec<Setting>,
    /// Number of repetitions, in place of the protocol's.
    #[serde(rename = "repetitions")]
    pub repetition_count: Option<u32>,
    /// Rule for steady state. Each program repeats until it is steady, at most `repetitions` times.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "until_steady")]
    pub steady_rule: Option<SteadyRule>,
    /// Bytes that each program moves.
    #[serde(rename = "size")]
    pub size_choice: SizeChoice,
    /// Bytes that single programs move, by their titles, where the user chose no size. An earlier
    /// run supplies the values, so that the two runs can be compared.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "sizes")]
    pub size_by_program: BTreeMap<String, u64>,
    /// State of the page cache before each repetition.
    #[serde(rename = "cache")]
    pub cache_mode: CacheMode,
    /// Whether programs use the page cache even if they could bypass it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "through_cache")]
    pub passes_cache: bool,
    /// Whether the caches of the whole machine are dropped before each repetition.
    #[serde(rename = "drop_all_caches")]
    pub drops_all_caches: bool,
    /// Specification of a fresh file system for each program, such as `ext4:block_bytes=1024`.
    #[serde(rename = "fresh")]
    pub fresh_filesystem: Option<String>,
    /// Devices that the run may overwrite.
    pub destroy_data_on: Vec<PathBuf>,
    /// Whether the run may overwrite devices that carry a file-system or partition signature.
    #[serde(rename = "ignore_signature")]
    pub ignores_signature: bool,
    /// Whether a modelled machine may use any number of events and any amount of virtual time and
    /// memory.
    #[serde(rename = "no_budget")]
    pub has_no_budget: bool,
    /// Whether probes tell caps on the rate from slow devices, after the programs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub finds_caps: bool,
    /// Type and size of the cloud volume that the targets are, such as `gp2:100GiB`. Its limits are
    /// compared with the caps that are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Whether each call of a program is timed.
    #[serde(rename = "time_calls")]
    pub times_calls: bool,
    /// Seed of every random choice in the run.
    pub seed: u64,
    /// Label that the user gives the run.
    pub label: Option<String>,
}

impl Default for Experiment {
    /// Returns an experiment that runs the usual suite with cold caches and times each call.
    fn default() -> Self {
        Self {
            workload: Workload::DefaultSuite,
            fio_arguments: Vec::new(),
            targets: Vec::new(),
            runs_targets_together: false,
            second_target: None,
            drive_count: None,
            catalogue_path: None,
            settings: Vec::new(),
            repetition_count: None,
            steady_rule: None,
            size_choice: SizeChoice::AutomaticSize,
            size_by_program: BTreeMap::new(),
            cache_mode: CacheMode::Cold,
            passes_cache: false,
            drops_all_caches: false,
            fresh_filesystem: None,
            destroy_data_on: Vec::new(),
            ignores_signature: false,
            has_no_budget: false,
            finds_caps: false,
            volume: None,
            times_calls: true,
            seed: 1983,
            label: None,
        }
    }
}

impl Experiment {
    /// Returns the experiment as a run stores it; `None` if a path is not UTF-8, since JSON cannot
    /// hold it.
    pub fn to_stored(&self) -> Option<Self> {
        let paths = self.targets.iter().chain(&self.destroy_data_on);
        let traces = match &self.workload {
            Workload::Replay(replay) => &replay.files[..],
            _ => &[],
        };
        let paths = paths.chain(traces);
        let mut paths = paths.chain(&self.second_target).chain(&self.catalogue_path);
        paths
            .all(|path| path.to_str().is_some())
            .then(|| self.clone())
    }
}

/// Choice of the programs that a run executes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Usual suite of the target.
    #[serde(rename = "usual")]
    DefaultSuite,
    /// Suite or program with the given name.
    #[serde(rename = "named")]
    NamedSuite(String),
    /// List of steps, independent of what the suites contain today.
    Steps {
        /// Name of the suite or program that the steps came from.
        name: String,
        /// Repetition protocol for every step without its own.
        protocol: Protocol,
        /// Steps in the order in which they run.
        steps: Vec<StepValues>,
    },
    /// Jobs of a fio job file.
    JobFile(JobFileText),
    /// Replay of the requests of a block trace.
    Replay(Box<TraceReplay>),
}

impl Workload {
    /// Returns the workload for the named suite or program; the usual suite if there is no name.
    pub fn from_suite_name(name: Option<String>) -> Self {
        name.map_or(Self::DefaultSuite, Self::NamedSuite)
    }

    /// Returns the name of the suite, program, job file or trace; `None` for the usual suite, which
    /// depends on the target.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::DefaultSuite => None,
            Self::NamedSuite(name) | Self::Steps { name, .. } => Some(name),
            Self::JobFile(file) => Some(&file.name),
            Self::Replay(replay) => Some(replay.name()),
        }
    }
}

/// Text of a fio job file together with everything that its meaning depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobFileText {
    /// Path of the job file. Included files are looked up relative to it.
    pub name: String,
    /// Contents of the job file.
    #[serde(rename = "text")]
    pub file_text: String,
    /// Options of fio's command line given with the job file, such as `--size=1g`. They are
    /// defaults for options that the file leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Contents of included files, by the names that the job file uses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "includes")]
    pub included_files: BTreeMap<String, String>,
    /// Values of the environment variables that the job file names, as far as they are set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "variables")]
    pub environment_variables: BTreeMap<String, String>,
    /// Value of `$pagesize` in bytes; 0 if the job file does not use it.
    pub page_bytes: u64,
    /// Value of `$mb_memory`, the machine's memory in MiB; 0 if the job file does not use it.
    pub memory_mib: u64,
    /// Value of `$ncpus`, the number of CPUs; 0 if the job file does not use it.
    #[serde(rename = "processors")]
    pub processor_count: u64,
    /// Repetition protocol of the jobs, once a planned run has settled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

/// One step of a suite: a program with the values of all its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepValues {
    /// Name of the program that the step runs.
    pub program: String,
    /// All parameters of the program, as canonical text by name.
    pub parameters: BTreeMap<String, String>,
    /// Names of the parameters that distinguish this step from the other steps of its program.
    pub distinguishing: Vec<String>,
    /// Row of the step in the suite's result table.
    #[serde(rename = "row")]
    pub table_row: u32,
    /// Group of steps that move the same number of bytes.
    pub size_group: u32,
    /// Repetition protocol of this step, if it differs from that of the other steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Number of passes over the whole area, if that determines the amount of data in place of a
    /// size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "area_times")]
    pub area_pass_count: Option<u32>,
    /// Bytes that the program moves, if the step has a size of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Steps that run at the same time as this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "beside")]
    pub parallel_steps: Vec<StepValues>,
}

/// Choice of the number of bytes that a program moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeChoice {
    /// Size found automatically. On real storage a pilot run finds the size that takes about half a
    /// second; a modelled system uses the sizes of 1983.
    #[serde(rename = "auto")]
    AutomaticSize,
    /// Fixed number of bytes that each program moves.
    #[serde(rename = "bytes")]
    SizeBytes(u64),
}

/// Change to a parameter or component of a program or modelled system. `program.call_bytes=512` and
/// `filesystem.block_bytes=4096` change a parameter. `drive=capricorn` replaces a component by
/// another catalogue entry, `drive.2=capricorn` that of a single drive. `drives=1` changes the
/// number of configured drives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Setting {
    /// Path of the parameter or component: `filesystem.block_bytes`.
    pub path: String,
    /// New value as the user wrote it: `4096`.
    #[serde(rename = "text")]
    pub value_text: String,
}

/// Error for a text that is not a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a setting: write PATH=VALUE, as in program.call_bytes=512 or drive=capricorn"
)]
pub struct SettingError(pub String);

impl Setting {
    /// Returns a setting that assigns a value, TOML or a bare word, to a path.
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            value_text: text.to_owned(),
        }
    }

    /// Parses a setting from `PATH=VALUE`.
    ///
    /// # Errors
    ///
    /// The text has no `=`, or an empty path or value.
    pub fn parse(argument: &str) -> Result<Self, SettingError> {
        let (path, text) = argument.split_once('=').unwrap_or((argument, ""));
        let (path, text) = (path.trim(), text.trim());
        if text.is_empty() || path.split('.').any(|part| part.trim().is_empty()) {
            return Err(SettingError(argument.to_owned()));
        }
        Ok(Self::new(path, text))
    }

    /// Returns the name of the program parameter that the setting changes; `None` if it changes
    /// something else.
    pub fn program_parameter_name(&self) -> Option<&str> {
        self.path.strip_prefix("program.")
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}={}", self.path, self.value_text)
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
            workload: Workload::NamedSuite("ffs83".to_owned()),
            size_choice: SizeChoice::SizeBytes(u64::MAX),
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
