//! Commands that wait for the arm.

use super::*;

/// A command that waits for the arm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) id: RequestId,
    /// Sectors of the medium at its front that the buffer has.
    pub(super) held: u64,
    /// The sector of the medium behind its last one.
    pub(super) end: u64,
    /// When the data of a write begin to cross the link.
    pub(super) bus: Time,
    /// When what the buffer has can cross the link.
    pub(super) ready: Time,
    /// Where the first sector of the medium is that waits, unless that may change.
    pub(super) run: Option<Run>,
}

impl Disk {
    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// A command is for the arm. The buffer has so many of its first sectors of the medium,
    /// and its data can cross the link from `ready` on; those of a write are given the link at
    /// `bus`.
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

    /// Whether a command for the sectors before those of another one waits for the arm. To
    /// firmware the two are one: an order by positions that took the later one first would
    /// leave the other behind, and a stream that goes on from there is nearer ever after.
    fn has_before(&self, waiting: &Waiting) -> bool {
        let before = |(of, queued): (&Waiting, &Queued)| {
            queued.end == waiting.sector && of.write == waiting.write
        };
        let mut queue = self.queue.iter().zip(&self.queued);
        queue.any(before) || self.behind.iter().any(|(of, queued)| before((of, queued)))
    }

    /// The arm has got a command: those for the sectors behind it have their turn.
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
