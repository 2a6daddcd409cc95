//! Closed-loop queue at the actuator: a constant number of requests is pending, and each completion
//! makes room for another request. Shows the gain of a scheduling policy by queue depth, and the
//! bound that no policy can beat.

use super::mechanism::{Access, Mechanism};
use super::queue::{Distance, QueueSpecification, View, Waiting};
use diskperf_sim::{RandomStreams, Time};

/// Settings of a closed-loop run at the actuator.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    /// Scheduling policy that orders the requests.
    pub order: QueueSpecification,
    /// Queue depth: requests that are pending at any time.
    pub depth: u32,
    /// Number of requests that the run serves.
    pub requests: u64,
}

/// Result of a closed-loop run at the actuator.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Duration of the run, from the first request to the completion of the last one.
    pub elapsed: Time,
    /// Response time of each request, from arrival to completion, in ascending order.
    pub responses: Vec<Time>,
}

impl Served {
    /// Returns the mean service time of a request, in ms.
    pub fn mean_service_ms(&self) -> f64 {
        self.elapsed.as_millis() / self.responses.len() as f64
    }

    /// Returns the mean response time, in ms.
    pub fn mean_response_ms(&self) -> f64 {
        let sum: f64 = self.responses.iter().map(|one| one.as_millis()).sum();
        sum / self.responses.len() as f64
    }

    /// Returns a quantile of the response time, in ms: the time that this share of the requests
    /// does not exceed.
    ///
    /// # Panics
    ///
    /// When no request was served.
    pub fn response_ms(&self, share: f64) -> f64 {
        let last = self.responses.len() - 1;
        self.responses[(share * last as f64).round() as usize].as_millis()
    }
}

impl Closed {
    /// Serves the closed-loop queue. `draw` generates the request with a given number. `serve`
    /// returns the service time of a request, and leaves the arm where the request ends.
    ///
    /// # Panics
    ///
    /// When the queue depth is 0.
    pub fn serve(
        &self,
        mechanism: &mut Mechanism,
        mut draw: impl FnMut(u64) -> Waiting,
        mut serve: impl FnMut(&mut Mechanism, Time, &Waiting) -> Time,
    ) -> Served {
        let depth = u64::from(self.depth);
        let mut queue: Vec<Waiting> = (0..depth).map(&mut draw).collect();
        let mut responses = Vec::with_capacity(self.requests as usize);
        let (mut now, mut rising, mut passed) = (Time::ZERO, true, 0);
        for number in depth..depth + self.requests {
            let view = self.view(mechanism, (now, rising, passed));
            let positioning = |of: &Waiting| mechanism.positioning(now, &of.place, of.write);
            let choice = self.order.choose(&view, &queue, positioning);
            let choice = choice.expect("a queue of at least one request");
            let next = queue[choice.index];
            (rising, passed) = (choice.rising, next.sector);
            now += serve(mechanism, now, &next);
            responses.push(now - next.came);
            queue[choice.index] = Waiting {
                came: now,
                ..draw(number)
            };
        }
        responses.sort_unstable();
        Served {
            elapsed: now,
            responses,
        }
    }

    fn view(&self, mechanism: &Mechanism, (now, rising, passed): (Time, bool, u64)) -> View {
        let layout = mechanism.layout();
        let (at, stroke) = match self.order.distance {
            Distance::Cylinder => (mechanism.cylinder().into(), layout.cylinders().into()),
            Distance::Sector => (passed, layout.sectors()),
        };
        View {
            now,
            at,
            stroke,
            rising,
        }
    }

    /// Serves random reads of `sectors` sectors each, uniform over the whole disk and aligned to
    /// their size.
    ///
    /// # Panics
    ///
    /// When the queue depth is 0, or the disk has fewer sectors than one read.
    pub fn serve_random_reads(&self, mechanism: &mut Mechanism, sectors: u32, seed: u64) -> Served {
        let mut draws = RandomStreams::new(seed).named_stream("random reads");
        let layout = mechanism.layout().clone();
        let blocks = layout.sectors() / u64::from(sectors);
        let draw = |number| {
            let sector = draws.draw_below(blocks) * u64::from(sectors);
            Waiting {
                sector,
                place: layout.locate(sector),
                write: false,
                came: Time::ZERO,
                number,
            }
        };
        self.serve(mechanism, draw, |mechanism, now, next| {
            let access = Access {
                sector: next.sector,
                sectors,
                ..Access::default()
            };
            mechanism.serve(now, &access, |_| ()).total()
        })
    }
}

/// Arm positions over which [`positioning_bounds_ms`] averages.
const ARMS: u64 = 128;
const TARGETS: u64 = 4096;
/// Integration steps per revolution in [`positioning_bounds_ms`].
const STEPS: f64 = 500.0;

/// Returns the mean shortest positioning time among a number of fresh, uniform requests, for each
/// queue depth, in ms.
///
/// The result is the mean, over arm positions, of the integral of (1 - F(t))^depth. F mixes, over
/// all targets, a rotational latency uniform over a revolution after the seek time. A policy that
/// leaves slow requests for later comes near this bound, and no policy beats it.
pub fn positioning_bounds_ms(mechanism: &Mechanism, depths: &[u32]) -> Vec<f64> {
    let layout = mechanism.layout();
    let nth = |number: u64, of: u64| {
        let sector = u128::from(layout.sectors()) * u128::from(2 * number + 1) / u128::from(2 * of);
        layout.locate(sector as u64)
    };
    let targets: Vec<_> = (0..TARGETS).map(|number| nth(number, TARGETS)).collect();
    let period_ms = mechanism.spindle().period().as_millis();
    let mut sums = vec![0.0; depths.len()];
    let mut arm = mechanism.clone();
    for number in 0..ARMS {
        let at = nth(number, ARMS);
        arm.place_arm(at.cylinder, at.head);
        let mut ways_ms: Vec<f64> = targets
            .iter()
            .map(|target| arm.way_to(target, false).as_millis())
            .collect();
        ways_ms.sort_by(f64::total_cmp);
        add_integrals(&mut sums, depths, (&ways_ms, period_ms));
    }
    sums.iter().map(|sum| sum / ARMS as f64).collect()
}

/// Adds the integral of (1 - F(t))^depth from zero to infinity to the sum of each depth.
fn add_integrals(sums: &mut [f64], depths: &[u32], (ways_ms, period_ms): (&[f64], f64)) {
    let step_ms = period_ms / STEPS;
    let least_ms = ways_ms[0];
    for sum in &mut *sums {
        *sum += least_ms;
    }
    // How many ways are over at a time and what they sum to, now and a revolution before.
    let (mut now, mut before) = ((0, 0.0), (0, 0.0));
    let up_to = |(count, sum): &mut (usize, f64), t_ms: f64| {
        while *count < ways_ms.len() && ways_ms[*count] <= t_ms {
            *sum += ways_ms[*count];
            *count += 1;
        }
        *count as f64 * t_ms - *sum
    };
    let last_ms = ways_ms[ways_ms.len() - 1] + period_ms;
    let steps = ((last_ms - least_ms) / step_ms).ceil() as u64;
    for step in 0..steps {
        let t_ms = least_ms + (step as f64 + 0.5) * step_ms;
        let begun = up_to(&mut now, t_ms) - up_to(&mut before, t_ms - period_ms);
        let left = (1.0 - begun / (ways_ms.len() as f64 * period_ms)).max(0.0);
        for (sum, depth) in sums.iter_mut().zip(depths) {
            *sum += left.powi(*depth as i32) * step_ms;
        }
    }
}
