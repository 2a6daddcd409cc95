//! Carries a plan out: makes its drives, runs its programs by its protocol,
//! and removes what it made.

use crate::drive::Drive;
use crate::error::{LaboratoryError, Names};
use crate::measured::{Task, stagger_note};
use crate::model::run as model;
use crate::observer::{Event, Observer};
use crate::overhead;
use crate::pilot;
use crate::plan::{HostPlan, ModelPlan, Plan, title};
use crate::recorder::Recorder;
use crate::repetition::Bench;
use crate::target::Target;
use diskperf_analysis::statistics;
use diskperf_battery::{Medium, ProgramError, Step};
use diskperf_system::host::block_events::BlockEvents;
use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::fresh::{FreshSpec, enter_private_mounts};
use diskperf_system::host::{Clock, environment};
use diskperf_timeline::{Experiment, ProgramResult, Protocol, Run, RunState, SizeChoice, World};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// A run, whole or as far as it came, and why it ended early if it did.
pub struct Executed {
    /// What was measured.
    pub run: Run,
    /// What ended it.
    pub error: Option<LaboratoryError>,
}

/// Carries a plan out. `stop` ends it: every worker's next call fails, and
/// what was made is removed.
pub fn execute(
    plan: &Plan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorder: &mut Recorder,
) -> Executed {
    match plan {
        Plan::Host(plan) => on_host(plan, stop, observer, recorder),
        Plan::Model(plan) => on_model(plan, stop, observer, recorder),
    }
}

fn on_model(
    plan: &ModelPlan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorder: &mut Recorder,
) -> Executed {
    let mut execution = model::Execution {
        plan,
        stop,
        run: Run {
            command_line: recorder.command_line().to_vec(),
            ..model::new_run(plan, (new_id(), unix_time().as_millis() as u64))
        },
        observer,
        recorder,
    };
    let error = execution.carry_out().err();
    let model::Execution {
        run,
        observer,
        recorder,
        ..
    } = execution;
    finished(run, error, observer, recorder)
}

fn on_host(
    plan: &HostPlan,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorder: &mut Recorder,
) -> Executed {
    let clock = Clock::calibrated();
    let mut execution = Execution {
        plan,
        stop,
        clock,
        sizes: BTreeMap::new(),
        left: Vec::new(),
        run: Run {
            command_line: recorder.command_line().to_vec(),
            ..new_run(plan, clock)
        },
        observer,
        recorder,
    };
    // A signal also reaches the tools that make file systems: what they then
    // say is not what ended the run.
    let error = execution.carry_out().err().map(|error| {
        if stop.load(Ordering::Relaxed) {
            LaboratoryError::Interrupted
        } else {
            error
        }
    });
    let Execution {
        run,
        left,
        observer,
        recorder,
        ..
    } = execution;
    let Executed { run, error } = finished(run, error, observer, recorder);
    // All that was to be measured was, whatever is left of it on a disk.
    let outcome = error.map_or(Ok(()), Err);
    let error = LaboratoryError::leaving(outcome, left).err();
    Executed { run, error }
}

/// A run that has come to its end, well or not.
fn finished(
    mut run: Run,
    error: Option<LaboratoryError>,
    observer: &mut dyn Observer,
    recorder: &mut Recorder,
) -> Executed {
    let error = error.map(LaboratoryError::or_limit);
    run.state = match &error {
        None => RunState::Finished,
        Some(LaboratoryError::Interrupted) => RunState::Interrupted,
        Some(error) => RunState::Failed(error.to_string()),
    };
    recorder.finish_run(&run);
    recorder.tell(observer);
    observer.event(Event::RunFinished(&run));
    Executed { run, error }
}

/// Readies the process for these plans. To be called once, before it starts
/// any thread: fresh file systems are mounted for this process alone.
pub fn prepare_process(plans: &[Plan]) -> Result<(), LaboratoryError> {
    if !plans.iter().any(Plan::mounts) {
        return Ok(());
    }
    enter_private_mounts().map_err(|error| {
        LaboratoryError::Request(format!(
            "{error}; use sudo, or leave `--fresh` away: `diskperf run` then measures the file system of the directory as it is"
        ))
    })
}

/// What the programs of a run stand on.
struct Stand<'a> {
    drives: &'a [Drive],
    other: Option<&'a Drive>,
    block_events: Option<&'a BlockEvents>,
}

