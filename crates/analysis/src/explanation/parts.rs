//! Times of a drive's actuator and platters by activity.

use super::clip_request_parts;
use super::intervals::TimeIntervals;
use diskperf_timeline::trace::{ArmWork, Trace};
use diskperf_timeline::{Nanoseconds, Stage};

/// Times of a drive's actuator and platters during the elapsed time, by activity, for requests or
/// in the background. The activities do not overlap, except that `passing` covers parts of the
/// others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveTimeParts {
    /// Time in which sectors of requests passed the head.
    pub media_transfer_time: Nanoseconds,
    /// Time in which the arm moved or settled.
    pub seek_time: Nanoseconds,
    /// Time in which the drive switched heads.
    pub head_switch_time: Nanoseconds,
    /// Time in which requests waited for their sectors (rotational latency).
    pub rotational_latency_time: Nanoseconds,
    /// Time lost because requests missed a sector and waited another revolution.
    pub missed_revolution_time: Nanoseconds,
    /// Time in which the drive destaged its write buffer, without missed revolutions.
    pub destage_time: Nanoseconds,
    /// Time in which the drive cleaned bands by rewriting them.
    pub cleaning_time: Nanoseconds,
    /// Time of read-ahead for which no request waited.
    pub read_ahead_time: Nanoseconds,
    /// Time in which any sectors passed the head, for whatever purpose.
    pub gap_passing_time: Nanoseconds,
}

/// Background work of a drive's arm in one stage.
pub(super) struct ArmInterval {
    work: ArmWork,
    stage: Stage,
    start_ns: u64,
    end_ns: u64,
}

impl ArmInterval {
    /// Start and end of the work.
    pub(super) fn span_ns(self) -> (u64, u64) {
        (self.start_ns, self.end_ns)
    }
}

/// Returns the background work of a drive's arm within the elapsed time.
pub(super) fn list_arm_work(
    trace: &Trace,
    drive: u32,
    from: Nanoseconds,
    until: Nanoseconds,
) -> impl Iterator<Item = ArmInterval> + '_ {
    let arms = trace
        .arm_traces
        .iter()
        .filter(move |one| one.drive_index == drive);
    let parts = arms.flat_map(move |one| {
        let parts = one.stage_intervals();
        parts.map(move |part| ArmInterval {
            work: one.arm_work,
            stage: part.stage,
            start_ns: part.start.max(from).0,
            end_ns: part.end.min(until).0,
        })
    });
    parts.filter(|one| one.start_ns < one.end_ns)
}

/// Returns the time in nanoseconds in which a drive's link carried data without a media transfer of
/// the same request.
pub(super) fn measure_link_busy_ns(
    trace: &Trace,
    drive: u32,
    from: Nanoseconds,
    until: Nanoseconds,
) -> u64 {
    let carries = |stage: Stage| matches!(stage, Stage::BusTransfer | Stage::CacheHit);
    TimeIntervals::from_spans(list_request_spans(trace, drive, (from, until), carries)).total_ns()
}

/// Returns the intervals in which requests of a drive were in the selected stages, within the
/// elapsed time.
pub(super) fn list_request_spans(
    trace: &Trace,
    drive: u32,
    (from, until): (Nanoseconds, Nanoseconds),
    which: impl Fn(Stage) -> bool,
) -> impl Iterator<Item = (u64, u64)> {
    let requests = trace
        .requests
        .iter()
        .filter(move |one| one.drive_index == drive);
    let parts = requests.flat_map(move |request| clip_request_parts(request, from, until));
    parts.filter_map(move |part| which(part.stage).then_some((part.start.0, part.end.0)))
}

fn is_missed_stage(stage: Stage) -> bool {
    matches!(stage, Stage::MissedRevolution(_))
}

impl DriveTimeParts {
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
            media_transfer_time: spent(|one| one == Stage::MediaTransfer),
            seek_time: spent(|one| matches!(one, Stage::Seek | Stage::Settle | Stage::WriteSettle)),
            head_switch_time: spent(|one| one == Stage::HeadSwitch),
            rotational_latency_time: spent(|one| one == Stage::RotationalLatency),
            missed_revolution_time: spent(is_missed_stage),
            destage_time: spent(|one| one == Stage::Destage),
            cleaning_time: spent(|one| one == Stage::Cleaning),
            read_ahead_time: Nanoseconds::ZERO,
            gap_passing_time: spent(|one| one == Stage::MediaTransfer),
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
            let all = list_arm_work(trace, drive, from, until);
            let found = all.filter(|one| which(one.work, one.stage));
            TimeIntervals::from_spans(found.map(ArmInterval::span_ns))
        };
        let requests = |which: fn(Stage) -> bool| {
            TimeIntervals::from_spans(list_request_spans(trace, drive, window, which))
        };
        let both = |one: &TimeIntervals, other: &TimeIntervals| {
            TimeIntervals::union_of([one, other].into_iter())
        };
        let total = |of: &TimeIntervals| Nanoseconds(of.total_ns());
        let missed = both(
            &requests(is_missed_stage),
            &of_arm(&|_, stage| is_missed_stage(stage)),
        );
        let destaging = of_arm(&|work, stage| work == ArmWork::Destage && !is_missed_stage(stage));
        let cleaning = of_arm(&|work, _| work == ArmWork::Cleaning);
        let media = requests(|stage| stage == Stage::MediaTransfer);
        let for_requests = requests(|stage| {
            super::is_drive_stage(stage) && !matches!(stage, Stage::Destage | Stage::Cleaning)
        });
        let others = [&for_requests, &missed, &destaging, &cleaning];
        let others = TimeIntervals::union_of(others.into_iter());
        let ahead = of_arm(&|work, _| work == ArmWork::ReadAhead);
        let passing = of_arm(&|_, stage| stage == Stage::MediaTransfer);
        Self {
            media_transfer_time: total(&media),
            missed_revolution_time: total(&missed),
            destage_time: total(&destaging),
            cleaning_time: total(&cleaning),
            read_ahead_time: Nanoseconds(ahead.total_ns() - ahead.overlap_ns(&others)),
            gap_passing_time: total(&both(&media, &passing)),
            ..self
        }
    }
}
