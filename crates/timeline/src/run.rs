//! Run: one suite or program on one target, with everything needed to repeat and judge it.

use crate::FlashTraffic;
use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::protocol::{CacheMode, Protocol};
use crate::repetition::{ControllerCache, MediaCache, Repetition, WorkerFailure};
use crate::title::ResultTitle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kind of system that a run measured: real or modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasuredWorld {
    /// Real storage on the host.
    Host,
    /// Modelled computer in virtual time.
    Model,
}

/// State of a run: its progress and the way that it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "error")]
pub enum RunState {
    /// Running, or killed before the run could record its end.
    Running,
    /// Finished: all programs of the run were executed.
    Finished,
    /// Interrupted by the user before the last program.
    Interrupted,
    /// Failed with an error; the text is the error message.
    Failed(String),
}

/// Cost of the measurement itself, measured on the same machine right before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Nanoseconds of one timed read of `/dev/null`, the lower bound of the time of any call.
    pub null_call_ns: f64,
    /// Nanoseconds that timing adds to one call; part of `null_call_ns`.
    pub timing_ns: f64,
}

/// Facts that, with plan and seed, reproduce a modelled run to the last byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInformation {
    /// Version of the model, from the release and the sources that it was built from. Runs of
    /// different versions are different runs.
    pub model_version: String,
    /// Hash of plan, seed, catalogue text and model version. Runs with the same fingerprint are the
    /// same run.
    pub fingerprint: String,
    /// Settings that changed the modelled system, each as `PATH=VALUE`.
    pub settings: Vec<String>,
    /// Number of configured drives, whether or not a program runs on them.
    pub configured_drives: u32,
    /// Rotation angle of each drive relative to the drive before it at the start, in units of 2^-32
    /// revolution.
    #[serde(rename = "phase")]
    pub drive_phase: u32,
    /// Catalogue files that describe the system: text by file name.
    pub catalogue: BTreeMap<String, String>,
}

/// Arm (side) of an A/B measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonVariant {
    /// Arm A of an A/B measurement, the baseline.
    A,
    /// Arm B of an A/B measurement, the variant that is compared with A.
    B,
}

/// Relation of a run to an A/B measurement. Each block of the measurement had one repetition of
/// either arm, in random order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InterleavedRun {
    /// Id of the run with the other arm.
    #[serde(rename = "partner")]
    pub partner_run_id: String,
    /// Arm of the A/B measurement to which this run belongs.
    #[serde(rename = "arm")]
    pub variant: ComparisonVariant,
    /// Seed of the random order of the arms.
    pub seed: u64,
    /// Whether the files of the arms lie in different places, so that the place may cause a
    /// difference.
    #[serde(rename = "places_differ")]
    pub targets_differ: bool,
    /// Smallest relevant change, as a share, which decided when the measurement ended. Absent in
    /// runs of early versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "min_effect")]
    pub effect_min: Option<f64>,
    /// Shell command that ran before each repetition of this arm, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "before")]
    pub ordered_after: Option<String>,
}

/// Prefix of the note on the fresh file system that was created for a result.
pub const FRESH_NOTE_PREFIX: &str = "a fresh ";

/// Results of one program within a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// Name of the program, such as `write_8192`.
    pub program: String,
    /// All parameters of the program, as canonical text by name.
    pub parameters: BTreeMap<String, String>,
    /// Names of the parameters that a table must show: those that distinguish this result from
    /// others of the suite, and those that the user set.
    pub distinguishing: Vec<String>,
    /// Row of the result in the suite's table, which may differ from the order of running.
    #[serde(rename = "row")]
    pub table_row: u32,
    /// Number of drives that ran the program at the same time.
    #[serde(rename = "drives")]
    pub drive_count: u32,
    /// Type and block size of the file system, such as `ext4/4096`, or the name of a device.
    #[serde(rename = "filesystem")]
    pub filesystem_type: String,
    /// Bytes that each worker of the program moves.
    pub size_bytes: u64,
    /// State of the page cache for this program. Its layer may require another state than that of
    /// the run.
    #[serde(rename = "cache")]
    pub cache_mode: CacheMode,
    /// Number of repetitions, statistic and stopping rule.
    pub protocol: Protocol,
    /// Every repetition of the program, in the order of running.
    pub repetitions: Vec<Repetition>,
    /// Notes that a reader needs to interpret the figures.
    pub notes: Vec<String>,
}

impl ProgramResult {
    /// Returns the repetitions that count.
    pub fn kept_repetitions(&self) -> impl Iterator<Item = &Repetition> + Clone {
        self.repetitions
            .iter()
            .filter(|repetition| !repetition.is_discarded)
    }

