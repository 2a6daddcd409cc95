//! Comparison of a block that was read with the data that was written.

use super::record::WriteState;
use super::{LISTED_DIFFERENCES_MAX, SlotBlock, SlotPurpose, Verifier};
use crate::program::ProgramError;
use diskperf_fio::verify::{BlockField, DifferingByte, ExpectedBlock, Mismatch};

/// Outcome of a comparison without a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparisonResult {
    EqualData,
    /// The block was not written, because the other run was interrupted before.
    NeverWritten,
}

impl Verifier {
    /// Compares a block that was read, and counts it.
    pub(super) fn compare_and_count(
        &mut self,
        block: SlotBlock,
        bytes: &mut [u8],
        path: impl Fn(usize) -> String,
    ) -> Result<(), ProgramError> {
        if self.is_searching() {
            return self.compare_searched(block, bytes, path);
        }
        let compared = self.compare_block(block, bytes);
        if compared == Ok(ComparisonResult::NeverWritten) {
            return Ok(());
        }
        self.verified_blocks_so_far.block_count += 1;
        self.verified_blocks_so_far.verified_bytes += u64::from(block.bytes);
        let Err(mismatch) = compared else {
            return Ok(());
        };
        let dumped = self.write_dump(block, bytes);
        let text = format!("{}: {mismatch}{dumped}", path(block.block_place.file_index));
        match &mut self.other_run_expectation {
            Some(other) if mismatch.block_field == BlockField::Seed && !other.has_own_seed => {
                other.foreign_seed_differences.push(text);
                Ok(())
            }
            Some(_) | None => self.add_difference(text),
        }
    }

    /// Writes a differing block to files if dumps are on, and returns a text that names the files.
    pub(super) fn write_dump(&self, block: SlotBlock, bytes: &[u8]) -> String {
        let is_named = self.differences.len() < LISTED_DIFFERENCES_MAX;
        let Some(dump) = self
            .verification_rules
            .dump_files
            .as_ref()
            .filter(|_| is_named)
        else {
            return String::new();
        };
        let mut expected = ExpectedBlock {
            offset_bytes: block.block_place.offset_bytes,
            ..ExpectedBlock::default()
        };
        if let SlotPurpose::CompareWithRecord(record) = block.slot_purpose
            && !self.is_reading_all_units()
        {
            expected.seed = Some(record.write_seed);
            if self.other_run_expectation.is_none() {
                expected.write_number = Some(record.write_number as u16);
            }
        }
        if let Some(other) = &self.other_run_expectation {
            let header = self
                .verification_rules
                .block_layout
                .decode_header(bytes)
                .map(|one| one.header.seed);
            expected.seed = header
                .filter(|seed| other.foreign_seeds.contains(seed))
                .or(expected.seed);
        }
        let layout = self.layout_for_size(block.bytes);
        let restored = layout.restore(bytes, expected);
        let step_bytes = layout.header_interval_bytes(bytes.len());
        let place = (block.block_place.file_index, block.block_place.offset_bytes);
        dump.write_dump_files(place, step_bytes, (&restored, bytes))
    }

    fn compare_block(
        &mut self,
        block: SlotBlock,
        bytes: &mut [u8],
    ) -> Result<ComparisonResult, Mismatch> {
        let mut expected = ExpectedBlock {
            offset_bytes: block.block_place.offset_bytes,
            ..ExpectedBlock::default()
        };
        let SlotPurpose::CompareWithRecord(record) = block.slot_purpose else {
            let checked = self
                .layout_for_size(block.bytes)
                .verify_block(bytes, expected);
            return checked.map(|()| ComparisonResult::EqualData);
        };
        if record.is_trimmed {
            return self
                .compare_trimmed_block(block, bytes)
                .map(|()| ComparisonResult::EqualData);
        }
        let Some(other) = &mut self.other_run_expectation else {
            if self.verification_rules.is_only_writer
                && record.write_state == WriteState::WriteComplete
            {
                expected.seed = Some(record.write_seed);
                expected.write_number = Some(record.write_number as u16);
                expected.time_ns = record.time_ns;
            }
            let checked = self
                .layout_for_size(block.bytes)
                .verify_block(bytes, expected);
            return checked.map(|()| ComparisonResult::EqualData);
        };
        let layout = &self.verification_rules.block_layout;
        let header = layout.decode_header(bytes).map(|decoded| decoded.header);
        // Of the job in another order, too, as fio's of random writes.
        let seed = header.map(|header| header.seed);
        let seed = seed.filter(|seed| other.foreign_seeds.contains(seed));
        if other.write_number_min.is_some() && seed.is_none() {
            return Ok(ComparisonResult::NeverWritten);
        }
        other.own_seed_count += u64::from(seed.is_some());
        layout.verify_block(bytes, ExpectedBlock { seed, ..expected })?;
        other.has_own_seed |= seed.is_some();
        if header.is_some() && seed.is_none() {
            expected.seed = Some(record.write_seed);
            layout.verify_block(bytes, expected)?;
        }
        Ok(ComparisonResult::EqualData)
    }

    /// Compares a trimmed block with zeroes, if trimmed blocks must be zero.
    fn compare_trimmed_block(&self, block: SlotBlock, bytes: &[u8]) -> Result<(), Mismatch> {
        let different = bytes.iter().position(|byte| *byte != 0);
        let Some(at) = different.filter(|_| self.verification_rules.trims_to_zero) else {
            return Ok(());
        };
        let offset_bytes = block.block_place.offset_bytes + at as u64;
        Err(Mismatch {
            block_field: BlockField::Data("trim"),
            offset_bytes,
            expected: "zeroes".to_owned(),
            actual: format!("0x{:02x}", bytes[at]),
            differing_byte: Some(DifferingByte {
                offset_bytes,
                expected: 0,
                actual: bytes[at],
            }),
        })
    }
}
