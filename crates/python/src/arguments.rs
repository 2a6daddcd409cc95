//! Conversion of Python's keywords to requests of the laboratory.

use crate::errors::{request_exception, to_exception};
use crate::run::Run;
use diskperf_laboratory::ab::{apply_earlier, repeat_experiment};
use diskperf_laboratory::{Experiment, SizeChoice, Workload};
use diskperf_models::model::parse_settings;
use diskperf_timeline::units::parse_size;
use diskperf_timeline::{
    CacheMode, ReplayAddresses, ReplayPace, SteadyRule, TraceReading, TraceReplay,
};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Largest number of drives of a system, and of repetitions that the command line accepts.
pub(crate) const DRIVES_MAX: u32 = 8;
pub(crate) const REPETITIONS_MAX: u32 = 100_000;

/// Keywords of a run, as `python/diskperf/_run.py` collects them, or those shared by all points of
/// a study, as `_points.py` does.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunArguments {
    what: Option<String>,
    #[pyo3(default)]
    fio_args: Vec<String>,
    targets: Vec<PathBuf>,
    settings: Vec<String>,
    drives: Option<u32>,
    #[pyo3(default)]
    catalogue: Option<PathBuf>,
    #[pyo3(default)]
    together: bool,
    #[pyo3(default)]
    other: Option<PathBuf>,
    size: Option<SizeArgument>,
    repetitions: Option<u32>,
    #[pyo3(default)]
    until_steady: Option<String>,
    cache: Option<String>,
    #[pyo3(default)]
    drop_caches: bool,
    #[pyo3(default)]
    fresh: Option<String>,
    #[pyo3(default)]
    destroy_data_on: Vec<PathBuf>,
    #[pyo3(default)]
    ignore_signature: bool,
    time_calls: bool,
    #[pyo3(default)]
    seed: u64,
    #[pyo3(default)]
    label: Option<String>,
    no_budget: bool,
    #[pyo3(default)]
    find_limits: bool,
    #[pyo3(default)]
    volume: Option<String>,
    /// Trace to replay in place of a suite or a program.
    #[pyo3(default)]
    replay: Option<ReplayArguments>,
    /// Earlier run whose experiment is repeated.
    #[pyo3(default)]
    like: Option<Py<Run>>,
}

/// Keywords of a replay, as `python/diskperf/_replay.py` collects them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ReplayArguments {
    files: Vec<PathBuf>,
    form: Option<String>,
    columns: Option<String>,
    time_unit: Option<String>,
    partial: bool,
    window_s: Option<(f64, f64)>,
    part: Option<u32>,
    device: Option<String>,
    speed: Option<f64>,
    depth: Option<u32>,
    think: bool,
    slots: Option<u32>,
    scale_addresses: bool,
    scale_to: Option<SizeArgument>,
    round_to_sectors: Option<u64>,
}

