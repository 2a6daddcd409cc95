//! Random sequences of calls, made on a world and on a plain reference in
//! memory, compared call by call and at the end byte for byte.
//!
//! Each test run makes the same sequences. `PROPTEST_RNG_SEED=N` makes others,
//! `PROPTEST_CASES=N` more of them; a failure prints its seed and the shortest
//! sequence that was found to fail.

mod call;
#[path = "../modelled/mod.rs"]
mod modelled;
mod reference;
#[cfg(target_os = "linux")]
#[path = "../support/mod.rs"]
mod support;

use call::{Call, NAMES, Outcome, data, path};
use diskperf_system::{Errno, File, OpenOptions, SeekOrigin, System};
use proptest::prelude::prop;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};
use reference::{Reference, Rules};

/// What a test run makes, unless the environment asks for others.
const SEQUENCES: u32 = 300;
const SEED: u64 = 1983;
/// Calls in a sequence.
const LENGTH: std::ops::Range<usize> = 1..100;

/// Makes the calls on the system and on the reference; `Err` says where they
/// differ.
async fn compare(system: &mut System, calls: &[Call], rules: Rules) -> Result<(), String> {
    let mut reference = Reference::of(rules);
    let mut files = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let Some(expected) = reference.make(call) else {
            continue;
        };
        let made = make(system, &mut files, call).await;
        if made != expected {
            return Err(format!(
                "call {number}, {call:?}, gave {made:?}; expected {expected:?}"
            ));
        }
    }
    for number in 0..files.len() {
        let call = Call::Length { file: number };
        let Some(Ok(Outcome::Number(length))) = reference.make(&call) else {
            continue;
        };
        for call in [
            Call::Lseek {
                file: number,
                offset: 0,
                whence: SeekOrigin::FileStart,
            },
            Call::Read {
                file: number,
                length: length as usize + 1,
            },
        ] {
            let expected = reference.make(&call).expect("it is an open file");
            if make(system, &mut files, &call).await != expected {
                return Err(format!("at the end, open file {number} differs"));
            }
        }
    }
    for name in NAMES {
        let Some(expected) = reference.file(name) else {
            continue;
        };
        if contents(system, name).await != expected {
            return Err(format!("at the end, {name} differs"));
        }
    }
    Ok(())
}

/// Makes one call. `files` are the descriptors by their number.
async fn make(system: &mut System, files: &mut Vec<File>, call: &Call) -> Result<Outcome, Errno> {
    let result = match *call {
        Call::Open { name, how } => system.open(&path(name), how).await.map(|file| {
            let number = files
                .iter()
                .position(|&known| known == file)
                .unwrap_or_else(|| {
                    files.push(file);
                    files.len() - 1
                });
            Outcome::Opened(number)
        }),
        Call::Read { file, length } => {
            let mut buffer = vec![0; length];
            let result = system.read(files[file], &mut buffer).await;
            result.map(|count| Outcome::Bytes(buffer[..count].to_vec()))
        }
        Call::Write {
            file,
            length,
            first,
        } => {
            let result = system.write(files[file], &data(length, first)).await;
            result.map(|count| Outcome::Number(count as u64))
        }
        Call::Lseek {
            file,
            offset,
            whence,
        } => system
            .lseek(files[file], offset, whence)
            .await
            .map(Outcome::Number),
        Call::Length { file } => system.file_length(files[file]).await.map(Outcome::Number),
        Call::Ftruncate { file, length } => system
            .ftruncate(files[file], length)
            .await
            .map(Outcome::done),
        Call::Fsync { file } => system.fsync(files[file]).await.map(Outcome::done),
        Call::Fchown { file } => system.fchown(files[file]).await.map(Outcome::done),
        Call::Fchmod { file } => {
            let result = system.fchmod(files[file], 0o644).await;
            result.map(Outcome::done)
        }
        Call::Chown { name } => system.chown(&path(name)).await.map(Outcome::done),
        // Of a directory or a file, so that both can still be used.
        Call::Chmod { name } => {
            let result = system.chmod(&path(name), 0o755).await;
            result.map(Outcome::done)
        }
        Call::Utimes { name } => system.utimes(&path(name)).await.map(Outcome::done),
        Call::Close { file } => system.close(files[file]).await.map(Outcome::done),
        Call::Unlink { name } => system.unlink(&path(name)).await.map(Outcome::done),
        Call::Mkdir { name } => system.mkdir(&path(name)).await.map(Outcome::done),
        Call::Rmdir { name } => system.rmdir(&path(name)).await.map(Outcome::done),
        Call::Rename { from, to } => {
            let result = system.rename(&path(from), &path(to)).await;
            // POSIX leaves the choice of the two to the file system; XFS says
            // EEXIST of a directory that is not empty.
            if result
                .as_ref()
                .is_err_and(|error| error.errno() == Some(Errno::Exists))
            {
                return Err(Errno::NotEmpty);
            }
            result.map(Outcome::done)
        }
    };
    result.map_err(|error| error.errno().expect("nobody ended the run"))
}

