//! Kernel types as BTF describes them, and eBPF programs as instructions.
//!
//! Both are pure: bytes in, bytes out. Who loads the programs makes the system calls.
//!
//! ```
//! use diskperf_bpf::{Assembler, Helper, Register, Width};
//!
//! let mut program = Assembler::default();
//! let is_null = program.new_label();
//! program.load(Width::Double, Register::R6, Register::R1, 0);
//! program.jump_if_equal(Register::R6, 0, is_null);
//! program.call(Helper::KtimeGetNs);
//! program.bind(is_null);
//! program.move_immediate(Register::R0, 0);
//! program.exit();
//! assert_eq!(program.assemble().unwrap().len(), 5);
//! ```

mod assembler;
mod btf;
mod tracepoint;

pub use assembler::{Assembler, AssemblyError, Helper, Instruction, Label, Register, Width};
pub use btf::{Btf, BtfError, Member, TypeId, TypeKind};
pub use tracepoint::Prototype;
