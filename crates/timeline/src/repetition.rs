//! Measures of one repetition of a program: the times and counts of each worker, and the state of
//! caches and devices.

use crate::histogram::Histogram;
use crate::interference::Interference;
use crate::ledger::Ledger;
use crate::load::LoadMeasure;
use crate::verified::VerifiedBlocks;
use crate::{FlashTraffic, Nanoseconds, units::KIB};
use serde::{Deserialize, Serialize};

/// Measure that one worker recorded of itself in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerMeasure {
    /// Drive that the worker ran on, counted from 0.
    #[serde(rename = "drive")]
    pub drive_index: u32,
    /// Time from the start of the repetition to the worker's first timed call.
    #[serde(rename = "started")]
    pub start_time: Nanoseconds,
    /// Time from the first timed call of the worker to the return of the last one.
    #[serde(rename = "elapsed")]
    pub elapsed_time: Nanoseconds,
    /// Time from the first timed call to the return of fsync for all written data. Absent if the
    /// worker wrote nothing.
    #[serde(rename = "durable")]
    pub durable_time: Option<Nanoseconds>,
    /// CPU time of the worker in user mode and in the kernel, at the resolution of the kernel's
    /// scheduler.
    #[serde(rename = "cpu")]
    pub cpu_time: Nanoseconds,
    /// CPU time in user mode as the kernel estimates it, by ticks of a few milliseconds. A short
    /// repetition may show none.
    #[serde(rename = "user")]
    pub user_cpu_time: Nanoseconds,
    /// CPU time in the kernel. The sum of `user` and `system` may differ from `cpu`, because they
    /// come from different clocks.
    #[serde(rename = "system")]
    pub system_cpu_time: Nanoseconds,
    /// Time that the worker was ready to run while another task had the CPU. Absent if the kernel
    /// does not report it.
    #[serde(default)]
    #[serde(rename = "cpu_wait")]
    pub cpu_wait_time: Option<Nanoseconds>,
    /// Bytes that count for KB/s. A copy counts its bytes once; a mix counts reads and writes.
    pub payload_bytes: u64,
    /// Bytes that the worker's read calls returned.
    pub read_bytes: u64,
    /// Bytes that the worker's write calls accepted.
    pub written_bytes: u64,
    /// Number of read and write calls.
    #[serde(rename = "calls")]
    pub call_count: u64,
    /// Number of files created and of syncs. A file system may write blocks of its own for each of
    /// them.
    #[serde(default)]
    #[serde(rename = "metadata_calls")]
    pub metadata_call_count: u64,
    /// Context switches because the worker waited.
    #[serde(rename = "voluntary_switches")]
    pub voluntary_switch_count: u64,
    /// Context switches because another task ran (preemptions).
    #[serde(rename = "involuntary_switches")]
    pub involuntary_switch_count: u64,
    /// Page faults of the worker that memory served.
    #[serde(rename = "minor_faults")]
    pub minor_fault_count: u64,
    /// Page faults of the worker that needed storage.
    #[serde(rename = "major_faults")]
    pub major_fault_count: u64,
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
    #[serde(rename = "load")]
    pub load_measure: Option<LoadMeasure>,
    /// Error that ended the worker while the others continued. The measure covers the time before
    /// the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "failure")]
    pub worker_failure: Option<WorkerFailure>,
    /// Counts of blocks read back and compared, for a worker with one call at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "verified")]
    pub verified_blocks: Option<VerifiedBlocks>,
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
    pub fn count_verified(&mut self, verified: VerifiedBlocks) {
        let all = match &mut self.load_measure {
            Some(load) => &mut load.verified_blocks,
            None => &mut self.verified_blocks,
        };
        match all {
            Some(all) => all.merge(&verified),
            None => *all = Some(verified),
        }
    }

    /// Returns the counts of blocks read back and compared; `None` if the worker verifies nothing.
    pub fn all_verified(&self) -> Option<&VerifiedBlocks> {
        let of_load = self
            .load_measure
            .as_ref()
            .and_then(|load| load.verified_blocks.as_ref());
        of_load.or(self.verified_blocks.as_ref())
    }

    /// Returns the time from the start of the repetition to the return of the worker's last timed
    /// call.
    fn end_time(&self) -> Nanoseconds {
        self.start_time + self.elapsed_time
    }

    /// Returns the time from the start of the repetition to the return of the worker's last fsync.
    fn durable_end(&self) -> Nanoseconds {
        self.start_time + self.durable_time.unwrap_or(self.elapsed_time)
    }
}

