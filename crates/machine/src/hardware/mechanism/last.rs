//! Evaluation of a drive's last transfer: the time when each sector passes, the stages, and the
//! part that remains when an event ends the transfer early.

use super::passage::{Leg, Passage};
use super::{Commanded, LastRun, Mechanism};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

impl Commanded {
    fn crosses(&self) -> bool {
        self.passage.is_some_and(|(passage, _)| passage.crosses())
    }
}

impl Mechanism {
    /// Returns the time when each sector of the last transfer has passed or will pass without
    /// interruption.
    ///
    /// # Panics
    ///
    /// If there was no transfer.
    pub fn sectors_pass(&mut self) -> Vec<Time> {
        self.sectors_pass_after(0)
    }

    /// Returns the times of [`Mechanism::sectors_pass`] without the first `first` sectors.
    ///
    /// # Panics
    ///
    /// If there was no transfer.
    pub fn sectors_pass_after(&mut self, first: u32) -> Vec<Time> {
        let last = self.last.expect("a transfer was commanded");
        let after = (self.cylinder, self.head);
        let mut pass = Vec::with_capacity(last.count.saturating_sub(first) as usize);
        self.pass_after(last, first, &mut pass);
        (self.cylinder, self.head) = after;
        pass
    }

    /// Evaluates a transfer from its last run on, or from its start if the sectors from `first` on
    /// begin before that run. Adds the time when each of these sectors has passed to `pass`.
    pub(super) fn pass_after(
        &mut self,
        of: Commanded,
        first: u32,
        pass: &mut Vec<Time>,
    ) -> (Passage, LastRun) {
        let run = of.passage.map(|(_, run)| run);
        let run = run.filter(|run| run.before <= first && run.before < of.count);
        let mut before = run.map_or(0, |run| run.before);
        let note = |leg: Leg<'_>| {
            let Leg::Run { run, sectors } = leg else {
                return;
            };
            let wanted = first.saturating_sub(before).min(sectors) + 1..=sectors;
            pass.extend(wanted.map(|count| run.begins + run.passing(count)));
            before += sectors;
        };
        let sectors = (of.sector, of.count);
        match run {
            Some(run) => self.passage_from(run, sectors, of.write, note),
            None => {
                (self.cylinder, self.head) = (of.cylinder, of.head);
                self.passage(of.at, sectors, of.write, note)
            }
        }
    }

    /// Passes each stage of the last transfer from its first sector on to `tell`, with its end, as
    /// if nothing interrupts the transfer. Only stages that end after `from` are certain to be
    /// included. A transfer within a track has no stages to report.
    pub fn tell_stages(&mut self, from: Time, mut tell: impl FnMut(Stage, Time)) {
        let Some(last) = self.last.filter(Commanded::crosses) else {
            return;
        };
        let (after, turned) = ((self.cylinder, self.head), self.spindle);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        let all = (last.sector, last.count);
        let mut reached = None;
        let tell = |leg: Leg<'_>| match leg {
            Leg::Run { run, sectors } => {
                if run.begins <= from {
                    reached = Some(*run);
                }
                tell(Stage::MediaTransfer, run.begins + run.passing(sectors));
            }
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
        };
        let told = self
            .told
            .filter(|told| (told.0, told.1) == (last.at, last.sector));
        let runs = [last.passage.map(|(_, run)| run), told.map(|told| told.2)];
        let known = runs.into_iter().flatten().find(|run| run.begins <= from);
        match known {
            Some(run) => self.passage_from(run, all, last.write, tell),
            None => self.passage(last.at, all, last.write, tell),
        };
        let reached = reached.map(|run| (last.at, last.sector, run));
        self.told = reached.or(self.told);
        (self.cylinder, self.head) = after;
        self.spindle = turned;
    }

    /// Evaluates the first `count` sectors of a transfer, from the drive's position when it was
    /// commanded. Afterwards, the drive is at the end of these sectors.
    pub(super) fn first_part(&mut self, of: Commanded, count: u32) -> Passage {
        (self.cylinder, self.head) = (of.cylinder, of.head);
        let all = (of.sector, count);
        self.passage(of.at, all, of.write, |_| ()).0
    }

    /// Returns the times of a whole transfer, from its command to its last sector.
    pub(super) fn whole(&mut self, of: Commanded) -> Passage {
        match of.passage {
            Some((passage, _)) => passage,
            None => self.first_part(of, of.count),
        }
    }

    /// Ends the transfer in progress at `now`, before its last sector. The drive stays at its
    /// current position, and its busy time ends now.
    ///
    /// # Panics
    ///
    /// If no transfer is in progress.
    pub fn cut_short(&mut self, now: Time) {
        let last = self.last.expect("a transfer is under way");
        assert!(now <= last.ends, "a transfer that has ended was cut short");
        let pass = self.sectors_pass();
        let all = self.whole(last);
        // One has passed in any case.
        let done = pass.partition_point(|passes| *passes <= now).max(1) as u32;
        let passed = self.first_part(last, done);
        all.unbook(&mut self.busy);
        passed.book(&mut self.busy);
        // What passed of the sector after them, or of the way to it.
        let more = now.0.saturating_sub((last.at + passed.total()).0);
        let slot = self.slots_time(self.cylinder, 1);
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
