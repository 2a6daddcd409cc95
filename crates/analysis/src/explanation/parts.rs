//! Times of a drive's actuator and platters by activity.

use super::intervals::Intervals;
use super::request_parts_within;
use diskperf_timeline::trace::{ArmWork, Trace};
use diskperf_timeline::{Nanoseconds, Stage};

/// Times of a drive's actuator and platters during the elapsed time, by activity, for requests or
/// in the background. The activities do not overlap, except that `passing` covers parts of the
/// others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveParts {
    /// Time in which sectors of requests passed the head.
    pub media_transfer: Nanoseconds,
    /// Time in which the arm moved or settled.
    pub seeking: Nanoseconds,
    /// Time in which the drive switched heads.
    pub head_switches: Nanoseconds,
    /// Time in which requests waited for their sectors (rotational latency).
    pub latency: Nanoseconds,
    /// Time lost because requests missed a sector and waited another revolution.
    pub missed: Nanoseconds,
    /// Time in which the drive destaged its write buffer, without missed revolutions.
    pub destaging: Nanoseconds,
    /// Time in which the drive cleaned bands by rewriting them.
    pub cleaning: Nanoseconds,
    /// Time of read-ahead for which no request waited.
    pub reading_ahead: Nanoseconds,
    /// Time in which any sectors passed the head, for whatever purpose.
    pub passing: Nanoseconds,
}

/// Returns the background work of a drive's arm within the elapsed time.
pub(super) fn arm_work(
    trace: &Trace,
    drive: u32,
    from: Nanoseconds,
    until: Nanoseconds,
) -> impl Iterator<Item = (ArmWork, Stage, (u64, u64))> + '_ {
    let arms = trace
        .arm_traces
        .iter()
        .filter(move |one| one.drive_index == drive);
    let parts = arms.flat_map(|one| {
        let parts = one.stage_intervals();
        parts.map(move |(stage, start, stop)| (one.arm_work, stage, (start, stop)))
    });
    parts.filter_map(move |(work, stage, (start, stop))| {
        let span = (start.max(from).0, stop.min(until).0);
        (span.0 < span.1).then_some((work, stage, span))
    })
}

/// Returns the time in nanoseconds in which a drive's link carried data without a media transfer of
/// the same request.
pub(super) fn link_busy_ns(
    trace: &Trace,
    drive: u32,
    from: Nanoseconds,
    until: Nanoseconds,
) -> u64 {
    let carries = |stage: Stage| matches!(stage, Stage::BusTransfer | Stage::CacheHit);
    Intervals::from_spans(request_spans(trace, drive, (from, until), carries)).total()
}

/// Returns the intervals in which requests of a drive were in the selected stages, within the
/// elapsed time.
pub(super) fn request_spans(
    trace: &Trace,
    drive: u32,
    (from, until): (Nanoseconds, Nanoseconds),
    which: impl Fn(Stage) -> bool,
) -> impl Iterator<Item = (u64, u64)> {
    let requests = trace
        .requests
        .iter()
        .filter(move |one| one.drive_index == drive);
    let parts = requests.flat_map(move |request| request_parts_within(request, from, until));
    parts.filter_map(move |(stage, start, stop)| which(stage).then_some((start.0, stop.0)))
}

fn is_missed(stage: Stage) -> bool {
    matches!(stage, Stage::MissedRevolution(_))
}

impl DriveParts {
    /// Returns the times of a drive's actuator and platters, given the time that its requests spent
    /// in each stage.
    pub(super) fn from_trace(
        trace: &Trace,
        drive: u32,
        window: (Nanoseconds, Nanoseconds),
        table: &[u64; Stage::COUNT],
    ) -> Self {
        let spent = |which: fn(Stage) -> bool| {
            let stages = Stage::ALL.into_iter().filter(|stage| which(*stage));
            Nanoseconds(stages.map(|stage| table[stage.index()]).sum())
        };
        let of_requests = Self {
            media_transfer: spent(|one| one == Stage::MediaTransfer),
            seeking: spent(|one| matches!(one, Stage::Seek | Stage::Settle | Stage::WriteSettle)),
            head_switches: spent(|one| one == Stage::HeadSwitch),
            latency: spent(|one| one == Stage::RotationalLatency),
            missed: spent(is_missed),
            destaging: spent(|one| one == Stage::Destage),
            cleaning: spent(|one| one == Stage::Cleaning),
            reading_ahead: Nanoseconds::ZERO,
            passing: spent(|one| one == Stage::MediaTransfer),
        };
        match trace.drives[drive as usize].has_bus_link {
            true => of_requests.add_arm_work(trace, drive, window),
            false => of_requests,
        }
    }

    /// Replaces stage times of requests by those of the arm, since several requests may wait for
    /// one action of the arm.
    fn add_arm_work(self, trace: &Trace, drive: u32, window: (Nanoseconds, Nanoseconds)) -> Self {
        let (from, until) = window;
        let of_arm = |which: &dyn Fn(ArmWork, Stage) -> bool| {
            let all = arm_work(trace, drive, from, until);
            let found = all.filter(|(work, stage, _)| which(*work, *stage));
            Intervals::from_spans(found.map(|(.., span)| span))
        };
        let requests = |which: fn(Stage) -> bool| {
            Intervals::from_spans(request_spans(trace, drive, window, which))
        };
        let both = |one: &Intervals, other: &Intervals| Intervals::union([one, other].into_iter());
        let total = |of: &Intervals| Nanoseconds(of.total());
        let missed = both(&requests(is_missed), &of_arm(&|_, stage| is_missed(stage)));
        let destaging = of_arm(&|work, stage| work == ArmWork::Destage && !is_missed(stage));
        let cleaning = of_arm(&|work, _| work == ArmWork::Cleaning);
        let media = requests(|stage| stage == Stage::MediaTransfer);
        let for_requests = requests(|stage| {
            super::is_of_drive(stage) && !matches!(stage, Stage::Destage | Stage::Cleaning)
        });
        let others = [&for_requests, &missed, &destaging, &cleaning];
        let others = Intervals::union(others.into_iter());
        let ahead = of_arm(&|work, _| work == ArmWork::ReadAhead);
        let passing = of_arm(&|_, stage| stage == Stage::MediaTransfer);
        Self {
            media_transfer: total(&media),
            missed: total(&missed),
            destaging: total(&destaging),
            cleaning: total(&cleaning),
            reading_ahead: Nanoseconds(ahead.total() - ahead.overlap(&others)),
            passing: total(&both(&media, &passing)),
            ..self
        }
    }
}
