//! diskperf as a Python module: the laboratory's runs, explanations and points,
//! as columns that Arrow carries. `python/diskperf` is what users see of it.
//!
//! Nothing here decides anything: arguments become requests of the laboratory,
//! and what comes of them becomes columns or JSON.

mod ab;
mod arguments;
mod card;
mod catalogue;
mod columns;
mod command_line;
mod compare;
mod errors;
mod explanation;
mod figures;
mod findings;
mod interruptible;
mod listing;
mod points;
mod run;
mod spans;
mod store;
mod table;

use diskperf_allocator::Allocator;
use pyo3::prelude::*;

/// Of what is written in Rust. A point takes and frees a megabyte in large pieces,
/// and the C library's allocator gives each back to the system at once where
/// `MALLOC_TRIM_THRESHOLD_` is set, as Dask sets it for its workers: the page faults
/// then take as long as the point.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The part of diskperf that is written in Rust.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::ab::ab;
    #[pymodule_export]
    use crate::card::{Card, reproduce};
    #[pymodule_export]
    use crate::catalogue::Catalogue;
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::command_line::main;
    #[pymodule_export]
    use crate::compare::{Compared, compare};
    #[pymodule_export]
    use crate::explanation::{Differences, Explanation, differences, explain};
    #[pymodule_export]
    use crate::findings::{
        Finding, calculate_disk, calculate_flash, expected_of, record, reproduce_real_drives, trace,
    };
    #[pymodule_export]
    use crate::listing::{programs, suites};
    #[pymodule_export]
    use crate::points::{run_points, values_of};
    #[pymodule_export]
    use crate::run::{Run, charts, describe, is_job_file, run};
    #[pymodule_export]
    use crate::store::{delete_runs, load_runs, stored_runs};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
