//! Execution of an A/B measurement on real storage: the blocks of all programs.

use super::arm::{Measured, both};
use super::contest::{Contest, Rigs};
use super::{AbExecuted, AbPlan, share_files};
use crate::drive::{Drive, Drives};
use crate::limit::or_limit;
use crate::pilot::{Sizes, whole_calls};
use crate::plan::{HostPlan, step_title};
use crate::preparation::{HookTimes, Preparation};
use crate::recorder::Recorder;
use crate::repetition::HostRig;
use diskperf_battery::SuiteJob;
use diskperf_models::LaboratoryError;
use diskperf_models::{Event, Observer};
use diskperf_system::host::CallClock;
use diskperf_timeline::SizeChoice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Blocks that an undecided program gets in each turn, after every program has had its share of the
/// time.
const BLOCKS_IN_TURN: u32 = 8;

/// Measures both arms of an A/B measurement and finishes their runs.
pub(super) fn measure(
    (plan, plans): (&AbPlan, [&HostPlan; 2]),
    stop: &Arc<AtomicBool>,
    observer: &mut dyn Observer,
    recorders: [&mut Recorder; 2],
) -> AbExecuted {
    let clock = CallClock::new_calibrated();
    let mut arms = both(plans, (plan.hooks(), &plan.request), clock, recorders);
    let mut left = Vec::new();
    let outcome = on_storage(plan, (clock, stop), &mut arms, &mut left, observer);
    // A signal also reaches the commands of the user.
    let error = outcome
        .err()
        .map(|error| match stop.load(Ordering::Relaxed) {
            true => or_limit(LaboratoryError::Interrupted),
            false => error,
        });
    let runs = arms.map(|arm| arm.finish(error.as_ref(), observer));
    let outcome = error.map_or(Ok(()), Err);
    AbExecuted {
        runs: runs.into(),
        error: LaboratoryError::leaving(outcome, left).err(),
    }
}

