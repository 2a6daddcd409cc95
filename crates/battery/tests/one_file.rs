//! A program is one file and one line: a copy of the crate gets another, and builds.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// A program that the battery does not have.
const PROGRAM: &str = r#"//! `read_backwards`: reads a file from its last block to its first.

use crate::blocks::{ensure_file, read_block, seek_to_offset};
use crate::parameter::ParameterField;
use crate::pattern::{AccessPattern, PhaseFuture, ProgramEntry, ProgramProperties, SystemAndWorker};
use crate::program::InputFile;
use crate::worker::Worker;
use diskperf_system::{Buffer, OpenOptions, System};

pub(crate) const PROGRAMS: &[ProgramEntry] = &[ProgramEntry {
    name: "read_backwards",
    summary: "reads a file from its last block to its first",
    file_set_name: "backwards",
    new_pattern: || Box::new(ReadBackwards { call_bytes: 8192 }),
}];

#[derive(Clone, Debug)]
struct ReadBackwards {
    call_bytes: u64,
}

impl ReadBackwards {
    fn path(worker: &Worker) -> String {
        worker.file_path("backwards")
    }
}

impl AccessPattern for ReadBackwards {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        vec![ParameterField::new_call_bytes(&mut self.call_bytes, "bytes per read call")]
    }

    fn program_properties(&self) -> ProgramProperties {
        ProgramProperties::new_for_reads(self.call_bytes)
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile::new_read(Self::path(worker), worker.size_bytes)]
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            ensure_file(system, worker, &Self::path(worker), worker.size_bytes).await
        })
    }

    fn run_timed_part<'a>(&'a self, (system, worker): SystemAndWorker<'a>, buffer: &'a mut Buffer) -> PhaseFuture<'a> {
        Box::pin(async move {
            let how = OpenOptions::READ.with_direct(worker.direct_io);
            let file = system.open(&Self::path(worker), how).await?;
            let block = &mut buffer[..self.call_bytes as usize];
            for call in (0..worker.size_bytes / self.call_bytes).rev() {
                seek_to_offset(system, file, call * self.call_bytes).await?;
                read_block(system, file, block, worker.think_time).await?;
            }
            Ok(())
        })
    }
}
"#;

/// The list that the line goes into.
const LIST: &str = "programs! {\n";

#[test]
fn a_program_is_one_file_and_one_line() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A folder of its own, and in it a target directory: cargo locks the one that this
    // test was built in. What it builds there the next run finds.
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("one-file");
    fs::create_dir_all(&scratch).unwrap();
    let alone = File::create(scratch.join("lock")).unwrap();
    alone.lock().unwrap();
    let copy = scratch.join("battery");
    let _ = fs::remove_dir_all(&copy);
    copy_tree(&package.join("src"), &copy.join("src"));
    fs::copy(package.join("Cargo.toml"), copy.join("Cargo.toml")).unwrap();
    write_workspace(package.parent().unwrap().parent().unwrap(), &scratch);

    fs::write(copy.join("src/programs/read_backwards.rs"), PROGRAM).unwrap();
    let list = fs::read_to_string(copy.join("src/programs.rs")).unwrap();
    assert_eq!(list.matches(LIST).count(), 1, "{list}");
    let list = list.replace(LIST, &format!("{LIST}    read_backwards,\n"));
    fs::write(copy.join("src/programs.rs"), list).unwrap();

    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let check = Command::new(cargo)
        .args(["check", "--offline", "--quiet", "--target-dir", "target"])
        .current_dir(&scratch)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(check.status.success(), "{said}");
    assert!(!said.contains("warning"), "{said}");
}

/// A workspace with the copy as its only member, on the same crates as the real one.
fn write_workspace(root: &Path, scratch: &Path) {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, shared) = manifest.split_once("[workspace.package]").unwrap();
    // Profiles name crates that the copy does not need, of which cargo warns.
    let (shared, _) = shared.split_once("[profile").unwrap();
    let crates = format!("path = \"{}/crates/", root.display());
    let shared = shared.replace("path = \"crates/", &crates);
    let text = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"battery\"]\n\n[workspace.package]{shared}"
    );
    fs::write(scratch.join("Cargo.toml"), text).unwrap();
    fs::copy(root.join("Cargo.lock"), scratch.join("Cargo.lock")).unwrap();
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_tree(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
}
