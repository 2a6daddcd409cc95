//! Measures of one repetition of a program: the times and counts of each worker, and the state of
//! caches and devices.

use crate::histogram::Histogram;
use crate::interference::Interference;
use crate::ledger::Ledger;
use crate::load::LoadMeasure;
use crate::verified::Verified;
use crate::{FlashTraffic, Nanoseconds, units::KIB};
use serde::{Deserialize, Serialize};

/// Measure that one worker recorded of itself in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerMeasure {
    /// Drive that the worker ran on, counted from 0.
    pub drive: u32,
    /// Time from the start of the repetition to the worker's first timed call.
    pub started: Nanoseconds,
    /// Time from the first timed call of the worker to the return of the last one.
    pub elapsed: Nanoseconds,
    /// Time from the first timed call to the return of fsync for all written data. Absent if the
    /// worker wrote nothing.
    pub durable: Option<Nanoseconds>,
    /// CPU time of the worker in user mode and in the kernel, at the resolution of the kernel's
    /// scheduler.
    pub cpu: Nanoseconds,
    /// CPU time in user mode as the kernel estimates it, by ticks of a few milliseconds. A short
    /// repetition may show none.
    pub user: Nanoseconds,
    /// CPU time in the kernel. The sum of `user` and `system` may differ from `cpu`, because they
    /// come from different clocks.
    pub system: Nanoseconds,
    /// Time that the worker was ready to run while another task had the CPU. Absent if the kernel
    /// does not report it.
    #[serde(default)]
    pub cpu_wait: Option<Nanoseconds>,
    /// Bytes that count for KB/s. A copy counts its bytes once; a mix counts reads and writes.
    pub payload_bytes: u64,
    /// Bytes that the worker's read calls returned.
    pub read_bytes: u64,
    /// Bytes that the worker's write calls accepted.
    pub written_bytes: u64,
    /// Number of read and write calls.
    pub calls: u64,
    /// Number of files created and of syncs. A file system may write blocks of its own for each of
    /// them.
    #[serde(default)]
    pub metadata_calls: u64,
    /// Context switches because the worker waited.
    pub voluntary_switches: u64,
    /// Context switches because another task ran (preemptions).
    pub involuntary_switches: u64,
    /// Page faults of the worker that memory served.
    pub minor_faults: u64,
    /// Page faults of the worker that needed storage.
    pub major_faults: u64,
    /// Bytes that storage delivered for this worker, as the kernel accounts them. Absent if the
    /// kernel does not.
    pub storage_read_bytes: Option<u64>,
    /// Latency of each read call; empty if calls were not timed.
    pub read_latency: Histogram,
    /// Latency of each write call; empty if calls were not timed.
    pub write_latency: Histogram,
    /// Elapsed time of the worker by stage. Empty on real storage, which does not report stages.
    #[serde(default)]
    pub ledger: Ledger,
    /// Measure of the worker's requests by operation, for a worker with several requests in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadMeasure>,
    /// Error that ended the worker while the others continued. The measure covers the time before
    /// the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<WorkerFailure>,
    /// Counts of blocks read back and compared, for a worker with one call at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// Error that ended one worker while others continued.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFailure {
    /// Linux errno of the error; 0 if the error is not one of the system.
    pub errno: u32,
    /// Error message, with a remedy if one is known.
    pub message: String,
}

impl WorkerMeasure {
    /// Adds counts of blocks that were read back and compared.
    pub fn count_verified(&mut self, verified: Verified) {
        let all = match &mut self.load {
            Some(load) => &mut load.verified,
            None => &mut self.verified,
        };
        match all {
            Some(all) => all.merge(&verified),
            None => *all = Some(verified),
        }
    }

    /// Returns the counts of blocks read back and compared; `None` if the worker verifies nothing.
    pub fn all_verified(&self) -> Option<&Verified> {
        let of_load = self.load.as_ref().and_then(|load| load.verified.as_ref());
        of_load.or(self.verified.as_ref())
    }

    /// Returns the time from the start of the repetition to the return of the worker's last timed
    /// call.
    fn end_time(&self) -> Nanoseconds {
        self.started + self.elapsed
    }

    /// Returns the time from the start of the repetition to the return of the worker's last fsync.
    fn durable_end(&self) -> Nanoseconds {
        self.started + self.durable.unwrap_or(self.elapsed)
    }
}

/// Page-cache residency of the files that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// Total bytes of the files that the program reads.
    pub file_bytes: u64,
    /// Bytes of these files in the page cache right before the timed part.
    pub before_bytes: u64,
    /// Bytes of these files in the page cache right after the timed part.
    pub after_bytes: u64,
}

