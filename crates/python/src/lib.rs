//! Python module of diskperf: runs, explanations and points of the laboratory, as Arrow columns.
//! Users see it through `python/diskperf`.
//!
//! The module makes no decisions: arguments become requests of the laboratory, and their results
//! become columns or JSON.

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

/// Allocator of the Rust code. A point allocates and frees a megabyte in large pieces. Where
/// `MALLOC_TRIM_THRESHOLD_` is set, as Dask sets it for its workers, the C library's allocator
/// returns each piece to the system at once, and the page faults take as long as the point.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Native part of the diskperf package.
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
        Finding, calculate_disk, calculate_flash, calculate_volume, expected_of, record,
        reproduce_real_drives, trace,
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
