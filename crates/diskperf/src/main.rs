//! diskperf: a laboratory for disk subsystem performance.

use std::process::ExitCode;

/// Models take and free small pieces at every event and megabytes at every run. musl's
/// allocator has one lock for all threads, and gives each large piece back to the system;
/// glibc's takes longer for the small ones.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures storage, keeps what it measured, and compares it.
fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(diskperf::run(&words))
}
