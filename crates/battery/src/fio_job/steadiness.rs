//! Steady-state detection of `steadystate`, in the way of fio: the job ends when the samples in a
//! sliding window are steady.

use crate::company::CompletedIos;
use diskperf_fio::JobDefinition;
use diskperf_fio::job::{SteadyLimit, SteadyMetric, SteadyState};
use diskperf_timeline::{Nanoseconds, SteadyWindow};
use std::collections::VecDeque;

/// Latest samples of a clone, and the limit that makes them steady.
#[derive(Clone, Debug)]
pub(super) struct SteadyStateCheck {
    steady_rule: SteadyState,
    /// Criterion and limit as the job file writes them, for messages.
    criterion_text: String,
    window_samples: usize,
    sample_interval: Nanoseconds,
    samples: VecDeque<f64>,
    check_start: Nanoseconds,
    /// End of the current sample, or start of the first one.
    next_sample_due: Nanoseconds,
    /// Start of the current sample, and the I/Os completed by then. `None` until the ramps have
    /// ended.
    sample_start: Option<(Nanoseconds, CompletedIos)>,
    attained_time: Option<Nanoseconds>,
}

impl SteadyStateCheck {
    /// Creates the detector of a job, or returns `None` if the job does not ask for it. Sampling
    /// starts at the end of the job's ramp. If `steadystate` has a ramp of its own, sampling starts
    /// one second after that ramp, as in fio.
    pub(super) fn from_job(job: &JobDefinition, start: Nanoseconds) -> Option<Self> {
        let rule = job.steady;
        if !rule.is_enabled {
            return None;
        }
        let interval = Nanoseconds(rule.interval_us.saturating_mul(1000));
        let own_ramp_us = match rule.ramp_us {
            0 => 0,
            ramp_us => ramp_us.saturating_add(1_000_000),
        };
        let ramp_us = job.durations.ramp_us.max(own_ramp_us);
        let begin = start + Nanoseconds(ramp_us.saturating_mul(1000));
        Some(Self {
            steady_rule: rule,
            criterion_text: format!("{}:{}", criterion_name(&rule), limit_text(&rule)),
            window_samples: (rule.window_us / rule.interval_us) as usize,
            sample_interval: interval,
            samples: VecDeque::new(),
            check_start: start,
            next_sample_due: match ramp_us {
                0 => start + interval,
                _ => begin,
            },
            sample_start: (ramp_us == 0).then(|| (start, CompletedIos::default())),
            attained_time: None,
        })
    }

    pub(super) fn next_sample_due(&self) -> Nanoseconds {
        self.next_sample_due
    }

    /// Skips a sample, because another clone checks the steady state of the group.
    pub(super) fn skip_sample(&mut self, now: Nanoseconds) {
        if now >= self.next_sample_due {
            self.next_sample_due = now + self.sample_interval;
        }
    }

    /// Takes a sample if one is due, and returns whether the job is steady.
    pub(super) fn take_sample(&mut self, now: Nanoseconds, done: CompletedIos) -> bool {
        if now < self.next_sample_due {
            return self.attained_time.is_some();
        }
        self.next_sample_due = now + self.sample_interval;
        let Some((since, before)) = self.sample_start.replace((now, done)) else {
            return false;
        };
        let seconds = now.since(since).seconds();
        let ios = done.io_count - before.io_count;
        let sample = match self.steady_rule.metric {
            SteadyMetric::Iops => ios as f64 / seconds,
            SteadyMetric::Bandwidth => (done.bytes - before.bytes) as f64 / seconds,
            SteadyMetric::Latency => {
                (done.response_ns_total - before.response_ns_total) as f64 / ios.max(1) as f64
            }
        };
        self.samples.push_back(sample);
        if self.samples.len() > self.window_samples {
            self.samples.pop_front();
        }
        if self.samples.len() == self.window_samples
            && self.distance_from_steady() < self.distance_max()
        {
            self.attained_time = Some(now.since(self.check_start));
        }
        self.attained_time.is_some()
    }

    /// Returns the distance of the samples from a steady state: their largest deviation from the
    /// mean, or their slope, in the unit of the limit.
    fn distance_from_steady(&mut self) -> f64 {
        if self.window_samples == 1 {
            // One sample is its own mean, and fio takes it for steady.
            return 0.0;
        }
        let Some(window) = SteadyWindow::from_values(self.samples.make_contiguous()) else {
            return f64::INFINITY;
        };
        let distance = match self.steady_rule.uses_slope {
            true => window.slope_per_round.abs(),
            false => window.mean_deviation,
        };
        match self.steady_rule.limit {
            SteadyLimit::Percent(_) if window.mean_value > 0.0 => {
                100.0 * distance / window.mean_value
            }
            SteadyLimit::Percent(_) => f64::INFINITY,
            SteadyLimit::Absolute(_) => distance,
        }
    }

    fn distance_max(&self) -> f64 {
        match self.steady_rule.limit {
            SteadyLimit::Percent(most) | SteadyLimit::Absolute(most) => most,
        }
    }

