//! Detection of processors that were busy with other work, stolen or throttled.

use super::{NOTABLE_SHARE_MIN, share_if_notable};
use diskperf_timeline::{Interference, Nanoseconds, WorkerMeasure};
use std::path::PathBuf;
use std::time::Duration;

/// Maximum time from a wake-up until a thread runs on an idle processor. It is longest for a
/// virtual processor, which its hypervisor has to wake.
const WAKE_UP_DELAY_MAX: Nanoseconds = Nanoseconds(50_000);

/// Length of a tick in `/proc/stat`. A difference of one tick may be no time at all.
const STOLEN_TICK_TIME: Nanoseconds = Nanoseconds::from_millis(10);

/// Pause between two counts of runnable threads; longer than a thread takes to end.
const RUNNABLE_COUNT_PAUSE: Duration = Duration::from_micros(100);

/// Files that report throttling and frequency limits of the processors.
#[derive(Debug)]
pub(super) struct LimitFiles {
    processor_count: u64,
    throttle_count_files: Vec<PathBuf>,
    frequency_limit_files: Vec<PathBuf>,
}

/// Counters of all processors, as far as the machine has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessorCounters {
    processor_count: u64,
    stolen_tick_count: Option<u64>,
    /// Threads that run or are ready to, including the reader.
    runnable_thread_count: Option<u64>,
    throttle_count: Option<u64>,
    /// Lowest of the maximum frequencies that the processors may use, in kHz.
    frequency_khz_max: Option<u64>,
}

impl LimitFiles {
    /// Returns the limit files of this machine; none on a virtual machine.
    pub(super) fn find_limit_files() -> Self {
        let mut limits = Self {
            processor_count: 0,
            throttle_count_files: Vec::new(),
            frequency_limit_files: Vec::new(),
        };
        let entries = std::fs::read_dir("/sys/devices/system/cpu");
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            if number.is_none_or(|number| number.parse::<u32>().is_err()) {
                continue;
            }
            limits.processor_count += 1;
            let existing = |file: &str| Some(entry.path().join(file)).filter(|path| path.exists());
            let throttled = existing("thermal_throttle/core_throttle_count");
            limits.throttle_count_files.extend(throttled);
            let frequency = existing("cpufreq/scaling_max_freq");
            limits.frequency_limit_files.extend(frequency);
        }
        limits
    }
}

impl ProcessorCounters {
    pub(super) fn read_counters(limits: &LimitFiles) -> Self {
        let number = |path: &PathBuf| -> Option<u64> {
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            processor_count: limits.processor_count,
            throttle_count: limits.throttle_count_files.iter().map(number).sum(),
            frequency_khz_max: limits.frequency_limit_files.iter().filter_map(number).min(),
            stolen_tick_count: parse_stolen_ticks(&read("/proc/stat")),
            runnable_thread_count: Self::count_runnable(),
        }
    }

    /// Returns the smaller of two counts of runnable threads. In between, threads of this process
    /// and the kernel that are ending get time to end.
    fn count_runnable() -> Option<u64> {
        let look = || parse_runnable(&std::fs::read_to_string("/proc/loadavg").ok()?);
        let first = look()?;
        std::thread::sleep(RUNNABLE_COUNT_PAUSE);
        Some(look()?.min(first))
    }
}

/// Returns the stolen time of all processors: the eighth number of `cpu  3482093 399461 ...`.
fn parse_stolen_ticks(stat: &str) -> Option<u64> {
    let mut words = stat.lines().next()?.split_ascii_whitespace();
    words.nth(8)?.parse().ok()
}

/// Returns the runnable threads of a load average line: the 3 of `0.08 0.03 0.01 3/250 4711`.
fn parse_runnable(load: &str) -> Option<u64> {
    let threads = load.split_ascii_whitespace().nth(3)?;
    threads.split_once('/')?.0.parse().ok()
}

/// Returns the processor contention of the worker that waited longest. Wake-up times and the
/// processor time of the program's other workers are subtracted.
pub(super) fn detect_cpu_wait(workers: &[WorkerMeasure]) -> Option<Interference> {
    let ran: Nanoseconds = workers.iter().map(|worker| worker.cpu_time).sum();
    let found = workers.iter().filter_map(|worker| {
        let wake_ups = Nanoseconds(
            WAKE_UP_DELAY_MAX
                .0
                .saturating_mul(worker.voluntary_switch_count),
        );
        let own = ran.since(worker.cpu_time);
        let waited = worker.cpu_wait_time?.since(wake_ups).since(own);
        let share = share_if_notable(waited, worker.elapsed_time)?;
        Some((share, waited, worker.involuntary_switch_count))
    });
    let (share, waited, preempted) = found.max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    Some(Interference::ProcessorWait {
        waited_us: waited.0 / 1000,
        share,
        preempted,
    })
}

