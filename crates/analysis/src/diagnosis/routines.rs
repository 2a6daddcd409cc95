//! Causes in the routines of the processor: their durations, and the interrupts between them.

use super::Suspect;
use super::causes::{Cause, Rank, cause, describe_both, log_ratio_if_different};
use crate::explanation::words;
use diskperf_timeline::trace::TracedWork;
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// Execution context of a routine: a program or an interrupt handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExecutionContext {
    /// The routine runs in a program, in its own code or in the kernel.
    Program,
    /// The routine runs in an interrupt handler.
    Handler,
}

/// Histogram of durations: the number of times that each one occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct DurationHistogram(BTreeMap<u64, u64>);

/// Durations of the processor's routines, with the interrupts and slow-downs that delayed them.
#[derive(Default)]
pub(super) struct Routines {
    /// Durations of routines in nanoseconds, by execution context and stage.
    work: BTreeMap<(ExecutionContext, Stage), DurationHistogram>,
    /// Most frequent time between two clock ticks in nanoseconds; `None` before the second tick.
    tick_ns: Option<u64>,
    /// Durations in nanoseconds of interruptions of programs by a single clock tick.
    tick_durations: DurationHistogram,
    /// Slow-downs of the processor's work during data transfers, in thousandths.
    slow_downs: DurationHistogram,
}

/// Tolerance in nanoseconds within which two durations of a routine count as equal. A rate that
/// changes in the middle of work rounds each time.
const ROUNDING_NS: u64 = 64;
/// Relative frequency below which a duration of one run counts as absent from the other. Durations
/// that depend on coincidence may still occur there a few times.
const ABSENT_FREQUENCY_MAX: f64 = 0.05;
/// Minimum share of equal durations that counts as a cause, where durations depend on coincidence.
const FREQUENT_SHARE_MIN: f64 = 0.1;
/// Minimum share of slowed work that shows the maximum slow-down, as a sign of continuous data
/// transfers.
const SLOWED_SHARE_MIN: f64 = 0.05;
/// Minimum number of pieces of work with a stronger slow-down, so that they are no outliers.
const SLOWER_COUNT_MIN: u64 = 5;
/// Minimum duration in nanoseconds of a piece of work whose slow-down is measured.
const SLOWED_WORK_NS_MIN: u64 = 50_000;
/// Tolerance within which two slow-downs count as equal, in thousandths.
const SLOWED_TOLERANCE: u64 = 4;

impl DurationHistogram {
    fn add(&mut self, length: u64) {
        *self.0.entry(length).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.0.values().sum()
    }

    fn max(&self) -> Option<u64> {
        self.0.keys().next_back().copied()
    }

    /// Counts the durations within `tolerance` of a given one.
    fn count_near(&self, length: u64, tolerance: u64) -> u64 {
        let around = length.saturating_sub(tolerance)..=length + tolerance;
        self.0.range(around).map(|(_, count)| count).sum()
    }

    /// Returns the duration with the most total time among those that are frequent here and absent
    /// from the other histogram, and the share of time of all such durations.
    fn find_missing_in(&self, other: &Self, share: f64, tolerance: u64) -> Option<(f64, f64)> {
        let share_of =
            |of: &Self, length: u64| of.count_near(length, tolerance) as f64 / of.count() as f64;
        let gone = self.0.iter().filter(|(length, _)| {
            let own = share_of(self, **length);
            own >= share && share_of(other, **length) <= ABSENT_FREQUENCY_MAX * own
        });
        let gone: Vec<(f64, f64)> = gone.map(|(ns, n)| (*ns as f64, *n as f64)).collect();
        let time = |(ns, n): &(f64, f64)| ns * n;
        let most = gone.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
        let whole: f64 = self.0.iter().map(|(ns, n)| (ns * n) as f64).sum();
        Some((most.0, gone.iter().map(time).sum::<f64>() / whole.max(1.0)))
    }

    /// Returns a duration that only this histogram contains, its counterpart that only the other
    /// contains, and their share of the time.
    fn find_changed_duration(
        &self,
        other: &Self,
        share: f64,
        tolerance: u64,
    ) -> Option<(f64, f64, f64)> {
        let (one, of_one) = self.find_missing_in(other, share, tolerance)?;
        let (two, of_other) = other.find_missing_in(self, share, tolerance)?;
        Some((one, two, of_one.max(of_other)))
    }
}

impl Routines {
    pub(super) fn from_trace(trace: &Trace) -> Self {
        let mut routines = Self::default();
        let programs = trace
            .processes
            .iter()
            .flat_map(|process| &process.processor_work);
        let programs = programs.map(|work| (ExecutionContext::Program, work));
        let handlers = trace
            .handler_work
            .iter()
            .map(|work| (ExecutionContext::Handler, work));
        for (worker, work) in programs.chain(handlers) {
            let lengths = routines.work.entry((worker, work.stage)).or_default();
            lengths.add(work.own_time.0);
            let took = work.work_end.0 - work.work_start.0;
            if work.slowdown_time.0 > 0 && work.own_time.0 > SLOWED_WORK_NS_MIN {
                routines
                    .slow_downs
                    .add(work.slowdown_time.0 * 1000 / work.own_time.0);
            }
            let interrupted = took - work.own_time.0 - work.slowdown_time.0;
            // A tick takes longer as well while data moves.
            let steady = worker == ExecutionContext::Program && work.slowdown_time.0 == 0;
            if steady && interrupted > 0 && is_delayed_by_tick_only(trace, work) {
                routines.tick_durations.add(interrupted);
            }
        }
        let mut between = DurationHistogram::default();
        for pair in trace.clock_ticks.windows(2) {
            between.add(pair[1].0 - pair[0].0);
        }
        let most = between.0.iter().max_by_key(|(_, count)| **count);
        routines.tick_ns = most.map(|(ns, _)| *ns);
        routines
    }
}

