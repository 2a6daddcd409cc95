//! diskperf as a Python module: the laboratory's runs, explanations and points,
//! as columns that Arrow carries. `python/diskperf` is what users see of it.
//!
//! Nothing here decides anything: arguments become requests of the laboratory,
//! and what comes of them becomes columns or JSON.

mod arguments;
mod card;
mod catalogue;
mod columns;
mod command_line;
mod errors;
mod explanation;
mod figures;
mod interruptible;
mod listing;
mod points;
mod run;
mod spans;
mod store;
mod table;

use pyo3::prelude::*;

/// The part of diskperf that is written in Rust.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::card::{Card, reproduce};
    #[pymodule_export]
    use crate::catalogue::Catalogue;
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::command_line::main;
    #[pymodule_export]
    use crate::explanation::{Explanation, differences, explain};
    #[pymodule_export]
    use crate::listing::{programs, suites};
    #[pymodule_export]
    use crate::points::run_points;
    #[pymodule_export]
    use crate::run::{Run, charts, describe, run};
    #[pymodule_export]
    use crate::store::{load_runs, stored_runs};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
