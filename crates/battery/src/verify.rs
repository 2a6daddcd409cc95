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

use crate::load::{YesNo, field};
use crate::parameter::{self, Value};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_fio::verify::{BlockLayout, BlockWrite, Checksum, Seeds};
use diskperf_system::{File, Operation, ReadBackProgress, Submission, System};
use diskperf_timeline::Verified;
use dump::Dump;
use generation::OtherRun;
use record::{BlockPlace, BlockRecord, BlockRecords, RecordedWrite};
use state::WriteProgress;
use std::cell::RefCell;

/// Maximum number of differences that are listed individually. Further differences are only
/// counted.
const NAMED_MAX: usize = 20;

/// Name of the parameter that turns verification on.
pub(crate) const VERIFY: &str = "verify";

/// Creates the parameter that turns verification on.
pub(crate) fn verify_field(verify: &mut YesNo) -> parameter::Field<'_> {
    field(
        VERIFY,
        "read all that was written back at the end, and compare it",
        Value::Choice(verify),
    )
}

thread_local! {
    static BEFORE_READ_BACK: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
}

/// Registers a test function that this thread calls whenever a worker begins to read back. The test
/// can then plant damage for the verification to find.
#[doc(hidden)]
pub fn before_read_back(plant: Option<Box<dyn FnMut()>>) {
    BEFORE_READ_BACK.set(plant);
}

pub(crate) fn begin_read_back() {
    BEFORE_READ_BACK.with_borrow_mut(|plant| {
        if let Some(plant) = plant {
            plant();
        }
    });
}

/// Progress display of the blocks that are read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownReadBack {
    blocks_total: u64,
}

impl ShownReadBack {
    /// Shows the number of blocks read so far.
    pub(crate) fn show(self, system: &System, verifier: &Verifier) {
        system.show_read_back(ReadBackProgress {
            blocks: self.blocks_total.saturating_sub(verifier.blocks_to_read()),
            blocks_total: self.blocks_total,
        });
    }
}

/// Verifier of a worker's blocks.
pub(crate) struct Verifier {
    plan: Plan,
    /// Layout of blocks that are too short for a header.
    short: BlockLayout,
    seeds: Seeds,
    writes: u64,
    records: BlockRecords,
    /// Block in the buffer of each slot, by slot number. The list ends at the highest slot used so
    /// far.
    blocks: Vec<Option<Block>>,
    /// Knowledge of the other run that wrote the blocks. `None` if this run wrote them.
    other_run: Option<OtherRun>,
    /// Progress of the writes, for the state from which another run verifies them.
    progress: WriteProgress,
    verified: Verified,
    differences: Vec<String>,
}

/// Block in the buffer of a slot in use.
#[derive(Clone, Copy, Debug)]
struct Block {
    place: BlockPlace,
    bytes: u32,
    purpose: Purpose,
    /// Leading bytes of the block that a short write has already written. They are no longer in the
    /// buffer.
    taken_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Write of the block, with the number of the write.
    Write(u64),
    /// Comparison of the block with the record of its write.
    Compare(BlockRecord),
    /// Check of the block against its own header.
    Check,
}

/// Rules by which a worker's blocks are verified.
pub(crate) struct Plan {
    pub(crate) layout: BlockLayout,
    /// Whether the first difference ends the program.
    pub(crate) is_fatal: bool,
    /// Whether differences are only counted and are not errors (`continue_on_error=verify`).
    pub(crate) tolerates: bool,
    /// Whether all reads are checked, because the program writes nothing.
    pub(crate) checks_reads: bool,
    /// Whether a trimmed block must read as zeroes.
    pub(crate) trims_to_zero: bool,
    /// Whether only this worker writes to its blocks, so that it knows the latest write of each
    /// block.
    pub(crate) is_alone: bool,
    /// Whether the order of the writes is random, so that other programs have other orders.
    pub(crate) is_random: bool,
    /// Number of the worker, from 1, from which its seeds follow.
    pub(crate) thread: u32,
    /// Seed from which the seeds of the blocks are drawn.
    pub(crate) randseed: u64,
    /// Destination of dumps of differing blocks. `None` if they are not dumped.
    pub(crate) dump: Option<Dump>,
}

/// Written block that is to be read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread {
    place: BlockPlace,
    record: BlockRecord,
}

impl Unread {
    /// Returns the index of the block's file among the worker's files.
    pub(crate) fn file(&self) -> usize {
        self.place.file
    }

    /// Returns the block's offset in its file, in bytes.
    pub(crate) fn offset_bytes(&self) -> u64 {
        self.place.offset_bytes
    }

    /// Returns the block's length in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.record.bytes
    }

    /// Returns the read request for the block, in an open file.
    pub(crate) fn request(&self, file: File) -> Submission {
        Submission {
            operation: Operation::Read,
            file,
            offset_bytes: self.place.offset_bytes,
            bytes: self.record.bytes,
            slot: 0,
            intended: None,
        }
    }
}

