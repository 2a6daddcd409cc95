//! Command line of the package, `python -m diskperf`.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Executes a command line and returns the exit code. The first word is the name of the program.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| diskperf::run(&words))
}
