//! Execution of a plan: sets up its rigs, runs its programs by its protocol, and tears down the
//! rigs.

use crate::drive::OpenDrives;
use crate::known_limits;
use crate::limit::explain_open_file_limit;
use crate::overhead;
use crate::pilot::PilotSizes;
use crate::plan::{HostPlan, ModelPlan, Plan, format_step_title, list_titles};
use crate::recorder::RunRecorder;
use crate::repetition::HostRig;
use diskperf_analysis::{caps, interference};
use diskperf_battery::{EarlierSteps, Suite, SuiteJob, SuiteStep, WorkerGroups};
use diskperf_models::LaboratoryError;
use diskperf_models::measured::{
    JobTask, describe_engine_fallback, describe_late_arrivals, describe_stagger, list_end_notes,
};
use diskperf_models::model::bench::ModelBench as ModelRig;
use diskperf_models::model::run::{
    self as model, RunStart, SettingEffect, bench_usage, describe_setup, empty_run,
};
use diskperf_models::rig::{MeasurementRig, RigSetup, RigWork, repeat_work};
use diskperf_models::{Observer, ObserverEvent, RecordedEvent};
use diskperf_system::host::fresh::{FreshSpec, enter_private_mounts};
use diskperf_system::host::{CallClock, environment};
use diskperf_timeline::{Environment, Nanoseconds, ProgramResult, Repetition, Run, RunState};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// An executed run, complete or partial, with the error that ended it early.
pub struct ExecutionOutcome {
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
    recorder: &mut RunRecorder,
) -> ExecutionOutcome {
    match plan {
        Plan::Host(plan) => {
            let clock = CallClock::new_calibrated();
            let of = (&plan.suite, plan.fresh_filesystems.len().max(1));
            let mut execution = Execution::from_plan(of, new_run(plan, clock), observer, recorder);
            let error = execution.run_on_storage(plan, clock, stop).err();
            // A signal also reaches the tools that make file systems: what they then
            // say is not what ended the run.
            execution.finish(error.map(|error| match stop.load(Ordering::Relaxed) {
                true => LaboratoryError::Interrupted,
                false => error,
            }))
        }
        Plan::Model(plan) => {
            let of = (&plan.suite, plan.computers.len());
            let mut run = model::new_run(plan, run_start());
            let of_volume = known_limits::list_limits_of_volume(&plan.experiment);
            run.environment.known_limits = of_volume.unwrap_or_default();
            let mut execution = Execution::from_plan(of, run, observer, recorder);
            let error = execution.run_on_computers(plan, stop).err();
            let error = error.map(|error| plan.with_settings_named(error));
            execution.finish(error)
        }
    }
}

/// Runs the programs of a plan on open drives and returns the result of each program. Nothing is
/// stored.
pub(crate) fn execute_on_open_drives(
    (plan, drives): (&HostPlan, &OpenDrives),
    clock: CallClock,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
) -> Result<Vec<ProgramResult>, LaboratoryError> {
    let of_nothing = (plan.target_name(), Environment::default());
    let run = empty_run(&plan.experiment, &plan.suite, of_nothing, run_start());
    let mut recorder = RunRecorder::without_store();
    let mut execution = Execution::from_plan((&plan.suite, 1), run, observer, &mut recorder);
    let outcome = execution.run_on_drives((plan, drives), clock, stop);
    let outcome = outcome.and_then(|()| execution.first_failure().map_or(Ok(()), Err));
    LaboratoryError::with_leftovers(outcome, execution.leftovers)?;
    Ok(execution.run.results)
}

