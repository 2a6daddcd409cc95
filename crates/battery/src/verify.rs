//! Verification of a worker's blocks: filled as they are written, read back, and compared.

mod generation;
mod record;

use crate::program::ProgramError;
use diskperf_fio::verify::{
    BlockLayout, BlockWrite, DifferingByte, Expectation, Field, Mismatch, Seeds,
};
use diskperf_system::{File, Operation, Submission, System};
use diskperf_timeline::Verified;
use generation::OtherRun;
use record::{BlockPlace, BlockRecord, BlockRecords, WriteState};

/// Differences that are named one by one; the others are counted.
const NAMED_MAX: usize = 20;

/// Verification of a worker's blocks.
pub(crate) struct Verifier {
    plan: Plan,
    seeds: Seeds,
    /// Writes that were issued.
    writes: u64,
    records: BlockRecords,
    /// Of each slot: the block that its buffer holds; as many as have held one.
    blocks: Vec<Option<Block>>,
    /// Where another run wrote the blocks.
    other_run: Option<OtherRun>,
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
    /// Number of the worker, from 1: its seeds follow from it.
    pub(crate) thread: u32,
    /// Seed of the seeds.
    pub(crate) randseed: u64,
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
            verified: Verified {
                kind: plan.layout.kind().name().to_owned(),
                ..Verified::default()
            },
            differences: Vec::new(),
            plan,
        }
    }

    /// Blocks that were written and not read back.
    pub(crate) fn unread_count(&self) -> u64 {
        self.records.count()
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
                let write = self.record_write(place, request.bytes);
                let write = BlockWrite {
                    time_ns: system.now().0,
                    ..write
                };
                let number = self.writes - 1;
                let buffer = buffer(system, request.slot, request.bytes);
                self.plan.layout.fill(buffer, write);
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
    fn record_write(&mut self, place: BlockPlace, bytes: u32) -> BlockWrite {
        let seed = match self.plan.layout.is_seeded() {
            true => self.seeds.next_seed(),
            false => 0,
        };
        let number = self.writes;
        self.writes += 1;
        self.records.add(place, (bytes, seed), number);
        BlockWrite {
            offset_bytes: place.offset_bytes,
            seed,
            time_ns: 0,
            thread: self.plan.thread as u16,
            number: number as u16,
        }
    }

    /// Records a write that another run of the job issued.
    pub(crate) fn record_other_write(&mut self, file: usize, (offset_bytes, bytes): (u64, u32)) {
        let place = BlockPlace { file, offset_bytes };
        self.record_write(place, bytes);
        self.records.complete(place, self.writes - 1);
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
        let (place, record) = self.records.take()?;
        Some(Unread { place, record })
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
            return Ok(());
        }
        let bytes = buffer(system, slot, block.bytes);
        let compared = self.compare(block, bytes);
        self.verified.blocks += 1;
        self.verified.bytes += u64::from(block.bytes);
        let Err(mismatch) = compared else {
            return Ok(());
        };
        let text = format!("{}: {mismatch}", path(block.place.file));
        match &mut self.other_run {
            Some(other) if mismatch.field == Field::Seed && !other.is_met => {
                other.strangers.push(text);
                Ok(())
            }
            Some(_) | None => self.note(text),
        }
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

    fn compare(&mut self, block: Block, bytes: &mut [u8]) -> Result<(), Mismatch> {
        let mut expected = Expectation {
            offset_bytes: block.place.offset_bytes,
            ..Expectation::default()
        };
        let Purpose::Compare(record) = block.purpose else {
            return self.plan.layout.check(bytes, expected);
        };
        if record.is_trimmed {
            return self.compare_trimmed(block, bytes);
        }
        let Some(other) = &mut self.other_run else {
            if self.plan.is_alone && record.state == WriteState::Complete {
                expected.seed = Some(record.seed);
                expected.number = Some(record.number as u16);
            }
            return self.plan.layout.check(bytes, expected);
        };
        let layout = &self.plan.layout;
        let header = layout.header(bytes).map(|decoded| decoded.header);
        // Of the job in another order, too, as fio's of random writes.
        let seed = header.map(|header| header.seed);
        let seed = seed.filter(|seed| other.seeds.contains(seed));
        layout.check(bytes, Expectation { seed, ..expected })?;
        other.is_met |= seed.is_some();
        match (header, seed) {
            (Some(_), None) => {
                expected.seed = Some(record.seed);
                layout.check(bytes, expected)
            }
            _ => Ok(()),
        }
    }

    /// Compares a block that was trimmed with zeroes, where it must be zero.
    fn compare_trimmed(&self, block: Block, bytes: &[u8]) -> Result<(), Mismatch> {
        let different = bytes.iter().position(|byte| *byte != 0);
        let Some(at) = different.filter(|_| self.plan.trims_to_zero) else {
            return Ok(());
        };
        let offset_bytes = block.place.offset_bytes + at as u64;
        Err(Mismatch {
            field: Field::Data("trim"),
            offset_bytes,
            expected: "zeroes".to_owned(),
            got: format!("0x{:02x}", bytes[at]),
            byte: Some(DifferingByte {
                offset_bytes,
                expected: 0,
                got: bytes[at],
            }),
        })
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

    /// What was verified, so far as nothing differs.
    ///
    /// # Errors
    ///
    /// All differences, the first of them by name.
    pub(crate) fn outcome(&mut self) -> Result<Verified, ProgramError> {
        self.settle_strangers()?;
        let verified = &self.verified;
        if verified.mismatches == 0 || self.plan.tolerates {
            return Ok(verified.clone());
        }
        let more = verified.mismatches - self.differences.len() as u64;
        let more = match more {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        Err(ProgramError::Corrupt(format!(
            "{}: {} of {} blocks differ from what was written:\n  {}{more}",
            verified.kind,
            verified.mismatches,
            verified.blocks,
            self.differences.join("\n  ")
        )))
    }
}

/// The part of a slot's buffer that a block takes.
fn buffer(system: &mut System, slot: u32, bytes: u32) -> &mut [u8] {
    let buffer = system.ring_buffer(slot);
    let buffer = buffer.expect("the ring was opened with contents");
    &mut buffer[..bytes as usize]
}
