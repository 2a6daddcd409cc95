//! Causes in the routines of the processor: their durations, and the interrupts between them.

use super::SuspectedComponent;
use super::causes::{
    CandidateCause, CauseRank, describe_both_values, log_ratio_if_different, new_cause,
};
use crate::explanation::words;
use diskperf_timeline::trace::TracedWork;
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// Execution context of a routine: a program or an interrupt handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExecutionContext {
    Program,
    Handler,
}

/// Histogram of durations: the number of times that each one occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct DurationHistogram(BTreeMap<u64, u64>);

/// Durations of the processor's routines, with the interrupts and slow-downs that delayed them.
#[derive(Default)]
pub(super) struct RoutineDurations {
    work_durations: BTreeMap<(ExecutionContext, Stage), DurationHistogram>,
    /// Most frequent time between two clock ticks in nanoseconds; `None` before the second tick.
    tick_ns: Option<u64>,
    /// Durations in nanoseconds of interruptions of programs by a single clock tick.
    tick_durations: DurationHistogram,
    /// Slow-downs of the processor's work during data transfers, in thousandths.
    delay_durations: DurationHistogram,
}

/// Tolerance in nanoseconds within which two durations of a routine count as equal. A rate that
/// changes in the middle of work rounds each time.
const DURATION_ROUNDING_NS: u64 = 64;
/// Relative frequency below which a duration of one run counts as absent from the other. Durations
/// that depend on coincidence may still occur there a few times.
const ABSENT_FREQUENCY_MAX: f64 = 0.05;
/// Minimum share of equal durations that counts as a cause, where durations depend on coincidence.
const FREQUENT_SHARE_MIN: f64 = 0.1;
/// Minimum share of slowed work that shows the maximum slow-down, as a sign of continuous data
/// transfers.
const DELAYED_SHARE_MIN: f64 = 0.05;
/// Minimum number of pieces of work with a stronger slow-down, so that they are no outliers.
const DELAYED_COUNT_MIN: u64 = 5;
/// Minimum duration in nanoseconds of a piece of work whose slow-down is measured.
const DELAYED_WORK_NS_MIN: u64 = 50_000;
/// Tolerance within which two slow-downs count as equal, in thousandths.
const DELAY_TOLERANCE_STEPS: u64 = 4;

impl DurationHistogram {
    fn add_duration(&mut self, length: u64) {
        *self.0.entry(length).or_default() += 1;
    }

    fn total_count(&self) -> u64 {
        self.0.values().sum()
    }

    fn duration_max(&self) -> Option<u64> {
        self.0.keys().next_back().copied()
    }

    /// Counts the durations within `tolerance` of a given one.
    fn count_durations_near(&self, length: u64, tolerance: u64) -> u64 {
        let around = length.saturating_sub(tolerance)..=length + tolerance;
        self.0.range(around).map(|(_, count)| count).sum()
    }

