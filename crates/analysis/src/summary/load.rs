//! What stands for all repetitions of a program with several requests under way.

use super::middle;
use crate::quantity::judged_s;
use crate::statistics::{Interval, median, median_interval};
use diskperf_timeline::{
    Engine, Histogram, LoadMeasure, Nanoseconds, OperationMeasure, Repetition, SeriesPoint,
    Statistic,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// A program's figures by its protocol's statistic over the kept repetitions, as those of
/// [`super::Summary`] are: rates, the 50th and the 99th percentile each by itself. What a
/// single repetition has too few requests for (the higher percentiles, the maximum) and
/// the mean are of the requests of all of them together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadSummary {
    /// How requests were handed to the system: one, but where workers had to differ.
    pub engine: Vec<Engine>,
    /// Requests under way at once, of each worker.
    pub depth: u32,
    /// Workers.
    pub workers: u32,
    /// Per second, of what the program is judged by: its transactions, or where it has none
    /// its requests.
    pub iops: f64,
    /// The 95 % interval of `iops`.
    pub iops_interval: Option<Interval>,
    /// Of 10^6 bytes.
    pub mb_per_s: f64,
    /// The 95 % interval of `mb_per_s`.
    pub mb_per_s_interval: Option<Interval>,
    /// Of the reads and writes, the share (0 to 1) that read; absent where there was
    /// neither.
    pub read_share: Option<f64>,
    /// Responses of what `iops` counts: reads and writes together, or transactions.
    pub response: Option<Latency>,
    /// Each operation that occurred.
    #[serde(serialize_with = "by_name")]
    pub latency: Vec<OperationSummary>,
    /// Microseconds of CPU for each request that counts.
    pub cpu_us_per_io: Option<f64>,
    /// Where requests arrived by the clock: how late they were issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_lag_us: Option<Lag>,
    /// Where requests arrived by the clock: how many were not complete at the end, over
    /// all kept repetitions.
    pub unfinished: u64,
    /// The length of the intervals of `series`.
    pub interval_s: f64,
    /// Which repetition `series` is of, counted from 0 among all: the middle one.
    pub series_of: usize,
    /// The course over time.
    pub series: Vec<SeriesFigures>,
}

/// What requests of one operation took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    /// `create`, `stat`, `rename`, `unlink`, `read`, `write`, `sync`, `discard` or
    /// `commit`.
    #[serde(skip)]
    pub name: &'static str,
    /// How many per second: where a program makes its operations one kind after the other,
    /// of the time of that kind.
    pub iops: f64,
    /// Bytes that they moved per second, of 10^6.
    pub mb_per_s: f64,
    /// From the start until the completion was taken.
    pub response: Option<Latency>,
    /// Of that, in the call that submitted.
    pub submit: Option<Latency>,
}

/// Latencies of one kind, in microseconds; absent where there are too few to tell one
/// ([`Histogram::tells`]).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Half took no longer.
    pub p50_us: Option<f64>,
    /// Its 95 % interval, where each repetition tells it.
    pub p50_interval: Option<Interval>,
    /// 99 in 100 took no longer.
    pub p99_us: Option<f64>,
    /// Its 95 % interval, where each repetition tells it.
    pub p99_interval: Option<Interval>,
    /// 999 in 1000 took no longer.
    pub p99_9_us: Option<f64>,
    /// 9999 in 10000 took no longer.
    pub p99_99_us: Option<f64>,
    /// The longest.
    pub max_us: f64,
    /// The mean.
    pub mean_us: f64,
    /// How many, over all kept repetitions.
    pub count: u64,
}

/// How late requests were issued, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lag {
    /// Half were no later.
    pub p50: f64,
    /// 99 in 100 were no later; absent of too few to tell.
    pub p99: Option<f64>,
    /// The latest.
    pub max: f64,
}

/// One interval of the course over time: what completed in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeriesFigures {
    /// When it began, since the start of the timed part.
    pub at_s: f64,
    /// Per second: transactions of a program that has them, else reads and writes, or what
    /// was done to names.
    pub iops: f64,
    /// Bytes per second, of 10^6.
    pub mb_per_s: f64,
    /// 99 in 100 responses took no longer; absent of too few to tell.
    pub p99_us: Option<f64>,
}

/// What a load's summary is of.
struct Of<'a> {
    /// All that count.
    kept: &'a [&'a Repetition],
    /// Those whose middle stands for them.
    chosen: &'a [&'a Repetition],
    statistic: Statistic,
}

