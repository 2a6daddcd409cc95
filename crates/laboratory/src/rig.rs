//! Where programs are repeated, and the one loop that repeats them.

use crate::error::LaboratoryError;
use crate::measured::{Assignment, Task};
use crate::observer::{Event, Nobody, Observer};
use diskperf_analysis::quantity::judged_s;
use diskperf_analysis::statistics;
use diskperf_battery::Step;
use diskperf_timeline::{ProgramResult, Protocol, Repetition, Statistic};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Drives on which programs can run: those of this machine, or of a modelled one. It
/// is set up when it is made, and has a way of its own to be torn down.
pub(crate) trait Rig {
    /// The workers that a program has here.
    fn assignments(&self, task: Task<'_>) -> Vec<Assignment>;

    /// Runs the workers of a program once, from preparing their files to the last sync.
    /// Beside each is what it has moved so far.
    ///
    /// # Errors
    ///
    /// What the first worker failed with, by the program's title, and what the rig
    /// itself failed with.
    fn run(
        &self,
        title: &str,
        workers: (&[Assignment], &[Arc<AtomicU64>]),
        observer: &mut dyn Observer,
    ) -> Result<Repetition, LaboratoryError>;

    /// What a reader must know of a result here.
    fn remark(&self, _result: &ProgramResult) -> Option<String> {
        None
    }
}

/// A program, and how it is repeated.
pub(crate) struct Work<'a> {
    /// The program with the parameters that tell it from its siblings.
    pub(crate) title: &'a str,
    pub(crate) task: Task<'a>,
    pub(crate) protocol: Protocol,
}

/// What the results on one rig have in common.
pub(crate) struct Stand {
    /// That run each program at once.
    pub(crate) drives: u32,
    /// The kind and block size of the file systems, or a device's name.
    pub(crate) filesystem: String,
    /// What a reader must know.
    pub(crate) notes: Vec<String>,
}

impl Work<'_> {
    /// The result of a step, with nothing measured yet.
    pub(crate) fn result(&self, step: &Step, stand: &Stand) -> ProgramResult {
        ProgramResult {
            program: step.program.name().to_owned(),
            parameters: step.program.parameter_values(),
            distinguishing: step.distinguishing.clone(),
            row: step.row,
            drives: stand.drives,
            filesystem: stand.filesystem.clone(),
            size_bytes: self.task.size_bytes,
            cache: self.task.cache,
            protocol: self.protocol,
            repetitions: Vec::new(),
            notes: stand.notes.clone(),
        }
    }
}

/// The protocol of searches and of published cells: the first of three repetitions
/// clears the cache, as in 1983.
pub(crate) const THREE_RUNS: Protocol = Protocol {
    repetitions: 3,
    discarded: 1,
    statistic: Statistic::Median,
    stop_below_share: None,
};

/// Once, and it counts.
pub(crate) const ONCE: Protocol = Protocol {
    repetitions: 1,
    discarded: 0,
    ..THREE_RUNS
};

/// Repeats a program until its protocol has enough, as long as `goes_on` says so after
/// each repetition. What was measured before an error is in `repetitions`.
///
/// Those that were disturbed from outside are run again, as often as [`spare`] has it. If
/// enough others come of that, the disturbed ones do not count; if not, all do.
pub(crate) fn repeat(
    rig: &impl Rig,
    work: &Work<'_>,
    repetitions: &mut Vec<Repetition>,
    observer: &mut dyn Observer,
    mut goes_on: impl FnMut(&Repetition, &mut dyn Observer) -> bool,
) -> Result<(), LaboratoryError> {
    let (task, protocol) = (work.task, work.protocol);
    let assignments = rig.assignments(task);
    let workers = assignments.len() as u64;
    let wanted = (protocol.repetitions - protocol.discarded) as usize;
    for number in 0.. {
        let of = protocol.repetitions + disturbed(repetitions).min(spare(&protocol));
        if number == of {
            break;
        }
        let moved_bytes: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
        observer.event(Event::RepetitionStarted {
            number,
            of,
            total_bytes: task.size_bytes * workers * task.program.passes(),
            lasts: task.program.lasts(),
            moved_bytes: &moved_bytes,
        });
        let mut repetition = rig.run(work.title, (&assignments, &moved_bytes), observer)?;
        repetition.discarded = number < protocol.discarded;
        let goes_on = goes_on(&repetition, observer);
        repetitions.push(repetition);
        if !goes_on || is_sure(repetitions, &protocol) {
            break;
        }
    }
    let enough = undisturbed(repetitions).count() >= wanted || is_sure(repetitions, &protocol);
    if enough && disturbed(repetitions) > 0 {
        for one in repetitions {
            one.discarded |= one.is_disturbed();
        }
    }
    Ok(())
}

/// Those that count as long as nothing is known of them but what disturbed them.
fn undisturbed(repetitions: &[Repetition]) -> impl Iterator<Item = &Repetition> {
    let counted = repetitions.iter().filter(|one| !one.discarded);
    counted.filter(|one| !one.is_disturbed())
}

/// How many of those that count were disturbed.
fn disturbed(repetitions: &[Repetition]) -> u32 {
    let disturbed = |one: &&Repetition| !one.discarded && one.is_disturbed();
    repetitions.iter().filter(disturbed).count() as u32
}

