//! Verification of a worker's blocks: filled as they are written, read back, and compared.

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

/// Differences that are named one by one; the others are counted.
const NAMED_MAX: usize = 20;

/// Name of the parameter that has what was written read back.
pub(crate) const VERIFY: &str = "verify";

/// The parameter that has what was written read back.
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

/// Has a test called on this thread whenever a worker begins to read back: where it plants
/// the damage that is to be found.
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

/// Blocks that are read back, as they are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownReadBack {
    blocks_total: u64,
}

impl ShownReadBack {
    /// Shows how many of the blocks are read.
    pub(crate) fn show(self, system: &System, verifier: &Verifier) {
        system.show_read_back(ReadBackProgress {
            blocks: self.blocks_total.saturating_sub(verifier.blocks_to_read()),
            blocks_total: self.blocks_total,
        });
    }
}

/// Verification of a worker's blocks.
pub(crate) struct Verifier {
    plan: Plan,
    /// Layout of blocks without room for a header.
    short: BlockLayout,
    seeds: Seeds,
    /// Writes that were issued.
    writes: u64,
    records: BlockRecords,
    /// Of each slot: the block that its buffer holds; as many as have held one.
    blocks: Vec<Option<Block>>,
    /// Where another run wrote the blocks.
    other_run: Option<OtherRun>,
    /// Writes by which another run knows how far this one came.
    progress: WriteProgress,
    verified: Verified,
    differences: Vec<String>,
}

/// Block in the buffer of a slot that is in flight.
#[derive(Clone, Copy, Debug)]
struct Block {
    place: BlockPlace,
    bytes: u32,
    purpose: Purpose,
    /// Bytes at its front that a short write took: they are no longer in the buffer.
    taken_bytes: u32,
}

#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// It is written, as the write of this number.
    Write(u64),
    /// It is compared with what is recorded of it.
    Compare(BlockRecord),
    /// It is compared with what it says of itself.
    Check,
}

/// How the blocks of a worker are verified.
pub(crate) struct Plan {
    pub(crate) layout: BlockLayout,
    /// Whether the first difference ends the program.
    pub(crate) is_fatal: bool,
    /// Whether differences are counted and are no error (`continue_on_error=verify`).
    pub(crate) tolerates: bool,
    /// Whether all reads are checked: the program writes nothing.
    pub(crate) checks_reads: bool,
    /// Whether a block that was trimmed must be zeroes.
    pub(crate) trims_to_zero: bool,
    /// Whether nobody else writes to the worker's blocks, so that it knows which write each
    /// of them is of.
    pub(crate) is_alone: bool,
    /// Whether the order of the writes is drawn: it is each program's own.
    pub(crate) is_random: bool,
    /// Number of the worker, from 1: its seeds follow from it.
    pub(crate) thread: u32,
    /// Seed of the seeds.
    pub(crate) randseed: u64,
    /// Where blocks that differ are dumped.
    pub(crate) dump: Option<Dump>,
}

/// Block that was written and is to be read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread {
    place: BlockPlace,
    record: BlockRecord,
}

impl Unread {
    /// The index of its file among the worker's.
    pub(crate) fn file(&self) -> usize {
        self.place.file
    }

    /// Its offset in the file.
    pub(crate) fn offset_bytes(&self) -> u64 {
        self.place.offset_bytes
    }

    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.record.bytes
    }

    /// The read of it, in a file that is open.
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
    /// The verification of a worker.
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

    /// The verification of a worker of one of the battery's own programs, whose seeds no other
    /// repetition has.
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

    /// The layout of blocks of this length.
    fn layout(&self, bytes: u32) -> &BlockLayout {
        match self.plan.layout.header_bytes() > bytes as usize {
            true => &self.short,
            false => &self.plan.layout,
        }
    }

    /// Blocks that were written and not read back.
    pub(crate) fn unread_count(&self) -> u64 {
        self.records.count()
    }

    /// Begins to read back, and shows how many blocks there are to read.
    pub(crate) fn begin_read_back(&self, system: &System) -> ShownReadBack {
        begin_read_back();
        self.show_blocks_to_read(system)
    }

    /// Shows how many blocks there are to read.
    pub(crate) fn show_blocks_to_read(&self, system: &System) -> ShownReadBack {
        let shown = ShownReadBack {
            blocks_total: self.blocks_to_read(),
        };
        shown.show(system, self);
        shown
    }

    /// Blocks that are to be read, with those that a search looks at.
    fn blocks_to_read(&self) -> u64 {
        self.records.count() + self.places_to_search()
    }

    /// Begins with the first seed again, as fio does with each pass of a repeatable job.
    pub(crate) fn restart_seeds(&mut self) {
        self.seeds = Seeds::new(self.plan.randseed, self.plan.thread);
    }

    /// Prepares the buffer of a request that has a slot and is not submitted; `file` is the
    /// index of its file among the worker's.
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

    /// Notes the block that a slot's buffer holds.
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

    /// Notes that a block is trimmed that was written and not read back; whether it is one.
    pub(crate) fn trim(&mut self, file: usize, (offset_bytes, bytes): (u64, u32)) -> bool {
        let place = BlockPlace { file, offset_bytes };
        self.records.trim(place, bytes)
    }

    /// Draws the seed of the next write, and records it.
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

    /// Notes that the last write is complete.
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

    /// Puts the rests of short writes to the front of their buffers, from where they are
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

    /// Takes the next block that is to be read back: its place and its length.
    pub(crate) fn next_unread(&mut self) -> Option<Unread> {
        match self.records.take() {
            Some((place, record)) => Some(Unread { place, record }),
            None => self.next_surveyed(),
        }
    }

    /// Has a block compared when the read of a slot is complete.
    pub(crate) fn expect(&mut self, slot: u32, unread: Unread) {
        let Unread { place, record } = unread;
        self.hold(slot, (place, record.bytes), Purpose::Compare(record));
    }

    /// Looks at a slot whose request is complete; `path` names a file by its index.
    ///
    /// # Errors
    ///
    /// The first difference, where it is fatal.
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

    /// Forgets the block of a slot whose request failed with an error that is passed over:
    /// nothing is known of its bytes.
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

    /// Notes a difference.
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

    /// Judges the blocks, when all are read.
    ///
    /// # Errors
    ///
    /// All differences, the first of them by name.
    pub(crate) fn judge_all(&mut self) -> Result<(), ProgramError> {
        self.settle_strangers()?;
        self.settle_survey()?;
        match self.plan.tolerates {
            true => Ok(()),
            false => judge_all(&self.verified, &self.differences),
        }
    }

    /// Counts of the blocks so far, whether or not they differ and whatever ended the program.
    pub(crate) fn verified(&self) -> Verified {
        Verified {
            unread_blocks: self.verified.unread_blocks + self.records.count(),
            ..self.verified.clone()
        }
    }
}

/// An error of blocks that differ, with the first of them by name.
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

/// The part of a slot's buffer that a block takes.
fn buffer(system: &mut System, slot: u32, bytes: u32) -> &mut [u8] {
    let buffer = system.ring_buffer(slot);
    let buffer = buffer.expect("the ring was opened with contents");
    &mut buffer[..bytes as usize]
}
