//! The keys of a block: each is used, without effect, or refused.

use diskperf_diagnostics::{Errors, Place, Problem};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::text::{Block, Entry, Value, ValueKind, excerpt};

/// As many problems are told; whoever has more of them has another kind of file.
pub(crate) const MOST_PROBLEMS: usize = 50;

/// A key that changes nothing, or nothing that is modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithoutEffect {
    /// The key, or the block's type and name.
    pub key: String,
    /// Where it is.
    pub place: Place,
    /// Why nothing comes of it.
    pub why: &'static str,
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

    pub(crate) fn without_effect(&self, key: String, place: &Place, why: &'static str) {
        let place = place.clone();
        let line = WithoutEffect { key, place, why };
        self.without_effect.borrow_mut().push(line);
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

/// What is done about a key that is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is an error: there is no drive without it.
    Refuse,
    /// It is said, and 0 is taken, as DiskSim does.
    Zero,
}

/// The keys of one block while they are read.
pub(crate) struct Keys<'b> {
    block: &'b Block,
    used: Vec<Cell<bool>>,
    /// The keys that were asked for.
    asked: RefCell<Vec<String>>,
    pub(crate) findings: &'b Findings,
    missing: Missing,
}

impl<'b> Keys<'b> {
    pub(crate) fn new(block: &'b Block, findings: &'b Findings, missing: Missing) -> Keys<'b> {
        let used = vec![Cell::new(false); block.entries.len()];
        Keys {
            block,
            used,
            asked: RefCell::default(),
            findings,
            missing,
        }
    }

    /// A key that may be missing.
    pub(crate) fn find(&self, key: &str) -> Option<&'b Entry> {
        self.asked.borrow_mut().push(key.to_owned());
        let at = self
            .block
            .entries
            .iter()
            .position(|entry| entry.key == key)?;
        self.used[at].set(true);
        let entry = &self.block.entries[at];
        self.findings.used(entry);
        Some(entry)
    }

    /// A key that should not be missing.
    pub(crate) fn need(&self, key: &str) -> Option<&'b Entry> {
        let found = self.find(key);
        if found.is_none() {
            let title = format!("{} has no `{key}`", self.block.title());
            match self.missing {
                Missing::Refuse => {
                    let problem = Problem::error(title).at(&self.block.kind, "in this block");
                    self.findings
                        .error(problem.help(format!("write `{key} = ..`")));
                }
                Missing::Zero => {
                    let problem = Problem::warning(title).at(&self.block.kind, "0 is taken");
                    self.findings.warning(problem);
                }
            }
        }
        found
    }

    /// Says that a value cannot be.
    pub(crate) fn refuse(&self, entry: &Entry, label: impl Into<String>) {
        let title = format!("`{}` cannot be {}", entry.key, entry.value.describe());
        let problem = Problem::error(title).at(&entry.value.place, label);
        self.findings.error(problem);
    }

    /// A whole number.
    pub(crate) fn count(&self, key: &str, legal: RangeInclusive<u64>) -> Option<u64> {
        let entry = self.need(key)?;
        let number = whole(&entry.value).filter(|number| legal.contains(number));
        if number.is_none() {
            let (low, high) = (legal.start(), legal.end());
            self.refuse(entry, format!("a whole number from {low} to {high}"));
        }
        number
    }

    /// A number with or without a point.
    pub(crate) fn real(&self, key: &str, legal: RangeInclusive<f64>) -> Option<f64> {
        let entry = self.need(key)?;
        self.real_of(entry, legal)
    }

    /// The number that an entry gives.
    pub(crate) fn real_of(&self, entry: &Entry, legal: RangeInclusive<f64>) -> Option<f64> {
        let number = real(&entry.value).filter(|number| legal.contains(number));
        if number.is_none() {
            let (low, high) = (legal.start(), legal.end());
            self.refuse(entry, format!("a number from {low} to {high}"));
        }
        number
    }

    /// A number that is taken to be 0 where it is missing.
    pub(crate) fn real_or_zero(&self, key: &str, legal: RangeInclusive<f64>) -> f64 {
        self.real(key, legal).unwrap_or(0.0)
    }

    /// A duration in milliseconds; 0 where it is missing.
    pub(crate) fn milliseconds(&self, key: &str) -> f64 {
        self.real_or_zero(key, 0.0..=LONGEST_MS)
    }

    /// A whole number that is taken to be 0 where it is missing.
    pub(crate) fn count_or_zero(&self, key: &str, most: u64) -> u64 {
        self.count(key, 0..=most).unwrap_or(0)
    }

    /// 0 or 1.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.count_or_zero(key, 1) == 1
    }

    /// A list.
    pub(crate) fn list(&self, key: &str) -> Option<(&'b Entry, &'b [Value])> {
        let entry = self.need(key)?;
        match &entry.value.kind {
            ValueKind::List(values) => Some((entry, values)),
            _ => {
                self.refuse(entry, "a list: `[ .. ]`");
                None
            }
        }
    }

    /// A block.
    pub(crate) fn block(&self, key: &str) -> Option<(&'b Entry, &'b Block)> {
        let entry = self.need(key)?;
        match &entry.value.kind {
            ValueKind::Block(block) => Some((entry, block)),
            _ => {
                self.refuse(entry, "a block: `type { .. }`");
                None
            }
        }
    }

    /// A word, such as the name of a file.
    pub(crate) fn word(&self, key: &str) -> Option<(&'b Entry, &'b str)> {
        let entry = self.need(key)?;
        // A file may be called `1`.
        match &entry.value.kind {
            ValueKind::List(_) | ValueKind::Block(_) | ValueKind::Range(_) => {
                self.refuse(entry, "a word");
                None
            }
            _ => Some((entry, entry.value.place.written())),
        }
    }

    /// A key of which one value alone is modelled, and any other that DiskSim takes acts as
    /// that one does, with a warning.
    pub(crate) fn only(&self, key: &str, modelled: u64, why: &'static str) {
        let Some(entry) = self.find(key) else { return };
        let Some(written) = real(&entry.value) else {
            return self.refuse(entry, "a number");
        };
        if written != modelled as f64 {
            let title = format!("`{key} = {written}` is not modelled: {modelled} is taken");
            let warning = Problem::warning(title).at(&entry.value.place, why);
            self.findings.warning(warning);
        }
        let key = entry.key.clone();
        self.findings.without_effect(key, &entry.key_place, why);
    }

    /// A number that DiskSim does without, which is 0 where it is missing.
    pub(crate) fn real_if_there(&self, key: &str, legal: RangeInclusive<f64>) -> Option<f64> {
        match self.find(key) {
            Some(entry) => self.real_of(entry, legal),
            None => Some(0.0),
        }
    }

    /// Keys that change nothing whatever they are.
    pub(crate) fn ignore(&self, keys: &[&str], why: &'static str) {
        for entry in keys.iter().filter_map(|key| self.find(key)) {
            let key = entry.key.clone();
            self.findings.without_effect(key, &entry.key_place, why);
        }
    }

    /// Keys that nobody asked for and that change nothing then.
    pub(crate) fn ignore_unused(&self, keys: &[&str], why: &'static str) {
        let names = keys.iter().map(|key| (*key).to_owned());
        self.asked.borrow_mut().extend(names);
        for (entry, used) in self.block.entries.iter().zip(&self.used) {
            if !used.get() && keys.contains(&entry.key.as_str()) {
                used.set(true);
                let key = entry.key.clone();
                self.findings.without_effect(key, &entry.key_place, why);
            }
        }
    }

    /// Refuses the keys that nobody asked for.
    pub(crate) fn finish(&self) {
        let asked = self.asked.borrow();
        let entries = self.block.entries.iter().zip(&self.used);
        for (entry, _) in entries.filter(|(_, used)| !used.get()) {
            let title = format!(
                "{} has no key `{}`",
                self.block.title(),
                excerpt(&entry.key)
            );
            let problem = Problem::error(title).at(&entry.key_place, "unknown");
            let similar = |key: &&String| strsim::jaro_winkler(key, &entry.key) > 0.9;
            let help = match asked.iter().find(similar) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "leave it out: nothing reads a key of this name here".to_owned(),
            };
            self.findings.error(problem.help(help));
        }
    }
}

/// An hour: nothing that a drive does takes longer.
pub(crate) const LONGEST_MS: f64 = 3.6e6;

/// A number without a part behind its point.
pub(crate) fn whole(value: &Value) -> Option<u64> {
    match value.kind {
        ValueKind::Integer(number) => u64::try_from(number).ok(),
        // 2^53: all whole numbers up to there are exact.
        ValueKind::Real(number) if number.fract() == 0.0 && (0.0..9e15).contains(&number) => {
            Some(number as u64)
        }
        _ => None,
    }
}

/// A number.
pub(crate) fn real(value: &Value) -> Option<f64> {
    match value.kind {
        ValueKind::Integer(number) => Some(number as f64),
        ValueKind::Real(number) => Some(number),
        _ => None,
    }
}
