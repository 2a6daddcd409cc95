//! Summary of all repetitions of a program with several requests in flight.

use super::median_of;
use crate::quantity::judged_s;
use crate::statistics::{Interval, median, median_interval};
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
    pub engine: Vec<Engine>,
    /// Queue depth: requests in flight per worker.
    pub depth: u32,
    /// Number of workers that submit requests.
    pub workers: u32,
    /// Rate per second of the judged operations: transactions, or requests where the program has
    /// none.
    pub iops: f64,
    /// 95 % interval of the rate `iops`.
    pub iops_interval: Option<Interval>,
    /// Data rate in MB/s of 10^6 bytes.
    pub mb_per_s: f64,
    /// 95 % interval of the data rate `mb_per_s`.
    pub mb_per_s_interval: Option<Interval>,
    /// Share (0 to 1) of reads among reads and writes; absent where there was neither.
    pub read_share: Option<f64>,
    /// Response times of the operations that `iops` counts: reads and writes together, or
    /// transactions.
    pub response: Option<Latency>,
    /// Rates and latencies of each operation that occurred.
    #[serde(serialize_with = "by_name")]
    pub latency: Vec<OperationSummary>,
    /// CPU time in microseconds for each request that counts.
    pub cpu_us_per_io: Option<f64>,
    /// Delay of the issue after the scheduled arrival; only in open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_lag_us: Option<Lag>,
    /// Number of requests that were not complete at the end, over all kept repetitions; only in
    /// open loop.
    pub unfinished: u64,
    /// Length of the intervals of `series`, in seconds.
    pub interval_s: f64,
    /// Index of the repetition that `series` shows, counted from 0 among all: the median one.
    pub series_of: usize,
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
    pub response: Option<Latency>,
    /// Time that a request spends in the call that submits it, as a part of its response time.
    pub submit: Option<Latency>,
}

/// Percentiles of one kind of latency, in microseconds. A percentile is absent where requests are
/// too few for it ([`Histogram::can_estimate`]).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Median latency of the requests in microseconds.
    pub p50_us: Option<f64>,
    /// 95 % interval of the median latency, where each repetition has enough requests.
    pub p50_interval: Option<Interval>,
    /// 99th percentile of the requests' latency in microseconds.
    pub p99_us: Option<f64>,
    /// 95 % interval of the 99th percentile, where each repetition has enough requests.
    pub p99_interval: Option<Interval>,
    /// 99.9th percentile of the requests' latency in microseconds.
    pub p99_9_us: Option<f64>,
    /// 99.99th percentile of the requests' latency in microseconds.
    pub p99_99_us: Option<f64>,
    /// Maximum latency of a request in microseconds.
    pub max_us: f64,
    /// Mean latency of the requests in microseconds.
    pub mean_us: f64,
    /// Number of requests with this latency, over all kept repetitions.
    pub count: u64,
}

/// Delay of the issue of requests after their scheduled arrival, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lag {
    /// Median delay of a request's issue in microseconds.
    pub p50: f64,
    /// 99th percentile of the delay of a request's issue in microseconds; absent where requests are
    /// too few.
    pub p99: Option<f64>,
    /// Maximum delay of a request's issue in microseconds.
    pub max: f64,
}

