//! Points of a parameter study: one suite on one modelled system, with other
//! settings and another seed each time.
//!
//! A point is a machine of its own, built, run and dropped: what it comes to
//! depends on the system, the suite, the settings and the seed, and on no other
//! point. Its figures are those of [`crate::execute`] for the same plan.

use crate::error::LaboratoryError;
use crate::files::NoFiles;
use crate::model::bench::Bench;
use crate::model::counts::Counts;
use crate::model::run::{stand, task, usage};
use crate::model::version::{MODEL_VERSION, fingerprint};
use crate::plan::model::{check_name, plan_of_point};
use crate::plan::{ModelPlan, key};
use crate::rig::repeat_unobserved;
use diskperf_analysis::quantity::judged_s;
use diskperf_analysis::summary::Summary;
use diskperf_battery::Job;
use diskperf_catalogue::Catalogue;
use diskperf_timeline::{
    Experiment, Histogram, Nanoseconds, ProgramResult, Repetition, Setting, WorkerMeasure, World,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What all points of a study share.
#[derive(Clone, Debug)]
pub struct Study {
    /// The catalogue that the system is of.
    pub catalogue: Catalogue,
    /// The system.
    pub target: String,
    /// What is run on it. The settings of a point come after its own; sizes are
    /// rounded down to whole calls.
    pub experiment: Experiment,
}

/// What a point has for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// After those of the study.
    pub settings: Vec<Setting>,
    /// Of all its random choices.
    pub seed: u64,
}

/// What one program did in a point.
///
/// Rates and shares are those of a run: the protocol's statistic over the
/// repetitions that count. The rest is of the repetition that stands for all, the
/// one in the middle of those that count by its elapsed time.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramFigures {
    /// The program, with what tells it from its siblings in the suite.
    pub program: String,
    /// Kind and block size of the file system.
    pub filesystem: String,
    /// Drives that ran it at once.
    pub drives: u32,
    /// Repetitions that count.
    pub kept: u32,
    /// KB/s until the last call returned.
    pub kb_per_s: f64,
    /// KB/s until all was synced.
    pub durable_kb_per_s: Option<f64>,
    /// CPU time of the programs in percent of elapsed time, by the clock's ticks.
    pub cpu_percent: f64,
    /// From the first call to the end of the last.
    pub elapsed: Nanoseconds,
    /// The same, until all was synced.
    pub durable: Option<Nanoseconds>,
    /// CPU time of the programs.
    pub cpu: Nanoseconds,
    /// How long the processor worked, for whomever, in the whole repetition: while
    /// files were prepared and synced as well.
    pub processor: Nanoseconds,
    /// Bytes that count for KB/s.
    pub payload_bytes: u64,
    /// Bytes that read calls returned.
    pub read_bytes: u64,
    /// Bytes that write calls took.
    pub written_bytes: u64,
    /// Read and write calls.
    pub calls: u64,
    /// Requests that the drives completed in the whole repetition.
    pub requests: u64,
    /// Of these, how many lost a revolution that they need not have.
    pub missed: u64,
    /// The response time that 99 % of the read calls stayed under, where there were any:
    /// what studies optimise, and so of few calls too.
    pub read_p99_ns: Option<u64>,
    /// The same of the write calls.
    pub write_p99_ns: Option<u64>,
}

/// What every point of a system hangs on besides its settings and its seed: the
/// model's version, and a hash of the whole catalogue, any entry of which a
/// setting may put into the system, and of the system's own file if it has one.
///
/// # Errors
///
/// A name that the catalogue does not have, with the nearest.
pub fn identity(catalogue: &Catalogue, target: &str) -> Result<(String, String), LaboratoryError> {
    let system = catalogue
        .resolve(target, &[])
        .map_err(LaboratoryError::catalogue)?;
    let entries = catalogue.texts().flat_map(|(path, text)| [path, text]);
    // Files are called differently on other machines.
    let own = system.texts().map(|(_, text)| text);
    let hash = fingerprint(entries.chain(own));
    Ok((MODEL_VERSION.to_owned(), hash))
}