impl LoadSummary {
    /// `None` of a program with one call under way, and where nothing was kept. `all` are
    /// all repetitions, and of those that count, `chosen` are those that the statistic
    /// takes.
    pub(super) fn of(
        all: &[Repetition],
        (kept, chosen): (&[&Repetition], &[&Repetition]),
        statistic: Statistic,
    ) -> Option<Self> {
        let loads = || kept.iter().flat_map(|one| one.loads());
        let first = loads().next()?;
        let of = Of {
            kept,
            chosen,
            statistic,
        };
        let mut engine: Vec<Engine> = Vec::new();
        loads()
            .map(|load| load.engine)
            .for_each(|one| push_new(&mut engine, one));
        let (iops, iops_interval) = of.rate(&|one| one.iops());
        let (mb_per_s, mb_per_s_interval) = of.rate(&|one| Some(mb_per_s(one)));
        let middle_one = in_the_middle(kept)?;
        let reads: u64 = loads().map(|load| load.read.count()).sum();
        let requests: u64 = loads().map(LoadMeasure::requests).sum();
        let course = course(middle_one, usize::MAX);
        let lags = of.pooled(&|load| load.lag.iter().collect());
        Some(Self {
            engine,
            depth: loads().map(|load| load.depth).max().unwrap_or(first.depth),
            workers: middle_one.loads().count() as u32,
            iops,
            iops_interval,
            mb_per_s,
            mb_per_s_interval,
            read_share: (requests > 0).then(|| reads as f64 / requests as f64),
            response: of.latency(&|load| {
                let counted = load.counted().into_iter();
                counted.map(|operation| &operation.response).collect()
            }),
            latency: (0..first.operations().len())
                .filter_map(|number| of.operation(number))
                .collect(),
            cpu_us_per_io: middle(chosen, cpu_us_per_io),
            issue_lag_us: (lags.count() > 0).then(|| Lag {
                p50: us(lags.percentile(50.0)),
                p99: told_us(&lags, 99.0),
                max: us(lags.max()),
            }),
            unfinished: loads().map(|load| load.unfinished).sum(),
            interval_s: course.interval_s,
            series_of: all
                .iter()
                .position(|one| std::ptr::eq(one, middle_one))
                .unwrap_or_default(),
            series: course.series,
        })
    }

    /// Figures that are exact, as those of a model are.
    pub(super) fn exact(&mut self) {
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

/// Which histograms of a worker.
type Which<'w> = &'w dyn Fn(&LoadMeasure) -> Vec<&Histogram>;

impl Of<'_> {
    fn rate(&self, of: &dyn Fn(&Repetition) -> Option<f64>) -> (f64, Option<Interval>) {
        let rates: Vec<f64> = self.chosen.iter().filter_map(|one| of(one)).collect();
        (median(&rates).unwrap_or(0.0), self.interval(&rates))
    }

    fn interval(&self, figures: &[f64]) -> Option<Interval> {
        match self.statistic {
            Statistic::Median => median_interval(figures),
            Statistic::Minimum => None,
        }
    }

    /// `None` of one that did not occur.
    fn operation(&self, number: usize) -> Option<OperationSummary> {
        fn nth(load: &LoadMeasure, number: usize) -> &OperationMeasure {
            load.operations()[number].1
        }
        let loads = || self.kept.iter().flat_map(|one| one.loads());
        let (name, _) = loads().next()?.operations()[number];
        if loads().all(|load| nth(load, number).is_empty()) {
            return None;
        }
        let per_s = |of: fn(&OperationMeasure) -> f64| {
            let rate = |one: &Repetition| {
                let amount: f64 = one.loads().map(|load| of(nth(load, number))).sum();
                let spans = one.loads().map(|load| nth(load, number).span);
                let elapsed = spans.max().filter(|span| span.0 > 0);
                let elapsed_s = elapsed.unwrap_or_else(|| one.elapsed()).seconds();
                (elapsed_s > 0.0).then(|| amount / elapsed_s)
            };
            middle(self.chosen, rate).unwrap_or(0.0)
        };
        Some(OperationSummary {
            name,
            iops: per_s(|one| one.count() as f64),
            mb_per_s: per_s(|one| one.bytes as f64 / 1e6),
            response: self.latency(&|load| vec![&nth(load, number).response]),
            submit: self.latency(&|load| vec![&nth(load, number).submit]),
        })
    }

    fn pooled(&self, which: Which) -> Histogram {
        let mut all = Histogram::new();
        self.kept
            .iter()
            .for_each(|one| all.merge(&merged(one, which)));
        all
    }

    /// `None` where there was none.
    fn latency(&self, which: Which) -> Option<Latency> {
        let all = self.pooled(which);
        if all.count() == 0 {
            return None;
        }
        let each: Vec<Histogram> = self.chosen.iter().map(|one| merged(one, which)).collect();
        let (p50_us, p50_interval) = self.percentile(&each, &all, 50.0);
        let (p99_us, p99_interval) = self.percentile(&each, &all, 99.0);
        Some(Latency {
            p50_us,
            p50_interval,
            p99_us,
            p99_interval,
            p99_9_us: told_us(&all, 99.9),
            p99_99_us: told_us(&all, 99.99),
            max_us: us(all.max()),
            mean_us: all.mean_ns() / 1e3,
            count: all.count(),
        })
    }

    /// The median over the repetitions, or where one of them cannot tell, that of all
    /// requests together.
    fn percentile(
        &self,
        each: &[Histogram],
        all: &Histogram,
        percentile: f64,
    ) -> (Option<f64>, Option<Interval>) {
        let told: Option<Vec<f64>> = each.iter().map(|one| told_us(one, percentile)).collect();
        match told {
            Some(told) => (middle_time(&told), self.interval(&told)),
            None => (told_us(all, percentile), None),
        }
    }
}

/// The median of times: of two in the middle their harmonic mean, so that it is the
/// inverse of the median rate, by which comparisons go.
fn middle_time(times: &[f64]) -> Option<f64> {
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

fn merged(repetition: &Repetition, which: Which) -> Histogram {
    let mut all = Histogram::new();
    for histogram in repetition.loads().flat_map(which) {
        all.merge(histogram);
    }
    all
}

/// Of the repetitions, the one in the middle by what they are judged by; `None` of none.
pub fn in_the_middle<'r>(repetitions: &[&'r Repetition]) -> Option<&'r Repetition> {
    let mut sorted = repetitions.to_vec();
    sorted.sort_by(|one, other| judged_s(one).total_cmp(&judged_s(other)));
    let place = sorted.len().checked_sub(1)? / 2;
    sorted.get(place).copied()
}

