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
use course::Course;
use diskperf_timeline::trace::{Position, TracedDie, TracedFlash, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, Trace};
use stretches::Stretch;

/// Maximum number of die activities that a picture draws one by one.
const MOST_INTERVALS: usize = 2500;

/// Maximum number of slow requests whose stages a picture of dies draws.
const MOST_REQUESTS: usize = 5;

/// Minimum duration that the close-up picture of dies shows.
const LEAST_CLOSE: Nanoseconds = Nanoseconds(200_000);

/// Maximum duration of the close-up picture, as a multiple of its request's response time. A longer
/// one would hide the request.
const MOST_AROUND: u64 = 6;

/// Content of the two pictures of a flash drive's dies: close-up and whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    drive: Drive,
    /// Close-up picture around the request with the longest wait; `None` where the whole picture
    /// shows every activity.
    close: Option<View>,
    whole: View,
}

/// Geometry of the drawn flash drive, and the times that the trace covers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Drive {
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
struct View {
    from: Nanoseconds,
    until: Nanoseconds,
    dies: Dies,
    /// Requests with the longest waits, by their issue times.
    slowest: Vec<TracedRequest>,
    course: Course,
}

/// Activities of the dies in a time range.
#[derive(Clone, Debug, PartialEq)]
enum Dies {
    /// Every activity of every die, one by one.
    Exact(Vec<TracedDie>),
    /// Main activity of each die in each slice of time.
    Stretches(Vec<Stretch>),
}

impl Picture {
    /// Selects the content of the pictures from a trace; `None` unless a flash drive received
    /// requests.
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        let (opened, ended) = window(trace)?;
        let asked = |flash: &&TracedFlash| {
            let mut own = trace.requests.iter();
            flash.dies > 0 && own.any(|one| one.drive == flash.drive)
        };
        let flash = trace.flash.iter().find(asked)?;
        let sector_bytes = trace.drives.get(flash.drive as usize)?.sector_bytes;
        if opened >= ended {
            return None;
        }
        let seen = Seen {
            trace,
            flash,
            drive: Drive {
                number: flash.drive,
                channels: flash.channels.max(1),
                dies: flash.dies,
                unit_bytes: flash.unit_bytes,
                sector_bytes,
                buffer_units: flash.buffer_units,
                complete_from: flash.complete_from,
                left_out: flash.left_out,
                opened,
            },
        };
        let all = (opened, ended);
        let close = match seen.intervals(all) <= MOST_INTERVALS {
            true => None,
            false => seen.close(all).map(|some| seen.view(some)),
        };
        Some(Self {
            drive: seen.drive,
            close,
            whole: seen.view(all),
        })
    }
}

struct Seen<'t> {
    trace: &'t Trace,
    flash: &'t TracedFlash,
    drive: Drive,
}

impl Seen<'_> {
    fn kept(&self, (from, until): (Nanoseconds, Nanoseconds)) -> impl Iterator<Item = &TracedDie> {
        let kept = self.flash.kept.iter();
        let drawn = move |one: &&TracedDie| one.until > from && one.from < until;
        kept.filter(drawn)
            .filter(|one| one.die < self.drive.dies && one.from < one.until)
    }

    fn intervals(&self, time: (Nanoseconds, Nanoseconds)) -> usize {
        self.kept(time).count()
    }

    fn requests(
        &self,
        (from, until): (Nanoseconds, Nanoseconds),
    ) -> impl Iterator<Item = &TracedRequest> {
        let own = self.trace.requests.iter();
        own.filter(move |one| one.drive == self.drive.number)
            .filter(move |one| one.issued >= from && one.completed() <= until)
    }

    /// Returns the time range of the close-up picture around the request with the longest wait, as
    /// long as can be drawn.
    fn close(
        &self,
        (opened, ended): (Nanoseconds, Nanoseconds),
    ) -> Option<(Nanoseconds, Nanoseconds)> {
        let from = opened.max(self.drive.complete_from);
        let slowest = self.requests((from, ended)).max_by_key(|one| waited(one))?;
        let took = slowest.completed().since(slowest.issued).0;
        let middle = slowest.issued.0.saturating_add(took / 2);
        let around = |length: u64| {
            let first = middle.saturating_sub(length / 2).max(from.0);
            let last = first.saturating_add(length).min(ended.0);
            (Nanoseconds(first), Nanoseconds(last))
        };
        let longest = took.saturating_mul(MOST_AROUND).max(LEAST_CLOSE.0);
        let mut length = took.saturating_mul(5).div_ceil(4).max(LEAST_CLOSE.0);
        while self.intervals(around(length.saturating_mul(2))) <= MOST_INTERVALS / 3
            && length < longest.min(ended.since(from).0)
        {
            length = length.saturating_mul(2);
        }
        Some(around(length))
    }

    fn view(&self, time: (Nanoseconds, Nanoseconds)) -> View {
        let is_few = self.intervals(time) <= MOST_INTERVALS;
        let dies = match is_few {
            true => Dies::Exact(self.kept(time).copied().collect()),
            false => Dies::Stretches(stretches::of(self.kept(time), time, self.drive.dies)),
        };
        // Those that waited do so for nothing that can be seen, where dies are not.
        let from = time.0.max(self.drive.complete_from);
        let mut slowest: Vec<&TracedRequest> = self.requests((from, time.1)).collect();
        slowest.sort_by_key(|one| std::cmp::Reverse(waited(one)));
        slowest.truncate(MOST_REQUESTS);
        slowest.retain(|one| waited(one) > 0);
        slowest.sort_by_key(|one| one.issued);
        View {
            from: time.0,
            until: time.1,
            dies,
            slowest: slowest.into_iter().cloned().collect(),
            course: Course::of(self.trace, self.flash, (self.drive, time)),
        }
    }
}

/// Tests whether a request only waits in a given stage.
fn is_wait(stage: Stage) -> bool {
    Family::of(stage) == Family::Queue
}

fn waited(request: &TracedRequest) -> u64 {
    let waits = request.parts().filter(|(stage, ..)| is_wait(*stage));
    waits.fold(0, |all, (_, from, until)| {
        all.saturating_add(until.since(from).0)
    })
}

/// Returns the die that a request accesses; `None` for a request without one.
fn die_of(request: &TracedRequest, drive: &Drive) -> Option<u32> {
    match request.position {
        Some(Position::Flash { channel, die }) => {
            let number = die.saturating_mul(drive.channels).saturating_add(channel);
            (channel < drive.channels && number < drive.dies).then_some(number)
        }
        Some(Position::Disk(_)) | None => None,
    }
}

#[cfg(test)]
mod tests;
