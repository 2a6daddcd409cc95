//! Collection of the layers of a system: its file, the file it extends, the variant, the settings,
//! and the files of its components.

mod files;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Catalogue;
use super::component::Component;
use super::names;
use super::setting::{self, SETTINGS_TEXT_NAME, is_drive_number};
use super::shape::{ParsedValue, ValueKind};
use super::system::{ReadingRecord, ResolvedSystem, SystemPart, ValueLayer};
use super::value::{Table, TableEntry, Value, ValueContent};
use diskperf_diagnostics::{Errors, Problem};
use diskperf_diagnostics::{SourceSpan, Text};
use diskperf_timeline::Setting;

/// Maximum number of drives of a system: the number of units on a MASSBUS.
const DRIVES_MAX: u64 = 8;

/// Keys of a system file that are not component tables.
const SYSTEM_KEYS: [&str; 5] = ["description", "source", "extends", "drives", "components"];

/// Resolves the system that `target` names and applies the settings.
pub(crate) fn resolve_system(
    catalogue: &Catalogue,
    target: &str,
    settings: &[Setting],
) -> Result<ResolvedSystem, Errors> {
    let mut resolution = SystemResolver::new(catalogue);
    let Some(mut layers) = resolution.system_layers(target) else {
        // A file is missing: what else could be said would only confuse.
        return Err(resolution.into_errors());
    };
    let components = component_kinds(&layers);
    let settings = setting::to_layer(settings, &mut resolution.problems);
    resolution.reject_settings_without_component(components, (target, &settings));
    layers.push(SourceLayer {
        table: Arc::new(settings),
        source: SETTINGS_TEXT_NAME.to_string(),
        file: None,
    });
    for level in &layers {
        resolution.check_system_keys(&level.table);
    }
    let drives = resolution.resolve_drive_count(&layers);
    let mut parts = BTreeMap::new();
    for component in components {
        resolution.add_parts(*component, drives, &layers, &mut parts);
    }
    let complete = components.iter().all(|component| {
        let mut numbers = drive_numbers(*component, drives, &layers).into_iter();
        numbers.all(|number| parts.contains_key(&(*component, number)))
    });
    if !complete {
        return Err(resolution.into_errors());
    }
    let description = layers
        .iter()
        .rev()
        .find_map(|level| level.table.text("description"));
    let description = description.unwrap_or_default().to_string();
    Ok(resolution.into_system(target, description, drives, parts))
}

/// Returns the components of a system. A system whose files name only drives consists of drives
/// alone.
fn component_kinds(files: &[SourceLayer]) -> &'static [Component] {
    let named = |component: Component| {
        files.iter().any(|level| {
            let components = level.table.table("components");
            components.is_some_and(|all| all.get(component.name()).is_some())
                || level.table.get(component.name()).is_some()
        })
    };
    let (drive, others): (Vec<Component>, Vec<Component>) = Component::ALL
        .into_iter()
        .partition(|component| *component == Component::Drive);
    match drive.into_iter().any(named) && !others.into_iter().any(named) {
        true => &[Component::Drive],
        false => &Component::ALL,
    }
}

/// Resolves a single component, without a system around it.
pub(crate) fn resolve_component(
    catalogue: &Catalogue,
    component: Component,
    name: &str,
) -> Result<ResolvedSystem, Errors> {
    let mut resolution = SystemResolver::new(catalogue);
    let Some(part) = resolution.component_layers(component, name, None) else {
        return Err(resolution.into_errors());
    };
    let top = part
        .layers
        .last()
        .and_then(|layer| layer.table.text("description"));
    let description = top.unwrap_or_default().to_string();
    let mut parts = BTreeMap::new();
    if component == Component::Drive {
        parts.insert((component, Some(1)), part.clone());
    }
    parts.insert((component, None), part);
    Ok(resolution.into_system(name, description, 1, parts))
}

struct SystemResolver<'a> {
    catalogue: &'a Catalogue,
    problems: Vec<Problem>,
    texts: BTreeMap<String, Arc<Text>>,
}

/// System file, or the settings in the form of a system file.
struct SourceLayer {
    table: Arc<Table>,
    source: String,
    file: Option<Arc<Text>>,
}

/// Catalogue name of a component, with the place that selected it.
#[derive(Clone)]
struct ComponentChoice {
    name: String,
    place: SourceSpan,
}

