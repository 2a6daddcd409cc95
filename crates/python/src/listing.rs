//! What there is to run.

use crate::columns::Columns;
use crate::table::Table;
use diskperf_battery::{Program, Suite};
use pyo3::prelude::*;

/// The suites, each with what it is.
#[pyfunction]
pub(crate) fn suites() -> Columns {
    named("suite", &Suite::list_suites())
}

/// The parameters of every program, one row for each; a program without any has
/// one row.
#[pyfunction]
pub(crate) fn programs() -> Columns {
    let mut rows = Vec::new();
    for (name, meaning) in Program::list_programs() {
        let parameters = Program::from_name(name).map(|program| program.list_parameters());
        let parameters = parameters.unwrap_or_default();
        if parameters.is_empty() {
            rows.push((name, meaning, None));
        }
        rows.extend(parameters.into_iter().map(|one| (name, meaning, Some(one))));
    }
    let rows = || rows.iter();
    let paths = rows().map(|(.., one)| {
        one.as_ref()
            .map(|one| format!("program.{}", one.parameter_name))
    });
    let paths: Vec<_> = paths.collect();
    let of = || rows().map(|(.., one)| one.as_ref());
    Table::default()
        .text("program", rows().map(|(name, ..)| *name))
        .text("description", rows().map(|(_, meaning, _)| *meaning))
        .text("path", paths.iter().map(Option::as_deref))
        .text("value", of().map(|one| one.map(|one| one.value.as_str())))
        .text(
            "allowed",
            of().map(|one| one.map(|one| one.allowed_values.as_str())),
        )
        .text("meaning", of().map(|one| one.map(|one| one.description)))
        .finish()
}

fn named(kind: &str, names: &[(&str, &str)]) -> Columns {
    Table::default()
        .text(kind, names.iter().map(|(name, _)| *name))
        .text("description", names.iter().map(|(_, meaning)| *meaning))
        .finish()
}