/// A run under way.
struct Execution<'a> {
    plan: &'a HostPlan,
    stop: &'a Arc<AtomicBool>,
    clock: Clock,
    /// The sizes that pilots found, by file system and group of steps.
    sizes: BTreeMap<(String, u32), u64>,
    /// What could not be removed, in words.
    left: Vec<String>,
    run: Run,
    observer: &'a mut dyn Observer,
    recorder: &'a mut Recorder,
}

impl Execution<'_> {
    fn carry_out(&mut self) -> Result<(), LaboratoryError> {
        self.run.overhead = Some(overhead::measure(self.clock).map_err(LaboratoryError::work)?);
        self.recorder.begin_run(&self.run);
        self.recorder.tell(self.observer);
        self.observer.event(Event::RunStarted(&self.run));
        for note in &self.plan.notes {
            self.observer.event(Event::Note(note));
        }
        if self.plan.fresh.is_empty() {
            return self.on_filesystem(None);
        }
        for spec in &self.plan.fresh {
            if !self.left.is_empty() {
                return Err(LaboratoryError::work(
                    "the other fresh file systems are left out, since their room may be taken",
                ));
            }
            self.on_filesystem(Some(spec))?;
        }
        Ok(())
    }

    /// Runs all programs on the targets as they are, or on fresh file systems
    /// there.
    fn on_filesystem(&mut self, fresh: Option<&FreshSpec>) -> Result<(), LaboratoryError> {
        let needed_bytes = match self.plan.experiment.size {
            SizeChoice::Bytes(size_bytes) => Some(self.plan.files_bytes(size_bytes)),
            SizeChoice::Auto => None,
        };
        let mut drives = Vec::new();
        let opened = self.open(fresh, needed_bytes, &mut drives);
        self.recorder.tell(self.observer);
        let result = opened.and_then(|()| self.steps(&drives));
        let mut closed = Ok(());
        for drive in drives {
            closed = closed.and(drive.close(self.recorder, &mut self.left));
        }
        // What ended the programs says more than what was found afterwards.
        result.and(closed)
    }

    /// Opens the drives of all targets, and at last of the one to copy to.
    fn open(
        &mut self,
        fresh: Option<&FreshSpec>,
        needed_bytes: Option<u64>,
        drives: &mut Vec<Drive>,
    ) -> Result<(), LaboratoryError> {
        let targets = self.plan.targets.iter().map(|target| (target, fresh));
        let other = self.plan.other.iter().map(|target| (target, None));
        for (target, fresh) in targets.chain(other) {
            let left = &mut self.left;
            drives.push(Drive::open(
                target,
                fresh,
                needed_bytes,
                self.recorder,
                left,
            )?);
        }
        Ok(())
    }

    /// Runs all programs on open drives.
    fn steps(&mut self, drives: &[Drive]) -> Result<(), LaboratoryError> {
        let events = self.listen(drives.iter());
        let (drives, other) = drives.split_at(self.plan.targets.len());
        let stand = Stand {
            drives,
            other: other.first(),
            block_events: events.as_ref(),
        };
        let mut steps = self.plan.suite.steps.iter().enumerate();
        let result = steps.try_for_each(|(number, step)| self.step(number, step, &stand));
        if let Some(Err(error)) = events.map(BlockEvents::close) {
            self.left
                .push(format!("{error}; `diskperf clean` removes it"));
        }
        result
    }

    /// Listens to the disks of these drives, where the plan has it and the system
    /// lets it; where not, says why.
    fn listen<'d>(&mut self, drives: impl Iterator<Item = &'d Drive>) -> Option<BlockEvents> {
        if !self.plan.block_events {
            return None;
        }
        let mut disks: Vec<BlockDevice> = Vec::new();
        for disk in drives.flat_map(Drive::queues) {
            if !disks.contains(disk) {
                disks.push(disk.clone());
            }
        }
        match BlockEvents::of(&disks) {
            Ok(events) => Some(events),
            Err(error) => {
                let note = format!(
                    "no block-layer events: {error}; what is told comes from the kernel's counters"
                );
                self.observer.event(Event::Note(&note));
                None
            }
        }
    }

    fn step(
        &mut self,
        number: usize,
        step: &Step,
        stand: &Stand<'_>,
    ) -> Result<(), LaboratoryError> {
        let title = title(step);
        let of = self.plan.suite.steps.len() * self.plan.fresh.len().max(1);
        let number = number
            + self.run.results.len() / self.plan.suite.steps.len() * self.plan.suite.steps.len();
        self.observer.event(Event::StepStarted {
            title: &title,
            number,
            of,
        });
        let bench = Bench {
            stop: Arc::clone(self.stop),
            clock: self.clock,
            time_calls: self.plan.experiment.time_calls,
            drop_all_caches: self.plan.experiment.drop_all_caches,
            drives: stand.drives,
            other: stand.other,
            seed: self.plan.experiment.seed,
            read_ahead: self.plan.read_ahead,
            block_events: stand.block_events,
        };
        let task = Task {
            program: &step.program,
            cache: step.program.cache_mode(self.plan.experiment.cache),
            size_bytes: 0,
        };
        let names = self.names();
        let failed = |error: ProgramError| LaboratoryError::program(&title, &names, &error);
        let size_bytes = self.size(step, &bench, task).map_err(failed)?;
        let mut result = self.new_result(step, size_bytes, &bench, task);
        self.recorder.begin_result(&result);
        self.recorder.tell(self.observer);
        let outcome = self.repeat(&mut result, &bench, Task { size_bytes, ..task });
        result.notes.extend(stagger_note(&step.program, &result));
        self.recorder.finish_result(&result);
        self.recorder.tell(self.observer);
        self.observer.event(Event::StepFinished(&result));
        self.run.results.push(result);
        outcome.map_err(failed)
    }

    /// What the user calls the workers' mounts and drives.
    fn names(&self) -> Names {
        let targets = self.plan.targets.iter();
        let directories = targets
            .clone()
            .filter(|target| target.medium == Medium::Directory);
        let others = targets
            .clone()
            .filter(|target| target.medium != Medium::Directory);
        Names {
            targets: targets.clone().map(Target::name).collect(),
            mounts: directories
                .chain(&self.plan.other)
                .map(Target::name)
                .collect(),
            drives: others.map(Target::name).collect(),
        }
    }

    /// The size as asked for, or as a pilot finds it; once for each group.
    fn size(
        &mut self,
        step: &Step,
        bench: &Bench<'_>,
        task: Task<'_>,
    ) -> Result<u64, ProgramError> {
        let call_bytes = step.program.call_bytes();
        if let SizeChoice::Bytes(size_bytes) = self.plan.experiment.size {
            return Ok(size_bytes);
        }
        if let Some(usual_bytes) = step.program.usual_bytes() {
            let drives = bench.drives.iter().chain(bench.other);
            let room_bytes = drives.map(|drive| drive.pilot_bytes).min().unwrap_or(0);
            let mut size_bytes = usual_bytes;
            while size_bytes > call_bytes && step.program.file_bytes(size_bytes) > room_bytes {
                size_bytes /= 2;
            }
            return Ok(size_bytes.max(call_bytes));
        }
        let whole_calls = |size_bytes: u64| size_bytes.max(call_bytes) / call_bytes * call_bytes;
        let key = (bench.drives[0].filesystem.clone(), step.size_group);
        if let Some(size_bytes) = self.sizes.get(&key) {
            return Ok(whole_calls(*size_bytes));
        }
        let group = self
            .plan
            .suite
            .steps
            .iter()
            .filter(|other| other.size_group == step.size_group);
        let group: Vec<_> = group.collect();
        let typical = Task {
            program: &group[group.len() / 2].program,
            ..task
        };
        let drives = bench.drives.iter().chain(bench.other);
        let room_bytes = drives.map(|drive| drive.pilot_bytes).min().unwrap_or(0);
        let fits = |size_bytes| {
            let mut programs = group.iter().map(|step| &step.program);
            programs.all(|program| program.file_bytes(size_bytes) <= room_bytes)
        };
        let size_bytes = pilot::size(bench, typical, fits, self.observer)?;
        self.sizes.insert(key, size_bytes);
        Ok(whole_calls(size_bytes))
    }

    /// Repeats by the protocol until there are enough.
    fn repeat(
        &mut self,
        result: &mut ProgramResult,
        bench: &Bench<'_>,
        task: Task<'_>,
    ) -> Result<(), ProgramError> {
        let protocol = result.protocol;
        for number in 0..protocol.repetitions {
            let of = (number, protocol.repetitions);
            let mut repetition = bench.repetition(task, of, self.observer)?;
            repetition.discarded = number < protocol.discarded;
            self.recorder.add_repetition(&repetition);
            self.recorder.tell(self.observer);
            self.observer.event(Event::RepetitionFinished(&repetition));
            result.repetitions.push(repetition);
            if is_sure(result, &protocol) {
                break;
            }
        }
        Ok(())
    }

    fn new_result(
        &self,
        step: &Step,
        size_bytes: u64,
        bench: &Bench<'_>,
        task: Task<'_>,
    ) -> ProgramResult {
        let notes = bench
            .drives
            .iter()
            .flat_map(|drive| drive.notes.clone())
            .collect();
        ProgramResult {
            program: step.program.name().to_owned(),
            parameters: step.program.parameter_values(),
            distinguishing: step.distinguishing.clone(),
            row: step.row,
            drives: bench.drives.len() as u32,
            filesystem: bench.drives[0].filesystem.clone(),
            size_bytes,
            cache: task.cache,
            protocol: self.plan.suite.protocol,
            repetitions: Vec::new(),
            notes,
        }
    }
}

