//! A disk drive: where its sectors are, how its arm moves, how it turns.
//!
//! A drive knows no file and no request queue; it answers how long the way to
//! some sectors and their transfer takes from a given moment, and then is
//! where that left it.

mod geometry;
mod rotation;
mod seek;
mod streaming;

pub use geometry::{Geometry, GeometryError, HeadGroups, Place, Zone};
pub use rotation::{Angle, CIRCLE, FASTEST_RPM, Rotation, Slots};
pub use seek::{SeekCurve, SeekError};
pub use streaming::TrackRead;

use crate::what_if::WhatIf;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

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
pub struct Drive {
    mechanics: Mechanics,
    rotation: Rotation,
    cylinder: u32,
    head: u32,
    /// Its last transfer.
    last: Option<Commanded>,
    busy: Busy,
    what_if: WhatIf,
}

/// A part of a transfer, from its first sector on.
enum Leg {
    /// Sectors that lie side by side pass.
    Run {
        begins: Time,
        sectors: u32,
        slots: Slots,
    },
    /// The way to the next of them, which begins then.
    Between {
        begins: Time,
        arm: Move,
        wait: Time,
        /// It is on the same track, and what is in between passes as well.
        same_track: bool,
    },
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
    /// Whether it goes on to another track.
    crosses: bool,
}

/// How long a drive has been doing what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Arm and heads moving and coming to rest.
    pub positioning: Time,
    /// Waiting for the sector.
    pub latency: Time,
    /// Transferring.
    pub transfer: Time,
    /// Bytes moved.
    pub bytes: u64,
    /// Transfers.
    pub transfers: u64,
}

/// The arm's way to a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Across cylinders.
    pub seek: Time,
    /// Until the arm rests.
    pub settle: Time,
    /// Until it rests well enough to write.
    pub write_settle: Time,
    /// To another head.
    pub head_switch: Time,
}

impl Move {
    /// All of it.
    pub fn total(&self) -> Time {
        self.seek + self.settle + self.write_settle + self.head_switch
    }

    /// Its parts, in order.
    pub fn stages(&self) -> [(Stage, Time); 4] {
        [
            (Stage::Seek, self.seek),
            (Stage::Settle, self.settle),
            (Stage::WriteSettle, self.write_settle),
            (Stage::HeadSwitch, self.head_switch),
        ]
    }
}

/// A transfer from its command to the last sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// To the first track.
    pub to_track: Move,
    /// From there until the first sector comes by.
    pub latency: Time,
    /// To further tracks, if the transfer goes on there.
    pub between: Move,
    /// Waiting on further tracks for the next sector.
    pub between_latency: Time,
    /// Sectors of the transfer passing under the heads, and those in between
    /// where sectors are interleaved.
    pub transfer: Time,
}

impl Passage {
    /// From the command to the first sector.
    pub fn to_first_sector(&self) -> Time {
        self.to_track.total() + self.latency
    }

    /// Whether it goes on to another track.
    fn crosses(&self) -> bool {
        self.between != STILL || self.between_latency > Time::ZERO
    }

    /// From the command to the end.
    pub fn total(&self) -> Time {
        self.to_first_sector() + self.between.total() + self.between_latency + self.transfer
    }
}

const STILL: Move = Move {
    seek: Time::ZERO,
    settle: Time::ZERO,
    write_settle: Time::ZERO,
    head_switch: Time::ZERO,
};

/// Whether a sector that comes by at `comes` came by before, since some moment
/// (the drive's last transfer, or its finding the sector), with the arm where
/// it is: then a revolution has been missed.
pub fn was_missed(since: Option<Time>, period: Time, comes: Time, arm: Move) -> bool {
    match (since, comes.0.checked_sub(period.0)) {
        (Some(since), Some(passed)) => arm.seek == Time::ZERO && passed + 2 >= since.0,
        _ => false,
    }
}

