//! Verification of a worker's blocks: they are filled with known contents when written, read back
//! and compared.

pub(crate) mod calls;
mod comparison;
pub(crate) mod copies;
pub(crate) mod dump;
mod generation;
mod record;
pub(crate) mod state;
pub(crate) mod survey;

use crate::load::{YesNo, new_field};
use crate::parameter::{self, ParameterValue};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_fio::verify::{BlockLayout, BlockWrite, Checksum, SeedSequence};
use diskperf_system::{File, IoOperation, ReadBackProgress, Submission, System};
use diskperf_timeline::VerifiedBlocks;
use dump::DumpFiles;
use generation::OtherRunExpectation;
use record::{BlockPosition, BlockRecord, BlockRecords, RecordedWrite};
use state::WriteProgress;
use std::cell::RefCell;

/// Maximum number of differences that are listed individually. Further differences are only
/// counted.
const LISTED_DIFFERENCES_MAX: usize = 20;

/// Name of the parameter that turns verification on.
pub(crate) const VERIFY_PARAMETER: &str = "verify";

/// Creates the parameter that turns verification on.
pub(crate) fn verify_field(verify: &mut YesNo) -> parameter::ParameterField<'_> {
    new_field(
        VERIFY_PARAMETER,
        "read-back and comparison of all written data at the end",
        ParameterValue::NamedChoice(verify),
    )
}

thread_local! {
    static READ_BACK_HOOK: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// Registers a test function that this thread calls whenever a worker begins to read back. The test
/// can then plant damage for the verification to find.
#[doc(hidden)]
pub fn set_read_back_hook(plant: Option<Box<dyn FnMut()>>) {
    READ_BACK_HOOK.set(plant);
}

pub(crate) fn run_read_back_hook() {
    READ_BACK_HOOK.with_borrow_mut(|plant| {
        if let Some(plant) = plant {
            plant();
        }
    });
}

/// Progress display of the blocks that are read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadBackDisplay {
    blocks_total: u64,
}

impl ReadBackDisplay {
    pub(crate) fn show_remaining(self, system: &System, verifier: &Verifier) {
        system.publish_read_back_progress(ReadBackProgress {
            verified_blocks: self.blocks_total.saturating_sub(verifier.blocks_to_read()),
            blocks_to_verify: self.blocks_total,
        });
    }
}

/// Verifier of a worker's blocks.
pub(crate) struct Verifier {
    verification_rules: VerificationRules,
    /// Layout of blocks that are too short for a header.
    short_block_layout: BlockLayout,
    write_seeds: SeedSequence,
    write_count: u64,
    block_records: BlockRecords,
    /// Block in the buffer of each slot, by slot number. The list ends at the highest slot used so
    /// far.
    blocks_by_slot: Vec<Option<SlotBlock>>,
    /// Knowledge of the other run that wrote the blocks. `None` if this run wrote them.
    other_run_expectation: Option<OtherRunExpectation>,
    /// Progress of the writes, for the state from which another run verifies them.
    write_progress: WriteProgress,
    verified_blocks_so_far: VerifiedBlocks,
    differences: Vec<String>,
}

/// Block in the buffer of a slot in use.
#[derive(Clone, Copy, Debug)]
struct SlotBlock {
    block_place: BlockPosition,
    bytes: u32,
    slot_purpose: SlotPurpose,
    /// Leading bytes of the block that a short write has already written. They are no longer in the
    /// buffer.
    written_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum SlotPurpose {
    /// Write of the block, with the number of the write.
    WrittenBlock(u64),
    /// Comparison of the block with the record of its write.
    CompareWithRecord(BlockRecord),
    /// Check of the block against its own header.
    CheckHeaderOnly,
}

/// Rules by which a worker's blocks are verified.
pub(crate) struct VerificationRules {
    pub(crate) block_layout: BlockLayout,
    /// Whether the first difference ends the program.
    pub(crate) are_differences_fatal: bool,
    /// Whether differences are only counted and are not errors (`continue_on_error=verify`).
    pub(crate) only_counts_differences: bool,
    /// Whether all reads are checked, because the program writes nothing.
    pub(crate) checks_reads: bool,
    /// Whether a trimmed block must read as zeroes.
    pub(crate) trims_to_zero: bool,
    /// Whether only this worker writes to its blocks, so that it knows the latest write of each
    /// block.
    pub(crate) is_only_writer: bool,
    /// Whether the order of the writes is random, so that other programs have other orders.
    pub(crate) has_random_offsets: bool,
    /// Number of the worker, from 1, from which its seeds follow.
    pub(crate) thread_number: u32,
    /// Seed from which the seeds of the blocks are drawn.
    pub(crate) job_randseed: u64,
    /// Destination of dumps of differing blocks. `None` if they are not dumped.
    pub(crate) dump_files: Option<DumpFiles>,
}

/// Written block that is to be read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnreadBlock {
    block_place: BlockPosition,
    block_record: BlockRecord,
}