/// Bytes that count per second, of 10^6.
pub fn mb_per_s(repetition: &Repetition) -> f64 {
    repetition.kb_per_s() * 1024.0 / 1e6
}

/// Microseconds of CPU for each request that counts; `None` of none.
pub fn cpu_us_per_io(repetition: &Repetition) -> Option<f64> {
    let count: u64 = repetition.loads().map(LoadMeasure::count).sum();
    let cpu_us = repetition.total(|worker| worker.cpu.0) as f64 / 1e3;
    (count > 0).then(|| cpu_us / count as f64)
}

/// A course over time.
pub struct Course {
    /// The length of its intervals.
    pub interval_s: f64,
    /// Its intervals in order.
    pub series: Vec<SeriesFigures>,
}

/// The course of a repetition over time: see [`course`].
pub fn series(repetition: &Repetition) -> Vec<SeriesFigures> {
    course(repetition, usize::MAX).series
}

/// The course of a repetition over time, its workers together, in at most so many
/// intervals: those of the worker that has the longest, or so many of them as it takes. A
/// last interval that ended before half of it was over is left out: its rates are of too
/// short a time.
pub fn course(repetition: &Repetition, most: usize) -> Course {
    let timed = || {
        let workers = repetition.workers.iter();
        workers.filter_map(|worker| Some((worker.elapsed, worker.load.as_ref()?)))
    };
    let own = timed().map(|(_, load)| load.interval.0);
    let own = own.max().unwrap_or(0);
    let intervals = |load: &LoadMeasure, of: u64| (of / load.interval.0.max(1)).max(1) as usize;
    let points = timed().map(|(_, load)| load.series.len().div_ceil(intervals(load, own)));
    let together = points.max().unwrap_or(0).div_ceil(most.max(1)).max(1) as u64;
    let interval = Nanoseconds(own.saturating_mul(together));
    let workers: Vec<OfWorker> = timed()
        .filter(|(_, load)| load.interval.0 > 0)
        .map(|(elapsed, load)| OfWorker {
            elapsed,
            commits: load.series.iter().any(|one| one.commits > 0),
            points: load.drawn_together(intervals(load, interval.0)),
        })
        .collect();
    let points = workers.iter().map(|worker| worker.points.len()).max();
    Course {
        interval_s: interval.seconds(),
        series: (0..points.unwrap_or(0))
            .map_while(|number| interval_of(&workers, interval, number))
            .collect(),
    }
}

/// The course of one worker, in intervals that all have.
struct OfWorker<'a> {
    elapsed: Nanoseconds,
    /// Whether transactions count, and not single requests.
    commits: bool,
    points: Cow<'a, [SeriesPoint]>,
}

fn interval_of(
    workers: &[OfWorker],
    interval: Nanoseconds,
    number: usize,
) -> Option<SeriesFigures> {
    let mut responses = Histogram::new();
    let (mut iops, mut mb_per_s) = (0.0, 0.0);
    let mut at = None;
    for OfWorker {
        elapsed,
        commits,
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
        responses.merge(&point.response);
        let seconds = length.seconds();
        let count = match commits {
            true => point.commits,
            false => point.requests(),
        };
        iops += count as f64 / seconds;
        mb_per_s += (point.read_bytes + point.written_bytes) as f64 / 1e6 / seconds;
    }
    Some(SeriesFigures {
        at_s: at?.seconds(),
        iops,
        mb_per_s,
        p99_us: told_us(&responses, 99.0),
    })
}

fn us(ns: Nanoseconds) -> f64 {
    ns.0 as f64 / 1e3
}

/// `None` of no requests as well.
fn told_us(histogram: &Histogram, percentile: f64) -> Option<f64> {
    let told = histogram.count() > 0 && histogram.tells(percentile);
    told.then(|| us(histogram.percentile(percentile)))
}

fn push_new(engines: &mut Vec<Engine>, engine: Engine) {
    if !engines.contains(&engine) {
        engines.push(engine);
    }
}

/// An object with a field for each operation.
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
