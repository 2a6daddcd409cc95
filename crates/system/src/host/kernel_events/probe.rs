//! Construction of one program: reads of kernel memory into a record on its stack, a filter, and
//! the output of the record.

use super::layout::{KernelTypes, Tracepoint};
use super::record::{HEADER_BYTES, RecordKind, WORDS_MAX};
use Register::{R0, R1, R2, R3, R4, R6, R10};
use diskperf_bpf::{
    Assembler, AssemblyError, BtfError, Helper, Instruction, Label, Member, Register, Width,
};

/// ReadTarget of a value that a program reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadTarget {
    /// Word of the record, by its index.
    Word(usize),
    /// One of R7 to R9, which calls preserve.
    Register(Register),
}

/// Descriptors of the maps that programs use.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapDescriptors {
    pub(super) ring: i32,
    /// Records that found no space, a counter for each processor.
    pub(super) losses: i32,
}

/// Start of the record on the stack.
const RECORD_START: i16 = -160;
/// Memory for a block that is read.
const SCRATCH_START: i16 = -72;
const SCRATCH_BYTES: u32 = 64;
/// Key of a map.
const KEY: i16 = -8;
/// Flag of the ring: nobody is woken.
const NO_WAKEUP: i32 = 1;

const _: () = assert!(RECORD_START + HEADER_BYTES + 8 * WORDS_MAX as i16 <= SCRATCH_START);

/// Growing program of one tracepoint. R6 holds the context throughout; R7 to R9 are free for
/// addresses.
pub(super) struct Probe<'a> {
    pub(super) code: Assembler,
    pub(super) types: &'a KernelTypes,
    pub(super) tracepoint: &'a Tracepoint<'a>,
    maps: MapDescriptors,
    /// End of the program, without a record.
    pub(super) skip: Label,
}

impl<'a> Probe<'a> {
    pub(super) fn new(
        types: &'a KernelTypes,
        tracepoint: &'a Tracepoint<'a>,
        maps: MapDescriptors,
    ) -> Self {
        let mut code = Assembler::default();
        let skip = code.new_label();
        code.move_register(R6, R1);
        Self {
            code,
            types,
            tracepoint,
            maps,
            skip,
        }
    }

    /// Loads the first argument of one of these types in C.
    pub(super) fn load_argument(
        &mut self,
        to: Register,
        types_in_c: &[&str],
    ) -> Result<(), BtfError> {
        let index = self.tracepoint.find_argument(types_in_c)?;
        self.load_argument_at(to, index);
        Ok(())
    }

    pub(super) fn load_argument_at(&mut self, to: Register, index: usize) {
        self.code.load(Width::Double, to, R6, 8 * index as i16);
    }

    /// Stores the first argument of one of these types in C to a word.
    pub(super) fn store_argument(
        &mut self,
        word: usize,
        types_in_c: &[&str],
    ) -> Result<(), BtfError> {
        self.load_argument(R1, types_in_c)?;
        self.store(word, R1);
        Ok(())
    }

    pub(super) fn store(&mut self, word: usize, from: Register) {
        let offset = RECORD_START + HEADER_BYTES + 8 * word as i16;
        self.code.store(Width::Double, R10, offset, from);
    }

    pub(super) fn store_constant(&mut self, word: usize, value: i32) {
        let offset = RECORD_START + HEADER_BYTES + 8 * word as i16;
        self.code.store_immediate(Width::Double, R10, offset, value);
    }

    pub(super) fn load(&mut self, to: Register, word: usize) {
        let offset = RECORD_START + HEADER_BYTES + 8 * word as i16;
        self.code.load(Width::Double, to, R10, offset);
    }

