//! Queue of commands that wait for the actuator.

use super::*;

/// Command that waits for the actuator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) id: RequestId,
    /// Leading medium sectors of the command that the buffer already holds.
    pub(super) held: u64,
    /// End (exclusive) of the command's medium sectors.
    pub(super) end: u64,
    /// Time at which a write's data begin to cross the link.
    pub(super) bus: Time,
    /// Earliest time at which the command's data are ready: buffered data for the link, or written
    /// data for the medium.
    pub(super) ready: Time,
    /// Position of the first sector to access; `None` where it may still change, as on a shingled
    /// disk.
    pub(super) run: Option<Run>,
}

impl Disk {
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
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
        let sector = self.per_medium.down(request.sector) + held;
        let end = self.per_medium.up(request.end());
        let write = request.operation != Operation::Read;
        let number = self.number();
        // What is in a media cache may be elsewhere by the time that it is read.
        let run = match self.shingles {
            None => Some(self.mechanism.layout().run(sector)),
            Some(_) => None,
        };
        let queued = Queued {
            id,
            held,
            end,
            bus,
            ready,
            run,
        };
        if self.has_nothing_to_do() {
            let free = self.stop_reading_on(now);
            self.command_now(free, requests, (sector, &queued));
            return;
        }
        let waiting = Waiting {
            sector,
            place: run.map_or_else(|| self.place_of(sector), |run| run.place),
            write,
            came: now,
            number,
        };
        if self.has_before(&waiting) {
            self.behind.push((waiting, queued));
            return;
        }
        self.queue.push(waiting);
        self.queued.push(queued);
        self.start(now, requests);
    }

    /// Tests whether a pending command for the directly preceding sectors exists. Firmware treats
    /// the two as one: a policy by position that served the later one first would leave the other
    /// behind, because the stream's next command is always nearer.
    fn has_before(&self, waiting: &Waiting) -> bool {
        let before = |(of, queued): (&Waiting, &Queued)| {
            queued.end == waiting.sector && of.write == waiting.write
        };
        let mut queue = self.queue.iter().zip(&self.queued);
        queue.any(before) || self.behind.iter().any(|(of, queued)| before((of, queued)))
    }

    /// Moves the commands that continue the sectors of a served command, which end at `end`, into
    /// the actuator's queue.
    pub(super) fn free_behind(&mut self, write: bool, end: u64) {
        let mut at = 0;
        while let Some((waiting, _)) = self.behind.get(at) {
            if waiting.sector != end || waiting.write != write {
                at += 1;
                continue;
            }
            let (waiting, queued) = self.behind.remove(at);
            self.queue.push(waiting);
            self.queued.push(queued);
        }
    }
}
