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

use diskperf_sim::Time;

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
        }
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
        let (cylinder, head) = (self.cylinder, self.head);
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
        });
        passage
    }

    fn bytes(&self, count: u32) -> u64 {
        u64::from(count) * u64::from(self.mechanics.geometry.sector_bytes())
    }

    fn passage(&mut self, now: Time, sector: u64, count: u32, write: bool) -> Passage {
        self.passage_by_runs(now, (sector, count), write, |_, _, _| ())
    }

    /// The same; told of each run of sectors that lie side by side: when it
    /// begins, its sectors, and the slots of its track.
    #[inline]
    fn passage_by_runs(
        &mut self,
        now: Time,
        (sector, count): (u64, u32),
        write: bool,
        mut run: impl FnMut(Time, u32, Slots),
    ) -> Passage {
        let place = self.mechanics.geometry.locate(sector);
        let to_track = self.way(place.cylinder, place.head, write);
        let arrived = now + to_track.total();
        let slots = self.mechanics.geometry.division(place.cylinder);
        let first = Angle::of_slot(place.slot, slots);
        let latency = self.rotation.until(arrived, first);
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
            run(arrived + latency, count, slots);
            passage.transfer = self.rotation.slots(count, slots);
        } else {
            self.further(
                arrived + latency,
                (sector, count),
                place,
                write,
                &mut passage,
                run,
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
        mut each: impl FnMut(Time, u32, Slots),
    ) {
        let mut at = start;
        let mut place = first;
        let mut done = 0;
        loop {
            let run = place.contiguous.min(count - done);
            let slots = self.mechanics.geometry.division(place.cylinder);
            let span = self.rotation.slots(run, slots);
            each(at, run, slots);
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
            let wait = if arm == STILL {
                // Reckoned from angle to angle: the sector that follows at
                // once is not missed by the fraction of a nanosecond.
                self.rotation.between(end, target)
            } else {
                self.rotation.until(at + arm.total(), target)
            };
            passage.between.seek += arm.seek;
            passage.between.settle += arm.settle;
            passage.between.write_settle += arm.write_settle;
            passage.between.head_switch += arm.head_switch;
            if arm == STILL && next.cylinder == place.cylinder && next.head == place.head {
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

    fn way(&self, cylinder: u32, head: u32, write: bool) -> Move {
        let distance = self.cylinder.abs_diff(cylinder);
        if distance > 0 {
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
        self.passage_by_runs(last.at, all, last.write, |begins, run, slots| {
            let wanted = first.saturating_sub(before).min(run) + 1..=run;
            pass.extend(wanted.map(|count| begins + rotation.slots(count, slots)));
            before += run;
        });
        (self.cylinder, self.head) = after;
        pass
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