impl UnreadBlock {
    /// Returns the index of the block's file among the worker's files.
    pub(crate) fn file(&self) -> usize {
        self.block_place.file_index
    }

    /// Returns the block's offset in its file, in bytes.
    pub(crate) fn offset_bytes(&self) -> u64 {
        self.block_place.offset_bytes
    }

    /// Returns the block's length in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.block_record.bytes
    }

    /// Returns the read request for the block, in an open file.
    pub(crate) fn read_request(&self, file: File) -> Submission {
        Submission {
            operation: IoOperation::Read,
            file,
            offset_bytes: self.block_place.offset_bytes,
            bytes: self.block_record.bytes,
            slot: 0,
            intended_start: None,
        }
    }
}

impl Verifier {
    /// Creates the verifier of a worker.
    pub(crate) fn new(plan: VerificationRules) -> Self {
        Self {
            write_seeds: SeedSequence::new(plan.job_randseed, plan.thread_number),
            write_count: 0,
            block_records: BlockRecords::default(),
            blocks_by_slot: Vec::new(),
            other_run_expectation: None,
            write_progress: WriteProgress::default(),
            verified_blocks_so_far: VerifiedBlocks {
                verification_kind: plan.block_layout.kind().name().to_owned(),
                ..VerifiedBlocks::default()
            },
            differences: Vec::new(),
            short_block_layout: BlockLayout::for_seeded_data(),
            verification_rules: plan,
        }
    }

    /// Creates the verifier of a worker for a program of this crate. Its seeds differ from those of
    /// other repetitions.
    pub(crate) fn for_program(system: &System, worker: &Worker) -> Self {
        Self::new(VerificationRules {
            block_layout: BlockLayout::for_checksum(Checksum::Crc32c),
            are_differences_fatal: false,
            only_counts_differences: false,
            checks_reads: false,
            trims_to_zero: false,
            is_only_writer: true,
            has_random_offsets: false,
            thread_number: worker.worker_index + 1,
            job_randseed: worker.random_seed ^ system.now().0,
            dump_files: None,
        })
    }

    fn layout_for_size(&self, bytes: u32) -> &BlockLayout {
        match self.verification_rules.block_layout.header_bytes() > bytes as usize {
            true => &self.short_block_layout,
            false => &self.verification_rules.block_layout,
        }
    }

    /// Returns the number of blocks that were written and not read back.
    pub(crate) fn unread_count(&self) -> u64 {
        self.block_records.block_count()
    }

    /// Begins to read back, and shows the number of blocks to read.
    pub(crate) fn begin_read_back(&self, system: &System) -> ReadBackDisplay {
        run_read_back_hook();
        self.show_blocks_to_read(system)
    }

    pub(crate) fn show_blocks_to_read(&self, system: &System) -> ReadBackDisplay {
        let shown = ReadBackDisplay {
            blocks_total: self.blocks_to_read(),
        };
        shown.show_remaining(system, self);
        shown
    }

    /// Returns the number of blocks to read, including the places that a search reads.
    fn blocks_to_read(&self) -> u64 {
        self.block_records.block_count() + self.units_to_search()
    }

    /// Restarts the seeds, as fio does for each pass of a repeatable job.
    pub(crate) fn restart_seeds(&mut self) {
        self.write_seeds = SeedSequence::new(
            self.verification_rules.job_randseed,
            self.verification_rules.thread_number,
        );
    }

