//! Fitted numbers, and which of them went into an entry.

use diskperf_calibration::Parameter;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Fitted numbers by name.
#[derive(Debug)]
pub(super) struct Numbers<'c> {
    values: BTreeMap<&'c str, f64>,
    taken: RefCell<BTreeSet<&'c str>>,
}

/// Numbers that no entry has a key for, by how their names begin or end, and why.
const WITHOUT_KEY: [(&str, &str); 5] = [
    (
        "block_us",
        "a block crosses the link in one time, that of `link_bytes_per_s`",
    ),
    (
        "contiguous_to_write.fixed_us",
        "a read for the sectors behind those of a write is to the modelled firmware one after a write",
    ),
    (
        "contiguous_to_read.fixed_us",
        "a write for the sectors behind those of a read is to the modelled firmware one after a read",
    ),
    (
        "arm.follows_read_ahead",
        "the modelled arm is where its last work ended",
    ),
    (
        "arm.follows_writes",
        "the modelled arm is where its last work ended",
    ),
];

impl<'c> Numbers<'c> {
    pub(super) fn new(of: &'c [Parameter]) -> Self {
        let values = of.iter().map(|one| (one.name.as_str(), one.value));
        Self {
            values: values.collect(),
            taken: RefCell::default(),
        }
    }

    /// A number, which counts as taken from now on.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        let (name, value) = self.values.get_key_value(name)?;
        self.taken.borrow_mut().insert(name);
        Some(*value)
    }

    /// Whether there is one.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Whether there is one whose name begins so.
    pub(super) fn has_any(&self, begin: &str) -> bool {
        self.values.keys().any(|name| name.starts_with(begin))
    }

    /// The least of those whose names begin and end so.
    pub(super) fn least(&self, begin: &str, end: &str) -> Option<f64> {
        let named = |name: &str| name.starts_with(begin) && name.ends_with(end);
        let values = self.values.iter().filter(|(name, _)| named(name));
        values.map(|(_, value)| *value).min_by(f64::total_cmp)
    }

    /// Those that nobody took, each with the reason.
    pub(super) fn left(&self) -> Vec<String> {
        let taken = self.taken.borrow();
        let left = self
            .values
            .iter()
            .filter(|(name, _)| !taken.contains(*name));
        let told = |(name, value): (&&str, &f64)| {
            let why = WITHOUT_KEY.iter().find(|(end, _)| name.ends_with(end));
            let why = why.map_or("the modelled drive has no such term", |(_, why)| why);
            format!("{name} = {value:.3}: {why}")
        };
        left.map(told).collect()
    }
}