impl Drive {
    /// A drive at rest at cylinder 0, head 0.
    pub fn new(mechanics: Mechanics, rotation: Rotation) -> Self {
        Self {
            mechanics,
            rotation,
            cylinder: 0,
            head: 0,
            last: None,
            busy: Busy::default(),
            what_if: WhatIf::default(),
        }
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
    pub fn rotation(&self) -> &Rotation {
        &self.rotation
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

    /// The number of the sector slot under the heads.
    pub fn slot_under_head(&self, now: Time) -> u32 {
        let slots = self.mechanics.geometry.division(self.cylinder);
        self.rotation.slot_at(now, slots)
    }

    /// Moves the arm to a cylinder; how long that takes.
    pub fn seek(&mut self, cylinder: u32, write: bool) -> Move {
        let arm = self.way(cylinder, self.head, write);
        self.cylinder = cylinder;
        self.busy.positioning += arm.total();
        arm
    }

    /// From `now` until the start of a slot of the present cylinder's tracks
    /// comes by.
    pub fn until_slot(&self, now: Time, slot: u32) -> Time {
        let slots = self.mechanics.geometry.division(self.cylinder);
        self.rotation.until(now, Angle::of_slot(slot, slots))
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
        let passage = self.passage(now, sector, count, write);
        self.busy.book(&passage);
        self.busy.bytes += self.bytes(count);
        self.busy.transfers += 1;
        self.last = Some(Commanded {
            at: now,
            sector,
            count,
            write,
            cylinder,
            head,
            ends: now + passage.total(),
            crosses: passage.crosses(),
        });
        passage
    }

    /// Turns the platter back to where a sector that has been missed is under
    /// the head when the arm is there.
    fn turn_back_to(&mut self, now: Time, sector: u64, write: bool, since: Option<Time>) {
        let place = self.mechanics.geometry.locate(sector);
        let arm = self.way(place.cylinder, place.head, write);
        let arrived = now + arm.total();
        let slots = self.mechanics.geometry.division(place.cylinder);
        let slot = Angle::of_slot(place.slot, slots);
        let comes = arrived + self.rotation.until(arrived, slot);
        if was_missed(since, self.rotation.period(), comes, arm) {
            self.rotation = self.rotation.turned_to(arrived, slot);
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
        let missed = was_missed(since, self.rotation.period(), arrived + wait, arm);
        if self.what_if.no_rotational_latency || (self.what_if.deadlines_met && missed) {
            let slots = self.mechanics.geometry.division(self.cylinder);
            let target = Angle::of_slot(slot, slots);
            self.rotation = self.rotation.turned_to(arrived, target);
            return Time::ZERO;
        }
        wait
    }

    fn bytes(&self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.mechanics.geometry.sector_bytes())
    }

    fn passage(&mut self, now: Time, sector: u64, count: u32, write: bool) -> Passage {
        self.passage_by_legs(now, (sector, count), write, |_| ())
    }

    /// The same; tells of each leg.
    #[inline]
    fn passage_by_legs(
        &mut self,
        now: Time,
        (sector, count): (u64, u32),
        write: bool,
        mut tell: impl FnMut(Leg),
    ) -> Passage {
        let place = self.mechanics.geometry.locate(sector);
        let to_track = self.way(place.cylinder, place.head, write);
        let arrived = now + to_track.total();
        let slots = self.mechanics.geometry.division(place.cylinder);
        let first = Angle::of_slot(place.slot, slots);
        let latency = self.wait(arrived, first);
        self.cylinder = place.cylinder;
        self.head = place.head;
        let mut passage = Passage {
            to_track,
            latency,
            between: STILL,
            between_latency: Time::ZERO,
            transfer: Time::ZERO,
        };
        if place.contiguous >= count {
            tell(Leg::Run {
                begins: arrived + latency,
                sectors: count,
                slots,
            });
            passage.transfer = self.rotation.slots(count, slots);
        } else {
            self.further(
                arrived + latency,
                (sector, count),
                place,
                write,
                &mut passage,
                tell,
            );
        }
        passage
    }

    /// A transfer sector by sector: over interleaved and slipped sectors, and
    /// over the ends of tracks and cylinders.
    fn further(
        &mut self,
        start: Time,
        (sector, count): (u64, u32),
        first: Place,
        write: bool,
        passage: &mut Passage,
        mut tell: impl FnMut(Leg),
    ) {
        let mut at = start;
        let mut place = first;
        let mut done = 0;
        loop {
            let run = place.contiguous.min(count - done);
            let slots = self.mechanics.geometry.division(place.cylinder);
            let span = self.rotation.slots(run, slots);
            tell(Leg::Run {
                begins: at,
                sectors: run,
                slots,
            });
            passage.transfer += span;
            at += span;
            done += run;
            if done == count {
                return;
            }
            let end = Angle::after_slot(place.slot + run - 1, slots);
            let next = self.mechanics.geometry.locate(sector + u64::from(done));
            let arm = self.way(next.cylinder, next.head, write);
            let next_slots = self.mechanics.geometry.division(next.cylinder);
            let target = Angle::of_slot(next.slot, next_slots);
            let same_track =
                arm == STILL && next.cylinder == place.cylinder && next.head == place.head;
            let wait = if !same_track && self.what_if.no_rotational_latency {
                self.wait(at + arm.total(), target)
            } else if arm == STILL {
                // Reckoned from angle to angle: the sector that follows at
                // once is not missed by the fraction of a nanosecond.
                self.rotation.between(end, target)
            } else {
                self.rotation.until(at + arm.total(), target)
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
            at += arm.total() + wait;
            self.cylinder = next.cylinder;
            self.head = next.head;
            place = next;
        }
    }

    /// From `now` until an angle comes by; the platter is turned there at once
    /// where nothing is to be waited for.
    fn wait(&mut self, now: Time, angle: Angle) -> Time {
        if self.what_if.no_rotational_latency {
            self.rotation = self.rotation.turned_to(now, angle);
            return Time::ZERO;
        }
        self.rotation.until(now, angle)
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

impl Drive {
    /// When each sector of the last transfer has passed, or will, if nothing
    /// stops it.
    ///
    /// # Panics
    ///
    /// When there was none.
    pub fn sectors_pass(&mut self) -> Vec<Time> {
        self.sectors_pass_after(0)
    }

    /// The same, without the first so many sectors.
    ///
    /// # Panics
    ///
    /// When there was none.
    pub fn sectors_pass_after(&mut self, first: u32) -> Vec<Time> {
        let last = self.last.expect("a transfer was commanded");
        let after = (self.cylinder, self.head);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        let rotation = self.rotation;
        let mut before = 0;
        let mut pass = Vec::with_capacity(last.count.saturating_sub(first) as usize);
        let all = (last.sector, last.count);
        self.passage_by_legs(last.at, all, last.write, |leg| {
            let Leg::Run {
                begins,
                sectors,
                slots,
            } = leg
            else {
                return;
            };
            let wanted = first.saturating_sub(before).min(sectors) + 1..=sectors;
            pass.extend(wanted.map(|count| begins + rotation.slots(count, slots)));
            before += sectors;
        });
        (self.cylinder, self.head) = after;
        pass
    }

    /// Tells what the last transfer does from its first sector on, if nothing
    /// stops it: each stage and when it ends. Nothing of a transfer that stays
    /// on its track.
    pub fn tell_stages(&mut self, mut tell: impl FnMut(Stage, Time)) {
        let Some(last) = self.last.filter(|last| last.crosses) else {
            return;
        };
        let (after, turned) = ((self.cylinder, self.head), self.rotation);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        let all = (last.sector, last.count);
        let rotation = self.rotation;
        self.passage_by_legs(last.at, all, last.write, |leg| match leg {
            Leg::Run {
                begins,
                sectors,
                slots,
            } => tell(
                Stage::MediaTransfer,
                begins + rotation.slots(sectors, slots),
            ),
            Leg::Between {
                begins,
                arm,
                wait,
                same_track,
            } => {
                let mut at = begins;
                for (stage, span) in arm.stages() {
                    at += span;
                    tell(stage, at);
                }
                let waits = match same_track {
                    true => Stage::MediaTransfer,
                    false => Stage::RotationalLatency,
                };
                tell(waits, at + wait);
            }
        });
        (self.cylinder, self.head) = after;
        self.rotation = turned;
    }

    /// The first `count` sectors of a transfer, from where the drive was when
    /// it was commanded; it is where they end afterwards.
    fn first_part(&mut self, of: Commanded, count: u32) -> Passage {
        (self.cylinder, self.head) = (of.cylinder, of.head);
        self.passage(of.at, of.sector, count, of.write)
    }

    /// The transfer under way ended at `now`, before its last sector; the
    /// drive is where it was then, and was busy for no longer.
    ///
    /// # Panics
    ///
    /// When none is under way.
    pub fn cut_short(&mut self, now: Time) {
        let last = self.last.expect("a transfer is under way");
        assert!(now <= last.ends, "a transfer that has ended was cut short");
        let pass = self.sectors_pass();
        let all = self.first_part(last, last.count);
        // One has passed in any case.
        let done = pass.partition_point(|passes| *passes <= now).max(1) as u32;
        let passed = self.first_part(last, done);
        self.busy.unbook(&all);
        self.busy.book(&passed);
        // What passed of the sector after them, or of the way to it.
        let more = now.0.saturating_sub((last.at + passed.total()).0);
        let slot = self
            .rotation
            .slots(1, self.mechanics.geometry.division(self.cylinder));
        if more <= slot.0 {
            self.busy.transfer += Time(more);
        } else {
            self.busy.latency += Time(more);
        }
        self.busy.bytes -= self.bytes(last.count - done);
        self.last = Some(Commanded { ends: now, ..last });
    }
}

impl Busy {
    #[inline]
    fn book(&mut self, passage: &Passage) {
        self.positioning += passage.to_track.total() + passage.between.total();
        self.latency += passage.latency + passage.between_latency;
        self.transfer += passage.transfer;
    }

    fn unbook(&mut self, passage: &Passage) {
        self.positioning = self.positioning - (passage.to_track.total() + passage.between.total());
        self.latency = self.latency - (passage.latency + passage.between_latency);
        self.transfer = self.transfer - passage.transfer;
    }
}