/// How many kept repetitions it takes before an interval may end them.
const FEWEST_TO_BE_SURE: usize = 6;

/// Whether the interval is as narrow as the protocol wants it.
pub(crate) fn is_sure(result: &ProgramResult, protocol: &Protocol) -> bool {
    let Some(share) = protocol.stop_below_share else {
        return false;
    };
    let elapsed: Vec<f64> = result.kept().map(|kept| kept.elapsed().seconds()).collect();
    if elapsed.len() < FEWEST_TO_BE_SURE {
        return false;
    }
    let median = statistics::median(&elapsed);
    let interval = statistics::median_interval(&elapsed);
    median
        .zip(interval)
        .is_some_and(|(median, interval)| interval.relative_width(median) < share)
}

/// A run with nothing measured yet.
fn new_run(plan: &HostPlan, clock: Clock) -> Run {
    let places: Vec<&Path> = plan
        .targets
        .iter()
        .chain(&plan.other)
        .map(|target| target.path.as_path())
        .collect();
    Run {
        id: new_id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        suite: plan.suite.name.clone(),
        target: plan.target_name(),
        world: World::Host,
        label: plan.experiment.label.clone(),
        seed: plan.experiment.seed,
        started_unix_ms: unix_time().as_millis() as u64,
        command_line: Vec::new(),
        experiment: kept(&plan.experiment),
        cache: plan.experiment.cache,
        dropped_all_caches: plan.experiment.drop_all_caches,
        state: RunState::Running,
        environment: environment::capture(&places, clock.name()),
        model: None,
        overhead: None,
        results: Vec::new(),
        notes: plan.notes.clone(),
    }
}

