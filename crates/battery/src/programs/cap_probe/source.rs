//! Source of the requests of a cap probe, and the counts of its windows.

use super::CapProbeProgram;
use crate::load::distribution::AccessDistribution;
use crate::load::generator::{RandomOffsetOptions, RandomRequests};
use crate::parameter::SizeMix;
use crate::program::ProgramError;
use crate::random::RandomDraws;
use crate::ring::slots::CompletedRequest;
use crate::ring::{IoRing, RequestSource, RingStep};
use crate::worker::Worker;
use diskperf_system::{IoOperation, Submission};
use diskperf_timeline::{
    CapProbe, LatencyRecorder, Nanoseconds, ProbeWindow, ProbedLoad, WindowCounter,
};

const ORDER_STREAM: u128 = 19;

/// Single requests at a tenth of the rate, at most.
const UNLOADED_COUNT_MAX: u32 = 100;
/// Time for all single requests, at most.
const UNLOADED_TIME_MAX: Nanoseconds = Nanoseconds(5_000_000_000);
/// Intervals between completions of the load for each single request, which makes a tenth of the
/// rate.
const UNLOADED_INTERVALS: f64 = 10.0;
/// Multiple of the expected duration after which the probe ends with the windows that it has.
const DURATION_FACTOR_MAX: u64 = 3;

/// Part of a probe.
#[derive(Clone, Copy, Debug)]
enum ProbePart {
    /// The load before the first window.
    Settling,
    /// Windows of the load.
    Windows,
    /// The end of the load: requests in flight complete.
    Draining,
    /// Single requests at an interval.
    Unloaded {
        left: u32,
        interval: Nanoseconds,
        due: Nanoseconds,
    },
}

pub(super) struct ProbeSource<'a> {
    program: &'a CapProbeProgram,
    /// Generators of requests of the probed size, and of twice that size.
    requests: [RandomRequests<'a>; 2],
    counter: WindowCounter,
    /// Loads of the windows to come, the next one last.
    loads: Vec<ProbedLoad>,
    load: ProbedLoad,
    part: ProbePart,
    settled_at: Nanoseconds,
    deadline: Nanoseconds,
    windows: Vec<ProbeWindow>,
    unloaded: LatencyRecorder,
}

impl<'a> ProbeSource<'a> {
    pub(super) fn new(
        (program, sizes): (&'a CapProbeProgram, &'a [SizeMix; 2]),
        (area_bytes, start): (u64, Nanoseconds),
        worker: &Worker,
    ) -> Self {
        let new_requests = |sizes: &'a SizeMix| {
            let choice = RandomOffsetOptions {
                access_distribution: &AccessDistribution::Uniform,
                each_block_once: false,
                align_bytes: program.block_bytes,
            };
            let mix = (sizes, program.write_share);
            RandomRequests::new(mix, &choice, (0, area_bytes), worker.random_seed)
        };
        let [base, double] = sizes;
        let duration = Nanoseconds(program.probe_duration().0 * DURATION_FACTOR_MAX);
        Self {
            program,
            requests: [new_requests(base), new_requests(double)],
            counter: WindowCounter::new(start, Nanoseconds::from_millis(program.window_ms)),
            loads: draw_loads(program.rounds, worker.random_seed),
            load: ProbedLoad::Base,
            part: ProbePart::Settling,
            settled_at: start + Nanoseconds::from_millis(program.settle_ms),
            deadline: start + duration,
            windows: Vec::new(),
            unloaded: LatencyRecorder::new_growing(),
        }
    }

    /// Returns the observations of the probe.
    pub(super) fn into_probe(self) -> CapProbe {
        CapProbe {
            queue_depth: self.program.load_options.queue_depth as u32,
            block_bytes: self.program.block_bytes,
            write_share: self.program.write_share,
            windows: self.windows,
            unloaded: self.unloaded.to_histogram(),
        }
    }

    fn draw_submission(&mut self, ring: &IoRing<'_>) -> RingStep {
        let generator = &mut self.requests[self.load.size_factor() as usize - 1];
        let request = generator.draw_request();
        let submission = Submission {
            operation: match request.is_write {
                true => IoOperation::Write,
                false => IoOperation::Read,
            },
            file: ring.open_files[0].0,
            offset_bytes: request.offset_bytes,
            bytes: request.bytes,
            slot: 0,
            intended_start: None,
        };
        RingStep::PutRequest(0, submission)
    }

    /// Begins the next window, or the end of the load after the last one.
    fn begin_next_window(&mut self, ring: &IoRing<'_>) {
        let now = ring.last_clock_reading;
        let Some(next) = self.loads.pop().filter(|_| now < self.deadline) else {
            self.load = ProbedLoad::Base;
            self.part = ProbePart::Draining;
            return;
        };
        let in_flight = match next == self.load {
            true => 0,
            false => ring.slots.in_use_count(),
        };
        self.load = next;
        self.counter.change_load(next, in_flight, now);
    }

    /// Returns the interval of single requests, ten times that of the base load's completions.
    fn unloaded_interval(&self) -> Nanoseconds {
        let base = self.windows.iter();
        let base = base.filter(|one| one.load == ProbedLoad::Base);
        let (requests, time_ns) = base.fold((0, 0), |(requests, time_ns), one| {
            (requests + one.work.requests, time_ns + one.duration.0)
        });
        match requests {
            0 => UNLOADED_TIME_MAX,
            some => Nanoseconds((UNLOADED_INTERVALS * time_ns as f64 / some as f64) as u64),
        }
    }
}

