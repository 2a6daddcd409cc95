//! A disk drive that a controller commands, over the layout, the seek curve and the spindle
//! that all disks have.
//!
//! A drive knows no file and no request queue; it answers how long the way to
//! some sectors and their transfer takes from a given moment, and then is
//! where that left it.

mod geometry;
mod last;
mod passage;
mod streaming;

pub use geometry::{Format, Geometry, GeometryError, HeadGroups, Revectored, Zone};
pub use passage::{Move, Passage};
pub use streaming::TrackRead;

use diskperf_device::disk::layout::Run;
use diskperf_device::disk::seek::SeekCurve;
use diskperf_device::disk::spindle::{Spindle, Turn};
use diskperf_device::{Busy, WhatIf};
use diskperf_sim::Time;
use passage::{Leg, STILL};
use std::sync::Arc;

/// What a drive is made of.
#[derive(Clone, Debug)]
pub struct Mechanics {
    /// Where the sectors are.
    pub geometry: Geometry,
    /// How the arm moves.
    pub seek: SeekCurve,
    /// How long the arm takes to rest after a move, where the seek times do
    /// not include it.
    pub settle: Time,
    /// How much longer a write waits for that.
    pub write_settle: Time,
    /// How long another head takes to take over.
    pub head_switch: Time,
}

/// A drive, at some cylinder, turning.
#[derive(Clone, Debug)]
pub struct Mechanism {
    /// Shared by all that are like it: an adaptive controller rehearses on a new one again
    /// and again.
    mechanics: Arc<Mechanics>,
    spindle: Spindle,
    cylinder: u32,
    head: u32,
    /// Its last transfer.
    last: Option<Commanded>,
    /// The run of it from which its stages were told last, with its `at` and its sector: a
    /// stream that grows for minutes is not gone through again from its first sector.
    told: Option<(Time, u64, LastRun)>,
    busy: Busy,
    /// How long that takes which was booked last.
    booked_last: Time,
    what_if: WhatIf,
}

/// A transfer, and where the drive was when it was commanded.
#[derive(Clone, Copy, Debug)]
struct Commanded {
    at: Time,
    sector: u64,
    count: u32,
    write: bool,
    cylinder: u32,
    head: u32,
    ends: Time,
    /// What it is made of; none of a track that is read from whatever sector came first.
    passage: Option<(Passage, LastRun)>,
}

/// The last of a transfer's runs of sectors that lie side by side.
#[derive(Clone, Copy, Debug)]
struct LastRun {
    /// Sectors of the transfer before it.
    before: u32,
    begins: Time,
    run: Run,
    /// The transfer up to there.
    passage: Passage,
    /// As it turned then, if it was turned for a supposition since.
    spindle: Spindle,
}

impl LastRun {
    /// How long its first `sectors` take to pass.
    #[inline]
    fn passing(&self, sectors: u32) -> Time {
        let place = &self.run.place;
        let arcs = place.arc * u64::from(sectors);
        self.spindle.passing(self.begins, place.start, arcs)
    }
}

/// Whether a sector that comes by at `comes` came by before, since some moment
/// (the drive's last transfer, or its finding the sector), with the arm where
/// it is: then a revolution has been missed.
pub fn was_missed(since: Option<Time>, period: Time, comes: Time, arm: Move) -> bool {
    match (since, comes.0.checked_sub(period.0)) {
        (Some(since), Some(passed)) => arm.seek == Time::ZERO && passed + 2 >= since.0,
        _ => false,
    }
}

impl Mechanism {
    /// A drive at rest at cylinder 0, head 0.
    pub fn new(mechanics: Mechanics, spindle: Spindle) -> Self {
        Self::of_shared(Arc::new(mechanics), spindle)
    }

    fn of_shared(mechanics: Arc<Mechanics>, spindle: Spindle) -> Self {
        Self {
            mechanics,
            spindle,
            cylinder: 0,
            head: 0,
            last: None,
            told: None,
            busy: Busy::default(),
            booked_last: Time::ZERO,
            what_if: WhatIf::default(),
        }
    }

    /// Another one like it, that has done nothing.
    pub(crate) fn at_rest(&self) -> Self {
        Self::of_shared(Arc::clone(&self.mechanics), self.spindle).supposing(self.what_if)
    }

