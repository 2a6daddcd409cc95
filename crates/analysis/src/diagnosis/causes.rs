//! What differs between two runs that is no consequence of anything else.

use super::measures::Measures;
use super::{Suspect, drives, files, requests, routines, searches};
use crate::explanation::words;
use diskperf_timeline::Trace;

/// Something that differs, and whose it is.
pub(super) struct Cause {
    pub(super) suspect: Suspect,
    /// How sure it is that this is a cause: see [`Rank`]; within one, by how
    /// much it differs.
    weight: (Rank, f64),
    /// In words.
    pub(super) evidence: String,
}

impl Cause {
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

/// The causes, the surest first.
pub(super) fn causes(a: (&Trace, &Measures), b: (&Trace, &Measures)) -> Vec<Cause> {
    let mut found = drives::shape(a, b);
    let ((_, a), (_, b)) = (a, b);
    found.extend(files::layout(a, b));
    found.extend(routines::routines(a, b));
    found.extend(searches::searches(a, b));
    found.extend(requests::requests(a, b));
    found.sort_by(|one, other| {
        let ranks = one.weight.0.cmp(&other.weight.0);
        ranks
            .then(one.weight.1.total_cmp(&other.weight.1))
            .reverse()
    });
    found
}

pub(super) fn cause(suspect: Suspect, weight: (Rank, f64), evidence: String) -> Cause {
    Cause {
        suspect,
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

/// That something takes another time.
pub(super) fn each(what: &str, a: Option<f64>, b: Option<f64>) -> String {
    let told = |ns: Option<f64>| ns.map_or_else(|| "nothing".to_owned(), words::milliseconds);
    format!(
        "{what} takes {} in one run and {} in the other",
        told(a),
        told(b)
    )
}