/// Tests whether exactly one clock tick, and no other interrupt, occurred during a routine.
fn is_delayed_by_tick_only(trace: &Trace, work: &TracedWork) -> bool {
    let (from, until) = (work.work_start, work.work_end);
    let before = trace.clock_ticks.partition_point(|tick| *tick < from);
    let ticks = trace.clock_ticks.partition_point(|tick| *tick < until) - before;
    let ended = trace
        .handler_work
        .partition_point(|one| one.work_end <= from);
    let other = trace.handler_work.get(ended);
    ticks == 1 && other.is_none_or(|one| one.work_start >= until)
}

/// Returns the part of the computer that the routines of a stage belong to.
fn stage_owner(stage: Stage) -> Option<Suspect> {
    match stage {
        Stage::Copy | Stage::Clear => Some(Suspect::Host),
        Stage::SystemCall | Stage::CacheLookup | Stage::Allocate | Stage::Interrupt => {
            Some(Suspect::Kernel)
        }
        Stage::Driver => Some(Suspect::Driver),
        _ => None,
    }
}

/// Finds the differences of the processor and its routines.
pub(super) fn find_routine_causes(a: &Routines, b: &Routines) -> Vec<Cause> {
    let mut found = Vec::new();
    let mut ratios = Vec::new();
    for (key, one) in &a.work {
        let (Some(suspect), Some(other)) = (stage_owner(key.1), b.work.get(key)) else {
            continue;
        };
        if let Some((one, other, share)) = one.find_changed_duration(other, 0.0, ROUNDING_NS) {
            ratios.push((suspect, (other / one).ln()));
            let evidence = describe_both(&words::stage(key.1), Some(one), Some(other));
            found.push(cause(suspect, (Rank::Unit, share), evidence));
        }
    }
    found.extend(find_processor_cause(&ratios));
    found.extend(find_clock_cause(a, b));
    found.extend(find_contention_cause(a, b));
    found
}

/// Finds a change of the processor: the routines of kernel and driver change together, which the
/// cost of a single routine does not explain.
fn find_processor_cause(ratios: &[(Suspect, f64)]) -> Option<Cause> {
    let of = |suspect| ratios.iter().any(|(of, _)| *of == suspect);
    (of(Suspect::Kernel) && of(Suspect::Driver)).then(|| {
        let own = ratios.iter().filter(|(of, _)| *of != Suspect::Host);
        let mut sorted: Vec<f64> = own.map(|(_, ratio)| *ratio).collect();
        sorted.sort_by(f64::total_cmp);
        let evidence = format!(
            "every routine takes about {:.2} times as long",
            sorted[sorted.len() / 2].exp()
        );
        cause(Suspect::Host, (Rank::Policy, 0.5), evidence)
    })
}

/// Compares the clock interrupts. Their rate belongs to the machine, their duration to the kernel.
fn find_clock_cause(a: &Routines, b: &Routines) -> Option<Cause> {
    let ns = |of: &Routines| of.tick_ns.map(|ns| ns as f64);
    // A run that ends before the second tick tells nothing of how often it comes.
    let both = ns(a).is_some() && ns(b).is_some();
    if let Some(size) = log_ratio_if_different(ns(a), ns(b)).filter(|_| both) {
        let evidence = format!(
            "the clock ticks every {} in one run and every {} in the other",
            words::milliseconds(ns(a).unwrap_or(0.0)),
            words::milliseconds(ns(b).unwrap_or(0.0))
        );
        return Some(cause(Suspect::Host, (Rank::Unit, size), evidence));
    }
    let (one, other, share) = a.tick_durations.find_changed_duration(
        &b.tick_durations,
        FREQUENT_SHARE_MIN,
        ROUNDING_NS,
    )?;
    let evidence = describe_both("the clock's interrupt", Some(one), Some(other));
    Some(cause(Suspect::Kernel, (Rank::Unit, share), evidence))
}

/// Compares the slow-down of the processor by data transfers. Continuous transfers set the maximum
/// slow-down. Where one run shows that maximum and the other exceeds it, transfers there take a
/// larger share of the memory.
fn find_contention_cause(a: &Routines, b: &Routines) -> Option<Cause> {
    let (one, other) = (a.slow_downs.max()?, b.slow_downs.max()?);
    let (less, more) = if one < other { (a, b) } else { (b, a) };
    let (lower, limit) = (one.min(other), one.min(other) * 21 / 20 + SLOWED_TOLERANCE);
    let clear =
        less.slow_downs.count_near(lower, SLOWED_TOLERANCE) as f64 / less.slow_downs.count() as f64;
    let above: u64 = more
        .slow_downs
        .0
        .range(limit..)
        .map(|(_, count)| count)
        .sum();
    (clear >= SLOWED_SHARE_MIN && above >= SLOWER_COUNT_MIN).then(|| {
        let told = |thousandths: u64| words::percent(thousandths as f64 / 1000.0);
        let evidence = format!(
            "processor work during transfers takes up to {} longer in one run and {} in the other",
            told(one),
            told(other)
        );
        let size = (other as f64 / one as f64).ln().abs();
        cause(Suspect::Bus, (Rank::Unit, size), evidence)
    })
}