/// The bytes of the file of this name; `Err` where there is none.
async fn contents(system: &mut System, name: &str) -> Result<Vec<u8>, Errno> {
    let errno = |error: diskperf_system::Error| error.errno().expect("nobody ended the run");
    let file = system
        .open(&path(name), OpenOptions::READ)
        .await
        .map_err(errno)?;
    let length = system.file_length(file).await.map_err(errno)?;
    let mut bytes = vec![0; length as usize + 1];
    let count = system.read(file, &mut bytes).await;
    system.close(file).await.map_err(errno)?;
    bytes.truncate(count.map_err(errno)?);
    Ok(bytes)
}

/// Makes the sequences, each with what `run` does.
fn random_sequences(run: impl Fn(&[Call]) -> Result<(), String>) {
    let config = contextualize_config(Config {
        cases: SEQUENCES,
        rng_seed: RngSeed::Fixed(SEED),
        failure_persistence: None,
        ..Config::default()
    });
    let seed = config.rng_seed;
    let sequences = prop::collection::vec(call::any(), LENGTH);
    let result =
        TestRunner::new(config).run(&sequences, |calls| run(&calls).map_err(TestCaseError::fail));
    if let Err(error) = result {
        panic!("PROPTEST_RNG_SEED={seed}: {error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_host_does_as_the_reference() {
    use diskperf_system::host::{CallClock, HostPorts, HostWorker, WorkerControl};

    let clock = CallClock::new_calibrated();
    random_sequences(|calls| {
        let scratch = support::Scratch::new();
        let ports = HostPorts {
            directories: vec![support::opened(&scratch.path())],
            ..HostPorts::default()
        };
        let control = WorkerControl::for_single_worker(true, clock);
        let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
        diskperf_system::run_ready(compare(&mut system, calls, Rules::Posix))
    });
}

#[test]
fn the_model_does_as_the_reference() {
    for (system, setting, rules) in [
        (modelled::ANY_SYSTEM, "filesystem=8k", Rules::Posix),
        (modelled::ANY_SYSTEM, "filesystem=4k", Rules::Posix),
        (modelled::MINIX, "kernel.read_ahead_blocks=0", Rules::Minix),
        (modelled::MINIX, "kernel.read_ahead_blocks=5", Rules::Minix),
        (
            modelled::MINIX,
            "kernel.blocks_per_request=16",
            Rules::Minix,
        ),
        (
            modelled::MINIX,
            "driver.read_ahead_bytes=4096",
            Rules::Minix,
        ),
        (modelled::MINIX, "kernel.cache_blocks=8", Rules::Minix),
        (modelled::XENIX, "filesystem.gap_blocks=2", Rules::Xenix),
        (modelled::XENIX, "kernel.buffer_cache_share=0", Rules::Xenix),
    ] {
        let specification = modelled::specification(system, &[setting]);
        random_sequences(|calls| {
            let machine = modelled::machine(&specification);
            let calls = calls.to_vec();
            let compared = modelled::run_alone(
                &machine,
                modelled::ports_alone(),
                async move |mut system| {
                    let result = compare(&mut system, &calls, rules).await;
                    (system, result)
                },
            );
            compared.map_err(|deadlock| deadlock.to_string())??;
            sound(&machine)
        });
    }
}

/// On a volume that is full most of the time every call may fail; what is
/// there is still a file system.
#[test]
fn a_full_model_stays_sound() {
    for (system, setting) in [
        (modelled::ANY_SYSTEM, "filesystem=8k"),
        (modelled::ANY_SYSTEM, "filesystem=4k"),
        (modelled::MINIX, "kernel.cache_blocks=8"),
        (modelled::XENIX, "kernel.buffer_cache_share=0"),
    ] {
        let small = [setting, "drive.partition_sectors=3000"];
        let specification = modelled::specification(system, &small);
        random_sequences(|calls| {
            let machine = modelled::machine(&specification);
            let calls = calls.to_vec();
            let made = modelled::run_alone(
                &machine,
                modelled::ports_alone(),
                async move |mut system| {
                    make_all(&mut system, &calls).await;
                    (system, ())
                },
            );
            made.map_err(|deadlock| deadlock.to_string())?;
            sound(&machine)
        });
    }
}

/// Makes the calls, whatever comes of them.
async fn make_all(system: &mut System, calls: &[Call]) {
    let mut files = Vec::new();
    for call in calls {
        let file = match *call {
            Call::Read { file, .. }
            | Call::Write { file, .. }
            | Call::Lseek { file, .. }
            | Call::Ftruncate { file, .. }
            | Call::Length { file }
            | Call::Fsync { file }
            | Call::Fchown { file }
            | Call::Fchmod { file }
            | Call::Close { file } => Some(file),
            _ => None,
        };
        if file.is_none_or(|file| file < files.len()) {
            let _ = make(system, &mut files, call).await;
        }
    }
}

fn sound(machine: &diskperf_machine::Machine) -> Result<(), String> {
    let checked = machine.check_file_system(0);
    checked.map(|_| ()).map_err(|problems| problems.join("; "))
}
