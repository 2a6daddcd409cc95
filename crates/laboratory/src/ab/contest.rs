//! One step of an A/B measurement in both arms: its blocks and their verdicts so far.

use super::arm::MeasuredVariant;
use crate::plan::{format_step_title, list_titles};
use crate::repetition::HostRig;
use diskperf_analysis::quantity::Quantity;
use diskperf_analysis::statistics::interleaved::{
    ConfidenceSequence, DecisionLimits, SequenceVerdict, size_block_count,
};
use diskperf_battery::SuiteStep;
use diskperf_machine::{RandomStream, RandomStreams};
use diskperf_models::LaboratoryError;
use diskperf_models::measured::{
    JobTask, WorkerAssignment, describe_engine_fallback, describe_late_arrivals, describe_stagger,
    list_end_notes,
};
use diskperf_models::rig::{MeasurementRig, THREE_REPETITIONS};
use diskperf_models::{Observer, ObserverEvent};
use diskperf_timeline::{CacheMode, InterleavedBlock, Protocol, Repetition};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rigs of the two arms of an A/B measurement, A first.
pub(super) type VariantRigs<'r> = [&'r HostRig<'r>; 2];

/// Limits that each measured rate is judged against.
#[derive(Clone, Copy, Default)]
pub(super) struct DecisionQuestion {
    pub(super) decision_limits: DecisionLimits,
    /// Loss of speed, as a share, that the blocks have to find or exclude as well.
    pub(super) slowdown_limit: Option<f64>,
}

impl DecisionQuestion {
    fn is_answered_by(self, row: &ConfidenceSequence) -> bool {
        let known = |limit| row.is_slowdown_above(limit).is_some();
        row.verdict().is_some() && self.slowdown_limit.is_none_or(known)
    }
}

/// One step with all jobs that run at the same time, measured in both arms.
pub(super) struct AbStep<'a> {
    first_ordinal: usize,
    steps: [&'a SuiteStep; 2],
    workers: [Vec<WorkerAssignment>; 2],
    order_stream: RandomStream,
    pub(super) block_count: u32,
    /// Number of blocks that led to the verdicts; `None` until the verdicts are made.
    deciding_block_count: Option<u32>,
    /// Number of blocks after the deciding ones that measure the sizes of the differences. It is
    /// fixed before the first of them starts, so that it does not depend on their results.
    size_block_count: usize,
    /// Time that all blocks of the step have taken.
    pub(super) time_spent: Duration,
    decision_question: DecisionQuestion,
    /// Quantities that are judged, each with its sequence of blocks. The primary quantity of the
    /// first job comes first.
    judged_quantities: Vec<JudgedQuantity>,
}

/// One measured quantity of one job, with the sequence of blocks that judges it.
struct JudgedQuantity {
    job_index: usize,
    quantity: Quantity,
    confidence_sequence: ConfidenceSequence,
}

