//! Cloud volume as a device: requests pass the limits in order of arrival, and are then served in
//! parallel.

use super::charge::{ChargedRequest, Meter};
use super::limit::LimitBucket;
use super::specification::VolumeSpecification;
use super::touch::TouchedBlocks;
use crate::{BusyTimes, Operation, RequestId, Requests, moment};
use diskperf_sim::{RandomStream, Time};
use diskperf_spans::{Stage, VolumeLimit};
use std::collections::VecDeque;

/// State of a cloud volume.
#[derive(Clone, Debug)]
pub struct VolumeDevice {
    specification: VolumeSpecification,
    buckets: Vec<LimitBucket>,
    meter: Meter,
    touched_blocks: Option<TouchedBlocks>,
    waiting_requests: VecDeque<RequestId>,
    /// Time at which the oldest waiting request passes, and the limit that it waits for.
    next_pass: Option<NextPass>,
    requests_in_service: VecDeque<(Time, RequestId)>,
    completed_requests: VecDeque<RequestId>,
    random_stream: RandomStream,
    busy_times: BusyTimes,
}

/// Passing of the limits by the oldest waiting request.
#[derive(Clone, Copy, Debug)]
struct NextPass {
    at: Time,
    /// Limit that is last to let the request pass; `None` if none delays it.
    limit: Option<VolumeLimit>,
}

impl VolumeDevice {
    /// Creates an idle volume, whose service times are drawn from a random stream.
    ///
    /// # Panics
    ///
    /// When a limit has a rate of 0.
    pub fn new(specification: VolumeSpecification, draws: RandomStream) -> Self {
        let bytes = specification.sectors * u64::from(specification.sector_bytes);
        let touch = specification.first_touch;
        Self {
            buckets: specification.buckets(),
            meter: Meter::new(specification.charge_rules),
            touched_blocks: touch.map(|fetch| TouchedBlocks::new(fetch, bytes)),
            specification,
            waiting_requests: VecDeque::new(),
            next_pass: None,
            requests_in_service: VecDeque::new(),
            completed_requests: VecDeque::new(),
            random_stream: draws,
            busy_times: BusyTimes::default(),
        }
    }

