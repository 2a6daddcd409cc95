//! One step of an A/B measurement in both arms: its blocks and their verdicts so far.

use super::arm::Measured;
use crate::plan::{step_title, titles};
use crate::repetition::HostRig;
use diskperf_analysis::quantity::Quantity;
use diskperf_analysis::statistics::interleaved::{Decided, Limits, Sequence, size_blocks};
use diskperf_battery::SuiteStep;
use diskperf_machine::{RandomStream, RandomStreams};
use diskperf_models::LaboratoryError;
use diskperf_models::measured::{
    Assignment, Task, arrivals_note, end_notes, engine_note, stagger_note,
};
use diskperf_models::rig::{Rig, THREE_RUNS};
use diskperf_models::{Event, Observer};
use diskperf_timeline::{CacheMode, InterleavedBlock, Protocol, Repetition};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rigs of the two arms of an A/B measurement, A first.
pub(super) type Rigs<'r> = [&'r HostRig<'r>; 2];

/// Limits that each measured rate is judged against.
#[derive(Clone, Copy, Default)]
pub(super) struct Question {
    pub(super) limits: Limits,
    /// Loss of speed, as a share, that the blocks have to find or exclude as well.
    pub(super) fail_over: Option<f64>,
}

impl Question {
    fn is_answered(self, row: &Sequence) -> bool {
        let known = |limit| row.is_regression(limit).is_some();
        row.verdict().is_some() && self.fail_over.is_none_or(known)
    }
}

/// One step with all jobs that run at the same time, measured in both arms.
pub(super) struct Contest<'a> {
    first: usize,
    steps: [&'a SuiteStep; 2],
    workers: [Vec<Assignment>; 2],
    coin: RandomStream,
    pub(super) blocks: u32,
    /// Number of blocks that led to the verdicts; `None` until the verdicts are made.
    deciding_blocks: Option<u32>,
    /// Number of blocks after the deciding ones that measure the sizes of the differences. It is
    /// fixed before the first of them starts, so that it does not depend on their results.
    size_blocks: usize,
    /// Time that all blocks of the step have taken.
    pub(super) spent: Duration,
    question: Question,
    /// Quantities that are judged, each with its sequence of blocks. The primary quantity of the
    /// first job comes first.
    judged: Vec<Judged>,
}

/// One measured quantity of one job, with the sequence of blocks that judges it.
struct Judged {
    job: usize,
    quantity: Quantity,
    row: Sequence,
}

