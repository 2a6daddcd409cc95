//! First touch of a volume that was made from a snapshot: a block that was never accessed is
//! fetched from object storage.

use diskperf_sim::{RandomStream, Time};

/// Fetch of the blocks of a snapshot at their first access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTouch {
    /// Size of a fetched block in bytes.
    pub block_bytes: u64,
    /// Minimum duration of a fetch.
    pub fetch_min: Time,
    /// Maximum duration of a fetch.
    pub fetch_max: Time,
}

/// Blocks of a volume that were fetched so far.
#[derive(Clone, Debug)]
pub(super) struct TouchedBlocks {
    fetch: FirstTouch,
    words: Vec<u64>,
}

impl TouchedBlocks {
    pub(super) fn new(fetch: FirstTouch, volume_bytes: u64) -> Self {
        let blocks = volume_bytes.div_ceil(fetch.block_bytes);
        Self {
            fetch,
            words: vec![0; blocks.div_ceil(64) as usize],
        }
    }

    /// Marks the blocks of a request as fetched, and returns the additional time of a read that
    /// finds one missing. Blocks of one request are fetched in parallel. A write fetches nothing,
    /// because clouds complete writes without the block.
    pub(super) fn touch(
        &mut self,
        (start_byte, bytes): (u64, u64),
        is_read: bool,
        random: &mut RandomStream,
    ) -> Time {
        let mut longest = Time::ZERO;
        let first = start_byte / self.fetch.block_bytes;
        let last = (start_byte + bytes.max(1) - 1) / self.fetch.block_bytes;
        for block in first..=last {
            let (word, bit) = ((block / 64) as usize, 1 << (block % 64));
            let is_new = self.words[word] & bit == 0;
            self.words[word] |= bit;
            if is_new && is_read {
                let spread = self.fetch.fetch_max - self.fetch.fetch_min;
                let time = self.fetch.fetch_min + random.draw_within(spread);
                longest = longest.max(time);
            }
        }
        longest
    }
}
