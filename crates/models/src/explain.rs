//! Explanation of a modelled run. The run is repeated with all events recorded, then with one
//! change at a time.

mod changes;
mod difference;
mod moments;
mod parts;
mod rerun;
mod tails;

pub use difference::compare_systems;

use crate::again::{check_elapsed, plan_stored_run};
use crate::crew::{Crew, WatchedCrew};
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::model::computer::ModelComputer;
use crate::plan::{self, ModelPlan, format_step_title, format_title};
use changes::{ChangeKind, ModelChange};
use diskperf_analysis::explanation::verdict::write_verdict;
use diskperf_analysis::explanation::{
    Counterfactual, Explanation, ProgramExplanation, TimeAccount,
};
use diskperf_battery::{Suite, SuiteJob};
use diskperf_device::WhatIf;
use diskperf_timeline::{Experiment, Nanoseconds, Run, Setting, Trace};
use rerun::{ModelVariant, RerunOutcome};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Subject of an explanation: a run or a modelled system.
pub struct ExplainedSystem {
    /// Name of the subject for headings, such as `run 3fa8` or `vax780-sc780-eagle`.
    pub name: String,
    /// Plan by which the run is made or repeated.
    pub plan: ModelPlan,
    /// Stored run, if the subject is one. The repeated run must equal it.
    pub run: Option<Run>,
}

impl ExplainedSystem {
    /// Creates a subject from a modelled system and an experiment for it alone.
    ///
    /// # Errors
    ///
    /// Returns the faults of the experiment, and an error for the name of real storage.
    pub fn from_plan(
        name: String,
        experiment: &Experiment,
        files: &dyn Files,
    ) -> Result<Self, LaboratoryError> {
        let plan = plan::plan(experiment, files)?.pop();
        let plan = plan.ok_or_else(|| LaboratoryError::request("no modelled system is named"))?;
        Ok(Self {
            name: append_settings(name, &plan),
            plan,
            run: None,
        })
    }

    /// Creates a subject from a stored run.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`plan_of`].
    pub fn from_stored_run(run: Run, files: &dyn Files) -> Result<Self, LaboratoryError> {
        let plan = plan_stored_run(&run, files)?;
        let name = append_settings(run.measured_description(), &plan);
        Ok(Self {
            name: format!("{name} (run {})", run.run_id),
            plan,
            run: Some(run),
        })
    }
}

/// Returns the name with the settings of the system, so that two subjects that differ in one
/// setting have different names.
fn append_settings(name: String, plan: &ModelPlan) -> String {
    let settings = plan.experiment.settings.iter();
    let settings: Vec<String> = settings.map(Setting::to_string).collect();
    match settings.is_empty() {
        true => name,
        false => format!("{name} with {}", settings.join(", ")),
    }
}

/// Executor, options and callbacks of an explanation.
pub struct ExplanationOptions<'a> {
    /// Executor that runs the machines. The results do not depend on it.
    pub crew: &'a dyn Crew,
    /// Whether counterfactual runs are made as well.
    pub runs_counterfactuals: bool,
    /// Flag that is set when the user ends the explanation.
    pub stop: &'a Arc<AtomicBool>,
    /// Callback that receives the number of finished machines and their total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl ExplanationOptions<'_> {
    fn watched_crew(&self) -> WatchedCrew<'_> {
        WatchedCrew {
            crew: self.crew,
            stop: self.stop,
            progress: self.progress,
        }
    }
}

/// Smallest gain or loss of a counterfactual that is shown, as a share of the elapsed time.
const GAIN_SHARE_MIN: f64 = 0.000_5;
/// Additional gain of two changes together, above the sum of both, that is worth showing, as a
/// share of the elapsed time.
const EXCESS_SHARE_MIN: f64 = 0.005;