fn on_storage(
    plan: &AbPlan,
    (clock, stop): (CallClock, &Arc<AtomicBool>),
    arms: &mut [Measured<'_>; 2],
    left: &mut Vec<String>,
    observer: &mut dyn Observer,
) -> Result<(), LaboratoryError> {
    for arm in arms.iter_mut() {
        arm.begin(clock, observer)?;
    }
    let plans = [arms[0].plan, arms[1].plan];
    let own = if share_files(plans) { 1 } else { 2 };
    let mut drives = [Drives::default(), Drives::default()];
    let mut result = Ok(());
    for (arm, drives) in arms.iter_mut().zip(&mut drives).take(own) {
        result =
            result.and_then(|()| drives.open(arm.plan, arm.plan.fresh.first(), arm.recorder, left));
        arm.recorder.tell(observer);
    }
    if result.is_ok() {
        let hooks = arms.each_ref().map(|arm| arm.hook.clone());
        let took = HookTimes::default();
        let rig = |number: usize, opened| HostRig {
            plan: plans[number],
            clock,
            stop,
            opened,
            block_events: None,
            before: Some(Preparation {
                arm: number,
                hook: hooks[number].as_ref(),
                took: &took,
            }),
            traffic: None,
            watch: OnceLock::new(),
        };
        let opened: [&[Drive]; 2] = [drives[0].all(), drives[own - 1].all()];
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
    (arms, rigs): (&mut [Measured<'_>; 2], Rigs<'_>),
    observer: &mut dyn Observer,
) -> Result<(), LaboratoryError> {
    let [steps_a, steps_b] = rigs.map(|rig| rig.plan.suite.steps.as_slice());
    let mut sizes = [Sizes::of_blocks(), Sizes::of_blocks()];
    let mut contests: Vec<Contest<'_>> = Vec::new();
    for (number, steps) in steps_a.iter().zip(steps_b).enumerate() {
        let steps = [steps.0, steps.1];
        observer.event(Event::StepStarted {
            title: &step_title(steps[0]),
            number,
            of: steps_a.len(),
        });
        let mut sizes_bytes = [Vec::new(), Vec::new()];
        for jobs in steps[0].parallel_jobs.iter().zip(&steps[1].parallel_jobs) {
            let [a, b] = sizes_of(&mut sizes, [jobs.0, jobs.1], rigs, observer)?;
            sizes_bytes[0].push(a);
            sizes_bytes[1].push(b);
        }
        let contest = Contest::begin(
            (number, steps),
            &sizes_bytes,
            (arms, rigs),
            plan.request.seed,
            observer,
        )?;
        contests.push(contest);
    }
    let rows = contests.iter().map(Contest::rows).sum();
    for contest in &mut contests {
        contest.ask(plan.question(), rows);
    }
    let outcome = Rounds::of(plan, (arms, rigs)).all(&mut contests, observer);
    for contest in &contests {
        contest.finish(arms);
        for arm in arms.iter_mut() {
            arm.recorder.tell(observer);
        }
    }
    outcome
}

/// Determines the bytes that a program transfers in each arm. Both arms transfer the same unless
/// one of them sets a size. The size that a pilot of A finds must fit B, too.
fn sizes_of(
    [of_a, of_b]: &mut [Sizes; 2],
    jobs: [&SuiteJob; 2],
    rigs: Rigs<'_>,
    observer: &mut dyn Observer,
) -> Result<[u64; 2], LaboratoryError> {
    let a = of_a.of(rigs[0], jobs[0], observer)?;
    let chosen = rigs.map(|rig| rig.plan.experiment.size_choice);
    if let [SizeChoice::SizeBytes(_), _] | [_, SizeChoice::SizeBytes(_)] = chosen {
        return Ok([a, of_b.of(rigs[1], jobs[1], observer)?]);
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
    Ok(call_bytes.map(|call_bytes| whole_calls(size_bytes, call_bytes)))
}

/// Distribution of the time budget among the blocks of all programs.
struct Rounds<'r, 'a> {
    arms: &'r mut [Measured<'a>; 2],
    rigs: Rigs<'r>,
    most: u32,
    min_time: Duration,
    end: Instant,
}

impl<'r, 'a> Rounds<'r, 'a> {
    fn of(plan: &AbPlan, (arms, rigs): (&'r mut [Measured<'a>; 2], Rigs<'r>)) -> Self {
        Self {
            arms,
            rigs,
            most: plan.request.blocks.unwrap_or(u32::MAX),
            min_time: plan.request.min_time,
            end: Instant::now() + plan.request.budget,
        }
    }

    /// Runs the blocks for the verdicts on all programs, then those for the sizes of differences.
    /// While the limit on losses is undecided, more blocks that measure sizes follow as long as
    /// there is time.
    fn all(
        &mut self,
        contests: &mut [Contest<'_>],
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        self.verdicts(contests, observer)?;
        for contest in contests.iter_mut() {
            contest.begin_size();
            self.size(contest, observer)?;
        }
        while contests.iter().any(|one| self.is_open(one)) {
            for contest in contests.iter_mut().filter(|one| one.is_limit_open()) {
                contest.extend_size();
                self.size(contest, observer)?;
            }
        }
        Ok(())
    }

    /// Gives each program in turn its share of the time left, and then the rest to the undecided
    /// programs in turns.
    fn verdicts(
        &mut self,
        contests: &mut [Contest<'_>],
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        let of = contests.len();
        for (number, contest) in contests.iter_mut().enumerate() {
            observer.event(Event::StepStarted {
                title: &contest.title(),
                number,
                of,
            });
            let share = self.left() / (of - number) as u32;
            let until = Instant::now() + share;
            self.blocks(contest, u32::MAX, until, observer)?;
        }
        while self.left() > Duration::ZERO && contests.iter().any(|one| self.goes_on(one)) {
            for contest in contests.iter_mut() {
                self.blocks(contest, BLOCKS_IN_TURN, self.end, observer)?;
            }
        }
        Ok(())
    }

    /// Runs up to `most` blocks of a program until its time is over. The first block always runs.
    fn blocks(
        &mut self,
        contest: &mut Contest<'_>,
        most: u32,
        until: Instant,
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        for _ in 0..most {
            let in_time = contest.blocks == 0 || Instant::now() < until;
            if !in_time || !self.goes_on(contest) {
                break;
            }
            contest.block((self.arms, self.rigs), observer)?;
            contest.tell(self.left(), observer);
        }
        Ok(())
    }

    fn size(
        &mut self,
        contest: &mut Contest<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), LaboratoryError> {
        while self.has_room(contest) && !contest.is_measured(self.min_time) {
            contest.block((self.arms, self.rigs), observer)?;
            contest.tell(self.left(), observer);
        }
        Ok(())
    }

    /// Reports whether more blocks may still decide if the limit on losses of speed is kept.
    fn is_open(&self, contest: &Contest<'_>) -> bool {
        self.has_room(contest) && contest.is_limit_open()
    }

    fn has_room(&self, contest: &Contest<'_>) -> bool {
        contest.blocks < self.most && self.left() > Duration::ZERO
    }

    fn goes_on(&self, contest: &Contest<'_>) -> bool {
        contest.blocks < self.most && !contest.is_decided()
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