/// Traffic on a block device during the timed part, from the device's own counters. It covers the
/// whole machine, not only the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// Name of the device in sysfs, such as `vda`.
    pub device: String,
    /// Bytes read from the device during the timed part.
    pub read_bytes: u64,
    /// Bytes written to the device during the timed part.
    pub written_bytes: u64,
    /// Milliseconds during which the device had at least one request in flight.
    pub busy_ms: u64,
    /// Counts and times of the device's requests. Runs of early versions have none.
    #[serde(default)]
    pub requests: DeviceRequests,
}

/// Counts and times of a block device's requests, from its kernel counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequests {
    /// Number of reads that the device completed.
    pub reads: u64,
    /// Number of reads that were merged into other requests.
    pub read_merges: u64,
    /// Response time of all reads, summed, in milliseconds.
    pub read_ms: u64,
    /// Number of writes that the device completed.
    pub writes: u64,
    /// Number of writes that were merged into other requests.
    pub write_merges: u64,
    /// Response time of all writes, summed, in milliseconds.
    pub write_ms: u64,
    /// Response time of all requests, summed, in milliseconds.
    pub queue_ms: u64,
}

/// Cache statistics of a modelled controller for one class of accesses, over a repetition including
/// the time before its timed part. They cover all accesses of the machine, not only the program's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerCache {
    /// Number of the controller, counted from 1.
    pub controller: u32,
    /// Class of accesses: `raw`, `file` or `file_part`.
    pub class: String,
    /// Number of read commands to the controller in the class.
    pub reads: u64,
    /// Read commands for which the actuator began no work: all sectors were in the cache or were
    /// passing under the heads.
    pub hits: u64,
    /// Sectors that the read commands requested.
    pub sectors: u64,
    /// Requested sectors that were in the cache when their command was decoded.
    pub sectors_held: u64,
}

impl ControllerCache {
    /// Returns the cache hits as a percentage of the read commands.
    pub fn hit_percent(&self) -> f64 {
        percent_of(self.hits, self.reads)
    }

    /// Returns the sectors found in the cache as a percentage of the sectors read.
    pub fn held_percent(&self) -> f64 {
        percent_of(self.sectors_held, self.sectors)
    }

    /// Sums cache statistics with the same controller and class.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for one in all {
            let same =
                |sum: &&mut Self| (sum.controller, &sum.class) == (one.controller, &one.class);
            match sums.iter_mut().find(same) {
                None => sums.push(one.clone()),
                Some(sum) => {
                    sum.reads += one.reads;
                    sum.hits += one.hits;
                    sum.sectors += one.sectors;
                    sum.sectors_held += one.sectors_held;
                }
            }
        }
        sums
    }
}

fn percent_of(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => 100.0 * part as f64 / whole as f64,
    }
}

/// Media-cache statistics of a modelled disk with shingled tracks, over a repetition including the
/// time before its timed part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaCache {
    /// Number of the drive, counted from 1.
    pub drive: u32,
    /// Bytes of the media cache in use at the end, counted from its oldest extent.
    pub used_bytes: u64,
    /// Capacity of the media cache in bytes.
    pub room_bytes: u64,
    /// Number of extents in the map of the media cache.
    pub extents: u64,
    /// Maximum number of extents that the map holds.
    pub most_extents: u64,
    /// Bytes written to the media cache.
    pub cached_bytes: u64,
    /// Bytes written directly to their bands, past the media cache.
    pub streamed_bytes: u64,
    /// Bytes that cleaning wrote to bands.
    pub cleaned_bytes: u64,
    /// Host bytes that arrived while the media cache or its map was full, so that writes waited for
    /// bands to be cleaned. 0 in runs of versions that did not count them.
    #[serde(default)]
    pub past_cache_bytes: u64,
    /// Number of bands that cleaning rewrote.
    pub bands_cleaned: u64,
    /// Time that the actuator spent on cleaning.
    pub cleaning: Nanoseconds,
}

impl MediaCache {
    /// Returns the bytes written per byte from the host (write amplification); `None` if the host
    /// wrote nothing.
    pub fn write_amplification(&self) -> Option<f64> {
        let host = self.cached_bytes + self.streamed_bytes;
        (host > 0).then(|| (host + self.cleaned_bytes) as f64 / host as f64)
    }

    /// Sums media-cache statistics by drive. The fill level is that of the last statistics of the
    /// drive.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for one in all {
            let same = |sum: &&mut Self| sum.drive == one.drive;
            match sums.iter_mut().find(same) {
                None => sums.push(one.clone()),
                Some(sum) => {
                    *sum = Self {
                        cached_bytes: sum.cached_bytes + one.cached_bytes,
                        streamed_bytes: sum.streamed_bytes + one.streamed_bytes,
                        cleaned_bytes: sum.cleaned_bytes + one.cleaned_bytes,
                        past_cache_bytes: sum.past_cache_bytes + one.past_cache_bytes,
                        bands_cleaned: sum.bands_cleaned + one.bands_cleaned,
                        cleaning: sum.cleaning + one.cleaning,
                        ..one.clone()
                    };
                }
            }
        }
        sums
    }
}