/// Explains every program of a subject. Returns the traces of the explained repetitions as well, in
/// the order of the programs. If the user ends it after the recording, the result holds what is
/// known by then, with a note on what is missing.
///
/// # Errors
///
/// Returns the error of a machine, or an error if the repeated run differs from the stored one.
pub fn explain_system(
    subject: &ExplainedSystem,
    means: &ExplanationOptions<'_>,
) -> Result<(Explanation, Vec<Trace>), LaboratoryError> {
    let plan = &subject.plan;
    check_separate_jobs(&plan.suite)?;
    let mut programs = Vec::new();
    let mut traces = Vec::new();
    let bases = run_bases(subject, means)?;
    let (mut ended, mut deep, mut failed) = (false, false, None);
    for (computer, base) in plan.computers.iter().zip(bases) {
        let mut found = vec![Vec::new(); base.len()];
        let mut tails = tails::find_tails(&base);
        deep |= base.iter().any(|outcome| outcome.queue_depth > 1);
        if means.runs_counterfactuals && !ended {
            let changed =
                tails::rerun_tails(plan, computer, (&base, &mut tails), means).and_then(|why| {
                    failed = failed.take().or(why);
                    list_counterfactuals(plan, computer, &base, means)
                });
            match changed {
                Err(LaboratoryError::Interrupted) => ended = true,
                all => found = all?,
            }
        }
        let found = found.into_iter().zip(tails);
        for ((job, outcome), (counterfactuals, tails)) in
            plan.suite.iter_jobs().zip(base).zip(found)
        {
            let trace = outcome.trace.expect("it was recorded");
            programs.push(ProgramExplanation {
                counterfactuals,
                tails,
                breakdowns: Vec::new(),
                unwritten_share: outcome.unwritten_share,
                ..explain_program(plan, (job, computer), (&trace, outcome.before_issue_ns))
            });
            traces.push(trace);
        }
    }
    let mut notes = plan.notes.clone();
    if deep {
        notes.push("the program's time: with several requests in flight, each wait counts toward the stages of the request that ended it, at depth its last stages; the gain shows what limits the program".to_owned());
    }
    let mut links = programs
        .iter()
        .flat_map(|one| &one.time_account.utilisation.link_shares);
    if links.any(|share| *share > 0.0) {
        notes.push("interface transfer: time of data on the drive's link while no sector of the request passes under the head; when both overlap, the time counts as media transfer".to_owned());
    }
    if let Some(why) = failed {
        notes.push(format!(
            "what the slowest requests waited for: a rerun is missing: {why}"
        ));
    }
    if ended {
        notes.push("INTERRUPTED: the counterfactuals are missing; --no-counterfactuals omits them from the start".to_owned());
    } else if means.runs_counterfactuals {
        notes.push("gain: share of its time that the program would save with one change, or with two (*) that save more together than the sum of both".to_owned());
    }
    let explanation = Explanation {
        subject: format!("{} on {}", plan.suite.name, subject.name),
        programs,
        notes,
    };
    Ok((explanation, traces))
}

/// Runs a subject under a hypothesis and returns the traces of its programs, in the order of
/// [`explain`].
///
/// # Errors
///
/// Returns the error of a machine.
pub fn run_change(
    subject: &ExplainedSystem,
    what_if: WhatIf,
    means: &ExplanationOptions<'_>,
) -> Result<Vec<Trace>, LaboratoryError> {
    let plan = &subject.plan;
    check_separate_jobs(&plan.suite)?;
    let found = means
        .watched_crew()
        .run_each(plan.computers.len(), |number| {
            let variant = ModelVariant {
                records_trace: true,
                what_if,
                ..ModelVariant::from_plan(plan, &plan.computers[number])
            };
            rerun::rerun_programs(plan, &variant, means.stop)
        })?;
    let traces = found
        .into_iter()
        .flatten()
        .filter_map(|outcome| outcome.trace);
    Ok(traces.collect())
}

/// Verifies that no programs run at the same time, because their events cannot be told apart.
///
/// # Errors
///
/// Returns an error that names the simultaneous programs.
pub fn check_separate_jobs(suite: &Suite) -> Result<(), LaboratoryError> {
    let mut steps = suite.steps.iter();
    match steps.find(|step| step.parallel_jobs.len() > 1) {
        None => Ok(()),
        Some(step) => Err(LaboratoryError::Request(format!(
            "{} run at the same time, and their times cannot be separated: explain a run of one of them",
            format_step_title(step)
        ))),
    }
}

