//! Checks for keys in a component's tables that no reader declared.

use super::super::component::Component;
use super::super::names;
use super::super::parameter::{key_unit, key_without_unit, time_unit_ratio};
use super::super::setting::is_drive_number;
use super::super::shape::ValueKind;
use super::super::value::{Table, TableEntry, Value, ValueContent};
use super::Reader;
use diskperf_diagnostics::Problem;

const FILE_KEYS: [&str; 3] = ["description", "extends", "source"];
/// Key of `[drive.N]` or `[controller.N]` that selects another component; the system reads it.
const COMPONENT_KEY: &str = "component";

impl Reader<'_> {
    /// Returns the unknown keys of a table, and checks values that were not read because another
    /// case or drive was selected.
    pub(super) fn check_keys(
        &self,
        table: &Table,
        is_file: bool,
        is_top: bool,
        unknown: &mut Vec<String>,
    ) {
        for (key, entry) in &table.entries {
            let about = is_top && is_file && FILE_KEYS.contains(&key.as_str());
            if about || key == "source" || self.is_source(key, table) {
                self.check_text(key, entry);
                continue;
            }
            match (&entry.value.value_content, self.declared_shapes.get(key)) {
                (ValueContent::Table(cases), None)
                    if is_top && self.exclusive_groups.contains(key) =>
                {
                    for case in cases.entries.values() {
                        self.check_selected_case(case, unknown);
                    }
                }
                (ValueContent::Table(_), None) if is_top && self.is_drive_table(key, is_file) => {
                    self.check_selected_case(entry, unknown);
                }
                // Another reader's.
                (ValueContent::Table(_), None)
                    if is_top && self.is_key_of_one_drive(key, is_file) => {}
                (_, Some(shape)) => {
                    if let Err(problem) = shape.parse(key, &entry.value) {
                        self.reading_record.borrow_mut().add_problem(problem);
                    }
                }
                (_, None) if key == COMPONENT_KEY && !is_file && self.names_one_drive(is_top) => {}
                (_, None) => {
                    self.reading_record
                        .borrow_mut()
                        .add_problem(self.unknown_key(key, entry));
                    unknown.push(key.clone());
                }
            }
        }
    }

    fn check_selected_case(&self, case: &TableEntry, unknown: &mut Vec<String>) {
        match &case.value.value_content {
            ValueContent::Table(table) => self.check_keys(table, false, false, unknown),
            other => {
                let title = format!(
                    "`{}` cannot be {}",
                    case.key_span.as_str(),
                    other.kind_name()
                );
                let problem = Problem::error(title).at(&case.value.span, "must be a table");
                self.reading_record.borrow_mut().add_problem(problem);
            }
        }
    }

    fn check_text(&self, key: &str, entry: &TableEntry) {
        if let Err(problem) = ValueKind::Text.parse(key, &entry.value) {
            self.reading_record.borrow_mut().add_problem(problem);
        }
    }

    fn is_drive(&self) -> bool {
        self.component_kind == Component::Drive
    }

    fn is_drive_table(&self, key: &str, is_file: bool) -> bool {
        self.is_drive() && !is_file && is_drive_number(key)
    }

    /// Tests whether a table of this level may select a component for one drive.
    fn names_one_drive(&self, is_top: bool) -> bool {
        match self.is_drive() {
            true => !is_top,
            false => is_top && self.drive_index.is_some(),
        }
    }

    fn is_key_of_one_drive(&self, key: &str, is_file: bool) -> bool {
        !is_file
            && is_drive_number(key)
            && self.drive_index.is_none()
            && self.component_kind.may_differ_by_drive()
    }

    /// Tests whether a key states the source of another key of the same table.
    fn is_source(&self, key: &str, table: &Table) -> bool {
        key.strip_suffix("_source")
            .is_some_and(|sourced| table.get(sourced).is_some())
    }

    fn unknown_key(&self, key: &str, entry: &TableEntry) -> Problem {
        let known = || self.declared_shapes.keys().map(String::as_str);
        let problem = Problem::error(format!("unknown key `{key}` of {}", self.component_kind))
            .at(&entry.key_span, "");
        match self
            .declared_shapes
            .keys()
            .find(|known| differs_in_unit(known, key))
        {
            Some(known) => problem.help(wrong_unit(known, key, &entry.value)),
            None => match key.strip_suffix("_source") {
                Some(sourced) => problem.help(format!("no `{sourced}` stands beside it")),
                None => problem.help(names::suggest_names(key, known())),
            },
        }
    }

    /// Returns declared keys that are similar to an unknown one.
    pub(super) fn suggest_keys(&self, key: &str) -> Vec<String> {
        let near = names::find_similar_names(key, self.declared_shapes.keys().map(String::as_str));
        let unit = self
            .declared_shapes
            .keys()
            .filter(|known| differs_in_unit(known, key));
        let near = near.into_iter().map(str::to_string);
        near.chain(unit.cloned()).collect()
    }
}

fn differs_in_unit(known: &str, key: &str) -> bool {
    known != key && !key_unit(known).is_empty() && key_without_unit(known) == key_without_unit(key)
}

fn wrong_unit(known: &str, key: &str, value: &Value) -> String {
    let number = match value.value_content {
        ValueContent::Integer(integer) => Some(integer as f64),
        ValueContent::Float(number) => Some(number),
        _ => None,
    };
    let converted = number.and_then(|number| {
        let converted = number * time_unit_ratio(key_unit(key), key_unit(known))?;
        converted.is_finite().then_some(converted)
    });
    match converted {
        Some(converted) => format!(
            "this is given in {}: `{known} = {converted}`",
            key_unit(known)
        ),
        None => format!("this is given in {}: `{known}`", key_unit(known)),
    }
}
