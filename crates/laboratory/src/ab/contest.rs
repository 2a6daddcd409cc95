//! One program in both arms: its blocks, and what they say so far.

use super::arm::Measured;
use crate::error::LaboratoryError;
use crate::measured::{Assignment, Task, stagger_note};
use crate::observer::{Event, Observer};
use crate::plan::title;
use crate::repetition::HostRig;
use crate::rig::{Rig, THREE_RUNS, Work};
use diskperf_analysis::quantity::Quantity;
use diskperf_analysis::statistics::interleaved::{Limits, Sequence};
use diskperf_battery::Step;
use diskperf_machine::{Stream, Streams};
use diskperf_timeline::{Block, CacheMode, Protocol, Repetition};
use std::sync::Arc;
use std::time::Duration;

/// The arms' rigs, A's first.
pub(super) type Rigs<'r> = [&'r HostRig<'r>; 2];

/// What one wants to know of each rate.
#[derive(Clone, Copy, Default)]
pub(super) struct Question {
    pub(super) limits: Limits,
    /// A loss of speed, as a share, that is to be found or excluded besides.
    pub(super) fail_over: Option<f64>,
}

impl Question {
    fn is_answered(self, row: &Sequence) -> bool {
        let known = |limit| row.is_regression(limit).is_some();
        row.verdict().is_some() && self.fail_over.is_none_or(known)
    }
}

/// One program in both arms.
pub(super) struct Contest<'a> {
    /// Its place in the order of running.
    ordinal: usize,
    steps: [&'a Step; 2],
    workers: [Vec<Assignment>; 2],
    coin: Stream,
    pub(super) blocks: u32,
    question: Question,
    /// What is judged, and what the blocks say of it; the primary quantity first.
    judged: Vec<(Quantity, Sequence)>,
}

impl<'a> Contest<'a> {
    /// Begins with a program, and runs it once in each arm, which does not count.
    pub(super) fn begin(
        (ordinal, steps): (usize, [&'a Step; 2]),
        sizes_bytes: [u64; 2],
        (arms, rigs): (&mut [Measured<'_>; 2], Rigs<'_>),
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Self, LaboratoryError> {
        let mut workers = [Vec::new(), Vec::new()];
        let mut firsts = Vec::new();
        let mut past_cache = true;
        for (number, arm) in arms.iter_mut().enumerate() {
            let (step, rig) = (steps[number], rigs[number]);
            let task = Task {
                program: &step.program,
                cache: step.program.cache_mode(arm.plan.experiment.cache),
                size_bytes: sizes_bytes[number],
            };
            workers[number] = rig.assignments(task);
            let work = Work {
                title: &title(step),
                task,
                protocol: Protocol {
                    repetitions: 2,
                    statistic: arm.plan.suite.protocol.statistic,
                    ..THREE_RUNS
                },
            };
            arm.begin_result(work.result(step, &rig.stand()));
            let first = Repetition {
                discarded: true,
                ..repetition(rig, work.title, &workers[number], observer)?
            };
            firsts.push(first.clone());
            past_cache &= task.cache == CacheMode::Direct;
            arm.add_repetition(ordinal, first, observer);
        }
        let quantities =
            Quantity::of_both(firsts[..1].iter(), firsts[1..].iter(), past_cache).into_iter();
        let undecided = |quantity| (quantity, Sequence::new(1, Limits::default()));
        Ok(Self {
            ordinal,
            steps,
            workers,
            coin: Streams::new(seed).stream(&format!("ab.{ordinal}")),
            blocks: 0,
            question: Question::default(),
            judged: quantities.map(undecided).collect(),
        })
    }

    /// What its table shows of it.
    pub(super) fn title(&self) -> String {
        let [a, b] = self.steps.map(title);
        match a == b {
            true => a,
            false => format!("{a} | {b}"),
        }
    }

    /// How many quantities are judged.
    pub(super) fn rows(&self) -> usize {
        self.judged.len()
    }

    /// Judges them as some of so many.
    pub(super) fn ask(&mut self, question: Question, rows: usize) {
        self.question = question;
        for (_, row) in &mut self.judged {
            *row = Sequence::new(rows, question.limits);
        }
    }

    /// Whether all that can be said of it is.
    pub(super) fn is_decided(&self) -> bool {
        let mut rows = self.judged.iter();
        rows.all(|(_, row)| self.question.is_answered(row))
    }

    /// One repetition of each arm, in an order that a coin decides. Of a block that
    /// fails nothing is kept.
    pub(super) fn block(
        &mut self,
        (arms, rigs): (&mut [Measured<'_>; 2], Rigs<'_>),
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        let b_second = self.coin.chance(0.5);
        let number = self.blocks;
        let mut run = |arm: usize, second: bool| {
            let title = title(self.steps[arm]);
            let measured = repetition(rigs[arm], &title, &self.workers[arm], observer)?;
            Ok::<_, LaboratoryError>(Repetition {
                block: Some(Block { number, second }),
                ..measured
            })
        };
        let (a, b) = if b_second {
            let a = run(0, false)?;
            (a, run(1, true)?)
        } else {
            let b = run(1, false)?;
            (run(0, true)?, b)
        };
        self.take(&a, &b, b_second);
        arms[0].add_repetition(self.ordinal, a, observer);
        arms[1].add_repetition(self.ordinal, b, observer);
        Ok(())
    }

    fn take(&mut self, a: &Repetition, b: &Repetition, b_second: bool) {
        self.blocks += 1;
        for (quantity, row) in &mut self.judged {
            if let (Some(a), Some(b)) = (quantity.speed(a), quantity.speed(b)) {
                row.add_rates(a, b, b_second);
            }
        }
    }

    /// Says how far it is, and how long it may still take.
    pub(super) fn tell(&self, left: Duration, observer: &mut dyn Observer) {
        let (quantity, row) = &self.judged[0];
        // A sequence is of times for one unit.
        let sign = if quantity.is_time() { 1.0 } else { -1.0 };
        let ratio = |ln_ratio: f64| (sign * ln_ratio).exp();
        let ends = |low: f64, high: f64| (low.min(high), low.max(high));
        observer.event(Event::BlockFinished {
            title: &self.title(),
            blocks: self.blocks,
            ratio: row.median().map(ratio),
            interval: row.estimate().map(|it| ends(ratio(it.low), ratio(it.high))),
            left,
        });
    }

    /// Ends both of its results.
    pub(super) fn finish(&self, arms: &mut [Measured<'_>; 2]) {
        for (arm, step) in arms.iter_mut().zip(self.steps) {
            let note = stagger_note(&step.program, &arm.run.results[self.ordinal]);
            arm.finish_result(self.ordinal, note);
        }
    }
}

/// One repetition of one arm.
fn repetition(
    rig: &HostRig<'_>,
    title: &str,
    workers: &[Assignment],
    observer: &mut dyn Observer,
) -> Result<Repetition, LaboratoryError> {
    let moved_bytes: Vec<_> = workers.iter().map(|_| Arc::default()).collect();
    rig.run(title, (workers, &moved_bytes), observer)
}
