//! Reader of the keys of a DiskSim block. Each key is used, listed as without effect, or rejected.

mod checks;

pub(crate) use checks::{check_sector_limits, report_ignored_block};

use checks::{is_legal, report_effect, unknown_key_problem};
use diskperf_diagnostics::{Errors, Problem, SourceSpan};
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::table::{BlockKeyTable, MissingKey};
use crate::text::{ParameterBlock, ParameterEntry, ParameterValue, ValueKind, shorten_text};

/// Maximum number of reported problems. A file with more is probably not a parameter file.
pub(crate) const PROBLEMS_MAX: usize = 50;

/// Key of a parameter file that has no effect on the modelled drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredKey {
    /// Name of the key, or the title of a block whose keys are unknown.
    pub key: String,
    /// Type and name of the block that contains the key; empty for a key in a comment.
    pub block: String,
    /// Place of the key in the file.
    pub span: SourceSpan,
    /// Reason why the key has no effect.
    pub reason: &'static str,
    /// Value in the file, and the different value that the modelled drive behaves like. `None` if
    /// the key has no effect with any value, or if both are equal.
    pub substituted_value: Option<SubstitutedValue>,
}

/// Value that is not modelled, with the value used in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubstitutedValue {
    /// Value that the file gives.
    pub file_value: String,
    /// Value that the modelled drive behaves like.
    pub modelled_value: String,
}

/// Errors, warnings and used keys, collected while values are read.
#[derive(Debug, Default)]
pub(crate) struct ImportFindings {
    errors: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
    ignored_keys: RefCell<Vec<IgnoredKey>>,
    used_keys: RefCell<KeySpans>,
}

/// Places of the values that define a drive, by key. If a key occurs several times, its first place
/// counts.
pub type KeySpans = BTreeMap<String, SourceSpan>;

impl ImportFindings {
    pub(crate) fn report_error(&self, problem: Problem) {
        push_limited(&self.errors, problem);
    }

    pub(crate) fn report_warning(&self, problem: Problem) {
        push_limited(&self.warnings, problem);
    }

    /// Records something without effect that is not a key of a block.
    pub(crate) fn report_ignored_key(&self, key: String, place: &SourceSpan, why: &'static str) {
        self.ignored_keys.borrow_mut().push(IgnoredKey {
            key,
            block: String::new(),
            span: place.clone(),
            reason: why,
            substituted_value: None,
        });
    }

    /// Records a key of a block as without effect.
    fn report_ignored_entry(
        &self,
        block: &ParameterBlock,
        entry: &ParameterEntry,
        why: &'static str,
    ) {
        self.report_ignored(block, entry, why, None);
    }

    fn report_ignored(
        &self,
        block: &ParameterBlock,
        entry: &ParameterEntry,
        why: &'static str,
        acts_as: Option<SubstitutedValue>,
    ) {
        self.ignored_keys.borrow_mut().push(IgnoredKey {
            key: shorten_text(&entry.key),
            block: block.title(),
            span: entry.key_span.clone(),
            reason: why,
            substituted_value: acts_as,
        });
    }

    fn mark_used(&self, entry: &ParameterEntry) {
        let mut used = self.used_keys.borrow_mut();
        if !used.contains_key(&entry.key) {
            used.insert(entry.key.clone(), entry.value.span.clone());
        }
    }

    /// Returns and clears the places of the keys used so far.
    pub(crate) fn take_used_keys(&self) -> KeySpans {
        self.used_keys.take()
    }

    /// Returns the warnings and the keys without effect, or the errors if there are any.
    pub(crate) fn finish(self) -> Result<(Vec<Problem>, Vec<IgnoredKey>), Errors> {
        Errors::fail_if_any(self.errors.into_inner())?;
        Ok((self.warnings.into_inner(), self.ignored_keys.into_inner()))
    }
}

fn push_limited(to: &RefCell<Vec<Problem>>, problem: Problem) {
    let mut to = to.borrow_mut();
    if to.len() < PROBLEMS_MAX {
        to.push(problem);
    }
}

/// Keys of one block during reading. Unknown keys and values that DiskSim does not accept are
/// rejected immediately.
pub(crate) struct KeyReader<'b> {
    block: &'b ParameterBlock,
    key_table: &'static BlockKeyTable,
    /// Whether each entry of the block has a readable value.
    are_values_legal: Vec<bool>,
    pub(crate) findings: &'b ImportFindings,
}

