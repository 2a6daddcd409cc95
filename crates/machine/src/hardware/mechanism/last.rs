//! Evaluation of a drive's last transfer: the time when each sector passes, the stages, and the
//! part that remains when an event ends the transfer early.

use super::passage::{TransferLeg, TransferTimes};
use super::{CommandedTransfer, Mechanism, TransferRun};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

impl CommandedTransfer {
    fn crosses_tracks(&self) -> bool {
        self.times.is_some_and(|(times, _)| times.crosses_tracks())
    }
}

impl Mechanism {
    /// Returns the time when each sector of the last transfer has passed or will pass without
    /// interruption.
    ///
    /// # Panics
    ///
    /// If there was no transfer.
    pub fn sector_end_times(&mut self) -> Vec<Time> {
        self.sector_end_times_after(0)
    }

    /// Returns the times of [`Mechanism::sector_end_times`] without the first `first` sectors.
    ///
    /// # Panics
    ///
    /// If there was no transfer.
    pub fn sector_end_times_after(&mut self, first: u32) -> Vec<Time> {
        let last = self.last.expect("a transfer was commanded");
        let after = (self.cylinder, self.head);
        let mut end_times = Vec::with_capacity(last.count.saturating_sub(first) as usize);
        self.evaluate_after(last, first, &mut end_times);
        (self.cylinder, self.head) = after;
        end_times
    }

    /// Evaluates a transfer from its last run on, or from its start if the sectors from `first` on
    /// begin before that run. Adds the time when each of these sectors has passed to `end_times`.
    pub(super) fn evaluate_after(
        &mut self,
        transfer: CommandedTransfer,
        first: u32,
        end_times: &mut Vec<Time>,
    ) -> (TransferTimes, TransferRun) {
        let run = transfer.times.map(|(_, run)| run);
        let run =
            run.filter(|run| run.sectors_before <= first && run.sectors_before < transfer.count);
        let mut before = run.map_or(0, |run| run.sectors_before);
        let note = |leg: TransferLeg<'_>| {
            let TransferLeg::Run { run, sectors } = leg else {
                return;
            };
            let wanted = first.saturating_sub(before).min(sectors) + 1..=sectors;
            end_times.extend(wanted.map(|count| run.starts_at + run.passing_time(count)));
            before += sectors;
        };
        let sectors = (transfer.sector, transfer.count);
        match run {
            Some(run) => self.compute_transfer_from(run, sectors, transfer.write, note),
            None => {
                (self.cylinder, self.head) = (transfer.cylinder, transfer.head);
                self.compute_transfer(transfer.commanded_at, sectors, transfer.write, note)
            }
        }
    }

    /// Passes each stage of the last transfer from its first sector on to `visit`, with its end, as
    /// if nothing interrupts the transfer. Only stages that end after `from` are certain to be
    /// included. A transfer within a track has no stages to report.
    pub fn for_each_stage(&mut self, from: Time, mut visit: impl FnMut(Stage, Time)) {
        let Some(last) = self.last.filter(CommandedTransfer::crosses_tracks) else {
            return;
        };
        let (after, turned) = ((self.cylinder, self.head), self.spindle);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        let all = (last.sector, last.count);
        let mut reached = None;
        let visit = |leg: TransferLeg<'_>| match leg {
            TransferLeg::Run { run, sectors } => {
                if run.starts_at <= from {
                    reached = Some(*run);
                }
                visit(
                    Stage::MediaTransfer,
                    run.starts_at + run.passing_time(sectors),
                );
            }
            TransferLeg::Between {
                starts_at,
                arm,
                wait,
                same_track,
            } => {
                let mut at = starts_at;
                for (stage, span) in arm.stages() {
                    at += span;
                    visit(stage, at);
                }
                let waits = match same_track {
                    true => Stage::MediaTransfer,
                    false => Stage::RotationalLatency,
                };
                visit(waits, at + wait);
            }
        };
        let reported_run = self.reported_run.filter(|reported_run| {
            (reported_run.0, reported_run.1) == (last.commanded_at, last.sector)
        });
        let runs = [
            last.times.map(|(_, run)| run),
            reported_run.map(|reported_run| reported_run.2),
        ];
        let known = runs.into_iter().flatten().find(|run| run.starts_at <= from);
        match known {
            Some(run) => self.compute_transfer_from(run, all, last.write, visit),
            None => self.compute_transfer(last.commanded_at, all, last.write, visit),
        };
        let reached = reached.map(|run| (last.commanded_at, last.sector, run));
        self.reported_run = reached.or(self.reported_run);
        (self.cylinder, self.head) = after;
        self.spindle = turned;
    }

    /// Evaluates the first `count` sectors of a transfer, from the drive's position when it was
    /// commanded. Afterwards, the drive is at the end of these sectors.
    pub(super) fn evaluate_first_sectors(
        &mut self,
        transfer: CommandedTransfer,
        count: u32,
    ) -> TransferTimes {
        (self.cylinder, self.head) = (transfer.cylinder, transfer.head);
        let all = (transfer.sector, count);
        self.compute_transfer(transfer.commanded_at, all, transfer.write, |_| ())
            .0
    }

    /// Returns the times of a whole transfer, from its command to its last sector.
    pub(super) fn evaluate_all_sectors(&mut self, transfer: CommandedTransfer) -> TransferTimes {
        match transfer.times {
            Some((times, _)) => times,
            None => self.evaluate_first_sectors(transfer, transfer.count),
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
        assert!(
            now <= last.ends_at,
            "a transfer that has ended was cut short"
        );
        let end_times = self.sector_end_times();
        let all = self.evaluate_all_sectors(last);
        // One has passed in any case.
        let done = end_times.partition_point(|passes| *passes <= now).max(1) as u32;
        let passed = self.evaluate_first_sectors(last, done);
        all.unbook(&mut self.busy);
        passed.book(&mut self.busy);
        // What passed of the sector after them, or of the way to it.
        let more = now.0.saturating_sub((last.commanded_at + passed.total()).0);
        let slot = self.slots_time(self.cylinder, 1);
        if more <= slot.0 {
            self.busy.transfer_time += Time(more);
        } else {
            self.busy.rotational_latency_time += Time(more);
        }
        self.busy.transferred_bytes -= self.bytes(last.count - done);
        self.last_operation_time = now - last.commanded_at;
        self.last = Some(CommandedTransfer {
            ends_at: now,
            ..last
        });
    }
}
