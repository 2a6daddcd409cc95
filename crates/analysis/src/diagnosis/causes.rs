//! What differs between two runs that is no consequence of anything else.

use super::{DrivePart, Suspect};
use crate::explanation::words;

/// Something that differs, and whose it is.
pub(super) struct Cause {
    pub(super) suspect: Suspect,
    /// Of a drive with firmware, what of it.
    pub(super) part: Option<DrivePart>,
    /// How sure it is that this is a cause: see [`Rank`]; within one, by how
    /// much it differs.
    pub(super) weight: (Rank, f64),
    /// In words.
    pub(super) evidence: String,
}

impl Cause {
    /// It is of this part of a drive with firmware.
    pub(super) fn of_part(mut self, part: DrivePart) -> Self {
        self.part = Some(part);
        self
    }

    /// Whether it is of how a drive is made.
    pub(super) fn is_shape(&self) -> bool {
        self.weight.0 == Rank::Shape
    }

    /// Whether it is hardly the consequence of another.
    pub(super) fn is_sure(&self) -> bool {
        self.weight.0 >= Rank::Unit
    }
}

/// What a difference can be a consequence of: of nothing further down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// It may well be a consequence.
    Hint,
    /// How many there may be of something at once: there may be fewer for
    /// other reasons.
    Limit,
    /// What a routine or a command takes each time.
    Unit,
    /// What all routines take, or what is asked for at all.
    Policy,
    /// Where blocks lie, and so what is moved at a time; it depends on the drive
    /// as well.
    Layout,
    /// How the drive is made.
    Shape,
}

/// Ratios nearer to one than this are no difference.
const SAME: f64 = 0.015;
/// A cost that appears from nothing counts as this ratio.
const MOST_RATIO: f64 = 20.0;

pub(super) fn cause(suspect: Suspect, weight: (Rank, f64), evidence: String) -> Cause {
    Cause {
        suspect,
        part: None,
        weight,
        evidence,
    }
}

/// By how much the logarithm of something differs, if it does.
pub(super) fn differs(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a.unwrap_or(0.0), b.unwrap_or(0.0));
    let most = MOST_RATIO.ln();
    let size = match (a > 0.0, b > 0.0) {
        (true, true) => (b / a).ln().clamp(-most, most).abs(),
        (false, false) => 0.0,
        (true, false) | (false, true) => most,
    };
    (size > SAME).then_some(size)
}

/// As many pieces of work tell something.
pub(super) const FEWEST: usize = 20;
/// Two samples of this many each whose distributions differ by the first share
/// do so by chance once in a hundred times (Kolmogorov and Smirnov).
const BY_CHANCE: f64 = 1.63;

/// By how much the distributions of two samples, in order, differ, if that is
/// not by chance.
pub(super) fn drawn_otherwise(a: &[u64], b: &[u64]) -> Option<f64> {
    let (of_a, of_b) = (a.len() as f64, b.len() as f64);
    if a.len().min(b.len()) < FEWEST {
        return None;
    }
    let below = |of: &[u64], value: u64| of.partition_point(|one| *one <= value) as f64;
    let apart = |value: &u64| (below(a, *value) / of_a - below(b, *value) / of_b).abs();
    let most = a.iter().chain(b).map(apart).max_by(f64::total_cmp)?;
    (most > BY_CHANCE * ((of_a + of_b) / (of_a * of_b)).sqrt()).then_some(most)
}

/// That something takes another time.
pub(super) fn each(what: &str, a: Option<f64>, b: Option<f64>) -> String {
    let told = |ns: Option<f64>| ns.map_or_else(|| "nothing".to_owned(), words::milliseconds);
    format!(
        "{what} takes {} in one run and {} in the other",
        told(a),
        told(b)
    )
}