    /// The same drive, with some of its costs taken away.
    pub fn supposing(self, what_if: WhatIf) -> Self {
        Self { what_if, ..self }
    }

    /// Where its sectors are.
    pub fn geometry(&self) -> &Geometry {
        &self.mechanics.geometry
    }

    /// How it turns.
    pub fn spindle(&self) -> &Spindle {
        &self.spindle
    }

    /// The cylinder that the arm is at, or moving to.
    pub fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// When its last transfer ended.
    pub fn last_transfer(&self) -> Option<Time> {
        self.last.map(|last| last.ends)
    }

    /// What it has done so far.
    pub fn busy(&self) -> Busy {
        self.busy
    }

    /// How long that takes which it was told to do last. All of it is booked
    /// when it begins.
    pub fn booked_last(&self) -> Time {
        self.booked_last
    }

    /// The number of the sector slot under the heads.
    pub fn slot_under_head(&self, now: Time) -> u32 {
        let arc = self.mechanics.geometry.arc(self.cylinder);
        let slot = self.spindle.angle(now).0 / arc;
        // The last one still in the gap behind it.
        (slot as u32).min(self.mechanics.geometry.slots(self.cylinder) - 1)
    }

    /// The time in which so many slots of a cylinder's tracks pass, on as many tracks as
    /// these are.
    pub fn slots_time(&self, cylinder: u32, slots: u32) -> Time {
        let arcs = u128::from(self.mechanics.geometry.arc(cylinder)) * u128::from(slots);
        let revolutions = (arcs >> 64) as u64;
        Time(self.spindle.period().0 * revolutions) + self.spindle.turning(arcs as u64)
    }

    /// The angle at which a slot of the present cylinder's tracks begins.
    fn angle_of_slot(&self, slot: u32) -> Turn {
        Turn(self.mechanics.geometry.arc(self.cylinder)).times(u64::from(slot))
    }

    /// Moves the arm to a cylinder; how long that takes.
    pub fn seek(&mut self, cylinder: u32, write: bool) -> Move {
        let arm = self.way(cylinder, self.head, write);
        self.cylinder = cylinder;
        self.busy.positioning += arm.total();
        self.booked_last = arm.total();
        arm
    }

    /// From `now` until the start of a slot of the present cylinder's tracks
    /// comes by.
    pub fn until_slot(&self, now: Time, slot: u32) -> Time {
        self.spindle.until(now, self.angle_of_slot(slot))
    }

    /// Reads or writes `count` sectors from `sector` on, commanded now; how
    /// long each part takes. Afterwards the drive is where the last one was.
    #[inline]
    pub fn transfer(&mut self, now: Time, sector: u64, count: u32, write: bool) -> Passage {
        self.transfer_watched(now, (sector, count), write, self.last_transfer())
    }

    /// The same, where whoever commands has been ready for the sector since
    /// some moment: one that came by after that has been missed.
    #[inline]
    pub fn transfer_watched(
        &mut self,
        now: Time,
        (sector, count): (u64, u32),
        write: bool,
        since: Option<Time>,
    ) -> Passage {
        let (cylinder, head) = (self.cylinder, self.head);
        if self.what_if.deadlines_met {
            self.turn_back_to(now, sector, write, since);
        }
        let (passage, run) = self.passage(now, (sector, count), write, |_| ());
        passage.book(&mut self.busy);
        self.busy.bytes += self.bytes(count);
        self.busy.transfers += 1;
        self.booked_last = passage.total();
        self.last = Some(Commanded {
            at: now,
            sector,
            count,
            write,
            cylinder,
            head,
            ends: now + passage.total(),
            passage: Some((passage, run)),
        });
        passage
    }

    /// Turns the platter back to where a sector that has been missed is under
    /// the head when the arm is there.
    fn turn_back_to(&mut self, now: Time, sector: u64, write: bool, since: Option<Time>) {
        let place = self.mechanics.geometry.locate(sector);
        let arm = self.way(place.cylinder, place.head, write);
        let arrived = now + arm.total();
        let comes = arrived + self.spindle.until(arrived, place.start);
        if was_missed(since, self.spindle.period(), comes, arm) {
            self.spindle = self.spindle.turned_to(arrived, place.start);
        }
    }

