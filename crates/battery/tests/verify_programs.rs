//! Programs that write blocks read them back and compare them: planted damage is found in each
//! of them and named, and nothing else is.
#![cfg(target_os = "linux")]

mod verification;

use diskperf_battery::{Medium, Program, set_read_back_hook};
use diskperf_fio::verify::MAGIC;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use verification::{
    Outcome, Shown, end_on_host, job, program_on_host, programs_on_model, shown_on_host,
    shown_on_model,
};

/// A program with the parameters by which it writes, and where it can run.
struct Case {
    name: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    /// File of the program whose blocks are damaged.
    file: &'static str,
    /// Bytes from one block of the file to the next.
    block_bytes: usize,
    models: &'static [(&'static str, Medium)],
}

const MODELS: &[(&str, Medium)] = &[
    ("vax780-sc780-eagle", Medium::Directory),
    ("bare-fixed", Medium::Device),
];
const MODELS_OF_FILES: &[(&str, Medium)] = &[("vax780-sc780-eagle", Medium::Directory)];

const CASES: &[Case] = &[
    Case {
        name: "write_4096",
        parameters: &[],
        file: "tst2",
        block_bytes: 4096,
        models: MODELS,
    },
    Case {
        name: "write_8192",
        parameters: &[],
        file: "tst2",
        block_bytes: 8192,
        models: MODELS,
    },
    Case {
        name: "rewrite_8192",
        parameters: &[],
        file: "tst2",
        block_bytes: 8192,
        models: MODELS,
    },
    Case {
        name: "copy",
        parameters: &[("destination", "same")],
        file: "bigfile.new",
        block_bytes: 8192,
        models: MODELS_OF_FILES,
    },
    Case {
        name: "random_mix",
        parameters: &[
            ("write_share", "1"),
            ("area_bytes", "1M"),
            ("sizes", "8K:1"),
            ("align_bytes", "8K"),
        ],
        file: "mix",
        block_bytes: 8192,
        models: MODELS,
    },
    Case {
        name: "random",
        parameters: &[
            ("write_share", "1"),
            ("area_bytes", "1M"),
            ("block_bytes", "8K"),
            ("depth", "4"),
        ],
        file: "load",
        block_bytes: 8192,
        models: MODELS,
    },
    Case {
        name: "sequential",
        parameters: &[
            ("write_share", "1"),
            ("area_bytes", "1M"),
            ("block_bytes", "8K"),
        ],
        file: "load",
        block_bytes: 8192,
        models: MODELS,
    },
    Case {
        name: "log_append",
        parameters: &[("area_bytes", "1M"), ("group", "4")],
        file: "log0",
        block_bytes: 4096,
        models: MODELS_OF_FILES,
    },
    Case {
        name: "log_append",
        parameters: &[("area_bytes", "512K"), ("preallocated", "yes")],
        file: "log0",
        block_bytes: 4096,
        models: MODELS_OF_FILES,
    },
    Case {
        name: "database",
        parameters: &[("area_bytes", "1M"), ("log_bytes", "1M")],
        file: "wal0",
        block_bytes: 4096,
        models: MODELS_OF_FILES,
    },
    Case {
        name: "metadata",
        parameters: &[
            ("phases", "create+stat+rename"),
            ("file_bytes", "8K"),
            ("directories", "1"),
        ],
        file: "names0/d0",
        block_bytes: 8192,
        models: MODELS_OF_FILES,
    },
    Case {
        name: "populate",
        parameters: &[],
        file: "usr",
        block_bytes: 8192,
        models: MODELS_OF_FILES,
    },
];

fn program(case: &Case) -> Program {
    let mut program = Program::from_name(case.name).expect("a program");
    for (key, value) in case.parameters.iter().chain(&[("verify", "yes")]) {
        let set = program.set_parameter(key, value);
        set.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
    program
}

/// Planted damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    None,
    /// One bit of a byte.
    Bit,
    /// Bytes that were there before.
    Stale,
    /// A block that was written elsewhere.
    Misplaced,
}

/// Blocks of a program's files: each is in a file, from an offset on.
fn blocks(path: &Path, block_bytes: usize) -> Vec<(PathBuf, usize)> {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        let all = entries.iter().flat_map(|entry| blocks(entry, block_bytes));
        return all.collect();
    }
    let length = fs::metadata(path).expect("a file").len() as usize;
    let whole = (0..length / block_bytes).map(|block| block * block_bytes);
    whole.map(|at| (path.to_owned(), at)).collect()
}

