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
mod disks;
mod drives;
mod files;
mod measures;
mod requests;
mod routines;
mod samples;
mod searches;

use causes::Cause;
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

/// What of a drive that has firmware, a buffer and a link of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DrivePart {
    /// Arm and platters, and where sectors lie on them.
    Mechanism,
    /// The order in which it serves what waits, and how much may.
    Queue,
    /// What it keeps of reads and of writes.
    Buffer,
    /// Where a shingled disk keeps what waits for its band, and the cleaning of bands.
    MediaCache,
    /// What data move over to the host.
    Link,
    /// What it takes to understand a command.
    Firmware,
}

impl DrivePart {
    /// In words, behind "the drive's".
    pub fn words(self) -> &'static str {
        match self {
            Self::Mechanism => "arm and platters",
            Self::Queue => "queue",
            Self::Buffer => "cache",
            Self::MediaCache => "media cache and the cleaning of bands",
            Self::Link => "link",
            Self::Firmware => "firmware",
        }
    }
}

/// What the spans of two runs say of their difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// The part that is behind it; none where nothing is found.
    pub component: Option<Suspect>,
    /// What of it, where that is a drive with firmware of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<DrivePart>,
    /// The deadline that is missed in one and met in the other, if that is how
    /// the difference comes about.
    pub deadline: Option<Deadline>,
    /// What shows it, the strongest first.
    pub evidence: Vec<String>,
    /// Other parts that differ as well.
    pub others: Vec<Suspect>,
}

/// Where the processor works for all of the difference but less than this share,
/// nothing waits for revolutions that are missed: it has other work meanwhile.
const IDLES: f64 = 0.3;
/// Revolutions missed for a deadline count when they make up this share of the
/// difference, for each drive.
const COUNTS: f64 = 0.3;
/// And when so much more, as a share of the difference, is lost for all deadlines.
const MORE: f64 = 0.2;
/// Programs wait less for missed revolutions if they do by this share of the
/// difference.
const LESS: f64 = 0.05;
/// As many pieces of evidence are told.
const TOLD: usize = 3;

/// When a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// When its work is done: two runs ask for as much.
    ByWork,
    /// When its time is over: the faster of two runs asks for more.
    ByTime,
}

/// What is behind the difference between two runs of the same program.
pub fn diagnose(a: &Trace, b: &Trace, ending: Ending) -> Diagnosis {
    let (one, other) = (Measures::of(a), Measures::of(b));
    let found = causes((a, &one), (b, &other), ending);
    let (programs, more) = (a.processes.len(), b.processes.len());
    let alike = programs == more;
    let first = found.first().filter(|_| alike);
    let component = first.map(|cause| cause.suspect);
    // What may be a consequence is no part of its own.
    let sure = found.iter().filter(|cause| cause.is_sure());
    let mut others: Vec<Suspect> = sure.map(|cause| cause.suspect).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|other| Some(*other) != component);
    let missed = match ending {
        Ending::ByWork => deadline(&one, &other),
        // As much time is waited for it in either.
        Ending::ByTime => None,
    };
    let mut evidence = Vec::new();
    if !alike {
        evidence.push(format!(
            "programs at once: {programs} in one run and {more} in the other"
        ));
    }
    let of_component = found.iter().filter(|cause| {
        let same_part = first.is_some_and(|first| first.part == cause.part);
        Some(cause.suspect) == component && (same_part || cause.is_sure())
    });
    let of_others = found
        .iter()
        .filter(|cause| Some(cause.suspect) != component && cause.is_sure());
    let causes = of_component.chain(of_others).take(TOLD);
    evidence.extend(causes.map(|cause: &Cause| cause.evidence.clone()));
    let (deadline, words) = missed.unzip();
    evidence.extend(words);
    Diagnosis {
        component,
        part: first.and_then(|cause| cause.part),
        deadline,
        evidence,
        others,
    }
}

/// The causes, the surest first.
fn causes(a: (&Trace, &Measures), b: (&Trace, &Measures), ending: Ending) -> Vec<Cause> {
    let mut found = drives::shape(a, b);
    let same_shape = !found.iter().any(Cause::is_shape);
    let ((_, a), (_, b)) = (a, b);
    let waits = a.requested(Stage::Cleaning) + b.requested(Stage::Cleaning) > 0.0;
    found.extend(disks::disks(&a.disks, &b.disks, (same_shape, waits)));
    found.extend(files::layout(a, b, ending));
    found.extend(routines::routines(&a.routines, &b.routines));
    found.extend(searches::searches(&a.searches, &b.searches));
    found.extend(requests::requests(a, b));
    found.sort_by(|one, other| {
        let ranks = one.weight.0.cmp(&other.weight.0);
        ranks
            .then(one.weight.1.total_cmp(&other.weight.1))
            .reverse()
    });
    found
}

/// The deadline for which most revolutions are missed in one run and not in the
/// other, if the processor idles for that: programs may wait in a queue behind
/// requests that miss them, or for each other.
fn deadline(a: &Measures, b: &Measures) -> Option<(Deadline, String)> {
    let difference = b.elapsed_ns - a.elapsed_ns;
    if difference == 0.0 || (b.idle_ns - a.idle_ns) / difference < IDLES {
        return None;
    }
    let missed = |of: &Measures, deadline| {
        let stage = Stage::MissedRevolution(deadline);
        (of.requested(stage) / of.drives).max(of.booked(stage) / of.programs)
    };
    let more = |deadline: Deadline| (missed(b, deadline) - missed(a, deadline)) / difference;
    let all = Deadline::ALL.into_iter();
    let most = all.max_by(|one, other| more(*one).total_cmp(&more(*other)))?;
    if more(most) < COUNTS {
        return None;
    }
    let lost = |of: fn(&Measures, Stage) -> f64| {
        let deadlines = Deadline::ALL.into_iter().map(Stage::MissedRevolution);
        let more: f64 = deadlines.map(|stage| of(b, stage) - of(a, stage)).sum();
        more / difference
    };
    // Of one drive, a revolution that is missed for one deadline and not for
    // another costs nothing more; and it costs nobody anything where programs
    // wait less for those that are missed, all told.
    let of_requests = lost(Measures::requested);
    let of_programs = lost(Measures::booked) / a.programs;
    if (a.drives == 1.0 && of_requests < MORE) || of_programs < -LESS {
        return None;
    }
    let words = format!(
        "revolutions missed ({}): the requests of a drive wait {} for them in one run and {} in the other",
        crate::explanation::words::deadline(most),
        crate::explanation::words::milliseconds(missed(a, most)),
        crate::explanation::words::milliseconds(missed(b, most)),
    );
    Some((most, words))
}
