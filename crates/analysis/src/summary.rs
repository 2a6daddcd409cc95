//! What stands for all repetitions of one program.

pub mod cliff;
pub mod load;
pub mod unwritten;

use crate::cache::{CacheVerdict, device_share};
use crate::layers::Layer;
use crate::quantity::judged_s;
use crate::statistics::shape::Shape;
use crate::statistics::steady::is_steady;
use crate::statistics::{Interval, mean, median, median_interval};
use cliff::CacheCliff;
use diskperf_timeline::{
    Histogram, Nanoseconds, Overhead, ProgramResult, Repetition, Statistic, Verified,
    WorkerMeasure, World,
};
use load::LoadSummary;
use serde::Serialize;

/// Latency percentiles of one kind of call, in nanoseconds; absent where there are too
/// few calls to tell one ([`Histogram::tells`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Calls that were timed.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Half of the calls took less.
    pub p50_ns: Option<u64>,
    /// Nine in ten took less.
    pub p90_ns: Option<u64>,
    /// 99 in 100 took less.
    pub p99_ns: Option<u64>,
    /// 999 in 1000 took less.
    pub p99_9_ns: Option<u64>,
    /// 9999 in 10000 took less.
    pub p99_99_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
}

impl Percentiles {
    /// `None` of no calls.
    pub fn of(histogram: &Histogram) -> Option<Self> {
        let at = |percentile| {
            let told = histogram.tells(percentile);
            told.then(|| histogram.percentile(percentile).0)
        };
        (histogram.count() > 0).then(|| Self {
            count: histogram.count(),
            mean_ns: histogram.mean_ns(),
            p50_ns: at(50.0),
            p90_ns: at(90.0),
            p99_ns: at(99.0),
            p99_9_ns: at(99.9),
            p99_99_ns: at(99.99),
            max_ns: histogram.max().0,
        })
    }
}

/// A program's figures by its protocol's statistic over the kept repetitions.
///
/// By [`Statistic::Median`] each figure is the median of that figure, so that
/// two of them need not come from one repetition; by [`Statistic::Minimum`]
/// all are those of the fastest repetition. All are 0
/// where none was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Repetitions that count.
    pub kept: usize,
    /// Seconds until the last call returned.
    pub elapsed_s: f64,
    /// Seconds until everything written was synced; absent where nothing was.
    pub durable_s: Option<f64>,
    /// KB/s until the last call returned.
    pub kb_per_s: f64,
    /// KB/s until everything was synced.
    pub durable_kb_per_s: Option<f64>,
    /// CPU time in percent of elapsed time, summed over the drives.
    pub cpu_percent: f64,
    /// Seconds of CPU, of all workers.
    pub cpu_s: f64,
    /// Seconds of CPU in user mode, of all workers. The kernel splits CPU time
    /// by its ticks, so that this and `system_s` need not sum to `cpu_s`.
    pub user_s: f64,
    /// Seconds of CPU in the kernel, of all workers.
    pub system_s: f64,
    /// 95 % interval of `kb_per_s`. Absent of fewer than two repetitions, and
    /// of a minimum, for which no resampling gives an honest one (the
    /// bootstrap of an extreme is inconsistent: Bickel and Freedman 1981).
    pub interval: Option<Interval>,
    /// The interval of `durable_kb_per_s`.
    pub durable_interval: Option<Interval>,
    /// Read and write calls.
    pub calls: f64,
    /// Mean nanoseconds of a call over all kept repetitions: of the timed
    /// calls, or where none was timed, the workers' time over their calls.
    pub mean_call_ns: Option<f64>,
    /// Latency of reads, merged over the kept repetitions.
    pub read_latency: Option<Percentiles>,
    /// Latency of writes.
    pub write_latency: Option<Percentiles>,
    /// Context switches because a worker waited.
    pub voluntary_switches: f64,
    /// Context switches because something else ran.
    pub involuntary_switches: f64,
    /// Page faults served from memory.
    pub minor_faults: f64,
    /// Page faults that needed storage.
    pub major_faults: f64,
    /// Share (0 to 1) of the bytes read that came from the device, as
    /// [`device_share`] has it; absent where nothing was read from storage, or
    /// where nobody can tell.
    pub device_share: Option<f64>,
    /// Whether that is what was asked.
    pub cache: CacheVerdict,
    /// How the kept repetitions lie in the order of running; in virtual time, where
    /// nothing disturbs them, steady. Of what they are judged by ([`judged_s`]).
    pub shape: Shape,
    /// Of a program that was repeated until it was steady: whether it came to that.
    pub steady: Option<SteadySummary>,
    /// Of a program with several requests under way: what these took.
    pub load: Option<LoadSummary>,
    /// Blocks that were read back and compared with what was written, over all repetitions, with
    /// those that do not count; absent where the program verifies nothing.
    pub verified: Option<Verified>,
    /// On a modelled drive whose write cache filled up: where.
    pub cliff: Option<CacheCliff>,
    /// Of a modelled flash drive, the share of what was read that was never written; see
    /// [`unwritten::share`].
    pub unwritten_share: Option<f64>,
}

