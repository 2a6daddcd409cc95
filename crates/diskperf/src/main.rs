//! Binary `diskperf`: a laboratory for disk subsystem performance.

use diskperf_allocator::Allocator;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Passes the command line to the library and returns the exit code.
fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(diskperf::run(&words))
}
