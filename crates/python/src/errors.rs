//! Errors of the core as Python's exceptions, which `python/diskperf/_errors.py`
//! declares.

use diskperf_laboratory::LaboratoryError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The exception of an error, with its words.
pub(crate) fn exception(py: Python<'_>, error: &LaboratoryError) -> PyErr {
    match error {
        LaboratoryError::Interrupted => PyKeyboardInterrupt::new_err(()),
        LaboratoryError::Catalogue(_) | LaboratoryError::Parameter(_) => {
            named(py, "SettingError", words(error))
        }
        LaboratoryError::Request(_) => named(py, "RequestError", words(error)),
        LaboratoryError::Program { .. } | LaboratoryError::Work(_) => {
            named(py, "RunError", words(error))
        }
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

/// The words of an error. What the command line calls `--set`, Python calls
/// settings.
pub(crate) fn words(error: &LaboratoryError) -> String {
    error
        .to_string()
        .replace("--> --set:", "--> settings:")
        .replace("--set ", "setting ")
}