/// Whether a program that was repeated until it was steady came to that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SteadySummary {
    /// Whether its last rounds are steady by the rule.
    pub attained: bool,
    /// Seconds of load, of all rounds, until the window ended that is steady.
    pub at_s: Option<f64>,
    /// Rounds that were run.
    pub rounds: usize,
}

impl SteadySummary {
    /// `None` of a program that was repeated by another rule.
    pub fn of(result: &ProgramResult) -> Option<Self> {
        let rule = result.protocol.steady?;
        let all = &result.repetitions;
        let attained = is_steady(&rates(all), &rule);
        let load_s: f64 = all.iter().map(|one| one.elapsed().seconds()).sum();
        Some(Self {
            attained,
            at_s: attained.then_some(load_s),
            rounds: all.len(),
        })
    }
}

/// What rounds are tested by, in the order of running: how much was done per second.
pub fn rates(rounds: &[Repetition]) -> Vec<f64> {
    let rate = |seconds: f64| if seconds > 0.0 { 1.0 / seconds } else { 0.0 };
    rounds.iter().map(|one| rate(judged_s(one))).collect()
}

impl Summary {
    /// The summary of one result of a run of this world: a modelled figure is
    /// exact, however few its repetitions.
    pub fn in_world(world: World, result: &ProgramResult) -> Self {
        let mut summary = Self::of(result);
        if world == World::Model && summary.kept > 0 {
            summary.interval = Some(Interval::exact(summary.kb_per_s));
            summary.durable_interval = summary.durable_kb_per_s.map(Interval::exact);
            summary.shape = Shape::Steady;
            if let Some(load) = &mut summary.load {
                load.exact();
            }
        }
        summary
    }

    /// The summary of one result.
    pub fn of(result: &ProgramResult) -> Self {
        let kept: Vec<&Repetition> = result.kept().collect();
        let chosen: Vec<&Repetition> = match result.protocol.statistic {
            Statistic::Median => kept.clone(),
            Statistic::Minimum => kept
                .iter()
                .copied()
                .min_by(|one, other| judged_s(one).total_cmp(&judged_s(other)))
                .into_iter()
                .collect(),
        };
        let figure = |of: &dyn Fn(&Repetition) -> f64| middle(&chosen, |one| Some(of(one)));
        let count = |of: fn(&WorkerMeasure) -> u64| figure(&|one| one.total(of) as f64);
        let has_storage = Layer::of(result).is_none_or(Layer::has_storage);
        let read = merged(&kept, |worker| &worker.read_latency);
        let cache = CacheVerdict::of(result);
        let write = merged(&kept, |worker| &worker.write_latency);
        Self {
            kept: kept.len(),
            elapsed_s: figure(&|one| one.elapsed().seconds()).unwrap_or(0.0),
            durable_s: middle(&chosen, |one| one.durable().map(Nanoseconds::seconds)),
            kb_per_s: figure(&Repetition::kb_per_s).unwrap_or(0.0),
            durable_kb_per_s: middle(&chosen, Repetition::durable_kb_per_s),
            cpu_percent: figure(&Repetition::cpu_percent).unwrap_or(0.0),
            cpu_s: count(|worker| worker.cpu.0).unwrap_or(0.0) / 1e9,
            user_s: count(|worker| worker.user.0).unwrap_or(0.0) / 1e9,
            system_s: count(|worker| worker.system.0).unwrap_or(0.0) / 1e9,
            interval: interval(result, |one| Some(one.kb_per_s())),
            durable_interval: interval(result, Repetition::durable_kb_per_s),
            calls: count(|worker| worker.calls).unwrap_or(0.0),
            mean_call_ns: mean_call_ns(&kept, &[&read, &write]),
            read_latency: Percentiles::of(&read),
            write_latency: Percentiles::of(&write),
            voluntary_switches: count(|worker| worker.voluntary_switches).unwrap_or(0.0),
            involuntary_switches: count(|worker| worker.involuntary_switches).unwrap_or(0.0),
            minor_faults: count(|worker| worker.minor_faults).unwrap_or(0.0),
            major_faults: count(|worker| worker.major_faults).unwrap_or(0.0),
            device_share: middle(&chosen, device_share)
                .filter(|_| has_storage && cache != CacheVerdict::Unknown),
            cache,
            shape: Shape::of(&kept.iter().map(|one| judged_s(one)).collect::<Vec<_>>()),
            steady: SteadySummary::of(result),
            cliff: CacheCliff::of(result),
            unwritten_share: unwritten::share(kept.iter().copied()),
            load: LoadSummary::of(
                &result.repetitions,
                (&kept, &chosen),
                result.protocol.statistic,
            ),
            verified: verified(&result.repetitions),
        }
    }
}

