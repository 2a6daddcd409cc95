//! One repetition of one program: what each worker took, and where its bytes
//! came from.

use crate::histogram::Histogram;
use crate::interference::Interference;
use crate::ledger::Ledger;
use crate::load::LoadMeasure;
use crate::verified::Verified;
use crate::{FlashTraffic, Nanoseconds, units::KIB};
use serde::{Deserialize, Serialize};

/// What one worker measured of itself in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerMeasure {
    /// The drive that the worker ran on, counted from 0.
    pub drive: u32,
    /// When the first timed call was issued, since the repetition's start.
    pub started: Nanoseconds,
    /// From the first timed call until the last one returned.
    pub elapsed: Nanoseconds,
    /// Until fsync of all written data returned as well. Absent if nothing was
    /// written.
    pub durable: Option<Nanoseconds>,
    /// CPU time of the worker, in user mode and in the kernel, to the
    /// resolution of the kernel's scheduler.
    pub cpu: Nanoseconds,
    /// Of that, in user mode, as the kernel splits it: by ticks of a few
    /// milliseconds, so that a short repetition may show none.
    pub user: Nanoseconds,
    /// Of that, in the kernel; with `user` it need not make up `cpu`, since the
    /// two are read off different clocks.
    pub system: Nanoseconds,
    /// Time that it was ready to run while something else had the CPU; absent
    /// where the kernel does not say.
    #[serde(default)]
    pub cpu_wait: Option<Nanoseconds>,
    /// The bytes that count for KB/s: a copy's once, a mix's both ways.
    pub payload_bytes: u64,
    /// Bytes that read calls returned.
    pub read_bytes: u64,
    /// Bytes that write calls took.
    pub written_bytes: u64,
    /// Read and write calls.
    pub calls: u64,
    /// Files opened to be made, and syncs: with each, a file system may write blocks
    /// of its own.
    #[serde(default)]
    pub metadata_calls: u64,
    /// Context switches because the worker waited.
    pub voluntary_switches: u64,
    /// Context switches because something else ran.
    pub involuntary_switches: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults that needed storage.
    pub major_faults: u64,
    /// Bytes that storage delivered on behalf of this worker, as its kernel
    /// accounts them; absent where it does not.
    pub storage_read_bytes: Option<u64>,
    /// Latency of each read call; empty where calls were not timed.
    pub read_latency: Histogram,
    /// Latency of each write call.
    pub write_latency: Histogram,
    /// What the elapsed time went to; empty on real storage, which does not
    /// say.
    #[serde(default)]
    pub ledger: Ledger,
    /// Of a worker with several requests under way: what these took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadMeasure>,
    /// Error that ended the worker while the others went on. Its measure is of the time
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<WorkerFailure>,
    /// Blocks of a worker with one call at a time that were read back and compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
}

/// Error that ended one worker of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerFailure {
    /// Number that Linux gives the error; 0 of an error that is none of the system.
    pub errno: u32,
    /// The error in words, with its remedy where one is known.
    pub message: String,
}

impl WorkerMeasure {
    /// Adds blocks that were read back and compared.
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

    /// Blocks that were read back and compared; `None` where nothing is verified.
    pub fn all_verified(&self) -> Option<&Verified> {
        let of_load = self.load.as_ref().and_then(|load| load.verified.as_ref());
        of_load.or(self.verified.as_ref())
    }

    /// When the last timed call returned, since the repetition's start.
    fn ended(&self) -> Nanoseconds {
        self.started + self.elapsed
    }

    /// When the last fsync returned, since the repetition's start.
    fn durable_end(&self) -> Nanoseconds {
        self.started + self.durable.unwrap_or(self.elapsed)
    }
}

/// How much of the files that a program reads was in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residency {
    /// Bytes of the files that the program was going to read.
    pub file_bytes: u64,
    /// Of these, in the page cache right before the timed part.
    pub before_bytes: u64,
    /// In the page cache right after it.
    pub after_bytes: u64,
}

/// What a block device's own counters moved by during the timed part: all of
/// the machine's traffic on it, not the program's alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTraffic {
    /// The device's name in sysfs, as `vda`.
    pub device: String,
    /// Bytes read from it.
    pub read_bytes: u64,
    /// Bytes written to it.
    pub written_bytes: u64,
    /// Milliseconds that it had at least one request in flight.
    pub busy_ms: u64,
    /// Its requests. Absent from what was stored before they were kept.
    #[serde(default)]
    pub requests: DeviceRequests,
}

