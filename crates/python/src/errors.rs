//! Errors of the core as Python's exceptions, which `python/diskperf/_errors.py`
//! declares.

use diskperf_laboratory::LaboratoryError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The exception of an error, with its words.
pub(crate) fn exception(py: Python<'_>, error: &LaboratoryError) -> PyErr {
    match error.root_cause() {
        LaboratoryError::Interrupted => match error {
            LaboratoryError::Interrupted => PyKeyboardInterrupt::new_err(()),
            left => PyKeyboardInterrupt::new_err(words(left)),
        },
        LaboratoryError::Catalogue(_)
        | LaboratoryError::Setting(_)
        | LaboratoryError::Parameter(_) => named(py, "SettingError", words(error)),
        LaboratoryError::Request(_) => named(py, "RequestError", words(error)),
        LaboratoryError::Budget(_) => named(py, "BudgetError", words(error)),
        LaboratoryError::Program { .. }
        | LaboratoryError::Workload(_)
        | LaboratoryError::Leftovers { .. } => named(py, "RunError", words(error)),
        LaboratoryError::Store(_) => named(py, "StoreError", words(error)),
        LaboratoryError::File { .. } => named(py, "FileError", words(error)),
    }
}

/// An exception of the package by its name.
pub(crate) fn named(py: Python<'_>, name: &str, text: String) -> PyErr {
    let class = py
        .import("diskperf._errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match class {
        Ok(class) => PyErr::from_type(class, text),
        Err(error) => error,
    }
}

/// A request that only Python can make wrong.
pub(crate) fn request_error(py: Python<'_>, text: String) -> PyErr {
    named(py, "RequestError", text)
}

/// The words of an error. What it says of the command line's options, it says of
/// Python's keywords here: who catches an exception has no command line.
pub(crate) fn words(error: &LaboratoryError) -> String {
    let replaced = |text: String, (option, keyword): &(&str, &str)| text.replace(option, keyword);
    OPTIONS.iter().fold(error.to_string(), replaced)
}

/// Options as the library's remedies name them, and what `run` calls them: what is
/// longer stands before what it begins with.
const OPTIONS: &[(&str, &str)] = &[
    ("--> --set:", "--> settings:"),
    ("(--set ", "(setting "),
    ("--set ", "setting "),
    ("--over ", "over "),
    ("write `diskperf run --on ", "write `on="),
    ("`diskperf run --on`", "`run`"),
    ("`diskperf run` then measures", "`run` then measures"),
    (
        "--on DIR1 --on DIR2 --together",
        "on=[DIR1, DIR2], together=True",
    ),
    ("--on ", "on="),
    ("--on", "`on`"),
    ("--together", "together=True"),
    ("--destroy-data-on applies", "destroy_data_on applies"),
    ("--destroy-data-on ", "destroy_data_on="),
    ("--destroy-data-on", "destroy_data_on"),
    ("--ignore-signature", "ignore_signature=True"),
    ("--killed", "killed=True"),
    ("--drop-caches", "drop_caches=True"),
    ("--direct", "cache=\"direct\""),
    ("--fresh", "fresh"),
    ("--other applies", "other applies"),
    ("--other ", "other="),
    ("--drives applies", "drives applies"),
    ("--drives ", "drives="),
    ("--size 8M", "size=\"8M\""),
    ("--size 4G", "size=\"4G\""),
    ("--size", "size"),
    ("--store ", "store="),
    ("--no-budget", "no_budget=True"),
    ("--min-time", "min_time_s"),
    ("the --budget is", "budget_s is"),
    (
        "larger --budget or a shorter",
        "larger budget_s or a shorter",
    ),
    ("--runs ", "repetitions="),
    (
        "`diskperf list published`",
        "`Catalogue().list(\"published\")`",
    ),
];
