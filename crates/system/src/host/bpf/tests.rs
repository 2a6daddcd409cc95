//! Maps and programs in the running kernel; skipped without the rights.

use super::*;
use diskperf_bpf::{Assembler, Helper, Register, Width};

/// Reports whether this process may make maps and programs, and says so of a skipped test if not:
/// some containers have root, and refuse the call.
pub(crate) fn has_bpf_rights(test: &str) -> bool {
    let shape = MapShape {
        key_bytes: 0,
        value_bytes: 0,
        entries_max: 4096,
    };
    match BpfMap::create(MapKind::RingBuffer, shape) {
        Ok(_) => true,
        Err(refusal) => {
            eprintln!("SKIPPED {test}: the kernel refuses eBPF maps: {refusal}");
            false
        }
    }
}

/// Program that reads eight bytes from its first argument and returns the result of the read.
fn reading_program() -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.load(Width::Double, Register::R3, Register::R1, 0);
    program.move_register(Register::R1, Register::R10);
    program.add(Register::R1, -8);
    program.move_immediate(Register::R2, 8);
    program.call(Helper::ProbeReadKernel);
    program.exit();
    program.assemble().expect("no labels")
}

#[test]
fn a_bad_address_gives_an_error_and_a_good_one_none() {
    if !has_bpf_rights("a_bad_address_gives_an_error_and_a_good_one_none") {
        return;
    }
    let program = BpfProgram::load("reading", &reading_program()).expect("the program is valid");
    let run = |address| {
        program
            .run_once(&[address])
            .expect("programs run on arguments") as i32
    };
    assert_eq!(run(0), -libc::ERANGE);
    assert_eq!(run(0x1000), -libc::ERANGE);
    let symbols = std::fs::read_to_string("/proc/kallsyms").expect("root reads symbols");
    let line = symbols
        .lines()
        .find(|line| line.ends_with(" T submit_bio"))
        .expect("it is global");
    let function = u64::from_str_radix(&line[..16], 16).expect("an address");
    assert_eq!(run(function), 0);
    assert_eq!(
        program
            .recursion_misses()
            .expect("the kernel describes programs"),
        0
    );
}

#[test]
fn a_refused_program_has_the_words_of_the_verifier() {
    if !has_bpf_rights("a_refused_program_has_the_words_of_the_verifier") {
        return;
    }
    // A plain load from an address that the verifier does not know.
    let mut program = Assembler::default();
    program.load(Width::Double, Register::R1, Register::R1, 0);
    program.load(Width::Double, Register::R0, Register::R1, 0);
    program.exit();
    let program = program.assemble().expect("no labels");
    let refused = BpfProgram::load("refused", &program).expect_err("it is not allowed");
    assert_eq!(refused.source.raw_os_error(), Some(libc::EACCES));
    assert!(
        refused.verifier_log.contains("invalid mem access"),
        "{}",
        refused.verifier_log
    );
}

#[test]
fn an_unknown_tracepoint_is_missing() {
    if !has_bpf_rights("an_unknown_tracepoint_is_missing") {
        return;
    }
    let program = BpfProgram::load("reading", &reading_program()).expect("the program is valid");
    let error = program
        .attach_to_tracepoint("no_such_event")
        .expect_err("nobody has it");
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
}

/// Program that writes a record of 64 bytes, numbered by its first argument.
fn writing_program(ring: &BpfMap) -> Vec<Instruction> {
    let mut program = Assembler::default();
    program.load(Width::Double, Register::R2, Register::R1, 0);
    program.store(Width::Double, Register::R10, -64, Register::R2);
    for offset in (-56..0).step_by(8) {
        program.store_immediate(Width::Double, Register::R10, offset, 0);
    }
    program.load_map(Register::R1, ring.raw_descriptor());
    program.move_register(Register::R2, Register::R10);
    program.add(Register::R2, -64);
    program.move_immediate(Register::R3, 64);
    program.move_immediate(Register::R4, 1);
    program.call(Helper::RingbufOutput);
    program.exit();
    program.assemble().expect("no labels")
}

/// A ring of one page has room for 56 records of 64 bytes with their headers.
#[test]
fn a_ring_keeps_the_first_records_and_refuses_the_others() {
    if !has_bpf_rights("a_ring_keeps_the_first_records_and_refuses_the_others") {
        return;
    }
    let shape = MapShape {
        key_bytes: 0,
        value_bytes: 0,
        entries_max: 4096,
    };
    let ring = BpfMap::create(MapKind::RingBuffer, shape).expect("root makes rings");
    let mut reader = RingBufferReader::map_ring(&ring, 4096).expect("a ring is mapped");
    let program = BpfProgram::load("writing", &writing_program(&ring)).expect("valid");
    for round in 0..3_u64 {
        let results: Vec<u32> = (0..100)
            .map(|number| program.run_once(&[round * 100 + number]).expect("it runs"))
            .collect();
        let kept = results.iter().filter(|result| **result == 0).count();
        assert_eq!(kept, 56, "round {round}");
        let mut numbers = Vec::new();
        let state = reader.read_records(|record| {
            assert_eq!(record.len(), 64);
            numbers.push(u64::from_le_bytes(
                record[..8].try_into().expect("eight bytes"),
            ));
        });
        assert_eq!(state, RingState::Drained);
        let expected: Vec<u64> = (round * 100..round * 100 + 56).collect();
        assert_eq!(numbers, expected);
    }
}
