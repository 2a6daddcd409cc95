//! Recorded activity of a flash drive over a period of time: operations of the dies, and fill
//! levels of the drive.

use crate::{DieBusy, Nanoseconds};

/// Cumulative busy time of the parts of a flash drive up to a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlashBusy {
    /// Number of the drive.
    #[cfg_attr(feature = "serde", serde(rename = "drive"))]
    pub drive_index: u32,
    /// Busy time of the link, toward the host and toward the drive. A link shared by both
    /// directions counts in the first.
    pub link: [Nanoseconds; 2],
    /// Busy time of the controller, which handles one command at a time.
    #[cfg_attr(feature = "serde", serde(rename = "controller"))]
    pub controller_busy: Nanoseconds,
    /// Busy time of the channels, averaged over all channels.
    #[cfg_attr(feature = "serde", serde(rename = "channels"))]
    pub channels_busy: Nanoseconds,
    /// Busy time of the dies, averaged over all dies.
    #[cfg_attr(feature = "serde", serde(rename = "dies"))]
    pub dies_busy: Nanoseconds,
}

/// Recorded activity of one flash drive.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TracedFlash {
    /// Number of the drive, counted from 0.
    #[cfg_attr(feature = "serde", serde(rename = "drive"))]
    pub drive_index: u32,
    /// Number of flash channels of the drive.
    #[cfg_attr(feature = "serde", serde(rename = "channels"))]
    pub channel_count: u32,
    /// Number of dies of the drive, over all channels.
    #[cfg_attr(feature = "serde", serde(rename = "dies"))]
    pub die_count: u32,
    /// Size of a mapping unit, in bytes.
    pub unit_bytes: u32,
    /// Capacity of the write buffer, in mapping units; 0 without a write buffer.
    pub buffer_units: u32,
    /// Periods in which a die was busy, ordered by their end. A long recording keeps only the last
    /// ones.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "kept"))]
    pub recorded_periods: Vec<DieBusyPeriod>,
    /// Number of earlier busy periods that the recording dropped.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "left_out"))]
    pub omitted_period_count: u64,
    /// End of the last busy period that was dropped. The recording is complete after this time.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "complete_from"))]
    pub complete_since: Nanoseconds,
    /// Fill levels of the drive, in the order of time.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "levels"))]
    pub level_samples: Vec<FlashLevelSample>,
}

impl TracedFlash {
    /// Returns the memory that the record of a flash drive occupies, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&self.recorded_periods[..]) + size_of_val(&self.level_samples[..])
    }

    /// Returns the channel of a die and the index of the die on that channel.
    pub fn die_coordinates(&self, die: u32) -> (u32, u32) {
        // A document may hold any numbers.
        let channels = self.channel_count.max(1);
        (die % channels, die / channels)
    }

    /// Returns the number of a die, given its channel and its index on that channel.
    pub fn die_index(&self, channel: u32, place: u32) -> u32 {
        place
            .saturating_mul(self.channel_count)
            .saturating_add(channel)
    }
}

/// Period in which a flash die was busy with one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DieBusyPeriod {
    /// Number of the die in the drive. Consecutive dies are on consecutive channels.
    #[cfg_attr(feature = "serde", serde(rename = "die"))]
    pub die_index: u32,
    /// Operation that keeps the die busy.
    #[cfg_attr(feature = "serde", serde(rename = "by"))]
    pub busy_with: DieBusy,
    /// Whether a program or erase of the die was suspended during the busy period.
    #[cfg_attr(feature = "serde", serde(default))]
    #[cfg_attr(feature = "serde", serde(rename = "stands"))]
    pub is_suspended: bool,
    /// Start of the busy period of the die.
    #[cfg_attr(feature = "serde", serde(rename = "from"))]
    pub busy_start: Nanoseconds,
    /// End of the busy period of the die.
    #[cfg_attr(feature = "serde", serde(rename = "until"))]
    pub busy_end: Nanoseconds,
}

/// Fill levels of a flash drive at one time, with the mapping units programmed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlashLevelSample {
    /// Time at which the fill levels were sampled.
    #[cfg_attr(feature = "serde", serde(rename = "at"))]
    pub sample_time: Nanoseconds,
    /// Mapping units in the write buffer, including those whose program is in progress.
    pub buffer_units: u32,
    /// Free mapping units in the SLC cache. None for a drive without an SLC cache.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cache_free_units: Option<u64>,
    /// Number of erased superblocks that are not yet open.
    pub free_superblocks: u32,
    /// Mapping units that the host has written so far.
    pub host_units: u64,
    /// Mapping units programmed so far, for the host and for the drive's own work.
    pub programmed_units: u64,
}

impl FlashLevelSample {
    /// Returns the write amplification since an earlier sample: mapping units programmed per unit
    /// that the host wrote. None if the host wrote nothing.
    pub fn write_amplification_since(&self, earlier: &Self) -> Option<f64> {
        let host = self.host_units.saturating_sub(earlier.host_units);
        let programmed = self
            .programmed_units
            .saturating_sub(earlier.programmed_units);
        (host > 0).then(|| programmed as f64 / host as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amplification_covers_the_interval() {
        let at = |host_units, programmed_units| FlashLevelSample {
            host_units,
            programmed_units,
            ..FlashLevelSample::default()
        };
        let (first, second) = (at(100, 150), at(110, 180));
        assert_eq!(second.write_amplification_since(&first), Some(3.0));
        assert_eq!(first.write_amplification_since(&first), None);
        // Of a document that counts backwards.
        assert_eq!(first.write_amplification_since(&second), None);
        assert_eq!(
            at(u64::MAX, 0).write_amplification_since(&second),
            Some(0.0)
        );
    }

    #[test]
    fn dies_take_turns_at_channels() {
        let drive = TracedFlash {
            channel_count: 4,
            die_count: 8,
            ..TracedFlash::default()
        };
        for die in 0..8 {
            let (channel, place) = drive.die_coordinates(die);
            assert_eq!(drive.die_index(channel, place), die);
        }
        assert_eq!(TracedFlash::default().die_coordinates(3), (0, 3));
        assert_eq!(drive.die_index(u32::MAX, u32::MAX), u32::MAX);
    }
}
