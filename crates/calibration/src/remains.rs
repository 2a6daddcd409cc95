//! Which requests a replay misses, and why.
//!
//! Most are off by whole revolutions: the arm came just before the sector on one side and
//! just behind it on the other. For each of these the replay is asked again with the one
//! thing otherwise that the trace does not show, and the measured time says which it was.

mod suppose;

use crate::arrival::JITTER_US;
use crate::model::{Answer, Model};
use crate::places::Placed;
use crate::replay::{Shown, replay_shown};
use diskperf_diskspecs::phase::Think;
use diskperf_diskspecs::trace::Operation;
use suppose::{Unseen, suppositions};

/// Why a request is off by more than half a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The drive had it in its buffer, the model did not.
    Held,
    /// The model had it in its buffer, the drive did not.
    NotHeld,
    /// Revolutions: the arm came within the scatter of its arrivals of the sector.
    AtSector,
    /// Revolutions: what the buffer held, or how far the drive had read ahead, was otherwise;
    /// with that the request is met.
    BufferState,
    /// Revolutions: a write that had been reported early had left the arm elsewhere, or was
    /// written at another time; with that the request is met.
    Destage,
    /// Revolutions: the arm was faster or slower than on other seeks of that length.
    Seek,
    /// The pause before it began when the replay was off by a part of a revolution, which
    /// this request makes up.
    CarriedOver,
    /// Anything else: a retry, a constant.
    Time,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 8] = [
        Cause::Held,
        Cause::NotHeld,
        Cause::AtSector,
        Cause::BufferState,
        Cause::Destage,
        Cause::Seek,
        Cause::CarriedOver,
        Cause::Time,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Held => "read from the buffer by the drive only",
            Cause::NotHeld => "read from the buffer by the model only",
            Cause::AtSector => "revolution: seek ended at the sector",
            Cause::BufferState => "revolution: buffer state unknown",
            Cause::Destage => "revolution: destage position unknown",
            Cause::Seek => "revolution: none of these, so the seek",
            Cause::CarriedOver => "carried over from the request before",
            Cause::Time => "less than a revolution",
        }
    }

    /// Whether such a request is off by whole revolutions.
    pub fn is_revolution(self) -> bool {
        match self {
            Cause::AtSector | Cause::BufferState | Cause::Destage | Cause::Seek => true,
            Cause::Held | Cause::NotHeld | Cause::CarriedOver | Cause::Time => false,
        }
    }
}

/// A request that is off by more than half a millisecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Off {
    /// Which, counted from 1 over the whole trace.
    pub request: usize,
    /// Why.
    pub cause: Cause,
    /// Modelled less measured, in microseconds.
    pub error_us: f64,
    /// By how much later the arm would have had to come for the measured revolution, in
    /// microseconds; negative: earlier. Of requests that are off by whole revolutions.
    pub arrival_off_us: Option<f64>,
}

/// Requests that are off by one cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remaining {
    /// Why.
    pub cause: Cause,
    /// How many.
    pub requests: usize,
    /// How many of them the drive took longer for than the model.
    pub drive_slower: usize,
    /// Their share of the squared error.
    pub squared_error_percent: f64,
}

/// What a replay misses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remains {
    /// By cause, those that there are.
    pub causes: Vec<Remaining>,
    /// One by one.
    pub off: Vec<Off>,
}

/// Requests off by less are met, in microseconds.
const MET_US: f64 = 500.0;
/// Within so many deviations of its arrivals, a seek may end on either side of a sector.
const SCATTER: f64 = 3.0;

