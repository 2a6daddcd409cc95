//! Picture of the dies of a flash drive over time: their activities, the waits of the slowest
//! requests, and below, on the same time axis, throughput, fill levels and write amplification.
//!
//! A die reads in some 50 µs, and a repetition lasts a second: no single picture shows both. One
//! picture therefore shows a short time around the request with the longest wait, with every
//! interval. The other shows the whole time, with the main activity in each of its slices.

mod axis;
mod course;
mod drawing;
mod panels;
mod stretches;

pub(super) use drawing::figures;

use super::family::Family;
use crate::explanation::window;
use course::FlashSeries;
use diskperf_timeline::trace::{DieBusyPeriod, Position, TracedFlash, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use stretches::DieSlice;

/// Maximum number of die activities that a picture draws one by one.
const INTERVALS_MAX: usize = 2500;

/// Maximum number of slow requests whose stages a picture of dies draws.
const REQUESTS_MAX: usize = 5;

/// Minimum duration that the close-up picture of dies shows.
const CLOSE_UP_MIN: Nanoseconds = Nanoseconds(200_000);

/// Maximum duration of the close-up picture, as a multiple of its request's response time. A longer
/// one would hide the request.
const SHOWN_SPAN_RATIO_MAX: u64 = 6;

/// Content of the two pictures of a flash drive's dies: close-up and whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    drive: DriveGeometry,
    /// Close-up picture around the request with the longest wait; `None` where the whole picture
    /// shows every activity.
    close_up: Option<PictureView>,
    whole: PictureView,
}

/// Geometry of the drawn flash drive, and the times that the trace covers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DriveGeometry {
    /// Index of the drive, counted from 0.
    number: u32,
    channels: u32,
    dies: u32,
    unit_bytes: u32,
    sector_bytes: u32,
    buffer_units: u32,
    /// Time from which the trace contains every die activity.
    complete_from: Nanoseconds,
    left_out: u64,
    /// Start of the timed part, from which times are displayed.
    opened: Nanoseconds,
}

/// Content of one picture of dies, over one time range.
#[derive(Clone, Debug, PartialEq)]
struct PictureView {
    from: Nanoseconds,
    until: Nanoseconds,
    dies: DieActivities,
    /// Requests with the longest waits, by their issue times.
    slowest: Vec<TracedRequest>,
    flash_series: FlashSeries,
}

/// Activities of the dies in a time range.
#[derive(Clone, Debug, PartialEq)]
enum DieActivities {
    /// Every activity of every die, one by one.
    Exact(Vec<DieBusyPeriod>),
    /// Main activity of each die in each slice of time.
    Slices(Vec<DieSlice>),
}

impl Picture {
    /// Selects the content of the pictures from a trace; `None` unless a flash drive received
    /// requests.
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        let (opened, ended) = window(trace)?;
        let asked = |flash: &&TracedFlash| {
            let mut own = trace.requests.iter();
            flash.die_count > 0 && own.any(|one| one.drive_index == flash.drive_index)
        };
        let flash = trace.flash_traces.iter().find(asked)?;
        let sector_bytes = trace.drives.get(flash.drive_index as usize)?.sector_bytes;
        if opened >= ended {
            return None;
        }
        let seen = PictureSource {
            trace,
            flash,
            drive: DriveGeometry {
                number: flash.drive_index,
                channels: flash.channel_count.max(1),
                dies: flash.die_count,
                unit_bytes: flash.unit_bytes,
                sector_bytes,
                buffer_units: flash.buffer_units,
                complete_from: flash.complete_since,
                left_out: flash.omitted_period_count,
                opened,
            },
        };
        let all = (opened, ended);
        let close = match seen.count_activities(all) <= INTERVALS_MAX {
            true => None,
            false => seen.choose_close_up(all).map(|some| seen.view(some)),
        };
        Some(Self {
            drive: seen.drive,
            close_up: close,
            whole: seen.view(all),
        })
    }
}

struct PictureSource<'t> {
    trace: &'t Trace,
    flash: &'t TracedFlash,
    drive: DriveGeometry,
}

