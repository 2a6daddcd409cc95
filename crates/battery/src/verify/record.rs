//! Record of the blocks that a worker has written and not read back.

use std::collections::BTreeMap;

/// Position of a block: file and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockPlace {
    /// Index of the file among the worker's files.
    pub(super) file_index: usize,
    pub(super) offset_bytes: u64,
}

/// Latest write of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRecord {
    pub(super) bytes: u32,
    pub(super) seed: u64,
    /// Number of writes that were issued before this one.
    pub(super) write_number: u64,
    /// Time of issue in nanoseconds, or `None` for a write of another run.
    pub(super) time_ns: Option<u64>,
    pub(super) state: WriteState,
    /// Whether the block was trimmed after the write.
    pub(super) is_trimmed: bool,
}

/// Write to be added to the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedWrite {
    pub(super) bytes: u32,
    pub(super) seed: u64,
    pub(super) write_number: u64,
    pub(super) time_ns: Option<u64>,
}

/// State of the latest write of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteState {
    /// The write is in flight, and no earlier write of the block is.
    InFlight,
    /// The write was issued while an earlier write of the same block was in flight. Either may take
    /// effect last.
    RacedInFlight,
    /// The write is complete.
    Complete,
}

/// Records of blocks, in the order of files and offsets. As in fio, the latest of overlapping
/// writes counts.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockRecords {
    blocks: BTreeMap<BlockPlace, BlockRecord>,
}

impl BlockRecords {
    /// Adds a write that is being issued, in place of the writes that it overlaps.
    pub(super) fn add_write(&mut self, place: BlockPlace, write: RecordedWrite) {
        let RecordedWrite {
            bytes,
            seed,
            write_number: number,
            time_ns,
        } = write;
        let end_bytes = place.offset_bytes + u64::from(bytes);
        let mut state = WriteState::InFlight;
        let mut is_torn = false;
        while let Some((other_place, other)) = self.last_before(place.file_index, end_bytes) {
            let other_end_bytes = other_place.offset_bytes + u64::from(other.bytes);
            if other_end_bytes <= place.offset_bytes {
                break;
            }
            self.blocks.remove(&other_place);
            if other.state != WriteState::Complete {
                state = WriteState::RacedInFlight;
                is_torn |= (other_place, other.bytes) != (place, bytes);
            }
        }
        let record = BlockRecord {
            bytes,
            seed,
            write_number: number,
            time_ns,
            state,
            is_trimmed: false,
        };
        // Of two writes in flight that overlap in part, no block of either may be left.
        if !is_torn {
            self.blocks.insert(place, record);
        }
    }

    fn last_before(&self, file: usize, end_bytes: u64) -> Option<(BlockPlace, BlockRecord)> {
        let place = |offset_bytes| BlockPlace {
            file_index: file,
            offset_bytes,
        };
        let mut before = self.blocks.range(place(0)..place(end_bytes));
        before.next_back().map(|(place, record)| (*place, *record))
    }

    /// Marks a write as complete.
    pub(super) fn complete_write(&mut self, place: BlockPlace, number: u64) {
        if let Some(record) = self.blocks.get_mut(&place)
            && (record.write_number, record.state) == (number, WriteState::InFlight)
        {
            record.state = WriteState::Complete;
        }
    }

    /// Marks a block as trimmed, and returns whether it is on record.
    pub(super) fn record_trim(&mut self, place: BlockPlace, bytes: u32) -> bool {
        let record = self.blocks.get_mut(&place);
        let Some(record) = record.filter(|record| record.bytes == bytes) else {
            return false;
        };
        record.is_trimmed = true;
        true
    }

    /// Removes a block whose latest write failed.
    pub(super) fn remove_failed(&mut self, place: BlockPlace, number: u64) {
        let latest = self.blocks.get(&place).map(|record| record.write_number);
        if latest == Some(number) {
            self.blocks.remove(&place);
        }
    }

    /// Removes and returns the first block of the record.
    pub(super) fn take_first(&mut self) -> Option<(BlockPlace, BlockRecord)> {
        self.blocks.pop_first()
    }

    pub(super) fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn seeds(&self) -> impl Iterator<Item = u64> {
        self.blocks.values().map(|record| record.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset_bytes: u64) -> BlockPlace {
        BlockPlace {
            file_index: 0,
            offset_bytes,
        }
    }

    fn write(bytes: u32, number: u64) -> RecordedWrite {
        RecordedWrite {
            bytes,
            seed: 1,
            write_number: number,
            time_ns: None,
        }
    }

    fn left(records: &mut BlockRecords) -> Vec<(u64, u64, WriteState)> {
        let taken = std::iter::from_fn(|| records.take_first());
        let of_block = |(place, record): (BlockPlace, BlockRecord)| {
            (place.offset_bytes, record.write_number, record.state)
        };
        taken.map(of_block).collect()
    }

    #[test]
    fn the_latest_of_overlapping_writes_counts() {
        let mut records = BlockRecords::default();
        for (number, (offset, bytes)) in [(0, 8), (8, 8), (16, 8), (4, 8), (16, 8)]
            .iter()
            .enumerate()
        {
            records.add_write(place(*offset), write(*bytes, number as u64));
            records.complete_write(place(*offset), number as u64);
        }
        let complete = WriteState::Complete;
        assert_eq!(left(&mut records), [(4, 3, complete), (16, 4, complete)]);
    }

    #[test]
    fn writes_of_a_block_that_is_in_flight_are_raced_until_it_is_written_alone() {
        let mut records = BlockRecords::default();
        records.add_write(place(0), write(8, 0));
        records.add_write(place(0), write(8, 1));
        records.complete_write(place(0), 0);
        records.complete_write(place(0), 1);
        assert_eq!(left(&mut records), [(0, 1, WriteState::RacedInFlight)]);
        records.add_write(place(0), write(8, 2));
        // Half of one may lie over half of the other.
        records.add_write(place(4), write(8, 3));
        assert_eq!(left(&mut records), []);
    }

    #[test]
    fn files_are_apart() {
        let mut records = BlockRecords::default();
        for file in [1, 0] {
            let place = BlockPlace {
                file_index: file,
                offset_bytes: 0,
            };
            records.add_write(place, write(8, file as u64));
        }
        assert_eq!(records.block_count(), 2);
    }
}