/// Prepares this process for the plans. Call it once, before any thread starts: fresh file systems
/// are mounted for this process alone.
///
/// # Errors
///
/// Returns an error if a plan needs more space than there is, or if mounts are not permitted.
pub fn prepare_process(plans: &[Plan]) -> Result<(), LaboratoryError> {
    if let Some(shortage) = plans.iter().find_map(Plan::space_shortage) {
        return Err(LaboratoryError::Request(shortage.to_owned()));
    }
    if !plans.iter().any(Plan::mounts_filesystem) {
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
    step_count: usize,
    steps_begun: usize,
    /// Progress of the steps that have ended on the current rig.
    earlier_repetitions: EarlierSteps,
    leftovers: Vec<String>,
    /// Titles and errors of jobs that failed while others continued.
    failed_programs: Vec<(String, String)>,
    run: Run,
    observer: &'a mut dyn Observer,
    recorder: &'a mut RunRecorder,
}

impl<'a> Execution<'a> {
    fn from_plan(
        (suite, rigs): (&'a Suite, usize),
        run: Run,
        observer: &'a mut dyn Observer,
        recorder: &'a mut RunRecorder,
    ) -> Self {
        Self {
            suite,
            step_count: suite.steps.len() * rigs,
            steps_begun: 0,
            earlier_repetitions: EarlierSteps::default(),
            leftovers: Vec::new(),
            failed_programs: Vec::new(),
            run: Run {
                command_line: recorder.command_line().to_vec(),
                ..run
            },
            observer,
            recorder,
        }
    }

    fn begin_run(&mut self) {
        self.recorder.begin_run(&self.run);
        self.recorder.report_messages(self.observer);
        self.observer
            .handle_event(ObserverEvent::RunStarted(&self.run));
        for note in &self.run.notes {
            self.observer.handle_event(ObserverEvent::Note(note));
        }
    }

    fn run_on_computers(
        &mut self,
        plan: &ModelPlan,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        self.begin_run();
        // Of all machines, as they share one budget.
        let usage = bench_usage(plan, stop);
        for computer in &plan.computers {
            let rig = ModelRig::build(&computer.specification, usage.clone())?;
            if plan.records_requests {
                let source = rig.event_source();
                let from = RecordedEvent::SourceOpened(Ok(&source));
                self.observer
                    .handle_event(ObserverEvent::RequestsRecorded(from));
            }
            self.run_steps(&rig, &describe_setup(plan, computer), |job, _| {
                Ok(plan.file_bytes(job))
            })?;
            rig.check_events()?;
        }
        for (number, setting) in plan.experiment.settings.iter().enumerate() {
            self.observer
                .handle_event(ObserverEvent::SettingTried(setting));
            let note = match model::find_effect(plan, number, &usage, &self.run.results)? {
                SettingEffect::ChangesResult => continue,
                SettingEffect::NoEffect => format!(
                    "--set {setting} had no effect in this run: without it every repetition is the same"
                ),
                SettingEffect::Undetermined => format!(
                    "whether --set {setting} has an effect is not known: the run without it exceeds the remaining event budget; --no-budget lifts that limit"
                ),
            };
            self.observer.handle_event(ObserverEvent::Note(&note));
            self.run.notes.push(note);
        }
        Ok(())
    }

    fn run_steps(
        &mut self,
        rig: &impl MeasurementRig,
        stand: &RigSetup,
        mut size: impl FnMut(&SuiteJob, &mut dyn Observer) -> Result<u64, LaboratoryError>,
    ) -> Result<(), LaboratoryError> {
        let suite = self.suite;
        self.earlier_repetitions = EarlierSteps::default();
        for step in &suite.steps {
            self.observer.handle_event(ObserverEvent::StepStarted {
                title: &format_step_title(step),
                number: self.steps_begun,
                of: self.step_count,
            });
            self.steps_begun += 1;
            let mut sizes_bytes = Vec::new();
            for job in &step.parallel_jobs {
                sizes_bytes.push(size(job, self.observer)?);
            }
            self.run_step(rig, stand, (step, &sizes_bytes))?;
        }
        Ok(())
    }

    /// Runs one step: all jobs that run at the same time. Each job gets a result.
    fn run_step(
        &mut self,
        rig: &impl MeasurementRig,
        stand: &RigSetup,
        (step, sizes_bytes): (&SuiteStep, &[u64]),
    ) -> Result<(), LaboratoryError> {
        let titles = list_titles(step);
        let mut tasks = JobTask::list_of_step(step, (&titles, sizes_bytes), self.run.cache_mode);
        for task in &mut tasks {
            task.keeps_others_on_failure = true;
        }
        let work = RigWork {
            job_tasks: tasks,
            protocol: self.suite.protocol_of_job(&step.parallel_jobs[0]),
            companion_work: WorkerGroups::after_steps(self.earlier_repetitions.clone()),
        };
        let first = self.run.results.len();
        let mut results = Vec::new();
        for (job, task) in step.parallel_jobs.iter().zip(&work.job_tasks) {
            let result = stand.new_result(job, *task, work.protocol);
            self.recorder.begin_result(&result);
            self.recorder.report_messages(self.observer);
            results.push(result);
        }
        let recorder = &mut *self.recorder;
        let mut repetitions = vec![Vec::new(); results.len()];
        let outcome = repeat_work(
            rig,
            &work,
            &mut repetitions,
            self.observer,
            |made, observer| {
                for (ordinal, one) in (first..).zip(made) {
                    recorder.add_repetition(ordinal, one);
                }
                recorder.report_messages(observer);
                observer.handle_event(ObserverEvent::RepetitionFinished(made));
                made.iter()
                    .all(|one| one.worker_failures().next().is_none())
            },
        );
        self.earlier_repetitions.elapsed_time =
            self.earlier_repetitions.elapsed_time + end_of_repetitions(&repetitions);
        self.earlier_repetitions.ended = work.companion_work.ended_scopes();
        self.earlier_repetitions.zone_tables = work.companion_work.zone_tables();
        let jobs = titles.into_iter().zip(&step.parallel_jobs);
        for ((result, repetitions), (title, job)) in results.into_iter().zip(repetitions).zip(jobs)
        {
            let result = ProgramResult {
                repetitions,
                ..result
            };
            let failure = result.first_failure();
            let failure = failure.map(|failure| (title, failure.message.clone()));
            self.failed_programs.extend(failure);
            self.finish_result(rig, job, result);
        }
        outcome
    }

    fn finish_result(
        &mut self,
        rig: &impl MeasurementRig,
        job: &SuiteJob,
        mut result: ProgramResult,
    ) {
        result.notes.extend(describe_stagger(&job.program, &result));
        result.notes.extend(describe_late_arrivals(&result));
        result.notes.extend(describe_engine_fallback(&result));
        result.notes.extend(list_end_notes(&result));
        result.notes.extend(caps::describe_caps(&self.run, &result));
        result.notes.extend(rig.describe_result(&result));
        result
            .notes
            .extend(interference::describe_disturbances(&result));
        let ordinal = self.run.results.len();
        self.recorder.finish_result(ordinal, &result);
        self.recorder.report_messages(self.observer);
        self.observer
            .handle_event(ObserverEvent::StepFinished(&result));
        self.run.results.push(result);
    }

    fn finish(mut self, error: Option<LaboratoryError>) -> ExecutionOutcome {
        let error = error.map(explain_open_file_limit);
        let error = error.or_else(|| self.first_failure());
        self.run.state = state_after(error.as_ref());
        self.recorder.finish_run(&self.run);
        self.recorder.report_messages(self.observer);
        self.observer
            .handle_event(ObserverEvent::RunFinished(&self.run));
        // All that was to be measured was, whatever is left of it on a disk.
        let outcome = error.map_or(Ok(()), Err);
        ExecutionOutcome {
            run: self.run,
            error: LaboratoryError::with_leftovers(outcome, self.leftovers).err(),
        }
    }
}

impl Execution<'_> {
    /// Returns the error of a run that completed all jobs, of which some failed.
    fn first_failure(&self) -> Option<LaboratoryError> {
        let ((program, error), others) = self.failed_programs.split_first()?;
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
    fn run_on_storage(
        &mut self,
        plan: &HostPlan,
        clock: CallClock,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        self.run.overhead = Some(overhead::measure_overhead(clock).map_err(LaboratoryError::work)?);
        self.begin_run();
        let mut on = |fresh| self.run_on_filesystem((plan, fresh), clock, stop);
        if plan.fresh_filesystems.is_empty() {
            return on(None);
        }
        for spec in &plan.fresh_filesystems {
            on(Some(spec))?;
        }
        Ok(())
    }

    fn run_on_filesystem(
        &mut self,
        (plan, fresh): (&HostPlan, Option<&FreshSpec>),
        clock: CallClock,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        if !self.leftovers.is_empty() {
            return Err(LaboratoryError::work(
                "the other fresh file systems are skipped, because their space may be taken",
            ));
        }
        let mut drives = OpenDrives::default();
        let opened = drives.open(plan, fresh, self.recorder, &mut self.leftovers);
        self.recorder.report_messages(self.observer);
        let result = opened.and_then(|()| self.run_on_drives((plan, &drives), clock, stop));
        let closed = drives.close(self.recorder, &mut self.leftovers);
        // What ended the programs says more than what was found afterwards.
        result.and(closed)
    }

    fn run_on_drives(
        &mut self,
        (plan, drives): (&HostPlan, &OpenDrives),
        clock: CallClock,
        stop: &Arc<AtomicBool>,
    ) -> Result<(), LaboratoryError> {
        let mut rig = HostRig {
            plan,
            clock,
            stop,
            open_drives: drives.as_slice(),
            event_recorder: None,
            device_traffic: None,
            preparation: None,
            watch_cell: OnceLock::new(),
        };
        rig.start_listening(self.observer);
        let mut sizes = PilotSizes::for_run();
        let done = self.run_steps(&rig, &rig.describe_setup(), |job, observer| {
            sizes.size_of_job(&rig, job, observer)
        });
        rig.close(&mut self.leftovers);
        done
    }
}

/// End of the last repetition among simultaneous tasks, measured from its start.
fn end_of_repetitions(repetitions: &[Vec<Repetition>]) -> Nanoseconds {
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
    let targets = plan.targets.iter().chain(&plan.other_target);
    let targets = targets.filter(|target| !target.is_null);
    let places: Vec<&Path> = targets
        .map(|target| target.resolved_path.as_path())
        .collect();
    let mut environment = environment::describe_environment(&places, clock.clock_name());
    environment.known_limits = known_limits::list_limits_of_groups(&plan.targets);
    // A plan has checked the volume.
    let of_volume = known_limits::list_limits_of_volume(&plan.experiment);
    environment
        .known_limits
        .extend(of_volume.unwrap_or_default());
    Run {
        notes: plan.notes.clone(),
        ..empty_run(
            &plan.experiment,
            &plan.suite,
            (plan.target_name(), environment),
            run_start(),
        )
    }
}

/// Returns the id and the start time of a run that starts now.
pub(crate) fn run_start() -> RunStart {
    RunStart {
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
