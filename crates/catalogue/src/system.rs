//! A system with everything that speaks about it, ready to be read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::component::Component;
use super::parameter::Parameter;
use super::reader::Reader;
use super::setting::SETTING_NAME;
use super::value::Table;
use diskperf_diagnostics::{Errors, Problem};
use diskperf_diagnostics::{Place, Text};

/// What a system consists of: for each component, the layers of values that
/// speak about it. Every reading of a [`Reader`] is noted here.
#[derive(Debug)]
pub struct System {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) drives: u32,
    pub(crate) parts: BTreeMap<(Component, Option<u32>), Part>,
    pub(crate) texts: BTreeMap<String, Arc<Text>>,
    pub(crate) record: RefCell<Record>,
}

/// One component of a system.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Its name in the catalogue.
    pub(crate) name: String,
    /// Its file, where what is missing belongs.
    pub(crate) file: Arc<Text>,
    /// From the weakest to the strongest.
    pub(crate) layers: Vec<Layer>,
}

/// One table that speaks about a component.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) table: Arc<Table>,
    /// The source of what has none of its own.
    pub(crate) source: String,
    /// Whether it is a component's own file: only there may it describe itself.
    pub(crate) is_file: bool,
}

/// What the readers noted.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) problems: Vec<Problem>,
    pub(crate) readings: Vec<Noted>,
}

/// A parameter as one reader saw it.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    /// With the path that sets it for all drives or types.
    pub(crate) parameter: Parameter,
    /// The path that sets it for this drive or type alone.
    pub(crate) qualified: String,
    /// The drive, counted from one, whose own part it is of.
    pub(crate) drive: Option<u32>,
    pub(crate) place: Place,
    pub(crate) component: Component,
}

impl Record {
    /// Notes a problem once, however many readers meet it.
    pub(crate) fn problem(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

impl System {
    /// The name by which it was asked for, variant included.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the system is, in words. Empty for a file that does not say.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// How many drives are configured: at least one.
    pub fn drives(&self) -> u32 {
        self.drives
    }

    /// Whether it is drives by themselves: it has no other component.
    pub fn is_rig(&self) -> bool {
        !self.has(Component::Kernel)
    }

    /// Whether it has a component of this kind that drives share, or that it has one of.
    pub fn has(&self, component: Component) -> bool {
        self.parts.contains_key(&(component, None))
    }

    /// The catalogue name of a component (`eagle`); of one drive, counted from
    /// one, if a number is given.
    ///
    /// # Panics
    ///
    /// If the system has no such drive or component, or consists of a single other entry.
    pub fn component_name(&self, component: Component, drive: Option<u32>) -> &str {
        &self.part(component, drive).name
    }

    /// Whether a drive, counted from one, has one of these for itself.
    pub fn has_own(&self, component: Component, drive: u32) -> bool {
        self.parts.contains_key(&(component, Some(drive)))
    }

    /// A reader of one component's values: of one drive, counted from one, or
    /// of what all drives share.
    ///
    /// # Panics
    ///
    /// If the system has no such drive, or consists of a single other entry.
    pub fn reader(&self, component: Component, drive: Option<u32>) -> Reader<'_> {
        let part = self.part(component, drive);
        Reader::new(&self.record, part, component, drive)
    }

    /// Name and content of every file that takes part: what a stored run keeps
    /// to be repeatable.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts
            .values()
            .map(|text| (text.name(), text.content()))
    }

    /// Everything that was read, in the order of the components and of their
    /// declarations. To be called when all readers have finished.
    ///
    /// # Errors
    ///
    /// Everything that any reader found wrong, and settings that nothing read.
    pub fn finish(self) -> Result<Vec<Parameter>, Errors> {
        let mut record = self.record.into_inner();
        for ((component, drive), part) in &self.parts {
            let reads = |noted: &Noted| {
                noted.component == *component && (drive.is_none() || noted.drive == *drive)
            };
            if !record.readings.iter().any(reads) {
                unread(*component, part, &mut record);
            }
        }
        Errors::none_of(record.problems)?;
        Ok(listed(record.readings))
    }

    fn part(&self, component: Component, drive: Option<u32>) -> &Part {
        self.parts
            .get(&(component, drive))
            .unwrap_or_else(|| panic!("the system {} has no {component} {drive:?}", self.name))
    }
}

/// A setting of a component that this machine never reads cannot have an effect.
fn unread(component: Component, part: &Part, record: &mut Record) {
    for layer in &part.layers {
        for entry in layer.table.entries.values() {
            if entry.key.file() == SETTING_NAME {
                let title = format!("this system takes nothing from its {component}");
                record.problem(Problem::error(title).at(&entry.key, "has no effect"));
            }
        }
    }
}

/// The readings without repetitions. Where the drives or types differ in a
/// value, each is listed under the path that sets it alone.
fn listed(readings: Vec<Noted>) -> Vec<Parameter> {
    let mut seen: BTreeMap<String, Vec<(String, Place)>> = BTreeMap::new();
    for noted in &readings {
        let values = seen.entry(noted.parameter.path.clone()).or_default();
        let value = (noted.parameter.value.clone(), noted.place.clone());
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let mut parameters: Vec<(Component, Parameter)> = Vec::new();
    for noted in readings {
        let mut parameter = noted.parameter;
        if seen[&parameter.path].len() > 1 {
            parameter.path = noted.qualified;
        }
        if parameters
            .iter()
            .all(|(_, known)| known.path != parameter.path)
        {
            parameters.push((noted.component, parameter));
        }
    }
    parameters.sort_by_key(|(component, _)| *component);
    parameters
        .into_iter()
        .map(|(_, parameter)| parameter)
        .collect()
}
