//! Commands of the user: the workload, and the check of a medium.

use crate::LaboratoryError;
use diskperf_system::host::child_group::{ChildGroup, GroupEnd};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Bytes of a check's output that are kept.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// Returns a command line for the shell, with the path of a program that is named relative to the
/// current directory made absolute: the command runs in another directory.
pub(super) fn absolute_line(line: &str) -> String {
    let line = line.trim();
    let program = line.split_whitespace().next().unwrap_or_default();
    let is_relative = program.contains('/') && !program.starts_with('/');
    match Path::new(program).canonicalize() {
        Ok(path) if is_relative => {
            let quoted = path.display().to_string().replace('\'', "'\\''");
            format!("'{quoted}'{}", &line[program.len()..])
        }
        _ => line.to_owned(),
    }
}

/// Returns a shell that runs a line in a mounted file system.
pub(super) fn shell(line: &str, mount: &Path) -> Result<Command, LaboratoryError> {
    let started_in = std::env::current_dir().map_err(LaboratoryError::work)?;
    let mut command = Command::new("sh");
    command
        .args(["-c", &absolute_line(line)])
        .current_dir(mount)
        .stdin(Stdio::null())
        .env("DISKPERF_MOUNT", mount)
        .env("DISKPERF_DIRECTORY", started_in);
    Ok(command)
}

/// Runs a command whose output goes to a file, and returns its end with the output.
pub(super) fn run_captured(
    mut command: Command,
    output: &Path,
    time_max: Option<Duration>,
    stop: &AtomicBool,
) -> Result<(GroupEnd, String), LaboratoryError> {
    let failed =
        |error: std::io::Error| LaboratoryError::Workload(format!("{}: {error}", output.display()));
    let file = File::create(output).map_err(failed)?;
    let other = file.try_clone().map_err(failed)?;
    command.stdout(file).stderr(other);
    let end = run(command, time_max, stop)?;
    let mut bytes = Vec::new();
    let read = File::open(output).and_then(|file| {
        let mut file = file.take(OUTPUT_BYTES_MAX);
        file.read_to_end(&mut bytes)
    });
    read.map_err(failed)?;
    Ok((end, String::from_utf8_lossy(&bytes).trim().to_owned()))
}

/// Runs a command to its end.
pub(super) fn run(
    command: Command,
    time_max: Option<Duration>,
    stop: &AtomicBool,
) -> Result<GroupEnd, LaboratoryError> {
    let started = ChildGroup::start(command);
    started
        .and_then(|child| child.wait(time_max, stop))
        .map_err(|error| LaboratoryError::Workload(format!("cannot run sh: {error}")))
}
