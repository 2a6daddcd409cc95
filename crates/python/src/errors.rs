//! Conversion of errors to the exceptions that `python/diskperf/_errors.py` declares.

use diskperf_laboratory::LaboratoryError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// Converts an error to its exception.
pub(crate) fn to_exception(py: Python<'_>, error: &LaboratoryError) -> PyErr {
    match error.root_cause() {
        LaboratoryError::Interrupted => match error {
            LaboratoryError::Interrupted => PyKeyboardInterrupt::new_err(()),
            left => PyKeyboardInterrupt::new_err(error_message(left)),
        },
        LaboratoryError::Catalogue(_)
        | LaboratoryError::Setting(_)
        | LaboratoryError::Parameter(_) => {
            package_exception(py, "SettingError", error_message(error))
        }
        LaboratoryError::Request(_) => package_exception(py, "RequestError", error_message(error)),
        LaboratoryError::Budget(_) => package_exception(py, "BudgetError", error_message(error)),
        LaboratoryError::Program { .. }
        | LaboratoryError::Workload(_)
        | LaboratoryError::Leftovers { .. } => {
            package_exception(py, "RunError", error_message(error))
        }
        LaboratoryError::Store(_) => package_exception(py, "StoreError", error_message(error)),
        LaboratoryError::File { .. } => package_exception(py, "FileError", error_message(error)),
    }
}

/// Creates an exception of the package by its name.
pub(crate) fn package_exception(py: Python<'_>, name: &str, text: String) -> PyErr {
    let class = py
        .import("diskperf._errors")
        .and_then(|module| module.getattr(name))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match class {
        Ok(class) => PyErr::from_type(class, text),
        Err(error) => error,
    }
}

/// Creates an exception for a request that only Python can express.
pub(crate) fn request_exception(py: Python<'_>, text: String) -> PyErr {
    package_exception(py, "RequestError", text)
}

/// Returns the message of an error, with Python's keywords in place of the command line's options.
pub(crate) fn error_message(error: &LaboratoryError) -> String {
    let replaced = |text: String, (option, keyword): &(&str, &str)| text.replace(option, keyword);
    OPTION_KEYWORDS.iter().fold(error.to_string(), replaced)
}

/// Options in the messages of the library, each with the keyword of `run`. An option stands before
/// the shorter ones that it contains.
const OPTION_KEYWORDS: &[(&str, &str)] = &[
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
