//! Reader of the keys of a DiskSim block. Each key is used, listed as without effect, or rejected.

mod checks;

pub(crate) use checks::{check_limits, note_block_without_effect};

use checks::{is_legal, report_effect, unknown_key_problem};
use diskperf_diagnostics::{Errors, Problem, SourceSpan};
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::table::{BlockKeys, Missing};
use crate::text::{Block, Entry, Value, ValueKind, excerpt};

/// Maximum number of reported problems. A file with more is probably not a parameter file.
pub(crate) const PROBLEMS_MAX: usize = 50;

/// Key of a parameter file that has no effect on the modelled drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutEffect {
    /// Name of the key, or the title of a block whose keys are unknown.
    pub key: String,
    /// Type and name of the block that contains the key; empty for a key in a comment.
    pub block: String,
    /// Place of the key in the file.
    pub place: SourceSpan,
    /// Reason why the key has no effect.
    pub why: &'static str,
    /// Value in the file, and the different value that the modelled drive behaves like. `None` if
    /// the key has no effect with any value, or if both are equal.
    pub acts_as: Option<ActsAs>,
}

/// Value that is not modelled, with the value used in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActsAs {
    /// Value that the file gives.
    pub written: String,
    /// Value that the modelled drive behaves like.
    pub modelled: String,
}

/// Errors, warnings and used keys, collected while values are read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    errors: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
    without_effect: RefCell<Vec<WithoutEffect>>,
    used: RefCell<KeyPlaces>,
}

/// Places of the values that define a drive, by key. If a key occurs several times, its first place
/// counts.
pub type KeyPlaces = BTreeMap<String, SourceSpan>;

impl Findings {
    pub(crate) fn error(&self, problem: Problem) {
        push(&self.errors, problem);
    }

    pub(crate) fn warning(&self, problem: Problem) {
        push(&self.warnings, problem);
    }

    /// Records something without effect that is not a key of a block.
    pub(crate) fn without_effect(&self, key: String, place: &SourceSpan, why: &'static str) {
        self.without_effect.borrow_mut().push(WithoutEffect {
            key,
            block: String::new(),
            place: place.clone(),
            why,
            acts_as: None,
        });
    }

    /// Records a key of a block as without effect.
    fn note_key_without_effect(&self, block: &Block, entry: &Entry, why: &'static str) {
        self.note(block, entry, why, None);
    }

    fn note(&self, block: &Block, entry: &Entry, why: &'static str, acts_as: Option<ActsAs>) {
        self.without_effect.borrow_mut().push(WithoutEffect {
            key: excerpt(&entry.key),
            block: block.title(),
            place: entry.key_place.clone(),
            why,
            acts_as,
        });
    }

    fn mark_used(&self, entry: &Entry) {
        let mut used = self.used.borrow_mut();
        if !used.contains_key(&entry.key) {
            used.insert(entry.key.clone(), entry.value.place.clone());
        }
    }

    /// Returns and clears the places of the keys used so far.
    pub(crate) fn take_used_keys(&self) -> KeyPlaces {
        self.used.take()
    }

    /// Returns the warnings and the keys without effect, or the errors if there are any.
    pub(crate) fn finish(self) -> Result<(Vec<Problem>, Vec<WithoutEffect>), Errors> {
        Errors::fail_if_any(self.errors.into_inner())?;
        Ok((self.warnings.into_inner(), self.without_effect.into_inner()))
    }
}

fn push(to: &RefCell<Vec<Problem>>, problem: Problem) {
    let mut to = to.borrow_mut();
    if to.len() < PROBLEMS_MAX {
        to.push(problem);
    }
}

/// Keys of one block during reading. Unknown keys and values that DiskSim does not accept are
/// rejected immediately.
pub(crate) struct Keys<'b> {
    block: &'b Block,
    table: &'static BlockKeys,
    /// Whether each entry of the block has a readable value.
    legal: Vec<bool>,
    pub(crate) findings: &'b Findings,
}

