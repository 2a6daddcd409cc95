//! Detection of interference: activity of the rest of the machine during the timed part of a
//! repetition.
//!
//! Kernel counters are read before and after the timed part. Changes beyond those that the program
//! explains are reported. A counter that this machine lacks reports nothing.

mod memory;
mod processor;
mod settings;
mod stopped;
mod storage;

pub use stopped::StopDetector;

use super::clock::monotonic_now;
use super::device::BlockDevice;
use super::usage::process_storage_read_bytes;
use diskperf_timeline::{Device, Interference, Nanoseconds, Repetition};
use processor::LimitFiles;

/// Minimum share of a time that is reported. Medians of undisturbed runs differ by as much.
const NOTABLE_SHARE_MIN: f64 = 0.1;

/// Minimum time that is reported. A millisecond is shorter than a time slice of the scheduler, and
/// may be an interrupt.
const NOTABLE_TIME_MIN: Nanoseconds = Nanoseconds::from_millis(1);

/// Observer of the machine before and after repetitions.
#[derive(Debug)]
pub struct InterferenceDetector {
    disks: Vec<BlockDevice>,
    /// Disks whose counters should match the program's own I/O: each is the only disk of its drive,
    /// with no loop device on top.
    directly_used_disks: Vec<String>,
    initial_settings: Vec<Device>,
    limit_files: LimitFiles,
}

/// Kernel counters of the machine at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterferenceCounters {
    read_time: Nanoseconds,
    /// Bytes that storage has delivered to this process.
    own_read_bytes: Option<u64>,
    memory_counters: Option<memory::MemoryCounters>,
    processor_counters: processor::ProcessorCounters,
}

impl InterferenceDetector {
    /// Returns an observer of the given drives, each a list of the disks that receive its requests.
    /// It records the disks' current settings.
    pub fn for_drives<'a>(drives: impl IntoIterator<Item = &'a [BlockDevice]>) -> Self {
        let mut all_disks: Vec<BlockDevice> = Vec::new();
        let mut sole_disks = Vec::new();
        for disks in drives {
            if let [only] = disks {
                sole_disks.push(only.name().to_owned());
            }
            for disk in disks {
                if !all_disks.contains(disk) {
                    all_disks.push(disk.clone());
                }
            }
        }
        Self {
            initial_settings: all_disks.iter().map(BlockDevice::describe).collect(),
            disks: all_disks,
            directly_used_disks: sole_disks,
            limit_files: LimitFiles::find_limit_files(),
        }
    }

    /// Reads the kernel counters of the machine.
    pub fn read_counters(&self) -> InterferenceCounters {
        InterferenceCounters {
            read_time: monotonic_now(),
            own_read_bytes: process_storage_read_bytes(),
            memory_counters: memory::MemoryCounters::read_counters(),
            // The threads that are ready to run come last: what the reading itself sets
            // going has ended then.
            processor_counters: processor::ProcessorCounters::read_counters(&self.limit_files),
        }
    }

    /// Returns the interference of a repetition, from the counters before and after it. `stopped`
    /// is the time during which this process did not run.
    pub fn detect_interference(
        &self,
        (before, after): (&InterferenceCounters, &InterferenceCounters),
        repetition: &Repetition,
        stopped: Nanoseconds,
    ) -> Vec<Interference> {
        let span = after.read_time.since(before.read_time);
        let mut devices = repetition.devices.iter();
        let is_layered = devices.any(|one| !self.directly_used_disks.contains(&one.device_name));
        let now: Vec<Device> = self.disks.iter().map(BlockDevice::describe).collect();
        let mut found = Vec::new();
        found.extend(stopped::detect_stop(stopped, repetition));
        found.extend(processor::detect_cpu_wait(&repetition.workers));
        found.extend(processor::detect_processor_interference(
            (&before.processor_counters, &after.processor_counters),
            span,
        ));
        let own_read_bytes = before.own_read_bytes.zip(after.own_read_bytes);
        let own_read_bytes = own_read_bytes.map(|(before, after)| after - before);
        found.extend(storage::detect_foreign_io(
            &self.directly_used_disks,
            repetition,
            own_read_bytes,
        ));
        if let (Some(before), Some(after)) = (&before.memory_counters, &after.memory_counters) {
            let program_io_bytes = program_io_bytes(repetition) * if is_layered { 2 } else { 1 };
            found.extend(memory::detect_memory_interference(
                (before, after),
                span,
                program_io_bytes,
            ));
        }
        found.extend(settings::detect_setting_changes(
            &self.initial_settings,
            &now,
        ));
        found
    }
}

/// Returns a time's share of `of`, if the time is long enough to report.
fn share_if_notable(time: Nanoseconds, total: Nanoseconds) -> Option<f64> {
    let share = time.0 as f64 / total.0.max(1) as f64;
    (time >= NOTABLE_TIME_MIN && share >= NOTABLE_SHARE_MIN).then_some(share)
}

/// Returns the bytes that storage delivered to the program, plus those that the program wrote.
fn program_io_bytes(repetition: &Repetition) -> u64 {
    repetition.sum_over_workers(|worker| {
        worker.storage_read_bytes.unwrap_or(worker.read_bytes) + worker.written_bytes
    })
}