/// What a replay misses of the requests from `first` on.
pub(crate) fn remains(
    model: &Model<'_>,
    all: &[Placed],
    first: usize,
    think: Think,
    is_fast: impl Fn(&Placed) -> bool,
) -> Remains {
    let (mut off, mut squares_us) = (Vec::new(), 0.0);
    // How far the replay's clock is ahead of the drive's, which a closed loop keeps until
    // the platter makes it up.
    let mut ahead_us = 0.0;
    replay_shown(model, all, think, |shown| {
        let error_us = shown.replayed.service_us - shown.placed.request.service_us;
        if shown.index >= first {
            squares_us += error_us * error_us;
            if error_us.abs() > MET_US {
                let is_fast = is_fast(shown.placed);
                off.push(explained(model, shown, (error_us, ahead_us), is_fast));
            }
        }
        ahead_us = wrapped_us(ahead_us + error_us, model.period_us);
    });
    Remains {
        causes: counted(&off, squares_us),
        off,
    }
}

fn explained(
    model: &Model<'_>,
    shown: &Shown<'_, '_>,
    (error_us, ahead_us): (f64, f64),
    is_fast: bool,
) -> Off {
    let request = &shown.placed.request;
    let left_us = wrapped_us(error_us, model.period_us).abs();
    let is_whole = left_us <= MET_US && error_us.abs() > model.period_us / 2.0;
    let mut arrival_off_us = None;
    let cause = match (request.operation, shown.replayed.answer, is_fast) {
        (Operation::Read, Answer::Medium, true) => Cause::Held,
        (Operation::Read, Answer::Buffer, false) => Cause::NotHeld,
        (_, Answer::Medium, _) if is_whole => {
            let off_us = needed_us(model, shown, error_us);
            arrival_off_us = Some(off_us);
            revolution(shown, off_us)
        }
        (_, Answer::Medium, _)
            if ahead_us.abs() > MET_US
                && wrapped_us(ahead_us + error_us, model.period_us).abs() <= MET_US =>
        {
            Cause::CarriedOver
        }
        _ => Cause::Time,
    };
    Off {
        request: shown.index + 1,
        cause,
        error_us,
        arrival_off_us,
    }
}

/// Why a request is off by whole revolutions.
fn revolution(shown: &Shown<'_, '_>, off_us: f64) -> Cause {
    if off_us.abs() <= SCATTER * JITTER_US {
        return Cause::AtSector;
    }
    let placed = shown.placed;
    let is_met = |prepared: &_| {
        let (completion_us, _) = shown.state.modelled(prepared, placed, shown.issue_us);
        (completion_us - shown.issue_us - placed.request.service_us).abs() <= MET_US
    };
    let met = suppositions(shown.state, placed, shown.issue_us)
        .into_iter()
        .find(|(_, prepared)| is_met(prepared));
    match met {
        Some((Unseen::Buffer, _)) => Cause::BufferState,
        Some((Unseen::Destage, _)) => Cause::Destage,
        None => Cause::Seek,
    }
}

/// By how much later the arm would have had to come for the measured revolution.
fn needed_us(model: &Model<'_>, shown: &Shown<'_, '_>, error_us: f64) -> f64 {
    let arrival_us = model.arrival_us(shown.prepared, shown.placed.request.operation);
    let first_us = model.passes(&shown.prepared.pieces, arrival_us).first_us;
    let turns = (error_us / model.period_us).round();
    // The sector that was measured passes so many turns before the modelled one: the arm is
    // there by then, and was not yet when it passed the last time.
    let passes_us = first_us - turns * model.period_us;
    match turns > 0.0 {
        true => passes_us - arrival_us,
        false => passes_us - model.period_us - arrival_us,
    }
}

fn counted(off: &[Off], squares_us: f64) -> Vec<Remaining> {
    let of = |cause: Cause| {
        let own = || off.iter().filter(move |one| one.cause == cause);
        let squares: f64 = own().map(|one| one.error_us * one.error_us).sum();
        Remaining {
            cause,
            requests: own().count(),
            drive_slower: own().filter(|one| one.error_us < 0.0).count(),
            squared_error_percent: 100.0 * squares / squares_us.max(f64::MIN_POSITIVE),
        }
    };
    let all = Cause::ALL.map(of);
    all.into_iter().filter(|one| one.requests > 0).collect()
}

/// A time within half a revolution of 0.
fn wrapped_us(time_us: f64, period_us: f64) -> f64 {
    time_us - (time_us / period_us).round() * period_us
}
