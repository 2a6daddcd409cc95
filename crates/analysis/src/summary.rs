//! Summary of all repetitions of one program.

pub mod cliff;
pub mod load;
pub mod unwritten;

use crate::cache::{CacheVerdict, device_share};
use crate::layers::ReadLayer;
use crate::quantity::judged_duration_s;
use crate::statistics::shape::SeriesShape;
use crate::statistics::steady::is_steady;
use crate::statistics::{ConfidenceInterval, mean, median, median_interval};
use cliff::CacheCliff;
use diskperf_timeline::{
    Histogram, MeasuredWorld, Nanoseconds, Overhead, ProgramResult, Repetition, SummaryStatistic,
    VerifiedBlocks, WorkerMeasure,
};
use load::LoadSummary;
use serde::Serialize;

/// Latency percentiles of one kind of call, in nanoseconds. A percentile is absent where calls are
/// too few for it ([`Histogram::can_estimate`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyPercentiles {
    /// Number of calls whose latency was timed.
    #[serde(rename = "count")]
    pub call_count: u64,
    /// Mean latency of the calls in nanoseconds.
    pub mean_ns: f64,
    /// Median latency of the calls in nanoseconds.
    pub p50_ns: Option<u64>,
    /// 90th percentile of the calls' latency in nanoseconds.
    pub p90_ns: Option<u64>,
    /// 99th percentile of the calls' latency in nanoseconds.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile of the calls' latency in nanoseconds.
    pub p99_9_ns: Option<u64>,
    /// 99.99th percentile of the calls' latency in nanoseconds.
    pub p99_99_ns: Option<u64>,
    /// Maximum latency of the calls in nanoseconds.
    pub max_ns: u64,
}

impl LatencyPercentiles {
    /// Computes the percentiles of a histogram; `None` without calls.
    pub fn from_histogram(histogram: &Histogram) -> Option<Self> {
        let at = |percentile| {
            let told = histogram.can_estimate(percentile);
            told.then(|| histogram.percentile(percentile).0)
        };
        (histogram.latency_count() > 0).then(|| Self {
            call_count: histogram.latency_count(),
            mean_ns: histogram.mean_ns(),
            p50_ns: at(50.0),
            p90_ns: at(90.0),
            p99_ns: at(99.0),
            p99_9_ns: at(99.9),
            p99_99_ns: at(99.99),
            max_ns: histogram.latency_max().0,
        })
    }
}

/// Figures of a program, by its protocol's statistic over the kept repetitions.
///
/// By [`SummaryStatistic::Median`] each figure is the median of that figure, so that two of them need not
/// come from one repetition. By [`SummaryStatistic::Minimum`] all are those of the fastest repetition. All
/// are 0 where none was kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultSummary {
    /// Number of repetitions of the program that count, without discarded ones.
    pub kept_count: usize,
    /// Seconds from the start until the last call returned.
    pub elapsed_s: f64,
    /// Seconds from the start until everything written was synced; absent where nothing was.
    pub durable_elapsed_s: Option<f64>,
    /// Rate in KB/s until the last call returned.
    pub kb_per_s: f64,
    /// Rate in KB/s until everything was synced.
    pub durable_kb_per_s: Option<f64>,
    /// CPU time in percent of elapsed time, summed over the drives.
    pub cpu_percent: f64,
    /// CPU seconds of all workers.
    pub cpu_s: f64,
    /// CPU seconds of all workers in user mode. The kernel splits CPU time by its ticks, so that
    /// this and `system_s` need not sum to `cpu_s`.
    pub user_s: f64,
    /// CPU seconds of all workers in the kernel.
    pub system_s: f64,
    /// 95 % interval of the rate `kb_per_s`. Absent for fewer than two repetitions, and for a
    /// minimum, for which no resampling gives an honest interval (the bootstrap of an extreme is
    /// inconsistent: Bickel and Freedman 1981).
    pub speed_interval: Option<ConfidenceInterval>,
    /// 95 % interval of the durable rate, `durable_kb_per_s`.
    pub durable_interval: Option<ConfidenceInterval>,
    /// Number of read and write calls of the program.
    pub call_count: f64,
    /// Mean duration of a call in nanoseconds over all kept repetitions: of the timed calls, or
    /// where none was timed, the workers' time divided by their calls.
    pub mean_call_ns: Option<f64>,
    /// Latency of reads, merged over the kept repetitions.
    pub read_latency: Option<LatencyPercentiles>,
    /// Latency of writes, merged over the kept repetitions.
    pub write_latency: Option<LatencyPercentiles>,
    /// Voluntary context switches, where a worker waited.
    pub voluntary_switches: f64,
    /// Involuntary context switches, where another thread ran.
    pub involuntary_switches: f64,
    /// Page faults served from memory.
    pub minor_faults: f64,
    /// Page faults that needed storage.
    pub major_faults: f64,
    /// Share (0 to 1) of the read bytes that came from the device, by [`device_share`]. Absent
    /// where nothing was read from storage, or where the system does not report it.
    pub device_share: Option<f64>,
    /// Verdict on the source of the read bytes, against the cache mode of the run.
    pub cache: CacheVerdict,
    /// Shape of the kept repetitions in the order of running, by the time that they are judged by
    /// ([`judged_s`]). Steady in virtual time, where nothing disturbs them.
    pub shape: SeriesShape,
    /// Result of the test for steadiness, for a program that was repeated until it was steady.
    pub steady: Option<SteadySummary>,
    /// Request rate and response times, for a program with several requests in flight.
    pub load: Option<LoadSummary>,
    /// Blocks that were read back and compared with the written data, over all repetitions
    /// including those that do not count; absent where the program verifies nothing.
    pub verified: Option<VerifiedBlocks>,
    /// Point at which the write cache of a modelled drive was full, if it filled up.
    pub cache_cliff: Option<CacheCliff>,
    /// Share of the read bytes that were never written, on a modelled flash drive; see
    /// [`unwritten::share`].
    pub unwritten_share: Option<f64>,
}

