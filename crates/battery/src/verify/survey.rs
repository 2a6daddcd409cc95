//! Search for the blocks of a run that drew its offsets or sizes in an order of its own. Its blocks
//! and their seeds are unknown until they are read.

use super::record::{BlockPosition, BlockRecord, WriteState};
use super::{LISTED_DIFFERENCES_MAX, SlotBlock, SlotPurpose, UnreadBlock, Verifier};
use crate::program::ProgramError;
use diskperf_fio::verify::{ExpectedBlock, MAGIC, Mismatch};

/// Search for the blocks of a run with an unknown order. The blocks that this program's order would
/// leave are compared first. If more than half of them match, this program wrote all blocks, and
/// the others are differences. Otherwise all units of the files are read, and each header found
/// confirms its data.
pub(crate) struct BlockSearch {
    /// Smallest part of a file with a header of its own, in bytes.
    unit_bytes: u32,
    /// Whether each write covers one unit, so that its data follows from its seed.
    is_unit_one_write: bool,
    file_parts: Vec<FilePart>,
    /// File and unit to read next. `None` until the search reads all units.
    next_unit: Option<(usize, u64)>,
    /// Number of blocks that match this program's order of writes.
    matched_unit_count: u64,
    /// Number of blocks that do not match this program's order of writes.
    differing_unit_count: u64,
    /// First of the blocks that do not match, each with its bytes and a description of the
    /// difference.
    differences: Vec<(SlotBlock, Vec<u8>, String)>,
}

/// Part of a file that the job uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FilePart {
    pub(crate) start_bytes: u64,
    pub(crate) unit_count: u64,
}

impl BlockSearch {
    pub(crate) fn new(unit_bytes: u32, is_one_write: bool, parts: Vec<FilePart>) -> Self {
        Self {
            unit_bytes,
            is_unit_one_write: is_one_write,
            file_parts: parts,
            next_unit: None,
            matched_unit_count: 0,
            differing_unit_count: 0,
            differences: Vec::new(),
        }
    }

    /// Returns the number of units that the search has still to read.
    fn unread_unit_count(&self) -> u64 {
        let Some((file, unit)) = self.next_unit else {
            return 0;
        };
        let parts = self.file_parts.iter().skip(file);
        let units: u64 = parts.map(|part| part.unit_count).sum();
        units.saturating_sub(unit)
    }

    /// Takes the next unit and returns its position. Returns `None` if no unit is left.
    fn take_next_unit(&mut self) -> Option<BlockPosition> {
        let (file, unit) = self.next_unit.as_mut()?;
        while *unit >= self.file_parts.get(*file)?.unit_count {
            (*file, *unit) = (*file + 1, 0);
        }
        let place = BlockPosition {
            file_index: *file,
            offset_bytes: self.file_parts[*file].start_bytes + *unit * u64::from(self.unit_bytes),
        };
        *unit += 1;
        Some(place)
    }
}

impl Verifier {
    fn search_mut(&mut self) -> Option<&mut BlockSearch> {
        self.other_run_expectation.as_mut()?.block_search.as_mut()
    }

    /// Returns the number of units that a search has still to read.
    pub(super) fn units_to_search(&self) -> u64 {
        let other = self.other_run_expectation.as_ref();
        let survey = other.and_then(|other| other.block_search.as_ref());
        survey.map_or(0, BlockSearch::unread_unit_count)
    }

    /// Reports whether a search evaluates the blocks.
    pub(super) fn is_searching(&self) -> bool {
        let other = self.other_run_expectation.as_ref();
        other.is_some_and(|other| other.block_search.is_some())
    }

    /// Reports whether the search reads all units of the files.
    pub(super) fn is_reading_all_units(&self) -> bool {
        let other = self.other_run_expectation.as_ref();
        let survey = other.and_then(|other| other.block_search.as_ref());
        survey.is_some_and(|survey| survey.next_unit.is_some())
    }

    /// Begins to read all units of the files if another program wrote the blocks, and returns
    /// whether it does.
    ///
    /// # Errors
    ///
    /// Fails for blocks that differ from this program's writes if differences are fatal.
    pub(crate) fn begin_unit_search(&mut self) -> Result<bool, ProgramError> {
        let Some(survey) = self.search_mut() else {
            return Ok(false);
        };
        if survey.matched_unit_count > survey.differing_unit_count {
            self.add_search_differences()?;
            return Ok(false);
        }
        survey.next_unit = Some((0, 0));
        (
            self.verified_blocks_so_far.block_count,
            self.verified_blocks_so_far.verified_bytes,
        ) = (0, 0);
        Ok(true)
    }

    /// Takes the next unit of the search.
    pub(super) fn take_next_searched(&mut self) -> Option<UnreadBlock> {
        let survey = self.search_mut()?;
        let place = survey.take_next_unit()?;
        let record = BlockRecord {
            bytes: survey.unit_bytes,
            write_seed: 0,
            write_number: 0,
            time_ns: None,
            write_state: WriteState::WriteComplete,
            is_trimmed: false,
        };
        Some(UnreadBlock {
            block_place: place,
            block_record: record,
        })
    }

