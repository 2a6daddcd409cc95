//! Causes in the routines of the processor: their durations, and the interrupts between them.

use super::Suspect;
use super::causes::{Cause, Rank, cause, differs, each};
use crate::explanation::words;
use diskperf_timeline::trace::TracedWork;
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// Execution context of a routine: a program or an interrupt handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worker {
    /// The routine runs in a program, in its own code or in the kernel.
    Program,
    /// The routine runs in an interrupt handler.
    Handler,
}

/// Histogram of durations: the number of times that each one occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths(BTreeMap<u64, u64>);

/// Durations of the processor's routines, with the interrupts and slow-downs that delayed them.
#[derive(Default)]
pub(super) struct Routines {
    /// Durations of routines in nanoseconds, by execution context and stage.
    work: BTreeMap<(Worker, Stage), Lengths>,
    /// Most frequent time between two clock ticks in nanoseconds; `None` before the second tick.
    tick_ns: Option<u64>,
    /// Durations in nanoseconds of interruptions of programs by a single clock tick.
    ticks: Lengths,
    /// Slow-downs of the processor's work during data transfers, in thousandths.
    slowed: Lengths,
}

/// Tolerance in nanoseconds within which two durations of a routine count as equal. A rate that
/// changes in the middle of work rounds each time.
const ROUNDING_NS: u64 = 64;
/// Relative frequency below which a duration of one run counts as absent from the other. Durations
/// that depend on coincidence may still occur there a few times.
const ABSENT: f64 = 0.05;
/// Minimum share of equal durations that counts as a cause, where durations depend on coincidence.
const FREQUENT: f64 = 0.1;
/// Minimum share of slowed work that shows the maximum slow-down, as a sign of continuous data
/// transfers.
const CLEAR: f64 = 0.05;
/// Minimum number of pieces of work with a stronger slow-down, so that they are no outliers.
const ABOVE: u64 = 5;
/// Minimum duration in nanoseconds of a piece of work whose slow-down is measured.
const SLOWED_NS: u64 = 50_000;
/// Tolerance within which two slow-downs count as equal, in thousandths.
const SLOWED_ALIKE: u64 = 4;

impl Lengths {
    fn add(&mut self, length: u64) {
        *self.0.entry(length).or_default() += 1;
    }

    fn count(&self) -> u64 {
        self.0.values().sum()
    }

    fn greatest(&self) -> Option<u64> {
        self.0.keys().next_back().copied()
    }

    /// Counts the durations within `alike` of a given one.
    fn near(&self, length: u64, alike: u64) -> u64 {
        let around = length.saturating_sub(alike)..=length + alike;
        self.0.range(around).map(|(_, count)| count).sum()
    }

    /// Returns the duration with the most total time among those that are frequent here and absent
    /// from the other histogram, and the share of time of all such durations.
    fn missing_in(&self, other: &Self, share: f64, alike: u64) -> Option<(f64, f64)> {
        let share_of = |of: &Self, length: u64| of.near(length, alike) as f64 / of.count() as f64;
        let gone = self.0.iter().filter(|(length, _)| {
            let own = share_of(self, **length);
            own >= share && share_of(other, **length) <= ABSENT * own
        });
        let gone: Vec<(f64, f64)> = gone.map(|(ns, n)| (*ns as f64, *n as f64)).collect();
        let time = |(ns, n): &(f64, f64)| ns * n;
        let most = gone.iter().max_by(|a, b| time(a).total_cmp(&time(b)))?;
        let whole: f64 = self.0.iter().map(|(ns, n)| (ns * n) as f64).sum();
        Some((most.0, gone.iter().map(time).sum::<f64>() / whole.max(1.0)))
    }

    /// Returns a duration that only this histogram contains, its counterpart that only the other
    /// contains, and their share of the time.
    fn became(&self, other: &Self, share: f64, alike: u64) -> Option<(f64, f64, f64)> {
        let (one, of_one) = self.missing_in(other, share, alike)?;
        let (two, of_other) = other.missing_in(self, share, alike)?;
        Some((one, two, of_one.max(of_other)))
    }
}

