//! A device without mechanics: a distribution of service times, servers, a queue, and
//! stalls. Requests wait in one queue, in the order in which they came, for the first
//! server that is free; what queueing theory says of it can be calculated.

use super::{RequestId, Requests, moment};
use crate::Busy;
use diskperf_sim::{Stream, Time};
use diskperf_spans::Stage;
use std::collections::VecDeque;

/// How long a server works on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Always as long.
    Constant(Time),
    /// By chance, with this mean: most are short, and a few are long.
    Exponential(Time),
    /// As measured: times that equal shares of all requests lie between.
    Quantiles(Vec<Time>),
}

/// How such a device is built.
#[derive(Clone, Debug)]
pub struct FixedConfig {
    /// How many sectors it has.
    pub sectors: u64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// See [`Service`].
    pub service: Service,
    /// Requests that it works on at once.
    pub servers: u32,
    /// Requests that it takes: those that it works on, and those that wait in it.
    pub queue_depth: u32,
    /// When nothing gets done in it, and for how long, in the order of time.
    pub stalls: Vec<(Time, Time)>,
}

/// The device's state.
#[derive(Clone, Debug)]
pub struct Fixed {
    config: FixedConfig,
    waiting: VecDeque<RequestId>,
    /// Requests that are worked on, each with when that ends, in order.
    served: VecDeque<(Time, RequestId)>,
    done: VecDeque<RequestId>,
    draws: Stream,
    busy: Busy,
}

impl Fixed {
    /// An idle device, which draws its times of service from this stream.
    pub fn new(config: FixedConfig, draws: Stream) -> Self {
        Self {
            config,
            waiting: VecDeque::new(),
            served: VecDeque::new(),
            done: VecDeque::new(),
            draws,
            busy: Busy::default(),
        }
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.config.sector_bytes
    }

    /// How many sectors it has.
    pub fn sectors(&self) -> u64 {
        self.config.sectors
    }

    /// No command limits the bytes of a request.
    pub fn most_bytes(&self) -> Option<usize> {
        None
    }

    /// No cache keeps a write: a request that is done is durable.
    pub fn keeps_writes(&self) -> bool {
        false
    }

    /// What it has done so far.
    pub fn busy(&self) -> Busy {
        self.busy
    }

    /// Whether it takes another request.
    pub fn takes_requests(&self) -> bool {
        self.served.len() + self.waiting.len() < self.config.queue_depth as usize
    }

    /// Takes a request.
    ///
    /// # Panics
    ///
    /// When its queue is full.
    pub fn take(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(self.takes_requests(), "a request for a queue that is full");
        self.waiting.push_back(id);
        self.serve(now, requests);
    }

    /// When a server finishes with a request next.
    pub fn next_event(&self) -> Option<Time> {
        self.served.front().map(|(ends, _)| *ends)
    }

    /// Servers finish with requests up to now, and begin with those that wait; whether
    /// any is done by that.
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

    /// Whether a request is done that was not taken off.
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// The next request that is done, once.
    pub fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    /// Gives servers that are free the requests that wait.
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
            Service::Exponential(mean) => self.draws.exponential(*mean),
            Service::Quantiles(times) => {
                let at = self.draws.share() * (times.len() - 1) as f64;
                let (low, share) = (at as usize, at - (at as usize) as f64);
                let (from, to) = (times[low].0 as f64, times[low + 1].0 as f64);
                Time((from + share * (to - from) + 0.5) as u64)
            }
        }
    }
}

/// When work ends that begins now and takes this long, with nothing done in stalls.
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