    /// Returns the duration with the most total time among those that are frequent here and absent
    /// from the other histogram, and the share of time of all such durations.
    fn find_duration_missing_in(
        &self,
        other: &Self,
        share: f64,
        tolerance: u64,
    ) -> Option<(f64, f64)> {
        let share_of = |of: &Self, length: u64| {
            of.count_durations_near(length, tolerance) as f64 / of.total_count() as f64
        };
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

    /// Returns a duration that only this histogram contains, with its counterpart in the other.
    fn find_changed_duration(
        &self,
        other: &Self,
        share: f64,
        tolerance: u64,
    ) -> Option<ChangedDuration> {
        let (own, own_share) = self.find_duration_missing_in(other, share, tolerance)?;
        let (other, other_share) = other.find_duration_missing_in(self, share, tolerance)?;
        Some(ChangedDuration {
            own_ns: own,
            other_ns: other,
            time_share: own_share.max(other_share),
        })
    }
}

/// Duration of a routine that one run has in place of another duration of the other run.
struct ChangedDuration {
    own_ns: f64,
    other_ns: f64,
    /// Larger share of its run's time that either duration makes up.
    time_share: f64,
}

impl RoutineDurations {
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
            let lengths = routines
                .work_durations
                .entry((worker, work.stage))
                .or_default();
            lengths.add_duration(work.own_time.0);
            let took = work.work_end.0 - work.work_start.0;
            if work.slowdown_time.0 > 0 && work.own_time.0 > DELAYED_WORK_NS_MIN {
                routines
                    .delay_durations
                    .add_duration(work.slowdown_time.0 * 1000 / work.own_time.0);
            }
            let interrupted = took - work.own_time.0 - work.slowdown_time.0;
            // A tick takes longer as well while data moves.
            let steady = worker == ExecutionContext::Program && work.slowdown_time.0 == 0;
            if steady && interrupted > 0 && is_delayed_by_tick_only(trace, work) {
                routines.tick_durations.add_duration(interrupted);
            }
        }
        let mut between = DurationHistogram::default();
        for pair in trace.clock_ticks.windows(2) {
            between.add_duration(pair[1].0 - pair[0].0);
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
fn component_of_stage(stage: Stage) -> Option<SuspectedComponent> {
    match stage {
        Stage::Copy | Stage::Clear => Some(SuspectedComponent::Host),
        Stage::SystemCall | Stage::CacheLookup | Stage::Allocate | Stage::Interrupt => {
            Some(SuspectedComponent::Kernel)
        }
        Stage::Driver => Some(SuspectedComponent::Driver),
        _ => None,
    }
}

/// Finds the differences of the processor and its routines.
pub(super) fn find_routine_causes(
    a: &RoutineDurations,
    b: &RoutineDurations,
) -> Vec<CandidateCause> {
    let mut found = Vec::new();
    let mut ratios = Vec::new();
    for (key, one) in &a.work_durations {
        let (Some(suspect), Some(other)) = (component_of_stage(key.1), b.work_durations.get(key))
        else {
            continue;
        };
        if let Some(changed) = one.find_changed_duration(other, 0.0, DURATION_ROUNDING_NS) {
            ratios.push((suspect, (changed.other_ns / changed.own_ns).ln()));
            let evidence = describe_both_values(
                &words::stage_label(key.1),
                Some(changed.own_ns),
                Some(changed.other_ns),
            );
            found.push(new_cause(
                suspect,
                (CauseRank::Unit, changed.time_share),
                evidence,
            ));
        }
    }
    found.extend(find_processor_cause(&ratios));
    found.extend(find_clock_cause(a, b));
    found.extend(find_contention_cause(a, b));
    found
}

/// Finds a change of the processor: the routines of kernel and driver change together, which the
/// cost of a single routine does not explain.
fn find_processor_cause(ratios: &[(SuspectedComponent, f64)]) -> Option<CandidateCause> {
    let of = |suspect| ratios.iter().any(|(of, _)| *of == suspect);
    (of(SuspectedComponent::Kernel) && of(SuspectedComponent::Driver)).then(|| {
        let own = ratios
            .iter()
            .filter(|(of, _)| *of != SuspectedComponent::Host);
        let mut sorted: Vec<f64> = own.map(|(_, ratio)| *ratio).collect();
        sorted.sort_by(f64::total_cmp);
        let evidence = format!(
            "every routine takes about {:.2} times as long",
            sorted[sorted.len() / 2].exp()
        );
        new_cause(SuspectedComponent::Host, (CauseRank::Policy, 0.5), evidence)
    })
}

/// Compares the clock interrupts. Their rate belongs to the machine, their duration to the kernel.
fn find_clock_cause(a: &RoutineDurations, b: &RoutineDurations) -> Option<CandidateCause> {
    let ns = |of: &RoutineDurations| of.tick_ns.map(|ns| ns as f64);
    // A run that ends before the second tick tells nothing of how often it comes.
    let both = ns(a).is_some() && ns(b).is_some();
    if let Some(size) = log_ratio_if_different(ns(a), ns(b)).filter(|_| both) {
        let evidence = format!(
            "the clock ticks every {} in one run and every {} in the other",
            words::format_time_ms(ns(a).unwrap_or(0.0)),
            words::format_time_ms(ns(b).unwrap_or(0.0))
        );
        return Some(new_cause(
            SuspectedComponent::Host,
            (CauseRank::Unit, size),
            evidence,
        ));
    }
    let changed = a.tick_durations.find_changed_duration(
        &b.tick_durations,
        FREQUENT_SHARE_MIN,
        DURATION_ROUNDING_NS,
    )?;
    let evidence = describe_both_values(
        "the clock's interrupt",
        Some(changed.own_ns),
        Some(changed.other_ns),
    );
    Some(new_cause(
        SuspectedComponent::Kernel,
        (CauseRank::Unit, changed.time_share),
        evidence,
    ))
}

/// Compares the slow-down of the processor by data transfers. Continuous transfers set the maximum
/// slow-down. Where one run shows that maximum and the other exceeds it, transfers there take a
/// larger share of the memory.
fn find_contention_cause(a: &RoutineDurations, b: &RoutineDurations) -> Option<CandidateCause> {
    let (one, other) = (
        a.delay_durations.duration_max()?,
        b.delay_durations.duration_max()?,
    );
    let (less, more) = if one < other { (a, b) } else { (b, a) };
    let (lower, limit) = (
        one.min(other),
        one.min(other) * 21 / 20 + DELAY_TOLERANCE_STEPS,
    );
    let clear = less
        .delay_durations
        .count_durations_near(lower, DELAY_TOLERANCE_STEPS) as f64
        / less.delay_durations.total_count() as f64;
    let above: u64 = more
        .delay_durations
        .0
        .range(limit..)
        .map(|(_, count)| count)
        .sum();
    (clear >= DELAYED_SHARE_MIN && above >= DELAYED_COUNT_MIN).then(|| {
        let told = |thousandths: u64| words::format_percent(thousandths as f64 / 1000.0);
        let evidence = format!(
            "processor work during transfers takes up to {} longer in one run and {} in the other",
            told(one),
            told(other)
        );
        let size = (other as f64 / one as f64).ln().abs();
        new_cause(SuspectedComponent::Bus, (CauseRank::Unit, size), evidence)
    })
}
