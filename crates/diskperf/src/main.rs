//! diskperf: a laboratory for disk subsystem performance.

use std::process::ExitCode;

/// Measures storage, keeps what it measured, and compares it.
fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(diskperf::run(&words))
}
