//! Summary of all repetitions of a program with several requests in flight.

use super::median_of_figures;
use crate::quantity::judged_duration_s;
use crate::statistics::{ConfidenceInterval, median, median_interval};
use diskperf_timeline::{
    Engine, Histogram, LoadMeasure, Nanoseconds, OperationMeasure, Repetition, SeriesPoint,
    SummaryStatistic,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Figures of a program with several requests in flight, by its protocol's statistic over the kept
/// repetitions, as in [`super::Summary`].
///
/// Rates and the 50th and 99th percentile are taken separately. A single repetition has too few
/// requests for the higher percentiles and the maximum; these and the mean cover the requests of
/// all repetitions together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadSummary {
    /// Methods by which requests were submitted. There is one, unless workers had to differ.
    #[serde(rename = "engine")]
    pub engines: Vec<Engine>,
    /// Queue depth: requests in flight per worker.
    #[serde(rename = "depth")]
    pub queue_depth_max: u32,
    /// Number of workers that submit requests.
    #[serde(rename = "workers")]
    pub worker_count: u32,
    /// Rate per second of the judged operations: transactions, or requests where the program has
    /// none.
    pub iops: f64,
    /// 95 % interval of the rate `iops`.
    pub iops_interval: Option<ConfidenceInterval>,
    /// Data rate in MB/s of 10^6 bytes.
    pub mb_per_s: f64,
    /// 95 % interval of the data rate `mb_per_s`.
    pub mb_per_s_interval: Option<ConfidenceInterval>,
    /// Share (0 to 1) of reads among reads and writes; absent where there was neither.
    pub read_share: Option<f64>,
    /// Response times of the operations that `iops` counts: reads and writes together, or
    /// transactions.
    pub response: Option<LatencySummary>,
    /// Rates and latencies of each operation that occurred.
    #[serde(serialize_with = "serialize_by_name")]
    #[serde(rename = "latency")]
    pub operation_summaries: Vec<OperationSummary>,
    /// CPU time in microseconds for each request that counts.
    pub cpu_us_per_io: Option<f64>,
    /// Delay of the issue after the scheduled arrival; only in open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_lag_us: Option<IssueLag>,
    /// Number of requests that were not complete at the end, over all kept repetitions; only in
    /// open loop.
    #[serde(rename = "unfinished")]
    pub unfinished_count: u64,
    /// Length of the intervals of `series`, in seconds.
    pub interval_s: f64,
    /// Index of the repetition that `series` shows, counted from 0 among all: the median one.
    #[serde(rename = "series_of")]
    pub series_repetition: usize,
    /// Rates and response times of the repetition over time, interval by interval.
    pub series: Vec<SeriesFigures>,
}

/// Rates and latencies of one operation, such as read or sync.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    /// Name of the operation: `create`, `stat`, `rename`, `unlink`, `read`, `write`, `sync`,
    /// `discard` or `commit`.
    #[serde(skip)]
    pub name: &'static str,
    /// Rate per second. Where a program performs its operations one kind after the other, the rate
    /// refers to the time of that kind.
    pub iops: f64,
    /// Rate of the operation in MB/s of 10^6 bytes.
    pub mb_per_s: f64,
    /// Response time of requests from their start until their completion was reaped.
    #[serde(rename = "response")]
    pub response_latency: Option<LatencySummary>,
    /// Time that a request spends in the call that submits it, as a part of its response time.
    #[serde(rename = "submit")]
    pub submit_latency: Option<LatencySummary>,
}

