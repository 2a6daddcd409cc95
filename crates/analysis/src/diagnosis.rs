//! Diagnosis of the difference between two runs of one program, from their traces alone.
//!
//! Most differences between two runs are consequences: a routine that takes a third of a
//! millisecond longer makes the drive miss a sector, and the program waits a revolution. The search
//! is therefore for causes that follow from nothing else: the positions of sectors, the duration of
//! a routine, the seek time over a distance, the distance from a search's end to its sector. In a
//! model these are the same in both runs to the nanosecond, or nearly so, unless they are what was
//! changed.

mod causes;
mod disks;
mod drives;
mod files;
mod measures;
mod requests;
mod routines;
mod samples;
mod searches;

use causes::CandidateCause;
use diskperf_timeline::{Deadline, Stage, Trace};
use measures::TraceMeasures;
use serde::Serialize;

/// Part of a computer that may cause a difference between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspectedComponent {
    /// The host: its processor and memory.
    Host,
    /// The bus that carries data between memory and controllers.
    Bus,
    /// The operating system's kernel.
    Kernel,
    /// The file system, with the layout of files on the drive.
    Filesystem,
    /// The driver, the software that runs the controller.
    Driver,
    /// The controller or adaptor of the drives.
    Controller,
    /// The drive itself: its mechanism and, if it has any, its firmware.
    Drive,
}

impl SuspectedComponent {
    /// Returns the name of the part of the computer, as parameter paths spell it.
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

/// Part of a drive that has firmware, a buffer and a link of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DrivePart {
    /// Actuator and platters, with the positions of sectors on them.
    Mechanism,
    /// Queue of the drive: its order of service and its depth limit.
    Queue,
    /// Buffer of the drive, with its read-ahead and write-back cache.
    Buffer,
    /// Media cache of a shingled disk, where writes wait for their band, and the cleaning of bands.
    MediaCache,
    /// Link of the drive, which carries data to the host.
    Link,
    /// Firmware of the drive, which decodes commands.
    Firmware,
}

impl DrivePart {
    /// Returns the name of the part of a drive, to follow "the drive's".
    pub fn label(self) -> &'static str {
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

/// Diagnosis of the difference between two runs, from the spans of their traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Part of the computer that causes the difference; `None` where no cause is found.
    pub component: Option<SuspectedComponent>,
    /// Part of the drive that causes the difference, where the cause is a drive with firmware of
    /// its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<DrivePart>,
    /// Deadline that one run misses and the other meets, if that is how the difference arises.
    pub deadline: Option<Deadline>,
    /// Evidence for the diagnosis, the strongest first.
    pub evidence: Vec<String>,
    /// Other parts of the computer that differ between the runs as well.
    #[serde(rename = "others")]
    pub other_suspects: Vec<SuspectedComponent>,
}

/// Minimum idle time of the processor, as a share of the difference between two runs, at which
/// missed revolutions can be the cause. With less idle time the processor has other work meanwhile.
const IDLE_SHARE_MIN: f64 = 0.3;
/// Minimum share of the difference between two runs, for each drive, that revolutions missed for
/// one deadline must explain.
const DEADLINE_SHARE_MIN: f64 = 0.3;
/// Minimum share of the difference between two runs, on one drive, that missed revolutions for all
/// deadlines must explain.
const MISSED_SHARE_MIN: f64 = 0.2;
/// Share of the difference between two runs by which programs must wait less for missed revolutions
/// to rule these out as a cause.
const MISSED_SHARE_DIFFERENCE_MIN: f64 = 0.05;
const EVIDENCE_COUNT_MAX: usize = 3;

/// Condition that ends a program: its work is done, or its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// The program ends when its work is done: both runs request the same amount.
    WorkDone,
    /// The program ends when its time is over: the faster run requests more.
    TimeElapsed,
}

