//! Points of a parameter study: one suite on one modelled system, with different settings and a
//! different seed each time.
//!
//! Each point builds a machine of its own, runs it and drops it. Its result depends on the system,
//! the suite, the settings and the seed, and on no other point. Its figures equal those of
//! `diskperf run` for the same plan.

use crate::error::LaboratoryError;
use crate::files::NoFiles;
use crate::model::bench::ModelBench;
use crate::model::counts::MachineCounts;
use crate::model::run::{bench_usage, build_task, describe_setup};
use crate::model::version::{MODEL_VERSION, fingerprint};
use crate::plan::model::{check_system_name, plan_point};
use crate::plan::{ModelPlan, job_key};
use crate::rig::repeat_unobserved;
use diskperf_analysis::quantity::judged_duration_s;
use diskperf_analysis::summary::ResultSummary;
use diskperf_battery::SuiteJob;
use diskperf_catalogue::Catalogue;
use diskperf_timeline::{
    Experiment, Histogram, MeasuredWorld, Nanoseconds, ProgramResult, Repetition, Setting,
    WorkerMeasure,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Part of a parameter study that all points share: catalogue, system and experiment.
#[derive(Clone, Debug)]
pub struct ModelStudy {
    /// Catalogue in which the system is looked up.
    pub catalogue: Catalogue,
    /// Name of the modelled system that all points use.
    pub target: String,
    /// Experiment to run on the system. Settings of a point follow the experiment's own; sizes are
    /// rounded down to whole calls.
    pub experiment: Experiment,
}

/// Part of a parameter study that differs from point to point: settings and seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyPoint {
    /// Settings of the point, applied after those of the study.
    pub settings: Vec<Setting>,
    /// Seed of all random choices of the point.
    pub seed: u64,
}

/// Figures of one program in a point.
///
/// Rates and shares are those of a run: the protocol's statistic over the repetitions that count.
/// All other figures are those of the median repetition among them, by elapsed time.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyFigures {
    /// Name of the program, with the parameters that distinguish it from its siblings in the suite.
    pub program: String,
    /// Kind and block size of the file system.
    pub filesystem: String,
    /// Number of drives that ran the program together.
    pub drive_count: u32,
    /// Number of repetitions whose results count.
    pub kept_count: u32,
    /// Rate until the last call returned, in KB/s.
    pub kb_per_s: f64,
    /// Rate until all data was synced, in KB/s.
    pub durable_kb_per_s: Option<f64>,
    /// CPU time of the programs in percent of the elapsed time, counted by clock ticks.
    pub cpu_percent: f64,
    /// Time from the start of the first call to the end of the last.
    pub elapsed_time: Nanoseconds,
    /// Time from the start of the first call until all data was synced.
    pub durable_elapsed_time: Option<Nanoseconds>,
    /// CPU time of the programs in the median repetition.
    pub cpu_time: Nanoseconds,
    /// Busy time of the processor in the whole repetition, for all purposes. It includes the
    /// preparation and sync of files.
    pub processor_busy_time: Nanoseconds,
    /// Bytes transferred that count for the rate in KB/s.
    pub payload_bytes: u64,
    /// Bytes that read calls returned.
    pub read_bytes: u64,
    /// Bytes that write calls accepted.
    pub written_bytes: u64,
    /// Number of read and write calls of the program.
    pub call_count: u64,
    /// Requests that the drives completed in the whole repetition.
    pub request_count: u64,
    /// Requests of the whole repetition that lost an avoidable revolution.
    pub missed_revolution_count: u64,
    /// 99th percentile of the response times of read calls, in nanoseconds; `None` without read
    /// calls. Studies optimise it, so it is given for few calls as well.
    pub read_p99_ns: Option<u64>,
    /// 99th percentile of the response times of write calls, in nanoseconds; `None` without write
    /// calls.
    pub write_p99_ns: Option<u64>,
}

/// Everything that a point of a study depends on besides its settings and its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyIdentity {
    /// Version of the model.
    pub model_version: String,
    /// Hash of the whole catalogue and of the system's own file.
    pub catalogue_hash: String,
}

/// Returns everything that a point depends on besides its settings and its seed: the version of the
/// model, and a hash of the whole catalogue and of the system's own file. The whole catalogue
/// counts, because a setting may put any entry into the system.
///
/// # Errors
///
/// Returns an error with the nearest name if the catalogue does not have the system.
pub fn study_identity(
    catalogue: &Catalogue,
    target: &str,
) -> Result<StudyIdentity, LaboratoryError> {
    let system = catalogue
        .resolve(target, &[])
        .map_err(LaboratoryError::catalogue)?;
    let entries = catalogue.file_texts().flat_map(|(path, text)| [path, text]);
    // Files are called differently on other machines.
    let own = system.file_texts().map(|(_, text)| text);
    Ok(StudyIdentity {
        model_version: MODEL_VERSION.to_owned(),
        catalogue_hash: fingerprint(entries.chain(own)),
    })
}

