//! Estimated duration of a job that ends with its amount of I/O.

use diskperf_fio::{Direction, JobDefinition};

/// Rate for an estimate on storage of unknown speed: a fast drive with one I/O in flight.
const IOS_PER_S_ESTIMATE: f64 = 10_000.0;

const LONG_RUN_S: f64 = 60.0;

/// Maximum duration of a job that users wait for, in seconds.
const PRACTICAL_S_MAX: f64 = 7.0 * 86_400.0;

/// Describes the time that a clone needs for its I/Os, for the plan. The text is empty if a runtime
/// ends the job or if the time is short.
pub(super) fn describe_estimate(job: &JobDefinition, ios: u64) -> String {
    if job.durations.runtime_us > 0 {
        return String::new();
    }
    let paced_s = paced_duration_s(job, ios as f64);
    let stored_s = ios as f64 / IOS_PER_S_ESTIMATE;
    let seconds = paced_s.max(stored_s);
    if seconds < LONG_RUN_S {
        return String::new();
    }
    let long = format_duration(seconds);
    let by = match paced_s >= stored_s {
        true => format!("{long} by its rate and its pauses"),
        false => format!("about {long} at {IOS_PER_S_ESTIMATE} I/Os/s"),
    };
    match seconds > PRACTICAL_S_MAX {
        true => format!(", {by}: it has no practical end; give a `runtime`"),
        false => format!(", {by}"),
    }
}

/// Minimum time that the job's rate and its pauses take, in seconds.
fn paced_duration_s(job: &JobDefinition, ios: f64) -> f64 {
    let slowest = |&direction: &Direction| {
        let bytes = job.blocks.choice(direction).bounds_bytes().0 as f64;
        let by_bytes = job
            .rate
            .bytes_per_s
            .get(direction)
            .map(|rate| bytes / rate as f64);
        let by_ios = job
            .rate
            .iops
            .get(direction)
            .map(|rate| 1.0 / f64::from(rate));
        by_bytes.or(by_ios).unwrap_or(0.0)
    };
    let directions = job.pattern.access.directions();
    // Of a mix, each direction has a rate of its own.
    let of_rate = directions.iter().map(slowest).fold(0.0, f64::max) / directions.len() as f64;
    let pauses = f64::from(job.think.pause_us) / 1e6 / f64::from(job.think.ios_between.max(1));
    let paced_s = ios * of_rate.max(pauses);
    if paced_s.is_finite() { paced_s } else { 0.0 }
}

fn format_duration(seconds: f64) -> String {
    const DURATION_UNITS: [(f64, &str); 4] = [
        (365.25 * 86_400.0, "years"),
        (86_400.0, "days"),
        (3_600.0, "hours"),
        (60.0, "minutes"),
    ];
    let unit = DURATION_UNITS
        .into_iter()
        .find(|(length, _)| seconds >= 2.0 * length);
    match unit {
        Some((length, unit)) => format!("{:.0} {unit}", seconds / length),
        None => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use crate::job_file::{from_text, parse_text};
    use diskperf_fio::JobEnvironment;
    use diskperf_fio::plan;
    use std::collections::BTreeMap;

    #[test]
    fn a_plan_says_how_long_a_job_takes_that_has_no_runtime() {
        for (options, expected) in [
            ("", ""),
            ("loops=4294967295 runtime=1", ""),
            (
                "loops=4294967295",
                "years at 10000 I/Os/s: it has no practical end; give a `runtime`",
            ),
            ("loops=10000", ", about 4 minutes at 10000 I/Os/s"),
            ("rate_iops=1", ", 4 minutes by its rate and its pauses"),
            ("rate=8k loops=100", ", 4 hours by its rate and its pauses"),
            (
                "thinktime=1h",
                ", 11 days by its rate and its pauses: it has no practical end; give a `runtime`",
            ),
            (
                "thinktime=2s thinktime_blocks=2",
                ", 4 minutes by its rate and its pauses",
            ),
        ] {
            let text = format!("[x]\nrw=read\nsize=1m\n{}\n", options.replace(' ', "\n"));
            let file =
                parse_text(&from_text("x.fio", &text, &[], &JobEnvironment::default()).unwrap())
                    .unwrap();
            let job = &file.jobs[0];
            let files = plan::plan_files(job, 0, &BTreeMap::new()).unwrap();
            let ios = plan::predict_ios(job, &files).map_or(0, |ios| ios.total());
            let estimate = super::describe_estimate(job, ios);
            match expected {
                "" => assert_eq!(estimate, "", "{options}"),
                expected => assert!(estimate.ends_with(expected), "{options}: {estimate}"),
            }
        }
    }
}
