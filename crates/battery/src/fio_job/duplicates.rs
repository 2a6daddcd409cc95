//! Write data that repeats in part, for `dedupe_percentage` of fio.

use crate::random::RandomDraws;
use diskperf_fio::JobDefinition;
use diskperf_fio::job::DedupeMode;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// Random stream that decides which writes repeat data, and which data.
const DUPLICATE_STREAM: u128 = 16;
const UNIQUE_DATA_STREAM: u128 = 17;

/// Length of the units of write data. A part of each unit is zeroes (`buffer_compress_percentage`).
const DEDUPLICATION_UNIT_BYTES: usize = 4096;

/// Chooses the data of each write as fio does: new data, or a copy of another write's data.
#[derive(Clone, Debug)]
pub(super) struct Duplicates {
    duplicate_percent: u64,
    dedupe_mode: DedupeMode,
    /// Number of contents from which duplicates are drawn in the mode with a working set.
    working_set_units: u64,
    compressible_percent: usize,
    /// Number of distinct write contents so far.
    unique_unit_count: u64,
    seed: u64,
    random: RandomDraws,
}

impl Duplicates {
    /// Creates the duplicate source of a clone, or returns `None` if its job asks for no
    /// duplicates.
    pub(super) fn new(job: &JobDefinition, size_bytes: u64, seed: u64) -> Option<Self> {
        let data = &job.data;
        let share_bytes = size_bytes / 100 * u64::from(data.working_set_percent);
        (data.duplicate_percent > 0).then(|| Self {
            duplicate_percent: data.duplicate_percent.into(),
            dedupe_mode: data.dedupe_mode,
            working_set_units: (share_bytes / job.block_bytes_min()).max(1),
            compressible_percent: match data.is_zeroed {
                true => 100,
                false => data.compressible_percent.into(),
            },
            unique_unit_count: 0,
            seed,
            random: RandomDraws::new(seed, DUPLICATE_STREAM),
        })
    }

    /// Fills the buffer of the next write with new or repeated data.
    pub(super) fn fill_buffer(&mut self, buffer: &mut [u8]) {
        let content = self.next_content_number();
        let mut random = Pcg64::new(
            u128::from(self.seed) << 64 | u128::from(content),
            UNIQUE_DATA_STREAM,
        );
        let filled = DEDUPLICATION_UNIT_BYTES * (100 - self.compressible_percent) / 100;
        for unit in buffer.chunks_mut(DEDUPLICATION_UNIT_BYTES) {
            let (data, zeroes) = unit.split_at_mut(filled.min(unit.len()));
            random.fill_bytes(data);
            zeroes.fill(0);
        }
    }

    /// Returns the index of the next write's content. fio places a repetition before the write that
    /// it repeats. The order makes no difference.
    fn next_content_number(&mut self) -> u64 {
        if self.duplicate_percent == 100 {
            return 0;
        }
        if self.random.draw_below(100) < self.duplicate_percent {
            return match self.dedupe_mode {
                DedupeMode::RepeatPrevious => self.unique_unit_count,
                DedupeMode::WorkingSet => self.random.draw_below(self.working_set_units),
            };
        }
        self.unique_unit_count += 1;
        self.unique_unit_count - 1
    }
}
