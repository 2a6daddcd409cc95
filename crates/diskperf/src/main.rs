//! diskperf: a laboratory for disk subsystem performance.

use std::process::ExitCode;

/// musl's allocator has one lock for all threads, and gives each large piece back to the
/// system: models, which take and free megabytes, would wait for it.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures storage, keeps what it measured, and compares it.
fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(diskperf::run(&words))
}
