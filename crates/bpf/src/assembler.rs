//! Assembler for eBPF programs with labels (the kernel's documentation,
//! bpf/standardization/instruction-set.rst).

/// Register of the eBPF machine.
///
/// A call takes its arguments in R1 to R5, returns its result in R0 and preserves R6 to R9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Register {
    R0 = 0,
    R1 = 1,
    R2 = 2,
    R3 = 3,
    R4 = 4,
    R5 = 5,
    R6 = 6,
    R7 = 7,
    R8 = 8,
    R9 = 9,
    /// End of the stack, which is read-only; offsets on the stack are negative.
    R10 = 10,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Width of a `u8`, loaded with zeros above.
    Byte,
    /// Width of a `u16`, loaded with zeros above.
    Half,
    /// Width of a `u32`, loaded with zeros above.
    Word,
    /// Width of a register and of a pointer.
    Double,
}

impl Width {
    /// Returns the width of this many bytes, or `None` where no load is so wide.
    pub fn from_bytes(bytes: u32) -> Option<Self> {
        match bytes {
            1 => Some(Self::Byte),
            2 => Some(Self::Half),
            4 => Some(Self::Word),
            8 => Some(Self::Double),
            _ => None,
        }
    }

    fn size_code(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

/// Kernel function that a program can call (the kernel's include/uapi/linux/bpf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Helper {
    MapLookupElem = 1,
    KtimeGetNs = 5,
    GetSmpProcessorId = 8,
    GetCurrentPidTgid = 14,
    GetCurrentTask = 35,
    ProbeReadKernel = 113,
    RingbufOutput = 130,
}

/// Instruction of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation, with the width of an access or the comparison of a jump.
    pub code: u8,
    /// Destination register in the low four bits, source register in the high four bits.
    pub registers: u8,
    /// Distance of a jump in instructions, or offset of a memory access in bytes.
    pub offset: i16,
    /// Constant operand, whose sign is extended to 64 bits.
    pub immediate: i32,
}

impl Instruction {
    /// Converts to the bytes that the kernel reads.
    pub fn to_bytes(self) -> [u8; 8] {
        let [low, high] = self.offset.to_le_bytes();
        let [a, b, c, d] = self.immediate.to_le_bytes();
        [self.code, self.registers, low, high, a, b, c, d]
    }
}

/// Jump target of one assembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// Reason why instructions are no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssemblyError {
    /// Jump to a label without a position.
    #[error("instruction {0} jumps to a label that is bound nowhere")]
    UnboundLabel(usize),
    /// Jump over more instructions than an offset can count.
    #[error("instruction {0} jumps too far")]
    DistantLabel(usize),
}

/// eBPF program that grows by one instruction a call.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    instructions: Vec<Instruction>,
    /// Position of each label, once it is bound.
    label_positions: Vec<Option<usize>>,
    /// Jumps and their labels.
    pending_jumps: Vec<PendingJump>,
}

#[derive(Clone, Copy, Debug)]
struct PendingJump {
    position: usize,
    label: Label,
}

/// Second half of a jump's code: the comparison.
const JUMP_EQUAL: u8 = 0x15;
const JUMP_NOT_EQUAL: u8 = 0x55;
const JUMP_ANY_BIT: u8 = 0x45;
const JUMP_ALWAYS: u8 = 0x05;

impl Assembler {
    fn push(&mut self, code: u8, registers: u8, offset: i16, immediate: i32) {
        self.instructions.push(Instruction {
            code,
            registers,
            offset,
            immediate,
        });
    }

    /// Creates a jump target, which [`Self::bind`] positions.
    pub fn new_label(&mut self) -> Label {
        self.label_positions.push(None);
        Label(self.label_positions.len() - 1)
    }

    /// Positions a label before the next instruction.
    pub fn bind(&mut self, label: Label) {
        self.label_positions[label.0] = Some(self.instructions.len());
    }

    /// Copies a register to another one.
    pub fn move_register(&mut self, destination: Register, source: Register) {
        self.push(0xbf, pack_registers(destination, source), 0, 0);
    }