/// Percentiles of one kind of latency, in microseconds. A percentile is absent where requests are
/// too few for it ([`Histogram::can_estimate`]).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Median latency of the requests in microseconds.
    pub p50_us: Option<f64>,
    /// 95 % interval of the median latency, where each repetition has enough requests.
    pub p50_interval: Option<ConfidenceInterval>,
    /// 99th percentile of the requests' latency in microseconds.
    pub p99_us: Option<f64>,
    /// 95 % interval of the 99th percentile, where each repetition has enough requests.
    pub p99_interval: Option<ConfidenceInterval>,
    /// 99.9th percentile of the requests' latency in microseconds.
    pub p99_9_us: Option<f64>,
    /// 99.99th percentile of the requests' latency in microseconds.
    pub p99_99_us: Option<f64>,
    /// Maximum latency of a request in microseconds.
    pub max_us: f64,
    /// Mean latency of the requests in microseconds.
    pub mean_us: f64,
    /// Number of requests with this latency, over all kept repetitions.
    #[serde(rename = "count")]
    pub request_count: u64,
}

/// Delay of the issue of requests after their scheduled arrival, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IssueLag {
    /// Median delay of a request's issue in microseconds.
    #[serde(rename = "p50")]
    pub p50_us: f64,
    /// 99th percentile of the delay of a request's issue in microseconds; absent where requests are
    /// too few.
    #[serde(rename = "p99")]
    pub p99_us: Option<f64>,
    /// Maximum delay of a request's issue in microseconds.
    #[serde(rename = "max")]
    pub max_us: f64,
}

/// Figures of the requests that completed in one interval of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeriesFigures {
    /// Start of the interval in seconds since the start of the timed part.
    #[serde(rename = "at_s")]
    pub start_s: f64,
    /// Rate per second: transactions of a program that has them, else reads and writes, or
    /// operations on names.
    pub iops: f64,
    /// Data rate of the interval in MB/s of 10^6 bytes.
    pub mb_per_s: f64,
    /// 99th percentile of the response time in the interval, in microseconds; absent where requests
    /// are too few.
    pub p99_us: Option<f64>,
}

/// Repetitions that a load's summary covers.
struct LoadAggregation<'a> {
    kept_repetitions: &'a [&'a Repetition],
    /// Repetitions that the statistic selects, and whose median represents all.
    chosen_repetitions: &'a [&'a Repetition],
    statistic: SummaryStatistic,
}

impl LoadSummary {
    /// Summarizes the repetitions. `all` are all of them; `kept` are those that count, and `chosen`
    /// those of them that the statistic selects.
    ///
    /// `None` for a program with one call in flight, and where nothing was kept.
    pub(super) fn from_repetitions(
        all: &[Repetition],
        (kept, chosen): (&[&Repetition], &[&Repetition]),
        statistic: SummaryStatistic,
    ) -> Option<Self> {
        let loads = || kept.iter().flat_map(|one| one.load_measures());
        let first = loads().next()?;
        let of = LoadAggregation {
            kept_repetitions: kept,
            chosen_repetitions: chosen,
            statistic,
        };
        let mut engine: Vec<Engine> = Vec::new();
        loads()
            .map(|load| load.engine)
            .for_each(|one| push_if_absent(&mut engine, one));
        let (iops, iops_interval) = of.summarize_rate(&|one| one.iops());
        let (mb_per_s, mb_per_s_interval) = of.summarize_rate(&|one| Some(mb_per_s(one)));
        let middle_one = find_median_repetition(kept)?;
        let reads: u64 = loads().map(|load| load.read.request_count()).sum();
        let requests: u64 = loads().map(LoadMeasure::read_write_count).sum();
        let course = build_rate_series(middle_one, usize::MAX);
        let lags = of.pool_histograms(&|load| load.arrival_lag.iter().collect());
        Some(Self {
            engines: engine,
            queue_depth_max: loads()
                .map(|load| load.queue_depth)
                .max()
                .unwrap_or(first.queue_depth),
            worker_count: middle_one.load_measures().count() as u32,
            iops,
            iops_interval,
            mb_per_s,
            mb_per_s_interval,
            read_share: (requests > 0).then(|| reads as f64 / requests as f64),
            response: of.summarize_latency(&|load| {
                let counted = load.awaited_operations().into_iter();
                counted.map(|operation| &operation.response_times).collect()
            }),
            operation_summaries: (0..first.named_operations().len())
                .filter_map(|number| of.summarize_operation(number))
                .collect(),
            cpu_us_per_io: median_of_figures(chosen, cpu_us_per_io),
            issue_lag_us: (lags.latency_count() > 0).then(|| IssueLag {
                p50_us: to_microseconds(lags.percentile(50.0)),
                p99_us: percentile_us(&lags, 99.0),
                max_us: to_microseconds(lags.latency_max()),
            }),
            unfinished_count: loads().map(|load| load.unfinished_count).sum(),
            interval_s: course.interval_s,
            series_repetition: all
                .iter()
                .position(|one| std::ptr::eq(one, middle_one))
                .unwrap_or_default(),
            series: course.series,
        })
    }