impl Study {
    /// Makes sure that there is such a system, before any point is run.
    ///
    /// # Errors
    ///
    /// A name that the catalogue does not have, with the nearest.
    pub fn check(&self) -> Result<(), LaboratoryError> {
        check_name(&self.catalogue, &self.target, Path::new(&self.target))
    }

    /// Runs a point: its programs one after the other on one machine.
    ///
    /// # Errors
    ///
    /// Settings that the system or the programs do not have or cannot take, and
    /// what a program fails with; [`LaboratoryError::Interrupted`] once `stop` is
    /// set.
    pub fn run(
        &self,
        point: &Point,
        stop: &Arc<AtomicBool>,
    ) -> Result<Vec<ProgramFigures>, LaboratoryError> {
        let plan = self.plan(point)?;
        let bench = Bench::build(&plan.computers[0].specification, usage(&plan, stop))?;
        let jobs = plan.suite.jobs();
        jobs.map(|job| self.figures(&plan, job, (point, &bench)))
            .collect()
    }

    fn plan(&self, point: &Point) -> Result<ModelPlan, LaboratoryError> {
        let mut experiment = self.experiment.clone();
        experiment.settings.extend(point.settings.iter().cloned());
        experiment.seed = point.seed;
        plan_of_point((&experiment, &NoFiles), &self.catalogue, &self.target)
    }

    fn figures(
        &self,
        plan: &ModelPlan,
        job: &Job,
        (point, bench): (&Point, &Bench),
    ) -> Result<ProgramFigures, LaboratoryError> {
        let title = key(&without(job, &point.settings));
        let task = task(plan, job, &title);
        let protocol = plan.suite.protocol_of(job);
        let mut counts = Vec::new();
        let mut before = Counts::of(bench);
        let repetitions = repeat_unobserved(bench, (task, protocol), |_| {
            let now = Counts::of(bench);
            counts.push(now.since(&before));
            before = now;
            true
        })?;
        // Which of them count is known when all are made.
        let all = repetitions.iter().cloned().zip(counts);
        let mut kept: Vec<(Repetition, Counts)> = all.filter(|(one, _)| !one.discarded).collect();
        let result = ProgramResult {
            repetitions,
            ..stand(plan, &plan.computers[0]).result(job, task, protocol)
        };
        kept.sort_by(|(one, _), (other, _)| judged_s(one).total_cmp(&judged_s(other)));
        let (middle, counts) = &kept[(kept.len() - 1) / 2];
        let summary = Summary::in_world(World::Model, &result);
        Ok(ProgramFigures {
            program: title.clone(),
            filesystem: result.filesystem,
            drives: result.drives,
            kept: summary.kept as u32,
            kb_per_s: summary.kb_per_s,
            durable_kb_per_s: summary.durable_kb_per_s,
            cpu_percent: summary.cpu_percent,
            elapsed: middle.elapsed(),
            durable: middle.durable(),
            cpu: Nanoseconds(middle.total(|worker| worker.cpu.0)),
            processor: counts.processor,
            payload_bytes: middle.payload_bytes(),
            read_bytes: middle.total(|worker| worker.read_bytes),
            written_bytes: middle.total(|worker| worker.written_bytes),
            calls: middle.total(|worker| worker.calls),
            requests: counts.requests,
            missed: counts.missed,
            read_p99_ns: p99_ns(&kept, |worker| &worker.read_latency),
            write_p99_ns: p99_ns(&kept, |worker| &worker.write_latency),
        })
    }
}

/// The 99th percentile of one kind of calls in all repetitions.
fn p99_ns(kept: &[(Repetition, Counts)], of: fn(&WorkerMeasure) -> &Histogram) -> Option<u64> {
    let mut calls = Histogram::new();
    for worker in kept.iter().flat_map(|(one, _)| &one.workers) {
        calls.merge(of(worker));
    }
    (calls.count() > 0).then(|| calls.percentile(99.0).0)
}

/// A job whose title does not show what a point sets: a program has one name in
/// all points of a study.
fn without(job: &Job, settings: &[Setting]) -> Job {
    let mut job = job.clone();
    let set = |name: &String| {
        let mut settings = settings.iter();
        settings.any(|setting| setting.of_program().unwrap_or(&setting.path) == name)
    };
    job.distinguishing.retain(|name| !set(name));
    job
}
