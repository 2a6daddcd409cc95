//! A drive's last transfer, looked at again: when each of its sectors passes, what
//! it does on its way, and what is left of it when something ends it early.

use super::passage::{Leg, Passage};
use super::{Commanded, Mechanism};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

impl Mechanism {
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
    pub(super) fn first_part(&mut self, of: Commanded, count: u32) -> Passage {
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
        self.booked_last = now - last.at;
        self.last = Some(Commanded { ends: now, ..last });
    }
}