/// How many repetitions may be run again: half as many as the protocol has, and two
/// at least. Who asks for a single one gets it, whatever it is worth.
fn spare(protocol: &Protocol) -> u32 {
    match protocol.repetitions {
        1 => 0,
        repetitions => (repetitions / 2).max(2),
    }
}

/// The same where nobody watches.
pub(crate) fn repeat_unobserved(
    rig: &impl Rig,
    work: &Work<'_>,
    mut goes_on: impl FnMut(&Repetition) -> bool,
) -> Result<Vec<Repetition>, LaboratoryError> {
    let mut repetitions = Vec::new();
    repeat(rig, work, &mut repetitions, &mut Nobody, |one, _| {
        goes_on(one)
    })?;
    Ok(repetitions)
}

/// How many kept repetitions it takes before an interval may end them.
const FEWEST_TO_BE_SURE: usize = 6;

/// Whether the interval of the undisturbed ones is as narrow as the protocol wants it.
fn is_sure(repetitions: &[Repetition], protocol: &Protocol) -> bool {
    let Some(share) = protocol.stop_below_share else {
        return false;
    };
    let times: Vec<f64> = undisturbed(repetitions).map(judged_s).collect();
    if times.len() < FEWEST_TO_BE_SURE {
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
    use diskperf_timeline::{CacheMode, Interference, LoadMeasure, Nanoseconds, WorkerMeasure};
    use std::cell::Cell;

    /// A rig whose repetitions are disturbed where this says so.
    struct Disturbed<'a> {
        disturbed: &'a [u8],
        number: Cell<usize>,
    }

    impl Rig for Disturbed<'_> {
        fn assignments(&self, _task: Task<'_>) -> Vec<Assignment> {
            Vec::new()
        }

        fn run(
            &self,
            _title: &str,
            _workers: (&[Assignment], &[Arc<AtomicU64>]),
            _observer: &mut dyn Observer,
        ) -> Result<Repetition, LaboratoryError> {
            let number = self.number.replace(self.number.get() + 1);
            let is_disturbed = self.disturbed.get(number) == Some(&b'x');
            let busy = is_disturbed.then_some(Interference::ProcessorBusy { threads: 1 });
            Ok(Repetition {
                workers: vec![WorkerMeasure {
                    elapsed: Nanoseconds::from_millis(500),
                    ..WorkerMeasure::default()
                }],
                interference: busy.into_iter().collect(),
                ..Repetition::default()
            })
        }
    }

    /// Which repetitions are kept (`k`) and which are not (`-`), where some are
    /// disturbed (`x`).
    fn kept(repetitions: u32, discarded: u32, sure: Option<f64>, disturbed: &str) -> String {
        let rig = Disturbed {
            disturbed: disturbed.as_bytes(),
            number: Cell::new(0),
        };
        let work = Work {
            title: "",
            task: Task {
                program: &Program::named("read_8192").unwrap(),
                cache: CacheMode::Cold,
                size_bytes: 0,
            },
            protocol: Protocol {
                repetitions,
                discarded,
                statistic: Statistic::Median,
                stop_below_share: sure,
            },
        };
        let repetitions = repeat_unobserved(&rig, &work, |_| true).unwrap();
        let mark = |one: &Repetition| if one.discarded { '-' } else { 'k' };
        repetitions.iter().map(mark).collect()
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
    fn repetitions_that_agree_end_early_and_others_do_not() {
        let protocol = Protocol {
            repetitions: 20,
            discarded: 0,
            stop_below_share: Some(0.02),
            ..THREE_RUNS
        };
        let is_sure = |elapsed_ms: &[u64]| {
            let repetitions = elapsed_ms.iter().map(|ms| Repetition {
                workers: vec![WorkerMeasure {
                    elapsed: Nanoseconds::from_millis(*ms),
                    ..WorkerMeasure::default()
                }],
                ..Repetition::default()
            });
            super::is_sure(&repetitions.collect::<Vec<_>>(), &protocol)
        };
        assert!(is_sure(&[500, 501, 500, 499, 500, 501, 500]));
        assert!(!is_sure(&[500, 501, 500]));
        assert!(!is_sure(&[500, 600, 450, 700, 520, 480, 610]));
    }

    /// Of repetitions of a fixed duration, the elapsed time is sure from the start.
    #[test]
    fn of_a_fixed_duration_the_rate_of_requests_is_what_is_sure() {
        let protocol = Protocol {
            repetitions: 20,
            discarded: 0,
            stop_below_share: Some(0.02),
            ..THREE_RUNS
        };
        let is_sure = |requests: &[u64]| {
            let repetitions = requests.iter().map(|requests| {
                let mut load = LoadMeasure::default();
                load.read.response = vec![(1000, *requests)].into();
                Repetition {
                    workers: vec![WorkerMeasure {
                        elapsed: Nanoseconds::from_millis(500),
                        load: Some(load),
                        ..WorkerMeasure::default()
                    }],
                    ..Repetition::default()
                }
            });
            super::is_sure(&repetitions.collect::<Vec<_>>(), &protocol)
        };
        assert!(is_sure(&[5000, 5010, 5000, 4990, 5000, 5010, 5000]));
        assert!(!is_sure(&[5000, 6000, 4500, 7000, 5200, 4800, 6100]));
    }
}
