//! Catalogue of systems and their components.

use crate::columns::Columns;
use crate::errors::{request_exception, to_exception};
use crate::table::TableBuilder;
use diskperf_catalogue::{self as entries, Component, Parameter};
use diskperf_laboratory::catalogue::{self as laboratory, DriveFigures};
use diskperf_models::model::{load_catalogue, parse_settings};
use diskperf_models::points;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Embedded catalogue, overlaid with a folder of the user if one is given.
#[pyclass(frozen, module = "diskperf._native")]
pub(crate) struct Catalogue {
    pub(crate) catalogue: entries::Catalogue,
}

/// Description of a system, its components as pairs of kind and name, and its parameters.
type SystemDetails = (String, Vec<(String, String)>, Columns);

/// Kind, description and parameters of a component; for a drive also derived figures (name, value,
/// unit) and the seek curve (cylinders, ms).
type ComponentDetails = (
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
        let catalogue = catalogue.map_err(|error| to_exception(py, &error))?;
        Ok(Self { catalogue })
    }

    /// Lists all systems and variants with their descriptions.
    fn systems(&self) -> Columns {
        name_columns(&laboratory::list_systems(&self.catalogue))
    }

    /// Returns the version of the model and a hash of the catalogue. Every figure of a system
    /// depends on these, its settings and its seed.
    fn identity(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        let identity = points::study_identity(&self.catalogue, name);
        let identity = identity.map_err(|error| to_exception(py, &error))?;
        Ok((identity.model_version, identity.catalogue_hash))
    }

    /// Lists the components of a kind (`drive`) with their descriptions.
    fn components(&self, py: Python<'_>, kind: &str) -> PyResult<Columns> {
        let component = parse_component(py, kind)?;
        Ok(name_columns(&laboratory::list_components(
            &self.catalogue,
            component,
        )))
    }

    /// Lists the documents with published figures.
    fn documents(&self, py: Python<'_>) -> PyResult<Columns> {
        let documents = laboratory::list_documents(&self.catalogue);
        let documents = documents.map_err(|error| to_exception(py, &error))?;
        let all = || documents.iter();
        Ok(TableBuilder::default()
            .text_column("name", all().map(|one| one.name.as_str()))
            .integer_column("cells", all().map(|one| one.cell_count as i64))
            .integer_column("scored", all().map(|one| one.scored_count as i64))
            .flag_column("modelled", all().map(|one| one.is_modelled))
            .into_columns())
    }

    /// Describes a system with settings, each as `PATH=VALUE`.
    fn system(&self, py: Python<'_>, name: &str, changes: Vec<String>) -> PyResult<SystemDetails> {
        let entry = parse_settings(&changes)
            .and_then(|settings| laboratory::describe_system(&self.catalogue, name, &settings));
        let entry = entry.map_err(|error| to_exception(py, &error))?;
        Ok((
            entry.description,
            entry.components,
            parameter_columns(&entry.parameters),
        ))
    }

    /// Returns the kinds that have a component of this name.
    fn kinds_named(&self, name: &str) -> Vec<&'static str> {
        let found = laboratory::find_components(&self.catalogue, name).into_iter();
        found.map(Component::name).collect()
    }

    /// Describes a component, in a system that accepts it.
    fn component(&self, py: Python<'_>, kind: &str, name: &str) -> PyResult<ComponentDetails> {
        let found =
            laboratory::describe_component(&self.catalogue, parse_component(py, kind)?, name);
        let found = found.map_err(|error| to_exception(py, &error))?;
        let (figures, seek) = found.drive.map_or_else(Default::default, |drive| {
            let DriveFigures {
                figures,
                seek_curve: seek,
                ..
            } = drive;
            let figures = figures.into_iter();
            let figures = figures.map(|figure| (figure.name, figure.value, figure.unit));
            (figures.collect(), seek)
        });
        let of = found.component.name();
        Ok((
            of,
            found.description,
            parameter_columns(&found.parameters),
            figures,
            seek,
        ))
    }
}

fn parse_component(py: Python<'_>, kind: &str) -> PyResult<Component> {
    let kinds = Component::ALL.map(Component::name);
    Component::from_name(kind).ok_or_else(|| {
        request_exception(
            py,
            format!(
                "there is no kind of part `{kind}`: there are {}",
                kinds.join(", ")
            ),
        )
    })
}

fn name_columns(names: &[(String, String)]) -> Columns {
    TableBuilder::default()
        .text_column("name", names.iter().map(|(name, _)| name.as_str()))
        .text_column(
            "description",
            names.iter().map(|(_, meaning)| meaning.as_str()),
        )
        .into_columns()
}

fn parameter_columns(list: &[Parameter]) -> Columns {
    let all = || list.iter();
    TableBuilder::default()
        .text_column("path", all().map(|one| one.path.as_str()))
        .text_column("value", all().map(|one| one.value.as_str()))
        .text_column("unit", all().map(|one| one.unit))
        .text_column("allowed", all().map(|one| one.range.as_str()))
        .text_column("source", all().map(|one| one.source.as_str()))
        .text_column("file", all().map(|one| one.file.as_str()))
        .integer_column("line", all().map(|one| one.line as i64))
        .text_column("meaning", all().map(|one| one.doc.as_str()))
        .into_columns()
}
