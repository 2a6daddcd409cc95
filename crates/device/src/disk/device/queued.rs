//! Queue of commands that wait for the actuator.

use super::*;

/// Command that waits for the actuator.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedCommand {
    pub(super) id: RequestId,
    /// Leading medium sectors of the command that the buffer already holds.
    pub(super) cached_sectors: u64,
    /// End (exclusive) of the command's medium sectors.
    pub(super) end_sector: u64,
    /// Time at which a write's data begin to cross the link.
    pub(super) bus_end: Time,
    /// Earliest time at which the command's data are ready: buffered data for the link, or written
    /// data for the medium.
    pub(super) ready_at: Time,
    /// Position of the first sector to access; `None` where it may still change, as on a shingled
    /// disk.
    pub(super) first_run: Option<SectorRun>,
}

impl Disk {
    pub(super) fn take_sequence_number(&mut self) -> u64 {
        self.next_sequence_number += 1;
        self.next_sequence_number - 1
    }

    /// Queues a command for the actuator. The buffer already holds the first `held` medium sectors.
    /// The data can be transferred from `ready` on; a write's data get the link at `bus`.
    pub(super) fn enqueue(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (id, held): (RequestId, u64),
        (bus, ready): (Time, Time),
    ) {
        let request = &requests[id];
        let sector = self.medium_sectors.round_down(request.sector) + held;
        let end = self.medium_sectors.round_up(request.end());
        let write = request.operation != Operation::Read;
        let number = self.take_sequence_number();
        // What is in a media cache may be elsewhere by the time that it is read.
        let run = match self.shingles {
            None => Some(self.mechanism.layout().run_at(sector)),
            Some(_) => None,
        };
        let queued = QueuedCommand {
            id,
            cached_sectors: held,
            end_sector: end,
            bus_end: bus,
            ready_at: ready,
            first_run: run,
        };
        if self.has_no_media_work() {
            let free = self.interrupt_read_ahead(now);
            self.start_command(free, requests, (sector, &queued));
            return;
        }
        let waiting = WaitingCommand {
            sector,
            position: run.map_or_else(|| self.locate_sector(sector), |run| run.position),
            is_write: write,
            arrival: now,
            sequence_number: number,
        };
        if self.overlaps_earlier(&waiting) {
            self.continuing_commands.push((waiting, queued));
            return;
        }
        self.queued_views.push(waiting);
        self.queued_commands.push(queued);
        self.start_media_work(now, requests);
    }

    /// Tests whether a pending command for the directly preceding sectors exists. Firmware treats
    /// the two as one: a policy by position that served the later one first would leave the other
    /// behind, because the stream's next command is always nearer.
    fn overlaps_earlier(&self, waiting: &WaitingCommand) -> bool {
        let before = |(of, queued): (&WaitingCommand, &QueuedCommand)| {
            queued.end_sector == waiting.sector && of.is_write == waiting.is_write
        };
        let mut queue = self.queued_views.iter().zip(&self.queued_commands);
        queue.any(before)
            || self
                .continuing_commands
                .iter()
                .any(|(of, queued)| before((of, queued)))
    }

    /// Moves the commands that continue the sectors of a served command, which end at `end`, into
    /// the actuator's queue.
    pub(super) fn release_continuing(&mut self, write: bool, end: u64) {
        let mut at = 0;
        while let Some((waiting, _)) = self.continuing_commands.get(at) {
            if waiting.sector != end || waiting.is_write != write {
                at += 1;
                continue;
            }
            let (waiting, queued) = self.continuing_commands.remove(at);
            self.queued_views.push(waiting);
            self.queued_commands.push(queued);
        }
    }
}
