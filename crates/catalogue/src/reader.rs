//! Reader for the values of one component. Each read also declares a parameter.

mod undeclared;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::component::Component;
use super::names;
use super::parameter::{Parameter, key_unit};
use super::setting::SETTINGS_TEXT_NAME;
use super::shape::{ParsedValue, ValueKind};
use super::system::{ParameterReading, ReadingRecord, SystemPart, ValueLayer};
use super::value::{Table, TableEntry, Value, ValueContent};
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::SourceSpan;

/// Reader for the values of one component. A problem does not stop any method: the method records
/// the problem and returns the start of the range, so that all problems are reported together. A
/// machine may be built from the values only if [`super::ResolvedSystem::finish`] finds no problem.
#[derive(Debug)]
#[must_use = "unknown keys are found by `finish`"]
pub struct Reader<'a> {
    reading_record: &'a RefCell<ReadingRecord>,
    system_part: &'a SystemPart,
    component_kind: Component,
    drive_index: Option<u32>,
    /// Paths of the tables in each layer for the selected cases. Their values override the plain
    /// keys of the layer.
    selected_cases: Vec<(String, Vec<String>)>,
    /// Groups from which a case was selected.
    exclusive_groups: BTreeSet<String>,
    declared_shapes: BTreeMap<String, ValueKind>,
    missing_keys: Vec<(String, Problem)>,
}

