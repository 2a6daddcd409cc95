//! Execution of a plan: sets up its rigs, runs its programs by its protocol, and tears down the
//! rigs.

use crate::drive::Drives;
use crate::limit::or_limit;
use crate::overhead;
use crate::pilot::Sizes;
use crate::plan::{HostPlan, ModelPlan, Plan, step_title, titles};
use crate::recorder::Recorder;
use crate::repetition::HostRig;
use diskperf_analysis::interference;
use diskperf_battery::{EarlierSteps, Suite, SuiteJob, SuiteStep, WorkerGroups};
use diskperf_models::LaboratoryError;
use diskperf_models::measured::{Task, arrivals_note, end_notes, engine_note, stagger_note};
use diskperf_models::model::bench::Bench as ModelRig;
use diskperf_models::model::run::{self as model, Begun, Effect, empty_run, stand, usage};
use diskperf_models::rig::{Rig, Stand, Work, repeat};
use diskperf_models::{Event, Observer, Recorded};
use diskperf_system::host::fresh::{FreshSpec, enter_private_mounts};
use diskperf_system::host::{CallClock, environment};
use diskperf_timeline::{Environment, Nanoseconds, ProgramResult, Repetition, Run, RunState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// An executed run, complete or partial, with the error that ended it early.
pub struct Executed {
    /// The run, with all results measured up to its end.
    pub run: Run,
    /// Error that ended the run early; `None` if it completed.
    pub error: Option<LaboratoryError>,
}

/// Executes a plan. `stop` ends it: the next call of every worker fails, and the run's files are
/// removed.
pub fn execute(
    plan: &Plan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorder: &mut Recorder,
) -> Executed {
    match plan {
        Plan::Host(plan) => {
            let clock = CallClock::new_calibrated();
            let of = (&plan.suite, plan.fresh.len().max(1));
            let mut execution = Execution::of(of, new_run(plan, clock), observer, recorder);
            let error = execution.on_storage(plan, clock, stop).err();
            // A signal also reaches the tools that make file systems: what they then
            // say is not what ended the run.
            execution.finished(error.map(|error| match stop.load(Ordering::Relaxed) {
                true => LaboratoryError::Interrupted,
                false => error,
            }))
        }
        Plan::Model(plan) => {
            let of = (&plan.suite, plan.computers.len());
            let mut execution =
                Execution::of(of, model::new_run(plan, begun()), observer, recorder);
            let error = execution.on_computers(plan, stop).err();
            let error = error.map(|error| plan.with_settings_named(error));
            execution.finished(error)
        }
    }
}

/// Runs the programs of a plan on open drives and returns the result of each program. Nothing is
/// stored.
pub(crate) fn on_open_drives(
    (plan, drives): (&HostPlan, &Drives),
    clock: CallClock,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<Vec<ProgramResult>, LaboratoryError> {
    let of_nothing = (plan.target_name(), Environment::default());
    let run = empty_run(&plan.experiment, &plan.suite, of_nothing, begun());
    let mut recorder = Recorder::of_nothing();
    let mut execution = Execution::of((&plan.suite, 1), run, observer, &mut recorder);
    let outcome = execution.on_drives((plan, drives), clock, stop);
    let outcome = outcome.and_then(|()| execution.failure().map_or(Ok(()), Err));
    LaboratoryError::leaving(outcome, execution.left)?;
    Ok(execution.run.results)
}

/// Prepares this process for the plans. Call it once, before any thread starts: fresh file systems
/// are mounted for this process alone.
///
/// # Errors
///
/// Returns an error if a plan needs more space than there is, or if mounts are not permitted.
pub fn prepare_process(plans: &[Plan]) -> Result<(), LaboratoryError> {
    if let Some(shortage) = plans.iter().find_map(Plan::shortage) {
        return Err(LaboratoryError::Request(shortage.to_owned()));
    }
    if !plans.iter().any(Plan::mounts) {
        return Ok(());
    }
    enter_private_mounts().map_err(|error| {
        LaboratoryError::Request(format!(
            "{error}; use sudo, or omit `--fresh`: `diskperf run` then measures the existing file system of the directory"
        ))
    })
}

struct Execution<'a> {
    suite: &'a Suite,
    steps: usize,
    begun: usize,
    /// Progress of the steps that have ended on the current rig.
    earlier: EarlierSteps,
    left: Vec<String>,
    /// Titles and errors of jobs that failed while others continued.
    failed: Vec<(String, String)>,
    run: Run,
    observer: &'a mut dyn Observer,
    recorder: &'a mut Recorder,
}

impl<'a> Execution<'a> {
    fn of(
        (suite, rigs): (&'a Suite, usize),
        run: Run,
        observer: &'a mut dyn Observer,
        recorder: &'a mut Recorder,
    ) -> Self {
        Self {
            suite,
            steps: suite.steps.len() * rigs,
            begun: 0,
            earlier: EarlierSteps::default(),
            left: Vec::new(),
            failed: Vec::new(),
            run: Run {
                command_line: recorder.command_line().to_vec(),
                ..run
            },
            observer,
            recorder,
        }
    }

    fn begin(&mut self) {
        self.recorder.begin_run(&self.run);
        self.recorder.tell(self.observer);
        self.observer.event(Event::RunStarted(&self.run));
        for note in &self.run.notes {
            self.observer.event(Event::Note(note));
        }
    }

    fn on_computers(
        &mut self,
        plan: &ModelPlan,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        self.begin();
        // Of all machines, as they share one budget.
        let usage = usage(plan, stop);
        for computer in &plan.computers {
            let rig = ModelRig::build(&computer.specification, usage.clone())?;
            if plan.record {
                let source = rig.source();
                let from = Recorded::From(Ok(&source));
                self.observer.event(Event::Recorded(from));
            }
            self.steps(&rig, &stand(plan, computer), |job, _| Ok(plan.size(job)))?;
            rig.check()?;
        }
        for (number, setting) in plan.experiment.settings.iter().enumerate() {
            self.observer.event(Event::SettingTried(setting));
            let note = match model::effect(plan, number, &usage, &self.run.results)? {
                Effect::Changes => continue,
                Effect::Nothing => format!(
                    "--set {setting} had no effect in this run: without it every repetition is the same"
                ),
                Effect::Unknown => format!(
                    "whether --set {setting} has an effect is not known: the run without it exceeds the remaining event budget; --no-budget lifts that limit"
                ),
            };
            self.observer.event(Event::Note(&note));
            self.run.notes.push(note);
        }
        Ok(())
    }

    fn steps(
        &mut self,
        rig: &impl Rig,
        stand: &Stand,
        mut size: impl FnMut(&SuiteJob, &mut dyn Observer) -> Result<u64, LaboratoryError>,
    ) -> Result<(), LaboratoryError> {
        let suite = self.suite;
        self.earlier = EarlierSteps::default();
        for step in &suite.steps {
            self.observer.event(Event::StepStarted {
                title: &step_title(step),
                number: self.begun,
                of: self.steps,
            });
            self.begun += 1;
            let mut sizes_bytes = Vec::new();
            for job in &step.parallel_jobs {
                sizes_bytes.push(size(job, self.observer)?);
            }
            self.step(rig, stand, (step, &sizes_bytes))?;
        }
        Ok(())
    }

    /// Runs one step: all jobs that run at the same time. Each job gets a result.
    fn step(
        &mut self,
        rig: &impl Rig,
        stand: &Stand,
        (step, sizes_bytes): (&SuiteStep, &[u64]),
    ) -> Result<(), LaboratoryError> {
        let titles = titles(step);
        let mut tasks = Task::of_step(step, (&titles, sizes_bytes), self.run.cache_mode);
        for task in &mut tasks {
            task.fails_alone = true;
        }
        let work = Work {
            tasks,
            protocol: self.suite.protocol_of_job(&step.parallel_jobs[0]),
            companies: WorkerGroups::after_steps(self.earlier.clone()),
        };
        let first = self.run.results.len();
        let mut results = Vec::new();
        for (job, task) in step.parallel_jobs.iter().zip(&work.tasks) {
            let result = stand.result(job, *task, work.protocol);
            self.recorder.begin_result(&result);
            self.recorder.tell(self.observer);
            results.push(result);
        }
        let recorder = &mut *self.recorder;
        let mut repetitions = vec![Vec::new(); results.len()];
        let outcome = repeat(
            rig,
            &work,
            &mut repetitions,
            self.observer,
            |made, observer| {
                for (ordinal, one) in (first..).zip(made) {
                    recorder.add_repetition(ordinal, one);
                }
                recorder.tell(observer);
                observer.event(Event::RepetitionFinished(made));
                made.iter()
                    .all(|one| one.worker_failures().next().is_none())
            },
        );
        self.earlier.elapsed_time = self.earlier.elapsed_time + ended(&repetitions);
        self.earlier.ended = work.companies.ended_scopes();
        self.earlier.zone_tables = work.companies.zone_tables();
        let jobs = titles.into_iter().zip(&step.parallel_jobs);
        for ((result, repetitions), (title, job)) in results.into_iter().zip(repetitions).zip(jobs)
        {
            let result = ProgramResult {
                repetitions,
                ..result
            };
            let failure = result.first_failure();
            let failure = failure.map(|failure| (title, failure.message.clone()));
            self.failed.extend(failure);
            self.finish_result(rig, job, result);
        }
        outcome
    }

    fn finish_result(&mut self, rig: &impl Rig, job: &SuiteJob, mut result: ProgramResult) {
        result.notes.extend(stagger_note(&job.program, &result));
        result.notes.extend(arrivals_note(&result));
        result.notes.extend(engine_note(&result));
        result.notes.extend(end_notes(&result));
        result.notes.extend(rig.remark(&result));
        result.notes.extend(interference::note(&result));
        let ordinal = self.run.results.len();
        self.recorder.finish_result(ordinal, &result);
        self.recorder.tell(self.observer);
        self.observer.event(Event::StepFinished(&result));
        self.run.results.push(result);
    }

    fn finished(mut self, error: Option<LaboratoryError>) -> Executed {
        let error = error.map(or_limit);
        let error = error.or_else(|| self.failure());
        self.run.state = state_after(error.as_ref());
        self.recorder.finish_run(&self.run);
        self.recorder.tell(self.observer);
        self.observer.event(Event::RunFinished(&self.run));
        // All that was to be measured was, whatever is left of it on a disk.
        let outcome = error.map_or(Ok(()), Err);
        Executed {
            run: self.run,
            error: LaboratoryError::leaving(outcome, self.left).err(),
        }
    }
}

impl Execution<'_> {
    /// Returns the error of a run that completed all jobs, of which some failed.
    fn failure(&self) -> Option<LaboratoryError> {
        let ((program, error), others) = self.failed.split_first()?;
        let others: Vec<&str> = others.iter().map(|(title, _)| title.as_str()).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!("; {} failed too", others.join(", ")),
        };
        Some(LaboratoryError::Program {
            program: program.clone(),
            target: self.run.target_label.clone(),
            error: format!("{error}{others}"),
            remedy: "",
        })
    }

    /// Runs all programs on the targets as they are, or on each kind of fresh file system there in
    /// turn.
    fn on_storage(
        &mut self,
        plan: &HostPlan,
        clock: CallClock,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        self.run.overhead = Some(overhead::measure(clock).map_err(LaboratoryError::work)?);
        self.begin();
        let mut on = |fresh| self.on_filesystem((plan, fresh), clock, stop);
        if plan.fresh.is_empty() {
            return on(None);
        }
        for spec in &plan.fresh {
            on(Some(spec))?;
        }
        Ok(())
    }

    fn on_filesystem(
        &mut self,
        (plan, fresh): (&HostPlan, Option<&FreshSpec>),
        clock: CallClock,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        if !self.left.is_empty() {
            return Err(LaboratoryError::work(
                "the other fresh file systems are skipped, because their space may be taken",
            ));
        }
        let mut drives = Drives::default();
        let opened = drives.open(plan, fresh, self.recorder, &mut self.left);
        self.recorder.tell(self.observer);
        let result = opened.and_then(|()| self.on_drives((plan, &drives), clock, stop));
        let closed = drives.close(self.recorder, &mut self.left);
        // What ended the programs says more than what was found afterwards.
        result.and(closed)
    }

    fn on_drives(
        &mut self,
        (plan, drives): (&HostPlan, &Drives),
        clock: CallClock,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        let mut rig = HostRig {
            plan,
            clock,
            stop,
            opened: drives.all(),
            block_events: None,
            traffic: None,
            before: None,
            watch: OnceLock::new(),
        };
        rig.listen(self.observer);
        let mut sizes = Sizes::of_run();
        let done = self.steps(&rig, &rig.stand(), |job, observer| {
            sizes.of(&rig, job, observer)
        });
        rig.close(&mut self.left);
        done
    }
}

