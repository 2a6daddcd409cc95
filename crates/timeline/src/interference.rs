//! Interference: activity of the rest of the machine during the timed part of a repetition.

use crate::units::format_size;
use serde::{Deserialize, Serialize};
use std::fmt;

/// External event that affected a repetition. Only kernel counters detect it, never the duration of
/// the repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Interference {
    /// Processor contention: a worker was ready to run while another task had the processor.
    ProcessorWait {
        /// Microseconds that the longest-waiting worker waited for a processor.
        waited_us: u64,
        /// Waiting time as a share of that worker's elapsed time.
        share: f64,
        /// Number of times that the worker was preempted by another task.
        preempted: u64,
    },
    /// Busy processors: other threads were ready to run at the start and at the end of the timed
    /// part.
    ProcessorBusy {
        /// Number of other threads ready to run, the smaller of the counts at start and end.
        threads: u64,
    },
    /// Stolen time: the hypervisor gave the processors to another virtual machine.
    ProcessorStolen {
        /// Microseconds stolen, summed over all processors.
        stolen_us: u64,
        /// Stolen time as a share of the time of all processors.
        share: f64,
    },
    /// Thermal throttling: a processor was slowed because it was hot.
    ProcessorThrottled {
        /// Number of thermal throttling events of the processors.
        times: u64,
    },
    /// Change of the maximum frequency that a processor may use.
    FrequencyLimit {
        /// Maximum frequency before the timed part, in kHz.
        was_khz: u64,
        /// Maximum frequency after the timed part, in kHz.
        is_khz: u64,
    },
    /// I/O of other processes on the device, measured as bytes beyond those of the program.
    #[serde(rename = "other_io")]
    ForeignIo {
        /// Name of the device in sysfs, such as `vda`.
        device: String,
        /// Bytes that others read from the device, beyond the program's own reads.
        read_bytes: u64,
        /// Bytes that others wrote to the device, beyond the writes of the program and its file
        /// system.
        written_bytes: u64,
    },
    /// Memory pressure: some process of the machine waited for memory.
    #[serde(rename = "memory_short")]
    MemoryPressure {
        /// Microseconds during which at least one thread waited for memory.
        stalled_us: u64,
        /// Time of memory pressure as a share of the elapsed time.
        share: f64,
        /// Bytes of pages that the kernel scanned for reclaim.
        scanned_bytes: u64,
        /// Bytes that the kernel swapped in or out.
        swapped_bytes: u64,
    },
    /// Memory that other processes allocated during the timed part.
    #[serde(rename = "memory_taken")]
    MemoryAllocatedByOthers {
        /// Bytes allocated beyond the needs of the program's own calls.
        bytes: u64,
    },
    /// Queue setting of the device that changed since the start of the run.
    SettingChanged {
        /// Name of the device in sysfs.
        device: String,
        /// Name of the changed setting in sysfs.
        setting: String,
        /// Value of the setting at the start of the run; empty if the setting did not exist.
        was: String,
        /// Value of the setting after the timed part.
        is: String,
    },
    /// Stop: the process neither ran nor was ready to run, because it or the whole machine was
    /// stopped.
    #[serde(rename = "stopped")]
    ProcessStopped {
        /// Microseconds for which the process was stopped.
        stopped_us: u64,
        /// Stopped time as a share of the elapsed time.
        share: f64,
    },
}

impl Interference {
    /// Returns the name of the interference kind in JSON.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::ProcessorWait { .. } => "processor_wait",
            Self::ProcessorBusy { .. } => "processor_busy",
            Self::ProcessorStolen { .. } => "processor_stolen",
            Self::ProcessorThrottled { .. } => "processor_throttled",
            Self::FrequencyLimit { .. } => "frequency_limit",
            Self::ForeignIo { .. } => "other_io",
            Self::MemoryPressure { .. } => "memory_short",
            Self::MemoryAllocatedByOthers { .. } => "memory_taken",
            Self::SettingChanged { .. } => "setting_changed",
            Self::ProcessStopped { .. } => "stopped",
        }
    }

    /// Returns the share of time that the interference took; `None` for kinds that are not measured
    /// as a share.
    pub fn disturbed_share(&self) -> Option<f64> {
        match self {
            Self::ProcessorWait { share, .. }
            | Self::ProcessorStolen { share, .. }
            | Self::MemoryPressure { share, .. }
            | Self::ProcessStopped { share, .. } => Some(*share),
            Self::ProcessorBusy { .. }
            | Self::ProcessorThrottled { .. }
            | Self::FrequencyLimit { .. }
            | Self::ForeignIo { .. }
            | Self::MemoryAllocatedByOthers { .. }
            | Self::SettingChanged { .. } => None,
        }
    }

    /// Returns a measure of severity that ranks two interferences of the same kind: a share, a
    /// count or bytes.
    pub fn severity(&self) -> f64 {
        match self {
            Self::ProcessorWait { share, .. }
            | Self::ProcessorStolen { share, .. }
            | Self::MemoryPressure { share, .. }
            | Self::ProcessStopped { share, .. } => *share,
            Self::ProcessorBusy { threads: count } | Self::ProcessorThrottled { times: count } => {
                *count as f64
            }
            Self::ForeignIo {
                read_bytes,
                written_bytes,
                ..
            } => *read_bytes as f64 + *written_bytes as f64,
            Self::MemoryAllocatedByOthers { bytes } => *bytes as f64,
            Self::FrequencyLimit { is_khz, .. } => -(*is_khz as f64),
            Self::SettingChanged { .. } => 0.0,
        }
    }
}

