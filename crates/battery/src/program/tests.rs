use super::*;
use crate::company::WorkerGroupMember;

#[test]
fn every_program_is_there_and_takes_its_own_values_back() {
    for (name, _) in Program::list_programs() {
        let mut program = Program::from_name(name).unwrap_or_else(|| panic!("{name}"));
        for parameter in program.list_parameters() {
            program
                .set_parameter(parameter.parameter_name, &parameter.value)
                .unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(Some(program), Program::from_name(name));
    }
}

#[test]
fn wrong_parameters_say_what_is_right() {
    let message = |name: &str, key: &str, value: &str| {
        let mut program = Program::from_name(name).unwrap();
        program.set_parameter(key, value).unwrap_err().to_string()
    };
    for (program, key, value, expected) in [
        (
            "read_8192",
            "call_byts",
            "1",
            "program read_8192 has no parameter `call_byts`; did you mean `call_bytes`?",
        ),
        (
            "seqread",
            "layer",
            "disk",
            "seqread.layer cannot be `disk`: it takes null, bnull, zero, cached, dropped, direct, device, device_direct",
        ),
        (
            "random_mix",
            "write_share",
            "1.5",
            "random_mix.write_share cannot be `1.5`: it takes a share from 0 to 1",
        ),
        (
            "copy",
            "call_bytes",
            "0",
            "copy.call_bytes cannot be `0`: it takes a size from 1 to 1073741824 bytes",
        ),
    ] {
        assert_eq!(message(program, key, value), expected);
    }
}

#[test]
fn every_parameter_of_bytes_takes_a_size() {
    for (name, _) in Program::list_programs() {
        let mut program = Program::from_name(name).unwrap();
        let of_bytes = |parameter: &Parameter| parameter.parameter_name.ends_with("_bytes");
        for parameter in program.list_parameters().into_iter().filter(of_bytes) {
            for size in ["1M", "1_048_576"] {
                let set = program.set_parameter(parameter.parameter_name, size);
                assert_eq!(set, Ok(()), "{name}");
                let values = program.parameter_values();
                assert_eq!(values[parameter.parameter_name], "1048576", "{name}");
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let program = Program::from_name("read_8192").unwrap();
    for (size, expected) in [
        (
            0,
            "read_8192: a size of 0 moves nothing; give --size 8M, or omit it",
        ),
        (
            4096,
            "read_8192: one call of 8192 bytes is larger than the size of 4096; give a larger --size or a smaller program.call_bytes",
        ),
        (
            20_000,
            "read_8192: the size of 20000 bytes is not a multiple of the call of 8192; --size 16384 is the nearest below",
        ),
    ] {
        assert_eq!(
            program.check_parameters(size).unwrap_err().to_string(),
            expected
        );
    }
    assert_eq!(program.check_parameters(8 << 20), Ok(()));
}

/// What tree programs do with their buffer is not one call's worth.
#[test]
fn a_short_buffer_is_the_start_of_the_long_one_and_holds_a_call() {
    let worker = Worker {
        worker_index: 0,
        drive_index: 0,
        medium: Medium::Directory,
        file_folder: "",
        second_target: None,
        size_bytes: 8 << 20,
        direct_io: false,
        random_seed: 1983,
        think_time: Nanoseconds::ZERO,
        worker_group: WorkerGroupMember::default(),
    };
    for (name, _) in Program::list_programs() {
        let program = Program::from_name(name).unwrap();
        let (long, short) = (
            program.new_buffer(&worker),
            program.new_short_buffer(&worker),
        );
        let whole =
            program.properties().works_on_tree || long.len() == program.buffer_bytes() as usize;
        assert!(short.len() as u64 >= program.call_bytes(), "{name}");
        assert!(long.starts_with(&short), "{name}");
        assert_eq!(short.len() == long.len(), whole, "{name}");
    }
}

#[test]
fn names_that_begin_with_what_was_typed_are_nearest() {
    let known = ["vme", "nvme-tlc", "bare-nvme-tlc", "random"];
    for (typed, near) in [("nvme", "nvme-tlc"), ("vme", "vme"), ("radnom", "random")] {
        assert_eq!(nearest_name(typed, known).as_deref(), Some(near), "{typed}");
    }
}
