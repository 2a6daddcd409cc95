//! The store against real files: what comes back, what is refused, and what a
//! kill, a full disk or another writer leaves.

mod concurrent;
#[cfg(target_os = "linux")]
mod full;
mod killed;
#[cfg(unix)]
mod moved;
mod old_version;
#[cfg(unix)]
mod permission;
mod refused;
mod round_trip;
mod samples;
#[cfg(target_os = "linux")]
mod shared;

use std::env;
use std::path::Path;
use std::process::Command;

/// Tells a process that runs a test again what its part is.
const PART: &str = "DISKPERF_STORE_TEST_PART";

/// The test `name` in a process of its own, where [`part`] is `part`.
fn again(name: &str, part: &Path) -> Command {
    let this = env::current_exe().expect("a running test has a path");
    let mut command = Command::new(this);
    command
        .args([name, "--exact", "--nocapture"])
        .env(PART, part);
    command
}

/// The part of a test's child process; none in the test itself.
fn part() -> Option<std::path::PathBuf> {
    env::var_os(PART).map(Into::into)
}