/// Result of the test for steadiness, for a program that was repeated until it was steady.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SteadySummary {
    /// Whether the last rounds are steady by the protocol's rule.
    #[serde(rename = "attained")]
    pub is_attained: bool,
    /// Seconds of load in all rounds up to the end of the steady window; absent where none was
    /// steady.
    #[serde(rename = "at_s")]
    pub attained_at_s: Option<f64>,
    /// Number of rounds that the program ran.
    #[serde(rename = "rounds")]
    pub round_count: usize,
}

impl SteadySummary {
    /// Tests the rounds of a result; `None` for a program that was repeated by another rule.
    pub fn from_result(result: &ProgramResult) -> Option<Self> {
        let rule = result.protocol.steady_rule?;
        let all = &result.repetitions;
        let attained = is_steady(&round_rates(all), &rule);
        let load_s: f64 = all.iter().map(|one| one.elapsed_time().seconds()).sum();
        Some(Self {
            is_attained: attained,
            attained_at_s: attained.then_some(load_s),
            round_count: all.len(),
        })
    }
}

/// Returns the rates of rounds for the test for steadiness, in the order of running: the inverse of
/// the time that each is judged by.
pub fn round_rates(rounds: &[Repetition]) -> Vec<f64> {
    let rate = |seconds: f64| if seconds > 0.0 { 1.0 / seconds } else { 0.0 };
    rounds
        .iter()
        .map(|one| rate(judged_duration_s(one)))
        .collect()
}

impl ResultSummary {
    /// Summarizes one result of a run in this world. A modelled figure is exact, however few its
    /// repetitions.
    pub fn summarize_in_world(world: MeasuredWorld, result: &ProgramResult) -> Self {
        let mut summary = Self::from_result(result);
        if world == MeasuredWorld::Model && summary.kept_count > 0 {
            summary.speed_interval = Some(ConfidenceInterval::exact_value(summary.kb_per_s));
            summary.durable_interval = summary
                .durable_kb_per_s
                .map(ConfidenceInterval::exact_value);
            summary.shape = SeriesShape::Steady;
            if let Some(load) = &mut summary.load {
                load.remove_intervals();
            }
        }
        summary
    }

    /// Summarizes the repetitions of one result.
    pub fn from_result(result: &ProgramResult) -> Self {
        let kept: Vec<&Repetition> = result.kept_repetitions().collect();
        let chosen: Vec<&Repetition> = match result.protocol.statistic {
            SummaryStatistic::Median => kept.clone(),
            SummaryStatistic::Minimum => kept
                .iter()
                .copied()
                .min_by(|one, other| judged_duration_s(one).total_cmp(&judged_duration_s(other)))
                .into_iter()
                .collect(),
        };
        let figure =
            |of: &dyn Fn(&Repetition) -> f64| median_of_figures(&chosen, |one| Some(of(one)));
        let count = |of: fn(&WorkerMeasure) -> u64| figure(&|one| one.sum_over_workers(of) as f64);
        let has_storage = ReadLayer::from_result(result).is_none_or(ReadLayer::has_storage);
        let read = merge_latencies(&kept, |worker| &worker.read_latency);
        let cache = CacheVerdict::from_result(result);
        let write = merge_latencies(&kept, |worker| &worker.write_latency);
        Self {
            kept_count: kept.len(),
            elapsed_s: figure(&|one| one.elapsed_time().seconds()).unwrap_or(0.0),
            durable_elapsed_s: median_of_figures(&chosen, |one| {
                one.durable_time().map(Nanoseconds::seconds)
            }),
            kb_per_s: figure(&Repetition::kb_per_s).unwrap_or(0.0),
            durable_kb_per_s: median_of_figures(&chosen, Repetition::durable_kb_per_s),
            cpu_percent: figure(&Repetition::cpu_percent).unwrap_or(0.0),
            cpu_s: count(|worker| worker.cpu_time.0).unwrap_or(0.0) / 1e9,
            user_s: count(|worker| worker.user_cpu_time.0).unwrap_or(0.0) / 1e9,
            system_s: count(|worker| worker.system_cpu_time.0).unwrap_or(0.0) / 1e9,
            speed_interval: speed_interval(result, |one| Some(one.kb_per_s())),
            durable_interval: speed_interval(result, Repetition::durable_kb_per_s),
            call_count: count(|worker| worker.call_count).unwrap_or(0.0),
            mean_call_ns: mean_call_time_ns(&kept, &[&read, &write]),
            read_latency: LatencyPercentiles::from_histogram(&read),
            write_latency: LatencyPercentiles::from_histogram(&write),
            voluntary_switches: count(|worker| worker.voluntary_switch_count).unwrap_or(0.0),
            involuntary_switches: count(|worker| worker.involuntary_switch_count).unwrap_or(0.0),
            minor_faults: count(|worker| worker.minor_fault_count).unwrap_or(0.0),
            major_faults: count(|worker| worker.major_fault_count).unwrap_or(0.0),
            device_share: median_of_figures(&chosen, device_share)
                .filter(|_| has_storage && cache != CacheVerdict::Unknown),
            cache,
            shape: SeriesShape::from_durations(
                &kept
                    .iter()
                    .map(|one| judged_duration_s(one))
                    .collect::<Vec<_>>(),
            ),
            steady: SteadySummary::from_result(result),
            cache_cliff: CacheCliff::from_result(result),
            unwritten_share: unwritten::unwritten_share(kept.iter().copied()),
            load: LoadSummary::from_repetitions(
                &result.repetitions,
                (&kept, &chosen),
                result.protocol.statistic,
            ),
            verified: total_verified(&result.repetitions),
        }
    }
}