/// What a block device's counters say of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRequests {
    /// Reads that completed.
    pub reads: u64,
    /// Reads that became part of others.
    pub read_merges: u64,
    /// Milliseconds that reads took, all of them together.
    pub read_ms: u64,
    /// Writes that completed.
    pub writes: u64,
    /// Writes that became part of others.
    pub write_merges: u64,
    /// Milliseconds that writes took, all of them together.
    pub write_ms: u64,
    /// Milliseconds that all requests took, all of them together.
    pub queue_ms: u64,
}

/// What the cache of a modelled controller did for one class of accesses during
/// a repetition, what comes before its timed part included: for all of the
/// machine's accesses, not the program's alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerCache {
    /// The controller, counted from 1.
    pub controller: u32,
    /// The class: `raw`, `file` or `file_part`.
    pub class: String,
    /// Commands that read.
    pub reads: u64,
    /// Of these, how many the arm did not have to begin anything for: all was
    /// in the cache, or was passing under the heads.
    pub hits: u64,
    /// Sectors read.
    pub sectors: u64,
    /// Of these, how many were in the cache when the command was decoded.
    pub sectors_held: u64,
}

impl ControllerCache {
    /// Hits in percent of the reads.
    pub fn hit_percent(&self) -> f64 {
        percent(self.hits, self.reads)
    }

    /// Sectors held in percent of the sectors read.
    pub fn held_percent(&self) -> f64 {
        percent(self.sectors_held, self.sectors)
    }

    /// Adds up what is of one controller and class.
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

fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => 100.0 * part as f64 / whole as f64,
    }
}

/// What a modelled disk with shingled tracks did during a repetition, what comes before its
/// timed part included, and how full its media cache was at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaCache {
    /// The drive, counted from 1.
    pub drive: u32,
    /// Of the media cache, from its oldest extent on.
    pub used_bytes: u64,
    /// All of it.
    pub room_bytes: u64,
    /// Extents in its map.
    pub extents: u64,
    /// The most that the map holds.
    pub most_extents: u64,
    /// Bytes that went to the media cache.
    pub cached_bytes: u64,
    /// Bytes that went to their bands at once.
    pub streamed_bytes: u64,
    /// Bytes that cleaning wrote.
    pub cleaned_bytes: u64,
    /// Bytes of the host's that came while cache or map was full, so that writes waited until
    /// bands were cleaned. 0 in runs of versions that did not count them.
    #[serde(default)]
    pub past_cache_bytes: u64,
    /// Bands that were written anew.
    pub bands_cleaned: u64,
    /// How long the arm was at it.
    pub cleaning: Nanoseconds,
}

impl MediaCache {
    /// Bytes that were written for each byte of the host's; nothing where none came.
    pub fn write_amplification(&self) -> Option<f64> {
        let host = self.cached_bytes + self.streamed_bytes;
        (host > 0).then(|| (host + self.cleaned_bytes) as f64 / host as f64)
    }

    /// Adds up what is of one drive; how full it was is that of the last.
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

/// Where a repetition of an A/B measurement stands in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its block, counted from 0; the other arm has a repetition in the same one.
    pub number: u32,
    /// Whether it ran after the other arm's.
    pub second: bool,
    /// Whether it ran after every verdict of its program, and so measures the size of a
    /// difference without the bias of having stopped there. Blocks of early versions
    /// never did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_verdict: bool,
}

/// One repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Run, but kept out of the figures: the first ones, as the protocol has it, and
    /// those that were disturbed and run again.
    pub discarded: bool,
    /// Every worker's measure; at least one.
    pub workers: Vec<WorkerMeasure>,
    /// Residency of the files that were read; absent where none was, or where
    /// the system cannot tell.
    pub residency: Option<Residency>,
    /// The counters of the devices underneath.
    pub devices: Vec<DeviceTraffic>,
    /// The caches of the controllers underneath, by controller and class; only
    /// a modelled one tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controller_caches: Vec<ControllerCache>,
    /// The media caches of the drives underneath that have shingled tracks; only a modelled
    /// one tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media_caches: Vec<MediaCache>,
    /// What the flash drives underneath programmed; only a modelled one tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flash: Vec<FlashTraffic>,
    /// Its place in an A/B measurement; the discarded ones of one have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Block>,
    /// What else the machine did meanwhile; nothing on a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<Interference>,
}

impl Repetition {
    /// Whether anything bore on it from outside.
    pub fn is_disturbed(&self) -> bool {
        !self.interference.is_empty()
    }

    /// From the start of the first worker to the end of the last.
    pub fn elapsed(&self) -> Nanoseconds {
        span(self.workers.iter(), WorkerMeasure::ended)
    }