    /// Marks the summary's figures as exact, as those of a model are.
    pub(super) fn remove_intervals(&mut self) {
        self.iops_interval = Some(ConfidenceInterval::exact_value(self.iops));
        self.mb_per_s_interval = Some(ConfidenceInterval::exact_value(self.mb_per_s));
        let operations = self.operation_summaries.iter_mut();
        let each = operations.flat_map(|one| [&mut one.response_latency, &mut one.submit_latency]);
        for latency in each.chain([&mut self.response]).flatten() {
            latency.p50_interval = latency.p50_us.map(ConfidenceInterval::exact_value);
            latency.p99_interval = latency.p99_us.map(ConfidenceInterval::exact_value);
        }
    }
}

type HistogramSelector<'w> = &'w dyn Fn(&LoadMeasure) -> Vec<&Histogram>;

impl LoadAggregation<'_> {
    fn summarize_rate(
        &self,
        figure_of: &dyn Fn(&Repetition) -> Option<f64>,
    ) -> (f64, Option<ConfidenceInterval>) {
        let rates: Vec<f64> = self
            .chosen_repetitions
            .iter()
            .filter_map(|one| figure_of(one))
            .collect();
        (median(&rates).unwrap_or(0.0), self.median_interval(&rates))
    }

    fn median_interval(&self, figures: &[f64]) -> Option<ConfidenceInterval> {
        match self.statistic {
            SummaryStatistic::Median => median_interval(figures),
            SummaryStatistic::Minimum => None,
        }
    }

    /// Summarizes one operation of a program; `None` if it did not occur.
    fn summarize_operation(&self, number: usize) -> Option<OperationSummary> {
        fn operation_by_index(load: &LoadMeasure, number: usize) -> &OperationMeasure {
            load.named_operations()[number].1
        }
        let loads = || {
            self.kept_repetitions
                .iter()
                .flat_map(|one| one.load_measures())
        };
        let (name, _) = loads().next()?.named_operations()[number];
        if loads().all(|load| operation_by_index(load, number).is_empty()) {
            return None;
        }
        let per_s = |of: fn(&OperationMeasure) -> f64| {
            let rate = |one: &Repetition| {
                let amount: f64 = one
                    .load_measures()
                    .map(|load| of(operation_by_index(load, number)))
                    .sum();
                let spans = one
                    .load_measures()
                    .map(|load| operation_by_index(load, number).elapsed_span);
                let elapsed = spans.max().filter(|span| span.0 > 0);
                let elapsed_s = elapsed.unwrap_or_else(|| one.elapsed_time()).seconds();
                (elapsed_s > 0.0).then(|| amount / elapsed_s)
            };
            median_of_figures(self.chosen_repetitions, rate).unwrap_or(0.0)
        };
        Some(OperationSummary {
            name,
            iops: per_s(|one| one.request_count() as f64),
            mb_per_s: per_s(|one| one.bytes as f64 / 1e6),
            response_latency: self
                .summarize_latency(&|load| vec![&operation_by_index(load, number).response_times]),
            submit_latency: self.summarize_latency(&|load| {
                vec![&operation_by_index(load, number).submit_call_times]
            }),
        })
    }

    fn pool_histograms(&self, which: HistogramSelector) -> Histogram {
        let mut all = Histogram::new();
        self.kept_repetitions
            .iter()
            .for_each(|one| all.merge(&merge_latencies(one, which)));
        all
    }

    /// Summarizes the selected latencies; `None` where there are none.
    fn summarize_latency(&self, which: HistogramSelector) -> Option<LatencySummary> {
        let all = self.pool_histograms(which);
        if all.latency_count() == 0 {
            return None;
        }
        let each: Vec<Histogram> = self
            .chosen_repetitions
            .iter()
            .map(|one| merge_latencies(one, which))
            .collect();
        let (p50_us, p50_interval) = self.percentile_with_interval(&each, &all, 50.0);
        let (p99_us, p99_interval) = self.percentile_with_interval(&each, &all, 99.0);
        Some(LatencySummary {
            p50_us,
            p50_interval,
            p99_us,
            p99_interval,
            p99_9_us: percentile_us(&all, 99.9),
            p99_99_us: percentile_us(&all, 99.99),
            max_us: to_microseconds(all.latency_max()),
            mean_us: all.mean_ns() / 1e3,
            request_count: all.latency_count(),
        })
    }

    /// Returns the median of a percentile over the repetitions, or the percentile of all requests
    /// together where one repetition has too few.
    fn percentile_with_interval(
        &self,
        each: &[Histogram],
        all: &Histogram,
        percentile: f64,
    ) -> (Option<f64>, Option<ConfidenceInterval>) {
        let told: Option<Vec<f64>> = each
            .iter()
            .map(|one| percentile_us(one, percentile))
            .collect();
        match told {
            Some(told) => (median_of_times(&told), self.median_interval(&told)),
            None => (percentile_us(all, percentile), None),
        }
    }
}