    /// Returns the sector size of the volume, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.specification.sector_bytes
    }

    /// Returns the number of sectors of the volume.
    pub fn sectors(&self) -> u64 {
        self.specification.sectors
    }

    /// Returns `None`: requests of a volume have no maximum size, as larger ones are split.
    pub fn request_bytes_max(&self) -> Option<usize> {
        None
    }

    /// Returns `false`: a completed write is durable.
    pub fn has_volatile_cache(&self) -> bool {
        false
    }

    /// Returns the transfer counts of the volume so far.
    pub fn busy_times(&self) -> BusyTimes {
        self.busy_times
    }

    /// Returns the credits of a limit at a time, in whole tokens; `None` if the limit has none.
    pub fn credits_at(&self, limit: VolumeLimit, now: Time) -> Option<u64> {
        let mut buckets = self.buckets.iter();
        let found = buckets.find(|one| one.kind == limit && one.holds_credits)?;
        let level = found.bucket.level_at(now.0).max(0) as u128;
        Some((level / super::bucket::PICOTOKENS) as u64)
    }

    /// Reports whether the volume accepts another request.
    pub fn can_accept_request(&self) -> bool {
        self.requests_in_service.len() + self.waiting_requests.len()
            < self.specification.queue_depth as usize
    }

    /// Submits a request to the volume.
    ///
    /// # Panics
    ///
    /// When the volume's queue is full.
    pub fn accept_request(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(
            self.can_accept_request(),
            "a request for a queue that is full"
        );
        self.waiting_requests.push_back(id);
        self.pass_requests(now, requests);
    }

    /// Returns the time at which a request next passes the limits or completes.
    pub fn next_event(&self) -> Option<Time> {
        let completion = self.requests_in_service.front().map(|(ends, _)| *ends);
        let pass = self.next_pass.map(|next| next.at);
        completion.into_iter().chain(pass).min()
    }

    /// Advances the volume to time `now`. Returns whether a request completed.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.completed_requests.len();
        while let Some(next) = self.next_event().filter(|next| *next <= now) {
            self.pass_requests(next, requests);
            while let Some((ends, id)) = self.requests_in_service.front().copied() {
                if ends > next {
                    break;
                }
                self.requests_in_service.pop_front();
                self.complete_request(ends, requests, id);
            }
        }
        self.completed_requests.len() > before
    }

    /// Reports whether a completed request waits to be reaped.
    pub fn has_completed_requests(&self) -> bool {
        !self.completed_requests.is_empty()
    }

    /// Removes and returns the oldest completed request, if any.
    pub fn take_completed_request(&mut self) -> Option<RequestId> {
        self.completed_requests.pop_front()
    }

    fn complete_request(&mut self, at: Time, requests: &mut Requests, id: RequestId) {
        let request = &mut requests[id];
        request.book_stage(Stage::Command, moment(at));
        self.busy_times.transferred_bytes +=
            u64::from(request.sectors) * u64::from(self.specification.sector_bytes);
        self.busy_times.transfer_count += 1;
        self.completed_requests.push_back(id);
    }

    /// Starts the service of each waiting request that all limits let pass by `now`.
    fn pass_requests(&mut self, now: Time, requests: &mut Requests) {
        while let Some(id) = self.waiting_requests.front().copied() {
            let next = match self.next_pass {
                Some(next) => next,
                None => self.find_next_pass(now, requests, id),
            };
            self.next_pass = Some(next);
            if next.at > now {
                return;
            }
            self.waiting_requests.pop_front();
            self.next_pass = None;
            let waited_for = next.limit.map_or(Stage::ControllerQueue, Stage::RateLimit);
            requests[id].book_stage(waited_for, moment(now));
            self.take_tokens(now, requests, id);
            self.start_service(now, requests, id);
        }
    }

    /// Returns the request as it is charged; `None` for flushes and discards, which are free.
    fn charged(&self, requests: &Requests, id: RequestId) -> Option<ChargedRequest> {
        let request = &requests[id];
        let sector_bytes = u64::from(self.specification.sector_bytes);
        let is_write = match request.operation {
            Operation::Read => false,
            Operation::Write { .. } | Operation::WriteZeroes => true,
            Operation::Flush | Operation::Discard => return None,
        };
        Some(ChargedRequest {
            start_byte: request.sector * sector_bytes,
            bytes: u64::from(request.sectors) * sector_bytes,
            is_write,
        })
    }

    fn find_next_pass(&self, now: Time, requests: &Requests, id: RequestId) -> NextPass {
        let mut next = NextPass {
            at: now,
            limit: None,
        };
        let Some(request) = self.charged(requests, id) else {
            return next;
        };
        let charge = self.meter.charge(request);
        for limit in &self.buckets {
            let cost = limit.cost(charge, request.is_write);
            let at = Time(limit.bucket.ready_at(now.0, cost));
            if at > next.at {
                next = NextPass {
                    at,
                    limit: Some(limit.kind),
                };
            }
        }
        next
    }

    fn take_tokens(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let Some(request) = self.charged(requests, id) else {
            return;
        };
        let charge = self.meter.pass(request);
        for limit in &mut self.buckets {
            let cost = limit.cost(charge, request.is_write);
            limit.bucket.take(now.0, cost);
        }
    }

    fn start_service(&mut self, now: Time, requests: &Requests, id: RequestId) {
        let request = &requests[id];
        let is_read = request.operation == Operation::Read;
        let service = match is_read {
            true => &self.specification.read_service,
            false => &self.specification.write_service,
        };
        let mut ends = now + service.draw(&mut self.random_stream);
        let sector_bytes = u64::from(self.specification.sector_bytes);
        let transfers = is_read || matches!(request.operation, Operation::Write { .. });
        if let Some(touched) = self.touched_blocks.as_mut().filter(|_| transfers) {
            let range = (
                request.sector * sector_bytes,
                u64::from(request.sectors) * sector_bytes,
            );
            ends += touched.touch(range, is_read, &mut self.random_stream);
        }
        let place = self
            .requests_in_service
            .partition_point(|(other, _)| *other <= ends);
        self.requests_in_service.insert(place, (ends, id));
    }
}
