//! Device without mechanics: a service-time distribution, servers, a queue, and stalls. Requests
//! wait in one first-come-first-served queue for the first free server, so queueing theory can
//! predict its results.

use super::{RequestId, Requests, moment};
use crate::Busy;
use diskperf_sim::{RandomStream, Time};
use diskperf_spans::Stage;
use std::collections::VecDeque;

/// Distribution of the service time of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
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
    pub service: Service,
    /// Number of servers, which is the maximum number of requests in service.
    pub servers: u32,
    /// Maximum number of requests in flight, in service or waiting.
    pub queue_depth: u32,
    /// Start and duration of each stall, in order of time. No request makes progress during a
    /// stall.
    pub stalls: Vec<(Time, Time)>,
}

/// State of a device without mechanics.
#[derive(Clone, Debug)]
pub struct Fixed {
    config: FixedConfig,
    waiting: VecDeque<RequestId>,
    /// Requests in service, each with the end of its service, in order.
    served: VecDeque<(Time, RequestId)>,
    done: VecDeque<RequestId>,
    draws: RandomStream,
    busy: Busy,
}

impl Fixed {
    /// Creates an idle device, whose service times are drawn from a random stream.
    pub fn new(config: FixedConfig, draws: RandomStream) -> Self {
        Self {
            config,
            waiting: VecDeque::new(),
            served: VecDeque::new(),
            done: VecDeque::new(),
            draws,
            busy: Busy::default(),
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
    pub fn most_bytes(&self) -> Option<usize> {
        None
    }

    /// Returns `false`: the device has no write cache, and a completed write is durable.
    pub fn keeps_writes(&self) -> bool {
        false
    }

    /// Returns the transfer counts of the device so far.
    pub fn busy(&self) -> Busy {
        self.busy
    }

    /// Reports whether the device accepts another request.
    pub fn takes_requests(&self) -> bool {
        self.served.len() + self.waiting.len() < self.config.queue_depth as usize
    }

    /// Submits a request to the device.
    ///
    /// # Panics
    ///
    /// When the device's queue is full.
    pub fn take(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(self.takes_requests(), "a request for a queue that is full");
        self.waiting.push_back(id);
        self.serve(now, requests);
    }

    /// Returns the time at which a server next completes a request; `None` when all are idle.
    pub fn next_event(&self) -> Option<Time> {
        self.served.front().map(|(ends, _)| *ends)
    }

    /// Advances the device to time `now`: servers complete requests and start waiting ones. Returns
    /// whether a request completed.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.done.len();
        while let Some((ends, id)) = self
            .served
            .front()
            .copied()
            .filter(|(ends, _)| *ends <= now)
        {
            self.served.pop_front();
            let request = &mut requests[id];
            request.mark(Stage::Command, moment(ends));
            self.busy.bytes += u64::from(request.sectors) * u64::from(self.config.sector_bytes);
            self.busy.transfers += 1;
            self.done.push_back(id);
            self.serve(ends, requests);
        }
        self.done.len() > before
    }

    /// Reports whether a completed request waits to be reaped.
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Removes and returns the oldest completed request, if any.
    pub fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    /// Assigns waiting requests to free servers.
    fn serve(&mut self, now: Time, requests: &mut Requests) {
        while self.served.len() < self.config.servers as usize {
            let Some(id) = self.waiting.pop_front() else {
                return;
            };
            requests[id].mark(Stage::ControllerQueue, moment(now));
            let work = self.draw();
            let ends = stalled(&self.config.stalls, now, work);
            let place = self.served.partition_point(|(other, _)| *other <= ends);
            self.served.insert(place, (ends, id));
        }
    }

    fn draw(&mut self) -> Time {
        match &self.config.service {
            Service::Constant(time) => *time,
            Service::Exponential(mean) => self.draws.draw_exponential(*mean),
            Service::Quantiles(times) => {
                let at = self.draws.draw_share() * (times.len() - 1) as f64;
                let (low, share) = (at as usize, at - (at as usize) as f64);
                let (from, to) = (times[low].0 as f64, times[low + 1].0 as f64);
                Time((from + share * (to - from) + 0.5) as u64)
            }
        }
    }
}

/// Returns the end of work that begins at a time and has a given duration. Stalls add their time to
/// it.
fn stalled(stalls: &[(Time, Time)], begins: Time, work: Time) -> Time {
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