/// Position of a repetition within an A/B measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Index of the block, counted from 0. Each block has one repetition of either arm.
    pub number: u32,
    /// Whether this repetition ran after that of the other arm.
    pub second: bool,
    /// Whether the repetition ran after every verdict of its program. Such repetitions measure the
    /// size of a difference without the bias of the stopping rule. Early versions ran none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_verdict: bool,
}

/// One repetition of a program: the measures of its workers, devices and caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Whether the repetition is excluded from the figures. The protocol discards the first ones;
    /// disturbed repetitions are discarded and run again.
    pub discarded: bool,
    /// Measure of each worker; at least one.
    pub workers: Vec<WorkerMeasure>,
    /// Page-cache residency of the files that were read. Absent if no file was read, or if the
    /// system cannot report it.
    pub residency: Option<Residency>,
    /// Traffic of the block devices underneath the target.
    pub devices: Vec<DeviceTraffic>,
    /// Cache statistics of the controllers by controller and class; empty except on modelled
    /// systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controller_caches: Vec<ControllerCache>,
    /// Media-cache statistics of the drives with shingled tracks; empty except on modelled systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media_caches: Vec<MediaCache>,
    /// Data that the flash drives programmed, by cause; empty except on modelled systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flash: Vec<FlashTraffic>,
    /// Position of the repetition in an A/B measurement. Absent for other runs and for discarded
    /// repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
    /// Interference from the rest of the machine during the timed part; empty on modelled systems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<Interference>,
}

impl Repetition {
    /// Reports whether interference affected the repetition.
    pub fn is_disturbed(&self) -> bool {
        !self.interference.is_empty()
    }

    /// Returns the time from the start of the first worker to the end of the last.
    pub fn elapsed(&self) -> Nanoseconds {
        elapsed_span(self.workers.iter(), WorkerMeasure::end_time)
    }

    /// Returns the elapsed time until all written data was synced; `None` if nothing was written.
    pub fn durable(&self) -> Option<Nanoseconds> {
        let any = self.workers.iter().any(|worker| worker.durable.is_some());
        any.then(|| elapsed_span(self.workers.iter(), WorkerMeasure::durable_end))
    }

    /// Returns the rate in KB/s as in 1983, until the last call returned. With several drives it is
    /// the sum of their rates.
    pub fn kb_per_s(&self) -> f64 {
        self.sum_over_drives(|workers| {
            let payload: u64 = workers.iter().map(|worker| worker.payload_bytes).sum();
            kb_per_second(
                payload,
                elapsed_span(workers.iter().copied(), WorkerMeasure::end_time),
            )
        })
    }

    /// Returns the rate in KB/s until all written data was synced; `None` if nothing was written.
    pub fn durable_kb_per_s(&self) -> Option<f64> {
        self.durable()?;
        Some(self.sum_over_drives(|workers| {
            let payload: u64 = workers.iter().map(|worker| worker.payload_bytes).sum();
            kb_per_second(
                payload,
                elapsed_span(workers.iter().copied(), WorkerMeasure::durable_end),
            )
        }))
    }

    /// Returns the request measures of the workers with several requests in flight.
    pub fn loads(&self) -> impl Iterator<Item = &LoadMeasure> + Clone {
        self.workers
            .iter()
            .filter_map(|worker| worker.load.as_ref())
    }

    /// Returns the errors that ended workers while others continued.
    pub fn failures(&self) -> impl Iterator<Item = &WorkerFailure> {
        self.workers
            .iter()
            .filter_map(|worker| worker.failure.as_ref())
    }

    /// Returns the counts of blocks read back and compared, over all workers; `None` if nothing is
    /// verified.
    pub fn verified(&self) -> Option<Verified> {
        Verified::sum(self.workers.iter().filter_map(WorkerMeasure::all_verified))
    }

    /// Reports whether requests arrived by the clock (open loop) and did not wait for one another.
    pub fn is_open_loop(&self) -> bool {
        self.loads().any(|load| load.lag.is_some())
    }

    /// Returns the requests per second until the last one completed, counting the operations of
    /// [`LoadMeasure::counted`]. With several drives it is the sum of their rates. `None` for
    /// workers with one call in flight.
    pub fn iops(&self) -> Option<f64> {
        self.loads().next()?;
        Some(self.sum_over_drives(|workers| {
            let counted = |worker: &&WorkerMeasure| worker.load.as_ref().map(LoadMeasure::count);
            let count: u64 = workers.iter().filter_map(counted).sum();
            let elapsed = elapsed_span(workers.iter().copied(), WorkerMeasure::end_time);
            per_second(count as f64, elapsed)
        }))
    }