impl ReplayArguments {
    /// # Errors
    ///
    /// An address size that does not parse.
    fn into_workload(self, py: Python<'_>) -> PyResult<Workload> {
        let ns = |seconds: f64| (seconds.max(0.0) * 1e9) as u64;
        Ok(Workload::Replay(Box::new(TraceReplay {
            files: self.files,
            trace_reading: TraceReading {
                form: self.form,
                column_names: self.columns,
                time_unit: self.time_unit,
                allows_partial: self.partial,
                window_ns: self.window_s.map(|(from, to)| (ns(from), ns(to))),
                part_index: self.part,
                device_name: self.device,
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
            replay_addresses: match (self.scale_addresses, self.scale_to) {
                (false, _) => ReplayAddresses::Unchanged,
                (true, None) => ReplayAddresses::ScaledToTarget,
                (true, Some(SizeArgument::Bytes(bytes))) => ReplayAddresses::Scaled(bytes),
                (true, Some(SizeArgument::Text(text))) => {
                    let bytes = parse_size(&text);
                    ReplayAddresses::Scaled(bytes.map_err(|error| {
                        request_exception(py, format!("scale_addresses={text:?}: {error}"))
                    })?)
                }
            },
            trace_facts: None,
            protocol: None,
        })))
    }
}

/// Size in bytes, as a number or in the notation of the command line: `8M`, `auto`.
#[derive(FromPyObject)]
pub(crate) enum SizeArgument {
    Bytes(u64),
    Text(String),
}

impl RunArguments {
    /// Converts the keywords to an experiment.
    ///
    /// # Errors
    ///
    /// A keyword with an unknown value.
    pub(crate) fn into_experiment(self, py: Python<'_>) -> PyResult<Experiment> {
        let settings = parse_settings(&self.settings).map_err(|error| to_exception(py, &error))?;
        let asked = Experiment {
            workload: match self.replay {
                Some(replay) => replay.into_workload(py)?,
                None => Workload::from_suite_name(self.what),
            },
            fio_arguments: self.fio_args,
            targets: self.targets,
            drive_count: checked_count(py, "drives", self.drives, DRIVES_MAX)?,
            catalogue_path: self.catalogue,
            runs_targets_together: self.together,
            second_target: self.other,
            size_choice: parse_size_argument(py, self.size)?,
            settings,
            repetition_count: checked_count(py, "repetitions", self.repetitions, REPETITIONS_MAX)?,
            steady_rule: parse_steady_rule(py, self.until_steady)?,
            passes_cache: self
                .cache
                .as_deref()
                .is_some_and(|name| name != CacheMode::Direct.mode_name()),
            cache_mode: match &self.cache {
                Some(name) => parse_cache_mode(py, name)?,
                None => CacheMode::Cold,
            },
            drops_all_caches: self.drop_caches,
            fresh_filesystem: self.fresh,
            destroy_data_on: self.destroy_data_on,
            ignores_signature: self.ignore_signature,
            times_calls: self.time_calls,
            has_no_budget: self.no_budget,
            finds_caps: self.find_limits,
            volume: self.volume,
            seed: self.seed,
            label: self.label,
            ..Experiment::default()
        };
        let Some(earlier) = self.like else {
            return Ok(asked);
        };
        let earlier =
            repeat_experiment(&earlier.get().run).map_err(|error| to_exception(py, &error))?;
        Ok(apply_earlier(earlier, asked))
    }
}

/// Checks that a count is from 1 to `most`.
///
/// # Errors
///
/// A count of 0 or above `most`.
pub(crate) fn checked_count(
    py: Python<'_>,
    name: &str,
    count: Option<u32>,
    most: u32,
) -> PyResult<Option<u32>> {
    match count {
        Some(count) if !(1..=most).contains(&count) => Err(request_exception(
            py,
            format!("{name}={count}: give a number from 1 to {most}"),
        )),
        count => Ok(count),
    }
}

/// # Errors
///
/// A text that is no steady-state rule.
fn parse_steady_rule(py: Python<'_>, rule: Option<String>) -> PyResult<Option<SteadyRule>> {
    let rule = rule.map(|rule| SteadyRule::parse_rule(&rule)).transpose();
    rule.map_err(|error| request_exception(py, format!("until_steady: {error}")))
}

/// # Errors
///
/// A text that is no size.
pub(crate) fn parse_size_argument(
    py: Python<'_>,
    size: Option<SizeArgument>,
) -> PyResult<SizeChoice> {
    match size {
        None => Ok(SizeChoice::AutomaticSize),
        Some(SizeArgument::Bytes(bytes)) => Ok(SizeChoice::SizeBytes(bytes)),
        Some(SizeArgument::Text(text)) if text == "auto" => Ok(SizeChoice::AutomaticSize),
        Some(SizeArgument::Text(text)) => match parse_size(&text) {
            Ok(bytes) => Ok(SizeChoice::SizeBytes(bytes)),
            Err(error) => Err(request_exception(
                py,
                format!("size={text:?}: {error}, or \"auto\""),
            )),
        },
    }
}

/// # Errors
///
/// A name other than `cold`, `warm` and `direct`.
pub(crate) fn parse_cache_mode(py: Python<'_>, name: &str) -> PyResult<CacheMode> {
    let modes = [CacheMode::Cold, CacheMode::Warm, CacheMode::Direct];
    let found = modes.into_iter().find(|mode| mode.mode_name() == name);
    found.ok_or_else(|| {
        request_exception(
            py,
            format!("cache={name:?}: give \"cold\", \"warm\" or \"direct\""),
        )
    })
}