/// Returns the median of times. Of two middle values it is the harmonic mean, so that it is the
/// inverse of the median rate, which comparisons use.
fn median_of_times(times: &[f64]) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    // Of an odd number, to the last digit.
    Some(match lower == upper {
        true => upper,
        false => 2.0 / (1.0 / lower + 1.0 / upper),
    })
}

fn merge_latencies(repetition: &Repetition, which: HistogramSelector) -> Histogram {
    let mut all = Histogram::new();
    for histogram in repetition.load_measures().flat_map(which) {
        all.merge(histogram);
    }
    all
}

/// Returns the median repetition by the time that they are judged by; `None` for none.
pub fn find_median_repetition<'r>(repetitions: &[&'r Repetition]) -> Option<&'r Repetition> {
    let mut sorted = repetitions.to_vec();
    sorted.sort_by(|one, other| judged_duration_s(one).total_cmp(&judged_duration_s(other)));
    let place = sorted.len().checked_sub(1)? / 2;
    sorted.get(place).copied()
}

/// Returns the rate of the counted bytes in MB/s of 10^6 bytes.
pub fn mb_per_s(repetition: &Repetition) -> f64 {
    repetition.kb_per_s() * 1024.0 / 1e6
}

/// Returns the CPU time in microseconds for each request that counts; `None` without requests.
pub fn cpu_us_per_io(repetition: &Repetition) -> Option<f64> {
    let count: u64 = repetition
        .load_measures()
        .map(LoadMeasure::awaited_request_count)
        .sum();
    let cpu_us = repetition.sum_over_workers(|worker| worker.cpu_time.0) as f64 / 1e3;
    (count > 0).then(|| cpu_us / count as f64)
}

/// Rates and response times of a repetition over time, in equal intervals.
pub struct RateSeries {
    /// Length of the series' intervals in seconds.
    pub interval_s: f64,
    /// Figures of the intervals, in order.
    pub series: Vec<SeriesFigures>,
}

/// Returns the figures of a repetition over time, as [`course`] does, in its own intervals.
pub fn build_series(repetition: &Repetition) -> Vec<SeriesFigures> {
    build_rate_series(repetition, usize::MAX).series
}