    /// Sets a register to a constant, whose sign is extended.
    pub fn move_immediate(&mut self, destination: Register, value: i32) {
        self.push(0xb7, destination as u8, 0, value);
    }

    /// Adds a constant to a register.
    pub fn add(&mut self, destination: Register, value: i32) {
        self.push(0x07, destination as u8, 0, value);
    }

    /// Clears the bits of a register that a constant lacks.
    pub fn and(&mut self, destination: Register, mask: i32) {
        self.push(0x57, destination as u8, 0, mask);
    }

    /// Shifts a register to the right, with zeros from the left.
    pub fn shift_right(&mut self, destination: Register, bits: i32) {
        self.push(0x77, destination as u8, 0, bits);
    }

    /// Shifts a register to the left.
    pub fn shift_left(&mut self, destination: Register, bits: i32) {
        self.push(0x67, destination as u8, 0, bits);
    }

    /// Sets the bits of a register that another one has.
    pub fn or_register(&mut self, destination: Register, source: Register) {
        self.push(0x4f, pack_registers(destination, source), 0, 0);
    }

    /// Adds a register to eight bytes of memory, whoever else does meanwhile.
    pub fn add_atomically(&mut self, base: Register, offset: i16, source: Register) {
        self.push(0xdb, pack_registers(base, source), offset, 0);
    }

    /// Loads from memory at an offset from a register.
    pub fn load(&mut self, width: Width, destination: Register, base: Register, offset: i16) {
        let registers = pack_registers(destination, base);
        self.push(0x61 | width.size_code(), registers, offset, 0);
    }

    /// Stores a register to memory at an offset from another.
    pub fn store(&mut self, width: Width, base: Register, offset: i16, source: Register) {
        let registers = pack_registers(base, source);
        self.push(0x63 | width.size_code(), registers, offset, 0);
    }

    /// Stores a constant to memory at an offset from a register.
    pub fn store_immediate(&mut self, width: Width, base: Register, offset: i16, value: i32) {
        self.push(0x62 | width.size_code(), base as u8, offset, value);
    }

    /// Sets a register to the address of a map, which the kernel finds by the descriptor of the
    /// loading process.
    pub fn load_map(&mut self, destination: Register, descriptor: i32) {
        const PSEUDO_MAP_DESCRIPTOR: u8 = 1;
        self.push(
            0x18,
            destination as u8 | PSEUDO_MAP_DESCRIPTOR << 4,
            0,
            descriptor,
        );
        self.push(0, 0, 0, 0);
    }

    /// Calls a kernel function.
    pub fn call(&mut self, helper: Helper) {
        self.push(0x85, 0, 0, helper as i32);
    }

    /// Returns from the program.
    pub fn exit(&mut self) {
        self.push(0x95, 0, 0, 0);
    }

    /// Jumps to a label.
    pub fn jump(&mut self, label: Label) {
        self.push_jump(JUMP_ALWAYS, 0, 0, label);
    }

    /// Jumps if a register equals a constant, whose sign is extended.
    pub fn jump_if_equal(&mut self, register: Register, value: i32, label: Label) {
        self.push_jump(JUMP_EQUAL, register as u8, value, label);
    }

    /// Jumps if a register differs from a constant, whose sign is extended.
    pub fn jump_if_not_equal(&mut self, register: Register, value: i32, label: Label) {
        self.push_jump(JUMP_NOT_EQUAL, register as u8, value, label);
    }

    /// Jumps if a register has any bit of a mask.
    pub fn jump_if_any_bit(&mut self, register: Register, mask: i32, label: Label) {
        self.push_jump(JUMP_ANY_BIT, register as u8, mask, label);
    }

    fn push_jump(&mut self, code: u8, registers: u8, immediate: i32, label: Label) {
        self.pending_jumps.push(PendingJump {
            position: self.instructions.len(),
            label,
        });
        self.push(code, registers, 0, immediate);
    }