/// End of the last repetition among simultaneous tasks, measured from its start.
fn ended(repetitions: &[Vec<Repetition>]) -> Nanoseconds {
    let last = repetitions.iter().filter_map(|all| all.last());
    let workers = last.flat_map(|one| &one.workers);
    let ends = workers.map(|worker| worker.start_time + worker.elapsed_time);
    ends.max().unwrap_or_default()
}

/// Returns the state of a run that ended with this error, or without one.
pub(crate) fn state_after(error: Option<&LaboratoryError>) -> RunState {
    match error {
        None => RunState::Finished,
        Some(LaboratoryError::Interrupted) => RunState::Interrupted,
        Some(error) => RunState::Failed(error.to_string()),
    }
}

/// Creates a run on real storage, with no results yet.
pub(crate) fn new_run(plan: &HostPlan, clock: CallClock) -> Run {
    let targets = plan.targets.iter().chain(&plan.other);
    let targets = targets.filter(|target| !target.is_null);
    let places: Vec<&Path> = targets.map(|target| target.path.as_path()).collect();
    let environment = environment::describe_environment(&places, clock.clock_name());
    Run {
        notes: plan.notes.clone(),
        ..empty_run(
            &plan.experiment,
            &plan.suite,
            (plan.target_name(), environment),
            begun(),
        )
    }
}

/// Returns the id and the start time of a run that starts now.
pub(crate) fn begun() -> Begun {
    Begun {
        id: new_id(),
        unix_ms: unix_time().as_millis() as u64,
    }
}

fn unix_time() -> std::time::Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns a run id of ten hexadecimal digits: a hash of the time and the process id by the
/// standard library's randomly keyed hasher.
fn new_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let hash = RandomState::new().hash_one((unix_time().as_nanos(), std::process::id()));
    format!("{:010x}", hash >> 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ() {
        assert_ne!(new_id(), new_id());
        assert_eq!(new_id().len(), 10);
    }
}