impl<'b> KeyReader<'b> {
    /// Starts reading a block, whose type must have a key table.
    pub(crate) fn new(block: &'b ParameterBlock, findings: &'b ImportFindings) -> KeyReader<'b> {
        let kind = block.kind.as_str();
        let Some(table) = BlockKeyTable::find(kind) else {
            unreachable!("{kind} is a block of a drive and has no table");
        };
        let read = |entry: &ParameterEntry| {
            let Some(key) = table.find_key(&entry.key) else {
                findings.report_error(unknown_key_problem(block, entry, table));
                return false;
            };
            report_effect(block, entry, key, findings);
            is_legal(entry, key, findings)
        };
        let legal = block.entries.iter().map(read).collect();
        KeyReader {
            block,
            key_table: table,
            are_values_legal: legal,
            findings,
        }
    }

    /// Finds an optional key. A key with a rejected value counts as missing.
    pub(crate) fn find(&self, key: &str) -> Option<&'b ParameterEntry> {
        debug_assert!(
            self.key_table.find_key(key).is_some(),
            "{key} is in no table"
        );
        let entries = self.block.entries.iter().zip(&self.are_values_legal);
        let (entry, _) = entries
            .filter(|(_, is_legal)| **is_legal)
            .find(|(entry, _)| entry.key == key)?;
        self.findings.mark_used(entry);
        Some(entry)
    }

    /// Finds a required key and reports it if it is missing.
    pub(crate) fn require(&self, key: &str) -> Option<&'b ParameterEntry> {
        let found = self.find(key);
        let is_written = || self.block.entries.iter().any(|entry| entry.key == key);
        if found.is_none() && !is_written() {
            self.report_missing(key, "0 is used");
        }
        found
    }

    fn report_missing(&self, key: &str, instead: &str) {
        let title = format!("{} has no `{key}`", self.block.title());
        match self.key_table.missing_key_treatment {
            MissingKey::Reject => {
                let problem = Problem::error(title).at(&self.block.kind, "in this block");
                let legal = self
                    .key_table
                    .find_key(key)
                    .map(|key| key.legal_values.describe(None));
                let help = format!("write `{key} = ..`, {}", legal.unwrap_or_default());
                self.findings.report_error(problem.help(help));
            }
            MissingKey::UseZero => {
                let problem = Problem::warning(title).at(&self.block.kind, instead);
                self.findings.report_warning(problem);
            }
            MissingKey::Accept => {}
        }
    }

    pub(crate) fn reject_value(&self, entry: &ParameterEntry, label: impl Into<String>) {
        let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
        let problem = Problem::error(title).at(&entry.value.span, label);
        self.findings.report_error(problem);
    }

    /// Rejects a value that DiskSim accepts but that exceeds the model's maximum.
    fn reject_above(&self, entry: &ParameterEntry, max: u64) {
        let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
        let problem = Problem::error(title).at(&entry.value.span, "DiskSim accepts it");
        let help = format!(
            "a modelled drive has at most {max}: write `{} = {max}` or less",
            entry.key
        );
        self.findings.report_error(problem.help(help));
    }

    /// Reads the whole number of a key; a negative number becomes 0.
    pub(crate) fn read_count(&self, key: &str) -> Option<u64> {
        let entry = self.require(key)?;
        let number = to_integer(&entry.value)?;
        Some(u64::try_from(number).unwrap_or_else(|_| {
            self.report_negative(entry);
            0
        }))
    }

    /// Reads a whole number and rejects it above a maximum of the model.
    pub(crate) fn read_count_at_most(&self, key: &str, max: u64) -> Option<u64> {
        let number = self.read_count(key)?;
        if number > max {
            self.reject_above(self.find(key)?, max);
            return None;
        }
        Some(number)
    }

    /// Reads a whole number, limited to a maximum of the model with a warning.
    pub(crate) fn read_limited_count(&self, key: &str, max: u64) -> Option<u64> {
        let number = self.read_count(key)?;
        if number > max {
            let entry = self.find(key)?;
            let title = format!("`{key} = {number}` exceeds the limit of a modelled drive");
            let warning = Problem::warning(title);
            let warning = warning.at(&entry.value.span, format!("{max} is used"));
            self.findings.report_warning(warning);
        }
        Some(number.min(max))
    }

    /// Reads the number of a key, with or without a decimal point.
    pub(crate) fn read_number(&self, key: &str) -> Option<f64> {
        to_number(&self.require(key)?.value)
    }

    /// Reads an optional number, which is 0 if it is missing.
    pub(crate) fn read_optional_number(&self, key: &str) -> Option<f64> {
        match self.block.entries.iter().any(|entry| entry.key == key) {
            true => to_number(&self.find(key)?.value),
            false => Some(0.0),
        }
    }

    /// Reads a duration in milliseconds; a missing or negative one becomes 0.
    pub(crate) fn read_ms(&self, key: &str) -> f64 {
        let time = self.read_number(key).unwrap_or(0.0);
        if time >= 0.0 {
            return time;
        }
        if let Some(entry) = self.find(key) {
            self.report_negative(entry);
        }
        0.0
    }

    /// Warns about a negative number, which DiskSim accepts but which has no meaning.
    fn report_negative(&self, entry: &ParameterEntry) {
        let written = entry.value.span.as_str();
        let title = format!("`{} = {written}` is below 0", entry.key);
        let warning = Problem::warning(title).at(&entry.value.span, "0 is used");
        self.findings.report_warning(warning);
    }

    /// Reads a whole number; a missing one becomes 0, and one that is too large `u32::MAX`.
    pub(crate) fn read_count_or_zero(&self, key: &str) -> u32 {
        let count = self.read_count(key).unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Reads the flag of a key, which is 0 or 1.
    pub(crate) fn read_flag(&self, key: &str) -> bool {
        self.read_count_or_zero(key) == 1
    }

    pub(crate) fn read_list(
        &self,
        key: &str,
    ) -> Option<(&'b ParameterEntry, &'b [ParameterValue])> {
        let entry = self.require(key)?;
        match &entry.value.kind {
            ValueKind::List(values) => Some((entry, values)),
            _ => None,
        }
    }

    /// Reads a list; a missing one is empty, with a warning.
    pub(crate) fn read_optional_list(
        &self,
        key: &str,
    ) -> Option<(Option<&'b ParameterEntry>, &'b [ParameterValue])> {
        if self.block.entries.iter().any(|entry| entry.key == key) {
            let (entry, values) = self.read_list(key)?;
            return Some((Some(entry), values));
        }
        let title = format!("{} has no `{key}`", self.block.title());
        let warning = Problem::warning(title).at(&self.block.kind, "an empty list is used");
        self.findings.report_warning(warning);
        Some((None, &[]))
    }

    /// Reads a nested block of the given type, or of any type if `kind` is empty.
    pub(crate) fn read_block(
        &self,
        key: &str,
        kind: &str,
    ) -> Option<(&'b ParameterEntry, &'b ParameterBlock)> {
        let entry = self.require(key)?;
        let ValueKind::Block(block) = &entry.value.kind else {
            return None;
        };
        if !kind.is_empty() && block.kind.as_str() != kind {
            self.reject_value(entry, format!("expected `{kind} {{ .. }}`"));
            return None;
        }
        Some((entry, block))
    }

    /// Reads the word of a key, such as a file name.
    pub(crate) fn read_word(&self, key: &str) -> Option<(&'b ParameterEntry, &'b str)> {
        let entry = self.require(key)?;
        Some((entry, entry.value.span.as_str()))
    }

    /// Reports whether a key comes after any of the given others.
    pub(crate) fn is_after_any(&self, key: &str, others: &[&str]) -> bool {
        let mut before = self.block.entries.iter().take_while(|one| one.key != key);
        let is_written = self.block.entries.iter().any(|one| one.key == key);
        is_written && before.any(|one| others.contains(&one.key.as_str()))
    }

    /// Lists keys as without effect that matter only in other blocks.
    pub(crate) fn ignore_keys(&self, keys: &[&str], why: &'static str) {
        for entry in &self.block.entries {
            if keys.contains(&entry.key.as_str()) {
                self.findings.report_ignored_entry(self.block, entry, why);
            }
        }
    }
}

/// Longest duration in a file, in milliseconds: one hour.
pub(crate) const TIME_MS_MAX: f64 = 3.6e6;

/// Returns a number if it has no fractional part.
pub(crate) fn to_integer(value: &ParameterValue) -> Option<i64> {
    match value.kind {
        ValueKind::Integer(number) => Some(number),
        // 2^53: all whole numbers up to there are exact.
        ValueKind::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Some(number as i64)
        }
        _ => None,
    }
}

/// Returns a number if it has no fractional part and is not negative.
pub(crate) fn to_unsigned(value: &ParameterValue) -> Option<u64> {
    to_integer(value).and_then(|number| u64::try_from(number).ok())
}

/// Returns a number, with or without a decimal point.
pub(crate) fn to_number(value: &ParameterValue) -> Option<f64> {
    match value.kind {
        ValueKind::Integer(number) => Some(number as f64),
        ValueKind::Real(number) => Some(number),
        _ => None,
    }
}
