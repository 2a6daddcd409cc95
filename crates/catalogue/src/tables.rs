//! Reader for TOML files that users write beside the catalogue.

use super::names;
use super::shape::{ParsedValue, ValueKind};
use super::value::{self, Table, TableEntry, Value, ValueContent};
use diskperf_diagnostics::{Errors, Problem, SourceSpan, Text};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Reader for a table of a TOML file. Each read declares a key. A problem does not stop any read:
/// all problems are reported together by [`Self::finish`].
#[derive(Debug)]
#[must_use = "problems and unknown keys are found by `finish`"]
pub struct TableReader {
    description: String,
    table: Table,
    span: SourceSpan,
    declared: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl TableReader {
    /// Parses the text of a file. Messages call the whole file by its description, such as "a file
    /// of faults".
    ///
    /// # Errors
    ///
    /// A text that is not TOML.
    pub fn parse(text: &Arc<Text>, description: &str) -> Result<Self, Errors> {
        match value::parse(text) {
            Ok(table) => Ok(Self::new(description, table, SourceSpan::start(text))),
            Err(problems) => {
                Errors::fail_if_any(problems)?;
                unreachable!("a text that is not parsed has a problem")
            }
        }
    }

    fn new(description: &str, table: Table, span: SourceSpan) -> Self {
        Self {
            description: description.to_owned(),
            table,
            span,
            declared: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Reads a whole number; `None` if it is absent or invalid.
    pub fn integer(&mut self, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
        match self.read(key, &ValueKind::Integer(range)) {
            Some(ParsedValue::Integer(integer)) => Some(integer),
            _ => None,
        }
    }

    /// Reads a finite number; `None` if it is absent or invalid.
    pub fn number(&mut self, key: &str, range: RangeInclusive<f64>) -> Option<f64> {
        match self.read(key, &ValueKind::Number(range)) {
            Some(ParsedValue::Number(number)) => Some(number),
            _ => None,
        }
    }

    /// Reads a value that is `true` or `false`; `None` if it is absent or invalid.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        match self.read(key, &ValueKind::Boolean) {
            Some(ParsedValue::Boolean(flag)) => Some(flag),
            _ => None,
        }
    }

    /// Reads a text; `None` if it is absent or invalid.
    pub fn text(&mut self, key: &str) -> Option<String> {
        match self.read(key, &ValueKind::Text) {
            Some(ParsedValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Reads the name of a choice, and returns its index in the list; `None` if it is absent or
    /// invalid.
    pub fn choice(&mut self, key: &str, names: &[&str]) -> Option<usize> {
        match self.read(key, &choice_shape(names)) {
            Some(ParsedValue::ChoiceIndex(index)) => Some(index),
            _ => None,
        }
    }

    /// Reads a list of names of choices, and returns their indices; `None` if it is absent or
    /// invalid.
    pub fn choices(&mut self, key: &str, names: &[&str]) -> Option<Vec<usize>> {
        let shape = choice_shape(names);
        let items = self.list(
            key,
            &format!("a list, each {}", shape.describe_allowed(key)),
        )?;
        let mut indices = Vec::new();
        for item in &items {
            match shape.parse(key, item) {
                Ok(ParsedValue::ChoiceIndex(index)) => indices.push(index),
                Ok(_) => {}
                Err(problem) => self.problems.push(problem),
            }
        }
        (indices.len() == items.len()).then_some(indices)
    }

    /// Reads the tables of `[[KEY]]`, each with its own reader. The caller returns their problems
    /// to [`Self::add`].
    pub fn tables(&mut self, key: &str, description: &str) -> Vec<TableReader> {
        let items = self.list(key, &format!("tables: write `[[{key}]]`"));
        let mut tables = Vec::new();
        for item in items.unwrap_or_default() {
            match item.value_content {
                ValueContent::Table(table) => {
                    tables.push(Self::new(description, table, item.span));
                }
                other => {
                    let title = format!("`{key}` cannot have {}", other.kind_name());
                    let label = format!("must be tables: write `[[{key}]]`");
                    self.problems
                        .push(Problem::error(title).at(&item.span, label));
                }
            }
        }
        tables
    }

    fn list(&mut self, key: &str, allowed: &str) -> Option<Vec<Value>> {
        self.declared.insert(key.to_owned());
        let value = &self.table.get(key)?.value;
        match &value.value_content {
            ValueContent::List(items) => Some(items.clone()),
            other => {
                let title = format!("`{key}` cannot be {}", other.kind_name());
                let label = format!("must be {allowed}");
                let problem = Problem::error(title).at(&value.span, label);
                self.problems.push(problem);
                None
            }
        }
    }

    fn read(&mut self, key: &str, shape: &ValueKind) -> Option<ParsedValue> {
        self.declared.insert(key.to_owned());
        let read = shape.parse(key, &self.table.get(key)?.value);
        read.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Reports whether the table has a key.
    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Records that the table lacks a key, with the meaning of it.
    pub fn lack(&mut self, key: &str, meaning: &str) {
        // A misspelt key is one mistake, not an unknown key and a missing one.
        let keys = self.table.entries.keys().map(String::as_str);
        let is_misspelt = keys
            .filter(|other| !self.declared.contains(*other))
            .any(|other| names::find_similar_names(other, [key].into_iter()) == [key]);
        if self.has(key) || is_misspelt {
            return;
        }
        let title = format!("{} lacks `{key}`", self.description);
        let problem = Problem::error(title).at(&self.span, meaning);
        self.problems.push(problem);
    }

    /// Records that the value of a key contradicts others, and points at it; at the table without
    /// the key.
    pub fn fail(&mut self, key: &str, title: &str, label: &str) {
        let span = self
            .table
            .get(key)
            .map_or(&self.span, |entry| &entry.value.span);
        let problem = Problem::error(title).at(span, label);
        self.problems.push(problem);
    }

    /// Adds the problems of a table within this one.
    pub fn add(&mut self, problems: Vec<Problem>) {
        self.problems.extend(problems);
    }

    /// Reports whether a problem was recorded.
    pub fn has_problems(&self) -> bool {
        !self.problems.is_empty()
    }

    /// Ends reading, and returns the problems of values. Keys are not checked: which ones there may
    /// be depends on a value that is wrong.
    pub fn finish_values(self) -> Vec<Problem> {
        self.problems
    }

    /// Ends reading, and returns all problems: those of values, and keys that were not declared.
    pub fn finish(self) -> Vec<Problem> {
        let mut problems = self.problems;
        for (key, TableEntry { key_span: span, .. }) in &self.table.entries {
            if self.declared.contains(key) {
                continue;
            }
            let known = self.declared.iter().map(String::as_str);
            let title = format!("unknown key `{key}` of {}", self.description);
            let problem = Problem::error(title).at(span, "");
            problems.push(problem.help(names::suggest_names(key, known)));
        }
        problems
    }
}

fn choice_shape(names: &[&str]) -> ValueKind {
    ValueKind::Choice(names.iter().map(|name| (*name).to_owned()).collect())
}