impl<'a> SystemResolver<'a> {
    fn new(catalogue: &'a Catalogue) -> SystemResolver<'a> {
        SystemResolver {
            catalogue,
            problems: Vec::new(),
            texts: BTreeMap::new(),
        }
    }

    fn into_errors(self) -> Errors {
        let problems = match self.problems {
            problems if problems.is_empty() => vec![Problem::error("the system is incomplete")],
            problems => problems,
        };
        Errors::fail_if_any(problems).expect_err("there is a problem")
    }

    fn into_system(
        self,
        name: &str,
        description: String,
        drives: u32,
        parts: BTreeMap<(Component, Option<u32>), SystemPart>,
    ) -> ResolvedSystem {
        let record = ReadingRecord {
            problems: self.problems,
            parameter_readings: Vec::new(),
        };
        ResolvedSystem {
            name: name.to_string(),
            description,
            drive_count: drives,
            system_parts: parts,
            file_texts: self.texts,
            reading_record: RefCell::new(record),
        }
    }

    /// Rejects settings of other components on a system that consists of drives alone.
    fn reject_settings_without_component(
        &mut self,
        components: &[Component],
        (target, settings): (&str, &Table),
    ) {
        let named = settings.table("components");
        let named = named.iter().flat_map(|table| &table.entries);
        for (key, entry) in named.chain(&settings.entries) {
            if let Some(component) = Component::from_name(key)
                && !components.contains(&component)
            {
                let title = format!("`{target}` has no {component}");
                let problem = Problem::error(title).at(&entry.key_span, "has no effect");
                self.problems.push(problem.help(format!(
                    "it is a drive by itself; `diskperf list systems` names systems with a {component}"
                )));
            }
        }
    }

    fn check_system_keys(&mut self, table: &Table) {
        for (key, entry) in &table.entries {
            let component = Component::from_name(key);
            let problem = match (&entry.value.value_content, component) {
                (ValueContent::Table(_), Some(_)) => continue,
                (ValueContent::Table(components), None) if key == "components" => {
                    self.check_component_keys(components);
                    continue;
                }
                (other, Some(component)) => {
                    Problem::error(format!("`{component}` cannot be {}", other.kind_name()))
                        .at(&entry.value.span, "must be a table of overrides")
                        .help(format!("name the {component} in [components]"))
                }
                (other, None) if key == "components" => {
                    Problem::error(format!("`components` cannot be {}", other.kind_name()))
                        .at(&entry.value.span, "must be a table")
                }
                (_, None) if SYSTEM_KEYS.contains(&key.as_str()) => continue,
                (_, None) if key == "drives_source" => continue,
                (_, None) => Problem::error(format!("a system has no `{key}`"))
                    .at(&entry.key_span, "")
                    .help(self.suggest_for_system_key(key)),
            };
            self.problems.push(problem);
        }
    }

    /// Suggests a meaning for an unknown key of a system: a component's key of the same name, or a
    /// similar system key.
    fn suggest_for_system_key(&self, key: &str) -> String {
        let has_it = |component: &Component| {
            let names = self.catalogue.component_names(*component);
            let mut files = names
                .iter()
                .filter_map(|name| self.catalogue.file(&component.file_path(name)));
            files.any(|file| file.table().is_ok_and(|table| table.get(key).is_some()))
        };
        let whole: Vec<String> = Component::ALL
            .into_iter()
            .filter(has_it)
            .map(|component| format!("{component}.{key}"))
            .collect();
        if whole.is_empty() {
            let known = Component::ALL.into_iter().map(Component::name);
            names::suggest_names(key, known.chain(SYSTEM_KEYS))
        } else {
            names::format_choices(whole.iter().map(String::as_str))
        }
    }

    fn check_component_keys(&mut self, components: &Table) {
        for (key, entry) in &components.entries {
            if Component::from_name(key).is_none() {
                let known = Component::ALL.into_iter().map(Component::name);
                let problem = Problem::error(format!("a system has no component `{key}`"))
                    .at(&entry.key_span, "")
                    .help(names::suggest_names(key, known));
                self.problems.push(problem);
            }
        }
    }

    fn resolve_drive_count(&mut self, layers: &[SourceLayer]) -> u32 {
        let Some(entry) = layers
            .iter()
            .rev()
            .find_map(|level| level.table.get("drives"))
        else {
            let problem = Problem::error("the system does not say how many `drives` it has");
            let file = layers.iter().find_map(|level| level.file.as_ref());
            self.problems.push(match file {
                Some(file) => problem.at(&SourceSpan::start(file), ""),
                None => problem,
            });
            return 1;
        };
        match ValueKind::Integer(1..=DRIVES_MAX).parse("drives", &entry.value) {
            Ok(ParsedValue::Integer(drives)) => drives as u32,
            Ok(_) => 1,
            Err(problem) => {
                self.problems.push(problem);
                1
            }
        }
    }

    fn add_parts(
        &mut self,
        component: Component,
        drives: u32,
        layers: &[SourceLayer],
        parts: &mut BTreeMap<(Component, Option<u32>), SystemPart>,
    ) {
        let numbers = drive_numbers(component, drives, layers);
        if component.may_differ_by_drive() {
            self.check_drive_numbers(component, (drives, &numbers), layers);
        }
        for number in numbers {
            let Some(choice) = self.choose_component(component, number, layers) else {
                if number.is_none() {
                    let title = format!("the system names no {component}");
                    let file = layers.iter().find_map(|level| level.file.as_ref());
                    let problem = Problem::error(title).help(format!(
                        "write `{component} = \"NAME\"` in [components]; there is {}",
                        names::format_list(
                            self.catalogue
                                .component_names(component)
                                .iter()
                                .map(String::as_str)
                        )
                    ));
                    self.problems.push(match file {
                        Some(file) => problem.at(&SourceSpan::start(file), ""),
                        None => problem,
                    });
                }
                continue;
            };
            let Some(mut part) =
                self.component_layers(component, &choice.name, Some(&choice.place))
            else {
                continue;
            };
            part.layers.extend(layers.iter().filter_map(|level| {
                let table = level.table.table(component.name())?;
                // What a drive has for itself is only spoken of by its number.
                let table = match number {
                    Some(number) if component != Component::Drive => {
                        table.table(&number.to_string())?
                    }
                    _ => table,
                };
                Some(ValueLayer {
                    table: Arc::new(table.clone()),
                    source: level.source.clone(),
                    is_file: false,
                })
            }));
            parts.insert((component, number), part);
        }
    }

    /// Returns the catalogue name of a component. A level for all drives overrides a weaker level
    /// for one drive.
    fn choose_component(
        &mut self,
        component: Component,
        number: Option<u32>,
        layers: &[SourceLayer],
    ) -> Option<ComponentChoice> {
        let mut choice = None;
        for level in layers {
            let general = level
                .table
                .table("components")
                .and_then(|components| components.get(component.name()));
            let special = number.and_then(|number| {
                let drives = level.table.table(component.name())?;
                drives.table(&number.to_string())?.get("component")
            });
            for entry in [general, special].into_iter().flatten() {
                if let Some(name) = self.component_name_in_entry(component, entry) {
                    choice = Some(ComponentChoice {
                        name,
                        place: entry.value.span.clone(),
                    });
                }
            }
        }
        choice
    }

    fn component_name_in_entry(
        &mut self,
        component: Component,
        entry: &TableEntry,
    ) -> Option<String> {
        match ValueKind::Text.parse(component.name(), &entry.value) {
            Ok(ParsedValue::Text(name)) => Some(name),
            Ok(_) => None,
            Err(problem) => {
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
                None
            }
        }
    }

    /// Rejects drive numbers beyond the number of drives configured at the same level. A stronger
    /// level may reduce the number, and the values of weaker levels for the missing drives then
    /// have no effect. Values for an existing drive must belong to a component of its own, listed
    /// in `own`; a drive is always its own component.
    fn check_drive_numbers(
        &mut self,
        component: Component,
        (in_the_end, own): (u32, &[Option<u32>]),
        layers: &[SourceLayer],
    ) {
        let mut drives = DRIVES_MAX;
        for level in layers {
            if let Some(ValueContent::Integer(number)) = level
                .table
                .get("drives")
                .map(|entry| &entry.value.value_content)
            {
                drives = u64::try_from(*number).unwrap_or(drives);
            }
            let Some(table) = level.table.table(component.name()) else {
                continue;
            };
            for (key, entry) in &table.entries {
                let Value {
                    value_content: ValueContent::Table(_),
                    ..
                } = entry.value
                else {
                    continue;
                };
                if !is_drive_number(key) {
                    continue;
                }
                // One spelling of a number is enough.
                let number = key.parse().ok().filter(|_| !key.starts_with('0'));
                let exists = number.is_some_and(|number| (1..=drives).contains(&u64::from(number)));
                if !exists {
                    let title = format!("the system has no drive {key}");
                    let label = format!("its drives are 1 to {drives}");
                    self.problems
                        .push(Problem::error(title).at(&entry.key_span, label));
                } else if number <= Some(in_the_end) && !own.contains(&number) {
                    let title = format!("drive {key} has no {component} for itself");
                    let problem = Problem::error(title).at(&entry.key_span, "has no effect");
                    self.push_problem(problem.help(format!(
                        "`{component}.KEY` is of the {component} that drives share; \
                         `{component}.{key}.component` names one for drive {key} alone"
                    )));
                }
            }
        }
    }

    fn push_problem(&mut self, problem: Problem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Returns the drive numbers with their own component of this kind, and `None` for the shared one.
fn drive_numbers(component: Component, drives: u32, layers: &[SourceLayer]) -> Vec<Option<u32>> {
    let named = |number: &u32| {
        layers.iter().any(|level| {
            let table = level.table.table(component.name());
            let own = table.and_then(|table| table.table(&number.to_string()));
            own.is_some_and(|own| own.get("component").is_some())
        })
    };
    let own: Vec<u32> = match component {
        Component::Drive => (1..=drives).collect(),
        _ if component.may_differ_by_drive() => (1..=drives).filter(named).collect(),
        _ => Vec::new(),
    };
    [None]
        .into_iter()
        .chain(own.into_iter().map(Some))
        .collect()
}
