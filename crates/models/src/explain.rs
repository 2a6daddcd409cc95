//! Explanation of a modelled run. The run is repeated with all events recorded, then with one
//! change at a time.

mod changes;
mod difference;
mod moments;
mod parts;
mod rerun;
mod tails;

pub use difference::differences;

use crate::again::{check_elapsed, plan_of};
use crate::crew::{Crew, Watched};
use crate::error::LaboratoryError;
use crate::files::Files;
use crate::model::computer::Computer;
use crate::plan::{self, ModelPlan, step_title, title};
use changes::{Change, Kind};
use diskperf_analysis::explanation::verdict::verdict;
use diskperf_analysis::explanation::{Account, Counterfactual, Explanation, ProgramExplanation};
use diskperf_battery::{Suite, SuiteJob};
use diskperf_device::WhatIf;
use diskperf_timeline::{Experiment, Nanoseconds, Run, Setting, Trace};
use rerun::{Outcome, Variant};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Subject of an explanation: a run or a modelled system.
pub struct Subject {
    /// Name of the subject for headings, such as `run 3fa8` or `vax780-sc780-eagle`.
    pub name: String,
    /// Plan by which the run is made or repeated.
    pub plan: ModelPlan,
    /// Stored run, if the subject is one. The repeated run must equal it.
    pub run: Option<Run>,
}

impl Subject {
    /// Creates a subject from a modelled system and an experiment for it alone.
    ///
    /// # Errors
    ///
    /// Returns the faults of the experiment, and an error for the name of real storage.
    pub fn of(
        name: String,
        experiment: &Experiment,
        files: &dyn Files,
    ) -> Result<Self, LaboratoryError> {
        let plan = plan::plan(experiment, files)?.pop();
        let plan = plan.ok_or_else(|| LaboratoryError::request("no modelled system is named"))?;
        Ok(Self {
            name: with_settings(name, &plan),
            plan,
            run: None,
        })
    }

    /// Creates a subject from a stored run.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`plan_of`].
    pub fn again(run: Run, files: &dyn Files) -> Result<Self, LaboratoryError> {
        let plan = plan_of(&run, files)?;
        let name = with_settings(run.measured_description(), &plan);
        Ok(Self {
            name: format!("{name} (run {})", run.run_id),
            plan,
            run: Some(run),
        })
    }
}

/// Returns the name with the settings of the system, so that two subjects that differ in one
/// setting have different names.
fn with_settings(name: String, plan: &ModelPlan) -> String {
    let settings = plan.experiment.settings.iter();
    let settings: Vec<String> = settings.map(Setting::to_string).collect();
    match settings.is_empty() {
        true => name,
        false => format!("{name} with {}", settings.join(", ")),
    }
}

/// Executor, options and callbacks of an explanation.
pub struct Means<'a> {
    /// Executor that runs the machines. The results do not depend on it.
    pub crew: &'a dyn Crew,
    /// Whether counterfactual runs are made as well.
    pub counterfactuals: bool,
    /// Flag that is set when the user ends the explanation.
    pub stop: &'a Arc<AtomicBool>,
    /// Callback that receives the number of finished machines and their total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Means<'_> {
    fn machines(&self) -> Watched<'_> {
        Watched {
            crew: self.crew,
            stop: self.stop,
            progress: self.progress,
        }
    }
}

/// Smallest gain or loss of a counterfactual that is shown, as a share of the elapsed time.
const NOTHING: f64 = 0.000_5;
/// Additional gain of two changes together, above the sum of both, that is worth showing, as a
/// share of the elapsed time.
const BEATS: f64 = 0.005;