impl ModelStudy {
    /// Verifies that the system exists, before any point is run.
    ///
    /// # Errors
    ///
    /// Returns an error with the nearest name if the catalogue does not have the system.
    pub fn check_study(&self) -> Result<(), LaboratoryError> {
        check_system_name(&self.catalogue, &self.target, Path::new(&self.target))
    }

    /// Runs the programs of a point, one after the other on one machine.
    ///
    /// # Errors
    ///
    /// Returns an error for settings that the system or the programs do not have or cannot accept,
    /// and the error of a program; [`LaboratoryError::Interrupted`] once `stop` is set.
    pub fn run_point(
        &self,
        point: &StudyPoint,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<StudyFigures>, LaboratoryError> {
        let plan = self.plan_point(point)?;
        let bench = ModelBench::build(&plan.computers[0].specification, bench_usage(&plan, stop))?;
        let jobs = plan.suite.iter_jobs();
        jobs.map(|job| self.point_figures(&plan, job, (point, &bench)))
            .collect()
    }

    fn plan_point(&self, point: &StudyPoint) -> Result<ModelPlan, LaboratoryError> {
        let mut experiment = self.experiment.clone();
        experiment.settings.extend(point.settings.iter().cloned());
        experiment.seed = point.seed;
        plan_point((&experiment, &NoFiles), &self.catalogue, &self.target)
    }

    fn point_figures(
        &self,
        plan: &ModelPlan,
        job: &SuiteJob,
        (point, bench): (&StudyPoint, &ModelBench),
    ) -> Result<StudyFigures, LaboratoryError> {
        let title = job_key(&without_settings(job, &point.settings));
        let task = build_task(plan, job, &title);
        let protocol = plan.suite.protocol_of_job(job);
        let mut counts = Vec::new();
        let mut before = MachineCounts::from_bench(bench);
        let repetitions = repeat_unobserved(bench, (task, protocol), |_| {
            let now = MachineCounts::from_bench(bench);
            counts.push(now.since(&before));
            before = now;
            true
        })?;
        // Which of them count is known when all are made.
        let all = repetitions.iter().cloned().zip(counts);
        let mut kept: Vec<(Repetition, MachineCounts)> =
            all.filter(|(one, _)| !one.is_discarded).collect();
        let result = ProgramResult {
            repetitions,
            ..describe_setup(plan, &plan.computers[0]).new_result(job, task, protocol)
        };
        kept.sort_by(|(one, _), (other, _)| {
            judged_duration_s(one).total_cmp(&judged_duration_s(other))
        });
        let (middle, counts) = &kept[(kept.len() - 1) / 2];
        let summary = ResultSummary::summarize_in_world(MeasuredWorld::Model, &result);
        Ok(StudyFigures {
            program: title.clone(),
            filesystem: result.filesystem_type,
            drive_count: result.drive_count,
            kept_count: summary.kept_count as u32,
            kb_per_s: summary.kb_per_s,
            durable_kb_per_s: summary.durable_kb_per_s,
            cpu_percent: summary.cpu_percent,
            elapsed_time: middle.elapsed_time(),
            durable_elapsed_time: middle.durable_time(),
            cpu_time: Nanoseconds(middle.sum_over_workers(|worker| worker.cpu_time.0)),
            processor_busy_time: counts.processor_time,
            payload_bytes: middle.payload_bytes(),
            read_bytes: middle.sum_over_workers(|worker| worker.read_bytes),
            written_bytes: middle.sum_over_workers(|worker| worker.written_bytes),
            call_count: middle.sum_over_workers(|worker| worker.call_count),
            request_count: counts.request_count,
            missed_revolution_count: counts.missed_revolution_count,
            read_p99_ns: latency_p99_ns(&kept, |worker| &worker.read_latency),
            write_p99_ns: latency_p99_ns(&kept, |worker| &worker.write_latency),
        })
    }
}

fn latency_p99_ns(
    kept: &[(Repetition, MachineCounts)],
    of: fn(&WorkerMeasure) -> &Histogram,
) -> Option<u64> {
    let mut calls = Histogram::new();
    for worker in kept.iter().flat_map(|(one, _)| &one.workers) {
        calls.merge(of(worker));
    }
    (calls.latency_count() > 0).then(|| calls.percentile(99.0).0)
}

/// Returns the job with a title that omits the parameters which a point sets, so that a program has
/// one name in all points of a study.
fn without_settings(job: &SuiteJob, settings: &[Setting]) -> SuiteJob {
    let mut job = job.clone();
    let set = |name: &String| {
        let mut settings = settings.iter();
        settings.any(|setting| setting.program_parameter_name().unwrap_or(&setting.path) == name)
    };
    job.distinguishing_parameters.retain(|name| !set(name));
    job
}
