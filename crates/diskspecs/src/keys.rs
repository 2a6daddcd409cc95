//! The keys of a block: each is used, without effect, or refused.

mod checks;

pub(crate) use checks::{check_limits, list_block};

use checks::{is_legal, note_effect, unknown};
use diskperf_diagnostics::{Errors, Place, Problem};
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::table::{BlockKeys, Missing};
use crate::text::{Block, Entry, Value, ValueKind, excerpt};

/// As many problems are told; whoever has more of them has another kind of file.
pub(crate) const MOST_PROBLEMS: usize = 50;

/// A key that changes nothing, or nothing that is modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutEffect {
    /// The key, or the title of a block whose keys are not known.
    pub key: String,
    /// Type and name of the block that has the key; empty for a key in a comment.
    pub block: String,
    /// Where it is.
    pub place: Place,
    /// Why nothing comes of it.
    pub why: &'static str,
    /// Its value and the other value that the modelled drive acts as with; absent if nothing
    /// would come of any value, or the file has that one.
    pub acts_as: Option<ActsAs>,
}

/// A value that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActsAs {
    /// Value of the file.
    pub written: String,
    /// Value that is modelled.
    pub modelled: String,
}

/// What is found while values are read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    errors: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
    without_effect: RefCell<Vec<WithoutEffect>>,
    used: RefCell<KeyPlaces>,
}

/// Where the values of the keys are that a drive is made of; of a key that it has several
/// times, the first.
pub type KeyPlaces = BTreeMap<String, Place>;

impl Findings {
    pub(crate) fn error(&self, problem: Problem) {
        push(&self.errors, problem);
    }

    pub(crate) fn warning(&self, problem: Problem) {
        push(&self.warnings, problem);
    }

    /// Notes what stands somewhere and has no effect, and is not a key of a block.
    pub(crate) fn without_effect(&self, key: String, place: &Place, why: &'static str) {
        self.without_effect.borrow_mut().push(WithoutEffect {
            key,
            block: String::new(),
            place: place.clone(),
            why,
            acts_as: None,
        });
    }

    /// Notes a key of a block.
    fn key_without_effect(&self, block: &Block, entry: &Entry, why: &'static str) {
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

    fn used(&self, entry: &Entry) {
        let mut used = self.used.borrow_mut();
        if !used.contains_key(&entry.key) {
            used.insert(entry.key.clone(), entry.value.place.clone());
        }
    }

    /// The places of the keys that were used since this was asked.
    pub(crate) fn take_used(&self) -> KeyPlaces {
        self.used.take()
    }

    /// What was warned of and what is without effect, if nothing was wrong.
    pub(crate) fn finish(self) -> Result<(Vec<Problem>, Vec<WithoutEffect>), Errors> {
        Errors::none_of(self.errors.into_inner())?;
        Ok((self.warnings.into_inner(), self.without_effect.into_inner()))
    }
}

fn push(to: &RefCell<Vec<Problem>>, problem: Problem) {
    let mut to = to.borrow_mut();
    if to.len() < MOST_PROBLEMS {
        to.push(problem);
    }
}

/// The keys of one block of a drive while they are read. Values that DiskSim does not accept
/// and keys that it has not are refused at once.
pub(crate) struct Keys<'b> {
    block: &'b Block,
    table: &'static BlockKeys,
    /// For each entry of the block, whether its value can be read.
    legal: Vec<bool>,
    pub(crate) findings: &'b Findings,
}

impl<'b> Keys<'b> {
    /// The keys of a block, whose type must have a table.
    pub(crate) fn new(block: &'b Block, findings: &'b Findings) -> Keys<'b> {
        let kind = block.kind.written();
        let Some(table) = BlockKeys::find(kind) else {
            unreachable!("{kind} is a block of a drive and has no table");
        };
        let read = |entry: &Entry| {
            let Some(key) = table.key(&entry.key) else {
                findings.error(unknown(block, entry, table));
                return false;
            };
            note_effect(block, entry, key, findings);
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

    /// A key that may be missing. A value that was refused is missing, too.
    pub(crate) fn find(&self, key: &str) -> Option<&'b Entry> {
        debug_assert!(self.table.key(key).is_some(), "{key} is in no table");
        let entries = self.block.entries.iter().zip(&self.legal);
        let (entry, _) = entries
            .filter(|(_, is_legal)| **is_legal)
            .find(|(entry, _)| entry.key == key)?;
        self.findings.used(entry);
        Some(entry)
    }

