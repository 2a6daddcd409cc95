//! Lists of suites and programs.

use crate::columns::Columns;
use crate::table::TableBuilder;
use diskperf_battery::{Program, Suite};
use pyo3::prelude::*;

/// Lists the suites with their descriptions.
#[pyfunction]
pub(crate) fn suites() -> Columns {
    name_columns("suite", &Suite::list_suites())
}

/// Lists the parameters of every program, one row for each. A program without parameters has one
/// row.
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
    TableBuilder::default()
        .text_column("program", rows().map(|(name, ..)| *name))
        .text_column("description", rows().map(|(_, meaning, _)| *meaning))
        .text_column("path", paths.iter().map(Option::as_deref))
        .text_column("value", of().map(|one| one.map(|one| one.value.as_str())))
        .text_column(
            "allowed",
            of().map(|one| one.map(|one| one.allowed_values.as_str())),
        )
        .text_column("meaning", of().map(|one| one.map(|one| one.description)))
        .into_columns()
}

fn name_columns(kind: &str, names: &[(&str, &str)]) -> Columns {
    TableBuilder::default()
        .text_column(kind, names.iter().map(|(name, _)| *name))
        .text_column("description", names.iter().map(|(_, meaning)| *meaning))
        .into_columns()
}
