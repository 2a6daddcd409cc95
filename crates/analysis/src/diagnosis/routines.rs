//! What the processor's routines take each time, and what comes in between.

use super::Suspect;
use super::causes::{Cause, Rank, cause, differs, each};
use crate::explanation::words;
use diskperf_timeline::trace::TracedWork;
use diskperf_timeline::{Stage, Trace};
use std::collections::BTreeMap;

/// Who runs a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Worker {
    /// A program, in its own code or in the kernel.
    Program,
    /// A handler of an interrupt.
    Handler,
}

/// How often each length of time was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths(BTreeMap<u64, u64>);

/// What the processor did, and how it was kept from it.
#[derive(Default)]
pub(super) struct Routines {
    /// What was worked by whom on what, each time.
    work: BTreeMap<(Worker, Stage), Lengths>,
    /// From a tick of the clock to the next.
    tick_ns: Option<u64>,
    /// How long a program was interrupted where one tick came in between, and
    /// nothing else.
    ticks: Lengths,
    /// How much longer work took while data moved, in thousandths.
    slowed: Lengths,
}

/// Lengths within this are the same: a rate that changes in mid-work rounds
/// each time.
const ROUNDING_NS: u64 = 64;
/// A length of one run that is this much rarer in the other is not there: where
/// lengths come of what happens to coincide, some coincide with it.
const ABSENT: f64 = 0.05;
/// Lengths that come of what happens to coincide are those of a cause if so many
/// are the same.
const FREQUENT: f64 = 0.1;
/// If this share of all that is slowed is slowed by the most that is seen, data
/// moves all the while.
const CLEAR: f64 = 0.05;
/// As many pieces of work, slowed by more, are no outliers.
const ABOVE: u64 = 5;
/// Work shorter than this does not tell how much it was slowed.
const SLOWED_NS: u64 = 50_000;
/// Slowings within so many thousandths are the same.
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

    /// How many are within `alike` of a length.
    fn near(&self, length: u64, alike: u64) -> u64 {
        let around = length.saturating_sub(alike)..=length + alike;
        self.0.range(around).map(|(_, count)| count).sum()
    }

    /// Those that make up `share` at least and are not in another: the length
    /// that makes up most of the time, and the share of the time of all of them.
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

    /// What became what: a length of the one that the other has not, a length
    /// of the other that the one has not, and the share of the time.
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

/// Whether one tick of the clock came in while a routine worked, and no other
/// interrupt.
fn only_a_tick(trace: &Trace, work: &TracedWork) -> bool {
    let (from, until) = (work.from, work.until);
    let before = trace.ticks.partition_point(|tick| *tick < from);
    let ticks = trace.ticks.partition_point(|tick| *tick < until) - before;
    let ended = trace.handlers.partition_point(|one| one.until <= from);
    let other = trace.handlers.get(ended);
    ticks == 1 && other.is_none_or(|one| one.from >= until)
}

/// What the routines of a stage are part of.
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

/// What differs of the processor and its routines.
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

/// Routines of the kernel and of the driver take longer, or less long, at once,
/// which no routine's own cost does.
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

/// The clock: how often it comes is the machine's, what it takes the kernel's.
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

/// How much moving data slows the processor. Nothing is slowed by more than what
/// data moves over all the time; so where that is seen in one run, and more in
/// the other, moving data takes more of the memory there.
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