impl Routines {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut routines = Self::default();
        let programs = trace.processes.iter().flat_map(|process| &process.work);
        let programs = programs.map(|work| (Worker::Program, work));
        let handlers = trace.handlers.iter().map(|work| (Worker::Handler, work));
        for (worker, work) in programs.chain(handlers) {
            let lengths = routines.work.entry((worker, work.stage)).or_default();
            lengths.add(work.own.0);
            let took = work.until.0 - work.from.0;
            if work.slowed.0 > 0 && work.own.0 > SLOWED_NS {
                routines.slowed.add(work.slowed.0 * 1000 / work.own.0);
            }
            let interrupted = took - work.own.0 - work.slowed.0;
            // A tick takes longer as well while data moves.
            let steady = worker == Worker::Program && work.slowed.0 == 0;
            if steady && interrupted > 0 && only_a_tick(trace, work) {
                routines.ticks.add(interrupted);
            }
        }
        let mut between = Lengths::default();
        for pair in trace.ticks.windows(2) {
            between.add(pair[1].0 - pair[0].0);
        }
        let most = between.0.iter().max_by_key(|(_, count)| **count);
        routines.tick_ns = most.map(|(ns, _)| *ns);
        routines
    }
}

/// Tests whether exactly one clock tick, and no other interrupt, occurred during a routine.
fn only_a_tick(trace: &Trace, work: &TracedWork) -> bool {
    let (from, until) = (work.from, work.until);
    let before = trace.ticks.partition_point(|tick| *tick < from);
    let ticks = trace.ticks.partition_point(|tick| *tick < until) - before;
    let ended = trace.handlers.partition_point(|one| one.until <= from);
    let other = trace.handlers.get(ended);
    ticks == 1 && other.is_none_or(|one| one.from >= until)
}

/// Returns the part of the computer that the routines of a stage belong to.
fn owner(stage: Stage) -> Option<Suspect> {
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
pub(super) fn routines(a: &Routines, b: &Routines) -> Vec<Cause> {
    let mut found = Vec::new();
    let mut ratios = Vec::new();
    for (key, one) in &a.work {
        let (Some(suspect), Some(other)) = (owner(key.1), b.work.get(key)) else {
            continue;
        };
        if let Some((one, other, share)) = one.became(other, 0.0, ROUNDING_NS) {
            ratios.push((suspect, (other / one).ln()));
            let evidence = each(&words::stage(key.1), Some(one), Some(other));
            found.push(cause(suspect, (Rank::Unit, share), evidence));
        }
    }
    found.extend(processor(&ratios));
    found.extend(clock(a, b));
    found.extend(contention(a, b));
    found
}

/// Finds a change of the processor: the routines of kernel and driver change together, which the
/// cost of a single routine does not explain.
fn processor(ratios: &[(Suspect, f64)]) -> Option<Cause> {
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
fn clock(a: &Routines, b: &Routines) -> Option<Cause> {
    let ns = |of: &Routines| of.tick_ns.map(|ns| ns as f64);
    // A run that ends before the second tick tells nothing of how often it comes.
    let both = ns(a).is_some() && ns(b).is_some();
    if let Some(size) = differs(ns(a), ns(b)).filter(|_| both) {
        let evidence = format!(
            "the clock ticks every {} in one run and every {} in the other",
            words::milliseconds(ns(a).unwrap_or(0.0)),
            words::milliseconds(ns(b).unwrap_or(0.0))
        );
        return Some(cause(Suspect::Host, (Rank::Unit, size), evidence));
    }
    let (one, other, share) = a.ticks.became(&b.ticks, FREQUENT, ROUNDING_NS)?;
    let evidence = each("the clock's interrupt", Some(one), Some(other));
    Some(cause(Suspect::Kernel, (Rank::Unit, share), evidence))
}

/// Compares the slow-down of the processor by data transfers. Continuous transfers set the maximum
/// slow-down. Where one run shows that maximum and the other exceeds it, transfers there take a
/// larger share of the memory.
fn contention(a: &Routines, b: &Routines) -> Option<Cause> {
    let (one, other) = (a.slowed.greatest()?, b.slowed.greatest()?);
    let (less, more) = if one < other { (a, b) } else { (b, a) };
    let (lower, limit) = (one.min(other), one.min(other) * 21 / 20 + SLOWED_ALIKE);
    let clear = less.slowed.near(lower, SLOWED_ALIKE) as f64 / less.slowed.count() as f64;
    let above: u64 = more.slowed.0.range(limit..).map(|(_, count)| count).sum();
    (clear >= CLEAR && above >= ABOVE).then(|| {
        let told = |thousandths: u64| words::percent(thousandths as f64 / 1000.0);
        let evidence = format!(
            "work of the processor during transfers takes up to {} longer in one run and {} in the other",
            told(one),
            told(other)
        );
        let size = (other as f64 / one as f64).ln().abs();
        cause(Suspect::Bus, (Rank::Unit, size), evidence)
    })
}