/// Explains every program of a subject. Returns the traces of the explained repetitions as well, in
/// the order of the programs. If the user ends it after the recording, the result holds what is
/// known by then, with a note on what is missing.
///
/// # Errors
///
/// Returns the error of a machine, or an error if the repeated run differs from the stored one.
pub fn explain(
    subject: &Subject,
    means: &Means<'_>,
) -> Result<(Explanation, Vec<Trace>), LaboratoryError> {
    let plan = &subject.plan;
    check_apart(&plan.suite)?;
    let mut programs = Vec::new();
    let mut traces = Vec::new();
    let bases = bases(subject, means)?;
    let (mut ended, mut deep, mut failed) = (false, false, None);
    for (computer, base) in plan.computers.iter().zip(bases) {
        let mut found = vec![Vec::new(); base.len()];
        let mut tails = tails::of(&base);
        deep |= base.iter().any(|outcome| outcome.depth > 1);
        if means.counterfactuals && !ended {
            let changed =
                tails::rerun(plan, computer, (&base, &mut tails), means).and_then(|why| {
                    failed = failed.take().or(why);
                    counterfactuals(plan, computer, &base, means)
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
                unwritten_share: outcome.unwritten_share,
                ..program(plan, (job, computer), (&trace, outcome.before_issue_ns))
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
        .flat_map(|one| &one.account.utilisation.links);
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
    } else if means.counterfactuals {
        notes.push("gain: share of its time that the program would save with one change, or with two (*) that save more together than the sum of both".to_owned());
    }
    let explanation = Explanation {
        what: format!("{} on {}", plan.suite.name, subject.name),
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
pub fn supposing(
    subject: &Subject,
    what_if: WhatIf,
    means: &Means<'_>,
) -> Result<Vec<Trace>, LaboratoryError> {
    let plan = &subject.plan;
    check_apart(&plan.suite)?;
    let found = means.machines().each(plan.computers.len(), |number| {
        let variant = Variant {
            trace: true,
            what_if,
            ..Variant::of(plan, &plan.computers[number])
        };
        rerun::rerun(plan, &variant, means.stop)
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
pub fn check_apart(suite: &Suite) -> Result<(), LaboratoryError> {
    let mut steps = suite.steps.iter();
    match steps.find(|step| step.parallel_jobs.len() > 1) {
        None => Ok(()),
        Some(step) => Err(LaboratoryError::Request(format!(
            "{} run at the same time, and their times cannot be separated: explain a run of one of them",
            step_title(step)
        ))),
    }
}

fn program(
    plan: &ModelPlan,
    (job, computer): (&SuiteJob, &Computer),
    (trace, before_issue_ns): (&Trace, Option<f64>),
) -> ProgramExplanation {
    let account = Account::in_open_loop(trace, before_issue_ns);
    let account = account.expect("every program is timed");
    ProgramExplanation {
        program: title(job),
        filesystem: computer.filesystem(),
        drives: plan.drives as u32,
        verdict: verdict(&account),
        account,
        accounted: None,
        unwritten_share: None,
        counterfactuals: Vec::new(),
        tails: Vec::new(),
    }
}

/// Records the unchanged subject: the outcome of each program on each of its computers.
fn bases(subject: &Subject, means: &Means<'_>) -> Result<Vec<Vec<Outcome>>, LaboratoryError> {
    let plan = &subject.plan;
    let count = plan.computers.len();
    let bases = means.machines().each(count, |number| {
        let variant = Variant {
            trace: true,
            ..Variant::of(plan, &plan.computers[number])
        };
        rerun::rerun(plan, &variant, means.stop)
    })?;
    if let Some(run) = &subject.run {
        let elapsed = bases.iter().flatten().map(|outcome| outcome.elapsed);
        check_elapsed(run, elapsed.enumerate())?;
    }
    Ok(bases)
}

/// Returns the elapsed time of each program with each change, fastest first.
fn counterfactuals(
    plan: &ModelPlan,
    computer: &Computer,
    base: &[Outcome],
    means: &Means<'_>,
) -> Result<Vec<Vec<Counterfactual>>, LaboratoryError> {
    let single = changes::changes(computer);
    let pairs = changes::pairs(&single);
    let all: Vec<&Change> = single
        .iter()
        .chain(pairs.iter().map(|(_, change)| change))
        .collect();
    let own = plan.settings_of(computer);
    let outcomes = means.machines().each(all.len(), |number| {
        let change = all[number];
        let settings: Vec<_> = own.iter().chain(&change.settings).cloned().collect();
        let Some(changed) = plan.computer_with(&settings) else {
            return Ok(None);
        };
        let variant = Variant {
            what_if: change.what_if,
            ..Variant::of(plan, &changed)
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
                change: all[change].words.clone(),
                elapsed: elapsed(change, step)?,
                beats_sum: false,
            })
        };
        let mut found: Vec<Counterfactual> = (0..single.len()).filter_map(one).collect();
        for (number, ((first, second), _)) in pairs.iter().enumerate() {
            let both = one(single.len() + number);
            let (Some(both), Some(first), Some(second)) = (both, one(*first), one(*second)) else {
                continue;
            };
            let sum = first.gain(as_is) + second.gain(as_is);
            if both.gain(as_is) > sum.max(first.gain(as_is)).max(second.gain(as_is)) + BEATS {
                found.push(Counterfactual {
                    beats_sum: true,
                    ..both
                });
            }
        }
        found.retain(|one| one.gain(as_is).abs() >= NOTHING);
        found.sort_by_key(|one| (one.elapsed, one.change.clone()));
        found
    };
    Ok((0..base.len()).map(of_step).collect())
}

impl Change {
    fn removes(&self) -> bool {
        self.kind == Kind::Removed
    }

    fn supposing(words: &str, what_if: WhatIf) -> Self {
        Self {
            words: words.to_owned(),
            kind: Kind::Removed,
            settings: Vec::new(),
            what_if,
        }
    }
}
