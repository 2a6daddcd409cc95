//! Phases of a load on a volume, calculated without simulating requests: between two events, such as
//! the end of credits, all rates are constant.

use super::bucket::PICOTOKENS;
use super::charge::Charge;
use super::limit::LimitBucket;
use super::specification::VolumeSpecification;
use diskperf_spans::VolumeLimit;
use std::collections::VecDeque;
use std::sync::Arc;

/// Nanorequests per request: rates and backlogs are whole numbers of them.
pub const NANOREQUESTS: u128 = 1_000_000_000;
const NS_PER_S: u128 = 1_000_000_000;
/// Highest rate of a volume without limits, in nanorequests per second: above all hardware.
const NANOREQUESTS_PER_S_MAX: u128 = 100_000_000 * NANOREQUESTS;
/// Nanoseconds in a millisecond. Flows are in picotokens per millisecond, which keeps them exact to
/// a millionth of a token per second.
const NS_PER_MS: u128 = 1_000_000;

/// Total charge of a number of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeTotal {
    /// Number of requests whose charges are added up.
    pub requests: u64,
    /// Charges of the reads, added up.
    pub reads: Charge,
    /// Charges of the writes, added up.
    pub writes: Charge,
}

impl ChargeTotal {
    /// Adds the charge of a request.
    pub fn add(&mut self, charge: Charge, is_write: bool) {
        let total = match is_write {
            true => &mut self.writes,
            false => &mut self.reads,
        };
        total.operations += charge.operations;
        total.bytes += charge.bytes;
        self.requests += 1;
    }

    /// Adds the charges of other requests.
    pub fn add_total(&mut self, other: &Self) {
        for (total, added) in [
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
        ] {
            total.operations += added.operations;
            total.bytes += added.bytes;
        }
        self.requests += other.requests;
    }
}

/// Arrival of the requests of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FluidArrivals {
    /// Closed loop: a request arrives when another one completes.
    Closed {
        /// Number of requests in flight.
        depth: u32,
        /// Service time of a request in nanoseconds. At least 1.
        service_ns: u64,
    },
    /// Open loop: requests arrive at a rate, and wait if the volume is behind.
    Open {
        /// Rate of arrivals in nanorequests per second.
        nanorequests_per_s: u128,
    },
}

/// Load whose requests all have the same mean charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FluidLoad {
    /// Arrival of the requests.
    pub arrivals: FluidArrivals,
    /// Charge of a sample of the requests, from which the mean follows.
    pub charges: ChargeTotal,
}

/// Time in which a load proceeds at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Start of the phase in nanoseconds.
    pub start_ns: u64,
    /// End of the phase in nanoseconds.
    pub end_ns: u64,
    /// Rate of completions in nanorequests per second.
    pub nanorequests_per_s: u128,
    /// Waiting requests at the start, in nanorequests.
    pub backlog_start: u128,
    /// Waiting requests at the end, in nanorequests.
    pub backlog_end: u128,
    /// Wait of the first request that the phase serves, in nanoseconds; 0 of a closed loop.
    pub wait_start_ns: u64,
    /// Wait of the last request that the phase serves, in nanoseconds.
    pub wait_end_ns: u64,
    /// Limit that determines the rate; `None` if the load does.
    pub limit: Option<PhaseLimit>,
}

/// Limit that determines the rate of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseLimit {
    /// Owner of the limit, and what it counts.
    pub kind: VolumeLimit,
    /// Whether the credits of the limit are used up, so that its base rate holds.
    pub credits_ended: bool,
}

impl Phase {
    /// Returns the duration of the phase in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Returns the requests that complete in the phase, in nanorequests.
    pub fn served(&self) -> u128 {
        self.nanorequests_per_s * u128::from(self.duration_ns()) / NS_PER_S
    }
}

/// Volume whose levels and backlog change at constant rates between events.
#[derive(Clone, Debug)]
pub struct FluidVolume {
    limits: Vec<FluidLimit>,
    nanorequests_per_s_max: u128,
    now_ns: u64,
    /// Requests that wait, in the order of arrival.
    backlog: VecDeque<BacklogSegment>,
    /// Sum of the requests of the backlog, in nanorequests.
    backlog_requests: u128,
}