impl PictureSource<'_> {
    fn die_activities(
        &self,
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> impl Iterator<Item = &DieBusyPeriod> {
        let kept = self.flash.recorded_periods.iter();
        let drawn = move |one: &&DieBusyPeriod| one.busy_end > from && one.busy_start < until;
        kept.filter(drawn)
            .filter(|one| one.die_index < self.drive.dies && one.busy_start < one.busy_end)
    }

    fn count_activities(&self, time: (Nanoseconds, Nanoseconds)) -> usize {
        self.die_activities(time).count()
    }

    fn requests(
        &self,
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> impl Iterator<Item = &TracedRequest> {
        let own = self.trace.requests.iter();
        own.filter(move |one| one.drive_index == self.drive.number)
            .filter(move |one| one.issued_at >= from && one.completed_at() <= until)
    }

    /// Returns the time range of the close-up picture around the request with the longest wait, as
    /// long as can be drawn.
    fn choose_close_up(
        &self,
        (opened, ended): (Nanoseconds, Nanoseconds),
    ) -> Option<(Nanoseconds, Nanoseconds)> {
        let from = opened.max(self.drive.complete_from);
        let slowest = self
            .requests((from, ended))
            .max_by_key(|one| longest_wait(one))?;
        let took = slowest.completed_at().since(slowest.issued_at).0;
        let middle = slowest.issued_at.0.saturating_add(took / 2);
        let around = |length: u64| {
            let first = middle.saturating_sub(length / 2).max(from.0);
            let last = first.saturating_add(length).min(ended.0);
            (Nanoseconds(first), Nanoseconds(last))
        };
        let longest = took
            .saturating_mul(SHOWN_SPAN_RATIO_MAX)
            .max(CLOSE_UP_MIN.0);
        let mut length = took.saturating_mul(5).div_ceil(4).max(CLOSE_UP_MIN.0);
        while self.count_activities(around(length.saturating_mul(2))) <= INTERVALS_MAX / 3
            && length < longest.min(ended.since(from).0)
        {
            length = length.saturating_mul(2);
        }
        Some(around(length))
    }

    fn view(&self, time: (Nanoseconds, Nanoseconds)) -> PictureView {
        let is_few = self.count_activities(time) <= INTERVALS_MAX;
        let dies = match is_few {
            true => DieActivities::Exact(self.die_activities(time).copied().collect()),
            false => DieActivities::Slices(stretches::slice_dies(
                self.die_activities(time),
                time,
                self.drive.dies,
            )),
        };
        // Those that waited do so for nothing that can be seen, where dies are not.
        let from = time.0.max(self.drive.complete_from);
        let mut slowest: Vec<&TracedRequest> = self.requests((from, time.1)).collect();
        slowest.sort_by_key(|one| std::cmp::Reverse(longest_wait(one)));
        slowest.truncate(REQUESTS_MAX);
        slowest.retain(|one| longest_wait(one) > 0);
        slowest.sort_by_key(|one| one.issued_at);
        PictureView {
            from: time.0,
            until: time.1,
            dies,
            slowest: slowest.into_iter().cloned().collect(),
            flash_series: FlashSeries::from_trace(self.trace, self.flash, (self.drive, time)),
        }
    }
}

/// Tests whether a request only waits in a given stage.
fn is_wait_stage(stage: Stage) -> bool {
    Family::from_stage(stage) == Family::Queue
}

fn longest_wait(request: &TracedRequest) -> u64 {
    let waits = request
        .stage_intervals()
        .filter(|(stage, ..)| is_wait_stage(*stage));
    waits.fold(0, |all, (_, from, until)| {
        all.saturating_add(until.since(from).0)
    })
}

/// Returns the die that a request accesses; `None` for a request without one.
fn die_of(request: &TracedRequest, drive: &DriveGeometry) -> Option<u32> {
    match request.media_position {
        Some(Position::Flash { channel, die }) => {
            let number = die.saturating_mul(drive.channels).saturating_add(channel);
            (channel < drive.channels && number < drive.dies).then_some(number)
        }
        Some(Position::Disk(_)) | None => None,
    }
}

#[cfg(test)]
mod tests;