/// An experiment as a run keeps it, where that can be.
pub(crate) fn kept(experiment: &Experiment) -> Option<Experiment> {
    experiment.is_text().then(|| experiment.clone())
}

fn unix_time() -> std::time::Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}

/// Ten hexadecimal digits, different for every run: the hash of the time and
/// the process by the standard library's randomly keyed hasher.
fn new_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let hash = RandomState::new().hash_one((unix_time().as_nanos(), std::process::id()));
    format!("{:010x}", hash >> 24)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::{Nanoseconds, Repetition, Statistic, WorkerMeasure};

    #[test]
    fn ids_differ() {
        assert_ne!(new_id(), new_id());
        assert_eq!(new_id().len(), 10);
    }

    #[test]
    fn repetitions_that_agree_end_early_and_others_do_not() {
        let protocol = Protocol {
            repetitions: 20,
            discarded: 0,
            statistic: Statistic::Median,
            stop_below_share: Some(0.02),
        };
        let result = |elapsed_ms: &[u64]| ProgramResult {
            program: "write_8192".to_owned(),
            parameters: BTreeMap::new(),
            distinguishing: Vec::new(),
            row: 0,
            drives: 1,
            filesystem: String::new(),
            size_bytes: 8192,
            cache: diskperf_timeline::CacheMode::Cold,
            protocol,
            repetitions: elapsed_ms
                .iter()
                .map(|ms| Repetition {
                    workers: vec![WorkerMeasure {
                        elapsed: Nanoseconds::from_millis(*ms),
                        ..WorkerMeasure::default()
                    }],
                    ..Repetition::default()
                })
                .collect(),
            notes: Vec::new(),
        };
        assert!(is_sure(
            &result(&[500, 501, 500, 499, 500, 501, 500]),
            &protocol
        ));
        assert!(!is_sure(&result(&[500, 501, 500]), &protocol));
        assert!(!is_sure(
            &result(&[500, 600, 450, 700, 520, 480, 610]),
            &protocol
        ));
    }
}