/// Figures of the requests that completed in one interval of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeriesFigures {
    /// Start of the interval in seconds since the start of the timed part.
    pub at_s: f64,
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
    /// All kept repetitions of the program.
    kept: &'a [&'a Repetition],
    /// Repetitions that the statistic selects, and whose median represents all.
    chosen: &'a [&'a Repetition],
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
            kept,
            chosen,
            statistic,
        };
        let mut engine: Vec<Engine> = Vec::new();
        loads()
            .map(|load| load.engine)
            .for_each(|one| push_if_new(&mut engine, one));
        let (iops, iops_interval) = of.rate(&|one| one.iops());
        let (mb_per_s, mb_per_s_interval) = of.rate(&|one| Some(mb_per_s(one)));
        let middle_one = in_the_middle(kept)?;
        let reads: u64 = loads().map(|load| load.read.request_count()).sum();
        let requests: u64 = loads().map(LoadMeasure::read_write_count).sum();
        let course = course(middle_one, usize::MAX);
        let lags = of.pool_histograms(&|load| load.arrival_lag.iter().collect());
        Some(Self {
            engine,
            depth: loads()
                .map(|load| load.queue_depth)
                .max()
                .unwrap_or(first.queue_depth),
            workers: middle_one.load_measures().count() as u32,
            iops,
            iops_interval,
            mb_per_s,
            mb_per_s_interval,
            read_share: (requests > 0).then(|| reads as f64 / requests as f64),
            response: of.latency_summary(&|load| {
                let counted = load.awaited_operations().into_iter();
                counted.map(|operation| &operation.response_times).collect()
            }),
            latency: (0..first.named_operations().len())
                .filter_map(|number| of.operation_summary(number))
                .collect(),
            cpu_us_per_io: median_of(chosen, cpu_us_per_io),
            issue_lag_us: (lags.latency_count() > 0).then(|| Lag {
                p50: microseconds(lags.percentile(50.0)),
                p99: percentile_us(&lags, 99.0),
                max: microseconds(lags.latency_max()),
            }),
            unfinished: loads().map(|load| load.unfinished_count).sum(),
            interval_s: course.interval_s,
            series_of: all
                .iter()
                .position(|one| std::ptr::eq(one, middle_one))
                .unwrap_or_default(),
            series: course.series,
        })
    }

    /// Marks the summary's figures as exact, as those of a model are.
    pub(super) fn drop_intervals(&mut self) {
        self.iops_interval = Some(Interval::exact(self.iops));
        self.mb_per_s_interval = Some(Interval::exact(self.mb_per_s));
        let operations = self.latency.iter_mut();
        let each = operations.flat_map(|one| [&mut one.response, &mut one.submit]);
        for latency in each.chain([&mut self.response]).flatten() {
            latency.p50_interval = latency.p50_us.map(Interval::exact);
            latency.p99_interval = latency.p99_us.map(Interval::exact);
        }
    }
}

/// Selector of the latency histograms of a worker.
type HistogramChoice<'w> = &'w dyn Fn(&LoadMeasure) -> Vec<&Histogram>;

impl LoadAggregation<'_> {
    fn rate(&self, figure_of: &dyn Fn(&Repetition) -> Option<f64>) -> (f64, Option<Interval>) {
        let rates: Vec<f64> = self
            .chosen
            .iter()
            .filter_map(|one| figure_of(one))
            .collect();
        (median(&rates).unwrap_or(0.0), self.interval(&rates))
    }

    fn interval(&self, figures: &[f64]) -> Option<Interval> {
        match self.statistic {
            SummaryStatistic::Median => median_interval(figures),
            SummaryStatistic::Minimum => None,
        }
    }

    /// Summarizes one operation of a program; `None` if it did not occur.
    fn operation_summary(&self, number: usize) -> Option<OperationSummary> {
        fn operation_at(load: &LoadMeasure, number: usize) -> &OperationMeasure {
            load.named_operations()[number].1
        }
        let loads = || self.kept.iter().flat_map(|one| one.load_measures());
        let (name, _) = loads().next()?.named_operations()[number];
        if loads().all(|load| operation_at(load, number).is_empty()) {
            return None;
        }
        let per_s = |of: fn(&OperationMeasure) -> f64| {
            let rate = |one: &Repetition| {
                let amount: f64 = one
                    .load_measures()
                    .map(|load| of(operation_at(load, number)))
                    .sum();
                let spans = one
                    .load_measures()
                    .map(|load| operation_at(load, number).elapsed_span);
                let elapsed = spans.max().filter(|span| span.0 > 0);
                let elapsed_s = elapsed.unwrap_or_else(|| one.elapsed_time()).seconds();
                (elapsed_s > 0.0).then(|| amount / elapsed_s)
            };
            median_of(self.chosen, rate).unwrap_or(0.0)
        };
        Some(OperationSummary {
            name,
            iops: per_s(|one| one.request_count() as f64),
            mb_per_s: per_s(|one| one.bytes as f64 / 1e6),
            response: self
                .latency_summary(&|load| vec![&operation_at(load, number).response_times]),
            submit: self
                .latency_summary(&|load| vec![&operation_at(load, number).submit_call_times]),
        })
    }

    fn pool_histograms(&self, which: HistogramChoice) -> Histogram {
        let mut all = Histogram::new();
        self.kept
            .iter()
            .for_each(|one| all.merge(&merge_latencies(one, which)));
        all
    }

    /// Summarizes the selected latencies; `None` where there are none.
    fn latency_summary(&self, which: HistogramChoice) -> Option<Latency> {
        let all = self.pool_histograms(which);
        if all.latency_count() == 0 {
            return None;
        }
        let each: Vec<Histogram> = self
            .chosen
            .iter()
            .map(|one| merge_latencies(one, which))
            .collect();
        let (p50_us, p50_interval) = self.percentile_with_interval(&each, &all, 50.0);
        let (p99_us, p99_interval) = self.percentile_with_interval(&each, &all, 99.0);
        Some(Latency {
            p50_us,
            p50_interval,
            p99_us,
            p99_interval,
            p99_9_us: percentile_us(&all, 99.9),
            p99_99_us: percentile_us(&all, 99.99),
            max_us: microseconds(all.latency_max()),
            mean_us: all.mean_ns() / 1e3,
            count: all.latency_count(),
        })
    }

    /// Returns the median of a percentile over the repetitions, or the percentile of all requests
    /// together where one repetition has too few.
    fn percentile_with_interval(
        &self,
        each: &[Histogram],
        all: &Histogram,
        percentile: f64,
    ) -> (Option<f64>, Option<Interval>) {
        let told: Option<Vec<f64>> = each
            .iter()
            .map(|one| percentile_us(one, percentile))
            .collect();
        match told {
            Some(told) => (median_time(&told), self.interval(&told)),
            None => (percentile_us(all, percentile), None),
        }
    }
}

