//! What is behind the difference between two runs of one program, from what
//! happened in them alone.
//!
//! Most of what differs between two runs are consequences: a routine that takes
//! a third of a millisecond longer makes a sector be missed, and the program
//! waits a revolution. So the search is for causes that nothing else has as its
//! consequence: where sectors lie, what a routine takes each time, how long the
//! arm takes over a distance, how far ahead of its sector a search ends. In a
//! model these are the same in both runs to the nanosecond, or nearly so,
//! unless they are what was changed.

mod causes;
mod measures;

use causes::{Cause, causes};
use diskperf_timeline::{Deadline, Stage, Trace};
use measures::Measures;
use serde::Serialize;

/// A part of a computer that may be behind a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suspect {
    /// Processor and memory.
    Host,
    /// What data moves over.
    Bus,
    /// The operating system.
    Kernel,
    /// How files are laid out.
    Filesystem,
    /// The software that runs the controller.
    Driver,
    /// Controller or adaptor.
    Controller,
    /// The drive.
    Drive,
}

impl Suspect {
    /// As paths of parameters name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Bus => "bus",
            Self::Kernel => "kernel",
            Self::Filesystem => "filesystem",
            Self::Driver => "driver",
            Self::Controller => "controller",
            Self::Drive => "drive",
        }
    }
}

/// What the spans of two runs say of their difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The part that is behind it; none where nothing is found.
    pub component: Option<Suspect>,
    /// The deadline that is missed in one and met in the other, if that is how
    /// the difference comes about.
    pub deadline: Option<Deadline>,
    /// What shows it, the strongest first.
    pub evidence: Vec<String>,
    /// Other parts that differ as well.
    pub others: Vec<Suspect>,
}

/// Revolutions missed for a deadline count when they make up this share of the
/// difference.
const COUNTS: f64 = 0.2;
/// As many pieces of evidence are told.
const TOLD: usize = 3;

/// What is behind the difference between two runs of the same program.
pub fn diagnose(a: &Trace, b: &Trace) -> Diagnosis {
    let (one, other) = (Measures::of(a), Measures::of(b));
    let found = causes((a, &one), (b, &other));
    let component = found.first().map(|cause| cause.suspect);
    let mut others: Vec<Suspect> = found.iter().map(|cause| cause.suspect).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|other| Some(*other) != component);
    let deadline = deadline(&one, &other);
    let mut evidence: Vec<String> = found
        .iter()
        .take(TOLD)
        .map(|cause: &Cause| cause.evidence.clone())
        .collect();
    evidence.extend(deadline.map(|(_, words)| words));
    let deadline = self::deadline(&one, &other).map(|(deadline, _)| deadline);
    Diagnosis {
        component,
        deadline,
        evidence,
        others,
    }
}

/// The deadline for which most revolutions are missed in one run and not in the
/// other.
fn deadline(a: &Measures, b: &Measures) -> Option<(Deadline, String)> {
    let difference = b.elapsed_ns - a.elapsed_ns;
    let more = |deadline: Deadline| {
        let stage = Stage::MissedRevolution(deadline);
        (b.booked(stage) - a.booked(stage)) * difference.signum()
    };
    let all = [
        Deadline::Search,
        Deadline::TransferCommand,
        Deadline::DataLate,
        Deadline::ChannelHeld,
        Deadline::ReadAhead,
        Deadline::Interleave,
    ];
    let most = all
        .into_iter()
        .max_by(|one, other| more(*one).total_cmp(&more(*other)))?;
    if more(most) < COUNTS * difference.abs() || difference == 0.0 {
        return None;
    }
    let stage = Stage::MissedRevolution(most);
    let words = format!(
        "revolutions missed ({}): the program waits {} for them in one run and {} in the other",
        crate::explanation::words::deadline(most),
        crate::explanation::words::milliseconds(a.booked(stage)),
        crate::explanation::words::milliseconds(b.booked(stage)),
    );
    Some((most, words))
}