    /// Returns the first error that ended a worker while the others continued.
    pub fn first_failure(&self) -> Option<&WorkerFailure> {
        self.repetitions
            .iter()
            .flat_map(Repetition::worker_failures)
            .next()
    }

    /// Returns the sums of the controllers' cache statistics over the repetitions that count.
    pub fn controller_caches(&self) -> Vec<ControllerCache> {
        ControllerCache::sum(
            self.kept_repetitions()
                .flat_map(|one| &one.controller_caches),
        )
    }

    /// Returns the sums of the media-cache statistics of shingled disks over the repetitions that
    /// count, with the fill level after the last.
    pub fn media_caches(&self) -> Vec<MediaCache> {
        MediaCache::sum(self.kept_repetitions().flat_map(|one| &one.media_caches))
    }

    /// Returns the data that the flash drives programmed over the repetitions that count, by cause.
    pub fn flash(&self) -> Vec<FlashTraffic> {
        FlashTraffic::sum(self.kept_repetitions().flat_map(|one| &one.flash_traffic))
    }

    /// Returns the program's name with its distinguishing parameters: `seqread layer=direct
    /// call_bytes=512`.
    pub fn result_key(&self) -> String {
        self.to_titled().result_key()
    }

    /// Returns the title of the result for people, such as `4 KiB random write, QD32`.
    pub fn display_title(&self) -> String {
        self.to_titled().display_title()
    }

    fn to_titled(&self) -> ResultTitle<'_> {
        ResultTitle {
            program: &self.program,
            parameters: &self.parameters,
            distinguishing: &self.distinguishing,
        }
    }
}

/// Stored run of a suite or program on a target, with its environment and results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Id of the run: ten hexadecimal digits. A unique prefix identifies the run, too.
    #[serde(rename = "id")]
    pub run_id: String,
    /// Version of diskperf that made the run.
    #[serde(rename = "version")]
    pub program_version: String,
    /// Name of the suite, or of the program if it ran alone.
    #[serde(rename = "suite")]
    pub suite_name: String,
    /// Target as the user named it; several targets are joined by ` + `.
    #[serde(rename = "target")]
    pub target_label: String,
    /// Kind of system: real host or model.
    pub world: MeasuredWorld,
    /// Label that the user gave the run.
    #[serde(rename = "label")]
    pub user_label: Option<String>,
    /// Seed of every random choice in the run.
    pub seed: u64,
    /// Start of the run, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// Command line that started the run, word by word, for information only. Empty if there was
    /// none.
    pub command_line: Vec<String>,
    /// Experiment from which the run can be repeated. Runs of version 0.1.0 have only the command
    /// line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// Relation to an A/B measurement; absent for other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<InterleavedRun>,
    /// State of the page cache that the run requested.
    #[serde(rename = "cache")]
    pub cache_mode: CacheMode,
    /// Whether the caches of the whole machine were dropped before each repetition.
    #[serde(rename = "dropped_all_caches")]
    pub drops_all_caches: bool,
    /// State of the run: in progress, or the way that it ended.
    #[serde(flatten)]
    pub state: RunState,
    /// Machine and targets that the run was measured on.
    pub environment: Environment,
    /// Facts that reproduce a modelled run; absent for a run on real storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "model")]
    pub model_information: Option<ModelInformation>,
    /// Cost of the measurement itself. Absent on a model, where measuring takes no time.
    pub overhead: Option<Overhead>,
    /// Results of the programs, in the order of running.
    pub results: Vec<ProgramResult>,
    /// Notes that a reader needs to interpret the whole run.
    pub notes: Vec<String>,
}

impl Run {
    /// Returns the identity of the measured system, independent of the working directory: absolute
    /// paths of real storage, or the name of the modelled system.
    pub fn measured_description(&self) -> String {
        self.join_places(usize::MAX)
    }

    /// Returns the identity of the targets alone, without the second file system that programs copy
    /// to.
    pub fn target_paths(&self) -> String {
        let targets = self.experiment.as_ref().map(|asked| asked.targets.len());
        self.join_places(targets.filter(|count| *count > 0).unwrap_or(usize::MAX))
    }

    fn join_places(&self, count: usize) -> String {
        let places = self.environment.places.iter().take(count);
        let paths: Vec<_> = places.map(|place| place.path.as_str()).collect();
        match self.world {
            MeasuredWorld::Host if !paths.is_empty() => paths.join(" + "),
            MeasuredWorld::Host | MeasuredWorld::Model => self.target_label.clone(),
        }
    }
}