/// Page-cache residency of the files that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// Total bytes of the files that the program reads.
    pub file_bytes: u64,
    /// Bytes of these files in the page cache right before the timed part.
    #[serde(rename = "before_bytes")]
    pub resident_before_bytes: u64,
    /// Bytes of these files in the page cache right after the timed part.
    #[serde(rename = "after_bytes")]
    pub resident_after_bytes: u64,
}

/// Traffic on a block device during the timed part, from the device's own counters. It covers the
/// whole machine, not only the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// Name of the device in sysfs, such as `vda`.
    #[serde(rename = "device")]
    pub device_name: String,
    /// Bytes read from the device during the timed part.
    pub read_bytes: u64,
    /// Bytes written to the device during the timed part.
    pub written_bytes: u64,
    /// Milliseconds during which the device had at least one request in flight.
    pub busy_ms: u64,
    /// Counts and times of the device's requests. Runs of early versions have none.
    #[serde(default)]
    #[serde(rename = "requests")]
    pub request_counters: DeviceRequests,
}

/// Counts and times of a block device's requests, from its kernel counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequests {
    /// Number of reads that the device completed.
    #[serde(rename = "reads")]
    pub read_count: u64,
    /// Number of reads that were merged into other requests.
    #[serde(rename = "read_merges")]
    pub read_merge_count: u64,
    /// Response time of all reads, summed, in milliseconds.
    pub read_ms: u64,
    /// Number of writes that the device completed.
    #[serde(rename = "writes")]
    pub write_count: u64,
    /// Number of writes that were merged into other requests.
    #[serde(rename = "write_merges")]
    pub write_merge_count: u64,
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
    #[serde(rename = "controller")]
    pub controller_index: u32,
    /// Class of accesses: `raw`, `file` or `file_part`.
    #[serde(rename = "class")]
    pub request_class: String,
    /// Number of read commands to the controller in the class.
    #[serde(rename = "reads")]
    pub read_count: u64,
    /// Read commands for which the actuator began no work: all sectors were in the cache or were
    /// passing under the heads.
    #[serde(rename = "hits")]
    pub hit_count: u64,
    /// Sectors that the read commands requested.
    #[serde(rename = "sectors")]
    pub read_sectors: u64,
    /// Requested sectors that were in the cache when their command was decoded.
    #[serde(rename = "sectors_held")]
    pub cached_read_sectors: u64,
}

impl ControllerCache {
    /// Returns the cache hits as a percentage of the read commands.
    pub fn hit_percent(&self) -> f64 {
        percent_of(self.hit_count, self.read_count)
    }

    /// Returns the sectors found in the cache as a percentage of the sectors read.
    pub fn cached_sector_percent(&self) -> f64 {
        percent_of(self.cached_read_sectors, self.read_sectors)
    }