impl Verifier {
    /// Creates the verifier of a worker.
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            seeds: Seeds::new(plan.randseed, plan.thread),
            writes: 0,
            records: BlockRecords::default(),
            blocks: Vec::new(),
            other_run: None,
            progress: WriteProgress::default(),
            verified: Verified {
                kind: plan.layout.kind().name().to_owned(),
                ..Verified::default()
            },
            differences: Vec::new(),
            short: BlockLayout::of_seed(),
            plan,
        }
    }

    /// Creates the verifier of a worker for a program of this crate. Its seeds differ from those of
    /// other repetitions.
    pub(crate) fn of_program(system: &System, worker: &Worker) -> Self {
        Self::new(Plan {
            layout: BlockLayout::of_checksum(Checksum::Crc32c),
            is_fatal: false,
            tolerates: false,
            checks_reads: false,
            trims_to_zero: false,
            is_alone: true,
            is_random: false,
            thread: worker.index + 1,
            randseed: worker.seed ^ system.now().0,
            dump: None,
        })
    }

    /// Returns the layout for blocks of this length.
    fn layout(&self, bytes: u32) -> &BlockLayout {
        match self.plan.layout.header_bytes() > bytes as usize {
            true => &self.short,
            false => &self.plan.layout,
        }
    }

    /// Returns the number of blocks that were written and not read back.
    pub(crate) fn unread_count(&self) -> u64 {
        self.records.count()
    }

    /// Begins to read back, and shows the number of blocks to read.
    pub(crate) fn begin_read_back(&self, system: &System) -> ShownReadBack {
        begin_read_back();
        self.show_blocks_to_read(system)
    }

    /// Shows the number of blocks to read.
    pub(crate) fn show_blocks_to_read(&self, system: &System) -> ShownReadBack {
        let shown = ShownReadBack {
            blocks_total: self.blocks_to_read(),
        };
        shown.show(system, self);
        shown
    }

    /// Returns the number of blocks to read, including the places that a search reads.
    fn blocks_to_read(&self) -> u64 {
        self.records.count() + self.places_to_search()
    }

    /// Restarts the seeds, as fio does for each pass of a repeatable job.
    pub(crate) fn restart_seeds(&mut self) {
        self.seeds = Seeds::new(self.plan.randseed, self.plan.thread);
    }

    /// Prepares the buffer of a request that has a slot and is not submitted. `file` is the index
    /// of the request's file among the worker's files.
    pub(crate) fn prepare(&mut self, system: &mut System, request: Submission, file: usize) {
        let place = BlockPlace {
            file,
            offset_bytes: request.offset_bytes,
        };
        let purpose = match request.operation {
            Operation::Write => {
                let time_ns = Some(system.now().0);
                let write = self.record_write(place, request.bytes, time_ns);
                let number = self.writes - 1;
                let buffer = buffer(system, request.slot, request.bytes);
                self.layout(request.bytes).fill(buffer, write);
                Purpose::Write(number)
            }
            Operation::Read if self.plan.checks_reads => Purpose::Check,
            Operation::Read
            | Operation::Fsync
            | Operation::Fdatasync
            | Operation::SyncRange(_)
            | Operation::Discard => return,
        };
        self.hold(request.slot, (place, request.bytes), purpose);
    }

    /// Records the block that a slot's buffer holds.
    fn hold(&mut self, slot: u32, (place, bytes): (BlockPlace, u32), purpose: Purpose) {
        let slot = slot as usize;
        if self.blocks.len() <= slot {
            self.blocks.resize(slot + 1, None);
        }
        self.blocks[slot] = Some(Block {
            place,
            bytes,
            purpose,
            taken_bytes: 0,
        });
    }

    /// Marks a block as trimmed. Returns whether it is a block that was written and not read back.
    pub(crate) fn trim(&mut self, file: usize, (offset_bytes, bytes): (u64, u32)) -> bool {
        let place = BlockPlace { file, offset_bytes };
        self.records.trim(place, bytes)
    }

    /// Draws the seed of the next write and records the write.
    fn record_write(&mut self, place: BlockPlace, bytes: u32, time_ns: Option<u64>) -> BlockWrite {
        let seed = match self.plan.layout.is_seeded() {
            true => self.seeds.next_seed(),
            false => 0,
        };
        let number = self.writes;
        self.writes += 1;
        self.verified.written_bytes += u64::from(bytes);
        let write = RecordedWrite {
            bytes,
            seed,
            number,
            time_ns,
        };
        self.records.add(place, write);
        self.progress.issue(place);
        BlockWrite {
            offset_bytes: place.offset_bytes,
            seed,
            time_ns: time_ns.unwrap_or(0),
            thread: self.plan.thread as u16,
            number: number as u16,
        }
    }

    fn complete_last(&mut self, place: BlockPlace) {
        self.records.complete(place, self.writes - 1);
        self.progress.complete(self.writes - 1);
    }

    /// Records a write that another run of the job issued.
    pub(crate) fn record_other_write(&mut self, file: usize, (offset_bytes, bytes): (u64, u32)) {
        let place = BlockPlace { file, offset_bytes };
        self.record_write(place, bytes, None);
        self.complete_last(place);
        self.verified.written_bytes = 0;
    }

    /// Moves the remainders of short writes to the start of their buffers, from which they are
    /// written.
    pub(crate) fn move_rests(&mut self, system: &mut System, waiting: &[Submission]) {
        for rest in waiting
            .iter()
            .filter(|one| one.operation == Operation::Write)
        {
            let Some(Some(block)) = self.blocks.get_mut(rest.slot as usize) else {
                continue;
            };
            let taken_bytes = (rest.offset_bytes - block.place.offset_bytes) as u32;
            if taken_bytes > block.taken_bytes {
                let from = (taken_bytes - block.taken_bytes) as usize;
                buffer(system, rest.slot, block.bytes).copy_within(from.., 0);
                block.taken_bytes = taken_bytes;
            }
        }
    }

    /// Takes the next block to be read back.
    pub(crate) fn next_unread(&mut self) -> Option<Unread> {
        match self.records.take() {
            Some((place, record)) => Some(Unread { place, record }),
            None => self.next_surveyed(),
        }
    }

    /// Marks a slot's read as a read-back, so that its data is compared when the read is complete.
    pub(crate) fn expect(&mut self, slot: u32, unread: Unread) {
        let Unread { place, record } = unread;
        self.hold(slot, (place, record.bytes), Purpose::Compare(record));
    }

    /// Processes a slot whose request is complete: compares the block of a read, or marks a write
    /// as complete. `path` returns the path of a file by its index.
    ///
    /// # Errors
    ///
    /// Fails at the first difference if differences are fatal.
    pub(crate) fn complete(
        &mut self,
        system: &mut System,
        slot: u32,
        path: impl Fn(usize) -> String,
    ) -> Result<(), ProgramError> {
        let held = self.blocks.get_mut(slot as usize);
        let Some(block) = held.and_then(Option::take) else {
            return Ok(());
        };
        if let Purpose::Write(number) = block.purpose {
            self.records.complete(block.place, number);
            self.progress.complete(number);
            return Ok(());
        }
        let bytes = buffer(system, slot, block.bytes);
        self.judge(block, bytes, path)
    }

    /// Discards the block of a slot whose request failed with an ignored error, since the contents
    /// of the block are unknown.
    pub(crate) fn fail(&mut self, slot: u32) {
        let held = self.blocks.get_mut(slot as usize);
        if let Some(Block {
            place,
            purpose: Purpose::Write(number),
            ..
        }) = held.and_then(Option::take)
        {
            self.records.forget(place, number);
        }
    }

    /// Counts a difference and lists it, or fails if differences are fatal.
    fn note(&mut self, text: String) -> Result<(), ProgramError> {
        self.verified.mismatches += 1;
        if self.plan.is_fatal && !self.plan.tolerates {
            let kind = &self.verified.kind;
            return Err(ProgramError::Corrupt(format!("{kind}: {text}")));
        }
        if self.differences.len() < NAMED_MAX {
            self.differences.push(text);
        }
        Ok(())
    }

    /// Evaluates the verification after all reads.
    ///
    /// # Errors
    ///
    /// Returns all differences. The first of them are listed individually.
    pub(crate) fn judge_all(&mut self) -> Result<(), ProgramError> {
        self.settle_strangers()?;
        self.settle_survey()?;
        match self.plan.tolerates {
            true => Ok(()),
            false => judge_all(&self.verified, &self.differences),
        }
    }

    /// Returns the counts of blocks so far, whether or not blocks differ and whatever ended the
    /// program.
    pub(crate) fn verified(&self) -> Verified {
        Verified {
            unread_blocks: self.verified.unread_blocks + self.records.count(),
            ..self.verified.clone()
        }
    }
}

/// Returns an error if any blocks differ. It lists the first differences individually.
fn judge_all(verified: &Verified, differences: &[String]) -> Result<(), ProgramError> {
    if verified.mismatches == 0 {
        return Ok(());
    }
    let more = match verified.mismatches - differences.len() as u64 {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    Err(ProgramError::Corrupt(format!(
        "{}: {} of {} blocks differ from what was written:\n  {}{more}",
        verified.kind,
        verified.mismatches,
        verified.blocks,
        differences.join("\n  ")
    )))
}

/// Returns the part of a slot's buffer that a block takes.
fn buffer(system: &mut System, slot: u32, bytes: u32) -> &mut [u8] {
    let buffer = system.ring_buffer(slot);
    let buffer = buffer.expect("the ring was opened with contents");
    &mut buffer[..bytes as usize]
}
