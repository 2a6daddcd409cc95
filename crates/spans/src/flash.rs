//! What a flash drive did between two moments: what kept its dies, and how full it was.

use crate::{DieBusy, Nanoseconds};

/// Busy time of the parts of a flash drive up to some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlashBusy {
    /// The number of the drive.
    pub drive: u32,
    /// The link, toward the host and toward the drive. A link that both share counts in the
    /// first.
    pub link: [Nanoseconds; 2],
    /// The controller's work on commands, one at a time.
    pub controller: Nanoseconds,
    /// The channels, the mean of all.
    pub channels: Nanoseconds,
    /// The dies, the mean of all.
    pub dies: Nanoseconds,
}

/// What was recorded of one flash drive.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TracedFlash {
    /// The drive, counted from 0.
    pub drive: u32,
    /// Its channels.
    pub channels: u32,
    /// Its dies, of all channels together.
    pub dies: u32,
    /// Bytes of a unit.
    pub unit_bytes: u32,
    /// Units that the buffer of writes holds; 0 without one.
    pub buffer_units: u32,
    /// What kept dies, by the ends. Only the last of a long time are here.
    #[cfg_attr(feature = "serde", serde(default))]
    pub kept: Vec<TracedDie>,
    /// How many came before the first of these.
    #[cfg_attr(feature = "serde", serde(default))]
    pub left_out: u64,
    /// The end of the last of those: from here on none is missing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub complete_from: Nanoseconds,
    /// How full it was, in the order of time.
    #[cfg_attr(feature = "serde", serde(default))]
    pub levels: Vec<FlashLevels>,
}

impl TracedFlash {
    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.kept[..]) + size_of_val(&self.levels[..])
    }

    /// A die by its channel, and by its place among those of the channel.
    pub fn place(&self, die: u32) -> (u32, u32) {
        // A document may hold any numbers.
        let channels = self.channels.max(1);
        (die % channels, die / channels)
    }

    /// The number of a die, from its channel and its place there.
    pub fn die(&self, channel: u32, place: u32) -> u32 {
        place.saturating_mul(self.channels).saturating_add(channel)
    }
}

/// A die was kept by something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TracedDie {
    /// The die, of all that the drive has; they take turns at channels.
    pub die: u32,
    /// By what.
    pub by: DieBusy,
    /// Whether a program or an erase stood still meanwhile.
    #[cfg_attr(feature = "serde", serde(default))]
    pub stands: bool,
    /// When it began.
    pub from: Nanoseconds,
    /// When it ended.
    pub until: Nanoseconds,
}

/// How full a flash drive was, and what it had programmed by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FlashLevels {
    /// The moment.
    pub at: Nanoseconds,
    /// Units in the buffer of writes, also those that are being programmed.
    pub buffer_units: u32,
    /// Units that the cache of one bit a cell still takes; none without one.
    #[cfg_attr(feature = "serde", serde(default))]
    pub cache_free_units: Option<u64>,
    /// Superblocks that are erased and not begun.
    pub free_superblocks: u32,
    /// Units that the host had written.
    pub host_units: u64,
    /// Units that had been programmed, these and all of the drive's own.
    pub programmed_units: u64,
}

impl FlashLevels {
    /// Units programmed for each that the host wrote since `earlier`; none if it wrote
    /// none.
    pub fn amplification_since(&self, earlier: &Self) -> Option<f64> {
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
    fn amplification_is_of_the_interval() {
        let at = |host_units, programmed_units| FlashLevels {
            host_units,
            programmed_units,
            ..FlashLevels::default()
        };
        let (first, second) = (at(100, 150), at(110, 180));
        assert_eq!(second.amplification_since(&first), Some(3.0));
        assert_eq!(first.amplification_since(&first), None);
        // Of a document that counts backwards.
        assert_eq!(first.amplification_since(&second), None);
        assert_eq!(at(u64::MAX, 0).amplification_since(&second), Some(0.0));
    }

    #[test]
    fn dies_take_turns_at_channels() {
        let drive = TracedFlash {
            channels: 4,
            dies: 8,
            ..TracedFlash::default()
        };
        for die in 0..8 {
            let (channel, place) = drive.place(die);
            assert_eq!(drive.die(channel, place), die);
        }
        assert_eq!(TracedFlash::default().place(3), (0, 3));
        assert_eq!(drive.die(u32::MAX, u32::MAX), u32::MAX);
    }
}