/// Returns the median of times. Of two middle values it is the harmonic mean, so that it is the
/// inverse of the median rate, which comparisons use.
fn median_time(times: &[f64]) -> Option<f64> {
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

fn merge_latencies(repetition: &Repetition, which: HistogramChoice) -> Histogram {
    let mut all = Histogram::new();
    for histogram in repetition.load_measures().flat_map(which) {
        all.merge(histogram);
    }
    all
}

/// Returns the median repetition by the time that they are judged by; `None` for none.
pub fn in_the_middle<'r>(repetitions: &[&'r Repetition]) -> Option<&'r Repetition> {
    let mut sorted = repetitions.to_vec();
    sorted.sort_by(|one, other| judged_s(one).total_cmp(&judged_s(other)));
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
pub struct Course {
    /// Length of the series' intervals in seconds.
    pub interval_s: f64,
    /// Figures of the intervals, in order.
    pub series: Vec<SeriesFigures>,
}

/// Returns the figures of a repetition over time, as [`course`] does, in its own intervals.
pub fn series(repetition: &Repetition) -> Vec<SeriesFigures> {
    course(repetition, usize::MAX).series
}

/// Returns the figures of a repetition over time, its workers together, in at most `most`
/// intervals.
///
/// The interval is the longest of any worker, or a multiple of it. A last interval that ended
/// before its half is left out, since its time is too short for rates.
pub fn course(repetition: &Repetition, most: usize) -> Course {
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
    Course {
        interval_s: interval.seconds(),
        series: (0..points.unwrap_or(0))
            .map_while(|number| interval_figures(&workers, interval, number))
            .collect(),
    }
}

/// Series of one worker, in intervals common to all workers.
struct WorkerSeries<'a> {
    elapsed: Nanoseconds,
    /// Whether transactions count, and not single requests.
    has_commits: bool,
    points: Cow<'a, [SeriesPoint]>,
}

fn interval_figures(
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
        at_s: at?.seconds(),
        iops,
        mb_per_s,
        p99_us: percentile_us(&responses, 99.0),
    })
}

fn microseconds(ns: Nanoseconds) -> f64 {
    ns.0 as f64 / 1e3
}

/// Returns a percentile in microseconds; `None` where requests are too few or missing.
fn percentile_us(histogram: &Histogram, percentile: f64) -> Option<f64> {
    let told = histogram.latency_count() > 0 && histogram.can_estimate(percentile);
    told.then(|| microseconds(histogram.percentile(percentile)))
}

fn push_if_new(engines: &mut Vec<Engine>, engine: Engine) {
    if !engines.contains(&engine) {
        engines.push(engine);
    }
}

/// Serializes an object with a field for each operation.
fn by_name<S: Serializer>(
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
