//! Resolved system with all layers of values, ready for readers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::component::Component;
use super::parameter::Parameter;
use super::reader::Reader;
use super::setting::SETTINGS_TEXT_NAME;
use super::value::Table;
use diskperf_diagnostics::{Errors, Problem};
use diskperf_diagnostics::{SourceSpan, Text};

/// Resolved system: the layers of values for each component. Every read by a [`Reader`] is recorded
/// here.
#[derive(Debug)]
pub struct ResolvedSystem {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) drive_count: u32,
    pub(crate) system_parts: BTreeMap<(Component, Option<u32>), SystemPart>,
    pub(crate) file_texts: BTreeMap<String, Arc<Text>>,
    pub(crate) reading_record: RefCell<ReadingRecord>,
}

#[derive(Debug, Clone)]
pub(crate) struct SystemPart {
    pub(crate) name: String,
    /// File of the component, where a missing value belongs.
    pub(crate) file: Arc<Text>,
    /// Layers of values, from lowest to highest precedence.
    pub(crate) layers: Vec<ValueLayer>,
}

/// Layer of a component: one table with values for it.
#[derive(Debug, Clone)]
pub(crate) struct ValueLayer {
    pub(crate) table: Arc<Table>,
    /// Default source of values without one of their own.
    pub(crate) source: String,
    /// Whether this is the component's own file, the only layer that may contain a description.
    pub(crate) is_file: bool,
}

/// Problems and parameters that readers have recorded.
#[derive(Debug, Default)]
pub(crate) struct ReadingRecord {
    pub(crate) problems: Vec<Problem>,
    pub(crate) parameter_readings: Vec<ParameterReading>,
}

#[derive(Debug, Clone)]
pub(crate) struct ParameterReading {
    /// Parameter with the path that sets it for all drives or types.
    pub(crate) parameter: Parameter,
    /// Path that sets the parameter for this drive or type alone.
    pub(crate) qualified_path: String,
    /// Drive that owns the component, counted from 1; `None` for a shared component.
    pub(crate) drive_index: Option<u32>,
    pub(crate) span: SourceSpan,
    pub(crate) component_kind: Component,
}

impl ReadingRecord {
    /// Records a problem once, however many readers find it.
    pub(crate) fn add_problem(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

impl ResolvedSystem {
    /// Returns the name under which the system was requested, with its variant.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description of the system; empty if its file has none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the number of configured drives; at least one.
    pub fn drive_count(&self) -> u32 {
        self.drive_count
    }

    /// Reports whether the system consists of drives alone, without other components.
    pub fn is_rig(&self) -> bool {
        !self.has_component(Component::Kernel)
    }

    /// Reports whether the system has a shared or single component of this kind.
    pub fn has_component(&self, component: Component) -> bool {
        self.system_parts.contains_key(&(component, None))
    }

    /// Returns the catalogue name of a component, such as `eagle`. With a drive number, counted
    /// from 1, it returns that drive's own component.
    ///
    /// # Panics
    ///
    /// If the system has no such drive or component, or consists of a single other entry.
    pub fn component_name(&self, component: Component, drive: Option<u32>) -> &str {
        &self.find_part(component, drive).name
    }

    /// Reports whether a drive, counted from 1, has its own component of this kind.
    pub fn has_own_component(&self, component: Component, drive: u32) -> bool {
        self.system_parts.contains_key(&(component, Some(drive)))
    }

    /// Returns a reader for the values of a component: of one drive, counted from 1, or of the
    /// component that all drives share.
    ///
    /// # Panics
    ///
    /// If the system has no such drive, or consists of a single other entry.
    pub fn reader(&self, component: Component, drive: Option<u32>) -> Reader<'_> {
        let part = self.find_part(component, drive);
        Reader::new(&self.reading_record, part, component, drive)
    }

    /// Returns the name and the content of every file of the system. A stored run keeps them to be
    /// repeatable.
    pub fn file_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.file_texts
            .values()
            .map(|text| (text.name(), text.content()))
    }

    /// Returns all parameters that were read, in the order of components and declarations. All
    /// readers must have finished.
    ///
    /// # Errors
    ///
    /// Every problem that a reader found, and settings that no reader read.
    pub fn finish(self) -> Result<Vec<Parameter>, Errors> {
        let mut record = self.reading_record.into_inner();
        for ((component, drive), part) in &self.system_parts {
            let reads = |noted: &ParameterReading| {
                noted.component_kind == *component
                    && (drive.is_none() || noted.drive_index == *drive)
            };
            if !record.parameter_readings.iter().any(reads) {
                report_unread_keys(*component, part, &mut record);
            }
        }
        Errors::fail_if_any(record.problems)?;
        Ok(list_parameters(record.parameter_readings))
    }

    fn find_part(&self, component: Component, drive: Option<u32>) -> &SystemPart {
        self.system_parts
            .get(&(component, drive))
            .unwrap_or_else(|| panic!("the system {} has no {component} {drive:?}", self.name))
    }
}

/// Reports settings of a component that this system never reads, because they cannot have an
/// effect.
fn report_unread_keys(component: Component, part: &SystemPart, record: &mut ReadingRecord) {
    for layer in &part.layers {
        for entry in layer.table.entries.values() {
            if entry.key_span.file() == SETTINGS_TEXT_NAME {
                let title = format!("this system takes nothing from its {component}");
                record.add_problem(Problem::error(title).at(&entry.key_span, "has no effect"));
            }
        }
    }
}

/// Removes duplicates from the recorded parameters. A parameter that differs between drives or
/// types is listed once for each, with the path that sets it alone.
fn list_parameters(readings: Vec<ParameterReading>) -> Vec<Parameter> {
    let mut seen: BTreeMap<String, Vec<(String, SourceSpan)>> = BTreeMap::new();
    for noted in &readings {
        let values = seen.entry(noted.parameter.path.clone()).or_default();
        let value = (noted.parameter.value.clone(), noted.span.clone());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let mut parameters: Vec<(Component, Parameter)> = Vec::new();
    for noted in readings {
        let mut parameter = noted.parameter;
        if seen[&parameter.path].len() > 1 {
            parameter.path = noted.qualified_path;
        }
        if parameters
            .iter()
            .all(|(_, known)| known.path != parameter.path)
        {
            parameters.push((noted.component_kind, parameter));
        }
    }
    parameters.sort_by_key(|(component, _)| *component);
    parameters
        .into_iter()
        .map(|(_, parameter)| parameter)
        .collect()
}
