//! Rigs that programs are repeated on, and the loop that repeats them.

use crate::error::LaboratoryError;
use crate::measured::{JobTask, WorkerAssignment};
use crate::observer::{Observer, ObserverEvent, SilentObserver};
use diskperf_analysis::quantity::judged_duration_s;
use diskperf_analysis::statistics::{self, steady::is_steady};
use diskperf_analysis::summary;
use diskperf_battery::{SuiteJob, WorkerGroups};
use diskperf_system::WorkerProgress;
use diskperf_timeline::{
    Nanoseconds, ProgramResult, Protocol, Repetition, SteadyRule, SummaryStatistic,
};
use std::sync::Arc;

/// Drives on which programs can run, of this machine or of a modelled one. A rig is set up when it
/// is created; each kind has its own way to be torn down.
pub trait MeasurementRig {
    /// Returns the assignments of the workers that run simultaneous tasks on this rig.
    fn list_assignments(&self, tasks: &[JobTask<'_>]) -> Vec<WorkerAssignment>;

    /// Runs the workers of tasks once, from the preparation of their files to the last sync.
    /// Returns a repetition of each task. Each worker has its progress beside it.
    ///
    /// # Errors
    ///
    /// Returns the error of the first worker that failed, with the title of its task, and errors of
    /// the rig itself.
    fn run_assignments(
        &self,
        workers: (&[WorkerAssignment], &[Arc<WorkerProgress>]),
        observer: &mut dyn Observer,
    ) -> Result<Vec<Repetition>, LaboratoryError>;

    /// Returns a remark on a result of this rig for its readers.
    fn describe_result(&self, _result: &ProgramResult) -> Option<String> {
        None
    }
}

/// Simultaneous tasks, and the protocol of their repetitions.
pub struct RigWork<'a> {
    /// Tasks that run at the same time, at least one.
    pub job_tasks: Vec<JobTask<'a>>,
    /// Number of repetitions, and the selection of those that count.
    pub protocol: Protocol,
    /// Groups (companies) of the workers on each drive, which share state.
    pub companion_work: WorkerGroups,
}

/// Properties that all results on one rig share.
pub struct RigSetup {
    /// Number of drives that run each program together.
    pub drive_count: u32,
    /// Kind and block size of the file systems, or the name of a device.
    pub filesystem: String,
    /// Remarks on the rig for readers of its results.
    pub notes: Vec<String>,
}

impl RigSetup {
    /// Creates the result of a job, with no measurements yet.
    pub fn new_result(
        &self,
        job: &SuiteJob,
        task: JobTask<'_>,
        protocol: Protocol,
    ) -> ProgramResult {
        ProgramResult {
            program: job.display_name().to_owned(),
            parameters: job.parameter_values(),
            distinguishing: job.distinguishing_parameters.clone(),
            table_row: job.table_row,
            drive_count: self.drive_count,
            filesystem_type: self.filesystem.clone(),
            size_bytes: task.size_bytes,
            cache_mode: task.cache_mode,
            protocol,
            repetitions: Vec::new(),
            notes: self.notes.clone(),
        }
    }
}

/// Protocol of searches and of published cells. The first of three repetitions clears the cache, as
/// in 1983.
pub const THREE_REPETITIONS: Protocol = Protocol {
    repetition_count: 3,
    discarded_count: 1,
    statistic: SummaryStatistic::Median,
    stop_below_share: None,
    steady_rule: None,
};

/// Protocol of a single repetition, which is kept.
pub const ONE_REPETITION: Protocol = Protocol {
    repetition_count: 1,
    discarded_count: 0,
    ..THREE_REPETITIONS
};

/// Repeats tasks until their protocol has enough repetitions of each, and while `goes_on` returns
/// true. `goes_on` receives the latest repetition of each task. After an error, `repetitions` holds
/// the earlier measurements, task by task.
///
/// Repetitions that were disturbed from outside are run again, up to the limit of [`spare_repetitions`].
pub fn repeat_work(
    rig: &impl MeasurementRig,
    work: &RigWork<'_>,
    repetitions: &mut [Vec<Repetition>],
    observer: &mut dyn Observer,
    mut goes_on: impl FnMut(&[Repetition], &mut dyn Observer) -> bool,
) -> Result<(), LaboratoryError> {
    let protocol = work.protocol;
    let mut assignments = rig.list_assignments(&work.job_tasks);
    for one in &mut assignments {
        one.worker.worker_group = work.companion_work.add_worker(one.worker.drive_index);
    }
    for number in 0.. {
        // What else the machine did, it did to all tasks.
        let of = protocol.repetition_count
            + disturbed_count(&repetitions[0]).min(spare_repetitions(&protocol));
        if number == of {
            break;
        }
        let mut made = run_once((rig, work), &assignments, (number, of), observer)?;
        for one in &mut made {
            one.is_discarded = number < protocol.discarded_count;
        }
        let goes_on = goes_on(&made, observer);
        for (all, one) in repetitions.iter_mut().zip(made) {
            all.push(one);
        }
        if !goes_on
            || repetitions
                .iter()
                .all(|all| has_enough_repetitions(all, &protocol))
        {
            break;
        }
    }
    match protocol.steady_rule {
        Some(rule) => keep_steady_window(repetitions, &rule),
        None => keep_undisturbed(repetitions, &protocol),
    }
    Ok(())
}

/// Reports whether the repetitions suffice before their maximum number is reached.
fn has_enough_repetitions(repetitions: &[Repetition], protocol: &Protocol) -> bool {
    match protocol.steady_rule {
        Some(rule) => is_steady(&summary::round_rates(repetitions), &rule),
        None => is_interval_narrow(repetitions, protocol),
    }
}

/// Keeps the last window of rounds that run until they are steady, and discards the earlier ones.
/// Disturbed rounds count as well, because each round changes the storage.
fn keep_steady_window(rounds: &mut [Vec<Repetition>], rule: &SteadyRule) {
    for all in rounds {
        let before = all.len().saturating_sub(rule.window_rounds as usize);
        for round in &mut all[..before] {
            round.is_discarded = true;
        }
    }
}

/// Discards disturbed repetitions if enough undisturbed ones remain. Otherwise all count.
fn keep_undisturbed(repetitions: &mut [Vec<Repetition>], protocol: &Protocol) {
    let wanted = (protocol.repetition_count - protocol.discarded_count) as usize;
    let enough = |all: &Vec<Repetition>| {
        undisturbed_repetitions(all).count() >= wanted || is_interval_narrow(all, protocol)
    };
    if repetitions.iter().all(enough) {
        for one in repetitions.iter_mut().flatten() {
            one.is_discarded |= one.is_disturbed();
        }
    }
}

fn run_once(
    (rig, work): (&impl MeasurementRig, &RigWork<'_>),
    assignments: &[WorkerAssignment],
    (number, of): (u32, u32),
    observer: &mut dyn Observer,
) -> Result<Vec<Repetition>, LaboratoryError> {
    let workers: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
    observer.handle_event(ObserverEvent::RepetitionStarted {
        number,
        of,
        total_bytes: total_work_bytes(work, assignments),
        lasts: expected_duration(work),
        workers: &workers,
    });
    rig.run_assignments((assignments, &workers), observer)
}

fn total_work_bytes(work: &RigWork<'_>, assignments: &[WorkerAssignment]) -> u64 {
    let moved = |one: &WorkerAssignment| {
        one.worker.size_bytes * work.job_tasks[one.task_index].program.pass_count()
    };
    assignments.iter().map(moved).sum()
}

fn expected_duration(work: &RigWork<'_>) -> Option<Nanoseconds> {
    let each: Option<Vec<_>> = work
        .job_tasks
        .iter()
        .map(|task| task.program.duration_max())
        .collect();
    each?.into_iter().max()
}

/// Repetitions that are neither discarded nor disturbed.
fn undisturbed_repetitions(repetitions: &[Repetition]) -> impl Iterator<Item = &Repetition> {
    let counted = repetitions.iter().filter(|one| !one.is_discarded);
    counted.filter(|one| !one.is_disturbed())
}

fn disturbed_count(repetitions: &[Repetition]) -> u32 {
    let disturbed = |one: &&Repetition| !one.is_discarded && one.is_disturbed();
    repetitions.iter().filter(disturbed).count() as u32
}

/// Returns the number of repetitions that may be run again: half of the protocol's number, and at
/// least two. It is zero for a protocol with a single repetition, and for rounds that run until
/// they are steady, because all of those count.
pub fn spare_repetitions(protocol: &Protocol) -> u32 {
    match protocol.repetition_count {
        _ if protocol.steady_rule.is_some() => 0,
        1 => 0,
        repetitions => (repetitions / 2).max(2),
    }
}

/// Repeats one task without an observer.
pub fn repeat_unobserved(
    rig: &impl MeasurementRig,
    (task, protocol): (JobTask<'_>, Protocol),
    mut goes_on: impl FnMut(&Repetition) -> bool,
) -> Result<Vec<Repetition>, LaboratoryError> {
    let mut repetitions = [Vec::new()];
    let tasks = vec![task];
    let work = RigWork {
        job_tasks: tasks,
        protocol,
        companion_work: WorkerGroups::default(),
    };
    repeat_work(
        rig,
        &work,
        &mut repetitions,
        &mut SilentObserver,
        |made, _| goes_on(&made[0]),
    )?;
    let [repetitions] = repetitions;
    Ok(repetitions)
}

/// Minimum number of undisturbed repetitions before a narrow confidence interval may end the
/// repetitions.
const REPETITION_COUNT_MIN: usize = 6;

/// Reports whether the confidence interval of the undisturbed repetitions is as narrow as the
/// protocol requires.
fn is_interval_narrow(repetitions: &[Repetition], protocol: &Protocol) -> bool {
    let Some(share) = protocol.stop_below_share else {
        return false;
    };
    let times: Vec<f64> = undisturbed_repetitions(repetitions)
        .map(judged_duration_s)
        .collect();
    if times.len() < REPETITION_COUNT_MIN {
        return false;
    }
    let median = statistics::median(&times);
    let interval = statistics::median_interval(&times);
    median
        .zip(interval)
        .is_some_and(|(median, interval)| interval.relative_width(median) < share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_battery::Program;
    use diskperf_timeline::{CacheMode, Interference, LoadMeasure, WorkerMeasure};
    use std::cell::Cell;

    /// A rig whose repetitions are what this says of each number.
    struct Scripted<F> {
        repetition: F,
        number: Cell<usize>,
    }

    impl<F: Fn(usize) -> Repetition> MeasurementRig for Scripted<F> {
        fn list_assignments(&self, _tasks: &[JobTask<'_>]) -> Vec<WorkerAssignment> {
            Vec::new()
        }

        fn run_assignments(
            &self,
            _workers: (&[WorkerAssignment], &[Arc<WorkerProgress>]),
            _observer: &mut dyn Observer,
        ) -> Result<Vec<Repetition>, LaboratoryError> {
            let number = self.number.replace(self.number.get() + 1);
            Ok(vec![(self.repetition)(number)])
        }
    }

    /// A repetition of so many milliseconds.
    fn lasting(elapsed_ms: u64, is_disturbed: bool) -> Repetition {
        let busy = is_disturbed.then_some(Interference::ProcessorBusy { threads: 1 });
        Repetition {
            workers: vec![WorkerMeasure {
                elapsed_time: Nanoseconds::from_millis(elapsed_ms),
                ..WorkerMeasure::default()
            }],
            interference: busy.into_iter().collect(),
            ..Repetition::default()
        }
    }

    /// Which repetitions are kept (`k`) by a protocol and which are not (`-`).
    fn kept_of(protocol: Protocol, repetition: impl Fn(usize) -> Repetition) -> String {
        let rig = Scripted {
            repetition,
            number: Cell::new(0),
        };
        let task = JobTask {
            title: "",
            program: &Program::from_name("read_8192").unwrap(),
            cache_mode: CacheMode::Cold,
            size_bytes: 0,
            drive_index: None,
            keeps_others_on_failure: false,
        };
        let repetitions = repeat_unobserved(&rig, (task, protocol), |_| true).unwrap();
        let mark = |one: &Repetition| if one.is_discarded { '-' } else { 'k' };
        repetitions.iter().map(mark).collect()
    }

    /// The same where some are disturbed (`x`).
    fn kept(repetitions: u32, discarded: u32, sure: Option<f64>, disturbed: &str) -> String {
        let protocol = Protocol {
            repetition_count: repetitions,
            discarded_count: discarded,
            stop_below_share: sure,
            ..THREE_REPETITIONS
        };
        let is_disturbed = |number| disturbed.as_bytes().get(number) == Some(&b'x');
        kept_of(protocol, |number| lasting(500, is_disturbed(number)))
    }

    #[test]
    fn disturbed_repetitions_are_run_again_within_bounds() {
        for (repetitions, discarded, disturbed, marks) in [
            (3, 1, "...", "-kk"),
            // Of those that do not count, nothing is run again.
            (3, 1, "x..", "-kk"),
            (3, 1, ".x.", "--kk"),
            (3, 1, ".xx..", "---kk"),
            // One of those that were run again is disturbed too.
            (3, 1, ".x.x.", "--k-k"),
            (3, 1, ".xx.x", "-kkkk"),
            (3, 1, ".xxxx", "-kkkk"),
            (10, 0, "x...xx......x", "-kkk--kkkkkk-k"),
            (10, 0, "xxxxxx.........", "kkkkkkkkkkkkkkk"),
            (1, 0, "x", "k"),
            (2, 0, "xx..", "--kk"),
        ] {
            let found = kept(repetitions, discarded, None, disturbed);
            assert_eq!(found, marks, "{repetitions} with {disturbed}");
        }
        // Six that agree are enough.
        assert_eq!(kept(20, 0, Some(0.02), "x......"), "-kkkkkk");
        assert_eq!(kept(7, 0, Some(0.02), "xxx......."), "---kkkkkk");
    }

    #[test]
    fn rounds_are_run_until_the_last_are_steady_and_these_count() {
        let falling = [100, 150, 200, 300, 500, 500, 510, 495, 505, 500, 500];
        for (most, window, marks) in [
            (25, 5, "----kkkkk"),
            (25, 3, "----kkk"),
            // As many as there may be: the last ones count all the same.
            (7, 5, "--kkkkk"),
            (4, 5, "kkkk"),
        ] {
            let protocol = Protocol {
                repetition_count: most,
                discarded_count: 0,
                steady_rule: Some(SteadyRule {
                    window_rounds: window,
                    ..SteadyRule::SNIA_RULE
                }),
                ..THREE_REPETITIONS
            };
            let found = kept_of(protocol, |number| lasting(falling[number], true));
            assert_eq!(found, marks, "{most} rounds, a window of {window}");
        }
    }

    #[test]
    fn repetitions_that_agree_end_early_and_others_do_not() {
        let protocol = Protocol {
            repetition_count: 20,
            discarded_count: 0,
            stop_below_share: Some(0.02),
            ..THREE_REPETITIONS
        };
        let is_sure = |elapsed_ms: &[u64]| {
            let repetitions = elapsed_ms.iter().map(|ms| lasting(*ms, false));
            super::is_interval_narrow(&repetitions.collect::<Vec<_>>(), &protocol)
        };
        assert!(is_sure(&[500, 501, 500, 499, 500, 501, 500]));
        assert!(!is_sure(&[500, 501, 500]));
        assert!(!is_sure(&[500, 600, 450, 700, 520, 480, 610]));
    }

    #[test]
    fn of_a_fixed_duration_the_rate_of_requests_is_what_is_sure() {
        let protocol = Protocol {
            repetition_count: 20,
            discarded_count: 0,
            stop_below_share: Some(0.02),
            ..THREE_REPETITIONS
        };
        let is_sure = |requests: &[u64]| {
            let repetitions = requests.iter().map(|requests| {
                let mut load = LoadMeasure::default();
                load.read.response_times = vec![(1000, *requests)].into();
                Repetition {
                    workers: vec![WorkerMeasure {
                        elapsed_time: Nanoseconds::from_millis(500),
                        load_measure: Some(load),
                        ..WorkerMeasure::default()
                    }],
                    ..Repetition::default()
                }
            });
            super::is_interval_narrow(&repetitions.collect::<Vec<_>>(), &protocol)
        };
        assert!(is_sure(&[5000, 5010, 5000, 4990, 5000, 5010, 5000]));
        assert!(!is_sure(&[5000, 6000, 4500, 7000, 5200, 4800, 6100]));
    }
}