/// Waiting requests that arrived at one rate and have the same costs.
#[derive(Clone, Debug)]
struct BacklogSegment {
    /// Number of waiting requests in nanorequests.
    requests: u128,
    /// Rate at which they arrived, in nanorequests per second.
    arrivals_per_s: u128,
    /// Arrival of the oldest one.
    oldest_ns: u64,
    /// Arrival of the newest one.
    newest_ns: u64,
    /// Mean cost of a request at each limit, in picotokens.
    costs: Arc<[u128]>,
}

impl BacklogSegment {
    /// Takes requests from the front.
    fn serve(&mut self, requests: u128) {
        let served = requests.min(self.requests);
        self.requests -= served;
        self.oldest_ns += (served * NS_PER_S / self.arrivals_per_s) as u64;
    }
}

/// Arrivals of one call of [`FluidVolume::run`], and their costs.
struct Arriving {
    per_s: u128,
    costs: Arc<[u128]>,
}

#[derive(Clone, Debug)]
struct FluidLimit {
    bucket: LimitBucket,
    rate_milli: u64,
    capacity: u128,
    level: u128,
}

/// Flow of a bucket in one phase.
#[derive(Clone, Copy)]
struct Flow {
    refill_per_ms: u128,
    drain_per_ms: u128,
}

impl FluidVolume {
    /// Creates a volume at time zero.
    ///
    /// # Panics
    ///
    /// When a limit of the specification has a rate of 0.
    pub fn new(specification: &VolumeSpecification) -> Self {
        let limit = |bucket: LimitBucket| {
            let size = bucket.bucket.size();
            // A window's tokens are spent in the window: in the long run they are a rate.
            let capacity = match size.window_ns > 1 {
                true => 0,
                false => size.capacity,
            };
            FluidLimit {
                rate_milli: size.rate_milli,
                capacity,
                level: (bucket.bucket.level_at(0).max(0) as u128).min(capacity),
                bucket,
            }
        };
        let slower = specification
            .read_service
            .mean()
            .max(specification.write_service.mean());
        let depth = u128::from(specification.queue_depth);
        Self {
            limits: specification.buckets().into_iter().map(limit).collect(),
            nanorequests_per_s_max: (depth * NANOREQUESTS * NS_PER_S / u128::from(slower.0.max(1)))
                .min(NANOREQUESTS_PER_S_MAX),
            now_ns: 0,
            backlog: VecDeque::new(),
            backlog_requests: 0,
        }
    }

    /// Returns the current time in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Returns the number of requests that wait, in nanorequests.
    pub fn backlog(&self) -> u128 {
        self.backlog_requests
    }

    /// Returns the time for which the oldest waiting request has waited, in nanoseconds.
    pub fn oldest_wait_ns(&self) -> u64 {
        let oldest = self.backlog.front();
        oldest.map_or(0, |segment| self.now_ns.saturating_sub(segment.oldest_ns))
    }

    /// Returns the credits of a limit in picotokens; `None` if the limit has none.
    pub fn credits(&self, kind: VolumeLimit) -> Option<u128> {
        self.find_credits(kind).map(|limit| limit.level)
    }

    /// Returns the maximum credits of a limit in picotokens; `None` if the limit has none.
    pub fn credits_max(&self, kind: VolumeLimit) -> Option<u128> {
        self.find_credits(kind).map(|limit| limit.capacity)
    }

    /// Returns the levels of all buckets in picotokens; `None` while requests wait. Volumes with the
    /// same levels go through the same phases under the same load.
    pub fn idle_levels(&self) -> Option<Vec<u128>> {
        let levels = self.limits.iter().map(|limit| limit.level);
        self.backlog.is_empty().then(|| levels.collect())
    }

    /// Moves the time on by whole repetitions of a load that leaves the volume as it found it.
    pub fn skip_repetitions(&mut self, duration_ns: u64) {
        debug_assert!(self.backlog.is_empty(), "waiting requests would age");
        self.now_ns += duration_ns;
    }