/// Plants damage into one block; returns the file and the offset of the block.
fn plant(
    path: &Path,
    block_bytes: usize,
    (damage, seed): (Damage, usize),
) -> Option<(PathBuf, usize)> {
    let read = |(file, at): &(PathBuf, usize)| {
        fs::read(file).expect("a file")[*at..at + block_bytes].to_vec()
    };
    let mut all = blocks(path, block_bytes);
    // Where requests are drawn, not every block of the file is written.
    let is_written = |block: &(PathBuf, usize)| read(block).starts_with(&MAGIC.to_le_bytes());
    if all.iter().any(is_written) {
        all.retain(is_written);
    }
    assert!(all.len() > 1, "{path:?}");
    let (file, at) = all[seed % all.len()].clone();
    let mut block = read(&(file.clone(), at));
    match damage {
        Damage::None => return None,
        Damage::Bit => block[seed * 7 % block_bytes] ^= 1 << (seed % 8),
        Damage::Stale => block.fill(0x5a),
        Damage::Misplaced => block = read(&all[(seed + 1) % all.len()]),
    }
    let mut bytes = fs::read(&file).expect("a file");
    bytes[at..at + block_bytes].copy_from_slice(&block);
    fs::write(&file, bytes).expect("a file");
    Some((file, at))
}

#[test]
fn each_program_finds_planted_damage_and_nothing_else() {
    let damages = [Damage::None, Damage::Bit, Damage::Stale, Damage::Misplaced];
    for case in CASES {
        for (number, damage) in damages.iter().enumerate() {
            find(case, (*damage, number));
            find(case, (*damage, number + 17));
        }
    }
}

fn find(case: &Case, (damage, seed): (Damage, usize)) {
    let folder = tempfile::tempdir().expect("a folder");
    let what = format!(
        "{} {:?}on a folder, {damage:?}, {seed}",
        case.name, case.parameters
    );
    let path = folder.path().join(case.file);
    let planted = std::rc::Rc::new(std::cell::RefCell::new(None));
    let at = std::rc::Rc::clone(&planted);
    let block_bytes = case.block_bytes;
    set_read_back_hook(Some(Box::new(move || {
        *at.borrow_mut() = plant(&path, block_bytes, (damage, seed));
    })));
    let outcome = program_on_host(folder.path(), &program(case));
    set_read_back_hook(None);
    let planted = planted.take();
    let Some((file, at)) = planted else {
        let load = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
        let verified = load
            .verified_blocks
            .unwrap_or_else(|| panic!("{what}: nothing verified"));
        assert!(
            verified.block_count > 1 && verified.mismatch_count == 0,
            "{what}: {verified:?}"
        );
        assert!(
            verified.written_bytes >= verified.verified_bytes,
            "{what}: {verified:?}"
        );
        return;
    };
    let text = outcome.expect_err(&what).to_string();
    let place = (at..at + block_bytes).any(|byte| text.contains(&format!("byte {byte}: ")));
    let name = file
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(
        text.contains(": 1 of ") && place && text.contains(&*name),
        "{what}, block {at} of {file:?}: {text}"
    );
    assert!(
        text.contains("expected ") && text.contains(", got "),
        "{what}: {text}"
    );
}

/// Jobs whose blocks are read back.
const JOBS: &[&str] = &[
    "filename=f size=256k bs=4k rw=write verify=crc32c",
    "filename=f size=256k bs=4k rw=randwrite verify=md5 ioengine=libaio iodepth=8",
    "filename=f size=256k bs=4k rw=write verify=crc32c loops=3",
    "filename=f size=256k bs=4k rw=write verify=crc32c verify_only",
    "filename=f size=256k bs=4k rw=randwrite norandommap verify=crc32c verify_only",
    "size=256k bs=4k rw=write verify=sha1 nrfiles=4",
];

/// Whoever waits sees each block of what is read back, to the last.
#[test]
fn a_read_back_is_shown_to_its_last_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = CASES.iter().map(|case| {
        let place = format!("{} {:?}", case.name, case.parameters);
        (place, program(case), case.models)
    });
    let jobs = JOBS.iter().map(|options| {
        let none = BTreeMap::new();
        let program =
            Program::from_fio_job(&job(options), &BTreeMap::new(), &BTreeMap::new(), &none);
        let program = program.unwrap_or_else(|errors| panic!("{options}: {errors}"));
        (options.to_string(), program, &[][..])
    });
    for (place, program, models) in programs.chain(jobs) {
        let of_host = shown_on_host(folder.path(), &program);
        let of_models = models.iter().map(|(rig, medium)| {
            let Shown { outcome, progress } = shown_on_model(rig, *medium, vec![program.clone()]);
            let [outcome] = outcome.try_into().expect("one program");
            Shown { outcome, progress }
        });
        for Shown { outcome, progress } in std::iter::once(of_host).chain(of_models) {
            let load = outcome.unwrap_or_else(|error| panic!("{place}: {error}"));
            let verified = load.verified_blocks.expect("it verifies");
            let shown = progress.read_back_progress();
            assert!(shown.blocks_to_verify > 0, "{place}");
            assert_eq!(shown.verified_blocks, shown.blocks_to_verify, "{place}");
            // The last pass of several alone is shown at the end of all.
            let is_of_last_pass = verified.block_count.is_multiple_of(shown.verified_blocks);
            assert!(is_of_last_pass, "{place}: {shown:?}, {verified:?}");
        }
    }
}