fn explain_program(
    plan: &ModelPlan,
    (job, computer): (&SuiteJob, &ModelComputer),
    (trace, before_issue_ns): (&Trace, Option<f64>),
) -> ProgramExplanation {
    let account = TimeAccount::from_open_loop_trace(trace, before_issue_ns);
    let account = account.expect("every program is timed");
    ProgramExplanation {
        program: format_title(job),
        filesystem: computer.describe_filesystem(),
        drive_count: plan.drive_count as u32,
        verdict_sentences: write_verdict(&account),
        time_account: account,
        accounted_cpu: None,
        unwritten_share: None,
        counterfactuals: Vec::new(),
        tails: Vec::new(),
        breakdowns: Vec::new(),
    }
}

/// Records the unchanged subject: the outcome of each program on each of its computers.
fn run_bases(
    subject: &ExplainedSystem,
    means: &ExplanationOptions<'_>,
) -> Result<Vec<Vec<RerunOutcome>>, LaboratoryError> {
    let plan = &subject.plan;
    let count = plan.computers.len();
    let bases = means.watched_crew().run_each(count, |number| {
        let variant = ModelVariant {
            records_trace: true,
            ..ModelVariant::from_plan(plan, &plan.computers[number])
        };
        rerun::rerun_programs(plan, &variant, means.stop)
    })?;
    if let Some(run) = &subject.run {
        let elapsed = bases.iter().flatten().map(|outcome| outcome.elapsed);
        check_elapsed(run, elapsed.enumerate())?;
    }
    Ok(bases)
}

/// Returns the elapsed time of each program with each change, fastest first.
fn list_counterfactuals(
    plan: &ModelPlan,
    computer: &ModelComputer,
    base: &[RerunOutcome],
    means: &ExplanationOptions<'_>,
) -> Result<Vec<Vec<Counterfactual>>, LaboratoryError> {
    let single = changes::list_changes(computer);
    let pairs = changes::pair_changes(&single);
    let all: Vec<&ModelChange> = single
        .iter()
        .chain(pairs.iter().map(|(_, change)| change))
        .collect();
    let own = plan.settings_of_computer(computer);
    let outcomes = means.watched_crew().run_each(all.len(), |number| {
        let change = all[number];
        let settings: Vec<_> = own.iter().chain(&change.settings).cloned().collect();
        let Some(changed) = plan.rebuild_computer(&settings) else {
            return Ok(None);
        };
        let variant = ModelVariant {
            what_if: change.what_if,
            ..ModelVariant::from_plan(plan, &changed)
        };
        // What does not fit on a computer that is changed is no change of it.
        match rerun::rerun_like(plan, &variant, base, means.stop) {
            Err(LaboratoryError::Interrupted) => Err(LaboratoryError::Interrupted),
            outcome => Ok(outcome.ok()),
        }
    })?;
    let elapsed = |change: usize, step: usize| -> Option<Nanoseconds> {
        Some(outcomes[change].as_ref()?[step].elapsed_for(&base[step]))
    };
    let of_step = |step: usize| {
        let as_is = base[step].elapsed;
        let one = |change: usize| -> Option<Counterfactual> {
            Some(Counterfactual {
                change: all[change].description.clone(),
                elapsed_time: elapsed(change, step)?,
                exceeds_sum_of_parts: false,
            })
        };
        let mut found: Vec<Counterfactual> = (0..single.len()).filter_map(one).collect();
        for (number, ((first, second), _)) in pairs.iter().enumerate() {
            let both = one(single.len() + number);
            let (Some(both), Some(first), Some(second)) = (both, one(*first), one(*second)) else {
                continue;
            };
            let sum = first.relative_gain(as_is) + second.relative_gain(as_is);
            if both.relative_gain(as_is)
                > sum
                    .max(first.relative_gain(as_is))
                    .max(second.relative_gain(as_is))
                    + EXCESS_SHARE_MIN
            {
                found.push(Counterfactual {
                    exceeds_sum_of_parts: true,
                    ..both
                });
            }
        }
        found.retain(|one| one.relative_gain(as_is).abs() >= GAIN_SHARE_MIN);
        found.sort_by_key(|one| (one.elapsed_time, one.change.clone()));
        found
    };
    Ok((0..base.len()).map(of_step).collect())
}

impl ModelChange {
    fn is_removal(&self) -> bool {
        self.kind == ChangeKind::Removed
    }

    fn with_what_if(words: &str, what_if: WhatIf) -> Self {
        Self {
            description: words.to_owned(),
            kind: ChangeKind::Removed,
            settings: Vec::new(),
            what_if,
        }
    }
}
