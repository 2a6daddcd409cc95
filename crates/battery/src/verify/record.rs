//! Record of the blocks that a worker has written and not read back.

use std::collections::BTreeMap;

/// Position of a block: file and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockPosition {
    /// Index of the file among the worker's files.
    pub(super) file_index: usize,
    pub(super) offset_bytes: u64,
}

/// Latest write of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRecord {
    pub(super) bytes: u32,
    pub(super) write_seed: u64,
    /// Number of writes that were issued before this one.
    pub(super) write_number: u64,
    /// Time of issue in nanoseconds, or `None` for a write of another run.
    pub(super) time_ns: Option<u64>,
    pub(super) write_state: WriteState,
    /// Whether the block was trimmed after the write.
    pub(super) is_trimmed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordedWrite {
    pub(super) bytes: u32,
    pub(super) write_seed: u64,
    pub(super) write_number: u64,
    pub(super) time_ns: Option<u64>,
}

/// State of the latest write of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteState {
    /// The write is in flight, and no earlier write of the block is.
    WriteInFlight,
    /// The write was issued while an earlier write of the same block was in flight. Either may take
    /// effect last.
    RacedWriteInFlight,
    WriteComplete,
}

/// Records of blocks, in the order of files and offsets. As in fio, the latest of overlapping
/// writes counts.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockRecords {
    record_by_position: BTreeMap<BlockPosition, BlockRecord>,
}

impl BlockRecords {
    /// Adds a write that is being issued, in place of the writes that it overlaps.
    pub(super) fn add_write(&mut self, place: BlockPosition, write: RecordedWrite) {
        let RecordedWrite {
            bytes,
            write_seed: seed,
            write_number: number,
            time_ns,
        } = write;
        let end_bytes = place.offset_bytes + u64::from(bytes);
        let mut state = WriteState::WriteInFlight;
        let mut is_torn = false;
        while let Some((other_place, other)) = self.last_before(place.file_index, end_bytes) {
            let other_end_bytes = other_place.offset_bytes + u64::from(other.bytes);
            if other_end_bytes <= place.offset_bytes {
                break;
            }
            self.record_by_position.remove(&other_place);
            if other.write_state != WriteState::WriteComplete {
                state = WriteState::RacedWriteInFlight;
                is_torn |= (other_place, other.bytes) != (place, bytes);
            }
        }
        let record = BlockRecord {
            bytes,
            write_seed: seed,
            write_number: number,
            time_ns,
            write_state: state,
            is_trimmed: false,
        };
        // Of two writes in flight that overlap in part, no block of either may be left.
        if !is_torn {
            self.record_by_position.insert(place, record);
        }
    }

    fn last_before(&self, file: usize, end_bytes: u64) -> Option<(BlockPosition, BlockRecord)> {
        let place = |offset_bytes| BlockPosition {
            file_index: file,
            offset_bytes,
        };
        let mut before = self.record_by_position.range(place(0)..place(end_bytes));
        before.next_back().map(|(place, record)| (*place, *record))
    }

    pub(super) fn complete_write(&mut self, place: BlockPosition, number: u64) {
        if let Some(record) = self.record_by_position.get_mut(&place)
            && (record.write_number, record.write_state) == (number, WriteState::WriteInFlight)
        {
            record.write_state = WriteState::WriteComplete;
        }
    }

    /// Marks a block as trimmed, and returns whether it is on record.
    pub(super) fn record_trim(&mut self, place: BlockPosition, bytes: u32) -> bool {
        let record = self.record_by_position.get_mut(&place);
        let Some(record) = record.filter(|record| record.bytes == bytes) else {
            return false;
        };
        record.is_trimmed = true;
        true
    }

    /// Removes a block whose latest write failed.
    pub(super) fn remove_failed(&mut self, place: BlockPosition, number: u64) {
        let latest = self
            .record_by_position
            .get(&place)
            .map(|record| record.write_number);
        if latest == Some(number) {
            self.record_by_position.remove(&place);
        }
    }

    /// Removes and returns the first block of the record.
    pub(super) fn take_first_block(&mut self) -> Option<(BlockPosition, BlockRecord)> {
        self.record_by_position.pop_first()
    }

    pub(super) fn block_count(&self) -> u64 {
        self.record_by_position.len() as u64
    }

    pub(super) fn iter_seeds(&self) -> impl Iterator<Item = u64> {
        self.record_by_position
            .values()
            .map(|record| record.write_seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(offset_bytes: u64) -> BlockPosition {
        BlockPosition {
            file_index: 0,
            offset_bytes,
        }
    }

    fn write(bytes: u32, number: u64) -> RecordedWrite {
        RecordedWrite {
            bytes,
            write_seed: 1,
            write_number: number,
            time_ns: None,
        }
    }

    fn left(records: &mut BlockRecords) -> Vec<(u64, u64, WriteState)> {
        let taken = std::iter::from_fn(|| records.take_first_block());
        let of_block = |(place, record): (BlockPosition, BlockRecord)| {
            (place.offset_bytes, record.write_number, record.write_state)
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
        let complete = WriteState::WriteComplete;
        assert_eq!(left(&mut records), [(4, 3, complete), (16, 4, complete)]);
    }

    #[test]
    fn writes_of_a_block_that_is_in_flight_are_raced_until_it_is_written_alone() {
        let mut records = BlockRecords::default();
        records.add_write(place(0), write(8, 0));
        records.add_write(place(0), write(8, 1));
        records.complete_write(place(0), 0);
        records.complete_write(place(0), 1);
        assert_eq!(left(&mut records), [(0, 1, WriteState::RacedWriteInFlight)]);
        records.add_write(place(0), write(8, 2));
        // Half of one may lie over half of the other.
        records.add_write(place(4), write(8, 3));
        assert_eq!(left(&mut records), []);
    }

    #[test]
    fn files_are_apart() {
        let mut records = BlockRecords::default();
        for file in [1, 0] {
            let place = BlockPosition {
                file_index: file,
                offset_bytes: 0,
            };
            records.add_write(place, write(8, file as u64));
        }
        assert_eq!(records.block_count(), 2);
    }
}
