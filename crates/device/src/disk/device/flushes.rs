//! Cache flushes of a disk: their start, the commands that they block, and their completion.

use super::*;

impl Disk {
    /// Iterates over the host sectors that a power cut would lose now: the buffer holds them, and
    /// the medium does not, or only in part.
    pub fn at_risk(&self) -> impl Iterator<Item = Extent> + '_ {
        self.written.iter().flat_map(Written::extents)
    }

    /// Starts a draining flush once no other command is in flight.
    pub(super) fn drain(&mut self, now: Time, requests: &mut Requests) {
        let alone = self.under_way == 1 + self.held.len();
        if let Some(flush) = self.flushes.front().copied().filter(|_| alone) {
            self.decode(now, requests, flush.id);
        }
    }

    /// Completes the flushes whose data are all on the medium.
    pub(super) fn flush(&mut self, now: Time, requests: &mut Requests) {
        let drains = self.specification.flush == FlushOrder::Drains;
        loop {
            let oldest = self.written.as_ref().and_then(Written::oldest);
            let over = |flush: &&Flush| {
                let is_coming = self.coming.iter().any(|(_, id)| *id == flush.id);
                let before = |oldest| drains || oldest < flush.before;
                !is_coming && !oldest.is_some_and(before)
            };
            let Some(place) = self.flushes.iter().position(|flush| over(&flush)) else {
                break;
            };
            let alone = !drains || self.under_way == 1 + self.held.len();
            if !alone {
                break;
            }
            let flush = self.flushes.remove(place).expect("its place was found");
            requests[flush.id].mark(Stage::Destage, moment(now));
            self.finish(now, requests, flush.id);
        }
        self.start(now, requests);
    }

    /// Releases the commands that a flush blocked, up to the next flush, and starts that flush if
    /// it can.
    pub(super) fn release(&mut self, now: Time, requests: &mut Requests) {
        while self.flushes.is_empty()
            && let Some(id) = self.held.pop_front()
        {
            requests[id].mark(Stage::ControllerQueue, moment(now));
            if requests[id].operation == Operation::Flush {
                let before = self.next_number;
                self.flushes.push_back(Flush { id, before });
            } else {
                self.decode(now, requests, id);
            }
        }
        let is_coming = |flush: &Flush| self.coming.iter().any(|(_, id)| *id == flush.id);
        if self.flushes.front().is_some_and(|flush| !is_coming(flush)) {
            self.drain(now, requests);
        }
    }
}