/// Blocks of all repetitions that were read back, with those of repetitions that were discarded:
/// a block that differs differs there, too.
fn verified(repetitions: &[Repetition]) -> Option<Verified> {
    let of_each = repetitions.iter().filter_map(Repetition::verified);
    let of_each: Vec<Verified> = of_each.collect();
    Verified::sum(&of_each)
}

/// The median of a figure over the repetitions that have it; `None` if none
/// has.
fn middle(chosen: &[&Repetition], figure: impl Fn(&Repetition) -> Option<f64>) -> Option<f64> {
    let figures: Vec<f64> = chosen.iter().filter_map(|one| figure(one)).collect();
    median(&figures)
}

fn interval(
    result: &ProgramResult,
    speed: impl Fn(&Repetition) -> Option<f64>,
) -> Option<Interval> {
    match result.protocol.statistic {
        Statistic::Median => {
            let speeds: Vec<f64> = result.kept().filter_map(speed).collect();
            median_interval(&speeds)
        }
        Statistic::Minimum => None,
    }
}

fn merged(kept: &[&Repetition], latency: impl Fn(&WorkerMeasure) -> &Histogram) -> Histogram {
    let mut merged = Histogram::new();
    for worker in kept.iter().flat_map(|repetition| &repetition.workers) {
        merged.merge(latency(worker));
    }
    merged
}

fn mean_call_ns(kept: &[&Repetition], timed: &[&Histogram]) -> Option<f64> {
    let count: u64 = timed.iter().map(|histogram| histogram.count()).sum();
    if count > 0 {
        let total: f64 = timed
            .iter()
            .map(|histogram| histogram.mean_ns() * histogram.count() as f64)
            .sum();
        return Some(total / count as f64);
    }
    let per_repetition: Vec<f64> = kept
        .iter()
        .filter_map(|one| elapsed_per_call_ns(one))
        .collect();
    mean(&per_repetition)
}

/// Nanoseconds from call to call in one repetition, what the program itself
/// does included. `None` of no calls.
pub(crate) fn elapsed_per_call_ns(repetition: &Repetition) -> Option<f64> {
    per_call(repetition, |worker| worker.elapsed)
}

/// Nanoseconds of CPU per call, in user mode and in the kernel.
pub(crate) fn cpu_per_call_ns(repetition: &Repetition) -> Option<f64> {
    per_call(repetition, |worker| worker.cpu)
}

fn per_call(repetition: &Repetition, time: impl Fn(&WorkerMeasure) -> Nanoseconds) -> Option<f64> {
    let calls = repetition.total(|worker| worker.calls);
    let total = repetition.total(|worker| time(worker).0);
    (calls > 0).then(|| total as f64 / calls as f64)
}

/// Above this share of a call, the call itself is what is measured.
const GENERATOR_SHARE: f64 = 0.5;

/// The share (0 to 1) of the mean call's time that a call on `/dev/null`
/// takes, where it exceeds one half: there the generator is the limit and not
/// the device. `None` elsewhere.
pub fn generator_limited(summary: &Summary, overhead: &Overhead) -> Option<f64> {
    let call_ns = summary.mean_call_ns.filter(|&call_ns| call_ns > 0.0)?;
    let share = (overhead.null_call_ns / call_ns).min(1.0);
    (share > GENERATOR_SHARE).then_some(share)
}

#[cfg(test)]
mod tests;