impl<'b> Keys<'b> {
    /// Starts reading a block, whose type must have a key table.
    pub(crate) fn new(block: &'b Block, findings: &'b Findings) -> Keys<'b> {
        let kind = block.kind.as_str();
        let Some(table) = BlockKeys::find(kind) else {
            unreachable!("{kind} is a block of a drive and has no table");
        };
        let read = |entry: &Entry| {
            let Some(key) = table.key(&entry.key) else {
                findings.error(unknown_key_problem(block, entry, table));
                return false;
            };
            report_effect(block, entry, key, findings);
            is_legal(entry, key, findings)
        };
        let legal = block.entries.iter().map(read).collect();
        Keys {
            block,
            table,
            legal,
            findings,
        }
    }

    /// Finds an optional key. A key with a rejected value counts as missing.
    pub(crate) fn find(&self, key: &str) -> Option<&'b Entry> {
        debug_assert!(self.table.key(key).is_some(), "{key} is in no table");
        let entries = self.block.entries.iter().zip(&self.legal);
        let (entry, _) = entries
            .filter(|(_, is_legal)| **is_legal)
            .find(|(entry, _)| entry.key == key)?;
        self.findings.mark_used(entry);
        Some(entry)
    }

    /// Finds a required key and reports it if it is missing.
    pub(crate) fn require(&self, key: &str) -> Option<&'b Entry> {
        let found = self.find(key);
        let is_written = || self.block.entries.iter().any(|entry| entry.key == key);
        if found.is_none() && !is_written() {
            self.report_missing(key, "0 is used");
        }
        found
    }

    fn report_missing(&self, key: &str, instead: &str) {
        let title = format!("{} has no `{key}`", self.block.title());
        match self.table.missing {
            Missing::Refuse => {
                let problem = Problem::error(title).at(&self.block.kind, "in this block");
                let legal = self.table.key(key).map(|key| key.legal.describe(None));
                let help = format!("write `{key} = ..`, {}", legal.unwrap_or_default());
                self.findings.error(problem.help(help));
            }
            Missing::Zero => {
                let problem = Problem::warning(title).at(&self.block.kind, instead);
                self.findings.warning(problem);
            }
            Missing::Nothing => {}
        }
    }

    /// Reports the value of a key as an error.
    pub(crate) fn refuse(&self, entry: &Entry, label: impl Into<String>) {
        let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
        let problem = Problem::error(title).at(&entry.value.place, label);
        self.findings.error(problem);
    }

    /// Rejects a value that DiskSim accepts but that exceeds the model's maximum.
    fn refuse_above(&self, entry: &Entry, max: u64) {
        let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
        let problem = Problem::error(title).at(&entry.value.place, "DiskSim accepts it");
        let help = format!(
            "a modelled drive has at most {max}: write `{} = {max}` or less",
            entry.key
        );
        self.findings.error(problem.help(help));
    }

    /// Reads the whole number of a key; a negative number becomes 0.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        let entry = self.require(key)?;
        let number = to_integer(&entry.value)?;
        Some(u64::try_from(number).unwrap_or_else(|_| {
            self.report_negative(entry);
            0
        }))
    }

    /// Reads a whole number and rejects it above a maximum of the model.
    pub(crate) fn count_at_most(&self, key: &str, max: u64) -> Option<u64> {
        let number = self.count(key)?;
        if number > max {
            self.refuse_above(self.find(key)?, max);
            return None;
        }
        Some(number)
    }

    /// Reads a whole number, limited to a maximum of the model with a warning.
    pub(crate) fn count_limited(&self, key: &str, max: u64) -> Option<u64> {
        let number = self.count(key)?;
        if number > max {
            let entry = self.find(key)?;
            let title = format!("`{key} = {number}` exceeds the limit of a modelled drive");
            let warning = Problem::warning(title);
            let warning = warning.at(&entry.value.place, format!("{max} is used"));
            self.findings.warning(warning);
        }
        Some(number.min(max))
    }

    /// Reads the number of a key, with or without a decimal point.
    pub(crate) fn real(&self, key: &str) -> Option<f64> {
        real(&self.require(key)?.value)
    }

    /// Reads an optional number, which is 0 if it is missing.
    pub(crate) fn optional_real(&self, key: &str) -> Option<f64> {
        match self.block.entries.iter().any(|entry| entry.key == key) {
            true => real(&self.find(key)?.value),
            false => Some(0.0),
        }
    }

    /// Reads a duration in milliseconds; a missing or negative one becomes 0.
    pub(crate) fn milliseconds(&self, key: &str) -> f64 {
        let time = self.real(key).unwrap_or(0.0);
        if time >= 0.0 {
            return time;
        }
        if let Some(entry) = self.find(key) {
            self.report_negative(entry);
        }
        0.0
    }

    /// Warns about a negative number, which DiskSim accepts but which has no meaning.
    fn report_negative(&self, entry: &Entry) {
        let written = entry.value.place.as_str();
        let title = format!("`{} = {written}` is below 0", entry.key);
        let warning = Problem::warning(title).at(&entry.value.place, "0 is used");
        self.findings.warning(warning);
    }

    /// Reads a whole number; a missing one becomes 0, and one that is too large `u32::MAX`.
    pub(crate) fn count_or_zero(&self, key: &str) -> u32 {
        let count = self.count(key).unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Reads the flag of a key, which is 0 or 1.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.count_or_zero(key) == 1
    }

    /// Reads the list of a required key.
    pub(crate) fn list(&self, key: &str) -> Option<(&'b Entry, &'b [Value])> {
        let entry = self.require(key)?;
        match &entry.value.kind {
            ValueKind::List(values) => Some((entry, values)),
            _ => None,
        }
    }

    /// Reads a list; a missing one is empty, with a warning.
    pub(crate) fn list_or_empty(&self, key: &str) -> Option<(Option<&'b Entry>, &'b [Value])> {
        if self.block.entries.iter().any(|entry| entry.key == key) {
            let (entry, values) = self.list(key)?;
            return Some((Some(entry), values));
        }
        let title = format!("{} has no `{key}`", self.block.title());
        let warning = Problem::warning(title).at(&self.block.kind, "an empty list is used");
        self.findings.warning(warning);
        Some((None, &[]))
    }

    /// Reads a nested block of the given type, or of any type if `kind` is empty.
    pub(crate) fn block(&self, key: &str, kind: &str) -> Option<(&'b Entry, &'b Block)> {
        let entry = self.require(key)?;
        let ValueKind::Block(block) = &entry.value.kind else {
            return None;
        };
        if !kind.is_empty() && block.kind.as_str() != kind {
            self.refuse(entry, format!("expected `{kind} {{ .. }}`"));
            return None;
        }
        Some((entry, block))
    }

    /// Reads the word of a key, such as a file name.
    pub(crate) fn word(&self, key: &str) -> Option<(&'b Entry, &'b str)> {
        let entry = self.require(key)?;
        Some((entry, entry.value.place.as_str()))
    }

    /// Reports whether a key comes after any of the given others.
    pub(crate) fn comes_after_any(&self, key: &str, others: &[&str]) -> bool {
        let mut before = self.block.entries.iter().take_while(|one| one.key != key);
        let is_written = self.block.entries.iter().any(|one| one.key == key);
        is_written && before.any(|one| others.contains(&one.key.as_str()))
    }

    /// Lists keys as without effect that matter only in other blocks.
    pub(crate) fn ignore(&self, keys: &[&str], why: &'static str) {
        for entry in &self.block.entries {
            if keys.contains(&entry.key.as_str()) {
                self.findings
                    .note_key_without_effect(self.block, entry, why);
            }
        }
    }
}

/// Longest duration in a file, in milliseconds: one hour.
pub(crate) const TIME_MS_MAX: f64 = 3.6e6;

/// Returns a number if it has no fractional part.
pub(crate) fn to_integer(value: &Value) -> Option<i64> {
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
pub(crate) fn to_natural(value: &Value) -> Option<u64> {
    to_integer(value).and_then(|number| u64::try_from(number).ok())
}

/// Returns a number, with or without a decimal point.
pub(crate) fn real(value: &Value) -> Option<f64> {
    match value.kind {
        ValueKind::Integer(number) => Some(number as f64),
        ValueKind::Real(number) => Some(number),
        _ => None,
    }
}