    /// Returns the response times of the requests that count, over all workers.
    pub fn responses(&self) -> Histogram {
        let mut all = Histogram::new();
        for operation in self.loads().flat_map(LoadMeasure::counted) {
            all.merge(&operation.response);
        }
        all
    }

    /// Returns the CPU time of the program in percent of elapsed time, as `time` in csh prints it.
    /// With several drives it is the sum.
    pub fn cpu_percent(&self) -> f64 {
        self.sum_over_drives(|workers| {
            let cpu: Nanoseconds = workers.iter().map(|worker| worker.cpu).sum();
            let elapsed = elapsed_span(workers.iter().copied(), WorkerMeasure::end_time);
            if elapsed.0 == 0 {
                0.0
            } else {
                100.0 * cpu.0 as f64 / elapsed.0 as f64
            }
        })
    }

    /// Returns the bytes that count for KB/s, over all workers.
    pub fn payload_bytes(&self) -> u64 {
        self.total(|worker| worker.payload_bytes)
    }

    /// Returns the sum of one count over all workers.
    pub fn total(&self, count: impl Fn(&WorkerMeasure) -> u64) -> u64 {
        self.workers.iter().map(count).sum()
    }

    /// Returns the number of drives that ran the program.
    pub fn drives(&self) -> u32 {
        self.workers
            .iter()
            .map(|worker| worker.drive + 1)
            .max()
            .unwrap_or(0)
    }

    /// Applies `figure` to the workers of each drive and sums the results.
    fn sum_over_drives(&self, figure: impl Fn(&[&WorkerMeasure]) -> f64) -> f64 {
        let mut workers: Vec<&WorkerMeasure> = self.workers.iter().collect();
        workers.sort_by_key(|worker| worker.drive);
        workers
            .chunk_by(|one, other| one.drive == other.drive)
            .map(figure)
            .sum()
    }
}

/// Returns the time from the earliest start of a worker to the latest `end`.
fn elapsed_span<'a>(
    workers: impl Iterator<Item = &'a WorkerMeasure> + Clone,
    end: impl Fn(&WorkerMeasure) -> Nanoseconds,
) -> Nanoseconds {
    let started = workers
        .clone()
        .map(|worker| worker.started)
        .min()
        .unwrap_or_default();
    workers.map(end).max().unwrap_or_default().since(started)
}

/// Returns a rate in KB/s; 0 if no time elapsed.
fn kb_per_second(bytes: u64, elapsed: Nanoseconds) -> f64 {
    per_second(bytes as f64 / KIB as f64, elapsed)
}

fn per_second(amount: f64, elapsed: Nanoseconds) -> f64 {
    if elapsed.0 == 0 {
        0.0
    } else {
        amount / elapsed.seconds()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_add_up_by_controller_and_class() {
        let one = |class: &str, hits| ControllerCache {
            controller: 1,
            class: class.to_owned(),
            reads: 4,
            hits,
            sectors: 64,
            sectors_held: 16,
        };
        let sums = ControllerCache::sum(&[one("raw", 1), one("file", 4), one("raw", 2)]);
        let percents: Vec<_> = sums.iter().map(ControllerCache::hit_percent).collect();
        assert_eq!(percents, [37.5, 100.0]);
        assert_eq!(sums[0].held_percent(), 25.0);
    }

    fn worker(drive: u32, started_ms: u64, elapsed_ms: u64, kib: u64) -> WorkerMeasure {
        WorkerMeasure {
            drive,
            started: Nanoseconds::from_millis(started_ms),
            elapsed: Nanoseconds::from_millis(elapsed_ms),
            cpu: Nanoseconds::from_millis(elapsed_ms / 4),
            payload_bytes: kib * KIB,
            ..WorkerMeasure::default()
        }
    }

    #[test]
    fn two_drives_sum_and_two_readers_share() {
        let two_drives = Repetition {
            workers: vec![worker(0, 0, 1000, 500), worker(1, 0, 2000, 500)],
            ..Default::default()
        };
        assert_eq!(two_drives.kb_per_s(), 750.0);
        assert_eq!(two_drives.cpu_percent(), 50.0);
        let two_readers = Repetition {
            workers: vec![worker(0, 0, 1000, 500), worker(0, 500, 1500, 500)],
            ..Default::default()
        };
        assert_eq!(two_readers.kb_per_s(), 500.0);
        assert_eq!(two_readers.elapsed(), Nanoseconds::from_millis(2000));
        assert_eq!(two_readers.durable(), None);
    }
}