/// Diagnoses the difference between two runs of the same program.
pub fn diagnose(a: &Trace, b: &Trace, ending: RunEnding) -> Diagnosis {
    let (one, other) = (TraceMeasures::from_trace(a), TraceMeasures::from_trace(b));
    let found = find_causes((a, &one), (b, &other), ending);
    let (programs, more) = (a.processes.len(), b.processes.len());
    let alike = programs == more;
    let first = found.first().filter(|_| alike);
    let component = first.map(|cause| cause.suspect);
    // What may be a consequence is no part of its own.
    let sure = found.iter().filter(|cause| cause.has_certain_rank());
    let mut others: Vec<SuspectedComponent> = sure.map(|cause| cause.suspect).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|other| Some(*other) != component);
    let missed = match ending {
        RunEnding::WorkDone => find_deadline_cause(&one, &other),
        // As much time is waited for it in either.
        RunEnding::TimeElapsed => None,
    };
    let mut evidence = Vec::new();
    if !alike {
        evidence.push(format!(
            "programs at once: {programs} in one run and {more} in the other"
        ));
    }
    let of_component = found.iter().filter(|cause| {
        let same_part = first.is_some_and(|first| first.part == cause.part);
        Some(cause.suspect) == component && (same_part || cause.has_certain_rank())
    });
    let of_others = found
        .iter()
        .filter(|cause| Some(cause.suspect) != component && cause.has_certain_rank());
    let causes = of_component.chain(of_others).take(EVIDENCE_COUNT_MAX);
    evidence.extend(causes.map(|cause: &CandidateCause| cause.evidence.clone()));
    let (deadline, words) = missed.unzip();
    evidence.extend(words);
    Diagnosis {
        component,
        part: first.and_then(|cause| cause.part),
        deadline,
        evidence,
        other_suspects: others,
    }
}

fn find_causes(
    a: (&Trace, &TraceMeasures),
    b: (&Trace, &TraceMeasures),
    ending: RunEnding,
) -> Vec<CandidateCause> {
    let mut found = drives::find_shape_causes(a, b);
    let same_shape = !found.iter().any(CandidateCause::is_shape_difference);
    let ((_, a), (_, b)) = (a, b);
    let waits = a.request_stage_ns(Stage::Cleaning) + b.request_stage_ns(Stage::Cleaning) > 0.0;
    found.extend(disks::find_disk_causes(
        &a.disk_measures,
        &b.disk_measures,
        (same_shape, waits),
    ));
    found.extend(files::find_layout_cause(a, b, ending));
    found.extend(routines::find_routine_causes(
        &a.routine_durations,
        &b.routine_durations,
    ));
    found.extend(searches::find_search_causes(
        &a.search_measures,
        &b.search_measures,
    ));
    found.extend(requests::find_request_causes(a, b));
    found.sort_by(|one, other| {
        let ranks = one.rank_and_log_ratio.0.cmp(&other.rank_and_log_ratio.0);
        ranks
            .then(
                one.rank_and_log_ratio
                    .1
                    .total_cmp(&other.rank_and_log_ratio.1),
            )
            .reverse()
    });
    found
}

/// Returns the deadline that costs one run the most additional missed revolutions, if the processor
/// idles meanwhile. Programs may wait in a queue behind requests that miss revolutions, or for each
/// other.
fn find_deadline_cause(a: &TraceMeasures, b: &TraceMeasures) -> Option<(Deadline, String)> {
    let difference = b.elapsed_ns - a.elapsed_ns;
    if difference == 0.0 || (b.idle_ns - a.idle_ns) / difference < IDLE_SHARE_MIN {
        return None;
    }
    let missed = |of: &TraceMeasures, deadline| {
        let stage = Stage::MissedRevolution(deadline);
        (of.request_stage_ns(stage) / of.drive_count)
            .max(of.program_stage_ns(stage) / of.program_count)
    };
    let more = |deadline: Deadline| (missed(b, deadline) - missed(a, deadline)) / difference;
    let all = Deadline::ALL.into_iter();
    let most = all.max_by(|one, other| more(*one).total_cmp(&more(*other)))?;
    if more(most) < DEADLINE_SHARE_MIN {
        return None;
    }
    let lost = |of: fn(&TraceMeasures, Stage) -> f64| {
        let deadlines = Deadline::ALL.into_iter().map(Stage::MissedRevolution);
        let more: f64 = deadlines.map(|stage| of(b, stage) - of(a, stage)).sum();
        more / difference
    };
    // Of one drive, a revolution that is missed for one deadline and not for
    // another costs nothing more; and it costs nobody anything where programs
    // wait less for those that are missed, all told.
    let of_requests = lost(TraceMeasures::request_stage_ns);
    let of_programs = lost(TraceMeasures::program_stage_ns) / a.program_count;
    if (a.drive_count == 1.0 && of_requests < MISSED_SHARE_MIN)
        || of_programs < -MISSED_SHARE_DIFFERENCE_MIN
    {
        return None;
    }
    let words = format!(
        "revolutions missed ({}): the requests of a drive wait {} for them in one run and {} in the other",
        crate::explanation::words::deadline_label(most),
        crate::explanation::words::format_time_ms(missed(a, most)),
        crate::explanation::words::format_time_ms(missed(b, most)),
    );
    Some((most, words))
}