    /// Sums cache statistics with the same controller and class.
    pub fn sum<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for one in all {
            let same = |sum: &&mut Self| {
                (sum.controller_index, &sum.request_class)
                    == (one.controller_index, &one.request_class)
            };
            match sums.iter_mut().find(same) {
                None => sums.push(one.clone()),
                Some(sum) => {
                    sum.read_count += one.read_count;
                    sum.hit_count += one.hit_count;
                    sum.read_sectors += one.read_sectors;
                    sum.cached_read_sectors += one.cached_read_sectors;
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
    #[serde(rename = "drive")]
    pub drive_index: u32,
    /// Bytes of the media cache in use at the end, counted from its oldest extent.
    pub used_bytes: u64,
    /// Capacity of the media cache in bytes.
    #[serde(rename = "room_bytes")]
    pub capacity_bytes: u64,
    /// Number of extents in the map of the media cache.
    #[serde(rename = "extents")]
    pub extent_count: u64,
    /// Maximum number of extents that the map holds.
    #[serde(rename = "most_extents")]
    pub extent_count_max: u64,
    /// Bytes written to the media cache.
    pub cached_bytes: u64,
    /// Bytes written directly to their bands, past the media cache.
    pub streamed_bytes: u64,
    /// Bytes that cleaning wrote to bands.
    pub cleaned_bytes: u64,
    /// Host bytes that arrived while the media cache or its map was full, so that writes waited for
    /// bands to be cleaned. 0 in runs of versions that did not count them.
    #[serde(default)]
    #[serde(rename = "past_cache_bytes")]
    pub direct_write_bytes: u64,
    /// Number of bands that cleaning rewrote.
    #[serde(rename = "bands_cleaned")]
    pub cleaned_band_count: u64,
    /// Time that the actuator spent on cleaning.
    #[serde(rename = "cleaning")]
    pub cleaning_time: Nanoseconds,
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
            let same = |sum: &&mut Self| sum.drive_index == one.drive_index;
            match sums.iter_mut().find(same) {
                None => sums.push(one.clone()),
                Some(sum) => {
                    *sum = Self {
                        cached_bytes: sum.cached_bytes + one.cached_bytes,
                        streamed_bytes: sum.streamed_bytes + one.streamed_bytes,
                        cleaned_bytes: sum.cleaned_bytes + one.cleaned_bytes,
                        direct_write_bytes: sum.direct_write_bytes + one.direct_write_bytes,
                        cleaned_band_count: sum.cleaned_band_count + one.cleaned_band_count,
                        cleaning_time: sum.cleaning_time + one.cleaning_time,
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
pub struct InterleavedBlock {
    /// Index of the block, counted from 0. Each block has one repetition of either arm.
    #[serde(rename = "number")]
    pub block_number: u32,
    /// Whether this repetition ran after that of the other arm.
    #[serde(rename = "second")]
    pub is_second_run: bool,
    /// Whether the repetition ran after every verdict of its program. Such repetitions measure the
    /// size of a difference without the bias of the stopping rule. Early versions ran none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "after_verdict")]
    pub is_after_verdict: bool,
}

/// One repetition of a program: the measures of its workers, devices and caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Whether the repetition is excluded from the figures. The protocol discards the first ones;
    /// disturbed repetitions are discarded and run again.
    #[serde(rename = "discarded")]
    pub is_discarded: bool,
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
    #[serde(rename = "flash")]
    pub flash_traffic: Vec<FlashTraffic>,
    /// Position of the repetition in an A/B measurement. Absent for other runs and for discarded
    /// repetitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "block")]
    pub interleaved_block: Option<InterleavedBlock>,
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
    pub fn elapsed_time(&self) -> Nanoseconds {
        elapsed_span(self.workers.iter(), WorkerMeasure::end_time)
    }

    /// Returns the elapsed time until all written data was synced; `None` if nothing was written.
    pub fn durable_time(&self) -> Option<Nanoseconds> {
        let any = self
            .workers
            .iter()
            .any(|worker| worker.durable_time.is_some());
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
        self.durable_time()?;
        Some(self.sum_over_drives(|workers| {
            let payload: u64 = workers.iter().map(|worker| worker.payload_bytes).sum();
            kb_per_second(
                payload,
                elapsed_span(workers.iter().copied(), WorkerMeasure::durable_end),
            )
        }))
    }

    /// Returns the request measures of the workers with several requests in flight.
    pub fn load_measures(&self) -> impl Iterator<Item = &LoadMeasure> + Clone {
        self.workers
            .iter()
            .filter_map(|worker| worker.load_measure.as_ref())
    }

    /// Returns the errors that ended workers while others continued.
    pub fn worker_failures(&self) -> impl Iterator<Item = &WorkerFailure> {
        self.workers
            .iter()
            .filter_map(|worker| worker.worker_failure.as_ref())
    }

    /// Returns the counts of blocks read back and compared, over all workers; `None` if nothing is
    /// verified.
    pub fn verified_blocks(&self) -> Option<VerifiedBlocks> {
        VerifiedBlocks::sum(self.workers.iter().filter_map(WorkerMeasure::all_verified))
    }

    /// Reports whether requests arrived by the clock (open loop) and did not wait for one another.
    pub fn is_open_loop(&self) -> bool {
        self.load_measures().any(|load| load.arrival_lag.is_some())
    }

    /// Returns the requests per second until the last one completed, counting the operations of
    /// [`LoadMeasure::awaited_operations`]. With several drives it is the sum of their rates. `None` for
    /// workers with one call in flight.
    pub fn iops(&self) -> Option<f64> {
        self.load_measures().next()?;
        Some(self.sum_over_drives(|workers| {
            let counted = |worker: &&WorkerMeasure| {
                worker
                    .load_measure
                    .as_ref()
                    .map(LoadMeasure::awaited_request_count)
            };
            let count: u64 = workers.iter().filter_map(counted).sum();
            let elapsed = elapsed_span(workers.iter().copied(), WorkerMeasure::end_time);
            per_second(count as f64, elapsed)
        }))
    }

    /// Returns the response times of the requests that count, over all workers.
    pub fn response_times(&self) -> Histogram {
        let mut all = Histogram::new();
        for operation in self
            .load_measures()
            .flat_map(LoadMeasure::awaited_operations)
        {
            all.merge(&operation.response_times);
        }
        all
    }

    /// Returns the CPU time of the program in percent of elapsed time, as `time` in csh prints it.
    /// With several drives it is the sum.
    pub fn cpu_percent(&self) -> f64 {
        self.sum_over_drives(|workers| {
            let cpu: Nanoseconds = workers.iter().map(|worker| worker.cpu_time).sum();
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
        self.sum_over_workers(|worker| worker.payload_bytes)
    }

    /// Returns the sum of one count over all workers.
    pub fn sum_over_workers(&self, count: impl Fn(&WorkerMeasure) -> u64) -> u64 {
        self.workers.iter().map(count).sum()
    }

    /// Returns the number of drives that ran the program.
    pub fn drive_count(&self) -> u32 {
        self.workers
            .iter()
            .map(|worker| worker.drive_index + 1)
            .max()
            .unwrap_or(0)
    }

    /// Applies `figure` to the workers of each drive and sums the results.
    fn sum_over_drives(&self, figure: impl Fn(&[&WorkerMeasure]) -> f64) -> f64 {
        let mut workers: Vec<&WorkerMeasure> = self.workers.iter().collect();
        workers.sort_by_key(|worker| worker.drive_index);
        workers
            .chunk_by(|one, other| one.drive_index == other.drive_index)
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
        .map(|worker| worker.start_time)
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
            controller_index: 1,
            request_class: class.to_owned(),
            read_count: 4,
            hit_count: hits,
            read_sectors: 64,
            cached_read_sectors: 16,
        };
        let sums = ControllerCache::sum(&[one("raw", 1), one("file", 4), one("raw", 2)]);
        let percents: Vec<_> = sums.iter().map(ControllerCache::hit_percent).collect();
        assert_eq!(percents, [37.5, 100.0]);
        assert_eq!(sums[0].cached_sector_percent(), 25.0);
    }

    fn worker(drive: u32, started_ms: u64, elapsed_ms: u64, kib: u64) -> WorkerMeasure {
        WorkerMeasure {
            drive_index: drive,
            start_time: Nanoseconds::from_millis(started_ms),
            elapsed_time: Nanoseconds::from_millis(elapsed_ms),
            cpu_time: Nanoseconds::from_millis(elapsed_ms / 4),
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
        assert_eq!(two_readers.elapsed_time(), Nanoseconds::from_millis(2000));
        assert_eq!(two_readers.durable_time(), None);
    }
}
