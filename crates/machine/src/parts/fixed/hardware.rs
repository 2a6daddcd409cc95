//! The device: requests wait in one queue, in the order in which they came, for the
//! first server that is free.

use crate::hardware::{Parts, RequestId, Surroundings, moment};
use crate::parts::{Controller, Id};
use diskperf_sim::{Stream, Streams, TaskId, Time};
use diskperf_timeline::Stage;
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
pub struct Fixed {
    id: Id<Fixed>,
    config: FixedConfig,
    waiting: VecDeque<RequestId>,
    /// Requests that are worked on.
    served: u32,
    done: VecDeque<RequestId>,
    draws: Stream,
    interrupt: Option<TaskId>,
}

/// What the device schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum FixedEvent {
    /// A server has finished with a request.
    Served(RequestId),
}

impl Controller for Fixed {
    type Event = FixedEvent;

    fn handle(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        FixedEvent::Served(id): FixedEvent,
    ) {
        self.served -= 1;
        let request = &mut parts.requests[id];
        request.mark(Stage::Command, moment(around.now()));
        let sectors = parts.drives.sectors(request.device);
        sectors.busy.bytes += u64::from(request.sectors) * u64::from(sectors.sector_bytes);
        sectors.busy.transfers += 1;
        self.done.push_back(id);
        let task = self.interrupt.expect("its interrupt is connected");
        around.sim.wake(task);
        self.serve(around, parts);
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        !self.done.is_empty()
    }
}

impl Fixed {
    /// An idle device, of this number among all controllers.
    pub fn new((id, number): (Id<Self>, usize), config: FixedConfig, streams: Streams) -> Self {
        Self {
            id,
            config,
            waiting: VecDeque::new(),
            served: 0,
            done: VecDeque::new(),
            draws: streams.stream(&format!("controller.{number}.service")),
            interrupt: None,
        }
    }

    /// Whether it takes another request.
    pub fn takes_requests(&self) -> bool {
        self.served + (self.waiting.len() as u32) < self.config.queue_depth
    }

    /// Takes a request.
    ///
    /// # Panics
    ///
    /// When its queue is full.
    pub fn take(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        assert!(self.takes_requests(), "a request for a queue that is full");
        self.waiting.push_back(id);
        self.serve(around, parts);
    }

    /// The next request that is done, once.
    pub fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    /// Gives servers that are free the requests that wait.
    fn serve(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let now = around.now();
        while self.served < self.config.servers {
            let Some(id) = self.waiting.pop_front() else {
                return;
            };
            parts.requests[id].mark(Stage::ControllerQueue, moment(now));
            self.served += 1;
            let work = self.draw();
            let ends = stalled(&self.config.stalls, now, work);
            self.id.schedule(around, ends, FixedEvent::Served(id));
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
