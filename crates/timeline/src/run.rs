//! A run: one suite or program on one target, with all that is needed to
//! repeat and to judge it.

use crate::FlashTraffic;
use crate::environment::Environment;
use crate::experiment::Experiment;
use crate::protocol::{CacheMode, Protocol};
use crate::repetition::{ControllerCache, MediaCache, Repetition, WorkerFailure};
use crate::title::Titled;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which of the two worlds a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum World {
    /// Real storage.
    Host,
    /// A modelled computer in virtual time.
    Model,
}

/// How far a run came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "state", content = "error")]
pub enum RunState {
    /// Under way, or killed.
    Running,
    /// All its programs ran.
    Finished,
    /// Ended by the user before its last program.
    Interrupted,
    /// Ended by an error, whose text this is.
    Failed(String),
}

/// What the measuring itself costs, measured on the same machine right before
/// the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Nanoseconds of one read of `/dev/null`, timed as every call is: the
    /// least that a call can take.
    pub null_call_ns: f64,
    /// Of these, what the timing of the call adds.
    pub timing_ns: f64,
}

/// What a modelled run is besides its plan and its seed: with these it can be
/// made again, to the last byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// The version of the model: of the release and of the sources that it was
    /// built from. Runs of different versions are different runs.
    pub model_version: String,
    /// A hash of plan, seed, catalogue text and model version: two runs that
    /// share it are one run.
    pub fingerprint: String,
    /// The settings that changed the system, each as `PATH=VALUE`.
    pub settings: Vec<String>,
    /// Drives that are configured, whether or not a program runs on them.
    pub configured_drives: u32,
    /// How far each drive is turned against the one before it at the start, in
    /// parts of 2^32 of a revolution.
    pub phase: u32,
    /// The files of the catalogue that the system consists of, by name.
    pub catalogue: BTreeMap<String, String>,
}

/// One of the two sides of an A/B measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arm {
    /// What B is compared with.
    A,
    /// What is compared with A.
    B,
}

/// What makes a run one arm of an A/B measurement: it was measured in blocks of one
/// repetition of each arm, in an order that a coin chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interleaved {
    /// The id of the run that is the other arm.
    pub partner: String,
    /// Which of the two this run is.
    pub arm: Arm,
    /// The seed of the coins.
    pub seed: u64,
    /// Whether the arms' files lie in different places, so that a difference may be
    /// that of the places.
    pub places_differ: bool,
    /// The smallest change that mattered, as a share, which decided when the blocks
    /// ended. Runs of early versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_effect: Option<f64>,
    /// Shell command that ran before each repetition of this arm, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Beginning of the note of a result about the file system that was made for it.
pub const FRESH_NOTE: &str = "a fresh ";

/// One program's results within a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// The program's name, as `write_8192`.
    pub program: String,
    /// Its parameters, all of them, in their canonical text.
    pub parameters: BTreeMap<String, String>,
    /// The parameters that tell this result from its siblings in the suite,
    /// and those that the user set: what a table must show.
    pub distinguishing: Vec<String>,
    /// Its place in the suite's table, which need not be the order of running.
    pub row: u32,
    /// Drives that ran the program at once.
    pub drives: u32,
    /// The file system's kind and block size, as `ext4/4096`; a device's name.
    pub filesystem: String,
    /// Bytes that each worker's program moves.
    pub size_bytes: u64,
    /// What was asked of the page cache for this program; its layer may ask
    /// for something else than the run does.
    pub cache: CacheMode,
    /// Repetition, statistic and stopping rule.
    pub protocol: Protocol,
    /// Every repetition, in the order of running.
    pub repetitions: Vec<Repetition>,
    /// What a reader must know about these figures.
    pub notes: Vec<String>,
}

impl ProgramResult {
    /// The repetitions that count.
    pub fn kept(&self) -> impl Iterator<Item = &Repetition> + Clone {
        self.repetitions
            .iter()
            .filter(|repetition| !repetition.discarded)
    }

    /// First error that ended a worker while the others went on.
    pub fn failure(&self) -> Option<&WorkerFailure> {
        self.repetitions
            .iter()
            .flat_map(Repetition::failures)
            .next()
    }

    /// What controllers' caches did in the repetitions that count, added up.
    pub fn controller_caches(&self) -> Vec<ControllerCache> {
        ControllerCache::sum(self.kept().flat_map(|one| &one.controller_caches))
    }

    /// What media caches of shingled disks did in the repetitions that count, added up, and
    /// how full they were after the last.
    pub fn media_caches(&self) -> Vec<MediaCache> {
        MediaCache::sum(self.kept().flat_map(|one| &one.media_caches))
    }

    /// What flash drives programmed in the repetitions that count, added up.
    pub fn flash(&self) -> Vec<FlashTraffic> {
        FlashTraffic::sum(self.kept().flat_map(|one| &one.flash))
    }

    /// The name with the parameters that tell it from its siblings:
    /// `seqread layer=direct call_bytes=512`.
    pub fn key(&self) -> String {
        self.titled().key()
    }

    /// The name for people: `4 KiB random write, QD32`.
    pub fn title(&self) -> String {
        self.titled().title()
    }

    fn titled(&self) -> Titled<'_> {
        Titled {
            program: &self.program,
            parameters: &self.parameters,
            distinguishing: &self.distinguishing,
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Ten hexadecimal digits; a unique prefix names the run.
    pub id: String,
    /// The version of diskperf that made it.
    pub version: String,
    /// The suite, or the program when it was run by itself.
    pub suite: String,
    /// The target as the user named it; several, joined by ` + `.
    pub target: String,
    /// Host or model.
    pub world: World,
    /// The user's own name for it.
    pub label: Option<String>,
    /// The seed of every random choice.
    pub seed: u64,
    /// When it started, in milliseconds of Unix time.
    pub started_unix_ms: u64,
    /// The command line, word by word, for a reader; empty where there was none.
    pub command_line: Vec<String>,
    /// What it was asked to do, from which it is made again. Runs of 0.1.0 have their
    /// command line alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Experiment>,
    /// What makes it one arm of an A/B measurement, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<Interleaved>,
    /// What was asked of the page cache.
    pub cache: CacheMode,
    /// Whether the whole machine's caches were dropped before each repetition.
    pub dropped_all_caches: bool,
    /// How far it came.
    #[serde(flatten)]
    pub state: RunState,
    /// The machine.
    pub environment: Environment,
    /// Of a modelled run, what it takes to make it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Modelled>,
    /// The cost of measuring; absent on a model, where it is nothing.
    pub overhead: Option<Overhead>,
    /// The programs, in the order of running.
    pub results: Vec<ProgramResult>,
    /// What a reader must know about the whole run.
    pub notes: Vec<String>,
}

impl Run {
    /// What was measured, independent of the directory that the user was in: the
    /// absolute paths of real storage, or the name of the modelled system.
    pub fn measured(&self) -> String {
        self.first_places(usize::MAX)
    }

    /// The same of the targets alone, without the other file system that programs copy to.
    pub fn target_paths(&self) -> String {
        let targets = self.experiment.as_ref().map(|asked| asked.targets.len());
        self.first_places(targets.filter(|count| *count > 0).unwrap_or(usize::MAX))
    }

    fn first_places(&self, count: usize) -> String {
        let places = self.environment.places.iter().take(count);
        let paths: Vec<_> = places.map(|place| place.path.as_str()).collect();
        match self.world {
            World::Host if !paths.is_empty() => paths.join(" + "),
            World::Host | World::Model => self.target.clone(),
        }
    }
}
