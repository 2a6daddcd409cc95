//! Reads that go on for as long as a controller likes: transfers that grow and
//! shrink while they are under way, and whole tracks from whatever sector
//! comes first.

use super::passage::STILL;
use super::{Angle, Commanded, Mechanism, Move, Place};
use diskperf_sim::Time;

/// A track that is being read from the sector that came first.
#[derive(Clone, Debug)]
pub struct TrackRead {
    /// The arm's way to it.
    pub to_track: Move,
    /// When the first sector begins to pass.
    pub begins: Time,
    /// Each sector of the track and when it has passed, in that order.
    pub sectors: Vec<(u64, Time)>,
}

/// What follows another transfer at once begins where that one ended, to the
/// nanosecond, and must not miss its slot by the fraction that rounding took.
const ROUNDING: Time = Time(1_000);

impl Mechanism {
    /// When to command, at the latest, what is to follow the last transfer
    /// without losing a revolution.
    pub fn just_in_time(&self, now: Time) -> Time {
        match self.last_transfer() == Some(now) {
            true => Time(now.0.saturating_sub(ROUNDING.0)),
            false => now,
        }
    }

    /// Makes the transfer under way longer, `count` sectors in all; when each of the new
    /// ones will have passed.
    ///
    /// # Panics
    ///
    /// When there was none.
    pub fn lengthen(&mut self, count: u32) -> Vec<Time> {
        let last = self.last.expect("a transfer was commanded");
        let old = self.whole(last);
        let longer = Commanded { count, ..last };
        let mut pass = Vec::with_capacity(count.saturating_sub(last.count) as usize);
        let (new, run) = self.pass_after(longer, last.count, &mut pass);
        old.unbook(&mut self.busy);
        new.book(&mut self.busy);
        self.busy.bytes = self.busy.bytes + self.bytes(count) - self.bytes(last.count);
        self.booked_last = new.total();
        self.last = Some(Commanded {
            ends: last.at + new.total(),
            passage: Some((new, run)),
            ..longer
        });
        pass
    }

    /// Reads the whole track that a sector is on, from the first sector that
    /// comes by.
    pub fn read_track(&mut self, now: Time, sector: u64) -> TrackRead {
        let place = self.mechanics.geometry.locate(sector);
        let to_track = self.way(place.cylinder, place.head, false);
        let arrived = now + to_track.total();
        let from = match to_track == STILL {
            true => Time(arrived.0.saturating_sub(ROUNDING.0)),
            false => arrived,
        };
        let slots = self.mechanics.geometry.division(place.cylinder);
        let angle = self.rotation.angle(from);
        let mut sectors = Vec::with_capacity(slots.count() as usize);
        self.track_of(sector, |sector, slot| {
            let wait = self.rotation.between(angle, Angle::of_slot(slot, slots));
            sectors.push((sector, from + wait));
        });
        in_order_of_passing(&mut sectors);
        let begins = sectors.first().map_or(arrived, |(_, begins)| *begins);
        let slot = self.rotation.slots(1, slots);
        for (_, passes) in &mut sectors {
            *passes += slot;
        }
        let ends = sectors.last().map_or(arrived, |(_, passes)| *passes);
        self.cylinder = place.cylinder;
        self.head = place.head;
        self.busy.positioning += to_track.total();
        self.busy.latency += Time(begins.0.saturating_sub(arrived.0));
        self.busy.transfer += ends - begins;
        self.busy.bytes += self.bytes(sectors.len() as u32);
        self.busy.transfers += 1;
        self.booked_last = ends - now;
        self.last = Some(Commanded {
            at: now,
            sector,
            count: sectors.len() as u32,
            write: false,
            cylinder: place.cylinder,
            head: place.head,
            ends,
            passage: None,
        });
        TrackRead {
            to_track,
            begins,
            sectors,
        }
    }

    /// Tells of the sectors that are on the same track as this one and follow each other
    /// up to it and from it on, each with its slot.
    fn track_of(&self, sector: u64, mut tell: impl FnMut(u64, u32)) {
        let geometry = &self.mechanics.geometry;
        let track = geometry.locate(sector);
        let on_track = |place: &Place| (place.cylinder, place.head) == (track.cylinder, track.head);
        let before = (0..sector).rev();
        let mut next = before
            .take_while(|sector| on_track(&geometry.locate(*sector)))
            .last()
            .unwrap_or(sector);
        while next < geometry.sectors() {
            let place = geometry.locate(next);
            if !on_track(&place) {
                return;
            }
            let slots = (place.slot..place.slots).chain(0..place.slot);
            for (step, slot) in (0..place.contiguous).zip(slots) {
                tell(next + u64::from(step), slot);
            }
            next += u64::from(place.contiguous);
        }
    }
}

/// Puts sectors of a track in the order in which they begin to pass, of equals the lower
/// first. They nearly always have it, but for where they start.
fn in_order_of_passing(sectors: &mut [(u64, Time)]) {
    let key = |(sector, begins): &(u64, Time)| (*begins, *sector);
    let numbered = sectors.iter().enumerate();
    let first = numbered.min_by_key(|(_, one)| key(one));
    if let Some((first, _)) = first {
        sectors.rotate_left(first);
    }
    if !sectors.is_sorted_by_key(key) {
        sectors.sort_unstable_by_key(key);
    }
}