    /// The elapsed time until all written data was synced; absent if nothing was
    /// written.
    pub fn durable(&self) -> Option<Nanoseconds> {
        let any = self.workers.iter().any(|worker| worker.durable.is_some());
        any.then(|| span(self.workers.iter(), WorkerMeasure::durable_end))
    }

    /// KB/s as in 1983, until the last call returned; over several drives the
    /// sum of what each of them did.
    pub fn kb_per_s(&self) -> f64 {
        self.per_drive(|workers| {
            let payload: u64 = workers.iter().map(|worker| worker.payload_bytes).sum();
            rate(payload, span(workers.iter().copied(), WorkerMeasure::ended))
        })
    }

    /// KB/s until everything was synced; absent where nothing was written.
    pub fn durable_kb_per_s(&self) -> Option<f64> {
        self.durable()?;
        Some(self.per_drive(|workers| {
            let payload: u64 = workers.iter().map(|worker| worker.payload_bytes).sum();
            rate(
                payload,
                span(workers.iter().copied(), WorkerMeasure::durable_end),
            )
        }))
    }

    /// What its workers with several requests under way measured.
    pub fn loads(&self) -> impl Iterator<Item = &LoadMeasure> + Clone {
        self.workers
            .iter()
            .filter_map(|worker| worker.load.as_ref())
    }

    /// Errors that ended workers while others went on.
    pub fn failures(&self) -> impl Iterator<Item = &WorkerFailure> {
        self.workers
            .iter()
            .filter_map(|worker| worker.failure.as_ref())
    }

    /// Blocks of all workers that were read back and compared; `None` where nothing is verified.
    pub fn verified(&self) -> Option<Verified> {
        Verified::sum(self.workers.iter().filter_map(WorkerMeasure::all_verified))
    }

    /// Whether requests arrived by the clock, and did not wait for one another.
    pub fn is_open_loop(&self) -> bool {
        self.loads().any(|load| load.lag.is_some())
    }

    /// Requests that count per second ([`LoadMeasure::counted`]), until the last one was
    /// complete; over several drives the sum. Absent of workers that have one call under
    /// way.
    pub fn iops(&self) -> Option<f64> {
        self.loads().next()?;
        Some(self.per_drive(|workers| {
            let counted = |worker: &&WorkerMeasure| worker.load.as_ref().map(LoadMeasure::count);
            let count: u64 = workers.iter().filter_map(counted).sum();
            let elapsed = span(workers.iter().copied(), WorkerMeasure::ended);
            per_second(count as f64, elapsed)
        }))
    }

    /// The responses of the requests that count, of all workers.
    pub fn responses(&self) -> Histogram {
        let mut all = Histogram::new();
        for operation in self.loads().flat_map(LoadMeasure::counted) {
            all.merge(&operation.response);
        }
        all
    }

    /// CPU share of the programs in percent of elapsed time, as `time` in csh
    /// prints it; over several drives the sum.
    pub fn cpu_percent(&self) -> f64 {
        self.per_drive(|workers| {
            let cpu: Nanoseconds = workers.iter().map(|worker| worker.cpu).sum();
            let elapsed = span(workers.iter().copied(), WorkerMeasure::ended);
            if elapsed.0 == 0 {
                0.0
            } else {
                100.0 * cpu.0 as f64 / elapsed.0 as f64
            }
        })
    }

    /// Bytes that count for KB/s.
    pub fn payload_bytes(&self) -> u64 {
        self.total(|worker| worker.payload_bytes)
    }

    /// The sum of one count over all workers.
    pub fn total(&self, count: impl Fn(&WorkerMeasure) -> u64) -> u64 {
        self.workers.iter().map(count).sum()
    }

    /// How many drives ran the program.
    pub fn drives(&self) -> u32 {
        self.workers
            .iter()
            .map(|worker| worker.drive + 1)
            .max()
            .unwrap_or(0)
    }

    /// Sums a figure over the drives.
    fn per_drive(&self, figure: impl Fn(&[&WorkerMeasure]) -> f64) -> f64 {
        let mut workers: Vec<&WorkerMeasure> = self.workers.iter().collect();
        workers.sort_by_key(|worker| worker.drive);
        workers
            .chunk_by(|one, other| one.drive == other.drive)
            .map(figure)
            .sum()
    }
}

/// From the earliest start to the latest `end`.
fn span<'a>(
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

/// KB/s; 0 of no time.
fn rate(bytes: u64, elapsed: Nanoseconds) -> f64 {
    per_second(bytes as f64 / KIB as f64, elapsed)
}

/// 0 of no time.
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