pub(super) fn detect_processor_interference(
    (before, after): (&ProcessorCounters, &ProcessorCounters),
    span: Nanoseconds,
) -> Vec<Interference> {
    let processors = after.processor_count.max(1);
    let mut found = Vec::new();
    // The one that counts is running itself.
    let threads = before
        .runnable_thread_count
        .min(after.runnable_thread_count)
        .unwrap_or(0)
        .saturating_sub(1);
    // Fewer than a fourth of the processors leave enough of them to the program.
    if threads > 0 && threads * 4 >= processors {
        found.push(Interference::ProcessorBusy { threads });
    }
    let moved = |of: fn(&ProcessorCounters) -> Option<u64>| {
        let both = of(after).zip(of(before));
        both.map_or(0, |(after, before)| after.saturating_sub(before))
    };
    let ticks = moved(|counters| counters.stolen_tick_count);
    let stolen = Nanoseconds(STOLEN_TICK_TIME.0.saturating_mul(ticks.saturating_sub(1)));
    let whole = Nanoseconds(span.0.saturating_mul(processors));
    if let Some(share) = share_if_notable(stolen, whole) {
        found.push(Interference::ProcessorStolen {
            stolen_us: stolen.0 / 1000,
            share,
        });
    }
    let times = moved(|counters| counters.throttle_count);
    if times > 0 {
        found.push(Interference::ProcessorThrottled { times });
    }
    if let (Some(was_khz), Some(is_khz)) = (before.frequency_khz_max, after.frequency_khz_max)
        && was_khz.abs_diff(is_khz) as f64 >= NOTABLE_SHARE_MIN * was_khz as f64
    {
        found.push(Interference::FrequencyLimit { was_khz, is_khz });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let stat = "cpu  3482093 399461 613987 557403 70906 0 12807 13605 0 0\ncpu0 1 2 3\n";
        assert_eq!(parse_stolen_ticks(stat), Some(13_605));
        assert_eq!(parse_stolen_ticks("cpu 1 2\n"), None);
        assert_eq!(parse_runnable("8.21 7.32 5.08 9/250 4711\n"), Some(9));
        assert_eq!(parse_runnable(""), None);
    }

    /// A worker by milliseconds elapsed, run and waited, and how often it woke up.
    fn worker(elapsed: u64, cpu: u64, waited: u64, wake_ups: u64) -> WorkerMeasure {
        WorkerMeasure {
            elapsed_time: Nanoseconds::from_millis(elapsed),
            cpu_time: Nanoseconds::from_millis(cpu),
            cpu_wait_time: Some(Nanoseconds::from_millis(waited)),
            voluntary_switch_count: wake_ups,
            ..WorkerMeasure::default()
        }
    }

    #[test]
    fn waiting_that_the_program_explains_is_not_named() {
        for (workers, percent) in [
            // Measured: a cold read alone, and beside compilers.
            (vec![worker(44, 9, 0, 7)], None),
            (vec![worker(102, 9, 74, 7)], Some(72)),
            // Small requests: each waits for its processor to wake up.
            (vec![worker(480, 120, 140, 4094)], None),
            (vec![worker(480, 40, 340, 2000)], Some(50)),
            // Three workers on one processor.
            (vec![worker(300, 100, 200, 0); 3], None),
            (vec![worker(2, 1, 0, 0)], None),
        ] {
            let found = detect_cpu_wait(&workers).and_then(|found| found.disturbed_share());
            let named = found.map(|share| (share * 100.0) as u64);
            assert_eq!(named, percent, "{workers:?}");
        }
        let unknown = WorkerMeasure::default();
        assert_eq!(detect_cpu_wait(&[unknown]), None);
    }

    #[test]
    fn what_others_have_is_named() {
        let quiet = ProcessorCounters {
            processor_count: 2,
            runnable_thread_count: Some(1),
            stolen_tick_count: Some(100),
            throttle_count: Some(5),
            frequency_khz_max: Some(3_000_000),
        };
        let change = |runnable, stolen_ticks, throttled, frequency_khz_max| ProcessorCounters {
            processor_count: 2,
            runnable_thread_count: Some(runnable),
            stolen_tick_count: Some(stolen_ticks),
            throttle_count: Some(throttled),
            frequency_khz_max,
        };
        let hogged = ProcessorCounters {
            runnable_thread_count: Some(5),
            ..quiet
        };
        let span = Nanoseconds::from_millis(100);
        for (before, after, kinds) in [
            (quiet, quiet, &[][..]),
            // What could not be read is nothing that moved.
            (ProcessorCounters::default(), quiet, &[]),
            (hogged, ProcessorCounters::default(), &[]),
            // A thread that was seen once only was on its way somewhere.
            (quiet, change(2, 101, 5, Some(3_000_000)), &[]),
            (
                hogged,
                change(2, 100, 5, Some(2_900_000)),
                &["processor_busy"],
            ),
            (quiet, change(1, 104, 5, None), &["processor_stolen"]),
            (
                quiet,
                change(1, 100, 7, Some(3_000_000)),
                &["processor_throttled"],
            ),
            (
                quiet,
                change(1, 100, 5, Some(800_000)),
                &["frequency_limit"],
            ),
        ] {
            let found = detect_processor_interference((&before, &after), span);
            let named: Vec<&str> = found.iter().map(Interference::kind_name).collect();
            assert_eq!(named, kinds, "{after:?}");
        }
    }
}