impl RequestSource for ProbeSource<'_> {
    #[inline]
    fn next_step(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError> {
        let in_use = ring.slots.in_use_count();
        let now = ring.last_clock_reading;
        let depth = self.program.load_options.queue_depth as usize;
        Ok(match self.part {
            ProbePart::Settling | ProbePart::Windows => {
                match in_use < depth * self.load.depth_factor() as usize {
                    true => self.draw_submission(ring),
                    false => RingStep::reap_step(1, None),
                }
            }
            ProbePart::Draining if in_use > 0 => RingStep::reap_step(1, None),
            ProbePart::Draining => {
                let interval = self.unloaded_interval();
                let fitting = UNLOADED_TIME_MAX.0 / interval.0.max(1);
                self.part = ProbePart::Unloaded {
                    left: UNLOADED_COUNT_MAX.min(fitting as u32),
                    interval,
                    due: now + interval,
                };
                RingStep::reap_step(1, Some(now + interval))
            }
            ProbePart::Unloaded { .. } if in_use > 0 => RingStep::reap_step(1, None),
            ProbePart::Unloaded { left: 0, .. } => RingStep::LeaveRing,
            ProbePart::Unloaded { due, .. } if now < due => RingStep::reap_step(1, Some(due)),
            ProbePart::Unloaded {
                left,
                interval,
                due,
            } => {
                self.part = ProbePart::Unloaded {
                    left: left - 1,
                    interval,
                    due: due.max(now) + interval,
                };
                self.draw_submission(ring)
            }
        })
    }

    #[inline]
    fn complete_request(
        &mut self,
        ring: &mut IoRing<'_>,
        done: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        let now = ring.last_clock_reading;
        let bytes = u64::from(done.request.bytes);
        match self.part {
            ProbePart::Settling | ProbePart::Windows => {
                let ended = self.counter.count_completion(now, bytes);
                let begins = matches!(self.part, ProbePart::Settling) && now >= self.settled_at;
                if begins {
                    self.part = ProbePart::Windows;
                }
                self.windows.extend(ended);
                if begins || ended.is_some() || now >= self.deadline {
                    self.begin_next_window(ring);
                }
            }
            ProbePart::Draining => {}
            ProbePart::Unloaded { .. } => self.unloaded.record_latency(done.response_time),
        }
        Ok(())
    }
}

/// Draws the loads of all rounds, the first one last. Each round has each load once.
fn draw_loads(rounds: u64, seed: u64) -> Vec<ProbedLoad> {
    let mut random = RandomDraws::new(seed, ORDER_STREAM);
    let mut loads = Vec::new();
    for _ in 0..rounds {
        let mut round = ProbedLoad::ALL;
        for last in (1..round.len()).rev() {
            round.swap(last, random.draw_below(last as u64 + 1) as usize);
        }
        loads.extend(round);
    }
    loads
}