impl<'a> Contest<'a> {
    /// Starts a step of an A/B measurement and runs it once in each arm. This first run is
    /// discarded.
    pub(super) fn begin(
        (number, steps): (usize, [&'a SuiteStep; 2]),
        sizes_bytes: &[Vec<u64>; 2],
        (arms, rigs): (&mut [Measured<'_>; 2], Rigs<'_>),
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Self, LaboratoryError> {
        let first = arms[0].run.results.len();
        let mut workers = [Vec::new(), Vec::new()];
        let mut firsts = Vec::new();
        let mut past_cache = vec![true; steps[0].parallel_jobs.len()];
        for (side, arm) in arms.iter_mut().enumerate() {
            let (step, rig) = (steps[side], rigs[side]);
            let titles = titles(step);
            let asked = arm.plan.experiment.cache_mode;
            let tasks = Task::of_step(step, (&titles, &sizes_bytes[side]), asked);
            workers[side] = rig.assignments(&tasks);
            let protocol = Protocol {
                repetition_count: 2,
                statistic: arm.plan.suite.default_protocol.statistic,
                ..THREE_RUNS
            };
            for (job, task) in step.parallel_jobs.iter().zip(&tasks) {
                arm.begin_result(rig.stand().result(job, *task, protocol));
            }
            let mut made = repetition(rig, &workers[side], observer)?;
            for (number, one) in made.iter_mut().enumerate() {
                one.is_discarded = true;
                past_cache[number] &= tasks[number].cache == CacheMode::Direct;
                arm.add_repetition(first + number, one.clone(), observer);
            }
            firsts.push(made);
        }
        let mut judged = Vec::new();
        for (job, past_cache) in past_cache.into_iter().enumerate() {
            let [a, b] = [&firsts[0][job], &firsts[1][job]].map(std::slice::from_ref);
            let quantities = Quantity::of_both(a.iter(), b.iter(), past_cache);
            judged.extend(quantities.into_iter().map(|quantity| Judged {
                job,
                quantity,
                row: Sequence::new(1, Limits::default()),
            }));
        }
        Ok(Self {
            first,
            steps,
            workers,
            coin: RandomStreams::new(seed).named_stream(&format!("ab.{number}")),
            blocks: 0,
            deciding_blocks: None,
            size_blocks: 0,
            spent: Duration::ZERO,
            question: Question::default(),
            judged,
        })
    }

    /// Title of the step in tables. If the arms differ, it holds both titles, separated by a bar.
    pub(super) fn title(&self) -> String {
        let [a, b] = self.steps.map(step_title);
        match a == b {
            true => a,
            false => format!("{a} | {b}"),
        }
    }

    /// Number of quantities that are judged in this step.
    pub(super) fn rows(&self) -> usize {
        self.judged.len()
    }

    /// Sets the limits that the quantities of the step are judged against. `rows` is the number of
    /// quantities in the whole measurement.
    pub(super) fn ask(&mut self, question: Question, rows: usize) {
        self.question = question;
        for one in &mut self.judged {
            one.row = Sequence::new(rows, question.limits);
        }
    }

    /// Reports whether every quantity of the step has its verdict.
    pub(super) fn is_decided(&self) -> bool {
        let mut rows = self.judged.iter();
        rows.all(|one| self.question.is_answered(&one.row))
    }

    /// Ends the deciding blocks of the step. Later blocks measure the size of differences and do
    /// not change the verdicts.
    pub(super) fn begin_size(&mut self) {
        let found = |one: &Judged| {
            let verdict = one.row.verdict();
            matches!(verdict, Some(Decided::Slower | Decided::Faster))
        };
        self.size_blocks = match self.judged.iter().any(found) {
            true => size_blocks(self.blocks as usize),
            false => 0,
        };
        self.deciding_blocks = Some(self.blocks);
        for one in &mut self.judged {
            one.row.begin_size();
        }
    }

    /// Reports whether the sizes of all differences found in the step have been measured and its
    /// blocks have taken at least `min_time`.
    pub(super) fn is_measured(&self, min_time: Duration) -> bool {
        let deciding = self.deciding_blocks.unwrap_or(self.blocks);
        (self.blocks - deciding) as usize >= self.size_blocks && self.spent >= min_time
    }

    /// Reports whether the blocks have yet to show that a limit on losses of speed is kept or
    /// exceeded. The blocks that measure sizes may reopen an answer of the deciding blocks.
    pub(super) fn is_limit_open(&self) -> bool {
        let is_open = |limit| {
            let mut rows = self.judged.iter().map(|one| &one.row);
            rows.any(|row| row.is_regression(limit).is_none())
        };
        self.question.fail_over.is_some_and(is_open)
    }

    /// Schedules more blocks that measure the sizes of differences, as many as all blocks so far.
    pub(super) fn extend_size(&mut self) {
        let deciding = self.deciding_blocks.unwrap_or(self.blocks);
        self.size_blocks = (self.blocks - deciding) as usize + size_blocks(self.blocks as usize);
    }

    /// Runs one block: one repetition of each arm, in an order that a coin decides. A block that
    /// fails is discarded as a whole.
    pub(super) fn block(
        &mut self,
        (arms, rigs): (&mut [Measured<'_>; 2], Rigs<'_>),
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        let b_second = self.coin.draw_with_probability(0.5);
        let number = self.blocks;
        let after_verdict = self.deciding_blocks.is_some();
        let begun = Instant::now();
        let mut run = |arm: usize, second: bool| {
            let mut made = repetition(rigs[arm], &self.workers[arm], observer)?;
            for one in &mut made {
                one.interleaved_block = Some(InterleavedBlock {
                    block_number: number,
                    is_second_run: second,
                    is_after_verdict: after_verdict,
                });
            }
            Ok::<_, LaboratoryError>(made)
        };
        let (a, b) = if b_second {
            let a = run(0, false)?;
            (a, run(1, true)?)
        } else {
            let b = run(1, false)?;
            (run(0, true)?, b)
        };
        self.spent += begun.elapsed();
        self.take(&a, &b, b_second);
        for (arm, made) in arms.iter_mut().zip([a, b]) {
            for (ordinal, one) in (self.first..).zip(made) {
                arm.add_repetition(ordinal, one, observer);
            }
        }
        Ok(())
    }

    fn take(&mut self, a: &[Repetition], b: &[Repetition], b_second: bool) {
        self.blocks += 1;
        for Judged { job, quantity, row } in &mut self.judged {
            if let (Some(a), Some(b)) = (quantity.speed(&a[*job]), quantity.speed(&b[*job])) {
                row.add_rates(a, b, b_second);
            }
        }
    }

    /// Reports the progress of the step to the observer, with the time that is left.
    pub(super) fn tell(&self, left: Duration, observer: &mut dyn Observer) {
        let Judged { quantity, row, .. } = &self.judged[0];
        // A sequence is of times for one unit.
        let sign = if quantity.is_time() { 1.0 } else { -1.0 };
        let ratio = |ln_ratio: f64| (sign * ln_ratio).exp();
        let ends = |low: f64, high: f64| (low.min(high), low.max(high));
        observer.event(Event::BlockFinished {
            title: &self.title(),
            blocks: self.blocks,
            ratio: row.size().map(ratio),
            interval: row.estimate().map(|it| ends(ratio(it.low), ratio(it.high))),
            left,
        });
    }

    /// Finishes the results of this step in both arms of the A/B measurement.
    pub(super) fn finish(&self, arms: &mut [Measured<'_>; 2]) {
        for (arm, step) in arms.iter_mut().zip(self.steps) {
            for (ordinal, job) in (self.first..).zip(&step.parallel_jobs) {
                let result = &arm.run.results[ordinal];
                let notes = [
                    stagger_note(&job.program, result),
                    arrivals_note(result),
                    engine_note(result),
                ];
                let notes = notes.into_iter().flatten().chain(end_notes(result));
                arm.finish_result(ordinal, notes.collect());
            }
        }
    }
}

/// Runs one repetition of one arm with all jobs of the step.
fn repetition(
    rig: &HostRig<'_>,
    workers: &[Assignment],
    observer: &mut dyn Observer,
) -> Result<Vec<Repetition>, LaboratoryError> {
    let progress: Vec<_> = workers.iter().map(|_| Arc::default()).collect();
    rig.run((workers, &progress), observer)
}
