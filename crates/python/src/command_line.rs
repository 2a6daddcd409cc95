//! `python -m diskperf`.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Does what a command line of diskperf says, and gives the exit code. The first
/// word is the name of the program.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| diskperf::run(&words))
}
