//! One point of a search on a modelled system: its plan, its run and its figures.

use super::TuningSearch;
use super::moved::SearchSize;
use super::over::OverOption;
use super::search::RunShare;
use crate::error::LaboratoryError;
use crate::model::bench::{BenchUsage, ModelBench};
use crate::model::run::{bench_usage, build_task};
use crate::model::version::{MODEL_VERSION, fingerprint};
use crate::plan::{ModelPlan, format_title, job_key, model::plan_point};
use crate::rig::{ONE_REPETITION, THREE_REPETITIONS, repeat_unobserved};
use diskperf_analysis::statistics::median;
use diskperf_analysis::summary::unwritten;
use diskperf_analysis::tuning::{ProgramFigures, p99_range};
use diskperf_battery::SuiteJob;
use diskperf_catalogue::Catalogue;
use diskperf_device::flash::specification::FlashSpecification;
use diskperf_timeline::units::MIB;
use diskperf_timeline::{Histogram, Protocol, Repetition, Setting, SizeChoice, Workload};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Version of a point's stored figures. It changes when figures are added, so that earlier points
/// are run again.
const FIGURES_VERSION: &str = "figures with shares never written";

/// Returns the protocol of each program. A program uses the same addresses in each repetition. On a
/// preconditioned flash drive, a second repetition would overwrite the data of the first, and the
/// drive would no longer be in its initial steady state. It therefore has only one.
pub(super) fn search_protocol(plan: &ModelPlan) -> Protocol {
    let drives = &plan.computers[0].specification.drives;
    let was_written = |flash: &FlashSpecification| flash.has_prior_writes();
    match (drives.iter()).any(|drive| drive.flash_specification().is_some_and(was_written)) {
        true => ONE_REPETITION,
        false => THREE_REPETITIONS,
    }
}

/// Number of repetitions of each program, and of the first ones that are discarded.
pub(super) fn repetition_range(plan: &ModelPlan) -> (u32, u32) {
    let protocol = search_protocol(plan);
    (protocol.repetition_count, protocol.discarded_count)
}

/// Context of a search: the system, the parameters to vary, and the amount of data.
pub(super) struct TuningSubject<'a> {
    pub(super) catalogue: &'a Catalogue,
    pub(super) search: &'a TuningSearch,
    pub(super) overs: &'a [OverOption],
    pub(super) search_size: SearchSize,
}

/// Seed and spindle angle, which vary between runs of the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeedAndPhase {
    pub(super) seed: u64,
    /// Rotation of the spindles at the start, in units of 2^-32 revolutions.
    pub(super) phase: u32,
}

impl TuningSubject<'_> {
    /// Makes the plan of the target with its current settings.
    pub(super) fn plan_today(&self) -> Result<ModelPlan, LaboratoryError> {
        self.plan_with(Vec::new(), RunShare::Full)
    }

    /// Makes the plan of one combination of values, at this share of the full size.
    pub(super) fn plan_point(
        &self,
        places: &[usize],
        share: RunShare,
    ) -> Result<ModelPlan, LaboratoryError> {
        let values = self.overs.iter().zip(places);
        let setting =
            |(over, place): (&OverOption, &usize)| Setting::new(&over.path, &over.values[*place]);
        self.plan_with(values.map(setting).collect(), share)
    }

    pub(super) fn plan_with(
        &self,
        settings: Vec<Setting>,
        share: RunShare,
    ) -> Result<ModelPlan, LaboratoryError> {
        let mut experiment = self.search.experiment.clone();
        experiment.settings.extend(settings);
        // The jobs of a file say themselves how much they move.
        let says_itself = matches!(
            experiment.workload,
            Workload::JobFile(_) | Workload::Replay(_)
        );
        let part = match share {
            RunShare::Quarter => 4,
            RunShare::Half => 2,
            RunShare::Full => 1,
        };
        experiment.size_choice = match self.search_size {
            SearchSize::FixedBytes(bytes) if !says_itself => SizeChoice::SizeBytes(bytes / part),
            SearchSize::FixedBytes(_) | SearchSize::SameAsRun { .. } => SizeChoice::AutomaticSize,
        };
        let mut plan = plan_point(
            (&experiment, &*self.search.files),
            self.catalogue,
            &self.search.target,
        )?;
        if let SearchSize::SameAsRun { cache_bytes } = self.search_size
            && !says_itself
        {
            plan.extend_streams(cache_bytes, &experiment);
            plan.divide_sizes(part);
        }
        Ok(plan)
    }
}

/// Names of the programs, with the parameters that distinguish programs of one name.
pub(super) fn list_titles(plan: &ModelPlan, overs: &[OverOption]) -> Vec<String> {
    let searched = |name: &String| {
        let path = format!("program.{name}");
        overs.iter().any(|over| over.path == path)
    };
    let without = |job: &SuiteJob| {
        let mut job = job.clone();
        job.distinguishing_parameters.retain(|name| !searched(name));
        job_key(&job)
    };
    plan.suite.iter_jobs().map(without).collect()
}

