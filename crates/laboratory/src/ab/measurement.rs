//! Execution of an A/B measurement on real storage: the blocks of all programs.

use super::arm::{MeasuredVariant, new_pair};
use super::contest::{AbStep, VariantRigs};
use super::{AbOutcome, AbPlan, do_share_files};
use crate::drive::{OpenDrive, OpenDrives};
use crate::limit::explain_open_file_limit;
use crate::pilot::{PilotSizes, round_to_calls};
use crate::plan::{HostPlan, format_step_title};
use crate::preparation::{HookPreparation, HookTimesNs};
use crate::recorder::RunRecorder;
use crate::repetition::HostRig;
use diskperf_battery::SuiteJob;
use diskperf_models::LaboratoryError;
use diskperf_models::{Observer, ObserverEvent};
use diskperf_system::host::CallClock;
use diskperf_timeline::SizeChoice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Blocks that an undecided program gets in each turn, after every program has had its share of the
/// time.
const BLOCKS_PER_TURN: u32 = 8;

pub(super) fn measure_plan(
    (plan, plans): (&AbPlan, [&HostPlan; 2]),
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorders: [&mut RunRecorder; 2],
) -> AbOutcome {
    let clock = CallClock::new_calibrated();
    let mut arms = new_pair(plans, (plan.list_hooks(), &plan.request), clock, recorders);
    let mut left = Vec::new();
    let outcome = measure_on_storage(plan, (clock, stop), &mut arms, &mut left, observer);
    // A signal also reaches the commands of the user.
    let error = outcome
        .err()
        .map(|error| match stop.load(Ordering::Relaxed) {
            true => explain_open_file_limit(LaboratoryError::Interrupted),
            false => error,
        });
    let runs = arms.map(|arm| arm.finish_run(error.as_ref(), observer));
    let outcome = error.map_or(Ok(()), Err);
    AbOutcome {
        runs: runs.into(),
        error: LaboratoryError::with_leftovers(outcome, left).err(),
    }
}

