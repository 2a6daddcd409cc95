//! Cache flushes of a disk: their start, the commands that they block, and their completion.

use super::*;

impl Disk {
    /// Iterates over the host sectors that a power cut would lose now: the buffer holds them, and
    /// the medium does not, or only in part.
    pub fn extents_not_durable(&self) -> impl Iterator<Item = SectorExtent> + '_ {
        self.write_back_cache
            .iter()
            .flat_map(WriteBackCache::extents)
    }

    /// Starts a draining flush once no other command is in flight.
    pub(super) fn start_drained_flush(&mut self, now: Time, requests: &mut Requests) {
        let alone = self.in_flight_count == 1 + self.blocked_by_flush.len();
        if let Some(flush) = self.pending_flushes.front().copied().filter(|_| alone) {
            self.schedule_decoding(now, requests, flush.id);
        }
    }

    /// Completes the flushes whose data are all on the medium.
    pub(super) fn accept_flush(&mut self, now: Time, requests: &mut Requests) {
        let drains = self.specification.flush_order == FlushOrder::DrainsQueue;
        loop {
            let oldest = self
                .write_back_cache
                .as_ref()
                .and_then(WriteBackCache::oldest_first_sector);
            let over = |flush: &&PendingFlush| {
                let is_coming = self.decoding.iter().any(|(_, id)| *id == flush.id);
                let before = |oldest| drains || oldest < flush.first_newer_write;
                !is_coming && !oldest.is_some_and(before)
            };
            let Some(place) = self.pending_flushes.iter().position(|flush| over(&flush)) else {
                break;
            };
            let alone = !drains || self.in_flight_count == 1 + self.blocked_by_flush.len();
            if !alone {
                break;
            }
            let flush = self
                .pending_flushes
                .remove(place)
                .expect("its place was found");
            requests[flush.id].book_stage(Stage::Destage, moment(now));
            self.schedule_completion(now, requests, flush.id);
        }
        self.start_media_work(now, requests);
    }

    /// Releases the commands that a flush blocked, up to the next flush, and starts that flush if
    /// it can.
    pub(super) fn release_flushed(&mut self, now: Time, requests: &mut Requests) {
        while self.pending_flushes.is_empty()
            && let Some(id) = self.blocked_by_flush.pop_front()
        {
            requests[id].book_stage(Stage::ControllerQueue, moment(now));
            if requests[id].operation == Operation::Flush {
                let before = self.next_sequence_number;
                self.pending_flushes.push_back(PendingFlush {
                    id,
                    first_newer_write: before,
                });
            } else {
                self.schedule_decoding(now, requests, id);
            }
        }
        let is_coming = |flush: &PendingFlush| self.decoding.iter().any(|(_, id)| *id == flush.id);
        if self
            .pending_flushes
            .front()
            .is_some_and(|flush| !is_coming(flush))
        {
            self.start_drained_flush(now, requests);
        }
    }
}