impl<'a> AbStep<'a> {
    /// Starts a step of an A/B measurement and runs it once in each arm. This first run is
    /// discarded.
    pub(super) fn begin_step(
        (number, steps): (usize, [&'a SuiteStep; 2]),
        sizes_bytes: &[Vec<u64>; 2],
        (arms, rigs): (&mut [MeasuredVariant<'_>; 2], VariantRigs<'_>),
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Self, LaboratoryError> {
        let first = arms[0].run.results.len();
        let mut workers = [Vec::new(), Vec::new()];
        let mut firsts = Vec::new();
        let mut past_cache = vec![true; steps[0].parallel_jobs.len()];
        for (side, arm) in arms.iter_mut().enumerate() {
            let (step, rig) = (steps[side], rigs[side]);
            let titles = list_titles(step);
            let asked = arm.plan.experiment.cache_mode;
            let tasks = JobTask::list_of_step(step, (&titles, &sizes_bytes[side]), asked);
            workers[side] = rig.list_assignments(&tasks);
            let protocol = Protocol {
                repetition_count: 2,
                statistic: arm.plan.suite.default_protocol.statistic,
                ..THREE_REPETITIONS
            };
            for (job, task) in step.parallel_jobs.iter().zip(&tasks) {
                arm.begin_result(rig.describe_setup().new_result(job, *task, protocol));
            }
            let mut made = run_repetition(rig, &workers[side], observer)?;
            for (number, one) in made.iter_mut().enumerate() {
                one.is_discarded = true;
                past_cache[number] &= tasks[number].cache_mode == CacheMode::Direct;
                arm.add_repetition(first + number, one.clone(), observer);
            }
            firsts.push(made);
        }
        let mut judged = Vec::new();
        for (job, past_cache) in past_cache.into_iter().enumerate() {
            let [a, b] = [&firsts[0][job], &firsts[1][job]].map(std::slice::from_ref);
            let quantities = Quantity::common_quantities(a.iter(), b.iter(), past_cache);
            judged.extend(quantities.into_iter().map(|quantity| JudgedQuantity {
                job_index: job,
                quantity,
                confidence_sequence: ConfidenceSequence::new(1, DecisionLimits::default()),
            }));
        }
        Ok(Self {
            first_ordinal: first,
            steps,
            workers,
            order_stream: RandomStreams::new(seed).named_stream(&format!("ab.{number}")),
            block_count: 0,
            deciding_block_count: None,
            size_block_count: 0,
            time_spent: Duration::ZERO,
            decision_question: DecisionQuestion::default(),
            judged_quantities: judged,
        })
    }

    /// Title of the step in tables. If the arms differ, it holds both titles, separated by a bar.
    pub(super) fn title(&self) -> String {
        let [a, b] = self.steps.map(format_step_title);
        match a == b {
            true => a,
            false => format!("{a} | {b}"),
        }
    }

    pub(super) fn judged_count(&self) -> usize {
        self.judged_quantities.len()
    }

    /// Sets the limits that the quantities of the step are judged against. `rows` is the number of
    /// quantities in the whole measurement.
    pub(super) fn set_question(&mut self, question: DecisionQuestion, rows: usize) {
        self.decision_question = question;
        for one in &mut self.judged_quantities {
            one.confidence_sequence = ConfidenceSequence::new(rows, question.decision_limits);
        }
    }

    /// Reports whether every quantity of the step has its verdict.
    pub(super) fn is_decided(&self) -> bool {
        let mut rows = self.judged_quantities.iter();
        rows.all(|one| {
            self.decision_question
                .is_answered_by(&one.confidence_sequence)
        })
    }

    /// Ends the deciding blocks of the step. Later blocks measure the size of differences and do
    /// not change the verdicts.
    pub(super) fn begin_size(&mut self) {
        let found = |one: &JudgedQuantity| {
            let verdict = one.confidence_sequence.verdict();
            matches!(
                verdict,
                Some(SequenceVerdict::Slower | SequenceVerdict::Faster)
            )
        };
        self.size_block_count = match self.judged_quantities.iter().any(found) {
            true => size_block_count(self.block_count as usize),
            false => 0,
        };
        self.deciding_block_count = Some(self.block_count);
        for one in &mut self.judged_quantities {
            one.confidence_sequence.begin_size_phase();
        }
    }

    /// Reports whether the sizes of all differences found in the step have been measured and its
    /// blocks have taken at least `min_time`.
    pub(super) fn is_size_measured(&self, min_time: Duration) -> bool {
        let deciding = self.deciding_block_count.unwrap_or(self.block_count);
        (self.block_count - deciding) as usize >= self.size_block_count
            && self.time_spent >= min_time
    }

    /// Reports whether the blocks have yet to show that a limit on losses of speed is kept or
    /// exceeded. The blocks that measure sizes may reopen an answer of the deciding blocks.
    pub(super) fn is_limit_undecided(&self) -> bool {
        let is_open = |limit| {
            let mut rows = self
                .judged_quantities
                .iter()
                .map(|one| &one.confidence_sequence);
            rows.any(|row| row.is_slowdown_above(limit).is_none())
        };
        self.decision_question.slowdown_limit.is_some_and(is_open)
    }

    /// Schedules more blocks that measure the sizes of differences, as many as all blocks so far.
    pub(super) fn extend_size_phase(&mut self) {
        let deciding = self.deciding_block_count.unwrap_or(self.block_count);
        self.size_block_count =
            (self.block_count - deciding) as usize + size_block_count(self.block_count as usize);
    }

    /// Runs one block: one repetition of each arm, in an order that a coin decides. A block that
    /// fails is discarded as a whole.
    pub(super) fn run_block(
        &mut self,
        (arms, rigs): (&mut [MeasuredVariant<'_>; 2], VariantRigs<'_>),
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        let b_second = self.order_stream.draw_with_probability(0.5);
        let number = self.block_count;
        let after_verdict = self.deciding_block_count.is_some();
        let begun = Instant::now();
        let mut run = |arm: usize, second: bool| {
            let mut made = run_repetition(rigs[arm], &self.workers[arm], observer)?;
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
        self.time_spent += begun.elapsed();
        self.add_block(&a, &b, b_second);
        for (arm, made) in arms.iter_mut().zip([a, b]) {
            for (ordinal, one) in (self.first_ordinal..).zip(made) {
                arm.add_repetition(ordinal, one, observer);
            }
        }
        Ok(())
    }

    fn add_block(&mut self, a: &[Repetition], b: &[Repetition], b_second: bool) {
        self.block_count += 1;
        for JudgedQuantity {
            job_index: job,
            quantity,
            confidence_sequence: row,
        } in &mut self.judged_quantities
        {
            if let (Some(a), Some(b)) = (
                quantity.speed_of_repetition(&a[*job]),
                quantity.speed_of_repetition(&b[*job]),
            ) {
                row.add_block_rates(a, b, b_second);
            }
        }
    }

    pub(super) fn report_block(&self, left: Duration, observer: &mut dyn Observer) {
        let JudgedQuantity {
            quantity,
            confidence_sequence: row,
            ..
        } = &self.judged_quantities[0];
        // A sequence is of times for one unit.
        let sign = if quantity.is_duration() { 1.0 } else { -1.0 };
        let ratio = |ln_ratio: f64| (sign * ln_ratio).exp();
        let ends = |low: f64, high: f64| (low.min(high), low.max(high));
        observer.handle_event(ObserverEvent::BlockFinished {
            title: &self.title(),
            blocks: self.block_count,
            ratio: row.effect_size().map(ratio),
            interval: row
                .estimate()
                .map(|it| ends(ratio(it.ln_ratio_min), ratio(it.ln_ratio_max))),
            left,
        });
    }

    pub(super) fn finish_step(&self, arms: &mut [MeasuredVariant<'_>; 2]) {
        for (arm, step) in arms.iter_mut().zip(self.steps) {
            for (ordinal, job) in (self.first_ordinal..).zip(&step.parallel_jobs) {
                let result = &arm.run.results[ordinal];
                let notes = [
                    describe_stagger(&job.program, result),
                    describe_late_arrivals(result),
                    describe_engine_fallback(result),
                ];
                let notes = notes.into_iter().flatten().chain(list_end_notes(result));
                arm.finish_result(ordinal, notes.collect());
            }
        }
    }
}

/// Runs one repetition of one arm with all jobs of the step.
fn run_repetition(
    rig: &HostRig<'_>,
    workers: &[WorkerAssignment],
    observer: &mut dyn Observer,
) -> Result<Vec<Repetition>, LaboratoryError> {
    let progress: Vec<_> = workers.iter().map(|_| Arc::default()).collect();
    rig.run_assignments((workers, &progress), observer)
}