    /// Prepares the buffer of a request that has a slot and is not submitted. `file` is the index
    /// of the request's file among the worker's files.
    pub(crate) fn prepare_write(&mut self, system: &mut System, request: Submission, file: usize) {
        let place = BlockPosition {
            file_index: file,
            offset_bytes: request.offset_bytes,
        };
        let purpose = match request.operation {
            IoOperation::Write => {
                let time_ns = Some(system.now().0);
                let write = self.record_write(place, request.bytes, time_ns);
                let number = self.write_count - 1;
                let buffer = slot_buffer(system, request.slot, request.bytes);
                self.layout_for_size(request.bytes)
                    .fill_block(buffer, write);
                SlotPurpose::WrittenBlock(number)
            }
            IoOperation::Read if self.verification_rules.checks_reads => {
                SlotPurpose::CheckHeaderOnly
            }
            IoOperation::Read
            | IoOperation::Fsync
            | IoOperation::Fdatasync
            | IoOperation::SyncRange(_)
            | IoOperation::DiscardRange => return,
        };
        self.record_slot_block(request.slot, (place, request.bytes), purpose);
    }

    /// Records the block that a slot's buffer holds.
    fn record_slot_block(
        &mut self,
        slot: u32,
        (place, bytes): (BlockPosition, u32),
        purpose: SlotPurpose,
    ) {
        let slot = slot as usize;
        if self.blocks_by_slot.len() <= slot {
            self.blocks_by_slot.resize(slot + 1, None);
        }
        self.blocks_by_slot[slot] = Some(SlotBlock {
            block_place: place,
            bytes,
            slot_purpose: purpose,
            written_bytes: 0,
        });
    }

    /// Marks a block as trimmed. Returns whether it is a block that was written and not read back.
    pub(crate) fn record_trim(&mut self, file: usize, (offset_bytes, bytes): (u64, u32)) -> bool {
        let place = BlockPosition {
            file_index: file,
            offset_bytes,
        };
        self.block_records.record_trim(place, bytes)
    }

    /// Draws the seed of the next write and records the write.
    fn record_write(
        &mut self,
        place: BlockPosition,
        bytes: u32,
        time_ns: Option<u64>,
    ) -> BlockWrite {
        let seed = match self.verification_rules.block_layout.is_seeded() {
            true => self.write_seeds.next_seed(),
            false => 0,
        };
        let number = self.write_count;
        self.write_count += 1;
        self.verified_blocks_so_far.written_bytes += u64::from(bytes);
        let write = RecordedWrite {
            bytes,
            write_seed: seed,
            write_number: number,
            time_ns,
        };
        self.block_records.add_write(place, write);
        self.write_progress.record_issue(place);
        BlockWrite {
            offset_bytes: place.offset_bytes,
            seed,
            time_ns: time_ns.unwrap_or(0),
            worker_number: self.verification_rules.thread_number as u16,
            write_number: number as u16,
        }
    }

    fn complete_last_write(&mut self, place: BlockPosition) {
        self.block_records
            .complete_write(place, self.write_count - 1);
        self.write_progress.record_completion(self.write_count - 1);
    }

    /// Records a write that another run of the job issued.
    pub(crate) fn record_other_write(&mut self, file: usize, (offset_bytes, bytes): (u64, u32)) {
        let place = BlockPosition {
            file_index: file,
            offset_bytes,
        };
        self.record_write(place, bytes, None);
        self.complete_last_write(place);
        self.verified_blocks_so_far.written_bytes = 0;
    }

    /// Moves the remainders of short writes to the start of their buffers, from which they are
    /// written.
    pub(crate) fn move_remainders(&mut self, system: &mut System, waiting: &[Submission]) {
        let is_write = |one: &&Submission| one.operation == IoOperation::Write;
        for rest in waiting.iter().filter(is_write) {
            let Some(Some(block)) = self.blocks_by_slot.get_mut(rest.slot as usize) else {
                continue;
            };
            let taken_bytes = (rest.offset_bytes - block.block_place.offset_bytes) as u32;
            if taken_bytes > block.written_bytes {
                let from = (taken_bytes - block.written_bytes) as usize;
                slot_buffer(system, rest.slot, block.bytes).copy_within(from.., 0);
                block.written_bytes = taken_bytes;
            }
        }
    }