/// Sums the blocks that all repetitions read back, including discarded ones: an incorrect block
/// counts there, too.
fn total_verified(repetitions: &[Repetition]) -> Option<VerifiedBlocks> {
    let of_each = repetitions.iter().filter_map(Repetition::verified_blocks);
    let of_each: Vec<VerifiedBlocks> = of_each.collect();
    VerifiedBlocks::sum(&of_each)
}

/// Returns the median of a figure over the repetitions that have it; `None` if none has.
fn median_of_figures(
    chosen: &[&Repetition],
    figure: impl Fn(&Repetition) -> Option<f64>,
) -> Option<f64> {
    let figures: Vec<f64> = chosen.iter().filter_map(|one| figure(one)).collect();
    median(&figures)
}

fn speed_interval(
    result: &ProgramResult,
    speed: impl Fn(&Repetition) -> Option<f64>,
) -> Option<ConfidenceInterval> {
    match result.protocol.statistic {
        SummaryStatistic::Median => {
            let speeds: Vec<f64> = result.kept_repetitions().filter_map(speed).collect();
            median_interval(&speeds)
        }
        SummaryStatistic::Minimum => None,
    }
}

fn merge_latencies(
    kept: &[&Repetition],
    latency: impl Fn(&WorkerMeasure) -> &Histogram,
) -> Histogram {
    let mut merged = Histogram::new();
    for worker in kept.iter().flat_map(|repetition| &repetition.workers) {
        merged.merge(latency(worker));
    }
    merged
}

fn mean_call_time_ns(kept: &[&Repetition], timed: &[&Histogram]) -> Option<f64> {
    let count: u64 = timed
        .iter()
        .map(|histogram| histogram.latency_count())
        .sum();
    if count > 0 {
        let total: f64 = timed
            .iter()
            .map(|histogram| histogram.mean_ns() * histogram.latency_count() as f64)
            .sum();
        return Some(total / count as f64);
    }
    let per_repetition: Vec<f64> = kept
        .iter()
        .filter_map(|one| elapsed_per_call_ns(one))
        .collect();
    mean(&per_repetition)
}

/// Returns the nanoseconds from call to call in one repetition, including the program's own work.
/// `None` without calls.
pub(crate) fn elapsed_per_call_ns(repetition: &Repetition) -> Option<f64> {
    mean_time_per_call(repetition, |worker| worker.elapsed_time)
}

/// Returns the CPU nanoseconds per call, in user mode and in the kernel. `None` without calls.
pub(crate) fn cpu_per_call_ns(repetition: &Repetition) -> Option<f64> {
    mean_time_per_call(repetition, |worker| worker.cpu_time)
}

fn mean_time_per_call(
    repetition: &Repetition,
    time: impl Fn(&WorkerMeasure) -> Nanoseconds,
) -> Option<f64> {
    let calls = repetition.sum_over_workers(|worker| worker.call_count);
    let total = repetition.sum_over_workers(|worker| time(worker).0);
    (calls > 0).then(|| total as f64 / calls as f64)
}

/// Share of a call's time above which the system call, and not the device, limits the measurement.
const GENERATOR_SHARE_MIN: f64 = 0.5;

/// Returns the share (0 to 1) of the mean call's time that a call on `/dev/null` takes, where it
/// exceeds one half. The generator is then the limit, not the device. `None` elsewhere.
pub fn generator_share_if_limiting(summary: &ResultSummary, overhead: &Overhead) -> Option<f64> {
    let call_ns = summary.mean_call_ns.filter(|&call_ns| call_ns > 0.0)?;
    let share = (overhead.null_call_ns / call_ns).min(1.0);
    (share > GENERATOR_SHARE_MIN).then_some(share)
}

#[cfg(test)]
mod tests;