/// Returns a hash of the plan's computer and programs. A changed model, catalogue or setting makes
/// a different point.
pub(super) fn point_fingerprint(plan: &ModelPlan, turn: SeedAndPhase) -> String {
    let mut identity = vec![
        MODEL_VERSION.to_owned(),
        FIGURES_VERSION.to_owned(),
        plan.target.clone(),
        format!(
            "{turn:?} {} {} {}",
            plan.drive_count,
            plan.has_other_volume,
            plan.spindle_phase()
        ),
        format!(
            "{:?} {}",
            repetition_range(plan),
            plan.experiment.cache_mode.mode_name()
        ),
    ];
    for job in plan.suite.iter_jobs() {
        let values = job.program.parameter_values();
        let size_bytes = plan.file_bytes(job);
        identity.push(format!("{} {values:?} {size_bytes}", job.program.name()));
        identity.extend(job.program.fio_job().map(|section| format!("{section:?}")));
    }
    identity.extend(plan.experiment.settings.iter().map(Setting::to_string));
    let computer = &plan.computers[0];
    // Programs without files take a system's files away.
    identity.push(computer.describe_filesystem());
    let texts = computer
        .catalogue_texts
        .iter()
        .flat_map(|(name, text)| [name, text]);
    fingerprint(identity.iter().chain(texts).map(String::as_str))
}

/// Builds the machine and runs the programs on it, one after the other.
pub(super) fn run_point(
    plan: &ModelPlan,
    turn: SeedAndPhase,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<ProgramFigures>, LaboratoryError> {
    let usage = BenchUsage {
        seed: turn.seed,
        first_phase: turn.phase,
        spindle_phase: plan.spindle_phase().wrapping_add(turn.phase),
        ..bench_usage(plan, stop)
    };
    let bench = ModelBench::build(&plan.computers[0].specification, usage)?;
    let jobs = plan.suite.iter_jobs();
    jobs.map(|job| point_figures(plan, job, &bench)).collect()
}

fn point_figures(
    plan: &ModelPlan,
    job: &SuiteJob,
    bench: &ModelBench,
) -> Result<ProgramFigures, LaboratoryError> {
    let title = format_title(job);
    let work = (build_task(plan, job, &title), search_protocol(plan));
    let mut busy_before = bench.machine.processor_busy_times().0;
    let mut kept = repeat_unobserved(bench, work, |one| {
        if one.is_discarded {
            busy_before = bench.machine.processor_busy_times().0;
        }
        true
    })?;
    kept.retain(|one| !one.is_discarded);
    let busy_ns = bench.machine.processor_busy_times().0.0 - busy_before.0;
    Ok(sum_figures(&kept, busy_ns))
}

/// Returns the 99th percentile of the response times of all calls, in ms; `None` if no call was
/// timed.
pub fn p99_of_calls_ms(calls: &Histogram) -> Option<f64> {
    (calls.latency_count() > 0).then(|| calls.percentile(99.0).0 as f64 / 1e6)
}

/// Collects the times of all timed calls.
pub fn merge_calls(repetitions: &[Repetition]) -> Histogram {
    let mut calls = Histogram::new();
    for one in repetitions {
        for worker in &one.workers {
            calls.merge(&worker.read_latency);
            calls.merge(&worker.write_latency);
        }
        // Of several requests under way, how long each was.
        calls.merge(&one.response_times());
    }
    calls
}

/// Returns the median rate. Figures of calls and of the processor cover all repetitions together.
fn sum_figures(kept: &[Repetition], busy_ns: u64) -> ProgramFigures {
    let rates: Vec<f64> = kept.iter().map(Repetition::kb_per_s).collect();
    let payload_bytes: u64 = kept.iter().map(Repetition::payload_bytes).sum();
    let mib = payload_bytes as f64 / MIB as f64;
    let calls = merge_calls(kept);
    let (least, most) = (
        rates.iter().copied().reduce(f64::min),
        rates.iter().copied().reduce(f64::max),
    );
    ProgramFigures {
        kb_per_s: median(&rates).expect("at least one repetition is kept"),
        call_p99_ms: p99_of_calls_ms(&calls),
        call_p99_ms_range: p99_range(&calls, kept.len()),
        // One repetition differs from nothing.
        kb_per_s_range: least.zip(most).filter(|_| rates.len() > 1),
        unwritten_share: unwritten::unwritten_share(kept),
        cpu_ms_per_mib: (payload_bytes > 0).then(|| busy_ns as f64 / 1e6 / mib),
    }
}