    /// Reads members, such as `bi_iter.bi_sector`, of the structure at an address in R7 to R9,
    /// those that are close together by one read. A bad address gives zeros. The address may be
    /// overwritten by the last member read.
    pub(super) fn read_members(
        &mut self,
        base: Register,
        type_name: &str,
        paths: &[(&str, ReadTarget)],
    ) -> Result<(), BtfError> {
        let mut reads: Vec<(Member, ReadTarget)> = Vec::with_capacity(paths.len());
        for (path, destination) in paths {
            reads.push((self.types.find_member(type_name, path)?, *destination));
        }
        reads.sort_by_key(|(member, _)| member.offset_bytes);
        let end = |member: &Member| member.offset_bytes + member.size_bytes;
        let mut rest = &reads[..];
        while let Some((first, _)) = rest.first() {
            let start = first.offset_bytes;
            let is_near = |read: &&(Member, ReadTarget)| end(&read.0) <= start + SCRATCH_BYTES;
            let (block, others) = rest.split_at(rest.iter().take_while(is_near).count().max(1));
            let last = block.iter().map(|(member, _)| end(member)).max();
            self.read_block(base, start, last.unwrap_or(start) - start);
            for (member, destination) in block {
                let width = Width::from_bytes(member.size_bytes).unwrap_or(Width::Double);
                let at = SCRATCH_START + (member.offset_bytes - start) as i16;
                match *destination {
                    ReadTarget::Word(word) => {
                        self.code.load(width, R1, R10, at);
                        self.store(word, R1);
                    }
                    ReadTarget::Register(register) => self.code.load(width, register, R10, at),
                }
            }
            rest = others;
        }
        Ok(())
    }

    /// Reads one member into a register, which may be that of the address.
    pub(super) fn follow(
        &mut self,
        to: Register,
        base: Register,
        (type_name, path): (&str, &str),
    ) -> Result<(), BtfError> {
        self.read_members(base, type_name, &[(path, ReadTarget::Register(to))])
    }

    /// Reads kernel memory at an offset from an address into the scratch memory.
    fn read_block(&mut self, base: Register, offset: u32, bytes: u32) {
        self.code.move_register(R3, base);
        if offset > 0 {
            self.code.add(R3, offset as i32);
        }
        self.code.move_register(R1, R10);
        self.code.add(R1, SCRATCH_START.into());
        self.code
            .move_immediate(R2, bytes.min(SCRATCH_BYTES) as i32);
        self.code.call(Helper::ProbeReadKernel);
    }

    /// Puts the record with its first words into the ring, or counts it as lost, and ends this way
    /// through the program.
    pub(super) fn output(&mut self, kind: RecordKind, word_count: usize) {
        self.code.call(Helper::KtimeGetNs);
        self.code.store(Width::Double, R10, RECORD_START, R0);
        self.code.call(Helper::GetCurrentPidTgid);
        self.code.store(Width::Word, R10, RECORD_START + 8, R0);
        self.code.call(Helper::GetSmpProcessorId);
        self.code.store(Width::Half, R10, RECORD_START + 12, R0);
        let kind = i32::from(kind as u16);
        self.code
            .store_immediate(Width::Half, R10, RECORD_START + 14, kind);
        self.code.load_map(R1, self.maps.ring);
        self.code.move_register(R2, R10);
        self.code.add(R2, RECORD_START.into());
        let bytes = i32::from(HEADER_BYTES) + 8 * word_count as i32;
        self.code.move_immediate(R3, bytes);
        self.code.move_immediate(R4, NO_WAKEUP);
        self.code.call(Helper::RingbufOutput);
        self.code.jump_if_equal(R0, 0, self.skip);
        self.code.store_immediate(Width::Word, R10, KEY, 0);
        self.code.load_map(R1, self.maps.losses);
        self.code.move_register(R2, R10);
        self.code.add(R2, KEY.into());
        self.code.call(Helper::MapLookupElem);
        self.code.jump_if_equal(R0, 0, self.skip);
        self.code.move_immediate(R1, 1);
        self.code.add_atomically(R0, 0, R1);
        self.code.jump(self.skip);
    }

    /// Ends the program and returns its instructions.
    pub(super) fn finish(mut self) -> Result<Vec<Instruction>, AssemblyError> {
        self.code.bind(self.skip);
        self.code.move_immediate(R0, 0);
        self.code.exit();
        self.code.assemble()
    }
}