    /// Waits, from `arrived` on after this way of the arm, for the start of a
    /// slot of the present cylinder's tracks, which the drive was ready for
    /// since some moment.
    pub fn await_slot(
        &mut self,
        arrived: Time,
        slot: u32,
        (arm, since): (Move, Option<Time>),
    ) -> Time {
        let wait = self.until_slot(arrived, slot);
        let missed = was_missed(since, self.spindle.period(), arrived + wait, arm);
        if self.what_if.no_rotational_latency || (self.what_if.deadlines_met && missed) {
            let target = self.angle_of_slot(slot);
            self.spindle = self.spindle.turned_to(arrived, target);
            return Time::ZERO;
        }
        wait
    }

    fn bytes(&self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.mechanics.geometry.sector_bytes())
    }

    /// The parts of a transfer; tells of each leg.
    #[inline]
    fn passage(
        &mut self,
        now: Time,
        of: (u64, u32),
        write: bool,
        tell: impl FnMut(Leg<'_>),
    ) -> (Passage, LastRun) {
        let run = self.mechanics.geometry.run(of.0);
        let to_track = self.way(run.place.cylinder, run.place.head, write);
        let arrived = now + to_track.total();
        let latency = self.wait(arrived, run.place.start);
        let first = LastRun {
            before: 0,
            begins: arrived + latency,
            run,
            spindle: self.spindle,
            passage: Passage {
                to_track,
                latency,
                between: STILL,
                between_latency: Time::ZERO,
                transfer: Time::ZERO,
            },
        };
        self.passage_from(first, of, write, tell)
    }

    /// The same, from the start of one of its runs on: over the ends of tracks and
    /// cylinders, and over interleaved and slipped sectors.
    fn passage_from(
        &mut self,
        mut run: LastRun,
        (sector, count): (u64, u32),
        write: bool,
        mut tell: impl FnMut(Leg<'_>),
    ) -> (Passage, LastRun) {
        loop {
            let place = run.run.place;
            (self.cylinder, self.head) = (place.cylinder, place.head);
            let sectors = run.run.sectors.min(count - run.before);
            let span = run.passing(sectors);
            tell(Leg::Run { run: &run, sectors });
            let mut passage = run.passage;
            passage.transfer += span;
            let done = run.before + sectors;
            if done == count {
                return (passage, run);
            }
            let at = run.begins + span;
            let next = self.mechanics.geometry.run(sector + u64::from(done));
            let arm = self.way(next.place.cylinder, next.place.head, write);
            let same_track = next.place.same_track(&place);
            let wait = match same_track {
                true => self.spindle.until(at, next.place.start),
                false => self.wait(at + arm.total(), next.place.start),
            };
            tell(Leg::Between {
                begins: at,
                arm,
                wait,
                same_track,
            });
            passage.between.seek += arm.seek;
            passage.between.settle += arm.settle;
            passage.between.write_settle += arm.write_settle;
            passage.between.head_switch += arm.head_switch;
            if same_track {
                passage.transfer += wait;
            } else {
                passage.between_latency += wait;
            }
            run = LastRun {
                before: done,
                begins: at + arm.total() + wait,
                run: next,
                passage,
                spindle: self.spindle,
            };
        }
    }

    /// From `now` until an angle comes by; the platter is turned there at once
    /// where nothing is to be waited for.
    fn wait(&mut self, now: Time, angle: Turn) -> Time {
        if self.what_if.no_rotational_latency {
            self.spindle = self.spindle.turned_to(now, angle);
            return Time::ZERO;
        }
        self.spindle.until(now, angle)
    }

    fn way(&self, cylinder: u32, head: u32, write: bool) -> Move {
        let distance = self.cylinder.abs_diff(cylinder);
        if distance > 0 && self.what_if.no_seek {
            STILL
        } else if distance > 0 {
            Move {
                seek: self.mechanics.seek.time(distance),
                settle: self.mechanics.settle,
                write_settle: if write {
                    self.mechanics.write_settle
                } else {
                    Time::ZERO
                },
                head_switch: Time::ZERO,
            }
        } else if head != self.head {
            Move {
                head_switch: self.mechanics.head_switch,
                ..STILL
            }
        } else {
            STILL
        }
    }
}
