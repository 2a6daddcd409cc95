//! One drive behind a first-come queue on the engine: the smallest system
//! that queueing theory has exact answers for. The benchmark of the drive
//! runs the same.

use diskperf_machine::hardware::mechanism::Mechanism;
use diskperf_sim::{RandomStream, RandomStreams, Simulation, TieBreak, Time};
use std::collections::VecDeque;

/// How requests come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// This many are always under way: when one ends, the next is there.
    Closed(u32),
    /// At random moments, on average this far apart.
    Poisson(Time),
}

/// How long a request is served.
pub(crate) enum Service {
    /// As long as the drive takes to read this many sectors anywhere, at a
    /// multiple of them.
    Random { drive: Box<Mechanism>, sectors: u32 },
    /// Always as long.
    Constant(Time),
}

/// What was measured of all requests of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Requests.
    pub(crate) requests: u64,
    /// From the start to the end of the last request, in ns.
    pub(crate) elapsed: u64,
    /// The integral of the number of requests in the system over time, in ns.
    pub(crate) area: u128,
    /// The sum of all times from arrival to end, in ns.
    pub(crate) response: u128,
    /// The sum of all times from arrival to the start of service, in ns.
    pub(crate) waiting: u128,
    /// The sum of all services, in ns.
    pub(crate) service: u128,
    /// The sum of the squares of all services, in ns^2.
    pub(crate) service_squared: u128,
}

impl Measured {
    fn per_request(&self, sum: u128) -> f64 {
        sum as f64 / self.requests as f64
    }

    /// Mean service, in ns.
    pub(crate) fn mean_service(&self) -> f64 {
        self.per_request(self.service)
    }

    /// Mean waiting, in ns.
    pub(crate) fn mean_waiting(&self) -> f64 {
        self.per_request(self.waiting)
    }

    /// Mean response, in ns.
    pub(crate) fn mean_response(&self) -> f64 {
        self.per_request(self.response)
    }

    /// Requests per ns.
    pub(crate) fn throughput(&self) -> f64 {
        self.requests as f64 / self.elapsed as f64
    }

    /// The mean waiting that Pollaczek and Khinchine give for the measured
    /// arrival rate and the measured moments of the service.
    pub(crate) fn pollaczek_khinchine(&self) -> f64 {
        let busy = self.throughput() * self.mean_service();
        self.throughput() * self.per_request(self.service_squared) / (2.0 * (1.0 - busy))
    }
}

/// What the engine hands to the station.
pub(crate) enum Event {
    /// A request comes.
    Arrival,
    /// The one that is served ends.
    Departure,
}

/// The queue and what serves it.
pub(crate) struct Station {
    service: Service,
    /// Where on its drive a request may start.
    starts: u64,
    load: Load,
    /// Requests that may still come.
    left: u64,
    /// When each of those in the system came; the first is being served.
    queue: VecDeque<Time>,
    started: Time,
    changed: Time,
    places: RandomStream,
    arrivals: RandomStream,
    /// So far.
    pub(crate) measured: Measured,
}

impl Station {
    /// An idle station.
    pub(crate) fn new(service: Service, load: Load, seed: u64) -> Self {
        let streams = RandomStreams::new(seed);
        let starts = match &service {
            Service::Random { drive, sectors } => {
                drive.geometry().sector_count() / u64::from(*sectors)
            }
            Service::Constant(_) => 0,
        };
        Self {
            service,
            starts,
            load,
            left: 0,
            queue: VecDeque::new(),
            started: Time::ZERO,
            changed: Time::ZERO,
            places: streams.named_stream("places"),
            arrivals: streams.named_stream("arrivals"),
            measured: Measured::default(),
        }
    }

    /// Has this many requests come and waits for the last to end.
    pub(crate) fn run(mut self, requests: u64) -> (Measured, Service) {
        let sim: Simulation<Event> = Simulation::new(TieBreak::InsertionOrder);
        self.left = requests;
        match self.load {
            Load::Closed(outstanding) => {
                for _ in 0..outstanding {
                    self.arrive(&sim);
                }
            }
            Load::Poisson(_) => sim.schedule(Time::ZERO, Event::Arrival),
        }
        sim.run_until(Time(u64::MAX - 1), |event| match event {
            Event::Arrival => self.arrive(&sim),
            Event::Departure => self.depart(&sim),
        });
        assert!(self.queue.is_empty() && self.left == 0, "all were served");
        (self.measured, self.service)
    }

    fn arrive(&mut self, sim: &Simulation<Event>) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        self.count(sim.now());
        self.queue.push_back(sim.now());
        if self.queue.len() == 1 {
            self.serve(sim);
        }
        if let Load::Poisson(mean) = self.load {
            let apart = exponential(&mut self.arrivals) * mean.0 as f64;
            sim.schedule(sim.now() + Time(apart as u64), Event::Arrival);
        }
    }

    #[inline]
    fn serve(&mut self, sim: &Simulation<Event>) {
        let now = sim.now();
        let came = self.queue[0];
        self.started = now;
        self.measured.waiting += u128::from((now - came).0);
        let service = match &mut self.service {
            Service::Constant(service) => *service,
            Service::Random { drive, sectors } => {
                let sector = self.places.draw_below(self.starts) * u64::from(*sectors);
                drive
                    .transfer_sectors(now, sector, *sectors, false)
                    .total_time()
            }
        };
        sim.schedule(now + service, Event::Departure);
    }

    #[inline]
    fn depart(&mut self, sim: &Simulation<Event>) {
        let now = sim.now();
        self.count(now);
        let came = self.queue.pop_front().expect("one was served");
        let service = u128::from((now - self.started).0);
        let measured = &mut self.measured;
        measured.requests += 1;
        measured.elapsed = now.0;
        measured.response += u128::from((now - came).0);
        measured.service += service;
        measured.service_squared += service * service;
        // Whoever comes to an empty queue is served at once.
        let others = !self.queue.is_empty();
        if let Load::Closed(_) = self.load {
            self.arrive(sim);
        }
        if others {
            self.serve(sim);
        }
    }

    /// Brings the integral up to now, before the number changes.
    #[inline]
    fn count(&mut self, now: Time) {
        let span = now - std::mem::replace(&mut self.changed, now);
        self.measured.area += span.0 as u128 * self.queue.len() as u128;
    }
}

/// An exponential random number of mean 1, by von Neumann's comparisons: no
/// logarithm, so the same on every machine.
fn exponential(stream: &mut RandomStream) -> f64 {
    let mut whole = 0.0;
    loop {
        let first = stream.draw_bits();
        let (mut last, mut length) = (first, 1_u32);
        loop {
            let next = stream.draw_bits();
            if next >= last {
                break;
            }
            last = next;
            length += 1;
        }
        if length % 2 == 1 {
            return whole + first as f64 / u64::MAX as f64;
        }
        whole += 1.0;
    }
}