/// Returns the figures of a repetition over time, its workers together, in at most `most`
/// intervals.
///
/// The interval is the longest of any worker, or a multiple of it. A last interval that ended
/// before its half is left out, since its time is too short for rates.
pub fn build_rate_series(repetition: &Repetition, most: usize) -> RateSeries {
    let timed = || {
        let workers = repetition.workers.iter();
        workers.filter_map(|worker| Some((worker.elapsed_time, worker.load_measure.as_ref()?)))
    };
    let own = timed().map(|(_, load)| load.series_interval.0);
    let own = own.max().unwrap_or(0);
    let intervals =
        |load: &LoadMeasure, of: u64| (of / load.series_interval.0.max(1)).max(1) as usize;
    let points = timed().map(|(_, load)| load.time_series.len().div_ceil(intervals(load, own)));
    let together = points.max().unwrap_or(0).div_ceil(most.max(1)).max(1) as u64;
    let interval = Nanoseconds(own.saturating_mul(together));
    let workers: Vec<WorkerSeries> = timed()
        .filter(|(_, load)| load.series_interval.0 > 0)
        .map(|(elapsed, load)| WorkerSeries {
            elapsed,
            has_commits: load.time_series.iter().any(|one| one.commit_count > 0),
            points: load.merge_intervals(intervals(load, interval.0)),
        })
        .collect();
    let points = workers.iter().map(|worker| worker.points.len()).max();
    RateSeries {
        interval_s: interval.seconds(),
        series: (0..points.unwrap_or(0))
            .map_while(|number| build_interval_figures(&workers, interval, number))
            .collect(),
    }
}

struct WorkerSeries<'a> {
    elapsed: Nanoseconds,
    /// Whether transactions count, and not single requests.
    has_commits: bool,
    points: Cow<'a, [SeriesPoint]>,
}

fn build_interval_figures(
    workers: &[WorkerSeries],
    interval: Nanoseconds,
    number: usize,
) -> Option<SeriesFigures> {
    let mut responses = Histogram::new();
    let (mut iops, mut mb_per_s) = (0.0, 0.0);
    let mut at = None;
    for WorkerSeries {
        elapsed,
        has_commits,
        points,
    } in workers
    {
        let Some(point) = points.get(number) else {
            continue;
        };
        let began = Nanoseconds(interval.0.saturating_mul(number as u64));
        let length = match points.len() == number + 1 {
            // One that is over before it began had its ramp's end moved.
            true => match elapsed.since(began) {
                Nanoseconds(0) => interval,
                rest => rest.min(interval),
            },
            false => interval,
        };
        if number > 0 && length.0 < interval.0 / 2 {
            continue;
        }
        at = Some(began);
        responses.merge(&point.response_times);
        let seconds = length.seconds();
        let count = match has_commits {
            true => point.commit_count,
            false => point.request_count(),
        };
        iops += count as f64 / seconds;
        mb_per_s += (point.read_bytes + point.written_bytes) as f64 / 1e6 / seconds;
    }
    Some(SeriesFigures {
        start_s: at?.seconds(),
        iops,
        mb_per_s,
        p99_us: percentile_us(&responses, 99.0),
    })
}

fn to_microseconds(ns: Nanoseconds) -> f64 {
    ns.0 as f64 / 1e3
}

/// Returns a percentile in microseconds; `None` where requests are too few or missing.
fn percentile_us(histogram: &Histogram, percentile: f64) -> Option<f64> {
    let told = histogram.latency_count() > 0 && histogram.can_estimate(percentile);
    told.then(|| to_microseconds(histogram.percentile(percentile)))
}

fn push_if_absent(engines: &mut Vec<Engine>, engine: Engine) {
    if !engines.contains(&engine) {
        engines.push(engine);
    }
}

/// Serializes an object with a field for each operation.
fn serialize_by_name<S: Serializer>(
    operations: &[OperationSummary],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(operations.len()))?;
    for operation in operations {
        map.serialize_entry(operation.name, operation)?;
    }
    map.end()
}

#[cfg(test)]
mod tests;
