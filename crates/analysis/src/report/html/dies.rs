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

pub(super) use drawing::render_figures;

use super::family::StageFamily;
use crate::explanation::timed_window;
use course::FlashSeries;
use diskperf_timeline::trace::{DieBusyPeriod, Position, TracedFlash, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use stretches::DieSlice;

/// Maximum number of die activities that a picture draws one by one.
const ACTIVITY_COUNT_MAX: usize = 2500;

/// Maximum number of slow requests whose stages a picture of dies draws.
const REQUEST_COUNT_MAX: usize = 5;

const CLOSE_UP_DURATION_MIN: Nanoseconds = Nanoseconds(200_000);

/// Maximum duration of the close-up picture, as a multiple of its request's response time. A longer
/// one would hide the request.
const SHOWN_SPAN_RATIO_MAX: u64 = 6;

/// Content of the two pictures of a flash drive's dies: close-up and whole.
#[derive(Clone, Debug, PartialEq)]
pub struct DiePicture {
    drive: DriveGeometry,
    /// Close-up picture around the request with the longest wait; `None` where the whole picture
    /// shows every activity.
    close_up: Option<PictureView>,
    whole_run: PictureView,
}

/// Geometry of the drawn flash drive, and the times that the trace covers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DriveGeometry {
    /// Index of the drive, counted from 0.
    drive_index: u32,
    channel_count: u32,
    die_count: u32,
    unit_bytes: u32,
    sector_bytes: u32,
    buffer_units: u32,
    /// Time from which the trace contains every die activity.
    complete_since: Nanoseconds,
    omitted_count: u64,
    /// Start of the timed part, from which times are displayed.
    recording_start: Nanoseconds,
}

#[derive(Clone, Debug, PartialEq)]
struct PictureView {
    start: Nanoseconds,
    end: Nanoseconds,
    dies: DieActivities,
    /// Requests with the longest waits, by their issue times.
    slowest_requests: Vec<TracedRequest>,
    flash_series: FlashSeries,
}

#[derive(Clone, Debug, PartialEq)]
enum DieActivities {
    Exact(Vec<DieBusyPeriod>),
    BusySlices(Vec<DieSlice>),
}

impl DiePicture {
    /// Selects the content of the pictures from a trace; `None` unless a flash drive received
    /// requests.
    pub(super) fn from_trace(trace: &Trace) -> Option<Self> {
        let (opened, ended) = timed_window(trace)?;
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
                drive_index: flash.drive_index,
                channel_count: flash.channel_count.max(1),
                die_count: flash.die_count,
                unit_bytes: flash.unit_bytes,
                sector_bytes,
                buffer_units: flash.buffer_units,
                complete_since: flash.complete_since,
                omitted_count: flash.omitted_period_count,
                recording_start: opened,
            },
        };
        let all = (opened, ended);
        let close = match seen.count_activities(all) <= ACTIVITY_COUNT_MAX {
            true => None,
            false => seen.choose_close_up(all).map(|some| seen.build_view(some)),
        };
        Some(Self {
            drive: seen.drive,
            close_up: close,
            whole_run: seen.build_view(all),
        })
    }
}

struct PictureSource<'t> {
    trace: &'t Trace,
    flash: &'t TracedFlash,
    drive: DriveGeometry,
}

impl PictureSource<'_> {
    fn collect_die_activities(
        &self,
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> impl Iterator<Item = &DieBusyPeriod> {
        let kept = self.flash.recorded_periods.iter();
        let drawn = move |one: &&DieBusyPeriod| one.busy_end > from && one.busy_start < until;
        kept.filter(drawn)
            .filter(|one| one.die_index < self.drive.die_count && one.busy_start < one.busy_end)
    }

    fn count_activities(&self, time: (Nanoseconds, Nanoseconds)) -> usize {
        self.collect_die_activities(time).count()
    }

    fn select_requests(
        &self,
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> impl Iterator<Item = &TracedRequest> {
        let own = self.trace.requests.iter();
        own.filter(move |one| one.drive_index == self.drive.drive_index)
            .filter(move |one| one.issued_at >= from && one.completed_at() <= until)
    }

    /// Returns the time range of the close-up picture around the request with the longest wait, as
    /// long as can be drawn.
    fn choose_close_up(
        &self,
        (opened, ended): (Nanoseconds, Nanoseconds),
    ) -> Option<(Nanoseconds, Nanoseconds)> {
        let from = opened.max(self.drive.complete_since);
        let slowest = self
            .select_requests((from, ended))
            .max_by_key(|one| longest_wait_ns(one))?;
        let took = slowest.completed_at().since(slowest.issued_at).0;
        let middle = slowest.issued_at.0.saturating_add(took / 2);
        let around = |length: u64| {
            let first = middle.saturating_sub(length / 2).max(from.0);
            let last = first.saturating_add(length).min(ended.0);
            (Nanoseconds(first), Nanoseconds(last))
        };
        let longest = took
            .saturating_mul(SHOWN_SPAN_RATIO_MAX)
            .max(CLOSE_UP_DURATION_MIN.0);
        let mut length = took
            .saturating_mul(5)
            .div_ceil(4)
            .max(CLOSE_UP_DURATION_MIN.0);
        while self.count_activities(around(length.saturating_mul(2))) <= ACTIVITY_COUNT_MAX / 3
            && length < longest.min(ended.since(from).0)
        {
            length = length.saturating_mul(2);
        }
        Some(around(length))
    }

    fn build_view(&self, time: (Nanoseconds, Nanoseconds)) -> PictureView {
        let is_few = self.count_activities(time) <= ACTIVITY_COUNT_MAX;
        let dies = match is_few {
            true => DieActivities::Exact(self.collect_die_activities(time).copied().collect()),
            false => DieActivities::BusySlices(stretches::slice_die_activities(
                self.collect_die_activities(time),
                time,
                self.drive.die_count,
            )),
        };
        // Those that waited do so for nothing that can be seen, where dies are not.
        let from = time.0.max(self.drive.complete_since);
        let mut slowest: Vec<&TracedRequest> = self.select_requests((from, time.1)).collect();
        slowest.sort_by_key(|one| std::cmp::Reverse(longest_wait_ns(one)));
        slowest.truncate(REQUEST_COUNT_MAX);
        slowest.retain(|one| longest_wait_ns(one) > 0);
        slowest.sort_by_key(|one| one.issued_at);
        PictureView {
            start: time.0,
            end: time.1,
            dies,
            slowest_requests: slowest.into_iter().cloned().collect(),
            flash_series: FlashSeries::from_trace(self.trace, self.flash, (self.drive, time)),
        }
    }
}

/// Tests whether a request only waits in a given stage.
fn is_wait_stage(stage: Stage) -> bool {
    StageFamily::from_stage(stage) == StageFamily::Queue
}

fn longest_wait_ns(request: &TracedRequest) -> u64 {
    let waits = request
        .stage_intervals()
        .filter(|interval| is_wait_stage(interval.stage));
    waits.fold(0, |all, interval| all.saturating_add(interval.duration().0))
}

/// Returns the die that a request accesses; `None` for a request without one.
fn find_die_of_request(request: &TracedRequest, drive: &DriveGeometry) -> Option<u32> {
    match request.media_position {
        Some(Position::Flash { channel, die }) => {
            let number = die
                .saturating_mul(drive.channel_count)
                .saturating_add(channel);
            (channel < drive.channel_count && number < drive.die_count).then_some(number)
        }
        Some(Position::Disk(_)) | None => None,
    }
}

#[cfg(test)]
mod tests;