    /// A key that should not be missing.
    pub(crate) fn need(&self, key: &str) -> Option<&'b Entry> {
        let found = self.find(key);
        let is_written = || self.block.entries.iter().any(|entry| entry.key == key);
        if found.is_none() && !is_written() {
            self.note_missing(key, "0 is taken");
        }
        found
    }

    fn note_missing(&self, key: &str, instead: &str) {
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

    /// Says that a value cannot be.
    pub(crate) fn refuse(&self, entry: &Entry, label: impl Into<String>) {
        let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
        let problem = Problem::error(title).at(&entry.value.place, label);
        self.findings.error(problem);
    }

    /// Refuses a value that DiskSim accepts and the model does not reach.
    fn refuse_beyond(&self, entry: &Entry, most: u64) {
        let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
        let problem = Problem::error(title).at(&entry.value.place, "DiskSim accepts it");
        let help = format!(
            "a modelled drive has at most {most}: write `{} = {most}` or less",
            entry.key
        );
        self.findings.error(problem.help(help));
    }

    /// A whole number; 0 for one below that.
    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        let entry = self.need(key)?;
        let number = whole(&entry.value)?;
        Some(u64::try_from(number).unwrap_or_else(|_| {
            self.note_negative(entry);
            0
        }))
    }

    /// A whole number of which the model takes no more than some.
    pub(crate) fn count_up_to(&self, key: &str, most: u64) -> Option<u64> {
        let number = self.count(key)?;
        if number > most {
            self.refuse_beyond(self.find(key)?, most);
            return None;
        }
        Some(number)
    }

    /// A whole number, or the largest one of the model, which is said.
    pub(crate) fn count_limited(&self, key: &str, most: u64) -> Option<u64> {
        let number = self.count(key)?;
        if number > most {
            let entry = self.find(key)?;
            let title = format!("`{key} = {number}` is more than a modelled drive has");
            let warning = Problem::warning(title);
            let warning = warning.at(&entry.value.place, format!("{most} is taken"));
            self.findings.warning(warning);
        }
        Some(number.min(most))
    }

    /// A number with or without a point.
    pub(crate) fn real(&self, key: &str) -> Option<f64> {
        real(&self.need(key)?.value)
    }

    /// A number that DiskSim does without, which is 0 where it is missing.
    pub(crate) fn real_if_there(&self, key: &str) -> Option<f64> {
        match self.block.entries.iter().any(|entry| entry.key == key) {
            true => real(&self.find(key)?.value),
            false => Some(0.0),
        }
    }

    /// A duration in milliseconds; 0 where it is missing or below 0.
    pub(crate) fn milliseconds(&self, key: &str) -> f64 {
        let time = self.real(key).unwrap_or(0.0);
        if time >= 0.0 {
            return time;
        }
        if let Some(entry) = self.find(key) {
            self.note_negative(entry);
        }
        0.0
    }

    /// Says that DiskSim accepts a number below 0, of which nothing can come.
    fn note_negative(&self, entry: &Entry) {
        let written = entry.value.place.written();
        let title = format!("`{} = {written}` is below 0", entry.key);
        let warning = Problem::warning(title).at(&entry.value.place, "0 is taken");
        self.findings.warning(warning);
    }

    /// A whole number that is taken to be 0 where it is missing, and `u32::MAX` beyond that.
    pub(crate) fn count_or_zero(&self, key: &str) -> u32 {
        let count = self.count(key).unwrap_or(0);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// 0 or 1.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.count_or_zero(key) == 1
    }

    /// A list.
    pub(crate) fn list(&self, key: &str) -> Option<(&'b Entry, &'b [Value])> {
        let entry = self.need(key)?;
        match &entry.value.kind {
            ValueKind::List(values) => Some((entry, values)),
            _ => None,
        }
    }

    /// A list that is empty where it is missing, which is said.
    pub(crate) fn list_or_empty(&self, key: &str) -> Option<(Option<&'b Entry>, &'b [Value])> {
        if self.block.entries.iter().any(|entry| entry.key == key) {
            let (entry, values) = self.list(key)?;
            return Some((Some(entry), values));
        }
        let title = format!("{} has no `{key}`", self.block.title());
        let warning = Problem::warning(title).at(&self.block.kind, "an empty list is taken");
        self.findings.warning(warning);
        Some((None, &[]))
    }

    /// A block of a type; any if that is empty.
    pub(crate) fn block(&self, key: &str, kind: &str) -> Option<(&'b Entry, &'b Block)> {
        let entry = self.need(key)?;
        let ValueKind::Block(block) = &entry.value.kind else {
            return None;
        };
        if !kind.is_empty() && block.kind.written() != kind {
            self.refuse(entry, format!("here belongs `{kind} {{ .. }}`"));
            return None;
        }
        Some((entry, block))
    }

    /// A word, as the name of a file.
    pub(crate) fn word(&self, key: &str) -> Option<(&'b Entry, &'b str)> {
        let entry = self.need(key)?;
        Some((entry, entry.value.place.written()))
    }

    /// Whether a key stands behind any of others.
    pub(crate) fn stands_behind(&self, key: &str, others: &[&str]) -> bool {
        let mut before = self.block.entries.iter().take_while(|one| one.key != key);
        let is_written = self.block.entries.iter().any(|one| one.key == key);
        is_written && before.any(|one| others.contains(&one.key.as_str()))
    }

    /// Lists keys that would have an effect in another block, and have none in this one.
    pub(crate) fn ignore(&self, keys: &[&str], why: &'static str) {
        for entry in &self.block.entries {
            if keys.contains(&entry.key.as_str()) {
                self.findings.key_without_effect(self.block, entry, why);
            }
        }
    }
}

/// An hour: nothing that a drive does takes longer.
pub(crate) const LONGEST_MS: f64 = 3.6e6;

/// A number without a part behind its point.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    match value.kind {
        ValueKind::Integer(number) => Some(number),
        // 2^53: all whole numbers up to there are exact.
        ValueKind::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            Some(number as i64)
        }
        _ => None,
    }
}

/// A number without a part behind its point that is not below 0.
pub(crate) fn natural(value: &Value) -> Option<u64> {
    whole(value).and_then(|number| u64::try_from(number).ok())
}

/// A number.
pub(crate) fn real(value: &Value) -> Option<f64> {
    match value.kind {
        ValueKind::Integer(number) => Some(number as f64),
        ValueKind::Real(number) => Some(number),
        _ => None,
    }
}
