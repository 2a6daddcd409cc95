//! Device without mechanics: a service-time distribution, servers, a queue, and stalls. Requests
//! wait in one first-come-first-served queue for the first free server, so queueing theory can
//! predict its results.

use super::{RequestId, Requests, moment};
use crate::BusyTimes;
use diskperf_sim::{RandomStream, Time};
use diskperf_spans::Stage;
use std::collections::VecDeque;

/// Distribution of the service time of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceTime {
    /// Constant service time of every request.
    Constant(Time),
    /// Exponential distribution with this mean: most times are short, and a few are long.
    Exponential(Time),
    /// Measured distribution as equidistant quantiles: equal shares of all requests lie between
    /// neighbouring times.
    Quantiles(Vec<Time>),
}

/// Configuration of a device without mechanics.
#[derive(Clone, Debug)]
pub struct FixedConfig {
    /// Number of sectors of the device.
    pub sectors: u64,
    /// Sector size of the device, in bytes.
    pub sector_bytes: u32,
    /// Distribution of the service times of requests.
    pub service_time: ServiceTime,
    /// Number of servers, which is the maximum number of requests in service.
    pub server_count: u32,
    /// Maximum number of requests in flight, in service or waiting.
    pub queue_depth: u32,
    /// Start and duration of each stall, in order of time. No request makes progress during a
    /// stall.
    pub stall_periods: Vec<(Time, Time)>,
}

/// State of a device without mechanics.
#[derive(Clone, Debug)]
pub struct FixedDevice {
    config: FixedConfig,
    waiting_requests: VecDeque<RequestId>,
    requests_in_service: VecDeque<(Time, RequestId)>,
    completed_requests: VecDeque<RequestId>,
    random_stream: RandomStream,
    busy_times: BusyTimes,
}

impl FixedDevice {
    /// Creates an idle device, whose service times are drawn from a random stream.
    pub fn new(config: FixedConfig, draws: RandomStream) -> Self {
        Self {
            config,
            waiting_requests: VecDeque::new(),
            requests_in_service: VecDeque::new(),
            completed_requests: VecDeque::new(),
            random_stream: draws,
            busy_times: BusyTimes::default(),
        }
    }

    /// Returns the sector size of the device, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.config.sector_bytes
    }

    /// Returns the number of sectors of the device.
    pub fn sectors(&self) -> u64 {
        self.config.sectors
    }

    /// Returns `None`: requests of this device have no maximum size.
    pub fn request_bytes_max(&self) -> Option<usize> {
        None
    }

    /// Returns `false`: the device has no write cache, and a completed write is durable.
    pub fn has_volatile_cache(&self) -> bool {
        false
    }

    /// Returns the transfer counts of the device so far.
    pub fn busy_times(&self) -> BusyTimes {
        self.busy_times
    }

    /// Reports whether the device accepts another request.
    pub fn can_accept_request(&self) -> bool {
        self.requests_in_service.len() + self.waiting_requests.len()
            < self.config.queue_depth as usize
    }

    /// Submits a request to the device.
    ///
    /// # Panics
    ///
    /// When the device's queue is full.
    pub fn accept_request(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(
            self.can_accept_request(),
            "a request for a queue that is full"
        );
        self.waiting_requests.push_back(id);
        self.start_services(now, requests);
    }

    /// Returns the time at which a server next completes a request; `None` when all are idle.
    pub fn next_event(&self) -> Option<Time> {
        self.requests_in_service.front().map(|(ends, _)| *ends)
    }

    /// Advances the device to time `now`: servers complete requests and start waiting ones. Returns
    /// whether a request completed.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.completed_requests.len();
        while let Some((ends, id)) = self
            .requests_in_service
            .front()
            .copied()
            .filter(|(ends, _)| *ends <= now)
        {
            self.requests_in_service.pop_front();
            let request = &mut requests[id];
            request.book_stage(Stage::Command, moment(ends));
            self.busy_times.transferred_bytes +=
                u64::from(request.sectors) * u64::from(self.config.sector_bytes);
            self.busy_times.transfer_count += 1;
            self.completed_requests.push_back(id);
            self.start_services(ends, requests);
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

    /// Assigns waiting requests to free servers.
    fn start_services(&mut self, now: Time, requests: &mut Requests) {
        while self.requests_in_service.len() < self.config.server_count as usize {
            let Some(id) = self.waiting_requests.pop_front() else {
                return;
            };
            requests[id].book_stage(Stage::ControllerQueue, moment(now));
            let work = self.draw_service_time();
            let ends = add_stalls(&self.config.stall_periods, now, work);
            let place = self
                .requests_in_service
                .partition_point(|(other, _)| *other <= ends);
            self.requests_in_service.insert(place, (ends, id));
        }
    }

    fn draw_service_time(&mut self) -> Time {
        match &self.config.service_time {
            ServiceTime::Constant(time) => *time,
            ServiceTime::Exponential(mean) => self.random_stream.draw_exponential(*mean),
            ServiceTime::Quantiles(times) => {
                let at = self.random_stream.draw_share() * (times.len() - 1) as f64;
                let (low, share) = (at as usize, at - (at as usize) as f64);
                let (from, to) = (times[low].0 as f64, times[low + 1].0 as f64);
                Time((from + share * (to - from) + 0.5) as u64)
            }
        }
    }
}

/// Returns the end of work that begins at a time and has a given duration. Stalls add their time to
/// it.
fn add_stalls(stalls: &[(Time, Time)], begins: Time, work: Time) -> Time {
    let (mut at, mut left) = (begins, work);
    for (from, length) in stalls {
        let until = *from + *length;
        if until <= at {
            continue;
        }
        let before = Time(from.0.saturating_sub(at.0));
        if left <= before {
            break;
        }
        left = left - before;
        at = until;
    }
    at + left
}

#[cfg(test)]
mod tests;