    pub(super) fn describe_outcome(&mut self) -> String {
        let (asked, window) = (self.criterion_text.clone(), self.window_samples);
        let unit = match self.steady_rule.limit {
            SteadyLimit::Percent(_) => " %",
            SteadyLimit::Absolute(_) => "",
        };
        let what = match self.steady_rule.uses_slope {
            true => "the slope per sample is",
            false => "their largest deviation from the mean is",
        };
        if let Some(after) = self.attained_time {
            let distance = self.distance_from_steady();
            return format!(
                "steadystate={asked} was attained after {:.1} s: for the last {window} samples, \
                 {what} {distance:.3}{unit}",
                after.seconds()
            );
        }
        match self.samples.len() < window {
            true => format!(
                "steadystate={asked} was not attained: the job ended after {} of the {window} samples that it needs",
                self.samples.len()
            ),
            false => format!(
                "steadystate={asked} was not attained: for the last {window} samples, {what} \
                 {:.3}{unit}",
                self.distance_from_steady()
            ),
        }
    }
}

fn criterion_name(rule: &SteadyState) -> &'static str {
    match (rule.metric, rule.uses_slope) {
        (SteadyMetric::Iops, false) => "iops",
        (SteadyMetric::Iops, true) => "iops_slope",
        (SteadyMetric::Bandwidth, false) => "bw",
        (SteadyMetric::Bandwidth, true) => "bw_slope",
        (SteadyMetric::Latency, false) => "lat",
        (SteadyMetric::Latency, true) => "lat_slope",
    }
}

fn limit_text(rule: &SteadyState) -> String {
    match rule.limit {
        SteadyLimit::Percent(most) => format!("{most}%"),
        SteadyLimit::Absolute(most) => most.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_fio::{JobEnvironment, JobFile};

    fn steadiness(options: &str) -> SteadyStateCheck {
        let text = format!("[job]\nsize=1m\n{}\n", options.replace(' ', "\n"));
        let parsed = JobFile::parse("job.fio", &text, &JobEnvironment::default());
        let parsed = parsed.unwrap_or_else(|errors| panic!("{errors}"));
        SteadyStateCheck::from_job(&parsed.jobs[0], Nanoseconds::ZERO).expect("it is asked for")
    }

    /// After how many seconds a job is steady that does so many I/Os in each.
    fn attained_after(options: &str, rates: &[u64]) -> Option<usize> {
        let mut steady = steadiness(options);
        let mut done = CompletedIos::default();
        let seconds = rates.iter().enumerate();
        let mut found = seconds.map(|(second, rate)| {
            done.io_count += rate;
            done.bytes += 4096 * rate;
            done.response_ns_total += 1_000_000_000;
            steady.take_sample(Nanoseconds::from_millis(1000 * (second as u64 + 1)), done)
        });
        found.position(|steady| steady).map(|second| second + 1)
    }

    #[test]
    fn the_largest_distance_from_the_mean_counts_or_the_slope_of_a_sample() {
        let rising = [100, 103, 106, 109, 112];
        // The mean is 106: the ends are 5.7 % off, the slope is 2.8 % a sample.
        for (limit, after) in [
            ("iops:6%", Some(5)),
            ("iops:5%", None),
            ("iops_slope:3%", Some(5)),
            ("iops_slope:2.8%", None),
            ("iops:7", Some(5)),
            ("iops:5", None),
            ("bw:28k", Some(5)),
            ("bw:24k", None),
            ("bw_slope:13k", Some(5)),
            ("bw_slope:12k", None),
            ("lat:6%", Some(5)),
            ("lat:600", Some(5)),
            ("lat:600us", Some(5)),
            ("lat:500us", None),
        ] {
            let options = format!("steadystate={limit} ss_dur=5");
            assert_eq!(attained_after(&options, &rising), after, "{limit}");
        }
    }

    #[test]
    fn the_window_slides_and_a_ramp_is_in_no_sample() {
        let bloom = [900, 500, 100, 101, 99, 100, 100];
        assert_eq!(attained_after("ss=iops:2% ss_dur=3", &bloom), Some(5));
        // From a second after the ramp: the samples are those of the seconds 4 to 6.
        assert_eq!(
            attained_after("ss=iops:2% ss_dur=3 ss_ramp=2", &bloom),
            Some(6)
        );
        assert_eq!(attained_after("ss=iops:2% ss_dur=10", &bloom), None);
        assert_eq!(attained_after("ss=iops:2% ss_dur=3", &[0; 9]), None);
    }

    #[test]
    fn the_outcome_names_the_limit() {
        let mut steady = steadiness("ss=iops_slope:3% ss_dur=2");
        assert!(steady.describe_outcome().contains("0 of the 2 samples"));
        let second = Nanoseconds::from_millis(1000);
        let done = |ios| CompletedIos {
            io_count: ios,
            ..CompletedIos::default()
        };
        assert!(!steady.take_sample(second, done(100)));
        assert!(!steady.take_sample(second + second, done(250)));
        assert!(steady.describe_outcome().contains("not attained"));
        assert!(steady.take_sample(second + second + second, done(400)));
        let outcome = steady.describe_outcome();
        assert!(
            outcome.contains("iops_slope:3% was attained after 3.0 s"),
            "{outcome}"
        );
    }
}
