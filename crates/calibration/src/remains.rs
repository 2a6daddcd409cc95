//! Which requests a replay misses, and why.
//!
//! Most are off by whole revolutions: the arm came just before the sector on one side and
//! just behind it on the other. For each of these the replay is asked again with the one
//! thing otherwise that the trace does not show, and the measured time says which it was.

mod suppose;

use crate::arrival::JITTER_US;
use crate::places::Placed;
use crate::replay::{Served, Stepped, replay_shown, us};
use diskperf_device::disk::device::{Answer, DiskSpecification};
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

/// A request of a replay, and its measured answer.
struct Missed<'m> {
    placed: &'m Placed,
    served: Served,
    error_us: f64,
    /// How far the replay's clock was ahead of the drive's when the request came.
    ahead_us: f64,
    is_fast: bool,
    period_us: f64,
}

/// What a replay misses of the requests from `first` on.
pub(crate) fn remains(
    disk: &DiskSpecification,
    all: &[Placed],
    first: usize,
    think: Think,
    is_fast: impl Fn(&Placed) -> bool,
) -> Remains {
    let (mut off, mut squares_us) = (Vec::new(), 0.0);
    let period_us = disk.mechanism.period_ns / 1e3;
    // How far the replay's clock is ahead of the drive's, which a closed loop keeps until
    // the platter makes it up.
    let (mut ahead_us, mut index) = (0.0, 0);
    replay_shown(disk, all, think, |served, before| {
        let placed = &all[index];
        let error_us = served.service_us - placed.request.service_us;
        if index >= first {
            squares_us += error_us * error_us;
            if error_us.abs() > MET_US {
                let missed = Missed {
                    placed,
                    served: *served,
                    error_us,
                    ahead_us,
                    is_fast: is_fast(placed),
                    period_us,
                };
                let earlier = &all[index.saturating_sub(1)];
                let (cause, arrival_off_us) = missed.cause(disk, earlier, before);
                off.push(Off {
                    request: index + 1,
                    cause,
                    error_us,
                    arrival_off_us,
                });
            }
        }
        ahead_us = wrapped_us(ahead_us + error_us, period_us);
        index += 1;
    });
    Remains {
        causes: counted(&off, squares_us),
        off,
    }
}

impl Missed<'_> {
    /// Why it is missed and, of whole revolutions, by how much later the arm would have had to
    /// come. `before` has the device as it was when the request came.
    fn cause(
        &self,
        disk: &DiskSpecification,
        earlier: &Placed,
        before: &mut dyn FnMut() -> Stepped,
    ) -> (Cause, Option<f64>) {
        let off_us = wrapped_us(self.error_us, self.period_us).abs();
        let is_whole = off_us <= MET_US && self.error_us.abs() > self.period_us / 2.0;
        let made_up_us = wrapped_us(self.ahead_us + self.error_us, self.period_us);
        let is_read = self.placed.request.operation == Operation::Read;
        match self.served.seen.answer {
            Answer::Medium if is_read && self.is_fast => (Cause::Held, None),
            Answer::Buffer | Answer::ReadAhead if is_read && !self.is_fast => {
                (Cause::NotHeld, None)
            }
            Answer::Medium if is_whole => match self.needed_us() {
                Some(off_us) if off_us.abs() <= SCATTER * JITTER_US => {
                    (Cause::AtSector, Some(off_us))
                }
                needed_us => {
                    let met = suppositions(disk, earlier, self.placed, before());
                    let met = met.into_iter().find(|(_, service_us)| {
                        (service_us - self.placed.request.service_us).abs() <= MET_US
                    });
                    let cause = match met {
                        Some((Unseen::Buffer, _)) => Cause::BufferState,
                        Some((Unseen::Destage, _)) => Cause::Destage,
                        None => Cause::Seek,
                    };
                    (cause, needed_us)
                }
            },
            Answer::Medium if self.ahead_us.abs() > MET_US && made_up_us.abs() <= MET_US => {
                (Cause::CarriedOver, None)
            }
            _ => (Cause::Time, None),
        }
    }

    /// By how much later the arm would have had to come for the measured revolution.
    fn needed_us(&self) -> Option<f64> {
        let access = self.served.seen.access?;
        let (arrives_us, first_us) = (us(access.arrives), us(access.first_passes));
        let turns = (self.error_us / self.period_us).round();
        // The sector that was measured passes so many turns before the modelled one: the arm is
        // there by then, and was not yet when it passed the last time.
        let passes_us = first_us - turns * self.period_us;
        Some(match turns > 0.0 {
            true => passes_us - arrives_us,
            false => passes_us - self.period_us - arrives_us,
        })
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