    /// Takes the next block to be read back.
    pub(crate) fn next_unread(&mut self) -> Option<UnreadBlock> {
        match self.block_records.take_first_block() {
            Some((place, record)) => Some(UnreadBlock {
                block_place: place,
                block_record: record,
            }),
            None => self.take_next_searched(),
        }
    }

    /// Marks a slot's read as a read-back, so that its data is compared when the read is complete.
    pub(crate) fn expect_read_back(&mut self, slot: u32, unread: UnreadBlock) {
        let UnreadBlock {
            block_place: place,
            block_record: record,
        } = unread;
        self.record_slot_block(
            slot,
            (place, record.bytes),
            SlotPurpose::CompareWithRecord(record),
        );
    }

    /// Processes a slot whose request is complete: compares the block of a read, or marks a write
    /// as complete. `path` returns the path of a file by its index.
    ///
    /// # Errors
    ///
    /// Fails at the first difference if differences are fatal.
    pub(crate) fn complete_slot(
        &mut self,
        system: &mut System,
        slot: u32,
        path: impl Fn(usize) -> String,
    ) -> Result<(), ProgramError> {
        let held = self.blocks_by_slot.get_mut(slot as usize);
        let Some(block) = held.and_then(Option::take) else {
            return Ok(());
        };
        if let SlotPurpose::WrittenBlock(number) = block.slot_purpose {
            self.block_records.complete_write(block.block_place, number);
            self.write_progress.record_completion(number);
            return Ok(());
        }
        let bytes = slot_buffer(system, slot, block.bytes);
        self.compare_and_count(block, bytes, path)
    }

    /// Discards the block of a slot whose request failed with an ignored error, since the contents
    /// of the block are unknown.
    pub(crate) fn discard_failed_slot(&mut self, slot: u32) {
        let held = self.blocks_by_slot.get_mut(slot as usize);
        if let Some(SlotBlock {
            block_place: place,
            slot_purpose: SlotPurpose::WrittenBlock(number),
            ..
        }) = held.and_then(Option::take)
        {
            self.block_records.remove_failed(place, number);
        }
    }

    /// Counts a difference and lists it, or fails if differences are fatal.
    fn add_difference(&mut self, text: String) -> Result<(), ProgramError> {
        self.verified_blocks_so_far.mismatch_count += 1;
        if self.verification_rules.are_differences_fatal
            && !self.verification_rules.only_counts_differences
        {
            let kind = &self.verified_blocks_so_far.verification_kind;
            return Err(ProgramError::CorruptData(format!("{kind}: {text}")));
        }
        if self.differences.len() < LISTED_DIFFERENCES_MAX {
            self.differences.push(text);
        }
        Ok(())
    }

    /// Evaluates the verification after all reads.
    ///
    /// # Errors
    ///
    /// Returns all differences. The first of them are listed individually.
    pub(crate) fn evaluate_differences(&mut self) -> Result<(), ProgramError> {
        self.judge_foreign_seeds()?;
        self.finish_search()?;
        match self.verification_rules.only_counts_differences {
            true => Ok(()),
            false => evaluate_counts(&self.verified_blocks_so_far, &self.differences),
        }
    }

    /// Returns the counts of blocks so far, whether or not blocks differ and whatever ended the
    /// program.
    pub(crate) fn take_verified(&self) -> VerifiedBlocks {
        VerifiedBlocks {
            unread_block_count: self.verified_blocks_so_far.unread_block_count
                + self.block_records.block_count(),
            ..self.verified_blocks_so_far.clone()
        }
    }
}

/// Returns an error if any blocks differ. It lists the first differences individually.
fn evaluate_counts(verified: &VerifiedBlocks, differences: &[String]) -> Result<(), ProgramError> {
    if verified.mismatch_count == 0 {
        return Ok(());
    }
    let more = match verified.mismatch_count - differences.len() as u64 {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    Err(ProgramError::CorruptData(format!(
        "{}: {} of {} blocks differ from what was written:\n  {}{more}",
        verified.verification_kind,
        verified.mismatch_count,
        verified.block_count,
        differences.join("\n  ")
    )))
}

/// Returns the part of a slot's buffer that a block takes.
fn slot_buffer(system: &mut System, slot: u32, bytes: u32) -> &mut [u8] {
    let buffer = system.ring_buffer(slot);
    let buffer = buffer.expect("the ring was opened with contents");
    &mut buffer[..bytes as usize]
}