struct FoundValue<'a> {
    value: &'a Value,
    source: &'a str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        record: &'a RefCell<ReadingRecord>,
        part: &'a SystemPart,
        component: Component,
        drive: Option<u32>,
    ) -> Reader<'a> {
        let selections = drive.map(|number| (number.to_string(), vec![number.to_string()]));
        Reader {
            reading_record: record,
            system_part: part,
            component_kind: component,
            drive_index: drive,
            selected_cases: selections.into_iter().collect(),
            exclusive_groups: BTreeSet::new(),
            declared_shapes: BTreeMap::new(),
            missing_keys: Vec::new(),
        }
    }

    /// Returns the name of the component in the catalogue.
    pub fn component_name(&self) -> &str {
        &self.system_part.name
    }

    /// Returns the names of the cases of a group, those of overlays included.
    pub fn case_names(&self, group: &str) -> impl Iterator<Item = &'a str> {
        let tables = self.system_part.layers.iter();
        tables
            .filter_map(move |layer| layer.table.table(group))
            .flat_map(|cases| cases.entries.keys().map(String::as_str))
    }

    /// Makes `[GROUP.CASE]` override the plain keys next to it in all later reads: `select("type",
    /// "eagle")` uses a driver's numbers for that type of drive. A group that has cases but not
    /// this one is a problem.
    pub fn select(&mut self, group: &str, case: &str) {
        self.exclusive_groups.insert(group.to_string());
        let path = vec![group.to_string(), case.to_string()];
        let known: BTreeSet<&str> = self.case_names(group).collect();
        // A component without any such cases treats all alike.
        if !known.is_empty() && !known.contains(case) {
            let title = format!(
                "{} `{}` has no {group} `{case}`",
                self.component_kind, self.system_part.name
            );
            let problem = Problem::error(title)
                .at(&SourceSpan::start(&self.system_part.file), "")
                .help(names::suggest_names(case, known.iter().copied()));
            self.reading_record.borrow_mut().add_problem(problem);
        }
        self.selected_cases.push((path.join("."), path));
    }

    /// Reads and declares a whole number.
    pub fn integer(&mut self, key: &str, range: RangeInclusive<u64>, doc: &str) -> u64 {
        let start = *range.start();
        self.optional_integer_as(key, range, doc, true)
            .unwrap_or(start)
    }

    /// Reads and declares an optional whole number.
    pub fn optional_integer(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
        doc: &str,
    ) -> Option<u64> {
        self.optional_integer_as(key, range, doc, false)
    }

    fn optional_integer_as(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
        doc: &str,
        required: bool,
    ) -> Option<u64> {
        match self.read_value(key, ValueKind::Integer(range), doc, required) {
            Some(ParsedValue::Integer(integer)) => Some(integer),
            _ => None,
        }
    }

    /// Reads and declares a finite number.
    pub fn number(&mut self, key: &str, range: RangeInclusive<f64>, doc: &str) -> f64 {
        let start = *range.start();
        self.number_as(key, range, doc, true).unwrap_or(start)
    }

    /// Reads and declares an optional finite number.
    pub fn optional_number(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
        doc: &str,
    ) -> Option<f64> {
        self.number_as(key, range, doc, false)
    }

    fn number_as(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
        doc: &str,
        required: bool,
    ) -> Option<f64> {
        match self.read_value(key, ValueKind::Number(range), doc, required) {
            Some(ParsedValue::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// Reads a time in milliseconds and returns it in nanoseconds.
    pub fn milliseconds(&mut self, key: &str, range: RangeInclusive<f64>, doc: &str) -> u64 {
        to_nanoseconds(self.number(key, range, doc), 1e6)
    }

    /// Reads an optional time in milliseconds and returns it in nanoseconds.
    pub fn optional_milliseconds(
        &mut self,
        key: &str,
        range: RangeInclusive<f64>,
        doc: &str,
    ) -> Option<u64> {
        self.optional_number(key, range, doc)
            .map(|value| to_nanoseconds(value, 1e6))
    }

    /// Reads a time in microseconds and returns it in nanoseconds.
    pub fn microseconds(&mut self, key: &str, range: RangeInclusive<f64>, doc: &str) -> u64 {
        to_nanoseconds(self.number(key, range, doc), 1e3)
    }

    /// Reads a time in seconds and returns it in nanoseconds.
    pub fn seconds(&mut self, key: &str, range: RangeInclusive<f64>, doc: &str) -> u64 {
        to_nanoseconds(self.number(key, range, doc), 1e9)
    }

    /// Reads and declares a value that is `true` or `false`.
    pub fn flag(&mut self, key: &str, doc: &str) -> bool {
        matches!(
            self.read_value(key, ValueKind::Boolean, doc, true),
            Some(ParsedValue::Boolean(true))
        )
    }

    /// Reads one of several choices by its name in files.
    ///
    /// # Panics
    ///
    /// If the list of choices is empty.
    pub fn choice<T: Clone>(&mut self, key: &str, choices: &[(&str, T)], doc: &str) -> T {
        let names = choices.iter().map(|(name, _)| name.to_string()).collect();
        match self.read_value(key, ValueKind::Choice(names), doc, true) {
            Some(ParsedValue::ChoiceIndex(index)) => choices[index].1.clone(),
            _ => choices[0].1.clone(),
        }
    }

    /// Reads and declares a text.
    pub fn text(&mut self, key: &str, doc: &str) -> String {
        match self.read_value(key, ValueKind::Text, doc, true) {
            Some(ParsedValue::Text(text)) => text,
            _ => String::new(),
        }
    }

    /// Reads and declares an optional text.
    pub fn optional_text(&mut self, key: &str, doc: &str) -> Option<String> {
        match self.read_value(key, ValueKind::Text, doc, false) {
            Some(ParsedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Reads a list of whole numbers; empty if absent.
    pub fn integers(&mut self, key: &str, range: RangeInclusive<u64>, doc: &str) -> Vec<u64> {
        match self.read_value(key, ValueKind::Integers(range), doc, false) {
            Some(ParsedValue::Integers(integers)) => integers,
            _ => Vec::new(),
        }
    }

    /// Reads a list of pairs of whole numbers, such as `[[0, 48], [400, 40]]`; empty if absent.
    pub fn pairs(
        &mut self,
        key: &str,
        ranges: [RangeInclusive<u64>; 2],
        doc: &str,
    ) -> Vec<[u64; 2]> {
        match self.read_value(key, ValueKind::IntegerPairs(ranges), doc, false) {
            Some(ParsedValue::IntegerPairs(pairs)) => pairs,
            _ => Vec::new(),
        }
    }

    /// Reads a table of numbers, such as `[[0, 1.5], [10, 2]]`, with the given columns in each row;
    /// empty if absent.
    pub fn rows(
        &mut self,
        key: &str,
        columns: &[(&'static str, RangeInclusive<f64>)],
        doc: &str,
    ) -> Vec<Vec<f64>> {
        match self.read_value(key, ValueKind::NumberRows(columns.to_vec()), doc, false) {
            Some(ParsedValue::NumberRows(rows)) => rows,
            _ => Vec::new(),
        }
    }

    /// Reports whether any layer gives this key, which must then be read.
    pub fn is_readable(&self, key: &str) -> bool {
        self.find_value(key).is_some()
    }

    /// Reports whether a user's setting gives this key.
    pub fn is_set(&self, key: &str) -> bool {
        self.find_value(key)
            .is_some_and(|found| found.value.span.file() == SETTINGS_TEXT_NAME)
    }

    /// Reports whether the system has no problem so far.
    pub fn is_without_problems(&self) -> bool {
        self.reading_record.borrow().problems.is_empty() && self.missing_keys.is_empty()
    }

    /// Records that a value contradicts others, such as a lead longer than a track, and points at
    /// the key's value. The call has no effect after an earlier problem, because the compared
    /// values may be placeholders.
    pub fn fail(&mut self, key: &str, message: &str) {
        self.report_failure(key, message, None);
    }

    /// Records a contradiction like [`Reader::fail`], with the allowed values.
    pub fn fail_with_choices(&mut self, key: &str, message: &str, allowed: &str) {
        self.report_failure(key, message, Some(allowed));
    }

    fn report_failure(&mut self, key: &str, message: &str, allowed: Option<&str>) {
        if !self.is_without_problems() {
            return;
        }
        let place = self.find_value(key).map_or_else(
            || SourceSpan::start(&self.system_part.file),
            |found| found.value.span.clone(),
        );
        let label = allowed.map_or_else(String::new, |allowed| format!("must be {allowed}"));
        let problem = Problem::error(format!("`{key}`: {message}")).at(&place, label);
        self.reading_record.borrow_mut().add_problem(problem);
    }

    /// Ends reading and reports every key of the component that was not declared.
    pub fn finish(mut self) {
        let mut unknown = Vec::new();
        for layer in &self.system_part.layers {
            self.check_keys(&layer.table, layer.is_file, true, &mut unknown);
        }
        // A misspelt key is one mistake, not an unknown key and a missing one.
        let meant: Vec<String> = unknown
            .iter()
            .flat_map(|key| self.suggest_keys(key))
            .collect();
        let mut record = self.reading_record.borrow_mut();
        for (key, problem) in std::mem::take(&mut self.missing_keys) {
            if !meant.contains(&key) {
                record.add_problem(problem);
            }
        }
    }

    fn read_value(
        &mut self,
        key: &str,
        shape: ValueKind,
        doc: &str,
        required: bool,
    ) -> Option<ParsedValue> {
        let reading = match self.find_value(key) {
            Some(found) => match shape.parse(key, found.value) {
                Ok(reading) => {
                    let noted = self.record_reading(key, &shape, doc, &found);
                    self.reading_record
                        .borrow_mut()
                        .parameter_readings
                        .push(noted);
                    Some(reading)
                }
                Err(problem) => {
                    self.reading_record.borrow_mut().add_problem(problem);
                    None
                }
            },
            None => {
                if required {
                    let name = format!("{} `{}`", self.component_kind, self.system_part.name);
                    let problem = Problem::error(format!("{name} lacks `{key}`: {doc}"))
                        .at(&SourceSpan::start(&self.system_part.file), "")
                        .help(format!("`{key}` is {}", shape.describe_allowed(key)));
                    self.missing_keys.push((key.to_string(), problem));
                }
                None
            }
        };
        self.declared_shapes.insert(key.to_string(), shape);
        reading
    }

    fn record_reading(
        &self,
        key: &str,
        shape: &ValueKind,
        doc: &str,
        found: &FoundValue<'_>,
    ) -> ParameterReading {
        let place = &found.value.span;
        let unit = match shape {
            ValueKind::Boolean | ValueKind::Choice(_) | ValueKind::Text => "",
            _ => key_unit(key),
        };
        let value = match &found.value.value_content {
            ValueContent::Text(text) => text.clone(),
            _ => place.as_str().to_string(),
        };
        let qualifier = match (self.drive_index, self.selected_cases.last()) {
            (Some(drive), _) => format!("{drive}."),
            (None, Some((path, _))) => format!("{path}."),
            (None, None) => String::new(),
        };
        let qualified = format!("{}.{qualifier}{key}", self.component_kind);
        // What one drive has for itself can be set in no other way.
        let shared = self.drive_index.is_none() || self.component_kind == Component::Drive;
        let path = match shared {
            true => format!("{}.{key}", self.component_kind),
            false => qualified.clone(),
        };
        ParameterReading {
            parameter: Parameter {
                path,
                value,
                unit,
                range: shape.format_allowed_range(),
                source: found.source.to_string(),
                file: place.file().to_owned(),
                line: place.line_number(),
                doc: doc.to_string(),
            },
            qualified_path: qualified,
            drive_index: self.drive_index,
            span: place.clone(),
            component_kind: self.component_kind,
        }
    }

    /// Finds the value of a key with the highest precedence: in the last layer that has the key,
    /// and there in the most specific table.
    fn find_value(&self, key: &str) -> Option<FoundValue<'a>> {
        let part: &'a SystemPart = self.system_part;
        let tables = |layer: &'a ValueLayer| {
            let whole: &'a Table = &layer.table;
            let selected = self.selected_cases.iter().rev().filter_map(|(_, path)| {
                path.iter().try_fold(whole, |table, name| table.table(name))
            });
            selected.chain([whole]).collect::<Vec<_>>()
        };
        part.layers.iter().rev().find_map(|layer| {
            tables(layer).into_iter().find_map(|table| {
                let entry = table.get(key)?;
                Some(FoundValue {
                    value: &entry.value,
                    source: value_source(key, entry, table, layer),
                })
            })
        })
    }
}

/// Returns the source that applies to a value: its own, or that of the closest enclosing table.
fn value_source<'t>(
    key: &str,
    entry: &TableEntry,
    table: &'t Table,
    layer: &'t ValueLayer,
) -> &'t str {
    if entry.key_span.file() == SETTINGS_TEXT_NAME {
        return SETTINGS_TEXT_NAME;
    }
    table
        .text(&format!("{key}_source"))
        .or_else(|| table.text("source"))
        .or_else(|| layer.table.text("source"))
        .unwrap_or(&layer.source)
}

/// Converts a time to nanoseconds, rounded to nearest with halves up. The parameter ranges keep the
/// product within `u64`.
fn to_nanoseconds(value: f64, nanoseconds_per_unit: f64) -> u64 {
    let exact = value * nanoseconds_per_unit;
    assert!(
        (0.0..=9.0e18).contains(&exact),
        "a declared range of times must lie between 0 and 290 years"
    );
    exact.round() as u64
}
