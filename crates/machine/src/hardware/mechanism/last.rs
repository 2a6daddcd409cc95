//! Evaluation of a drive's last transfer: the time when each sector passes, the stages, and the
//! part that remains when an event ends the transfer early.

use super::passage::{TransferLeg, TransferTimes};
use super::{CommandedTransfer, Mechanism, TransferRun};
use diskperf_sim::Time;
use diskperf_timeline::Stage;

impl CommandedTransfer {
    fn crosses_tracks(&self) -> bool {
        self.computed_times
            .is_some_and(|(times, _)| times.crosses_tracks())
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
        let last = self
            .last_commanded_transfer
            .expect("a transfer was commanded");
        let after = (self.cylinder, self.head);
        let mut end_times =
            Vec::with_capacity(last.transfer_sectors.saturating_sub(first) as usize);
        self.evaluate_sectors_after(last, first, &mut end_times);
        (self.cylinder, self.head) = after;
        end_times
    }

    /// Evaluates a transfer from its last run on, or from its start if the sectors from `first` on
    /// begin before that run. Adds the time when each of these sectors has passed to `end_times`.
    pub(super) fn evaluate_sectors_after(
        &mut self,
        transfer: CommandedTransfer,
        first: u32,
        end_times: &mut Vec<Time>,
    ) -> (TransferTimes, TransferRun) {
        let run = transfer.computed_times.map(|(_, run)| run);
        let run = run.filter(|run| {
            run.sectors_before <= first && run.sectors_before < transfer.transfer_sectors
        });
        let mut before = run.map_or(0, |run| run.sectors_before);
        let note = |leg: TransferLeg<'_>| {
            let TransferLeg::SectorRun { run, sectors } = leg else {
                return;
            };
            let wanted = first.saturating_sub(before).min(sectors) + 1..=sectors;
            end_times.extend(wanted.map(|count| run.run_start + run.passing_time(count)));
            before += sectors;
        };
        let sectors = (transfer.sector, transfer.transfer_sectors);
        match run {
            Some(run) => self.compute_transfer_from(run, sectors, transfer.is_write, note),
            None => {
                (self.cylinder, self.head) = (transfer.cylinder, transfer.head);
                self.compute_transfer(transfer.commanded_time, sectors, transfer.is_write, note)
            }
        }
    }

    /// Passes each stage of the last transfer from its first sector on to `visit`, with its end, as
    /// if nothing interrupts the transfer. Only stages that end after `from` are certain to be
    /// included. A transfer within a track has no stages to report.
    pub fn for_each_transfer_stage(&mut self, from: Time, mut visit: impl FnMut(Stage, Time)) {
        let Some(last) = self
            .last_commanded_transfer
            .filter(CommandedTransfer::crosses_tracks)
        else {
            return;
        };
        let (after, turned) = ((self.cylinder, self.head), self.spindle);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        let all = (last.sector, last.transfer_sectors);
        let mut reached = None;
        let visit = |leg: TransferLeg<'_>| match leg {
            TransferLeg::SectorRun { run, sectors } => {
                if run.run_start <= from {
                    reached = Some(*run);
                }
                visit(
                    Stage::MediaTransfer,
                    run.run_start + run.passing_time(sectors),
                );
            }
            TransferLeg::TrackSwitch {
                starts_at,
                arm,
                wait,
                same_track,
            } => {
                let mut at = starts_at;
                for (stage, span) in arm.stage_times() {
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
            (reported_run.0, reported_run.1) == (last.commanded_time, last.sector)
        });
        let runs = [
            last.computed_times.map(|(_, run)| run),
            reported_run.map(|reported_run| reported_run.2),
        ];
        let known = runs.into_iter().flatten().find(|run| run.run_start <= from);
        match known {
            Some(run) => self.compute_transfer_from(run, all, last.is_write, visit),
            None => self.compute_transfer(last.commanded_time, all, last.is_write, visit),
        };
        let reached = reached.map(|run| (last.commanded_time, last.sector, run));
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
        self.compute_transfer(transfer.commanded_time, all, transfer.is_write, |_| ())
            .0
    }

    pub(super) fn evaluate_all_sectors(&mut self, transfer: CommandedTransfer) -> TransferTimes {
        match transfer.computed_times {
            Some((times, _)) => times,
            None => self.evaluate_first_sectors(transfer, transfer.transfer_sectors),
        }
    }

    /// Ends the transfer in progress at `now`, before its last sector. The drive stays at its
    /// current position, and its busy time ends now.
    ///
    /// # Panics
    ///
    /// If no transfer is in progress.
    pub fn truncate_last_transfer(&mut self, now: Time) {
        let last = self
            .last_commanded_transfer
            .expect("a transfer is under way");
        assert!(
            now <= last.transfer_end,
            "a transfer that has ended was cut short"
        );
        let end_times = self.sector_end_times();
        let all = self.evaluate_all_sectors(last);
        // One has passed in any case.
        let done = end_times.partition_point(|passes| *passes <= now).max(1) as u32;
        let passed = self.evaluate_first_sectors(last, done);
        all.subtract_from_busy(&mut self.busy_times);
        passed.add_to_busy(&mut self.busy_times);
        // What passed of the sector after them, or of the way to it.
        let more = now
            .0
            .saturating_sub((last.commanded_time + passed.total_time()).0);
        let slot = self.time_of_slots(self.cylinder, 1);
        if more <= slot.0 {
            self.busy_times.transfer_time += Time(more);
        } else {
            self.busy_times.rotational_latency_time += Time(more);
        }
        self.busy_times.transferred_bytes -= self.bytes_of_sectors(last.transfer_sectors - done);
        self.last_operation_duration = now - last.commanded_time;
        self.last_commanded_transfer = Some(CommandedTransfer {
            transfer_end: now,
            ..last
        });
    }
}
