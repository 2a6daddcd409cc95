//! The catalogue: systems and the parts that they consist of.

use crate::columns::Columns;
use crate::errors::{exception, request_error};
use crate::table::Table;
use diskperf_catalogue::{self as entries, Component, Parameter};
use diskperf_laboratory::catalogue::{self as laboratory, DriveFigures};
use diskperf_models::model::{load_catalogue, parse_settings};
use diskperf_models::points;
use pyo3::prelude::*;
use std::path::PathBuf;

/// The catalogue that is part of diskperf, with a folder of the user's laid over
/// it if there is one.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Catalogue {
    pub(crate) catalogue: entries::Catalogue,
}

/// A system: description, its components as pairs of kind and name, and all its
/// numbers.
type SystemEntry = (String, Vec<(String, String)>, Columns);

/// A component: its kind, description, numbers, and of a drive what follows from
/// them (name, value, unit) and its seek curve (cylinders, ms).
type Entry = (
    &'static str,
    String,
    Columns,
    Vec<(&'static str, f64, &'static str)>,
    Vec<(u32, f64)>,
);

#[pymethods]
impl Catalogue {
    #[new]
    fn new(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Self> {
        let catalogue = load_catalogue(folder.as_deref());
        let catalogue = catalogue.map_err(|error| exception(py, &error))?;
        Ok(Self { catalogue })
    }

    /// All systems and variants, each with its description.
    fn systems(&self) -> Columns {
        listed(&laboratory::list_systems(&self.catalogue))
    }

    /// What every figure of a system hangs on besides settings and seeds: the
    /// model's version, and a hash of the catalogue.
    fn identity(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        let identity = points::study_identity(&self.catalogue, name);
        identity.map_err(|error| exception(py, &error))
    }

    /// The components of one kind (`drive`), each with its description.
    fn components(&self, py: Python<'_>, kind: &str) -> PyResult<Columns> {
        let component = component(py, kind)?;
        Ok(listed(&laboratory::list_components(
            &self.catalogue,
            component,
        )))
    }

    /// The documents with published numbers.
    fn documents(&self, py: Python<'_>) -> PyResult<Columns> {
        let documents = laboratory::list_documents(&self.catalogue);
        let documents = documents.map_err(|error| exception(py, &error))?;
        let all = || documents.iter();
        Ok(Table::default()
            .text("name", all().map(|one| one.name.as_str()))
            .integer("cells", all().map(|one| one.cell_count as i64))
            .integer("scored", all().map(|one| one.scored_count as i64))
            .flag("modelled", all().map(|one| one.is_modelled))
            .finish())
    }

    /// A system with settings, each as `PATH=VALUE`.
    fn system(&self, py: Python<'_>, name: &str, changes: Vec<String>) -> PyResult<SystemEntry> {
        let entry = parse_settings(&changes)
            .and_then(|settings| laboratory::describe_system(&self.catalogue, name, &settings));
        let entry = entry.map_err(|error| exception(py, &error))?;
        Ok((
            entry.description,
            entry.components,
            parameters(&entry.parameters),
        ))
    }

    /// The kinds of component of which one has this name.
    fn kinds_named(&self, name: &str) -> Vec<&'static str> {
        let found = laboratory::find_components(&self.catalogue, name).into_iter();
        found.map(Component::name).collect()
    }

    /// A component, in a system where it can stand.
    fn component(&self, py: Python<'_>, kind: &str, name: &str) -> PyResult<Entry> {
        let found = laboratory::describe_component(&self.catalogue, component(py, kind)?, name);
        let found = found.map_err(|error| exception(py, &error))?;
        let (figures, seek) = found.drive.map_or_else(Default::default, |drive| {
            let DriveFigures {
                figures,
                seek_curve: seek,
                ..
            } = drive;
            (figures, seek)
        });
        let of = found.component.name();
        Ok((
            of,
            found.description,
            parameters(&found.parameters),
            figures,
            seek,
        ))
    }
}

fn component(py: Python<'_>, kind: &str) -> PyResult<Component> {
    let kinds = Component::ALL.map(Component::name);
    Component::of_name(kind).ok_or_else(|| {
        request_error(
            py,
            format!(
                "there is no kind of part `{kind}`: there are {}",
                kinds.join(", ")
            ),
        )
    })
}

fn listed(names: &[(String, String)]) -> Columns {
    Table::default()
        .text("name", names.iter().map(|(name, _)| name.as_str()))
        .text(
            "description",
            names.iter().map(|(_, meaning)| meaning.as_str()),
        )
        .finish()
}

fn parameters(list: &[Parameter]) -> Columns {
    let all = || list.iter();
    Table::default()
        .text("path", all().map(|one| one.path.as_str()))
        .text("value", all().map(|one| one.value.as_str()))
        .text("unit", all().map(|one| one.unit))
        .text("allowed", all().map(|one| one.range.as_str()))
        .text("source", all().map(|one| one.source.as_str()))
        .text("file", all().map(|one| one.file.as_str()))
        .integer("line", all().map(|one| one.line as i64))
        .text("meaning", all().map(|one| one.doc.as_str()))
        .finish()
}
