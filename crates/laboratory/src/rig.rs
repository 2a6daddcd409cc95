//! Where programs are repeated, and the one loop that repeats them.

use crate::error::LaboratoryError;
use crate::measured::{Assignment, Task};
use crate::observer::{Event, Nobody, Observer};
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
    for number in 0..protocol.repetitions {
        let moved_bytes: Vec<_> = assignments.iter().map(|_| Arc::default()).collect();
        observer.event(Event::RepetitionStarted {
            number,
            of: protocol.repetitions,
            total_bytes: task.size_bytes * workers * task.program.passes(),
            moved_bytes: &moved_bytes,
        });
        let mut repetition = rig.run(work.title, (&assignments, &moved_bytes), observer)?;
        repetition.discarded = number < protocol.discarded;
        let wanted = goes_on(&repetition, observer);
        repetitions.push(repetition);
        if !wanted || is_sure(repetitions, &protocol) {
            break;
        }
    }
    Ok(())
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

/// Whether the interval is as narrow as the protocol wants it.
fn is_sure(repetitions: &[Repetition], protocol: &Protocol) -> bool {
    let Some(share) = protocol.stop_below_share else {
        return false;
    };
    let kept = repetitions.iter().filter(|one| !one.discarded);
    let elapsed: Vec<f64> = kept.map(|one| one.elapsed().seconds()).collect();
    if elapsed.len() < FEWEST_TO_BE_SURE {
        return false;
    }
    let median = statistics::median(&elapsed);
    let interval = statistics::median_interval(&elapsed);
    median
        .zip(interval)
        .is_some_and(|(median, interval)| interval.relative_width(median) < share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::{Nanoseconds, WorkerMeasure};

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
}
