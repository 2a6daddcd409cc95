//! What Python asks for, as the laboratory has it.

use crate::errors::{exception, request_error};
use crate::run::Run;
use diskperf_laboratory::ab::{like, repeated};
use diskperf_laboratory::{Experiment, SizeChoice, Workload};
use diskperf_models::model::settings;
use diskperf_timeline::units::parse_size;
use diskperf_timeline::{
    CacheMode, ReplayAddresses, ReplayPace, SteadyRule, TraceReading, TraceReplay,
};
use pyo3::prelude::*;
use std::path::PathBuf;

/// As many drives as one system can have, and repetitions that the command line
/// takes.
pub(crate) const DRIVES_MAX: u32 = 8;
pub(crate) const REPETITIONS_MAX: u32 = 100_000;

/// The keywords of a run, as `python/diskperf/_run.py` gathers them, or those of all
/// points of a study, as `_points.py` does.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
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
    size: Option<Size>,
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
    /// A trace that is replayed, in place of a suite or a program.
    #[pyo3(default)]
    replay: Option<AskedReplay>,
    /// A run that it is to be like.
    #[pyo3(default)]
    like: Option<Py<Run>>,
}

/// A replay, as `python/diskperf/_replay.py` gathers it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct AskedReplay {
    files: Vec<PathBuf>,
    form: Option<String>,
    columns: Option<String>,
    time_unit: Option<String>,
    partial: bool,
    window_s: Option<(f64, f64)>,
    device: Option<String>,
    speed: Option<f64>,
    depth: Option<u32>,
    think: bool,
    slots: Option<u32>,
    scale_addresses: bool,
    scale_to: Option<Size>,
    round_to_sectors: Option<u64>,
}

impl AskedReplay {
    /// # Errors
    ///
    /// A size of addresses that is none.
    fn workload(self, py: Python<'_>) -> PyResult<Workload> {
        let ns = |seconds: f64| (seconds.max(0.0) * 1e9) as u64;
        Ok(Workload::Replay(Box::new(TraceReplay {
            files: self.files,
            trace_reading: TraceReading {
                form: self.form,
                column_names: self.columns,
                time_unit: self.time_unit,
                allows_partial: self.partial,
                window_ns: self.window_s.map(|(from, to)| (ns(from), ns(to))),
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
                (true, Some(Size::Bytes(bytes))) => ReplayAddresses::Scaled(bytes),
                (true, Some(Size::Text(text))) => {
                    let bytes = parse_size(&text);
                    ReplayAddresses::Scaled(bytes.map_err(|error| {
                        request_error(py, format!("scale_addresses={text:?}: {error}"))
                    })?)
                }
            },
            trace_facts: None,
            protocol: None,
        })))
    }
}

/// Bytes, as a number or as the command line has them: `8M`, `auto`.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Bytes(u64),
    Text(String),
}

impl Options {
    /// The experiment.
    ///
    /// # Errors
    ///
    /// A keyword whose value is none that there is.
    pub(crate) fn experiment(self, py: Python<'_>) -> PyResult<Experiment> {
        let settings = settings(&self.settings).map_err(|error| exception(py, &error))?;
        let asked = Experiment {
            workload: match self.replay {
                Some(replay) => replay.workload(py)?,
                None => Workload::from_suite_name(self.what),
            },
            fio_arguments: self.fio_args,
            targets: self.targets,
            drive_count: counted(py, "drives", self.drives, DRIVES_MAX)?,
            catalogue_path: self.catalogue,
            runs_targets_together: self.together,
            second_target: self.other,
            size_choice: size(py, self.size)?,
            settings,
            repetition_count: counted(py, "repetitions", self.repetitions, REPETITIONS_MAX)?,
            steady_rule: steady(py, self.until_steady)?,
            passes_cache: self
                .cache
                .as_deref()
                .is_some_and(|name| name != CacheMode::Direct.mode_name()),
            cache_mode: match &self.cache {
                Some(name) => cache(py, name)?,
                None => CacheMode::Cold,
            },
            drops_all_caches: self.drop_caches,
            fresh_filesystem: self.fresh,
            destroy_data_on: self.destroy_data_on,
            ignores_signature: self.ignore_signature,
            times_calls: self.time_calls,
            has_no_budget: self.no_budget,
            seed: self.seed,
            label: self.label,
            ..Experiment::default()
        };
        let Some(earlier) = self.like else {
            return Ok(asked);
        };
        let earlier = repeated(&earlier.get().run).map_err(|error| exception(py, &error))?;
        Ok(like(earlier, asked))
    }
}

/// A number from 1 on.
///
/// # Errors
///
/// One that is 0 or beyond `most`.
pub(crate) fn counted(
    py: Python<'_>,
    name: &str,
    count: Option<u32>,
    most: u32,
) -> PyResult<Option<u32>> {
    match count {
        Some(count) if !(1..=most).contains(&count) => Err(request_error(
            py,
            format!("{name}={count}: give a number from 1 to {most}"),
        )),
        count => Ok(count),
    }
}

/// # Errors
///
/// A text that is no rule.
fn steady(py: Python<'_>, rule: Option<String>) -> PyResult<Option<SteadyRule>> {
    let rule = rule.map(|rule| SteadyRule::parse_rule(&rule)).transpose();
    rule.map_err(|error| request_error(py, format!("until_steady: {error}")))
}

/// # Errors
///
/// A text that is no size.
pub(crate) fn size(py: Python<'_>, size: Option<Size>) -> PyResult<SizeChoice> {
    match size {
        None => Ok(SizeChoice::AutomaticSize),
        Some(Size::Bytes(bytes)) => Ok(SizeChoice::SizeBytes(bytes)),
        Some(Size::Text(text)) if text == "auto" => Ok(SizeChoice::AutomaticSize),
        Some(Size::Text(text)) => match parse_size(&text) {
            Ok(bytes) => Ok(SizeChoice::SizeBytes(bytes)),
            Err(error) => Err(request_error(
                py,
                format!("size={text:?}: {error}, or \"auto\""),
            )),
        },
    }
}

/// # Errors
///
/// A word that is none of the three.
pub(crate) fn cache(py: Python<'_>, name: &str) -> PyResult<CacheMode> {
    let modes = [CacheMode::Cold, CacheMode::Warm, CacheMode::Direct];
    let found = modes.into_iter().find(|mode| mode.mode_name() == name);
    found.ok_or_else(|| {
        request_error(
            py,
            format!("cache={name:?}: give \"cold\", \"warm\" or \"direct\""),
        )
    })
}