fn measure_on_storage(
    plan: &AbPlan,
    (clock, stop): (CallClock, &Arc<AtomicBool>),
    arms: &mut [MeasuredVariant<'_>; 2],
    left: &mut Vec<String>,
    observer: &mut dyn Observer,
) -> Result<(), LaboratoryError> {
    for arm in arms.iter_mut() {
        arm.begin_run(clock, observer)?;
    }
    let plans = [arms[0].plan, arms[1].plan];
    let own = if do_share_files(plans) { 1 } else { 2 };
    let mut drives = [OpenDrives::default(), OpenDrives::default()];
    let mut result = Ok(());
    for (arm, drives) in arms.iter_mut().zip(&mut drives).take(own) {
        result = result.and_then(|()| {
            drives.open(
                arm.plan,
                arm.plan.fresh_filesystems.first(),
                arm.recorder,
                left,
            )
        });
        arm.recorder.report_messages(observer);
    }
    if result.is_ok() {
        let hooks = arms.each_ref().map(|arm| arm.hook.clone());
        let took = HookTimesNs::default();
        let rig = |number: usize, opened| HostRig {
            plan: plans[number],
            clock,
            stop,
            open_drives: opened,
            event_recorder: None,
            preparation: Some(HookPreparation {
                variant_index: number,
                hook: hooks[number].as_ref(),
                times_taken: &took,
            }),
            device_traffic: None,
            watch_cell: OnceLock::new(),
        };
        let opened: [&[OpenDrive]; 2] = [drives[0].as_slice(), drives[own - 1].as_slice()];
        let (a, b) = (rig(0, opened[0]), rig(1, opened[1]));
        result = on_rigs(plan, (arms, [&a, &b]), observer);
    }
    for (arm, drives) in arms.iter_mut().zip(drives) {
        let closed = drives.close(arm.recorder, left);
        result = result.and(closed);
    }
    result
}

/// Runs each program once in each arm, discards that run, and then measures in blocks.
fn on_rigs(
    plan: &AbPlan,
    (arms, rigs): (&mut [MeasuredVariant<'_>; 2], VariantRigs<'_>),
    observer: &mut dyn Observer,
) -> Result<(), LaboratoryError> {
    let [steps_a, steps_b] = rigs.map(|rig| rig.plan.suite.steps.as_slice());
    let mut sizes = [PilotSizes::for_blocks(), PilotSizes::for_blocks()];
    let mut contests: Vec<AbStep<'_>> = Vec::new();
    for (number, steps) in steps_a.iter().zip(steps_b).enumerate() {
        let steps = [steps.0, steps.1];
        observer.handle_event(ObserverEvent::StepStarted {
            title: &format_step_title(steps[0]),
            number,
            of: steps_a.len(),
        });
        let mut sizes_bytes = [Vec::new(), Vec::new()];
        for jobs in steps[0].parallel_jobs.iter().zip(&steps[1].parallel_jobs) {
            let [a, b] = find_sizes(&mut sizes, [jobs.0, jobs.1], rigs, observer)?;
            sizes_bytes[0].push(a);
            sizes_bytes[1].push(b);
        }
        let contest = AbStep::begin_step(
            (number, steps),
            &sizes_bytes,
            (arms, rigs),
            plan.request.seed,
            observer,
        )?;
        contests.push(contest);
    }
    let rows = contests.iter().map(AbStep::judged_count).sum();
    for contest in &mut contests {
        contest.set_question(plan.decision_question(), rows);
    }
    let outcome = BlockRounds::from_plan(plan, (arms, rigs)).run_all(&mut contests, observer);
    for contest in &contests {
        contest.finish_step(arms);
        for arm in arms.iter_mut() {
            arm.recorder.report_messages(observer);
        }
    }
    outcome
}

/// Determines the bytes that a program transfers in each arm. Both arms transfer the same unless
/// one of them sets a size. The size that a pilot of A finds must fit B, too.
fn find_sizes(
    [of_a, of_b]: &mut [PilotSizes; 2],
    jobs: [&SuiteJob; 2],
    rigs: VariantRigs<'_>,
    observer: &mut dyn Observer,
) -> Result<[u64; 2], LaboratoryError> {
    let a = of_a.size_of_job(rigs[0], jobs[0], observer)?;
    let chosen = rigs.map(|rig| rig.plan.experiment.size_choice);
    if let [SizeChoice::SizeBytes(_), _] | [_, SizeChoice::SizeBytes(_)] = chosen {
        return Ok([a, of_b.size_of_job(rigs[1], jobs[1], observer)?]);
    }
    let programs = jobs.map(|job| &job.program);
    let call_bytes = programs.map(|program| program.call_bytes());
    let largest_call_bytes = call_bytes[0].max(call_bytes[1]);
    let mut size_bytes = a.max(largest_call_bytes);
    while size_bytes > largest_call_bytes
        && programs[1].file_bytes(size_bytes) > rigs[1].pilot_bytes()
    {
        size_bytes /= 2;
    }
    Ok(call_bytes.map(|call_bytes| round_to_calls(size_bytes, call_bytes)))
}

/// Distribution of the time budget among the blocks of all programs.
struct BlockRounds<'r, 'a> {
    arms: &'r mut [MeasuredVariant<'a>; 2],
    variant_rigs: VariantRigs<'r>,
    block_count_max: u32,
    min_time: Duration,
    end: Instant,
}

impl<'r, 'a> BlockRounds<'r, 'a> {
    fn from_plan(
        plan: &AbPlan,
        (arms, rigs): (&'r mut [MeasuredVariant<'a>; 2], VariantRigs<'r>),
    ) -> Self {
        Self {
            arms,
            variant_rigs: rigs,
            block_count_max: plan.request.block_count.unwrap_or(u32::MAX),
            min_time: plan.request.min_time,
            end: Instant::now() + plan.request.time_budget,
        }
    }

    /// Runs the blocks for the verdicts on all programs, then those for the sizes of differences.
    /// While the limit on losses is undecided, more blocks that measure sizes follow as long as
    /// there is time.
    fn run_all(
        &mut self,
        contests: &mut [AbStep<'_>],
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        self.run_verdict_blocks(contests, observer)?;
        for contest in contests.iter_mut() {
            contest.begin_size();
            self.run_size_blocks(contest, observer)?;
        }
        while contests.iter().any(|one| self.needs_blocks(one)) {
            for contest in contests.iter_mut().filter(|one| one.is_limit_undecided()) {
                contest.extend_size_phase();
                self.run_size_blocks(contest, observer)?;
            }
        }
        Ok(())
    }

    /// Gives each program in turn its share of the time left, and then the rest to the undecided
    /// programs in turns.
    fn run_verdict_blocks(
        &mut self,
        contests: &mut [AbStep<'_>],
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        let of = contests.len();
        for (number, contest) in contests.iter_mut().enumerate() {
            observer.handle_event(ObserverEvent::StepStarted {
                title: &contest.title(),
                number,
                of,
            });
            let share = self.time_left() / (of - number) as u32;
            let until = Instant::now() + share;
            self.run_blocks(contest, u32::MAX, until, observer)?;
        }
        while self.time_left() > Duration::ZERO && contests.iter().any(|one| self.continues(one)) {
            for contest in contests.iter_mut() {
                self.run_blocks(contest, BLOCKS_PER_TURN, self.end, observer)?;
            }
        }
        Ok(())
    }

    /// Runs up to `most` blocks of a program until its time is over. The first block always runs.
    fn run_blocks(
        &mut self,
        contest: &mut AbStep<'_>,
        most: u32,
        until: Instant,
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        for _ in 0..most {
            let in_time = contest.block_count == 0 || Instant::now() < until;
            if !in_time || !self.continues(contest) {
                break;
            }
            contest.run_block((self.arms, self.variant_rigs), observer)?;
            contest.report_block(self.time_left(), observer);
        }
        Ok(())
    }

    fn run_size_blocks(
        &mut self,
        contest: &mut AbStep<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        while self.has_time_left(contest) && !contest.is_size_measured(self.min_time) {
            contest.run_block((self.arms, self.variant_rigs), observer)?;
            contest.report_block(self.time_left(), observer);
        }
        Ok(())
    }

    /// Reports whether more blocks may still decide if the limit on losses of speed is kept.
    fn needs_blocks(&self, contest: &AbStep<'_>) -> bool {
        self.has_time_left(contest) && contest.is_limit_undecided()
    }

    fn has_time_left(&self, contest: &AbStep<'_>) -> bool {
        contest.block_count < self.block_count_max && self.time_left() > Duration::ZERO
    }

    fn continues(&self, contest: &AbStep<'_>) -> bool {
        contest.block_count < self.block_count_max && !contest.is_decided()
    }

    fn time_left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