#[test]
fn contents_are_verified_on_models() {
    for case in CASES {
        for (rig, medium) in case.models {
            let outcome = programs_on_model(rig, *medium, vec![program(case)]).remove(0);
            let load = outcome.unwrap_or_else(|error| panic!("{} on {rig}: {error}", case.name));
            let verified = load
                .verified_blocks
                .unwrap_or_else(|| panic!("{} on {rig}", case.name));
            assert!(
                verified.block_count > 1 && verified.mismatch_count == 0,
                "{} on {rig}: {verified:?}",
                case.name
            );
        }
    }
}

#[test]
fn every_program_is_verified_or_says_why_not() {
    let verified: Vec<&str> = CASES
        .iter()
        .map(|case| case.name)
        .chain(["dump_restore"])
        .collect();
    for (name, _) in Program::list_programs() {
        let program = Program::from_name(name).expect("a program");
        let reason = program.unverified_reason();
        assert_eq!(
            reason.is_none(),
            verified.contains(&name),
            "{name}: {reason:?}"
        );
        assert!(
            program.writes_target()
                || reason.is_some()
                || ["copy", "random", "sequential"].contains(&name),
            "{name}"
        );
    }
}

/// Runs both ends of `dump_restore` in a directory: the outcome of the one that restores and
/// compares, with `plant` called in between.
fn dump_and_restore(folder: &Path, plant: Option<Box<dyn FnMut() + Send>>) -> Outcome {
    let (read, write) = std::io::pipe().expect("a pipe");
    let mut program = Program::from_name("dump_restore").expect("a program");
    program.set_parameter("verify", "yes").expect("a choice");
    std::thread::scope(|scope| {
        let dump = scope.spawn(|| end_on_host(folder, (&program, 0), write.into()));
        let restore = scope.spawn(|| {
            set_read_back_hook(plant.map(|plant| -> Box<dyn FnMut()> { plant }));
            end_on_host(folder, (&program, 1), read.into())
        });
        let dumped = dump.join().expect("it ends");
        dumped.unwrap_or_else(|error| panic!("dump: {error}"));
        restore.join().expect("it ends")
    })
}

/// Files below a folder that are not empty.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    let all = paths.into_iter().flat_map(below);
    all.filter(|path| fs::metadata(path).expect("a file").len() > 0)
        .collect()
}

#[test]
fn a_restored_file_that_differs_from_what_was_dumped_is_found() {
    for seed in [None, Some(0_usize), Some(5), Some(11)] {
        let folder = tempfile::tempdir().expect("a folder");
        let restored = folder.path().join("restored");
        let planted: Arc<Mutex<Option<(String, usize)>>> = Arc::default();
        let plant = seed.map(|seed| -> Box<dyn FnMut() + Send> {
            let planted = Arc::clone(&planted);
            Box::new(move || {
                let all = files(&restored);
                let path = &all[seed % all.len()];
                let mut bytes = fs::read(path).expect("a file");
                let at = seed * 977 % bytes.len();
                bytes[at] ^= 1 << (seed % 8);
                fs::write(path, bytes).expect("a file");
                let name = path.file_name().expect("a name").to_string_lossy();
                *planted.lock().expect("a lock") = Some((name.into_owned(), at));
            })
        });
        let outcome = dump_and_restore(folder.path(), plant);
        if seed.is_none() {
            let load = outcome.unwrap_or_else(|error| panic!("nothing was planted: {error}"));
            let verified = load.verified_blocks.expect("it verifies");
            assert!(
                verified.block_count > 1 && verified.mismatch_count == 0,
                "{verified:?}"
            );
            continue;
        }
        let error = outcome.expect_err("a file differs").to_string();
        let (name, at) = planted.lock().expect("a lock").take().expect("damage");
        assert!(
            error.contains(&format!("{name}: byte {at}: expected ")) && error.contains(": 1 of "),
            "{seed:?}, {name}, byte {at}: {error}"
        );
    }
}
