//! What else the machine did while a repetition was timed.

use crate::units::format_size;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing that bore on a repetition from outside. It is found by the kernel's
/// counters alone, never by how long the repetition took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Interference {
    /// A worker was ready to run while something else had the processor.
    ProcessorWait {
        /// Microseconds, of the worker that waited longest.
        waited_us: u64,
        /// Of that worker's elapsed time.
        share: f64,
        /// How often it was switched out for something else.
        preempted: u64,
    },
    /// Other threads were ready to run when the timed part began and when it ended.
    ProcessorBusy {
        /// How many, the fewer of both.
        threads: u64,
    },
    /// The hypervisor gave the processors to another machine.
    ProcessorStolen {
        /// Microseconds, of all processors together.
        stolen_us: u64,
        /// Of all processors' time.
        share: f64,
    },
    /// The processor was slowed because it was hot.
    ProcessorThrottled {
        /// How often.
        times: u64,
    },
    /// The highest frequency that a processor may have changed.
    FrequencyLimit {
        /// In kHz, before.
        was_khz: u64,
        /// In kHz, after.
        is_khz: u64,
    },
    /// Others read or wrote on the device: bytes beyond those of the program.
    OtherIo {
        /// The device's name in sysfs, as `vda`.
        device: String,
        /// Bytes read beyond the program's own.
        read_bytes: u64,
        /// Bytes written beyond the program's own, its file system's included.
        written_bytes: u64,
    },
    /// Memory was short, for whatever process.
    MemoryShort {
        /// Microseconds that at least one thread waited for memory.
        stalled_us: u64,
        /// Of the elapsed time.
        share: f64,
        /// Bytes of pages that were looked at to be taken from others.
        scanned_bytes: u64,
        /// Bytes swapped in or out.
        swapped_bytes: u64,
    },
    /// Others took new memory.
    MemoryTaken {
        /// Bytes beyond what the program's own calls need.
        bytes: u64,
    },
    /// A setting of the device's queue is another than at the start of the run.
    SettingChanged {
        /// The device's name in sysfs.
        device: String,
        /// The setting's name in sysfs.
        setting: String,
        /// What it was when the run began; empty where it was not there.
        was: String,
        /// What it was after the timed part.
        is: String,
    },
    /// The process did not run, nor was it ready to: it was stopped, or the whole
    /// machine was.
    Stopped {
        /// Microseconds.
        stopped_us: u64,
        /// Of the elapsed time.
        share: f64,
    },
}

impl Interference {
    /// Its name in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::ProcessorWait { .. } => "processor_wait",
            Self::ProcessorBusy { .. } => "processor_busy",
            Self::ProcessorStolen { .. } => "processor_stolen",
            Self::ProcessorThrottled { .. } => "processor_throttled",
            Self::FrequencyLimit { .. } => "frequency_limit",
            Self::OtherIo { .. } => "other_io",
            Self::MemoryShort { .. } => "memory_short",
            Self::MemoryTaken { .. } => "memory_taken",
            Self::SettingChanged { .. } => "setting_changed",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// Of the kinds that are a share of some time, that share.
    pub fn share(&self) -> Option<f64> {
        match self {
            Self::ProcessorWait { share, .. }
            | Self::ProcessorStolen { share, .. }
            | Self::MemoryShort { share, .. }
            | Self::Stopped { share, .. } => Some(*share),
            Self::ProcessorBusy { .. }
            | Self::ProcessorThrottled { .. }
            | Self::FrequencyLimit { .. }
            | Self::OtherIo { .. }
            | Self::MemoryTaken { .. }
            | Self::SettingChanged { .. } => None,
        }
    }

    /// What tells which of two of one kind is worse: a share, a count or bytes.
    pub fn weight(&self) -> f64 {
        match self {
            Self::ProcessorWait { share, .. }
            | Self::ProcessorStolen { share, .. }
            | Self::MemoryShort { share, .. }
            | Self::Stopped { share, .. } => *share,
            Self::ProcessorBusy { threads: count } | Self::ProcessorThrottled { times: count } => {
                *count as f64
            }
            Self::OtherIo {
                read_bytes,
                written_bytes,
                ..
            } => *read_bytes as f64 + *written_bytes as f64,
            Self::MemoryTaken { bytes } => *bytes as f64,
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
                percent(*share)
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
                percent(*share)
            ),
            Self::ProcessorThrottled { times } => {
                write!(
                    formatter,
                    "the processor was throttled for its heat, {times} times"
                )
            }
            Self::FrequencyLimit { was_khz, is_khz } => write!(
                formatter,
                "the highest frequency of a processor changed from {} to {} MHz",
                was_khz / 1000,
                is_khz / 1000
            ),
            Self::OtherIo {
                device,
                read_bytes,
                written_bytes,
            } => match (read_bytes, written_bytes) {
                (read, 0) => write!(formatter, "other I/O on {device}, {} read", size(*read)),
                (0, written) => write!(
                    formatter,
                    "other I/O on {device}, {} written",
                    size(*written)
                ),
                (read, written) => write!(
                    formatter,
                    "other I/O on {device}, {} read and {} written",
                    size(*read),
                    size(*written)
                ),
            },
            Self::MemoryShort {
                share,
                scanned_bytes,
                swapped_bytes,
                ..
            } => write!(
                formatter,
                "memory was short: {} of the time stalled, {} scanned, {} swapped",
                percent(*share),
                size(*scanned_bytes),
                size(*swapped_bytes)
            ),
            Self::MemoryTaken { bytes } => {
                write!(formatter, "others took {} of memory", size(*bytes))
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
            Self::Stopped { stopped_us, share } => write!(
                formatter,
                "stopped for {} ms, {} of the time",
                stopped_us / 1000,
                percent(*share)
            ),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Whole MiB where there are some: the rest says nothing.
fn size(bytes: u64) -> String {
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
                Interference::OtherIo {
                    device: device(),
                    read_bytes: 0,
                    written_bytes: (210 << 20) + 5,
                },
                "other I/O on vda, 210 MiB written",
            ),
            (
                Interference::MemoryTaken { bytes: 300 << 20 },
                "others took 300 MiB of memory",
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
                Interference::Stopped {
                    stopped_us: 310_400,
                    share: 0.75,
                },
                "stopped for 310 ms, 75 % of the time",
            ),
        ] {
            assert_eq!(one.to_string(), text);
            let json = serde_json::to_value(&one).unwrap();
            assert_eq!(json["kind"], one.kind());
            assert_eq!(serde_json::from_value::<Interference>(json).unwrap(), one);
        }
    }
}