    fn find_credits(&self, kind: VolumeLimit) -> Option<&FluidLimit> {
        let mut limits = self.limits.iter();
        limits.find(|limit| limit.bucket.kind == kind && limit.bucket.holds_credits)
    }

    /// Leaves the volume idle for a time.
    pub fn rest(&mut self, duration_ns: u64) {
        let load = FluidLoad {
            arrivals: FluidArrivals::Open {
                nanorequests_per_s: 0,
            },
            charges: ChargeTotal::default(),
        };
        self.run(&load, duration_ns, |_| ());
    }

    /// Applies a load for a time, and reports each phase. A closed loop begins when the backlog of
    /// an open one is served.
    pub fn run(&mut self, load: &FluidLoad, duration_ns: u64, mut report: impl FnMut(Phase)) {
        let arriving = Arriving {
            per_s: match load.arrivals {
                FluidArrivals::Open { nanorequests_per_s } => nanorequests_per_s,
                FluidArrivals::Closed { .. } => 0,
            },
            costs: self
                .limits
                .iter()
                .map(|limit| mean_cost(limit, load))
                .collect(),
        };
        let until = self.now_ns + duration_ns;
        while self.now_ns < until {
            let served = self.backlog.front();
            let costs = Arc::clone(served.map_or(&arriving.costs, |segment| &segment.costs));
            let (rate, limit) = self.current_rate(load, &costs);
            let flows = self.flows(rate, &costs);
            let end = self
                .next_event_ns(&arriving, rate, &flows)
                .map_or(until, |ns| until.min(ns));
            self.advance_levels(&flows, end);
            let mut phase = self.advance_backlog(&arriving, rate, end);
            phase.limit = limit;
            report(phase);
        }
    }

    /// Returns the current rate in nanorequests per second, and the limit that determines it.
    fn current_rate(&self, load: &FluidLoad, costs: &[u128]) -> (u128, Option<PhaseLimit>) {
        let demand = match load.arrivals {
            _ if !self.backlog.is_empty() => u128::MAX,
            FluidArrivals::Closed { depth, service_ns } => {
                u128::from(depth) * NANOREQUESTS * NS_PER_S / u128::from(service_ns.max(1))
            }
            FluidArrivals::Open { nanorequests_per_s } => nanorequests_per_s,
        };
        let mut slowest = (demand.min(self.nanorequests_per_s_max), None);
        for (limit, cost) in self.limits.iter().zip(costs) {
            if *cost == 0 || limit.level > 0 {
                continue;
            }
            let rate = rate_at_refill(limit, *cost);
            if rate < slowest.0 {
                let found = PhaseLimit {
                    kind: limit.bucket.kind,
                    credits_ended: limit.bucket.holds_credits,
                };
                slowest = (rate, Some(found));
            }
        }
        slowest
    }

    fn flows(&self, rate: u128, costs: &[u128]) -> Vec<Flow> {
        let flow = |(limit, cost): (&FluidLimit, &u128)| {
            let refill_per_ms = u128::from(limit.rate_milli) * NS_PER_MS;
            let drain = rate.saturating_mul(*cost) / (NANOREQUESTS * NS_PER_S / NS_PER_MS);
            // A bucket that determines the rate stays empty, whatever the rounding left.
            let is_at_refill =
                *cost > 0 && limit.level == 0 && rate == rate_at_refill(limit, *cost);
            Flow {
                refill_per_ms,
                drain_per_ms: match is_at_refill {
                    true => refill_per_ms,
                    false => drain,
                },
            }
        };
        self.limits.iter().zip(costs).map(flow).collect()
    }

    /// Returns the time at which a bucket is empty or full, or the oldest segment of the backlog is
    /// served.
    fn next_event_ns(&self, arriving: &Arriving, rate: u128, flows: &[Flow]) -> Option<u64> {
        let mut soonest = u128::MAX;
        for (limit, flow) in self.limits.iter().zip(flows) {
            let (refill, drain) = (flow.refill_per_ms, flow.drain_per_ms);
            if drain > refill && limit.level > 0 {
                soonest = soonest.min((limit.level * NS_PER_MS).div_ceil(drain - refill));
            } else if refill > drain && limit.level < limit.capacity {
                let missing = limit.capacity - limit.level;
                soonest = soonest.min((missing * NS_PER_MS).div_ceil(refill - drain));
            }
        }
        if let Some(front) = self.backlog.front() {
            let is_growing = self.backlog.len() == 1 && self.continues(front, arriving);
            let added = if is_growing { arriving.per_s } else { 0 };
            if rate > added {
                soonest = soonest.min((front.requests * NS_PER_S).div_ceil(rate - added));
            }
        }
        u64::try_from(soonest.checked_add(u128::from(self.now_ns))?).ok()
    }