impl fmt::Display for Interference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProcessorWait { share, .. } => write!(
                formatter,
                "waited {} of the time for a processor",
                format_percent(*share)
            ),
            Self::ProcessorBusy { threads: 1 } => {
                write!(formatter, "another thread kept a processor busy")
            }
            Self::ProcessorBusy { threads } => {
                write!(formatter, "{threads} other threads kept processors busy")
            }
            Self::ProcessorStolen { share, .. } => write!(
                formatter,
                "the hypervisor took {} of the processors' time",
                format_percent(*share)
            ),
            Self::ProcessorThrottled { times } => {
                write!(
                    formatter,
                    "the processor was thermally throttled {times} times"
                )
            }
            Self::FrequencyLimit { was_khz, is_khz } => write!(
                formatter,
                "the highest frequency of a processor changed from {} to {} MHz",
                was_khz / 1000,
                is_khz / 1000
            ),
            Self::ForeignIo {
                device,
                read_bytes,
                written_bytes,
            } => match (read_bytes, written_bytes) {
                (read, 0) => write!(
                    formatter,
                    "other I/O on {device}, {} read",
                    format_rounded_size(*read)
                ),
                (0, written) => write!(
                    formatter,
                    "other I/O on {device}, {} written",
                    format_rounded_size(*written)
                ),
                (read, written) => write!(
                    formatter,
                    "other I/O on {device}, {} read and {} written",
                    format_rounded_size(*read),
                    format_rounded_size(*written)
                ),
            },
            Self::MemoryPressure {
                share,
                scanned_bytes,
                swapped_bytes,
                ..
            } => write!(
                formatter,
                "memory was short: {} of the time stalled, {} scanned, {} swapped",
                format_percent(*share),
                format_rounded_size(*scanned_bytes),
                format_rounded_size(*swapped_bytes)
            ),
            Self::MemoryAllocatedByOthers { bytes } => {
                write!(
                    formatter,
                    "other processes took {} of memory",
                    format_rounded_size(*bytes)
                )
            }
            Self::SettingChanged {
                device,
                setting,
                was,
                is,
            } => write!(
                formatter,
                "{setting} of {device} is {is}, and was {was} when the run began"
            ),
            Self::ProcessStopped { stopped_us, share } => write!(
                formatter,
                "stopped for {} ms, {} of the time",
                stopped_us / 1000,
                format_percent(*share)
            ),
        }
    }
}

fn format_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Formats a byte count, in whole MiB from 1 MiB on.
fn format_rounded_size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        0..MIB => format_size(bytes >> 10 << 10),
        _ => format_size(bytes / MIB * MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_one_clause_and_its_name_is_that_in_json() {
        let device = || "vda".to_owned();
        for (one, text) in [
            (
                Interference::ProcessorWait {
                    waited_us: 41_000,
                    share: 0.412,
                    preempted: 7,
                },
                "waited 41 % of the time for a processor",
            ),
            (
                Interference::ProcessorBusy { threads: 4 },
                "4 other threads kept processors busy",
            ),
            (
                Interference::ProcessorStolen {
                    stolen_us: 20_000,
                    share: 0.125,
                },
                "the hypervisor took 12 % of the processors' time",
            ),
            (
                Interference::FrequencyLimit {
                    was_khz: 3_200_000,
                    is_khz: 800_000,
                },
                "the highest frequency of a processor changed from 3200 to 800 MHz",
            ),
            (
                Interference::ForeignIo {
                    device: device(),
                    read_bytes: 0,
                    written_bytes: (210 << 20) + 5,
                },
                "other I/O on vda, 210 MiB written",
            ),
            (
                Interference::MemoryAllocatedByOthers { bytes: 300 << 20 },
                "other processes took 300 MiB of memory",
            ),
            (
                Interference::SettingChanged {
                    device: device(),
                    setting: "read_ahead_kb".to_owned(),
                    was: "128".to_owned(),
                    is: "0".to_owned(),
                },
                "read_ahead_kb of vda is 0, and was 128 when the run began",
            ),
            (
                Interference::ProcessStopped {
                    stopped_us: 310_400,
                    share: 0.75,
                },
                "stopped for 310 ms, 75 % of the time",
            ),
        ] {
            assert_eq!(one.to_string(), text);
            let json = serde_json::to_value(&one).unwrap();
            assert_eq!(json["kind"], one.kind_name());
            assert_eq!(serde_json::from_value::<Interference>(json).unwrap(), one);
        }
    }
}