    /// Compares a block that a search has read, and counts it.
    pub(super) fn compare_searched(
        &mut self,
        block: SlotBlock,
        bytes: &mut [u8],
        path: impl Fn(usize) -> String,
    ) -> Result<(), ProgramError> {
        let is_of_units = self.is_reading_all_units();
        if is_of_units && !self.is_written(bytes) {
            return Ok(());
        }
        self.verified_blocks_so_far.block_count += 1;
        self.verified_blocks_so_far.verified_bytes += u64::from(block.bytes);
        let checked = match is_of_units {
            true => self.check_unit_header(block, bytes),
            false => self.compare_with_record(block, bytes),
        };
        let Err(mismatch) = checked else {
            return Ok(());
        };
        let place = path(block.block_place.file_index);
        if is_of_units {
            let dumped = self.write_dump(block, bytes);
            return self.add_difference(format!("{place}: {mismatch}{dumped}"));
        }
        let survey = self.search_mut().expect("it searches");
        survey.differing_unit_count += 1;
        if survey.differences.len() < LISTED_DIFFERENCES_MAX {
            let text = format!("{place}: {mismatch}");
            survey.differences.push((block, bytes.to_vec(), text));
        }
        Ok(())
    }

    /// Reports whether a unit was written: it has a header, or, for data without a header, a byte
    /// other than zero.
    fn is_written(&self, bytes: &[u8]) -> bool {
        match self.verification_rules.block_layout.decode_header(bytes) {
            Some(decoded) => decoded.magic == MAGIC,
            None => bytes.iter().any(|byte| *byte != 0),
        }
    }

    fn compare_with_record(&mut self, block: SlotBlock, bytes: &mut [u8]) -> Result<(), Mismatch> {
        let seed = match block.slot_purpose {
            SlotPurpose::CompareWithRecord(record) => Some(record.write_seed),
            SlotPurpose::CheckHeaderOnly | SlotPurpose::WrittenBlock(_) => None,
        };
        let expected = ExpectedBlock {
            offset_bytes: block.block_place.offset_bytes,
            seed,
            ..ExpectedBlock::default()
        };
        self.verification_rules
            .block_layout
            .verify_block(bytes, expected)?;
        let survey = self.search_mut().expect("it searches");
        survey.matched_unit_count += 1;
        Ok(())
    }

    fn check_unit_header(&mut self, block: SlotBlock, bytes: &mut [u8]) -> Result<(), Mismatch> {
        let layout = &self.verification_rules.block_layout;
        let other = self.other_run_expectation.as_mut().expect("it searches");
        other.own_seed_count += 1;
        let is_one_write = other
            .block_search
            .as_ref()
            .is_some_and(|one| one.is_unit_one_write);
        let seed = layout
            .decode_header(bytes)
            .map(|decoded| decoded.header.seed);
        let seed = seed.filter(|seed| is_one_write && other.foreign_seeds.contains(seed));
        let expected = ExpectedBlock {
            offset_bytes: block.block_place.offset_bytes,
            seed,
            ..ExpectedBlock::default()
        };
        layout.verify_block(bytes, expected)
    }

    /// Evaluates the rest of the search after all reads, or when the job ends before.
    pub(super) fn finish_search(&mut self) -> Result<(), ProgramError> {
        let found = self
            .other_run_expectation
            .as_ref()
            .map_or(0, |other| other.own_seed_count);
        let Some(survey) = self.search_mut() else {
            return Ok(());
        };
        let differing = survey.differing_unit_count;
        match survey.next_unit {
            // Something must have been written.
            Some(_) if found == 0 && survey.unread_unit_count() == 0 => {
                self.verified_blocks_so_far.block_count = differing;
                self.add_search_differences()
            }
            Some(_) => {
                self.verified_blocks_so_far.unread_block_count += survey.unread_unit_count();
                Ok(())
            }
            None if survey.matched_unit_count > differing => self.add_search_differences(),
            // The job ended before it is known who wrote the blocks.
            None => {
                self.verified_blocks_so_far.unread_block_count +=
                    self.verified_blocks_so_far.block_count;
                (
                    self.verified_blocks_so_far.block_count,
                    self.verified_blocks_so_far.verified_bytes,
                ) = (0, 0);
                Ok(())
            }
        }
    }

    /// Counts and lists the blocks that do not match this program's order of writes.
    fn add_search_differences(&mut self) -> Result<(), ProgramError> {
        let Some(survey) = self.search_mut() else {
            return Ok(());
        };
        let differences = std::mem::take(&mut survey.differences);
        let unnamed = std::mem::take(&mut survey.differing_unit_count) - differences.len() as u64;
        for (block, bytes, text) in differences {
            let dumped = self.write_dump(block, &bytes);
            self.add_difference(text + &dumped)?;
        }
        self.verified_blocks_so_far.mismatch_count += unnamed;
        Ok(())
    }
}