    /// Resolves the labels and returns the program.
    ///
    /// # Errors
    ///
    /// A label has no position, or a jump is too far.
    pub fn assemble(mut self) -> Result<Vec<Instruction>, AssemblyError> {
        for jump in &self.pending_jumps {
            let at = jump.position;
            let target =
                self.label_positions[jump.label.0].ok_or(AssemblyError::UnboundLabel(at))?;
            let distance = target as i64 - at as i64 - 1;
            self.instructions[at].offset =
                i16::try_from(distance).map_err(|_| AssemblyError::DistantLabel(at))?;
        }
        Ok(self.instructions)
    }
}

fn pack_registers(destination: Register, source: Register) -> u8 {
    destination as u8 | (source as u8) << 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use Register::{R0, R1, R6, R10};

    /// Codes of include/uapi/linux/bpf.h, written by hand.
    #[test]
    fn instructions_have_the_codes_of_the_kernel() {
        let mut program = Assembler::default();
        program.move_register(R6, R1);
        program.move_immediate(R0, -1);
        program.add(R1, -8);
        program.and(R0, 0xff);
        program.shift_right(R0, 32);
        program.shift_left(R0, 20);
        program.or_register(R0, R6);
        program.add_atomically(R0, 8, R1);
        program.load(Width::Byte, R0, R6, 1);
        program.load(Width::Half, R0, R6, 2);
        program.load(Width::Word, R0, R6, 4);
        program.load(Width::Double, R0, R6, 8);
        program.store(Width::Double, R10, -8, R6);
        program.store_immediate(Width::Word, R10, -16, 7);
        program.load_map(R1, 5);
        program.call(Helper::RingbufOutput);
        program.exit();
        let found: Vec<[u8; 8]> = (program.assemble().unwrap().iter())
            .map(|one| one.to_bytes())
            .collect();
        let expected: [[u8; 8]; 18] = [
            [0xbf, 0x16, 0, 0, 0, 0, 0, 0],
            [0xb7, 0x00, 0, 0, 0xff, 0xff, 0xff, 0xff],
            [0x07, 0x01, 0, 0, 0xf8, 0xff, 0xff, 0xff],
            [0x57, 0x00, 0, 0, 0xff, 0, 0, 0],
            [0x77, 0x00, 0, 0, 32, 0, 0, 0],
            [0x67, 0x00, 0, 0, 20, 0, 0, 0],
            [0x4f, 0x60, 0, 0, 0, 0, 0, 0],
            [0xdb, 0x10, 8, 0, 0, 0, 0, 0],
            [0x71, 0x60, 1, 0, 0, 0, 0, 0],
            [0x69, 0x60, 2, 0, 0, 0, 0, 0],
            [0x61, 0x60, 4, 0, 0, 0, 0, 0],
            [0x79, 0x60, 8, 0, 0, 0, 0, 0],
            [0x7b, 0x6a, 0xf8, 0xff, 0, 0, 0, 0],
            [0x62, 0x0a, 0xf0, 0xff, 7, 0, 0, 0],
            [0x18, 0x11, 0, 0, 5, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 0, 0],
            [0x85, 0, 0, 0, 130, 0, 0, 0],
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn jumps_count_from_the_instruction_after_them() {
        let mut program = Assembler::default();
        let (back, forward) = (program.new_label(), program.new_label());
        program.bind(back);
        program.jump_if_equal(R1, 3, forward);
        program.jump_if_any_bit(R1, 4, back);
        program.jump(forward);
        program.bind(forward);
        program.exit();
        let found = program.assemble().unwrap();
        assert_eq!(found[0].offset, 2);
        assert_eq!(found[1].offset, -2);
        assert_eq!(
            (found[2].offset, found[2].code, found[2].registers),
            (0, 0x05, 0)
        );
    }

    #[test]
    fn a_label_without_a_position_is_an_error() {
        let mut program = Assembler::default();
        let nowhere = program.new_label();
        program.exit();
        program.jump(nowhere);
        assert_eq!(program.assemble(), Err(AssemblyError::UnboundLabel(1)));
    }

    #[test]
    fn a_jump_farther_than_its_offset_counts_is_an_error() {
        let mut program = Assembler::default();
        let far = program.new_label();
        program.jump(far);
        (0..40_000).for_each(|_| program.exit());
        program.bind(far);
        assert_eq!(program.assemble(), Err(AssemblyError::DistantLabel(0)));
    }
}