    /// Reports whether the requests that arrive belong to a segment.
    fn continues(&self, segment: &BacklogSegment, arriving: &Arriving) -> bool {
        segment.newest_ns == self.now_ns
            && segment.arrivals_per_s == arriving.per_s
            && segment.costs == arriving.costs
    }

    fn advance_levels(&mut self, flows: &[Flow], end_ns: u64) {
        let duration = u128::from(end_ns - self.now_ns);
        for (limit, flow) in self.limits.iter_mut().zip(flows) {
            let added = flow.refill_per_ms.saturating_mul(duration) / NS_PER_MS;
            let taken = flow.drain_per_ms.saturating_mul(duration) / NS_PER_MS;
            limit.level = limit
                .level
                .saturating_add(added)
                .saturating_sub(taken)
                .min(limit.capacity);
        }
    }

    /// Serves the oldest requests at a rate, adds those that arrive, and advances the time.
    fn advance_backlog(&mut self, arriving: &Arriving, rate: u128, end_ns: u64) -> Phase {
        let (start_ns, backlog_start) = (self.now_ns, self.backlog_requests);
        let duration = u128::from(end_ns - start_ns);
        let served = rate * duration / NS_PER_S;
        let arrived = arriving.per_s * duration / NS_PER_S;
        let is_behind = !self.backlog.is_empty();
        let wait_start_ns = self
            .backlog
            .front()
            .map_or(0, |one| start_ns - one.oldest_ns);
        if arrived > 0 && (is_behind || arrived > served) {
            self.append(arriving, arrived, end_ns);
        }
        self.now_ns = end_ns;
        let mut wait_end_ns = 0;
        if let Some(front) = self.backlog.front_mut() {
            front.serve(served);
            wait_end_ns = end_ns.saturating_sub(front.oldest_ns);
            if front.requests == 0 {
                self.backlog.pop_front();
            }
            self.backlog_requests = (backlog_start + arrived).saturating_sub(served);
        }
        if self.backlog.is_empty() {
            self.backlog_requests = 0;
        }
        Phase {
            start_ns,
            end_ns,
            nanorequests_per_s: rate,
            backlog_start,
            backlog_end: self.backlog_requests,
            wait_start_ns,
            wait_end_ns,
            limit: None,
        }
    }

    /// Adds requests that arrive from now until `end_ns` to the backlog.
    fn append(&mut self, arriving: &Arriving, requests: u128, end_ns: u64) {
        let newest = self.backlog.back();
        if !newest.is_some_and(|newest| self.continues(newest, arriving)) {
            self.backlog.push_back(BacklogSegment {
                requests: 0,
                arrivals_per_s: arriving.per_s,
                oldest_ns: self.now_ns,
                newest_ns: self.now_ns,
                costs: Arc::clone(&arriving.costs),
            });
        }
        let newest = self.backlog.back_mut().expect("it was added");
        newest.requests += requests;
        newest.newest_ns = end_ns;
    }
}

/// Returns the mean cost of a request in picotokens.
fn mean_cost(limit: &FluidLimit, load: &FluidLoad) -> u128 {
    let charges = &load.charges;
    let reads = limit.bucket.cost(charges.reads, false);
    let writes = limit.bucket.cost(charges.writes, true);
    reads.saturating_add(writes) / u128::from(charges.requests.max(1))
}

/// Returns the rate at which requests of a cost use up the refill, in nanorequests per second.
fn rate_at_refill(limit: &FluidLimit, cost: u128) -> u128 {
    let picotokens_per_s = u128::from(limit.rate_milli) * (PICOTOKENS / 1000);
    picotokens_per_s * NANOREQUESTS / cost
}
