//! Closed-loop queue at the actuator: a constant number of requests is pending, and each completion
//! makes room for another request. Shows the gain of a scheduling policy by queue depth, and the
//! bound that no policy can beat.

use super::mechanism::{Mechanism, MediaAccess};
use super::queue::{DistanceMeasure, QueueSpecification, QueueView, WaitingCommand};
use diskperf_sim::{RandomStreams, Time};

/// Settings of a closed-loop run at the actuator.
#[derive(Clone, Copy, Debug)]
pub struct ClosedLoopLoad {
    /// Scheduling policy that orders the requests.
    pub queue_policy: QueueSpecification,
    /// Queue depth: requests that are pending at any time.
    pub queue_depth: u32,
    /// Number of requests that the run serves.
    pub request_count: u64,
}

/// Result of a closed-loop run at the actuator.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedLoopResult {
    /// Duration of the run, from the first request to the completion of the last one.
    pub elapsed_time: Time,
    /// Response time of each request, from arrival to completion, in ascending order.
    pub response_times: Vec<Time>,
}

impl ClosedLoopResult {
    /// Returns the mean service time of a request, in ms.
    pub fn mean_service_ms(&self) -> f64 {
        self.elapsed_time.as_millis() / self.response_times.len() as f64
    }

    /// Returns the mean response time, in ms.
    pub fn mean_response_ms(&self) -> f64 {
        let sum: f64 = self.response_times.iter().map(|one| one.as_millis()).sum();
        sum / self.response_times.len() as f64
    }

    /// Returns a quantile of the response time, in ms: the time that this share of the requests
    /// does not exceed.
    ///
    /// # Panics
    ///
    /// When no request was served.
    pub fn response_quantile_ms(&self, share: f64) -> f64 {
        let last = self.response_times.len() - 1;
        self.response_times[(share * last as f64).round() as usize].as_millis()
    }
}

impl ClosedLoopLoad {
    /// Serves the closed-loop queue. `draw` generates the request with a given number. `serve`
    /// returns the service time of a request, and leaves the arm where the request ends.
    ///
    /// # Panics
    ///
    /// When the queue depth is 0.
    pub fn serve_requests(
        &self,
        mechanism: &mut Mechanism,
        mut draw: impl FnMut(u64) -> WaitingCommand,
        mut serve: impl FnMut(&mut Mechanism, Time, &WaitingCommand) -> Time,
    ) -> ClosedLoopResult {
        let depth = u64::from(self.queue_depth);
        let mut queue: Vec<WaitingCommand> = (0..depth).map(&mut draw).collect();
        let mut responses = Vec::with_capacity(self.request_count as usize);
        let (mut now, mut rising, mut passed) = (Time::ZERO, true, 0);
        for number in depth..depth + self.request_count {
            let view = self.queue_view(mechanism, now, rising, passed);
            let positioning =
                |of: &WaitingCommand| mechanism.positioning_time(now, &of.position, of.is_write);
            let choice = self.queue_policy.choose_command(&view, &queue, positioning);
            let choice = choice.expect("a queue of at least one request");
            let next = queue[choice.command_index];
            (rising, passed) = (choice.moving_inward, next.sector);
            now += serve(mechanism, now, &next);
            responses.push(now - next.arrival);
            queue[choice.command_index] = WaitingCommand {
                arrival: now,
                ..draw(number)
            };
        }
        responses.sort_unstable();
        ClosedLoopResult {
            elapsed_time: now,
            response_times: responses,
        }
    }

    fn queue_view(
        &self,
        mechanism: &Mechanism,
        now: Time,
        moving_inward: bool,
        passed_sector: u64,
    ) -> QueueView {
        let layout = mechanism.layout();
        let (at, stroke) = match self.queue_policy.distance_measure {
            DistanceMeasure::Cylinder => (
                mechanism.arm_cylinder().into(),
                layout.cylinder_count().into(),
            ),
            DistanceMeasure::Sector => (passed_sector, layout.sectors()),
        };
        QueueView {
            now,
            arm_position: at,
            stroke_length: stroke,
            moving_inward,
        }
    }

    /// Serves random reads of `sectors` sectors each, uniform over the whole disk and aligned to
    /// their size.
    ///
    /// # Panics
    ///
    /// When the queue depth is 0, or the disk has fewer sectors than one read.
    pub fn serve_random_reads(
        &self,
        mechanism: &mut Mechanism,
        sectors: u32,
        seed: u64,
    ) -> ClosedLoopResult {
        let mut draws = RandomStreams::new(seed).named_stream("random reads");
        let layout = mechanism.layout().clone();
        let blocks = layout.sectors() / u64::from(sectors);
        let draw = |number| {
            let sector = draws.draw_below(blocks) * u64::from(sectors);
            WaitingCommand {
                sector,
                position: layout.position_of(sector),
                is_write: false,
                arrival: Time::ZERO,
                sequence_number: number,
            }
        };
        self.serve_requests(mechanism, draw, |mechanism, now, next| {
            let access = MediaAccess {
                first_sector: next.sector,
                sector_count: sectors,
                ..MediaAccess::default()
            };
            mechanism.access_media(now, &access, |_| ()).total()
        })
    }
}

/// Arm positions over which [`positioning_bounds_ms`] averages.
const ARM_POSITION_COUNT: u64 = 128;
const TARGET_COUNT: u64 = 4096;
/// Integration steps per revolution in [`positioning_bounds_ms`].
const INTEGRATION_STEPS: f64 = 500.0;

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
        layout.position_of(sector as u64)
    };
    let targets: Vec<_> = (0..TARGET_COUNT)
        .map(|number| nth(number, TARGET_COUNT))
        .collect();
    let period_ms = mechanism.spindle().revolution_time().as_millis();
    let mut sums = vec![0.0; depths.len()];
    let mut arm = mechanism.clone();
    for number in 0..ARM_POSITION_COUNT {
        let at = nth(number, ARM_POSITION_COUNT);
        arm.place_arm(at.cylinder, at.head);
        let mut ways_ms: Vec<f64> = targets
            .iter()
            .map(|target| arm.arm_move_time(target, false).as_millis())
            .collect();
        ways_ms.sort_by(f64::total_cmp);
        add_integrals(&mut sums, depths, (&ways_ms, period_ms));
    }
    sums.iter()
        .map(|sum| sum / ARM_POSITION_COUNT as f64)
        .collect()
}

/// Adds the integral of (1 - F(t))^depth from zero to infinity to the sum of each depth.
fn add_integrals(sums: &mut [f64], depths: &[u32], (ways_ms, period_ms): (&[f64], f64)) {
    let step_ms = period_ms / INTEGRATION_STEPS;
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
